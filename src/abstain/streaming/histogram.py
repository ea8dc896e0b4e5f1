"""Summarize a stream in bounded memory by a histogram of weights and losses over confidence."""

from dataclasses import dataclass

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import read_only
from abstain._foundation.checks import weight_scale
from abstain.errors import InputError
from abstain.metrics.binned import NonemptyBins
from abstain.streaming.scales import (
    DEFAULT_BINS,
    Scale,
    bin_index,
    bin_starts,
    check_bins,
    check_scale,
    count_sorted_values,
)
from abstain.typing import AnyArray, Array, BoolArray, FloatArray, IntArray

#: Number of samples per bin above which sorting a batch is faster than computing each bin.
_MIN_SAMPLES_PER_BIN_TO_SORT = 4

#: Minimum size in bytes of the types that NumPy sorts fast.
_MIN_BYTES_TO_SORT = 4

_HINT = "Pass scale='log-odds' or scale='real' if the confidences are not probabilities."


@dataclass(frozen=True, eq=False)
class Histogram:
    """Number of samples, total weight, total loss and range of the confidences in each bin.

    States with the same scale and number of bins can be merged in any order. `init`, `update` and
    `merge` create this state.

    Attributes
    ----------
    scale : {"probability", "log-odds", "real"}
        Scale that maps confidences to bins.
    count : ndarray of shape (bins,)
        Number of samples in each bin.
    weight : ndarray of shape (bins,)
        Sum of the weights in each bin, or the number of samples if there are no weights.
    loss : ndarray of shape (bins,)
        Sum of weight times loss in each bin.
    min_confidence, max_confidence : ndarray of shape (bins,)
        Smallest and largest confidence in each bin, or inf and -inf in an empty bin. If the lowest
        and the highest confidence of a bin are equal, the bin is a tie group.
    largest_loss : float
        Largest loss of all samples.
    binary : bool
        Whether every loss is 0 or 1.
    precision : int
        Number of bits of the widest floating-point type of the confidences.

    Examples
    --------
    >>> from abstain import streaming
    >>> state = streaming.update(streaming.init(), [0.9, 0.8, 0.7], [0, 1, 0])
    >>> state.n, state.exact
    (3, True)
    """

    scale: str
    count: IntArray
    weight: FloatArray
    loss: FloatArray
    min_confidence: FloatArray
    max_confidence: FloatArray
    largest_loss: float = 0.0
    binary: bool = True
    precision: int = 16

    def __post_init__(self) -> None:
        """Make the arrays read-only, because several states share them."""
        for name in ("count", "weight", "loss", "min_confidence", "max_confidence"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @property
    def bins(self) -> int:
        """Number of bins."""
        return int(self.count.size)

    @property
    def n(self) -> int:
        """Number of samples, without samples of weight 0."""
        return int(self.count.sum())

    @property
    def has_several_confidences(self) -> BoolArray:
        """Mask of the bins with several distinct confidences."""
        is_range: BoolArray = self.min_confidence < self.max_confidence
        return is_range

    @property
    def exact(self) -> bool:
        """Whether metrics are exact, because no bin contains several distinct confidences."""
        return not bool(self.has_several_confidences.any())

    def updated(
        self, confidence: AnyArray, loss: AnyArray, weight: AnyArray | None = None
    ) -> "Histogram":
        """Return the state with a batch added. See `streaming.update`."""
        scores = checks.confidence(confidence)
        losses = checks.loss(loss, length=scores.size)
        weights = checks.weight(weight, length=scores.size, is_batch=True)
        if weights is not None:
            has_weight = weights > 0
            if not has_weight.any():
                return self
            scores = scores[has_weight]
            losses = losses[has_weight]
            weights = weights[has_weight]
        if self.scale == "probability":
            checks.unit_interval(scores, "confidence", hint=_HINT)
        bits = 8 * scores.dtype.itemsize if scores.dtype.kind == "f" else 64
        if weights is None and self._is_faster_to_sort(scores):
            is_failure = losses != 0
            is_binary = losses.dtype.kind == "b" or (losses[is_failure] == 1).all()
            if is_binary:
                successes = scores[~is_failure]
                failures = scores[is_failure]
                return self.merged(_histogram_of_sorted_batch(self, successes, failures, bits))
        scores = scores.astype(np.float64)
        losses = losses.astype(np.float64)
        return self.merged(_histogram_of_batch(self, scores, losses, weights, bits))

    def _is_faster_to_sort(self, scores: Array) -> bool:
        """Return whether sorting the confidences is faster than computing each bin."""
        is_large = scores.size >= _MIN_SAMPLES_PER_BIN_TO_SORT * self.bins
        return is_large and scores.itemsize >= _MIN_BYTES_TO_SORT

    def merged(self, other: "Histogram") -> "Histogram":
        """Return the state of both streams. See `streaming.merge`."""
        if (self.scale, self.bins) != (other.scale, other.bins):
            raise InputError(
                f"`a` and `b` must have the same bins; got {self.bins} bins on the scale "
                f"{self.scale!r} and {other.bins} bins on the scale {other.scale!r}"
            )
        return Histogram(
            self.scale,
            self.count + other.count,
            self.weight + other.weight,
            self.loss + other.loss,
            np.minimum(self.min_confidence, other.min_confidence),
            np.maximum(self.max_confidence, other.max_confidence),
            max(self.largest_loss, other.largest_loss),
            self.binary and other.binary,
            max(self.precision, other.precision),
        )


def init(*, bins: int = DEFAULT_BINS, scale: Scale = "probability") -> Histogram:
    """Create an empty histogram, the state of a stream in bounded memory.

    Parameters
    ----------
    bins : int, default=65536
        Number of bins, a power of two from 256 to 2^24. Each bin needs 40 bytes.
    scale : {"probability", "log-odds", "real"}, default="probability"
        Scale that maps confidences to bins. "probability" is for values in [0, 1], with narrow bins
        near 0 and 1. "log-odds" has bins of equal width from -64 to 64. "real" is for any number,
        with 64 octaves on each side of 0.

    Returns
    -------
    Histogram
        A state without samples.

    Raises
    ------
    InputError
        If `bins` is not a power of two in this range, or if no scale has this name.

    Notes
    -----
    On the scales "probability" and "real", 0 has a separate bin. On the scale "probability", half
    of the bins have equal width. The other half of the bins covers p from 2^-33 to 1/2 and,
    symmetrically, 1 - p for p above 1/2, with bins of equal width in each octave. Values above 1 -
    2^-33 share the bin of 1. With 65,536 bins, every bfloat16 probability from 2^-33 and every
    float16 probability from 1/32 has a separate bin, so metrics are exact. More extreme
    confidences share the outermost bins, so the limits of metrics are wider.

    Examples
    --------
    >>> from abstain import streaming
    >>> streaming.init(scale="real").bins
    65536
    """
    count = check_bins(bins)
    name = check_scale(scale)
    zeros = np.zeros(count)
    return Histogram(
        name,
        np.zeros(count, dtype=np.int64),
        zeros,
        zeros,
        np.full(count, np.inf),
        np.full(count, -np.inf),
    )


def _histogram_of_batch(
    state: Histogram,
    confidence: FloatArray,
    loss: FloatArray,
    weight: FloatArray | None,
    bits: int,
) -> Histogram:
    """Return the histogram of one batch, with the scale and bins of `state`."""
    index = bin_index(np, confidence, scale=state.scale, bins=state.bins)
    min_confidence = np.full(state.bins, np.inf)
    max_confidence = np.full(state.bins, -np.inf)
    np.minimum.at(min_confidence, index, confidence)
    np.maximum.at(max_confidence, index, confidence)
    count = np.bincount(index, minlength=state.bins)
    if weight is None:
        weight_by_bin = count.astype(np.float64)
        loss_by_bin = _sum_by_bin(index, loss, state.bins)
    else:
        weight_by_bin = _sum_by_bin(index, weight, state.bins)
        loss_by_bin = _sum_by_bin(index, loss * weight, state.bins)
    return Histogram(
        state.scale,
        count,
        weight_by_bin,
        loss_by_bin,
        min_confidence,
        max_confidence,
        largest_loss=float(loss.max()),
        binary=bool(((loss == 0) | (loss == 1)).all()),
        precision=bits,
    )


def _histogram_of_sorted_batch(
    state: Histogram, successes: Array, failures: Array, bits: int
) -> Histogram:
    """Return the histogram of one batch. The confidences are sorted in place."""
    starts = bin_starts(state.scale, state.bins, successes.dtype)
    successes.sort()
    failures.sort()
    success_counts = count_sorted_values(successes, starts)
    failure_counts = count_sorted_values(failures, starts)
    count = success_counts.count + failure_counts.count
    return Histogram(
        state.scale,
        count,
        count.astype(np.float64),
        failure_counts.count.astype(np.float64),
        np.minimum(success_counts.min_value, failure_counts.min_value),
        np.maximum(success_counts.max_value, failure_counts.max_value),
        largest_loss=float(failures.size > 0),
        precision=bits,
    )


def _sum_by_bin(index: IntArray, values: FloatArray, bins: int) -> FloatArray:
    sums: Array = np.bincount(index, weights=values, minlength=bins)
    return sums


def nonempty_bins(state: Histogram) -> NonemptyBins:
    """Return the bins that contain samples, in descending order of confidence."""
    indices = np.flatnonzero(state.count)[::-1]
    scale = weight_scale(float(state.weight.sum()), state.n)
    return NonemptyBins(
        state.min_confidence[indices],
        state.max_confidence[indices],
        state.weight[indices] * scale,
        state.loss[indices] * scale,
        state.count[indices],
        state.has_several_confidences[indices],
        state.largest_loss,
        state.precision,
    )
