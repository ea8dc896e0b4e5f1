"""Types of the entries in the catalogue of metrics.

Commands, documentation, property tests and reports read these entries.
"""

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import product
from typing import Any, Self, TypeAlias, cast

from abstain._foundation.arrays import as_scalar
from abstain._foundation.catalogue import Catalogue
from abstain._foundation.scored import MetricValue, Scored
from abstain.errors import InputError, UndefinedMetricWarning
from abstain.inference.draws import Draws
from abstain.inference.influence import max_shifts_by_step
from abstain.inference.intervals import Interval
from abstain.inference.resampled_areas import ResampledAreas
from abstain.metrics.binned import BinnedLimits
from abstain.metrics.rank_weights import RankWeight
from abstain.typing import AnyArray, FloatArray, IntArray, Scalar

InfluenceFunction: TypeAlias = Callable[[Scored], FloatArray]

#: Two functions of the error rate, which return the best and the worst value that any order of a
#: large number of samples can have.
Extremes: TypeAlias = tuple[Callable[[float], float], Callable[[float], float]]

#: Function of samples, confidence level and cluster codes (or None) that returns an interval.
IntervalMethod: TypeAlias = Callable[[Scored, float, IntArray | None], Interval]


class Need(StrEnum):
    """Requirements of a metric on its inputs, with the texts that reports display."""

    BINARY_LOSS = "needs a 0/1 loss"
    UNIT_LOSS = "needs a loss in [0, 1]"
    UNIT_CONFIDENCE = "needs a confidence in [0, 1]"
    CLASSES = "needs labels and predictions"
    CORRECTNESS = "needs labels and predictions, or a 0/1 loss"
    PROBABILITIES = "needs class probabilities or logits"
    TWO_CLASSES = "needs a task with two classes"
    UNKNOWN_CLASSES = "needs samples of unknown classes"


@dataclass(frozen=True)
class ResampledFormula:
    """Formula that yields a metric in all bootstrap resamples from areas such as the AUGRC."""

    #: Names of the required areas, which `abstain.inference.resampled_areas` computes.
    areas: frozenset[str]
    #: Function of these areas that returns the values, shape (scores, resamples).
    compute: Callable[[ResampledAreas], FloatArray]
    #: Function of samples that returns whether the formula is exact for them.
    is_exact: Callable[[Scored], bool] = lambda _: True


@dataclass(frozen=True)
class BatchableComputation:
    """Computation of a metric that can share work with other metrics of its family."""

    #: Function that computes this metric alone.
    compute_one: Callable[[Scored], MetricValue]
    #: Function of samples and the parameters of several metrics. All metrics of a family have the
    #: same function.
    compute_batch: Callable[[Scored, Sequence[Any]], Sequence[MetricValue]]
    #: The parameter of this metric, such as a threshold or a coverage.
    parameter: Any

    def __call__(self, s: Scored) -> MetricValue:
        """Compute the metric alone."""
        return self.compute_one(s)


#: Attribute of an influence function that contains the name of the rows that it accepts, such as
#: "merged_rows". The decorators of `metrics.influences` set this attribute.
REQUIRED_ROWS = "required_rows"


@dataclass(frozen=True, eq=False)
class PlausibleThresholds:
    """Thresholds that a working point may have in the population, given the data.

    Each threshold is the confidence of a tie group and is identified by the index of the group. A
    metric whose threshold can jump across a large tie group has no standard error.
    """

    #: The samples whose tie groups define the thresholds. A row may represent several samples.
    rows: Scored
    #: Index of the tie group that these data select.
    vertex: int
    #: Shape (k,). Indices of the plausible tie groups. The index -1 accepts no sample.
    alternatives: IntArray
    #: Shape (k,). Distance of each threshold from the data in standard errors.
    distances: FloatArray
    #: Shape (k,). Value of the metric at each threshold.
    values: FloatArray
    #: Value of the metric at the selected threshold.
    value: float
    #: Function of samples and the index of a tie group. It returns the influences on the value at
    #: this fixed threshold.
    influence_at_vertex: Callable[[Scored, int], FloatArray]

    @property
    def fixed_threshold_influence(self) -> FloatArray:
        """Influence of each row on the value, where the selected threshold is fixed."""
        return self.influence_at_vertex(self.rows, self.vertex)

    @property
    def reach(self) -> FloatArray:
        """Largest decrease and largest increase of the value within each distance, (2, steps)."""
        return max_shifts_by_step(self.values, self.distances, self.value)


