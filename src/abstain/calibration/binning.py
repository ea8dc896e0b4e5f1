"""Histogram calibration: the share right in each bin of confidence."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, get_args

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import as_array_like
from abstain._foundation.records import Fraction, NonNegative, Number, PositiveInt, entries
from abstain._foundation.tie_groups import TieGroups, equal_mass_bins, equal_width_bins
from abstain.calibration.state import Calibration, right_or_wrong
from abstain.errors import InputError
from abstain.typing import AnyArray, FloatArray, IntArray

BinningName = Literal["equal_width", "equal_mass"]
_BINNINGS = get_args(BinningName)


@dataclass(frozen=True)
class Binning(Calibration):
    """A fitted histogram: one probability of being right for each bin of confidence.

    Bin j holds the confidences in (edges[j - 1], edges[j]]; the first and the last are open
    below and above.

    Attributes
    ----------
    binning : str
        How the edges were chosen: "equal_width" or "equal_mass".
    edges : tuple of float
        The b - 1 confidences between the b bins, strictly increasing.
    values : tuple of float
        Probability of being right in each bin, in [0, 1]; may fall from one bin to the next.
    weight : tuple of float
        Weight (number) of the fitting samples in each bin; 0 where the neighbors lent the value.
    n : int
        Samples it was fitted on.
    note : str
        What to know about the fit, or empty.

    Examples
    --------
    >>> from abstain.calibration import Binning
    >>> state = Binning("equal_width", edges=(0.5,), values=(0.4, 0.8), weight=(3.0, 7.0), n=10)
    >>> state.apply([0.5, 0.6]).tolist()
    [0.4, 0.8]
    """

    kind: ClassVar[str] = "binning"

    binning: BinningName
    edges: tuple[Number, ...]
    values: Annotated[tuple[Fraction, ...], entries("bins", "a list of numbers")]
    weight: Annotated[tuple[NonNegative, ...], entries("bins", "a list of numbers")]
    n: PositiveInt
    note: str = ""

    def __post_init__(self) -> None:
        """Refuse numbers that no fit can give."""
        super().__post_init__()
        bins, edges = len(self.values), np.array(self.edges, dtype=np.float64)
        if edges.size != bins - 1:
            raise InputError(
                f"`edges` must be {bins - 1} numbers between {bins} bins; got {edges.size}"
            )
        # Written so that the first edge is compared with nothing.
        checks.reject_entries("edges", "must increase", edges, np.diff(edges, prepend=-np.inf) <= 0)

    def apply(self, confidence: AnyArray, /) -> AnyArray:
        """Return the calibrated probabilities of being right.

        Parameters
        ----------
        confidence : array of shape (n,)
            The score that the bins were fitted on.

        Returns
        -------
        array of shape (n,)
            In [0, 1], float64, of the caller's kind and on its device; all samples of a bin share
            one value.

        Raises
        ------
        ShapeError, DomainError
            Not a finite vector.

        Examples
        --------
        >>> from abstain.calibration import Binning
        >>> state = Binning("equal_width", (0.5,), (0.4, 0.8), (3.0, 7.0), n=10)
        >>> state.apply([0.5, 0.6]).tolist()
        [0.4, 0.8]
        """
        x = checks.confidence(confidence)
        return as_array_like(np.array(self.values)[_bin_of(x, np.array(self.edges))], confidence)


def _bin_of(x: FloatArray, edges: FloatArray) -> IntArray:
    # In the precision of the confidences: a float32 0.6 lies on the edge 0.6, not above it.
    with np.errstate(over="ignore"):
        return np.searchsorted(edges.astype(x.dtype), x, side="left")


def fit_binning(
    confidence: AnyArray,
    loss: AnyArray,
    *,
    bins: int = 15,
    binning: BinningName = "equal_width",
    limits: tuple[float, float] = (0.0, 1.0),
    weight: AnyArray | None = None,
) -> Binning:
    """Fit the probability of being right as the share right in each bin of confidence.

    Answers: how often were answers of about this confidence right?

    Parameters
    ----------
    confidence : array of shape (n,)
        Of held-out samples, higher is more trusted; within `limits` for bins of equal width.
    loss : array of shape (n,)
        In [0, 1]; 1 for an error under 0/1 loss. Of a graded loss, one minus its mean takes the
        place of the share right.
    bins : int, default=15
        Number of bins; equal mass may need fewer, when many confidences are tied.
    binning : {"equal_width", "equal_mass"}, default="equal_width"
        Bins of equal width in confidence, or of about equal weight.
    limits : tuple of float, default=(0, 1)
        Least and largest confidence of the scale, for bins of equal width.
    weight : array of shape (n,), optional
        Frequency weights: an integer weight counts a sample that many times.

    Returns
    -------
    Binning
        The frozen state, with the weight behind each bin.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a value is NaN or infinite, a loss is outside [0, 1], a confidence is outside `limits`
        for bins of equal width, or a weight is negative.
    InputError
        If `bins` is not a positive integer, `binning` is unknown or `limits` is no interval.

    Notes
    -----
    The bins are those of `abstain.curves.reliability_curve`: right-closed, tied confidences never
    split. An empty bin takes the share right of the nearest filled bins on both sides, pooled;
    `note` says how many did. On the fitting data the ECE is 0. Within a bin all samples are tied,
    and the values may fall from one bin to the next, so this can change any ranking. Cost: one
    sort.

    References
    ----------
    .. [1] Zadrozny and Elkan (2001), Obtaining calibrated probability estimates from decision
       trees and naive Bayesian classifiers, ICML.

    Examples
    --------
    >>> from abstain.calibration import fit_binning
    >>> state = fit_binning([0.1, 0.3, 0.7, 0.9, 0.9], [1, 1, 0, 0, 1], bins=2)
    >>> state.apply([0.2, 0.8]).round(4).tolist()
    [0.0, 0.6667]
    """
    s = right_or_wrong(confidence, loss, weight)
    bins = checks.positive_int(bins, "bins")
    checks.one_of(binning, "binning", _BINNINGS)
    low, high = _checked_limits(limits)
    groups = s.groups
    if binning == "equal_width":
        _refuse_outside(s.confidence, low, high)
        place, ends = equal_width_bins(groups, bins, low=low, high=high)
        edges = ends[1:-1]
        if (np.diff(edges, prepend=low) <= 0).any():
            raise InputError(f"`bins` is too many for limits {low!r} and {high!r}; got {bins}")
    else:
        place, edges = equal_mass_bins(groups, bins)
    values, mass = _levels(groups, place, edges.size + 1)
    empty = int((mass == 0).sum())
    note = "" if not empty else f"{empty} of {mass.size} bins hold no sample; neighbors fill them"
    return Binning(
        binning=binning,
        edges=tuple(edges.tolist()),
        values=tuple(values.tolist()),
        weight=tuple(mass.tolist()),
        n=groups.n_samples,
        note=note,
    )


def _checked_limits(limits: tuple[float, float]) -> tuple[float, float]:
    given: object = limits
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise InputError(
            f"`limits` must be two numbers, the least and the largest confidence; got {given!r}"
        )
    low, high = (checks.number(x, "limits") for x in given)
    if not np.isfinite(high - low):
        raise InputError(f"`limits` must not be further apart than numbers reach; got {given!r}")
    if low >= high:
        raise InputError(f"`limits` must be two numbers, the smaller one first; got {given!r}")
    return low, high


def _refuse_outside(x: FloatArray, low: float, high: float) -> None:
    # As everywhere, in the precision of the confidences.
    least, most = np.array([low, high]).astype(x.dtype)
    if x.min() < least or x.max() > most:
        hint = "Give the limits of the score's scale as `limits=`, or use binning='equal_mass'."
        rule = f"must lie in [{low:g}, {high:g}] for bins of equal width"
        checks.reject_entries("confidence", rule, x, (x < least) | (x > most), hint=hint)


def _levels(groups: TieGroups, place: IntArray, bins: int) -> tuple[FloatArray, FloatArray]:
    """Return share right and weight of each bin; an empty one has that of its neighbors."""
    mass: FloatArray = np.bincount(place, groups.weight, bins).astype(np.float64)
    wrong: FloatArray = np.bincount(place, groups.loss, bins).astype(np.float64)
    filled = np.flatnonzero(mass > 0)
    above = np.searchsorted(filled, np.arange(bins))
    left = filled[np.maximum(above - 1, 0)]
    right = filled[np.minimum(above, filled.size - 1)]
    # Beyond the outermost filled bin both neighbors are that one.
    lent = 1.0 - (wrong[left] + wrong[right]) / (mass[left] + mass[right])
    own = 1.0 - np.divide(wrong, mass, out=np.zeros(bins), where=mass > 0)
    return np.clip(np.where(mass > 0, own, lent), 0.0, 1.0), mass
