"""Every two of many numbers at once: the same as each pair by itself, and as plain loops."""

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import t as student

from abstain.inference.differences import compare_pairs, warnings_by_pair
from abstain.inference.influence import DISTANCE_STEPS
from abstain.inference.intervals import difference_from_influences
from abstain.inference.paired import bootstrap_difference, bootstrap_differences
from abstain.inference.pairs import PairedNumbers, PairPowerSums, ratio_intervals
from abstain.inference.small_samples import (
    FailureCount,
    correct_skewness,
    degrees_of_freedom,
    skewness,
)

FIELDS = (
    *("value", "low", "high", "standard_error", "p_value", "superiority"),
    *("ratio", "ratio_low", "ratio_high"),
)


def numbers(k=6, n=700, seed=0):
    """Draw numbers of which two are the same, one is nothing and one is known to be 0."""
    rng = np.random.default_rng(seed)
    common = rng.exponential(size=(n, 1)) - 1
    influences = common + 0.4 * rng.normal(size=(n, k)) ** 3
    values = 0.3 + 0.02 * rng.normal(size=k)
    influences[:, 2], values[2] = influences[:, 1], values[1]
    influences[:, 3] = 1e-18 * rng.normal(size=n)
    values[4] = 0.0
    return values, influences - influences.mean(axis=0)


@pytest.mark.parametrize("n", [3, 64, 513, 2000])
@pytest.mark.parametrize("anchored", [False, True])
def test_powers_are_the_sums_of_every_pair(n, anchored):
    values, parts = numbers(n=n)
    powers = PairPowerSums.from_contributions(parts, values if anchored else None)
    for p, (i, j) in enumerate(combinations(range(parts.shape[1]), 2)):
        a, b = parts[:, i], parts[:, j]
        for r in (1.0, 0.7, -2.0):
            terms = (
                powers.second_powers[:, p],
                powers.third_powers[:, p],
                powers.fourth_powers[:, p],
            )
            for order, own in enumerate(terms, 2):
                whole = sum(c * (powers.anchor[p] - r) ** q for q, c in enumerate(own))
                size = np.sum(np.abs(a) ** order + np.abs(r * b) ** order)
                assert whole == pytest.approx(np.sum((a - r * b) ** order), abs=1e-12 * size)
        for order, own in enumerate(powers.difference_sums[:, p], 2):
            size = np.sum(np.abs(a - b) ** order)
            assert own == pytest.approx(np.sum((a - b) ** order), abs=1e-12 * size)
        known = anchored and values[i] > 0 and values[j] > 0
        assert powers.anchor[p] == (values[i] / values[j] if known else 1.0)
        assert powers.max_difference[p] == np.abs(a - b).max()
        assert powers.max_contribution[p] == max(np.abs(a).max(), np.abs(b).max())


@pytest.mark.parametrize("bounds", [(0.0, 1.0), (0.0, np.inf)])
@pytest.mark.parametrize("reach", [False, True])
def test_all_pairs_at_once_are_each_pair_by_itself(bounds, reach):
    values, influences = numbers()
    k, n = values.size, len(influences)
    failures = [None, *(FailureCount(count) for count in (8, 8, 30, 12, 500))]
    reaches = np.zeros((k, 2, DISTANCE_STEPS.size))
    if reach:
        reaches[[0, 5], :, 3:] = 0.01
    every = PairedNumbers.all_pairs(
        values, influences / n, bounds=bounds, failures=failures, level=0.9
    )
    said = warnings_by_pair(failures, heavy_tailed=True, clusters=[n] * every.n_units.size)
    result = compare_pairs(
        every, lower_is_better=True, bounds=bounds, warnings=said, max_shifts=reaches
    )
    for p, (i, j) in enumerate(combinations(range(k), 2)):
        known = [own for own in (failures[i], failures[j]) if own is not None]
        alone = difference_from_influences(
            values[[i, j]],
            influences[:, [i, j]],
            lower_is_better=True,
            level=0.9,
            bounds=bounds,
            heavy_tailed=True,
            failures=min(known, default=None),
            max_shifts=reaches[[i, j]],
        )
        one = result.record(p)
        messages = [[getattr(own, name) for name in FIELDS] for own in (one, alone)]
        np.testing.assert_allclose(*messages, rtol=1e-11, atol=1e-15)
        assert (one.method, one.note) == (alone.method, alone.note)
    assert "same influence" in result.notes[5], "the pair of the copies"
    assert any("rough guide" in note for note in result.notes)


