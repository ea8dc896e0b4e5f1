"""Do promises to groups hold, each and together? Calibration sets whose true risks are known.

The full study, 10,000 sets a setting, is benchmarks/threshold_groups.py.
"""

import numpy as np
import pytest

from abstain.thresholds import Limit, fit_groups, several_risks, sgr

SETS, DELTA, TARGET = 200, 0.2, 0.1
NAMES = np.array(["easy", "hard", "rare"])
SHARES, HARDNESS = np.array([0.6, 0.3, 0.1]), np.array([0.3, 0.9, 0.5])


def drawn(rng, n=900):
    """The chance of an error is hardness (1 - u)^2 at confidence u, uniform in every group."""
    group = rng.choice(3, n, p=SHARES)
    u = rng.random(n)
    return u, rng.random(n) < HARDNESS[group] * (1 - u) ** 2, group


def risks(threshold):
    """The true selective risk of each group above a threshold."""
    return np.zeros(3) if threshold is None else HARDNESS * (1 - threshold) ** 2 / 3


def slack(share):
    return 4 * np.sqrt(share * (1 - share) / SETS)


@pytest.mark.parametrize("method", ["sgr", pytest.param("learn_then_test", marks=pytest.mark.slow)])
def test_each_group_and_all_groups_are_broken_no_more_often_than_delta(method):
    rng = np.random.default_rng(3)
    options = {"max_risk": TARGET, "delta": DELTA}
    each, jointly, pooled = np.zeros(3), 0, 0
    attained = np.zeros(3)
    for _ in range(SETS):
        u, loss, group = drawn(rng)
        for joint in (False, True):
            rule = fit_groups(method, u, loss, NAMES[group], joint=joint, **options)
            own = [rule.part(name) for name in NAMES]
            broken = [risks(part.threshold)[g] > TARGET for g, part in enumerate(own)]
            if joint:
                jointly += any(broken)
            else:
                each += broken
                attained += [part.attainable for part in own]
        pooled += risks(sgr(u, loss, **options).threshold)[1] > TARGET
    assert (each / SETS <= DELTA + slack(DELTA)).all()
    assert jointly / SETS <= DELTA + slack(DELTA)
    assert (attained > 0.2 * SETS).all()
    # One threshold for all breaks the hard group nearly always, so these can fail.
    assert pooled / SETS > 0.8


def exceeds_a_limit(threshold, g):
    """Whether the risk of a group, or of its harder half, is above its limit."""
    if threshold is None:
        return False
    risk = HARDNESS[g] * (1 - threshold) ** 2 / 3
    return risk > TARGET or 1.5 * risk > HARD_HALF_TARGET


HARD_HALF_TARGET = 0.13


@pytest.mark.parametrize("joint", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_limits_in_each_group_are_exceeded_no_more_often_than_delta(joint):
    # Half of each group is harder, by a factor of 1.5 against 0.5, and its limit is the tighter one.
    rng = np.random.default_rng(9)
    exceeded, without_limit, attained = np.zeros(3), np.zeros(3), np.zeros(3)
    n_sets_exceeded = 0
    for _ in range(SETS):
        group = rng.choice(3, 1500, p=SHARES)
        u, is_hard = rng.random(1500), rng.random(1500) < 0.5
        loss = rng.random(1500) < HARDNESS[group] * np.where(is_hard, 1.5, 0.5) * (1 - u) ** 2
        limits = [Limit("overall", TARGET), Limit("label:hard", HARD_HALF_TARGET, is_hard)]
        options = {"joint": joint, "delta": DELTA}
        data = ("learn_then_test", u, loss, NAMES[group])
        rule = fit_groups(*data, limits=limits, **options)
        is_exceeded = [
            exceeds_a_limit(rule.part(name).threshold, g) for g, name in enumerate(NAMES)
        ]
        exceeded += is_exceeded
        n_sets_exceeded += any(is_exceeded)
        attained += [rule.part(name).attainable for name in NAMES]
        if not joint:
            alone = fit_groups(*data, max_risk=TARGET, **options)
            without_limit += [
                exceeds_a_limit(alone.part(name).threshold, g) for g, name in enumerate(NAMES)
            ]
    assert (exceeded / SETS <= DELTA + slack(DELTA)).all()
    if joint:
        assert n_sets_exceeded / SETS <= DELTA + slack(DELTA)
        return
    assert (attained > 0.2 * SETS).all()
    # Without the limit of the harder half, it is exceeded in a group more often than delta.
    assert without_limit.max() / SETS > DELTA + slack(DELTA)


def test_several_limits_are_exceeded_no_more_often_than_delta_together():
    rng = np.random.default_rng(5)
    exceeded = attained = single = 0
    for _ in range(SETS):
        u, loss, group = drawn(rng)
        limits = [Limit("overall", TARGET), Limit("group:hard", 0.13, group == 1)]
        rule = several_risks(u, loss, limits, delta=DELTA)
        true = risks(rule.threshold)
        exceeded += true[1] > 0.13 or true @ SHARES > TARGET
        attained += rule.attainable
        alone = several_risks(u, loss, limits[:1], delta=DELTA)
        single += risks(alone.threshold)[1] > 0.13
    assert exceeded / SETS <= DELTA + slack(DELTA)
    # The limit of the group is the one that binds; without it it is exceeded.
    assert attained > 0.9 * SETS
    assert single / SETS > 0.4
