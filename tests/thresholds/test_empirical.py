"""Thresholds without a guarantee against plain loops over all thresholds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.thresholds.cases import agrees, cases

from abstain import thresholds


@given(case=cases(), coverage=st.floats(0.001, 1))
def test_for_coverage_is_the_highest_threshold(case, coverage):
    confidence, _ = case
    rule = thresholds.for_coverage(confidence, coverage=coverage)
    kept = [t for t in set(confidence.tolist()) if (confidence >= t).mean() >= coverage - 1e-12]
    assert rule.threshold == max(kept)
    assert agrees(rule, confidence)


@given(case=cases(graded=True), max_risk=st.floats(0, 0.6))
def test_for_risk_is_the_largest_coverage(case, max_risk):
    confidence, loss = case
    rule = thresholds.for_risk(confidence, loss, max_risk=max_risk)
    kept = [
        t for t in set(confidence.tolist())
        if loss[confidence >= t].mean() <= max_risk * (1 + 1e-12)
    ]  # fmt: skip
    assert rule.threshold == (min(kept) if kept else None)
    assert agrees(rule, confidence, loss)


@given(case=cases(graded=True), cost=st.floats(0, 1.2))
def test_for_cost_is_the_cheapest(case, cost):
    confidence, loss = case
    rule = thresholds.for_cost(confidence, loss, abstention_cost=cost)
    price = {t: np.where(confidence >= t, loss, cost).sum() for t in set(confidence.tolist())}
    best = min(cost * loss.size, *price.values())
    fine = [t for t, p in price.items() if p <= best + 1e-11 * (loss.sum() + cost * loss.size)]
    assert rule.threshold == (min(fine) if fine else None)
    assert agrees(rule, confidence, loss)


def test_ties_of_cost_go_to_the_larger_coverage_and_abstaining_alone_is_no_threshold():
    assert thresholds.for_cost([2, 1], [0, 1], abstention_cost=1.0).coverage == 1
    assert thresholds.for_cost([2, 1], [1, 1], abstention_cost=1.0).coverage == 1
    rule = thresholds.for_cost([2, 1], [1, 1], abstention_cost=0.9)
    assert not rule.attainable
    assert "costs less than any threshold" in rule.reason


@pytest.mark.parametrize("cost", [0.0, 0.1, 0.25, 1.0])
def test_chow_accepts_what_is_right_often_enough(cost):
    rule = thresholds.chow(abstention_cost=cost)
    right = np.linspace(0, 1, 41)
    assert (rule.apply(right) == (right >= 1 - cost)).all()
    # On exactly calibrated data the empirical choice cannot be cheaper.
    confidence = np.repeat([0.6, 0.8, 0.95], 100)
    loss = np.concatenate([np.arange(100) >= 100 * p for p in (0.6, 0.8, 0.95)]).astype(int)
    price = [
        np.where(r.apply(confidence), loss, cost).mean()
        for r in (rule, thresholds.for_cost(confidence, loss, abstention_cost=cost))
    ]
    assert price[0] == pytest.approx(price[1])


@given(case=cases(), weights=st.integers(0, 2**32 - 1))
def test_integer_weights_count_samples(case, weights):
    confidence, loss = case
    weight = np.random.default_rng(weights).integers(0, 4, loss.size)
    weight[0] += 1
    many = confidence.repeat(weight), loss.repeat(weight)
    for name, options in (
        ("coverage", {"coverage": 0.4}),
        ("risk", {"max_risk": 0.2}),
        ("cost", {"abstention_cost": 0.2}),
    ):
        first = thresholds.fit(name, confidence, loss, weight=weight, **options)
        second = thresholds.fit(name, *many, **options)
        assert (first.threshold, first.coverage) == (
            second.threshold,
            pytest.approx(second.coverage),
        )
