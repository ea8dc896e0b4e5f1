"""The five requirements, the readings that decide them, and all that is found of one metric."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np

from abstain.metrics import Metric, Need
from abstain_bench.studies.requirements.flexibility import any_loss, any_score
from abstain_bench.studies.requirements.systems import (
    ROUNDING,
    ShownClasses,
    all_systems,
    few_failures,
)
from abstain_bench.studies.requirements.verdicts import (
    BETTER,
    COMPLETE,
    NEVER_WORSE,
    PAIRS,
    STEP_BETTER,
    STEP_NEVER_WORSE,
    Decided,
    Readings,
)


@dataclass(frozen=True)
class RequirementReading:
    """One way to read a requirement so that it can be decided."""

    #: "R1" to "R5".
    requirement: str
    #: What tells it from the other readings of this requirement; empty where it is the only one.
    way: str
    #: What it asks, in words.
    asks: str
    #: Whether the paper's own words can mean it, so that its verdict is compared with this one.
    of_paper: bool = True

    @property
    def column(self) -> str:
        """What a column of a table is called."""
        return f"{self.requirement} {self.way}".strip()


_SCORE, _TAKEN, _COUNTS = "any score", "taken", "size counts"

#: By what finds them, in the order of tables and figures.
READINGS: Final[Mapping[str, RequirementReading]] = {
    COMPLETE: RequirementReading(
        "R1",
        "",
        "Task completeness: classifier and ranking both count. At one failure AUROC another "
        "accuracy moves the metric, and for one classifier another ranking does.",
    ),
    NEVER_WORSE: RequirementReading(
        "R2",
        "weak",
        "Monotonicity, weakly: a better ranking (failure AUROC) of the same classifier, or a "
        "better accuracy at the same failure AUROC, never makes it worse.",
    ),
    BETTER: RequirementReading(
        "R2", "strict", "Monotonicity as the paper words it: each of the two makes it better."
    ),
    STEP_NEVER_WORSE: RequirementReading(
        "R2",
        "step, weak",
        "Not the paper's: a success that overtakes the failure right above it, or a wrong "
        "prediction that becomes right where it is, never makes it worse.",
        of_paper=False,
    ),
    STEP_BETTER: RequirementReading(
        "R2", "step, strict", "Not the paper's: each such step makes it better.", of_paper=False
    ),
    PAIRS: RequirementReading(
        "R3",
        "",
        "Ranking interpretability: for one classifier, each pair of a failure above a success that "
        "is put right gains the same, as in the AUROC.",
    ),
    _SCORE: RequirementReading(
        "R4",
        "",
        "CSF flexibility: any real number may be the score; nothing but its order matters, and "
        "that does.",
    ),
    _TAKEN: RequirementReading(
        "R5", "weak", "Error flexibility, weakly: a loss between 0 and 1 is taken."
    ),
    _COUNTS: RequirementReading(
        "R5", "strict", "Error flexibility: such a loss is taken and its size counts."
    ),
}

#: Where classes and their probabilities are shown to it.
_CLASSES: Final = frozenset({Need.CLASSES, Need.PROBABILITIES, Need.TWO_CLASSES})

#: All label vectors are tried of up to so many samples where a metric is shown the classes.
_MOST_LABELED: Final = 7

#: Samples that tell what a metric reads.
_TOLD: Final = 3


#: What is made for all thresholds, as the requirements ask.
_WHOLE: Final = frozenset({"area", "ranking"})


def is_meant(metric: Metric) -> bool:
    """Tell whether a metric sums up all thresholds, or the paper judges it."""
    return metric.identity.family in _WHOLE or metric.identity.violated_requirements is not None


@dataclass(frozen=True)
class JudgedMetric:
    """What was found of one metric: a finding for each of `READINGS`."""

    metric: Metric
    found: Mapping[str, Decided]

    def paper(self, requirement: str) -> bool | None:
        """Return whether the paper says that it meets the requirement; None if it says nothing.

        Of most metrics the paper names only the requirements that they break. Of one it says that
        it meets all five.
        """
        if self.metric.identity.violated_requirements is None:
            return None
        if requirement in self.metric.identity.violated_requirements:
            return False
        return None if self.metric.identity.violated_requirements else True

    def agreeing(self, requirement: str) -> list[str]:
        """Return the readings of a requirement in which it is as the paper says."""
        return [
            name
            for name in self.of(requirement)
            if self.found[name].holds == self.paper(requirement)
        ]

    @staticmethod
    def of(requirement: str) -> dict[str, RequirementReading]:
        """Return the readings of a requirement that the paper's words can mean."""
        return {n: r for n, r in READINGS.items() if r.requirement == requirement and r.of_paper}


@cache
def judged(metric: Metric, orders: int) -> JudgedMetric:
    """Decide all requirements for one metric over all systems of up to so many samples."""
    shown = _shown(metric)
    scales = 2 if _reads_values(metric, shown) else 1
    readings = Readings(metric)
    most = orders if shown is ShownClasses.NOTHING else min(orders, _MOST_LABELED)
    for n in range(2, most + 1):
        if not readings.decided:
            readings.see(all_systems(n, shown, scales=scales))
    if not readings.decided:
        readings.see(few_failures(shown, scales=scales))
    taken, counts = any_loss(metric, shown)
    flexible = {_SCORE: any_score(metric, shown), _TAKEN: taken, _COUNTS: counts}
    found = {**readings.closed(), **flexible}
    return JudgedMetric(metric, {name: found[name] for name in READINGS})


def _shown(metric: Metric) -> ShownClasses:
    """Return what it is to be shown: samples of no known class where it is undefined without."""
    if not metric.measurement.needs & _CLASSES:
        return ShownClasses.NOTHING
    closed = all_systems(_TOLD, ShownClasses.CLASSES).badness(metric)
    return ShownClasses.CLASSES if np.isfinite(closed).any() else ShownClasses.OPEN


def _reads_values(metric: Metric, shown: ShownClasses) -> bool:
    """Tell whether surer confidences of the same order move it, those of the classes too."""
    systems = all_systems(_TOLD, shown, scales=2)
    value = systems.badness(metric)
    usual, surer = value[systems.scale == 0], value[systems.scale == 1]
    return bool(np.nanmax(np.abs(np.nan_to_num(usual - surer)), initial=0.0) > ROUNDING)


REQUIREMENTS: Final = tuple(dict.fromkeys(reading.requirement for reading in READINGS.values()))


def disagreements(judgments: Mapping[str, JudgedMetric]) -> Iterator[tuple[JudgedMetric, str]]:
    """Yield the metrics and requirements of which no reading is as the paper says."""
    for judgment in judgments.values():
        for requirement in REQUIREMENTS:
            known = judgment.paper(requirement) is not None
            if known and not judgment.agreeing(requirement):
                yield judgment, requirement
