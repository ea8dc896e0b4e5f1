"""Wilcoxon, Friedman and Nemenyi against SciPy and scikit-posthocs, and at their edges."""

from itertools import permutations, product

import numpy as np
import pytest
from scipy import stats

from abstain.errors import DomainError, InputError, ShapeError
from abstain.inference.multiplicity import adjust, cliques, critical_difference, nemenyi
from abstain.inference.rank_tests import (
    _signed_rank_probabilities,
    friedman,
    pairwise_wilcoxon,
    wilcoxon,
)


@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
@pytest.mark.parametrize(("n", "method"), [(6, "exact"), (50, "exact"), (51, "normal")])
def test_wilcoxon_equals_scipy(alternative, n, method):
    rng = np.random.default_rng(n)
    x, y = rng.normal(size=(2, n))
    ours = wilcoxon(x, y, alternative=alternative)
    theirs = stats.wilcoxon(x, y, alternative=alternative, method="exact" if n < 51 else "approx")
    assert ours.p_value == pytest.approx(theirs.pvalue, rel=1e-12)
    assert (ours.method, ours.n_pairs) == (method, n)


def test_wilcoxon_leaves_out_pairs_without_difference():
    x, y = np.array([1.0, 2.0, 3.0, 4.0, np.nan]), np.array([1.0, 2.5, 4.0, 6.0, 1.0])
    test = wilcoxon(x, y, alternative="less")
    assert (test.n_pairs, test.method) == (3, "exact")
    assert test.p_value == pytest.approx(1 / 8)


def by_all_signs(x, alternative):
    """Count the signs of the mid-ranks, 2^n of them, that are as extreme."""
    x = x[x != 0]
    placed = stats.rankdata(np.abs(x))
    signs = np.array(list(product((False, True), repeat=x.size)))
    sums, result = signs @ placed, placed[x > 0].sum()
    low, high = np.mean(sums <= result), np.mean(sums >= result)
    return {"less": low, "greater": high}.get(alternative, min(1.0, 2 * min(low, high)))


@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
@pytest.mark.parametrize("n", [1, 4, 5, 8, 12])
def test_wilcoxon_with_ties_counts_all_signs(alternative, n):
    rng = np.random.default_rng(n)
    for _ in range(20):
        x = rng.integers(-3, 5, n).astype(float)
        test = wilcoxon(x, np.zeros(n), alternative=alternative)
        if test.n_pairs:
            assert test.method == "exact"
            assert test.p_value == pytest.approx(by_all_signs(x, alternative), rel=1e-12)


def test_five_tied_pairs_of_one_sign_give_one_in_thirty_two():
    """The normal form said 0.013, below what any five pairs can show."""
    assert wilcoxon(np.ones(5), np.zeros(5), alternative="greater").p_value == 1 / 32
    assert wilcoxon(np.ones(5), np.zeros(5)).p_value == 1 / 16
    # In decimals, sizes that are equal but for rounding are tied, and equal values are no pair.
    x, y = np.array([0.3, 0.2, 0.4, 0.1 + 0.2]), np.array([0.2, 0.1, 0.3, 0.3])
    test = wilcoxon(x, y)
    assert (test.n_pairs, test.statistic, test.p_value) == (3, 6.0, 0.25)
    assert np.unique(x - y).size == 4


def test_wilcoxon_holds_its_level_with_ties():
    rng = np.random.default_rng(4)
    x = rng.choice([-2.0, -1, 0, 1, 2], size=(3000, 7), p=[0.1, 0.3, 0.2, 0.3, 0.1])
    results = [wilcoxon(row, np.zeros(7), alternative="greater").p_value for row in x]
    for level in (0.01, 0.05, 0.1):
        assert np.mean(np.array(results) <= level) < level + 3 * np.sqrt(level * (1 - level) / 3000)


