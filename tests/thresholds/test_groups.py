"""A rule by group: the whole is no better than its worst group, and verdicts hold together."""

import numpy as np
import pytest

import abstain as ab
from abstain.errors import DomainError, ShapeError
from abstain.thresholds import DecisionRule, check, check_groups

RISK = DecisionRule("risk", 0.5, target=0.05)


def drawn(risks, sizes, seed=0):
    rng = np.random.default_rng(seed)
    group = np.repeat([f"g{i}" for i in range(len(sizes))], sizes)
    loss = rng.random(group.size) < np.repeat(risks, sizes)
    return np.ones(group.size), loss, group


def test_a_whole_does_not_hold_while_a_group_is_broken():
    # 1 % and 20 % wrong at a target of 5 %: the whole alone is at 2.9 %.
    result = check_groups(RISK, *drawn([0.01, 0.20], [9000, 1000]), name="later")
    assert check(RISK, *drawn([0.01, 0.20], [9000, 1000])[:2]).verdict == "holds"
    assert [(c.group, c.verdict) for c in result] == [
        ("", "broken"),
        ("g0", "holds"),
        ("g1", "broken"),
    ]
    assert (result[0].excess_verdict, result[0].n_joint_verdicts, result[0].label) == (
        "holds",
        3,
        "later",
    )
    assert result[0].note == "total: holds; a group: broken"
    assert result[2].label == "later: g1"
    assert result[2].note == result[2].excess_verdict == ""


def test_rows_equal_those_of_the_parts_at_a_joint_level():
    confidence, loss, group = drawn([0.02, 0.05, 0.3], [500, 300, 40])
    weight = 1.0 + np.arange(840) % 3
    confidence = np.where(np.arange(840) % 4 == 0, 0.2, confidence)
    order = np.random.default_rng(1).permutation(840)
    for w in (None, weight):
        result = check_groups(
            RISK, confidence[order], loss[order], group[order],
            weight=None if w is None else w[order], level=0.9,
        )  # fmt: skip
        for c in result:
            own = np.ones(840, bool) if not c.group else group == c.group
            alone = check(
                RISK,
                confidence[own],
                loss[own],
                weight=None if w is None else w[own],
                level=1 - 0.1 / 4,
            )
            assert (c.n, c.accepted) == (alone.n, alone.accepted)
            for number in ("coverage", "selective_risk", "generalized_risk", "excess"):
                assert getattr(c, number) == pytest.approx(getattr(alone, number), abs=1e-12)
                ours, theirs = (getattr(x, f"{number}_interval") for x in (c, alone))
                assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high))
            assert c.group == "" or c.verdict == alone.verdict


def test_the_whole_is_never_better_than_a_group():
    order = ["broken", "cannot tell", "holds"]
    rng = np.random.default_rng(3)
    for seed in range(60):
        risks = rng.choice([0.01, 0.04, 0.06, 0.3], 3)
        whole, *groups = check_groups(RISK, *drawn(risks, rng.integers(5, 900, 3), seed))
        assert order.index(whole.verdict) == min(order.index(c.verdict) for c in (*groups, whole))
        assert order.index(whole.verdict) <= order.index(whole.excess_verdict)


def test_a_group_in_which_nothing_is_accepted_leaves_it_open():
    confidence, loss, group = drawn([0.01, 0.01], [2000, 50])
    confidence[group == "g1"] = 0.1
    whole, kept, empty = check_groups(RISK, confidence, loss, group)
    assert (whole.verdict, whole.excess_verdict) == ("cannot tell", "holds")
    assert (kept.verdict, empty.verdict) == ("holds", "nothing accepted")
    # The generalized risk of nothing is 0: kept.
    generalized = DecisionRule("given", 0.5, "generalized risk", False, 0.1, 0.05, 0.1)
    assert [c.verdict for c in check_groups(generalized, confidence, loss, group)] == ["holds"] * 3


