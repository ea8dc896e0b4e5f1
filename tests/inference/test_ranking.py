"""Ranks, their chances from the joint normal law and from resamples, over one data set or more."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from abstain.errors import DomainError, InputError, ShapeError
from abstain.inference.ranking import expected_ranks, rank_probabilities, ranks, superiority
from abstain.inference.resampled_ranks import (
    aggregate_then_rank,
    rank_probabilities_of_replicates,
    rank_summary,
    rank_then_aggregate,
)


def problem(k, seed, spread=0.02):
    """Values and a covariance of methods that are strongly paired, some of them close."""
    rng = np.random.default_rng(seed)
    loadings = rng.normal(size=(k, 3))
    covariance = 1e-4 * (1 + loadings @ loadings.T / 4 + 0.1 * np.eye(k))
    return 0.1 + spread * rng.random(k), covariance


def test_ranks():
    table = np.array([[0.2, 0.1], [0.1, 0.1], [np.nan, 0.3]])
    np.testing.assert_array_equal(
        ranks(table, lower_is_better=True), [[2, 1.5], [1, 1.5], [np.nan, 3]]
    )
    np.testing.assert_array_equal(
        ranks(table, lower_is_better=False, axis=1), [[1, 2], [1.5, 1.5], [np.nan, 1]]
    )


@pytest.mark.parametrize("k", [2, 5, 13])
def test_probabilities_match_parametric_resamples(k):
    values, covariance = problem(k, seed=k)
    drawn = np.random.default_rng(99).multivariate_normal(values, covariance, size=20_000).T
    resampled = rank_probabilities_of_replicates(drawn, lower_is_better=True)
    direct = rank_probabilities(values, covariance, lower_is_better=True)
    # Two shares of 20,000 draws each.
    assert np.abs(direct - resampled).max() < 5 * np.sqrt(0.5 / 20_000)
    exact = expected_ranks(values, covariance, lower_is_better=True)
    mean = rank_summary(resampled).mean
    error = np.sqrt(resampled @ np.arange(1, k + 1) ** 2 - mean**2) / np.sqrt(20_000)
    assert np.all(np.abs(exact - mean) < 4 * error + 1e-12)
    assert np.abs(rank_summary(direct).mean - exact).max() < 0.05


def test_mean_ranks_are_within_a_hundredth_of_very_many_resamples():
    values, covariance = problem(13, seed=1)
    drawn = np.random.default_rng(7).multivariate_normal(values, covariance, size=400_000).T
    mean = rank_summary(rank_probabilities_of_replicates(drawn, lower_is_better=True)).mean
    exact = expected_ranks(values, covariance, lower_is_better=True)
    assert np.abs(exact - mean).max() < 0.01
    assert (
        np.abs(
            rank_summary(rank_probabilities(values, covariance, lower_is_better=True)).mean - exact
        ).max()
        < 0.05
    )


def test_direction_is_a_mirror():
    values, covariance = problem(4, seed=2)
    up = rank_probabilities(values, covariance, lower_is_better=True)
    down = rank_probabilities(values, covariance, lower_is_better=False)
    np.testing.assert_allclose(up, down[:, ::-1], atol=1e-12)
    np.testing.assert_allclose(
        superiority(values, covariance, lower_is_better=True),
        superiority(values, covariance, lower_is_better=False).T,
    )


def test_superiority_is_the_normal_probability():
    p = superiority([0.1, 0.2], [[0.02, 0.005], [0.005, 0.03]], lower_is_better=True)
    from scipy.stats import norm

    assert p[0, 1] == pytest.approx(norm.cdf(0.1 / np.sqrt(0.04)))
    assert p[0, 1] + p[1, 0] == pytest.approx(1)


def test_the_same_method_twice_shares_its_ranks():
    values, covariance = problem(3, seed=3, spread=0.001)
    twice = [0, 1, 1, 2]
    # A score and a monotone transform of it: the same up to rounding.
    v, sigma = values[twice] * [1, 1, 1 + 1e-15, 1], covariance[np.ix_(twice, twice)]
    table = rank_probabilities(v, sigma, lower_is_better=True)
    np.testing.assert_allclose(table[1], table[2], atol=1e-12)
    np.testing.assert_allclose(table.sum(axis=0), 1)
    assert superiority(v, sigma, lower_is_better=True)[1, 2] == 0.5
    exact = expected_ranks(v, sigma, lower_is_better=True)
    assert exact[1] == pytest.approx(exact[2], abs=1e-12)
    np.testing.assert_allclose(rank_summary(table).mean, exact, atol=0.03)


def test_all_methods_the_same():
    table = rank_probabilities([0.1] * 3, np.full((3, 3), 0.01), lower_is_better=True)
    np.testing.assert_allclose(table, 1 / 3)
    assert (
        expected_ranks([0.1] * 3, np.full((3, 3), 0.01), lower_is_better=True).tolist() == [2] * 3
    )


def test_no_variance_at_all_is_certain():
    zero = np.zeros((3, 3))
    assert rank_probabilities([3, 1, 2], zero, lower_is_better=True).tolist() == [
        [0, 0, 1],
        [1, 0, 0],
        [0, 1, 0],
    ]
    assert superiority([3, 1, 1], zero, lower_is_better=True).tolist() == [
        [0.5, 0, 0],
        [1, 0.5, 0.5],
        [1, 0.5, 0.5],
    ]


def test_a_method_without_a_value_counts_nowhere():
    values, covariance = problem(4, seed=4)
    gap = values.copy()
    gap[1] = np.nan
    kept = [0, 2, 3]
    table = rank_probabilities(gap, covariance, lower_is_better=True)
    assert np.isnan(table[1]).all()
    alone = rank_probabilities(values[kept], covariance[np.ix_(kept, kept)], lower_is_better=True)
    np.testing.assert_allclose(table[kept][:, :3], alone)
    assert not table[kept][:, 3].any()
    mean = expected_ranks(gap, covariance, lower_is_better=True)
    assert np.isnan(mean[1])
    assert mean[kept].sum() == pytest.approx(6)
    summary = rank_summary(table)
    assert np.isnan([summary.low[1], summary.high[1], summary.mean[1]]).all()
    assert np.isnan(rank_probabilities([np.nan], [[1.0]], lower_is_better=True)).all()
    assert np.isnan(rank_probabilities([1.0], [[np.nan]], lower_is_better=True)).all()


def test_a_method_without_a_variance_counts_nowhere():
    covariance = np.diag([1.0, np.nan, 1.0])
    table = superiority([0.0, 1.0, 0.0], covariance, lower_is_better=True)
    assert np.isnan(table[1]).all()
    assert np.isnan(table[:, 1]).all()
    mean = expected_ranks([0.0, 1.0, 0.0], covariance, lower_is_better=True)
    np.testing.assert_array_equal(mean, [1.5, np.nan, 1.5])


def test_draws_are_seeded():
    values, covariance = problem(5, seed=5)
    same = [rank_probabilities(values, covariance, lower_is_better=True, rng=r) for r in (3, 3, 4)]
    np.testing.assert_array_equal(same[0], same[1])
    assert (same[0] != same[2]).any()


TABLES = arrays(
    np.float64, st.tuples(st.integers(1, 6), st.integers(1, 30)), elements=st.integers(0, 4)
)


@given(TABLES)
def test_probabilities_of_replicates_split_ties(table):
    k, size = table.shape
    chances = rank_probabilities_of_replicates(table, lower_is_better=True)
    expected = np.zeros((k, k))
    for b in range(size):
        for i in range(k):
            first = (table[:, b] < table[i, b]).sum()
            equal = (table[:, b] == table[i, b]).sum()
            expected[i, first : first + equal] += 1 / equal / size
    np.testing.assert_allclose(chances, expected, atol=1e-12)
    np.testing.assert_allclose(
        rank_summary(chances).mean, ranks(table, lower_is_better=True).mean(axis=1), atol=1e-12
    )


def test_probabilities_of_replicates_with_gaps():
    table = np.array([[1, 2, np.nan, 1], [2, 1, 5, 3], [np.nan] * 4])
    chances = rank_probabilities_of_replicates(table, lower_is_better=True)
    np.testing.assert_allclose(chances[:2], [[2 / 3, 1 / 3, 0], [1 / 3, 2 / 3, 0]])
    assert np.isnan(chances[2]).all()
    assert np.isnan(
        rank_probabilities_of_replicates([[np.nan, np.nan]], lower_is_better=True)
    ).all()


def test_summary_of_probabilities():
    result = rank_summary(
        [[0.02, 0.02, 0.96], [0.025, 0.95, 0.025], [0.95, 0.03, 0.02]], level=0.95
    )
    assert result.low.tolist() == [2, 1, 1]
    assert result.high.tolist() == [3, 2, 2]


def test_rank_then_aggregate_against_a_loop():
    table = np.round(
        np.random.default_rng(0).normal(size=(4, 3, 50)) + np.arange(3)[:, None] / 2, 1
    )
    result = rank_then_aggregate(table, lower_is_better=True)
    per_block = ranks(table, lower_is_better=True, axis=1)
    np.testing.assert_allclose(result.mean_ranks, per_block.mean(axis=(0, 2)))
    np.testing.assert_array_equal(result.ranks, ranks(result.mean_ranks, lower_is_better=True))
    expected = rank_probabilities_of_replicates(per_block.sum(axis=0), lower_is_better=True)
    np.testing.assert_allclose(result.rank_probabilities, expected)
    pooled = np.mean(
        [rank_probabilities_of_replicates(block, lower_is_better=True) for block in table], axis=0
    )
    np.testing.assert_allclose(result.frequencies, pooled)
    assert (result.n_blocks, result.n_resamples, result.note) == (4, 50, "")


def test_aggregate_then_rank_against_a_loop():
    table = np.random.default_rng(1).normal(size=(4, 3, 50)) + np.arange(3)[:, None] / 2
    result = aggregate_then_rank(table, lower_is_better=False)
    mean = table.mean(axis=0)
    np.testing.assert_allclose(
        result.rank_probabilities, rank_probabilities_of_replicates(mean, lower_is_better=False)
    )
    np.testing.assert_array_equal(result.ranks, ranks(mean.mean(axis=1), lower_is_better=False))
    np.testing.assert_allclose(result.mean_ranks, ranks(mean, lower_is_better=False).mean(axis=1))


def test_the_two_orders_differ_where_one_data_set_dominates():
    # The first wins narrowly on two data sets and loses by far on the third.
    table = np.array([[[1.0], [1.1]], [[1.0], [1.1]], [[9.0], [1.0]]])
    assert rank_then_aggregate(table, lower_is_better=True).ranks.tolist() == [1, 2]
    assert aggregate_then_rank(table, lower_is_better=True).ranks.tolist() == [2, 1]


def test_blocks_and_resamples_without_a_value_are_omitted():
    table = np.random.default_rng(2).normal(size=(3, 2, 5))
    table[1, 0] = np.nan
    table[0, 1, 3] = np.nan
    for method in (rank_then_aggregate, aggregate_then_rank):
        result = method(table, lower_is_better=True)
        whole = method(np.delete(table[[0, 2]], 3, axis=2), lower_is_better=True)
        np.testing.assert_array_equal(result.rank_probabilities, whole.rank_probabilities)
        assert (result.n_blocks, result.n_resamples) == (2, 4)
        assert "1 of 3 data sets or runs left out" in result.note
        assert "1 of 5 resamples left out" in result.note
    with pytest.raises(DomainError, match="every method has a value"):
        rank_then_aggregate(np.full((1, 2, 3), np.nan), lower_is_better=True)


def test_refusals():
    with pytest.raises(ShapeError, match=r"`covariance` must have the shape \(2, 2\)"):
        rank_probabilities([1, 2], np.eye(3), lower_is_better=True)
    with pytest.raises(InputError, match="`n_draws`"):
        rank_probabilities([1, 2], np.eye(2), lower_is_better=True, n_draws=0)
    with pytest.raises(ShapeError, match=r"`replicates` must have the shape \(k, B\)"):
        rank_probabilities_of_replicates([1, 2], lower_is_better=True)
    with pytest.raises(ShapeError, match="axis of methods"):
        ranks(3.0, lower_is_better=True)
    with pytest.raises(DomainError, match="must contain numbers"):
        ranks(["a", "b"], lower_is_better=True)
    with pytest.raises(DomainError, match="`level`"):
        rank_summary(np.eye(2), level=95)


@given(TABLES)
def test_lowest_ranks_equal_those_of_scipy(table):
    for lower, values in ((True, table), (False, -table)):
        result = ranks(values, lower_is_better=lower, ties="min")
        np.testing.assert_array_equal(result, stats.rankdata(table, method="min", axis=0))


def test_rankings_over_resamples_take_the_rank_that_is_requested():
    drawn = [[[1.0, 1.0], [1.0, 2.0], [3.0, 3.0]]]
    shared = rank_then_aggregate(drawn, lower_is_better=True)
    lowest = rank_then_aggregate(drawn, lower_is_better=True, ties="min")
    assert shared.mean_ranks.tolist() == [1.25, 1.75, 3.0]
    assert lowest.mean_ranks.tolist() == [1.0, 1.5, 3.0]
    np.testing.assert_array_equal(shared.rank_probabilities, lowest.rank_probabilities)
    same = aggregate_then_rank([[[1.0], [1.0], [3.0]]], lower_is_better=True, ties="min")
    assert same.ranks.tolist() == [1.0, 1.0, 3.0]
    with pytest.raises(InputError, match=r"`ties` must be one of 'mean', 'min'"):
        rank_then_aggregate(drawn, lower_is_better=True, ties="max")
