"""Test the requirements R4 and R5: which confidences and losses a metric accepts and uses."""

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from abstain.metrics import Metric
from abstain.typing import FloatArray
from abstain_bench.studies.requirements.systems import (
    ROUNDING,
    ClassInputs,
    Systems,
    all_systems,
    systems_with_few_failures,
)
from abstain_bench.studies.requirements.verdicts import Counterexample, Verdict

#: Increasing functions of the confidences g, whose values lie inside and outside of [0, 1].
_TRANSFORMATIONS: Final[dict[str, Callable[[FloatArray], FloatArray]]] = {
    "10 g - 7": lambda g: 10 * g - 7,
    "g^3": lambda g: g**3,
}

#: Two losses of the first failure between 0 and 1.
_LOSS_SIZES: Final = (0.01, 0.9)

#: Largest number of systems of four samples that are tested, evenly over all labels.
_MAX_SMALL_SYSTEMS: Final = 32

#: Every 30th system of twenty samples is tested.
_LARGE_STEP: Final = 30

_UNDEFINED: Final = Verdict(0)


def check_any_score(metric: Metric, class_inputs: ClassInputs) -> Verdict:
    """Test requirement R4: the metric accepts any score, and only its order matters."""
    order_verdict = None
    for systems, row, value in _example_systems(metric, class_inputs):
        if verdict := _find_scale_dependence(metric, systems, row, value):
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
    """Return a transformed score that the metric rejects, or that changes its value."""
    text = systems.format_row(row)
    for formula, transformation in _TRANSFORMATIONS.items():
        transformed = systems.scored(row, confidence=transformation(systems.confidence(row)))
        transformed_text = f"{text} by {formula}"
        if reason := metric.reason_not_applicable(transformed):
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
    """Test requirement R5: the metric accepts losses between 0 and 1, and depends on their size."""
    size_verdict = _UNDEFINED
    for systems, row, _ in _example_systems(metric, class_inputs):
        is_failure = systems.is_failure[row]
        is_first_failure = np.arange(systems.n_samples) == np.flatnonzero(is_failure)[0]
        graded = [
            systems.scored(row, loss=np.where(is_first_failure, size, is_failure))
            for size in _LOSS_SIZES
        ]
        descriptions = [f"{systems.format_row(row)}, x = {size:g}" for size in _LOSS_SIZES]
        if reason := metric.reason_not_applicable(graded[0]):
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
    """Yield systems of four and of twenty samples with finite values of the metric."""
    small, large = all_systems(4, class_inputs), systems_with_few_failures(class_inputs)
    small_rows = np.flatnonzero(small.has_ranking)
    small_step = -(-small_rows.size // _MAX_SMALL_SYSTEMS)
    rows = [(small, int(row)) for row in small_rows[::small_step]]
    rows += [(large, row) for row in range(0, len(large.is_failure), _LARGE_STEP)]
    for systems, row in rows:
        value = float(metric.compute(systems.scored(row)).value)
        if np.isfinite(value):
            yield systems, row, value


def _differ(a: float, b: float) -> bool:
    """Return whether two values differ by more than rounding. NaN equals NaN only."""
    return not np.isclose(a, b, rtol=0.0, atol=ROUNDING, equal_nan=True)