def test_many_tied_pairs_take_the_normal_form():
    x = np.random.default_rng(1).integers(-3, 5, 90).astype(float)
    theirs = stats.wilcoxon(x, method="approx", correction=False)
    test = wilcoxon(x, np.zeros(90))
    assert test.method == "normal"
    assert test.p_value == pytest.approx(theirs.pvalue, rel=1e-12)
    endless = wilcoxon([np.inf, np.inf, 1.0], [0.0, 0.0, 0.0])
    assert (endless.n_pairs, endless.statistic) == (3, 6.0)


def test_wilcoxon_without_any_difference():
    for alternative in ("two-sided", "less", "greater"):
        test = wilcoxon([1.0, 2.0], [1.0, 2.0], alternative=alternative)
        assert (test.p_value, test.method) == (1.0, "no difference")


def test_pairwise_wilcoxon_has_the_right_side_and_direction():
    rng = np.random.default_rng(0)
    values = rng.normal([0.0, 1.0, 2.0], size=(12, 3))
    p = pairwise_wilcoxon(values, lower_is_better=True)
    assert p[0, 2] < 0.05 < p[2, 0]
    np.testing.assert_array_equal(p, pairwise_wilcoxon(-values, lower_is_better=False))
    np.testing.assert_array_equal(p.T, pairwise_wilcoxon(values, lower_is_better=False))
    both = pairwise_wilcoxon(values, lower_is_better=True, alternative="two-sided")
    np.testing.assert_array_equal(both, both.T)


def test_pairwise_wilcoxon_equals_scikit_posthocs():
    posthocs = pytest.importorskip("scikit_posthocs")
    values = np.random.default_rng(3).normal([0, 0.2, 0.5, 0.5], size=(20, 4))
    ours = pairwise_wilcoxon(values, lower_is_better=True, alternative="two-sided")
    theirs = posthocs.posthoc_wilcoxon(values.T.tolist()).to_numpy()
    off = ~np.eye(4, dtype=bool)
    np.testing.assert_allclose(ours[off], theirs[off], rtol=1e-12)
    upper = np.triu_indices(4, 1)
    theirs = posthocs.posthoc_wilcoxon(values.T.tolist(), p_adjust="holm").to_numpy()
    np.testing.assert_allclose(adjust(ours[upper]), theirs[upper], rtol=1e-12)


@pytest.mark.parametrize("blocks", [3, 10, 40])
@pytest.mark.parametrize("k", [3, 5, 13])
@pytest.mark.parametrize("rounded", [False, True])
def test_friedman_equals_scipy(blocks, k, rounded):
    values = np.random.default_rng(blocks * k).normal(size=(blocks, k))
    values = np.round(values) if rounded else values
    ours = friedman(values, lower_is_better=True)
    theirs = stats.friedmanchisquare(*values.T)
    assert ours.statistic == pytest.approx(theirs.statistic, rel=1e-10)
    if ours.method == "chi-square":
        assert ours.p_value == pytest.approx(theirs.pvalue, rel=1e-10)
    assert (ours.method == "exact") == (k == 3 or (k, blocks) == (5, 3))
    np.testing.assert_allclose(ours.mean_ranks, stats.rankdata(values, axis=1).mean(axis=0))
    # Iman and Davenport's F is that of a two-way analysis of variance of the ranks.
    f = (blocks - 1) * theirs.statistic / (blocks * (k - 1) - theirs.statistic)
    assert ours.f_statistic == pytest.approx(f, rel=1e-9)


@pytest.mark.parametrize(("blocks", "k"), [(2, 2), (4, 2), (3, 3), (4, 3), (2, 4), (3, 4), (2, 5)])
@pytest.mark.parametrize("rounded", [False, True])
def test_friedman_counts_all_orders(blocks, k, rounded):
    rng = np.random.default_rng(blocks + k)
    for _ in range(3):
        values = rng.normal(size=(blocks, k))
        placed = stats.rankdata(np.round(values) if rounded else values, axis=1)
        orders = [np.array(list(permutations(row))) for row in placed]
        sums = orders[0][:1]
        for each in orders[1:]:
            sums = (sums[:, None] + each).reshape(-1, k)
        apart = np.square(2 * sums - blocks * (k + 1)).sum(axis=1)
        result = np.square(2 * placed.sum(axis=0) - blocks * (k + 1)).sum()
        ours = friedman(placed, lower_is_better=True)
        assert ours.method == "exact"
        assert ours.p_value == pytest.approx(np.mean(apart >= result), rel=1e-12)


