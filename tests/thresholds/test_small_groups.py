"""Small calibration sets and groups: what `sgr` cannot certify there, and which rule may."""

import numpy as np

from abstain.thresholds import fit_groups, learn_then_test, sgr

N, TARGET, DELTA = 130, 0.1, 0.05
CONFIDENCE = np.linspace(1, 0, N)
#: The 39 most confident are right, then every third is wrong.
LOSS = ((np.arange(N) >= 39) & (np.arange(N) % 3 == 0)).astype(float)


def test_the_reason_names_the_rule_that_starts_at_fewer_samples():
    rule = sgr(CONFIDENCE, LOSS, max_risk=TARGET, delta=DELTA)
    assert not rule.attainable
    assert "number of accepted samples that was tested is 65; learn_then_test starts" in rule.reason
    other = learn_then_test(CONFIDENCE, LOSS, max_risk=TARGET, delta=DELTA)
    assert other.attainable
    assert round(other.coverage * N) >= 39
    group = ["few"] * N
    rules = fit_groups("sgr", CONFIDENCE, LOSS, group, max_risk=TARGET, delta=DELTA)
    assert "learn_then_test" in rules.part("few").reason


def test_no_other_rule_is_named_where_it_starts_no_earlier():
    large = sgr(np.linspace(1, 0, 4000), np.ones(4000), max_risk=TARGET, delta=DELTA)
    assert "learn_then_test" not in large.reason
    tiny = sgr(CONFIDENCE[:40], np.ones(40), max_risk=TARGET, delta=DELTA)
    assert "learn_then_test" not in tiny.reason


def test_both_rules_keep_the_guarantee_and_the_named_one_attains_it_more_often():
    rng = np.random.default_rng(0)
    n_sets, error_rate = 2000, 0.3
    n_attained = dict.fromkeys((sgr, learn_then_test), 0)
    n_violated = dict.fromkeys((sgr, learn_then_test), 0)
    for _ in range(n_sets):
        confidence = rng.random(N)
        # A sample at confidence c is wrong with probability 3 * rate * (1 - c)^2.
        loss = (rng.random(N) < 3 * error_rate * (1 - confidence) ** 2).astype(float)
        for fit in n_attained:
            rule = fit(confidence, loss, max_risk=TARGET, delta=DELTA)
            if rule.attainable:
                n_attained[fit] += 1
                n_violated[fit] += error_rate * (1 - rule.threshold) ** 2 > TARGET
    assert max(n_violated.values()) <= DELTA * n_sets
    assert n_attained[learn_then_test] > 1.5 * n_attained[sgr]
