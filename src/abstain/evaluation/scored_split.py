"""Define one score on one split, and find its notable samples and class contributions."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from abstain._foundation.names import encode_names
from abstain._foundation.scored import Scored
from abstain.curves.risk_coverage import RiskCoverageCurve, curve_from_groups, thin
from abstain.errors import InputError
from abstain.evaluation.intervals import IntervalOptions
from abstain.evaluation.records import Contribution, ExtremeSample
from abstain.metrics import Metric, Need
from abstain.metrics.contributions import GroupContributions, contributions_by_group
from abstain.predictions import Predictions
from abstain.typing import Array, IntArray, Split

#: Maximum number of notable failures, and maximum number of notable successes.
MAX_SAMPLES = 24
#: Maximum number of groups that have a curve, and maximum number of vertices of the curve.
MAX_GROUPS, _VERTICES = 12, 20_000


def sort_contributions(
    c: GroupContributions, format_name: Callable[[Any], str] = str
) -> tuple[Contribution, ...]:
    """Return the contributions of classes or groups to the AUGRC, sorted from the largest."""
    order = np.argsort(-c.contribution, kind="stable")
    return tuple(
        Contribution(
            name=format_name(c.group[i]),
            n=int(c.samples[i]),
            sample_share=float(c.sample_share[i]),
            contribution=float(c.contribution[i]),
            share=float(c.share[i]),
        )
        for i in order
    )


def curves_by_group(s: Scored, names: Array) -> dict[str, RiskCoverageCurve]:
    """Return the risk-coverage curve of each of the largest groups; empty for a single group."""
    groups, codes = encode_names(names, "group")
    if len(groups) == 1:
        return {}
    sizes = np.bincount(codes, minlength=len(groups))
    largest = np.sort(np.argsort(-sizes, kind="stable")[:MAX_GROUPS])
    curves = {}
    for code in largest.tolist():
        is_in_group = codes == code
        weight = None if s.weight is None else s.weight[is_in_group]
        samples = Scored(s.confidence[is_in_group], s.loss[is_in_group], weight)
        curve = curve_from_groups(samples.groups, "selective")
        curves[str(groups[code])] = thin(curve, vertices=_VERTICES)
    return curves


def most_confident_failures(s: Scored) -> IntArray:
    """Return the indices of the failures with the highest confidences, sorted by confidence."""
    failures = np.flatnonzero(s.loss)
    confidence = s.confidence[failures].astype(np.float64)
    return failures[_indices_of_lowest(-confidence)]


def least_confident_successes(s: Scored) -> IntArray:
    """Return the indices of the successes with the lowest confidences, sorted by confidence."""
    # Nearly all samples are successes, so sort keys for all samples are cheaper than a selection.
    return _indices_of_lowest(np.where(s.loss == 0, s.confidence, np.inf))


def _indices_of_lowest(key: Array) -> IntArray:
    """Return the indices of the smallest finite keys, sorted by key and then by index."""
    lowest = key if key.size <= MAX_SAMPLES else np.partition(key, MAX_SAMPLES - 1)[:MAX_SAMPLES]
    is_candidate = (key <= lowest.max(initial=-np.inf)) & (key < np.inf)
    candidates = np.flatnonzero(is_candidate)
    order = np.argsort(key[candidates], kind="stable")
    return candidates[order][:MAX_SAMPLES]


def extreme_samples(
    predictions: Predictions, s: Scored, indices: IntArray, id_prefix: str = ""
) -> tuple[ExtremeSample, ...]:
    """Return records of the samples with these indices; each id begins with `id_prefix`."""
    probability = other_probability(s)
    view = s.class_view
    records = []
    for i in indices.tolist():
        sample_id = i if predictions.ids is None else predictions.ids[i]
        label = prediction = ""
        if view is not None:
            label = class_name(view.classes, int(view.labels[i]))
            prediction = class_name(view.classes, int(view.prediction[i]))
        record = ExtremeSample(
            id=f"{id_prefix}{sample_id}",
            label=label,
            prediction=prediction,
            confidence=float(s.confidence[i]),
            loss=float(s.loss[i]),
            probability=None if probability is None else float(probability[i]),
        )
        records.append(record)
    return tuple(records)


def other_probability(s: Scored) -> Array | None:
    """Return the probability of a correct prediction, or None if the confidence is one."""
    if s.probability is None or s.probability is s.confidence:
        return None
    return None if np.array_equal(s.probability, s.confidence) else s.probability


def class_name(classes: tuple[object, ...], code: int) -> str:
    """Return the name of the class with an integer code."""
    return "(no known class)" if code < 0 else str(classes[code])


# ------------------------------------------------------------------------------------ splits
@dataclass(frozen=True, eq=False)
class ScoredSplit(ABC):
    """One score on one split, with the options of its confidence intervals."""

    split: Split
    score: str
    s: Scored
    intervals: IntervalOptions

    @property
    def scored_by_probability(self) -> Scored:
        """The samples, with the probability of a correct prediction as confidence."""
        return self.s

    def samples_for(self, metric: Metric) -> Scored:
        """Return the samples with the confidence and loss that a metric requires."""
        needs_probability = Need.UNIT_CONFIDENCE in metric.measurement.needs
        return self.scored_by_probability if needs_probability else self.s

    def reason_not_applicable(self, metric: Metric) -> str:
        """Return the reason why a metric does not apply, or an empty string."""
        return metric.reason_not_applicable(self.samples_for(metric))

    @property
    def has_tie_bounds(self) -> bool:
        """Whether to compute the range of metrics over all orders of tied samples."""
        return True

    @property
    @abstractmethod
    def is_column(self) -> bool:
        """Whether the score is a column of the data."""

    @property
    @abstractmethod
    def n_unknown_class(self) -> int | None:
        """Number of samples whose true class is unknown to the model, or None without labels."""

    @property
    def cluster(self) -> IntArray | None:
        """Integer code of each sample's cluster, or None if samples are treated as independent."""
        return None

    @abstractmethod
    def curve_fields(self) -> dict[str, Any]:
        """Return the fields of `ScoreCurves` that describe samples, classes and groups."""


