"""Define the result of `evaluate`, with metric values, curves and notes (`Evaluation`)."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, TypeAlias

import numpy as np

from abstain._foundation.frames import AnyFrame, Backend, NotebookDisplay, frame_from_rows
from abstain._foundation.notes import ABSTENTIONS, Note, RowCount
from abstain.curves.bands import RiskCoverageBand
from abstain.curves.metric_coverage import MetricCoverageCurve
from abstain.curves.reliability import ReliabilityCurve
from abstain.curves.risk_coverage import ROUNDING, RiskCoverageCurve
from abstain.errors import UnknownNameError, suggest
from abstain.inference.intervals import Interval, no_interval
from abstain.metrics import Metric
from abstain.metrics.catalogue import CLASSIFIER_METRIC
from abstain.typing import Array, Split

#: Placeholder for the interval of a result if no intervals were requested.
NOT_REQUESTED = no_interval(float("nan"), "")

#: Attribute of `Result` that each column of a table of results contains.
_RESULT_ATTRIBUTES = {
    "score": "score",
    "metric": "metric.name",
    "value": "value",
    "n": "n",
    "failures": "failures",
    "accepted": "accepted",
    "tied_share": "tied_share",
    "tie_low": "tie_low",
    "tie_high": "tie_high",
    "convention": "metric.identity.convention",
    "lower_is_better": "metric.lower_is_better",
    "reason": "reason",
    "low": "interval.low",
    "high": "interval.high",
    "standard_error": "interval.standard_error",
    "level": "interval.level",
    "interval": "interval.method",
    "interval_note": "interval.note",
}
RESULT_COLUMNS = tuple(_RESULT_ATTRIBUTES)

#: Maximum rounding error of a share times the number of samples.
_COUNT_ROUNDING = 1e-5


@dataclass(frozen=True, repr=False)
class Result:
    """The value of one metric for one score on one split.

    Attributes
    ----------
    split : tuple of (column, value)
        The split of the data, or an empty tuple if the data are not split.
    score : str
        The name of a registered score or of a confidence column.
    metric : Metric
        The registered metric.
    value : float
        The value as a fraction in double precision. If the metric is undefined, the value is NaN
        and `reason` states why.
    n, failures : int
        Number of samples, and number of samples with a loss above zero.
    accepted : int or None
        Number of accepted samples. The number is None if the metric has no threshold.
    tied_share : float
        Share of samples whose confidence equals that of another sample.
    tie_low, tie_high : float
        The smallest and the largest value over all orders of tied samples. Both bounds are NaN for
        metrics that do not only depend on the ranks and the losses.
    reason : str
        Reason why the value is NaN, or an empty string.
    interval : Interval
        The confidence interval. If there is no interval, its bounds are NaN. If no intervals were
        requested, its level is also NaN.
    """

    split: Split
    score: str
    metric: Metric
    value: float
    n: int
    failures: int
    accepted: int | None
    tied_share: float
    tie_low: float
    tie_high: float
    reason: str
    interval: Interval = NOT_REQUESTED

    def count_of(self, total: int) -> int | None:
        """Return the number of samples, if the value is a share of `total` samples.

        The result is None if `value * total` is not an integer, for example because samples have
        weights.
        """
        count = self.value * total
        if math.isnan(count) or abs(count - round(count)) > _COUNT_ROUNDING:
            return None
        return round(count)

    def row(self) -> dict[str, Any]:
        """Return the result as a table row, which begins with the split columns."""
        row = {name: attrgetter(path)(self) for name, path in _RESULT_ATTRIBUTES.items()}
        if not self.interval.exists:
            row["interval"] = ""
        return {**dict(self.split), **row}

    def __repr__(self) -> str:
        """Return a text with the names and values of all columns."""
        return f"Result({', '.join(f'{name}={value!r}' for name, value in self.row().items())})"


@dataclass(frozen=True)
class ExtremeSample:
    """A failure with very high confidence or a success with very low confidence."""

    id: str
    label: str
    prediction: str
    confidence: float
    loss: float
    #: Probability of a correct prediction for this confidence. It is None if the confidence is a
    #: probability already or cannot be converted.
    probability: float | None = None


@dataclass(frozen=True)
class Contribution:
    """The contribution of one class or group to the AUGRC.

    Attributes
    ----------
    name : str
        Name of the class or group.
    n : int
        Number of samples of the class or group.
    sample_share : float
        Share of all samples that belong to the class or group.
    contribution : float
        Contribution of the class or group to the AUGRC, which is the sum of all contributions.
    share : float
        The contribution divided by the AUGRC, or NaN if the AUGRC is 0. If `share` is larger than
        `sample_share`, the class or group has more silent failures than average.
    """

    name: str
    n: int
    sample_share: float
    contribution: float
    share: float


@dataclass(frozen=True)
class CurvePoint:
    """A point of a risk-coverage curve, with its threshold and counts."""

    threshold: float
    #: Probability of a correct prediction at the threshold. It is NaN if the score is a probability
    #: already or cannot be converted.
    probability: float
    coverage: float
    #: Mean loss of the accepted samples.
    risk: float
    accepted: int
    #: Weighted total loss of the accepted samples.
    failures: float


@dataclass(frozen=True, eq=False, repr=False)
class ScoreCurves:
    """The curves and notable samples of one score on one split.

    Attributes
    ----------
    split : tuple of (column, value)
        The split of the data, or an empty tuple if the data are not split.
    score : str
        The name of a registered score or of a confidence column.
    n, failures : int
        Number of samples, and number of samples with a loss above zero.
    risk : float
        Mean loss of all samples.
    tied_share : float
        Share of samples whose confidence equals that of another sample.
    selective, generalized : RiskCoverageCurve
        The risk-coverage curves. A curve with more than 20,000 points is reduced to about this
        number of points (see `abstain.curves.risk_coverage.thin`).
    reliability, cwsa, cwsa_plus : ReliabilityCurve and MetricCoverageCurve, or None
        Reliability curve, and curves of CWSA and CWSA+ against coverage. The curves are None if
        the score is not a probability.
    overconfident, underconfident : tuple of ExtremeSample
        The most confident failures and the least confident successes.
    by_class, by_group : tuple of Contribution
        Contributions of the classes or groups to the AUGRC, sorted from the largest. The tuple is
        empty if the samples have no labels or no groups, respectively.
    is_column : bool
        Whether the score is a column of the data.
    band : RiskCoverageBand or None
        Confidence band of the selective risk at about sixty coverages, or None if no intervals were
        requested. The function `abstain.curves.bands.as_generalized` converts it to a band of the
        generalized risk.
    group_curves : mapping from str to RiskCoverageCurve
        Curves of the twelve largest groups. In these curves, coverage is the share of accepted
        samples among the samples of the group. For data that are read in batches, the mapping is
        empty.
    probabilities : array or None
        The thresholds of the curves, converted to probabilities of a correct prediction. The
        attribute is None if the score already is a probability or cannot be converted.
    """

    split: Split
    score: str
    n: int
    failures: int
    risk: float
    tied_share: float
    selective: RiskCoverageCurve
    generalized: RiskCoverageCurve
    reliability: ReliabilityCurve | None
    cwsa: MetricCoverageCurve | None
    cwsa_plus: MetricCoverageCurve | None
    overconfident: tuple[ExtremeSample, ...]
    underconfident: tuple[ExtremeSample, ...]
    by_class: tuple[Contribution, ...] = ()
    by_group: tuple[Contribution, ...] = ()
    is_column: bool = False
    band: RiskCoverageBand | None = None
    group_curves: Mapping[str, RiskCoverageCurve] = field(default_factory=dict)
    probabilities: Array | None = None

    def __repr__(self) -> str:
        """Return a text with the score, the split and the counts, but without the arrays."""
        counts = f"n={self.n}, failures={self.failures}"
        return f"ScoreCurves(split={self.split!r}, score={self.score!r}, {counts})"

    def point_at(self, coverage: float) -> CurvePoint:
        """Return the point of the selective curve whose coverage is the next above `coverage`."""
        curve = self.selective
        index = np.searchsorted(curve.coverage, coverage - ROUNDING)
        i = min(int(index), len(curve.risk) - 1)
        return CurvePoint(
            threshold=float(curve.thresholds[i]),
            probability=math.nan if self.probabilities is None else float(self.probabilities[i]),
            coverage=float(curve.coverage[i]),
            risk=float(curve.risk[i]),
            accepted=int(curve.accepted[i]),
            failures=float(curve.failures[i]),
        )


#: The split and the score of a result, which identify a tested method.
ScoreKey: TypeAlias = tuple[Split, str]


@dataclass(frozen=True)
class ScoreDifference:
    """The difference of a metric between two scores on the same samples.

    Attributes
    ----------
    first, second : pair of split and score
        The two scores with their splits.
    difference, low, high : float
        The value of the first score minus the value of the second score, and the bounds of its
        confidence interval. The interval is not adjusted for the number of tests.
    adjusted : float
        Two-sided p-value of the paired test, adjusted for all pairs that were tested together. The
        p-value is NaN if the pair cannot be tested.
    is_significant : bool
        Whether the adjusted p-value is below ``1 - level``.
    """

    first: ScoreKey
    second: ScoreKey
    difference: float
    low: float
    high: float
    adjusted: float
    is_significant: bool

    def reversed(self) -> "ScoreDifference":
        """Return the same test with the two scores exchanged."""
        return replace(
            self,
            first=self.second,
            second=self.first,
            difference=-self.difference,
            low=-self.high,
            high=-self.low,
        )


@dataclass(frozen=True, repr=False)
class ScoreTests:
    """Paired tests of one metric between the scores of an evaluation.

    The tests use influence functions, as in `compare`, and Holm's adjustment for all pairs.

    Attributes
    ----------
    metric : str
        Name of the metric.
    level : float
        Confidence level of the intervals.
    differences : tuple of ScoreDifference
        All tested pairs.
    has_same_samples : bool
        Whether all splits contain the same samples, for example predictions of several models. If
        True, scores of different splits are also compared. If False, only scores of the same split
        are compared.
    """

    metric: str
    level: float
    differences: tuple[ScoreDifference, ...]
    has_same_samples: bool

    def __repr__(self) -> str:
        """Return a text with the metric and the numbers of tested and significant pairs."""
        n_significant = sum(pair.is_significant for pair in self.differences)
        counts = f"{len(self.differences):,} pairs, {n_significant:,} significant"
        return f"ScoreTests({self.metric}: {counts})"

    def differences_from(self, reference: ScoreKey) -> dict[ScoreKey, ScoreDifference]:
        """Return the difference between each tested score and a reference score."""
        differences = {}
        for pair in self.differences:
            if pair.second == reference:
                differences[pair.first] = pair
            elif pair.first == reference:
                differences[pair.second] = pair.reversed()
        return differences


def warnings_first(notes: Iterable[Note]) -> tuple[Note, ...]:
    """Remove duplicate notes, and move the warnings to the beginning."""
    return tuple(sorted(dict.fromkeys(notes), key=lambda note: note.level != "warning"))


@dataclass(frozen=True, eq=False)
class Evaluation(NotebookDisplay):
    """The result of `evaluate`.

    Attributes
    ----------
    results : tuple of Result
        One result for each split, score and metric.
    curves : tuple of ScoreCurves
        The curves of each split and score. The tuple is empty if `evaluate` was called with
        ``curves=False``.
    notes : tuple of Note
        Notes about ties, saturation, small counts and the input files. Warnings come first.
    loss : str
        Name of the loss.
    skipped : mapping
        A mapping from the name of each metric that does not apply to these data to the reason.
    is_binary : bool
        Whether every loss is 0 or 1. If True, a mean loss is a share of wrong predictions.
    requested_metrics : tuple of str
        The requested metrics in the requested order. The tuple is empty if all applicable metrics
        were evaluated by default.
    column_scores : frozenset of str
        The scores that are columns of the data.
    n_classes : int
        Number of classes of the predictions, or 0 if the predictions have no classes.
    tests : ScoreTests or None
        Paired tests between the scores. If several scores have equal rankings, only the first is
        tested. `tests` is None for a single score, without intervals, for a stream, and for more
        than 100 combinations of scores and splits.
    equal_rankings : tuple of tuple of str
        Groups of scores that sort the samples of every split in the same order.
    """

    results: tuple[Result, ...]
    curves: tuple[ScoreCurves, ...]
    notes: tuple[Note, ...]
    loss: str
    skipped: Mapping[str, str] = field(default_factory=dict)
    is_binary: bool = True
    requested_metrics: tuple[str, ...] = ()
    column_scores: frozenset[str] = frozenset()
    n_classes: int = 0
    tests: ScoreTests | None = None
    equal_rankings: tuple[tuple[str, ...], ...] = ()

    def __repr__(self) -> str:
        """Return a text with the numbers of splits, scores, metrics and warnings."""
        counts = {
            "split": len({r.split for r in self.results}),
            "score": len({r.score for r in self.results}),
            "metric": len({r.metric.name for r in self.results}),
            "warning": sum(note.level == "warning" for note in self.notes),
        }
        return f"Evaluation({format_counts(counts)}; .frame() has the numbers)"

    def risk_without_abstention(self, split: Split) -> float:
        """Return the mean loss of all samples of a split, or NaN if the loss is not available."""
        for curves in self.curves:
            if curves.split == split:
                return curves.risk
        if not self.is_binary:
            return math.nan
        for result in self.results:
            if result.split == split and result.metric.name == CLASSIFIER_METRIC:
                return 1 - result.value
        return math.nan

    @property
    def answered(self) -> RowCount | None:
        """Number of samples that the model answered, or None if it answered all samples.

        The result is also None if there are several splits, or if the scores reject different
        samples.
        """
        refusals = {note.rows for note in self.notes if note.kind == ABSTENTIONS and note.rows}
        if len(refusals) != 1:
            return None
        refused = next(iter(refusals))
        is_single_split = {result.n for result in self.results} == {refused.n_total}
        if not is_single_split:
            return None
        return RowCount(refused.n_total - refused.n, refused.n_total)

    def __iter__(self) -> Iterator[Result]:
        """Iterate over the results."""
        return iter(self.results)

    def __len__(self) -> int:
        """Return the number of results."""
        return len(self.results)

    def value(self, metric: str, *, score: str | None = None, split: Split | None = None) -> float:
        """Return a metric value; `score` and `split` are optional if there is only one of them."""
        matches = [result for result in self.results if result.metric.name == metric]
        if score is not None:
            matches = [result for result in matches if result.score == score]
        if split is not None:
            matches = [result for result in matches if result.split == split]
        if len(matches) == 1:
            return matches[0].value
        request = f"metric {metric!r}, score {score!r}, split {split!r}"
        if not matches:
            hint = suggest(metric, {r.metric.name for r in self.results})
            raise UnknownNameError(f"there is no result for {request}.{hint}")
        raise UnknownNameError(
            f"{len(matches)} results match {request}; {_missing_arguments(metric, matches)}"
        )

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each metric value."""
        return [result.row() for result in self.results]

    def frame(self, *, backend: Backend = "polars") -> AnyFrame:
        """Return the results as a tidy dataframe."""
        return frame_from_rows(self.rows(), backend)


def format_counts(counts: Mapping[str, int]) -> str:
    """Return a text with counts of the scores and metrics, such as "1 score, 46 metrics"."""
    return ", ".join(f"{n:,} {noun}{'' if n == 1 else 's'}" for noun, n in counts.items())


def _missing_arguments(metric: str, matches: list[Result]) -> str:
    """Return a text that lists the arguments of `Evaluation.value` which select one result."""
    arguments, choices = [], []
    for name in ("score", "split"):
        values = list(dict.fromkeys(repr(getattr(match, name)) for match in matches))
        if len(values) > 1:
            more = ", ..." if len(values) > 6 else ""
            arguments.append(f"{name}={values[0]}")
            choices.append(f"`{name}` is one of {', '.join(values[:6])}{more}")
    call = f".value({metric!r}, {', '.join(arguments)})"
    return f"add an argument, as in `{call}`: {'; '.join(choices)}"
