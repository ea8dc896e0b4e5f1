"""Several limits in each group: the rule of a group is that of its rows, and it is saved and read."""

import json

import numpy as np
import pytest

from abstain.errors import FileFormatError, InputError, MissingInputError
from abstain.thresholds import (
    DecisionRule,
    Limit,
    RulePart,
    check,
    check_groups,
    fit_groups,
    several_risks,
)

DELTA = 0.1


def drawn(n=2400, seed=0):
    rng = np.random.default_rng(seed)
    confidence = rng.random(n).round(3)
    group = rng.choice(["a", "b", "few"], n, p=[0.55, 0.442, 0.008])
    cat = rng.random(n) < 0.3
    loss = rng.random(n) < np.where(cat, 0.8, 0.4) * (1 - confidence) ** 2
    return confidence, loss, group, cat


def limits_of(cat):
    return [Limit("overall", 0.1), Limit("label:cat", 0.2, cat)]


def fitted(joint=False, seed=0, **options):
    confidence, loss, group, cat = drawn(seed=seed)
    return fit_groups(
        "learn_then_test", confidence, loss, group, limits=limits_of(cat), joint=joint,
        delta=DELTA, **options,
    )  # fmt: skip


@pytest.mark.parametrize("joint", [False, True])
def test_the_rule_of_a_group_is_that_of_its_rows(joint):
    confidence, loss, group, cat = drawn()
    rule = fitted(joint)
    # Without a failure, 22 samples certify a risk of 0.1 at a delta of 0.1, and "few" has fewer samples.
    assert (group == "few").sum() < 22
    share = DELTA / 2 if joint else DELTA
    for name in ("a", "b", "few"):
        rows = group == name
        alone = several_risks(confidence[rows], loss[rows], limits_of(cat[rows]), delta=share)
        assert rule.part(name) == alone
    assert [part.rule.attainable for part in rule.parts] == [True, True, False]
    assert (rule.joint, rule.delta, rule.target) == (joint, DELTA, 0.1)
    assert rule.accepted == sum(part.rule.accepted for part in rule.parts)
    accepted = rule.apply(confidence, group=group)
    thresholds = {part.name: part.rule.threshold or np.inf for part in rule.parts}
    assert (accepted == (confidence >= np.vectorize(thresholds.get)(group))).all()
    assert not rule.apply([1.0, 1.0], group=["few", "unseen"]).any()


def test_shares_of_delta_depend_only_on_the_sizes():
    confidence, loss, group, cat = drawn()
    options = {"limits": limits_of(cat), "joint": True, "delta": DELTA}
    deltas = set()
    for other_loss in (loss, ~loss, np.zeros(loss.size)):
        rule = fit_groups("learn_then_test", confidence, other_loss, group, **options)
        deltas |= {part.rule.delta for part in rule.parts}
    # Limits of other samples, of which there are fewer, do not change the shares either.
    few_cats = [Limit("overall", 0.1), Limit("label:cat", 0.2, cat & (confidence > 0.9))]
    rule = fit_groups("learn_then_test", confidence, loss, group, **{**options, "limits": few_cats})
    deltas |= {part.rule.delta for part in rule.parts}
    assert deltas == {DELTA / 2}


def test_a_group_without_samples_of_a_limit_has_no_threshold():
    confidence, loss, group, cat = drawn()
    limits = limits_of(cat & (group != "b"))
    rule = fit_groups("learn_then_test", confidence, loss, group, limits=limits, delta=DELTA)
    assert rule.part("a").attainable
    part = rule.part("b").part("label:cat")
    assert (part.n, part.threshold, part.coverage) == (0, None, None)
    assert part.reason.startswith("0 samples cannot certify a selective risk of at most 20%")
    assert "not together with label:cat" in rule.part("b").part("overall").reason
    ratio = np.where(cat & (group == "a"), 0.0, 1.0)
    rule = fit_groups(
        "learn_then_test", confidence, loss, group, limits=limits_of(cat), delta=DELTA, ratio=ratio
    )
    assert rule.part("a").part("label:cat").n == 0
    assert not rule.part("a").attainable


def test_ratios_of_a_group_are_those_of_its_rows():
    confidence, loss, group, cat = drawn()
    ratio = 0.5 + confidence
    options = {"limits": limits_of(cat), "delta": DELTA, "ratio": ratio}
    rule = fit_groups("learn_then_test", confidence, loss, group, **options)
    rows = group == "a"
    alone = several_risks(
        confidence[rows], loss[rows], limits_of(cat[rows]), delta=DELTA, ratio=ratio[rows]
    )
    assert (alone.attainable, rule.part("a")) == (True, alone)


