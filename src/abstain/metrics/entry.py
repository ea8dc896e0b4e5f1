"""What the catalogue knows of a metric, declared once and read by CLI, docs, laws and reports."""

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import product
from typing import Any, Self, TypeAlias

from abstain._foundation.catalogue import Catalogue
from abstain._foundation.foreign import scalar
from abstain._foundation.measurement import Measured
from abstain._foundation.scored import Scored
from abstain.errors import InputError, UndefinedMetricWarning
from abstain.inference.draws import Draws
from abstain.inference.influence import reach_of
from abstain.inference.intervals import Interval
from abstain.inference.replicates import Areas
from abstain.metrics.binned import BinnedLimits
from abstain.metrics.rank_weights import RankWeight
from abstain.typing import AnyArray, FloatArray, IntArray, Scalar

InfluenceFunction: TypeAlias = Callable[[Scored], FloatArray]

#: The best and the worst value over all orders, for a 0/1 loss of mean R, in large samples.
Extremes: TypeAlias = tuple[Callable[[float], float], Callable[[float], float]]

#: From cases and the codes of clusters, if there are any, to an interval of a level.
IntervalMethod: TypeAlias = Callable[[Scored, float, IntArray | None], Interval]


class Need(StrEnum):
    """What a metric needs beyond a confidence and a loss; the value is the reason shown."""

    BINARY_LOSS = "needs a 0/1 loss"
    UNIT_LOSS = "needs a loss in [0, 1]"
    UNIT_CONFIDENCE = "needs a confidence in [0, 1]"
    CLASSES = "needs labels and predictions"
    CORRECTNESS = "needs labels and predictions, or a 0/1 loss"
    PROBABILITIES = "needs class probabilities or logits"
    TWO_CLASSES = "needs a task with two classes"
    UNKNOWN_CLASSES = "needs samples of no known class"


@dataclass(frozen=True)
class ResampledFormula:
    """How a metric of every resample follows from areas that are found for all scores at once."""

    #: Which of those that `abstain.inference.replicates` computes.
    areas: frozenset[str]
    #: From these areas to the values, shape (sets, resamples).
    compute: Callable[[Areas], FloatArray]
    #: Tells whether it does for these data.
    is_exact: Callable[[Scored], bool] = lambda _: True


@dataclass(frozen=True)
class BatchableComputation:
    """The computation of a metric at one threshold or coverage, alone or with others."""

    #: From a `Scored` to the value.
    compute_one: Callable[[Scored], Measured]
    #: From a `Scored` and what each of several metrics is at to their values: one for all of them.
    compute_batch: Callable[[Scored, Sequence[Any]], Sequence[Measured]]
    #: What this one is at: a threshold, a coverage.
    parameter: Any

    def __call__(self, s: Scored) -> Measured:
        """Compute it alone."""
        return self.compute_one(s)


#: The attribute in which an influence function says which rows it takes (`metrics.influences`).
REQUIRED_ROWS = "reads_rows"


@dataclass(frozen=True, eq=False)
class PlausibleThresholds:
    """The thresholds that a working point may mean, where tie groups make it jump."""

    #: The samples, or rows that stand for them, in whose groups the vertices are counted.
    rows: Scored
    #: The one that is found.
    vertex: int
    #: Vertices that may be meant; -1 accepts nothing, shape (k,).
    alternatives: IntArray
    #: How far from the data each is, in standard errors, shape (k,).
    distances: FloatArray
    #: The number there, shape (k,).
    values: FloatArray
    #: The number at the one that is found.
    value: float
    #: From the rows and a vertex to their influences on the number at its threshold, held fixed.
    influence_at_vertex: Callable[[Scored, int], FloatArray]

    @property
    def fixed_threshold_influence(self) -> FloatArray:
        """Return the influences at the threshold that is found."""
        return self.influence_at_vertex(self.rows, self.vertex)

    @property
    def reach(self) -> FloatArray:
        """How far down and up the number may move, shape (2, steps)."""
        return reach_of(self.values, self.distances, self.value)


def _always_reliable(_: Scored) -> str:
    """Return an empty reason."""
    return ""


def count_failures(s: Scored) -> int:
    """Return the number of failures that have a weight."""
    if s.counted or s.weight is None:
        return s.failures
    return int(s.xp.count_nonzero((s.loss > 0) & (s.weight > 0)))


