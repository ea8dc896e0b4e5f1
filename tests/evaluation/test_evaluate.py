"""`evaluate`: what it joins, what it says, what it refuses."""

import pickle

import numpy as np
import pytest

import abstain as ab
from abstain.errors import InputError
from abstain.evaluation import Evaluation
from abstain.metrics import METRICS


def tossed(n: int = 400, *, seed: int = 0, classes: int = 3) -> ab.Predictions:
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, classes)) * 2
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    labels = (p.cumsum(1) > rng.random((n, 1))).argmax(1)
    return ab.Predictions(logits=logits, labels=labels)


@pytest.fixture(scope="module")
def evaluation() -> Evaluation:
    return ab.evaluate(tossed())


def kinds(evaluation: Evaluation) -> set[str]:
    return {finding.kind for finding in evaluation.notes}


def test_every_number_equals_the_plain_function(evaluation: Evaluation) -> None:
    p = tossed()
    score = ab.confidence.score("mls", p)
    for name, function in (("augrc", ab.augrc), ("aurc", ab.aurc), ("e_aurc", ab.e_aurc)):
        assert evaluation.value(name, score="mls") == function(score.values, ~p.correct)
    assert evaluation.value("accuracy", score="mls") == p.correct.mean()


def test_every_metric_is_there_or_has_a_reason(evaluation: Evaluation) -> None:
    measured = {result.metric.name for result in evaluation}
    assert measured | set(evaluation.skipped) == set(METRICS)
    assert not measured & set(evaluation.skipped)
    assert "two classes" in evaluation.skipped["oc_auc"]


def test_results_are_tidy(evaluation: Evaluation) -> None:
    frame = evaluation.frame()
    columns = {"metric", "value", "n", "failures", "tied_share", "convention", "score", "reason"}
    assert columns <= set(frame.columns)
    assert frame.height == len(evaluation)
    assert frame.select("score", "metric").is_unique().all()


def test_splits_lead_the_rows() -> None:
    parts = {(("study", "a"),): tossed(seed=1), (("study", "b"),): tossed(seed=2)}
    evaluation = ab.evaluate(parts, metrics=["augrc"], scores=["msr"])
    assert [next(iter(row)) for row in evaluation.rows()] == ["study", "study"]
    first, second = (evaluation.value("augrc", split=split) for split in parts)
    assert first != second
    with pytest.raises(ab.errors.UnknownNameError, match="2 results match"):
        evaluation.value("augrc")


def test_metrics_with_a_number_of_your_own() -> None:
    evaluation = ab.evaluate(tossed(), scores=["msr"], metrics=["coverage@7risk", "cwsa@0.75"])
    assert [result.metric.name for result in evaluation] == ["coverage@7risk", "cwsa@0.75"]


def test_own_loss_and_named_losses() -> None:
    p = tossed()
    graded = np.linspace(0, 1, p.n)
    evaluation = ab.evaluate(p, scores=["msr"], loss=graded)
    score = ab.confidence.score("msr", p)
    assert evaluation.value("augrc") == ab.augrc(score.values, graded)
    assert "0/1" in evaluation.skipped["failure_auroc"]
    brier = ab.evaluate(p, scores=["msr"], metrics=["augrc"], loss="brier")
    assert brier.value("augrc") == ab.augrc(score.values, ab.per_sample_loss(p, "brier"))


def test_ties_come_with_their_range() -> None:
    p = ab.Predictions(
        prediction=[0, 1, 1, 0], labels=[0, 1, 0, 0], confidence=[0.5, 0.5, 0.5, 0.9]
    )
    result = next(r for r in ab.evaluate(p) if r.metric.name == "augrc")
    bounds = ab.tie_bounds([0.5, 0.5, 0.5, 0.9], [0, 0, 1, 0])
    assert (result.tie_low, result.tie_high) == (bounds.low, bounds.high)
    assert result.tied_share == 0.75


def test_saturation_is_said() -> None:
    c = np.r_[np.ones(60), np.linspace(0.1, 0.9, 40)]
    wrong = np.r_[np.zeros(57), np.ones(43)]
    evaluation = ab.evaluate(ab.Predictions(confidence=c, loss=wrong))
    said = next(f for f in evaluation.notes if f.kind == "saturation")
    assert said.level == "warning"
    assert "60.0% of the samples (60) have the highest confidence, exactly 1" in said.message
    assert "3 of them are wrong" in said.message


