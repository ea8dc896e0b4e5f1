"""The confusion matrix with a column for no answer."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import confusion_matrix

from abstain.errors import DomainError, InputError, ShapeError
from abstain.metrics.selective_confusion import selective_confusion_matrix

NAMES = ("ant", "bee", "cow")


@st.composite
def answers(draw):
    n = draw(st.integers(1, 30))
    name = st.lists(st.sampled_from(NAMES), min_size=n, max_size=n)
    accepted = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    weight = draw(st.lists(st.integers(1, 3), min_size=n, max_size=n))
    return np.array(draw(name)), np.array(draw(name)), np.array(accepted), np.array(weight)


@given(data=answers())
def test_the_accepted_are_counted_as_usual_and_the_others_by_class(data):
    labels, prediction, accepted, weight = data
    result = selective_confusion_matrix(labels, prediction, accepted, classes=NAMES)
    assert result.classes == NAMES
    expected = np.zeros((3, 3))
    if accepted.any():
        expected = confusion_matrix(labels[accepted], prediction[accepted], labels=NAMES)
    np.testing.assert_array_equal(result.answered, expected)
    np.testing.assert_array_equal(
        result.abstained, [(labels[~accepted] == name).sum() for name in NAMES]
    )
    # A weight counts a sample that many times.
    repeated = [np.repeat(x, weight) for x in (labels, prediction, accepted)]
    weighted = selective_confusion_matrix(
        labels, prediction, accepted, classes=NAMES, weight=weight
    )
    again = selective_confusion_matrix(*repeated, classes=NAMES)
    np.testing.assert_array_equal(weighted.counts, again.counts)


@given(data=answers())
def test_normalized_shares_add_up_to_one(data):
    labels, prediction, accepted, _ = data
    for way, axis in (("true", 1), ("pred", 0), ("all", None)):
        plain = selective_confusion_matrix(labels, prediction, accepted, classes=NAMES)
        shares = selective_confusion_matrix(
            labels, prediction, accepted, classes=NAMES, normalize=way
        )
        total = np.asarray(plain.counts.sum(axis=axis))
        np.testing.assert_allclose(
            shares.counts.sum(axis=axis), np.where(total > 0, 1.0, np.nan), rtol=1e-12
        )
    by_class = selective_confusion_matrix(
        labels, prediction, accepted, classes=NAMES, normalize="all"
    ).by_class
    np.testing.assert_allclose(by_class, plain.by_class, rtol=1e-12)


def test_what_is_rejected_may_be_anything():
    result = selective_confusion_matrix([0, 1, 1], [0, -1, 1], [True, False, True])
    assert result.classes == (0, 1)
    assert result.counts.tolist() == [[1, 0, 0], [0, 1, 1]]
    assert result.counts.dtype.kind == "i"
    assert not result.counts.flags.writeable
    nothing = selective_confusion_matrix(["a", "b"], [None, None], [0, 0])
    assert nothing.counts.tolist() == [[0, 0, 1], [0, 0, 1]]


def test_the_frame_has_a_row_for_each_cell():
    frame = selective_confusion_matrix(["a", "b"], ["a", "a"], [True, False]).frame()
    assert frame.rows() == [
        ("a", "a", False, 1),
        ("a", "b", False, 0),
        ("a", None, True, 0),
        ("b", "a", False, 0),
        ("b", "b", False, 0),
        ("b", None, True, 1),
    ]


@pytest.mark.parametrize(
    ("arguments", "options", "error", "match"),
    [
        ((["a"], ["a", "b"], [1]), {}, ShapeError, "`prediction` must have one entry"),
        ((["a"], ["a"], [1, 0]), {}, ShapeError, "`accepted` must have one entry"),
        ((["a"], ["a"], [0.5]), {}, DomainError, "`accepted` must be True or False"),
        ((["a"], ["a"], [1]), {"normalize": "row"}, InputError, "`normalize` must be one of"),
        ((["a"], ["a"], [1]), {"classes": ["b"]}, DomainError, "`labels` must be one of"),
        ((["a"], ["c"], [1]), {"classes": ["a"]}, DomainError, "`prediction` must be one of"),
        ((["1"], [1], [1]), {}, DomainError, "must have names of the same type"),
        ((["a"], ["a"], [1]), {"weight": [-1]}, DomainError, "`weight` must not be negative"),
        ((["a"], ["a"], [1]), {"classes": ["a", "a"]}, InputError, "distinct"),
    ],
)
def test_refusals(arguments, options, error, match):
    with pytest.raises(error, match=match):
        selective_confusion_matrix(*arguments, **options)
