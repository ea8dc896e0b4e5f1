"""`set_threshold` with groups and limits, and what `check_rule` says of them."""

import re

import numpy as np
import pytest

import abstain as ab
from abstain.errors import InputError, MissingInputError, UnknownNameError
from abstain.evaluation import check_rule, set_threshold
from abstain.thresholds import Limit, fit_groups, several_risks

OPTIONS = {"max_risk": 0.1, "delta": 0.05}
CLASSES = ["cat", "dog", "owl"]


def made(seed, n=4000):
    rng = np.random.default_rng(seed)
    site = rng.choice(["north", "south", "tiny"], n, p=[0.6, 0.395, 0.005])
    label = rng.integers(3, size=n)
    strength = np.where(site == "south", 2.0, 3.0)
    logits = rng.normal(size=(n, 3)) + strength[:, None] * np.eye(3)[label]
    return ab.Predictions(
        logits=logits, labels=np.array(CLASSES)[label], classes=CLASSES, group=site
    )


CAL, TEST = made(0), made(1)
WRONG = (~CAL.correct).astype(float)
MSR = ab.confidence.score("msr", CAL).values


def test_per_group_and_prediction_are_the_rules_of_arrays():
    by_group = set_threshold(CAL, per="group", joint=True, **OPTIONS)
    arrays = fit_groups("sgr", MSR, WRONG, CAL.group, joint=True, **OPTIONS)
    assert by_group == arrays.for_score("msr", scale="log-odds")
    assert set_threshold(CAL, per=CAL.group, joint=True, **OPTIONS) == by_group
    by_class = set_threshold(CAL, per="prediction", **OPTIONS)
    predicted = np.array(CLASSES)[CAL.prediction_codes]
    assert (
        by_class.parts
        == fit_groups("sgr", MSR, WRONG, predicted, score="msr", scale="log-odds", **OPTIONS).parts
    )
    assert by_class.per == "prediction"
    # Decided again from predictions, logits and confidences.
    accepted = by_class.apply(TEST)
    names = np.array(CLASSES)[TEST.prediction_codes]
    assert (by_class.apply(logits=TEST.logits, group=names) == accepted).all()
    with pytest.raises(MissingInputError, match="`group`"):
        by_class.apply(logits=TEST.logits)


@pytest.mark.parametrize("per", ["label", "labels", CAL.labels, "site"])
def test_what_is_not_known_at_use_raises_an_error(per):
    with pytest.raises(InputError, match="`per`") as raised:
        set_threshold(CAL, per=per, **OPTIONS)
    assert (isinstance(per, str) and per == "site") or "'prediction'" in str(raised.value)


def test_groups_that_name_the_predicted_class_are_fine():
    right = CAL.subset(CAL.correct)
    assert set_threshold(right, per=right.labels, **OPTIONS).attainable
    with pytest.raises(MissingInputError, match="`group`"):
        set_threshold(ab.Predictions(confidence=[1.0], loss=[0]), per="group", **OPTIONS)


def test_limits_equal_those_of_arrays():
    rule = set_threshold(
        CAL, max_risk=0.08, limits={"label": 0.3, "label:cat": 0.2, "group:north": 0.1}, delta=0.05
    )
    limits = [
        Limit("overall", 0.08),
        Limit("label:cat", 0.2, CAL.labels == "cat"),
        Limit("label:dog", 0.3, CAL.labels == "dog"),
        Limit("label:owl", 0.3, CAL.labels == "owl"),
        Limit("group:north", 0.1, CAL.group == "north"),
    ]
    arrays = several_risks(MSR, WRONG, limits, delta=0.05)
    assert rule == arrays.for_score("msr", scale="log-odds")
    checked = check_rule(rule, {"later": TEST}, calibration=CAL)
    own = {c.group: c for c in checked.all_checks()}
    answered = np.asarray(rule.apply(TEST))
    for name, inside in (
        ("label:dog", TEST.labels == "dog"),
        ("group:north", TEST.group == "north"),
    ):
        assert own[name].n == inside.sum()
        assert own[name].selective_risk == (~TEST.correct)[inside & answered].mean()
        assert own[name].rule.target == rule.part(name).target
    assert checked.rows()[2]["target"] == 0.2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"limits": {"labels": 0.1}, "delta": 0.1}, "'labels'"),
        ({"limits": {"label:cow": 0.1}, "delta": 0.1}, "'cow'"),
        ({"limits": {"label": 0.1}, "delta": 0.1, "coverage": 0.3}, "`coverage`"),
        (
            {"limits": {"group:north": 0.1}, "per": "group"},
            "replace the limit 'group' by 'overall'",
        ),
        ({"limits": {"prediction": 0.1}, "per": "prediction"}, "by 'overall' (`max_risk`)"),
        ({"limits": {"label": 0.1}, "per": "prediction"}, "drop the limit 'label'"),
        ({"limits": {"label": 0.1}, "per": "group", "method": "sgr"}, "'sgr'"),
        ({"limits": {"label": 0.1}, "delta": 0.1, "method": "risk"}, "'risk'"),
    ],
)
def test_limits_that_cannot_be(options, said):
    with pytest.raises((InputError, UnknownNameError), match=re.escape(said)):
        set_threshold(CAL, **options)


