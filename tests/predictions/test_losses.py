"""Named losses against their formulas, and what they refuse."""

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, log_loss

from abstain.errors import DomainError, InputError, MissingInputError, ShapeError, UnknownNameError
from abstain.predictions import LOSSES, CostMatrix, Predictions, per_sample_loss

RNG = np.random.default_rng(7)
LOGITS = RNG.normal(size=(200, 4)) * 2
LABELS = np.where(RNG.random(200) < 0.7, LOGITS.argmax(1), RNG.integers(0, 4, 200))
P = np.exp(LOGITS) / np.exp(LOGITS).sum(1, keepdims=True)


def predictions(**more):
    return Predictions(logits=LOGITS, labels=LABELS, **more)


def test_zero_one_is_the_default_and_boolean():
    loss = per_sample_loss(predictions())
    assert loss.dtype == np.bool_
    assert np.array_equal(loss, LOGITS.argmax(1) != LABELS)


def test_own_loss_comes_first():
    own = RNG.random(200)
    p = predictions(loss=own)
    assert np.array_equal(per_sample_loss(p), own)
    assert np.array_equal(per_sample_loss(p, "own"), own)
    assert np.array_equal(per_sample_loss(p, "zero_one"), ~p.correct)
    other = RNG.random(200)
    assert np.array_equal(per_sample_loss(p, other), other)
    with pytest.raises(MissingInputError, match="'own' needs predictions with a `loss`"):
        per_sample_loss(predictions(), "own")


def test_cross_entropy():
    loss = per_sample_loss(predictions(), "cross_entropy")
    assert loss.mean() == pytest.approx(log_loss(LABELS, P), rel=1e-12)
    from_p = per_sample_loss(Predictions(probabilities=P, labels=LABELS), "cross_entropy")
    np.testing.assert_allclose(from_p, loss, rtol=1e-12)


def test_cross_entropy_does_not_saturate():
    p = Predictions(logits=np.array([[60.0, 0.0], [900.0, 0.0]]), labels=[0, 1])
    loss = per_sample_loss(p, "cross_entropy")
    assert loss[0] == pytest.approx(np.exp(-60.0), rel=1e-12)
    assert loss[1] == 900.0


def test_cross_entropy_of_an_impossible_label_raises_an_error():
    p = Predictions(probabilities=[[0.5, 0.5], [1.0, 0.0]], labels=[0, 1])
    with pytest.raises(DomainError, match=r"must be finite; got inf at index 1.*'brier'"):
        per_sample_loss(p, "cross_entropy")
    assert per_sample_loss(p, "brier").tolist() == pytest.approx([0.5, 2.0])
    certain = Predictions(probabilities=[[1.0, 0.0]], labels=[0])
    assert not np.signbit(per_sample_loss(certain, "cross_entropy")[0])


def test_brier_sums_over_the_classes():
    loss = per_sample_loss(predictions(), "brier")
    np.testing.assert_allclose(loss, ((P - np.eye(4)[LABELS]) ** 2).sum(1), rtol=1e-12)
    sure = Predictions(logits=np.array([[50.0, 0.0]]), labels=[0])
    assert per_sample_loss(sure, "brier")[0] == pytest.approx(2 * np.exp(-100.0), rel=1e-12)


@pytest.mark.parametrize("weight", [None, RNG.integers(0, 4, 200)])
def test_balanced_error_averages_to_one_minus_balanced_accuracy(weight):
    # Class 3 is absent: the classes present are counted.
    labels = np.where(LABELS == 3, 0, LABELS)
    predicted = np.where(LOGITS.argmax(1) == 3, 0, LOGITS.argmax(1))
    loss = per_sample_loss(
        Predictions(logits=LOGITS, prediction=predicted, labels=labels, weight=weight),
        "balanced_error",
    )
    expected = 1 - balanced_accuracy_score(labels, predicted, sample_weight=weight)
    assert np.average(loss, weights=weight) == pytest.approx(expected, rel=1e-12)


