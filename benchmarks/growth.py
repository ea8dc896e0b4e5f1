"""How fast costs grow with sizes."""

from collections.abc import Sequence

import numpy as np


def exponents(sizes: Sequence[float], costs: Sequence[float]) -> tuple[float, float]:
    """Return the slope of log cost over log size: fitted to all, and of the two largest sizes."""
    if len(sizes) < 2:
        return float("nan"), float("nan")
    order = np.argsort(sizes)
    x, y = np.log(np.asarray(sizes, float)[order]), np.log(np.asarray(costs, float)[order])
    slope = np.polyfit(x, y, 1)[0]
    return float(slope), float((y[-1] - y[-2]) / (x[-1] - x[-2]))
