"""Define `FittedScore`, the base class of fitted confidence scores, and validate their inputs."""

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

#: Input that fitting a score requires.
FitNeed = ScoreNeed


@runtime_checkable
class ScoreState(Protocol):
    """Protocol of named objects that score predictions, such as fitted or calibrated scores."""

    @property
    def name(self) -> str:
        """Name of the score in results."""

    def score(self, predictions: Predictions) -> ConfidenceScore:
        """Compute the confidences of the samples. Labels are not required."""


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedScore(ABC):
    """A confidence score with fitted parameters that can score other samples.

    The function `fit` creates the score. `abstain.save` writes the score to a file, and
    `abstain.load` reads it.

    Attributes
    ----------
    name : str
        Name in results. The default name consists of the catalogue name and all options with
        non-default values.
    """

    #: The name in the catalogue `FITTED`.
    kind: ClassVar[str] = ""

    name: records.NonEmptyText

    def __post_init__(self) -> None:
        """Validate the fields."""
        records.check(self)

    @abstractmethod
    def score(self, predictions: Predictions) -> ConfidenceScore:
        """Compute the confidence of each sample, shape (n,). Labels are not required."""

    def renamed(self, name: str) -> Self:
        """Return a copy with another name, for example to distinguish two fits of one score."""
        return replace(self, name=name)

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return a dictionary of JSON values and a dictionary of arrays, both by field name.

        The arrays of a component score have names such as "parts.0.means".
        """
        plain: dict[str, Any] = {"kind": self.kind}
        arrays: dict[str, Array] = {}
        for field_ in fields(self):
            value = getattr(self, field_.name)
            if isinstance(value, np.ndarray):
                arrays[field_.name] = value
            else:
                plain[field_.name] = value
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
        """Validate the fields and the types of the components."""
        super().__post_init__()
        for part in self.parts:
            is_name = isinstance(part, str) and part != ""
            if not is_name and not isinstance(part, FittedScore):
                raise InputError(
                    "`parts` must be a list of names of scores or fitted scores; "
                    f"got {self.parts!r}"
                )

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return the fields of this score and of its component scores."""
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
        Function of `Predictions` and keyword options that returns a `FittedScore`. If `searches` is
        True, the function also accepts `criterion`.
    state : type
        Class of the object that `fit` returns.
    meaning : str
        Description in one sentence.
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
        Whether `fit` uses sample weights. If False, unequal weights raise an error.
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
    """Return the default name of a fitted score, with its kind and non-default options.

    Each option is passed as a pair (value, default value).
    """
    changed_options = []
    for name, (value, default) in options.items():
        if value != default:
            changed_options.append(f"{name}={_format_option(value)}")
    return f"{kind}@{','.join(changed_options)}" if changed_options else kind


def _format_option(x: Any) -> str:
    return repr(float(x)).removesuffix(".0") if isinstance(x, float) else str(x)


# ------------------------------------------------------------------------- features, classes
#: Largest allowed absolute feature, whose fourth power does not overflow.
_MAX_FEATURE = 1e70


def features_as_double(predictions: Predictions) -> FloatArray:
    """Return the features in float64, shape (n, d), and check their range."""
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
    """Return the class codes, or raise a DomainError if a class has too few samples."""
    codes = predictions.label_codes
    n_unknown = int((codes < 0).sum())
    if n_unknown > 0:
        raise DomainError(
            f"the score {name!r} is fitted on samples of known classes; {n_unknown} samples have "
            "no known class: leave them out with `subset`"
        )
    counts = np.bincount(codes, minlength=predictions.n_classes)
    small_classes = np.flatnonzero(counts < min_count)
    if small_classes.size:
        first = int(small_classes[0])
        count_note = f" ({small_classes.size} such classes)" if small_classes.size > 1 else ""
        raise DomainError(
            f"the score {name!r} needs at least {min_count} samples of each class to be fitted; "
            f"the class {predictions.class_names[first]!r} has {counts[first]}{count_note}. "
            "Fit it on more samples."
        )
    return codes


def feature_blocks(
    predictions: Predictions, n_columns: int, name: str, *, n_extra: int = 0
) -> Iterator[tuple[slice, FloatArray]]:
    """Yield slices of the samples with their features in float64.

    `n_extra` is the number of float64 entries that the caller allocates for each sample.
    """
    features = check_feature_width(predictions, n_columns, name)
    for block in row_blocks(features.shape[0], n_columns + n_extra):
        yield block, features[block].astype(np.float64)


def check_feature_width(predictions: Predictions, n_columns: int, name: str) -> Array:
    """Return the features, or raise a ShapeError if the number of columns is wrong."""
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
    """Raise an InputError if the classes of the predictions differ from the fitted classes."""
    classes = predictions.class_names
    new_classes = [name for name in classes if name not in fitted]
    # Predictions without class scores contain only the classes that occur.
    may_lack_classes = not predictions.has_class_scores
    if classes == fitted or (may_lack_classes and not new_classes):
        return
    if new_classes:
        difference = f"{new_classes[0]!r} is new"
    else:
        difference = f"{len(classes)} of {len(fitted)} classes, or another order"
    raise InputError(
        f"the score {name!r} was fitted on other classes than those of these predictions: "
        f"{difference}. Give both the same `classes`."
    )


def predicted_class_index(predictions: Predictions, fitted: tuple[Any, ...]) -> IntArray:
    """Return the index of each predicted class among the fitted classes, shape (n,)."""
    # The predictions may contain only some of the fitted classes.
    class_index = np.array([fitted.index(name) for name in predictions.class_names])
    return np.asarray(class_index[predictions.prediction_codes])


def as_confidence_score(name: str, values: FloatArray) -> ConfidenceScore:
    """Return the values as a `ConfidenceScore`, or raise a DomainError if a value overflows."""
    hint = "Its features are too large; rescale them, for fitting too."
    return ConfidenceScore(name, checks.finite(values, name, hint=hint))
