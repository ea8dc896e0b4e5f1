"""Compute reliability curves, which compare accuracy and mean confidence in bins of confidence."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import as_double_like, namespace, without_gradient
from abstain._foundation.frames import AnyFrame, Backend, convert_frame
from abstain._foundation.scored import Scored, output_reference, validate_samples
from abstain.curves._vertices import CurveArrays
from abstain.curves.bin_sums import BinSums, bin_sums, equal_mass_edges
from abstain.typing import AnyArray, FloatArray, IntArray

Binning = Literal["equal_width", "equal_mass"]
BINNINGS = ("equal_width", "equal_mass")

CONFIDENCE_HINT = (
    "Calibration requires the probability of a correct prediction; calibrate the confidence first, "
    "or use a rank metric."
)
LOSS_HINT = "A correctness is one minus a loss in [0, 1]."


@dataclass(frozen=True, eq=False)
class ReliabilityCurve(CurveArrays):
    """Accuracy and mean confidence in each bin of confidence.

    Bin j contains the confidences in (edges[j], edges[j + 1]], and the first bin also contains its
    left edge. Every confidence in [0, 1] is in exactly one bin, and 1.0 is in the last bin.

    Attributes
    ----------
    binning : {"equal_width", "equal_mass"}
        Kind of bins.
    edges : array of shape (b + 1,)
        Edges of the bins in increasing order, from 0 to 1.
    count : array of shape (b,)
        Number of samples.
    weight : array of shape (b,)
        Total weight of the samples, or their number if there are no weights.
    confidence : array of shape (b,)
        Weighted mean confidence, or NaN for an empty bin.
    accuracy : array of shape (b,)
        One minus the weighted mean loss, or NaN for an empty bin.
    total : float
        Weight of all samples.
    """

    binning: Binning
    edges: FloatArray
    count: IntArray
    weight: FloatArray
    confidence: FloatArray
    accuracy: FloatArray
    total: float

    scalar_fields: ClassVar[frozenset[str]] = frozenset({"binning", "total"})

    @property
    def mean_confidence(self) -> float:
        """Weighted mean confidence of all samples."""
        is_nonempty = self.weight > 0
        return float(self.weight[is_nonempty] @ self.confidence[is_nonempty] / self.total)

    @property
    def mean_accuracy(self) -> float:
        """One minus the weighted mean loss of all samples."""
        is_nonempty = self.weight > 0
        return float(self.weight[is_nonempty] @ self.accuracy[is_nonempty] / self.total)

    def frame(self, *, backend: Backend = "polars") -> AnyFrame:
        """Return a dataframe with one row per bin, where values of empty bins are null."""
        import polars as pl

        columns = self.to_numpy_arrays()
        edges = columns.pop("edges")
        ends = {"low": edges[:-1], "high": edges[1:]}
        return convert_frame(pl.DataFrame({**ends, **columns}, nan_to_null=True), backend)

    def __len__(self) -> int:
        """Return the number of bins."""
        return len(self.count)


def reliability_curve(
    confidence: AnyArray,
    loss: AnyArray,
    *,
    bins: int = 15,
    binning: Binning = "equal_width",
    weight: AnyArray | None = None,
) -> ReliabilityCurve:
    """Compute the accuracy and the mean confidence in bins of confidence.

    Answers: is the prediction correct for a share p of the samples with confidence p?

    Parameters
    ----------
    confidence : array of shape (n,)
        Probability of a correct prediction, in [0, 1].
    loss : array of shape (n,)
        In [0, 1]; 1 for an error under 0/1 loss.
    bins : int, default=15
        Number of bins.
    binning : {"equal_width", "equal_mass"}, default="equal_width"
        Kind of bins. "equal_width" bins have equal width. "equal_mass" bins have about equal
        weight.
    weight : array of shape (n,), optional
        Frequency weights. A sample with an integer weight m counts as m samples.

    Returns
    -------
    ReliabilityCurve
        Arrays of the same library as the input, with one entry per bin. Empty equal-mass bins are
        removed.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a value is NaN or infinite, a confidence or loss is outside [0, 1], or a weight is
        negative.
    InputError
        If `bins` is not a positive integer or `binning` is unknown.

    Notes
    -----
    Bins include their upper edge, and the first bin also includes 0. Samples of equal confidence
    are in the same bin. With equal-mass bins, a tie group is in the bin that contains the midpoint
    of its cumulative weight. The cost is one pass over the samples, plus one sort for equal-mass
    bins.

    References
    ----------
    .. [1] Guo et al. (2017), On calibration of modern neural networks, section 2,
       https://arxiv.org/abs/1706.04599
    .. [2] Nguyen and O'Connor (2015), Posterior calibration and exploratory analysis for natural
       language processing models (equal mass), https://arxiv.org/abs/1508.05154

    Examples
    --------
    >>> from abstain.curves import reliability_curve
    >>> curve = reliability_curve([1.0, 0.9, 0.4, 0.3], [0, 0, 1, 0], bins=2)
    >>> curve.confidence.tolist(), curve.accuracy.tolist()
    ([0.35, 0.95], [0.5, 1.0])
    """
    s = validate_samples(confidence, loss, weight, uses_values=True)
    checks.unit_interval(s.confidence, "confidence", hint=CONFIDENCE_HINT)
    checks.unit_interval(s.loss, "loss", hint=LOSS_HINT)
    bins = checks.positive_int(bins, "bins")
    checks.one_of(binning, "binning", BINNINGS)
    curve = cached_reliability_curve(s, bins, binning)
    # The edges of equal-width bins are NumPy arrays.
    return curve.as_arrays_like(output_reference(s, confidence))


def cached_reliability_curve(s: Scored, bins: int, binning: Binning) -> ReliabilityCurve:
    """Return the reliability curve of validated samples, and store it for later calls."""
    return s.cached(_compute_curve, bins, binning)


def _compute_curve(s: Scored, bins: int, binning: Binning) -> ReliabilityCurve:
    """Compute the reliability curve of validated samples."""
    p = s.probability_or_confidence
    xp = namespace(p)
    if binning == "equal_width":
        # The edges are k / bins, because a confidence of 3/15 must equal the edge 3/15, which
        # `np.linspace` does not ensure.
        edges = np.arange(bins + 1) / bins
        inner_edges = as_double_like(edges[1:-1], p)
    else:
        inner_edges = equal_mass_edges(s, bins)
        zero = as_double_like([0.0], p)
        edges = xp.concat((zero, inner_edges, zero + 1.0))
    # The edges have the precision of the confidences, so that the float32 number 0.6 lies on the
    # edge 0.6 and not above it.
    sums = bin_sums(s, xp.astype(inner_edges, without_gradient(p).dtype))
    confidence, accuracy = bin_means(sums)
    return ReliabilityCurve(
        binning=binning,
        edges=edges,
        count=sums.count,
        weight=sums.weight,
        confidence=confidence,
        accuracy=accuracy,
        total=float(xp.sum(sums.weight)),
    )


def bin_means(sums: BinSums) -> tuple[FloatArray, FloatArray]:
    """Return the mean confidence and accuracy of each bin, with NaN for empty bins."""
    weight = sums.weight
    xp = namespace(weight)
    is_nonempty = weight > 0
    undefined = xp.full_like(weight, float("nan"))
    divisor = xp.where(is_nonempty, weight, xp.ones_like(weight))
    mean_confidence = xp.where(is_nonempty, sums.confidence / divisor, undefined)
    mean_loss = xp.where(is_nonempty, sums.loss / divisor, undefined)
    return mean_confidence, 1.0 - mean_loss
