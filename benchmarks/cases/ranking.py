"""From arrays in memory to numbers: every rank metric, all of one score, intervals and bands."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.cases.entry import Call, Contender, Race, Section, Sizes, Target, told
from benchmarks.cases.kernels import NUMBA, NUMPY, require_numba
from benchmarks.inputs import KINDS, Case, case, share_of

import abstain as ab
from abstain._foundation.scored import validate_samples
from abstain.curves.bands import risk_coverage_band
from abstain.metrics import METRICS

SECTION = Section(
    "ranking",
    "From arrays to a number",
    "The public call on arrays in memory, validation included, in sorts: `np.sort` of distinct "
    "values of the same size and type in the same rounds. 0/1 losses, 5 % failures, no weights; "
    "with numba's kernels, and in brackets with NumPy's alone.",
)
WEIGHTED = Section(
    "weighted",
    "Weights and graded losses",
    "In `np.argsort` of the confidences: a weight or a graded loss does not fit into a key.",
)
PASSES = Section(
    "passes",
    "Calibration errors and CWSA",
    "These need no order. A pass reads both arrays once and adds up what it finds in 15 bins: "
    "`np.bincount(...)` of confidences that are cut to bins, weighted by the loss.",
)

#: The rank metrics that need neither classes nor class scores.
RANKED = [
    metric
    for metric in METRICS.values()
    if metric.measurement.rank_based
    and not metric.reason_not_applicable(validate_samples([0.9, 0.1], [0, 1]))
]
#: The rest that needs a confidence and a loss.
UNRANKED = [
    metric
    for metric in METRICS.values()
    if not metric.measurement.rank_based
    and not metric.reason_not_applicable(validate_samples([0.9, 0.1], [0, 1]))
]
#: Measured where every metric by itself would take too long.
FEW = ("augrc", "aurc", "aurc_plugin", "failure_auroc", "coverage@5risk")
PAIR = "ab.risk_coverage_areas"
TOGETHER = "all of one score"
DRAWN, SURE = 'ab.evaluate(..., interval="none")', "ab.evaluate(...)"
INTERVAL, BAND = "ab.metric_interval", "risk_coverage_band"
LONG = (DRAWN, SURE)


def of_case(kind: str, n: int) -> Callable[[Path, float], Case]:
    """Return the set-up of a race on arrays."""
    return lambda _, share: case(kind, share_of(n, share))


def sort() -> Contender:
    """Return the reference of what needs an order."""
    return Contender("np.sort", lambda one: lambda: np.sort(one.distinct))


def started(call: Callable[[Case], object], kernels: str) -> Callable[[Case], Call]:
    """Return what starts a call on a case, with numba's kernels only where they are."""

    def start(one: Case) -> Call:
        if kernels == NUMBA:
            require_numba()
        return lambda: call(one)

    return start


def together(one: Case) -> Any:
    """Compute every rank metric of one score, which is sorted once."""
    s = validate_samples(one.confidence, one.loss)
    for metric in RANKED:
        metric.compute(s)
    return s


def evaluated(one: Case, interval: str) -> object:
    """Evaluate one score by every rank metric, with its curves."""
    predictions = ab.Predictions(confidence={"score": one.confidence}, loss=one.loss)
    metrics = [metric.name for metric in RANKED]
    return ab.evaluate(predictions, metrics=metrics, interval=interval)


def _alone(metric: Any) -> Callable[[Case], object]:
    return lambda one: metric.compute(validate_samples(one.confidence, one.loss))


#: At most so many sorts, with numba and with NumPy; and extra bytes a sample.
SORTS = {TOGETHER: (8, 16), DRAWN: (8, 16), SURE: (25, 40), INTERVAL: (), BAND: ()}
BYTES = {"augrc": 12.0, PAIR: 4.5, TOGETHER: 12.0, DRAWN: 12.0, SURE: 12.0}


