"""Labels that are asked for: a few, with known chances, and what becomes of them."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from abstain.typing import FloatArray

#: How many numbers an item has in an archive.
COLUMNS = 5
#: How many sums are kept for the estimates.
TERMS = 7


@dataclass(slots=True)
class Item:
    """One answer, in the order of the predictions, and what is known of its label."""

    #: The number of the prediction, from 0.
    place: int
    #: The failure expected before any label, and the chance that the label was asked for.
    predicted: float
    chance: float
    asked: bool
    #: NaN until it came.
    loss: float
    #: The id, where the label was asked for.
    name: str = ""

    @property
    def waits(self) -> bool:
        """Whether nothing can be said yet."""
        return self.asked and math.isnan(self.loss)


@dataclass(frozen=True, eq=False)
class Requests:
    """The answers whose labels are awaited, those behind them, and the sums of all before.

    Answers are settled in the order in which they were given, so which label comes first does not
    matter, and none is settled because of what its label says.

    Attributes
    ----------
    items : ndarray of shape (k, 5)
        Place, predicted failure, chance, whether asked, loss of each answer from the first that
        is awaited on.
    names : tuple of str
        Their ids; empty where the label was not asked for.
    sums : ndarray of shape (7,)
        Sums of `terms_of` over the answers that are settled or given up.
    n, labeled, missing : int
        Answers that are settled, those with a label among them, and those given up.
    """

    items: FloatArray
    names: tuple[str, ...]
    sums: FloatArray
    n: int = 0
    labeled: int = 0
    missing: int = 0

    @classmethod
    def empty(cls) -> "Requests":
        """Return those of a monitor that begins."""
        return cls(np.zeros((0, COLUMNS)), (), np.zeros(TERMS))

    def each(self) -> Iterator[Item]:
        """Yield the items, to be changed."""
        for row, name in zip(self.items.tolist(), self.names, strict=True):
            yield Item(int(row[0]), row[1], row[2], bool(row[3]), row[4], name)

    @property
    def waiting(self) -> int:
        """How many labels were asked for and have not come."""
        return int((self.items[:, 3].astype(bool) & np.isnan(self.items[:, 4])).sum())

    def powered(self) -> FloatArray:
        """Return the sums of `prediction_powered_mean.estimates_from_sums`, shape (2, 2).

        Over the answers that are settled or given up. Where labels never came, those that did
        stand for these too: each counts by one over its chance and over the share that came. That
        is right where which labels come has nothing to do with what they say.
        """
        p, pp, d, dd, pd, m, mm = self.sums.tolist()
        share = self.labeled / (self.labeled + self.missing) if self.missing else 1.0
        both = [p + d / share, pp + 2 * pd / share + dd / share**2]
        return np.array([both, [m / share, mm / share**2]])


def terms_of(predicted: float, correction: float, mass: float) -> tuple[float, ...]:
    """Return what an answer adds to the sums: so both estimates follow for any share that comes.

    Its predicted failure, the correction of that by the label, and the label alone, these two by
    one over the chance; and their squares, and the product of the first two.
    """
    p, d, m = predicted, correction, mass
    return p, p * p, d, d * d, p * d, m, m * m


def rows_of(items: "list[Item]") -> tuple[FloatArray, tuple[str, ...]]:
    """Return items as an array and their names."""
    rows = [[i.place, i.predicted, i.chance, i.asked, i.loss] for i in items]
    return np.array(rows, np.float64).reshape(-1, COLUMNS), tuple(i.name for i in items)
