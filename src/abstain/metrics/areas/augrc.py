"""AUGRC, excess AUGRC, the two terms of the AUGRC, and the prediction rejection ratio."""

from dataclasses import replace

import numpy as np

from abstain._foundation.scored import MetricValue, Scored, undefined, validate_samples
from abstain._foundation.tie_groups import TieGroups
from abstain.inference.influence import Gradient, tail_sums
from abstain.inference.resampled_areas import ResampledAreas
from abstain.metrics.binned import limits_from_sorted_losses
from abstain.metrics.entry import (
    DisplayOptions,
    Extremes,
    Identity,
    InfluenceFunction,
    Measurement,
    Metric,
    Need,
    ResampledFormula,
    value_with_warning,
)
from abstain.metrics.influences import (
    accepts_merged_rows,
    cached_influence,
    influence_from_gradient,
    influence_on_best_order,
    mean_loss_gradient,
)
from abstain.metrics.rank_weights import (
    RankWeight,
    augrc_weight,
    cached_rank_weighted_risk,
    excess_above_optimum,
    rank_weighted_risk,
)
from abstain.typing import AnyArray, FloatArray, Scalar

_TRAUB = "Traub et al. (2024), {}, https://arxiv.org/abs/2407.01032"


def augrc(confidence: AnyArray, loss: AnyArray, *, weight: AnyArray | None = None) -> float:
    r"""Compute the area under the generalized risk-coverage curve (AUGRC).

    Answers: averaged over all coverages, what is the probability that a sample is accepted *and*
    wrong (a silent failure)?

    Parameters
    ----------
    confidence : array of shape (n,)
        Confidence scores; higher means more trusted. Only the order of the scores matters.
    loss : array of shape (n,)
        Finite and non-negative; 1 for an error under 0/1 loss.
    weight : array of shape (n,), optional
        Frequency weights. An integer weight m is equivalent to m copies of the sample.

    Returns
    -------
    float
        Value in [0, 0.5] for losses in [0, 1]; **lower is better**. The literature prints the value
        x1000. For 0/1 loss with error rate R, the value is R^2/2 for the best order and R/2 for a
        random order.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a value is NaN or infinite, or a loss or weight is negative.

    Notes
    -----
    The curve is linear over tied samples, which equals the expectation over random tie-breaking.
    For 0/1 loss, ``AUGRC = (1 - AUROC_f) acc (1 - acc) + (1 - acc)**2 / 2`` exactly, where AUROC_f
    is the failure AUROC and acc the accuracy. The function sorts the samples once.

    References
    ----------
    .. [1] Traub et al. (2024), Overcoming common flaws in the evaluation of selective
       classification systems, eq. 6, https://arxiv.org/abs/2407.01032

    Examples
    --------
    >>> import abstain as ab
    >>> ab.augrc([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1])
    0.1875
    """
    s = validate_samples(confidence, loss, weight)
    return value_with_warning(compute_augrc(s), "augrc")


def compute_augrc(s: Scored) -> MetricValue:
    """Compute the AUGRC of samples."""
    return MetricValue(cached_rank_weighted_risk(s, augrc_weight))


def augrc_gradient(groups: TieGroups) -> Gradient:
    """Return the gradient of the AUGRC with respect to the weights and losses of tie groups."""
    # One more sample lowers the rank of all less confident samples by one, and the rank of tied
    # samples by one half.
    loss_below = tail_sums(groups.loss) - groups.loss / 2
    total = groups.total_weight
    return Gradient(-loss_below / total**2, augrc_weight(groups) / total)


@accepts_merged_rows
@cached_influence
def _augrc_influence(s: Scored) -> FloatArray:
    return influence_from_gradient(s, augrc_gradient(s.groups))


def augrc_optimum(s: Scored) -> Scalar:
    """Return the AUGRC of the best order of the losses, which is R^2/2 for 0/1 loss with mean R."""
    return rank_weighted_risk(s.best_order, augrc_weight)


@cached_influence
def _optimum_influence(s: Scored) -> FloatArray:
    """Return the influence of each sample on the AUGRC of the best order."""
    return influence_on_best_order(s, augrc_gradient(s.best_order))


def excess_augrc(confidence: AnyArray, loss: AnyArray, *, weight: AnyArray | None = None) -> float:
    """Compute the excess AUGRC, which is the AUGRC minus the AUGRC of the best order of the losses.

    Answers: how much of the AUGRC is due to the ranking, and not to the classifier?

    Parameters
    ----------
    confidence, loss, weight : array of shape (n,)
        See `augrc`.

    Returns
    -------
    float
        Value in [0, 0.25] for losses in [0, 1]; **lower is better**. The value is 0 if every
        failure is less confident than every success.

    Raises
    ------
    ShapeError, DomainError
        See `augrc`.

    Notes
    -----
    The value equals the ranking term of `augrc_terms` and is never negative. The difference between
    two scores of the same classifier is the same in the AUGRC and in the excess AUGRC. The function
    sorts the samples once.

    References
    ----------
    .. [1] Traub et al. (2024), eq. 7, https://arxiv.org/abs/2407.01032

    Examples
    --------
    >>> import abstain as ab
    >>> ab.excess_augrc([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1])
    0.0625
    """
    s = validate_samples(confidence, loss, weight)
    return value_with_warning(_compute_excess(s), "excess_augrc")


