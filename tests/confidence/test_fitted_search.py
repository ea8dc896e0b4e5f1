"""Scores whose parameters are searched, and scores made of others."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import rankdata
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.confidence.fitted_cases import data

import abstain as ab
from abstain.confidence import (
    FITTED,
    SCORES,
    fit,
    from_arrays,
    max_softmax_response,
    normalized_max_logit,
    score,
)
from abstain.errors import DomainError, InputError, MissingInputError
from abstain.predictions import Predictions

NEW = data(60, 9)


def noisy(n, seed, *, classes=4, scale=1.0):
    """Logits with failures, overconfident by `scale`."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, n)
    size = rng.lognormal(sigma=0.7, size=(n, 1))
    logits = (1.5 * np.eye(classes)[truth] + rng.normal(size=(n, classes))) * size
    return Predictions(logits=scale * logits, labels=truth)


HELD = noisy(400, 0)
LOSS = (~HELD.correct).astype(float)


# --------------------------------------------------------------------------------- temperature
def test_the_temperature_is_the_best_of_the_grid():
    grid = [0.25, 0.5, 1.0, 2.0, 4.0]
    tried = {t: ab.augrc(score(f"pe@T={t!r}", HELD).values, LOSS) for t in grid}
    state = fit("temperature", HELD, criterion=ab.augrc, score="pe", temperatures=grid)
    assert tried[state.temperature] == min(tried.values()) < tried[1.0]
    assert state.name == f"pe@T={state.temperature:g}"
    named = score(state.name, NEW)
    assert np.array_equal(score(state, NEW).values, named.values)


def test_of_equally_good_temperatures_the_nearest_to_1_stays():
    """With two classes no temperature changes the order of the softmax response."""
    two = noisy(200, 1, classes=2)
    state = fit("temperature", two, criterion=ab.augrc)
    assert (state.temperature, state.name) == (1.0, "msr@T=1")
    assert fit("temperature", two, criterion=ab.aurc, temperatures=[9, 2, 0.4]).temperature == 2.0


def test_the_default_temperatures():
    from abstain.confidence.tuned import TEMPERATURES

    assert len(TEMPERATURES) == 31
    assert TEMPERATURES[::10] == (0.01, 0.1, 1.0, 10.0)
    np.testing.assert_allclose(np.diff(np.log(TEMPERATURES)), np.log(10) / 10, rtol=0.03)


def test_a_given_temperature_is_taken():
    state = fit("temperature", HELD, temperature=3)
    assert (state.base, state.temperature) == ("msr", 3.0)
    np.testing.assert_array_equal(
        score(state, NEW).probability, score("msr", NEW, temperature=3).probability
    )
    with pytest.raises(InputError, match="drop `criterion`"):
        fit("temperature", HELD, temperature=3, criterion=ab.augrc)


def test_searches_refuse_what_they_cannot_judge():
    with pytest.raises(InputError, match="'pnorm' is fitted by a search: pass `criterion`"):
        fit("pnorm", HELD)
    with pytest.raises(InputError, match="must be a function"):
        fit("pnorm", HELD, criterion="augrc")
    with pytest.raises(InputError, match="must return a number; got 'x'"):
        fit("pnorm", HELD, criterion=lambda c, loss: "x")
    with pytest.raises(DomainError, match=r"undefined \(NaN\) for every candidate"):
        fit("temperature", HELD, criterion=lambda c, loss: float("nan"))
    with pytest.raises(InputError, match="'mls' has no temperature"):
        fit("temperature", HELD, criterion=ab.augrc, score="mls")
    with pytest.raises(InputError, match="no score named 'mrs'"):
        fit("temperature", HELD, criterion=ab.augrc, score="mrs")
    for wrong in ([0.0], [-1], "12", [], 3):
        with pytest.raises(InputError, match="`temperatures` must"):
            fit("temperature", HELD, criterion=ab.augrc, temperatures=wrong)
    only = Predictions(probabilities=[[0.5, 0.5]], labels=[0])
    with pytest.raises(MissingInputError, match="needs logits"):
        fit("temperature", only, criterion=ab.augrc, score="energy")


