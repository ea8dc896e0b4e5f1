"""Prepare the predictions and labels of a batch, with all values computed for the whole batch."""

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
    """A label, which is a loss or the hash of a true class."""

    name: str
    #: Hash of the id, see `hash_names`.
    key: int
    #: Loss, or NaN if the label is a class.
    loss: float
    #: Hash of the true class, or 0 if the label is a loss.
    class_hash: int


class Prediction(NamedTuple):
    """A prediction with the random numbers and quantities that were computed for it."""

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
    values = checks.confidence(confidence, length=n).astype(np.float64)
    if plan.scale == "probability":
        checks.unit_interval(values, "confidence")
    numbers = hash_names(ids, plan.seed)
    tie_breaks, draws = to_uniform(numbers[:, 2]), to_uniform(numbers[:, 3])
    blocks = plan.calibration_blocks(values, to_uniform(numbers[:, 1]))
    predicted = plan.predicted(values, blocks)
    columns = (
        numbers[:, 0], tie_breaks, draws, plan.answered(values), blocks, predicted,
        plan.label_probabilities(predicted), _hashes(classes, n, plan.seed),
    )  # fmt: skip
    return [
        Prediction._make(row)
        for row in zip(
            map(str, ids),
            *(column.tolist() for column in columns),
            [None] * n if labels is None else labels,
            strict=True,
        )
    ]


def build_labels(
    plan: MonitorPlan,
    ids: Sequence[object],
    loss: Sequence[float] | Array,
    classes: Sequence[object] | None,
) -> list[ArrivedLabel]:
    """Return the labels of a batch. A label has a NaN loss or the class None."""
    keys = hash_names(ids, plan.seed)[:, 0].tolist()
    hashes = _hashes(classes, len(ids), plan.seed).tolist()
    losses = np.asarray(loss, np.float64).tolist()
    return list(map(ArrivedLabel._make, zip(map(str, ids), keys, losses, hashes, strict=True)))


def build_arrivals(plan: MonitorPlan, lines: Sequence[Line]) -> list[Prediction | ArrivedLabel]:
    """Return a prediction or a label for each line, in the order of the lines."""
    labeled = [i for i, line in enumerate(lines) if line.has_label]
    labels = build_labels(
        plan,
        [lines[i].id for i in labeled],
        [_NAN if (loss := lines[i].loss) is None else loss for i in labeled],
        [lines[i].label for i in labeled],
    )
    by_row = dict(zip(labeled, labels, strict=True))
    rows = [i for i, line in enumerate(lines) if line.confidence is not None]
    predictions = build_predictions(
        plan,
        [lines[i].id for i in rows],
        np.array([lines[i].confidence for i in rows], np.float64),
        [lines[i].prediction for i in rows],
        [by_row.get(i) for i in rows],
    )
    arrivals: dict[int, Prediction | ArrivedLabel] = {
        **by_row,
        **dict(zip(rows, predictions, strict=True)),
    }
    return [arrivals[i] for i in range(len(lines))]


def _hashes(classes: Sequence[object] | None, n: int, seed: int) -> Array:
    """Return the hash of each class, or 0 for None."""
    hashes = np.zeros(n, np.uint64)
    if classes is None:
        return hashes
    if len(classes) != n:
        raise ShapeError(f"classes must have one entry for each of {n} ids; got {len(classes)}")
    rows = [i for i, name in enumerate(classes) if name is not None]
    if rows:
        hashes[rows] = hash_names([classes[i] for i in rows], seed)[:, 0]
    return hashes
