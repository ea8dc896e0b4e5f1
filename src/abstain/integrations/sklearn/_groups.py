"""Which group each sample is of, where a rule has a threshold for each: known at prediction."""

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
    """From samples and what a classifier says of them to their groups."""

    #: None, "prediction", a column of X by name or place, or a function of X.
    per: Any = None

    def __post_init__(self) -> None:
        """Refuse what names no groups before anything is fitted."""
        known = self.per is None or isinstance(self.per, str | int) or callable(self.per)
        if not known or isinstance(self.per, bool):
            raise InputError(
                "`per` must be None, 'prediction', a column of X by name or place, or a callable "
                f"X -> groups; got {self.per!r}"
            )

    @classmethod
    def of_rule(cls, per: Any, rule: Any) -> "Grouping":
        """Return the groups that were named, or those of a finished rule for predicted classes."""
        finished = isinstance(rule, DecisionRule) and rule.per == PREDICTION
        return cls(PREDICTION if per is None and finished else per)

    @property
    def name(self) -> str:
        """What the groups are, for people."""
        if callable(self.per):
            named = str(getattr(self.per, "__name__", ""))
            return named if named.isidentifier() else "group"
        return f"column {self.per}" if isinstance(self.per, int) else str(self.per)

    def of(self, X: Any, prediction: Array) -> Array | None:
        """Return the group of each sample as text; None where there are no groups."""
        if self.per is None:
            return None
        if isinstance(self.per, str) and self.per == PREDICTION:
            return group_texts(np.asarray(prediction))
        count = _num_samples(X)
        found = np.asarray(self.per(X) if callable(self.per) else self._column(X))
        if found.shape != (count,):
            raise ShapeError(
                f"`per` must give one group for each of {count} samples; got {found.shape}"
            )
        return group_texts(found, "per")

    def _column(self, X: Any) -> Any:
        try:
            return _safe_indexing(X, self.per, axis=1)
        except (ValueError, TypeError, IndexError, KeyError) as error:
            raise InputError(f"`per` must be a column of X; got {self.per!r}: {error}") from error
