"""One method against all others: adjusted p-values, intervals at the level of each test, ranks."""

import numpy as np
import polars as pl
import pytest

import abstain as ab
from abstain.errors import InputError
from abstain.inference.multiplicity import adjust, levels_of_tests
from abstain.inference.paired import interval_of_test

NOISE = {"a": 0.9, "b": 1.0, "c": 1.1, "d": 1.3, "e": 1.6, "f": 3.0}


def predictions(seed=0, n=600, noise=NOISE, **changes) -> ab.Predictions:
    rng = np.random.default_rng(seed)
    loss = (rng.random(n) < 0.25).astype(float)
    signal = rng.normal(size=n) - 1.5 * loss
    confidence = {name: signal + s * rng.normal(size=n) for name, s in noise.items()}
    return ab.Predictions(confidence=confidence, loss=loss, **changes)


def summary(comparison, data=()):
    return {row.method: row for row in comparison.summary_of(comparison.metrics[0], data)}


# ---------------------------------------------------------------------------------- p-values
@pytest.mark.parametrize("adjustment", ["holm", "bonferroni", "none"])
def test_p_values_of_the_reference_are_one_family(adjustment):
    comparison = ab.compare(predictions(), reference="c", adjustment=adjustment, bands=False)
    rows = [row for row in comparison.summary if row.method != "c"]
    assert {row.n_tests for row in rows} == {5}
    p_values = [row.p_value for row in rows]
    expected = adjust(p_values, method=adjustment)
    if adjustment == "holm":
        # By hand: the smallest of 5 p-values times 5, the next one times 4, and so on, increasing.
        order = np.argsort(p_values)
        products = np.array(p_values)[order] * [5, 4, 3, 2, 1]
        by_hand = np.minimum(np.maximum.accumulate(products), 1)
        np.testing.assert_allclose(expected[order], by_hand, rtol=1e-12)
    np.testing.assert_array_equal([row.adjusted for row in rows], expected)
    by_pair = {frozenset((p.first, p.second)): p for p in comparison.pairs}
    for row in rows:
        pair = by_pair[frozenset((row.method, "c"))]
        assert row.p_value == pair.p_value
        assert row.adjusted <= pair.adjusted
        sign = 1 if pair.first == row.method else -1
        assert row.difference == pytest.approx(sign * pair.difference, abs=1e-12)


def test_p_values_equal_statsmodels():
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    comparison = ab.compare(predictions(3), reference="d", bands=False)
    rows = [row for row in comparison.summary if row.method != "d"]
    expected = multitest.multipletests([row.p_value for row in rows], method="holm")[1]
    np.testing.assert_allclose([row.adjusted for row in rows], expected, rtol=0, atol=1e-15)


def test_without_a_reference_the_best_is_tested_among_all_pairs():
    comparison = ab.compare(predictions(1), bands=False)
    rows = summary(comparison)
    (reference,) = {row.reference for row in rows.values()}
    assert next(iter(rows)) == reference
    assert rows[reference].conclusion == "reference"
    relations = comparison.relations_to_best("augrc", ())
    for pair in comparison.pairs:
        if reference in {pair.first, pair.second}:
            row = rows[pair.second if pair.first == reference else pair.first]
            assert row.adjusted == pair.adjusted
            assert (row.conclusion == "significantly worse") == bool(pair.better)
            assert (relations[row.method] == "worse") == bool(pair.better)
    assert rows[reference].n_tests == 15


