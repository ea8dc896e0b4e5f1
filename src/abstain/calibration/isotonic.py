"""Isotonic calibration: the best curve that never falls."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import as_array_like
from abstain._foundation.isotonic_blocks import isotonic_block_ends
from abstain._foundation.records import Fraction, Number, PositiveInt, entries
from abstain.calibration.state import Calibration, right_or_wrong
from abstain.errors import DomainError
from abstain.typing import AnyArray, FloatArray

_POINTS = "entries of `thresholds`"


@dataclass(frozen=True)
class Isotonic(Calibration):
    """A fitted curve that never falls, as straight lines between points.

    Attributes
    ----------
    thresholds : tuple of float
        Confidences of the points, strictly increasing.
    values : tuple of float
        Probability of being right at each, in [0, 1], never falling. Below the first point and
        above the last the curve is constant.
    n : int
        Samples it was fitted on.
    note : str
        What to know about the fit, or empty.

    Examples
    --------
    >>> from abstain.calibration import Isotonic
    >>> state = Isotonic(thresholds=(0.0, 1.0), values=(0.4, 0.8), n=10)
    >>> state.apply([-5.0, 0.5, 5.0]).round(4).tolist()
    [0.4, 0.6, 0.8]
    """

    kind: ClassVar[str] = "isotonic"

    thresholds: Annotated[tuple[Number, ...], entries(_POINTS, "a list of numbers")]
    values: Annotated[tuple[Fraction, ...], entries(_POINTS, "a list of numbers")]
    n: PositiveInt
    note: str = ""

    def __post_init__(self) -> None:
        """Refuse numbers that no fit can give."""
        super().__post_init__()
        for name, rule, wrong in (
            ("thresholds", "increase", np.diff(self.thresholds) <= 0),
            ("values", "not fall", np.diff(self.values) < 0),
        ):
            if wrong.any():
                at, x = int(np.argmax(wrong)) + 1, getattr(self, name)
                raise DomainError(
                    f"`{name}` must {rule}; got {x[at]!r} behind {x[at - 1]!r} at index {at}"
                )

    def apply(self, confidence: AnyArray, /) -> AnyArray:
        """Return the calibrated probabilities of being right.

        Parameters
        ----------
        confidence : array of shape (n,)
            The score that the curve was fitted on.

        Returns
        -------
        array of shape (n,)
            In [0, 1], float64, of the caller's kind and on its device. A higher confidence never
            has a lower probability, but many confidences share one.

        Raises
        ------
        ShapeError, DomainError
            Not a finite vector.

        Examples
        --------
        >>> from abstain.calibration import Isotonic
        >>> state = Isotonic(thresholds=(0.0, 1.0), values=(0.4, 0.8), n=10)
        >>> state.apply([-5.0, 0.5, 5.0]).round(4).tolist()
        [0.4, 0.6, 0.8]
        """
        x = checks.confidence(confidence).astype(np.float64)
        return as_array_like(
            _between(x, np.array(self.thresholds), np.array(self.values)), confidence
        )


def _between(x: FloatArray, thresholds: FloatArray, values: FloatArray) -> FloatArray:
    """Interpolate so that rounding cannot make the curve fall, as slopes times steps could."""
    at = np.searchsorted(thresholds, x, side="right") - 1
    left = np.clip(at, 0, thresholds.size - 1)
    right = np.minimum(left + 1, thresholds.size - 1)
    # Halved, so that the widest span does not overflow.
    width = thresholds[right] / 2 - thresholds[left] / 2
    step = np.clip(x / 2 - thresholds[left] / 2, 0.0, width)
    share = np.divide(step, width, out=np.zeros(x.size), where=width > 0)
    rise = values[right] - values[left]
    return np.minimum(values[left] + share * rise, values[right])


def fit_isotonic(
    confidence: AnyArray, loss: AnyArray, *, weight: AnyArray | None = None
) -> Isotonic:
    """Fit the probability of being right as any function of the confidence that never falls.

    Answers: how likely is an answer of this confidence right, if more confidence is never worse?

    Parameters
    ----------
    confidence : array of shape (n,)
        Of held-out samples; any finite numbers, higher is more trusted.
    loss : array of shape (n,)
        In [0, 1]; 1 for an error under 0/1 loss. Of a graded loss, one minus its expectation
        takes the place of the probability of being right.
    weight : array of shape (n,), optional
        Frequency weights: an integer weight counts a sample that many times.

    Returns
    -------
    Isotonic
        The frozen state: the points where the curve bends, nothing of the data.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a value is NaN or infinite, a loss is outside [0, 1], or a weight is negative.

    Notes
    -----
    Pools adjacent violators (isotonic regression) over the distinct confidences,
    in the order of their values and whatever their distances; tied samples are one point. Between
    the points the curve is linear, beyond them constant.

    On the fitting data each level is the share right of the samples at it, so their ECE is 0,
    their log-likelihood is the largest that any curve that never falls can have, and the ranking
    is that of the convex hull of the ROC curve: AUGRC is never above that of the confidence. None
    of this holds on other data, where levels fitted on few samples are overconfident, 0 and 1
    among them. Cost: one sort.

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
    groups = right_or_wrong(confidence, loss, weight).groups
    weight = groups.weight[::-1]
    right = weight - groups.loss[::-1]
    ends = isotonic_block_ends(right, weight)
    starts = np.append(0, ends[:-1] + 1)
    level = np.add.reduceat(right, starts) / np.add.reduceat(weight, starts)
    # Equal to the last digit but one, two levels might fall.
    level = np.maximum.accumulate(level)
    # A block is a straight line from its first confidence to its last.
    points = np.unique(np.concatenate((starts, ends)))
    x = groups.confidence[::-1].astype(np.float64)[points]
    y = np.clip(level, 0.0, 1.0)[np.searchsorted(ends, points)]
    levels = np.unique(y).size
    note = "one level for all: higher confidences are not more often right" if levels == 1 else ""
    return Isotonic(tuple(x.tolist()), tuple(y.tolist()), groups.n_samples, note)
