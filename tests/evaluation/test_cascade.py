"""`set_cascade` and `check_cascade`: what several models say of the same samples."""

import numpy as np
import pytest

import abstain as ab
from abstain.errors import DomainError, InputError, MissingInputError, ShapeError


def said(n, seed=0, *, shift=0.0):
    rng = np.random.default_rng(seed)
    hard = np.clip(rng.random(n) + shift, 0, 1)
    small = (1 - hard, rng.random(n) < 0.5 * hard**2)
    return {"small": small, "large": (1 - hard**2, rng.random(n) < 0.2 * hard**3)}


def as_predictions(data, ids=None):
    return {
        name: ab.Predictions(confidence=confidence, loss=loss, ids=ids)
        for name, (confidence, loss) in data.items()
    }


COSTS = {"small": 1, "large": 10, "person": 100}


def test_arrays_and_predictions_choose_the_same():
    data = said(2000)
    cascade = ab.set_cascade(data, max_risk=0.05, costs=COSTS)
    two = ab.set_cascade(as_predictions(data), max_risk=0.05, costs=COSTS)
    assert [s.threshold for s in cascade.stages] == [s.threshold for s in two.stages]
    assert cascade.stages[0].scale == two.stages[0].scale == "probability"
    assert two.stages[0].score == "confidence"
    known = ab.check_cascade(cascade, data).checks[0]
    assert known.risk == pytest.approx(cascade.risk)
    assert known.load.cost == pytest.approx(cascade.cost)
    assert [s.share for s in known.stages] == pytest.approx(cascade.answered)


def test_samples_are_matched_by_their_names():
    data = said(1500)
    ids = np.array([f"s{i}" for i in range(1500)])
    plain = ab.set_cascade(data, max_risk=0.05, costs=COSTS)
    named = as_predictions(data, ids)
    turned = np.random.default_rng(3).permutation(1500)
    confidence, loss = data["large"]
    other = ab.Predictions(confidence=confidence[turned], loss=loss[turned], ids=ids[turned])
    cascade = ab.set_cascade({**named, "large": other}, max_risk=0.05, costs=COSTS)
    assert [s.threshold for s in cascade.stages] == [s.threshold for s in plain.stages]
    assert (cascade.risk, cascade.cost, cascade.answered) == (
        plain.risk,
        plain.cost,
        plain.answered,
    )
    fewer = ab.Predictions(confidence=confidence[5:], loss=loss[5:], ids=ids[5:])
    with pytest.raises(InputError, match=r"'large' lacks 5 samples .*'s0'"):
        ab.set_cascade({**named, "large": fewer}, max_risk=0.05)
    twice = ab.Predictions(confidence=confidence, loss=loss, ids=np.repeat(ids[:750], 2))
    with pytest.raises(DomainError, match="distinct"):
        ab.set_cascade({**named, "large": twice}, max_risk=0.05)


def test_class_scores_are_decided_in_log_odds():
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=3000)
    first, second = (rng.normal(size=(3000, 3)) + k * np.eye(3)[labels] for k in (2, 4))
    data = {
        name: ab.Predictions(logits=x, labels=labels)
        for name, x in (("one", first), ("two", second))
    }
    cascade = ab.set_cascade(data, max_risk=0.05, costs={"one": 1, "two": 5, "person": 50})
    assert {s.scale for s in cascade.stages} == {"log-odds"}
    who = cascade.decide(data["one"], data["two"])
    sure = [ab.confidence.score("msr", p) for p in data.values()]
    assert np.array_equal(who, cascade.decide(*sure))
    # The same decisions from probabilities, within their rounding.
    probability = [x.probability for x in sure]
    assert np.array_equal(who, cascade.decide(*probability, scale="probability"))
    kept = ab.check_cascade(cascade, data).checks[0]
    assert kept.load.reviews == (who == 2).mean()


def test_the_person_may_be_wrong_at_a_rate_or_as_measured():
    data = said(4000)
    plain = ab.set_cascade(data, max_risk=0.04)
    rate = ab.set_cascade({**data, "person": 0.1}, max_risk=0.04)
    wrong = np.arange(4000) % 10 == 0
    measured = ab.set_cascade({**data, "person": wrong}, max_risk=0.04)
    assert (plain.plan.person_error, rate.plan.person_error) == (0.0, 0.1)
    assert measured.plan.person_error is None
    # Samples sent to the person are wrong too, so that fewer may be answered by the models.
    assert rate.answered[-1] > plain.answered[-1]
    assert measured.answered[-1] > plain.answered[-1]
    with pytest.raises(MissingInputError, match="person"):
        ab.check_cascade(measured, said(100, 1))
    assert ab.check_cascade(measured, {**said(100, 1), "person": 0.05}).checks[0].risk > 0
    kinds = {f.kind for f in ab.check_cascade(plain, said(100, 1)).notes}
    assert kinds == {"guarantee", "person"}