@dataclass(frozen=True)
class Identity:
    """What a metric is: its names, its direction and its definition.

    Attributes
    ----------
    name, title : str
        The names for scripts and for people.
    family : str
        "area", "ranking", "working point", "calibration", "classifier" or "cwsa".
    lower_is_better : bool
        The direction.
    meaning : str
        One plain sentence, with ``{value}`` in the position of the number.
    source : str
        The publication that defines the metric, with the equation.
    convention : str
        The named convention among several in use, or empty.
    function : str
        The call of the function of `abstain` that computes the metric, or empty.
    of_classifier : bool
        Whether the metric ignores the confidence, so that it is equal for every score.
    violated_requirements : tuple of str, or None
        The requirements R1 to R5 of Traub et al. (2024, section 2.4) that the authors state as
        violated; None for a metric that they do not judge.
    requirements_of : str
        The metric whose judgment in that section also applies to this one, or empty.
    """

    name: str
    title: str
    family: str
    lower_is_better: bool
    meaning: str
    source: str
    convention: str = ""
    function: str = ""
    ignores_confidence: bool = False
    violated_requirements: tuple[str, ...] | None = None
    requirements_from: str = ""


@dataclass(frozen=True)
class Measurement:
    """How a metric and its error are computed, and which properties the tests check.

    Attributes
    ----------
    compute : callable
        From a `Scored` that meets the needs to a `Measured`.
    low, high : float
        The declared range, for losses in [0, 1].
    needs : frozenset of Need
        The required inputs besides confidence and loss.
    rank_based : bool
        Whether only the order of the confidences matters.
    monotone : bool
        Whether moving a failure below an untied success never makes the value worse.
    averages_ties : bool
        Whether the value with ties is the mean over all orders of the tied samples.
    duplication : str
        "exact" if repeating all samples does not change the value, else "limit".
    gradients : frozenset of str
        Inputs that a gradient of the value reaches: "loss", "confidence" (its values; the order
        has no gradient), "probabilities" (of the classes). Empty for counts.
    rank_weight : callable or None
        From tie groups to the weights phi of their ranks, for a mean of phi x loss.
    contributions : callable or None
        From a `Scored` to the contribution of each sample, for other metrics that are sums.
    influence : callable or None
        From a `Scored` to the influence of each sample, shape (n,), with weighted mean 0.
    no_influence_reason : str
        Why there is no influence function.
    interval : callable or None
        The confidence interval, for a metric with a method of its own.
    open_thresholds : callable or None
        From a `Scored` and the codes of clusters to the thresholds that the data leave open.
    no_error_at_threshold : bool
        Whether a value whose influences are 0 has no error: a coverage of 1, but not a risk of 0.
    is_proportion : bool
        Whether the value is a proportion of the samples, so that score intervals apply.
    heavy_tailed : bool
        Whether the weight of the most confident failures is unbounded, so that an interval needs
        more failures.
    caution : str
        The source of error that the interval ignores, or empty.
    unreliable_reason : callable
        From a `Scored` to the reason why these data allow no interval and no test, or "".
    at_coverage : float or None
        The coverage of its threshold, for a value at one working point of fixed coverage.
    n_failures : callable or None
        From a `Scored` to the number of failures that determines the precision; None for means
        over all samples or over the successes.
    is_two_sample : bool
        Whether the metric compares failures with successes, so that either may be few.
    from_auroc : callable or None
        From a failure AUROC and an error rate to the value, if it is linear in the AUROC (0/1
        loss).
    extremes : tuple of callable, or None
        From an error rate to the best and the worst value of any order, in large samples.
    limit_of_zero : callable or None
        From a number of independent samples and a level to the upper limit of a value of 0.
    resampled : Resampled or None
        The formula of the value from the areas of all resamples at once.
    replicates : callable or None
        From the scores of the same samples and the draws to the values of every resample.
    binned : Binned or None
        The limits of the value if samples are known by bins only, as in a stream of bounded
        memory.
    """

    compute: Callable[[Scored], Measured]
    low: float = 0.0
    high: float = 1.0
    needs: frozenset[Need] = frozenset()
    rank_based: bool = True
    monotone: bool = True
    averages_ties: bool = False
    duplication: str = "exact"
    gradients: frozenset[str] = frozenset({"loss"})
    rank_weight: RankWeight | None = None
    contributions: Callable[[Scored], AnyArray] | None = None
    influence: InfluenceFunction | None = None
    no_influence_reason: str = field(
        default="no influence function is known for it here", repr=False
    )
    interval: IntervalMethod | None = None
    plausible_thresholds: Callable[[Scored, IntArray | None], PlausibleThresholds | None] | None = (
        None
    )
    no_error_at_threshold: bool = False
    is_proportion: bool = False
    heavy_tailed: bool = False
    caution: str = ""
    unreliable_reason: Callable[[Scored], str] = _always_reliable
    at_coverage: float | None = None
    n_failures: Callable[[Scored], int] | None = count_failures
    is_two_sample: bool = False
    from_auroc: Callable[[float, float], float] | None = None
    extremes: Extremes | None = None
    upper_limit_of_zero: Callable[[float, float], float] | None = None
    resampled: ResampledFormula | None = None
    replicates: Callable[[Sequence[Scored], Draws], FloatArray] | None = None
    binned: BinnedLimits | None = None

    def influence_rows(self, scored: Scored) -> Scored:
        """Return the rows that the influence function requires: all by default."""
        required_rows = getattr(self.influence, REQUIRED_ROWS, "")
        if required_rows == "class_rows":
            return scored.class_rows
        is_confidence = scored.probability is None or scored.probability is scored.confidence
        if not required_rows or not is_confidence:
            return scored
        rows: Scored = getattr(scored, required_rows)
        return rows