def test_balanced_error_of_a_class_without_weight():
    p = Predictions(prediction=[0, 0, 0], labels=[0, 1, 1], weight=[1, 0, 0])
    assert per_sample_loss(p, "balanced_error").tolist() == [0, 0, 0]


def test_balanced_error_counts_unknown_samples_as_a_class():
    p = Predictions(prediction=[0, 1, 0, 0], labels=[0, 1, -1, -1], unknown_label=-1)
    assert per_sample_loss(p, "balanced_error").mean() == pytest.approx(1 / 3)


def test_cost_matrix():
    costs = RNG.random((4, 4))
    p = predictions()
    expected = costs[LABELS, LOGITS.argmax(1)]
    assert np.array_equal(per_sample_loss(p, CostMatrix(costs)), expected)
    assert np.array_equal(per_sample_loss(p, "cost_matrix", cost_matrix=costs), expected)
    with pytest.raises(MissingInputError, match=r"pass `cost_matrix=` of shape \(4, 4\)"):
        per_sample_loss(p, "cost_matrix")
    with pytest.raises(InputError, match="`cost_matrix` is used with"):
        per_sample_loss(p, "brier", cost_matrix=costs)
    with pytest.raises(ShapeError, match="one row for each of the 4 classes; got 2"):
        per_sample_loss(p, CostMatrix(np.eye(2)))


def test_cost_of_an_unknown_class():
    p = Predictions(prediction=[0, 1], labels=[0, -1], unknown_label=-1, classes=(0, 1))
    costs = [[0, 1], [1, 0]]
    assert per_sample_loss(p, CostMatrix(costs, unknown=3)).tolist() == [0, 3]
    with pytest.raises(DomainError, match=r"no known class; index 1 .*unknown=cost"):
        per_sample_loss(p, CostMatrix(costs))
    with pytest.raises(DomainError, match="`unknown` must lie in"):
        CostMatrix(costs, unknown=-1)


@pytest.mark.parametrize(
    ("costs", "error", "message"),
    [
        ([[0, 1]], ShapeError, "square matrix"),
        ([[0, -1], [1, 0]], DomainError, r"must not be negative; got -1.0 at index \(0, 1\)"),
        ([[0, np.nan], [1, 0]], DomainError, "must be finite"),
        ([["a", "b"], ["c", "d"]], DomainError, "must hold numbers"),
    ],
)
def test_refused_costs(costs, error, message):
    with pytest.raises(error, match=f"`costs` {message}|`costs` must be a {message}"):
        CostMatrix(costs)


def test_cost_matrix_copies():
    costs = np.eye(2)
    matrix = CostMatrix(costs)
    costs[0, 0] = 9
    assert matrix.costs[0, 0] == 1


@pytest.mark.parametrize("name", ["cross_entropy", "brier"])
def test_probability_losses_need_classes_and_scores(name):
    with pytest.raises(MissingInputError, match="needs class scores; pass `logits`"):
        per_sample_loss(Predictions(prediction=[0, 1], labels=[0, 1]), name)
    unknown = Predictions(logits=LOGITS, labels=np.where(LABELS == 0, -1, LABELS), unknown_label=-1)
    with pytest.raises(DomainError, match=r"no value for samples of no known class; .*'zero_one'"):
        per_sample_loss(unknown, name)


def test_refused_losses():
    with pytest.raises(UnknownNameError, match=r"no loss named 'birer'. Did you mean 'brier'\?"):
        per_sample_loss(predictions(), "birer")
    with pytest.raises(ShapeError, match="each of the 200 samples; got 3"):
        per_sample_loss(predictions(), [0, 1, 2])
    with pytest.raises(DomainError, match="must not be negative"):
        per_sample_loss(predictions(), np.full(200, -1.0))


@pytest.mark.parametrize("name", [n for n in LOSSES if n != "cost_matrix"])
def test_every_loss_is_a_loss(name):
    entry = LOSSES[name]
    loss = entry.compute(predictions(loss=np.ones(200)))
    assert loss.shape == (200,)
    assert loss.min() >= 0
    assert loss.max() <= entry.high
    assert entry.meaning