def test_capacity_by_day_is_a_share():
    data = said(6000)
    days = ab.set_cascade(data, max_risk=0.06, capacity=60, per_day=200, overflow=0.1)
    share = ab.thresholds.daily_share(60, 200, overflow=0.1)
    assert days.plan.capacity == share < 0.3
    same = ab.set_cascade(data, max_risk=0.06, capacity=share)
    assert days.stages == same.stages
    result = ab.check_cascade(days, said(4000, 1)).checks[0]
    assert result.load.days_over <= 0.1
    none = ab.set_cascade(data, max_risk=0.2, capacity=0)
    assert none.attainable
    assert none.stages[-1].answers == "all" or none.stages[0].answers == "all"
    assert ab.check_cascade(none, said(500, 1)).checks[0].load.verdict == "holds"


def test_a_check_says_where_the_guarantee_is_broken_and_what_needs_no_labels():
    cascade = ab.set_cascade(said(6000), max_risk=0.04, capacity=0.2, costs=COSTS)
    bare = {name: confidence for name, (confidence, _) in said(4000, 3, shift=0.5).items()}
    sets = {"same": said(20_000, 1), "hard": said(4000, 2, shift=0.5), "bare": bare}
    checks = ab.check_cascade(cascade, sets, calibration=said(6000))
    assert [c.verdict for c in checks.checks] == ["holds", "broken", "broken"]
    assert np.isnan(checks.checks[2].risk)
    assert checks.checks[2].load.verdict == "broken"
    rows = checks.frame()
    assert rows["name"].to_list() == ["calibration", "same", "hard", "bare"]
    assert checks.frontier.selected is not None
    assert checks.frontier.risk[checks.frontier.selected] == pytest.approx(cascade.risk)
    kinds = {f.kind for f in checks.notes}
    assert {"load", "no_labels", "guarantee"} <= kinds
    again = ab.check_cascade(cascade, said(6000), calibration=said(6000))
    assert "same_data" in {f.kind for f in again.notes}
    assert len(ab.check_cascade(cascade, {})) == 0


def test_the_guarantee_is_the_same_for_the_same_seed_and_another_for_another():
    data = said(1000)
    first, second = (ab.set_cascade(data, max_risk=0.06, seed=s, costs=COSTS) for s in (0, 1))
    assert ab.set_cascade(data, max_risk=0.06, seed=0, costs=COSTS) == first
    assert first.stages != second.stages


@pytest.mark.parametrize(
    ("change", "options", "error", "words"),
    [
        ({}, {"costs": {"small": 1, "person": 1}}, MissingInputError, "'large'"),
        ({}, {"costs": {"small": 1, "large": 1}}, MissingInputError, "review"),
        ({}, {"costs": {**COSTS, "larger": 1}}, InputError, "'larger'"),
        ({}, {"capacity": 40}, InputError, "per_day"),
        ({}, {"per_day": 40}, MissingInputError, "capacity"),
        ({}, {"capacity": 50, "per_day": 40}, DomainError, "per_day"),
        ({}, {"delta": 5}, DomainError, "delta"),
        ({"large": ([0.1, 0.2], [0, 1])}, {}, ShapeError, "same samples"),
        ({"large": [0.5] * 50}, {}, MissingInputError, "losses"),
        ({"error": ([0.5] * 50, [0] * 50)}, {}, InputError, "'error'"),
        ({"large": ([np.nan] * 50, [0] * 50)}, {}, DomainError, "'large'"),
        ({"large": ([0.5] * 50, [2] * 50)}, {}, DomainError, "'large'"),
        ({"person": 1.5}, {}, DomainError, "person_error"),
        ({}, {"capacity": 0.1, "per_day": 40}, InputError, "`capacity` must be an integer number"),
        ({f"m{i}": ([0.5] * 50, [0] * 50) for i in range(6)}, {}, InputError, "at most 7 stages"),
    ],
)
def test_refuses(change, options, error, words):
    with pytest.raises(error, match=words):
        ab.set_cascade({**said(50), **change}, **{"max_risk": 0.1, **options})


@pytest.mark.parametrize("field", ["weight", "group"])
def test_refuses_samples_that_do_not_count_alike(field):
    known = {field: np.ones(50)}
    stages = {
        name: ab.Predictions(confidence=confidence, loss=loss, **known)
        for name, (confidence, loss) in said(50).items()
    }
    cascade = ab.set_cascade(said(50), max_risk=0.1)
    for asked in (
        lambda: ab.set_cascade(stages, max_risk=0.1),
        lambda: ab.check_cascade(cascade, stages),
    ):
        with pytest.raises(InputError, match=f"must have no `{field}`; drop it"):
            asked()


def test_few_samples_guarantee_nothing():
    with pytest.raises(InputError, match="at least 2"):
        ab.set_cascade(said(1), max_risk=0.1)
    for n in (2, 3, 28):
        none = ab.set_cascade(said(n), max_risk=0.1)
        assert not none.attainable
        assert "cannot certify" in none.reason
    # However the samples are divided, one orders and one tests at least.
    for share, tested in ((1e-9, 1999), (1 - 1e-9, 1)):
        assert ab.set_cascade(said(2000), max_risk=0.1, ordered_by=share).tested == tested


