"""Numbers over runs and data sets against SciPy and against resampling by hand."""

import numpy as np
import pytest
from scipy.stats import mannwhitneyu, trim_mean

from abstain.errors import DomainError, InputError, ShapeError
from abstain.inference import aggregates
from abstain.inference.aggregates import (
    interquartile_mean,
    performance_profile,
    probability_of_improvement,
)


def runs(seed, sets=4, size=10, shift=0.0):
    return np.round(np.random.default_rng(seed).normal(size=(sets, size)) + shift, 1)


def test_improvement_is_the_mean_of_mann_whitney():
    a, b = runs(0), runs(1, size=7, shift=0.5)
    u = [mannwhitneyu(y, x).statistic / 70 for x, y in zip(a, b, strict=True)]
    probability = probability_of_improvement(a, b, lower_is_better=True)
    assert probability.value == pytest.approx(np.mean(u))
    assert probability.low < probability.value < probability.high
    back = probability_of_improvement(a, b, lower_is_better=False)
    assert back.value == pytest.approx(1 - probability.value)


def test_improvement_interval_equals_that_of_resampled_runs():
    a, b = runs(2), runs(3, shift=0.5)
    rng = np.random.default_rng(5)
    drawn = []
    for _ in range(4000):
        x = np.array([row[rng.integers(10, size=10)] for row in a])
        y = np.array([row[rng.integers(10, size=10)] for row in b])
        lead = y[:, None, :] - x[:, :, None]
        drawn.append((lead > 0).mean() + (lead == 0).mean() / 2)
    probability = probability_of_improvement(a, b, lower_is_better=True, resamples=4000)
    assert [probability.low, probability.high] == pytest.approx(
        np.quantile(drawn, [0.025, 0.975]), abs=0.015
    )


def test_improvement_interval_covers():
    rng = np.random.default_rng(0)
    from scipy.stats import norm

    truth, hits = norm.cdf(0.5 / np.sqrt(2)), 0
    for seed in range(200):
        a, b = rng.normal(size=(2, 5, 10))
        probability = probability_of_improvement(
            a, b + 0.5, lower_is_better=True, resamples=300, rng=seed
        )
        hits += probability.low <= truth <= probability.high
    assert 0.88 <= hits / 200 <= 0.99


@pytest.mark.parametrize("shape", [(1, 5), (3, 7), (4, 10)])
def test_interquartile_mean_equals_scipy(shape):
    table = runs(4, *shape)
    assert interquartile_mean(table).value == pytest.approx(trim_mean(table.ravel(), 0.25))


def test_interquartile_mean_interval_equals_that_of_resampled_runs():
    table = runs(5, shift=np.arange(4)[:, None])
    rng = np.random.default_rng(6)
    draws = [
        trim_mean([row[i] for row in table for i in rng.integers(10, size=10)], 0.25)
        for _ in range(3000)
    ]
    mean = interquartile_mean(table, resamples=3000)
    assert [mean.low, mean.high] == pytest.approx(np.quantile(draws, [0.025, 0.975]), abs=0.05)


def test_profile_is_the_share_that_reaches_each_threshold():
    table = runs(6)
    result = performance_profile(table, grid=[-1, 0, 1], lower_is_better=True)
    assert result.share.tolist() == pytest.approx([(table <= t).mean() for t in (-1, 0, 1)])
    assert np.all((result.low <= result.share) & (result.share <= result.high))
    higher = performance_profile(table, lower_is_better=False)
    assert higher.threshold.size == 101
    assert (higher.share[0], np.all(np.diff(higher.share) <= 0)) == (1.0, True)


def test_blocks_of_draws_change_nothing_but_memory(monkeypatch):
    table = runs(7)
    mean = interquartile_mean(table, resamples=100)
    monkeypatch.setattr(aggregates, "_MAX_NUMBERS", 200)
    assert interquartile_mean(table, resamples=100) == mean


def test_one_run_has_no_interval():
    one = np.array([[1.0], [2.0]])
    for found in (
        interquartile_mean(one),
        probability_of_improvement(one, one, lower_is_better=True),
    ):
        assert np.isnan([found.low, found.high]).all()
        assert "one run" in found.note
    profile = performance_profile(one, lower_is_better=True)
    assert np.isnan(profile.low).all()
    assert "one run" in profile.note


def test_seeds():
    table = runs(8)
    first, same, other = (interquartile_mean(table, rng=r) for r in (1, 1, 2))
    assert first == same != other


def test_refusals():
    with pytest.raises(ShapeError, match="same data sets; got 4 and 3"):
        probability_of_improvement(runs(0), runs(0, sets=3), lower_is_better=True)
    with pytest.raises(DomainError, match="`scores` must be finite"):
        interquartile_mean([[1.0, np.nan]])
    with pytest.raises(InputError, match="`resamples`"):
        interquartile_mean([[1.0, 2.0]], resamples=0)


def test_methods_together_are_each_by_itself():
    runs = np.random.default_rng(5).random((4, 3, 5)).round(1)
    means = aggregates.interquartile_means(runs, level=0.9, resamples=200, rng=7)
    for run, found in zip(runs, means, strict=True):
        alone = aggregates.interquartile_mean(run, level=0.9, resamples=200, rng=7)
        assert (found.value, found.low, found.high) == pytest.approx(
            (alone.value, alone.low, alone.high), rel=1e-14
        )
    grid = np.linspace(0, 1, 21)
    options = {"lower_is_better": False, "level": 0.9, "resamples": 200, "rng": 7}
    for run, found in zip(
        runs, aggregates.performance_profiles(runs, grid, **options), strict=True
    ):
        alone = aggregates.performance_profile(run, grid=grid, **options)
        assert np.array_equal(found.share, alone.share)
        assert np.array_equal(found.low, alone.low)
        assert np.array_equal(found.high, alone.high)


def test_methods_together_are_drawn_once(monkeypatch):
    calls = []
    drawn = aggregates._resampled_run_shares
    monkeypatch.setattr(
        aggregates, "_resampled_run_shares", lambda *own: calls.append(1) or drawn(*own)
    )
    runs = np.random.default_rng(5).random((20, 1, 5))
    options = {"lower_is_better": True, "level": 0.95}
    list(aggregates.performance_profiles(runs, np.linspace(0, 1, 101), **options))
    assert len(calls) == 1
    list(aggregates.pairwise_improvements(runs, **options))
    assert len(calls) == 3
