"""Define benchmark cases, which are calls and commands with measured time and memory.

A case has data, a reference and variants. The reference and the variants are timed in the same
rounds, so the ratio of a variant to the reference can be compared between machines and loads.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

#: A call to be timed. A `Command` of measuring.processes measures itself and returns its cost.
Call: TypeAlias = Callable[[], object]


class AbsentError(Exception):
    """A library or device is not available, or does not support this kind of data."""


@dataclass(frozen=True)
class Target:
    """The largest acceptable value of a measured quantity.

    `quantity` is "ratio" (to the reference), "seconds", "beyond" (seconds more than the reference),
    "MiB", "bytes" (extra memory per sample), or a fact about the output, such as "page, MB".
    """

    at_most: float
    quantity: str = "ratio"
    #: Variant of the same case that replaces the reference in the ratio, or an empty text.
    compared_to: str = ""


@dataclass(frozen=True)
class Variant:
    """A call or a command that is timed."""

    #: Name within the case. Short calls and commands are their own names.
    name: str
    #: Function from the data of the case to the call. Only the call is timed, not the function.
    prepare: Callable[[Any], Call]
    #: "numba" or "NumPy" if the variant exists for both kernels.
    kernels: str = ""
    targets: tuple[Target, ...] = ()
    #: Number of threads. With more than one, wall time counts instead of CPU time.
    threads: int = 1
    #: Executed share of the work, for variants that would take hours. Times are scaled up.
    work_share: float = 1.0
    #: Whether the peak of extra memory is also measured, in a separate process.
    memory: bool = False
    #: Whether the variant is another library, which is shown but not checked.
    is_peer: bool = False
    #: Largest number of rounds; 0 for no limit.
    rounds: int = 0
    #: Row of the table and size, for cases about growth.
    series: str = ""
    size: float = 0.0

    @property
    def key(self) -> str:
        """The name, with the kernels in parentheses if the variant exists for both kernels."""
        return f"{self.name} ({self.kernels})" if self.kernels else self.name


@dataclass(frozen=True)
class BenchmarkCase:
    """Variants that are timed on the same data, with a reference."""

    name: str
    #: Name of the section of the page.
    section: str
    #: Function from an empty folder and a share of the full size to the data.
    setup: Callable[[Path, float], Any]
    #: Reference of the ratios.
    reference: Variant
    variants: tuple[Variant, ...]
    #: One sentence that describes data and options.
    description: str = ""
    #: Number of samples or rows, for costs per sample; 0 for none.
    n: int = 0
    #: Minimum duration of all rounds, and minimum number of rounds.
    seconds: float = 4.0
    rounds: int = 2
    #: Whether `make bench-check` measures the case.
    is_quick: bool = False
    #: Heading of the column, if the case is a column of a table of the section.
    column: str = ""
    #: Quantity that grows, for cases about growth.
    growing: str = ""

    @property
    def runs_processes(self) -> bool:
        """Whether each variant is a process, whose start has a variable cost."""
        return self.section in {"users", "commands", "starting"}

    def variant(self, key: str) -> Variant:
        """Return the variant or reference with a key."""
        return next(v for v in (self.reference, *self.variants) if v.key == key)


@dataclass(frozen=True)
class Section:
    """A section of the page."""

    name: str
    title: str
    text: str = ""
    #: Cells of a table whose columns are cases: "ratio", "ns" per sample, or "seconds" with memory.
    cell: str = "ratio"


@dataclass(frozen=True)
class Sizes:
    """Sizes of the data, for published results or for tests of the catalogue."""

    million: int
    ten_million: int
    #: Rows of the files of the section for users.
    users: tuple[int, ...]
    #: Number of rows for an evaluation with few rows.
    page: int
    #: Rows and classes of class scores.
    wide: tuple[int, int]
    columns: int
    #: Rows, numbers of scores, and resamples of a comparison.
    compared: tuple[int, tuple[int, ...], int]
    #: Updates of a metric with one sample.
    updates: int
    accelerator: int


FULL: Final = Sizes(
    million=10**6,
    ten_million=10**7,
    users=(10**4, 10**6, 10**8),
    page=1000,
    wide=(10**5, 1000),
    columns=2000,
    compared=(9000, (65, 200), 500),
    updates=20_000,
    accelerator=10**8,
)
SMALL: Final = Sizes(
    million=4000,
    ten_million=10_000,
    users=(200, 400, 800),
    page=200,
    wide=(300, 20),
    columns=20,
    compared=(400, (12, 16), 50),
    updates=200,
    accelerator=10**4,
)


def format_size(n: float) -> str:
    """Format a size, such as 1e6 for a large power of ten and 9,000 for another number."""
    power = len(str(int(n))) - 1
    return f"1e{power}" if n == 10**power and power > 4 else f"{int(n):,}"
