"""Non-inferiority: the first method is worse than the second by less than a margin, or not."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from abstain._foundation import checks
from abstain.errors import DomainError
from abstain.inference.intervals import Difference, difference_from
from abstain.inference.proportions import level_of
from abstain.inference.small_samples import Failures
from abstain.typing import FloatArray, IntArray

#: Half of the central interval beyond which a one-sided bound of one half lies.
_NARROWEST = 1e-9


@dataclass(frozen=True)
class NonInferiority:
    """Whether the first method is worse than the second by less than a margin.

    Attributes
    ----------
    p_value : float
        One-sided, of "the first is worse by the margin or more".
    bound : float
        One-sided bound of the difference (first minus second) at the level: above it for a
        metric of which lower is better, below it otherwise.
    margin : float
        In units of the metric.
    non_inferior : bool
        Whether the bound lies within the margin.
    level : float
        Of the bound.
    note : str
        Why there is no bound, or what to be careful about, or empty.
    """

    p_value: float
    bound: float
    margin: float
    non_inferior: bool
    level: float
    note: str = ""


def non_inferiority(
    difference: float,
    standard_error: float,
    *,
    margin: float,
    lower_is_better: bool,
    relative_to: float | None = None,
    level: float = 0.95,
) -> NonInferiority:
    """Test that the first method is not worse than the second by a margin or more.

    Answers: is the cheaper method good enough?

    Parameters
    ----------
    difference : float
        First minus second.
    standard_error : float
        Of the difference, from paired influence functions or a paired bootstrap.
    margin : float
        The loss that is just not acceptable, above 0.
    lower_is_better : bool
        The direction of the metric.
    relative_to : float, optional
        The metric of the second method, when the margin is a share of it (0.1 for 10 %).
    level : float, default=0.95
        Of the one-sided bound; the test is at 1 - level.

    Returns
    -------
    NonInferiority
        With p-value and bound; NaN, and not non-inferior, where the difference is NaN or has no
        spread: that nothing varied is no proof.

    Raises
    ------
    DomainError
        If `margin` is not above 0, the standard error is negative, or `level` is not between 0
        and 1.

    Notes
    -----
    Choose the margin before looking at the data. The quantile is that of the normal law, too short
    for few failures: use `non_inferiority_from` where there are influences. A relative margin is
    taken as known, although it comes from the same data; pass logarithms of ratios (the difference
    of the logs, its standard error, and log(1 + share) as the margin) to account for that.

    References
    ----------
    .. [1] Piaggio et al. (2012), Reporting of noninferiority and equivalence randomized trials,
       https://doi.org/10.1001/jama.2012.87802

    Examples
    --------
    >>> from abstain.inference.non_inferiority import non_inferiority
    >>> found = non_inferiority(0.001, 0.001, margin=0.005, lower_is_better=True)
    >>> found.non_inferior, round(found.bound, 5), f"{found.p_value:.1e}"
    (True, 0.00264, '3.2e-05')
    """
    within = _margin(margin, relative_to)
    if standard_error < 0:
        msg = f"`standard_error` must not be negative; got {standard_error!r}"
        raise DomainError(msg)
    reach = float(ndtri(level_of(level))) * standard_error
    worse = difference if lower_is_better else -difference
    bound = worse + reach
    if not standard_error > 0 or np.isnan(bound):
        return _unknown(within, level, _NO_SPREAD if standard_error == 0 else "")
    return NonInferiority(
        p_value=float(ndtr((worse - within) / standard_error)),
        bound=bound if lower_is_better else -bound,
        margin=within,
        non_inferior=bool(bound < within),
        level=level,
    )


def non_inferiority_from(
    values: FloatArray | tuple[float, float],
    influences: FloatArray,
    *,
    margin: float,
    lower_is_better: bool,
    level: float = 0.95,
    failures: int | Failures | None = None,
    bounds: tuple[float, float] = (-float("inf"), float("inf")),
    weight: FloatArray | None = None,
    cluster: IntArray | None = None,
) -> NonInferiority:
    """Run the same test on the influences of the samples, which knows about few failures.

    Answers: is the cheaper method good enough, as far as these few failures tell?

    Parameters
    ----------
    values : array of shape (2,)
        The numbers of the method and of the reference.
    influences : ndarray of shape (n, 2)
        Of each sample on either.
    margin : float
        The loss that is just not acceptable, above 0, in units of the metric.
    lower_is_better : bool
        The direction of the metric.
    level : float, default=0.95
        Of the one-sided bound, at least one half; the test is at 1 - level.
    failures, bounds, weight, cluster
        As in `abstain.inference.intervals.difference_from`.

    Returns
    -------
    NonInferiority
        NaN with a note, and not non-inferior, where no sample varies. Two methods that are the
        same, sample by sample, are non-inferior to each other.

    Raises
    ------
    DomainError
        If `margin` is not above 0 or `level` is below one half or not below 1.

    Notes
    -----
    The one-sided test of `difference_from`, the method made better by the margin. One side is
    less well held than two together: at the margin, with 8 failures expected, the test at 5 %
    passed in 10 % (AUGRC, failure AUROC) to 14 % (AURC) of simulated studies, with 30 in 5 to 8 %;
    a normal quantile made that 14 to 20 % and 7 to 11 %.

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.inference.non_inferiority import non_inferiority_from
    >>> x = np.random.default_rng(0).normal(size=(100, 2))
    >>> found = non_inferiority_from((0.1, 0.1), x, margin=0.5, lower_is_better=True)
    >>> found.non_inferior, round(found.bound, 2)
    (True, 0.21)
    """
    within, level = _margin(margin, None), checks.fraction(level, "level", low=0.5)
    sign = 1.0 if lower_is_better else -1.0

    def compared(shift: float, reach: float) -> Difference:
        return difference_from(
            (float(values[0]) - shift, float(values[1])),
            influences,
            lower_is_better=lower_is_better,
            level=reach,
            failures=failures,
            bounds=bounds,
            weight=weight,
            cluster=cluster,
        )

    found = compared(sign * within, max(2 * level_of(level) - 1, _NARROWEST))
    if np.isnan(found.low):
        # No spread between the two: certain only if they are seen to be one and the same.
        same = compared(0.0, level)
        if same.low == same.high == 0.0:
            return NonInferiority(0.0, 0.0, within, non_inferior=True, level=level, note=same.note)
        return _unknown(within, level, same.note or found.note)
    p = 1.0 - found.superiority
    bound = (found.high if lower_is_better else found.low) + sign * within
    passed = bool(p < 1.0 - level)
    return NonInferiority(p, bound, within, non_inferior=passed, level=level, note=found.note)


_NO_SPREAD = "nothing varies, so that nothing is known about the difference"


def _unknown(margin: float, level: float, note: str) -> NonInferiority:
    nan = float("nan")
    return NonInferiority(nan, nan, margin, non_inferior=False, level=level, note=note)


def _margin(margin: float, relative_to: float | None) -> float:
    scale = 1.0 if relative_to is None else abs(checks.number(relative_to, "relative_to"))
    within = checks.fraction(margin, "margin", high=float("inf")) * scale
    if within <= 0:
        msg = f"the margin must be above 0 in units of the metric; got {within!r}"
        raise DomainError(msg)
    return within
