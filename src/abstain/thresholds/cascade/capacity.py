"""Conversion of a daily review capacity to the share of samples that people may review."""

from abstain._foundation import checks
from abstain._foundation.lazy_imports import special
from abstain.errors import DomainError, InputError
from abstain.thresholds import _choice


def daily_share(reviews: float, arrivals: int, *, overflow: float = 0.05) -> float:
    """Compute the largest share of reviewed samples that rarely exceeds the daily capacity.

    Answers: people can review 40 of the 400 cases of a day; which share may they get, so that on at
    most 5% of the days there are more than 40?

    Parameters
    ----------
    reviews : int
        Number of samples that people can review in a day, from 0 to `arrivals`.
    arrivals : int
        Largest number of samples that arrive in a day.
    overflow : float, default=0.05
        Share of days on which there may be more reviews, between 0 and 1.

    Returns
    -------
    float
        The share p with P(Bin(arrivals, p) > reviews) = overflow; 1 if people can review
        everything. Below reviews / arrivals for an overflow below a half.

    Raises
    ------
    InputError, DomainError
        If counts are not whole, there are more reviews than arrivals, or `overflow` is outside
        (0, 1).

    Notes
    -----
    The samples of a day are assumed to be independent, with the same probability of a review. A day
    with many difficult cases has more reviews, and a day with fewer arrivals has fewer. The share
    is a quantile of the beta distribution, as in `binomial_risk_bound`.

    Examples
    --------
    >>> from abstain.thresholds.cascade import daily_share
    >>> round(daily_share(40, 400), 4), round(daily_share(40, 400, overflow=0.001), 4)
    (0.0786, 0.0613)
    """
    arrivals = checks.positive_int(arrivals, "arrivals")
    if isinstance(reviews, bool) or reviews != int(checks.number(reviews, "reviews")):
        raise InputError(f"`reviews` must be a whole number; got {reviews!r}")
    if not 0 <= reviews <= arrivals:
        raise DomainError(f"`reviews` must lie in [0, arrivals = {arrivals}]; got {reviews!r}")
    hint = "It is the share of days on which there may be more reviews, such as 0.05."
    overflow = _choice.check_open_interval(overflow, "overflow", hint=hint)
    if reviews == arrivals:
        return 1.0
    return float(special.betaincinv(int(reviews) + 1.0, arrivals - int(reviews), overflow))


def overflow_probability(share: float, reviews: int, arrivals: int) -> float:
    """Return P(Bin(arrivals, share) > reviews): the share of days above the capacity."""
    if reviews >= arrivals:
        return 0.0
    return float(special.betainc(reviews + 1.0, arrivals - reviews, share))
