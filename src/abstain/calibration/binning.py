"""Histogram calibration, which maps a confidence to the accuracy in its bin."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, get_args

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import as_array_like
from abstain._foundation.records import Fraction, NonNegative, Number, PositiveInt, entries
from abstain._foundation.tie_groups import TieGroups, equal_mass_bins, equal_width_bins
from abstain.calibration.state import Calibration, validate_outcomes
from abstain.errors import InputError
from abstain.typing import AnyArray, FloatArray, IntArray

BinningName = Literal["equal_width", "equal_mass"]
_BINNINGS = get_args(BinningName)


@dataclass(frozen=True)
class Binning(Calibration):
    """A fitted map from bins of confidence to the probability of a correct prediction.

    Bin j contains confidences in (edges[j - 1], edges[j]]. The first bin has no lower edge, and the
    last bin has no upper edge.

    Attributes
    ----------
    binning : str
        Kind of bins, "equal_width" or "equal_mass".
    edges : tuple of float
        The b - 1 confidences between the b bins, strictly increasing.
    values : tuple of float
        Probability of a correct prediction in each bin, in [0, 1]. The probabilities are not
        necessarily increasing.
    weight : tuple of float
        Total weight of the fitting samples in each bin, or their number if there are no weights.
        The value of a bin with weight 0 is computed from neighboring bins.
    n : int
        Number of fitting samples.
    note : str
        Remark about the fit, or an empty string.

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
        """Validate the fields, and the number and order of the edges."""
        super().__post_init__()
        bins = len(self.values)
        edges = np.array(self.edges, dtype=np.float64)
        if edges.size != bins - 1:
            raise InputError(
                f"`edges` must be {bins - 1} numbers between {bins} bins; got {edges.size}"
            )
        # The prepended -inf is the lower neighbor of the first edge.
        checks.reject_entries("edges", "must increase", edges, np.diff(edges, prepend=-np.inf) <= 0)

    def apply(self, confidence: AnyArray, /) -> AnyArray:
        """Return the calibrated probabilities of a correct prediction.

        Parameters
        ----------
        confidence : array of shape (n,)
            Confidences by the same score as in the fit.

        Returns
        -------
        array of shape (n,)
            Probabilities in [0, 1] of type float64, with the library and device of the input. All
            samples in one bin have the same probability.

        Raises
        ------
        ShapeError, DomainError
            If the input is not a finite vector.

        Examples
        --------
        >>> from abstain.calibration import Binning
        >>> state = Binning("equal_width", (0.5,), (0.4, 0.8), (3.0, 7.0), n=10)
        >>> state.apply([0.5, 0.6]).tolist()
        [0.4, 0.8]
        """
        x = checks.confidence(confidence)
        bin_index = _bin_index(x, np.array(self.edges))
        return as_array_like(np.array(self.values)[bin_index], confidence)


