"""Accuracy, balanced accuracy, NLL and Brier score."""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, balanced_accuracy_score, log_loss

from abstain._foundation.scored import ClassView, Scored
from abstain.errors import DomainError, MissingInputError, ShapeError, UndefinedMetricWarning
from abstain.metrics.classifier import ENTRIES, accuracy, balanced_accuracy, brier, nll

METRICS = {e.name: e for e in ENTRIES}


def draw(seed, n=100, k=4):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(k), n)
    return p, rng.integers(0, k, n), rng.integers(0, 4, n)


@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_scikit_learn(seed):
    p, y, weight = draw(seed)
    guess = p.argmax(axis=1)
    for w in (None, weight):
        assert accuracy(guess, y, weight=w) == pytest.approx(
            accuracy_score(y, guess, sample_weight=w)
        )
        balanced = balanced_accuracy_score(y, guess, sample_weight=w)
        assert balanced_accuracy(guess, y, weight=w) == pytest.approx(balanced)
        assert nll(p, y, weight=w) == pytest.approx(log_loss(y, p, sample_weight=w))
        distance = ((p - np.eye(4)[y]) ** 2).sum(axis=1)
        assert brier(p, y, weight=w) == pytest.approx(np.average(distance, weights=w))


@pytest.mark.parametrize("seed", range(3))
def test_weights_repeat(seed):
    p, y, w = draw(seed)
    guess = p.argmax(axis=1)
    for function, x in ((accuracy, guess), (balanced_accuracy, guess), (nll, p), (brier, p)):
        repeated = function(np.repeat(x, w, axis=0), np.repeat(y, w))
        assert function(x, y, weight=w) == pytest.approx(repeated, abs=1e-12)
        order = np.random.default_rng(0).permutation(y.size)
        assert function(x[order], y[order], weight=w[order]) == pytest.approx(repeated)


def test_all_right_all_wrong_one_sample():
    assert accuracy([0, 1], [0, 1]) == balanced_accuracy([0, 1], [0, 1]) == 1.0
    assert accuracy([0, 1], [1, 0]) == balanced_accuracy([0, 1], [1, 0]) == 0.0
    assert accuracy([2], [2]) == 1.0
    assert nll([[1.0, 0.0]], [0]) == brier([[1.0, 0.0]], [0]) == 0.0
    assert brier([[1.0, 0.0]], [1]) == 2.0
    assert nll([[0.25] * 4], [3]) == pytest.approx(np.log(4))


def test_samples_of_no_known_class():
    # Never right, not even when there was no prediction either.
    assert accuracy([0, 1, -1, 0], [0, 1, -1, -1]) == 0.5
    assert balanced_accuracy([0, 1, -1, 0], [0, 1, -1, -1]) == 1.0
    with pytest.warns(UndefinedMetricWarning, match="no sample has a known class"):
        assert np.isnan(balanced_accuracy([0, 1], [-1, -1]))
    for function in (nll, brier):
        with pytest.warns(UndefinedMetricWarning, match="1 samples have an unknown class"):
            assert np.isnan(function([[0.5, 0.5], [0.5, 0.5]], [0, -1]))
        assert np.isfinite(function([[0.5, 0.5], [0.5, 0.5]], [0, -1], weight=[1, 0]))


def test_an_impossible_truth_makes_the_likelihood_infinite():
    with pytest.warns(UndefinedMetricWarning, match="infinite: 1 true classes have probability 0"):
        assert np.isnan(nll([[1.0, 0.0], [0.5, 0.5]], [1, 0]))
    assert nll([[1.0, 0.0], [0.5, 0.5]], [1, 0], weight=[0, 1]) == pytest.approx(np.log(2))


def test_small_brier_scores_stay_exact():
    view = ClassView(np.array([0]), np.array([0]), (0, 1), np.array([[1 - 1e-9, 1e-9]]))
    value = METRICS["brier"].compute(Scored(np.ones(1), np.zeros(1), class_view=view)).value
    assert value == pytest.approx(2e-18, rel=1e-6)


@pytest.mark.parametrize("parts", ["both", "probabilities", "logs"])
def test_the_catalogue(parts):
    p, y, w = draw(5)
    guess = p.argmax(axis=1)
    given = None if parts == "logs" else p
    logs = None if parts == "probabilities" else np.log(p)
    view = ClassView(y, guess, (0, 1, 2, 3), given, logs)
    s = Scored(np.ones(y.size), (guess != y).astype(int), w.astype(float), class_view=view)
    assert METRICS["accuracy"].compute(s).value == accuracy(guess, y, weight=w)
    assert METRICS["balanced_accuracy"].compute(s).value == balanced_accuracy(guess, y, weight=w)
    assert METRICS["nll"].compute(s).value == pytest.approx(nll(p, y, weight=w))
    assert METRICS["brier"].compute(s).value == pytest.approx(brier(p, y, weight=w))


def test_the_catalogue_without_a_view():
    s = Scored(np.ones(2), np.zeros(2))
    assert METRICS["balanced_accuracy"].reason_not_applicable(s) == "needs labels and predictions"
    assert METRICS["nll"].reason_not_applicable(s) == "needs class probabilities or logits"
    with pytest.raises(MissingInputError, match="labels and predictions are required"):
        METRICS["balanced_accuracy"].compute(s)
    view = ClassView(np.zeros(2, dtype=int), np.zeros(2, dtype=int), (0, 1))
    with pytest.raises(MissingInputError, match="class probabilities or logits are required"):
        METRICS["brier"].compute(Scored(np.ones(2), np.zeros(2), class_view=view))


def test_accuracy_of_a_binary_loss_without_labels():
    y, guess, w = np.array([0, 1, 1, 0, 1]), np.array([0, 1, 0, 0, 0]), np.arange(1.0, 6.0)
    loss = (y != guess).astype(float)
    with_view = Scored(np.ones(5), loss, w, class_view=ClassView(y, guess, (0, 1)))
    without = Scored(np.ones(5), loss, w)
    entry = METRICS["accuracy"]
    assert entry.reason_not_applicable(without) == ""
    assert entry.compute(without).value == entry.compute(with_view).value == 7 / 15
    np.testing.assert_array_equal(
        entry.measurement.influence(without), entry.measurement.influence(with_view)
    )
    graded = Scored(np.ones(5), loss / 2)
    assert entry.reason_not_applicable(graded) == "needs labels and predictions, or a 0/1 loss"


def test_messages():
    with pytest.raises(ShapeError, match="`labels` must have one entry for each of the 2"):
        accuracy([0, 1], [0])
    with pytest.raises(DomainError, match=r"`labels` must be a class code, .* got -2 at index 1"):
        balanced_accuracy([0, 1], [0, -2])
    with pytest.raises(
        DomainError, match=r"`prediction` must be a class code, .* got 0.5 at index 0"
    ):
        accuracy([0.5, 1], [0, 1])
    with pytest.raises(DomainError, match="`labels` must be below 2, the number of classes; got 2"):
        nll([[0.5, 0.5]], [2])
    with pytest.raises(DomainError, match="`probabilities` must sum to 1"):
        brier([[0.5, 0.1]], [0])
    with pytest.raises(DomainError, match="`weight` must not be negative"):
        brier([[0.5, 0.5]], [0], weight=[-1])