def test_limits_in_each_group_equal_those_of_arrays_and_are_checked():
    limits = {"label": 0.3, "label:cat": 0.25}
    rule = set_threshold(CAL, per="group", max_risk=0.15, limits=limits, joint=True)
    arrays = [
        Limit("overall", 0.15),
        *(
            Limit(f"label:{name}", 0.25 if name == "cat" else 0.3, CAL.labels == name)
            for name in CLASSES
        ),
    ]
    expected = fit_groups(
        "learn_then_test", MSR, WRONG, CAL.group, limits=arrays, joint=True, delta=0.05
    )
    assert rule == expected.for_score("msr", scale="log-odds")
    assert [part.rule.attainable for part in rule.parts] == [True, True, False]
    checked = check_rule(rule, {"later": TEST}, calibration=CAL)
    rows = {row["subgroup"]: row for row in checked.rows() if row["role"] != "calibration"}
    answered = np.asarray(rule.apply(TEST))
    in_limit = (TEST.group == "south") & (TEST.labels == "dog")
    row = rows["south: label:dog"]
    assert (row["role"], row["target"], row["n"]) == ("limit", 0.3, in_limit.sum())
    assert row["selective_risk"] == (~TEST.correct)[in_limit & answered].mean()
    assert row["threshold"] == rule.part("south").threshold
    # The total, three groups, and three limits in each group.
    assert row["together"] == len(rows) == 13
    assert rows["south"]["role"] == "group"
    labels = [check.label for check in checked.all_checks()]
    assert labels[-3:] == [f"later: tiny: label:{name}" for name in CLASSES]
    outcome = dict(zip(labels, checked.outcomes[0], strict=True))["later: south: label:dog"]
    assert outcome.answered.count == (in_limit & answered).sum()
    assert {d.n_groups for d in checked.disparities()} == {2, 3}
    (remedies,) = checked.remedies
    assert (remedies.group, remedies.tests) == ("tiny", ())
    # Without labels, only the coverages are computed, and a note names the limits.
    bare = ab.Predictions(logits=TEST.logits, classes=CLASSES, group=TEST.group, unlabeled=True)
    unlabeled = check_rule(rule, {"later": bare})
    assert len(unlabeled.all_checks()) == 4
    kinds = {note.kind: note.message for note in unlabeled.notes}
    assert "'north: label:cat', 'north: label:dog'" in kinds["limit_unchecked"]


def test_group_limits_in_each_predicted_class_are_checked_there():
    rule = set_threshold(CAL, per="prediction", limits={"group:south": 0.2})
    checked = check_rule(rule, {"later": TEST})
    subgroups = [check.subgroup for check in checked.groups[0]]
    assert subgroups == [text for name in CLASSES for text in (name, f"{name}: group:south")]
    assert not [note for note in checked.notes if note.kind == "limit_unchecked"]


def test_remedies_for_several_limits_give_a_threshold():
    data = CAL.subset(np.arange(CAL.n) < 600)
    options = {"max_risk": 0.1, "limits": {"label:cat": 0.1}}
    rule = set_threshold(data, per="group", **options)
    checked = check_rule(rule, {}, calibration=data)
    remedies = {r.group: r for r in checked.remedies}
    south = remedies["south"]
    # Three copies of each sample are enough if at most twice as many more samples are needed.
    rows = np.flatnonzero(data.group == "south")
    n_copies = int(np.ceil(south.n_required / rows.size))
    repeated = data.subset(np.tile(rows, n_copies))
    assert not rule.part("south").attainable
    assert set_threshold(repeated, **options).attainable
    for alternative in south.alternatives:
        targets = {part.name: part.rule.target for part in alternative.rule.parts}
        again = set_threshold(
            data.subset(rows), limits=targets, delta=0.025,
            **({"starts": alternative.starts} if alternative.starts else {}),
        )  # fmt: skip
        assert again == alternative.rule
        assert alternative.condition.group == "south"
    for part in rule.part("south").parts:
        if not part.rule.reason.startswith("could be certified alone"):
            assert re.search(r"at the starts, \d+ of \d+ are wrong and", part.rule.reason)
    # Other starts than the default: the tests of the rule are unknown, so nothing is proposed.
    other = set_threshold(data, per="group", starts=(0.9,), **options)
    assert not other.part("south").attainable
    assert {r.group for r in check_rule(other, {}, calibration=data).remedies} == {"tiny"}