def _always_reliable(_: Scored) -> str:
    """Return an empty reason for a metric whose intervals are always reliable."""
    return ""


def count_failures(s: Scored) -> int:
    """Return the number of failures with positive weight."""
    if s.has_unit_weights or s.weight is None:
        return s.n_failures
    return int(s.xp.count_nonzero((s.loss > 0) & (s.weight > 0)))


@dataclass(frozen=True)
class Identity:
    """Names, direction and definition of a metric.

    Attributes
    ----------
    name, title : str
        Name in scripts, and title in reports.
    family : str
        "area", "ranking", "working point", "calibration", "classifier" or "cwsa".
    lower_is_better : bool
        Whether a lower value is better.
    meaning : str
        One sentence that explains the value. Reports replace ``{value}`` by the number.
    source : str
        The publication that defines the metric, with the equation.
    convention : str
        The name of the convention if several are in use, or empty.
    function : str
        The call of the function of `abstain` that computes the metric, or empty.
    ignores_confidence : bool
        Whether the metric depends only on the classifier and is therefore equal for all scores.
    violated_requirements : tuple of str, or None
        The requirements R1 to R5 that the metric violates according to Traub et al. (2024, section
        2.4). None if Traub et al. do not assess the metric.
    requirements_from : str
        Name of another metric whose violated requirements also apply to this metric, or empty.
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
    """Computation of a metric and of its error, and properties that the test suite checks.

    Attributes
    ----------
    compute : callable
        Function of a `Scored` that meets the requirements in `needs`. The function returns a
        `MetricValue`.
    low, high : float
        The declared range, for losses in [0, 1].
    needs : frozenset of Need
        The requirements on the inputs.
    rank_based : bool
        Whether only the order of the confidences matters.
    monotone : bool
        Whether moving a failure below an untied success never makes the value worse.
    averages_ties : bool
        Whether the value with ties is the mean over all orders of the tied samples.
    duplication : str
        "exact" if repeating all samples does not change the value. "limit" if the change vanishes
        only in large samples.
    gradients : frozenset of str
        Inputs with respect to which the value is differentiable: "loss", "confidence" and
        "probabilities". The gradient for "confidence" is with respect to its values, because the
        order has no gradient. Empty for metrics that count samples.
    rank_weight : callable or None
        Function of tie groups that returns the rank weights phi. None if the metric is not the mean
        of phi x loss.
    contributions : callable or None
        Function of a `Scored` that returns the contribution of each sample. None if the metric is
        not a sum over samples or has a `rank_weight`.
    influence : callable or None
        Function of a `Scored` that returns the influence of each sample, shape (n,). The weighted
        mean of the influences is 0.
    no_influence_reason : str
        The reason why the metric has no influence function.
    interval : callable or None
        Function that computes the confidence interval. None for the default method.
    plausible_thresholds : callable or None
        Function of a `Scored` and cluster codes. The function returns the plausible thresholds, or
        None if the threshold cannot jump.
    no_error_at_threshold : bool
        Whether a value is exact if all its influences are 0. For example, a coverage of 1 is exact,
        but a risk of 0 is not.
    is_proportion : bool
        Whether the value is a proportion of the samples, so that score intervals apply.
    heavy_tailed : bool
        Whether the weight of the most confident failures increases with n, so that an interval
        requires more failures.
    caution : str
        A source of error that the interval does not include, or empty.
    unreliable_reason : callable
        Function of a `Scored` that returns the reason why intervals and tests are unreliable, or an
        empty text.
    at_coverage : float or None
        The coverage of the working point. None if the metric has no fixed coverage.
    n_failures : callable or None
        Function of a `Scored` that counts the failures that limit the precision. None if the number
        of failures does not limit the precision.
    is_two_sample : bool
        Whether the metric compares failures with successes, so that the smaller of the two counts
        limits the precision.
    from_auroc : callable or None
        Function of failure AUROC and error rate that returns the value. None if the metric is not
        linear in the AUROC for a 0/1 loss.
    extremes : tuple of callable, or None
        Two functions of the error rate, which return the best and the worst value that any order of
        a large number of samples can have.
    upper_limit_of_zero : callable or None
        Function of the number of independent samples and the confidence level. The function returns
        the upper confidence limit if the value is 0.
    resampled : ResampledFormula or None
        Formula that computes the value in all resamples.
    replicates : callable or None
        Function of several scores of the same samples and of the draws. The function returns the
        values in every resample.
    binned : BinnedLimits or None
        Limits of the value for binned samples. Streams with bounded memory store their samples in
        bins.
    """

    compute: Callable[[Scored], MetricValue]
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
    no_influence_reason: str = field(default="no influence function is available", repr=False)
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
        """Return the rows that the influence function accepts. The default is all samples."""
        required_rows = getattr(self.influence, REQUIRED_ROWS, "")
        if required_rows == "class_rows":
            return scored.class_rows
        if not required_rows:
            return scored
        has_other_probability = (
            scored.probability is not None and scored.probability is not scored.confidence
        )
        if has_other_probability:
            return scored
        return cast("Scored", getattr(scored, required_rows))


@dataclass(frozen=True)
class DisplayOptions:
    """Options for the display of a metric in reports.

    Attributes
    ----------
    short_title : str
        A title that fits into a column header, or empty if `title` fits.
    narrow_title : str
        The column header in a terminal, or empty if the short title fits.
    per_thousand : bool
        Whether reports print the value times 1000, as the literature does. The stored value is a
        fraction.
    headline : int or None
        The position among the metrics at the top of a report. None if the metric is not among them.
    """

    short_title: str = ""
    narrow_title: str = ""
    per_thousand: bool = False
    headline: int | None = None


@dataclass(frozen=True)
class Metric:
    """Definition, computation and display options of one metric.

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

    def __new__(cls, *_: object, **fields: object) -> Self:
        """Raise an error for fields other than the three parts, such as those of abstain 0.1."""
        misplaced = fields.keys() - {"identity", "measurement", "display"}
        if misplaced:
            raise InputError(
                "a Metric has three parts (see abstain.metrics.entry): Metric(Identity(...), "
                "Measurement(...), DisplayOptions(...)); move "
                f"{', '.join(sorted(misplaced))} into one"
            )
        return super().__new__(cls)

    @property
    def name(self) -> str:
        """The name in scripts."""
        return self.identity.name

    @property
    def title(self) -> str:
        """The title in reports."""
        return self.identity.title

    @property
    def lower_is_better(self) -> bool:
        """Whether a lower value is better."""
        return self.identity.lower_is_better

    @property
    def compute(self) -> Callable[[Scored], MetricValue]:
        """The function that computes the value from samples that meet the requirements."""
        return self.measurement.compute

    def reason_not_applicable(self, scored: Scored) -> str:
        """Return the reason why the metric does not apply to these samples, or an empty text."""
        needs = [need for need in Need if need in self.measurement.needs]
        missing = [need.value for need in needs if not _NEED_CHECKS[need](scored)]
        return "; ".join(missing)

    @property
    def reason_without_interval(self) -> str:
        """Reason why the metric has no analytic interval, or an empty string if it has one."""
        if self.measurement.influence is not None:
            return ""
        reason = self.measurement.no_influence_reason
        return f"{self.title} has no analytic interval ({reason}): use the bootstrap"

    @property
    def failure_population(self) -> str:
        """Phrase that names the samples whose failures are counted; empty for all samples."""
        measurement = self.measurement
        if measurement.n_failures in {None, count_failures}:
            return ""
        if Need.UNKNOWN_CLASSES in measurement.needs and measurement.at_coverage is None:
            return " among the samples of unknown classes"
        return " among the accepted"


