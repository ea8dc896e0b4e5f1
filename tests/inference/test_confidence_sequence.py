"""Confidence sequences: the mixture by quadrature, and the share of streams they hold for."""

import numpy as np
import pytest
from scipy import integrate, stats

from abstain.errors import DomainError
from abstain.inference.wager import anytime_interval, anytime_limits


def mixture_against(m, k, n):
    """The likelihood ratio of coins drawn from a beta distribution against the coin m."""
    prior = stats.beta(1.0, 2.0)

    def ratio(q):
        return prior.pdf(q) * (q / m) ** k * ((1 - q) / (1 - m)) ** (n - k)

    return integrate.quad(ratio, 0, 1)[0]


@pytest.mark.parametrize(("k", "n"), [(3, 20), (0, 7), (7, 7), (2.5, 9)])
def test_the_ends_are_where_the_mixture_of_coins_wins(k, n):
    result = anytime_interval(k, n, level=0.9, prior=(1.0, 2.0))
    for end, extreme in ((result.low, 0.0), (result.high, 1.0)):
        if end != extreme:
            assert mixture_against(end, k, n) == pytest.approx(10, rel=1e-6)
    assert result.low <= k / n <= result.high


def test_nothing_is_known_without_data_and_the_ends_close_in():
    assert (anytime_interval(0, 0).low, anytime_interval(0, 0).high) == (0, 1)
    n = np.array([10, 100, 1000, 100_000])
    low, high = anytime_limits(0.1 * n, n)
    assert (np.diff(high - low) < 0).all()
    assert high[-1] - low[-1] < 0.01


@pytest.mark.parametrize("graded", [False, True])
def test_all_moments_of_a_stream_are_held_at_once(graded):
    rng = np.random.default_rng(6)
    x = rng.beta(0.2, 1.8, (500, 200)) if graded else rng.random((500, 200)) < 0.1
    low, high = anytime_limits(np.cumsum(x, axis=1), np.arange(1, 201), level=0.9)
    held = ((low <= 0.1) & (high >= 0.1)).all(axis=1).mean()
    assert held >= 0.9


def test_what_is_no_sum():
    with pytest.raises(DomainError, match="between 0 and `n`; got 3 of 2"):
        anytime_interval(3, 2)
    with pytest.raises(DomainError, match="level"):
        anytime_interval(1, 2, level=1.0)
