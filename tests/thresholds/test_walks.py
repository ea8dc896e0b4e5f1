"""Thresholds with a guarantee against plain loops over all thresholds."""

import math
import re

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import beta, binom
from tests.thresholds.cases import agrees, cases

from abstain import thresholds


def refuted(samples, total, risk, level, *, binary):
    """Whether the p-value is at most the level; cases where rounding decides are left out."""
    p = p_value(samples, total, risk, binary=binary)
    assume(abs(p - level) > 1e-10)
    return p <= level


def p_value(samples, total, risk, *, binary):
    if binary:
        return binom.cdf(round(total), samples, risk)
    mean = min(total / samples, risk)
    h = (mean * math.log(mean / risk) if mean else 0) + (1 - mean) * math.log(
        (1 - mean) / (1 - risk)
    )
    return min(math.exp(-samples * h), math.e * binom.cdf(math.ceil(total), samples, risk))


def walk(confidence, loss, rank, risk, level):
    """Walk down over all thresholds from just above sample rank + 1; return the best mask."""
    ordered = sorted(confidence.tolist(), reverse=True)
    start = ordered[rank] if rank < len(ordered) else -math.inf
    masks = [confidence > start]
    masks += [confidence >= t for t in sorted({v for v in ordered if v <= start}, reverse=True)]
    best, binary = np.zeros(loss.size, dtype=bool), set(loss.tolist()) <= {0, 1}
    for mask in masks:
        if not mask.any():
            continue
        if not refuted(mask.sum(), loss[mask].sum(), risk, level, binary=binary):
            break
        best = mask
    return best


def least(risk, level):
    return next(m for m in range(1, 10_000) if (1 - risk) ** m <= level)


def walked(confidence, loss, starts, risk, delta):
    n = loss.size
    raised = {max(math.ceil(c * n), least(risk, delta / len(starts))) for c in starts}
    ranks = {r for r in raised if r <= n} or {least(risk, delta)}
    if least(risk, delta) > n:
        return 0
    level = delta / len(ranks)
    return max(walk(confidence, loss, r, risk, level).sum() for r in ranks)


@given(
    case=cases(graded=True, least=20, most=80), risk=st.floats(0.1, 0.5), delta=st.floats(0.05, 0.6)
)
def test_learn_then_test_is_its_walk_for_graded_losses(case, risk, delta):
    confidence, loss = case
    rule = thresholds.learn_then_test(confidence, loss, max_risk=risk, delta=delta)
    assert agrees(rule, confidence, loss)
    assert rule.accepted == walked(confidence, loss, (0.5, 0.25, 0.125), risk, delta)


@given(case=cases(least=20, most=80), risk=st.floats(0.1, 0.5), delta=st.floats(0.05, 0.6))
def test_sgr_is_its_walk(case, risk, delta):
    confidence, loss = case
    rule = thresholds.sgr(confidence, loss, max_risk=risk, delta=delta)
    count = 1
    while loss.size / 2 ** (count + 1) >= least(risk, delta / (count + 1)):
        count += 1
    assert agrees(rule, confidence, loss)
    starts = [0.5**i for i in range(1, count + 1)]
    assert rule.accepted == walked(confidence, loss, starts, risk, delta)


def test_a_walk_that_ends_where_it_began_accepts_all_above_the_next_value():
    # The start is a rank, here half of the samples: given the value of the next one, those above
    # it are independent draws from the law above it, and this is what is certified.
    confidence, wrong = np.linspace(1, 0, 80), np.arange(80) >= 40
    rule = thresholds.sgr(confidence, wrong, max_risk=0.1, delta=0.05)
    assert rule.accepted == 40
    assert rule.threshold == np.nextafter(np.float32(confidence[40]), np.float32(1))
    # Reached on the way from a quarter of the samples, it needs no more than its own value.
    passed = thresholds.learn_then_test(confidence, wrong, max_risk=0.1, delta=0.05)
    assert passed.accepted == 40
    assert passed.threshold == confidence[39]


@pytest.mark.parametrize("tied", [0.5, 0.9, 0.1 + 0.2, 1 - 2**-30])
def test_what_is_tied_below_a_start_is_omitted_in_data_of_single_precision_too(tied):
    # The next double above the ties is rounded down to them there: half of the answers were wrong.
    sure = np.linspace(2, 3, 1000)
    confidence, wrong = np.r_[sure, np.full(1000, tied)], np.arange(2000) >= 1000
    limits = [thresholds.Limit("overall", 0.05)]
    rule = thresholds.several_risks(confidence, wrong, limits, delta=0.05, starts=[0.5])
    for data in (confidence, confidence.astype(np.float32)):
        assert rule.apply(data).tolist() == [True] * 1000 + [False] * 1000
    # Where samples lie closer than single precision tells apart, the doubles decide.
    close = np.where(confidence == tied, confidence, tied + 1e-12 * confidence)
    rule = thresholds.several_risks(close, wrong, limits, delta=0.05, starts=[0.5])
    assert rule.apply(close).sum() == 1000


