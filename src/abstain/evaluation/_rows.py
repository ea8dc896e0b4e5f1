"""The rows of all runs of one data set under each other: what they count, which are independent."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from abstain.evaluation.units import Unit, independent
from abstain.inference.influence import counted_units
from abstain.typing import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Rows:
    """What the rows of all runs count, and which of them are independent.

    Attributes
    ----------
    weight : ndarray of shape (rows,) or (rows, k), or None
        One column a method where some run gives them different weights.
    cluster : ndarray of shape (rows,) or None
        Codes of what is independent; None where every row is.
    """

    weight: FloatArray | None
    cluster: IntArray | None

    @classmethod
    def of(cls, units: Sequence[Unit]) -> "Rows":
        """Join the runs: each counts the same, whatever its samples and their weights are."""
        if len(units) == 1:
            return cls(units[0].weight, units[0].cluster)
        each = [
            np.full(unit.n, 1 / unit.n)
            if unit.weight is None
            else unit.weight / unit.weight.sum(axis=0)
            for unit in units
        ]
        if any(own.ndim > 1 for own in each):
            k = len(units[0].scored)
            each = [own if own.ndim > 1 else np.repeat(own[:, None], k, axis=1) for own in each]
        return cls(np.concatenate(each), independent(units))

    @cached_property
    def counted(self) -> BoolArray | None:
        """Whether each method rests on each unit, shape (units, k); None where all weigh alike."""
        if self.weight is None or self.weight.ndim == 1:
            return None
        return counted_units(self.weight, self.cluster)
