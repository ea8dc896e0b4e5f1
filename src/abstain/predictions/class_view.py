"""Classes and class probabilities for class-wise metrics."""

from functools import cached_property

import numpy as np

from abstain._foundation.scored import ClassView
from abstain.predictions.outputs import ClassScores
from abstain.predictions.softmax import row_blocks
from abstain.typing import FloatArray, IntArray


class LazyClassView(ClassView):
    """A `ClassView` that computes the class probabilities on first use.

    Class probabilities may require much memory, and most metrics do not need them.
    """

    def __init__(
        self,
        labels: IntArray,
        prediction: IntArray,
        classes: tuple[object, ...],
        scores: ClassScores | None,
    ) -> None:
        # The base class stores the probabilities as fields. Here, properties compute them.
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
    """Compute the log-probabilities of all rows in blocks."""
    n, n_classes = scores.values.shape
    values = np.empty((n, n_classes))
    for rows in row_blocks(n, n_classes):
        values[rows] = scores.log_probabilities(rows)
    return values
