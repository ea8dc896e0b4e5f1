"""Non-inferiority: the first method is worse than the second by less than a margin, or not."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from abstain._foundation import checks
from abstain.errors import DomainError
from abstain.inference.proportions import level_of


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
    """

    p_value: float
    bound: float
    margin: float
    non_inferior: bool
    level: float


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
        With p-value and bound; NaN, and not non-inferior, where the difference is NaN.

    Raises
    ------
    DomainError
        If `margin` is not above 0, the standard error is negative, or `level` is not between 0
        and 1.

    Notes
    -----
    Choose the margin before looking at the data. A relative margin is taken as known, although it
    comes from the same data; pass logarithms of ratios (the difference of the logs, its standard
    error, and log(1 + share) as the margin) to account for that.

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
    scale = 1.0 if relative_to is None else abs(checks.number(relative_to, "relative_to"))
    within = checks.fraction(margin, "margin", high=float("inf")) * scale
    if within <= 0:
        msg = f"the margin must be above 0 in units of the metric; got {within!r}"
        raise DomainError(msg)
    if standard_error < 0:
        msg = f"`standard_error` must not be negative; got {standard_error!r}"
        raise DomainError(msg)
    reach = float(ndtri(level_of(level))) * standard_error
    worse = difference if lower_is_better else -difference
    lead = worse - within
    p = float(ndtr(lead / standard_error)) if standard_error > 0 else float(lead >= 0)
    bound = worse + reach
    return NonInferiority(
        p_value=float("nan") if np.isnan(bound) else p,
        bound=bound if lower_is_better else -bound,
        margin=within,
        non_inferior=bool(bound < within),
        level=level,
    )
