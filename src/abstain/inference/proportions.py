"""Intervals for a proportion: exact (Clopper-Pearson) and by the score test (Wilson)."""

import numpy as np

from abstain._foundation import checks
from abstain._foundation.imports import special
from abstain.errors import DomainError
from abstain.inference.intervals import Interval, level_of


def clopper_pearson(successes: float, n: float, *, level: float = 0.95) -> Interval:
    """Compute the exact (Clopper-Pearson) interval of a proportion.

    Answers: which proportions would not make this count surprising, guaranteed?

    Parameters
    ----------
    successes : float
        How many of the n; need not be whole when `n` is an effective number.
    n : float
        How many in all, or their effective number (see `effective_count`).
    level : float, default=0.95
        The interval holds the true proportion at least that often.

    Returns
    -------
    Interval
        Within [0, 1]; never shorter than it needs to be at the level, often longer.

    Raises
    ------
    DomainError
        If not 0 <= successes <= n with n > 0, or `level` is not between 0 and 1.

    References
    ----------
    .. [1] Clopper and Pearson (1934), The use of confidence or fiducial limits,
       https://doi.org/10.1093/biomet/26.4.404

    Examples
    --------
    >>> from abstain.inference.proportions import clopper_pearson
    >>> interval = clopper_pearson(0, 100)
    >>> round(interval.low, 4), round(interval.high, 4)
    (0.0, 0.0362)
    """
    k, n, tail = _checked(successes, n, level)
    low = float(special.betaincinv(k, n - k + 1, tail)) if k > 0 else 0.0
    high = float(special.betaincinv(k + 1, n - k, 1 - tail)) if k < n else 1.0
    return Interval(low, high, level, "Clopper-Pearson", float(np.sqrt(k / n * (1 - k / n) / n)))


def wilson(successes: float, n: float, *, level: float = 0.95) -> Interval:
    """Compute the Wilson score interval of a proportion.

    Answers: which proportions would not make this count surprising, by the score test?

    Parameters
    ----------
    successes, n : float
        As in `clopper_pearson`.
    level : float, default=0.95
        The interval holds the true proportion that often on average over proportions.

    Returns
    -------
    Interval
        Within [0, 1].

    Raises
    ------
    DomainError
        As in `clopper_pearson`.

    References
    ----------
    .. [1] Wilson (1927), Probable inference, the law of succession, and statistical inference,
       https://doi.org/10.1080/01621459.1927.10502953

    Examples
    --------
    >>> from abstain.inference.proportions import wilson
    >>> interval = wilson(5, 100)
    >>> round(interval.low, 4), round(interval.high, 4)
    (0.0215, 0.1118)
    """
    k, n, tail = _checked(successes, n, level)
    z2 = float(special.ndtri(tail)) ** 2
    p = k / n
    # Wilson's formula times n / n: an effective n may be so small that n * n is 0.
    center = (k + z2 / 2) / (n + z2)
    half = float(np.sqrt(z2 * (k * (1 - p) + z2 / 4))) / (n + z2)
    # At the ends the two terms are equal but for their rounding.
    low = 0.0 if k <= 0 else max(0.0, center - half)
    high = 1.0 if k >= n else min(1.0, center + half)
    return Interval(low, high, level, "Wilson", float(np.sqrt(p * (1 - p) / n)))


def effective_count(proportion: float, standard_error: float) -> float:
    """Return how many independent equal samples would give this standard error.

    For weighted or clustered samples: Clopper-Pearson and Wilson then take this number instead of
    n, and the proportion times it instead of the count.
    """
    return proportion * (1 - proportion) / standard_error**2


def _checked(successes: float, n: float, level: float) -> tuple[float, float, float]:
    total = checks.fraction(n, "n", high=float("inf"))
    if total <= 0:
        raise DomainError(f"`n` must be above 0; got {n!r}")
    return checks.fraction(successes, "successes", high=total), total, (1 - level_of(level)) / 2
