"""Working points against plain loops over thresholds."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.properties.cases import scored_cases

import abstain as ab
from abstain._foundation.scored import Scored


@given(s=scored_cases(most=20), coverage=st.floats(0, 1))
def test_selective_risk_is_the_least_over_thresholds_that_keep_the_coverage(
    s: Scored, coverage: float
) -> None:
    c, loss = s.confidence, s.loss
    kept = [t for t in set(c) if np.mean(c >= t) >= coverage]
    risks = {t: loss[c >= t].mean() for t in kept}
    assert ab.selective_risk(c, loss, coverage=coverage) == pytest.approx(min(risks.values()))
    point = ab.working_point(c, loss, coverage=coverage)
    assert point.selective_risk == pytest.approx(min(risks.values()))
    first = ab.selective_risk(c, loss, coverage=coverage, rule="first")
    assert first == pytest.approx(risks[max(kept)])


@given(s=scored_cases(most=20), max_risk=st.floats(0, 1))
def test_coverage_at_risk_is_the_largest(s: Scored, max_risk: float) -> None:
    c, loss = s.confidence, s.loss
    # A hair below a risk is that risk: a share such as 29/100 is no exact number.
    assume(all(not 0 < loss[c >= t].mean() - max_risk < 1e-9 for t in set(c)))
    fine = [np.mean(c >= t) for t in set(c) if np.sum(loss[c >= t]) <= max_risk * np.sum(c >= t)]
    got = ab.coverage_at_risk(c, loss, max_risk=max_risk)
    assert got == pytest.approx(max(fine, default=0.0))


@given(s=scored_cases(most=20), threshold=st.floats(-0.1, 1.1))
def test_everything_at_a_threshold(s: Scored, threshold: float) -> None:
    c, wrong = s.confidence, s.loss == 1
    accepted = c >= threshold
    point = ab.working_point(c, s.loss, threshold=threshold)
    assert point.accepted == accepted.sum()
    assert point.n == s.n_rows
    assert point.coverage == pytest.approx(accepted.mean())
    assert point.generalized_risk == pytest.approx((accepted & wrong).mean())
    assert point.failures_accepted == (accepted & wrong).sum()
    assert point.failures_rejected == (~accepted & wrong).sum()
    quality = (accepted & ~wrong).sum() + (~accepted & wrong).sum()
    assert point.classification_quality == pytest.approx(quality / s.n_rows)
    if accepted.any():
        assert point.selective_risk == pytest.approx(wrong[accepted].mean())
        assert point.threshold == c[accepted].min(), "a threshold that these data can tell"
    else:
        assert np.isnan(point.selective_risk)
        assert point.threshold == np.inf


@given(s=scored_cases(least=2, most=20), threshold=st.floats(0, 1))
def test_rejection_quality_is_the_ratio_of_odds(s: Scored, threshold: float) -> None:
    rejected, wrong = s.confidence < threshold, s.loss == 1
    got = ab.working_point(s.confidence, s.loss, threshold=threshold).rejection_quality
    bad, good = (rejected & wrong).sum(), (rejected & ~wrong).sum()
    if not wrong.any() or wrong.all() or not rejected.any():
        assert np.isnan(got)
    elif good == 0:
        assert got == np.inf
    else:
        assert got == pytest.approx((bad / good) * ((~wrong).sum() / wrong.sum()))


def test_expected_rule_takes_part_of_a_tie_group() -> None:
    c, loss = [0.9, 0.5, 0.5, 0.5, 0.5], [0, 1, 0, 0, 1]
    assert ab.generalized_risk(c, loss, coverage=0.6, rule="expected") == pytest.approx(0.2)
    assert ab.selective_risk(c, loss, coverage=0.6, rule="expected") == pytest.approx(1 / 3)
    assert ab.selective_risk(c, loss, coverage=0.0, rule="expected") == 0


def test_rounding_of_the_coverage_costs_no_vertex() -> None:
    # 0.07 * 100 is 7.000000000000001.
    c, loss = np.arange(100, 0, -1), np.ones(100)
    assert ab.working_point(c, loss, coverage=0.07).accepted == 100
    loss[7:] = 2
    assert ab.working_point(c, loss, coverage=0.07).accepted == 7


def test_of_equal_risks_the_largest_coverage_is_used() -> None:
    assert ab.working_point([0.9, 0.8, 0.7], [0, 0, 1], coverage=0.1).accepted == 2


def test_nothing_accepted_is_undefined_with_a_reason() -> None:
    with pytest.warns(ab.errors.UndefinedMetricWarning, match="no sample is accepted"):
        assert np.isnan(ab.selective_risk([0.5], [1], threshold=0.9))
    assert ab.generalized_risk([0.5], [1], threshold=0.9) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "exactly one of `threshold`, `coverage` and `max_risk`; got 0"),
        ({"coverage": 0.5, "threshold": 0.5}, "got 2"),
        ({"coverage": 1.5}, r"`coverage` must lie in \[0, 1\]; got 1.5"),
        ({"threshold": float("nan")}, "`threshold` must be finite"),
        (
            {"max_risk": 0.1},
            "no threshold has a selective risk of at most 0.1; the minimum is 0.5",
        ),
    ],
)
def test_refusals(options: dict[str, float], message: str) -> None:
    with pytest.raises(ab.errors.InputError, match=message):
        ab.working_point([0.5, 0.4], [1, 0], **options)


def test_undefined_fields_say_why() -> None:
    point = ab.working_point([0.9, 0.8], [5, 0], coverage=1.0)
    assert np.isnan(point.classification_quality)
    assert set(point.reasons) == {"classification_quality", "rejection_quality"}
    assert all("[0, 1]" in reason for reason in point.reasons.values())
    nobody = ab.working_point([0.9, 0.8], [1, 0], threshold=2)
    assert nobody.reasons["selective_risk"] == "no sample is accepted at this threshold"


def test_bad_rules_and_kinds_raise_an_error() -> None:
    with pytest.raises(ab.errors.InputError, match="`rule` must be one of"):
        ab.selective_risk([0.9], [0], threshold=0.5, rule="nonsense")
    with pytest.raises(ab.errors.InputError, match="`kind` must be one of"):
        ab.achievable_curve([0.9], [0], kind="nonsense")
    with pytest.warns(ab.errors.UndefinedMetricWarning, match="failure_auroc is undefined"):
        assert np.isnan(ab.tie_bounds([0.9, 0.8], [0, 0], metric="failure_auroc").value)


@pytest.mark.parametrize(("wrong", "n"), [(29, 100), (57, 100), (58, 100), (7, 41)])
def test_a_risk_that_is_just_attained_counts(wrong: int, n: int) -> None:
    loss = np.arange(n) < wrong
    assert ab.coverage_at_risk(np.ones(n), loss, max_risk=wrong / n) == 1
    assert ab.coverage_at_risk([6, 5, 4, 3, 2, 1], [0.3] * 6, max_risk=0.3) == 1


def test_equal_graded_risks_are_equal() -> None:
    assert ab.working_point([4, 3, 2, 1], [0.7] * 4, coverage=0.25).coverage == 1
    assert ab.risk_coverage_curve([4, 3, 2, 1], [0.7] * 4).usable.tolist() == [False] * 3 + [True]


def test_weighted_coverages_find_their_vertex() -> None:
    n = 1000
    weight, loss = np.full(n, 1 / 3), np.arange(n)
    for k in range(1, n + 1, 7):
        point = ab.working_point(-np.arange(n), loss, coverage=k / n, weight=weight)
        assert point.accepted == k


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_thresholds_are_compared_as_numpy_does(kind: type) -> None:
    c = np.array([0.9, 0.8], dtype=kind)
    assert ab.working_point(c, [0, 0], threshold=0.9).accepted == np.sum(c >= 0.9) == 1
    assert ab.cwsa(c, [0, 0], threshold=0.9, normalize="accepted") == 0


def test_only_failures_rejected_is_infinite_with_weights() -> None:
    point = ab.working_point(
        [0.9, 0.8, 0.7, 0.6], [0, 1, 1, 1], weight=[0.1, 0.1, 0.1, 0.3], threshold=0.8
    )
    assert point.rejection_quality == np.inf
