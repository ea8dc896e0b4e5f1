"""Identities between metrics, exact to rounding."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import xlog1py
from tests.properties.cases import scored_cases

import abstain as ab
from abstain import simulate
from abstain._foundation.scored import Scored

LOSSES = st.floats(0, 3, allow_subnormal=False)


@given(s=scored_cases(most=40))
def test_augrc_is_its_auroc_identity(s: Scored) -> None:
    error = s.loss.mean()
    auroc = 0.5 if error in {0, 1} else ab.failure_auroc(s.confidence, s.loss)
    expected = (1 - auroc) * error * (1 - error) + error**2 / 2
    assert ab.augrc(s.confidence, s.loss) == pytest.approx(expected, abs=1e-12)


@given(s=scored_cases(most=40))
def test_sele_is_augrc_plus_half_the_risk_over_n(s: Scored) -> None:
    sele = ab.aurc(s.confidence, s.loss, estimator="sele")
    assert sele == pytest.approx(
        ab.augrc(s.confidence, s.loss) + s.loss.mean() / (2 * s.n_rows), abs=1e-12
    )


@given(s=scored_cases(most=40, ties=False), data=st.data())
def test_trapezoid_is_plugin_plus_a_boundary_term(s: Scored, data: st.DataObject) -> None:
    loss = np.array(data.draw(st.lists(LOSSES, min_size=s.n_rows, max_size=s.n_rows)))
    boundary = (loss[s.confidence.argmax()] - loss.mean()) / (2 * s.n_rows)
    plugin = ab.aurc(s.confidence, loss, estimator="plugin")
    assert ab.aurc(s.confidence, loss) == pytest.approx(plugin + boundary, abs=1e-12)


@given(s=scored_cases(most=40))
def test_the_terms_of_augrc_add_up(s: Scored) -> None:
    ranking, classifier = ab.augrc_terms(s.confidence, s.loss)
    assert ranking + classifier == pytest.approx(ab.augrc(s.confidence, s.loss), abs=1e-12)
    assert classifier == pytest.approx(s.loss.mean() ** 2 / 2, abs=1e-12)


@given(s=scored_cases(most=40), data=st.data())
def test_excess_aurc_is_never_negative_and_zero_for_the_oracle(
    s: Scored, data: st.DataObject
) -> None:
    loss = np.array(data.draw(st.lists(LOSSES, min_size=s.n_rows, max_size=s.n_rows)))
    for estimator in ("trapezoid", "plugin", "log", "sele", "2sele"):
        assert ab.e_aurc(s.confidence, loss, estimator=estimator) >= 0
        untied = np.argsort(np.argsort(-loss, kind="stable"))
        assert ab.e_aurc(untied, loss, estimator=estimator) == pytest.approx(0, abs=1e-12)
    assert ab.e_aurc(-loss, loss) == pytest.approx(0, abs=1e-12)


@given(s=scored_cases(most=40))
def test_the_analytic_optimum_is_the_formula(s: Scored) -> None:
    risk = s.loss.mean()
    formula = risk + xlog1py(1 - risk, -risk) if risk < 1 else 1.0
    got = ab.aurc(s.confidence, s.loss) - ab.e_aurc(s.confidence, s.loss, optimum="analytic")
    assert got == pytest.approx(formula, abs=1e-12)


@given(s=scored_cases(least=2, most=40), cut=st.floats(0.01, 0.99), data=st.data())
def test_partial_areas_add_up_inside_a_segment(s: Scored, cut: float, data: st.DataObject) -> None:
    loss = np.array(data.draw(st.lists(LOSSES, min_size=s.n_rows, max_size=s.n_rows)))
    c = s.confidence
    augrc = ab.partial_augrc(c, loss, high=cut) + ab.partial_augrc(c, loss, low=cut)
    assert augrc == pytest.approx(ab.augrc(c, loss), abs=1e-12)
    aurc = ab.partial_aurc(c, loss, high=cut) + ab.partial_aurc(c, loss, low=cut)
    assert aurc == pytest.approx(ab.aurc(c, loss), abs=1e-12)
    parts = [
        ab.partial_aurc(c, loss, low=a, high=b, interpolation="hyperbolic")
        for a, b in ((0, cut), (cut, 1), (0, 1))
    ]
    assert parts[0] + parts[1] == pytest.approx(parts[2], abs=1e-11)


@given(s=scored_cases(most=40))
def test_contributions_add_up(s: Scored) -> None:
    for metric in ("augrc", "aurc", "aurc_plugin", "aurc_log", "sele", "two_sele"):
        parts = ab.sample_contributions(s.confidence, s.loss, metric=metric)
        whole = ab.metrics.METRICS[metric].compute(s).value
        assert parts.min() >= -1e-15
        assert parts.sum() == pytest.approx(whole, abs=1e-12)
        grouped = ab.group_contributions(s.confidence, s.loss, s.class_view.labels, metric=metric)
        assert grouped.contribution.sum() == pytest.approx(whole, abs=1e-12)


@given(s=scored_cases(most=40))
def test_prr_is_twice_auroc_minus_one(s: Scored) -> None:
    if 0 < s.loss.mean() < 1:
        expected = 2 * ab.failure_auroc(s.confidence, s.loss) - 1
        assert ab.prediction_rejection_ratio(s.confidence, s.loss) == pytest.approx(expected)


@given(s=scored_cases(most=40))
def test_the_achievable_area_is_below_the_exact_one(s: Scored) -> None:
    exact = ab.partial_aurc(s.confidence, s.loss, interpolation="hyperbolic")
    assert ab.achievable_aurc(s.confidence, s.loss) <= exact + 1e-12


def test_a_random_score_gives_half_the_risk_and_normalized_one() -> None:
    rng = np.random.default_rng(0)
    loss = rng.random(200_000) < 0.1
    score = rng.random(loss.size)
    assert ab.augrc(score, loss) == pytest.approx(loss.mean() / 2, rel=0.02)
    assert ab.normalized_aurc(score, loss) == pytest.approx(1, rel=0.02)
    assert ab.normalized_aurc(np.ones(loss.size), loss, estimator="log") == pytest.approx(1)


@pytest.mark.parametrize("estimator", ["trapezoid", "plugin", "log"])
def test_estimators_converge_to_the_population_value(estimator: str) -> None:
    # P(wrong | u) = 1 - u, u uniform: AURC = integral of -ln(1 - u) (1 - u) du = 1/4.
    sample = simulate.make("uniform-scores").sample(400_000, rng=1)
    assert ab.aurc(*sample, estimator=estimator) == pytest.approx(0.25, abs=0.003)


def test_augrc_converges_to_the_population_value() -> None:
    # AUGRC = integral of u (1 - u) du = 1/6.
    sample = simulate.make("uniform-scores").sample(400_000, rng=1)
    assert ab.augrc(*sample) == pytest.approx(1 / 6, abs=0.002)