def test_one_number_has_no_pairs():
    values, influences = numbers()
    alone = PairedNumbers.all_pairs(
        values[:1], influences[:, :1], bounds=(0.0, 1.0), failures=[None], level=0.9
    )
    result = compare_pairs(alone, lower_is_better=True, bounds=(0.0, 1.0), warnings=[])
    assert result.value.size == 0
    assert result.p_value.size == 0


def test_the_ends_of_a_ratio_are_where_the_test_rejects():
    values, influences = (own[..., [0, 1, 4, 5, 6]] for own in numbers(k=7, seed=3))
    values[2] = 0.29
    parts = influences / len(influences)
    every = PairedNumbers.all_pairs(
        values, parts, bounds=(0.0, 1.0), failures=[FailureCount(40)] * 5, level=0.95
    )
    low, high = ratio_intervals(every)
    n = len(parts)
    for p, (i, j) in enumerate(combinations(range(5), 2)):

        def lead(x, side, i=i, j=j):
            ratio = values[i] / values[j] * np.exp(side * x)
            own = parts[:, i] - ratio * parts[:, j]
            error = np.sqrt(np.sum(own * own) * n / (n - 1))
            statistic = correct_skewness((values[i] - ratio * values[j]) / error, skewness(own))
            degrees = min(degrees_of_freedom(own), 39.0)
            return -side * statistic - student.ppf(0.975, degrees)

        for end, side in ((low[p], -1), (high[p], 1)):
            away = brentq(lead, 0.0, 1.0, args=(side,), xtol=1e-15)
            assert end == pytest.approx(values[i] / values[j] * np.exp(side * away), rel=1e-10)


@pytest.mark.parametrize("noise", [1e-3, 1e-6, 1e-8])
def test_the_ends_of_a_ratio_of_numbers_that_go_along_keep_their_digits(noise):
    """Half of one is nearly the other: about 1 the sums of powers would cancel."""
    rng = np.random.default_rng(5)
    one = rng.normal(size=400) / 400
    parts = np.column_stack([one, 2 * one + noise * rng.normal(size=400) / 400])
    values = np.array([0.1, 0.2])
    every = PairedNumbers.all_pairs(
        values, parts, bounds=(0.0, 1.0), failures=[None, None], level=0.95
    )
    low, high = ratio_intervals(every)
    for end, side in ((low[0], -1), (high[0], 1)):
        # How far the end is from one half, in the shares of the first that it leaves over.
        away = (end - 0.5) / noise
        assert np.sign(away) == side
        ratio = 0.5 + noise * away
        own = (parts[:, 0] - 0.5 * parts[:, 1]) - noise * away * parts[:, 1]
        error = np.sqrt(np.sum(own * own) * 400 / 399)
        statistic = correct_skewness((values[0] - ratio * values[1]) / error, skewness(own))
        degrees = degrees_of_freedom(own)
        assert -side * statistic == pytest.approx(student.ppf(0.975, degrees), rel=2e-14 / noise)


@pytest.mark.parametrize("method", ["percentile", "basic"])
def test_resampled_pairs_at_once_are_each_pair_by_itself(method):
    rng = np.random.default_rng(4)
    drawn = 0.2 + 0.05 * rng.normal(size=(5, 1)) + 0.02 * rng.normal(size=(5, 300))
    drawn[3, :7] = np.nan
    values = np.array([0.2, 0.21, 0.19, 0.2, 0.25])
    options = {"lower_is_better": False, "level": 0.8, "method": method}
    every = bootstrap_differences(drawn, values, **options)
    for one, (i, j) in zip(every, combinations(range(5), 2), strict=True):
        alone = bootstrap_difference(drawn[i], drawn[j], tuple(values[[i, j]]), **options)
        assert str(one) == str(alone)
        kept = ~np.isnan(drawn[i] + drawn[j])
        gap = (drawn[i] - drawn[j])[kept]
        ends = np.quantile(gap, [0.1, 0.9])
        if method == "basic":
            ends = 2 * (values[i] - values[j]) - ends[::-1]
        np.testing.assert_allclose([one.low, one.high], ends, rtol=0, atol=1e-15)
        assert one.superiority == np.mean(gap > 0)
        assert one.n_resamples == gap.size
        ratios = np.quantile((drawn[i] / drawn[j])[kept], [0.1, 0.9])
        np.testing.assert_allclose([one.ratio_low, one.ratio_high], ratios, rtol=1e-14)
