"""Time the variants of a case in rounds, so that other load slows all of them equally."""

import gc
import os
import statistics
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.cases.entry import AbsentError, BenchmarkCase, Call, Variant
from benchmarks.cases.kernels import NUMPY
from benchmarks.measuring.memory import peak_extra
from benchmarks.measuring.processes import Command, Cost

#: A shorter call is repeated until this many seconds have passed.
MIN_SECONDS = 0.002
#: Within a round, the reference is timed again after this many seconds.
REFERENCE_PERIOD = 0.25


@dataclass(frozen=True)
class Measurement:
    """Time and memory of a variant in its best round, which other load affects least."""

    seconds: float = float("nan")
    cpu_seconds: float = float("nan")
    #: Wall time of the median round.
    median: float = float("nan")
    #: Time divided by the time of the reference: CPU time, or wall time if several threads work.
    ratio: float = float("nan")
    rounds: int = 0
    #: Peak memory of a command, or extra memory of a call, in MiB.
    peak: float | None = None
    facts: Mapping[str, float] = field(default_factory=dict)
    #: Reason for a missing measurement, or an empty text.
    reason: str = ""


def measure(
    case: BenchmarkCase,
    *,
    variants: Collection[str] = (),
    seconds: float | None = None,
    memory: tuple[str, ...] | None = None,
) -> dict[str, Measurement]:
    """Measure the reference and the variants of a case, and return the measurements by key.

    By default, all variants are measured. `memory` contains the options of the process that
    measures memory. If `memory` is None, memory is not measured.
    """
    selected = [variant for variant in case.variants if not variants or variant.key in variants]
    with tempfile.TemporaryDirectory(prefix="abstain-bench-") as folder:
        data = case.setup(Path(folder), 1.0)
        rounds = _run_rounds(case, selected, data, seconds)
    reference = _summarize(case.reference, rounds)
    measurements = {case.reference.key: reference}
    for variant in selected:
        measurement = _summarize(variant, rounds)
        measurements[variant.key] = _with_ratio(measurement, reference, case, variant)
    if memory is None:
        return measurements
    return {
        key: _with_memory(measurement, case, key, memory)
        if case.variant(key).memory
        else measurement
        for key, measurement in measurements.items()
    }


@dataclass
class Rounds:
    """Costs of the variants of one case in all rounds."""

    data: Any
    calls: dict[str, Call] = field(default_factory=dict)
    costs: dict[str, list[Cost]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    def time(self, variant: Variant) -> None:
        """Time a variant once. If it fails, record the reason, and do not run the variant again."""
        costs = self.costs.setdefault(variant.key, [])
        if variant.key in self.reasons or 0 < variant.rounds <= len(costs):
            return
        select_kernels(variant)
        try:
            if variant.key not in self.calls:
                self.calls[variant.key] = variant.prepare(self.data)
            costs.append(time_call(self.calls[variant.key]))
        except AbsentError as reason:
            self.reasons[variant.key] = f"absent: {reason}"
        except Exception as error:  # noqa: BLE001  the other variants are measured
            self.reasons[variant.key] = f"failed: {type(error).__name__}: {error}"

    def are_complete(self, variants: Sequence[Variant]) -> bool:
        """Return whether all variants have reached their largest number of rounds."""
        return all(0 < variant.rounds <= len(self.costs[variant.key]) for variant in variants)


def _run_rounds(
    case: BenchmarkCase, variants: Sequence[Variant], data: Any, seconds: float | None
) -> Rounds:
    rounds = Rounds(data)
    deadline = time.perf_counter() + (case.seconds if seconds is None else seconds)
    n_rounds = 0
    while n_rounds < case.rounds or time.perf_counter() < deadline:
        gc.collect()
        rounds.time(case.reference)
        reference_time = time.perf_counter()
        for variant in variants:
            # In a long round, the reference is timed repeatedly, so that it has the same load.
            if time.perf_counter() - reference_time > REFERENCE_PERIOD:
                rounds.time(case.reference)
                reference_time = time.perf_counter()
            rounds.time(variant)
        n_rounds += 1
        if rounds.are_complete(variants):
            break
    return rounds


def select_kernels(variant: Variant) -> None:
    """Set the environment variable that selects numba's or NumPy's kernels."""
    os.environ["ABSTAIN_NO_NUMBA"] = "1" if variant.kernels == NUMPY else "0"


def time_call(call: Call) -> Cost:
    """Return the cost of one run of a call."""
    if isinstance(call, Command):
        return call()
    gc.disable()
    try:
        start, cpu_start, repeats = time.perf_counter(), time.process_time(), 0
        while (seconds := time.perf_counter() - start) < MIN_SECONDS or not repeats:
            call()
            repeats += 1
        cpu_seconds = time.process_time() - cpu_start
    finally:
        gc.enable()
    return Cost(seconds / repeats, cpu_seconds / repeats)


def _summarize(variant: Variant, rounds: Rounds) -> Measurement:
    if variant.key in rounds.reasons:
        return Measurement(reason=rounds.reasons[variant.key])
    costs = rounds.costs[variant.key]
    peaks = [cost.peak for cost in costs if cost.peak is not None]
    return Measurement(
        seconds=min(cost.seconds for cost in costs) / variant.work_share,
        cpu_seconds=min(cost.cpu_seconds for cost in costs) / variant.work_share,
        median=statistics.median(cost.seconds for cost in costs) / variant.work_share,
        rounds=len(costs),
        peak=min(peaks) if peaks else None,
        facts=costs[-1].facts,
    )


def _with_ratio(
    measurement: Measurement, reference: Measurement, case: BenchmarkCase, variant: Variant
) -> Measurement:
    if max(variant.threads, case.reference.threads) > 1:
        ratio = measurement.seconds / reference.seconds
    else:
        ratio = measurement.cpu_seconds / reference.cpu_seconds
    return replace(measurement, ratio=ratio)


def _with_memory(
    measurement: Measurement, case: BenchmarkCase, key: str, memory: tuple[str, ...]
) -> Measurement:
    if measurement.reason:
        return measurement
    return replace(measurement, peak=peak_extra(case.name, key, memory))
