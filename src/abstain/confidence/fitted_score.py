"""What every fitted score is, a frozen state that scores predictions, and what it is fitted on."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np

from abstain._foundation import checks, records
from abstain._foundation.arrays import to_numpy
from abstain.confidence.entry import ConfidenceScore, ScoreNeed, unmet
from abstain.errors import DomainError, InputError, MissingInputError, ShapeError
from abstain.predictions import Predictions
from abstain.predictions.softmax import row_blocks
from abstain.typing import Array, FloatArray, IntArray

#: What a score needs to be fitted is what any score may need.
FitNeed = ScoreNeed


@runtime_checkable
class ScoreState(Protocol):
    """Anything that scores predictions and has a name: a fitted score, a calibrated one."""

    @property
    def name(self) -> str:
        """The name that results carry."""

    def score(self, predictions: Predictions) -> ConfidenceScore:
        """Return the confidences of the samples; labels are not looked at."""


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedScore(ABC):
    """A confidence score with what it learned, ready to score other samples.

    Made by `fit`. Arrays are read-only. Saved and loaded by `abstain.save` and `abstain.load`.

    Attributes
    ----------
    name : str
        The name that results carry: that of the catalogue and the options that differ from the
        defaults. `renamed` changes it.
    """

    #: The name in the catalogue `FITTED`.
    kind: ClassVar[str] = ""

    name: records.NonEmptyText

    def __post_init__(self) -> None:
        """Check every field by its rule."""
        records.check(self)

    @abstractmethod
    def score(self, predictions: Predictions) -> ConfidenceScore:
        """Return the confidences of other samples, shape (n,); labels are not looked at."""

    def renamed(self, name: str) -> Self:
        """Return the same score under another name, to tell two of a kind apart."""
        return replace(self, name=name)

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return what is stored: plain values, such as JSON holds, and arrays, by field.

        A fitted score inside this one is a mapping among the plain values, and its arrays are
        named by its place: "parts.0.means".
        """
        plain: dict[str, Any] = {"kind": self.kind}
        arrays: dict[str, Array] = {}
        for f in fields(self):
            value = getattr(self, f.name)
            if isinstance(value, np.ndarray):
                arrays[f.name] = value
            else:
                plain[f.name] = value
        return plain, arrays


