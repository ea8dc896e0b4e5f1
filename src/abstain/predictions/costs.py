"""Cost matrices: what each confusion of classes costs."""

from dataclasses import dataclass

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import to_numpy
from abstain.errors import DomainError, ShapeError
from abstain.predictions._classes import UNKNOWN
from abstain.predictions.record import Predictions
from abstain.typing import AnyArray, FloatArray


@dataclass(frozen=True, eq=False)
class CostMatrix:
    """What each confusion costs: a loss to pass to `per_sample_loss`.

    Parameters
    ----------
    costs : array of shape (K, K)
        ``costs[label, prediction]``, finite and non-negative, in the order of the classes.
    unknown : float, optional
        The cost of any prediction for a sample of no known class; without it such samples
        are refused.

    Raises
    ------
    ShapeError
        Not a square matrix.
    DomainError
        A negative, NaN or infinite cost.

    Examples
    --------
    >>> from abstain.predictions import per_sample_loss
    >>> p = Predictions(prediction=[0, 1, 1], labels=[0, 1, 0])
    >>> per_sample_loss(p, CostMatrix([[0, 5], [1, 0]])).tolist()
    [0.0, 0.0, 5.0]
    """

    costs: AnyArray
    unknown: float | None = None

    def __post_init__(self) -> None:
        """Validate the matrix and keep a read-only copy in float64."""
        costs = to_numpy(self.costs, "costs")
        if costs.ndim != 2 or costs.shape[0] != costs.shape[1] or costs.size == 0:
            msg = f"`costs` must be a square matrix [label, prediction]; got shape {costs.shape}"
            raise ShapeError(msg)
        if costs.dtype.kind not in "biuf":
            msg = f"`costs` must hold numbers; got {costs.dtype}"
            raise DomainError(msg)
        costs = checks.finite(costs.astype(np.float64), "costs")
        checks.refuse("costs", "must not be negative", costs, costs < 0)
        costs.flags.writeable = False
        object.__setattr__(self, "costs", costs)
        if self.unknown is not None:
            checks.fraction(self.unknown, "unknown", high=float(np.finfo(np.float64).max))

    def compute(self, predictions: Predictions) -> FloatArray:
        """Look up the cost of each sample, shape (n,)."""
        if len(self.costs) != predictions.n_classes:
            msg = (
                f"`costs` must have one row for each of the {predictions.n_classes} classes; "
                f"got {len(self.costs)}"
            )
            raise ShapeError(msg)
        labels = predictions.label_codes
        out: FloatArray = self.costs[labels, predictions.prediction_codes]
        if self.unknown is None:
            refuse_unknown(predictions, "a cost matrix", "Pass `CostMatrix(..., unknown=cost)`")
            return out
        return np.where(labels == UNKNOWN, float(self.unknown), out)


def refuse_unknown(predictions: Predictions, name: str, hint: str) -> None:
    """Refuse samples of no known class where a loss has no value for them."""
    unknown = predictions.label_codes == UNKNOWN
    if unknown.any():
        msg = (
            f"{name} has no value for samples of no known class; index "
            f"{int(np.flatnonzero(unknown)[0])} is one ({int(unknown.sum())} in all). {hint}."
        )
        raise DomainError(msg)
