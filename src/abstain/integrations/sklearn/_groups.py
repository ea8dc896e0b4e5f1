"""Groups of samples, for rules with a threshold for each group."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from abstain.errors import InputError, ShapeError
from abstain.thresholds import DecisionRule
from abstain.thresholds.group_names import group_texts
from abstain.thresholds.rule import PREDICTION
from abstain.typing import Array


@dataclass(frozen=True)
class Grouping:
    """Determines the groups of samples from their features and predictions."""

    #: None, "prediction", a column of X by name or index, or a function of X.
    per: Any = None

    def __post_init__(self) -> None:
        """Raise an error for invalid groups, before the classifier is fitted."""
        is_valid = self.per is None or isinstance(self.per, str | int) or callable(self.per)
        if not is_valid or isinstance(self.per, bool):
            raise InputError(
                "`per` must be None, 'prediction', a column of X by name or index, or a callable "
                f"X -> groups; got {self.per!r}"
            )

    @classmethod
    def from_rule(cls, per: Any, rule: Any) -> "Grouping":
        """Return the groups of `per`; for a saved rule per prediction, the predicted classes."""
        is_per_prediction = isinstance(rule, DecisionRule) and rule.per == PREDICTION
        return cls(PREDICTION if per is None and is_per_prediction else per)

    @property
    def name(self) -> str:
        """Name of the groups in reports."""
        if callable(self.per):
            name = str(getattr(self.per, "__name__", ""))
            return name if name.isidentifier() else "group"
        return f"column {self.per}" if isinstance(self.per, int) else str(self.per)

    def group_samples(self, X: Any, prediction: Array) -> Array | None:
        """Return the group of each sample as text; None without groups."""
        if self.per is None:
            return None
        if isinstance(self.per, str) and self.per == PREDICTION:
            return group_texts(np.asarray(prediction))
        n_samples = _num_samples(X)
        groups = np.asarray(self.per(X) if callable(self.per) else self._column(X))
        if groups.shape != (n_samples,):
            raise ShapeError(
                f"`per` must give one group for each of {n_samples} samples; got {groups.shape}"
            )
        return group_texts(groups, "per")

    def _column(self, X: Any) -> Any:
        try:
            return _safe_indexing(X, self.per, axis=1)
        except (ValueError, TypeError, IndexError, KeyError) as error:
            raise InputError(f"`per` must be a column of X; got {self.per!r}: {error}") from error