@dataclass(frozen=True, eq=False)
class InMemorySplit(ScoredSplit):
    """One score on one split whose samples are in memory."""

    predictions: Predictions

    @property
    def is_column(self) -> bool:
        """Whether the score is a column of the data."""
        return self.score in (self.predictions.confidence or {})

    @property
    def n_unknown_class(self) -> int | None:
        """Number of samples whose true class is unknown to the model, or None without labels."""
        if not self.predictions.has_labels:
            return None
        return int(np.count_nonzero(self.predictions.label_codes < 0))

    @cached_property
    def cluster(self) -> IntArray | None:
        """Integer code of each sample's cluster, or None if samples are treated as independent."""
        return cluster_codes(self.predictions) if self.intervals.clustered else None

    def curve_fields(self) -> dict[str, Any]:
        """Return the fields of `ScoreCurves` that describe samples, classes and groups."""
        s, predictions, view = self.s, self.predictions, self.s.class_view
        group = predictions.group
        by_class: tuple[Contribution, ...] = ()
        if view is not None:
            by_class = sort_contributions(
                contributions_by_group(s, view.labels),
                lambda code: class_name(view.classes, int(code)),
            )
        by_group: tuple[Contribution, ...] = ()
        if group is not None:
            by_group = sort_contributions(contributions_by_group(s, group))
        return {
            "overconfident": extreme_samples(predictions, s, most_confident_failures(s)),
            "underconfident": extreme_samples(predictions, s, least_confident_successes(s)),
            "by_class": by_class,
            "by_group": by_group,
            "group_curves": {} if group is None else curves_by_group(s, group),
        }


def cluster_codes(predictions: Predictions) -> IntArray:
    """Return the integer group code of each sample, which is used as its cluster code."""
    if predictions.group is None:
        raise InputError(
            "`clustered` needs a group for each sample (a patient, a site); there is none"
        )
    return encode_names(predictions.group, "group")[1]
