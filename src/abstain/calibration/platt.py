"""Platt scaling: a logistic curve from any confidence to the probability of being right."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import as_array_like
from abstain._foundation.lazy_imports import special
from abstain._foundation.records import Number, PositiveInt
from abstain._foundation.tie_groups import TieGroups
from abstain.calibration.state import Calibration, right_or_wrong
from abstain.errors import DomainError
from abstain.typing import AnyArray, FloatArray


@dataclass(frozen=True)
class Platt(Calibration):
    """A fitted logistic curve: probability of being right = 1 / (1 + exp(-(slope x + intercept))).

    Attributes
    ----------
    slope : float
        Per unit of the confidence; not above 0 when the confidence ranks the wrong way.
    intercept : float
        Log-odds of being right at confidence 0.
    smooth : bool
        Whether it was fitted to Platt's smoothed targets.
    n : int
        Samples it was fitted on.
    note : str
        What to know about the fit, or empty.

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
        """Return the calibrated probabilities of being right.

        Parameters
        ----------
        confidence : array of shape (n,)
            The score that the curve was fitted on, any finite numbers.

        Returns
        -------
        array of shape (n,)
            In [0, 1], float64, of the caller's kind and on its device. Log-odds above 36 round
            to exactly 1: rank by the confidence, not by this.

        Raises
        ------
        ShapeError, DomainError
            Not a finite vector.

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
    """Fit a logistic curve from a confidence on any scale to the probability of being right.

    Answers: how likely is an answer of this confidence right, if its log-odds are linear in the
    confidence?

    Parameters
    ----------
    confidence : array of shape (n,)
        Of held-out samples; any finite numbers, higher is more trusted. The curve is fitted to
        these numbers as they are. For probabilities, pass their log-odds
        (``scipy.special.logit(p)``) here and to `Platt.apply`, as `abstain.calibrate` does.
    loss : array of shape (n,)
        In [0, 1]; 1 for an error under 0/1 loss. Of a graded loss, one minus its expectation
        takes the place of the probability of being right.
    smooth : bool, default=True
        Fit Platt's smoothed targets instead of 0 and 1: (N+ + 1) / (N+ + 2) for the right and
        1 / (N- + 2) for the wrong, with N+ and N- the numbers (weights) of each.
    weight : array of shape (n,), optional
        Frequency weights: an integer weight counts a sample that many times.

    Returns
    -------
    Platt
        The frozen state. A slope that is not above 0 is kept and said in `note`.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a value is NaN or infinite, a loss is outside [0, 1], a weight is negative, or, with
        ``smooth=False``, a threshold separates right from wrong, so that no finite curve is best.

    Notes
    -----
    Without smoothing this is the unpenalized logistic regression of correctness on the
    confidence. As in Platt (1999), the confidence is a score on any scale. Values are never
    inspected to find out whether they are probabilities: a logistic curve of a probability can
    never be the identity, so it changes a confidence that is calibrated already, and one of its
    log-odds can leave it as it is. Smoothing is Platt's proposal, kept by those who revised his
    algorithm. It is the
    default because the curve then stays finite on separable data and when all are right; with
    many samples of both kinds it changes nothing that matters. Newton's method in a trust region
    on standardized confidences; the objective is strictly convex. Ties do not matter. A constant
    confidence has slope 0. Cost: one sort, then about ten passes over the distinct confidences.

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
    groups = right_or_wrong(confidence, loss, weight).groups
    right = np.clip(groups.weight - groups.loss, 0.0, None)
    x = groups.confidence.astype(np.float64)
    if not smooth:
        _refuse_separable(x, right, groups.loss)
    slope, intercept = _logistic(x, right, groups, smooth=smooth)
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
        return "all confidences are equal: the probability is the same for every sample"
    if slope > 0:
        return ""
    return (
        f"the slope is {slope:.3g}, not above 0: higher confidences are not more often right, so "
        "the score ranks the wrong way here. If it is an uncertainty, negate it"
    )


def _refuse_separable(x: FloatArray, right: FloatArray, wrong: FloatArray) -> None:
    """Refuse targets 0 and 1 that a threshold separates: the best slope would be infinite."""
    of_right, of_wrong = x[right > 0], x[wrong > 0]
    if of_right.size and of_wrong.size:
        if x.size == 1:
            return
        if of_right.min() < of_wrong.max() and of_wrong.min() < of_right.max():
            return
        found = "a threshold separates right from wrong"
    else:
        found = "all samples are right" if of_right.size else "all samples are wrong"
    raise DomainError(
        f"`confidence` has no finite logistic curve on these data: {found}. Keep `smooth=True`, "
        "whose targets stay off 0 and 1."
    )


def _logistic(
    x: FloatArray, right: FloatArray, groups: TieGroups, *, smooth: bool
) -> tuple[float, float]:
    """Return slope and intercept of the best logistic curve."""
    total = groups.total_weight
    share, target = groups.weight / total, right / total
    if smooth:
        n_right, n_wrong = float(right.sum()), float(groups.loss.sum())
        target = (
            right * ((n_right + 1) / (n_right + 2)) + groups.loss * (1 / (n_wrong + 2))
        ) / total
    mean = float(target.sum())
    base = float(np.log(mean) - np.log1p(-mean))
    # Confidences of any size and offset become numbers in [-1, 1] around 0.
    size = float(np.abs(x).max()) or 1.0
    unit = x / size
    center = float(share @ unit)
    width = float(np.abs(unit - center).max())
    if x.size == 1 or width == 0:
        return 0.0, base
    a, b = _newton((unit - center) / width, share, target, base)
    return a / width / size, b - a * (center / width)


def _newton(
    v: FloatArray, share: FloatArray, target: FloatArray, base: float
) -> tuple[float, float]:
    from scipy.optimize import minimize, root

    def nll(at: FloatArray) -> float:
        eta = at[0] * v + at[1]
        return float(share @ np.logaddexp(0.0, eta) - target @ eta)

    def gradient(at: FloatArray) -> FloatArray:
        rest = share * special.expit(at[0] * v + at[1]) - target
        return np.array([rest @ v, rest.sum()])

    def hessian(at: FloatArray) -> FloatArray:
        p = special.expit(at[0] * v + at[1])
        curvature = share * p * (1 - p)
        cross = curvature @ v
        return np.array([[curvature @ v**2, cross], [cross, curvature.sum()]])

    start = np.array([0.0, base])
    # Steps are as long as the model of second order allows: separable data lie far out.
    wide = {"gtol": 1e-9, "initial_trust_radius": 4.0, "max_trust_radius": 1e6, "maxiter": 500}
    found = minimize(nll, start, jac=gradient, hess=hessian, method="trust-exact", options=wide).x
    # The value of a minimum is flat: the last digits come from the root of the derivative.
    closer = root(gradient, found, jac=hessian, options={"xtol": 1e-15}).x
    if np.abs(gradient(closer)).max() < np.abs(gradient(found)).max():
        found = closer
    return float(found[0]), float(found[1])