@dataclass(frozen=True, eq=False, kw_only=True)
class Composed(FittedScore):
    """A score that is made of others.

    Attributes
    ----------
    name : str
        The name that results carry.
    parts : tuple of str or FittedScore
        The scores; their axis is named "parts".
    """

    parts: Annotated[
        tuple[Any, ...],
        records.entries("parts", "a list of names of scores or fitted scores"),
    ]

    def __post_init__(self) -> None:
        """Check every field, and what each part is."""
        super().__post_init__()
        if not all((isinstance(p, str) and p) or isinstance(p, FittedScore) for p in self.parts):
            raise InputError(
                f"`parts` must be a list of names of scores or fitted scores; got {self.parts!r}"
            )

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return what is stored, as `FittedScore.to_arrays` does, the parts among it."""
        plain, arrays = super().to_arrays()
        plain["parts"] = list(self.parts)
        for i, part in enumerate(self.parts):
            if isinstance(part, FittedScore):
                plain["parts"][i], own = part.to_arrays()
                arrays |= {f"parts.{i}.{name}": value for name, value in own.items()}
        return plain, arrays


@dataclass(frozen=True)
class FittedKind:
    """What the catalogue knows of a score that needs fitting.

    Attributes
    ----------
    name : str
        The name scripts use.
    title : str
        The name people read.
    fit : callable
        From `Predictions` that meet the needs, and the options by keyword, to a `FittedScore`.
        One that searches is also given `criterion`.
    state : type
        The class of what `fit` returns.
    meaning : str
        One plain sentence.
    source : str
        Where it is defined.
    to_fit : frozenset of FitNeed
        What must be there to fit it.
    to_score : frozenset of FitNeed
        What must be there to score; never labels.
    options : mapping
        The options by name, with their defaults.
    required : tuple of str
        Options without a default.
    searches : bool
        Whether `criterion` is used to choose among candidates.
    weighted : bool
        Whether weights of the samples are used; otherwise predictions with weights are refused.
    """

    name: str
    title: str
    fit: Callable[..., FittedScore]
    state: type[FittedScore]
    meaning: str
    source: str
    to_fit: frozenset[FitNeed]
    to_score: frozenset[FitNeed]
    options: Mapping[str, Any] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    searches: bool = False
    weighted: bool = False

    def missing(self, predictions: Predictions) -> str:
        """Return why the score cannot be fitted on these predictions, or an empty string."""
        return "; ".join(unmet(self.to_fit, predictions))


def option_name(kind: str, **changed: tuple[Any, Any]) -> str:
    """Return the default name of a fitted score: its kind and the options that were changed.

    Each option comes with its value and its default.
    """
    told = [f"{name}={_short(x)}" for name, (x, default) in changed.items() if x != default]
    return f"{kind}@{','.join(told)}" if told else kind


def _short(x: Any) -> str:
    return repr(float(x)).removesuffix(".0") if isinstance(x, float) else str(x)


# ------------------------------------------------------------------------- features, classes
#: Between its inverse and it, squares of squares of features are numbers.
_FARTHEST = 1e70


def doubles(predictions: Predictions) -> FloatArray:
    """Return all features in float64, shape (n, d); refuse those whose squares are no numbers."""
    x = np.asarray(predictions.features, dtype=np.float64)
    refuse_extreme(x)
    return x


def refuse_extreme(x: Array) -> None:
    """Refuse features so large or so small that their squares overflow or vanish."""
    largest = max(float(x.max()), -float(x.min()))
    if largest and not 1 / _FARTHEST <= largest <= _FARTHEST:
        raise DomainError(
            f"`features` must have a largest entry within {1 / _FARTHEST:g} and {_FARTHEST:g} for "
            f"this score; got {largest:.3g}. Rescale them."
        )


def classes_of(predictions: Predictions, name: str, *, least: int) -> IntArray:
    """Return the class of each sample; refuse classes with fewer than `least` samples."""
    codes = predictions.label_codes
    if (unknown := int((codes < 0).sum())) > 0:
        raise DomainError(
            f"the score {name!r} is fitted on samples of known classes; {unknown} are of none: "
            "leave them out with `subset`"
        )
    counts = np.bincount(codes, minlength=predictions.n_classes)
    few = np.flatnonzero(counts < least)
    if few.size:
        first = predictions.class_names[int(few[0])]
        more = f" ({few.size} such classes)" if few.size > 1 else ""
        raise DomainError(
            f"the score {name!r} needs at least {least} samples of each class to be fitted; the "
            f"class {first!r} has {counts[few[0]]}{more}. Fit it on more samples."
        )
    return codes


def feature_blocks(
    predictions: Predictions, columns: int, name: str, *, also: int = 0
) -> Iterator[tuple[slice, FloatArray]]:
    """Cut the features into blocks of rows in float64; refuse those of another width.

    `also` is how many numbers a row costs beside its features.
    """
    x = features_like(predictions, columns, name)
    for rows in row_blocks(x.shape[0], columns + also):
        yield rows, x[rows].astype(np.float64)


def features_like(predictions: Predictions, columns: int, name: str) -> Array:
    """Return the features; refuse those of another width than the score was fitted on."""
    if predictions.features is None:
        raise MissingInputError(
            f"the score {name!r} needs features; give `features` to the predictions"
        )
    x: Array = to_numpy(predictions.features, "features")
    if x.shape[1] != columns:
        raise ShapeError(
            f"`features` must have the {columns} columns that {name!r} was fitted on; "
            f"got {x.shape[1]}"
        )
    return x


def refuse_other_classes(predictions: Predictions, fitted: tuple[Any, ...], name: str) -> None:
    """Refuse predictions whose classes are not those of the fit.

    Without class scores, the classes are only those that occur: some may be absent.
    """
    own = predictions.class_names
    same = own == fitted if predictions.has_class_scores else set(own) <= set(fitted)
    if same:
        return
    odd = [c for c in own if c not in fitted]
    what = f"{odd[0]!r} is new" if odd else f"{len(own)} of {len(fitted)} classes, or another order"
    raise InputError(
        f"the score {name!r} was fitted on other classes than those of these predictions: {what}. "
        "Give both the same `classes`."
    )


def confidences(name: str, values: FloatArray) -> ConfidenceScore:
    """Return the confidences, or say which sample lies too far away for a number."""
    hint = "Its features are too large; rescale them, for fitting too."
    return ConfidenceScore(name, checks.finite(values, name, hint=hint))
