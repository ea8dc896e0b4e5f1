"""What other libraries lack of NumPy, against NumPy and SciPy."""

import numpy as np
import pytest
from scipy.special import digamma, gammaln

from abstain._foundation import array_functions, special
from abstain._foundation.arrays import to_numpy


@pytest.fixture(params=["torch", "array_api_strict"])
def xp(request):
    return pytest.importorskip(request.param)


def host(x):
    return to_numpy(x, "x")


RNG = np.random.default_rng(0)


def test_sums_by_index(xp):
    index, values = RNG.integers(0, 7, 50), RNG.random(50)
    got = array_functions.sum_by_index(xp.asarray(index), xp.asarray(values), 9)
    np.testing.assert_allclose(host(got), np.bincount(index, values, 9), atol=1e-13)


@pytest.mark.parametrize("n", [1, 2, 3, 8, 33])
def test_least_from_here(xp, n):
    values = RNG.random(n)
    got = host(array_functions.reverse_cumulative_min(xp.asarray(values)))
    assert got.tolist() == [values[i:].min() for i in range(n)]


def test_interpolation(xp):
    xs, ys = np.sort(RNG.random(20)), RNG.random(20)
    x = np.concatenate((RNG.random(40), xs, [-1.0, 2.0]))
    got = array_functions.interpolate(xp.asarray(x), xp.asarray(xs), xp.asarray(ys))
    np.testing.assert_allclose(host(got), np.interp(x, xs, ys), atol=1e-13)


def test_order_by_several_keys(xp):
    first, second = RNG.integers(0, 3, 30), RNG.integers(0, 3, 30)
    got = host(array_functions.lexicographic_order(xp.asarray(first), xp.asarray(second)))
    assert got.tolist() == np.lexsort((second, first)).tolist()


def test_harmonic_numbers_and_factorials(xp):
    x = np.concatenate((np.arange(0.0, 200.0, 0.25), 10.0 ** np.arange(3, 9)))
    with np.errstate(divide="ignore"):
        expected = digamma(x + 1) + np.euler_gamma
    np.testing.assert_allclose(host(special.harmonic(xp.asarray(x))), expected, atol=3e-14)
    got = host(special.log_factorial(xp.asarray(x)))
    np.testing.assert_allclose(got, gammaln(x + 1), rtol=1e-14, atol=2e-13)
