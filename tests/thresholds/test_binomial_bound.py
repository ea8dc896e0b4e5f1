"""The exact binomial bound against SciPy's distributions and a root search."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import beta, binom

from abstain.errors import InputError
from abstain.thresholds import binomial_risk_bound
from abstain.thresholds.binomial import (
    binomial_p_value,
    hoeffding_bentkus_p_value,
    lower_bound,
    min_count,
)

PAIRS = np.array([(m, k) for m in range(1, 301) for k in range(m + 1)])


@pytest.mark.parametrize("delta", [0.05, 0.001, 1e-9])
def test_bound_is_the_binomial_inverse_for_every_count_up_to_300(delta):
    m, k = PAIRS.T
    bound = binomial_risk_bound(m, k, delta)
    some = k < m
    m, k, inner = m[some], k[some], bound[some]
    # Near b = 1 one step of a float64 moves the tail by m eps.
    np.testing.assert_allclose(binom.cdf(k, m, inner), delta, rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(inner, beta.isf(delta, k + 1, m - k), rtol=1e-12)
    assert (bound[~some] == 1).all()


def test_bound_is_the_root_of_the_binomial_tail():
    for m, k in PAIRS[:: len(PAIRS) // 60]:
        if k < m:
            root = brentq(lambda b, m=m, k=k: binom.cdf(k, m, b) - 0.05, 0, 1, xtol=1e-14)
            assert binomial_risk_bound(int(m), int(k), 0.05) == pytest.approx(root, abs=1e-12)


def test_bound_grows_with_failures_and_shrinks_with_samples():
    bound = binomial_risk_bound(200, np.arange(201), 0.05)
    assert (np.diff(bound) > 0).all()
    assert (np.diff(binomial_risk_bound(np.arange(5, 300), 5, 0.05)) < 0).all()


@pytest.mark.parametrize("risk", [0.01, 0.05, 0.3, 0.9])
@pytest.mark.parametrize("delta", [0.5, 0.05, 1e-6])
def test_tests_and_bounds_agree(risk, delta):
    m, k = PAIRS.T
    bound = binomial_risk_bound(m, k, delta)
    clear = np.abs(bound - risk) > 1e-12
    p_values = binomial_p_value(m, k, risk)
    assert ((p_values <= delta) == (bound <= risk))[clear].all()
    assert binomial_risk_bound(min_count(risk, delta), 0, delta) <= risk + 1e-12
    if min_count(risk, delta) > 1:
        assert binomial_risk_bound(min_count(risk, delta) - 1, 0, delta) > risk


def test_hoeffding_bentkus_is_its_formula():
    m, total, risk = 80, 3.4, 0.1
    mean = total / m
    h = mean * np.log(mean / risk) + (1 - mean) * np.log((1 - mean) / (1 - risk))
    expected = min(np.exp(-m * h), np.e * binom.cdf(4, m, risk))
    result = hoeffding_bentkus_p_value(np.array([m, m]), np.array([total, 40.0]), risk)
    assert result[0] == pytest.approx(expected, rel=1e-12)
    assert result[1] == 1
    assert hoeffding_bentkus_p_value(np.array([50]), np.array([0.0]), 0.1)[0] == pytest.approx(
        0.9**50
    )


@pytest.mark.parametrize("risk", [0.05, 0.3])
def test_hoeffding_bentkus_is_a_p_value_for_worst_and_graded_losses(risk):
    rng = np.random.default_rng(3)
    for a in (0.05, 0.5, 3.0):
        total = rng.beta(a, a * (1 - risk) / risk, (20_000, 60)).sum(1)
        p_values = hoeffding_bentkus_p_value(np.full(total.size, 60), total, risk)
        for level in (0.3, 0.1, 0.05):
            assert (p_values <= level).mean() <= level + 4 * np.sqrt(level / total.size)


def test_lower_bound_is_the_mirror():
    assert lower_bound(50, 50, 0.05) == pytest.approx(0.05 ** (1 / 50), rel=1e-12)
    assert lower_bound(50, 0, 0.05) == 0
    assert lower_bound(50, 20, 0.05) == pytest.approx(beta.ppf(0.05, 20, 31), rel=1e-12)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((0, 0, 0.05), "`m`"),
        ((5, 6, 0.05), "`k`"),
        ((5, -1, 0.05), "`k`"),
        ((5, 1.5, 0.05), "`k`"),
        ((5.0, 1, 0.05), "`m`"),
        ((5, 1, 0.0), "`delta`"),
        ((5, 1, 1.0), "`delta`"),
        ((5, 1, float("nan")), "`delta`"),
        ((np.array([5, 6]), np.array([1, 2, 3]), 0.05), "`m` and `k`"),
    ],
)
def test_bad_counts_raise_an_error(arguments, named):
    with pytest.raises(InputError, match=named):
        binomial_risk_bound(*arguments)
