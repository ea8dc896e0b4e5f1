"""A monitor: what it counts, when it gives alarm, and that nothing depends on how lines come."""

import time
from dataclasses import replace

import numpy as np
import pytest
from tests.monitoring.streams import calibrated, drawn, names, same

import abstain as ab
from abstain.errors import DomainError, InputError
from abstain.monitoring.lines import parse_line
from abstain.monitoring.running import RunningMonitor
from abstain.monitoring.starting import check_matches_state
from abstain.monitoring.state import Ledger

RULE, DATA = calibrated()


def begun(**options):
    return ab.monitoring.start(RULE, calibration=DATA, **options)


def test_what_is_watched_and_how_the_probability_is_shared():
    plan = begun(delta=0.06).plan
    assert plan.watched == ("coverage", "confidence", "risk")
    assert [plan.false_alarm_probability(name) for name in plan.watched] == pytest.approx(
        [0.01, 0.02, 0.02]
    )
    assert plan.max_risk == RULE.target
    low, high = plan.coverage
    reach = np.sqrt(np.log(2 / 0.01) / (2 * RULE.n))
    assert (low, high) == pytest.approx((RULE.coverage - reach, RULE.coverage + reach))
    given = ab.monitoring.start(RULE, coverage=(0.6, 0.8), delta=0.06).plan
    assert [given.false_alarm_probability(name) for name in given.watched] == pytest.approx(
        [0.03, 0.03]
    )


@pytest.mark.parametrize("options", [{}, {"label_share": 0.3, "patience": 150}])
def test_calls_of_any_size_give_one_monitor(options):
    rng = np.random.default_rng(1)
    confidence, loss = drawn(rng, 900)
    ids, late = names("a", 900), rng.permutation(900)
    whole = begun(**options).update(ids, confidence)
    whole = whole.labels([ids[i] for i in late], loss[late])
    parts = begun(**options)
    for i in range(0, 900, 7):
        parts = parts.update(ids[i : i + 7], confidence[i : i + 7])
    for i in range(0, 900, 11):
        some = late[i : i + 11]
        parts = parts.labels([ids[j] for j in some], loss[some])
    assert same(whole, parts)
    assert whole.predictions == 900


def test_what_is_sent_again_is_not_counted_again():
    confidence, loss = drawn(np.random.default_rng(2), 300)
    ids = names("a", 300)
    once = begun().update(ids, confidence).labels(ids, loss)
    again = once.update(ids[:50] * 2, np.tile(confidence[:50], 2)).labels(ids[100:], loss[100:])
    assert (again.state.counts.replayed, again.state.counts.repeated) == (100, 200)
    assert again.rows() == once.rows() or np.array_equal(
        once.frame().select(ab_columns := ["n", "value", "capital"]).to_numpy(),
        again.frame().select(ab_columns).to_numpy(),
        equal_nan=True,
    )


def test_labels_may_come_before_their_predictions_and_as_classes():
    confidence, loss = drawn(np.random.default_rng(3), 200)
    ids = names("a", 200)
    truth = np.where(loss, "dog", "cat")
    late = begun().update(ids, confidence, prediction=["cat"] * 200).labels(ids, label=truth)
    early = begun().labels(ids, label=truth).update(ids, confidence, prediction=["cat"] * 200)
    plain = begun().update(ids, confidence).labels(ids, loss)
    assert late.watches[2].tally == early.watches[2].tally == plain.watches[2].tally
    with pytest.raises(InputError, match="'a0' names a class, and its prediction did not"):
        begun().update(ids, confidence).labels(ids, label=truth)


def test_the_risk_equals_that_of_the_answers():
    confidence, loss = drawn(np.random.default_rng(4), 500)
    result = begun().update(names("a", 500), confidence).labels(names("a", 500), loss)
    answered = RULE.apply(confidence)
    row = result.frame().row(2, named=True)
    assert (row["n"], row["value"]) == (answered.sum(), pytest.approx(loss[answered].mean()))
    assert result.state.counts.abstained == (~answered).sum()
    assert result.frame().row(0, named=True)["value"] == pytest.approx(answered.mean())


