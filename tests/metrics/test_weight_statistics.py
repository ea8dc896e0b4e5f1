"""Bias, variance and squared error of the weights: exact sums, closed forms and simulation."""

import tracemalloc
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise
from math import comb

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta, binom

from abstain.errors import DomainError, InputError, ShapeError
from abstain.metrics import (
    mean_weight_error_scale,
    population_weight,
    rank_weights,
    weight_bias,
    weight_error_scale,
    weight_mse,
    weight_mse_given_rank,
    weight_variance,
)
from abstain.metrics.weight_moments import (
    BinomialRanks,
    _moments_by_summation,
    _plugin_error,
    _windows,
    log_series_tail,
)

ESTIMATORS = ("plugin", "log", "sele", "2sele", "augrc")
#: Dyadic ranks, which floats hold exactly.
RANKS = (Fraction(0), Fraction(1, 2**30), Fraction(1, 8), Fraction(1, 2), Fraction(13, 16),
         Fraction(127, 128), 1 - Fraction(1, 2**40))  # fmt: skip


def decimal(x):
    return Decimal(x.numerator) / Decimal(x.denominator)


def exact_weight(estimator, r, n):
    if estimator == "plugin":
        return decimal(sum((Fraction(1, k) for k in range(n - r + 1, n + 1)), Fraction(0)))
    if estimator == "log":
        return -decimal(Fraction(n + 1 - r, n + 1)).ln()
    factor, shift = {"sele": (1, 0), "2sele": (2, 0), "augrc": (1, Fraction(-1, 2))}[estimator]
    return decimal(Fraction(factor * (r + shift)) / n)


def exact(u, n, estimator, *, counts_itself):
    """Bias, variance and squared error from every rank there is, with 120 digits."""
    others = n - 1 if counts_itself else n
    target = decimal(u) if estimator == "augrc" else -decimal(1 - u).ln()
    bias, square = Decimal(0), Decimal(0)
    for k in range(others + 1):
        chance = decimal(comb(others, k) * u**k * (1 - u) ** (others - k))
        error = exact_weight(estimator, k + counts_itself, n) - target
        bias += chance * error
        square += chance * error**2
    return float(bias), float(square - bias**2), float(square)


def found(u, n, estimator, **options):
    return tuple(f(u, n, estimator, **options) for f in (weight_bias, weight_variance, weight_mse))


@pytest.mark.parametrize("counts_itself", [True, False])
@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("n", [1, 2, 9, 40])
def test_small_samples_to_the_last_digits(n, estimator, counts_itself):
    with localcontext() as context:
        context.prec = 120
        for u in RANKS:
            expected = exact(u, n, estimator, counts_itself=counts_itself)
            got = found(float(u), n, estimator, counts_itself=counts_itself)
            np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-100)


@pytest.mark.parametrize("estimator", ["plugin", "log"])
@pytest.mark.parametrize("u", [0.003, 0.4, 0.97, 0.9996])
def test_ten_thousand_samples_by_summing_over_all_ranks(estimator, u):
    n = 10_000
    for counts_itself in (True, False):
        others = n - counts_itself
        r = np.arange(others + 1) + counts_itself
        error = np.concatenate(([0.0], rank_weights(n, estimator)))[r] + np.log1p(-u)
        chance = binom.pmf(r - counts_itself, others, u)
        bias, square = chance @ error, chance @ error**2
        got = found(u, n, estimator, counts_itself=counts_itself)
        # SciPy's probabilities have 1e-12 of their own, and the sums start from numbers near 1.
        np.testing.assert_allclose(got[0], bias, rtol=1e-9, atol=1e-14)
        np.testing.assert_allclose(got[1:], (square - bias**2, square), rtol=1e-9)