def test_one_group_is_the_whole():
    confidence, loss, _ = drawn([0.03], [500])
    whole, group = check_groups(RISK, confidence, loss, ["a"] * 500)
    assert whole.n_joint_verdicts == group.n_joint_verdicts == 1
    alone = check(RISK, confidence, loss)
    assert whole.selective_risk_interval == alone.selective_risk_interval
    assert group.excess_interval == alone.excess_interval


def test_verdicts_without_a_target_stay():
    data = drawn([0.1, 0.2], [50, 50])
    assert {c.verdict for c in check_groups(DecisionRule("given", 0.5), *data)} == {"no target"}
    nothing = DecisionRule("risk", None, target=0.1, reason="none")
    assert {c.verdict for c in check_groups(nothing, *data)} == {"unattainable"}


def test_a_group_of_graded_losses_is_not_taken_for_a_share():
    # All its losses are 0 or 1, but others in the data are 4: no exact interval is known for it.
    loss = np.array([4.0] * 5 + [0.0] * 200 + [0.0] * 20)
    group = ["a"] * 205 + ["b"] * 20
    _, _, b = check_groups(RISK, np.ones(225), loss, group)
    assert np.isnan(b.selective_risk_interval.high)
    assert b.verdict == "cannot tell"


def test_refusals():
    with pytest.raises(ShapeError, match="`group`"):
        check_groups(RISK, np.ones(3), np.zeros(3), ["a", "b"])
    with pytest.raises(DomainError, match="`group`"):
        check_groups(RISK, np.ones(2), np.zeros(2), [0.0, np.nan])


@pytest.mark.parametrize("risks", [[0.05] * 5, [0.05, 0.05, 0.04, 0.2]])
def test_holding_groups_are_seldom_called_broken_and_broken_ones_seldom_holding(risks):
    # 2,000 draws at the worst place: risks exactly at the target, where both errors are possible.
    rng = np.random.default_rng(11)
    sizes, draws, level = np.full(len(risks), 400), 2000, 0.9
    false_alarms = false_holds = 0
    codes = np.repeat(np.arange(len(risks)), sizes)
    counts = rng.binomial(400, risks, (draws, len(risks)))
    for row in counts:
        loss = (np.arange(400)[None] < row[:, None]).ravel()
        result = check_groups(RISK, np.ones(codes.size), loss, codes, level=level)[1:]
        false_alarms += any(
            c.verdict == "broken" for c, r in zip(result, risks, strict=True) if r <= 0.05
        )
        false_holds += any(
            c.verdict == "holds" for c, r in zip(result, risks, strict=True) if r >= 0.05
        )
    # Two one-sided errors of (1 - level) / 2 = 5 % for the whole family; 3 standard errors.
    slack = 3 * np.sqrt(0.05 * 0.95 / draws)
    assert false_alarms / draws <= 0.05 + slack
    assert false_holds / draws <= 0.05 + slack


def test_check_rule_shows_groups_and_says_which_is_broken():
    confidence, loss, group = drawn([0.01, 0.20], [9000, 1000])
    p = ab.Predictions(confidence={"c": confidence}, loss=loss, group=group)
    plain = ab.Predictions(confidence={"c": confidence}, loss=loss)
    rule = DecisionRule("risk", 0.5, target=0.05, score="c", scale="probability")
    check = ab.check_rule(rule, {"later": p, "plain": plain})
    assert [c.verdict for c in check.checks] == ["broken", "holds"]
    assert [c.label for c in check.all_checks()] == ["later", "later: g0", "later: g1", "plain"]
    rows = check.rows()
    assert [(r["name"], r["subgroup"], r["role"], r["together"]) for r in rows] == [
        ("later", "", "check", 3),
        ("later", "g0", "group", 3),
        ("later", "g1", "group", 3),
        ("plain", "", "check", 1),
    ]
    (said,) = [f for f in check.notes if f.kind == "group_broken"]
    assert said.level == "warning"
    assert (
        "later: The target is broken in 1 of 2 groups ('g1'), although it holds overall"
        in said.message
    )
    small = p.subset(np.r_[0:9000, 9000:9010])
    (said,) = [f for f in ab.check_rule(rule, small).notes if f.kind == "group_open"]
    assert "too few samples are answered to decide for 1 of 2 groups ('g1')" in said.message
