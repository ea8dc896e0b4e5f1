"""Conformal p-values in blocks of ranks: uniform and independent, ties and all."""

import numpy as np
import pytest
from scipy import stats

from abstain.inference.exchangeability import rank_blocks, rank_p_value


def p_values(rng, draw, n=40, later=6, blocks=8):
    """The p-values of a stream that is drawn as the sample was."""
    known = rank_blocks(draw(rng, n), blocks=blocks, rng=rng)
    counts, results = known.n_gaps.copy(), []
    for x in draw(rng, later):
        home = int(known.find_blocks([x], rng.random(1))[0])
        results.append(float(rank_p_value(counts, home, rng.random())))
        counts[home] += 1
    return results


DRAWS = {
    "smooth": lambda rng, n: rng.normal(size=n),
    "tied": lambda rng, n: rng.integers(0, 3, n).astype(float),
    "saturated": lambda rng, n: np.minimum(rng.random(n) + 0.5, 1.0),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_p_values_of_a_like_stream_are_uniform_and_independent(draw):
    rng = np.random.default_rng(11)
    result = np.array([p_values(rng, draw) for _ in range(1200)])
    for column in result.T:
        assert stats.kstest(column, "uniform").pvalue > 1e-3
    assert np.abs(np.corrcoef(result.T) - np.eye(6)).max() < 0.1
    # Summed, dependence would show in the variance.
    assert result.sum(axis=1).var() == pytest.approx(6 / 12, rel=0.15)


def test_a_block_is_where_the_ranks_say():
    blocks = rank_blocks(np.arange(9.0), blocks=5, rng=0)
    assert blocks.n_gaps.sum() == 10
    assert blocks.find_blocks([-1.0, 100.0], [0.5, 0.5]).tolist() == [0, 4]
    one = rank_blocks([0.3], blocks=5, rng=0)
    assert one.n_gaps.tolist() == [1, 1]


def test_many_streams_are_each_by_itself():
    counts = np.array([[1, 2, 1], [3, 3, 4]])
    result = rank_p_value(counts, np.array([1, 2]), np.array([0.5, 0.25]))
    np.testing.assert_allclose(result, [0.5, 0.7])