@pytest.mark.parametrize("n", [10, 1000, 5000])
def test_the_bias_of_the_plugin_is_its_power_series(n):
    for u in (Fraction(1, 4), Fraction(15, 16), 1 - Fraction(1, 2**11), 1 - Fraction(1, 2**30)):
        with localcontext() as context:
            context.prec = 800
            x, power, head = decimal(u), Decimal(1), Decimal(0)
            for j in range(1, n):
                power *= x
                head += power / j
            tail = -decimal(1 - u).ln() - head
            own, new = float(1 / Decimal(n) - tail), float(-(tail - power * x / n))
        assert weight_bias(float(u), n) == pytest.approx(own, rel=1e-12)
        assert weight_bias(float(u), n, counts_itself=False) == pytest.approx(new, rel=1e-12)


def test_the_tail_of_the_series_from_both_sides_of_its_two_forms():
    for m in (0, 1, 2, 30, 10**4, 10**6):
        u = 1 - 2.0 / (m + 1)
        if u > 0.5:
            low, high = log_series_tail(np.array([u - 1e-13, u + 1e-13]), np.full(2, float(m)))
            assert low == pytest.approx(high, rel=1e-6 if m > 10**5 else 1e-8)
    np.testing.assert_allclose(
        log_series_tail(np.array([0.0, 0.3, 0.8]), np.zeros(3)), -np.log1p([0.0, -0.3, -0.8])
    )


@pytest.mark.parametrize("n", [50, 10**4, 10**6])
def test_sums_over_ranks_give_the_bias_of_the_closed_form(n):
    u = np.array([1e-9, 0.01, 0.5, 0.9, 1 - 30 / n, 1 - 3 / n, 1 - 0.1 / n])
    size = np.full(u.size, float(n))
    for others in (size - 1, size):
        summed = _moments_by_summation(BinomialRanks(u, others, size), _plugin_error)
        closed = weight_bias(u, n, counts_itself=bool(others[0] < n))
        # A new sample has hardly any bias at low ranks; there 1e-15 is all that sums can see.
        np.testing.assert_allclose(summed.bias, closed, rtol=1e-10, atol=4e-15)


def draw_ranks(rng, u, n, times, *, counts_itself):
    others = rng.random((times, n - counts_itself))
    return (others <= u).sum(axis=1) + counts_itself


@pytest.mark.parametrize("counts_itself", [True, False])
@pytest.mark.parametrize("n", [8, 32, 128])
def test_simulated_ranks_have_this_bias_and_error(n, counts_itself):
    rng = np.random.default_rng(n)
    times = 20_000
    for u in (0.05, 0.5, 0.9, 0.99):
        ranks = draw_ranks(rng, u, n, times, counts_itself=counts_itself)
        for estimator in (*ESTIMATORS, "monte-carlo"):
            if estimator == "monte-carlo":
                draws = rng.beta(np.maximum(ranks, 1e-300), n - ranks + 1.0, (3, times))
                weights = -np.log1p(-draws).mean(axis=0)
            else:
                # A new sample may have rank 0.
                first = -0.5 / n if estimator == "augrc" else 0.0
                weights = np.concatenate(([first], rank_weights(n, estimator)))[ranks]
            error = weights - population_weight(u, "augrc" if estimator == "augrc" else "aurc")
            bias, _, mse = found(u, n, estimator, counts_itself=counts_itself, draws=3)
            root = np.sqrt(times)
            assert abs(error.mean() - bias) <= 4 * error.std() / root + 1e-15, (u, estimator)
            assert abs((error**2).mean() - mse) <= 4 * (error**2).std() / root, (u, estimator)


def test_squared_error_is_squared_bias_and_variance():
    u, n = np.linspace(0, 0.9999, 101)[:, None], np.array([1, 5, 100, 3000])
    for estimator in (*ESTIMATORS, "monte-carlo"):
        for counts_itself in (True, False):
            bias, variance, mse = found(u, n, estimator, counts_itself=counts_itself)
            assert bias.shape == (101, 4)
            assert variance.min() >= 0
            np.testing.assert_allclose(bias**2 + variance, mse, rtol=1e-10)


