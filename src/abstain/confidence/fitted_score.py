"""`FittedScore`, the base class of fitted confidence scores, and the validation of their inputs."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np

from abstain._foundation import checks, records
from abstain._foundation.arrays import to_numpy
from abstain.confidence.entry import ConfidenceScore, ScoreNeed, unmet_needs
from abstain.errors import DomainError, InputError, MissingInputError, ShapeError
from abstain.predictions import Predictions
from abstain.predictions.softmax import row_blocks
from abstain.typing import Array, FloatArray, IntArray

#: Inputs that fitting a score requires. They have the same type as the inputs for scoring.
FitNeed = ScoreNeed


@runtime_checkable
class ScoreState(Protocol):
    """An object with a name that scores predictions, such as a fitted or calibrated score."""

    @property
    def name(self) -> str:
        """Name of the score in results."""

    def score(self, predictions: Predictions) -> ConfidenceScore:
        """Compute the confidences of the samples without their labels."""


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedScore(ABC):
    """A confidence score with fitted parameters that can score other samples.

    `fit` creates the score. `abstain.save` writes it to a file, and `abstain.load` reads it. Its
    arrays are read-only.

    Attributes
    ----------
    name : str
        Name in results. The default consists of the name in the catalogue and the options that
        differ from their defaults. `renamed` returns a copy with another name.
    """

    #: The name in the catalogue `FITTED`.
    kind: ClassVar[str] = ""

    name: records.NonEmptyText

    def __post_init__(self) -> None:
        """Validate the fields."""
        records.check(self)

    @abstractmethod
    def score(self, predictions: Predictions) -> ConfidenceScore:
        """Compute the confidence of each sample, shape (n,), without labels."""

    def renamed(self, name: str) -> Self:
        """Return a copy with another name, which distinguishes two scores of the same kind."""
        return replace(self, name=name)

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return two dictionaries by field name: plain values for JSON, and arrays.

        If a field contains fitted scores, each becomes a mapping among the plain values. The names
        of its arrays start with the field and an index, such as "parts.0.means".
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
class CompositeScore(FittedScore):
    """A score that combines other scores.

    Attributes
    ----------
    name : str
        Name of the score in results.
    parts : tuple of str or FittedScore
        The combined scores.
    """

    parts: Annotated[
        tuple[Any, ...],
        records.entries("parts", "a list of names of scores or fitted scores"),
    ]

    def __post_init__(self) -> None:
        """Validate the fields, and check the types of the parts."""
        super().__post_init__()
        if not all((isinstance(p, str) and p) or isinstance(p, FittedScore) for p in self.parts):
            raise InputError(
                f"`parts` must be a list of names of scores or fitted scores; got {self.parts!r}"
            )

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return the fields as in `FittedScore.to_arrays`, including the fields of all parts."""
        plain, arrays = super().to_arrays()
        plain["parts"] = list(self.parts)
        for i, part in enumerate(self.parts):
            if isinstance(part, FittedScore):
                plain["parts"][i], part_arrays = part.to_arrays()
                arrays |= {f"parts.{i}.{name}": value for name, value in part_arrays.items()}
        return plain, arrays


