"""Softmax work in float64 and in log space, by blocks of rows, for the arrays of any library.

Everything here keeps what a plain softmax rounds away: the top class's logarithm is
``-log1p(sum of the others)``, so it stays apart from 0 as long as the others do not vanish.

Written against the array API and called with its namespace `xp`, so that an array is worked on
where it lies and, in libraries that differentiate, gradients flow. NumPy blocks are overwritten
where that saves a pass; a function that does so says it.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from abstain._foundation.arrays import move_to_library_of
from abstain.typing import AnyArray

#: Entries held in float64 at a time on the host: 1 MiB, so a block and what is made of it stay in
#: the cache of one processor, and no memory is asked for anew at each step.
BLOCK_ENTRIES = 1 << 17
#: On a device every step of a block costs a launch: 128 MiB make it small beside the work.
DEVICE_BLOCK_ENTRIES = 1 << 24


def row_blocks(n: int, width: int, *, on_device: bool = False) -> Iterator[slice]:
    """Cut n rows of `width` entries into slices of about a block's entries."""
    step = max(1, (DEVICE_BLOCK_ENTRIES if on_device else BLOCK_ENTRIES) // max(1, width))
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))


def widest(xp: Any, x: AnyArray) -> Any:
    """Return float64, or float32 where the library or the device of `x` has no float64."""
    # Only PyTorch's devices differ in what they can hold; JAX decides for the whole process.
    device = getattr(x, "device", None) if xp.__name__.endswith("torch") else None
    known = xp.__array_namespace_info__().dtypes(device=device, kind="real floating")
    return known.get("float64", xp.float32)


def log_scores(values: AnyArray, *, are_logits: bool, xp: Any = np) -> AnyArray:
    """Return a float64 array whose softmax over the last axis is the class probability.

    Logits are that already; probabilities become their logarithms (0 becomes -inf), whose
    softmax divides each row by its sum and so removes the rounding of the storage. The array
    is new in NumPy.
    """
    if xp is not np:
        wide = xp.astype(values, widest(xp, values))
        return wide if are_logits else log(xp, wide)
    out = values.astype(np.float64)
    if are_logits:
        return out
    with np.errstate(divide="ignore"):
        return np.log(out, out=out)


def log(xp: Any, x: AnyArray) -> AnyArray:
    """Return the logarithm; -inf at 0, where no gradient flows."""
    # The logarithm of 0 is never taken: its infinite slope times 0 would be a gradient of NaN.
    above = x > 0
    return filled(xp, ~above, -np.inf, xp.log(filled(xp, ~above, 1.0, x)))


def filled(xp: Any, mask: AnyArray, value: float, x: AnyArray) -> AnyArray:
    """Return `x` with `value` where the mask is true."""
    if xp is np:
        return np.where(mask, value, x)
    return xp.where(mask, xp.full_like(x[..., :1], value), x)


def entry(xp: Any, x: AnyArray, at: AnyArray) -> AnyArray:
    """Return the entries of the last axis at the indices `at`, of size 1 on that axis."""
    if xp is np:
        return x[_rows(x), at] if x.ndim == 2 else np.take_along_axis(x, at, axis=-1)
    # A sum over one entry, so that ties send no gradient to any other.
    return xp.sum(filled(xp, ~_marked(xp, x, at), 0.0, x), axis=-1, keepdims=True)


def without(xp: Any, x: AnyArray, at: AnyArray, value: float) -> AnyArray:
    """Return `x` with `value` at the indices `at` of the last axis; NumPy overwrites `x`."""
    if xp is np:
        if x.ndim == 2:
            x[_rows(x), at] = value
        else:
            np.put_along_axis(x, at, value, axis=-1)
        return x
    return filled(xp, _marked(xp, x, at), value, x)


def _rows(x: AnyArray) -> AnyArray:
    """Return the rows of a table as an index: a tenth of what NumPy's functions of an axis take."""
    return np.arange(x.shape[0])[:, None]


def _marked(xp: Any, x: AnyArray, at: AnyArray) -> AnyArray:
    return xp.astype(move_to_library_of(np.arange(x.shape[-1]), "classes", x), at.dtype) == at


def log_softmax(scores: AnyArray, *, xp: Any = np) -> AnyArray:
    """Return log-probabilities over the last axis, exact for a top class near 1.

    Parameters
    ----------
    scores : array of shape (..., K)
        Float64 log-scores; -inf marks probability 0, not all of a row may be -inf.
    xp : namespace
        The array library of the scores.

    Returns
    -------
    array of shape (..., K)
        Never above 0; -inf where the score is.

    Examples
    --------
    >>> import numpy as np
    >>> float(log_softmax(np.array([[50.0, 0.0]]))[0, 0])
    -1.9287498479639178e-22
    """
    top = xp.argmax(scores, axis=-1, keepdims=True)
    shifted = scores - entry(xp, scores, top)
    others = without(xp, xp.exp(shifted), top, 0.0)
    shifted -= xp.log1p(xp.sum(others, axis=-1, keepdims=True))
    return shifted


def log_mean_probabilities(log_probabilities: AnyArray, *, xp: Any = np) -> AnyArray:
    """Return the logarithm of the mean probability over the samples.

    Parameters
    ----------
    log_probabilities : array of shape (rows, S, K)
        Log-probabilities of each Monte-Carlo sample.
    xp : namespace
        The array library of the log-probabilities.

    Returns
    -------
    array of shape (rows, K)
        -inf where every sample gives probability 0.

    Examples
    --------
    >>> import numpy as np
    >>> log_p = np.log(np.array([[[0.9, 0.1], [0.5, 0.5]]]))
    >>> np.exp(log_mean_probabilities(log_p)).round(3).tolist()
    [[0.7, 0.3]]
    """
    largest = xp.max(log_probabilities, axis=1, keepdims=True)
    largest = filled(xp, largest == -np.inf, 0.0, largest)
    mean = xp.mean(xp.exp(log_probabilities - largest), axis=1)
    return log(xp, mean) + largest[:, 0, :]
