"""Cases for calls on arrays: rank metrics, all metrics of one score, intervals and bands."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.cases.entry import BenchmarkCase, Call, Section, Sizes, Target, Variant, format_size
from benchmarks.cases.kernels import NUMBA, NUMPY, require_numba
from benchmarks.inputs import KINDS, Samples, draw_samples, share_of

import abstain as ab
from abstain._foundation.scored import validate_samples
from abstain.curves.bands import risk_coverage_band
from abstain.metrics import METRICS

SECTION = Section(
    "ranking",
    "From arrays to a number",
    "The table contains the times of public calls on arrays, including validation, divided by the "
    "time of `np.sort` on distinct values of the same size and type. The losses are 0 or 1, with "
    "5% failures and no weights. Numbers in parentheses are without numba.",
)
WEIGHTED = Section(
    "weighted",
    "Weights and graded losses",
    "The table contains times divided by the time of `np.argsort` on the confidences. "
    "`np.argsort` is the reference, because weights and graded losses cannot be packed into the "
    "sort key.",
)
PASSES = Section(
    "passes",
    "Calibration errors and CWSA",
    "These metrics need no sort. The reference is one pass over both arrays, `np.bincount` of the "
    "confidences in 15 bins, weighted by the loss.",
)

#: Rank metrics that need neither classes nor class scores.
RANK_METRICS = [
    metric
    for metric in METRICS.values()
    if metric.measurement.rank_based
    and not metric.reason_not_applicable(validate_samples([0.9, 0.1], [0, 1]))
]
#: Other metrics of a confidence and a loss.
OTHER_METRICS = [
    metric
    for metric in METRICS.values()
    if not metric.measurement.rank_based
    and not metric.reason_not_applicable(validate_samples([0.9, 0.1], [0, 1]))
]
#: Metrics of the cases in which measuring all metrics would take too long.
SELECTED = ("augrc", "aurc", "aurc_plugin", "failure_auroc", "coverage@5risk")
BOTH_AREAS = "ab.risk_coverage_areas"
ALL_METRICS = "all of one score"
EVALUATE_NO_INTERVAL, EVALUATE = 'ab.evaluate(..., interval="none")', "ab.evaluate(...)"
INTERVAL, BAND = "ab.metric_interval", "risk_coverage_band"
SLOW = (EVALUATE_NO_INTERVAL, EVALUATE)


def setup_samples(kind: str, n: int) -> Callable[[Path, float], Samples]:
    """Return the setup of a case on arrays."""
    return lambda _, share: draw_samples(kind, share_of(n, share))


def sort() -> Variant:
    """Return the reference of calls that sort."""
    return Variant("np.sort", lambda samples: lambda: np.sort(samples.distinct))


def prepare_call(call: Callable[[Samples], object], kernels: str) -> Callable[[Samples], Call]:
    """Return a function that prepares a call on samples and checks for the required kernels."""

    def start(samples: Samples) -> Call:
        if kernels == NUMBA:
            require_numba()
        return lambda: call(samples)

    return start


def compute_all(samples: Samples) -> Any:
    """Compute all rank metrics of one score, which is sorted once."""
    scored = validate_samples(samples.confidence, samples.loss)
    for metric in RANK_METRICS:
        metric.compute(scored)
    return scored


def evaluate(samples: Samples, interval: str) -> object:
    """Evaluate one score with all rank metrics and its curves."""
    predictions = ab.Predictions(confidence={"score": samples.confidence}, loss=samples.loss)
    metrics = [metric.name for metric in RANK_METRICS]
    return ab.evaluate(predictions, metrics=metrics, interval=interval)


def _compute(metric: Any) -> Callable[[Samples], object]:
    return lambda samples: metric.compute(validate_samples(samples.confidence, samples.loss))


#: Targets of the time relative to a sort, with the numba and the NumPy kernels.
MAX_SORTS = {
    ALL_METRICS: (8, 16),
    EVALUATE_NO_INTERVAL: (8, 16),
    EVALUATE: (25, 40),
    INTERVAL: (),
    BAND: (),
}
#: Targets of the extra bytes per sample.
MAX_BYTES = {
    "augrc": 12.0,
    BOTH_AREAS: 4.5,
    ALL_METRICS: 12.0,
    EVALUATE_NO_INTERVAL: 12.0,
    EVALUATE: 12.0,
}


def variants(metrics: list[Any], *, large: bool, complete: bool) -> tuple[Variant, ...]:
    """Return variants for each metric and for all metrics together, with both kinds of kernels.

    With large data, slow calls run only once. Without `complete`, slow calls run only with the
    numba kernels.
    """
    calls = {metric.name: _compute(metric) for metric in metrics}
    calls[BOTH_AREAS] = lambda samples: ab.risk_coverage_areas(samples.confidence, samples.loss)
    calls[ALL_METRICS] = compute_all
    calls[EVALUATE_NO_INTERVAL] = lambda samples: evaluate(samples, "none")
    calls[EVALUATE] = lambda samples: evaluate(samples, "analytic")
    if complete:
        calls[INTERVAL] = lambda samples: ab.metric_interval(samples.confidence, samples.loss)
        calls[BAND] = lambda samples: risk_coverage_band(samples.confidence, samples.loss)
    return tuple(
        _variant(name, call, kernels, large=large, complete=complete)
        for name, call in calls.items()
        for kernels in (NUMBA, NUMPY)
        if complete or name not in SLOW or kernels == NUMBA
    )


def _variant(
    name: str, call: Callable[[Samples], object], kernels: str, *, large: bool, complete: bool
) -> Variant:
    max_sorts = MAX_SORTS.get(name, (3, 6))
    memory = large and complete and kernels == NUMBA and name in MAX_BYTES
    targets = [Target(max_sorts[kernels == NUMPY])] if max_sorts else []
    targets += [Target(MAX_BYTES[name], "bytes")] if memory else []
    rounds = int(large and name in SLOW)
    prepare = prepare_call(call, kernels)
    return Variant(name, prepare, kernels, tuple(targets), rounds=rounds, memory=memory)


def cases(sizes: Sizes) -> Iterator[BenchmarkCase]:
    """Yield the cases of these sections."""
    selected = [metric for metric in RANK_METRICS if metric.name in SELECTED]
    for n in (sizes.million, sizes.ten_million):
        large = n == sizes.ten_million
        for kind in list(KINDS)[:4]:
            complete = not large or kind == "float32"
            yield BenchmarkCase(
                f"rank metrics, {format_size(n)} {kind}",
                SECTION.name,
                setup_samples(kind, n),
                sort(),
                variants(RANK_METRICS if complete else selected, large=large, complete=complete),
                n=n,
                seconds=6.0,
                is_quick=not large and kind in {"float32", "float64, 55% tied"},
                column=f"{format_size(n)} {kind}",
            )
    yield _weighted(sizes.million)
    yield _passes(sizes.million)


def _weighted(n: int) -> BenchmarkCase:
    calls = {
        "ab.augrc, weights": lambda samples: ab.augrc(
            samples.confidence, samples.loss, weight=samples.weight
        ),
        "ab.aurc, weights": lambda samples: ab.aurc(
            samples.confidence, samples.loss, weight=samples.weight
        ),
        "ab.augrc, graded loss": lambda samples: ab.augrc(samples.confidence, samples.graded),
        "ab.aurc, graded loss": lambda samples: ab.aurc(samples.confidence, samples.graded),
        "ab.aurc, both": lambda samples: ab.aurc(
            samples.confidence, samples.graded, weight=samples.weight
        ),
        "ab.failure_auroc, weights": lambda samples: ab.failure_auroc(
            samples.confidence, samples.loss, weight=samples.weight
        ),
        "ab.selective_risk, weights": lambda samples: ab.selective_risk(
            samples.confidence, samples.loss, coverage=0.8, weight=samples.weight
        ),
    }
    return BenchmarkCase(
        f"weights and graded losses, {format_size(n)} float32",
        WEIGHTED.name,
        setup_samples("float32", n),
        Variant("np.argsort", lambda samples: lambda: np.argsort(samples.confidence)),
        tuple(
            Variant(name, prepare_call(call, kernels), kernels=kernels, targets=(Target(2.0),))
            for name, call in calls.items()
            for kernels in (NUMBA, NUMPY)
        ),
        n=n,
        is_quick=True,
        column=f"{format_size(n)} float32",
    )


def _pass(samples: Samples) -> object:
    bins = (samples.confidence * 14.999).astype(np.intp)
    return np.bincount(bins, weights=samples.loss, minlength=15)


def _passes(n: int) -> BenchmarkCase:
    calls = {metric.name: _compute(metric) for metric in OTHER_METRICS}
    calls["ab.cwsa_sweep"] = lambda samples: ab.cwsa_sweep(samples.confidence, samples.loss)
    calls["ab.cwsa_sweep, 20 thresholds"] = lambda samples: ab.cwsa_sweep(
        samples.confidence, samples.loss, thresholds=np.linspace(0, 0.95, 20)
    )
    return BenchmarkCase(
        f"calibration errors and CWSA, {format_size(n)} float32",
        PASSES.name,
        setup_samples("float32", n),
        Variant("one pass", lambda samples: lambda: _pass(samples)),
        tuple(
            Variant(name, prepare_call(call, kernels), kernels=kernels)
            for name, call in calls.items()
            for kernels in (NUMBA, NUMPY)
        ),
        n=n,
        is_quick=True,
        column=f"{format_size(n)} float32",
    )
