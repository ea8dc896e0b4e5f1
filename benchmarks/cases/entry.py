"""A contender: a call or a command whose time and memory are measured.

A race is a set-up with contenders that take turns, and one reference that takes part in every
round. The ratio of a contender to the reference can be compared between machines and loads.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

#: Does the thing once; a `Command` of measuring.processes says itself what it took.
Call: TypeAlias = Callable[[], object]


class AbsentError(Exception):
    """What takes part is not installed here, or does not take this kind of data."""


@dataclass(frozen=True)
class Target:
    """At most this much of something that is measured.

    `of` is "ratio" (to the reference), "seconds", "beyond" (seconds more than the reference),
    "MiB", "bytes" (extra memory a sample), or a fact that the contender leaves, such as "page, MB".
    """

    at_most: float
    of: str = "ratio"
    #: The contender of the same race to which the ratio refers; empty if there is no ratio.
    than: str = ""


@dataclass(frozen=True)
class Contender:
    """Something that a person does."""

    #: Its name in the race; what is typed, where that is short.
    name: str
    #: From the race's data to what is timed. What it prepares is not timed.
    start: Callable[[Any], Call]
    #: The kernels it runs with, where that makes a difference.
    kernels: str = ""
    targets: tuple[Target, ...] = ()
    #: Threads it uses; of more than one the wall clock counts, else the processor's time.
    threads: int = 1
    #: The share of the work that is really done, where all of it would take hours.
    part: float = 1.0
    #: Whether its peak of extra memory is measured too, in a process of its own.
    memory: bool = False
    #: Whether it is somebody else's: shown beside ours and not held to the table.
    peer: bool = False
    #: Rounds at most; 0 for as many as there is time for.
    rounds: int = 0
    #: The row of the tables of growth that it is part of, and how much there is of what grows.
    series: str = ""
    size: float = 0.0

    @property
    def key(self) -> str:
        """Its name, told from the same with other kernels."""
        return f"{self.name} ({self.kernels})" if self.kernels else self.name


@dataclass(frozen=True)
class Race:
    """Contenders that take turns on one set-up, beside a reference."""

    name: str
    #: The section of the page that it stands in.
    section: str
    #: From an empty folder and a share of the full size to the data.
    setup: Callable[[Path, float], Any]
    #: What all are compared with; its name says what the ratio is in.
    reference: Contender
    contenders: tuple[Contender, ...]
    #: One sentence on what is done.
    about: str = ""
    #: Samples or rows, where costs are told for each; 0 where there is none.
    n: int = 0
    #: Rounds go on for so long, and there are at least so many.
    seconds: float = 4.0
    rounds: int = 2
    #: Whether the check measures it again.
    quick: bool = False
    #: Whether it is a column of a table that it shares with others of the section.
    column: str = ""
    #: What grows from contender to contender, for a race about growth.
    grows: str = ""

    @property
    def processes(self) -> bool:
        """Whether every turn is a process of its own, whose start is never quite the same."""
        return self.section in {"commands", "starting"}

    def contender(self, key: str) -> Contender:
        """Return the contender of that key."""
        return next(one for one in (self.reference, *self.contenders) if one.key == key)


@dataclass(frozen=True)
class Section:
    """A heading of the page."""

    name: str
    title: str
    text: str = ""
    #: What stands in the tables whose columns are races: "ratio", or "ns" for each sample.
    cell: str = "ratio"


@dataclass(frozen=True)
class Sizes:
    """How much of everything there is: the real sizes, and small ones to try the catalogue."""

    million: int
    ten_million: int
    #: Of a page or a table in the terminal.
    page: int
    #: Rows and classes of class scores.
    wide: tuple[int, int]
    columns: int
    #: Rows of a comparison, its scores, and its resamples.
    compared: tuple[int, tuple[int, ...], int]
    #: Updates of a metric by one sample.
    updates: int
    accelerator: int


FULL: Final = Sizes(
    million=10**6,
    ten_million=10**7,
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
    page=200,
    wide=(300, 20),
    columns=20,
    compared=(400, (12, 16), 50),
    updates=200,
    accelerator=10**4,
)


def told(n: float) -> str:
    """Say a size: 1e6 for a million, 9000 for what is no power of ten."""
    power = len(str(int(n))) - 1
    return f"1e{power}" if n == 10**power and power > 4 else f"{int(n):,}"
