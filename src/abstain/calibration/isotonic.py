"""Isotonic calibration, which maps a confidence to a nondecreasing estimate of the accuracy."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import as_array_like
from abstain._foundation.isotonic_blocks import isotonic_block_ends
from abstain._foundation.records import Fraction, Number, PositiveInt, entries
from abstain.calibration.state import Calibration, validate_outcomes
from abstain.errors import DomainError
from abstain.typing import AnyArray, BoolArray, FloatArray

_POINT_AXIS = "entries of `thresholds`"


@dataclass(frozen=True)
class Isotonic(Calibration):
    """A fitted map, which is nondecreasing and piecewise linear.

    Attributes
    ----------
    thresholds : tuple of float
        Confidences of the points, strictly increasing.
    values : tuple of float
        Nondecreasing probabilities of a correct prediction at the points, in [0, 1]. The map is
        constant below the first point and above the last point.
    n : int
        Number of fitting samples.
    note : str
        Remark about the fit, or an empty string.

    Examples
    --------
    >>> from abstain.calibration import Isotonic
    >>> state = Isotonic(thresholds=(0.0, 1.0), values=(0.4, 0.8), n=10)
    >>> state.apply([-5.0, 0.5, 5.0]).round(4).tolist()
    [0.4, 0.6, 0.8]
    """

    kind: ClassVar[str] = "isotonic"

    thresholds: Annotated[tuple[Number, ...], entries(_POINT_AXIS, "a list of numbers")]
    values: Annotated[tuple[Fraction, ...], entries(_POINT_AXIS, "a list of numbers")]
    n: PositiveInt
    note: str = ""

    def __post_init__(self) -> None:
        """Validate that the thresholds increase and the values do not decrease."""
        super().__post_init__()
        does_not_increase = np.diff(self.thresholds) <= 0
        _reject_order("thresholds", "increase", self.thresholds, does_not_increase)
        _reject_order("values", "not decrease", self.values, np.diff(self.values) < 0)

    def apply(self, confidence: AnyArray, /) -> AnyArray:
        """Return the calibrated probabilities of a correct prediction.

        Parameters
        ----------
        confidence : array of shape (n,)
            Confidences by the same score as in the fit.

        Returns
        -------
        array of shape (n,)
            Probabilities in [0, 1] of type float64, with the library and device of the input. The
            probability never decreases with the confidence, but many confidences have the same
            probability.

        Raises
        ------
        ShapeError, DomainError
            If the input is not a finite vector.

        Examples
        --------
        >>> from abstain.calibration import Isotonic
        >>> state = Isotonic(thresholds=(0.0, 1.0), values=(0.4, 0.8), n=10)
        >>> state.apply([-5.0, 0.5, 5.0]).round(4).tolist()
        [0.4, 0.6, 0.8]
        """
        x = checks.confidence(confidence).astype(np.float64)
        thresholds = np.array(self.thresholds)
        probabilities = _interpolate_monotonically(x, thresholds, np.array(self.values))
        return as_array_like(probabilities, confidence)


def _reject_order(name: str, rule: str, values: tuple[float, ...], is_invalid: BoolArray) -> None:
    """Raise a DomainError if two consecutive values are in the wrong order."""
    if not is_invalid.any():
        return
    index = int(np.argmax(is_invalid)) + 1
    raise DomainError(
        f"`{name}` must {rule}; got {values[index]!r} after {values[index - 1]!r} at index {index}"
    )


def _interpolate_monotonically(
    x: FloatArray, thresholds: FloatArray, values: FloatArray
) -> FloatArray:
    """Interpolate linearly, and avoid decreases from rounding errors."""
    segment = np.searchsorted(thresholds, x, side="right") - 1
    left = np.clip(segment, 0, thresholds.size - 1)
    right = np.minimum(left + 1, thresholds.size - 1)
    # Both terms are halved, so that the difference does not overflow.
    width = thresholds[right] / 2 - thresholds[left] / 2
    step = np.clip(x / 2 - thresholds[left] / 2, 0.0, width)
    fraction = np.divide(step, width, out=np.zeros(x.size), where=width > 0)
    rise = values[right] - values[left]
    return np.minimum(values[left] + fraction * rise, values[right])


def fit_isotonic(
    confidence: AnyArray, loss: AnyArray, *, weight: AnyArray | None = None
) -> Isotonic:
    """Fit the probability of a correct prediction as a nondecreasing function of the confidence.

    Answers: how large is the probability of a correct prediction at this confidence, if the
    probability never decreases with the confidence?

    Parameters
    ----------
    confidence : array of shape (n,)
        Finite confidences of held-out samples. Higher means more trusted.
    loss : array of shape (n,)
        In [0, 1]; 1 for an error under 0/1 loss. With other losses, the map estimates one minus the
        expected loss.
    weight : array of shape (n,), optional
        Frequency weights. A sample with an integer weight m counts as m samples.

    Returns
    -------
    Isotonic
        The fitted map, which is piecewise linear.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a value is NaN or infinite, a loss is outside [0, 1], or a weight is negative.

    Notes
    -----
    The fit is an isotonic regression (pool adjacent violators) of correctness on the confidence.
    Samples of equal confidence are combined. The fitted values depend only on the order of the
    confidences.

    On the fitting data, the ECE is 0, and no nondecreasing map has a larger log-likelihood. The new
    ranking corresponds to the convex hull of the ROC curve [2]_, so the AUGRC does not increase. On
    other data, these properties do not hold, and values from few samples are often overconfident.
    The cost is one sort.

    References
    ----------
    .. [1] Zadrozny and Elkan (2002), Transforming classifier scores into accurate multiclass
       probability estimates, section 3.2, https://doi.org/10.1145/775047.775151
    .. [2] Fawcett and Niculescu-Mizil (2007), PAV and the ROC convex hull,
       https://doi.org/10.1007/s10994-007-5011-0

    Examples
    --------
    >>> from abstain.calibration import fit_isotonic
    >>> state = fit_isotonic([-3.0, -1.0, 0.0, 2.0, 5.0, 7.0], [1, 1, 0, 1, 0, 0])
    >>> state.apply([-3.0, 0.0, 2.0, 7.0]).tolist()
    [0.0, 0.5, 0.5, 1.0]
    """
    groups = validate_outcomes(confidence, loss, weight).groups
    # Groups are in descending order of confidence.
    ascending_confidence = groups.confidence[::-1].astype(np.float64)
    group_weight = groups.weight[::-1]
    success_weight = group_weight - groups.loss[::-1]
    block_ends = isotonic_block_ends(success_weight, group_weight)
    block_starts = np.append(0, block_ends[:-1] + 1)
    block_weight = np.add.reduceat(group_weight, block_starts)
    block_accuracy = np.add.reduceat(success_weight, block_starts) / block_weight
    # Rounding errors could make nearly equal values decrease, so the running maximum is used.
    block_accuracy = np.clip(np.maximum.accumulate(block_accuracy), 0.0, 1.0)
    # The map is constant from the first confidence of a block to its last confidence.
    points = np.unique(np.concatenate((block_starts, block_ends)))
    thresholds = ascending_confidence[points]
    values = block_accuracy[np.searchsorted(block_ends, points)]
    is_constant = np.unique(values).size == 1
    return Isotonic(
        thresholds=tuple(thresholds.tolist()),
        values=tuple(values.tolist()),
        n=groups.n_samples,
        note="constant: higher confidences are not more often correct" if is_constant else "",
    )