def test_small_and_unseen_groups_are_named_and_counted():
    rule = set_threshold(CAL.subset(CAL.group != "north"), per="group", **OPTIONS)
    checked = check_rule(rule, {"later": TEST})
    kinds = {f.kind: f.message for f in checked.notes}
    assert "1 of 2 groups have no threshold" in kinds["group_without_threshold"]
    assert "samples cannot certify" in kinds["group_without_threshold"]
    north = int((TEST.group == "north").sum())
    assert kinds["group_unseen"].startswith(f"later: {north} samples belong to 1 group without")
    own = {c.group: c for c in checked.all_checks()}
    assert (own["north"].verdict, own["north"].accepted) == ("unattainable", 0)
    # What is not answered breaks nothing.
    assert own[""].verdict == own["south"].verdict or own[""].excess_verdict == own[""].verdict
    with pytest.raises(MissingInputError, match="these are confidences without labels"):
        check_rule(rule, {"later": np.ones(3)})
    without = ab.Predictions(logits=TEST.logits, labels=TEST.labels, classes=CLASSES)
    with pytest.raises(MissingInputError, match="later: the rule has a threshold for each 'group'"):
        check_rule(rule, {"later": without})


def test_classes_are_checked_unless_groups_are_requested():
    rule = set_threshold(CAL, per="prediction", **OPTIONS)
    by_site = check_rule(rule, {"later": TEST})
    assert [c.group for c in by_site.groups[0]] == ["north", "south", "tiny"]
    plain = ab.Predictions(logits=TEST.logits, labels=TEST.labels, classes=CLASSES)
    by_class = check_rule(rule, {"later": plain})
    assert [c.group for c in by_class.groups[0]] == CLASSES
    assert [c.rule for c in by_class.groups[0]] == [part.rule for part in rule.parts]
    assert by_class.checks[0].accepted == by_site.checks[0].accepted


def test_rows_say_how_far_apart_groups_are():
    rule = set_threshold(CAL, **OPTIONS)
    checked = check_rule(rule, {"later": TEST, "plain": TEST.subset(TEST.group == "north")})
    rejection, risk = checked.disparities()[:2]
    whole = next(row for row in checked.rows() if row["role"] == "check")
    assert whole["rejection_difference"] == rejection.difference
    assert whole["risk_ratio_high"] == risk.ratio_interval.high
    assert rejection.difference_interval.level == pytest.approx(0.95)
    assert {most.name for most in checked.disparities()} == {"later"}
    assert all(np.isnan(r["risk_ratio"]) for r in checked.rows() if r["role"] == "group")


def test_without_labels_the_coverage_of_each_group_is_known_and_nothing_else():
    rule = set_threshold(CAL, per="group", **OPTIONS)
    bare = ab.Predictions(logits=TEST.logits, classes=CLASSES, group=TEST.group, unlabeled=True)
    checked, check = check_rule(rule, {"later": bare}), check_rule(rule, {"later": TEST})
    assert [c.coverage for c in checked.all_checks()] == [c.coverage for c in check.all_checks()]
    for c in checked.all_checks():
        assert c.verdict in {"cannot tell", "unattainable"}
        assert c.excess_verdict in {"", "cannot tell"}
        assert np.isnan(
            [c.selective_risk, c.generalized_risk, c.selective_risk_interval.high]
        ).all()
    rejection, risk = checked.disparities()
    # As text: what is undefined is not equal to itself.
    assert repr(rejection) == repr(check.disparities()[0])
    assert np.isnan(risk.difference)
    one = check_rule(set_threshold(CAL, **OPTIONS), {"later": bare})
    assert [c.verdict for c in one.all_checks()] == ["cannot tell"] * 4


def test_what_was_read_is_taken_under_a_name_of_its_own():
    rule = ab.thresholds.DecisionRule("risk", 0.5, target=0.1)
    one = ab.Predictions(confidence=[0.9, 0.8], loss=[0, 1])
    (check,) = check_rule(rule, {"later": {(): one}}).checks
    assert (check.name, check.accepted) == ("later", 2)
    with pytest.raises(InputError, match=r"`predictions\['later'\]` contains 2 data sets"):
        check_rule(rule, {"later": {(("site", "a"),): one, (("site", "b"),): one}})


def test_a_probability_that_is_not_named_equals_that_of_the_command_line():
    rng = np.random.default_rng(0)
    confidence = rng.random(2000)
    p = ab.Predictions(confidence=confidence, loss=rng.random(2000) > 0.5 + confidence / 2)
    assert set_threshold(p, max_risk=0.1) == set_threshold(p, max_risk=0.1, delta=0.05)
    several = set_threshold(p, limits={"overall": 0.1})
    assert several == set_threshold(p, limits={"overall": 0.1}, delta=0.05)
    # A rule that promises nothing has no such chance.
    assert set_threshold(p, max_risk=0.1, method="risk").delta is None
