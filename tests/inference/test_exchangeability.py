"""Conformal p-values in blocks of ranks: uniform and independent, ties and all."""

import numpy as np
import pytest
from scipy import stats

from abstain.inference.exchangeability import rank_blocks, rank_p_value


def p_values(rng, draw, n=40, later=6, blocks=8):
    """The p-values of a stream that is drawn as the sample was."""
    known = rank_blocks(draw(rng, n), blocks=blocks, rng=rng)
    counts, found = known.n_gaps.copy(), []
    for x in draw(rng, later):
        home = int(known.find_blocks([x], rng.random(1))[0])
        found.append(float(rank_p_value(counts, home, rng.random())))
        counts[home] += 1
    return found


DRAWS = {
    "smooth": lambda rng, n: rng.normal(size=n),
    "tied": lambda rng, n: rng.integers(0, 3, n).astype(float),
    "saturated": lambda rng, n: np.minimum(rng.random(n) + 0.5, 1.0),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_p_values_of_a_like_stream_are_uniform_and_independent(draw):
    rng = np.random.default_rng(11)
    found = np.array([p_values(rng, draw) for _ in range(1200)])
    for column in found.T:
        assert stats.kstest(column, "uniform").pvalue > 1e-3
    assert np.abs(np.corrcoef(found.T) - np.eye(6)).max() < 0.1
    # Summed, dependence would show in the variance.
    assert found.sum(axis=1).var() == pytest.approx(6 / 12, rel=0.15)


def test_a_block_is_where_the_ranks_say():
    known = rank_blocks(np.arange(9.0), blocks=5, rng=0)
    assert known.n_gaps.sum() == 10
    assert known.find_blocks([-1.0, 100.0], [0.5, 0.5]).tolist() == [0, 4]
    one = rank_blocks([0.3], blocks=5, rng=0)
    assert one.n_gaps.tolist() == [1, 1]


def test_many_streams_are_each_by_itself():
    counts = np.array([[1, 2, 1], [3, 3, 4]])
    found = rank_p_value(counts, np.array([1, 2]), np.array([0.5, 0.25]))
    np.testing.assert_allclose(found, [0.5, 0.7])
