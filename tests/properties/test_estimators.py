"""Property tests of the AURC estimators: identities, inequalities and limits."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.properties.cases import rows, scored_cases

import abstain as ab
from abstain._foundation.scored import Scored
from abstain.metrics import METRICS, monte_carlo_aurc, population_aurc, rank_weights

LOSSES = st.floats(0, 3, allow_subnormal=False)
WEIGHTS = st.sampled_from([0.0, 0.25, 1.0, 2.0, 7.5])


@st.composite
def graded(draw: st.DrawFn, *, ties: bool = True, weights: bool = True) -> Scored:
    """Draw any loss, and weights of any size with some of them 0."""
    s = draw(scored_cases(most=40, ties=ties))
    loss = np.array(draw(st.lists(LOSSES, min_size=s.n_rows, max_size=s.n_rows)))
    weight = np.array(draw(st.lists(WEIGHTS, min_size=s.n_rows, max_size=s.n_rows)))
    return replace(s, loss=loss, weight=weight if weights and weight.any() else None)


def value(name: str, s: Scored) -> float:
    return METRICS[name].compute(s).value


@given(s=graded())
def test_two_sele_is_twice_augrc_and_the_risk_over_n(s: Scored) -> None:
    two_sele, risk = value("two_sele", s), s.groups.risk
    assert two_sele == pytest.approx(2 * value("sele", s), rel=1e-14)
    assert two_sele == pytest.approx(
        2 * value("augrc", s) + risk / s.total_weight, rel=1e-12, abs=1e-12
    )


@given(s=graded())
def test_plugin_is_above_log_and_above_sele(s: Scored) -> None:
    plugin = value("aurc_plugin", s)
    assert plugin >= value("aurc_log", s) - 1e-12
    if s.weight is None:
        # H_n - H_(n-r) is a sum of r terms, none below 1/n.
        assert plugin >= value("sele", s) - 1e-12


@given(s=graded())
def test_a_loss_that_is_the_same_for_all_is_its_own_aurc(s: Scored) -> None:
    s = replace(s, loss=np.full(s.n_rows, 0.7))
    assert value("aurc_plugin", s) == pytest.approx(0.7, rel=1e-12)
    for form in ("reweighted", "definition"):
        got = population_aurc(s.confidence, s.loss, form=form, weight=s.weight)
        assert got == pytest.approx(0.7, rel=1e-12)
    # Log weights have the mean ln(n + 1) - ln(n!)/n, below 1.
    assert value("aurc_log", s) < 0.7


@given(s=graded(weights=False), data=st.data())
def test_monte_carlo_is_a_metric_like_any_other(s: Scored, data: st.DataObject) -> None:
    seed, order = 3, np.array(data.draw(st.permutations(range(s.n_rows))))
    one = monte_carlo_aurc(s.confidence, s.loss, draws=3, rng=seed)
    assert one >= 0
    other = rows(s, order)
    again = monte_carlo_aurc(other.confidence, other.loss, draws=3, rng=seed)
    assert one == pytest.approx(again, rel=1e-12, abs=1e-12)


@given(s=graded(ties=False, weights=False))
def test_population_forms_without_ties(s: Scored) -> None:
    definition = population_aurc(s.confidence, s.loss, form="definition")
    assert definition == pytest.approx(value("aurc_plugin", s), rel=1e-12, abs=1e-12)
    gap = abs(population_aurc(s.confidence, s.loss) - definition)
    assert gap <= s.loss.max() / (2 * s.n_rows) + 1e-12


@given(s=graded())
def test_population_forms_are_the_limit_of_repetition(s: Scored) -> None:
    # Many copies of every sample: ties keep what they are worth, and n no longer matters.
    many = replace(s, weight=(np.ones(s.n_rows) if s.weight is None else s.weight) * 1e9)
    reweighted = population_aurc(s.confidence, s.loss, weight=s.weight)
    for name in ("aurc_plugin", "aurc_log"):
        assert value(name, many) == pytest.approx(reweighted, abs=1e-6)


@pytest.mark.parametrize("n", [4, 10, 1000])
def test_two_sele_is_no_upper_bound(n: int) -> None:
    # One failure, the most confident sample: its weight is 2 to the one and H_n to the other.
    confidence, loss = np.arange(n), np.arange(n) == n - 1
    plugin, bound = (ab.aurc(confidence, loss, estimator=e) for e in ("plugin", "2sele"))
    assert plugin == pytest.approx(np.sum(1 / np.arange(1, n + 1)) / n)
    assert bound == pytest.approx(2 / n)
    assert bound < plugin


def test_the_smallest_counterexample_is_of_four_samples() -> None:
    assert ab.aurc([4, 3, 2, 1], [1, 0, 0, 0], estimator="plugin") == pytest.approx(25 / 48)
    assert ab.aurc([4, 3, 2, 1], [1, 0, 0, 0], estimator="2sele") == pytest.approx(24 / 48)
    for n in (1, 2, 3):
        assert (rank_weights(n, "2sele") >= rank_weights(n) - 1e-15).all()


@given(s=graded(ties=False, weights=False))
def test_two_sele_is_an_upper_bound_below_the_most_confident_quarter(s: Scored) -> None:
    rank = np.argsort(np.argsort(s.confidence)) + 1
    loss = np.where(rank <= 0.75 * s.n_rows, s.loss, 0.0)
    below = replace(s, loss=loss)
    assert value("two_sele", below) >= value("aurc_plugin", below) - 1e-12


@pytest.mark.parametrize("estimator", ["plugin", "log", "trapezoid"])
def test_estimators_are_consistent(estimator: str) -> None:
    # P(wrong | u) = 1 - u: AURC 1/4. A hundred samples of each size; errors fall as 1/sqrt(n).
    rng = np.random.default_rng(5)
    errors = []
    for n in (100, 1600, 25_600):
        results = []
        for _ in range(100):
            u = rng.random(n)
            results.append(ab.aurc(u, rng.random(n) > u, estimator=estimator) - 0.25)
        errors.append(np.sqrt(np.mean(np.square(results))))
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.35)
    assert errors[1] / errors[2] == pytest.approx(4, rel=0.35)


def test_sele_is_consistent_for_augrc_and_not_for_the_aurc() -> None:
    rng = np.random.default_rng(5)
    u = rng.random(400_000)
    wrong = rng.random(u.size) > u
    # AUGRC = integral of u (1 - u) du = 1/6: twice that is 1/3, and the AURC 1/4.
    assert ab.aurc(u, wrong, estimator="sele") == pytest.approx(1 / 6, abs=0.002)
    assert ab.aurc(u, wrong, estimator="2sele") == pytest.approx(1 / 3, abs=0.003)


def test_the_bias_of_the_estimator_is_the_mean_of_the_weights_bias() -> None:
    # E[estimate] - AURC is the bias of the weight, averaged over u times the risk at u.
    nodes, parts = np.polynomial.legendre.leggauss(200)
    u, n = (nodes + 1) / 2, 16
    rng = np.random.default_rng(8)
    draws = rng.random((20_000, n))
    wrong = rng.random((20_000, n)) > draws
    ordered = np.take_along_axis(wrong, np.argsort(draws, axis=1), axis=1)
    for estimator in ("plugin", "log", "sele", "2sele"):
        values = ordered @ rank_weights(n, estimator) / n
        expected = 0.25 + (parts / 2) @ (ab.weight_bias(u, n, estimator) * (1 - u))
        assert abs(values.mean() - expected) < 4 * values.std() / np.sqrt(values.size), estimator
