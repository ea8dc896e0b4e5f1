"""How a cell of a confusion matrix looks: its place, color and number."""

import math


def last_column(k: int) -> tuple[float, float]:
    """Return left and right edge of the column of abstentions beside k classes, in cells.

    It stands apart, and is wide enough to be seen where cells are small.
    """
    left = k - 0.5 + 0.3 + k / 60
    return left, left + max(1.0, k / 40)


def mixed(color: str, share: float) -> tuple[float, float, float]:
    """Mix a color with white: a share of 0 is white, and a small one can still be seen."""
    from matplotlib.colors import to_rgb

    part = 0.0 if share <= 0 else 0.08 + 0.92 * min(share, 1.0)
    red, green, blue = (1 + part * (level - 1) for level in to_rgb(color))
    return red, green, blue


def short(value: float) -> str:
    """Write a count in full and a share with two digits.

    Examples
    --------
    >>> short(1234), short(0.123), short(0.0), short(0.001), short(float("nan"))
    ('1234', '.12', '0', '<.01', '–')
    """
    if isinstance(value, int) or float(value).is_integer():
        return str(int(value))
    if math.isnan(value):
        return "–"
    if abs(value) >= 10:
        return f"{value:.0f}"
    if value >= 1:
        return f"{value:.1f}"
    return "<.01" if value < 0.005 else ">.99" if value >= 0.995 else f"{value:.2f}"[1:]
