"""Scores made of others: the place of one among the fitting data; a mean, product, learned sum."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, get_args

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import to_numpy
from abstain._foundation.lazy_imports import special
from abstain._foundation.records import NonEmptyText, Number, axes
from abstain.confidence.entry import ConfidenceScore
from abstain.confidence.fitted_score import Composed, FitNeed, FittedKind, FittedScore
from abstain.confidence.registry import score as score_of
from abstain.errors import DomainError, InputError
from abstain.predictions import Predictions, per_sample_loss
from abstain.typing import Array, FloatArray


@dataclass(frozen=True, eq=False, kw_only=True)
class Ranked(Composed):
    """The place of a score among those of the fitting data, in (0, 1).

    Strictly increasing in the score: it ranks alike, also beyond the values that were met.

    Attributes
    ----------
    name : str
        The name that results carry.
    parts : tuple of str or FittedScore
        The one score.
    steps : ndarray of shape (s,)
        Its distinct values on the fitting data, ascending.
    places : ndarray of shape (s,)
        Where each lies: the share of samples below and half of those tied, of one sample more
        than there were, so that neither 0 nor 1 is reached.
    """

    kind: ClassVar[str] = "rank"

    steps: Annotated[FloatArray, axes("s")]
    places: Annotated[FloatArray, axes("s")]

    def __post_init__(self) -> None:
        """Check every field, and that both scales ascend within their bounds."""
        super().__post_init__()
        if len(self.parts) != 1:
            raise InputError(f"`parts` must hold one score; got {len(self.parts)}")
        if (np.diff(self.steps) <= 0).any() or (np.diff(self.places) <= 0).any():
            raise InputError("`steps` and `places` must ascend")
        if self.places[0] <= 0 or self.places[-1] >= 1:
            raise InputError("`places` must lie between 0 and 1")

    def score(self, predictions: Predictions) -> ConfidenceScore:
        """Return the confidences of other samples, shape (n,); labels are not looked at."""
        return ConfidenceScore(self.name, self.placed(values_of(self.parts[0], predictions)))

    def placed(self, x: FloatArray) -> FloatArray:
        """Return the places of values, shape (n,)."""
        low, high, bottom, top = self.steps[0], self.steps[-1], self.places[0], self.places[-1]
        out: FloatArray = np.interp(x, self.steps, self.places)
        # Beyond what was met, what is left of (0, 1) is used up slowly: order stays.
        width = high - low if high > low else 1.0
        under, over = x < low, x > high
        with np.errstate(over="ignore"):
            out[under] = bottom / (1.0 + (low - x[under]) / width)
            out[over] = 1.0 - (1.0 - top) / (1.0 + (x[over] - high) / width)
        return out


def values_of(part: str | FittedScore, predictions: Predictions) -> FloatArray:
    """Return the confidences of a part as float64, shape (n,)."""
    found = score_of(part, predictions).values
    return to_numpy(found, "confidence").astype(np.float64)


def fit_rank(predictions: Predictions, *, score: str | FittedScore) -> Ranked:
    """Fit the places of one score; an integer weight counts a sample that many times."""
    values, weight = values_of(score, predictions), predictions.weight
    if weight is not None:
        values, weight = values[weight > 0], weight[weight > 0]
    steps, at = np.unique(values, return_inverse=True)
    mass = np.bincount(at, weights=weight)
    places = (np.cumsum(mass) - mass / 2 + 0.5) / (mass.sum() + 1)
    # A weight may be too small beside the others to move the place.
    rises = np.diff(places, prepend=0.0) > 0
    return Ranked(
        name=f"rank({score if isinstance(score, str) else score.name})",
        parts=(score,),
        steps=steps[rises],
        places=places[rises],
    )


# ------------------------------------------------------------------------------ combinations
How = Literal["mean", "product", "learned"]
HOW = get_args(How)
ScaleName = Literal["auto", "rank", "probability"]
SCALES = get_args(ScaleName)

#: Where squares of scores still are numbers.
_LARGEST = 1e150

#: Why the parts are on their scale.
_REASONS = {
    "auto probability": "every score is a probability, so all have one scale",
    "auto rank": "not every score is a probability: their places among the fitting data are used",
    "rank": "asked for: the places among the fitting data",
    "probability": "asked for: probabilities",
    "standard": "a learned sum needs no common scale; mean 0 and deviation 1 make it stable",
}


@dataclass(frozen=True, eq=False, kw_only=True)
class Combined(Composed):
    """The mean or the product of scores on one scale, or their learned sum.

    Attributes
    ----------
    name : str
        The name that results carry.
    how : {"mean", "product", "learned"}
        How the scores become one.
    scale : {"rank", "probability", "standard"}
        What is combined: the places of the scores among the fitting data, their probabilities,
        or, for "learned", their values with mean 0 and deviation 1.
    reason : str
        Why this scale.
    parts : tuple of str or FittedScore
        The scores; for "rank" they are `Ranked`.
    shift, spread, slope : ndarray of shape (parts,)
        For "learned" the mean, the deviation and the coefficient of each; 0, 1 and 1 otherwise.
    intercept : float
        For "learned" the log-odds of being right at the means; 0 otherwise.
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
        """Check every field, and that the scale goes with what is done."""
        super().__post_init__()
        if (self.how == "learned") != (self.scale == "standard"):
            raise InputError(f"`scale` does not go with how={self.how!r}; got {self.scale!r}")
        checks.reject_entries("spread", "must be above 0", self.spread, self.spread <= 0)

    def score(self, predictions: Predictions) -> ConfidenceScore:
        """Return the confidences of other samples, shape (n,); labels are not looked at."""
        if self.how == "learned":
            columns = _columns(self.parts, predictions, probabilities=False)
            with np.errstate(over="ignore", invalid="ignore"):
                values = (columns - self.shift) / self.spread @ self.slope + self.intercept
            checks.finite(values, self.name, hint="Its scores lie too far from those of the fit.")
            return ConfidenceScore(self.name, values, np.asarray(special.expit(values)))
        columns = _columns(self.parts, predictions, probabilities=self.scale == "probability")
        if self.how == "product":
            return ConfidenceScore(self.name, columns.prod(axis=1))
        values = columns.mean(axis=1)
        # A mean of probabilities of being right is one; a product of them is not.
        return ConfidenceScore(self.name, values, values if self.scale == "probability" else None)