# --------------------------------------------------------------------------------- intervals
@pytest.mark.parametrize(
    ("metric", "options"),
    [
        ("augrc", {}),
        ("augrc", {"adjustment": "bonferroni", "level": 0.9}),
        ("aurc", {"adjustment": "none"}),
        ("failure_auroc", {"reference": None}),
        ("selective_risk@80cov", {}),
        ("augrc", {"test": "bootstrap", "bootstrap": 999, "adjustment": "none"}),
        ("fpr_at_95tpr", {"bootstrap": 999, "adjustment": "none"}),
        ("augrc", {"test": "bootstrap", "bootstrap": 30}),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_an_interval_excludes_0_if_and_only_if_the_difference_is_significant(metric, options, seed):
    comparison = ab.compare(
        predictions(seed), metrics=[metric], **{"reference": "b", "bands": False, **options}
    )
    rows = [row for row in comparison.summary if row.conclusion != "reference"]
    n_intervals = 0
    for row in rows:
        assert (row.adjusted < 1 - comparison.level) == row.conclusion.startswith("significantly")
        if np.isnan(row.difference_low):
            continue
        n_intervals += 1
        excludes_zero = row.difference_low > 0 or row.difference_high < 0
        assert excludes_zero == row.conclusion.startswith("significantly")
        assert row.difference_low <= row.difference <= row.difference_high
        if row.conclusion != "not significantly different":
            is_better = row.conclusion == "significantly better"
            assert is_better == ((row.difference < 0) == row.lower_is_better)
    assert n_intervals == len(rows) or options.get("bootstrap") == 30


def test_an_interval_at_the_usual_level_is_that_of_the_pair():
    data = predictions(noise={"a": 1.0, "b": 1.5})
    comparison = ab.compare(data, reference="b", bands=False)
    (pair,), row = comparison.pairs, summary(comparison)["a"]
    assert row.difference_level == pytest.approx(0.95)
    assert (row.difference_low, row.difference_high) == pytest.approx((pair.low, pair.high))


def test_levels_of_holm_by_hand():
    # 0.001 < 0.05/4 and 0.015 < 0.05/3 reject; 0.03 > 0.05/2 ends the procedure.
    levels = levels_of_tests([0.03, 0.001, np.nan, 0.9, 0.015], alpha=0.05)
    np.testing.assert_allclose(levels, [0.025, 0.0125, np.nan, 0.025, 0.05 / 3])
    np.testing.assert_allclose(levels_of_tests([0.01, 0.02], alpha=0.05), [0.025, 0.05])
    assert levels_of_tests([], alpha=0.05).size == 0


@pytest.mark.parametrize("method", ["holm", "bonferroni", "none"])
def test_levels_decide_as_adjusted_p_values_do(method):
    rng = np.random.default_rng(0)
    for _ in range(200):
        p = rng.random(rng.integers(1, 9)) ** 4
        levels = levels_of_tests(p, alpha=0.05, method=method)
        np.testing.assert_array_equal(p < levels, adjust(p, method=method) < 0.05)


def test_an_interval_of_resamples_excludes_0_as_the_test_does():
    rng = np.random.default_rng(0)
    for shift in (0.0, 1.5, 1.96, 2.3, 6.0):
        differences = rng.normal(shift, 1, 199)
        n_beyond = min((differences <= 0).sum(), (differences >= 0).sum())
        p_value = 2 * (1 + n_beyond) / 200
        for alpha in (0.05, 0.02, 0.001, p_value):
            is_rejected = p_value < alpha
            low, high = interval_of_test(differences, alpha, is_rejected=is_rejected)
            if np.isnan(low):
                assert alpha * 200 / 2 - 1 <= 0 or n_beyond == 0
            else:
                assert (low > 0 or high < 0) == is_rejected


# ------------------------------------------------------------------------------------- ranks
@pytest.mark.parametrize("reference", [None, "c"])
def test_ranks_agree_with_the_conclusions(reference):
    comparison = ab.compare(predictions(5), reference=reference, bands=False)
    rows = summary(comparison)
    k = len(rows)
    first = next(row for row in rows.values() if row.conclusion == "reference")
    counts = [row.conclusion for row in rows.values()]
    assert first.rank_low == 1 + counts.count("significantly better")
    assert first.rank_high == k - counts.count("significantly worse")
    for row in rows.values():
        assert 1 <= row.rank_low <= row.rank_high <= k
        if row.conclusion == "significantly worse":
            assert row.rank_low >= 2
        if row.conclusion == "significantly better":
            assert row.rank_high < k
    if reference is None:
        for name, row in rows.items():
            assert row.rank_low == 1 + sum(
                p.better not in {"", name} for p in comparison.pairs if name in {p.first, p.second}
            )


# -------------------------------------------------------------------------- several data sets
def test_a_reference_over_several_data_sets():
    data = {(("study", str(i)),): predictions(i, n=300) for i in range(9)}
    comparison = ab.compare(data, reference="c", bands=False)
    rows = summary(comparison, None)
    assert {row.test for row in rows.values()} == {"Wilcoxon across data sets"}
    others = [row for row in rows.values() if row.method != "c"]
    np.testing.assert_array_equal(
        [row.adjusted for row in others], adjust([row.p_value for row in others])
    )
    assert rows["f"].conclusion == "significantly worse"
    assert all(np.isnan(row.difference_low) for row in others)
    values = comparison.frame("estimates").group_by("method").agg(pl.col("value").mean())
    assert rows["a"].value == pytest.approx(dict(values.iter_rows())["a"])


def test_a_permutation_test_has_no_interval():
    data = predictions(n=200, noise={"a": 0.5, "b": 3.0})
    row = summary(ab.compare(data, reference="b", test="permutation", bands=False))["a"]
    assert row.conclusion == "significantly better"
    assert np.isnan(row.difference_low)


# -------------------------------------------------------------------------------------- input
def test_the_reference_is_a_method():
    with pytest.raises(InputError, match="`reference` must be one of"):
        ab.compare(predictions(), reference="best")
    with pytest.raises(InputError, match="`margin` requires `reference`"):
        ab.compare(predictions(), margin=0.1)


def test_a_margin_tests_both():
    comparison = ab.compare(predictions(), reference="b", margin=0.01, bands=False)
    assert {row.method for row in comparison.non_inferiority} == set(NOISE) - {"b"}
    assert comparison.reference == "b"
    assert summary(comparison)["b"].conclusion == "reference"


def test_undefined_values_have_no_conclusion():
    data = ab.Predictions(confidence={"a": [0.9, 0.8, 0.7], "b": [0.1, 0.2, 0.3]}, loss=[0, 0, 0])
    rows = ab.compare(data, metrics=["failure_auroc"], reference="a", bands=False).summary
    assert [row.conclusion for row in rows if row.method == "b"] == ["not tested"]
    assert all(np.isnan(row.rank_low) for row in rows)


# --------------------------------------------------------------------------------- simulation
@pytest.mark.slow
def test_family_wise_error_rate():
    """Of equally good methods, some difference from the reference is significant in about 5%."""
    equal = dict.fromkeys("abcdefg", 1.5)
    n_studies = 400
    n_errors = 0
    for seed in range(n_studies):
        comparison = ab.compare(predictions(seed, n=400, noise=equal), reference="a", bands=False)
        conclusions = {row.conclusion for row in comparison.summary}
        n_errors += bool(conclusions - {"reference", "not significantly different"})
    rate = n_errors / n_studies
    # Three standard errors of the simulation; Holm's method is conservative for dependent tests.
    assert 0.01 < rate < 0.05 + 3 * np.sqrt(0.05 * 0.95 / n_studies)


@pytest.mark.slow
def test_ranks_contain_the_true_rank_of_the_reference():
    noise = {"a": 0.5, "b": 1.5, "c": 1.5, "d": 1.5, "e": 4.0}
    n_studies, n_errors = 300, 0
    for seed in range(n_studies):
        comparison = ab.compare(predictions(seed, n=400, noise=noise), reference="c", bands=False)
        row = summary(comparison)["c"]
        # The true ranks of b, c and d are 2 to 4.
        n_errors += row.rank_low > 2 or row.rank_high < 4
    assert n_errors / n_studies < 0.05 + 3 * np.sqrt(0.05 * 0.95 / n_studies)
