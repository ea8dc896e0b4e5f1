"""A threshold for each group: what each is promised, small groups, groups never seen."""

import json

import numpy as np
import pytest

import abstain as ab
from abstain import tables
from abstain.errors import DomainError, FileFormatError, InputError, MissingInputError
from abstain.thresholds import DecisionRule, RulePart, check_groups, fit, fit_groups
from abstain.thresholds.binomial import min_count

OPTIONS = {"max_risk": 0.1, "delta": 0.05}


def drawn(sizes, slopes, seed=0):
    """Groups in which the chance of an error falls from a slope to 0."""
    rng = np.random.default_rng(seed)
    group = np.repeat([f"g{i}" for i in range(len(sizes))], sizes)
    confidence = rng.random(group.size)
    loss = rng.random(group.size) < np.repeat(slopes, sizes) * (1 - confidence)
    order = rng.permutation(group.size)
    return confidence[order], loss[order], group[order]


def test_each_part_is_the_rule_of_its_samples_alone():
    confidence, loss, group = drawn([400, 300, 500], [0.1, 0.9, 0.2])
    for method in ("sgr", "learn_then_test", "risk"):
        options = OPTIONS if method != "risk" else {"max_risk": 0.1}
        rule = fit_groups(method, confidence, loss, group, **options)
        assert [part.name for part in rule.parts] == ["g0", "g1", "g2"]
        for part in rule.parts:
            own = group == part.name
            assert part.rule == fit(method, confidence[own], loss[own], **options)
        accepted = rule.apply(confidence, group=group)
        for part in rule.parts:
            own = group == part.name
            assert (accepted[own] == part.rule.apply(confidence[own])).all()
        assert (rule.n, rule.accepted) == (1200, int(accepted.sum()))
        assert rule.failures == int(loss[accepted].sum())
        assert rule.risk == pytest.approx(loss[accepted].mean())
        assert rule.coverage == pytest.approx(accepted.mean())


def test_joint_guarantees_share_delta_among_the_groups_that_can_use_it():
    sizes = [500, 400, 60, 30, 10]
    confidence, loss, group = drawn(sizes, [0.0] * 5)
    rule = fit_groups("learn_then_test", confidence, loss, group, joint=True, **OPTIONS)
    # By hand: the least k such that at most k sizes reach what delta / k takes.
    able = {k: sum(n >= min_count(0.1, 0.05 / k) for n in sizes) for k in range(1, 6)}
    k = min(k for k in able if able[k] <= k)
    assert (k, able[k]) == (3, 3)
    assert {part.rule.delta for part in rule.parts} == {0.05 / 3}
    assert [part.rule.attainable for part in rule.parts] == [True, True, True, False, False]
    assert rule.delta == 0.05
    small = rule.part("g4")
    assert small.threshold is None
    assert small.reason.startswith("10 samples cannot certify")
    assert "g4: 10 samples" in rule.reason
    assert not rule.apply(np.ones(10), group=["g4"] * 10).any()


def test_the_shares_do_not_depend_on_the_losses():
    confidence, loss, group = drawn([300, 80, 45], [0.3] * 3)
    for losses in (loss, ~loss, np.zeros(425)):
        rule = fit_groups("sgr", confidence, losses, group, joint=True, **OPTIONS)
        assert {part.rule.delta for part in rule.parts} == {0.05 / 3}