def test_friedman_of_published_tables():
    # Hollander and Wolfe, table A.22 (k = 3): chances of 6.0 for 3 blocks and 6.5 for 4.
    perfect = friedman(np.tile([1.0, 2, 3], (3, 1)), lower_is_better=True)
    assert (perfect.statistic, round(perfect.p_value, 3)) == (6.0, 0.028)
    four = friedman([[1, 2, 3], [1, 2, 3], [1, 2, 3], [1, 3, 2]], lower_is_better=True)
    assert (four.statistic, round(four.p_value, 3)) == (6.5, 0.042)


@pytest.mark.parametrize(("k", "blocks"), [(2, 4), (3, 4), (3, 3), (2, 8)])
def test_friedman_holds_its_level_in_few_blocks(k, blocks):
    rng = np.random.default_rng(k)
    results = [friedman(rng.normal(size=(blocks, k)), lower_is_better=True) for _ in range(2000)]
    assert np.mean([f.p_value <= 0.05 for f in results]) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 2000)


def test_friedman_does_not_depend_on_the_direction():
    values = np.random.default_rng(5).normal(size=(9, 4))
    up, down = (friedman(values, lower_is_better=lower) for lower in (True, False))
    assert up.statistic == pytest.approx(down.statistic, rel=1e-12)
    np.testing.assert_allclose(up.mean_ranks, 5 - down.mean_ranks)


def test_critical_differences_of_demsar():
    # Demšar (2006), table 5a: critical values at 0.05 for 2 to 10 methods, and his example.
    q = [1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164]
    unit = [np.sqrt(k * (k + 1) / 6) for k in range(2, 11)]
    ours = [critical_difference(k, 1) for k in range(2, 11)]
    np.testing.assert_allclose(np.divide(ours, unit), q, atol=1.1e-3)
    assert critical_difference(4, 14) == pytest.approx(1.25, abs=0.005)
    assert critical_difference(4, 14, alpha=0.1) == pytest.approx(1.12, abs=0.005)


def test_friedman_for_two_methods_is_the_sign_test():
    values = np.array([[1, 2], [1, 2], [1, 2], [2, 1.0], [1, 3]])
    test = friedman(values, lower_is_better=True)
    assert test.statistic == pytest.approx((4 - 1) ** 2 / 5)
    assert test.p_value == pytest.approx(stats.binomtest(4, 5).pvalue)


def test_friedman_where_it_cannot_be_made():
    test = friedman([[1, 2, 3.0]], lower_is_better=True)
    assert np.isnan([test.statistic, test.p_value, test.f_p_value]).all()
    assert "2 complete blocks" in test.note
    assert test.mean_ranks.tolist() == [1, 2, 3]
    none = friedman([[1, np.nan], [np.nan, 2]], lower_is_better=True)
    assert none.n_blocks == 0
    assert np.isnan(none.mean_ranks).all()


def test_friedman_without_any_difference_and_with_a_perfect_one():
    same = friedman(np.ones((4, 3)), lower_is_better=True)
    assert (same.statistic, same.p_value, same.f_p_value) == (0.0, 1.0, 1.0)
    perfect = friedman(np.tile([1.0, 2, 3], (4, 1)), lower_is_better=True)
    assert perfect.statistic == pytest.approx(8)
    assert (perfect.f_statistic, perfect.f_p_value) == (np.inf, 0.0)


def test_friedman_leaves_out_incomplete_blocks_and_says_so():
    values = np.random.default_rng(0).normal(size=(6, 3))
    values[2, 1] = np.nan
    test = friedman(values, lower_is_better=True)
    whole = friedman(np.delete(values, 2, axis=0), lower_is_better=True)
    assert test.statistic == whole.statistic
    assert (test.n_blocks, test.note[:6]) == (5, "1 of 6")


