"""Differences over paired resamples, non-inferiority, and the test that is not one."""

import numpy as np
import pytest
from scipy.stats import norm

from abstain.errors import DomainError, InputError, ShapeError
from abstain.inference.non_inferiority import non_inferiority, non_inferiority_from_influences
from abstain.inference.paired import (
    REPLICATES_WARNING,
    bootstrap_difference,
    wilcoxon_on_replicates,
)


def means(rng, n=80, size=400, shift=0.0):
    """Two paired samples of the same mean (but for `shift`), and bootstrap replicates of it."""
    x = rng.normal(size=n)
    pair = np.stack([x + rng.normal(scale=0.5, size=n) - shift, x + rng.normal(scale=0.5, size=n)])
    counts = rng.multinomial(n, np.full(n, 1 / n), size=size)
    return pair.mean(axis=1), pair @ counts.T / n


def test_the_numbers_equal_those_of_the_differences():
    values, (a, b) = means(np.random.default_rng(0), shift=0.2)
    difference = bootstrap_difference(a, b, tuple(values), lower_is_better=True, level=0.9)
    d = a - b
    assert difference.difference == values[0] - values[1]
    assert [difference.low, difference.high] == pytest.approx(np.quantile(d, [0.05, 0.95]))
    assert difference.standard_error == pytest.approx(d.std(ddof=1))
    assert difference.superiority == pytest.approx((d < 0).mean())
    assert difference.p_value == pytest.approx(2 * (1 + (d >= 0).sum()) / 401)
    basic = bootstrap_difference(
        a, b, tuple(values), lower_is_better=True, level=0.9, method="basic"
    )
    assert [basic.low, basic.high] == pytest.approx(
        [2 * difference.difference - difference.high, 2 * difference.difference - difference.low]
    )
    back = bootstrap_difference(a, b, tuple(values), lower_is_better=False)
    assert back.superiority == pytest.approx(1 - difference.superiority)
    assert back.p_value == difference.p_value


def test_p_value_and_interval_agree():
    rng = np.random.default_rng(1)
    for method in ("percentile", "basic"):
        for _ in range(50):
            values, (a, b) = means(rng, size=999, shift=rng.normal(scale=0.2))
            difference = bootstrap_difference(
                a, b, tuple(values), lower_is_better=True, method=method
            )
            excluded = difference.low > 0 or difference.high < 0
            assert excluded == (difference.p_value < 0.05) or abs(difference.p_value - 0.05) < 0.005


def test_false_positive_rate_of_the_valid_test_and_of_the_one_on_replicates():
    rng = np.random.default_rng(2)
    valid, few, many = [], [], []
    for _ in range(300):
        values, replicates = means(rng, size=500)
        valid.append(bootstrap_difference(*replicates, tuple(values), lower_is_better=True).p_value)
        few.append(
            wilcoxon_on_replicates(replicates[:, :50], lower_is_better=True, adjustment="none")[
                0, 1
            ]
        )
        many.append(
            wilcoxon_on_replicates(replicates, lower_is_better=True, adjustment="none")[0, 1]
        )
    valid, few, many = map(np.array, (valid, few, many))
    assert abs((valid <= 0.05).mean() - 0.05) < 3.5 * np.sqrt(0.05 * 0.95 / 300)
    # One-sided at 5 %, of methods that are equally good: wrong in nearly half of all studies.
    assert (few <= 0.05).mean() > 0.3
    assert (many <= 0.05).mean() > 0.4
    ahead = many < 0.5
    assert np.median(many[ahead]) < 1e-3 * np.median(few[ahead])
    assert "not independent samples" in REPLICATES_WARNING


def test_equal_methods():
    a = np.random.default_rng(3).normal(size=50)
    difference = bootstrap_difference(a, a, (1.0, 1.0), lower_is_better=True)
    assert (difference.difference, difference.p_value, difference.superiority) == (0.0, 1.0, 0.5)
    assert (difference.low, difference.high) == (0.0, 0.0)
    p = wilcoxon_on_replicates(np.stack([a, a]), lower_is_better=True)
    assert p[0, 1] == p[1, 0] == 1.0


def test_resamples_without_a_value():
    values, (a, b) = means(np.random.default_rng(4))
    gap = a.copy()
    gap[7] = np.nan
    difference = bootstrap_difference(gap, b, tuple(values), lower_is_better=True)
    assert (difference.n_resamples, difference.note) == (
        399,
        "1 of 400 resamples left out: no value",
    )
    none = bootstrap_difference(np.full(3, np.nan), b[:3], (np.nan, 1.0), lower_is_better=True)
    assert np.isnan([none.difference, none.low, none.p_value, none.superiority]).all()
    assert none.note


def test_wilcoxon_on_replicates_is_adjusted_over_all_ordered_pairs():
    table = np.random.default_rng(5).normal(size=(3, 100)) + np.array([[0.0], [0.1], [0.5]])
    plain = wilcoxon_on_replicates(table, lower_is_better=True, adjustment="none")
    bonferroni = wilcoxon_on_replicates(table, lower_is_better=True, adjustment="bonferroni")
    np.testing.assert_allclose(bonferroni, np.minimum(1, 6 * plain))
    holm = wilcoxon_on_replicates(table, lower_is_better=True)
    off = ~np.eye(3, dtype=bool)
    assert np.all((plain[off] <= holm[off]) & (holm[off] <= bonferroni[off]))
    assert np.isnan(np.diag(holm)).all()