@given(case=cases(least=20, most=80), risk=st.floats(0.1, 0.5), delta=st.floats(0.05, 0.6))
def test_binary_search_is_algorithm_1_over_distinct_values(case, risk, delta):
    confidence, loss = case
    rule = thresholds.sgr(confidence, loss, max_risk=risk, delta=delta, search="binary")
    values = sorted(set(confidence.tolist()), reverse=True)
    steps = max(1, math.ceil(math.log2(len(values))))
    low, high, best, certified = 0, len(values) - 1, 0, None
    for _ in range(steps):
        if low > high:
            break
        middle = (low + high) // 2
        inside = confidence >= values[middle]
        wrong, size = int(loss[inside].sum()), int(inside.sum())
        bound = 1.0 if wrong == size else beta.isf(delta / steps, wrong + 1, size - wrong)
        assume(abs(bound - risk) > 1e-10)
        if bound <= risk:
            best, certified, low = size, bound, middle + 1
        else:
            high = middle - 1
    assert agrees(rule, confidence, loss)
    assert rule.accepted == best
    assert rule.bound == (None if certified is None else pytest.approx(certified, rel=1e-12))


@given(case=cases(graded=True), risk=st.floats(0.05, 0.6), delta=st.floats(0.01, 0.6))
def test_generalized_risk_passes_at_every_safer_threshold(case, risk, delta):
    confidence, loss = case
    rule = thresholds.learn_then_test(
        confidence, loss, max_risk=risk, delta=delta, risk="generalized"
    )
    binary = set(loss.tolist()) <= {0, 1}
    best = 0
    for t in sorted(set(confidence.tolist()), reverse=True):
        inside = confidence >= t
        if not refuted(loss.size, loss[inside].sum(), risk, delta, binary=binary):
            break
        best = int(inside.sum())
    assert rule.accepted == best
    assert agrees(rule, confidence, loss)


@given(case=cases(least=20, most=80), risk=st.floats(0.1, 0.5))
def test_a_grid_of_thresholds_is_walked_from_the_top(case, risk):
    confidence, loss = case
    grid = [0.8, 0.2, 0.5, 0.35]
    rule = thresholds.learn_then_test(confidence, loss, max_risk=risk, delta=0.3, thresholds=grid)
    best = None
    for t in sorted(grid, reverse=True):
        inside = confidence >= np.asarray(t, dtype=confidence.dtype)
        if not inside.any() or not refuted(
            inside.sum(), loss[inside].sum(), risk, 0.3, binary=True
        ):
            break
        best = t
    assert rule.threshold == best
    assert agrees(rule, confidence, loss)


@given(case=cases(graded=True), risk=st.floats(0.01, 0.6))
def test_conformal_risk_control_is_the_lowest_threshold(case, risk):
    confidence, loss = case
    rule = thresholds.conformal_risk_control(confidence, loss, max_risk=risk)
    fine = [
        t for t in set(confidence.tolist())
        if (loss[confidence >= t].sum() + 1) / (loss.size + 1) <= risk * (1 + 1e-12)
    ]  # fmt: skip
    assert rule.threshold == (min(fine) if fine else None)
    assert agrees(rule, confidence, loss)


@given(case=cases(), coverage=st.floats(0.05, 0.95), delta=st.floats(0.01, 0.5))
def test_coverage_guarantee_is_the_least_rank(case, coverage, delta):
    confidence, _ = case
    rule = thresholds.coverage_guarantee(confidence, coverage=coverage, delta=delta)
    tails = [binom.sf(k - 1, confidence.size, coverage) for k in range(1, confidence.size + 1)]
    assume(min(abs(tail - delta) for tail in tails) > 1e-10)
    ranks = [k for k in range(1, confidence.size + 1)
             if binom.sf(k - 1, confidence.size, coverage) <= delta]  # fmt: skip
    expected = np.sort(confidence)[::-1][ranks[0] - 1] if ranks else None
    assert rule.threshold == expected
    assert agrees(rule, confidence)
    if ranks:
        n, k = confidence.size, ranks[0]
        assert rule.bound == pytest.approx(beta.ppf(delta, k, n - k + 1), rel=1e-9)


def test_thresholds_beyond_the_precision_of_the_confidences():
    confidence = np.linspace(0, 1, 100, dtype=np.float32)
    options = {"max_risk": 0.3, "delta": 0.1}
    rule = thresholds.learn_then_test(confidence, np.zeros(100), **options, thresholds=[-1e300])
    assert rule.accepted == 100
    assert agrees(rule, confidence, np.zeros(100))


def test_a_threshold_above_all_ends_no_walk_of_the_generalized_risk():
    confidence, options = np.linspace(0, 1, 100), {"max_risk": 0.3, "delta": 0.1}
    grid = [2.0, 0.5, 0.1]
    for loss, last in ((np.zeros(100), 0.1), (confidence < 0.5, 0.1)):
        rule = thresholds.learn_then_test(
            confidence, loss, **options, risk="generalized", thresholds=grid
        )
        assert rule.threshold == (last if not loss.any() else 0.5)
    rule = thresholds.learn_then_test(
        confidence, np.zeros(100), **options, risk="generalized", thresholds=[2.0]
    )
    assert not rule.attainable


def test_the_reason_speaks_of_thresholds_that_accept_enough_to_be_certified():
    # The most confident sample alone is right, which says nothing: 59 are needed for one test.
    confidence = np.linspace(1, 0, 400)
    wrong = np.arange(400) % 5 == 4
    rule = thresholds.sgr(confidence, wrong, max_risk=0.05, delta=0.05)
    result = re.search(r"at least (\d+) samples is ([\d.]+), with (\d+) accepted", rule.reason)
    needed, least, accepted = int(result[1]), float(result[2]), int(result[3])
    assert accepted >= needed >= 59
    assert least == pytest.approx(wrong[:accepted].mean(), rel=1e-3)
