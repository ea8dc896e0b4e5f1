"""Per-sample losses, those of costs too: from predictions to one non-negative number a sample."""

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
    """What each confusion costs: a loss to pass to `per_sample_loss`.

    Parameters
    ----------
    costs : array of shape (K, K)
        ``costs[label, prediction]``, finite and non-negative, in the order of the classes.
    unknown : float, optional
        The cost of any prediction for a sample of no known class; without it such samples
        are refused.

    Raises
    ------
    ShapeError
        Not a square matrix.
    DomainError
        A negative, NaN or infinite cost.

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
        """Validate the matrix and keep a read-only copy in float64."""
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
        """Look up the cost of each sample, shape (n,)."""
        if len(self.costs) != predictions.n_classes:
            raise ShapeError(
                f"`costs` must have one row for each of the {predictions.n_classes} classes; "
                f"got {len(self.costs)}"
            )
        labels = predictions.label_codes
        out: FloatArray = self.costs[labels, predictions.prediction_codes]
        if self.unknown is None:
            refuse_unknown(predictions, "a cost matrix", "Pass `CostMatrix(..., unknown=cost)`")
            return out
        return np.where(labels == UNKNOWN, float(self.unknown), out)


def refuse_unknown(predictions: Predictions, name: str, hint: str) -> None:
    """Refuse samples of no known class where a loss has no value for them."""
    unknown = predictions.label_codes == UNKNOWN
    if unknown.any():
        raise DomainError(
            f"{name} has no value for samples of no known class; index "
            f"{int(np.flatnonzero(unknown)[0])} is one ({int(unknown.sum())} in all). {hint}."
        )


@dataclass(frozen=True)
class Loss:
    """What the catalogue knows of a loss.

    Attributes
    ----------
    name : str
        The name scripts use.
    title : str
        The name people read.
    compute : callable
        From `Predictions` to an array of shape (n,), bool for a 0/1 loss.
    high : float
        The largest possible value; infinity when there is none.
    meaning : str
        One plain sentence.
    source : str
        Where it is defined.
    needs_scores : bool
        Whether it needs logits or probabilities.
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
    """Return the loss of each sample: a named one, a cost matrix, or your own numbers.

    Parameters
    ----------
    predictions : Predictions
        What the model said, with labels unless the loss is your own.
    loss : str, CostMatrix or array of shape (n,), optional
        A name in `LOSSES`, a cost matrix, or one finite non-negative number a sample. By
        default the loss that came with the predictions, else "zero_one".
    cost_matrix : array of shape (K, K), optional
        The costs ``[label, prediction]`` for ``loss="cost_matrix"``.

    Returns
    -------
    ndarray of shape (n,)
        Lower is better, never negative; bool for "zero_one", else a float.

    Raises
    ------
    UnknownNameError
        No loss of that name.
    MissingInputError
        Labels, class scores or costs that the loss needs are not there.
    DomainError
        An infinite cross-entropy, a sample of no known class where the loss has no value.
    ShapeError
        Your own loss has another length.

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
                "`cost_matrix` goes with `loss='cost_matrix'`; drop it or ask for that loss"
            )
        loss = CostMatrix(cost_matrix)
    if isinstance(loss, CostMatrix):
        return loss.compute(predictions)
    if isinstance(loss, str):
        return _named(loss).compute(predictions)
    own = checks.loss(loss)
    if own.size != predictions.n:
        raise ShapeError(
            f"`loss` must have one entry for each of the {predictions.n} samples; got {own.size}"
        )
    return own


def _named(name: str) -> Loss:
    if name not in LOSSES:
        known = ", ".join(map(repr, LOSSES))
        raise UnknownNameError(
            f"there is no loss named {name!r}.{suggest(name, LOSSES)} The losses are {known}."
        )
    return LOSSES[name]


def _zero_one(predictions: Predictions) -> BoolArray:
    return ~predictions.correct


def _cross_entropy(predictions: Predictions) -> FloatArray:
    scores, labels = _needed(predictions, "cross-entropy")
    out = np.empty(predictions.n)
    for rows in row_blocks(*scores.values.shape):
        logs = scores.log_probabilities(rows)
        out[rows] = -np.take_along_axis(logs, labels[rows, None], axis=1)[:, 0]
    checks.reject_entries(
        "cross-entropy",
        "must be finite",
        out,
        np.isinf(out),
        hint="The label has probability 0 there: pass logits, or use 'brier'.",
    )
    # The logarithm of 1 is 0, and its negative must print as 0.
    return out + 0.0


def _brier(predictions: Predictions) -> FloatArray:
    scores, labels = _needed(predictions, "the Brier score")
    out = np.empty(predictions.n)
    for rows in row_blocks(*scores.values.shape):
        logs = scores.log_probabilities(rows)
        at = labels[rows, None]
        of_label = np.take_along_axis(logs, at, axis=1)[:, 0]
        p = np.exp(logs)
        np.put_along_axis(p, at, 0.0, axis=1)
        # 1 - p of the label from its logarithm: exact when p is nearly 1.
        out[rows] = np.expm1(of_label) ** 2 + (p**2).sum(axis=1)
    return out


def _balanced_error(predictions: Predictions) -> FloatArray:
    # Samples of no known class form a class of their own, whose recall is 0.
    _, codes = np.unique(predictions.label_codes, return_inverse=True)
    mass = np.bincount(codes, weights=predictions.weight)
    present = mass > 0
    share = np.zeros(mass.size)
    share[present] = mass.sum() / (present.sum() * mass[present])
    return np.where(predictions.correct, 0.0, share[codes])


def _cost_matrix(predictions: Predictions) -> Array:
    raise MissingInputError(
        "the loss 'cost_matrix' needs the costs: pass `cost_matrix=` "
        f"of shape ({predictions.n_classes}, {predictions.n_classes}) or a CostMatrix"
    )


def _own(predictions: Predictions) -> Array:
    if predictions.loss is None:
        raise MissingInputError("the loss 'own' needs predictions that were given a `loss`")
    own: Array = predictions.loss
    return own


def _needed(predictions: Predictions, name: str) -> tuple[ClassScores, Array]:
    scores = predictions.class_scores
    if scores is None:
        raise MissingInputError(f"{name} needs class scores; give `logits` or `probabilities`")
    refuse_unknown(predictions, name, "Use 'zero_one', or leave them out with `subset`")
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
        "the cost of this confusion in your cost matrix",
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
    Loss("own", "Own loss", _own, float("inf"), "the loss that came with the predictions", "-"),
):
    LOSSES.add(_loss)