_NEED_CHECKS: dict[Need, Callable[[Scored], bool]] = {
    Need.BINARY_LOSS: lambda s: s.is_binary,
    Need.UNIT_LOSS: lambda s: s.is_loss_bounded,
    Need.UNIT_CONFIDENCE: lambda s: s.has_probability,
    Need.CLASSES: lambda s: s.class_view is not None,
    Need.CORRECTNESS: lambda s: s.class_view is not None or s.is_binary,
    Need.PROBABILITIES: lambda s: (
        s.class_view is not None and s.class_view.log_probabilities is not None
    ),
    Need.TWO_CLASSES: lambda s: s.class_view is not None and len(s.class_view.classes) == 2,
    Need.UNKNOWN_CLASSES: lambda s: (
        s.class_view is not None and bool(s.xp.any(s.class_view.labels < 0))
    ),
}


@dataclass(frozen=True)
class Family:
    """A family of metrics whose names contain numbers, such as ``selective_risk@80cov``."""

    #: The name, in which ``{}`` stands for each number.
    pattern: str
    #: Function of the name and the texts of its numbers. The function returns the metric, or None
    #: if a number is outside its domain.
    make_metric: Callable[..., Metric | None]
    #: The numbers in the example name.
    example_numbers: tuple[str, ...]

    @property
    def example_name(self) -> str:
        """An example of a name in this family."""
        return self.pattern.format(*self.example_numbers)

    def parse(self, name: str) -> Metric | None:
        """Return the metric with this name, or None if the name belongs to another family."""
        numbers = self._match_numbers(name, _NUMBER)
        return None if numbers is None else self.make_metric(name, *numbers)

    def parse_range(self, name: str) -> tuple[Metric, ...]:
        """Return all metrics of a name that contains a range such as ``low:high:count``.

        The tuple is empty if the name belongs to another family or contains no range.
        """
        number_or_range = f"{_NUMBER}(?::{_NUMBER}:{_NUMBER})?"
        texts = self._match_numbers(name, number_or_range)
        if texts is None or not any(":" in text for text in texts):
            return ()
        numbers_by_position = [expand_range(text) for text in texts]
        metrics = []
        for numbers in product(*numbers_by_position):
            metric_name = self.pattern.format(*numbers)
            metric = self.parse(metric_name)
            if metric is None:
                raise InputError(
                    f"the range {name!r} contains {metric_name!r}, which is not a metric; change "
                    "the range"
                )
            metrics.append(metric)
        return tuple(metrics)

    def _match_numbers(self, name: str, number_pattern: str) -> tuple[str, ...] | None:
        """Return the numbers in a name as texts, or None if the name belongs to another family."""
        pattern = re.escape(self.pattern).replace(r"\{\}", f"({number_pattern})")
        match = re.fullmatch(pattern, name)
        return None if match is None else match.groups()