@dataclass(frozen=True)
class DisplayOptions:
    """How reports print a metric.

    Attributes
    ----------
    short_title : str
        A title that fits a column head; empty if the title does.
    narrow_title : str
        The column head in a terminal; empty if the short title fits there too.
    per_thousand : bool
        Whether the literature prints the value times 1000. The value itself stays a fraction.
    headline : int or None
        The position among the metrics at the top of a report; None for other metrics.
    """

    short_title: str = ""
    narrow_title: str = ""
    per_thousand: bool = False
    headline: int | None = None


@dataclass(frozen=True)
class Metric:
    """One metric: what it is, how it is computed, and how reports print it.

    Attributes
    ----------
    identity : Identity
        Names, direction and definition.
    measurement : Measurement
        The computation of the value and of its error.
    display : DisplayOptions
        Titles of columns and the scale of the printed number.
    """

    identity: Identity
    measurement: Measurement
    display: DisplayOptions = DisplayOptions()

    def __new__(cls, *_: object, **parts: object) -> Self:
        """Reject the fields of entries of abstain 0.1, which had no parts."""
        if misplaced := parts.keys() - {"identity", "measurement", "display"}:
            raise InputError(
                "a Metric has three parts (see abstain.metrics.entry): Metric(Identity(...), "
                "Measurement(...), DisplayOptions(...)); move "
                f"{', '.join(sorted(misplaced))} into one"
            )
        return super().__new__(cls)

    @property
    def name(self) -> str:
        """The name for scripts."""
        return self.identity.name

    @property
    def title(self) -> str:
        """The name for people."""
        return self.identity.title

    @property
    def lower_is_better(self) -> bool:
        """Whether a lower value is better."""
        return self.identity.lower_is_better

    @property
    def compute(self) -> Callable[[Scored], Measured]:
        """The function from a `Scored` that meets the needs to a `Measured`."""
        return self.measurement.compute

    def reason_not_applicable(self, scored: Scored) -> str:
        """Return why the metric does not apply to these data, or an empty string."""
        needs = self.measurement.needs
        return "; ".join(n.value for n in Need if n in needs and not _NEED_CHECKS[n](scored))

    @property
    def reason_without_interval(self) -> str:
        """Why the metric has no influence function and the remedy; empty if it has one."""
        if self.measurement.influence is not None:
            return ""
        reason = self.measurement.no_influence_reason
        return f"{self.title} has no analytic interval ({reason}): use the bootstrap"

    @property
    def failure_population(self) -> str:
        """The samples among which `n_failures` counts, as " among the accepted"; or empty."""
        measurement = self.measurement
        if measurement.n_failures in {None, count_failures}:
            return ""
        counts_unknown_classes = (
            Need.UNKNOWN_CLASSES in measurement.needs and measurement.at_coverage is None
        )
        return f" among the {'samples of no known class' if counts_unknown_classes else 'accepted'}"