@pytest.mark.parametrize("joint", [False, True])
def test_a_file_restores_the_rule_and_older_files_are_read(joint):
    rule = fitted(joint).for_score("msr", scale="log-odds")
    text = rule.to_json()
    assert DecisionRule.from_json(text) == rule
    fields = json.loads(text)
    assert fields["version"] == 3
    first = fields["parts"][0]["rule"]
    assert [part["name"] for part in first["parts"]] == ["overall", "label:cat"]
    assert first["parts"][0]["rule"]["threshold_probability"] > 0.5
    # A rule with one guarantee per group, and a rule with several limits, stay in version 2.
    confidence, loss, group, cat = drawn()
    plain = fit_groups("sgr", confidence, loss, group, max_risk=0.1, delta=DELTA)
    several = several_risks(confidence, loss, limits_of(cat), delta=DELTA)
    for older in (plain, several):
        assert json.loads(older.to_json())["version"] == 2
        assert DecisionRule.from_json(older.to_json()) == older


def test_an_edited_file_is_rejected():
    fields = json.loads(fitted().to_json())
    fields["parts"][0]["rule"]["parts"][1]["rule"]["target"] = 0.15
    with pytest.raises(FileFormatError, match="bound"):
        DecisionRule.from_json(json.dumps(fields))
    fields = json.loads(fitted().to_json())
    del fields["parts"][0]["rule"]["parts"][1]
    with pytest.raises(FileFormatError, match="the same limits"):
        DecisionRule.from_json(json.dumps(fields))
    fields["parts"][0]["rule"]["per"] = "site"
    with pytest.raises(FileFormatError, match="which must be the limits"):
        DecisionRule.from_json(json.dumps(fields))


def test_parts_of_limits_have_no_parts():
    rule = fitted()
    with pytest.raises(InputError, match="only the parts of a decision rule with `per`"):
        DecisionRule.from_parts("", (RulePart("overall", rule.part("a")),))
    with pytest.raises(InputError, match="which must be the limits"):
        DecisionRule.from_parts("site", (RulePart("x", rule),))


def test_an_unseen_group_has_the_limits_without_a_threshold():
    unseen = fitted().part("elsewhere")
    assert unseen.names == ("overall", "label:cat")
    assert [part.rule.target for part in unseen.parts] == [0.1, 0.2]
    assert not unseen.attainable
    assert "not in the calibration data" in unseen.reason


def test_text_names_each_group_and_each_limit():
    text = str(fitted())
    assert text.startswith("By group:\n  a: One threshold, several limits:\n    overall: Accept")
    assert "\n  few: One threshold, several limits:\n    overall: Accept nothing" in text


def test_limits_of_groups_are_checked_jointly():
    confidence, loss, group, cat = drawn(seed=7)
    rule = fitted()
    weight = np.where(np.arange(loss.size) % 5 == 0, 0.0, 1.0)
    for w in (None, weight):
        total, *checks = check_groups(
            rule, confidence, loss, group, masks={"label:cat": cat}, weight=w, level=0.9
        )
        assert [c.subgroup for c in checks] == [
            text for name in ("a", "b", "few") for text in (name, f"{name}: label:cat")
        ]
        assert {c.n_joint_verdicts for c in (total, *checks)} == {7}
        for c in checks:
            rows = (group == c.group) & (cat if c.limit else True)
            part = rule.part(c.group)
            alone = check(
                part.part(c.limit) if c.limit else part,
                confidence[rows], loss[rows], level=1 - 0.1 / 7,
                weight=None if w is None else w[rows],
            )  # fmt: skip
            assert (c.n, c.accepted, c.verdict) == (alone.n, alone.accepted, alone.verdict)
            bounds = (alone.excess_interval.low, alone.excess_interval.high)
            own_bounds = (c.excess_interval.low, c.excess_interval.high)
            assert own_bounds == pytest.approx(bounds, nan_ok=True)
    with pytest.raises(InputError, match="`masks` must name limits"):
        check_groups(rule, confidence, loss, group, masks={"label:dog": cat})


def test_limits_need_their_rule_and_losses():
    confidence, loss, group, cat = drawn()
    with pytest.raises(InputError, match="supports only the method 'learn_then_test'; got 'sgr'"):
        fit_groups("sgr", confidence, loss, group, limits=limits_of(cat), delta=DELTA)
    with pytest.raises(MissingInputError, match="`loss`"):
        fit_groups("learn_then_test", confidence, None, group, limits=limits_of(cat), delta=DELTA)
