"""Re-checking a rule: the numbers, their intervals, the verdicts."""

import numpy as np
import pytest

from abstain import thresholds
from abstain.errors import DomainError, InputError, ShapeError
from abstain.inference import clopper_pearson
from abstain.thresholds import DecisionRule, check, check_many

RISK = DecisionRule("risk", 0.5, target=0.1)
DATA = np.repeat([0.9, 0.5, 0.1], 100), np.repeat([0, 1, 1], [190, 10, 100])


def test_shares_have_exact_intervals():
    result = check(RISK, *DATA, name="x", level=0.9)
    assert (result.n, result.accepted, result.name) == (300, 200, "x")
    assert (result.coverage, result.selective_risk) == (200 / 300, 0.05)
    assert result.generalized_risk == pytest.approx(10 / 300)
    assert result.coverage_interval == clopper_pearson(200, 300, level=0.9)
    assert result.selective_risk_interval == clopper_pearson(10, 200, level=0.9)
    assert result.generalized_risk_interval == clopper_pearson(10, 300, level=0.9)
    assert result.excess == pytest.approx(-0.05)
    assert result.excess_interval.high == pytest.approx(result.selective_risk_interval.high - 0.1)
    assert result.verdict == "holds"


@pytest.mark.parametrize(
    ("target", "verdict"), [(0.2, "holds"), (0.06, "cannot tell"), (0.01, "broken")]
)
def test_verdicts_of_a_risk(target, verdict):
    assert check(DecisionRule("risk", 0.5, target=target), *DATA).verdict == verdict


@pytest.mark.parametrize(
    ("target", "verdict"), [(0.5, "holds"), (0.65, "cannot tell"), (0.9, "broken")]
)
def test_verdicts_of_a_coverage(target, verdict):
    result = check(DecisionRule("coverage", 0.5, target=target), *DATA)
    assert result.verdict == verdict
    assert result.excess == pytest.approx(target - 2 / 3)
    assert result.excess_interval.low <= result.excess <= result.excess_interval.high


@pytest.mark.parametrize(
    ("target", "verdict"), [(0.3, "holds"), (0.05, "cannot tell"), (0.01, "broken")]
)
def test_verdicts_of_a_cost(target, verdict):
    result = check(DecisionRule("chow", 0.5, target=target), *DATA)
    inside = RISK.apply(DATA[0])
    assert result.excess == pytest.approx(np.where(inside, DATA[1], target).mean() - target)
    assert result.verdict == verdict


def test_generalized_risk_is_what_conformal_risk_control_guaranteed():
    confidence = np.linspace(1, 0, 400)
    rule = thresholds.conformal_risk_control(confidence, np.arange(400) % 5 == 0, max_risk=0.1)
    result = check(rule, *DATA)
    assert result.excess == pytest.approx(result.generalized_risk - 0.1)


def test_nothing_accepted():
    result = check(DecisionRule("risk", 2.0, target=0.1), *DATA)
    assert (result.accepted, result.coverage, result.generalized_risk) == (0, 0.0, 0.0)
    assert np.isnan(result.selective_risk)
    assert "nothing is accepted" in result.selective_risk_interval.note
    assert result.verdict == "nothing accepted"
    unattainable = thresholds.sgr([0.5], [1], max_risk=0.1, delta=0.1)
    assert check(unattainable, *DATA).verdict == "unattainable"
    assert check(DecisionRule("given", 0.5), *DATA).verdict == "no target"
    assert check(DecisionRule("chow", 2.0, target=0.1), *DATA).verdict == "nothing accepted"
    graded = check(DecisionRule("risk", 2.0, target=0.1), DATA[0], DATA[1] * 0.5)
    assert graded.generalized_risk == 0.0


def test_weights_of_one_change_no_number_and_weights_of_zero_drop_rows():
    plain, ones = check(RISK, *DATA), check(RISK, *DATA, weight=np.full(300, 2.0))
    for name in ("n", "accepted", "coverage", "selective_risk", "generalized_risk", "verdict"):
        assert getattr(plain, name) == pytest.approx(getattr(ones, name))
    assert ones.coverage_interval.low == pytest.approx(plain.coverage_interval.low, abs=2e-4)
    more = [np.append(x, [0.95, 0.95]) for x in DATA]
    more[1][-2:] = 1
    zero = check(RISK, *more, weight=np.append(np.ones(300), [0, 0]))
    assert zero.row() == check(RISK, *DATA, weight=np.ones(300)).row()


@pytest.mark.parametrize("graded", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_intervals_cover(graded, weighted):
    rng, sets, n = np.random.default_rng(11), 400, 300
    covered = np.zeros(3)
    for _ in range(sets):
        confidence, weight = rng.random(n), rng.random(n) if weighted else None
        loss = (rng.random(n) < 0.4 * (1 - confidence)).astype(float)
        if graded:
            loss *= rng.random(n) * 2
        result = check(RISK, confidence, loss, weight=weight)
        truth = (0.5, 0.1, 0.05)
        numbers = (
            result.coverage_interval, result.selective_risk_interval, result.generalized_risk_interval
        )  # fmt: skip
        covered += [i.low <= t <= i.high for i, t in zip(numbers, truth, strict=True)]
    assert (covered / sets >= 0.95 - 4 * np.sqrt(0.95 * 0.05 / sets)).all()


def test_rows_are_plain():
    row = check(RISK, *DATA, name="ok").row()
    assert all(value is None or type(value) in {str, int, float} for value in row.values())
    assert row["verdict"] == "holds"
    assert {"excess", "excess_low", "excess_high"} <= set(row)


def test_check_many_keeps_order_and_names():
    shifts = {f"noise {i}": (DATA[0], DATA[1] * (i > 0), np.ones(300)) for i in range(3)}
    result = check_many(RISK, shifts)
    assert [c.name for c in result] == list(shifts)
    assert result[0].excess == pytest.approx(-0.1)
    with pytest.raises(InputError, match="noise"):
        check_many(RISK, {"noise": (DATA[0],)})


def test_bad_input():
    with pytest.raises(InputError, match="`rule`"):
        check(0.5, *DATA)
    with pytest.raises(ShapeError, match="`loss`"):
        check(RISK, DATA[0], DATA[1][:5])
    with pytest.raises(DomainError, match="`confidence`"):
        check(RISK, [float("inf")], [1])
    with pytest.raises(DomainError, match="`level`"):
        check(RISK, *DATA, level=95)
    with pytest.raises(DomainError, match="`weight`"):
        check(RISK, *DATA, weight=np.zeros(300))
