"""How far apart groups are: against plain ranges, and how often the intervals hold."""

import numpy as np
import pytest

from abstain.thresholds import DecisionRule, check_groups, disparities

RULE = DecisionRule("risk", 0.5, target=0.1)


def checked(coverages, risks, size, rng, level=0.9):
    group = np.repeat([f"g{i}" for i in range(len(coverages))], size)
    accepted = rng.random(group.size) < np.repeat(coverages, size)
    loss = rng.random(group.size) < np.repeat(risks, size)
    return check_groups(RULE, accepted.astype(float), loss, group, level=level)[1:]


def test_numbers_are_the_ranges_over_groups():
    result = checked([0.5, 0.8, 0.7], [0.1, 0.05, 0.2], 500, np.random.default_rng(0))
    for most, number in zip(
        disparities(result), ("coverage", "selective_risk", "generalized_risk"), strict=True
    ):
        values = np.array([getattr(c, number) for c in result])
        ends = [getattr(c, f"{number}_interval") for c in result]
        lows, highs = np.array([[e.low, e.high] for e in ends]).T
        if number == "coverage":
            values, lows, highs = 1 - values, 1 - highs, 1 - lows
        assert most.n_groups == 3
        assert most.difference == pytest.approx(np.ptp(values))
        assert most.ratio == pytest.approx(values.max() / values.min())
        assert most.highest == f"g{values.argmax()}"
        assert most.lowest == f"g{values.argmin()}"
        assert most.difference_interval.low == pytest.approx(max(lows.max() - highs.min(), 0))
        assert most.difference_interval.high == pytest.approx(highs.max() - lows.min())
        assert most.ratio_interval.low == pytest.approx(max(lows.max() / highs.min(), 1))
        assert most.ratio_interval.high == pytest.approx(highs.max() / lows.min())
    assert disparities(result)[0].quantity == "rejection rate"


@pytest.mark.parametrize(
    ("coverages", "risks"), [([0.6] * 4, [0.1] * 4), ([0.6, 0.7, 0.9, 0.5], [0.1, 0.3, 0.1, 0.2])]
)
def test_intervals_hold_the_true_range_whichever_groups_are_far_out(coverages, risks):
    rng, draws = np.random.default_rng(4), 400
    truths = (np.ptp(coverages), np.ptp(risks))
    ratios = ((1 - min(coverages)) / (1 - max(coverages)), max(risks) / min(risks))
    missed = np.zeros(2)
    for _ in range(draws):
        for i, most in enumerate(disparities(checked(coverages, risks, 200, rng))[:2]):
            gap, ratio = most.difference_interval, most.ratio_interval
            inside = gap.low <= truths[i] <= gap.high and ratio.low <= ratios[i] <= ratio.high
            missed[i] += not inside
    assert (missed / draws <= 0.1 + 4 * np.sqrt(0.09 / draws)).all()


def test_groups_of_which_nothing_is_known_are_omitted():
    group = np.repeat(["a", "b", "c"], 50)
    confidence = np.where(group == "c", 0.0, 1.0)
    result = check_groups(RULE, confidence, np.zeros(150), group)[1:]
    rejected, risk, _ = disparities(result)
    assert (rejected.highest, rejected.difference, rejected.ratio) == ("c", 1.0, np.inf)
    assert (risk.n_groups, risk.difference, risk.ratio) == (2, 0.0, 1.0)
    assert disparities(result[:1]) == ()
    lone = check_groups(RULE, np.where(group == "a", 1.0, 0.0), np.zeros(150), group)[1:]
    assert np.isnan(disparities(lone)[1].difference)
    assert "fewer than two" in disparities(lone)[1].difference_interval.note