@pytest.mark.parametrize(("decimals", "level"), [(1, "warning"), (3, "note")])
def test_ties_are_a_warning_where_their_order_decides_much(decimals, level) -> None:
    rng = np.random.default_rng(1)
    c = rng.random(3000)
    wrong = rng.random(3000) < 0.4 * (1 - c)
    evaluation = ab.evaluate(ab.Predictions(confidence=c.round(decimals), loss=wrong))
    (said,) = (f for f in evaluation.notes if f.kind == "ties")
    (augrc,) = (r for r in evaluation.results if r.metric.name == "augrc")
    assert (augrc.tie_high - augrc.tie_low > 0.05 * augrc.value) == (level == "warning")
    assert said.level == level


def test_notes_that_are_no_list_are_rejected() -> None:
    p = ab.Predictions(confidence=[0.9, 0.8], loss=[0, 1])
    with pytest.raises(ab.errors.InputError, match="`notes` must be a list"):
        ab.evaluate(p, notes=False)


def test_few_failures_are_said_once_for_all_scores() -> None:
    p = tossed(20)
    said = [f for f in ab.evaluate(p).notes if f.kind == "few_failures"]
    assert len(said) == 1
    assert said[0].level == "warning"


def test_an_uncertainty_taken_for_a_confidence_is_noticed() -> None:
    rng = np.random.default_rng(0)
    wrong = rng.random(500) < 0.3
    evaluation = ab.evaluate(
        ab.Predictions(confidence={"entropy": wrong + rng.random(500)}, loss=wrong)
    )
    assert any(f.kind == "direction" and "lower_is_safer" in f.message for f in evaluation.notes)


def test_abstentions_and_unknown_classes_are_said() -> None:
    p = ab.Predictions(
        probabilities=np.tile([[0.7, 0.3]], (100, 1)),
        labels=np.r_[np.zeros(90, int), np.full(10, -1)],
        confidence={"own": np.r_[np.zeros(50), np.linspace(0.1, 1, 50)]},
        unknown_label=-1,
    )
    evaluation = ab.evaluate(p, scores=["own"])
    assert {"abstentions", "unknown_class"} <= kinds(evaluation)
    case = evaluation.curves[0]
    assert case.overconfident[0].label == "(no known class)"


@pytest.mark.parametrize("wrong", [0, 1])
def test_all_right_or_all_wrong_gives_reasons_not_errors(wrong: int) -> None:
    p = ab.Predictions(prediction=[0] * 5, labels=[wrong] * 5, confidence=[0.1, 0.2, 0.3, 0.4, 0.5])
    evaluation = ab.evaluate(p)
    undefined = [r for r in evaluation if np.isnan(r.value)]
    assert "failure_auroc" in {r.metric.name for r in undefined}
    assert all(r.reason for r in undefined)
    assert ("all_wrong" if wrong else "all_right") in kinds(evaluation)


def test_one_row() -> None:
    evaluation = ab.evaluate(ab.Predictions(prediction=[1], labels=[1], confidence=[0.5]))
    assert evaluation.value("aurc") == 0
    assert "constant" in kinds(evaluation)


