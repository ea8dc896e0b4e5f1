"""Predictions: what is stored, what is derived, what is never touched."""

import dataclasses
import pickle

import numpy as np
import pytest

from abstain.errors import MissingInputError
from abstain.predictions import Predictions

LOGITS = np.array([[2.0, 0.0, 1.0], [0.0, 3.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 5.0]])
LABELS = np.array([0, 1, 1, 0])


def softmax(z):
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def test_predictions_from_logits():
    p = Predictions(logits=LOGITS, labels=LABELS)
    assert (p.n, p.n_classes, p.classes) == (4, 3, (0, 1, 2))
    # Row 2 is a tie of classes 0 and 1: the lowest code wins.
    assert p.prediction_codes.tolist() == [0, 1, 0, 2]
    assert p.label_codes.tolist() == LABELS.tolist()
    assert p.correct.tolist() == [True, True, False, False]
    assert p.correct.dtype == np.bool_
    assert p.has_logits
    assert p.has_class_scores
    assert p.has_prediction
    assert p.has_labels
    assert not p.has_samples


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_class_scores_keep_their_dtype_and_memory(dtype):
    logits = LOGITS.astype(dtype)
    p = Predictions(logits=logits, labels=LABELS)
    assert p.logits.dtype == dtype
    assert np.shares_memory(p.logits, logits)
    assert not p.logits.flags.writeable
    assert logits.flags.writeable


def test_inputs_may_be_read_only_and_stay_as_they_are():
    logits, labels, weight = LOGITS.copy(), LABELS.copy(), np.arange(1.0, 5.0)
    own = {"mine": np.linspace(0, 1, 4)}
    for array in (logits, labels, weight, own["mine"]):
        array.flags.writeable = False
    p = Predictions(logits=logits, labels=labels, weight=weight, confidence=own)
    assert p.class_view().log_probabilities is not None
    p.subset([1, 2])
    assert np.array_equal(logits, LOGITS)
    assert own.keys() == {"mine"}


def test_record_is_frozen():
    p = Predictions(logits=LOGITS, labels=LABELS, confidence={"a": [1, 2, 3, 4]})
    with pytest.raises(dataclasses.FrozenInstanceError):
        p.labels = LABELS
    for array in (p.logits, p.labels, p.confidence["a"]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    assert isinstance(hash(p), int)
    assert p == p


def test_explicit_prediction_wins_over_class_scores():
    p = Predictions(logits=LOGITS, prediction=[1, 1, 1, 1], labels=LABELS)
    assert p.prediction_codes.tolist() == [1, 1, 1, 1]
    assert p.correct.tolist() == [False, True, True, False]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int64])
def test_ties_go_to_the_lowest_class(dtype):
    z = np.random.default_rng(0).integers(0, 3, (500, 4)).astype(dtype)
    p = Predictions(logits=z, labels=np.zeros(500, int))
    assert np.array_equal(p.prediction_codes, z.astype(float).argmax(1))
    assert p.logits.dtype.kind == "f"


def test_names_of_classes():
    p = Predictions(
        logits=LOGITS, labels=["cat", "dog", "dog", "eel"], classes=["cat", "dog", "eel"]
    )
    assert p.label_codes.tolist() == [0, 1, 1, 2]
    assert p.classes == ("cat", "dog", "eel")


def test_prediction_alone_takes_the_sorted_union():
    p = Predictions(prediction=["b", "c"], labels=["a", "c"])
    assert p.classes == ("a", "b", "c")
    assert p.correct.tolist() == [False, True]
    mixed = Predictions(
        prediction=np.array(["b", 1], dtype=object), labels=np.array([1, (2, 3)], dtype=object)
    )
    assert mixed.classes == (1, "b", (2, 3))
    assert mixed.correct.tolist() == [False, False]
    assert not mixed.has_class_scores


def test_boolean_and_whole_float_labels():
    assert Predictions(prediction=[True, False], labels=[True, True]).correct.tolist() == [
        True,
        False,
    ]
    assert Predictions(logits=LOGITS, labels=[0.0, 1.0, 1.0, 0.0]).label_codes.tolist() == [
        0,
        1,
        1,
        0,
    ]


def test_unknown_label_is_always_wrong():
    p = Predictions(logits=LOGITS, labels=[0, -1, 1, -1], unknown_label=-1)
    assert p.label_codes.tolist() == [0, -1, 1, -1]
    assert p.correct.tolist() == [True, False, False, False]
    q = Predictions(prediction=["a", "b"], labels=["a", "new"], unknown_label="new")
    assert q.classes == ("a", "b")
    assert q.correct.tolist() == [True, False]


def test_samples_alone_give_the_mean_softmax():
    rng = np.random.default_rng(1)
    z = rng.normal(size=(4, 7, 3)) * 3
    mean = softmax(z).mean(axis=1)
    for p in (
        Predictions(logit_samples=z, labels=LABELS),
        Predictions(probability_samples=softmax(z), labels=LABELS),
    ):
        assert p.has_samples
        assert p.has_class_scores
        assert not p.has_logits
        np.testing.assert_allclose(p.class_view().probabilities, mean, rtol=1e-12)
        assert p.prediction_codes.tolist() == mean.argmax(1).tolist()