# --------------------------------------------------------------------------------- p-norm
def test_the_exponent_is_the_best_of_the_grid():
    z = np.asarray(HELD.logits)
    centered = z - z.mean(axis=1, keepdims=True)
    tried = {0: ab.augrc(centered.max(axis=1), LOSS)}
    tried |= {p: ab.augrc(normalized_max_logit(z, p=p), LOSS) for p in range(1, 11)}
    state = fit("pnorm", HELD, criterion=ab.augrc)
    best = min(tried, key=tried.get)
    plain = ab.augrc(score("msr", HELD).values, LOSS)
    assert tried[best] < plain, "the case must be one where the norm helps"
    assert (state.p, state.fallback, state.name) == (best, False, f"pnorm@p={best}")
    np.testing.assert_allclose(
        score(state, NEW).values if best == 0 else normalized_max_logit(NEW.logits, p=best),
        score(_of_classes(state, 3), NEW).values,
        rtol=1e-12,
    )


def _of_classes(state, classes):
    from dataclasses import replace

    return replace(state, classes=classes)


def test_the_fallback_is_the_softmax_response_and_says_so():
    """Logits whose size alone tells failures: taking the size out loses everything."""
    rng = np.random.default_rng(3)
    right = rng.random(400) < 0.8
    z = np.where(right, 8.0, 0.5)[:, None] * np.array([1.0, 0.0, 0.0])
    p = Predictions(logits=z, labels=np.where(right, 0, 1))
    state = fit("pnorm", p, criterion=ab.augrc, exponents=[2, 3])
    assert state.fallback
    assert state.name == "pnorm@msr"
    np.testing.assert_array_equal(score(state, NEW).values, max_softmax_response(NEW.logits))
    np.testing.assert_array_equal(score(state, NEW).probability, expit(score("msr", NEW).values))
    # On equal terms the baseline stays: nothing beat it.
    sure = Predictions(logits=[[3.0, 0.0], [0.0, 4.0]], labels=[0, 1])
    assert fit("pnorm", sure, criterion=ab.augrc).fallback


def test_the_fallback_never_is_worse_on_the_fitting_data():
    for seed in range(5):
        p = noisy(150, seed + 20)
        loss = (~p.correct).astype(float)
        for base in ("mls", "msr"):
            state = fit("pnorm", p, criterion=ab.aurc, base=base, exponents=[0, 1, 4])
            value = ab.aurc(score(state, p).values, loss)
            assert value <= ab.aurc(score("msr", p).values, loss)


def test_the_normalized_softmax_is_its_definition():
    state = fit("pnorm", HELD, criterion=ab.augrc, base="msr", exponents=[3], temperatures=[0.5])
    z = np.asarray(HELD.logits) - HELD.logits.mean(axis=1, keepdims=True)
    norm = (np.abs(z) ** 3).sum(axis=1) ** (1 / 3)
    assert state.scale == pytest.approx(norm.mean(), rel=1e-12)
    assert state.name == "pnorm@base=msr,p=3,T=0.5"
    expected = max_softmax_response(z / norm[:, None] * norm.mean() / 0.5)
    np.testing.assert_allclose(score(state, HELD).values, expected, rtol=1e-10)


def test_the_norm_does_not_know_the_size_of_the_logits():
    state = fit("pnorm", HELD, criterion=ab.augrc, exponents=[2, 4])
    assert not state.fallback
    large = Predictions(logits=1e3 * np.asarray(HELD.logits), labels=HELD.labels)
    np.testing.assert_allclose(score(state, large).values, score(state, HELD).values, rtol=1e-9)
    equal = Predictions(logits=np.full((1, 4), 0.1), labels=[0])
    assert score(state, equal).values == 0
    assert score(fit("pnorm", HELD, criterion=ab.augrc, base="msr"), equal).probability == 0.25


def test_the_norm_refuses_other_classes_and_exponents():
    state = fit("pnorm", HELD, criterion=ab.augrc)
    with pytest.raises(InputError, match="fitted on 4 classes; these predictions have 3"):
        score(state, NEW)
    for wrong in ([0.5], [-1], [np.inf]):
        with pytest.raises(InputError, match="`exponents` must be"):
            fit("pnorm", HELD, criterion=ab.augrc, exponents=wrong)
    with pytest.raises(InputError, match="drop `temperatures`"):
        fit("pnorm", HELD, criterion=ab.augrc, temperatures=[2])


