"""Ratios of classes from predicted classes."""

import numpy as np
import pytest

from abstain import shift
from abstain.errors import DomainError, InputError, ShapeError

TABLE = np.array([[0.8, 0.15, 0.05], [0.1, 0.7, 0.2], [0.05, 0.15, 0.8]])  # of true: predicted


def drawn(rng, n, share):
    labels = rng.choice(3, n, p=share)
    prediction = (rng.random(n)[:, None] > np.cumsum(TABLE, 1)[labels]).sum(axis=1)
    return labels, np.minimum(prediction, 2)


def test_exact_shares_give_the_exact_ratio():
    """With the counts of the matrix itself the solution is the truth."""
    source, target = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.2, 0.6])
    counts = np.rint(2000 * source[:, None] * TABLE).astype(int)  # of (true, predicted)
    labels = np.repeat(np.repeat(np.arange(3), 3), counts.ravel())
    prediction = np.repeat(np.tile(np.arange(3), 3), counts.ravel())
    new = np.repeat(np.arange(3), np.rint(2000 * target @ TABLE).astype(int))
    class_ratios = shift.label_shift(labels, prediction, new, rng=0)
    assert class_ratios.ratio == pytest.approx(target / source, abs=1e-9)
    assert class_ratios.ratios([2, 0]).values == pytest.approx([3.0, 0.4])
    assert class_ratios.ratios([2, 0]).largest == pytest.approx(3.0)
    assert not class_ratios.doubtful


def test_the_standard_error_is_the_spread_of_the_estimates():
    rng = np.random.default_rng(4)
    source, target = np.array([0.4, 0.4, 0.2]), np.array([0.2, 0.4, 0.4])
    ratios, errors = [], []
    for seed in range(60):
        labels, prediction = drawn(rng, 1000, source)
        class_ratios = shift.label_shift(
            labels, prediction, drawn(rng, 800, target)[1], resamples=40, rng=seed
        )
        ratios.append(class_ratios.ratio)
        errors.append(class_ratios.standard_error)
    spread = np.std(ratios, axis=0, ddof=1)
    # The spread of 60 draws is known within a tenth.
    assert np.mean(errors, axis=0) == pytest.approx(spread, rel=0.35)
    assert np.mean(ratios, axis=0) == pytest.approx(target / source, abs=0.05)


def test_a_matrix_that_tells_nothing_raises_an_error_with_the_classes():
    rng = np.random.default_rng(5)
    labels = rng.choice(["cat", "dog", "eel"], 600)
    guessed = np.where(labels == "eel", "eel", rng.choice(["cat", "dog"], 600))
    with pytest.raises(DomainError, match=r"singular value.*'(cat|dog)' and '(cat|dog)'"):
        shift.label_shift(labels, guessed, guessed, rng=0)


def test_what_is_no_label_shift_is_doubtful():
    """Class 1 is never predicted any more, though classes 0 and 2 are taken for it."""
    labels, prediction = drawn(np.random.default_rng(6), 4000, np.full(3, 1 / 3))
    class_ratios = shift.label_shift(labels, prediction, np.repeat([0, 2], 500), rng=0)
    assert class_ratios.doubtful == (1,)
    assert class_ratios.ratio[1] == 0 > class_ratios.raw[1]


def test_classes_that_do_not_come_up_are_no_reason_for_doubt():
    """Half of the ratios are 0, so about half of these come out below 0 by chance."""
    rng, size = np.random.default_rng(9), 12
    source, target = np.full(size, 1 / size), np.repeat([0.0, 2 / size], size // 2)

    def seen(labels):
        other = (labels + rng.integers(1, size, labels.size)) % size
        return np.where(rng.random(labels.size) < 0.2, other, labels)

    doubted = negative = 0
    for seed in range(40):
        labels, new = (rng.choice(size, 1200, p=share) for share in (source, target))
        class_ratios = shift.label_shift(labels, seen(labels), seen(new), resamples=40, rng=seed)
        negative += bool((class_ratios.raw < 0).any())
        doubted += bool(class_ratios.doubtful)
    assert negative > 30
    assert doubted <= 2 + 4 * np.sqrt(2)


def test_bad_classes_raise_an_error():
    with pytest.raises(DomainError, match="'0' of type str, where the labels hold int 0"):
        shift.label_shift([0, 1], [0, 1], ["0", "1"])
    with pytest.raises(DomainError, match=r"`labels` must name a class .* None at index 0"):
        shift.label_shift(np.array([None, "a"], dtype=object), ["a", "a"], ["a"])
    with pytest.raises(DomainError, match=r"`deployed` must name a class .* nan at index 1"):
        shift.label_shift([0, 1], [0, 1], [0.0, float("nan")])
    with pytest.raises(InputError, match="`resamples` must be at least 2"):
        shift.label_shift([0, 1], [0, 1], [0], resamples=1)
    with pytest.raises(DomainError, match=r"`deployed` .* got 2"):
        shift.label_shift([0, 1], [0, 1], [2])
    with pytest.raises(ShapeError, match="`prediction`"):
        shift.label_shift([0, 1], [0, 1, 1], [0])
    with pytest.raises(ShapeError, match="`deployed`"):
        shift.label_shift([0, 1], [0, 1], [])
    class_ratios = shift.label_shift([0, 1] * 50, [0, 1] * 50, [0, 1], rng=0)
    with pytest.raises(DomainError, match=r"`labels` .* got 7"):
        class_ratios.ratios([7])
    gone = shift.label_shift([0, 1] * 50, [0, 1] * 50, [0], rng=0)
    with pytest.raises(DomainError, match="zero everywhere"):
        gone.ratios([1, 1])
