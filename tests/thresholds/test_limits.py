"""One threshold within several limits, and fixed sequence testing by itself."""

import itertools

import numpy as np
import pytest
from scipy.stats import binom

from abstain.errors import DomainError, InputError, ShapeError
from abstain.thresholds import (
    Limit,
    check_limits,
    fixed_sequence,
    learn_then_test,
    several_risks,
)


def drawn(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    confidence, cat = rng.random(n).round(2), rng.random(n) < 0.3
    loss = rng.random(n) < np.where(cat, 0.6, 0.2) * (1 - confidence)
    return confidence, loss, cat


def test_one_limit_on_all_is_learn_then_test():
    confidence, loss, _ = drawn()
    for risk, target in itertools.product(("selective", "generalized"), (0.02, 0.05, 0.1)):
        options = {"starts": (0.5, 0.25)} if risk == "selective" else {}
        rule = several_risks(
            confidence, loss, [Limit("overall", target, risk=risk)], delta=0.1, **options
        )
        alone = learn_then_test(confidence, loss, max_risk=target, delta=0.1, risk=risk, **options)
        assert (rule.threshold, rule.accepted) == (alone.threshold, alone.accepted)
        if alone.attainable:
            assert rule.part("overall") == alone


def test_a_walk_by_hand_with_two_limits():
    confidence, loss, cat = drawn(400, seed=3)
    limits = [Limit("overall", 0.12), Limit("label:cat", 0.3, cat)]
    rule = several_risks(confidence, loss, limits, delta=0.2, starts=(0.5,))
    start = np.sort(confidence)[::-1][200]
    best = None
    for t in [np.nextafter(start, 2), *np.unique(confidence[confidence <= start])[::-1]]:
        inside = confidence >= t
        p_values = [
            binom.cdf(loss[inside & among].sum(), (inside & among).sum(), target)
            for among, target in ((np.ones(400, bool), 0.12), (cat, 0.3))
        ]
        if max(p_values) > 0.2:
            break
        best = t
    assert best is not None
    assert rule.threshold == best
    inside = confidence >= best
    part = rule.part("label:cat")
    assert (part.n, part.accepted) == (cat.sum(), (inside & cat).sum())
    assert part.failures == loss[inside & cat].sum()
    assert part.coverage == pytest.approx(inside[cat].mean())
    assert part.risk == pytest.approx(loss[inside & cat].mean())


def test_limits_of_either_kind_have_half_of_delta():
    confidence, loss, cat = drawn(400, seed=3)
    limits = [Limit("overall", 0.12), Limit("label:cat", 0.12, cat, risk="generalized")]
    rule = several_risks(confidence, loss, limits, delta=0.2, starts=(0.5,))
    best = None
    for t in np.sort(confidence)[::-1][200:]:
        inside = confidence >= t
        whole = binom.cdf(loss[inside].sum(), inside.sum(), 0.12)
        part = binom.cdf(loss[inside & cat].sum(), cat.sum(), 0.12)
        if max(whole, part) > 0.1:
            break
        best = t
    assert best is not None
    assert rule.threshold == best
    assert {part.rule.delta for part in rule.parts} == {0.2}


def test_more_limits_never_accept_more():
    confidence, loss, cat = drawn(seed=5)
    rule = several_risks(confidence, loss, [Limit("overall", 0.1)], delta=0.1)
    two = several_risks(
        confidence, loss, [Limit("overall", 0.1), Limit("label:cat", 0.12, cat)], delta=0.1
    )
    assert two.accepted < rule.accepted


def test_what_is_unattainable_is_named():
    confidence, loss, cat = drawn()
    rare = np.arange(2000) < 20
    rule = several_risks(
        confidence, loss, [Limit("overall", 0.1), Limit("group:rare", 0.1, rare)], delta=0.05
    )
    assert (rule.attainable, rule.threshold, rule.accepted) == (False, None, 0)
    assert rule.part("group:rare").reason.startswith("20 samples cannot certify")
    assert rule.part("overall").reason == (
        "could be certified alone, but not together with group:rare"
    )
    strict = [Limit("overall", 0.1), Limit("label:cat", 0.02, cat & (confidence < 0.5))]
    rule = several_risks(confidence, loss, strict, delta=0.05)
    assert "at the starts, at most" in rule.part("label:cat").reason


def test_limits_without_the_whole_show_it_beside():
    confidence, loss, cat = drawn()
    rule = several_risks(confidence, loss, [Limit("label:cat", 0.2, cat)], delta=0.05)
    whole = rule.part("overall")
    assert [part.name for part in rule.parts] == ["overall", "label:cat"]
    assert (whole.guarantee, whole.accepted) == ("none", (confidence >= rule.threshold).sum())
    assert rule.quantity == ""
    checked = check_limits(rule, confidence, loss, {"label:cat": cat})
    assert [(c.group, c.excess_verdict) for c in checked] == [("", "no target"), ("label:cat", "")]
    assert checked[0].verdict == checked[1].verdict


def test_graded_losses_and_refusals():
    confidence, loss, cat = drawn()
    rule = several_risks(confidence, 0.5 * loss, [Limit("overall", 0.1)], delta=0.1)
    assert rule.attainable
    with pytest.raises(DomainError, match="loss"):
        several_risks(confidence, 2.0 * loss, [Limit("overall", 0.1)], delta=0.1)
    with pytest.raises(InputError, match="`limits`"):
        several_risks(confidence, loss, [], delta=0.1)
    with pytest.raises(InputError, match="each once"):
        several_risks(confidence, loss, [Limit("overall", 0.1)] * 2, delta=0.1)
    with pytest.raises(DomainError, match="no calibration sample"):
        several_risks(confidence, loss, [Limit("none", 0.1, cat & ~cat)], delta=0.1)
    with pytest.raises(ShapeError, match="booleans"):
        several_risks(confidence, loss, [Limit("short", 0.1, cat[:5])], delta=0.1)
    with pytest.raises(InputError, match="`masks`"):
        check_limits(rule, confidence, loss, {"label:dog": cat})


def test_fixed_sequence_against_a_loop():
    rng = np.random.default_rng(2)
    for _ in range(200):
        p = rng.random((rng.integers(1, 8), rng.integers(1, 4))) ** 3
        expected = 0
        for row in p:
            if (row > 0.1).any():
                break
            expected += 1
        assert fixed_sequence(p, delta=0.1) == expected
        assert fixed_sequence(p.max(axis=1), delta=0.1) == expected
    with pytest.raises(ShapeError, match="`p_values`"):
        fixed_sequence(np.zeros((2, 2, 2)), delta=0.1)
    with pytest.raises(DomainError, match="lie in"):
        fixed_sequence([0.1, np.nan], delta=0.1)