def test_a_change_is_found_said_once_and_can_be_acknowledged():
    rng = np.random.default_rng(5)
    result = begun()
    for part, worse in (("a", 1.0), ("b", 2.5)):
        confidence, loss = drawn(rng, 1500, worse=worse)
        result = result.update(names(part, 1500), confidence).labels(names(part, 1500), loss)
        assert [a.watch for a in result.alarms] == (["risk"] if worse > 1 else [])
    (alarm,) = result.active_alarms
    assert alarm.line.startswith("ALARM risk: the selective risk is above the maximum of 0.1")
    confidence, loss = drawn(rng, 500, worse=2.5)
    more = result.update(names("c", 500), confidence).labels(names("c", 500), loss)
    assert more.alarms == result.alarms
    quiet = result.reset()
    assert not quiet.active_alarms
    assert quiet.watches[2].capital == pytest.approx(1)
    assert quiet.watches[0].tally == result.watches[0].tally
    again = quiet.update(names("c", 500), confidence).labels(names("c", 500), loss)
    assert [a.acknowledged for a in again.alarms] == [True, False]


def test_other_confidences_are_found_without_labels():
    rng = np.random.default_rng(6)
    same_kind = begun().update(names("a", 3000), drawn(rng, 3000)[0])
    assert not same_kind.alarms
    shifted = same_kind.update(names("b", 1500), drawn(rng, 1500, slope=0.5)[0])
    assert {a.watch for a in shifted.alarms} == {"coverage", "confidence"}
    # As many low as high ones: only the spread differs.
    wide = begun().update(names("c", 1500), np.where(rng.random(1500) < 0.5, 0.999, 0.2))
    assert "confidence" in {a.watch for a in wide.alarms}


def test_a_generalized_risk_counts_abstentions_as_nothing():
    rule = ab.thresholds.DecisionRule("given", 0.5)
    plain = ab.thresholds.learn_then_test(
        DATA.confidence["own"], DATA.loss, max_risk=0.1, delta=0.05, risk="generalized"
    )
    confidence, loss = drawn(np.random.default_rng(7), 400)
    result = ab.monitoring.start(plain).update(names("a", 400), confidence)
    result = result.labels(names("a", 400), loss)
    accepted = plain.apply(confidence)
    assert result.watches[2].tally.n == 400
    assert result.watches[2].tally.total == (loss & accepted).sum()
    assert ab.monitoring.start(rule, max_risk=0.2).plan.watched == ("risk",)


def test_what_cannot_be_watched():
    given = ab.thresholds.DecisionRule("given", 0.5)
    with pytest.raises(InputError, match="nothing to watch"):
        ab.monitoring.start(given)
    with pytest.raises(InputError, match="with a threshold; got str"):
        ab.monitoring.start("rule.json")
    for max_risk in (0.0, 1.0):
        with pytest.raises(DomainError, match="`max_risk` must lie strictly between 0 and 1"):
            ab.monitoring.start(given, max_risk=max_risk)
    with pytest.raises(DomainError, match="`delta` must lie strictly between"):
        ab.monitoring.start(given, max_risk=0.1, delta=1.0)
    odds = ab.thresholds.DecisionRule("given", 2.0, score="msr", scale="log-odds")
    with pytest.raises(InputError, match="say what the confidences of the stream are"):
        ab.monitoring.start(odds, max_risk=0.1)
    told = ab.monitoring.start(odds, max_risk=0.1, scale="probability")
    assert told.update(["a", "b"], [0.95, 0.6]).watches[0].tally.mean == 0.5
    with pytest.raises(InputError, match="one of `loss` and `label`"):
        told.labels(["a"])
    heavy = ab.Predictions(confidence={"own": [0.9]}, loss=[0], weight=[2.0])
    with pytest.raises(InputError, match="`calibration` must have no weights"):
        ab.monitoring.start(RULE, calibration=heavy)
    with pytest.raises(DomainError, match="confidence"):
        begun().update(["a"], [1.5])


def test_the_last_predictions_alone_are_remembered():
    result = begun(remember=100).update(names("a", 300), drawn(np.random.default_rng(8), 300)[0])
    again = result.update(names("a", 300)[-100:], np.full(100, 0.5))
    assert again.state.counts.replayed == 100
    assert result.labels(["a0"], [1.0]).state.early
    assert result.update(["a0"], [0.5]).predictions == 301


