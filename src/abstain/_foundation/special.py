"""Harmonic numbers and log-factorials of real arguments, in any array library.

SciPy computes them for NumPy. Other libraries have no such functions in common; they get them
from the recurrence, which carries small arguments to where the asymptotic series are exact.
"""

from typing import Any

import numpy as np

from abstain._foundation.arrays import namespace
from abstain._foundation.lazy_imports import special
from abstain.typing import AnyArray, FloatArray

#: From this argument on the series are exact to the last digits.
SERIES_FROM = 32


def harmonic(x: AnyArray) -> Any:
    """H_x for real x >= 0."""
    if isinstance(x, np.ndarray):
        return special.digamma(x + 1.0) + np.euler_gamma
    if isinstance(x, float):
        return float(special.digamma(x + 1.0)) + np.euler_gamma
    xp, far = namespace(x), x + float(SERIES_FROM)
    out = xp.log(far) + float(np.euler_gamma) + harmonic_tail(far)
    for step in range(SERIES_FROM, 0, -1):
        out = out - 1.0 / (x + float(step))
    return out


def harmonic_between(a: AnyArray, b: AnyArray) -> AnyArray:
    """H_b - H_a for arrays that never fall, without cancellation for large a."""
    xp = namespace(a)
    cut = first_of_series(a)
    near = harmonic(b[:cut]) - harmonic(a[:cut])
    x, y = a[cut:], b[cut:]
    far = xp.log1p((y - x) / x) + harmonic_tail(y) - harmonic_tail(x)
    return xp.concat((near, far))


def inverse_squares_between(a: FloatArray, b: FloatArray) -> FloatArray:
    """Sum of 1/k^2 over k from a + 1 to b, for arrays that never fall."""
    # Three terms of the series; the fourth is below the last digit from here on.
    cut = int(np.count_nonzero(a < 512))
    near = special.polygamma(1, a[:cut] + 1.0) - special.polygamma(1, b[:cut] + 1.0)
    x, y = a[cut:] + 0.5, b[cut:] + 0.5
    u, v = 1.0 / x, 1.0 / y
    # 1/x - 1/(12 x^3) + 7/(240 x^5), differenced by hand: the terms are close together.
    squares = u * u + u * v + v * v
    fourths = squares * squares - u * v * (u + v) ** 2
    far = (y - x) * u * v * (1.0 - squares / 12 + fourths * (7 / 240))
    return np.concatenate((near, far))


def curvature_between(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Sum of t = 1/(k^2 (k^2 - 1)) over k from a + 1 to b - 1, and of (k - a) t; a from 64 up.

    What a vertex of a hyperbola 1/k weighs, less what it takes from its neighbors.
    """
    x, y = a + 0.5, np.maximum(b - 0.5, a + 0.5)
    # Up to parts in 10^8 of a number that is one part in 10^5 of those it is added to.
    whole = (1 / x**3 - 1 / y**3) / 3 + (1 / x**5 - 1 / y**5) / 30
    moment = (1 / (a * (a + 1)) - 1 / (b * (b - 1))) / 2 - a * whole
    return whole, moment


def first_of_series(a: AnyArray) -> int:
    """Return where the entries, which never fall, are so large that the series are exact."""
    return int(namespace(a).count_nonzero(a < SERIES_FROM))


def log_factorial(x: AnyArray) -> Any:
    """Ln Gamma(x + 1) for real x >= 0."""
    if isinstance(x, np.ndarray):
        return special.gammaln(x + 1.0)
    xp, far = namespace(x), x + float(SERIES_FROM)
    out = (far + 0.5) * xp.log(far) - far + 0.5 * float(np.log(2 * np.pi)) + stirling_tail(far)
    for step in range(SERIES_FROM, 0, -1):
        out = out - xp.log(x + float(step))
    return out


def harmonic_tail(x: AnyArray) -> Any:
    """H_x - ln x - gamma for x >= 32."""
    v = 1.0 / (x * x)
    return 0.5 / x - v * (1 / 12 - v * (1 / 120 - v * (1 / 252 - v / 240)))


def stirling_tail(x: AnyArray) -> Any:
    """Ln Gamma(x + 1) - (x + 1/2) ln x + x - ln(2 pi)/2 for x >= 32."""
    v = 1.0 / (x * x)
    return (1 / 12 - v * (1 / 360 - v / 1260)) / x
