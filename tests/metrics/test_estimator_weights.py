"""The weights of the estimators by rank, those of the population, and what they make of losses."""

import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import polygamma

import abstain as ab
from abstain.errors import DomainError, InputError, ShapeError
from abstain.metrics import monte_carlo_aurc, population_aurc, population_weight, rank_weights
from abstain.metrics.estimator_weights import monte_carlo_weights

EXACT = {
    "plugin": lambda r, n: sum(Fraction(1, k) for k in range(n - r + 1, n + 1)),
    "sele": Fraction,
    "2sele": lambda r, n: Fraction(2 * r, n),
    "augrc": lambda r, n: Fraction(2 * r - 1, 2 * n),
}


def tied(n, seed=0, *, levels=20):
    rng = np.random.default_rng(seed)
    confidence = np.round(rng.random(n) * levels) / levels
    return confidence, np.round(rng.random(n) * (1.2 - confidence), 2)


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("n", [1, 2, 7, 31, 32, 33, 200])
def test_weights_are_the_formulas(name, n):
    expected = [float(EXACT[name](r, n)) for r in range(1, n + 1)]
    np.testing.assert_allclose(rank_weights(n, name), expected, rtol=1e-13, atol=5e-14)


def test_log_weights_are_the_formula():
    r = np.arange(1, 301)
    np.testing.assert_allclose(rank_weights(300, "log"), -np.log(1 - r / 301), rtol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3, 10, 1000, 65_537, 10**6])
def test_harmonic_weights_have_mean_one(n):
    assert abs(rank_weights(n).mean() - 1) < 2e-15


@pytest.mark.parametrize("n", [1, 2, 31, 32, 33, 1000, 10**6])
def test_log_weights_are_below_harmonic_ones(n):
    gap = rank_weights(n) - rank_weights(n, "log")
    assert gap.min() > 0
    # At the top the gap stays: H_n - ln(n + 1) goes to Euler's constant.
    assert gap[-1] == gap.max() <= np.euler_gamma


def test_weights_can_be_written_to():
    for name in ("plugin", "monte-carlo"):
        rank_weights(4, name, draws=2, rng=0)[0] = 1.0


def test_the_weights_make_the_metrics():
    confidence, loss = np.random.default_rng(1).random((2, 500))
    ordered = loss[np.argsort(confidence)]
    for name in ("plugin", "log", "sele", "2sele"):
        by_hand = rank_weights(500, name) @ ordered / 500
        assert ab.aurc(confidence, loss, estimator=name) == pytest.approx(by_hand, rel=1e-13)
    assert ab.augrc(confidence, loss) == pytest.approx(rank_weights(500, "augrc") @ ordered / 500)


@pytest.mark.parametrize("n", [8, 32, 128])
def test_monte_carlo_weights_converge_to_harmonic_ones(n):
    r = np.arange(1, n + 1)
    one = np.sqrt(polygamma(1, n - r + 1) - polygamma(1, n + 1))
    got = rank_weights(n, "monte-carlo", draws=4000, rng=5)
    assert np.abs((got - rank_weights(n)) / (one / np.sqrt(4000))).max() < 4
    # A hundred times the draws make a tenth of the error; its square is the variance over draws.
    square = {
        draws: np.mean([(rank_weights(n, "monte-carlo", draws=draws, rng=s) - rank_weights(n)) ** 2
                        for s in range(400)], axis=0)
        for draws in (3, 300)
    }  # fmt: skip
    assert np.sqrt(square[3].mean() / square[300].mean()) == pytest.approx(10, rel=0.15)
    assert np.mean(square[3] * 3 / one**2) == pytest.approx(1, rel=0.25)


