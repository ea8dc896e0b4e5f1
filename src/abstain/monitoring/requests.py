"""Requested labels: a random sample of the answers with known probabilities."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from abstain.typing import FloatArray

#: Number of columns of an item in an archive.
COLUMNS = 5
#: Number of sums from which the estimates are computed.
TERMS = 7


@dataclass(slots=True)
class RequestItem:
    """One answer and the request of its label."""

    #: Number of the prediction, counted from 0.
    number: int
    #: Predicted probability of a failure.
    predicted: float
    #: Probability with which the label is requested.
    probability: float
    is_requested: bool
    #: Loss; NaN until the label arrives.
    loss: float
    #: Id of the prediction if the label is requested, else empty.
    name: str = ""

    @property
    def is_waiting(self) -> bool:
        """Whether the label is requested and has not arrived."""
        return self.is_requested and math.isnan(self.loss)


@dataclass(frozen=True, eq=False)
class Requests:
    """Answers from the first one that awaits its label on, and sums over all earlier answers.

    Answers are settled in the order of their predictions. The order in which labels arrive has no
    effect, and no answer is settled because of its label.

    Attributes
    ----------
    items : ndarray of shape (k, 5)
        Number, predicted failure, request probability, whether the label is requested, and loss of
        each answer.
    names : tuple of str
        Ids of the answers; empty if the label is not requested.
    sums : ndarray of shape (7,)
        Sums of `sum_terms` over the earlier answers, which are settled or given up.
    n, labeled, missing : int
        Number of settled answers, of settled answers with a label, and of answers that were given
        up.
    """

    items: FloatArray
    names: tuple[str, ...]
    sums: FloatArray
    n: int = 0
    labeled: int = 0
    missing: int = 0

    @classmethod
    def empty(cls) -> "Requests":
        """Return the requests of a new monitor."""
        return cls(np.zeros((0, COLUMNS)), (), np.zeros(TERMS))

    def iter_items(self) -> Iterator[RequestItem]:
        """Yield the items as mutable records."""
        for row, name in zip(self.items.tolist(), self.names, strict=True):
            yield RequestItem(int(row[0]), row[1], row[2], bool(row[3]), row[4], name)

    @property
    def n_waiting(self) -> int:
        """Number of requested labels that have not arrived."""
        return int((self.items[:, 3].astype(bool) & np.isnan(self.items[:, 4])).sum())

    def mean_sums(self) -> FloatArray:
        """Return the arguments of `abstain.inference.powered_mean.mean_of_sums`, shape (2, 2).

        They cover the settled and the given-up answers. If some labels never arrived, the arrived
        labels are weighted by the inverse of their request probability and of the share that
        arrived. This is unbiased if the arrival of a label is independent of its value.
        """
        p, pp, d, dd, pd, m, mm = self.sums.tolist()
        share = self.labeled / (self.labeled + self.missing) if self.missing else 1.0
        both = [p + d / share, pp + 2 * pd / share + dd / share**2]
        return np.array([both, [m / share, mm / share**2]])


def sum_terms(predicted: float, correction: float, mass: float) -> tuple[float, ...]:
    """Return the terms of one answer in `Requests.sums`.

    The terms are the predicted failure, its correction by the label and the
    inverse-probability-weighted loss; their squares; and the product of the first two. The
    estimates follow from their sums for any share of arrived labels.
    """
    p, d, m = predicted, correction, mass
    return p, p * p, d, d * d, p * d, m, m * m


def items_to_array(items: "list[RequestItem]") -> tuple[FloatArray, tuple[str, ...]]:
    """Return items as an array and a tuple of their ids."""
    rows = [[i.number, i.predicted, i.probability, i.is_requested, i.loss] for i in items]
    return np.array(rows, np.float64).reshape(-1, COLUMNS), tuple(i.name for i in items)
