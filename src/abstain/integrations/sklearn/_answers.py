"""What a selective classifier says of samples."""

from typing import NamedTuple

import numpy as np

from abstain.typing import Array, BoolArray


class SelectivePrediction(NamedTuple):
    """Predicted classes, which of them to act on, and how far each is trusted.

    Unpacks as ``prediction, accepted, confidence``.

    Attributes
    ----------
    prediction : ndarray of shape (n,)
        The class predicted for every sample, also for those that are not accepted.
    accepted : ndarray of shape (n,)
        Whether the decision rule accepts the prediction.
    confidence : ndarray of shape (n,)
        On the scale of the rule's threshold; higher is more trusted.

    Examples
    --------
    >>> import numpy as np
    >>> answers = SelectivePrediction(
    ...     np.array([1, 0]), np.array([True, False]), np.array([2.0, 0.1])
    ... )
    >>> answers.coverage
    0.5
    """

    prediction: Array
    accepted: BoolArray
    confidence: Array

    @property
    def coverage(self) -> float:
        """Share of the samples that is accepted, in [0, 1]."""
        return float(np.mean(self.accepted))