def test_what_is_awaited_is_remembered():
    """Of ids forgotten before their labels are given up, these labels would not count."""
    with pytest.raises(DomainError, match="`remember` must be at least `patience`"):
        begun(label_share=0.5, remember=99, patience=100)
    confidence, loss = drawn(np.random.default_rng(9), 150)
    result = begun(label_share=0.5, remember=100, patience=100).update(names("a", 150), confidence)
    wanted = result.requested_ids
    late = result.labels(wanted, [loss[int(name[1:])] for name in wanted])
    assert late.state.requests.n_waiting == 0
    assert not late.state.early
    assert late.state.requests.labeled == len(wanted)


@pytest.mark.parametrize("name", [1.0, None, float("nan"), True, np.float32(2), ""])
def test_what_can_be_written_in_two_ways_is_no_id(name):
    """1.0 would be another id than 1, and every NaN the same one."""
    with pytest.raises(DomainError, match="whole numbers"):
        begun().update(["a", name], [0.9, 0.9])


@pytest.mark.parametrize("max_risk", [0, 1e-13, 1 - 1e-13, 1, 1.0, True])
def test_a_risk_that_no_bet_can_be_against_raises_an_error(max_risk):
    """Near 1 the bets of the watch were 0 or infinite, and no alarm could ever come."""
    rule = ab.thresholds.DecisionRule("given", 0.5)
    with pytest.raises(DomainError, match="`max_risk` must lie strictly between 0 and 1"):
        ab.monitoring.start(rule, max_risk=max_risk, coverage=(0.1, 0.9))


@pytest.mark.parametrize("label", [None, float("nan"), 1.0])
def test_an_unknown_class_is_no_failure(label):
    watching = begun().update([1], [0.99], prediction=[1])
    with pytest.raises(DomainError):
        watching.labels([1], label=[label])


@pytest.mark.parametrize("given", [{"seed": -1}, {"seed": 2**64}, {"coverage": (1, 1)}])
def test_an_option_that_cannot_be_is_named_at_the_start(given):
    (name,) = given
    with pytest.raises(DomainError, match=f"`{name}` must be"):
        begun(**given)


def test_other_calibration_data_of_the_same_ties_raise_an_error():
    rule = ab.thresholds.DecisionRule("given", 0.5)
    watching = ab.monitoring.start(rule, calibration=np.ones(100))
    check_matches_state(watching, rule, np.ones(100))
    with pytest.raises(InputError, match="other calibration data"):
        check_matches_state(watching, rule, np.ones(300))


def test_lines_in_any_order_cost_no_more_with_many_remembered_ids():
    """The index of the ids was built anew for each line: 170 lines a second with a million ids."""
    lines = [
        parse_line(text, "")
        for i in range(500)
        for text in (f'{{"id": "a{i}", "confidence": 0.9}}', f'{{"id": "a{i}", "correct": true}}')
    ]
    seconds = []
    for n in (1000, 400_000):
        result = begun()
        keys = np.random.default_rng(0).integers(0, 2**63, n, dtype=np.uint64)
        ledger = Ledger(keys, np.zeros(n, np.uint8), np.zeros(n, np.uint64))
        course = RunningMonitor(result.plan, replace(result.state, ledger=ledger))
        course.take_lines(lines[:10], lambda *_: False)
        start = time.process_time()
        for i in range(10, len(lines), 90):
            course.take_lines(lines[i : i + 90], lambda *_: False)
        seconds.append(time.process_time() - start)
        assert course.n_predictions == n + 500
    assert seconds[1] < 5 * seconds[0]


def test_a_label_beside_a_prediction_that_is_sent_twice_in_a_batch_counts():
    """It was dropped if the first one came in the same batch."""
    first, second = (parse_line(t, "") for t in (
        '{"id": "a", "confidence": 0.99}', '{"id": "a", "confidence": 0.99, "correct": false}'
    ))  # fmt: skip
    at_once, one_by_one = begun().take([first, second]), begun().take([first]).take([second])
    assert at_once.watches[2].tally == one_by_one.watches[2].tally
    assert at_once.watches[2].tally.n == 1