#: Regular expression of a number in a name.
_NUMBER = r"\d+(?:\.\d+)?"


def expand_range(text: str) -> list[str]:
    """Return the evenly spaced numbers of a range ``low:high:count``.

    The numbers are formatted with at most twelve decimals. For a single number, the list has one
    entry.

    Examples
    --------
    >>> expand_range("0.5:0.9:3"), expand_range("80")
    (['0.5', '0.7', '0.9'], ['80'])
    """
    if ":" not in text:
        return [text]
    low, high, count = map(float, text.split(":"))
    if not (low < high and count >= 2 and count.is_integer()):
        raise InputError(
            "a range must be low:high:count with low < high and an integer count of at least 2; "
            f"got {text!r}"
        )
    numbers = [low + (high - low) * i / (count - 1) for i in range(int(count) - 1)]
    numbers.append(high)
    return [f"{number:.12f}".rstrip("0").rstrip(".") for number in numbers]


#: All metrics, in the order of reports.
METRICS: Catalogue[Metric] = Catalogue("metric")


def compute_metrics(metrics: Sequence[Metric], s: Scored) -> list[MetricValue]:
    """Compute several metrics, and compute the metrics of each family together.

    The samples must meet the requirements of all metrics.
    """
    values: dict[int, MetricValue] = {}
    indices_by_family: dict[Any, list[int]] = {}
    for i, metric in enumerate(metrics):
        if isinstance(metric.compute, BatchableComputation):
            indices_by_family.setdefault(metric.compute.compute_batch, []).append(i)
        else:
            values[i] = metric.compute(s)
    for compute_batch, indices in indices_by_family.items():
        if len(indices) == 1:
            i = indices[0]
            values[i] = metrics[i].compute(s)
            continue
        computations = [cast("BatchableComputation", metrics[i].compute) for i in indices]
        parameters = [computation.parameter for computation in computations]
        values |= dict(zip(indices, compute_batch(s, parameters), strict=True))
    return [values[i] for i in range(len(metrics))]


def value_with_warning(measured: MetricValue, name: str) -> Scalar:
    """Return the value of a metric, with a warning if the value is undefined."""
    if measured.reason:
        warnings.warn(
            f"{name} is undefined: {measured.reason}", UndefinedMetricWarning, stacklevel=3
        )
    return as_scalar(measured.value)
