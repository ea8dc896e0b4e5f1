"""The five requirements with their testable readings, and the verdicts on a metric."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np

from abstain.metrics import Metric, Need
from abstain_bench.studies.requirements.flexibility import check_any_score, check_graded_loss
from abstain_bench.studies.requirements.systems import (
    ROUNDING,
    ClassInputs,
    all_systems,
    systems_with_few_failures,
)
from abstain_bench.studies.requirements.verdicts import (
    BETTER,
    COMPLETE,
    NEVER_WORSE,
    PAIRS,
    STEP_BETTER,
    STEP_NEVER_WORSE,
    RequirementTests,
    Verdict,
)


@dataclass(frozen=True)
class RequirementReading:
    """A precise reading of a requirement that can be tested."""

    #: "R1" to "R5".
    requirement: str
    #: Distinguishes the readings of a requirement; empty if there is only one.
    variant: str
    #: Statement that is tested.
    meaning: str
    #: Whether the text of the paper permits this reading, so that the verdicts are comparable.
    is_from_paper: bool = True

    @property
    def column(self) -> str:
        """Name of the column in tables."""
        return f"{self.requirement} {self.variant}".strip()


#: Names of readings. They are part of the key of stored results.
_ANY_SCORE, _LOSS_ACCEPTED, _LOSS_SIZE = "any score", "taken", "size counts"

#: Readings by name, in the order of tables and figures.
READINGS: Final[Mapping[str, RequirementReading]] = {
    COMPLETE: RequirementReading(
        "R1",
        "",
        "Task completeness: the metric depends on classifier and ranking. It changes with the "
        "accuracy at a fixed failure AUROC, and with the ranking of a fixed classifier.",
    ),
    NEVER_WORSE: RequirementReading(
        "R2",
        "weak",
        "Weak monotonicity: a better ranking (failure AUROC) of the same classifier, or a better "
        "accuracy at the same failure AUROC, never makes the metric worse.",
    ),
    BETTER: RequirementReading(
        "R2",
        "strict",
        "Monotonicity as the paper states it: each of the two makes the metric better.",
    ),
    STEP_NEVER_WORSE: RequirementReading(
        "R2",
        "step, weak",
        "Not from the paper: the metric never gets worse if a success passes the failure right "
        "above it, or if a wrong prediction becomes correct.",
        is_from_paper=False,
    ),
    STEP_BETTER: RequirementReading(
        "R2",
        "step, strict",
        "Not from the paper: each such step makes the metric better.",
        is_from_paper=False,
    ),
    PAIRS: RequirementReading(
        "R3",
        "",
        "Ranking interpretability: for a fixed classifier, each swap of a success with the failure "
        "right above it improves the metric by the same amount, as for the AUROC.",
    ),
    _ANY_SCORE: RequirementReading(
        "R4",
        "",
        "CSF flexibility: the metric accepts any real number as the score, and depends on the "
        "order of the scores only.",
    ),
    _LOSS_ACCEPTED: RequirementReading(
        "R5", "weak", "Weak error flexibility: the metric accepts losses between 0 and 1."
    ),
    _LOSS_SIZE: RequirementReading(
        "R5",
        "strict",
        "Error flexibility: the metric accepts such losses and depends on their size.",
    ),
}

#: Inputs that make a metric depend on the classes.
_CLASS_NEEDS: Final = frozenset({Need.CLASSES, Need.PROBABILITIES, Need.TWO_CLASSES})

#: Largest number of samples for which all label vectors are tested.
_MAX_LABELED: Final = 7

#: Number of samples from which the inputs of a metric are determined.
_N_PROBE: Final = 3

#: Families of metrics over all thresholds, to which the requirements apply.
_FAMILIES: Final = frozenset({"area", "ranking"})


def is_in_scope(metric: Metric) -> bool:
    """Return whether a metric covers all thresholds, or the paper gives verdicts on it."""
    identity = metric.identity
    return identity.family in _FAMILIES or identity.violated_requirements is not None


@dataclass(frozen=True)
class JudgedMetric:
    """A metric with the verdict for each of `READINGS`."""

    metric: Metric
    verdicts: Mapping[str, Verdict]

    def paper_verdict(self, requirement: str) -> bool | None:
        """Return whether the metric meets a requirement according to the paper, None if unstated.

        For most metrics, the paper names only the violated requirements. It states that AUGRC meets
        all five.
        """
        violated = self.metric.identity.violated_requirements
        if violated is None:
            return None
        if requirement in violated:
            return False
        return None if violated else True

    def readings_like_paper(self, requirement: str) -> list[str]:
        """Return the readings of a requirement whose verdict equals that of the paper."""
        return [
            name
            for name in self.readings_of(requirement)
            if self.verdicts[name].holds == self.paper_verdict(requirement)
        ]

    @staticmethod
    def readings_of(requirement: str) -> dict[str, RequirementReading]:
        """Return the readings of a requirement that the text of the paper permits."""
        return {
            name: reading
            for name, reading in READINGS.items()
            if reading.requirement == requirement and reading.is_from_paper
        }


@cache
def judge_metric(metric: Metric, orders: int) -> JudgedMetric:
    """Test all requirements for a metric on all systems of up to `orders` samples."""
    class_inputs = _class_inputs(metric)
    scales = 2 if _depends_on_scale(metric, class_inputs) else 1
    max_samples = orders
    if class_inputs is not ClassInputs.NOTHING:
        max_samples = min(orders, _MAX_LABELED)
    tests = RequirementTests(metric)
    for n in range(2, max_samples + 1):
        if not tests.is_decided:
            tests.update(all_systems(n, class_inputs, scales=scales))
    if not tests.is_decided:
        tests.update(systems_with_few_failures(class_inputs, scales=scales))
    accepted, size = check_graded_loss(metric, class_inputs)
    verdicts = {
        **tests.verdicts(),
        _ANY_SCORE: check_any_score(metric, class_inputs),
        _LOSS_ACCEPTED: accepted,
        _LOSS_SIZE: size,
    }
    return JudgedMetric(metric, {name: verdicts[name] for name in READINGS})


def _class_inputs(metric: Metric) -> ClassInputs:
    """Return the class inputs of a metric: an unknown class if it is undefined otherwise."""
    if not metric.measurement.needs & _CLASS_NEEDS:
        return ClassInputs.NOTHING
    values = all_systems(_N_PROBE, ClassInputs.CLASSES).oriented_values(metric)
    return ClassInputs.CLASSES if np.isfinite(values).any() else ClassInputs.OPEN


def _depends_on_scale(metric: Metric, class_inputs: ClassInputs) -> bool:
    """Return whether higher confidences in the same order change a metric."""
    systems = all_systems(_N_PROBE, class_inputs, scales=2)
    values = systems.oriented_values(metric)
    differences = values[systems.scale == 0] - values[systems.scale == 1]
    return bool(np.abs(np.nan_to_num(differences)).max(initial=0.0) > ROUNDING)


REQUIREMENTS: Final = tuple(dict.fromkeys(reading.requirement for reading in READINGS.values()))


def find_disagreements(
    judgments: Mapping[str, JudgedMetric],
) -> Iterator[tuple[JudgedMetric, str]]:
    """Yield the metrics and requirements for which no reading agrees with the paper."""
    for judgment in judgments.values():
        for requirement in REQUIREMENTS:
            is_stated = judgment.paper_verdict(requirement) is not None
            if is_stated and not judgment.readings_like_paper(requirement):
                yield judgment, requirement
