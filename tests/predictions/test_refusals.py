"""Every refusal names the rule, the argument, the first offender and what to do."""

import numpy as np
import pytest

from abstain.errors import DomainError, InputError, MissingInputError, ShapeError
from abstain.predictions import Predictions

P = np.full((3, 2), 0.5)
Z = np.zeros((3, 2))
Y = [0, 1, 0]


def with_entry(x, index, value):
    out = np.array(x, dtype=np.float64)
    out[index] = value
    return out


CASES = [
    # none, both
    ({"labels": Y}, MissingInputError, "pass `logits`, `probabilities` or `prediction`"),
    ({"loss": [0.0]}, MissingInputError, "model's output is needed"),
    ({"logits": Z}, MissingInputError, "`labels` are needed to determine correct predictions"),
    ({"logits": Z, "probabilities": P, "labels": Y}, InputError, "either `logits` or `probabilities`"),
    (
        {"logit_samples": Z[:, None], "probability_samples": P[:, None], "labels": Y},
        InputError,
        "either `logit_samples` or `probability_samples`",
    ),
    # shapes
    ({"logits": Z[:, 0], "labels": Y}, ShapeError, r"`logits` must have shape \(n, K\); got shape \(3,\)"),
    ({"logits": Z[:, :1], "labels": Y}, ShapeError, r"at least two classes; got shape \(3, 1\)"),
    ({"probabilities": P[:, 0], "labels": Y}, ShapeError, r"np.column_stack\(\[1 - p, p\]\)"),
    ({"logits": Z[:0], "labels": []}, ShapeError, "`logits` is empty"),
    ({"logits": Z, "labels": Y[:2]}, ShapeError, "`labels` must .* of the 3 samples of `logits`; got 2"),
    ({"logits": Z, "labels": np.eye(2)[Y]}, ShapeError, r"`labels` must have one axis .*argmax"),
    ({"logits": Z, "labels": np.array(Y)[:, None]}, ShapeError, r"Pass `labels\[:, 0\]`"),
    ({"logits": Z, "labels": Y, "prediction": [0]}, ShapeError, "`prediction` must .*got 1"),
    ({"prediction": [], "labels": []}, ShapeError, "`labels` is empty"),
    ({"prediction": 3, "labels": 3}, ShapeError, "`prediction` must have one axis .*single value"),
    ({"logits": Z, "labels": Y, "group": ["a"]}, ShapeError, "`group` must .*got 1"),
    ({"logits": Z, "labels": Y, "ids": [1] * 4}, ShapeError, "`ids` must .*got 4"),
    ({"logits": Z, "labels": Y, "weight": [1.0]}, ShapeError, "`weight` must .*got 1"),
    ({"logits": Z, "labels": Y, "loss": [1.0]}, ShapeError, "`loss` must .*got 1"),
    ({"logits": Z, "labels": Y, "confidence": [1.0]}, ShapeError, "`confidence` must .*got 1"),
    ({"logits": Z, "labels": Y, "features": [1, 2, 3]}, ShapeError, r"`features` must have shape \(n, d\)"),
    ({"logits": Z, "labels": Y, "features": np.eye(2)}, ShapeError, "`features` must .*got 2"),
    ({"logit_samples": Z, "labels": Y}, ShapeError, r"`logit_samples` must have shape \(n, S, K\)"),
    ({"logit_samples": Z[:, None], "labels": Y}, ShapeError, "at least two samples a row"),
    (
        {"logits": Z, "logit_samples": np.zeros((3, 4, 5)), "labels": Y},
        ShapeError,
        r"`logit_samples` must have shape \(3, S, 2\) to match `logits`; got \(3, 4, 5\)",
    ),
    (
        {"logits": Z, "logit_samples": np.zeros((3, 2, 5)), "labels": Y},
        ShapeError,
        r"np.moveaxis\(logit_samples, -1, 1\)",
    ),
    ({"logits": Z, "labels": Y, "classes": "abc"}, ShapeError, "`classes` must name the 2 columns"),
    # values
    ({"logits": with_entry(Z, (1, 0), np.nan), "labels": Y}, DomainError, r"`logits` must be finite; got nan at index \(1, 0\)"),
    ({"logits": with_entry(Z, (2, 1), -np.inf), "labels": Y}, DomainError, r"-inf at index \(2, 1\).*-1e4"),
    ({"logits": with_entry(Z, 0, np.inf).astype(np.float16), "labels": Y}, DomainError, r"inf at index \(0, 0\) \(2 such"),
    ({"logits": [["a", "b"]] * 3, "labels": Y}, DomainError, "`logits` must hold numbers; got <U1 values such as"),
    ({"probabilities": [[1.2, -0.2]] * 3, "labels": Y}, DomainError, r"`probabilities` must not be negative; got -0.2 at index \(0, 1\) .*pass them as `logits`"),
    ({"probabilities": with_entry(P, 1, 0.6), "labels": Y}, DomainError, r"sum to 1 over the classes .*got 1.2 at index 1 \(1 such rows\).*pass them as `logits`"),
    ({"probabilities": P * 1.001, "labels": Y}, DomainError, "got 1.001 at index 0"),
    (
        {"probability_samples": np.stack([P, with_entry(P, 2, 0.7)], axis=1), "labels": Y},
        DomainError,
        r"`probability_samples` must sum to 1 .*got 1.4 at index \(2, 1\)",
    ),
    ({"logits": Z, "labels": [0, 2, 3]}, DomainError, r"`labels` must be one of the 2 classes \(0, 1\); got 2 at index 1 \(2 such entries\).*`unknown_label=2`"),
    ({"logits": Z, "labels": [0, 1, -1]}, DomainError, "`unknown_label=-1`"),
    ({"logits": Z, "labels": [0, 1, np.nan]}, DomainError, "got nan at index 2"),
    ({"logits": Z, "labels": [0, 0.5, 1]}, DomainError, "got 0.5 at index 1"),
    ({"logits": Z, "labels": ["0", "1", "0"]}, DomainError, "The class 0 is a int; use one type for both"),
    ({"logits": Z, "labels": ["cat", "dog", "dgo"], "classes": ["cat", "dog"]}, DomainError, "'dgo' at index 2.*Did you mean 'dog'"),
    ({"logits": Z, "labels": Y, "prediction": [0, 1, 2]}, DomainError, "`prediction` must be one of .*got 2 at index 2"),
    ({"prediction": ["a", "b"], "labels": ["a", "c"], "classes": ["a", "c"]}, DomainError, "`prediction` .*got 'b' at index 1.*`classes=`"),
    ({"logits": Z, "labels": Y, "confidence": {"mine": [0, np.nan, 1]}}, DomainError, r"`confidence\['mine'\]` must be finite; got nan at index 1"),
    ({"logits": Z, "labels": Y, "confidence": {3: [0, 0, 1]}}, InputError, "`confidence` must map names to arrays; got the key 3"),
    ({"logits": Z, "labels": Y, "loss": [0, -1, 1]}, DomainError, "`loss` must not be negative; got -1 at index 1"),
    ({"logits": Z, "labels": Y, "weight": [0, -1, 1]}, DomainError, "`weight` must not be negative; got -1 at index 1"),
    ({"logits": Z, "labels": Y, "features": [[np.nan]] * 3}, DomainError, "`features` must be finite"),
    ({"logits": Z, "labels": Y, "features": [["a"]] * 3}, DomainError, "`features` must hold numbers"),
    ({"logits": Z, "labels": Y, "classes": ["a", "a"]}, InputError, "`classes` must be distinct; got 'a' twice"),
    ({"logits": Z, "labels": Y, "classes": [["a"], ["b"]]}, InputError, "`classes` must hold hashable names"),
    ({"logits": Z, "labels": Y, "unknown_label": 1}, InputError, "`unknown_label` must not be one of the classes; got 1"),
    ({"prediction": ["a", "?"], "labels": ["a", "?"], "unknown_label": "?"}, InputError, "cannot be predicted"),
    ({"prediction": [0, 1], "labels": np.array([{}, {}], dtype=object)}, InputError, "`labels` must hold hashable values; got dict"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "error", "message"), CASES)
def test_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        Predictions(**arguments)


SELECTIONS = [
    ([True, False], ShapeError, "`selection` must have one entry for each of the 3 samples"),
    ([0, 3], DomainError, "`selection` must index the 3 samples; got 3 at index 1"),
    ([], ShapeError, "`selection` must keep at least one sample"),
    ([False] * 3, ShapeError, "`selection` must keep at least one sample"),
    ([[0]], InputError, "a mask .*, an index array or a slice"),
    ([0.5], InputError, "got float64 values"),
]


@pytest.mark.parametrize(("selection", "error", "message"), SELECTIONS)
def test_refused_selection(selection, error, message):
    with pytest.raises(error, match=message):
        Predictions(logits=Z, labels=Y).subset(selection)


def test_rounding_of_the_storage_is_accepted():
    rng = np.random.default_rng(0)
    for classes in (2, 10, 1000):
        p = rng.dirichlet(np.full(classes, 0.3), size=200)
        labels = np.zeros(200, int)
        for stored in (
            p.astype(np.float16),
            p.astype(np.float32),
            np.clip(p, 1e-5, None),
            p.round(5),
        ):
            assert Predictions(probabilities=stored, labels=labels).n == 200