def test_what_confidences_are_measured_in_may_be_said():
    data = said(2000)
    cascade = ab.set_cascade(data, max_risk=0.05, costs=COSTS)
    assert {stage.scale for stage in cascade.stages} == {"probability"}
    later = {name: (c.clip(1e-9, 1 - 1e-9), loss) for name, (c, loss) in said(2000, 1).items()}
    odds = {name: (np.log(c / (1 - c)), loss) for name, (c, loss) in later.items()}
    with pytest.raises(InputError, match=r"scale"):
        ab.check_cascade(cascade, odds)

    def found(*asked, **options):
        check = ab.check_cascade(*asked, **options).checks[0]
        return (
            check.risk,
            check.load.reviews,
            check.load.cost,
            [stage.n_answered for stage in check.stages],
        )

    assert found(cascade, odds, scale="log-odds") == found(cascade, later)
    # Said when it is chosen, it stands in the cascade.
    other = ab.set_cascade(odds, max_risk=0.05, costs=COSTS, scale="log-odds")
    assert {stage.scale for stage in other.stages} == {"log-odds"}
    assert found(other, later, scale="probability") == found(other, odds)
    with pytest.raises(DomainError, match="probability"):
        ab.set_cascade(odds, max_risk=0.05, scale="probability")
    scored = {"small": ab.Predictions(logits=np.eye(3), labels=[0, 1, 2])}
    sure = ab.set_cascade(scored, max_risk=0.1)
    assert ab.check_cascade(sure, scored, scale="probability").checks[0].n == 3


def test_refuses_other_samples_and_other_stages():
    labels = np.arange(40) % 3
    good = ab.Predictions(confidence=np.ones(40), prediction=labels, labels=labels)
    other = ab.Predictions(confidence=np.ones(40), prediction=labels, labels=labels[::-1])
    with pytest.raises(InputError, match="not the same samples"):
        ab.set_cascade({"a": good, "b": other}, max_risk=0.1)
    with pytest.raises(MissingInputError, match="stages"):
        ab.set_cascade({}, max_risk=0.1)
    cascade = ab.set_cascade(said(500), max_risk=0.2)
    with pytest.raises(MissingInputError, match="lacks 'large'"):
        ab.check_cascade(cascade, {"small": said(50)["small"]})
    with pytest.raises(InputError, match=r"later: .*'huge'"):
        ab.check_cascade(cascade, {"later": {**said(50), "huge": said(50)["small"]}})
    with pytest.raises(InputError, match="Cascade"):
        ab.check_cascade(ab.thresholds.DecisionRule("given", 0.5), said(50))


def test_a_stage_may_have_one_of_several_scores_and_a_fitted_one():
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=2000)
    logits = rng.normal(size=(2000, 3)) + 3 * np.eye(3)[labels]
    sure, doubt = rng.random(2000), rng.random(2000)
    both = ab.Predictions(
        logits=logits, labels=labels, confidence={"sure": sure, "doubt": doubt}, features=logits
    )
    with pytest.raises(InputError, match="name it"):
        ab.set_cascade({"a": both}, max_risk=0.1)
    cascade = ab.set_cascade({"a": both}, max_risk=0.1, scores={"a": "mls"})
    assert (cascade.stages[0].score, cascade.stages[0].scale) == ("mls", "score")
    loss = np.argmax(logits, axis=1) != labels
    plain = ab.set_cascade({"a": (logits.max(axis=1), loss)}, max_risk=0.1)
    assert plain.stages[0].threshold == cascade.stages[0].threshold
    assert ab.check_cascade(cascade, {"a": both}).checks[0].risk == cascade.risk
    fitted = ab.confidence.fit("mahalanobis", both)
    two = ab.set_cascade({"a": both}, max_risk=0.1, scores={"a": fitted})
    assert two.stages[0].score == fitted.name
    assert ab.check_cascade(two, {"a": both}, scores={"a": fitted}).checks[0].risk == two.risk
    with pytest.raises(InputError, match="'mls'"):
        ab.check_cascade(cascade, {"a": both}, scores={"a": fitted})
    with pytest.raises(InputError, match="scores"):
        ab.set_cascade({"a": both}, max_risk=0.1, scores={"b": "mls"})


def test_says_that_confidences_are_upside_down():
    (first, loss), (second, wrong) = said(2000).values()
    data = {"small": (1 - first, loss), "large": (second, wrong)}
    cascade = ab.set_cascade(data, max_risk=0.1)
    notes = ab.check_cascade(cascade, {"later": data}, calibration=said(2000)).notes
    turned = [f.message for f in notes if f.kind == "direction"]
    assert len(turned) == 1
    assert turned[0].startswith("later, small: ")
