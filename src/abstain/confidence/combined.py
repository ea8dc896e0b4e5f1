"""Confidence scores that combine other scores: ranks, means, products and weighted sums."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, get_args

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import to_numpy
from abstain._foundation.lazy_imports import special
from abstain._foundation.records import NonEmptyText, Number, axes
from abstain.confidence.entry import ConfidenceScore
from abstain.confidence.fitted_score import CompositeScore, FitNeed, FittedKind, FittedScore
from abstain.confidence.registry import score as score_of
from abstain.errors import DomainError, InputError
from abstain.predictions import Predictions, per_sample_loss
from abstain.typing import Array, FloatArray


@dataclass(frozen=True, eq=False, kw_only=True)
class Ranked(CompositeScore):
    """Relative rank of a score value among the values on the fitting data, in (0, 1).

    The relative rank increases with the score.

    Attributes
    ----------
    name : str
        Name of the score in results.
    parts : tuple of str or FittedScore
        The ranked score, as a tuple with one item.
    fitted_values : ndarray of shape (s,)
        Distinct values of the score on the fitting data, in ascending order.
    ranks : ndarray of shape (s,)
        Relative rank of each value, (samples below + half of the tied samples + 1/2) / (n + 1).
    """

    kind: ClassVar[str] = "rank"

    fitted_values: Annotated[FloatArray, axes("s")]
    ranks: Annotated[FloatArray, axes("s")]

    def __post_init__(self) -> None:
        """Validate the fields and the order of values and ranks."""
        super().__post_init__()
        if len(self.parts) != 1:
            raise InputError(f"`parts` must contain one score; got {len(self.parts)}")
        if (np.diff(self.fitted_values) <= 0).any() or (np.diff(self.ranks) <= 0).any():
            raise InputError("`fitted_values` and `ranks` must ascend")
        if self.ranks[0] <= 0 or self.ranks[-1] >= 1:
            raise InputError("`ranks` must lie between 0 and 1")

    def score(self, predictions: Predictions) -> ConfidenceScore:
        """Compute the relative rank of each sample, shape (n,). Labels are not required."""
        return ConfidenceScore(self.name, self.rank(part_values(self.parts[0], predictions)))

    def rank(self, x: FloatArray) -> FloatArray:
        """Return the relative ranks of the values, shape (n,)."""
        low = self.fitted_values[0]
        high = self.fitted_values[-1]
        width = high - low if high > low else 1.0
        ranks: FloatArray = np.interp(x, self.fitted_values, self.ranks)
        # Outside the range of the fitting data, the rank approaches 0 or 1 hyperbolically.
        is_below = x < low
        is_above = x > high
        with np.errstate(over="ignore"):
            distance_below = (low - x[is_below]) / width
            distance_above = (x[is_above] - high) / width
            ranks[is_below] = self.ranks[0] / (1.0 + distance_below)
            ranks[is_above] = 1.0 - (1.0 - self.ranks[-1]) / (1.0 + distance_above)
        return ranks


def part_values(part: str | FittedScore, predictions: Predictions) -> FloatArray:
    """Return the confidences of one score in float64, shape (n,)."""
    values = score_of(part, predictions).values
    return to_numpy(values, "confidence").astype(np.float64)


def fit_rank(predictions: Predictions, *, score: str | FittedScore) -> Ranked:
    """Fit the relative rank of each distinct value of a score."""
    values = part_values(score, predictions)
    weight = predictions.weight
    if weight is not None:
        has_weight = weight > 0
        values = values[has_weight]
        weight = weight[has_weight]
    distinct_values, index = np.unique(values, return_inverse=True)
    group_weight = np.bincount(index, weights=weight)
    weight_below_middle = np.cumsum(group_weight) - group_weight / 2
    ranks = (weight_below_middle + 0.5) / (group_weight.sum() + 1)
    # A tiny weight may not change the rank in float64.
    is_increasing = np.diff(ranks, prepend=0.0) > 0
    return Ranked(
        name=f"rank({_name_of_part(score)})",
        parts=(score,),
        fitted_values=distinct_values[is_increasing],
        ranks=ranks[is_increasing],
    )


def _name_of_part(part: str | FittedScore) -> str:
    return part if isinstance(part, str) else part.name


# ------------------------------------------------------------------------------ combinations
How = Literal["mean", "product", "learned"]
HOW = get_args(How)
ScaleName = Literal["auto", "rank", "probability"]
SCALES = get_args(ScaleName)

#: Largest allowed absolute score, whose square does not overflow.
_MAX_SCORE = 1e150

#: Text that explains the choice of the common scale.
_REASONS = {
    "auto probability": "every score is a probability, so all have one scale",
    "auto rank": "not every score is a probability: their ranks among the fitting data are used",
    "rank": "requested: the ranks among the fitting data",
    "probability": "requested: probabilities",
    "standard": "a learned sum needs no common scale; mean 0 and deviation 1 make it stable",
}


@dataclass(frozen=True, eq=False, kw_only=True)
class Combined(CompositeScore):
    """The mean or product of scores on a common scale, or a learned weighted sum.

    Attributes
    ----------
    name : str
        Name of the score in results.
    how : {"mean", "product", "learned"}
        Whether the score is a mean, a product or a learned weighted sum.
    scale : {"rank", "probability", "standard"}
        Scale of the combined scores. "rank": relative ranks among the fitting data. "standard":
        values with mean 0 and standard deviation 1, for the learned sum.
    reason : str
        Reason for the choice of the scale.
    parts : tuple of str or FittedScore
        The combined scores, which have the type `Ranked` if `scale` is "rank".
    shift, spread, slope : ndarray of shape (parts,)
        Mean, standard deviation and coefficient of each score in a learned sum; otherwise 0, 1 and
        1.
    intercept : float
        Log-odds of a correct prediction in a learned sum if all scores equal their means; otherwise
        0.
    """

    kind: ClassVar[str] = "combine"

    how: How
    scale: Literal["rank", "probability", "standard"]
    reason: NonEmptyText
    shift: Annotated[FloatArray, axes("parts")]
    spread: Annotated[FloatArray, axes("parts")]
    slope: Annotated[FloatArray, axes("parts")]
    intercept: Number

    def __post_init__(self) -> None:
        """Validate the fields, and check that `how` and `scale` are compatible."""
        super().__post_init__()
        if (self.how == "learned") != (self.scale == "standard"):
            raise InputError(f"`scale` is not valid for how={self.how!r}; got {self.scale!r}")
        checks.reject_entries("spread", "must be above 0", self.spread, self.spread <= 0)

    def score(self, predictions: Predictions) -> ConfidenceScore:
        """Compute the confidence of each sample, shape (n,). Labels are not required."""
        if self.how == "learned":
            log_odds = self._learned_log_odds(predictions)
            return ConfidenceScore(self.name, log_odds, np.asarray(special.expit(log_odds)))
        are_probabilities = self.scale == "probability"
        columns = _part_columns(self.parts, predictions, probabilities=are_probabilities)
        if self.how == "product":
            return ConfidenceScore(self.name, columns.prod(axis=1))
        # Only the mean of probabilities is a probability of a correct prediction.
        mean = columns.mean(axis=1)
        return ConfidenceScore(self.name, mean, mean if are_probabilities else None)

    def _learned_log_odds(self, predictions: Predictions) -> FloatArray:
        """Return the log-odds of a correct prediction from the learned sum, shape (n,)."""
        columns = _part_columns(self.parts, predictions, probabilities=False)
        with np.errstate(over="ignore", invalid="ignore"):
            log_odds = (columns - self.shift) / self.spread @ self.slope + self.intercept
        hint = "The scores are too far from those of the fit."
        return checks.finite(log_odds, self.name, hint=hint)


def fit_combined(
    predictions: Predictions, *, scores: Any, how: How, scale: ScaleName, regularization: Any
) -> Combined:
    """Combine scores on a common scale, or fit a learned weighted sum."""
    checks.one_of(how, "how", HOW)
    checks.one_of(scale, "scale", SCALES)
    parts = _check_scores(scores)
    part_names = ",".join(_name_of_part(part) for part in parts)
    name = f"{how}({part_names})"
    if how == "learned":
        if scale != "auto":
            raise InputError("a learned sum needs no common scale; drop `scale`")
        penalty = checks.positive(regularization, "regularization")
        return _fit_learned(name, parts, predictions, penalty)
    if scale == "auto":
        scale = _select_scale(parts, predictions)
        reason = _REASONS[f"auto {scale}"]
    else:
        reason = _REASONS[scale]
    if scale == "rank":
        parts = tuple(fit_rank(predictions, score=part) for part in parts)
    return Combined(
        name=name,
        how=how,
        scale=scale,
        reason=reason,
        parts=parts,
        shift=np.zeros(len(parts)),
        spread=np.ones(len(parts)),
        slope=np.ones(len(parts)),
        intercept=0.0,
    )


def _select_scale(
    parts: tuple[str | FittedScore, ...], predictions: Predictions
) -> Literal["rank", "probability"]:
    """Return "probability" if every score is a probability for these samples, otherwise "rank"."""
    for part in parts:
        if score_of(part, predictions).probability is None:
            return "rank"
    return "probability"


def _check_scores(scores: Any) -> tuple[str | FittedScore, ...]:
    """Return `scores` as a tuple, or raise an InputError if it has fewer than two scores."""
    if isinstance(scores, str | FittedScore) or not isinstance(scores, Sequence):
        raise InputError(f"`scores` must be a list of two scores or more; got {scores!r}")
    if len(scores) < 2 or not all(isinstance(p, str | FittedScore) for p in scores):
        raise InputError(
            "`scores` must be two or more names of scores or fitted scores, such as "
            f"['msr', 'energy']; got {list(scores)!r}"
        )
    return tuple(scores)


def _part_columns(
    parts: tuple[str | FittedScore, ...], predictions: Predictions, *, probabilities: bool
) -> FloatArray:
    """Return the values or probabilities of all scores, shape (n, number of scores)."""
    if not probabilities:
        return np.stack([part_values(part, predictions) for part in parts], axis=1)
    columns = []
    for part in parts:
        score = score_of(part, predictions)
        if score.probability is None:
            raise InputError(f"the score {score.name!r} is no probability here; use `scale='rank'`")
        columns.append(to_numpy(score.probability, score.name).astype(np.float64))
    return np.stack(columns, axis=1)


def _fit_learned(
    name: str, parts: tuple[str | FittedScore, ...], predictions: Predictions, regularization: float
) -> Combined:
    """Fit a logistic regression that predicts correctness from the scores."""
    from sklearn.linear_model import LogisticRegression

    weight = predictions.weight
    is_correct = _correctness(predictions)
    columns = _part_columns(parts, predictions, probabilities=False)
    largest = np.abs(columns).max(axis=0)
    checks.reject_entries("scores", "must be below 1e+150 in size", largest, largest > _MAX_SCORE)
    shift = np.average(columns, axis=0, weights=weight)
    spread = np.sqrt(np.average((columns - shift) ** 2, axis=0, weights=weight))
    spread = np.where(spread > 0, spread, 1.0)
    # Newton's method converges up to rounding, so the order of rows does not affect the result.
    model = LogisticRegression(
        C=1 / regularization, solver="newton-cholesky", tol=1e-12, max_iter=1000
    )
    model.fit((columns - shift) / spread, is_correct, sample_weight=weight)
    return Combined(
        name=name,
        how="learned",
        scale="standard",
        reason=_REASONS["standard"],
        parts=parts,
        shift=shift,
        spread=spread,
        slope=model.coef_[0],
        intercept=float(model.intercept_[0]),
    )


def _correctness(predictions: Predictions) -> Array:
    """Return whether each prediction is correct. A DomainError requires successes and failures."""
    loss = per_sample_loss(predictions)
    checks.binary_loss(loss, required_by="a learned combination")
    is_correct: Array = loss == 0
    weight = predictions.weight
    outcomes = is_correct if weight is None else is_correct[weight > 0]
    if outcomes.all() or not outcomes.any():
        missing_kind = "failures" if is_correct.any() else "successes"
        raise DomainError(
            "a learned combination needs failures and successes to learn from; got no "
            f"{missing_kind}"
        )
    return is_correct


_NO_NEEDS: frozenset[FitNeed] = frozenset()

ENTRIES = (
    FittedKind(
        "rank",
        "Rank among the fitting data",
        fit_rank,
        Ranked,
        "any score on the scale of its own distribution: the share of fitting samples below it",
        "the empirical distribution function, ties counted half",
        _NO_NEEDS,
        _NO_NEEDS,
        required=("score",),
        weighted=True,
    ),
    FittedKind(
        "combine",
        "Combination of scores",
        fit_combined,
        Combined,
        "the mean or product of scores on one scale, or the sum that predicts correctness best",
        "learned: logistic regression, Platt (1999)",
        _NO_NEEDS,
        _NO_NEEDS,
        {"how": "mean", "scale": "auto", "regularization": 1.0},
        required=("scores",),
        weighted=True,
    ),
)
