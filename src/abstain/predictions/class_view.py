"""What class-wise metrics need of predictions, computed when it is first asked for."""

from functools import cached_property

import numpy as np

from abstain._foundation.scored import ClassView
from abstain.predictions.outputs import ClassScores
from abstain.predictions.softmax import row_blocks
from abstain.typing import FloatArray, IntArray


class LazyClassView(ClassView):
    """A `ClassView` that does its softmax work on first use.

    Most metrics never look at the class probabilities, and for many classes those two arrays
    are larger than everything else together.
    """

    def __init__(
        self,
        labels: IntArray,
        prediction: IntArray,
        classes: tuple[object, ...],
        scores: ClassScores | None,
    ) -> None:
        # The fields that the parent would set to None stay unset: they are computed below.
        for name, value in (
            ("labels", labels),
            ("prediction", prediction),
            ("classes", classes),
            ("_scores", scores),
        ):
            object.__setattr__(self, name, value)

    _scores: ClassScores | None

    @cached_property
    def log_probabilities(self) -> FloatArray | None:
        """Logarithms of the class probabilities, shape (n, K)."""
        return None if self._scores is None else log_probabilities(self._scores)

    @cached_property
    def probabilities(self) -> FloatArray | None:
        """Class probabilities in float64, shape (n, K)."""
        logs = self.log_probabilities
        return None if logs is None else np.exp(logs)


def log_probabilities(scores: ClassScores) -> FloatArray:
    """Return all log-probabilities, filled block by block."""
    n, width = scores.values.shape
    out = np.empty((n, width))
    for rows in row_blocks(n, width):
        out[rows] = scores.log_probabilities(rows)
    return out