@pytest.mark.parametrize("lower", [True, False])
def test_non_inferiority_is_the_shifted_test(lower):
    sign = 1 if lower else -1
    test = non_inferiority(sign * 0.01, 0.01, margin=0.03, lower_is_better=lower)
    assert test.p_value == pytest.approx(norm.cdf(-2))
    assert test.bound == pytest.approx(sign * (0.01 + norm.ppf(0.95) * 0.01))
    assert test.non_inferior
    assert not non_inferiority(sign * 0.02, 0.01, margin=0.03, lower_is_better=lower).non_inferior


def test_non_inferiority_agrees_with_its_bound():
    rng = np.random.default_rng(6)
    for d, e in zip(rng.normal(size=200), rng.random(200), strict=True):
        test = non_inferiority(d, e, margin=0.5, lower_is_better=True, level=0.9)
        assert test.non_inferior == (test.p_value < 0.1)


def test_non_inferiority_relative_margin_and_edges():
    test = non_inferiority(0.001, 0.001, margin=0.1, relative_to=0.05, lower_is_better=True)
    assert test.margin == pytest.approx(0.005)
    silent = non_inferiority(0.001, 0.0, margin=0.01, lower_is_better=True)
    assert np.isnan(silent.p_value)
    assert not silent.non_inferior
    assert "nothing varies" in silent.note
    missing = non_inferiority(float("nan"), 0.1, margin=0.01, lower_is_better=True)
    assert np.isnan([missing.p_value, missing.bound]).all()
    assert not missing.non_inferior


def test_refusals():
    with pytest.raises(ShapeError, match="same resamples; got 2 and 3"):
        bootstrap_difference([1, 2], [1, 2, 3], (0, 0), lower_is_better=True)
    with pytest.raises(InputError, match="`method`"):
        bootstrap_difference([1, 2], [1, 2], (0, 0), lower_is_better=True, method="bca")
    with pytest.raises(DomainError, match="above 0"):
        non_inferiority(0.1, 0.1, margin=0.0, lower_is_better=True)
    with pytest.raises(DomainError, match="above 0"):
        non_inferiority(0.1, 0.1, margin=0.1, relative_to=0.0, lower_is_better=True)
    with pytest.raises(DomainError, match="`standard_error`"):
        non_inferiority(0.1, -0.1, margin=0.1, lower_is_better=True)
    with pytest.raises(InputError, match="must be one of 'holm'"):
        wilcoxon_on_replicates([[1, 2], [2, 3]], lower_is_better=True, adjustment="fdr")


def test_resamples_that_differ_by_rounding_tie():
    drawn = 0.5 + np.random.default_rng(0).normal(size=(2, 200)) * 1e-16
    difference = bootstrap_difference(drawn[0], drawn[1], (0.5, 0.5 - 6e-17), lower_is_better=True)
    assert (difference.difference, difference.low, difference.high, difference.superiority) == (
        0,
        0,
        0,
        0.5,
    )
    assert difference.p_value == 1


def test_resamples_that_miss_the_difference_are_biased():
    draws = np.random.default_rng(1).normal(size=(2, 500))
    far = bootstrap_difference(draws[0] + 1, draws[1], (0.0, 0.0), lower_is_better=True)
    assert "biased by" in far.note
    near = bootstrap_difference(draws[0], draws[1], (0.0, 0.0), lower_is_better=True)
    assert not near.note


def failing(rng, lower: bool, n: int = 400, rate: float = 0.02):
    """Two means of rare failures of the same size; turned around for a score."""
    loss = (rng.random((n, 2)) < rate).astype(float)
    return (loss if lower else 1 - loss), int(loss.any(axis=1).sum())


@pytest.mark.parametrize("lower", [True, False])
def test_non_inferiority_holds_its_level_with_few_failures(lower):
    # The first is worse by the margin exactly: it must pass in at most 5 % of the studies.
    rng = np.random.default_rng(2)
    passed, normal, draws, margin = 0, 0, 1500, 0.02
    for _ in range(draws):
        x, failures = failing(rng, lower)
        worse = (rng.random(400) < 0.02 / 0.98) & (x[:, 0] == (0 if lower else 1))
        x[worse, 0] = 1 if lower else 0
        mean, centered = x.mean(axis=0), x - x.mean(axis=0)
        options = {"margin": margin, "lower_is_better": lower}
        result = non_inferiority_from_influences(mean, centered, failures=failures, **options)
        passed += result.non_inferior
        assert result.non_inferior == (result.bound < margin if lower else result.bound > -margin)
        apart = centered[:, 0] - centered[:, 1]
        normal += non_inferiority(
            float(mean[0] - mean[1]), float(apart.std(ddof=1)) / 20, **options
        ).non_inferior
    assert passed / draws < 0.05 + 3 * np.sqrt(0.05 * 0.95 / draws)
    assert passed < normal


def test_non_inferiority_is_not_shown_by_silence():
    silent = non_inferiority_from_influences(
        (0.0, 0.0), np.zeros((50, 2)), margin=0.01, lower_is_better=True
    )
    assert np.isnan(silent.p_value)
    assert not silent.non_inferior
    assert silent.note
    x = np.random.default_rng(3).normal(size=(50, 1))
    same = non_inferiority_from_influences(
        (0.2, 0.2), np.hstack([x, x]), margin=0.01, lower_is_better=True
    )
    assert (same.p_value, same.bound, same.non_inferior) == (0, 0, True)
    half = non_inferiority_from_influences(
        (0.2, 0.2), x * np.array([1.0, -1.0]), margin=0.01, lower_is_better=True, level=0.5
    )
    assert half.bound == pytest.approx(0, abs=0.02)
    with pytest.raises(DomainError, match="`level`"):
        non_inferiority_from_influences(
            (0.2, 0.2), np.hstack([x, x]), margin=0.1, lower_is_better=True, level=2
        )
