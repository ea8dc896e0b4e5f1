"""One score on one part of the data: its samples, the extreme ones, and the share of each class."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from abstain._foundation.names import coded
from abstain._foundation.scored import Scored
from abstain.curves.risk_coverage import RiskCoverageCurve, curve_of, thin
from abstain.errors import InputError
from abstain.evaluation.intervals import IntervalOptions
from abstain.evaluation.records import ExtremeSample, Part
from abstain.metrics import Metric, Need
from abstain.metrics.contributions import GroupContributions, contributions_by_group
from abstain.predictions import Predictions
from abstain.typing import Array, IntArray, Split

#: How many samples of each kind a case shows.
SHOWN = 24
#: How many groups a case has curves of, and of how many vertices each, at most.
DRAWN, _VERTICES = 12, 20_000


def by_class(s: Scored) -> tuple[Part, ...]:
    """Return what each class contributes to the AUGRC; nothing without classes."""
    view = s.view
    if view is None:
        return ()
    return parts_by(s, view.labels, lambda code: class_name(view.classes, int(code)))


def parts_by(s: Scored, names: Array, written: Callable[[Any], str]) -> tuple[Part, ...]:
    """Return the parts of the AUGRC, the largest first."""
    return parts_of(contributions_by_group(s, names), written)


def parts_of(c: GroupContributions, written: Callable[[Any], str]) -> tuple[Part, ...]:
    """Write what each name contributes, the largest part first."""
    return tuple(
        Part(
            written(c.group[i]),
            int(c.samples[i]),
            float(c.sample_share[i]),
            float(c.contribution[i]),
            float(c.share[i]),
        )
        for i in np.argsort(-c.contribution, kind="stable")
    )


def curves_by(s: Scored, names: Array) -> dict[str, RiskCoverageCurve]:
    """Return the selective risk of each of the largest groups against its own coverage."""
    groups, codes = coded(names, "group")
    sizes = np.bincount(codes, minlength=len(groups))
    largest = np.sort(np.argsort(-sizes, kind="stable")[:DRAWN])
    curves = {}
    for i in largest.tolist() if len(groups) > 1 else ():
        rows = codes == i
        weight = None if s.weight is None else s.weight[rows]
        part = Scored(s.confidence[rows], s.loss[rows], weight)
        curves[str(groups[i])] = thin(curve_of(part.groups, "selective"), vertices=_VERTICES)
    return curves


def most_confident_failures(s: Scored) -> IntArray:
    """Return the rows of the most confident failures, in order."""
    wrong = np.flatnonzero(s.loss)
    return wrong[lowest(-s.confidence[wrong].astype(np.float64))]


def least_confident_successes(s: Scored) -> IntArray:
    """Return the rows of the least confident successes, in order."""
    # Nearly all samples are successes, so that one array is cheaper than to name them.
    return lowest(np.where(s.loss == 0, s.confidence, np.inf))


def lowest(key: Array) -> IntArray:
    """Return the rows of the lowest keys, in order; ties by row, so that it is reproducible.

    An infinite key is the mark of a row that is none of them.
    """
    most = key if key.size <= SHOWN else np.partition(key, SHOWN - 1)[:SHOWN]
    kept = np.flatnonzero((key <= most.max(initial=-np.inf)) & (key < np.inf))
    return kept[np.argsort(key[kept], kind="stable")][:SHOWN]


def samples_of(
    predictions: Predictions, s: Scored, rows: IntArray, at: str = ""
) -> tuple[ExtremeSample, ...]:
    """Return some samples with what a reader wants to know of them; `at` stands before names."""
    confidence = s.shown
    view = s.view
    return tuple(
        ExtremeSample(
            id=at + (str(i) if predictions.ids is None else str(predictions.ids[i])),
            label="" if view is None else class_name(view.classes, int(view.labels[i])),
            prediction="" if view is None else class_name(view.classes, int(view.prediction[i])),
            confidence=float(confidence[i]),
            loss=float(s.loss[i]),
        )
        for i in rows
    )


def class_name(classes: tuple[object, ...], code: int) -> str:
    """Write the name of a class by its code."""
    return "(no known class)" if code < 0 else str(classes[code])


# ------------------------------------------------------------------------------------ parts
@dataclass(frozen=True, eq=False)
class EvaluatedPart(ABC):
    """One score on one part of the data, and the options of its intervals."""

    split: Split
    score: str
    s: Scored
    intervals: IntervalOptions

    @property
    def sure(self) -> Scored:
        """The samples by the probability of being right, for what reads its values."""
        return self.s

    def of(self, metric: Metric) -> Scored:
        """Return the samples as this metric takes them."""
        return self.sure if Need.UNIT_CONFIDENCE in metric.measurement.needs else self.s

    def missing(self, metric: Metric) -> str:
        """Return why a metric does not apply, or an empty string."""
        return metric.reason_not_applicable(self.of(metric))

    @property
    def bounds_ties(self) -> bool:
        """Whether numbers are told with their range over all orders of tied samples."""
        return True

    @property
    @abstractmethod
    def own(self) -> bool:
        """Whether the score is a column of the data."""

    @property
    @abstractmethod
    def unknown(self) -> int | None:
        """How many samples belong to no class that the model knows; None without labels."""

    @property
    def cluster(self) -> IntArray | None:
        """Codes of the samples that are not independent, where they are to be used."""
        return None

    @abstractmethod
    def details(self) -> dict[str, Any]:
        """Return the fields of `Case` on samples, classes and groups."""


@dataclass(frozen=True, eq=False)
class ScoredPart(EvaluatedPart):
    """One score on one part of the data that is in memory."""

    predictions: Predictions

    @property
    def own(self) -> bool:
        """Whether the score is a column of the data."""
        return self.score in (self.predictions.confidence or {})

    @property
    def unknown(self) -> int | None:
        """How many samples belong to no class that the model knows; None without labels."""
        if not self.predictions.has_labels:
            return None
        return int(np.count_nonzero(self.predictions.label_codes < 0))

    @cached_property
    def cluster(self) -> IntArray | None:
        """Codes of the samples that are not independent, where they are to be used."""
        return clusters_of(self.predictions) if self.intervals.clustered else None

    def details(self) -> dict[str, Any]:
        """Return the fields of `Case` on samples, classes and groups."""
        s, predictions = self.s, self.predictions
        group = predictions.group
        return {
            "overconfident": samples_of(predictions, s, most_confident_failures(s)),
            "underconfident": samples_of(predictions, s, least_confident_successes(s)),
            "by_class": by_class(s),
            "by_group": () if group is None else parts_by(s, group, str),
            "of_groups": {} if group is None else curves_by(s, group),
        }


def clusters_of(part: Predictions) -> IntArray:
    """Return the codes of the groups as clusters."""
    if part.group is None:
        raise InputError(
            "`clustered` needs a group for each sample (a patient, a site); there is none"
        )
    return coded(part.group, "group")[1]
