"""Find variants that became slower than their stored results (`run.py --against`)."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from benchmarks.cases.entry import BenchmarkCase, Variant
from benchmarks.measuring.rounds import Measurement
from benchmarks.results import Results

#: Largest accepted relative increase.
TOLERANCE = 0.20
#: Number of measurements before a variant counts as slower.
ATTEMPTS = 3
#: Increases that are ignored: MiB of memory, and seconds of a process.
IGNORED_MIB, IGNORED_SECONDS = 8.0, 0.02

#: A function that measures the variants with the given keys.
Measure = Callable[[BenchmarkCase, list[str]], Mapping[str, Measurement]]


@dataclass(frozen=True)
class Regression:
    """A quantity of a variant that exceeds its stored value."""

    case: str
    variant: str
    quantity: str
    before: float
    now: float

    def __str__(self) -> str:
        """Describe the regression in one line."""
        increase = self.now / self.before - 1
        return (
            f"{self.case}: {self.variant}: {self.quantity} {self.now:.3g}, stored value "
            f"{self.before:.3g} (+{increase:.0%})"
        )


@dataclass(frozen=True)
class Failure:
    """A variant that can no longer be measured."""

    case: str
    variant: str
    reason: str

    def __str__(self) -> str:
        """Describe the failure in one line."""
        return f"{self.case}: {self.variant}: {self.reason}"


def abstain_variants(case: BenchmarkCase) -> list[Variant]:
    """Return the variants of this package, without those of other libraries."""
    return [variant for variant in case.variants if not variant.is_peer]


def find_regressions(
    case: BenchmarkCase, table: Results, measure: Measure
) -> Iterator[Regression | Failure]:
    """Measure a case again, and yield its regressions.

    A variant that seems slower is measured up to `ATTEMPTS` times, and its best measurement counts,
    so that temporary load does not cause a regression.
    """
    stored = table.cases[case.name].variants if case.name in table.cases else {}
    remaining = [
        variant.key
        for variant in abstain_variants(case)
        if variant.key in stored and not stored[variant.key].reason
    ]
    best: dict[str, Measurement] = {}
    for _ in range(ATTEMPTS):
        if not remaining:
            return
        measurements = measure(case, remaining)
        for key in remaining:
            best[key] = _better(best.get(key), measurements[key])
        remaining = [key for key in remaining if _problems(case, key, stored[key], best[key])]
    for key in remaining:
        yield from _problems(case, key, stored[key], best[key])


def _problems(
    case: BenchmarkCase, key: str, before: Measurement, now: Measurement
) -> list[Regression | Failure]:
    if now.reason:
        return [Failure(case.name, key, now.reason)]
    pairs = {"ratio": (before.ratio, now.ratio), "MiB": (before.peak, now.peak)}
    pairs |= {name: (value, now.facts.get(name)) for name, value in before.facts.items()}
    ignored = {"MiB": IGNORED_MIB}
    if case.runs_processes:
        ignored["ratio"] = IGNORED_SECONDS * now.ratio / now.cpu_seconds
    return [
        Regression(case.name, key, quantity, old, new)
        for quantity, (old, new) in pairs.items()
        if old is not None
        and new is not None
        and new > old * (1 + TOLERANCE)
        and new - old > ignored.get(quantity, 0.0)
    ]


def _better(before: Measurement | None, now: Measurement) -> Measurement:
    """Combine two measurements: the smaller ratio with the smaller memory."""
    if before is None or before.reason:
        return now
    if now.reason:
        return before
    faster, slower = (before, now) if before.ratio <= now.ratio else (now, before)
    peaks = [item.peak for item in (faster, slower) if item.peak is not None]
    return dataclasses.replace(faster, peak=min(peaks, default=None))
