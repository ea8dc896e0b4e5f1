"""Define testable interpretations of the requirements, and compare them with the paper."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np

from abstain.metrics import Metric, Need
from abstain.report.formatting import join_first
from abstain_bench.studies._display import counted
from abstain_bench.studies.requirements.systems import (
    MAX_FEW_FAILURES,
    N_LARGE,
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
    check_any_score,
    check_graded_loss,
)


@dataclass(frozen=True)
class RequirementReading:
    """A precise interpretation of a requirement that can be tested."""

    #: Name of the requirement, from "R1" to "R5".
    requirement: str
    #: Name of the reading. Empty if the requirement has only one reading.
    variant: str
    #: Tested statement.
    meaning: str
    #: Whether the text of the paper permits this reading.
    is_from_paper: bool = True

    @property
    def column(self) -> str:
        """Name of the table column for this interpretation."""
        return f"{self.requirement} {self.variant}".strip()


#: Names of readings. The keys of stored results contain these names.
_ANY_SCORE = "any score"
_LOSS_ACCEPTED = "taken"
_LOSS_SIZE = "size counts"

#: Readings by name. Tables and figures use the order of this mapping.
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

#: Inputs of metrics that depend on classes.
_CLASS_NEEDS: Final = frozenset({Need.CLASSES, Need.PROBABILITIES, Need.TWO_CLASSES})

#: Maximum number of samples for which all label vectors are tested.
_MAX_LABELED: Final = 7

#: Number of samples with which the properties of a metric are determined.
_N_PROBE: Final = 3

#: Families of metrics that cover all thresholds.
_FAMILIES: Final = frozenset({"area", "ranking"})


def is_in_scope(metric: Metric) -> bool:
    """Return whether a metric covers all thresholds or is discussed in the paper."""
    identity = metric.identity
    return identity.family in _FAMILIES or identity.violated_requirements is not None


@dataclass(frozen=True)
class JudgedMetric:
    """A metric with a verdict for each interpretation in `READINGS`."""

    metric: Metric
    verdicts: Mapping[str, Verdict]

    def paper_verdict(self, requirement: str) -> bool | None:
        """Return whether the metric meets a requirement according to the paper, or None.

        For most metrics, the paper names only the requirements that are violated. For the AUGRC,
        the paper states that all requirements are met.
        """
        violated = self.metric.identity.violated_requirements
        if violated is None:
            return None
        if requirement in violated:
            return False
        return None if violated else True

    def readings_like_paper(self, requirement: str) -> list[str]:
        """Return the names of the interpretations whose verdict agrees with the paper."""
        return [
            name
            for name in self.readings_of(requirement)
            if self.verdicts[name].holds == self.paper_verdict(requirement)
        ]

    @staticmethod
    def readings_of(requirement: str) -> dict[str, RequirementReading]:
        """Return the interpretations of a requirement that are consistent with the paper."""
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
    needs_classes = class_inputs is not ClassInputs.NOTHING
    # With classes, the number of systems is much larger.
    max_samples = min(orders, _MAX_LABELED) if needs_classes else orders
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
    """Return the inputs other than confidence and loss that a metric requires."""
    if not metric.measurement.needs & _CLASS_NEEDS:
        return ClassInputs.NOTHING
    values = all_systems(_N_PROBE, ClassInputs.CLASSES).oriented_values(metric)
    is_defined = np.isfinite(values).any()
    # A metric that is undefined for two known classes requires an unknown class.
    return ClassInputs.CLASSES if is_defined else ClassInputs.OPEN


def _depends_on_scale(metric: Metric, class_inputs: ClassInputs) -> bool:
    """Return whether a metric changes if confidences increase without changing their order."""
    systems = all_systems(_N_PROBE, class_inputs, scales=2)
    values = systems.oriented_values(metric)
    differences = values[systems.scale == 0] - values[systems.scale == 1]
    return bool(np.abs(np.nan_to_num(differences)).max(initial=0.0) > ROUNDING)


REQUIREMENTS: Final = tuple(dict.fromkeys(reading.requirement for reading in READINGS.values()))


def find_disagreements(
    judgments: Mapping[str, JudgedMetric],
) -> Iterator[tuple[JudgedMetric, str]]:
    """Yield pairs of metric and requirement for which no interpretation agrees with the paper."""
    for judgment in judgments.values():
        for requirement in REQUIREMENTS:
            is_stated = judgment.paper_verdict(requirement) is not None
            if is_stated and not judgment.readings_like_paper(requirement):
                yield judgment, requirement


#: Maximum number of names that a sentence lists.
_MAX_LISTED: Final = 6


def conclusions(judgments: Iterable[JudgedMetric]) -> Iterator[str]:
    """Yield conclusions about the verdicts and whether they agree with the paper."""
    judged = tuple(judgments)
    yield _conclude_all_requirements(judged)
    only_weak = [
        judgment
        for judgment in judged
        if judgment.verdicts[NEVER_WORSE].holds and not judgment.verdicts[BETTER].holds
    ]
    if only_weak:
        yield (
            f"The verdict on R2 depends on its reading for {_titles(only_weak)}: these metrics "
            "never get worse when accuracy or ranking improves, but do not always get better."
        )
    is_in_paper = [
        judgment.metric.identity.violated_requirements is not None for judgment in judged
    ]
    if any(is_in_paper):
        yield _compare_with_paper(judged)


def _conclude_all_requirements(judgments: Sequence[JudgedMetric]) -> str:
    """Report the metrics that meet all requirements in all interpretations."""
    paper_readings = [name for name, reading in READINGS.items() if reading.is_from_paper]
    complete = [
        judgment
        for judgment in judgments
        if all(judgment.verdicts[name].holds for name in paper_readings)
    ]
    n_metrics = counted(len(judgments), "metric")
    if not complete:
        return f"None of {n_metrics} meets all five requirements as the paper states them."
    verb = "meet" if len(complete) > 1 else "meets"
    return (
        f"{len(complete)} of {n_metrics} {verb} all five requirements as the paper states them: "
        f"{_titles(complete)}."
    )


def _compare_with_paper(judgments: Sequence[JudgedMetric]) -> str:
    """Report how many verdicts of the paper agree with all, some or none of the interpretations."""
    # Variants of a metric are excluded, because they share the verdicts of this metric.
    in_paper = [
        judgment
        for judgment in judgments
        if judgment.metric.identity.violated_requirements is not None
        and not judgment.metric.identity.requirements_from
    ]
    counts = {"all": 0, "some": 0, "none": 0}
    disagreements = []
    n_unstated = 0
    for judgment in in_paper:
        for requirement in REQUIREMENTS:
            if judgment.paper_verdict(requirement) is None:
                n_unstated += 1
                continue
            n_agreeing = len(judgment.readings_like_paper(requirement))
            if n_agreeing == len(judgment.readings_of(requirement)):
                counts["all"] += 1
            elif n_agreeing:
                counts["some"] += 1
            else:
                counts["none"] += 1
                disagreements.append(f"{requirement} of {judgment.metric.title}")
    details = f" ({', '.join(disagreements)})" if disagreements else ""
    return (
        f"The paper states {sum(counts.values())} verdicts on {len(in_paper)} of these metrics. "
        f"{counts['all']} of them agree with every reading, {counts['some']} with one of two, and "
        f"{counts['none']} with none{details}. It states no verdict on the other {n_unstated} "
        "pairs of a metric and a requirement. Variants of a metric, such as the estimators of the "
        "AURC, are counted once."
    )


def _titles(judgments: Sequence[JudgedMetric]) -> str:
    return join_first([judgment.metric.title for judgment in judgments], _MAX_LISTED)


def scope_note(orders: int) -> str:
    """Return a note about the tested systems and the scope of the verdicts."""
    return (
        f"Tested systems: all orders of successes and failures of 2 to {orders} samples, and of "
        f"{N_LARGE} samples with at most {MAX_FEW_FAILURES} failures. A counterexample is a proof. "
        "A requirement that holds here may be violated with more samples."
    )
