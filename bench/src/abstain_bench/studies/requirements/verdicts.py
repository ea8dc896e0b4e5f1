"""Test the requirements R1 to R5 on systems, and find counterexamples."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from abstain.metrics import Metric
from abstain.typing import FloatArray, IntArray
from abstain_bench.studies.requirements.systems import (
    ROUNDING,
    ClassInputs,
    Systems,
    all_systems,
    systems_with_few_failures,
)

#: Texts of verdicts.
HOLDS = "holds"
BROKEN = "broken"
UNDEFINED = "undefined"


class SystemPair(NamedTuple):
    """Row indices of two systems, and how much worse the metric of the second is."""

    worsening: float
    before: int
    after: int


#: Placeholder that is less than all pairs of systems.
NO_PAIR: Final = SystemPair(-np.inf, 0, 0)


@dataclass(frozen=True)
class Counterexample:
    """Two systems that violate a requirement, with their metrics.

    For R3, `before` and `after` describe two swaps, and the metrics are replaced by the
    improvements.
    """

    before: str = ""
    after: str = ""
    value_before: float = float("nan")
    value_after: float = float("nan")
    reason: str = ""

    @classmethod
    def from_pair(
        cls, descriptions: Iterable[str], values: Iterable[float], reason: str
    ) -> "Counterexample":
        """Create a counterexample from the descriptions and metrics of two systems."""
        before, after = descriptions
        value_before, value_after = values
        return cls(before, after, value_before, value_after, reason)


@dataclass(frozen=True)
class Verdict:
    """Verdict on one interpretation of a requirement."""

    #: Number of samples of the counterexample. Without a counterexample, the maximum number of
    #: tested samples, or 0 if the metric is undefined.
    n_samples: int
    #: None if the requirement holds or the metric is undefined.
    counterexample: Counterexample | None = None

    @property
    def text(self) -> str:
        """Display text of the verdict."""
        if self.counterexample is not None:
            return BROKEN
        return HOLDS if self.n_samples else UNDEFINED

    @property
    def holds(self) -> bool | None:
        """Whether the requirement holds. None if the metric is undefined for all systems."""
        return None if self.text == UNDEFINED else self.counterexample is None


def pair_verdict(
    metric: Metric, systems: Systems, value: FloatArray, pair: SystemPair, reason: str
) -> Verdict:
    """Convert a pair of systems to a verdict that contains the pair as a counterexample."""
    # The counterexample contains the values of the metric in its original orientation.
    sign = 1.0 if metric.lower_is_better else -1.0
    rows = (pair.before, pair.after)
    descriptions = [systems.format_row(row) for row in rows]
    values = [float(sign * value[row]) for row in rows]
    return Verdict(systems.n_samples, Counterexample.from_pair(descriptions, values, reason))


# ---------------------------------------------------------------------- R2: accuracy and ranking
def find_worst_improvement(systems: Systems, value: FloatArray) -> SystemPair:
    """Return the pair of systems for which the metric worsens most although one factor improves.

    One factor is the ranking for fixed failures per class, and the other is the accuracy for fixed
    failure AUROC.
    """
    return max(
        _find_worst_pair(systems, value, systems.classifier, systems.ranking),
        _find_worst_pair(systems, value, systems.ranking_and_classes, -systems.n_failures),
    )


def _find_worst_pair(
    systems: Systems, value: FloatArray, fixed: IntArray, improving: IntArray
) -> SystemPair:
    """Return the pair with equal `fixed` whose metric worsens most when `improving` grows."""
    worst_pair = NO_PAIR
    rows = np.flatnonzero(systems.has_ranking & np.isfinite(value))
    for group in _group_rows(fixed, rows):
        # Row with the lowest metric among the systems with a smaller `improving` key.
        lowest_before: int | None = None
        for level in _group_rows(improving, group):
            highest = int(level[np.argmax(value[level])])
            if lowest_before is not None:
                worsening = float(value[highest] - value[lowest_before])
                worst_pair = max(worst_pair, SystemPair(worsening, lowest_before, highest))
            lowest = int(level[np.argmin(value[level])])
            if lowest_before is None or value[lowest] < value[lowest_before]:
                lowest_before = lowest
    return worst_pair


def _group_rows(key: IntArray, rows: IntArray) -> Iterator[IntArray]:
    """Yield groups of rows with equal keys, in ascending order of the key."""
    order = rows[np.argsort(key[rows], kind="stable")]
    starts = np.flatnonzero(np.diff(key[order])) + 1
    return (group for group in np.split(order, starts) if group.size)


# ------------------------------------------------------------------------------ R2: single steps
def find_worst_step(systems: Systems, value: FloatArray) -> SystemPair:
    """Return the swap or the correction for which the metric worsens most."""
    return max(
        _find_largest_increase(systems.swaps, value),
        _find_largest_increase(systems.corrections, value),
    )


def _find_largest_increase(pairs: IntArray, value: FloatArray) -> SystemPair:
    """Return the pair of rows with the largest increase of the metric."""
    increases = _increases(pairs, value)
    if not np.isfinite(increases).any():
        return NO_PAIR
    index = int(np.nanargmax(increases))
    before, after = pairs[index].tolist()
    return SystemPair(float(increases[index]), before, after)


def _increases(pairs: IntArray, value: FloatArray) -> FloatArray:
    """Compute the increase of the metric for each pair, or NaN if a metric is not finite."""
    finite = np.where(np.isfinite(value), value, np.nan)
    return np.asarray(finite[pairs[:, 1]] - finite[pairs[:, 0]])


# -------------------------------------------------------------------------------------------- R1
def depends_on(systems: Systems, value: FloatArray, fixed: IntArray, varying: IntArray) -> bool:
    """Return whether the metric depends on `varying` among systems with equal `fixed`."""
    for rows in _groups_with_equal_scale(systems, value, fixed):
        key_varies = bool(np.ptp(varying[rows]))
        metric_varies = bool(np.ptp(value[rows]) > ROUNDING)
        if key_varies and metric_varies:
            return True
    return False


def find_most_different_pair(
    systems: Systems, value: FloatArray, fixed: IntArray, varying: IntArray
) -> SystemPair:
    """Return two systems with equal `fixed` values and the largest difference in `varying`."""
    largest_difference = 0
    pair = NO_PAIR
    for rows in _groups_with_equal_scale(systems, value, fixed):
        lowest = int(rows[np.argmin(varying[rows])])
        highest = int(rows[np.argmax(varying[rows])])
        difference = int(varying[highest] - varying[lowest])
        if difference > largest_difference:
            largest_difference = difference
            pair = SystemPair(0.0, lowest, highest)
    return pair


def _groups_with_equal_scale(
    systems: Systems, value: FloatArray, fixed: IntArray
) -> Iterator[IntArray]:
    """Yield groups of rows with equal `fixed` values and equal confidence scales."""
    rows = np.flatnonzero(systems.has_ranking & np.isfinite(value))
    return _group_rows(_with_scale(systems, fixed), rows)


def _with_scale(systems: Systems, key: IntArray) -> IntArray:
    """Combine an integer with the confidence scale (0 or 1) to one integer."""
    return np.asarray(2 * key + systems.scale)


# -------------------------------------------------------------------------------------------- R3
def find_unequal_improvements(
    metric: Metric, systems: Systems, value: FloatArray
) -> Verdict | None:
    """Find a swap that does not improve the metric, or two swaps that improve it differently."""
    swaps = systems.swaps
    improvement = -_increases(swaps, value)
    classifier = _with_scale(systems, systems.classifier)[swaps[:, 0]]
    groups = list(_group_rows(classifier, np.flatnonzero(np.isfinite(improvement))))
    if not groups:
        return None
    # Swaps with the smallest and the largest improvement of each classifier.
    smallest_swaps = [int(group[np.argmin(improvement[group])]) for group in groups]
    largest_swaps = [int(group[np.argmax(improvement[group])]) for group in groups]
    smallest = min(smallest_swaps, key=lambda swap: improvement[swap])
    if improvement[smallest] <= ROUNDING:
        before, after = swaps[smallest].tolist()
        reason = "the swap of this pair does not improve the metric"
        return pair_verdict(metric, systems, value, SystemPair(0.0, before, after), reason)
    ranges = improvement[largest_swaps] - improvement[smallest_swaps]
    widest = int(np.argmax(ranges))
    if ranges[widest] <= ROUNDING:
        return None
    compared_swaps = (largest_swaps[widest], smallest_swaps[widest])
    descriptions = [
        " to ".join(systems.format_row(int(row)) for row in swaps[swap]) for swap in compared_swaps
    ]
    improvements = [float(improvement[swap]) for swap in compared_swaps]
    reason = "for the same classifier, the first swap improves the metric more than the second"
    return Verdict(systems.n_samples, Counterexample.from_pair(descriptions, improvements, reason))


# -------------------------------------------------------------------------------------- all three
_Factor = Callable[[Systems], IntArray]

#: Functions that compute the fixed key and the varying key of each factor.
_FACTORS: Final[dict[str, tuple[_Factor, _Factor]]] = {
    "the accuracy": (
        lambda systems: systems.ranking_and_classes,
        lambda systems: -systems.n_failures,
    ),
    "the ranking": (lambda systems: systems.classifier, lambda systems: systems.ranking),
}


class RequirementTests:
    """Test a metric on systems with an increasing number of samples."""

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        #: Verdicts on the readings for which a counterexample exists.
        self.broken: dict[str, Verdict] = {}
        #: Factors that did not change the metric on the tested systems. The values are verdicts
        #: with two systems that differ in this factor, or None without such systems.
        self.without_influence: dict[str, Verdict | None] = dict.fromkeys(_FACTORS)
        self.n_tested = 0

    @property
    def is_decided(self) -> bool:
        """Whether all verdicts are final."""
        return not self.without_influence and len(self.broken) == len(FOR_ALL)

    def update(self, systems: Systems) -> None:
        """Test a metric on all systems with one number of samples."""
        value = systems.oriented_values(self.metric)
        if not np.isfinite(value).any():
            return
        for reading, find_counterexample in FOR_ALL.items():
            if reading in self.broken:
                continue
            verdict = find_counterexample(self.metric, systems, value)
            if verdict is not None:
                self.broken[reading] = verdict
        for factor in tuple(self.without_influence):
            self._test_influence(factor, systems, value)
        if systems.all_orders or not self.n_tested:
            self.n_tested = systems.n_samples

    def _test_influence(self, factor: str, systems: Systems, value: FloatArray) -> None:
        """Update `without_influence` with the metrics of all systems of one size."""
        fixed_key, varying_key = _FACTORS[factor]
        fixed = fixed_key(systems)
        varying = varying_key(systems)
        if depends_on(systems, value, fixed, varying):
            del self.without_influence[factor]
            return
        pair = find_most_different_pair(systems, value, fixed, varying)
        if self.without_influence[factor] is None and pair is not NO_PAIR:
            reason = f"{factor} does not change it if the other factor is fixed"
            verdict = pair_verdict(self.metric, systems, value, pair, reason)
            self.without_influence[factor] = verdict

    def verdicts(self) -> dict[str, Verdict]:
        """Return the verdict on each reading. A reading without a counterexample holds."""
        holds = Verdict(self.n_tested)
        incomplete = [verdict for verdict in self.without_influence.values() if verdict is not None]
        verdicts = {COMPLETE: incomplete[0] if incomplete else holds}
        for reading in FOR_ALL:
            verdicts[reading] = self.broken.get(reading, holds)
        return verdicts


def _monotonicity_test(
    find_pair: Callable[[Systems, FloatArray], SystemPair], change: str, *, strict: bool
) -> Callable[[Metric, Systems, FloatArray], Verdict | None]:
    """Create a function that finds two systems that violate a requirement.

    If `strict` is True, the metric must improve; otherwise, it must only not worsen.
    """

    def find_counterexample(metric: Metric, systems: Systems, value: FloatArray) -> Verdict | None:
        """Return a verdict with a counterexample, or None if no counterexample is found."""
        pair = find_pair(systems, value)
        tolerance = -ROUNDING if strict else ROUNDING
        if pair.worsening <= tolerance:
            return None
        effect = "it gets worse" if pair.worsening > ROUNDING else "it does not change"
        return pair_verdict(metric, systems, value, pair, f"{change}: {effect}")

    return find_counterexample


_FACTOR_CHANGE: Final = "one factor improves, the other is fixed"
_STEP_CHANGE: Final = "one improving step"

#: Names of readings. The keys of stored results contain these names.
COMPLETE = "both factors move it"
PAIRS = "all pairs count alike"
NEVER_WORSE = "never worse"
BETTER = "always better"
STEP_NEVER_WORSE = "one step: never worse"
STEP_BETTER = "one step: always better"

#: Functions that search for a counterexample of a reading.
FOR_ALL: Final = {
    NEVER_WORSE: _monotonicity_test(find_worst_improvement, _FACTOR_CHANGE, strict=False),
    BETTER: _monotonicity_test(find_worst_improvement, _FACTOR_CHANGE, strict=True),
    STEP_NEVER_WORSE: _monotonicity_test(find_worst_step, _STEP_CHANGE, strict=False),
    STEP_BETTER: _monotonicity_test(find_worst_step, _STEP_CHANGE, strict=True),
    PAIRS: find_unequal_improvements,
}


#: Increasing functions of the confidence g. The first function has values outside of [0, 1].
_TRANSFORMATIONS: Final[dict[str, Callable[[FloatArray], FloatArray]]] = {
    "10 g - 7": lambda g: 10 * g - 7,
    "g^3": lambda g: g**3,
}

#: Losses between 0 and 1 for the first failure.
_LOSS_SIZES: Final = (0.01, 0.9)

#: Maximum number of tested systems of four samples.
_MAX_SMALL_SYSTEMS: Final = 32

#: Distance between the rows of tested systems of twenty samples.
_LARGE_STEP: Final = 30

_UNDEFINED: Final = Verdict(0)


def check_any_score(metric: Metric, class_inputs: ClassInputs) -> Verdict:
    """Test requirement R4: a metric accepts any score and depends only on its order."""
    order_verdict = None
    for systems, row, value in _example_systems(metric, class_inputs):
        verdict = _find_scale_dependence(metric, systems, row, value)
        if verdict is not None:
            return verdict
        reversed_confidence = systems.confidence(row)[::-1].copy()
        reversed_samples = systems.scored(row, confidence=reversed_confidence)
        if _differ(float(metric.compute(reversed_samples).value), value):
            order_verdict = Verdict(systems.n_samples)
        elif order_verdict is None:
            text = systems.format_row(row)
            reason = "the metric does not change if the score is reversed"
            counterexample = Counterexample.from_pair(
                (text, f"{text}, reversed"), (value, value), reason
            )
            order_verdict = Verdict(systems.n_samples, counterexample)
    return order_verdict or _UNDEFINED


def _find_scale_dependence(
    metric: Metric, systems: Systems, row: int, value: float
) -> Verdict | None:
    """Find a transformed score that raises an error or changes the metric."""
    text = systems.format_row(row)
    for formula, transformation in _TRANSFORMATIONS.items():
        transformed = systems.scored(row, confidence=transformation(systems.confidence(row)))
        transformed_text = f"{text} by {formula}"
        reason = metric.reason_not_applicable(transformed)
        if reason:
            counterexample = Counterexample(text, transformed_text, value, reason=reason)
            return Verdict(systems.n_samples, counterexample)
        transformed_value = float(metric.compute(transformed).value)
        if _differ(transformed_value, value):
            reason = "another score with the same order changes it"
            counterexample = Counterexample(
                text, transformed_text, value, transformed_value, reason
            )
            return Verdict(systems.n_samples, counterexample)
    return None


def check_graded_loss(metric: Metric, class_inputs: ClassInputs) -> tuple[Verdict, Verdict]:
    """Test both readings of requirement R5.

    Returns
    -------
    accepted, size : Verdict
        Whether the metric accepts losses between 0 and 1, and whether it depends on their values.
    """
    size_verdict = _UNDEFINED
    for systems, row, _ in _example_systems(metric, class_inputs):
        is_failure = systems.is_failure[row]
        is_first_failure = np.arange(systems.n_samples) == np.flatnonzero(is_failure)[0]
        graded = [
            systems.scored(row, loss=np.where(is_first_failure, size, is_failure))
            for size in _LOSS_SIZES
        ]
        descriptions = [f"{systems.format_row(row)}, x = {size:g}" for size in _LOSS_SIZES]
        reason = metric.reason_not_applicable(graded[0])
        if reason:
            nan = float("nan")
            counterexample = Counterexample.from_pair(descriptions, (nan, nan), reason)
            rejected = Verdict(systems.n_samples, counterexample)
            return rejected, rejected
        values = [float(metric.compute(scored).value) for scored in graded]
        if _differ(*values):
            return Verdict(systems.n_samples), Verdict(systems.n_samples)
        if size_verdict is _UNDEFINED:
            reason = "the size of the loss of the first failure does not change it"
            counterexample = Counterexample.from_pair(descriptions, values, reason)
            size_verdict = Verdict(systems.n_samples, counterexample)
    return Verdict(size_verdict.n_samples), size_verdict


def _example_systems(
    metric: Metric, class_inputs: ClassInputs
) -> Iterator[tuple[Systems, int, float]]:
    """Yield systems of four and of twenty samples with a row whose metric is finite."""
    small = all_systems(4, class_inputs)
    large = systems_with_few_failures(class_inputs)
    small_rows = np.flatnonzero(small.has_ranking)
    small_step = math.ceil(small_rows.size / _MAX_SMALL_SYSTEMS)
    rows = [(small, int(row)) for row in small_rows[::small_step]]
    rows += [(large, row) for row in range(0, len(large.is_failure), _LARGE_STEP)]
    for systems, row in rows:
        value = float(metric.compute(systems.scored(row)).value)
        if np.isfinite(value):
            yield systems, row, value


def _differ(a: float, b: float) -> bool:
    """Return whether two values differ by more than rounding. Two NaNs are equal."""
    return not np.isclose(a, b, rtol=0.0, atol=ROUNDING, equal_nan=True)