def test_drawn_weights_do_not_depend_on_the_blocks_and_need_little_memory(monkeypatch):
    whole = rank_weights(50, "monte-carlo", draws=101, rng=3)
    # The function of the same name hides the module.
    monkeypatch.setitem(monte_carlo_weights.__globals__, "_AT_ONCE", 120)
    np.testing.assert_allclose(rank_weights(50, "monte-carlo", draws=101, rng=3), whole, rtol=1e-13)
    monkeypatch.undo()
    tracemalloc.start()
    rank_weights(2000, "monte-carlo", draws=2000, rng=3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8e6


def test_monte_carlo_aurc_uses_the_weights_and_averages_them_over_ties():
    confidence, loss = np.random.default_rng(1).random((2, 60))
    by_hand = rank_weights(60, "monte-carlo", draws=7, rng=4) @ loss[np.argsort(confidence)] / 60
    assert monte_carlo_aurc(confidence, loss, draws=7, rng=4) == pytest.approx(by_hand)
    c, x = tied(60)
    weights = rank_weights(60, "monte-carlo", draws=7, rng=4)
    order = np.argsort(c, kind="stable")
    place = c[order]
    shared = np.array([weights[place == v].mean() for v in place])
    assert monte_carlo_aurc(c, x, draws=7, rng=4) == pytest.approx(shared @ x[order] / 60)
    again = np.random.default_rng(0).permutation(60)
    assert monte_carlo_aurc(c[again], x[again], draws=7, rng=4) == pytest.approx(
        monte_carlo_aurc(c, x, draws=7, rng=4)
    )


def test_weights_of_monte_carlo_aurc_are_repetitions():
    c, x = tied(40)
    times = np.random.default_rng(2).integers(0, 4, 40)
    one = monte_carlo_aurc(c, x, draws=5, rng=1, weight=times)
    rows = np.repeat(np.arange(40), times)
    assert one == pytest.approx(monte_carlo_aurc(c[rows], x[rows], draws=5, rng=1))
    with pytest.raises(DomainError, match="`weight` must be integers"):
        monte_carlo_aurc(c, x, weight=times + 0.5)


def test_monte_carlo_aurc_has_the_plugin_as_its_mean():
    c, x = tied(50)
    values = np.array([monte_carlo_aurc(c, x, draws=1, rng=s) for s in range(2000)])
    error = values.std(ddof=1) / np.sqrt(values.size)
    assert abs(values.mean() - ab.aurc(c, x, estimator="plugin")) < 4 * error
    assert monte_carlo_aurc(c, x, rng=7) == monte_carlo_aurc(c, x, rng=7)


def test_monte_carlo_has_a_function_of_its_own():
    with pytest.raises(InputError, match=r"monte_carlo_aurc\(confidence, loss, draws=1000"):
        ab.aurc([0.1, 0.2], [0, 1], estimator="monte-carlo")
    with pytest.raises(InputError, match="'sele', '2sele'"):
        ab.aurc([0.1, 0.2], [0, 1], estimator="median")


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        (lambda: rank_weights(0), "`n` must be an integer of at least 1"),
        (lambda: rank_weights(2.0), "`n` must be an integer of at least 1"),
        (lambda: rank_weights(2, "mean"), "`estimator` must be one of 'plugin', 'log'"),
        (lambda: rank_weights(2, "monte-carlo", draws=0), "`draws` must be an integer"),
        (lambda: rank_weights(2, "monte-carlo", rng=-1), "`rng` must be a seed"),
        (lambda: monte_carlo_aurc([1, 2], [0, 1], draws=0.5), "`draws` must be an integer"),
        (lambda: population_weight([0.1, 1.0]), "`rank` must be below 1"),
        (lambda: population_weight(1.5), r"`rank` must lie in \[0, 1\]"),
        (lambda: population_weight(["a"]), "`rank` must contain numbers"),
        (lambda: population_weight([np.nan]), "`rank` must be finite"),
        (lambda: population_weight(0.5, "area"), "`area` must be one of"),
        (lambda: population_aurc([1], [1], form="sum"), "`form` must be one of"),
    ],
)
def test_bad_arguments_are_named(call, rule):
    with pytest.raises(InputError, match=rule):
        call()


def test_shapes_are_checked():
    with pytest.raises(ShapeError):
        population_aurc([1, 2], [1])


def test_population_weights():
    u = np.array([[0.0, 1e-12], [0.5, 1 - 2**-53]])
    np.testing.assert_allclose(
        population_weight(u), [[0, 1e-12], [np.log(2), 53 * np.log(2)]], rtol=1e-12
    )
    np.testing.assert_array_equal(population_weight(u, "augrc"), u)
    assert isinstance(population_weight(0.5), float)
    assert population_weight(0) == 0


