"""Per-sample losses, including the costs of a cost matrix."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import to_numpy
from abstain._foundation.catalogue import Catalogue
from abstain.errors import (
    DomainError,
    InputError,
    MissingInputError,
    ShapeError,
    UnknownNameError,
    suggest,
)
from abstain.predictions.classes import UNKNOWN
from abstain.predictions.outputs import ClassScores
from abstain.predictions.record import Predictions
from abstain.predictions.softmax import row_blocks
from abstain.typing import AnyArray, Array, BoolArray, FloatArray


@dataclass(frozen=True, eq=False)
class CostMatrix:
    """A cost matrix, with one cost for each pair of true and predicted class.

    Parameters
    ----------
    costs : array of shape (K, K)
        ``costs[label, prediction]``, finite and non-negative, in the order of the classes.
    unknown : float, optional
        The cost of every prediction for a sample whose label is not a class. By default, an error
        is raised if there is such a sample.

    Raises
    ------
    ShapeError
        If the matrix is not square.
    DomainError
        If a cost is negative, NaN or infinite.

    Examples
    --------
    >>> from abstain.predictions import per_sample_loss
    >>> p = Predictions(prediction=[0, 1, 1], labels=[0, 1, 0])
    >>> per_sample_loss(p, CostMatrix([[0, 5], [1, 0]])).tolist()
    [0.0, 0.0, 5.0]
    """

    costs: AnyArray
    unknown: float | None = None

    def __post_init__(self) -> None:
        """Validate the matrix and store a read-only copy in float64."""
        costs = to_numpy(self.costs, "costs")
        if costs.ndim != 2 or costs.shape[0] != costs.shape[1] or costs.size == 0:
            raise ShapeError(
                f"`costs` must be a square matrix [label, prediction]; got shape {costs.shape}"
            )
        if costs.dtype.kind not in "biuf":
            raise DomainError(f"`costs` must hold numbers; got {costs.dtype}")
        costs = checks.finite(costs.astype(np.float64), "costs")
        checks.reject_entries("costs", "must not be negative", costs, costs < 0)
        costs.flags.writeable = False
        object.__setattr__(self, "costs", costs)
        if self.unknown is not None:
            checks.fraction(self.unknown, "unknown", high=float(np.finfo(np.float64).max))

    def compute(self, predictions: Predictions) -> FloatArray:
        """Return the cost of each sample, shape (n,)."""
        if len(self.costs) != predictions.n_classes:
            raise ShapeError(
                f"`costs` must have one row for each of the {predictions.n_classes} classes; "
                f"got {len(self.costs)}"
            )
        labels = predictions.label_codes
        costs: FloatArray = self.costs[labels, predictions.prediction_codes]
        if self.unknown is None:
            reject_unknown_classes(
                predictions, "a cost matrix", "Pass `CostMatrix(..., unknown=cost)`"
            )
            return costs
        return np.where(labels == UNKNOWN, float(self.unknown), costs)


def reject_unknown_classes(predictions: Predictions, name: str, hint: str) -> None:
    """Raise a DomainError if a label is not a class."""
    is_unknown = predictions.label_codes == UNKNOWN
    if is_unknown.any():
        raise DomainError(
            f"{name} has no value for samples of no known class; index "
            f"{int(np.flatnonzero(is_unknown)[0])} is one ({int(is_unknown.sum())} in all). {hint}."
        )


@dataclass(frozen=True)
class Loss:
    """Catalogue entry of a loss in `LOSSES`.

    Attributes
    ----------
    name : str
        Name in function calls and on the command line.
    title : str
        Name in reports.
    compute : callable
        Function from `Predictions` to an array of shape (n,), which is bool for a 0/1 loss.
    high : float
        Largest possible value, or infinity if the loss is unbounded.
    meaning : str
        A description of one sentence.
    source : str
        Reference of the definition.
    needs_scores : bool
        Whether the loss needs logits or probabilities.
    """

    name: str
    title: str
    compute: Callable[[Predictions], Array]
    high: float
    meaning: str
    source: str
    needs_scores: bool = False


def per_sample_loss(
    predictions: Predictions,
    loss: "str | CostMatrix | AnyArray | None" = None,
    *,
    cost_matrix: AnyArray | None = None,
) -> Array:
    """Compute the loss of each sample.

    The loss can be a named loss, a cost matrix or an array.

    Parameters
    ----------
    predictions : Predictions
        Output of the model, with labels unless the loss is an array.
    loss : str, CostMatrix or array of shape (n,), optional
        A name in `LOSSES`, a cost matrix, or one finite non-negative number per sample. By default,
        `predictions.loss`, or "zero_one" if that is None.
    cost_matrix : array of shape (K, K), optional
        The costs ``[label, prediction]`` for ``loss="cost_matrix"``.

    Returns
    -------
    ndarray of shape (n,)
        The losses, at least 0; lower is better. The dtype is bool for "zero_one", otherwise a
        float.

    Raises
    ------
    UnknownNameError
        If no loss has this name.
    MissingInputError
        If labels, class scores or costs are missing.
    DomainError
        If a cross-entropy is infinite, or if the loss is undefined for labels that are not classes.
    ShapeError
        If the length of the array is not n.

    Examples
    --------
    >>> p = Predictions(probabilities=[[0.8, 0.2], [0.6, 0.4]], labels=[0, 1])
    >>> per_sample_loss(p).tolist()
    [False, True]
    >>> per_sample_loss(p, "brier").round(2).tolist()
    [0.08, 0.72]
    """
    if loss is None:
        loss = "zero_one" if predictions.loss is None else "own"
    if cost_matrix is not None:
        if not (isinstance(loss, str) and loss == "cost_matrix"):
            raise InputError(
                "`cost_matrix` is used with `loss='cost_matrix'` only; drop it or select that loss"
            )
        loss = CostMatrix(cost_matrix)
    if isinstance(loss, CostMatrix):
        return loss.compute(predictions)
    if isinstance(loss, str):
        return _find_loss(loss).compute(predictions)
    values = checks.loss(loss)
    if values.size != predictions.n:
        raise ShapeError(
            f"`loss` must have one entry for each of the {predictions.n} samples; got {values.size}"
        )
    return values


def _find_loss(name: str) -> Loss:
    if name not in LOSSES:
        names = ", ".join(map(repr, LOSSES))
        raise UnknownNameError(
            f"there is no loss named {name!r}.{suggest(name, LOSSES)} The losses are {names}."
        )
    return LOSSES[name]


def _zero_one(predictions: Predictions) -> BoolArray:
    return ~predictions.correct


def _cross_entropy(predictions: Predictions) -> FloatArray:
    """Return the negative log-probability of the true class of each sample, shape (n,)."""
    scores, labels = _require_scores_and_labels(predictions, "cross-entropy")
    values = np.empty(predictions.n)
    for rows in row_blocks(*scores.values.shape):
        logs = scores.log_probabilities(rows)
        values[rows] = -np.take_along_axis(logs, labels[rows, None], axis=1)[:, 0]
    checks.reject_entries(
        "cross-entropy",
        "must be finite",
        values,
        np.isinf(values),
        hint="The label has probability 0 there: pass logits, or use 'brier'.",
    )
    # Adding 0.0 converts -0.0 to 0.0.
    return values + 0.0


def _brier(predictions: Predictions) -> FloatArray:
    """Return the Brier score of each sample, shape (n,)."""
    scores, labels = _require_scores_and_labels(predictions, "the Brier score")
    values = np.empty(predictions.n)
    for rows in row_blocks(*scores.values.shape):
        logs = scores.log_probabilities(rows)
        label = labels[rows, None]
        log_p_label = np.take_along_axis(logs, label, axis=1)[:, 0]
        p = np.exp(logs)
        np.put_along_axis(p, label, 0.0, axis=1)
        # 1 - p of the label is computed from log p, so 1 - p is exact if p is close to 1.
        values[rows] = np.expm1(log_p_label) ** 2 + (p**2).sum(axis=1)
    return values


def _balanced_error(predictions: Predictions) -> FloatArray:
    """Return the 0/1 errors, weighted so that each class has the same total weight."""
    # Labels that are not classes form one additional class, whose recall is 0.
    _, codes = np.unique(predictions.label_codes, return_inverse=True)
    class_weight = np.bincount(codes, weights=predictions.weight)
    occurs = class_weight > 0
    loss_of_class = np.zeros(class_weight.size)
    loss_of_class[occurs] = class_weight.sum() / (occurs.sum() * class_weight[occurs])
    return np.where(predictions.correct, 0.0, loss_of_class[codes])


def _cost_matrix(predictions: Predictions) -> Array:
    raise MissingInputError(
        "the loss 'cost_matrix' needs the costs: pass `cost_matrix=` "
        f"of shape ({predictions.n_classes}, {predictions.n_classes}) or a CostMatrix"
    )


def _user_loss(predictions: Predictions) -> Array:
    if predictions.loss is None:
        raise MissingInputError("the loss 'own' needs predictions with a `loss`")
    loss: Array = predictions.loss
    return loss


def _require_scores_and_labels(predictions: Predictions, name: str) -> tuple[ClassScores, Array]:
    scores = predictions.class_scores
    if scores is None:
        raise MissingInputError(f"{name} needs class scores; pass `logits` or `probabilities`")
    reject_unknown_classes(
        predictions, name, "Use 'zero_one', or remove these samples with `subset`"
    )
    return scores, predictions.label_codes


#: Every named loss.
LOSSES: Catalogue[Loss] = Catalogue("loss", list_command="list losses")

for _loss in (
    Loss("zero_one", "0/1 error", _zero_one, 1.0, "1 when the predicted class is wrong", "-"),
    Loss(
        "cross_entropy",
        "Cross-entropy",
        _cross_entropy,
        float("inf"),
        "minus the log-probability of the true class, in nats",
        "Good (1952), Rational Decisions",
        needs_scores=True,
    ),
    Loss(
        "brier",
        "Brier score",
        _brier,
        2.0,
        "squared distance of the class probabilities from the true class, summed over classes",
        "Brier (1950), eq. 2",
        needs_scores=True,
    ),
    Loss(
        "cost_matrix",
        "Cost matrix",
        _cost_matrix,
        float("inf"),
        "the cost of this confusion in a cost matrix",
        "Elkan (2001), The Foundations of Cost-Sensitive Learning",
    ),
    Loss(
        "balanced_error",
        "Class-balanced error",
        _balanced_error,
        float("inf"),
        "0/1 error weighted by n / (K n_class): its mean is 1 - balanced accuracy",
        "Brodersen et al. (2010), https://doi.org/10.1109/ICPR.2010.764",
    ),
    Loss("own", "Own loss", _user_loss, float("inf"), "the loss in the predictions", "-"),
):
    LOSSES.add(_loss)