def fit_combined(
    predictions: Predictions, *, scores: Any, how: How, scale: ScaleName, regularization: Any
) -> Combined:
    """Put scores on one scale, or learn how much each says."""
    checks.one_of(how, "how", HOW)
    checks.one_of(scale, "scale", SCALES)
    chosen = _chosen(scores)
    name = f"{how}({','.join(p if isinstance(p, str) else p.name for p in chosen)})"
    if how == "learned":
        if scale != "auto":
            raise InputError("a learned sum needs no common scale; drop `scale`")
        return _learned(
            name, chosen, predictions, checks.positive(regularization, "regularization")
        )
    used, reason = _scale(scale, chosen, predictions)
    ranked = used == "rank"
    return Combined(
        name=name,
        how=how,
        scale=used,
        reason=reason,
        parts=tuple(fit_rank(predictions, score=p) for p in chosen) if ranked else chosen,
        shift=np.zeros(len(chosen)),
        spread=np.ones(len(chosen)),
        slope=np.ones(len(chosen)),
        intercept=0.0,
    )


def _chosen(scores: Any) -> tuple[str | FittedScore, ...]:
    if isinstance(scores, str | FittedScore) or not isinstance(scores, Sequence):
        raise InputError(f"`scores` must be a list of two scores or more; got {scores!r}")
    if len(scores) < 2 or not all(isinstance(p, str | FittedScore) for p in scores):
        raise InputError(
            "`scores` must be two or more names of scores or fitted scores, such as "
            f"['msr', 'energy']; got {list(scores)!r}"
        )
    return tuple(scores)


def _scale(
    scale: ScaleName, chosen: tuple[str | FittedScore, ...], predictions: Predictions
) -> tuple[Literal["rank", "probability"], str]:
    if scale != "auto":
        return scale, _REASONS[scale]
    if all(score_of(p, predictions).probability is not None for p in chosen):
        return "probability", _REASONS["auto probability"]
    return "rank", _REASONS["auto rank"]


def _columns(
    chosen: tuple[str | FittedScore, ...], predictions: Predictions, *, probabilities: bool
) -> FloatArray:
    """Return the confidences of each part, shape (n, parts)."""
    if not probabilities:
        return np.stack([values_of(p, predictions) for p in chosen], axis=1)
    columns = []
    for own in (score_of(p, predictions) for p in chosen):
        if own.probability is None:
            raise InputError(f"the score {own.name!r} is no probability here; use `scale='rank'`")
        columns.append(to_numpy(own.probability, own.name).astype(np.float64))
    return np.stack(columns, axis=1)


def _learned(
    name: str, chosen: tuple[str | FittedScore, ...], predictions: Predictions, strength: float
) -> Combined:
    """Learn the log-odds of being right as a weighted sum of the scores."""
    from sklearn.linear_model import LogisticRegression

    right, weight = _right(predictions), predictions.weight
    x = _columns(chosen, predictions, probabilities=False)
    largest = np.abs(x).max(axis=0)
    checks.reject_entries("scores", "must be below 1e+150 in size", largest, largest > _LARGEST)
    shift = np.average(x, axis=0, weights=weight)
    spread = np.sqrt(np.average((x - shift) ** 2, axis=0, weights=weight))
    spread = np.where(spread > 0, spread, 1.0)
    # Newton's method on a few coefficients: exact to rounding, so the order of rows is nothing.
    model = LogisticRegression(C=1 / strength, solver="newton-cholesky", tol=1e-12, max_iter=1000)
    model.fit((x - shift) / spread, right, sample_weight=weight)
    return Combined(
        name=name,
        how="learned",
        scale="standard",
        reason=_REASONS["standard"],
        parts=chosen,
        shift=shift,
        spread=spread,
        slope=model.coef_[0],
        intercept=float(model.intercept_[0]),
    )


def _right(predictions: Predictions) -> Array:
    """Return whether each sample is right; refuse other losses, and data of one kind only."""
    loss = per_sample_loss(predictions)
    right: Array = loss == 0
    checks.binary_loss(loss, required_by="a learned combination")
    counts = predictions.weight is None or predictions.weight > 0
    if not (right & counts).any() or not (~right & counts).any():
        kind = "failures" if right.any() else "successes"
        raise DomainError(
            f"a learned combination needs failures and successes to learn from; got no {kind}"
        )
    return right


_NOTHING: frozenset[FitNeed] = frozenset()

ENTRIES = (
    FittedKind(
        "rank",
        "Place among the fitting data",
        fit_rank,
        Ranked,
        "any score on the scale of its own distribution: the share of fitting samples below it",
        "the empirical distribution function, ties counted half",
        _NOTHING,
        _NOTHING,
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
        _NOTHING,
        _NOTHING,
        {"how": "mean", "scale": "auto", "regularization": 1.0},
        required=("scores",),
        weighted=True,
    ),
)
