"""The scales, the degrees of freedom and the degenerate cases of intervals from influences."""

import numpy as np
import pytest
from scipy import stats

from abstain.inference.intervals import difference_from_influences, interval_from_influence
from abstain.inference.small_samples import (
    MIN_CLUSTERS,
    MIN_FAILURES,
    MIN_FAILURES_HEAVY_TAILED,
    FailureCount,
    correct_skewness,
    degrees_of_freedom,
    invert_skewness_correction,
)


def influences(n: int = 400, k: int = 2, seed: int = 0) -> np.ndarray:
    x = np.random.default_rng(seed).normal(size=(n, k))
    return x - x.mean(axis=0)


@pytest.mark.parametrize(
    ("value", "bounds", "scale", "to"),
    [
        (0.2, (0.0, 1.0), "logit", lambda x: np.log(x / (1 - x))),
        (3.0, (0.0, np.inf), "log", np.log),
        (-0.3, (-1.0, 1.0), "logit", np.arctanh),
        (1.3, (-np.inf, np.inf), "plain", lambda x: x),
    ],
)
def test_symmetric_on_the_scale_of_the_range(value, bounds, scale, to) -> None:
    x = influences(k=1)[:, 0] * 0.1
    result = interval_from_influence(value, x, bounds=bounds)
    assert scale in result.method
    assert bounds[0] < result.low < value < result.high < bounds[1]
    assert np.isclose(to(value) - to(result.low), to(result.high) - to(value))
    near = interval_from_influence(value, x / 1e4, bounds=bounds)
    reach = stats.t.ppf(0.975, degrees_of_freedom(x)) * near.standard_error
    assert np.isclose(near.high - value, reach, rtol=1e-3)


def test_degrees_of_freedom_follow_the_failures_and_stop_below_n() -> None:
    for n, k in ((1000, 5), (1000, 30)):
        x = np.where(np.arange(n) < k, 1 - k / n, -k / n)
        assert np.isclose(degrees_of_freedom(x), 2 * k, rtol=0.2)
    assert degrees_of_freedom(np.repeat([1.0, -1.0], 8)) == 15
    assert degrees_of_freedom(np.array([1.0, 0.0, 0.0])) < 3


def test_higher_levels_and_heavy_tails_are_wider() -> None:
    x = np.where(np.arange(500) < 8, 1.0, 0.0) - 8 / 500
    by_level = [interval_from_influence(0.016, x, level=level) for level in (0.5, 0.9, 0.99)]
    assert np.all(np.diff([i.high - i.low for i in by_level]) > 0)
    light, heavy = (
        interval_from_influence(0.016, x, heavy_tailed=heavy) for heavy in (False, True)
    )
    assert heavy.high > light.high


@pytest.mark.parametrize(
    ("heavy", "few"), [(False, MIN_FAILURES), (True, MIN_FAILURES_HEAVY_TAILED)]
)
def test_few_failures_and_few_clusters_are_said(heavy: bool, few: int) -> None:
    x = influences(k=1)[:, 0] * 0.1
    assert "failures" in interval_from_influence(0.2, x, failures=few - 1, heavy_tailed=heavy).note
    assert not interval_from_influence(0.2, x, failures=few, heavy_tailed=heavy).note
    cluster = np.arange(400) % (MIN_CLUSTERS - 1)
    assert "clusters" in interval_from_influence(0.2, x, cluster=cluster).note


@pytest.mark.parametrize(
    ("value", "x", "why"),
    [
        (0.0, np.array([-1.0, 1.0]), "bound of the range"),
        (1.0, np.array([-1.0, 1.0]), "bound of the range"),
        (0.5, np.zeros(5), "no sample changes"),
        (0.5, np.zeros(1), "single independent sample"),
        (np.nan, np.array([-1.0, 1.0]), "not finite"),
    ],
)
def test_where_there_is_no_interval_the_note_says_why(value, x, why) -> None:
    result = interval_from_influence(value, x, bounds=(0.0, 1.0))
    assert np.isnan(result.low)
    assert np.isnan(result.high)
    assert why in result.note


def test_the_transformation_of_skewness_is_undone_and_is_a_half() -> None:
    for skew in (-0.8, -1e-3, 0.0, 1e-7, 0.3):
        for y in (-3.0, -0.1, 0.0, 2.0):
            assert np.isclose(
                correct_skewness(invert_skewness_correction(y, skew), skew), y, atol=1e-5
            )
    assert np.isclose(correct_skewness(2.0, 0.1), 2 + 0.05 * 4 / 3 + 0.05 / 6, atol=3e-3)


def test_a_difference_excludes_zero_exactly_when_its_p_value_says_so() -> None:
    rng = np.random.default_rng(5)
    for _ in range(200):
        x = rng.exponential(size=(30, 2)) ** 2
        x -= x.mean(axis=0)
        value = rng.normal(scale=0.8)
        difference = difference_from_influences(
            (1 + value, 1.0), x, lower_is_better=True, level=0.9
        )
        assert (difference.p_value < 0.1) == (not difference.low <= 0 <= difference.high)
        assert (difference.superiority > 0.95) == (difference.high < 0)