def test_with_both_the_deterministic_output_predicts():
    z = np.zeros((4, 2, 3))
    z[..., 2] = 9
    p = Predictions(logits=LOGITS, logit_samples=z, labels=LABELS)
    assert p.prediction_codes.tolist() == [0, 1, 0, 2]


def test_view_is_lazy_and_exact():
    p = Predictions(logits=np.array([[200.0, 0.0], [0.0, 0.5]], np.float32), labels=[0, 1])
    view = p.class_view()
    assert p.class_view() is view
    assert "log_probabilities" not in vars(view)
    assert view.labels.tolist() == [0, 1]
    assert view.prediction.tolist() == [0, 1]
    assert view.classes == (0, 1)
    assert view.log_probabilities[0, 0] == pytest.approx(-np.exp(-200.0), rel=1e-12)
    np.testing.assert_allclose(np.exp(view.log_probabilities), view.probabilities)
    assert view.log_probabilities.dtype == np.float64
    bare = Predictions(prediction=[0, 1], labels=[0, 0]).class_view()
    assert bare.probabilities is None
    assert bare.log_probabilities is None


def test_loss_and_confidence_need_no_model():
    p = Predictions(confidence=[0.9, 0.1], loss=[0.0, 0.7])
    assert (p.n, p.n_classes, p.class_view()) == (2, 0, None)
    assert not p.has_prediction
    with pytest.raises(MissingInputError, match="no labels; pass `labels`"):
        _ = p.label_codes
    with pytest.raises(MissingInputError, match="no predicted classes; pass `logits`"):
        _ = p.prediction_codes


@pytest.mark.parametrize(
    "selection", [[0, 2], [True, False, True, False], slice(0, 3, 2), np.array([-4, 2])]
)
def test_subset(selection):
    p = Predictions(
        logits=LOGITS.astype(np.float16),
        logit_samples=np.stack([LOGITS, LOGITS], axis=1),
        labels=["a", "b", "c", "?"],
        classes=("a", "b", "c"),
        unknown_label="?",
        confidence={"mine": [1, 2, 3, 4]},
        loss=[0, 1, 2, 3],
        weight=[1, 1, 2, 1],
        group=["x", "x", "y", "y"],
        ids=[10, 11, 12, 13],
        features=np.eye(4),
    )
    s = p.subset(selection)
    assert s.n == 2
    assert s.classes == p.classes
    assert s.labels.tolist() == ["a", "c"]
    assert s.label_codes.tolist() == [0, 2]
    assert s.confidence["mine"].tolist() == [1, 3]
    assert s.loss.tolist() == [0, 2]
    assert s.weight.tolist() == [1, 2]
    assert s.group.tolist() == ["x", "y"]
    assert s.ids.tolist() == [10, 12]
    assert s.logit_samples.shape == (2, 2, 3)
    assert s.features.shape == (2, 4)
    assert s.logits.dtype == np.float16
    assert not s.logits.flags.writeable


def test_own_loss_replaces_labels():
    p = Predictions(prediction=["b", "a"], loss=[0.2, 0.4])
    assert p.prediction_codes.tolist() == [1, 0]
    assert p.class_view() is None
    assert repr(p) == "Predictions(n=2, n_classes=2, prediction=<U1, loss=float64)"


def test_pickle_and_repr():
    p = Predictions(logits=LOGITS, labels=LABELS, confidence=[1, 2, 3, 4])
    q = pickle.loads(pickle.dumps(p))
    assert q.correct.tolist() == p.correct.tolist()
    assert repr(p) == (
        "Predictions(n=4, n_classes=3, logits=float64, labels=int64, confidence=['confidence'])"
    )


def test_torch_tensors():
    torch = pytest.importorskip("torch")
    z = torch.tensor(LOGITS, dtype=torch.float32, requires_grad=True)
    p = Predictions(logits=z, labels=torch.tensor(LABELS), weight=torch.ones(4))
    assert p.logits.dtype == np.float32
    assert p.correct.tolist() == [True, True, False, False]
    half = torch.softmax(z, dim=1).detach().to(torch.bfloat16)
    q = Predictions(probabilities=half, labels=torch.tensor(LABELS))
    # The row sums of brain floats miss 1 by more than float32 may; the subset is not re-checked.
    assert q.subset([0, 1]).n == 2


def test_polars_series():
    pl = pytest.importorskip("polars")
    p = Predictions(
        prediction=pl.Series(["a", "b"]),
        labels=pl.Series(["a", "a"]),
        confidence=pl.Series([0.5, 1]),
    )
    assert p.correct.tolist() == [True, False]


def test_real_predictions(shared):
    for name, accuracy in (("mnist", 0.9913), ("imdb", 0.89576)):
        data = np.load(shared / f"data/real/{name}_crossval_probabilities.npz", allow_pickle=False)
        p = Predictions(probabilities=data["probabilities"], labels=data["labels"])
        assert p.correct.mean() == pytest.approx(accuracy)
        np.testing.assert_allclose(p.class_view().probabilities.sum(axis=1), 1.0, rtol=1e-13)