@pytest.mark.parametrize(("k", "blocks"), [(2, 8), (3, 6), (5, 14), (13, 30)])
def test_nemenyi_equals_scikit_posthocs(k, blocks):
    posthocs = pytest.importorskip("scikit_posthocs")
    values = np.random.default_rng(k).normal(size=(blocks, k)) + np.linspace(0, 2, k)
    test = friedman(values, lower_is_better=True)
    ours = nemenyi(test.mean_ranks, test.n_blocks)
    theirs = posthocs.posthoc_nemenyi_friedman(values).to_numpy()
    np.testing.assert_allclose(ours, theirs, atol=1e-8)


@pytest.mark.parametrize("k", [2, 4, 13])
def test_critical_difference_is_where_nemenyi_reaches_alpha(k):
    reach = critical_difference(k, 10, alpha=0.05)
    p = nemenyi([1.0, 1.0 + reach, *[np.nan] * (k - 2)], 10)
    assert p[0, 1] == pytest.approx(0.05, abs=1e-6)


def test_cliques_are_the_largest_groups():
    assert cliques([1.0, 1.5, 2.4, 3.0], 1.0) == ((0, 1), (1, 2), (2, 3))
    assert cliques([1.0, 1.2, 1.4, 3.0], 1.0) == ((0, 1, 2),)
    assert cliques([1.0, 3.0], 1.0) == ()
    assert cliques([2.0, 2.0, 2.0], 0.5) == ((0, 1, 2),)
    assert cliques([2.0, np.nan, 1.9], 0.5) == ((2, 0),)
    assert cliques([1.0, 2.0], 1.0) == ()  # a distance that reaches it is told apart


def test_refusals():
    with pytest.raises(ShapeError, match="same length; got 2 and 3"):
        wilcoxon([1, 2], [1, 2, 3])
    with pytest.raises(InputError, match="`alternative`"):
        wilcoxon([1, 2], [1, 3], alternative="better")
    with pytest.raises(ShapeError, match=r"`values` must have the shape \(blocks, k\)"):
        friedman([1, 2, 3], lower_is_better=True)
    with pytest.raises(DomainError, match="at least 2 methods"):
        critical_difference(1, 10)
    with pytest.raises(InputError, match="`n_blocks`"):
        nemenyi([1, 2], 0)


def test_false_positive_rates_under_the_null():
    rng = np.random.default_rng(8)
    reach = critical_difference(5, 8)
    results = [friedman(rng.normal(size=(8, 5)), lower_is_better=True) for _ in range(1500)]
    error = np.sqrt(0.05 * 0.95 / 1500)
    # With 8 blocks Nemenyi's distance stays below its level; Iman and Davenport's form is close.
    assert 0.03 < np.mean([f.p_value <= 0.05 for f in results]) < 0.05 + 3.5 * error
    assert abs(np.mean([f.f_p_value <= 0.05 for f in results]) - 0.05) < 0.01 + 3.5 * error
    assert 0.02 < np.mean([np.ptp(f.mean_ranks) >= reach for f in results]) < 0.05 + 3.5 * error
    one_sided = [
        pairwise_wilcoxon(rng.normal(size=(10, 2)), lower_is_better=True)[0, 1] for _ in range(1500)
    ]
    assert abs(np.mean(np.array(one_sided) <= 0.05) - 0.042) < 3.5 * error  # the exact level


def test_the_probabilities_of_the_same_ranks_are_counted_once():
    _signed_rank_probabilities.cache_clear()
    runs = np.random.default_rng(0).random((5, 13))
    for i in range(13):
        for j in range(i + 1, 13):
            test = wilcoxon(runs[:, i], runs[:, j])
            assert test.p_value == pytest.approx(stats.wilcoxon(runs[:, i], runs[:, j]).pvalue)
    assert _signed_rank_probabilities.cache_info().misses == 1