def test_what_the_estimators_are_biased_for():
    u, n = np.array([0.1, 0.5, 0.9]), 50
    t = -np.log1p(-u)
    np.testing.assert_allclose(weight_bias(u, n, "sele"), u + (1 - u) / n - t, rtol=1e-12)
    np.testing.assert_allclose(weight_bias(u, n, "2sele"), 2 * (u + (1 - u) / n) - t, rtol=1e-12)
    np.testing.assert_allclose(weight_bias(u, n, "augrc"), (0.5 - u) / n, rtol=1e-12)
    new = weight_bias(u, n, "augrc", counts_itself=False)
    np.testing.assert_allclose(new, -0.5 / n, rtol=1e-12)
    # No n mends SELE; the plug-in is mended.
    assert abs(weight_bias(0.9, 10**6, "sele")) > 1.4
    assert abs(weight_bias(0.9, 10**6)) < 2e-6


def test_monte_carlo_adds_the_variance_of_its_draws():
    u, n = np.array([0.0, 0.2, 0.9, 0.999]), 40
    base = weight_variance(u, n)
    one, many = (weight_variance(u, n, "monte-carlo", draws=d) - base for d in (1, 100))
    np.testing.assert_allclose(many, one / 100, rtol=1e-6)
    np.testing.assert_array_equal(weight_bias(u, n, "monte-carlo", draws=1), weight_bias(u, n))
    # At u = 0 the rank is 1: one draw is the least of n uniforms, made 1/k^2 by -ln(1 - beta).
    assert one[0] == pytest.approx(1 / 1600, rel=1e-12)
    # From 32 samples above on the sums of 1/k^2 come from a series.
    sums = np.cumsum(1.0 / np.arange(1, 201) ** 2)
    above = np.arange(200)
    expected = binom.pmf(above, 199, 0.7) @ (sums[-1] - np.concatenate(([0.0], sums[:-1])))
    got = weight_variance(0.3, 200, "monte-carlo", draws=1) - weight_variance(0.3, 200)
    assert got == pytest.approx(expected, rel=1e-10)


def test_errors_fall_with_n_at_a_fixed_rank_and_grow_towards_the_top():
    n = 10.0 ** np.arange(1, 7)
    for estimator in ("plugin", "log"):
        for u in (0.2, 0.7, 0.9):
            mse = weight_mse(u, n, estimator)
            assert (np.diff(mse) < 0).all()
            assert mse[-1] == pytest.approx(u / (1 - u) / n[-1], rel=1e-3)
        towards = weight_mse(1 - 0.1 ** np.arange(1, 16), 100, estimator)
        assert (np.diff(towards) > 0).all()
        assert towards[-1] > 100 * weight_error_scale(1 - 1e-15, 100) / 100


#: Least and largest ratio of the exact squared error to u/(n(1 - u) + 1), rounded outwards, over
#: 5/n <= u <= 1 - 5/n. They are the table of docs/estimators.md.
RATIOS = {
    ("plugin", 32): (1.14, 1.37), ("plugin", 128): (1.03, 1.34), ("plugin", 1024): (1.00, 1.34),
    ("plugin", 10**4): (1.00, 1.34), ("plugin", 10**6): (1.00, 1.34),
    ("log", 32): (1.05, 1.18), ("log", 128): (1.01, 1.20), ("log", 1024): (1.00, 1.20),
    ("log", 10**4): (1.00, 1.20), ("log", 10**6): (1.00, 1.20),
}  # fmt: skip


@pytest.mark.parametrize(("estimator", "n"), RATIOS)
def test_the_scale_is_no_bound_and_close_where_ranks_are_inside(estimator, n):
    edge = np.geomspace(5 / n, 0.5, 60)
    u = np.concatenate((edge, 1 - edge))
    ratio = weight_mse(u, n, estimator) / weight_error_scale(u, n)
    low, high = RATIOS[estimator, n]
    assert low <= ratio.min() < low + 0.01
    assert high - 0.01 < ratio.max() <= high
    new = weight_mse(u, n, estimator, counts_itself=False) / weight_error_scale(u, n)
    assert new.min() >= 1.0
    assert new.max() <= high + 0.01


