"""Compare measurements with the targets of their variants."""

from collections.abc import Mapping

from benchmarks.cases.entry import BenchmarkCase, Target, Variant
from benchmarks.measuring.rounds import Measurement


def measured_value(
    target: Target, variant: Variant, case: BenchmarkCase, measurements: Mapping[str, Measurement]
) -> float | None:
    """Return the measured quantity of a target, or None if the quantity was not measured."""
    measurement = measurements[variant.key]
    if target.compared_to:
        reference = measurements.get(target.compared_to)
        if reference is None or reference.reason:
            return None
        return measurement.seconds / reference.seconds
    values = {
        "ratio": measurement.ratio,
        "seconds": measurement.seconds,
        "beyond": measurement.seconds - measurements[case.reference.key].seconds,
        "MiB": measurement.peak,
        "bytes": bytes_per_sample(measurement, case),
    }
    return values.get(target.quantity, measurement.facts.get(target.quantity))


def bytes_per_sample(measurement: Measurement, case: BenchmarkCase) -> float | None:
    """Return the extra memory of a call per sample, or None if memory was not measured."""
    if measurement.peak is None or not case.n:
        return None
    return measurement.peak * 2**20 / case.n


def missed_targets(
    variant: Variant, case: BenchmarkCase, measurements: Mapping[str, Measurement]
) -> tuple[Target, ...]:
    """Return the targets that a variant misses."""
    return tuple(
        target
        for target in variant.targets
        if (value := measured_value(target, variant, case, measurements)) is not None
        and value > target.at_most
    )