# --------------------------------------------------------------------------------- rank, combine
def test_places_are_the_empirical_distribution():
    values = np.asarray([3.0, 1.0, 1.0, 7.0, 3.0, 3.0])
    p = Predictions(confidence={"mine": values}, loss=np.zeros(6))
    state = fit("rank", p, score="mine")
    expected = rankdata(values) / 7
    np.testing.assert_allclose(score(state, p).values, expected, rtol=1e-14)
    weighted = Predictions(
        confidence={"mine": [3.0, 1.0, 7.0, 9.0]}, loss=np.zeros(4), weight=[3, 2, 1, 0]
    )
    again = fit("rank", weighted, score="mine")
    np.testing.assert_allclose(again.ranks, state.ranks)
    np.testing.assert_allclose(again.fitted_values, state.fitted_values)


def test_places_keep_the_order_everywhere():
    rng = np.random.default_rng(5)
    p = Predictions(confidence={"mine": rng.normal(size=50)}, loss=np.zeros(50))
    state = fit("rank", p, score="mine")
    far = np.unique(np.concatenate([rng.normal(size=300) * s for s in (1, 100, 1e6)]))
    placed = state.rank(far)
    assert (np.diff(placed) > 0).all()
    assert placed[0] > 0
    assert placed[-1] < 1
    one = Predictions(confidence={"mine": [2.0, 2.0]}, loss=[0, 0])
    alone = fit("rank", one, score="mine")
    assert alone.rank(np.array([1.0, 2.0, 3.0])).tolist() == [0.25, 0.5, 0.75]


def test_ranks_in_files_of_earlier_versions_are_restored():
    state = fit("rank", HELD, score="msr")
    plain, arrays = state.to_arrays()
    old_names = {"fitted_values": "steps", "ranks": "places"}
    again = from_arrays(plain, {old_names[name]: array for name, array in arrays.items()})
    np.testing.assert_array_equal(again.fitted_values, state.fitted_values)
    np.testing.assert_array_equal(again.ranks, state.ranks)


def test_ranks_that_were_changed_by_hand_raise_an_error():
    from dataclasses import replace

    state = fit("rank", HELD, score="msr")
    with pytest.raises(InputError, match="must ascend"):
        replace(state, fitted_values=state.fitted_values[::-1])
    with pytest.raises(InputError, match="`ranks` must lie between 0 and 1"):
        replace(state, ranks=state.ranks + 0.9)
    with pytest.raises(InputError, match="`parts` must contain one score"):
        replace(state, parts=("msr", "pe"))


def test_mean_and_product_of_ranks():
    state = fit("combine", HELD, scores=("msr", "energy"))
    assert (state.name, state.scale) == ("mean(msr,energy)", "rank")
    assert "not every score is a probability" in state.reason
    ranks = [rankdata(score(n, HELD).values) / (HELD.n + 1) for n in ("msr", "energy")]
    np.testing.assert_allclose(score(state, HELD).values, np.mean(ranks, axis=0), rtol=1e-12)
    product = fit("combine", HELD, scores=("msr", "energy"), how="product")
    np.testing.assert_allclose(score(product, HELD).values, ranks[0] * ranks[1], rtol=1e-12)
    assert score(state, HELD).probability is None


def test_a_mean_of_ranks_ignores_monotone_changes_of_a_score():
    a, b = np.random.default_rng(8).normal(size=(2, 80))
    plain = Predictions(confidence={"a": a, "b": b}, loss=np.zeros(80))
    bent = Predictions(confidence={"a": np.exp(3 * a), "b": b**3}, loss=np.zeros(80))
    values = [score(fit("combine", p, scores=("a", "b")), p).values for p in (plain, bent)]
    np.testing.assert_allclose(*values, rtol=1e-13)


def test_probabilities_are_combined_as_they_are():
    warm = fit("temperature", HELD, temperature=2.0)
    state = fit("combine", HELD, scores=("msr", warm))
    assert (state.name, state.scale) == ("mean(msr,msr@T=2)", "probability")
    p, q = (score(s, NEW).probability for s in ("msr", warm))
    result = score(state, NEW)
    np.testing.assert_allclose(result.values, (p + q) / 2, rtol=1e-14)
    np.testing.assert_array_equal(result.values, result.probability)
    product = score(fit("combine", HELD, scores=("msr", warm), how="product"), NEW)
    np.testing.assert_allclose(product.values, p * q, rtol=1e-14)
    assert product.probability is None
    asked = fit("combine", HELD, scores=("msr", warm), scale="rank")
    assert (asked.scale, asked.reason[:9]) == ("rank", "requested")
    with pytest.raises(InputError, match="'energy' is no probability here; use `scale='rank'`"):
        score(fit("combine", HELD, scores=("msr", "energy"), scale="probability"), NEW)