def test_other_rules_by_group():
    confidence, loss, group = drawn([300, 3], [0.3, 0.3])
    covered = fit_groups("coverage_guarantee", confidence, None, group, coverage=0.7, delta=0.05)
    assert [part.rule.attainable for part in covered.parts] == [True, False]
    controlled = fit_groups("conformal_risk_control", confidence, loss, group, max_risk=0.05)
    assert [part.rule.attainable for part in controlled.parts] == [True, False]
    assert controlled.in_expectation
    with pytest.raises(InputError, match="needs no data"):
        fit_groups("chow", confidence, loss, group, abstention_cost=0.1)
    with pytest.raises(InputError, match="`weight`"):
        fit_groups("risk", confidence, loss, group, max_risk=0.1, weight=np.ones(303))
    with pytest.raises(InputError, match="takes no `ratio`"):
        fit_groups("risk", confidence, loss, group, ratio=np.ones(303), max_risk=0.1)
    for method, options in (("risk", {}), ("conformal_risk_control", {})):
        with pytest.raises(InputError, match="`joint` divides delta"):
            fit_groups(method, confidence, loss, group, max_risk=0.1, joint=True, **options)


@pytest.mark.parametrize(
    "missing", [np.nan, None, np.datetime64("NaT")], ids=["nan", "none", "not a time"]
)
def test_a_missing_group_raises_an_error_and_no_group_of_its_own(missing):
    confidence, loss, _ = drawn([300], [0.3])
    rule = fit_groups("sgr", confidence, loss, np.zeros(300), **OPTIONS)
    dates = np.full(300, "2026-01-01", dtype="datetime64[D]")
    group = dates if isinstance(missing, np.datetime64) else np.full(300, "a", dtype=object)
    group[7] = missing
    for asked in (
        lambda: fit_groups("sgr", confidence, loss, group, **OPTIONS),
        lambda: rule.apply(confidence, group=group),
        lambda: rule.count_unknown_groups(group),
        lambda: check_groups(rule, confidence, loss, group),
    ):
        with pytest.raises(DomainError, match="`group` must have a value"):
            asked()


def test_a_group_has_one_name_however_it_is_kept():
    confidence, loss, _ = drawn([600], [0.1])
    places = np.arange(600) % 2
    rule = fit_groups("sgr", confidence, loss, places, **OPTIONS)
    for same in (places.astype(float), places.astype(str), places.astype(np.uint8)):
        assert rule.apply(confidence, group=same).tolist() == (
            rule.apply(confidence, group=places).tolist()
        )
        assert rule.count_unknown_groups(same) == {}
    days = np.datetime64("2026-01-01") + places
    rule = fit_groups("sgr", confidence, loss, days, **OPTIONS)
    assert rule.names == ("2026-01-01", "2026-01-02")
    for unit in ("s", "us", "ns"):
        assert rule.count_unknown_groups(days.astype(f"datetime64[{unit}]")) == {}
    assert rule.count_unknown_groups(days.astype(object)) == {}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("own", "given"),
    [
        ("probability", None),
        ("probability", "log-odds"),
        ("log-odds", "probability"),
        ("unknown", None),
    ],
)
def test_all_thresholds_at_once_decide_as_each_part_does_alone(dtype, own, given):
    rng = np.random.default_rng(0)
    levels = [0.25, 0.5, 0.9]
    at = [float(np.log(p / (1 - p))) if own == "log-odds" else p for p in levels]
    parts = [RulePart(f"g{i}", DecisionRule("given", t, scale=own)) for i, t in enumerate(at)]
    none = DecisionRule("given", None, reason="too few", scale=own)
    rule = DecisionRule.from_parts("site", (*parts, RulePart("none", none)))
    values = rng.choice([*levels, *rng.random(50)], 1000)
    values = np.log(values / (1 - values)) if given == "log-odds" else values
    values, group = values.astype(dtype), rng.choice([*rule.names, "new"], 1000)
    expected = np.zeros(1000, dtype=bool)
    for part in rule.parts:
        alone = part.rule.apply(values, scale=given)
        expected |= (group == part.name) & alone
    assert rule.apply(values, group=group, scale=given).tolist() == expected.tolist()
    assert expected.any()


