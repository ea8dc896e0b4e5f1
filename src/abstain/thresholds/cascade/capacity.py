"""From what people can do in a day to the share of the samples that may be theirs."""

from abstain._foundation import checks
from abstain._foundation.lazy_imports import special
from abstain.errors import DomainError, InputError
from abstain.thresholds import _choice


def daily_share(reviews: float, arrivals: int, *, overflow: float = 0.05) -> float:
    """Compute the largest share of samples sent to people that keeps nearly every day in reach.

    Answers: people can look at 40 of the 400 cases of a day; which share may be sent to them, so
    that on at most one day in twenty there are more than 40?

    Parameters
    ----------
    reviews : int
        A whole number: how many people can look at in a day, from 0 to `arrivals`.
    arrivals : int
        How many samples arrive in a day, at most.
    overflow : float, default=0.05
        The share of days on which there may be more, between 0 and 1.

    Returns
    -------
    float
        The share p with P(Bin(arrivals, p) > reviews) = overflow; 1 where people can look at all.
        Below reviews / arrivals for an overflow below a half.

    Raises
    ------
    InputError, DomainError
        Counts that are not whole, or more reviews than arrivals; `overflow` outside (0, 1).

    Notes
    -----
    The samples of a day are taken to be independent of each other, each sent on with the same
    chance: a day of one hard kind of case has more. On a day with fewer arrivals there are fewer
    reviews. The share is a quantile of the beta distribution, as in `binomial_risk_bound`.

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
    hint = "It is the share of days on which there may be more: 0.05, say."
    overflow = _choice.check_open_interval(overflow, "overflow", hint=hint)
    if reviews == arrivals:
        return 1.0
    return float(special.betaincinv(int(reviews) + 1.0, arrivals - int(reviews), overflow))


def overflow_probability(share: float, reviews: int, arrivals: int) -> float:
    """Return P(Bin(arrivals, share) > reviews): the share of days with more than people can do."""
    if reviews >= arrivals:
        return 0.0
    return float(special.betainc(reviews + 1.0, arrivals - reviews, share))
