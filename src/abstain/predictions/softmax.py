"""Compute the softmax in float64, in log space and in blocks of rows, for any array library.

The log-probability of the top class is ``-log1p(odds of the other classes)``. This formula is
accurate even if the probability is rounded to 1.

The functions receive the array-API namespace `xp`, so they work with any array library and its
gradients.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from abstain._foundation.arrays import move_to_library_of
from abstain.typing import AnyArray

#: Number of float64 entries in a block in host memory (1 MiB). A block and its temporary arrays fit
#: into the cache of one core.
BLOCK_ENTRIES = 1 << 17
#: Number of entries in a block on a device (128 MiB). Large blocks reduce the cost of kernel
#: launches.
DEVICE_BLOCK_ENTRIES = 1 << 24


def row_blocks(n: int, n_columns: int, *, on_device: bool = False) -> Iterator[slice]:
    """Yield slices of rows with about one block of entries each."""
    step = max(1, (DEVICE_BLOCK_ENTRIES if on_device else BLOCK_ENTRIES) // max(1, n_columns))
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))


def widest_float_dtype(xp: Any, x: AnyArray) -> Any:
    """Return float64, or float32 if the library or the device of `x` has no float64."""
    # Only PyTorch has dtypes that depend on the device. JAX has one setting for the whole process.
    device = getattr(x, "device", None) if xp.__name__.endswith("torch") else None
    dtypes = xp.__array_namespace_info__().dtypes(device=device, kind="real floating")
    return dtypes.get("float64", xp.float32)


def log_scores(values: AnyArray, *, are_logits: bool, xp: Any = np) -> AnyArray:
    """Return float64 log-scores, whose softmax over the last axis equals the class probabilities.

    Log-scores are logits or logarithms of probabilities. The softmax also normalizes rows of
    probabilities that do not sum to 1. For NumPy, the result is a new array.
    """
    if xp is not np:
        floats = xp.astype(values, widest_float_dtype(xp, values))
        return floats if are_logits else safe_log(xp, floats)
    scores = values.astype(np.float64)
    if are_logits:
        return scores
    with np.errstate(divide="ignore"):
        return np.log(scores, out=scores)


def safe_log(xp: Any, x: AnyArray) -> AnyArray:
    """Return the logarithm of `x`. Where `x` is 0, the result is -inf and has no gradient."""
    # log(0) is never evaluated, because its infinite derivative times 0 would be NaN.
    is_positive = x > 0
    return fill_where(xp, ~is_positive, -np.inf, xp.log(fill_where(xp, ~is_positive, 1.0, x)))


def fill_where(xp: Any, mask: AnyArray, value: float, x: AnyArray) -> AnyArray:
    """Return `x`, with `value` where the mask is True."""
    if xp is np:
        return np.where(mask, value, x)
    return xp.where(mask, xp.full_like(x[..., :1], value), x)


def take_entry(xp: Any, x: AnyArray, index: AnyArray) -> AnyArray:
    """Return one entry of the last axis for each index, where `index` has size 1 on that axis."""
    if xp is np:
        return x[_row_index(x), index] if x.ndim == 2 else np.take_along_axis(x, index, axis=-1)
    # The sum contains only the entry at the index, so tied entries get no gradient.
    return xp.sum(fill_where(xp, ~_is_at_index(xp, x, index), 0.0, x), axis=-1, keepdims=True)


def replace_entry(xp: Any, x: AnyArray, index: AnyArray, value: float) -> AnyArray:
    """Replace the entries of `x` at `index` on the last axis. A NumPy array is overwritten."""
    if xp is np:
        if x.ndim == 2:
            x[_row_index(x), index] = value
        else:
            np.put_along_axis(x, index, value, axis=-1)
        return x
    return fill_where(xp, _is_at_index(xp, x, index), value, x)


def _row_index(x: AnyArray) -> AnyArray:
    """Return the row numbers as a column vector, for indexing.

    Indexing with row numbers is 10 times as fast as `np.take_along_axis`.
    """
    return np.arange(x.shape[0])[:, None]


def _is_at_index(xp: Any, x: AnyArray, index: AnyArray) -> AnyArray:
    return xp.astype(move_to_library_of(np.arange(x.shape[-1]), "classes", x), index.dtype) == index


def log_softmax(scores: AnyArray, *, xp: Any = np) -> AnyArray:
    """Return log-probabilities over the last axis, accurately for a top class near 1.

    Parameters
    ----------
    scores : array of shape (..., K)
        Float64 log-scores. A score of -inf means probability 0. Each row needs a finite entry.
    xp : namespace
        The array library of the scores.

    Returns
    -------
    array of shape (..., K)
        Log-probabilities, at most 0, and -inf where the score is -inf.

    Examples
    --------
    >>> import numpy as np
    >>> float(log_softmax(np.array([[50.0, 0.0]]))[0, 0])
    -1.9287498479639178e-22
    """
    top_index = xp.argmax(scores, axis=-1, keepdims=True)
    log_probabilities = scores - take_entry(xp, scores, top_index)
    other_probabilities = replace_entry(xp, xp.exp(log_probabilities), top_index, 0.0)
    log_probabilities -= xp.log1p(xp.sum(other_probabilities, axis=-1, keepdims=True))
    return log_probabilities


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
        Logarithms of the mean probabilities, with -inf where every sample has probability 0.

    Examples
    --------
    >>> import numpy as np
    >>> log_p = np.log(np.array([[[0.9, 0.1], [0.5, 0.5]]]))
    >>> np.exp(log_mean_probabilities(log_p)).round(3).tolist()
    [[0.7, 0.3]]
    """
    largest = xp.max(log_probabilities, axis=1, keepdims=True)
    largest = fill_where(xp, largest == -np.inf, 0.0, largest)
    mean = xp.mean(xp.exp(log_probabilities - largest), axis=1)
    return safe_log(xp, mean) + largest[:, 0, :]
