"""A stream of (confidence, loss) in bounded memory: counts and loss mass in ordered bins."""

from dataclasses import dataclass

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import read_only
from abstain._foundation.weights import weight_scale
from abstain.errors import InputError
from abstain.metrics.blocks import FilledBins
from abstain.streaming.edges import filled, lowest
from abstain.streaming.scales import DEFAULT_BINS, Scale, bin_index, checked_bins, checked_scale
from abstain.typing import AnyArray, Array, BoolArray, FloatArray, IntArray

#: From so many samples a bin on it is faster to sort them than to find the bin of each.
_SORTED = 4

#: Bytes of the types that sort fast.
_WIDE = 4

_HINT = "Pass scale='log-odds' or scale='real' for confidences that are no probabilities."


@dataclass(frozen=True, eq=False)
class Histogram:
    """What is kept of a stream: for each bin how many, how wrong, and between which confidences.

    States of the same scale and number of bins can be merged in any order. Made by `init`,
    `update` and `merge`.

    Attributes
    ----------
    scale : {"probability", "log-odds", "real"}
        How confidences are mapped to bins.
    count : ndarray of shape (bins,)
        Number of samples.
    weight : ndarray of shape (bins,)
        Sum of the weights; the number of samples without any.
    loss : ndarray of shape (bins,)
        Sum of weight x loss.
    least, most : ndarray of shape (bins,)
        The least and the largest confidence; inf and -inf in an empty bin. Where both are one
        number the bin is a genuine tie, whose effect is known exactly.
    largest_loss : float
        The largest loss of any sample.
    binary : bool
        Whether every loss is 0 or 1.
    precision : int
        Bits of the widest floating type of the confidences: thresholds are compared in it.

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
    least: FloatArray
    most: FloatArray
    largest_loss: float = 0.0
    binary: bool = True
    precision: int = 16

    def __post_init__(self) -> None:
        """Seal the arrays: states share them."""
        for name in ("count", "weight", "loss", "least", "most"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @property
    def bins(self) -> int:
        """Number of bins."""
        return int(self.count.size)

    @property
    def n(self) -> int:
        """Number of samples, those of weight 0 left out."""
        return int(self.count.sum())

    @property
    def spread(self) -> BoolArray:
        """Which bins hold more than one confidence, so that their inner order is not known."""
        out: BoolArray = self.least < self.most
        return out

    @property
    def exact(self) -> bool:
        """Whether every bin holds one confidence, so that nothing was lost."""
        return not bool(self.spread.any())

    def updated(
        self, confidence: AnyArray, loss: AnyArray, weight: AnyArray | None = None
    ) -> "Histogram":
        """Return the state with a batch too: see `streaming.update`."""
        c = checks.confidence(confidence)
        x = checks.loss(loss, length=c.size)
        w = checks.weight(weight, length=c.size, is_batch=True)
        if w is not None:
            kept = w > 0
            c, x, w = c[kept], x[kept], w[kept]
            if not c.size:
                return self
        if self.scale == "probability":
            checks.unit_interval(c, "confidence", hint=_HINT)
        bits = 8 * c.dtype.itemsize if c.dtype.kind == "f" else 64
        if w is None and c.size >= _SORTED * self.bins and c.itemsize >= _WIDE:
            failed = x != 0
            if x.dtype.kind == "b" or (x[failed] == 1).all():
                return self.merged(_of_sorted(self, c[~failed], c[failed], bits))
        c, x = c.astype(np.float64), x.astype(np.float64)
        return self.merged(_of_batch(self, c, x, w, bits))

    def merged(self, other: "Histogram") -> "Histogram":
        """Return the state of both streams: see `streaming.merge`."""
        if (self.scale, self.bins) != (other.scale, other.bins):
            shown = [f"{s.bins} bins on the scale {s.scale!r}" for s in (self, other)]
            raise InputError(f"`a` and `b` must have the same bins; got {shown[0]} and {shown[1]}")
        return Histogram(
            self.scale,
            self.count + other.count,
            self.weight + other.weight,
            self.loss + other.loss,
            np.minimum(self.least, other.least),
            np.maximum(self.most, other.most),
            max(self.largest_loss, other.largest_loss),
            self.binary and other.binary,
            max(self.precision, other.precision),
        )


def init(*, bins: int = DEFAULT_BINS, scale: Scale = "probability") -> Histogram:
    """Make the state of an empty stream.

    Answers: what do I start from, before the first sample?

    Parameters
    ----------
    bins : int, default=65536
        A power of two from 256 to 2^24; 40 bytes each.
    scale : {"probability", "log-odds", "real"}, default="probability"
        How confidences become bins. "probability": for [0, 1]; half of the bins are even, half
        follow the log-odds (32 octaves of p below 1/2 and of 1 - p above), so that they are
        fine both where the failures are and where confident probabilities crowd. "log-odds":
        even steps from -64 to 64. "real": any number, 64 octaves on either side of 0.

    Returns
    -------
    Histogram
        With no samples.

    Raises
    ------
    InputError
        If `bins` is no such power of two, or `scale` is not one of the three names.

    Notes
    -----
    0 has its own bin on the scales "probability" and "real", and so has 1 on "probability", down
    to 1 - 2^-33. With 65536 bins every bfloat16 probability from 2^-33 up and every float16 one
    from 1/32 up has its own bin, so nothing is lost for them at all. Confidences beyond the
    outermost octaves share the last bins: the bounds get wider, never wrong.

    Examples
    --------
    >>> from abstain import streaming
    >>> streaming.init(scale="real").bins
    65536
    """
    count, name = checked_bins(bins), checked_scale(scale)
    nothing = np.zeros(count)
    return Histogram(
        name,
        np.zeros(count, dtype=np.int64),
        nothing,
        nothing,
        np.full(count, np.inf),
        np.full(count, -np.inf),
    )


def _of_batch(
    state: Histogram, c: FloatArray, x: FloatArray, w: FloatArray | None, bits: int
) -> Histogram:
    index = bin_index(np, c, scale=state.scale, bins=state.bins)
    least, most = np.full(state.bins, np.inf), np.full(state.bins, -np.inf)
    np.minimum.at(least, index, c)
    np.maximum.at(most, index, c)
    count = np.bincount(index, minlength=state.bins)
    return Histogram(
        state.scale,
        count,
        _summed(index, w, state.bins) if w is not None else count.astype(np.float64),
        _summed(index, x if w is None else x * w, state.bins),
        least,
        most,
        float(x.max()),
        bool(((x == 0) | (x == 1)).all()),
        bits,
    )


def _of_sorted(state: Histogram, right: Array, wrong: Array, bits: int) -> Histogram:
    """Count successes and failures, which are sorted in their place."""
    first = lowest(state.scale, state.bins, right.dtype)
    right.sort()
    wrong.sort()
    good, bad = filled(right, first), filled(wrong, first)
    count = good.count + bad.count
    return Histogram(
        state.scale,
        count,
        count.astype(np.float64),
        bad.count.astype(np.float64),
        np.minimum(good.least, bad.least),
        np.maximum(good.most, bad.most),
        float(wrong.size > 0),
        precision=bits,
    )


def _summed(index: IntArray, x: FloatArray, bins: int) -> FloatArray:
    out: Array = np.bincount(index, weights=x, minlength=bins)
    return out


def blocks_of(state: Histogram) -> FilledBins:
    """Return the bins that hold samples, most confident first."""
    held = np.flatnonzero(state.count)[::-1]
    scale = weight_scale(float(state.weight.sum()), state.n)
    return FilledBins(
        state.least[held],
        state.most[held],
        state.weight[held] * scale,
        state.loss[held] * scale,
        state.count[held],
        state.spread[held],
        state.largest_loss,
        state.precision,
    )