@pytest.mark.parametrize("regularization", [1.0, 0.01])
def test_the_learned_sum_equals_that_of_scikit_learn(regularization):
    names = ("msr", "pe", "energy")
    state = fit("combine", HELD, scores=names, how="learned", regularization=regularization)
    model = make_pipeline(
        StandardScaler(),
        LogisticRegression(C=1 / regularization, tol=1e-12, solver="newton-cholesky"),
    )
    x, other = (np.stack([score(n, p).values for n in names], 1) for p in (HELD, noisy(60, 5)))
    model.fit(x, HELD.correct)
    result = score(state, noisy(60, 5))
    np.testing.assert_allclose(result.values, model.decision_function(other), rtol=0, atol=1e-10)
    np.testing.assert_allclose(result.probability, model.predict_proba(other)[:, 1], atol=1e-10)


def test_the_learned_sum_counts_weights_as_copies():
    weight = np.random.default_rng(6).integers(0, 4, HELD.n)
    heavy = Predictions(logits=HELD.logits, labels=HELD.labels, weight=weight)
    copies = HELD.subset(np.repeat(np.arange(HELD.n), weight))
    first, second = (
        fit("combine", p, scores=("msr", "energy"), how="learned") for p in (heavy, copies)
    )
    np.testing.assert_allclose(first.slope, second.slope, rtol=1e-8)
    np.testing.assert_allclose(first.intercept, second.intercept, rtol=1e-8)


def test_the_learned_sum_takes_fitted_scores_and_constant_ones():
    rank = fit("rank", HELD, score="msr")
    p = Predictions(logits=HELD.logits, labels=HELD.labels, confidence={"same": np.ones(HELD.n)})
    state = fit("combine", p, scores=(rank, "same"), how="learned")
    assert state.name == "learned(rank(msr),same)"
    assert state.slope[0] > 0
    assert state.slope[1] == 0


def test_combinations_refuse_what_they_cannot_use():
    for wrong in ("msr", ("msr",), [], ("msr", 3), None):
        with pytest.raises(InputError, match="`scores` must be"):
            fit("combine", HELD, scores=wrong)
    sure = Predictions(logits=[[3.0, 0.0], [0.0, 4.0]], labels=[0, 1])
    with pytest.raises(InputError, match="got no failures"):
        fit("combine", sure, scores=("msr", "pe"), how="learned")
    wrong = Predictions(logits=[[3.0, 0.0], [0.0, 4.0]], labels=[1, 0])
    with pytest.raises(InputError, match="got no successes"):
        fit("combine", wrong, scores=("msr", "pe"), how="learned")
    graded = Predictions(confidence={"a": [0.1, 0.3], "b": [0.2, 0.1]}, loss=[0.0, 0.4])
    with pytest.raises(InputError, match="must be 0 or 1 for a learned combination"):
        fit("combine", graded, scores=("a", "b"), how="learned")
    with pytest.raises(InputError, match="drop `scale`"):
        fit("combine", HELD, scores=("msr", "pe"), how="learned", scale="rank")
    with pytest.raises(InputError, match="`regularization` must be above 0"):
        fit("combine", HELD, scores=("msr", "pe"), how="learned", regularization=0)
    with pytest.raises(InputError, match="`how` must be one of"):
        fit("combine", HELD, scores=("msr", "pe"), how="max")


def test_the_documentation_names_every_entry():
    from tests.docs.blocks import ROOT

    text = (ROOT / "docs" / "scores.md").read_text(encoding="utf-8")
    assert [name for name in FITTED if f"### `{name}`" not in text] == []
    options = {o for entry in FITTED.values() for o in (*entry.options, *entry.required)}
    assert [option for option in options if f"`{option}`" not in text] == []
    assert len(SCORES) > 0
