"""OSCR and SCOD risks, which are metrics for data with samples of unknown classes."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import as_array_like, as_double
from abstain._foundation.scored import MetricValue, Scored, undefined
from abstain.inference.influence import (
    covariance,
    standard_error_from_contributions,
    tail_sums,
    unit_contributions,
)
from abstain.inference.intervals import Interval, no_interval
from abstain.inference.small_samples import FailureCount, few_failures_warning
from abstain.metrics.areas.augrc import AUGRC
from abstain.metrics.areas.aurc import AURC
from abstain.metrics.classes import (
    class_view_from_predictions,
    get_class_view,
    scored_with_classes,
    weighted_mean,
)
from abstain.metrics.entry import (
    DisplayOptions,
    Family,
    Identity,
    Measurement,
    Metric,
    Need,
    count_failures,
    value_with_warning,
)
from abstain.metrics.influences import sample_weights
from abstain.metrics.roc import area_under_roc, has_nonzero
from abstain.metrics.small_samples import auroc_interval, proportion_interval
from abstain.metrics.working_points.entries import FAMILIES as WORKING_POINT_FAMILIES
from abstain.typing import AnyArray, BoolArray, FloatArray, IntArray

T = TypeVar("T")

_DHAMIJA = "Dhamija et al. (2018), https://arxiv.org/abs/1811.04110"
_NARASIMHAN = "Narasimhan et al. (2024), https://arxiv.org/abs/2301.12386"
_NO_UNKNOWN_SAMPLE = "no sample has an unknown class"


# ---------------------------------------------------------------------------------------- OSCR
def oscr(
    confidence: AnyArray,
    prediction: AnyArray,
    labels: AnyArray,
    *,
    weight: AnyArray | None = None,
) -> float:
    """Compute the area under the open-set classification rate curve (OSCR).

    Answers: averaged over the accepted share of unknown classes, which share of the samples with
    known classes is accepted and correct?

    Parameters
    ----------
    confidence : array of shape (n,)
        Confidence scores; higher means more trusted. Only the order of the scores matters.
    prediction : array of shape (n,)
        Predicted class codes 0, 1, ...
    labels : array of shape (n,)
        True class codes; -1 for a sample of an unknown class.
    weight : array of shape (n,), optional
        Frequency weights. An integer weight m is equivalent to m copies of the sample.

    Returns
    -------
    float
        Value between 0 and the accuracy on the known classes; **higher is better**. The value is
        NaN, with an `UndefinedMetricWarning`, if no sample has an unknown class or no sample has a
        known class.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a confidence is NaN or infinite, a code is not an integer of at least -1, or a weight is
        negative.

    Notes
    -----
    OSCR is the area under the correct classification rate as a function of the false positive rate.
    The value equals the accuracy on the known classes times the AUROC of correct predictions
    against samples of unknown classes. A tied pair counts as one half, although the inequalities of
    the paper count it as 0. The function sorts the samples once.

    References
    ----------
    .. [1] Dhamija, Günther and Boult (2018), Reducing network agnostophobia,
       https://arxiv.org/abs/1811.04110

    Examples
    --------
    >>> from abstain.metrics import oscr
    >>> oscr([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1], [0, -1, 0, 0])
    0.3333333333333333
    """
    view = class_view_from_predictions(prediction, labels)
    s = scored_with_classes(confidence, view, weight)
    return value_with_warning(_compute_oscr(s), "oscr")


def _correct_and_unknown(s: Scored) -> tuple[BoolArray, BoolArray]:
    """Return masks of the correct samples and of the samples of unknown classes.

    Samples of weight 0 are in neither mask.
    """
    view = get_class_view(s)
    is_correct = (view.prediction == view.labels) & (view.labels >= 0)
    is_unknown = view.labels < 0
    if s.weight is None:
        return is_correct, is_unknown
    return is_correct & (s.weight > 0), is_unknown & (s.weight > 0)


def _compute_oscr(s: Scored) -> MetricValue:
    """Compute OSCR as the product of accuracy and AUROC."""
    is_correct, is_unknown = _correct_and_unknown(s)
    correct_weight = s.group_with_loss(as_double(is_correct)).loss
    unknown_weight = s.group_with_loss(as_double(is_unknown)).loss
    if not has_nonzero(unknown_weight):
        return undefined(_NO_UNKNOWN_SAMPLE)
    known_share = weighted_mean(as_double(~is_unknown), s.weight)
    if not float(known_share) > 0:
        return undefined("no sample has a known class")
    if not has_nonzero(correct_weight):
        return MetricValue(0.0)
    accuracy = weighted_mean(as_double(is_correct), s.weight) / known_share
    return MetricValue(float(accuracy) * area_under_roc(correct_weight, unknown_weight))


def _count_unknown(s: Scored) -> int:
    """Return the number of samples of unknown classes with positive weight."""
    _, is_unknown = _correct_and_unknown(s)
    return int(np.count_nonzero(is_unknown))


class _OscrFactors(NamedTuple):
    """Accuracy and AUROC, whose product is OSCR, and the influences on each factor, shape (n,)."""

    #: Accuracy on the samples of known classes.
    accuracy: float
    #: AUROC of the correct samples against the samples of unknown classes.
    auroc: float
    accuracy_influence: FloatArray
    auroc_influence: FloatArray


def _oscr_factors(s: Scored) -> _OscrFactors:
    """Compute the accuracy and the AUROC, and the influence of each sample on each of them."""
    is_correct, is_unknown = _correct_and_unknown(s)
    weight = sample_weights(s)
    known_weight = float(weight[~is_unknown].sum())
    correct_weight = float(weight[is_correct].sum())
    unknown_weight = float(weight[is_unknown].sum())
    if correct_weight == 0:
        return _OscrFactors(0.0, 0.0, np.zeros(s.n_rows), np.zeros(s.n_rows))
    scale = (weight > 0) * s.total_weight
    accuracy = correct_weight / known_weight
    accuracy_influence = ~is_unknown * (is_correct - accuracy) / known_weight
    # Weights below and above the confidence of each sample, in which tied samples count half. The
    # appended 0 is for samples of weight 0, whose group index is -1.
    unknown_in_group = s.group_with_loss(is_unknown.astype(np.float64)).loss
    correct_in_group = s.group_with_loss(is_correct.astype(np.float64)).loss
    unknown_below_group = np.append(tail_sums(unknown_in_group) - unknown_in_group / 2, 0.0)
    correct_above_group = np.append(np.cumsum(correct_in_group) - correct_in_group / 2, 0.0)
    unknown_below = unknown_below_group.take(s.group_index)
    correct_above = correct_above_group.take(s.group_index)
    auroc = float((weight * is_correct * unknown_below).sum()) / (correct_weight * unknown_weight)
    influence_of_correct = unknown_below / unknown_weight - auroc
    influence_of_unknown = correct_above / correct_weight - auroc
    auroc_influence: FloatArray = np.where(
        is_unknown,
        influence_of_unknown / unknown_weight,
        is_correct * influence_of_correct / correct_weight,
    )
    return _OscrFactors(accuracy, auroc, scale * accuracy_influence, scale * auroc_influence)


def _oscr_influence(s: Scored) -> FloatArray:
    """Return the influence of each sample on OSCR."""
    factors = _oscr_factors(s)
    return factors.auroc * factors.accuracy_influence + factors.accuracy * factors.auroc_influence


def _oscr_interval(s: Scored, level: float, cluster: IntArray | None) -> Interval:
    """Combine the intervals of accuracy and AUROC on the log scale (Zou and Donner 2008)."""
    is_correct, is_unknown = _correct_and_unknown(s)
    factors = _oscr_factors(s)
    weight = sample_weights(s)
    value = factors.accuracy * factors.auroc
    if value == 0:
        return no_interval(level, "no correct sample ranks above a sample of an unknown class")
    auroc = auroc_interval(
        factors.auroc,
        factors.auroc_influence,
        weight,
        (is_correct, is_unknown),
        level=level,
        cluster=cluster,
    )
    if np.isnan(auroc.low):
        return auroc
    known_share = weight[~is_unknown].sum() / s.total_weight
    accuracy = proportion_interval(
        factors.accuracy,
        factors.accuracy_influence * known_share,
        weight * ~is_unknown,
        level=level,
        cluster=cluster,
    )
    correlation = _correlation_of_factors(factors, weight, cluster)
    low = _bound_of_product(factors, accuracy.low, auroc.low, correlation)
    high = _bound_of_product(factors, accuracy.high, auroc.high, correlation)
    # The samples of unknown classes limit the precision, as failures do for other metrics.
    n_unknown = FailureCount(_count_unknown(s), OSCR.failure_population)
    unknown_warning = few_failures_warning(n_unknown, heavy_tailed=False)
    notes = [note for note in (unknown_warning, auroc.note) if note]
    contributions = unit_contributions(_oscr_influence(s), s.weight, cluster)
    return Interval(
        low,
        min(high, 1.0),
        level,
        "accuracy and AUROC, combined on the log scale",
        standard_error_from_contributions(contributions),
        "; ".join(notes),
    )


def _correlation_of_factors(
    factors: _OscrFactors, weight: FloatArray, cluster: IntArray | None
) -> float:
    """Return the correlation of the errors of accuracy and AUROC."""
    influences = np.stack((factors.accuracy_influence, factors.auroc_influence), axis=1)
    covariances = covariance(influences, weight=weight, cluster=cluster)
    error_product = float(np.sqrt(covariances[0, 0] * covariances[1, 1]))
    return float(covariances[0, 1]) / error_product if error_product > 0 else 0.0


def _bound_of_product(
    factors: _OscrFactors, accuracy_bound: float, auroc_bound: float, correlation: float
) -> float:
    """Return a bound of accuracy x AUROC from a bound of each factor."""
    x = np.log(accuracy_bound / factors.accuracy)
    y = np.log(auroc_bound / factors.auroc)
    distance = np.sqrt(max(x * x + y * y + 2 * correlation * x * y, 0.0))
    value = factors.accuracy * factors.auroc
    return float(value * np.exp(np.copysign(distance, x + y)))


OSCR = Metric(
    Identity(
        name="oscr",
        title="OSCR",
        family="ranking",
        lower_is_better=False,
        meaning="Averaged over the accepted share of samples with unknown classes, {value} of the "
        "samples with known classes are accepted and correct.",
        source=_DHAMIJA,
        function="oscr(confidence, prediction, labels)",
    ),
    Measurement(
        compute=_compute_oscr,
        needs=frozenset({Need.CLASSES, Need.UNKNOWN_CLASSES}),
        averages_ties=True,
        gradients=frozenset(),
        influence=_oscr_influence,
        interval=_oscr_interval,
        n_failures=_count_unknown,
    ),
)


# ---------------------------------------------------------------------------------------- SCOD
def scod_loss(loss: AnyArray, unknown: AnyArray, *, outlier_cost: float = 0.5) -> AnyArray:
    """Compute losses that assign a separate cost to samples of unknown classes.

    Answers: what is the loss of each sample in selective classification with out-of-distribution
    detection (SCOD), if errors and outliers have different costs?

    Parameters
    ----------
    loss : array of shape (n,)
        Losses in [0, 1]. The function ignores the losses of outliers.
    unknown : array of shape (n,)
        1 or True for a sample of an unknown class (an outlier).
    outlier_cost : float, default=0.5
        Cost c of an accepted outlier, in [0, 1]. An error on a known class costs 1 - c.

    Returns
    -------
    array of shape (n,)
        The value c for outliers, and (1 - c) times the loss for other samples. Functions such as
        `aurc`, `augrc` and `selective_risk` accept the result as `loss`.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a loss or `outlier_cost` is outside [0, 1], or an entry of `unknown` is neither 0 nor 1.

    Notes
    -----
    Narasimhan et al. and torch-uncertainty report the AURC of these losses, which depends on the
    share of outliers. If an outlier costs r times as much as an error, use c = r / (1 + r). The
    running time is linear in the number of samples.

    References
    ----------
    .. [1] Narasimhan et al. (2024), Plugin estimators for selective classification with
       out-of-distribution detection, https://arxiv.org/abs/2301.12386
    .. [2] Xia and Bouganis (2022), Augmenting softmax information for selective classification with
       out-of-distribution data, https://arxiv.org/abs/2207.07506

    Examples
    --------
    >>> from abstain.metrics import scod_loss
    >>> scod_loss([0, 1, 1], [0, 0, 1], outlier_cost=0.75).tolist()
    [0.0, 0.25, 0.75]
    """
    cost = checks.fraction(outlier_cost, "outlier_cost")
    losses = checks.unit_interval(checks.loss(loss), "loss")
    outlier = checks.vector(unknown, "unknown", length=losses.size, reference="loss")
    checks.reject_entries("unknown", "must be 0 or 1", outlier, (outlier != 0) & (outlier != 1))
    scod_losses = np.where(outlier != 0, cost, (1.0 - cost) * losses)
    return as_array_like(scod_losses, loss)


def _with_scod_loss(s: Scored, cost: float) -> Scored:
    """Return the samples with their losses replaced by the SCOD loss."""
    samples = s.without_gradient
    is_unknown = get_class_view(s).labels < 0
    loss_on_known = (1.0 - cost) * as_double(samples.loss)
    loss_on_unknown = s.xp.zeros_like(loss_on_known) + cost
    loss = s.xp.where(is_unknown, loss_on_unknown, loss_on_known)
    return Scored(samples.confidence, loss, s.weight, class_view=s.class_view)


def _with_costs(function: Callable[..., T] | None, cost: float) -> Callable[..., T] | None:
    """Return a function that applies `function` to the samples with the SCOD loss."""
    if function is None:
        return None
    return lambda s, *options: function(_with_scod_loss(s, cost), *options)


def _scod_metric(base: Metric, name: str, cost: str, *, title: str, meaning: str) -> Metric | None:
    """Return a risk metric of the SCOD loss, or None if the cost is above 1."""
    cost_value = float(cost)
    if cost_value > 1:
        return None
    function = base.identity.function
    identity = replace(
        base.identity,
        name=name,
        title=f"{title}, outliers at {cost}",
        meaning=f"{meaning} {{value}} ({cost} for an outlier, {1 - cost_value:g} for an error).",
        source=_NARASIMHAN,
        function=function.replace("loss", f"scod_loss(loss, unknown, outlier_cost={cost_value:g})"),
        violated_requirements=None,
    )
    display = DisplayOptions(per_thousand=base.display.per_thousand)
    return Metric(identity, _scod_measurement(base, cost_value), display)


def _scod_measurement(base: Metric, cost: float) -> Measurement:
    """Return the measurement of a risk metric of the SCOD loss."""

    def compute(s: Scored) -> MetricValue:
        _, is_unknown = _correct_and_unknown(s)
        if not s.xp.any(is_unknown):
            return undefined(_NO_UNKNOWN_SAMPLE)
        return base.compute(_with_scod_loss(s, cost))

    n_failures = base.measurement.n_failures
    if n_failures is not count_failures:
        n_failures = _with_costs(n_failures, cost)
    return Measurement(
        compute=compute,
        low=base.measurement.low,
        high=base.measurement.high,
        needs=frozenset({Need.CLASSES, Need.UNKNOWN_CLASSES, Need.UNIT_LOSS}),
        # Accepting an outlier instead of an error improves the value if an outlier costs less.
        monotone=False,
        duplication=base.measurement.duplication,
        gradients=frozenset(),
        influence=_with_costs(base.measurement.influence, cost),
        plausible_thresholds=_with_costs(base.measurement.plausible_thresholds, cost),
        at_coverage=base.measurement.at_coverage,
        n_failures=n_failures,
        heavy_tailed=base.measurement.heavy_tailed,
    )


def _scod_area(name: str, cost: str, *, base: Metric) -> Metric | None:
    """Return the AURC or AUGRC of the SCOD loss, or None if the cost is above 1."""
    return _scod_metric(
        base,
        name,
        cost,
        title=f"SCOD {base.title}",
        meaning=f"Averaged over all coverages, the mean cost {_POPULATIONS[base.name]} is",
    )


def _scod_risk_at_coverage(name: str, percent: str, cost: str) -> Metric | None:
    """Return the selective risk of the SCOD loss, or None for an invalid coverage or cost."""
    base = WORKING_POINT_FAMILIES[0].parse(f"selective_risk@{percent}cov")
    if base is None:
        return None
    return _scod_metric(
        base,
        name,
        cost,
        title=f"SCOD risk at {percent}% coverage",
        meaning=f"At a coverage of at least {percent}%, the mean cost of the accepted samples is",
    )


_POPULATIONS = {
    AURC.name: "of the accepted samples",
    AUGRC.name: "of the accepted samples, divided by the number of all samples,",
}

FAMILIES = (
    Family("scod_aurc@{}cost", partial(_scod_area, base=AURC), ("0.75",)),
    Family("scod_augrc@{}cost", partial(_scod_area, base=AUGRC), ("0.75",)),
    Family("scod_risk@{}cov-{}cost", _scod_risk_at_coverage, ("80", "0.75")),
)

_LISTED = ("scod_aurc@0.5cost", "scod_augrc@0.5cost", "scod_risk@80cov-0.5cost")

ENTRIES = (
    OSCR,
    *(entry for name in _LISTED for family in FAMILIES if (entry := family.parse(name))),
)
