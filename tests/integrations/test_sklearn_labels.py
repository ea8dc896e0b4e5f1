"""Abstain labels, class names of any kind, frames and sparse samples."""

import numpy as np
import polars as pl
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from tests.integrations.sklearn_data import blobs, coverage, words

from abstain.errors import InputError
from abstain.integrations.sklearn import SelectiveClassifier

HALF = coverage(0.5)


def fitted(y, X=None, **options):
    samples = blobs(classes=3)[0] if X is None else X
    return SelectiveClassifier(LogisticRegression(), **HALF, cv=2, **options).fit(samples, y)


CODES = blobs(classes=3)[1]


@pytest.mark.parametrize(
    ("y", "label", "kind"),
    [
        (CODES, -1, "i"),
        (CODES - 1, -2, "i"),
        (CODES - 2, -3, "i"),
        (CODES * 10 - 15, -1, "i"),
        (CODES.astype(np.uint8), -1, "i"),
        (CODES.astype(np.uint64), -1, "i"),
        (CODES > 0, -1, "i"),
        (CODES.astype(float), -1, "f"),
        (words(CODES), "abstain", "U"),
        (words(CODES).astype(object), "abstain", "O"),
        (words(CODES, ("a", "abstain", "b")), "(abstain)", "U"),
    ],
)
def test_the_default_label_is_no_class_and_of_their_kind(y, label, kind):
    own = fitted(y)
    X, _ = blobs(classes=3)
    answers = own.predict(X)
    assert own.abstain_label_ == label
    assert answers.dtype.kind == kind
    assert set(answers.tolist()) <= {*own.classes_.tolist(), label}
    np.testing.assert_array_equal(answers == label, ~own.accepts(X))
    # The kind does not depend on whether anything is rejected.
    sure = X[own.accepts(X)]
    assert own.predict(sure).dtype == answers.dtype
    kept = own.predict_or_abstain(sure).prediction
    assert own.predict(sure).tolist() == kept.tolist()


@pytest.mark.parametrize(
    ("y", "label"),
    [(CODES, 99), (words(CODES), "?"), (words(CODES), "a much longer word"), (CODES * 10.0, 0.5)],
)
def test_a_label_of_the_users_own(y, label):
    own = fitted(y, abstain_label=label)
    answers = own.predict(blobs(classes=3)[0])
    assert label in answers.tolist()


@pytest.mark.parametrize(
    ("y", "label", "match"),
    [
        (CODES, 1, "must not be one of the classes"),
        (words(CODES), "cat", "must not be one of the classes"),
        (CODES, None, "must be an integer"),
        (CODES, "none", "must be an integer"),
        (CODES, 0.5, "must be an integer"),
        (words(CODES), None, "must be a string"),
        (words(CODES), -1, "must be a string"),
        (CODES * 10.0, np.nan, "must be a finite number"),
    ],
)
def test_labels_that_would_mislead_raise_an_error(y, label, match):
    with pytest.raises(InputError, match=match):
        fitted(y, abstain_label=label)


def test_without_a_rule_predictions_stay_of_their_kind():
    X, _ = blobs(classes=3)
    for y in (CODES > 0, words(CODES)):
        plain = LogisticRegression().fit(X, y).predict(X)
        own = SelectiveClassifier(LogisticRegression()).fit(X, y).predict(X)
        assert own.dtype == plain.dtype
        np.testing.assert_array_equal(own, plain)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_keep_their_names(library):
    X, y = blobs(classes=3)
    names = [f"f{i}" for i in range(X.shape[1])]
    made = pytest.importorskip(library)
    table = made.DataFrame(dict(zip(names, X.T, strict=True)))
    kind = {"pandas": "category", "polars": pl.Categorical}[library]
    for cv in (2, 0.5):
        classifier = SelectiveClassifier(LogisticRegression(), **HALF, cv=cv, random_state=0)
        plain = SelectiveClassifier(LogisticRegression(), **HALF, cv=cv, random_state=0)
        classifier.fit(table, made.Series(words(y), dtype=kind))
        plain.fit(X, words(y))
        # Which libraries' names are kept is the classifier's own doing.
        alone = LogisticRegression().fit(table, y)
        assert hasattr(classifier, "feature_names_in_") == hasattr(alone, "feature_names_in_")
        assert list(getattr(classifier, "feature_names_in_", names)) == names
        np.testing.assert_array_equal(classifier.predict(table), plain.predict(X))


def test_a_polars_series_of_labels():
    X, y = blobs(classes=3)
    own = fitted(pl.Series(words(y)))
    np.testing.assert_array_equal(own.predict(X), fitted(words(y)).predict(X))


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_matrix])
def test_sparse_samples(kind):
    X, y = blobs(classes=3)
    own = fitted(y, kind(X))
    dense = fitted(y)
    np.testing.assert_array_equal(own.predict(kind(X)), dense.predict(X))
    assert own.accepts(kind(X)).mean() == dense.accepts(X).mean()