_NEED_CHECKS: dict[Need, Callable[[Scored], bool]] = {
    Need.BINARY_LOSS: lambda s: s.binary,
    Need.UNIT_LOSS: lambda s: s.bounded,
    Need.UNIT_CONFIDENCE: lambda s: s.sure,
    Need.CLASSES: lambda s: s.view is not None,
    Need.CORRECTNESS: lambda s: s.view is not None or s.binary,
    Need.PROBABILITIES: lambda s: s.view is not None and s.view.log_probabilities is not None,
    Need.TWO_CLASSES: lambda s: s.view is not None and len(s.view.classes) == 2,
    Need.UNKNOWN_CLASSES: lambda s: s.view is not None and bool(s.xp.any(s.view.labels < 0)),
}


@dataclass(frozen=True)
class Family:
    """Metrics that differ by the numbers in their names."""

    #: Their names, with ``{}`` for each number.
    pattern: str
    #: From the name and the numbers as they are written there to the metric; None where such
    #: numbers have no meaning.
    make_metric: Callable[..., Metric | None]
    #: Numbers for an example.
    example_numbers: tuple[str, ...]

    @property
    def example_name(self) -> str:
        """A name of the family."""
        return self.pattern.format(*self.example_numbers)

    def parse(self, name: str) -> Metric | None:
        """Return the metric of that name; None for a name of another family."""
        found = self._parse_numbers(name, _NUMBER)
        return None if found is None else self.make_metric(name, *found)

    def parse_range(self, name: str) -> tuple[Metric, ...]:
        """Return the metrics of a name with ``low:high:count`` in the place of a number.

        None of them for a name of another family, or without such a range.
        """
        found = self._parse_numbers(name, f"{_NUMBER}(?::{_NUMBER}:{_NUMBER})?")
        if found is None or not any(":" in text for text in found):
            return ()
        names = [
            self.pattern.format(*at) for at in product(*(expand_range(text) for text in found))
        ]
        made = [self.parse(each) for each in names]
        if None in made:
            wrong = names[made.index(None)]
            raise InputError(
                f"{name!r} names {wrong!r} among others, which has no meaning; change the range"
            )
        return tuple(metric for metric in made if metric is not None)

    def _parse_numbers(self, name: str, number: str) -> tuple[str, ...] | None:
        """Return what stands in the places of the numbers."""
        pattern = re.escape(self.pattern).replace(r"\{\}", f"({number})")
        found = re.fullmatch(pattern, name)
        return None if found is None else found.groups()


#: A number in a name.
_NUMBER = r"\d+(?:\.\d+)?"


def expand_range(text: str) -> list[str]:
    """Write out the even steps of ``low:high:count``, both ends in; a number is itself.

    Examples
    --------
    >>> numbers_in("0.5:0.9:3"), numbers_in("80")
    (['0.5', '0.7', '0.9'], ['80'])
    """
    if ":" not in text:
        return [text]
    first, last, steps = text.split(":")
    low, high, count = float(first), float(last), float(steps)
    if not (low < high and count >= 2 and count.is_integer()):
        raise InputError(
            f"a range must be low:high:count, low below high and a count of 2 or more; got {text!r}"
        )
    # Twelve digits are what a name holds; each metric is at the number in its name.
    whole = [low + (high - low) * i / (count - 1) for i in range(int(count) - 1)] + [high]
    return [f"{x:.12f}".rstrip("0").rstrip(".") for x in whole]


#: Every metric, in the order reports show them.
METRICS: Catalogue[Metric] = Catalogue("metric")


def compute_metrics(metrics: Sequence[Metric], s: Scored) -> list[Measured]:
    """Compute metrics that apply; those that are one of many share what they have in common."""
    out: dict[int, Measured] = {}
    sharing: dict[Any, list[int]] = {}
    for i, metric in enumerate(metrics):
        if isinstance(metric.compute, BatchableComputation):
            sharing.setdefault(metric.compute.compute_batch, []).append(i)
        else:
            out[i] = metric.compute(s)
    for together, places in sharing.items():
        if len(places) == 1:
            out[places[0]] = metrics[places[0]].compute(s)
            continue
        at = [
            compute.parameter
            for i in places
            if isinstance(compute := metrics[i].compute, BatchableComputation)
        ]
        out |= dict(zip(places, together(s, at), strict=True))
    return [out[i] for i in range(len(metrics))]


def value_with_warning(measured: Measured, name: str) -> Scalar:
    """Return the number for a caller of a plain function, warning when it is undefined."""
    if measured.reason:
        warnings.warn(
            f"{name} is undefined here: {measured.reason}", UndefinedMetricWarning, stacklevel=3
        )
    return scalar(measured.value)
