"""Confidence sequences: intervals of a mean that hold at every moment at once."""

from typing import Final

import numpy as np

from abstain._foundation import checks
from abstain._foundation.lazy_imports import special
from abstain.errors import DomainError
from abstain.inference.intervals import Interval, level_of
from abstain.typing import AnyArray, FloatArray

#: Halvings of the distance between an end and the mean: to the last bit.
_HALVINGS: Final = 64


def anytime_interval(
    total: AnyArray, n: AnyArray, *, level: float = 0.95, prior: tuple[float, float] = (0.5, 0.5)
) -> Interval:
    """Compute where the mean of values in [0, 1] may lie, however often one looks.

    Answers: what is the risk so far, if I am free to look after every label and to stop when I
    like?

    Parameters
    ----------
    total : float
        The sum of the values: for 0/1 losses the number of failures.
    n : float
        How many values there are.
    level : float, default=0.95
        With at least this chance *all* intervals, at every n, hold the mean.
    prior : tuple of float
        Of the beta mixture: where the mean is thought to be does not matter to the level.

    Returns
    -------
    Interval
        Within [0, 1], and all of it without data. Wider than one for a single look, by about a
        half at 1,000 values.

    Raises
    ------
    DomainError
        If not 0 <= total <= n, or `level` is not between 0 and 1.

    Notes
    -----
    The means that a mixture of bets does not refute: for each m the likelihood ratio of the coin m
    against coins drawn from the beta prior is a martingale [1]_, and it has a closed form. For
    values between 0 and 1 it is below the capital of the same bets, as log is concave, so the
    interval still holds, and is longer than it would need to be [2]_. It depends on the values by
    their sum alone, not on their order.

    References
    ----------
    .. [1] Robbins (1970), Statistical methods related to the law of the iterated logarithm,
       https://doi.org/10.1214/aoms/1177696786
    .. [2] Waudby-Smith and Ramdas (2024), Estimating means of bounded random variables by betting,
       https://arxiv.org/abs/2010.09686

    Examples
    --------
    >>> from abstain.inference.confidence_sequence import anytime_interval
    >>> interval = anytime_interval(5, 100)
    >>> round(interval.low, 4), round(interval.high, 4)
    (0.0071, 0.1558)
    """
    low, high = anytime_limits(total, n, level=level, prior=prior)
    return Interval(float(low), float(high), level, "confidence sequence, beta mixture of bets")


def anytime_limits(
    total: AnyArray, n: AnyArray, *, level: float = 0.95, prior: tuple[float, float] = (0.5, 0.5)
) -> tuple[FloatArray, FloatArray]:
    """Return the ends of `anytime_interval` for many sums at once; the arguments are its own."""
    k, size = np.broadcast_arrays(np.asarray(total, np.float64), np.asarray(n, np.float64))
    a, b = (checks.positive(x, "prior") for x in prior)
    bad = ~((k >= 0) & (k <= size))
    if bad.any():
        raise DomainError(
            f"`total` must lie between 0 and `n`; got {k[bad].flat[0]:g} of {size[bad].flat[0]:g}"
        )
    won = special.betaln(a + k, b + size - k) - special.betaln(a, b)
    least = np.log(1 - level_of(level))

    def kept(m: FloatArray) -> FloatArray:
        """Whether the bets against m have not won."""
        refuted = won - special.xlogy(k, m) - special.xlog1py(size - k, -m)
        return np.asarray(refuted < -least)

    mean = k / np.maximum(size, 1e-300)
    ends = []
    for end in (0.0, 1.0):
        out, inside = np.full(k.shape, end), mean.copy()
        for _ in range(_HALVINGS):
            middle = (out + inside) / 2
            holds = kept(middle)
            out, inside = np.where(holds, out, middle), np.where(holds, middle, inside)
        # An end of the range is inside where no data are against it.
        ends.append(np.where(kept(np.full(k.shape, end)), end, inside))
    return ends[0], ends[1]