def test_the_definition_is_the_mean_selective_risk_at_each_own_threshold():
    c, x = tied(80)
    own = [x[c >= at].mean() for at in c]
    assert population_aurc(c, x, form="definition") == pytest.approx(np.mean(own), rel=1e-13)
    w = np.random.default_rng(4).random(80)
    own = [np.average(x[c >= at], weights=w[c >= at]) for at in c]
    expected = np.average(own, weights=w)
    got = population_aurc(c, x, form="definition", weight=w)
    assert got == pytest.approx(expected, rel=1e-13)


def test_the_reweighted_form_averages_the_weight_over_each_tie_group():
    c, x = tied(80)
    total = 0.0
    for at in np.unique(c):
        v1, v2 = (c > at).mean(), (c >= at).mean()
        # The mean of -ln v over (v1, v2), with 0 ln 0 = 0.
        low = v1 * np.log(v1) if v1 else 0.0
        total += x[c == at].sum() / 80 * (1 - (v2 * np.log(v2) - low) / (v2 - v1))
    assert population_aurc(c, x) == pytest.approx(total, rel=1e-13)
    assert population_aurc(c, x) == pytest.approx(
        ab.partial_aurc(c, x, interpolation="hyperbolic"), rel=1e-13
    )


def test_forms_without_ties():
    for n in (1, 2, 10, 1000):
        confidence, loss = np.random.default_rng(n).random((2, n))
        definition = population_aurc(confidence, loss, form="definition")
        assert definition == pytest.approx(ab.aurc(confidence, loss, estimator="plugin"), rel=1e-12)
        assert abs(population_aurc(confidence, loss) - definition) <= loss.max() / (2 * n)


def test_forms_agree_where_all_is_tied_and_part_where_some_is():
    assert population_aurc([1, 1, 1], [0, 1, 1]) == pytest.approx(2 / 3)
    assert population_aurc([1, 1, 1], [0, 1, 1], form="definition") == pytest.approx(2 / 3)
    # Half of the population is tied at the top and right, the other half wrong.
    assert population_aurc([1, 0], [0, 1], weight=[5, 5]) == pytest.approx((1 - np.log(2)) / 2)
    assert population_aurc([1, 0], [0, 1], weight=[5, 5], form="definition") == 0.25


def test_the_size_of_the_weights_does_not_matter_to_a_population():
    c, x = tied(30)
    w = np.random.default_rng(4).random(30)
    for form in ("reweighted", "definition"):
        one, many = (population_aurc(c, x, form=form, weight=w * k) for k in (1, 1e4))
        assert one == pytest.approx(many, rel=1e-12)


def test_large_samples_reach_the_truth():
    # P(wrong | u) = 1 - u, u uniform: AURC = integral of -ln(1 - u) (1 - u) du = 1/4.
    rng = np.random.default_rng(1)
    n = 400_000
    u = rng.random(n)
    wrong = rng.random(n) > u
    influence = ab.metrics.metric_interval(u, wrong, metric="aurc_plugin")
    for form in ("reweighted", "definition"):
        assert abs(population_aurc(u, wrong, form=form) - 0.25) < 4 * influence.standard_error
    # Confidences that are rounded down to four levels: atoms of 1/4, risk 7/8, 5/8, 3/8, 1/8.
    coarse = np.floor(4 * u)
    risk, v = np.array([1, 3, 5, 7]) / 8, np.arange(5) / 4
    mean_weight = 1 - np.diff(np.concatenate(([0.0], v[1:] * np.log(v[1:])))) * 4
    averaged, own = mean_weight @ risk / 4, np.mean(np.cumsum(risk) / np.arange(1, 5))
    assert population_aurc(coarse, wrong) == pytest.approx(averaged, abs=0.003)
    assert ab.aurc(coarse, wrong, estimator="plugin") == pytest.approx(averaged, abs=0.003)
    assert population_aurc(coarse, wrong, form="definition") == pytest.approx(own, abs=0.003)
    assert abs(averaged - own) > 0.03