def test_a_difference_turns_around_with_its_order_and_its_direction() -> None:
    x = influences()
    difference = difference_from_influences((0.3, 0.2), x, lower_is_better=True)
    other = difference_from_influences((0.2, 0.3), x[:, ::-1], lower_is_better=True)
    assert np.isclose(difference.low, -other.high)
    assert np.isclose(difference.ratio_low, 1 / other.ratio_high)
    assert np.isclose(difference.superiority, 1 - other.superiority)
    up = difference_from_influences((0.3, 0.2), x, lower_is_better=False)
    assert np.isclose(up.superiority, 1 - difference.superiority)
    assert np.isclose(up.p_value, difference.p_value)


def test_what_both_share_cancels() -> None:
    x = influences()
    shared = influences(k=1, seed=9) * 10
    alone = difference_from_influences((0.3, 0.2), x, lower_is_better=True)
    together = difference_from_influences((0.3, 0.2), x + shared, lower_is_better=True)
    assert np.isclose(alone.standard_error, together.standard_error)


def test_equal_scores_differ_by_nothing() -> None:
    x = influences(k=1)
    difference = difference_from_influences((0.3, 0.3), np.hstack([x, x]), lower_is_better=True)
    assert (difference.low, difference.high, difference.p_value, difference.superiority) == (
        0.0,
        0.0,
        1.0,
        0.5,
    )
    assert difference.note
    silent = difference_from_influences((0.0, 0.0), np.zeros((9, 2)), lower_is_better=True)
    assert np.isnan(silent.low)
    assert silent.p_value == 1.0
    assert silent.note


def test_no_ratio_of_numbers_that_are_not_positive() -> None:
    difference = difference_from_influences((-0.1, 0.2), influences(), lower_is_better=True)
    assert np.isnan(difference.ratio)
    assert np.isnan(difference.ratio_low)
    assert np.isfinite(difference.low)


def test_rounding_is_no_difference() -> None:
    rng = np.random.default_rng(6)
    noise = rng.normal(size=(300, 2)) * 1e-16
    difference = difference_from_influences(
        (0.5, 0.5 + 6e-17), noise, lower_is_better=True, bounds=(0.0, 0.5)
    )
    assert (difference.value, difference.standard_error, difference.p_value) == (0.0, 0.0, 1.0)
    assert difference.superiority == 0.5
    assert "no sample changes either" in difference.note
    # Near the best value only the range says what is small.
    near = difference_from_influences((2e-16, 0.0), noise, lower_is_better=True, bounds=(0.0, 1.0))
    assert (near.value, near.p_value) == (0.0, 1.0)
    x = influences(k=1)
    copy = difference_from_influences(
        (0.3, 0.3 - 1e-16), np.hstack([x, x * (1 + 1e-16)]), lower_is_better=True
    )
    assert (copy.value, copy.low, copy.high, copy.p_value) == (0.0, 0.0, 0.0, 1.0)
    assert np.isnan(interval_from_influence(0.5, noise[:, 0], bounds=(0.0, 1.0)).low)


def test_the_least_true_difference_is_no_rounding() -> None:
    # Two neighbors of a million change places: the influence of both changes by 1/n.
    n = 1_000_000
    x = np.zeros((n, 2))
    x[:, :] = np.where(np.arange(n) < n // 20, 0.9, -0.9 / 19)[:, None]
    x[0, 0] += 1 / n
    difference = difference_from_influences(
        (0.02 + 1 / n**2, 0.02), x, lower_is_better=True, bounds=(0.0, 0.5)
    )
    assert difference.value > 0
    assert difference.standard_error > 0


def test_a_difference_stays_among_those_that_are_possible() -> None:
    x = influences(n=12) * 3
    free = difference_from_influences((0.3, 0.2), x, lower_is_better=True, failures=2)
    difference = difference_from_influences(
        (0.3, 0.2), x, lower_is_better=True, failures=2, bounds=(0.0, 0.5)
    )
    assert free.high > 0.5
    assert (difference.low, difference.high) == (-0.5, 0.5)
    assert difference.p_value == free.p_value


def test_the_ratio_holds_one_exactly_when_the_difference_holds_zero() -> None:
    rng = np.random.default_rng(8)
    outside = 0
    for _ in range(300):
        x = rng.exponential(size=(40, 2)) ** 2 / 8
        x -= x.mean(axis=0)
        value = rng.uniform(-0.3, 0.6)
        difference = difference_from_influences(
            (0.4 + value, 0.4), x, lower_is_better=True, failures=9
        )
        assert difference.ratio_low <= difference.ratio <= difference.ratio_high
        assert (difference.p_value < 0.05) == (
            not difference.ratio_low <= 1 <= difference.ratio_high
        )
        outside += difference.p_value < 0.05
    assert 10 < outside < 290


def test_a_ratio_has_no_end_where_the_second_may_be_zero() -> None:
    x = influences(n=30) * np.array([0.1, 1.0])
    difference = difference_from_influences((0.3, 0.2), x, lower_is_better=True)
    assert difference.ratio_high == np.inf
    assert 0 < difference.ratio_low < difference.ratio
    share = influences(k=1) * np.array([0.2, 0.1])
    exact = difference_from_influences((0.2, 0.1), share, lower_is_better=True)
    assert np.allclose([exact.ratio_low, exact.ratio_high], 2.0)


def test_failures_are_those_that_were_counted() -> None:
    x = influences(k=1)[:, 0] * 0.1
    note = interval_from_influence(0.2, x, failures=FailureCount(0, " among the accepted")).note
    assert note.startswith("no failures among the accepted: below 10")
