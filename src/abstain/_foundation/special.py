"""Harmonic numbers and log-factorials of real arguments, for arrays of any library.

For NumPy arrays, the functions call SciPy. For other libraries, they use an asymptotic series at a
larger argument and a recurrence.
"""

from typing import Any

import numpy as np

from abstain._foundation.arrays import namespace
from abstain._foundation.lazy_imports import special
from abstain.typing import AnyArray, FloatArray

#: Argument from which the asymptotic series are exact in double precision.
MIN_ASYMPTOTIC = 32


def harmonic(x: AnyArray) -> Any:
    """Compute the harmonic number H_x for real x >= 0."""
    if isinstance(x, np.ndarray):
        return special.digamma(x + 1.0) + np.euler_gamma
    if isinstance(x, float):
        return float(special.digamma(x + 1.0)) + np.euler_gamma
    large_x = x + float(MIN_ASYMPTOTIC)
    value = namespace(x).log(large_x) + float(np.euler_gamma) + harmonic_tail(large_x)
    # The recurrence is H_(k - 1) = H_k - 1/k.
    for step in range(MIN_ASYMPTOTIC, 0, -1):
        value = value - 1.0 / (x + float(step))
    return value


def harmonic_between(a: AnyArray, b: AnyArray) -> AnyArray:
    """Compute H_b - H_a for ascending arrays, without cancellation for large a."""
    xp = namespace(a)
    first_large = first_asymptotic(a)
    small_differences = harmonic(b[:first_large]) - harmonic(a[:first_large])
    x = a[first_large:]
    y = b[first_large:]
    large_differences = xp.log1p((y - x) / x) + harmonic_tail(y) - harmonic_tail(x)
    return xp.concat((small_differences, large_differences))


def inverse_squares_between(a: FloatArray, b: FloatArray) -> FloatArray:
    """Compute the sum of 1/k^2 over k from a + 1 to b, for ascending arrays."""
    # From a = 512, three terms of the series are exact in double precision.
    first_large = int(np.count_nonzero(a < 512))
    small_a = a[:first_large]
    small_b = b[:first_large]
    small_sums = special.polygamma(1, small_a + 1.0) - special.polygamma(1, small_b + 1.0)
    x = a[first_large:] + 0.5
    y = b[first_large:] + 0.5
    u = 1.0 / x
    v = 1.0 / y
    # This is f(x) - f(y) for f(x) = 1/x - 1/(12 x^3) + 7/(240 x^5), without cancellation.
    squares = u * u + u * v + v * v
    fourths = squares * squares - u * v * (u + v) ** 2
    large_sums = (y - x) * u * v * (1.0 - squares / 12 + fourths * (7 / 240))
    return np.concatenate((small_sums, large_sums))


def hyperbola_curvature_between(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """For t = 1/(k^2 (k^2 - 1)), compute the sums of t and (k - a) t over k from a + 1 to b - 1.

    The approximation requires a >= 64.
    """
    x, y = a + 0.5, np.maximum(b - 0.5, a + 0.5)
    # The relative error of about 1e-8 is negligible, because the caller adds the result to numbers
    # that are 10^5 times as large.
    total = (1 / x**3 - 1 / y**3) / 3 + (1 / x**5 - 1 / y**5) / 30
    moment = (1 / (a * (a + 1)) - 1 / (b * (b - 1))) / 2 - a * total
    return total, moment


def first_asymptotic(a: AnyArray) -> int:
    """Return the index of the first entry of an ascending array that is at least 32."""
    return int(namespace(a).count_nonzero(a < MIN_ASYMPTOTIC))


def log_factorial(x: AnyArray) -> Any:
    """Compute ln Gamma(x + 1) for real x >= 0."""
    if isinstance(x, np.ndarray):
        return special.gammaln(x + 1.0)
    xp = namespace(x)
    large_x = x + float(MIN_ASYMPTOTIC)
    main_term = (large_x + 0.5) * xp.log(large_x) - large_x
    value = main_term + 0.5 * float(np.log(2 * np.pi)) + stirling_tail(large_x)
    # The recurrence is ln Gamma(k) = ln Gamma(k + 1) - ln k.
    for step in range(MIN_ASYMPTOTIC, 0, -1):
        value = value - xp.log(x + float(step))
    return value


def harmonic_tail(x: AnyArray) -> Any:
    """Compute H_x - ln x - gamma for x >= 32."""
    v = 1.0 / (x * x)
    return 0.5 / x - v * (1 / 12 - v * (1 / 120 - v * (1 / 252 - v / 240)))


def stirling_tail(x: AnyArray) -> Any:
    """Compute ln Gamma(x + 1) - (x + 1/2) ln x + x - ln(2 pi)/2 for x >= 32."""
    v = 1.0 / (x * x)
    return (1 / 12 - v * (1 / 360 - v / 1260)) / x