def _bin_index(x: FloatArray, edges: FloatArray) -> IntArray:
    """Return the index of the bin of each confidence."""
    # The edges have the precision of the confidences, so that the float32 number 0.6 lies on the
    # edge 0.6 and not above it.
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
    """Fit the probability of a correct prediction as the accuracy in each bin of confidence.

    Answers: how often were predictions with about this confidence correct?

    Parameters
    ----------
    confidence : array of shape (n,)
        Confidences of held-out samples. Higher means more trusted. With "equal_width", confidences
        must be within `limits`.
    loss : array of shape (n,)
        In [0, 1]; 1 for an error under 0/1 loss. With other losses, the value of a bin is one minus
        its mean loss.
    bins : int, default=15
        Number of bins. With "equal_mass", ties can reduce the number of bins.
    binning : {"equal_width", "equal_mass"}, default="equal_width"
        Kind of bins. "equal_width" bins have equal width. "equal_mass" bins have about equal
        weight.
    limits : tuple of float, default=(0, 1)
        Smallest and largest confidence of the scale. The limits are used only with "equal_width".
    weight : array of shape (n,), optional
        Frequency weights. A sample with an integer weight m counts as m samples.

    Returns
    -------
    Binning
        The fitted map, with the weight of each bin.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a value is NaN or infinite, a loss is outside [0, 1], a confidence is outside `limits`
        for bins of equal width, or a weight is negative.
    InputError
        If `bins` is not a positive integer, `binning` is unknown or `limits` is not an interval.

    Notes
    -----
    The bins are those of `abstain.curves.reliability_curve`. Samples of equal confidence are in the
    same bin. The value of an empty bin is the pooled accuracy of the nearest nonempty bins on both
    sides. The field `note` contains the number of empty bins.

    On the fitting data, the ECE is 0. Calibration changes the ranking of samples: samples in one
    bin become tied, and values can decrease from one bin to the next. The cost is one sort.

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
    s = validate_outcomes(confidence, loss, weight)
    bins = checks.positive_int(bins, "bins")
    checks.one_of(binning, "binning", _BINNINGS)
    low, high = _check_limits(limits)
    groups = s.groups
    if binning == "equal_width":
        _reject_outside_limits(s.confidence, low, high)
        bin_index, all_edges = equal_width_bins(groups, bins, low=low, high=high)
        edges = all_edges[1:-1]
        if (np.diff(edges, prepend=low) <= 0).any():
            raise InputError(f"`bins` is too many for limits {low!r} and {high!r}; got {bins}")
    else:
        bin_index, edges = equal_mass_bins(groups, bins)
    values, bin_weight = _accuracy_of_bins(groups, bin_index, edges.size + 1)
    n_empty = int((bin_weight == 0).sum())
    note = f"{n_empty} of {bin_weight.size} bins hold no sample; neighbors fill them"
    return Binning(
        binning=binning,
        edges=tuple(edges.tolist()),
        values=tuple(values.tolist()),
        weight=tuple(bin_weight.tolist()),
        n=groups.n_samples,
        note=note if n_empty else "",
    )


def _check_limits(limits: tuple[float, float]) -> tuple[float, float]:
    """Validate the limits of the scale."""
    values: object = limits
    if not isinstance(values, tuple | list) or len(values) != 2:
        raise InputError(
            f"`limits` must be two numbers, the smallest and the largest confidence; got {values!r}"
        )
    low, high = (checks.number(x, "limits") for x in values)
    if not np.isfinite(high - low):
        raise InputError(f"`limits` must have a finite difference; got {values!r}")
    if low >= high:
        raise InputError(f"`limits` must be two numbers, the smaller one first; got {values!r}")
    return low, high


def _reject_outside_limits(x: FloatArray, low: float, high: float) -> None:
    """Raise a DomainError if a confidence is outside the limits."""
    # The limits are compared in the precision of the confidences.
    lowest, highest = np.array([low, high]).astype(x.dtype)
    if x.min() < lowest or x.max() > highest:
        hint = "Pass the limits of the score's scale as `limits=`, or use binning='equal_mass'."
        rule = f"must lie in [{low:g}, {high:g}] for bins of equal width"
        checks.reject_entries("confidence", rule, x, (x < lowest) | (x > highest), hint=hint)


def _accuracy_of_bins(
    groups: TieGroups, bin_index: IntArray, bins: int
) -> tuple[FloatArray, FloatArray]:
    """Return the accuracy and weight of each bin. Empty bins use neighboring bins."""
    weight: FloatArray = np.bincount(bin_index, groups.weight, bins).astype(np.float64)
    loss: FloatArray = np.bincount(bin_index, groups.loss, bins).astype(np.float64)
    is_nonempty = weight > 0
    nonempty_bins = np.flatnonzero(is_nonempty)
    next_nonempty = np.searchsorted(nonempty_bins, np.arange(bins))
    left = nonempty_bins[np.maximum(next_nonempty - 1, 0)]
    right = nonempty_bins[np.minimum(next_nonempty, nonempty_bins.size - 1)]
    # Outside the outermost nonempty bins, both neighbors are the same nonempty bin.
    neighbor_accuracy = 1.0 - (loss[left] + loss[right]) / (weight[left] + weight[right])
    own_accuracy = 1.0 - np.divide(loss, weight, out=np.zeros(bins), where=is_nonempty)
    accuracy = np.where(is_nonempty, own_accuracy, neighbor_accuracy)
    return np.clip(accuracy, 0.0, 1.0), weight
