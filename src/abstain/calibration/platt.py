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
        Change of the log-odds per unit of the confidence. A slope of at most 0 means that accuracy
        does not increase with confidence.
    intercept : float
        Log-odds of a correct prediction at confidence 0.
    smooth : bool
        Whether the fit used Platt's smoothed targets.
    n : int
        Number of fitting samples.
    note : str
        Remark about the fit, or an empty string.

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
            Finite confidences by the same score as in the fit.

        Returns
        -------
        array of shape (n,)
            Probabilities in [0, 1] of type float64, with the library and device of the input.
            Log-odds above 36 are rounded to probability 1. Rank samples by the confidence instead.

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
        Finite confidences of held-out samples. Higher means more trusted. If your confidences are
        probabilities, pass their log-odds (``scipy.special.logit(p)``) to this function and to
        `Platt.apply`.
    loss : array of shape (n,)
        In [0, 1]; 1 for an error under 0/1 loss. With other losses, the map estimates one minus the
        expected loss.
    smooth : bool, default=True
        Whether to fit Platt's smoothed targets instead of 0 and 1. Let N+ and N- be the total
        weights of successes and failures. The smoothed target is (N+ + 1) / (N+ + 2) for successes
        and 1 / (N- + 2) for failures.
    weight : array of shape (n,), optional
        Frequency weights. A sample with an integer weight m counts as m samples.

    Returns
    -------
    Platt
        The fitted map. If the slope is not positive, `note` contains a warning.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a value is NaN or infinite, a loss is outside [0, 1], or a weight is negative. A
        DomainError is also raised if ``smooth=False`` and a threshold separates successes from
        failures, because the optimal map is then not finite.

    Notes
    -----
    Without smoothing, the fit is the unpenalized logistic regression of correctness on the
    confidence. Platt [1]_ proposed the smoothing, which the revised algorithm [2]_ retains. With
    smoothing, the map is finite even for separable data and for data without failures. For large
    numbers of successes and failures, smoothing has a negligible effect.

    Pass log-odds instead of probabilities, because a logistic map of log-odds can be the identity.
    A logistic map of probabilities changes even calibrated probabilities.

    The negative log-likelihood is minimized by Newton's method in a trust region. If all
    confidences are equal, the slope is 0. The cost is one sort and about ten passes over the
    distinct confidences.

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


def _note(slope: float, n_distinct: int) -> str:
    if n_distinct == 1:
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
    """Raise a DomainError if a threshold separates successes from failures."""
    successes = x[success_weight > 0]
    failures = x[failure_weight > 0]
    if failures.size == 0:
        reason = "there are no failures"
    elif successes.size == 0:
        reason = "there are no successes"
    else:
        is_overlapping = successes.min() < failures.max() and failures.min() < successes.max()
        if is_overlapping or x.size == 1:
            return
        reason = "a threshold separates successes from failures"
    raise DomainError(
        f"`confidence` has no finite logistic map on these data: {reason}. Use `smooth=True`, "
        "whose targets are not 0 or 1."
    )


def _fit_logistic(
    x: FloatArray, success_weight: FloatArray, groups: TieGroups, *, smooth: bool
) -> tuple[float, float]:
    """Return the slope and intercept of the logistic map with the largest likelihood."""
    weight_share = groups.weight / groups.total_weight
    target = _target_weight(success_weight, groups.loss, smooth=smooth) / groups.total_weight
    mean = float(target.sum())
    log_odds_of_mean = float(np.log(mean) - np.log1p(-mean))
    # Confidences of any scale and offset are standardized to [-1, 1].
    max_size = float(np.abs(x).max()) or 1.0
    scaled = x / max_size
    center = float(weight_share @ scaled)
    width = float(np.abs(scaled - center).max())
    if x.size == 1 or width == 0:
        return 0.0, log_odds_of_mean
    likelihood = _LogisticLikelihood((scaled - center) / width, weight_share, target)
    slope, intercept = likelihood.maximize(log_odds_of_mean)
    return slope / width / max_size, intercept - slope * (center / width)


def _target_weight(
    success_weight: FloatArray, failure_weight: FloatArray, *, smooth: bool
) -> FloatArray:
    """Return the sum of weight times target for each distinct confidence."""
    if not smooth:
        return success_weight
    n_successes = float(success_weight.sum())
    n_failures = float(failure_weight.sum())
    success_target = (n_successes + 1) / (n_successes + 2)
    failure_target = 1 / (n_failures + 2)
    return success_weight * success_target + failure_weight * failure_target


@dataclass(frozen=True, eq=False)
class _LogisticLikelihood:
    """The likelihood of a logistic map, as a function of its coefficients (slope, intercept)."""

    #: Standardized confidences, shape (g,).
    x: FloatArray
    #: Weight at each confidence, and weight times target, shape (g,). The total weight is 1.
    weight: FloatArray
    target: FloatArray

    def nll(self, coefficients: FloatArray) -> float:
        """Return the mean negative log-likelihood."""
        log_odds = coefficients[0] * self.x + coefficients[1]
        return float(self.weight @ np.logaddexp(0.0, log_odds) - self.target @ log_odds)

    def gradient(self, coefficients: FloatArray) -> FloatArray:
        """Return the gradient of the negative log-likelihood."""
        p = special.expit(coefficients[0] * self.x + coefficients[1])
        residual = self.weight * p - self.target
        return np.array([residual @ self.x, residual.sum()])

    def hessian(self, coefficients: FloatArray) -> FloatArray:
        """Return the Hessian matrix of the negative log-likelihood."""
        p = special.expit(coefficients[0] * self.x + coefficients[1])
        curvature = self.weight * p * (1 - p)
        mixed = curvature @ self.x
        return np.array([[curvature @ self.x**2, mixed], [mixed, curvature.sum()]])

    def maximize(self, start_intercept: float) -> tuple[float, float]:
        """Return the slope and intercept that maximize the likelihood."""
        from scipy.optimize import minimize, root

        start = np.array([0.0, start_intercept])
        # The optimum of nearly separable data is far from the start, so the trust region is large.
        result = minimize(
            self.nll,
            start,
            jac=self.gradient,
            hess=self.hessian,
            method="trust-exact",
            options={
                "gtol": 1e-9,
                "initial_trust_radius": 4.0,
                "max_trust_radius": 1e6,
                "maxiter": 500,
            },
        )
        # The root of the gradient is more accurate than the minimum of the flat objective.
        refined = root(self.gradient, result.x, jac=self.hessian, options={"xtol": 1e-15})
        refined_error = np.abs(self.gradient(refined.x)).max()
        is_better = refined_error < np.abs(self.gradient(result.x)).max()
        slope, intercept = refined.x if is_better else result.x
        return float(slope), float(intercept)
