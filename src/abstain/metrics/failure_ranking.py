"""How well the confidence ranks successes above failures: AUROC, average precision, FPR at TPR."""

from abstain._foundation import checks
from abstain._foundation.scored import Measured, Scored, scored, undefined
from abstain._foundation.segments import from_zero
from abstain.metrics._entry import Metric, Need, value_of
from abstain.metrics._roc import area_under_roc, average_precision, missing_kind, successes_failures
from abstain.typing import AnyArray

_JAEGER = "Jaeger et al. (2023), {}, https://arxiv.org/abs/2211.15259"

# Rates of weights that are not integers may miss the rate that was asked for by their rounding.
_ROUNDING = 1e-12


def _binary(
    confidence: AnyArray, loss: AnyArray, weight: AnyArray | None, needed_by: str
) -> Scored:
    s = scored(confidence, loss, weight)
    checks.binary_loss(s.loss, needed_by=needed_by)
    return s


def failure_auroc(confidence: AnyArray, loss: AnyArray, *, weight: AnyArray | None = None) -> float:
    """Compute the area under the ROC curve of failure detection.

    Answers: how likely is a random success to be more confident than a random failure?

    Parameters
    ----------
    confidence : array of shape (n,)
        Higher means more trusted; any real scale, only the order matters.
    loss : array of shape (n,)
        1 for a failure, 0 for a success.
    weight : array of shape (n,), optional
        Frequency weights: an integer weight counts a sample that many times.

    Returns
    -------
    float
        In [0, 1]; **higher is better**; 0.5 for a random order. NaN, with an
        `UndefinedMetricWarning`, when there are no failures or no successes.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a value is NaN or infinite, a loss is not 0 or 1, or a weight is negative.

    Notes
    -----
    Ties count half. Says nothing of how many failures there are: a worse classifier may have
    the better value. Cost: one sort.

    References
    ----------
    .. [1] Jaeger et al. (2023), A call to reflect on evaluation practices for failure detection
       in image classification, eq. 20-23, https://arxiv.org/abs/2211.15259

    Examples
    --------
    >>> from abstain.metrics import failure_auroc
    >>> failure_auroc([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1])
    0.75
    """
    s = _binary(confidence, loss, weight, "failure_auroc")
    return value_of(_failure_auroc(s), "failure_auroc")


def _failure_auroc(s: Scored) -> Measured:
    successes, failures = successes_failures(s)
    if missing := missing_kind(successes, failures):
        return undefined(missing)
    return Measured(area_under_roc(successes, failures))


def failure_ap_success(
    confidence: AnyArray, loss: AnyArray, *, weight: AnyArray | None = None
) -> float:
    """Compute the average precision of the confidence at finding the successes.

    Answers: as I accept down to each success in turn, how accurate are the accepted on average?

    Parameters
    ----------
    confidence, loss, weight : array of shape (n,)
        As in `failure_auroc`.

    Returns
    -------
    float
        In [0, 1]; **higher is better**; about the accuracy for a random order. NaN, with an
        `UndefinedMetricWarning`, when there are no successes.

    Raises
    ------
    ShapeError, DomainError
        As in `failure_auroc`.

    Notes
    -----
    Equal to scikit-learn's ``average_precision_score(1 - loss, confidence)``: a step function,
    no interpolation; samples of equal confidence share a threshold. Cost: one sort.

    References
    ----------
    .. [1] Hendrycks and Gimpel (2017), A baseline for detecting misclassified and
       out-of-distribution examples, section 2, https://arxiv.org/abs/1610.02136

    Examples
    --------
    >>> from abstain.metrics import failure_ap_success
    >>> round(failure_ap_success([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1]), 4)
    0.8333
    """
    s = _binary(confidence, loss, weight, "failure_ap_success")
    return value_of(_failure_ap_success(s), "failure_ap_success")


def _failure_ap_success(s: Scored) -> Measured:
    successes, failures = successes_failures(s)
    if missing := missing_kind(successes):
        return undefined(missing)
    return Measured(average_precision(successes, failures))


def failure_ap_error(
    confidence: AnyArray, loss: AnyArray, *, weight: AnyArray | None = None
) -> float:
    """Compute the average precision of the negated confidence at finding the failures.

    Answers: as I reject up to each failure in turn, how many of the rejected are failures on
    average?

    Parameters
    ----------
    confidence, loss, weight : array of shape (n,)
        As in `failure_auroc`.

    Returns
    -------
    float
        In [0, 1]; **higher is better**; about the error rate for a random order. NaN, with an
        `UndefinedMetricWarning`, when there are no failures.

    Raises
    ------
    ShapeError, DomainError
        As in `failure_auroc`.

    Notes
    -----
    Equal to scikit-learn's ``average_precision_score(loss, -confidence)``: a step function, no
    interpolation; samples of equal confidence share a threshold. Cost: one sort.

    References
    ----------
    .. [1] Hendrycks and Gimpel (2017), A baseline for detecting misclassified and
       out-of-distribution examples, section 2, https://arxiv.org/abs/1610.02136

    Examples
    --------
    >>> from abstain.metrics import failure_ap_error
    >>> round(failure_ap_error([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1]), 4)
    0.8333
    """
    s = _binary(confidence, loss, weight, "failure_ap_error")
    return value_of(_failure_ap_error(s), "failure_ap_error")


