"""Reliability: accuracy against mean confidence, by bins of confidence."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from abstain._foundation import checks
from abstain._foundation.ranks import TieGroups, equal_mass_bins, equal_width_bins
from abstain._foundation.scored import kind_of, scored
from abstain._foundation.segments import sums_by
from abstain.curves._vertices import Vertices
from abstain.typing import AnyArray, FloatArray, IntArray

if TYPE_CHECKING:
    import polars as pl

Binning = Literal["equal_width", "equal_mass"]
BINNINGS = ("equal_width", "equal_mass")

CONFIDENCE_HINT = (
    "Calibration reads the confidence as a probability of being right; calibrate it first, or "
    "use a rank metric."
)
LOSS_HINT = "A correctness is one minus a loss in [0, 1]."


@dataclass(frozen=True, eq=False)
class ReliabilityCurve(Vertices):
    """Accuracy and mean confidence in each bin of confidence.

    Bin j holds the confidences in (edges[j], edges[j + 1]], and the first one also those at its
    left edge, so every confidence in [0, 1] is in exactly one bin; 1.0 is in the last one.

    Attributes
    ----------
    binning : {"equal_width", "equal_mass"}
        How the edges were chosen.
    edges : array of shape (b + 1,)
        From 0 to 1, increasing.
    count : array of shape (b,)
        Number of samples.
    weight : array of shape (b,)
        Weight of the samples, their number when there are no weights.
    confidence : array of shape (b,)
        Weighted mean confidence; NaN in an empty bin.
    accuracy : array of shape (b,)
        One minus the weighted mean loss; NaN in an empty bin.
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

    whole: ClassVar[frozenset[str]] = frozenset({"binning", "total"})

    def frame(self) -> "pl.DataFrame":
        """Return the bins as a polars table, one row each; an empty bin has nulls."""
        import polars as pl

        columns = self.on_host()
        edges = columns.pop("edges")
        return pl.DataFrame({"low": edges[:-1], "high": edges[1:], **columns}, nan_to_null=True)

    def __len__(self) -> int:
        """Count the bins."""
        return len(self.count)


def reliability_curve(
    confidence: AnyArray,
    loss: AnyArray,
    *,
    bins: int = 15,
    binning: Binning = "equal_width",
    weight: AnyArray | None = None,
) -> ReliabilityCurve:
    """Compute the reliability curve: accuracy against mean confidence, by bins.

    Answers: among samples of confidence p, is a share p right?

    Parameters
    ----------
    confidence : array of shape (n,)
        In [0, 1], read as the probability of being right.
    loss : array of shape (n,)
        In [0, 1]; 1 for an error under 0/1 loss.
    bins : int, default=15
        Number of bins.
    binning : {"equal_width", "equal_mass"}, default="equal_width"
        Bins of equal width in confidence, or of about equal weight.
    weight : array of shape (n,), optional
        Frequency weights: an integer weight counts a sample that many times.

    Returns
    -------
    ReliabilityCurve
        Arrays of the caller's kind, one entry for each bin. Of equal-mass bins only those that
        hold a sample are returned.

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
    Bins are right-closed, (a, b], with 0 in the first; a confidence of exactly 1.0 is in the
    last bin, not dropped and not in a bin of its own. Equal-mass bins never split tied
    confidences: a tie group goes as a whole to the bin that holds the middle of its weight, so
    the result does not depend on row order. Cost: one sort.

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
    s = scored(confidence, loss, weight, by_value=True)
    checks.unit_interval(s.confidence, "confidence", hint=CONFIDENCE_HINT)
    checks.unit_interval(s.loss, "loss", hint=LOSS_HINT)
    bins = checks.positive_int(bins, "bins")
    checks.one_of(binning, "binning", BINNINGS)
    curve = reliability_of(s.probability_groups, bins=bins, binning=binning)
    # The edges of equal-width bins are made on the host.
    return curve.of_kind(kind_of(s, confidence))


def reliability_of(groups: TieGroups, *, bins: int, binning: Binning) -> ReliabilityCurve:
    """Build the curve from samples grouped by a confidence in [0, 1]."""
    if binning == "equal_width":
        index, edges = equal_width_bins(groups, bins)
    else:
        index, inner = equal_mass_bins(groups, bins)
        zero = groups.xp.zeros_like(groups.weight[:1])
        edges = groups.xp.concat((zero, inner, zero + 1.0))
    mass, mean_p, mean_loss = bin_means(groups, index, edges.shape[0] - 1)
    count = sums_by(index, groups.count, edges.shape[0] - 1)
    return ReliabilityCurve(
        binning=binning,
        edges=edges,
        count=groups.xp.astype(count, groups.count.dtype),
        weight=mass,
        confidence=mean_p,
        accuracy=1.0 - mean_loss,
        total=groups.total,
    )


def bin_means(
    groups: TieGroups, index: IntArray, bins: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return weight, mean confidence and mean loss of each bin; NaN means in an empty one."""
    xp = groups.xp
    mass = sums_by(index, groups.weight, bins)
    nothing = xp.full_like(mass, float("nan"))
    divisor = xp.where(mass > 0, mass, xp.ones_like(mass))
    mean_p, mean_loss = (
        xp.where(mass > 0, sums_by(index, x, bins) / divisor, nothing)
        for x in (groups.weight * groups.confidence, groups.loss)
    )
    return mass, mean_p, mean_loss
