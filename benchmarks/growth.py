"""How fast costs grow with sizes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from benchmarks.cases.entry import Race
from benchmarks.measuring.rounds import Found


@dataclass(frozen=True)
class Line:
    """What one thing costs at several sizes: a row of the table, a line of the picture."""

    sizes: list[float] = field(default_factory=list)
    #: Seconds of the processor.
    costs: list[float] = field(default_factory=list)
    #: Peak memory in MiB, where it is known.
    peaks: list[float | None] = field(default_factory=list)

    def add(self, size: float, found: Found) -> None:
        """Add what was found at a size."""
        self.sizes.append(size)
        self.costs.append(found.processor)
        self.peaks.append(found.peak)

    @property
    def each(self) -> list[float]:
        """Microseconds of the processor for each of what there is more of."""
        return [1e6 * cost / size for size, cost in zip(self.sizes, self.costs, strict=True)]


def lines(race: Race, found: Mapping[str, Found]) -> dict[str, Line]:
    """Return what was found of a race about growth, by what is done."""
    drawn: dict[str, Line] = {}
    for contender in race.contenders:
        one = found.get(contender.key)
        if one is not None and not one.reason:
            drawn.setdefault(contender.series, Line()).add(contender.size, one)
    return drawn


def exponents(sizes: Sequence[float], costs: Sequence[float]) -> tuple[float, float]:
    """Return the slope of log cost over log size: fitted to all, and of the two largest sizes."""
    if len(sizes) < 2:
        return float("nan"), float("nan")
    order = np.argsort(sizes)
    x, y = np.log(np.asarray(sizes, float)[order]), np.log(np.asarray(costs, float)[order])
    slope = np.polyfit(x, y, 1)[0]
    return float(slope), float((y[-1] - y[-2]) / (x[-1] - x[-2]))