def test_the_scale_at_both_ends():
    # Below 5/n a sample that counts itself has the bias 1/n, which the scale does not know.
    assert weight_mse(0.0, 100) == pytest.approx(1e-4)
    assert weight_error_scale(0.0, 100) == 0
    assert weight_mse(1 / 10**6, 10**6) / weight_error_scale(1 / 10**6, 10**6) > 1.9
    # Above 1 - 1/n the error grows on while the scale stays below n.
    assert weight_mse(1 - 1e-12, 100) > 500
    assert weight_error_scale(1 - 1e-12, 100) == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("estimator", [*ESTIMATORS, "monte-carlo"])
def test_extremes_are_finite(estimator):
    u = np.array([0.0, 5e-324, 1e-300, 0.5, 1 - 2**-53])
    for n in (1, 2, 10**6):
        for counts_itself in (True, False):
            for numbers in found(u, n, estimator, counts_itself=counts_itself):
                assert np.isfinite(numbers).all()


def test_windows_stay_narrow_and_hold_everything():
    u = np.array([1e-4, 0.5, 0.99])
    trials = BinomialRanks(u, np.full(3, 1e6), np.full(3, 1e6))
    for window in _windows(trials):
        rank = u[window.index]
        assert window.n_above.shape[1] < 12 * np.sqrt(1e6)
        np.testing.assert_allclose(window.probability.sum(axis=1), 1, rtol=1e-12)
        variance = window.expectation(window.deviation**2)
        np.testing.assert_allclose(variance, 1e6 * rank * (1 - rank), rtol=1e-12)
        np.testing.assert_allclose(window.expectation(window.deviation), 0, atol=1e-8)


def test_memory_is_bounded():
    tracemalloc.start()
    weight_mse(np.linspace(0.1, 0.9, 300), 10**6)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40e6


def test_shapes_and_kinds():
    assert isinstance(weight_mse(0.5, 10), float)
    assert weight_bias([0.1, 0.2, 0.3], [[5], [6]]).shape == (2, 3)
    assert weight_error_scale(np.zeros((2, 1)), [1, 2, 3]).shape == (2, 3)
    assert weight_variance([], 5).shape == (0,)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "rule"),
    [
        ((1.0, 5), {}, DomainError, r"`rank` must be in \[0, 1\); got 1.0"),
        (([0.2, -0.1], 5), {}, DomainError, r"got -0.1 at index 1"),
        ((np.nan, 5), {}, DomainError, "`rank` must be finite"),
        (("half", 5), {}, DomainError, "`rank` must contain numbers"),
        ((0.5, 0), {}, DomainError, "`n` must be an integer of at least 1; got 0"),
        ((0.5, [3, 2.5]), {}, DomainError, "`n` must be an integer of at least 1; got 2.5"),
        (([0.5, 0.5], [1, 2, 3]), {}, ShapeError, "`rank` and `n` must broadcast"),
        ((0.5, 5, "mean"), {}, InputError, "`estimator` must be one of 'plugin'"),
        ((0.5, 5), {"draws": 0}, InputError, "`draws` must be an integer"),
    ],
)
def test_bad_arguments_are_named(arguments, options, error, rule):
    with pytest.raises(error, match=rule):
        weight_mse(*arguments, **options)


@pytest.mark.parametrize(
    ("counts_itself", "leading"),
    [(True, lambda u: (2 - 3 * u) / (2 * (1 - u))), (False, lambda u: -u / (2 * (1 - u)))],
)
def test_the_leading_term_of_the_bias_of_log(counts_itself, leading):
    u, n = np.array([0.0, 0.1, 0.5, 2 / 3, 0.9]), 100_000
    result = n * weight_bias(u, n, "log", counts_itself=counts_itself)
    np.testing.assert_allclose(result, leading(u), atol=2e-3)


