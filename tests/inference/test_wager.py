"""Wagers: a martingale by brute force, and how often it is fooled."""

import itertools

import numpy as np
import pytest

from abstain.errors import DomainError
from abstain.inference.wager import TILTS, unallocated_share, update_money, wager


def expected_capital(claim, low, high, steps):
    """The mean capital over all 0/1 streams of a coin, each by its chance."""
    begun, total = wager(low, high), 0.0
    for stream in itertools.product((0.0, 1.0), repeat=steps):
        ones = sum(stream)
        total += claim**ones * (1 - claim) ** (steps - ones) * float(begun.update(stream).capital)
    return total


@pytest.mark.parametrize(("low", "high", "truth"), [(0.0, 0.2, 0.2), (0.3, 1.0, 0.3)])
def test_under_the_claim_the_capital_is_one_on_average(low, high, truth):
    assert expected_capital(truth, low, high, 8) == pytest.approx(1, abs=1e-12)


def test_within_the_claim_the_capital_shrinks_on_average():
    assert expected_capital(0.1, 0.0, 0.2, 8) < 1
    assert expected_capital(0.5, 0.4, 0.6, 8) < 1


def test_a_bet_is_the_likelihood_ratio_of_a_coin_whose_odds_are_a_factor_away():
    bet = wager(high=0.2, tilts=(np.log(3),))
    # Odds of 1 to 4 become 3 to 4.
    np.testing.assert_allclose(1 + bet.stakes * (1 - bet.claims), (3 / 7) / 0.2)
    np.testing.assert_allclose(1 + bet.stakes * (0 - bet.claims), (4 / 7) / 0.8)


def test_the_money_equals_that_of_all_beginnings():
    rng = np.random.default_rng(3)
    x, bet = rng.random(12), wager(0.4, 0.6)
    factors = 1 + bet.stakes * (x[:, None] - bet.claims)
    own = unallocated_share(12)
    for start in range(12):
        share = (unallocated_share(start) - unallocated_share(start + 1)) / bet.claims.size
        own += share * factors[start:].prod(axis=0).sum()
    assert float(bet.update(x).capital) == pytest.approx(own, rel=1e-12)
    halves = bet.update(x[:5]).update(x[5:])
    np.testing.assert_array_equal(halves.money, bet.update(x).money)


def test_streams_in_parallel_are_streams_alone():
    x = np.random.default_rng(4).random((9, 3))
    side = wager(0.5, 0.5, streams=(3,)).update(x).capital
    np.testing.assert_allclose(side, [wager(0.5, 0.5).update(x[:, i]).capital for i in range(3)])


def test_false_alarms_are_rarer_than_said_and_a_late_change_is_found():
    rng, bet = np.random.default_rng(5), wager(high=0.1, streams=(4000,))
    held, most = bet.money, np.zeros(4000)
    for step in range(1, 401):
        held = update_money(held, rng.random(4000) < 0.1, step, bet.claims, bet.stakes)
        most = np.maximum(most, held.sum(axis=-1) + unallocated_share(step))
    # 200 are allowed; the money still on the way to it leaves room.
    assert 20 < (most >= 20).sum() < 200
    late = wager(high=0.1).update(rng.random(20_000) < 0.1).update(rng.random(400) < 0.3)
    assert late.capital > 1000


def test_what_cannot_be_claimed():
    with pytest.raises(DomainError, match="allows every mean"):
        wager(0.0, 1.0)
    with pytest.raises(DomainError, match="`low` must be at most `high`"):
        wager(0.5, 0.4)
    with pytest.raises(DomainError, match=r"\[0, 1\]; got 1.5"):
        wager(high=0.2).update([0.0, 1.5])
    assert len(TILTS) == wager(high=0.2).claims.size
