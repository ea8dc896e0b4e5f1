"""Labels that are asked for: with which chance, in which order they count, and what they tell."""

import numpy as np
import pytest
from tests.monitoring.streams import calibrated, drawn, names

import abstain as ab

RULE, DATA = calibrated()


def begun(**options):
    return ab.monitoring.start(RULE, calibration=DATA, label_share=0.05, **options)


def test_so_many_are_requested_and_more_where_failures_are_likely():
    confidence, _ = drawn(np.random.default_rng(1), 20_000)
    result = begun(patience=20_000).update(names("a", 20_000), confidence)
    answered = RULE.apply(confidence)
    place = np.array([int(name[1:]) for name in result.requested_ids])
    assert answered[place].all()
    assert place.size / answered.sum() == pytest.approx(0.05, rel=0.15)
    assert confidence[place].mean() < confidence[answered].mean() - 0.005
    chances = result.plan.label_probabilities(
        result.plan.predicted(confidence, result.plan.calibration_blocks(confidence, confidence))
    )
    assert chances.min() >= result.plan.min_label_probability == 0.025


def test_the_estimates_are_unbiased_and_the_risk_watch_is_their_labels():
    rng, values = np.random.default_rng(2), []
    for run in range(30):
        confidence, loss = drawn(rng, 1500)
        ids = names(f"r{run}-", 1500)
        result = begun(seed=run).update(ids, confidence)
        wanted = result.requested_ids
        result = result.labels(wanted, [loss[int(n.split("-")[1])] for n in wanted])
        assert result.state.requests.n_waiting == 0
        known = result.estimate()
        assert known.labels_only == pytest.approx(result.rows()[2]["value"])
        answered = RULE.apply(confidence)
        values.append(
            (known.value - loss[answered].mean(), known.labels_only - loss[answered].mean())
        )
    error = np.std(values, axis=0) / np.sqrt(30)
    assert (np.abs(np.mean(values, axis=0)) < 3.5 * error).all()


def test_answers_are_settled_in_their_order_whichever_label_comes_first():
    confidence, loss = drawn(np.random.default_rng(3), 1000)
    result = begun().update(names("a", 1000), confidence)
    first, *rest = result.requested_ids
    some = result.labels(rest, [loss[int(n[1:])] for n in rest])
    assert some.state.requests.n == result.state.requests.n
    whole = some.labels([first], [loss[int(first[1:])]])
    assert whole.state.requests.n == RULE.apply(confidence).sum()
    assert (
        whole.labels(["a0"], [1.0]).state.counts.unasked
        + whole.labels(["a0"], [1.0]).state.counts.repeated
    )


def test_a_label_that_never_comes_is_given_up_and_counts_as_right():
    confidence, _ = drawn(np.random.default_rng(4), 1000)
    result = begun(patience=100).update(names("a", 1000), confidence)
    assert result.state.requests.missing > 10
    assert result.watches[2].tally.total == 0
    assert all(int(name[1:]) >= 1000 - 101 for name in result.requested_ids)


@pytest.mark.slow
def test_labels_that_never_come_at_random_bend_no_estimate():
    """Left out alone, they would halve the estimate by labels when every second one comes."""
    rng, values, held = np.random.default_rng(7), [], 0
    for run in range(25):
        confidence, loss = drawn(rng, 1000)
        ids = names(f"r{run}-", 1000)
        result = ab.monitoring.start(
            RULE, calibration=DATA, label_share=0.3, patience=1000, seed=run
        ).update(ids, confidence)
        wanted = [name for name in result.requested_ids if rng.random() < 0.5]
        result = result.labels(wanted, [loss[int(n.split("-")[1])] for n in wanted])
        # All that is left is given up.
        result = result.update(names(f"later{run}-", 1001), np.zeros(1001))
        known, truth = result.estimate(), loss[RULE.apply(confidence)].mean()
        assert known.n_samples == RULE.apply(confidence).sum()
        values.append((known.value - truth, known.labels_only - truth))
        held += known.interval.low <= truth <= known.interval.high
    error = np.std(values, axis=0) / np.sqrt(25)
    assert (np.abs(np.mean(values, axis=0)) < 3.5 * error).all()
    assert np.abs(np.mean(values, axis=0)).max() < 0.015
    assert held >= 20


def test_a_doubled_risk_is_found_by_the_labels_that_were_requested():
    confidence, loss = drawn(np.random.default_rng(5), 20_000, worse=2.5)
    result = begun().update(names("a", 20_000), confidence)
    wanted = result.requested_ids
    result = result.labels(wanted, [loss[int(n[1:])] for n in wanted])
    assert "risk" in {a.watch for a in result.alarms}


def test_without_calibration_labels_are_requested_evenly():
    even = ab.monitoring.start(RULE, label_share=0.2)
    confidence, _ = drawn(np.random.default_rng(6), 500)
    result = even.update(names("a", 500), confidence)
    assert {item.probability for item in result.state.requests.iter_items()} == {0.2}
    assert even.plan.min_label_probability == 0.2
