"""Enumerate all selective classifiers on a small number of samples.

A system is a selective classifier on n samples; it is defined by the order of its successes and
failures. A requirement compares the metrics of two systems.
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

#: Differences up to this value are rounding errors.
ROUNDING: Final = 1e-9

#: Number of samples of `systems_with_few_failures`, for metrics at a coverage such as 95%.
N_LARGE = 20
#: Maximum number of failures of `systems_with_few_failures`.
MAX_FEW_FAILURES = 2

#: Maximum number of systems whose sorted samples are cached.
_MAX_CACHED: Final = 3000


class ClassInputs(StrEnum):
    """Inputs other than confidence and loss that a metric may require."""

    NOTHING = "nothing"
    #: Labels, predictions and probabilities of two classes.
    CLASSES = "classes"
    #: Labels, predictions and probabilities with a second class that the model does not know. The
    #: model never predicts this class, so all samples of this class are failures.
    OPEN = "open"


#: Letters of successes and failures. Rows are the classes of the samples.
_LETTERS: Final = {
    ClassInputs.NOTHING: np.array([["o", "x"]]),
    ClassInputs.CLASSES: np.array([["o", "x"], ["O", "X"]]),
    ClassInputs.OPEN: np.array([["o", "x"], ["?", "?"]]),
}


@dataclass(frozen=True, eq=False)
class Systems:
    """Stores m systems of n samples as rows, sorted by descending confidence."""

    #: Mask of wrong predictions of shape (m, n).
    is_failure: BoolArray
    #: True classes, 0 or 1, of shape (m, n).
    labels: IntArray
    #: Index of the confidence scale, 0 or 1, of shape (m,).
    scale: IntArray
    class_inputs: ClassInputs
    #: Whether the rows contain all orders of n samples.
    all_orders: bool = True

    @property
    def n_samples(self) -> int:
        """Number of samples of each system."""
        return int(self.is_failure.shape[1])

    @cached_property
    def n_failures(self) -> IntArray:
        """Number of failures of each system."""
        return np.asarray(self.is_failure.sum(axis=1))

    @cached_property
    def has_ranking(self) -> BoolArray:
        """Whether each system has both successes and failures."""
        return np.asarray((self.n_failures > 0) & (self.n_failures < self.n_samples))

    @cached_property
    def ranking(self) -> IntArray:
        """Failure AUROC of each system, scaled by a common factor to an integer."""
        n = self.n_samples
        # Multiplied by a common multiple of the numbers of pairs, all AUROCs are integers. For 20
        # samples, they fit into 64 bits.
        common_multiple = math.lcm(*(k * (n - k) for k in range(1, n)))
        n_successes_above = np.cumsum(~self.is_failure, axis=1)
        n_ordered_pairs = (n_successes_above * self.is_failure).sum(axis=1)
        n_pairs = np.maximum(self.n_failures * (n - self.n_failures), 1)
        return np.asarray(n_ordered_pairs * (common_multiple // n_pairs))

    @cached_property
    def n_second_class(self) -> IntArray:
        """Number of samples of the second class, which distinguishes test sets."""
        return np.asarray(self.labels.sum(axis=1))

    @cached_property
    def classifier(self) -> IntArray:
        """Integer that identifies the numbers of successes and failures in each class."""
        n_failures_of_second = (self.is_failure & (self.labels == 1)).sum(axis=1)
        base = self.n_samples + 1
        return np.asarray(
            (self.n_failures * base + n_failures_of_second) * base + self.n_second_class
        )

    @cached_property
    def ranking_and_classes(self) -> IntArray:
        """Integer that identifies the pair of failure AUROC and test set."""
        return np.asarray(self.ranking * (self.n_samples + 1) + self.n_second_class)

    def confidence(self, row: int) -> FloatArray:
        """Return the confidences of one system in descending order."""
        return _confidence_scales(self.n_samples)[self.scale[row]]

    def scored(
        self, row: int, *, confidence: FloatArray | None = None, loss: FloatArray | None = None
    ) -> Scored:
        """Convert a system to inputs of a metric, optionally with other confidences or losses."""
        class_confidence = self.confidence(row)
        is_failure = self.is_failure[row]
        ranking_confidence = class_confidence if confidence is None else confidence
        class_view = None
        if self.class_inputs is not ClassInputs.NOTHING:
            is_open = self.class_inputs is ClassInputs.OPEN
            class_view = _make_class_view(
                self.labels[row], is_failure, class_confidence, is_open=is_open
            )
        return Scored(
            ranking_confidence,
            is_failure.astype(float) if loss is None else loss,
            probability=ranking_confidence,
            class_view=class_view,
        )

    def oriented_values(self, metric: Metric) -> FloatArray:
        """Compute a metric for each system, and negate it if higher values are better."""
        sign = 1.0 if metric.lower_is_better else -1.0
        n_systems = len(self.is_failure)
        samples: Iterable[Scored]
        if n_systems <= _MAX_CACHED:
            samples = self._cached_samples
        else:
            samples = (self.scored(row) for row in range(n_systems))
        return np.array([sign * float(metric.compute(scored).value) for scored in samples])

    @cached_property
    def _cached_samples(self) -> tuple[Scored, ...]:
        return tuple(self.scored(row) for row in range(len(self.is_failure)))

    def format_row(self, row: int) -> str:
        """Return text that represents each sample of a system by a letter."""
        letters = _LETTERS[self.class_inputs][self.labels[row], self.is_failure[row].astype(int)]
        text = "".join(letters)
        return f"{text}, higher confidences" if self.scale[row] else text

    @cached_property
    def swaps(self) -> IntArray:
        """Row pairs of systems before and after a swap, as an array of shape (k, 2).

        In a swap, a failure exchanges its position with the success that has the next lower
        confidence.
        """
        pairs = []
        for i in range(self.n_samples - 1):
            order = np.arange(self.n_samples)
            order[[i, i + 1]] = i + 1, i
            is_swappable = self.is_failure[:, i] & ~self.is_failure[:, i + 1]
            for row in np.flatnonzero(is_swappable).tolist():
                key = self._key(row, self.is_failure[row, order], self.labels[row, order])
                pairs.append((row, key))
        return self._existing_pairs(pairs)

    @cached_property
    def corrections(self) -> IntArray:
        """Row pairs before and after the correction of one failure, an array of shape (k, 2)."""
        pairs = []
        for i in range(self.n_samples):
            is_other_sample = np.arange(self.n_samples) != i
            for row in np.flatnonzero(self.is_failure[:, i]).tolist():
                key = self._key(row, self.is_failure[row] & is_other_sample, self.labels[row])
                pairs.append((row, key))
        return self._existing_pairs(pairs)

    def _key(self, row: int, is_failure: BoolArray, labels: IntArray) -> bytes:
        """Return bytes that identify a system, including the confidence scale of a row."""
        return bytes(is_failure.tolist()) + bytes(labels.tolist()) + bytes([int(self.scale[row])])

    @cached_property
    def _row_by_key(self) -> dict[bytes, int]:
        return {
            self._key(row, self.is_failure[row], self.labels[row]): row
            for row in range(len(self.is_failure))
        }

    def _existing_pairs(self, pairs: Iterable[tuple[int, bytes]]) -> IntArray:
        """Convert pairs of row and key to pairs of rows, and omit keys that no row has."""
        rows = [(row, self._row_by_key[key]) for row, key in pairs if key in self._row_by_key]
        return np.array(rows, dtype=np.int64).reshape(-1, 2)


@cache
def _confidence_scales(n: int) -> tuple[FloatArray, FloatArray]:
    """Return two arrays of descending confidences. The second array has higher values."""
    confidence = np.linspace(0.95, 0.55, n)
    return confidence, 1 - (1 - confidence) ** 2


def _make_class_view(
    labels: IntArray, is_failure: BoolArray, confidence: FloatArray, *, is_open: bool
) -> ClassView:
    """Create inputs for two classes; the confidence is the probability of the predicted class."""
    prediction = np.where(is_failure, 1 - labels, labels)
    is_predicted = np.arange(2) == prediction[:, None]
    probabilities = np.where(is_predicted, confidence[:, None], 1 - confidence[:, None])
    # The label -1 denotes a class that the model does not know.
    true_labels = np.where(labels == 1, -1, labels) if is_open else labels
    return ClassView(true_labels, prediction, (0, 1), probabilities, np.log(probabilities))


@cache
def all_systems(
    n: int, class_inputs: ClassInputs = ClassInputs.NOTHING, *, scales: int = 1
) -> Systems:
    """Enumerate all combinations of order, label vector and confidence scale for n samples."""
    orders = list(product((False, True), repeat=n))
    labels = [(0,) * n]
    if class_inputs is not ClassInputs.NOTHING:
        labels = list(product((0, 1), repeat=n))
    rows = list(product(orders, labels, range(scales)))
    return _make_systems(rows, class_inputs, all_orders=True)


@cache
def systems_with_few_failures(
    class_inputs: ClassInputs = ClassInputs.NOTHING, *, scales: int = 1
) -> Systems:
    """Enumerate systems of 20 samples with one or two failures.

    If both classes are known, the labels alternate. If one class is unknown, only the last failure
    belongs to the unknown class.
    """
    failure_positions = [
        positions
        for n_failures in range(1, MAX_FEW_FAILURES + 1)
        for positions in combinations(range(N_LARGE), n_failures)
    ]
    rows = []
    for positions in failure_positions:
        is_failure = tuple(i in positions for i in range(N_LARGE))
        labels = _labels_of_large_system(class_inputs, positions)
        rows += [(is_failure, labels, scale) for scale in range(scales)]
    return _make_systems(rows, class_inputs, all_orders=False)


def _labels_of_large_system(
    class_inputs: ClassInputs, failure_positions: tuple[int, ...]
) -> tuple[int, ...]:
    """Return the labels of a system of 20 samples."""
    second_class: Iterable[int] = ()
    if class_inputs is ClassInputs.CLASSES:
        second_class = range(1, N_LARGE, 2)
    elif class_inputs is ClassInputs.OPEN:
        second_class = failure_positions[-1:]
    return tuple(int(i in second_class) for i in range(N_LARGE))


def _make_systems(
    rows: list[tuple[tuple[bool, ...], tuple[int, ...], int]],
    class_inputs: ClassInputs,
    *,
    all_orders: bool,
) -> Systems:
    """Create systems from tuples of failure mask, label vector and confidence scale."""
    possible_rows = [
        row
        for row in rows
        if class_inputs is not ClassInputs.OPEN or _fails_on_unknown_class(row[0], row[1])
    ]
    is_failure, labels, scale = (np.array(column) for column in zip(*possible_rows, strict=True))
    return Systems(is_failure, labels, scale, class_inputs, all_orders)


def _fails_on_unknown_class(is_failure: tuple[bool, ...], labels: tuple[int, ...]) -> bool:
    """Return whether all samples of the unknown class (label 1) are failures."""
    return all(failed or label == 0 for failed, label in zip(is_failure, labels, strict=True))