def test_unseen_groups_are_abstained_on_and_counted():
    rule = fit_groups("sgr", *drawn([300, 300], [0.1, 0.1]), **OPTIONS)
    group = ["g0", "new", "g1", "new"]
    assert rule.apply(np.ones(4), group=group).tolist() == [True, False, True, False]
    assert rule.count_unknown_groups(group) == {"new": 2}
    later = check_groups(rule, np.ones(4), np.zeros(4), group)
    assert [(c.group, c.verdict) for c in later[1:]] == [
        ("g0", "cannot tell"), ("g1", "cannot tell"), ("new", "unattainable"),
    ]  # fmt: skip
    assert later[3].rule.reason == "the group is not in the calibration data"


def test_predictions_know_their_groups():
    confidence, loss, group = drawn([300, 300], [0.1, 0.4])
    rule = fit_groups("sgr", confidence, loss, group, per="site", score="c", **OPTIONS)
    p = ab.Predictions(confidence={"c": confidence}, loss=loss, group=group)
    assert (rule.apply(p) == rule.apply(confidence, group=group)).all()
    with pytest.raises(MissingInputError, match="'site'"):
        rule.apply(ab.Predictions(confidence={"c": confidence}, loss=loss))
    with pytest.raises(MissingInputError, match="`group`"):
        rule.apply(confidence)
    by_class = fit_groups("sgr", confidence, loss, group, per="prediction", score="c", **OPTIONS)
    p = ab.Predictions(confidence={"c": confidence}, loss=loss, prediction=group)
    assert (by_class.apply(p) == rule.apply(confidence, group=group)).all()


def test_each_group_is_judged_by_its_own_rule():
    confidence, loss, group = drawn([3000, 3000], [0.1, 0.9])
    rule = fit_groups("sgr", confidence, loss, group, max_risk=0.05, delta=0.05)
    check = check_groups(rule, *drawn([3000, 3000], [0.1, 0.9], seed=1))
    assert [c.rule for c in check] == [rule, *(part.rule for part in rule.parts)]
    assert check[1].row()["threshold"] != check[2].row()["threshold"]
    assert check[0].accepted == check[1].accepted + check[2].accepted
    # Of groups of another kind: each against the target that all parts have.
    sex = np.tile(["f", "m"], 3000)
    data = drawn([3000, 3000], [0.1, 0.9], seed=1)
    other = check_groups(rule, *data[:2], sex, rule_group=data[2])
    assert [c.group for c in other] == ["", "f", "m"]
    assert other[1].accepted + other[2].accepted == check[0].accepted
    assert {c.rule.target for c in other} == {0.05}


def test_a_set_is_saved_and_loaded(tmp_path):
    rule = fit_groups("sgr", *drawn([300, 20], [0.1, 0.1]), per="site", joint=True, **OPTIONS)
    assert tables.load(tables.save(rule, tmp_path / "rule.json")) == rule
    text = json.loads(rule.to_json())
    for change, said in (
        ({"version": 9}, "version"),
        ({"parts": []}, "parts"),
        ({"parts": [{"name": "a", "rule": 3}]}, "rule"),
        ({"per": 3}, "per"),
        ({"more": 1}, "more"),
        ({"delta": 0.01}, "at least the sum"),
        ({"delta": None}, "at least the sum"),
        ({"joint": False, "delta": 0.01}, "delta of each"),
        ({"parts": [{"name": 7, "rule": text["parts"][0]["rule"]}]}, "`name` of a part"),
    ):
        with pytest.raises(FileFormatError, match=said):
            DecisionRule.from_json(json.dumps({**text, **change}))


def test_parts_that_cannot_stand_together_raise_an_error():
    low, high = DecisionRule("given", 0.2), DecisionRule("given", 0.8)
    with pytest.raises(InputError, match="named once"):
        DecisionRule.from_parts("site", (RulePart("a", low), RulePart("a", high)))
    with pytest.raises(InputError, match="one score"):
        DecisionRule.from_parts(
            "site", (RulePart("a", low.for_score("x")), RulePart("b", high.for_score("y")))
        )
    with pytest.raises(InputError, match="`per`"):
        DecisionRule.from_parts("", (RulePart("a", low), RulePart("b", high)))