def contenders(metrics: list[Any], *, large: bool, whole: bool) -> tuple[Contender, ...]:
    """Return metrics by themselves and together, with both kinds of kernels.

    Of large data what takes long is done once, and with numba's kernels only if not `whole`.
    """
    calls = {metric.name: _alone(metric) for metric in metrics}
    calls[PAIR] = lambda one: ab.risk_coverage_areas(one.confidence, one.loss)
    calls[TOGETHER] = together
    calls[DRAWN] = lambda one: evaluated(one, "none")
    calls[SURE] = lambda one: evaluated(one, "analytic")
    if whole:
        calls[INTERVAL] = lambda one: ab.metric_interval(one.confidence, one.loss)
        calls[BAND] = lambda one: risk_coverage_band(one.confidence, one.loss)
    return tuple(
        _door(name, call, kernels, large=large, whole=whole)
        for name, call in calls.items()
        for kernels in (NUMBA, NUMPY)
        if whole or name not in LONG or kernels == NUMBA
    )


def _door(
    name: str, call: Callable[[Case], object], kernels: str, *, large: bool, whole: bool
) -> Contender:
    sorts = SORTS.get(name, (3, 6))
    memory = large and whole and kernels == NUMBA and name in BYTES
    targets = [Target(sorts[kernels == NUMPY])] if sorts else []
    targets += [Target(BYTES[name], "bytes")] if memory else []
    once = int(large and name in LONG)
    made = started(call, kernels)
    return Contender(name, made, kernels, tuple(targets), rounds=once, memory=memory)


def races(sizes: Sizes) -> Iterator[Race]:
    """Yield the races of these sections."""
    few = [metric for metric in RANKED if metric.name in FEW]
    for n in (sizes.million, sizes.ten_million):
        large = n == sizes.ten_million
        for kind in list(KINDS)[:4]:
            whole = not large or kind == "float32"
            yield Race(
                f"rank metrics, {told(n)} {kind}",
                SECTION.name,
                of_case(kind, n),
                sort(),
                contenders(RANKED if whole else few, large=large, whole=whole),
                n=n,
                seconds=6.0,
                quick=not large and kind in {"float32", "float64, 55 % tied"},
                column=f"{told(n)} {kind}",
            )
    yield _weighted(sizes.million)
    yield _passes(sizes.million)


def _weighted(n: int) -> Race:
    calls = {
        "ab.augrc, weights": lambda one: ab.augrc(one.confidence, one.loss, weight=one.weight),
        "ab.aurc, weights": lambda one: ab.aurc(one.confidence, one.loss, weight=one.weight),
        "ab.augrc, graded loss": lambda one: ab.augrc(one.confidence, one.graded),
        "ab.aurc, graded loss": lambda one: ab.aurc(one.confidence, one.graded),
        "ab.aurc, both": lambda one: ab.aurc(one.confidence, one.graded, weight=one.weight),
        "ab.failure_auroc, weights": lambda one: ab.failure_auroc(
            one.confidence, one.loss, weight=one.weight
        ),
        "ab.selective_risk, weights": lambda one: ab.selective_risk(
            one.confidence, one.loss, coverage=0.8, weight=one.weight
        ),
    }
    return Race(
        f"weights and graded losses, {told(n)} float32",
        WEIGHTED.name,
        of_case("float32", n),
        Contender("np.argsort", lambda one: lambda: np.argsort(one.confidence)),
        tuple(
            Contender(name, started(call, kernels), kernels=kernels, targets=(Target(2.0),))
            for name, call in calls.items()
            for kernels in (NUMBA, NUMPY)
        ),
        n=n,
        quick=True,
        column=f"{told(n)} float32",
    )


def _pass(one: Case) -> object:
    bins = (one.confidence * 14.999).astype(np.intp)
    return np.bincount(bins, weights=one.loss, minlength=15)


def _passes(n: int) -> Race:
    calls = {metric.name: _alone(metric) for metric in UNRANKED}
    calls["ab.cwsa_sweep"] = lambda one: ab.cwsa_sweep(one.confidence, one.loss)
    calls["ab.cwsa_sweep, 20 thresholds"] = lambda one: ab.cwsa_sweep(
        one.confidence, one.loss, thresholds=np.linspace(0, 0.95, 20)
    )
    return Race(
        f"calibration errors and CWSA, {told(n)} float32",
        PASSES.name,
        of_case("float32", n),
        Contender("a pass", lambda one: lambda: _pass(one)),
        tuple(
            Contender(name, started(call, kernels), kernels=kernels)
            for name, call in calls.items()
            for kernels in (NUMBA, NUMPY)
        ),
        n=n,
        quick=True,
        column=f"{told(n)} float32",
    )
