"""Every selective classifier of a few samples: each order of right and wrong, most confident first.

What a requirement asks is asked of pairs of these, so that it is decided by trying all of them.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, cached_property
from itertools import combinations, product
from typing import Final

import numpy as np

from abstain._foundation.scored import ClassView, Scored
from abstain.metrics import Metric
from abstain.typing import BoolArray, FloatArray, IntArray

#: How far two numbers may be apart by rounding.
ROUNDING: Final = 1e-9

#: Few failures among more samples, for metrics of a coverage that seven samples cannot have.
MORE, FEW = 20, 2

#: So many systems keep what was sorted of them for the next metric.
_KEPT: Final = 3000


class ShownClasses(StrEnum):
    """What a metric is shown beside confidence and loss."""

    NOTHING = "nothing"
    #: Labels, predictions and probabilities of two classes.
    CLASSES = "classes"
    #: The same, the second class being none that the model knows: never predicted, always wrong.
    OPEN = "open"


#: A sample as a letter: right or wrong, small where it is of the first class.
_LETTERS: Final = {
    ShownClasses.NOTHING: np.array([["o", "x"]]),
    ShownClasses.CLASSES: np.array([["o", "x"], ["O", "X"]]),
    ShownClasses.OPEN: np.array([["o", "x"], ["?", "?"]]),
}


@dataclass(frozen=True, eq=False)
class Systems:
    """Selective classifiers on n samples, one a row: the most confident sample comes first."""

    #: Shape (m, n). Which predictions are wrong.
    wrong: BoolArray
    #: Shape (m, n). The true class of each sample, 0 or 1.
    labels: IntArray
    #: Shape (m,). Which scale the confidences are on, where a metric reads their values.
    scale: IntArray
    #: What the metric is shown of them.
    shown: ShownClasses
    #: Whether all orders of that many samples are there.
    all_orders: bool = True

    @property
    def n(self) -> int:
        """Number of samples."""
        return int(self.wrong.shape[1])

    @cached_property
    def failures(self) -> IntArray:
        """Number of wrong predictions."""
        return np.asarray(self.wrong.sum(axis=1))

    @cached_property
    def both(self) -> BoolArray:
        """Whether some are right and some are wrong, so that there is a ranking."""
        return np.asarray((self.failures > 0) & (self.failures < self.n))

    @cached_property
    def ranking(self) -> IntArray:
        """The failure AUROC times a number that makes it whole for all numbers of failures."""
        whole = math.lcm(*(k * (self.n - k) for k in range(1, self.n)))
        rights_above = np.cumsum(~self.wrong, axis=1)
        won = (rights_above * self.wrong).sum(axis=1)
        pairs = np.maximum(self.failures * (self.n - self.failures), 1)
        # The multiple of 20 samples fits into 64 bits.
        return np.asarray(won * (whole // pairs))

    @cached_property
    def positives(self) -> IntArray:
        """Number of samples of the second class: of one test set it is the same."""
        return np.asarray(self.labels.sum(axis=1))

    @cached_property
    def classifier(self) -> IntArray:
        """A number for each classifier: how many samples of which class are right and wrong."""
        of_second = (self.wrong & (self.labels == 1)).sum(axis=1)
        size = self.n + 1
        return np.asarray((self.failures * size + of_second) * size + self.positives)

    @cached_property
    def ranked(self) -> IntArray:
        """A number for each ranking of one test set."""
        return np.asarray(self.ranking * (self.n + 1) + self.positives)

    def confidence(self, row: int) -> FloatArray:
        """Return the confidences of a system, which are in (1/2, 1) and distinct."""
        return _scales(self.n)[self.scale[row]]

    def scored(
        self, row: int, *, confidence: FloatArray | None = None, loss: FloatArray | None = None
    ) -> Scored:
        """Return what a metric is given; another confidence is one from outside the classifier."""
        own, wrong = self.confidence(row), self.wrong[row]
        c = own if confidence is None else confidence
        seen = self.shown is not ShownClasses.NOTHING
        view = _view(self.labels[row], wrong, own, self.shown) if seen else None
        return Scored(
            c, wrong.astype(float) if loss is None else loss, probability=c, class_view=view
        )

    def badness(self, metric: Metric) -> FloatArray:
        """Return the metric of every system, turned so that lower is better; NaN if undefined."""
        sign = 1.0 if metric.lower_is_better else -1.0
        return np.array([sign * float(metric.compute(s).value) for s in self._every])

    @property
    def _every(self) -> Iterable[Scored]:
        """What a metric is given of every system, sorted once for all metrics where few."""
        few = len(self.wrong) <= _KEPT
        return self._kept if few else (self.scored(row) for row in range(len(self.wrong)))

    @cached_property
    def _kept(self) -> tuple[Scored, ...]:
        return tuple(self.scored(row) for row in range(len(self.wrong)))

    def written(self, row: int) -> str:
        """Write a system as a word, most confident first."""
        word = "".join(_LETTERS[self.shown][self.labels[row], self.wrong[row].astype(int)])
        return f"{word}, surer" if self.scale[row] else word

    @cached_property
    def swaps(self) -> IntArray:
        """Systems before and after a success overtakes the failure right above it, (k, 2)."""
        places = range(self.n - 1)
        return self._pairs(
            (row, self._swapped(row, i))
            for i in places
            for row in _rows(self.wrong[:, i] & ~self.wrong[:, i + 1])
        )

    @cached_property
    def mends(self) -> IntArray:
        """Systems before and after one wrong prediction becomes right where it is, (k, 2)."""
        return self._pairs(
            (row, self._key(row, wrong=self.wrong[row] & (np.arange(self.n) != i)))
            for i in range(self.n)
            for row in _rows(self.wrong[:, i])
        )

    def _swapped(self, row: int, i: int) -> bytes:
        order = np.arange(self.n)
        order[[i, i + 1]] = i + 1, i
        return self._key(row, wrong=self.wrong[row, order], labels=self.labels[row, order])

    def _key(
        self, row: int, *, wrong: BoolArray | None = None, labels: IntArray | None = None
    ) -> bytes:
        w = self.wrong[row] if wrong is None else wrong
        y = self.labels[row] if labels is None else labels
        return bytes(w.tolist()) + bytes(y.tolist()) + bytes([int(self.scale[row])])

    @cached_property
    def _place(self) -> dict[bytes, int]:
        return {self._key(row): row for row in range(len(self.wrong))}

    def _pairs(self, found: Iterable[tuple[int, bytes]]) -> IntArray:
        known = [(row, self._place[key]) for row, key in found if key in self._place]
        return np.array(known, dtype=np.int64).reshape(-1, 2)


def _rows(there: BoolArray) -> list[int]:
    found: list[int] = np.flatnonzero(there).tolist()
    return found


@cache
def _scales(n: int) -> tuple[FloatArray, FloatArray]:
    """Return two sets of confidences with one order, of which the second doubts less."""
    usual = np.linspace(0.95, 0.55, n)
    return usual, 1 - (1 - usual) ** 2


def _view(
    labels: IntArray, wrong: BoolArray, confidence: FloatArray, shown: ShownClasses
) -> ClassView:
    """Return two classes, the predicted one as probable as the sample is confident."""
    predicted = np.where(wrong, 1 - labels, labels)
    p = np.where(np.arange(2) == predicted[:, None], confidence[:, None], 1 - confidence[:, None])
    truth = np.where(labels == 1, -1, labels) if shown is ShownClasses.OPEN else labels
    return ClassView(truth, predicted, (0, 1), p, np.log(p))


@cache
def all_systems(n: int, shown: ShownClasses = ShownClasses.NOTHING, *, scales: int = 1) -> Systems:
    """Return all systems of n samples: every order, on every scale, with all labels if shown."""
    orders = list(product((False, True), repeat=n))
    labels = list(product((0, 1), repeat=n)) if shown is not ShownClasses.NOTHING else [(0,) * n]
    return _systems(list(product(orders, labels, range(scales))), shown, all_orders=True)


@cache
def few_failures(shown: ShownClasses = ShownClasses.NOTHING, *, scales: int = 1) -> Systems:
    """Return the orders of more samples with few failures.

    The two classes take turns; of none that the model knows is the last failure.
    """
    places = [at for k in range(1, FEW + 1) for at in combinations(range(MORE), k)]
    rows = [
        (tuple(i in at for i in range(MORE)), _labels(shown, at), scale)
        for at in places
        for scale in range(scales)
    ]
    return _systems(rows, shown, all_orders=False)


def _labels(shown: ShownClasses, failures: tuple[int, ...]) -> tuple[int, ...]:
    second = {
        ShownClasses.NOTHING: (),
        ShownClasses.CLASSES: range(1, MORE, 2),
        ShownClasses.OPEN: failures[-1:],
    }[shown]
    return tuple(int(i in second) for i in range(MORE))


def _systems(
    rows: list[tuple[tuple[bool, ...], tuple[int, ...], int]],
    shown: ShownClasses,
    *,
    all_orders: bool,
) -> Systems:
    wrong, labels, scale = (np.array(column) for column in zip(*rows, strict=True))
    if shown is ShownClasses.OPEN:
        # What the model does not know it cannot get right.
        there = (wrong | (labels == 0)).all(axis=1)
        wrong, labels, scale = wrong[there], labels[there], scale[there]
    return Systems(wrong, labels, scale, shown, all_orders)
