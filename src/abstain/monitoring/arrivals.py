"""Compute the quantities that a monitor needs for a batch of predictions and labels."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np

from abstain._foundation import checks
from abstain.errors import ShapeError
from abstain.monitoring.lines import Line
from abstain.monitoring.plan import MonitorPlan
from abstain.monitoring.state import hash_names, to_uniform
from abstain.typing import AnyArray, Array

_NAN: Final = float("nan")


class ArrivedLabel(NamedTuple):
    """The label of one sample: either its loss or the hash of its true class."""

    name: str
    #: Hash of the id, see `hash_names`.
    key: int
    #: Loss, or NaN if the label is a class.
    loss: float
    #: Hash of the true class, or 0 if the label is a loss.
    class_hash: int


class Prediction(NamedTuple):
    """A prediction with its random numbers and the quantities that depend on the plan."""

    name: str
    #: Hash of the id, see `hash_names`.
    key: int
    #: Uniform random numbers for the position among ties and for the request of the label.
    tie_break: float
    draw: float
    is_answered: bool
    #: Block of the calibration data that contains the confidence.
    block: int
    #: Predicted probability of a failure, and probability that the label is requested.
    predicted: float
    label_probability: float
    #: Hash of the predicted class, or 0 if there is no class.
    answer: int
    #: Label in the same line, or None.
    label: ArrivedLabel | None


def build_predictions(
    plan: MonitorPlan,
    ids: Sequence[object],
    confidence: AnyArray,
    classes: Sequence[object] | None = None,
    labels: Iterable[ArrivedLabel | None] | None = None,
) -> list[Prediction]:
    """Return the predictions of a batch. Invalid values raise an InputError."""
    n = len(ids)
    if not n:
        return []
    confidences = checks.confidence(confidence, length=n).astype(np.float64)
    if plan.scale == "probability":
        checks.unit_interval(confidences, "confidence")
    numbers = hash_names(ids, plan.seed)
    blocks = plan.calibration_blocks(confidences, to_uniform(numbers[:, 1]))
    predicted = plan.predicted(confidences, blocks)
    # The columns have the order of the fields of `Prediction`.
    columns = (
        [str(name) for name in ids],
        numbers[:, 0].tolist(),
        to_uniform(numbers[:, 2]).tolist(),
        to_uniform(numbers[:, 3]).tolist(),
        plan.answered(confidences).tolist(),
        blocks.tolist(),
        predicted.tolist(),
        plan.label_probabilities(predicted).tolist(),
        _hashes(classes, n, plan.seed).tolist(),
        [None] * n if labels is None else labels,
    )
    return [Prediction._make(row) for row in zip(*columns, strict=True)]


def build_labels(
    plan: MonitorPlan,
    ids: Sequence[object],
    loss: Sequence[float] | Array,
    classes: Sequence[object] | None,
) -> list[ArrivedLabel]:
    """Return the labels of a batch. A label has a loss, or a class and a loss of NaN."""
    names = [str(name) for name in ids]
    keys = hash_names(ids, plan.seed)[:, 0].tolist()
    losses = np.asarray(loss, np.float64).tolist()
    hashes = _hashes(classes, len(ids), plan.seed).tolist()
    rows = zip(names, keys, losses, hashes, strict=True)
    return [ArrivedLabel._make(row) for row in rows]


def build_arrivals(plan: MonitorPlan, lines: Sequence[Line]) -> list[Prediction | ArrivedLabel]:
    """Return a prediction or a label for each line, in the order of the lines."""
    labeled = [i for i, line in enumerate(lines) if line.has_label]
    labels = build_labels(
        plan,
        [lines[i].id for i in labeled],
        [_loss_or_nan(lines[i]) for i in labeled],
        [lines[i].label for i in labeled],
    )
    label_of_line = dict(zip(labeled, labels, strict=True))
    predicted = [i for i, line in enumerate(lines) if line.confidence is not None]
    predictions = build_predictions(
        plan,
        [lines[i].id for i in predicted],
        np.array([lines[i].confidence for i in predicted], np.float64),
        [lines[i].prediction for i in predicted],
        [label_of_line.get(i) for i in predicted],
    )
    arrivals: dict[int, Prediction | ArrivedLabel] = {}
    arrivals.update(label_of_line)
    # A line with a prediction and a label is a prediction, which contains the label.
    arrivals.update(zip(predicted, predictions, strict=True))
    return [arrivals[i] for i in range(len(lines))]


def _loss_or_nan(line: Line) -> float:
    return _NAN if line.loss is None else line.loss


def _hashes(classes: Sequence[object] | None, n: int, seed: int) -> Array:
    """Return the hash of each class, or 0 for a missing class."""
    hashes = np.zeros(n, np.uint64)
    if classes is None:
        return hashes
    if len(classes) != n:
        raise ShapeError(f"classes must have one entry for each of {n} ids; got {len(classes)}")
    present = [i for i, name in enumerate(classes) if name is not None]
    if present:
        hashes[present] = hash_names([classes[i] for i in present], seed)[:, 0]
    return hashes