def test_notable_samples() -> None:
    p = ab.Predictions(
        prediction=[0, 0, 1, 1],
        labels=[1, 0, 1, 0],
        confidence=[0.9, 0.2, 0.8, 0.95],
        ids=list("abcd"),
    )
    case = ab.evaluate(p).curves[0]
    assert [s.id for s in case.overconfident] == ["d", "a"]
    assert [s.id for s in case.underconfident] == ["b", "c"]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"metrics": ["augrcc"]}, ab.errors.UnknownNameError, "Did you mean 'augrc'"),
        ({"scores": ["msrr"]}, ab.errors.UnknownNameError, "Did you mean 'msr'"),
        ({"scores": ["mcd_mi"]}, ab.errors.MissingInputError, "needs Monte-Carlo samples"),
        (
            {"metrics": ["oc_auc"]},
            ab.errors.InputError,
            "does not apply: it needs a task with two classes",
        ),
        ({"metrics": []}, ab.errors.InputError, "at least one"),
    ],
)
def test_refusals(options: dict[str, list[str]], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ab.evaluate(tossed(), **options)


def test_refuses_what_is_no_predictions() -> None:
    with pytest.raises(ab.errors.InputError, match="must be a Predictions or a mapping"):
        ab.evaluate(np.ones(3))
    with pytest.raises(ab.errors.InputError, match="allow no confidence score"):
        ab.evaluate(ab.Predictions(prediction=[0], labels=[0]))


def test_where_the_silent_failures_come_from() -> None:
    p = ab.Predictions(
        prediction=[0, 0, 1, 1],
        labels=[1, 0, 1, 0],
        confidence=[0.9, 0.2, 0.8, 0.95],
        group=["x", "x", "y", "y"],
    )
    case, augrc = ab.evaluate(p).curves[0], ab.evaluate(p).value("augrc")
    for parts in (case.by_class, case.by_group):
        assert sum(part.contribution for part in parts) == pytest.approx(augrc)
        assert sum(part.share for part in parts) == pytest.approx(1)
        assert [part.n for part in parts] == [2, 2]
        assert parts[0].contribution >= parts[1].contribution
    assert {part.name for part in case.by_group} == {"x", "y"}


def test_a_split_column_that_would_hide_a_result_column_raises_an_error() -> None:
    with pytest.raises(ab.errors.InputError, match="the split column 'metric' has the name"):
        ab.evaluate({(("metric", "a"),): tossed()})


def test_two_spellings_come_once() -> None:
    evaluation = ab.evaluate(
        tossed(), scores=["msr@T=2", "msr@T=2.0"], metrics=["cwsa@0.8", "cwsa@0.80"]
    )
    assert len(evaluation) == 1
    close = ab.evaluate(tossed(), scores=["msr", "msr@T=1.0000001"], metrics=["augrc"])
    assert [r.score for r in close] == ["msr", "msr@T=1.0000001"]


def test_groups_of_any_type() -> None:
    p = ab.Predictions(prediction=[0, 1], labels=[1, 1], confidence=[0.9, 0.8], group=["a", None])
    assert {part.name for part in ab.evaluate(p).curves[0].by_group} == {"a", "None"}


def test_a_graded_loss_is_not_called_wrong() -> None:
    evaluation = ab.evaluate(tossed(40), scores=["msr"], loss="cross_entropy")
    assert not evaluation.is_binary
    assert not any("wrong" in f.message for f in evaluation.notes)
    constant = ab.evaluate(ab.Predictions(confidence=[0.1, 0.2], loss=[0.5, 0.5]))
    assert "all_alike" in kinds(constant)


def test_cases_say_whose_score_it_is() -> None:
    p = ab.Predictions(
        logits=[[2.0, 0.0], [0.0, 1.0]], labels=[0, 0], confidence={"msr": [0.9, 0.1]}
    )
    assert {case.score: case.is_column for case in ab.evaluate(p).curves}["msr"]
    assert not ab.evaluate(tossed(), scores=["msr"]).curves[0].is_column


def test_what_curves_and_groups_share_cannot_be_written_to() -> None:
    case = ab.evaluate(tossed()).curves[0]
    for array in (case.selective.thresholds, case.generalized.accepted, case.generalized.failures):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_predictions_and_evaluations_travel_between_processes() -> None:
    p = tossed(50)
    evaluation = pickle.loads(pickle.dumps(ab.evaluate(p)))
    again = ab.evaluate(pickle.loads(pickle.dumps(p)))
    # As text, since NaN equals nothing.
    assert str(evaluation.rows()) == str(again.rows())


def test_resampling_where_nothing_fails_says_why_there_is_no_interval() -> None:
    rng = np.random.default_rng(0)
    for loss in (np.zeros(80), np.ones(80)):
        data = ab.Predictions(confidence={"a": rng.random(80)}, loss=loss)
        evaluation = ab.evaluate(data, interval="bootstrap", bootstrap=60)
        exact = {r.metric.name: r for r in ab.evaluate(data)}
        for result in evaluation:
            if np.isnan(result.interval.low):
                assert result.interval.note
            elif result.metric.name == "augrc":
                assert result.interval == exact["augrc"].interval


def test_a_seed_of_any_integer_type_is_the_seed() -> None:
    data = tossed(60)
    first, second = (
        ab.evaluate(data, interval="bootstrap", bootstrap=20, rng=rng, metrics=["augrc"])
        for rng in (5, np.int64(5))
    )
    assert [r.interval.low for r in first] == [r.interval.low for r in second]


def test_one_resample_raises_an_error() -> None:
    with pytest.raises(ab.errors.InputError, match="`bootstrap` must be at least 2"):
        ab.evaluate(tossed(60), interval="bootstrap", bootstrap=1)


def test_keys_of_splits_may_be_names():
    rng = np.random.default_rng(0)
    splits = {
        name: ab.Predictions(confidence=rng.random(60), loss=rng.random(60) < 0.3)
        for name in ("first", "second")
    }
    named = ab.evaluate(splits, metrics=["augrc"])
    expected = ab.evaluate({(("name", key),): p for key, p in splits.items()}, metrics=["augrc"])
    assert [r.split for r in named.results] == [(("name", "first"),), (("name", "second"),)]
    assert [r.value for r in named.results] == [r.value for r in expected.results]
    comparison = ab.compare(splits, methods="name")
    assert {e.method for e in comparison.estimates} == {"first", "second"}
    with pytest.raises(InputError, match=r"pass methods='name' \(command line: --methods-from\)"):
        ab.compare(splits)