def _failure_ap_error(s: Scored) -> Measured:
    successes, failures = successes_failures(s)
    if missing := missing_kind(failures=failures):
        return undefined(missing)
    flip = s.groups.xp.flip
    return Measured(average_precision(flip(failures), flip(successes)))


def fpr_at_tpr(
    confidence: AnyArray, loss: AnyArray, *, tpr: float = 0.95, weight: AnyArray | None = None
) -> float:
    """Compute the share of failures accepted when a share `tpr` of the successes is.

    Answers: if I want to keep 95 % of the right predictions, which share of the wrong ones do I
    let through?

    Parameters
    ----------
    confidence, loss : array of shape (n,)
        As in `failure_auroc`.
    tpr : float, default=0.95
        The share of the successes to accept, in [0, 1].
    weight : array of shape (n,), optional
        Frequency weights: an integer weight counts a sample that many times.

    Returns
    -------
    float
        In [0, 1]; **lower is better**. NaN, with an `UndefinedMetricWarning`, when there are no
        failures or no successes.

    Raises
    ------
    ShapeError, DomainError
        As in `failure_auroc`; also if `tpr` is outside [0, 1].

    Notes
    -----
    Read at the first vertex of the failure ROC curve whose true positive rate reaches `tpr`;
    vertices are never interpolated, and samples of equal confidence share one. FD-Shifts accepts
    a true positive rate of 0.9495: pass ``tpr=0.9495`` for its numbers. Its ROC curve leaves out
    vertices inside straight stretches, so with ties it may read a later vertex. Cost: one sort.

    References
    ----------
    .. [1] Jaeger et al. (2023), A call to reflect on evaluation practices for failure detection
       in image classification, eq. 20-23, https://arxiv.org/abs/2211.15259

    Examples
    --------
    >>> from abstain.metrics import fpr_at_tpr
    >>> fpr_at_tpr([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1])
    0.5
    """
    s = _binary(confidence, loss, weight, "fpr_at_tpr")
    return value_of(_fpr_at_tpr(s, checks.fraction(tpr, "tpr")), "fpr_at_tpr")


def _fpr_at_tpr(s: Scored, tpr: float = 0.95) -> Measured:
    successes, failures = successes_failures(s)
    if missing := missing_kind(successes, failures):
        return undefined(missing)
    # The origin accepts nothing, which is enough for a rate of 0.
    xp = s.groups.xp
    accepted, silent = (from_zero(xp.cumulative_sum(x)) for x in (successes, failures))
    first = int(xp.count_nonzero(accepted / accepted[-1] < tpr - _ROUNDING))
    return Measured(float(silent[first] / silent[-1]), int(xp.sum(s.groups.count[:first])))


_NEEDS = frozenset({Need.BINARY_LOSS})

ENTRIES: tuple[Metric, ...] = (
    Metric(
        name="failure_auroc",
        title="failure AUROC",
        family="ranking",
        compute=_failure_auroc,
        lower_is_better=False,
        low=0.0,
        high=1.0,
        meaning="A success is more confident than a failure with probability {value}.",
        averages_ties=True,
        headline=5,
        source=_JAEGER.format("eq. 23"),
        needs=_NEEDS,
        gradients=frozenset(),
    ),
    Metric(
        name="failure_ap_success",
        title="average precision of successes",
        family="ranking",
        compute=_failure_ap_success,
        lower_is_better=False,
        low=0.0,
        high=1.0,
        meaning=(
            "Accepting down to each success in turn, {value} of the accepted are right on average."
        ),
        source="Hendrycks and Gimpel (2017), https://arxiv.org/abs/1610.02136",
        needs=_NEEDS,
        gradients=frozenset(),
    ),
    Metric(
        name="failure_ap_error",
        title="average precision of failures",
        family="ranking",
        compute=_failure_ap_error,
        lower_is_better=False,
        low=0.0,
        high=1.0,
        meaning="Rejecting up to each failure in turn, {value} of the rejected are failures.",
        source="Hendrycks and Gimpel (2017), https://arxiv.org/abs/1610.02136",
        needs=_NEEDS,
        gradients=frozenset(),
    ),
    Metric(
        name="fpr_at_95tpr",
        title="FPR at 95 % TPR",
        family="ranking",
        compute=_fpr_at_tpr,
        lower_is_better=True,
        low=0.0,
        high=1.0,
        meaning="Keeping 95 % of the successes lets {value} of the failures through.",
        source=_JAEGER.format("eq. 20-21"),
        needs=_NEEDS,
        convention="first vertex with a true positive rate of at least 0.95",
        gradients=frozenset(),
    ),
)