def _compute_excess(s: Scored) -> MetricValue:
    return MetricValue(excess_above_optimum(augrc_optimum(s), compute_augrc(s).value, s))


def augrc_terms(
    confidence: AnyArray, loss: AnyArray, *, weight: AnyArray | None = None
) -> tuple[float, float]:
    """Split the AUGRC into its ranking term and its classifier term.

    Answers: would a better confidence score help, or only a better classifier?

    Parameters
    ----------
    confidence, loss, weight : array of shape (n,)
        See `augrc`.

    Returns
    -------
    ranking : float
        ``(1 - AUROC_f) acc (1 - acc)`` for 0/1 loss. This term is 0 for a perfect score.
    classifier : float
        ``(1 - acc)**2 / 2`` for 0/1 loss, and the AUGRC of the best order for other losses. This
        term does not depend on the score.

    Raises
    ------
    ShapeError, DomainError
        See `augrc`.

    Notes
    -----
    The AUGRC is the sum of the two terms. Each term is in [0, 0.5], and lower is better. The
    function sorts the samples once.

    References
    ----------
    .. [1] Traub et al. (2024), eq. 7, https://arxiv.org/abs/2407.01032

    Examples
    --------
    >>> import abstain as ab
    >>> ab.augrc_terms([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1])
    (0.0625, 0.125)
    """
    s = validate_samples(confidence, loss, weight)
    return _compute_excess(s).value, augrc_optimum(s)


def prediction_rejection_ratio(
    confidence: AnyArray, loss: AnyArray, *, weight: AnyArray | None = None
) -> float:
    """Compute the prediction rejection ratio (PRR).

    Answers: if an oracle answers the rejected samples, where is this score on a scale from random
    rejection (0) to perfect rejection (1)?

    Parameters
    ----------
    confidence, loss, weight : array of shape (n,)
        See `augrc`.

    Returns
    -------
    float
        Value in [-1, 1]; **higher is better**. The value is 0 for a random order and 1 for the best
        order. The value is NaN, with an `UndefinedMetricWarning`, if all losses are equal.

    Raises
    ------
    ShapeError, DomainError
        See `augrc`.

    Notes
    -----
    The area under the error-retention curve is the AUGRC, so PRR = (R/2 - AUGRC) / (R/2 - best
    AUGRC). For 0/1 loss, the value is 2 AUROC_f - 1, where AUROC_f is the failure AUROC, in which a
    tied pair counts as one half. The function sorts the samples once.

    References
    ----------
    .. [1] Malinin et al. (2020), Uncertainty estimation in autoregressive structured prediction,
       appendix B, https://arxiv.org/abs/2002.07650

    Examples
    --------
    >>> import abstain as ab
    >>> ab.prediction_rejection_ratio([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1])
    0.5
    """
    s = validate_samples(confidence, loss, weight)
    return value_with_warning(_compute_prr(s), "prediction_rejection_ratio")


def _compute_prr(s: Scored) -> MetricValue:
    """Compute (R/2 - AUGRC) / (R/2 - best AUGRC), where R is the mean loss."""
    random_augrc = s.merged_groups.risk / 2
    max_gain = random_augrc - augrc_optimum(s)
    if max_gain <= np.finfo(np.float64).eps * random_augrc:
        return undefined("all losses are equal, so no order is better than another")
    return MetricValue((random_augrc - compute_augrc(s).value) / max_gain)


def _prr_influence(s: Scored) -> FloatArray:
    """Return the influence of each sample on the prediction rejection ratio."""
    random_augrc = s.groups.risk / 2
    max_gain = random_augrc - augrc_optimum(s)
    value = (random_augrc - rank_weighted_risk(s.groups, augrc_weight)) / max_gain
    on_random = influence_from_gradient(s, mean_loss_gradient(s.groups)) / 2
    on_gain = on_random - _augrc_influence(s)
    on_max_gain = on_random - _optimum_influence(s)
    return (on_gain - value * on_max_gain) / max_gain


