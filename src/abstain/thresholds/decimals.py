"""Round thresholds to few digits so that they accept the same samples."""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from typing import Final

#: Largest number of decimals of a displayed threshold.
MAX_DECIMALS: Final = 12
#: Numbers of this size have no decimals.
_MAX_SIZE: Final = 1e15


def shortest_decimal(
    threshold: float, *, rejected: float, accepted: float, min_decimals: int = 0
) -> str:
    """Return the decimal with the fewest digits that separates two numbers.

    Parameters
    ----------
    threshold : float
        The exact threshold. Decimals above the threshold are preferred.
    rejected, accepted : float
        Bounds of the decimal, which is above `rejected` and at most `accepted`. They may be
        infinite.
    min_decimals : int, default=0
        Minimum number of digits after the point.

    Returns
    -------
    str
        The decimal, or an empty text if it requires more than 12 digits after the point.

    Examples
    --------
    >>> shortest_decimal(0.92017, rejected=0.9196, accepted=0.92017, min_decimals=3)
    '0.920'
    >>> shortest_decimal(0.92017, rejected=0.92012, accepted=0.92017, min_decimals=3)
    '0.92017'
    >>> shortest_decimal(0.92017, rejected=0.0, accepted=1.0, min_decimals=3)
    '0.921'
    """
    if abs(threshold) >= _MAX_SIZE:
        return ""
    low, high = Decimal(rejected), Decimal(accepted)
    for decimals in range(min_decimals, MAX_DECIMALS + 1):
        # Rounding up is first, because it accepts no other samples.
        for rounding in (ROUND_CEILING, ROUND_FLOOR):
            candidate = _round(threshold, decimals, rounding)
            if low < candidate <= high:
                return f"{candidate:f}"
    return ""


def _round(number: float, decimals: int, rounding: str) -> Decimal:
    with localcontext(prec=40):
        return Decimal(number).quantize(Decimal(1).scaleb(-decimals), rounding)


def round_probability_up(probability: float, n_digits: int = 4) -> str:
    """Round a probability up to few digits, so that it accepts no additional samples.

    `n_digits` is the number of significant digits of the distance to 1.

    Examples
    --------
    >>> round_probability_up(0.880797), round_probability_up(0.9999912345)
    ('0.8808', '0.999991235')
    """
    distance = 1 - probability
    if distance <= 0:
        return "1"
    decimals = n_digits - 1 - math.floor(math.log10(distance))
    return f"{_round(probability, max(decimals, 3), ROUND_CEILING):f}"
