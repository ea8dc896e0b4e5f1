"""Compute how the cost of a call grows with the size of its input."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from benchmarks.cases.entry import BenchmarkCase
from benchmarks.measuring.rounds import Measurement


@dataclass(frozen=True)
class CostBySize:
    """The cost of one call at several sizes: a row of the table and a line of the figure."""

    sizes: list[float] = field(default_factory=list)
    #: CPU seconds.
    costs: list[float] = field(default_factory=list)
    #: Peak memory in MiB; None if unknown.
    peaks: list[float | None] = field(default_factory=list)

    def add(self, size: float, measurement: Measurement) -> None:
        """Add the measurement at a size."""
        self.sizes.append(size)
        self.costs.append(measurement.cpu_seconds)
        self.peaks.append(measurement.peak)

    @property
    def microseconds_per_unit(self) -> list[float]:
        """CPU microseconds divided by the size."""
        return [1e6 * cost / size for size, cost in zip(self.sizes, self.costs, strict=True)]


def costs_by_size(
    case: BenchmarkCase, measurements: Mapping[str, Measurement]
) -> dict[str, CostBySize]:
    """Return the costs of each series of a case about growth."""
    series: dict[str, CostBySize] = {}
    for variant in case.variants:
        measurement = measurements.get(variant.key)
        if measurement is not None and not measurement.reason:
            series.setdefault(variant.series, CostBySize()).add(variant.size, measurement)
    return series


def exponents(sizes: Sequence[float], costs: Sequence[float]) -> tuple[float, float]:
    """Return the slope of log cost over log size, for all sizes and for the two largest ones."""
    if len(sizes) < 2:
        return float("nan"), float("nan")
    order = np.argsort(sizes)
    x, y = np.log(np.asarray(sizes, float)[order]), np.log(np.asarray(costs, float)[order])
    slope = np.polyfit(x, y, 1)[0]
    return float(slope), float((y[-1] - y[-2]) / (x[-1] - x[-2]))
