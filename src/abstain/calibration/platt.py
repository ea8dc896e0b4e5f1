"""Platt scaling, a logistic map from a confidence to the probability of a correct prediction."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import as_array_like
from abstain._foundation.lazy_imports import special
from abstain._foundation.records import Number, PositiveInt
from abstain._foundation.tie_groups import TieGroups
from abstain.calibration.state import Calibration, validate_outcomes
from abstain.errors import DomainError
from abstain.typing import AnyArray, FloatArray


@dataclass(frozen=True)
class Platt(Calibration):
    """A fitted logistic map P(correct) = 1 / (1 + exp(-(slope x + intercept))).

    Attributes
    ----------
    slope : float
        Change of the log-odds per unit of the confidence. The slope is at most 0 if higher
        confidences are not more often correct.
    intercept : float
        Log-odds of a correct prediction at confidence 0.
    smooth : bool
        Whether the fit used Platt's smoothed targets.
    n : int
        Number of fitting samples.
    note : str
        Remark about the fit, or empty.

    Examples
    --------
    >>> from abstain.calibration import Platt
    >>> Platt(slope=2.0, intercept=-1.0, smooth=True, n=100).apply([0.5, 2.0]).round(4).tolist()
    [0.5, 0.9526]
    """

    kind: ClassVar[str] = "platt"

    slope: Number
    intercept: Number
    smooth: bool
    n: PositiveInt
    note: str = ""

    def apply(self, confidence: AnyArray, /) -> AnyArray:
        """Return the calibrated probabilities of a correct prediction.

        Parameters
        ----------
        confidence : array of shape (n,)
            The score that the curve was fitted on, as any finite numbers.

        Returns
        -------
        array of shape (n,)
            Probabilities in [0, 1] of type float64, with the library and device of the input. The
            probability of log-odds above 36 is rounded to exactly 1, so rank samples by the
            confidence and not by this probability.

        Raises
        ------
        ShapeError, DomainError
            If the input is not a finite vector.

        Examples
        --------
        >>> from abstain.calibration import Platt
        >>> state = Platt(slope=2.0, intercept=-1.0, smooth=True, n=100)
        >>> state.apply([0.5, 2.0]).round(4).tolist()
        [0.5, 0.9526]
        """
        x = checks.confidence(confidence).astype(np.float64)
        with np.errstate(over="ignore"):
            log_odds = self.slope * x + self.intercept
        return as_array_like(np.asarray(special.expit(log_odds)), confidence)


def fit_platt(
    confidence: AnyArray,
    loss: AnyArray,
    *,
    smooth: bool = True,
    weight: AnyArray | None = None,
) -> Platt:
    """Fit a logistic map from a confidence to the probability of a correct prediction.

    Answers: how large is the probability of a correct prediction at this confidence, if its
    log-odds are linear in the confidence?

    Parameters
    ----------
    confidence : array of shape (n,)
        Confidences of held-out samples, as any finite numbers. Higher means more trusted. The
        function does not transform the confidences. For probabilities, pass their log-odds
        (``scipy.special.logit(p)``) to this function and to `Platt.apply`, as `abstain.calibrate`
        does.
    loss : array of shape (n,)
        In [0, 1]; 1 for an error under 0/1 loss. For other losses, the map estimates one minus the
        expected loss.
    smooth : bool, default=True
        Whether to fit Platt's smoothed targets instead of 0 and 1. The smoothed target is (N+ + 1)
        / (N+ + 2) for successes and 1 / (N- + 2) for failures, where N+ and N- are the weights of
        successes and failures.
    weight : array of shape (n,), optional
        Frequency weights. A sample with an integer weight m counts as m samples.

    Returns
    -------
    Platt
        The fitted map. If the slope is not above 0, `note` contains a warning.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a value is NaN or infinite, a loss is outside [0, 1], or a weight is negative. Also if
        ``smooth=False`` and a threshold separates successes from failures, because no finite map is
        then optimal.

    Notes
    -----
    Without smoothing, the fit is the unpenalized logistic regression of correctness on the
    confidence. As in Platt (1999), the confidence is a score on any scale. The function does not
    inspect whether the values are probabilities. A logistic curve of a probability cannot be the
    identity, so it changes a confidence that is already calibrated. A logistic curve of log-odds
    can leave a calibrated confidence unchanged. Platt proposed smoothing, which is also part of the
    revised algorithm [2]_. Smoothing is the default because the map is then finite for separable
    data and without failures. With many successes and failures, its effect is negligible. The
    optimizer is Newton's method in a trust region on standardized confidences, and the objective is
    strictly convex. The slope for a constant confidence is 0. The cost is one sort and about ten
    passes over the distinct confidences.

    References
    ----------
    .. [1] Platt (1999), Probabilistic outputs for support vector machines and comparisons to
       regularized likelihood methods, section 2.1.
    .. [2] Lin, Lin and Weng (2007), A note on Platt's probabilistic outputs for support vector
       machines, Machine Learning 68, section 2, https://doi.org/10.1007/s10994-007-5018-6

    Examples
    --------
    >>> from abstain.calibration import fit_platt
    >>> state = fit_platt([-3.0, -1.0, 0.0, 2.0, 5.0, 7.0], [1, 1, 0, 1, 0, 0])
    >>> state.apply([-3.0, 7.0]).round(3).tolist()
    [0.23, 0.804]
    """
    groups = validate_outcomes(confidence, loss, weight).groups
    success_weight = np.clip(groups.weight - groups.loss, 0.0, None)
    x = groups.confidence.astype(np.float64)
    if not smooth:
        _reject_separable(x, success_weight, groups.loss)
    slope, intercept = _fit_logistic(x, success_weight, groups, smooth=smooth)
    for name, value in (("slope", slope), ("intercept", intercept)):
        if not np.isfinite(value):
            raise DomainError(f"`{name}` must be finite; got {value!r}. Rescale the confidence.")
    return Platt(
        slope=slope,
        intercept=intercept,
        smooth=bool(smooth),
        n=groups.n_samples,
        note=_note(slope, x.size),
    )


def _note(slope: float, distinct: int) -> str:
    if distinct == 1:
        return "all confidences are equal, so the probability is the same for every sample"
    if slope > 0:
        return ""
    return (
        f"the slope is {slope:.3g}, not above 0: higher confidences are not more often correct. If "
        "the score is an uncertainty, negate it"
    )


def _reject_separable(
    x: FloatArray, success_weight: FloatArray, failure_weight: FloatArray
) -> None:
    """Raise DomainError if a threshold separates the targets, which requires an infinite slope."""
    confidence_of_successes, confidence_of_failures = x[success_weight > 0], x[failure_weight > 0]
    if confidence_of_successes.size and confidence_of_failures.size:
        if x.size == 1:
            return
        if (
            confidence_of_successes.min() < confidence_of_failures.max()
            and confidence_of_failures.min() < confidence_of_successes.max()
        ):
            return
        reason = "a threshold separates successes from failures"
    else:
        reason = (
            "there are no failures" if confidence_of_successes.size else "there are no successes"
        )
    raise DomainError(
        f"`confidence` has no finite logistic map on these data: {reason}. Use `smooth=True`, "
        "whose targets are not 0 or 1."
    )


def _fit_logistic(
    x: FloatArray, success_weight: FloatArray, groups: TieGroups, *, smooth: bool
) -> tuple[float, float]:
    """Return the slope and the intercept of the best logistic map."""
    total = groups.total_weight
    weight_share = groups.weight / total
    target = success_weight / total
    if smooth:
        n_successes, n_failures = float(success_weight.sum()), float(groups.loss.sum())
        success_target = (n_successes + 1) / (n_successes + 2)
        failure_target = 1 / (n_failures + 2)
        target = (success_weight * success_target + groups.loss * failure_target) / total
    mean = float(target.sum())
    log_odds_of_mean = float(np.log(mean) - np.log1p(-mean))
    # Confidences of any scale and offset are standardized to [-1, 1].
    max_size = float(np.abs(x).max()) or 1.0
    scaled = x / max_size
    center = float(weight_share @ scaled)
    width = float(np.abs(scaled - center).max())
    if x.size == 1 or width == 0:
        return 0.0, log_odds_of_mean
    slope, intercept = _minimize_nll(
        (scaled - center) / width, weight_share, target, log_odds_of_mean
    )
    return slope / width / max_size, intercept - slope * (center / width)


def _minimize_nll(
    standardized: FloatArray, weight_share: FloatArray, target: FloatArray, start_intercept: float
) -> tuple[float, float]:
    """Return the slope and intercept that minimize the negative log-likelihood."""
    from scipy.optimize import minimize, root

    def nll(at: FloatArray) -> float:
        eta = at[0] * standardized + at[1]
        return float(weight_share @ np.logaddexp(0.0, eta) - target @ eta)

    def gradient(at: FloatArray) -> FloatArray:
        residual = weight_share * special.expit(at[0] * standardized + at[1]) - target
        return np.array([residual @ standardized, residual.sum()])

    def hessian(at: FloatArray) -> FloatArray:
        p = special.expit(at[0] * standardized + at[1])
        curvature = weight_share * p * (1 - p)
        cross = curvature @ standardized
        return np.array([[curvature @ standardized**2, cross], [cross, curvature.sum()]])

    start = np.array([0.0, start_intercept])
    # The trust region is large, because the minimum of nearly separable data is far from the start.
    options = {"gtol": 1e-9, "initial_trust_radius": 4.0, "max_trust_radius": 1e6, "maxiter": 500}
    minimum = minimize(
        nll, start, jac=gradient, hess=hessian, method="trust-exact", options=options
    ).x
    # The root of the gradient is more accurate than the minimum of the flat objective.
    refined = root(gradient, minimum, jac=hessian, options={"xtol": 1e-15}).x
    if np.abs(gradient(refined)).max() < np.abs(gradient(minimum)).max():
        minimum = refined
    return float(minimum[0]), float(minimum[1])
