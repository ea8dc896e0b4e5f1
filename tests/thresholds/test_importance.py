"""Rules for data of another law, by density ratios: against plain loops, and against the truth."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.thresholds.cases import cases

from abstain import shift, thresholds
from abstain._foundation.scored import validate_samples_on_host
from abstain.errors import DomainError, InputError, ShapeError
from abstain.thresholds import DecisionRule
from abstain.thresholds._walks import _bet_sizes, refuted_by_betting, risk_target, weight_by_ratio

SETS = 400
RATIO = {
    "sgr": {"max_risk": 0.3, "delta": 0.2},
    "learn_then_test": {"max_risk": 0.3, "delta": 0.2},
    "conformal_risk_control": {"max_risk": 0.2},
    "coverage_guarantee": {"coverage": 0.5, "delta": 0.1},
}


def ratios_for(confidence, seed):
    return np.random.default_rng(seed).random(confidence.size) + 0.1


@given(case=cases(graded=True), seed=st.integers(0, 99), alpha=st.sampled_from([0.05, 0.3]))
@pytest.mark.parametrize("risk", ["selective risk", "generalized risk"])
def test_bets_are_plain_products(risk, case, seed, alpha):
    confidence, loss = case
    ratio = ratios_for(confidence, seed)
    aim = risk_target("learn_then_test", risk, 0.4, 0.1)
    s, aim = weight_by_ratio(
        validate_samples_on_host(confidence, loss), aim, shift.density_ratios(ratio, largest=2)
    )
    result = refuted_by_betting(s, aim, alpha)
    bets = _bet_sizes(loss.size, 0.4, alpha)
    for at, value in enumerate(np.unique(confidence)[::-1]):
        inside = confidence >= value
        gain = np.where(inside, loss - 0.4, 0.0 if risk == "selective risk" else -0.4)
        wealth = np.mean([np.prod(1 - bet * ratio / 2 * gain) for bet in bets])
        if abs(wealth * alpha - 1) > 1e-9:
            assert result[at] == (wealth * alpha >= 1)


def test_bets_reach_down_to_the_best_for_equal_samples():
    bets = _bet_sizes(10_000, 0.05, 0.05)
    assert bets[0] == pytest.approx(1 / 0.95)
    best = math.sqrt(2 * math.log(20) / (10_000 * 0.05 * 0.95))
    assert bets[-1] <= best <= 2 * bets[-1]
    assert _bet_sizes(10, 0.05, 0.05).size == 1


@pytest.mark.parametrize("name", ["learn_then_test", "conformal_risk_control"])
@given(case=cases(most=40), seed=st.integers(0, 99))
def test_the_unit_of_ratios_does_not_matter(name, case, seed):
    confidence, loss = case
    ratio = ratios_for(confidence, seed)
    first = thresholds.fit(name, confidence, loss, ratio=ratio, **RATIO[name])
    second = thresholds.fit(name, confidence, loss, ratio=8 * ratio, **RATIO[name])
    order = np.random.default_rng(seed).permutation(loss.size)
    three = thresholds.fit(name, confidence[order], loss[order], ratio=ratio[order], **RATIO[name])
    assert first.threshold == second.threshold == three.threshold


@given(case=cases(graded=True), seed=st.integers(0, 99))
def test_weighted_risk_control_is_its_formula(case, seed):
    confidence, loss = case
    ratio = ratios_for(confidence, seed)
    rule = thresholds.conformal_risk_control(
        confidence, loss, max_risk=0.2, ratio=shift.density_ratios(ratio, largest=2.0)
    )
    fine = [
        value
        for value in np.unique(confidence)
        if ((ratio * loss)[confidence >= value].sum() + 2) / (ratio.sum() + 2) <= 0.2 * (1 + 1e-12)
    ]
    assert rule.attainable == bool(fine)
    if fine:
        assert rule.threshold == pytest.approx(min(fine))
        inside = confidence >= rule.threshold
        assert rule.coverage == pytest.approx(ratio[inside].sum() / ratio.sum())


def test_equal_ratios_leave_risk_control_as_it_is():
    rng = np.random.default_rng(0)
    confidence, loss = rng.random(300), rng.random(300) < 0.2
    plain = thresholds.conformal_risk_control(confidence, loss, max_risk=0.1)
    same = thresholds.conformal_risk_control(confidence, loss, max_risk=0.1, ratio=np.full(300, 7))
    assert (same.threshold, same.accepted) == (plain.threshold, plain.accepted)
    assert same.population
    assert not plain.population


def test_what_is_drawn_goes_through_the_rule_as_it_is():
    rng = np.random.default_rng(1)
    confidence = rng.random(2000)
    loss = rng.random(2000) < 0.3 * (1 - confidence)
    ratios = shift.density_ratios(2 * (1 - confidence), largest=2.0)
    kept = ratios.draw(3)
    first = thresholds.sgr(confidence, loss, max_risk=0.2, delta=0.1, ratio=ratios, rng=3)
    second = thresholds.sgr(confidence[kept], loss[kept], max_risk=0.2, delta=0.1)
    assert first.threshold == second.threshold
    assert (first.n, first.accepted, first.failures) == (second.n, second.accepted, second.failures)
    assert f"{kept.sum()} of 2000 samples drawn" in str(first)
    rule = thresholds.coverage_guarantee(confidence, coverage=0.5, delta=0.1, ratio=ratios, rng=3)
    own = thresholds.coverage_guarantee(confidence[kept], coverage=0.5, delta=0.1)
    assert rule.threshold == own.threshold


@pytest.mark.parametrize("name", RATIO)
def test_a_rule_for_other_data_says_so_and_is_kept(name):
    rng = np.random.default_rng(2)
    confidence, loss = np.sort(rng.random(500)), np.zeros(500)
    rule = thresholds.fit(name, confidence, loss, ratio=1 + confidence, **RATIO[name])
    assert "by the density ratios given" in rule.population
    assert rule.population in str(rule)
    assert DecisionRule.from_json(rule.to_json()) == rule


def test_a_file_of_before_is_about_data_like_its_own():
    rule = thresholds.sgr(np.linspace(0, 1, 400), np.zeros(400), max_risk=0.1, delta=0.1)
    lines = [line for line in rule.to_json().splitlines() if "population" not in line]
    text = "\n".join(lines).replace('"version": 5', '"version": 2')
    text = text.replace('"scale": "unknown",', '"scale": "unknown"')
    assert DecisionRule.from_json(text) == rule


def test_bad_ratios_raise_an_error_by_name():
    options = {"max_risk": 0.3, "delta": 0.1}
    with pytest.raises(ShapeError, match=r"`ratio` .* 3 entries"):
        thresholds.sgr([0.1, 0.2, 0.3], [0, 0, 1], ratio=[1, 1], **options)
    with pytest.raises(DomainError, match="`ratio` must not be negative"):
        thresholds.learn_then_test([0.1, 0.2], [0, 1], ratio=[1, -1], **options)
    with pytest.raises(InputError, match="pass them as `ratio`"):
        thresholds.sgr([0.1, 0.2], [0, 1], weight=[1, 2], **options)
    with pytest.raises(InputError, match="takes no `ratio`"):
        thresholds.fit("risk", [0.1, 0.2], [0, 1], ratio=[1, 2], max_risk=0.1)
    with pytest.raises(DomainError, match=r"`population` .* must be empty without a guarantee"):
        DecisionRule("risk", 0.5, target=0.1, population="others")


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("sgr", {"max_risk": 0.3, "delta": 0.1}),
        ("sgr", {"max_risk": 0.3, "delta": 0.1, "search": "binary"}),
        ("coverage_guarantee", {"coverage": 0.3, "delta": 0.1}),
    ],
)
def test_where_no_sample_is_drawn_nothing_is_guaranteed(name, options):
    ratios = shift.density_ratios(np.ones(90), largest=1e9)
    rule = thresholds.fit(name, np.arange(90), np.zeros(90), ratio=ratios, **options)
    assert (rule.attainable, rule.n, rule.coverage) == (False, 0, None)
    assert rule.reason.startswith("0 samples cannot")
    assert "They were drawn with probability ratio / largest ratio: use more" in rule.reason
    assert DecisionRule.from_json(rule.to_json()) == rule


# ------------------------------------------------------------------ groups, and several limits
@pytest.mark.parametrize("name", RATIO)
def test_a_group_is_chosen_for_as_if_it_were_alone(name):
    rng = np.random.default_rng(3)
    confidence, group = rng.random(900), rng.choice(["a", "b", "gone"], 900)
    loss = rng.random(900) < 0.2 * (1 - confidence)
    ratio = np.where(group == "gone", 0.0, ratios_for(confidence, 4) * np.where(group == "a", 1, 9))
    ratios = shift.density_ratios(ratio, largest=30.0)
    rule = thresholds.fit_groups(name, confidence, loss, group, ratio=ratios, **RATIO[name])
    guessed = thresholds.fit_groups(name, confidence, loss, group, ratio=ratio, **RATIO[name])
    assert rule.names == guessed.names == ("a", "b")
    for one in "ab":
        own = group == one
        alone = [
            thresholds.fit(name, confidence[own], loss[own], ratio=r, **RATIO[name])
            for r in (ratios.rows(own), ratio[own])
        ]
        assert [rule.part(one), guessed.part(one)] == alone
    assert not rule.apply(confidence, group=group)[group == "gone"].any()
    assert (
        rule.population == "data like the calibration data reweighted by the density ratios given"
    )
    # How large each group is there, it does not say.
    assert (rule.coverage, rule.risk) == (None, None)


@given(case=cases(graded=True), seed=st.integers(0, 99))
@pytest.mark.parametrize("risk", ["selective", "generalized"])
def test_a_limit_among_some_is_a_ratio_of_zero_for_the_others(risk, case, seed):
    confidence, loss = case
    ratio = ratios_for(confidence, seed)
    some = np.random.default_rng(seed).random(loss.size) < 0.6
    some[0] = True
    rule = thresholds.several_risks(
        confidence, loss, [thresholds.Limit("some", 0.5, some, risk)],
        delta=0.3, ratio=shift.density_ratios(ratio, largest=1.5),
    )  # fmt: skip
    part = rule.part("some")
    if part.attainable:
        inside = some & (confidence >= part.threshold)
        assert part.coverage == pytest.approx(ratio[inside].sum() / ratio[some].sum())
        assert part.risk == pytest.approx((ratio * loss)[inside].sum() / ratio[inside].sum())
        assert rule.coverage == pytest.approx(
            ratio[confidence >= part.threshold].sum() / ratio.sum()
        )
        gain = np.where(inside, loss - 0.5, 0.0 if risk == "selective" else -0.5)[some]
        bets = _bet_sizes(int(some.sum()), 0.5, 0.3)
        wealth = [np.prod(1 - bet * ratio[some] / 1.5 * gain) for bet in bets]
        assert np.mean(wealth) >= 1 / 0.3 * (1 - 1e-9)


def test_one_limit_on_all_is_learn_then_test():
    rng = np.random.default_rng(5)
    confidence = rng.random(1500)
    loss, ratio = rng.random(1500) < 0.2 * (1 - confidence), ratios_for(confidence, 6)
    ratio[::7] = 0
    for risk in ("selective", "generalized"):
        rule = thresholds.learn_then_test(
            confidence, loss, max_risk=0.12, delta=0.1, ratio=ratio, risk=risk, starts=(0.75, 0.5)
        )
        two = thresholds.several_risks(
            confidence, loss, [thresholds.Limit("overall", 0.12, risk=risk)], delta=0.1,
            ratio=ratio, starts=(0.75, 0.5),
        )  # fmt: skip
        assert rule.attainable
        assert two.part("overall") == rule
        assert two.population == rule.population
    with pytest.raises(
        DomainError, match="the limit 'none' has no calibration samples with a ratio"
    ):
        thresholds.several_risks(
            confidence, loss, [thresholds.Limit("none", 0.1, ratio == 0)], delta=0.1, ratio=ratio
        )


# ------------------------------------------------------------------------------ the guarantees
def shifted(rng, n):
    """Calibration data uniform in u; where the rule is used u has the density 2 (1 - u).

    At u an answer is wrong with chance 0.5 (1 - u)^2. Above t the risk there is 0.25 (1 - t)^2,
    that of the calibration data 0.5 (1 - t)^2 / 3; over all samples 0.25 (1 - t)^4.
    """
    u = rng.random(n)
    return u, rng.random(n) < 0.5 * (1 - u) ** 2, shift.density_ratios(2 * (1 - u), largest=2.0)


def selective(rule):
    return 0.25 * (1 - rule.threshold) ** 2 if rule.attainable else 0.0


def generalized(rule):
    return 0.25 * (1 - rule.threshold) ** 4 if rule.attainable else 0.0


def share_broken(fit, risk, *, target, seed, sets=SETS):
    rng = np.random.default_rng(seed)
    return np.mean([risk(fit(*shifted(rng, 400), i)) > target for i in range(sets)])


def test_true_ratios_break_the_guarantee_no_more_often_than_delta():
    delta, target = 0.2, 0.1
    options = {"max_risk": target, "delta": delta}
    ways = {
        "sgr": lambda c, x, r, i: thresholds.sgr(c, x, ratio=r, rng=i, **options),
        "ltt": lambda c, x, r, i: thresholds.learn_then_test(c, x, ratio=r, **options),
    }
    for fit in ways.values():
        broken = share_broken(fit, selective, target=target, seed=11)
        assert broken <= delta + 4 * math.sqrt(delta * (1 - delta) / SETS)
    broken = share_broken(
        lambda c, x, r, i: thresholds.learn_then_test(c, x, ratio=r, risk="generalized", **options),
        generalized,
        target=target,
        seed=12,
    )
    assert broken <= delta + 4 * math.sqrt(delta * (1 - delta) / SETS)


def test_without_ratios_the_guarantee_is_broken_nearly_always():
    """So the test above can fail."""
    fit = lambda c, x, r, i: thresholds.sgr(c, x, max_risk=0.1, delta=0.2)  # noqa: E731
    assert share_broken(fit, selective, target=0.1, seed=13, sets=100) > 0.5


def grouped(rng, n):
    """Two groups of that law; "b" is wrong more often, and comes up three times as often there."""
    u, b = rng.random(n), rng.random(n) < 0.5
    wrong = rng.random(n) < np.where(b, 0.7, 0.5) * (1 - u) ** 2
    return u, wrong, b, shift.density_ratios(2 * (1 - u) * np.where(b, 1.5, 0.5), largest=3.0)


def true_risk(threshold, scale, *, risk):
    left = 1 - threshold
    return scale / 2 * left ** (2 if risk == "selective" else 4)


def test_each_group_and_each_limit_keeps_its_guarantee_there():
    rng, delta, target = np.random.default_rng(15), 0.2, 0.12
    scale, most = {"a": 0.5, "b": 0.7}, 4 * math.sqrt(delta * (1 - delta) / SETS)
    broken = {"a": 0, "b": 0, "both": 0, "plain": 0, "limits": 0, "unweighted": 0}
    options = {"max_risk": target, "delta": delta}
    for i in range(SETS):
        u, wrong, b, ratios = grouped(rng, 600)
        group = np.where(b, "b", "a")
        for joint in (False, True):
            rule = thresholds.fit_groups("sgr", u, wrong, group, ratio=ratios, joint=joint,
                                          rng=i, **options)  # fmt: skip
            over = {p.name: p.rule.attainable and true_risk(p.rule.threshold, scale[p.name],
                    risk="selective") > target for p in rule.parts}  # fmt: skip
            for name in over if not joint else ():
                broken[name] += over[name]
            broken["both"] += joint and any(over.values())
        rule = thresholds.fit_groups("sgr", u, wrong, group, **options)
        broken["plain"] += true_risk(rule.part("b").threshold, 0.7, risk="selective") > target
        limits = [thresholds.Limit("overall", 0.15, risk="generalized"),
                  thresholds.Limit("group:b", 0.15, b, "generalized")]  # fmt: skip
        for name, known in (("limits", ratios), ("unweighted", None)):
            at = thresholds.several_risks(u, wrong, limits, delta=delta, ratio=known).threshold
            broken[name] += at is not None and true_risk(at, 0.7, risk="generalized") > 0.15
    share = {name: count / SETS for name, count in broken.items()}
    assert max(share[name] for name in ("a", "b", "both", "limits")) <= delta + most
    # So it can fail, and something is found.
    assert min(share["plain"], share["unweighted"]) > 0.4


def test_weighted_risk_control_holds_on_average():
    rng, target = np.random.default_rng(14), 0.05
    risks = np.array([
        generalized(thresholds.conformal_risk_control(c, x, max_risk=target, ratio=r))
        for c, x, r in (shifted(rng, 150) for _ in range(SETS))
    ])  # fmt: skip
    slack = 4 * risks.std() / math.sqrt(SETS)
    assert risks.mean() <= target + slack
    assert risks.mean() >= target - 3 * 2 / 151 - slack