@dataclass(frozen=True)
class FittedKind:
    """Catalogue entry of a fitted score in `FITTED`.

    Attributes
    ----------
    name : str
        Name in function calls and on the command line.
    title : str
        Name in reports.
    fit : callable
        Function of `Predictions` and keyword options that returns a `FittedScore`. If `searches`
        is True, the function also takes `criterion`.
    state : type
        Class of the object that `fit` returns.
    meaning : str
        A description of one sentence.
    source : str
        Reference of the definition.
    to_fit : frozenset of FitNeed
        Inputs that the predictions must contain for fitting.
    to_score : frozenset of FitNeed
        Inputs that the predictions must contain for scoring. Labels are never required.
    options : mapping
        Default values of the options, by name.
    required : tuple of str
        Options without a default.
    searches : bool
        Whether `fit` selects among candidates by `criterion`.
    weighted : bool
        Whether `fit` uses sample weights. If it does not, unequal weights raise an error.
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

    def reason_not_applicable(self, predictions: Predictions) -> str:
        """Return the reason why the score cannot be fitted, or an empty string."""
        return "; ".join(unmet_needs(self.to_fit, predictions))


def name_with_options(kind: str, **options: tuple[Any, Any]) -> str:
    """Return the default name of a fitted score: its kind and the options that were changed.

    Each option is a pair of its value and its default value.
    """
    changes = [
        f"{name}={_format_option(x)}" for name, (x, default) in options.items() if x != default
    ]
    return f"{kind}@{','.join(changes)}" if changes else kind


def _format_option(x: Any) -> str:
    return repr(float(x)).removesuffix(".0") if isinstance(x, float) else str(x)


# ------------------------------------------------------------------------- features, classes
#: Largest allowed absolute feature. Fourth powers of numbers up to this limit do not overflow, and
#: fourth powers of numbers down to its inverse do not underflow.
_MAX_FEATURE = 1e70


def features_as_double(predictions: Predictions) -> FloatArray:
    """Return the features in float64, shape (n, d), after checking their range."""
    x = np.asarray(predictions.features, dtype=np.float64)
    check_feature_range(x)
    return x


def check_feature_range(x: Array) -> None:
    """Raise a DomainError if the squares of the features would overflow or underflow."""
    largest = max(float(x.max()), -float(x.min()))
    if largest and not 1 / _MAX_FEATURE <= largest <= _MAX_FEATURE:
        raise DomainError(
            f"`features` must have a largest entry within {1 / _MAX_FEATURE:g} and "
            f"{_MAX_FEATURE:g} for this score; got {largest:.3g}. Rescale them."
        )


def check_class_counts(predictions: Predictions, name: str, *, min_count: int) -> IntArray:
    """Return the class codes, and raise a DomainError if a class has too few samples."""
    codes = predictions.label_codes
    if (n_unknown := int((codes < 0).sum())) > 0:
        raise DomainError(
            f"the score {name!r} is fitted on samples of known classes; {n_unknown} samples have "
            "no known class: leave them out with `subset`"
        )
    counts = np.bincount(codes, minlength=predictions.n_classes)
    too_few = np.flatnonzero(counts < min_count)
    if too_few.size:
        class_name = predictions.class_names[int(too_few[0])]
        others = f" ({too_few.size} such classes)" if too_few.size > 1 else ""
        raise DomainError(
            f"the score {name!r} needs at least {min_count} samples of each class to be fitted; "
            f"the class {class_name!r} has {counts[too_few[0]]}{others}. Fit it on more samples."
        )
    return codes


def feature_blocks(
    predictions: Predictions, n_columns: int, name: str, *, n_extra: int = 0
) -> Iterator[tuple[slice, FloatArray]]:
    """Yield the rows and the float64 features of each block, after checking the width.

    `n_extra` is the number of further float64 entries per row that the caller allocates.
    """
    x = check_feature_width(predictions, n_columns, name)
    for rows in row_blocks(x.shape[0], n_columns + n_extra):
        yield rows, x[rows].astype(np.float64)


def check_feature_width(predictions: Predictions, n_columns: int, name: str) -> Array:
    """Return the features, and raise a ShapeError if their width differs from the fitted width."""
    if predictions.features is None:
        raise MissingInputError(
            f"the score {name!r} needs features; pass `features` to the predictions"
        )
    x: Array = to_numpy(predictions.features, "features")
    if x.shape[1] != n_columns:
        raise ShapeError(
            f"`features` must have the {n_columns} columns that {name!r} was fitted on; "
            f"got {x.shape[1]}"
        )
    return x


def check_same_classes(predictions: Predictions, fitted: tuple[Any, ...], name: str) -> None:
    """Raise an InputError if the classes of the predictions differ from the fitted classes.

    Predictions without class scores contain only the classes that occur, so a fitted class may be
    absent.
    """
    classes = predictions.class_names
    is_same = classes == fitted if predictions.has_class_scores else set(classes) <= set(fitted)
    if is_same:
        return
    new_classes = [c for c in classes if c not in fitted]
    difference = (
        f"{new_classes[0]!r} is new"
        if new_classes
        else f"{len(classes)} of {len(fitted)} classes, or another order"
    )
    raise InputError(
        f"the score {name!r} was fitted on other classes than those of these predictions: "
        f"{difference}. Give both the same `classes`."
    )


def predicted_class_index(predictions: Predictions, fitted: tuple[Any, ...]) -> IntArray:
    """Return the predicted class of each sample as an index into the fitted classes, shape (n,).

    The codes of predictions without class scores refer only to the classes that occur.
    """
    class_index = np.array([fitted.index(name) for name in predictions.class_names])
    return np.asarray(class_index[predictions.prediction_codes])


def as_confidence_score(name: str, values: FloatArray) -> ConfidenceScore:
    """Return the values as a `ConfidenceScore`, and raise a DomainError if a value overflowed."""
    hint = "Its features are too large; rescale them, for fitting too."
    return ConfidenceScore(name, checks.finite(values, name, hint=hint))
