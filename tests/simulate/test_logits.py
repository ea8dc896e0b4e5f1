"""Labeled logits: against the exact two-class population, and against drawn labels."""

import numpy as np
import pytest

import abstain as ab
from abstain import simulate
from abstain.errors import InputError

#: Five of the six of Zhou et al.: the l2 norm of the softmax ranks as the Gini index.
SCORES = ("msr", "pe", "margin", "mls", "gini")
MEASURES = {"aurc": lambda c, x: ab.aurc(c, x, estimator="plugin"), "augrc": ab.augrc}


def msr(z):
    top = np.sort(z, axis=1)
    return -np.log(np.exp(top - top[:, -1:])[:, :-1].sum(axis=1))


def scores(population, names, n=3000, rng=0):
    z, y = population.sample_logits(n, rng=rng)
    p = ab.Predictions(logits=z, labels=y)
    return {name: ab.confidence.score(name, p).values for name in names}


def orders(found):
    return {tuple(np.argsort(values, kind="stable")[::50].tolist()) for values in found.values()}


def test_two_classes_are_the_exact_population():
    population = simulate.logits(2, separation=2.0, temperature=0.5)
    exact = population.two_class()
    truth = population.truth(msr, n=100_000)
    for name in ("risk", "augrc"):
        result, error = getattr(truth, name), getattr(truth, f"{name}_error")
        assert abs(result - getattr(exact, name)) <= 5 * error
        assert 0 < error < 0.01 * result
    assert abs(truth.aurc - exact.aurc()) <= 5 * truth.aurc_error
    assert exact.parameters == {"separation": 2.0, "temperature": 0.5}


def test_two_class_confidences_are_the_softmax_of_the_logits():
    population = simulate.logits(2, separation=2.0, temperature=0.5)
    z, y = population.sample_logits(100_000, rng=1)
    p = np.exp(z - z.max(axis=1, keepdims=True))
    top, wrong = p.max(axis=1) / p.sum(axis=1), z.argmax(axis=1) != y
    exact = population.two_class()
    for t in (0.6, 0.9, 0.99):
        share = exact.coverage(t)
        assert abs((top >= t).mean() - share) <= 5 * np.sqrt(share / z.shape[0])
        accepted = exact.generalized_risk(share)
        assert abs((wrong & (top >= t)).mean() - accepted) <= 5 * np.sqrt(accepted / z.shape[0])


@pytest.mark.parametrize("loss", ["zero-one", "cross-entropy"])
@pytest.mark.parametrize("options", [{}, {"temperature": 0.4, "mismatch": 0.3}])
def test_truth_equals_that_of_drawn_labels(options, loss):
    population = simulate.logits(4, **options)
    truth = population.truth(msr, loss=loss, n=100_000, rng=5)
    z, y = population.sample_logits(100_000, rng=6)
    if loss == "zero-one":
        drawn = (z.argmax(axis=1) != y).astype(float)
    else:
        drawn = np.log(np.exp(z - z[np.arange(y.size), y][:, None]).sum(axis=1))
    c, parts = msr(z), 20
    for name, f in MEASURES.items():
        blocks = [f(c[i::parts], drawn[i::parts]) for i in range(parts)]
        error = np.hypot(np.std(blocks, ddof=1) / np.sqrt(parts), getattr(truth, f"{name}_error"))
        assert abs(f(c, drawn) - getattr(truth, name)) <= 5 * error
        # What is known of each label is worth many labels.
        assert getattr(truth, f"{name}_error") < np.std(blocks, ddof=1) / np.sqrt(parts)
    assert truth.n == 100_000


def test_ties_in_a_score_are_averaged():
    population = simulate.logits(3)
    constant = population.truth(lambda z: np.zeros(len(z)), n=20_000)
    assert constant.aurc == pytest.approx(constant.risk, rel=1e-12)
    assert constant.augrc == pytest.approx(constant.risk / 2, rel=1e-4)


def test_scores_differ_with_many_classes_and_not_with_two():
    many = scores(simulate.logits(5, temperature=0.5), SCORES)
    assert len(orders(many)) == len(SCORES)
    two = scores(simulate.logits(2), SCORES)
    assert len(orders({name: two[name] for name in SCORES if name != "mls"})) == 1
    assert len(orders(two)) == 2


def test_calibration_follows_the_temperature():
    def gap(temperature, mismatch=0.0):
        population = simulate.logits(4, temperature=temperature, mismatch=mismatch)
        z, y = population.sample_logits(20_000, rng=2)
        p = np.exp(z - z.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        return p.max(axis=1).mean() - (z.argmax(axis=1) == y).mean()

    assert abs(gap(1.0)) < 0.015
    assert gap(0.4) > 0.05
    assert gap(3.0) < -0.05
    risk = [simulate.logits(4, mismatch=m).truth(msr, n=20_000).risk for m in (0.0, 0.5)]
    assert risk[1] > risk[0] + 0.02


def test_draws_are_reproducible_and_requests_checked():
    population = simulate.logits(3)
    first, second = population.sample_logits(7, rng=1), population.sample_logits(7, rng=1)
    assert (first.logits == second.logits).all()
    assert (first.labels == second.labels).all()
    assert first.logits.shape == (7, 3)
    assert population.name == "logits"
    with pytest.raises(InputError, match="needs `classes=2` and `mismatch=0`; got 3 and"):
        population.two_class()
    with pytest.raises(InputError, match=r"needs `classes=2` and `mismatch=0`; got 2 and 0\.5"):
        simulate.logits(2, mismatch=0.5).two_class()
    with pytest.raises(InputError, match="`loss` must be one of"):
        population.truth(msr, loss="hinge")
    with pytest.raises(InputError, match="`blocks` must be at least 2"):
        population.truth(msr, n=100, blocks=1)
    with pytest.raises(InputError, match="`score` must have one entry for each of the 50"):
        population.truth(lambda z: z[:3, 0], n=100, blocks=2)
    with pytest.raises(InputError, match="`score` must be finite"):
        population.truth(lambda z: np.full(len(z), np.nan), n=100, blocks=2)