def divide_or_nan(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return a / b where b > 0, and NaN elsewhere."""
    return np.divide(a, b, out=np.full_like(a, np.nan), where=b > 0)


def failure_auroc_of_resamples(a: ResampledAreas) -> FloatArray:
    """Return the failure AUROC of every resample for a 0/1 loss."""
    ranking_term = a.by_name["augrc"] - a.risk**2 / 2
    return 1.0 - divide_or_nan(ranking_term, a.risk * (1.0 - a.risk))


#: Required areas of metrics that are formulas of the AUGRC.
FROM_AUGRC = frozenset({"augrc"})

#: The best and the worst AUGRC as functions of the error rate.
AUGRC_EXTREMES: Extremes = (lambda r: r * r / 2, lambda r: r - r * r / 2)


def is_binary(s: Scored) -> bool:
    """Return whether all losses of the samples are 0 or 1."""
    return s.is_binary


def rank_weighted_measurement(phi: RankWeight, influence: InfluenceFunction) -> Measurement:
    """Return the measurement of a metric that is a rank-weighted mean of losses."""

    def compute(s: Scored) -> MetricValue:
        return MetricValue(cached_rank_weighted_risk(s, phi))

    return Measurement(
        compute=compute,
        averages_ties=True,
        rank_weight=phi,
        influence=influence,
        binned=limits_from_sorted_losses(compute),
    )


AUGRC = Metric(
    Identity(
        name="augrc",
        title="AUGRC",
        family="area",
        lower_is_better=True,
        meaning="Averaged over all coverages, {value} of all samples are accepted and wrong "
        "(silent failures).",
        source=_TRAUB.format("eq. 6"),
        function="augrc(confidence, loss)",
        violated_requirements=(),
    ),
    replace(
        rank_weighted_measurement(augrc_weight, _augrc_influence),
        high=0.5,
        extremes=AUGRC_EXTREMES,
        resampled=ResampledFormula(FROM_AUGRC, lambda a: a.by_name["augrc"]),
    ),
    DisplayOptions(per_thousand=True, headline=2),
)

_EXCESS = Metric(
    Identity(
        name="excess_augrc",
        title="excess AUGRC",
        family="area",
        lower_is_better=True,
        meaning="A perfect score would reduce the AUGRC of this classifier by {value}.",
        source=_TRAUB.format("eq. 7"),
        function="excess_augrc(confidence, loss)",
    ),
    Measurement(
        compute=_compute_excess,
        high=0.25,
        averages_ties=True,
        influence=accepts_merged_rows(lambda s: _augrc_influence(s) - _optimum_influence(s)),
        from_auroc=lambda auroc, risk: (1 - auroc) * risk * (1 - risk),
        extremes=(lambda _: 0.0, lambda r: min(r, 0.5) * (1 - min(r, 0.5))),
        resampled=ResampledFormula(
            FROM_AUGRC, lambda a: np.maximum(0.0, a.by_name["augrc"] - a.risk**2 / 2), is_binary
        ),
    ),
    DisplayOptions(per_thousand=True),
)

RANKING_TERM = Metric(
    replace(
        _EXCESS.identity,
        name="augrc_ranking",
        title="AUGRC, ranking term",
        meaning="Failures ranked above successes contribute {value} to the AUGRC.",
        function="augrc_terms(confidence, loss)[0]",
    ),
    replace(_EXCESS.measurement, needs=frozenset({Need.BINARY_LOSS})),
    _EXCESS.display,
)

CLASSIFIER_TERM = Metric(
    Identity(
        name="augrc_classifier",
        title="AUGRC, classifier term",
        family="area",
        lower_is_better=True,
        meaning="The errors of the classifier contribute {value} to the AUGRC, for any score.",
        source=_TRAUB.format("eq. 7"),
        ignores_confidence=True,
        function="augrc_terms(confidence, loss)[1]",
    ),
    Measurement(
        compute=lambda s: MetricValue(augrc_optimum(s)),
        high=0.5,
        needs=frozenset({Need.BINARY_LOSS}),
        averages_ties=True,
        influence=accepts_merged_rows(_optimum_influence),
        extremes=(lambda r: r * r / 2, lambda r: r * r / 2),
        resampled=ResampledFormula(FROM_AUGRC, lambda a: a.risk**2 / 2, is_binary),
    ),
    DisplayOptions(per_thousand=True),
)

ENTRIES = (
    AUGRC,
    _EXCESS,
    RANKING_TERM,
    CLASSIFIER_TERM,
    Metric(
        Identity(
            name="prr",
            title="prediction rejection ratio",
            family="ranking",
            lower_is_better=False,
            meaning="On the scale from random rejection (0) to perfect rejection (1), the score "
            "reaches {value}.",
            source="Malinin et al. (2020), https://arxiv.org/abs/2002.07650",
            function="prediction_rejection_ratio(confidence, loss)",
        ),
        Measurement(
            compute=_compute_prr,
            low=-1.0,
            averages_ties=True,
            influence=accepts_merged_rows(_prr_influence),
            is_two_sample=True,
            from_auroc=lambda auroc, _: 2 * auroc - 1,
            resampled=ResampledFormula(
                FROM_AUGRC, lambda a: 2.0 * failure_auroc_of_resamples(a) - 1.0, is_binary
            ),
        ),
    ),
)
