"""Rows of probabilities that miss 1: what rounding explains is taken and told, the rest refused."""

import numpy as np
import pytest
from tests.predictions.test_record import LOGITS

import abstain as ab
from abstain.errors import DomainError
from abstain.predictions.outputs import detect_rounding

RNG = np.random.default_rng(7)


def probabilities(n: int = 400, classes: int = 10) -> np.ndarray:
    return RNG.dirichlet(np.full(classes, 0.3), size=n)


def significant(p: np.ndarray, digits: int) -> np.ndarray:
    return np.vectorize(lambda v: float(f"{v:.{digits - 1}e}"))(p)


def truncated_to_bfloat16(p: np.ndarray) -> np.ndarray:
    bits = p.astype(np.float32).view(np.uint32)
    return ((bits + 0x8000) & 0xFFFF0000).astype(np.uint32).view(np.float32)


ROUNDED = {
    "2 decimals": lambda p: p.round(2),
    "3 decimals": lambda p: p.round(3),
    "4 decimals": lambda p: p.round(4),
    "2 significant digits": lambda p: significant(p, 2),
    "3 significant digits": lambda p: significant(p, 3),
    "bfloat16": truncated_to_bfloat16,
}


@pytest.mark.parametrize("words", ROUNDED)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rounded_rows_are_taken_and_told(words, dtype):
    rows = ROUNDED[words](probabilities()).astype(dtype)
    p = ab.Predictions(probabilities=rows, labels=rows.argmax(axis=1))
    assert np.abs(rows.sum(axis=1, dtype=np.float64) - 1).max() > 2e-4
    assert words in p.notes[0]
    assert np.allclose(p.class_view().probabilities.sum(axis=1), 1)
    messages = [f.message for f in ab.evaluate(p, scores=["msr"], metrics=["augrc"]).notes]
    assert any(words in message for message in messages)


@pytest.mark.parametrize("words", ROUNDED)
def test_what_is_found_is_what_was_done_and_bounds_every_row(words):
    for classes in (2, 3, 10, 50):
        rows = ROUNDED[words](probabilities(300, classes))
        result = detect_rounding(rows)
        assert result.description == words
        assert np.abs(rows.sum(axis=1, dtype=np.float64) - 1).max() <= result.tolerance * (1 + 1e-9)


def test_exact_rows_say_nothing():
    rows = probabilities()
    assert ab.Predictions(probabilities=rows, labels=rows.argmax(axis=1)).notes == ()
    assert detect_rounding(rows) is None


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_what_rounding_does_not_explain_raises_an_error_with_the_way_out(dtype):
    rows = probabilities().astype(dtype)
    rows[17] *= 0.9
    labels = np.zeros(len(rows), dtype=int)
    with pytest.raises(DomainError, match=r"0\.9 at index 17 \(1 such rows\).*renormalize=True"):
        ab.Predictions(probabilities=rows, labels=labels)
    with pytest.raises(DomainError, match=r"within 5\.0e-03"):
        ab.Predictions(probabilities=rows.round(3), labels=labels)
    taken = ab.Predictions(probabilities=rows, labels=labels, renormalize=True)
    assert "1 rows of `probabilities` miss 1 by up to 0.1" in taken.notes[0]
    rows[17] = 0
    with pytest.raises(DomainError, match="a row of zeros is not a distribution"):
        ab.Predictions(probabilities=rows, labels=labels, renormalize=True)


def test_notes_survive_a_subset_and_samples_have_their_own():
    rows = probabilities().round(3)
    labels = rows.argmax(axis=1)
    p = ab.Predictions(probabilities=rows, labels=labels)
    assert p.subset(slice(5)).notes == p.notes
    q = ab.Predictions(probability_samples=np.stack([rows, rows], axis=1), labels=labels)
    assert "`probability_samples`" in q.notes[0]


def test_masked_classes_are_opted_in():
    masked = LOGITS.astype(float).copy()
    masked[0, 1] = -np.inf
    labels = masked.argmax(axis=1)
    with pytest.raises(DomainError, match="masked=True"):
        ab.Predictions(logits=masked, labels=labels)
    p = ab.Predictions(logits=masked, labels=labels, masked=True)
    assert p.class_view().probabilities[0, 1] == 0
    masked[1] = -np.inf
    with pytest.raises(DomainError, match=r"a class that is not masked; got only -inf at index 1"):
        ab.Predictions(logits=masked, labels=labels, masked=True)
    masked[1] = np.inf
    with pytest.raises(DomainError, match="must be finite, or -inf"):
        ab.Predictions(logits=masked, labels=labels, masked=True)


def test_every_score_of_masked_logits_is_that_without_the_masked_classes():
    z = RNG.normal(size=(40, 6))
    hidden = np.array([False, True, False, False, True, False])
    labels = np.full(40, 2)
    with_mask = ab.Predictions(logits=np.where(hidden, -np.inf, z), labels=labels, masked=True)
    without = ab.Predictions(logits=z[:, ~hidden], labels=np.full(40, 1))
    names = ab.confidence.applicable(without)
    assert len(names) > 5
    for name in names:
        a, b = (ab.confidence.score(name, p).values for p in (with_mask, without))
        np.testing.assert_allclose(a, b, rtol=1e-12, err_msg=name)


@pytest.mark.parametrize(
    ("labels", "said"),
    [([0.5, 1.7, 2.0], "pass the error"), ([1.0, 2.0, 3.0], r"labels.astype\(int\)")],
)
def test_decimals_are_no_classes(labels, said):
    with pytest.raises(DomainError, match=said) as error:
        ab.Predictions(prediction=[1, 2, 3], labels=labels, confidence=[0.5, 0.6, 0.7])
    assert "`loss`" in str(error.value)
    with pytest.raises(DomainError, match="`prediction` must hold classes"):
        ab.Predictions(prediction=[0.1, 0.2], labels=[0, 1])


def test_an_uncertainty_is_turned_around_and_named_so():
    u = [0.1, 0.9, 0.4]
    p = ab.Predictions(confidence={"entropy": u}, loss=[0, 1, 0], lower_is_safer=True)
    assert list(p.confidence) == ["-entropy"]
    assert p.confidence["-entropy"].tolist() == [-0.1, -0.9, -0.4]
    with pytest.raises(ab.errors.InputError, match="`lower_is_safer` refers to"):
        ab.Predictions(logits=LOGITS, labels=[0] * len(LOGITS), lower_is_safer=True)
