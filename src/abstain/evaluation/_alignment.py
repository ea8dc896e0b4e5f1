"""The same samples in the same order: by their names where they have some, else as they stand."""

import numpy as np

from abstain.errors import InputError
from abstain.predictions import Predictions
from abstain.typing import Array


def differ(one: Array | None, two: Array | None) -> bool:
    """Tell whether both are known and not the same."""
    return one is not None and two is not None and not np.array_equal(one, two)


def named_apart(one: Array | None, two: Array | None) -> bool:
    """Tell whether names say that samples differ.

    Whole numbers without any in common do not: they number the rows of one file.
    """
    if one is None or two is None or np.array_equal(one, two):
        return False
    numbers = all(all(name.isdecimal() for name in own) for own in (one, two))
    return not numbers or bool(np.isin(one, two).any())


def names_of(part: Predictions) -> Array | None:
    """Return the names of the samples as text."""
    return None if part.ids is None else np.asarray(part.ids).astype(str)


def in_order_of(first: Predictions, part: Predictions) -> Predictions:
    """Put samples into the order of the first part where the names of both are the same."""
    mine, theirs = names_of(first), names_of(part)
    if part is first or mine is None or theirs is None or mine.size != theirs.size:
        return part
    if np.array_equal(mine, theirs):
        return part
    if np.unique(mine).size < mine.size or not np.array_equal(np.sort(mine), np.sort(theirs)):
        return part
    rows = np.empty(mine.size, np.int64)
    rows[np.argsort(mine)] = np.argsort(theirs)
    ordered = part.subset(rows)
    # Names that are row numbers of two files may be the same for other samples.
    return part if differ(first.labels, ordered.labels) else ordered


def aligned(
    first: Predictions, part: Predictions, name: str, *, own_weights: bool = False
) -> Predictions:
    """Return a part in the order of the first, or refuse samples that are not the same.

    Weights have to be the same too, unless each method may have its own.
    """
    if part is first:
        return part
    part = in_order_of(first, part)
    why = _why_not_the_same(first, part)
    if why:
        msg = (
            f"{name} must hold the same samples as the other methods, so that they can be "
            f"compared in pairs; {why}. Name the samples by an id column, or compare data sets "
            "apart."
        )
        raise InputError(msg)
    mine, theirs = (np.ones(p.n) if p.weight is None else p.weight for p in (first, part))
    if not own_weights and not np.array_equal(mine, theirs):
        msg = (
            f"{name} must give the samples the same weights as the other methods do; they differ, "
            f"first in row {int(np.argmax(mine != theirs))}. Where each method leaves out samples "
            "of its own (weight 0), pass `own_weights=True`."
        )
        raise InputError(msg)
    return part


def _why_not_the_same(first: Predictions, part: Predictions) -> str:
    """Return how two parts differ in their samples, or an empty string."""
    if part.n != first.n:
        return f"got {part.n:,} and {first.n:,} samples"
    mine, theirs = names_of(first), names_of(part)
    if mine is not None and theirs is not None and named_apart(mine, theirs):
        if np.unique(mine).size < mine.size:
            return "several samples have the same name, and the order of the names differs"
        missing = np.setdiff1d(mine, theirs)
        return f"the sample {str(missing[0])!r} is not among them" if missing.size else ""
    if differ(first.labels, part.labels):
        row = int(np.argmax(np.asarray(first.labels) != np.asarray(part.labels)))
        return f"the labels differ, first in row {row}"
    return ""


def paired_by_name(first: Predictions, part: Predictions) -> bool:
    """Tell whether samples that are in one order now have the same names."""
    mine, theirs = names_of(first), names_of(part)
    return mine is not None and theirs is not None and np.array_equal(mine, theirs)