@pytest.mark.parametrize("estimator", [*ESTIMATORS, "monte-carlo"])
def test_error_given_the_sample_rank_equals_that_of_beta_draws(estimator):
    n, draws, rng = 12, 40, np.random.default_rng(5)
    # Sorted uniforms: row by row the population ranks of n samples, so column r has Beta(r, n+1-r).
    u = np.sort(rng.random((40_000, n)), axis=1)
    target = u if estimator == "augrc" else -np.log1p(-u)
    if estimator == "monte-carlo":
        weight = np.stack(
            [rank_weights(n, "monte-carlo", draws=draws, rng=rng) for _ in range(u.shape[0])]
        )
    else:
        weight = rank_weights(n, estimator)
    squares = (weight - target) ** 2
    error = squares.std(axis=0) / np.sqrt(u.shape[0])
    result = weight_mse_given_rank(np.arange(1, n + 1), n, estimator, draws=draws)
    assert (np.abs(squares.mean(axis=0) - result) < 4.5 * error).all()


def test_error_given_the_sample_rank_by_quadrature():
    for n, r in ((1, 1), (7, 2), (60, 60), (900, 871)):
        distribution = beta(r, n + 1 - r)
        # The variable is t = -ln(1 - u).
        cuts = -np.log1p(-distribution.ppf([0.1, 0.9]))
        for estimator in ESTIMATORS:
            own = rank_weights(n, estimator)[r - 1]

            def square(t, own=own, distribution=distribution, linear=estimator == "augrc"):
                u = -np.expm1(-t)
                return distribution.pdf(u) * np.exp(-t) * (own - (u if linear else t)) ** 2

            expected = sum(quad(square, a, b, limit=300)[0] for a, b in pairwise([0, *cuts, 30]))
            assert weight_mse_given_rank(r, n, estimator) == pytest.approx(expected, rel=1e-7)


def test_mean_error_given_the_rank_is_the_harmonic_number_over_n():
    for n in (1, 2, 8, 100, 30_000):
        r = np.arange(1, n + 1)
        plugin = weight_mse_given_rank(r, n)
        harmonic_number = np.sum(1.0 / r)
        assert plugin.mean() == pytest.approx(harmonic_number / n, rel=1e-12)
        # By the definition, term by term; nobody errs less who knows the rank alone.
        assert plugin[-1] == pytest.approx(np.sum(1.0 / r**2.0), rel=1e-12)
        for estimator in ("log", "sele", "2sele", "monte-carlo"):
            assert (weight_mse_given_rank(r, n, estimator) >= plugin).all()
    # Large ranks of huge samples keep their digits.
    assert weight_mse_given_rank(1, 10**8) == pytest.approx(1e-16, rel=1e-9)


def test_mean_scale_is_the_integral_of_the_scale():
    for n in (1, 5, 300):
        expected, _ = quad(lambda u, n=n: weight_error_scale(u, n), 0, 1, limit=200)
        assert mean_weight_error_scale(n) == pytest.approx(expected, rel=1e-8)
    n = np.array([10**3, 10**6, 10**9])
    exact = (np.log(n) + np.euler_gamma + 0.5 / n) / n
    np.testing.assert_allclose(
        exact - mean_weight_error_scale(n), (1 + np.euler_gamma) / n, rtol=1e-2
    )
    # What is printed as the limit is far from it at the sizes of the paper.
    assert mean_weight_error_scale(8) / weight_mse_given_rank(np.arange(1, 9), 8).mean() < 0.55


def test_sample_ranks_that_cannot_be_raise_an_error():
    for wrong in (0, 1.5, 11):
        with pytest.raises(DomainError, match="`sample_rank`"):
            weight_mse_given_rank(wrong, 10)
    with pytest.raises(ShapeError, match="`sample_rank` and `n` must broadcast"):
        weight_mse_given_rank([1, 2], [3, 4, 5])
    with pytest.raises(InputError, match="estimator"):
        weight_mse_given_rank(1, 2, "other")
    with pytest.raises(DomainError, match="`n`"):
        mean_weight_error_scale(0)
    assert isinstance(weight_mse_given_rank(3, 10), float)
    assert weight_mse_given_rank([[1], [2]], [2, 3, 4]).shape == (2, 3)
