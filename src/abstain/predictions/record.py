"""`Predictions`: what a model said about n samples, validated once."""

from collections.abc import Hashable, Iterable
from dataclasses import InitVar, dataclass, field, fields
from functools import cached_property

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import read_only
from abstain._foundation.scored import ClassView
from abstain.errors import MissingInputError
from abstain.predictions._fields import ARRAYS, complete, rows_of
from abstain.predictions.class_view import LazyClassView
from abstain.predictions.classes import UNKNOWN, CodedNames, encode
from abstain.predictions.outputs import ClassScores, Permissions
from abstain.predictions.softmax import log_mean_probabilities, row_blocks
from abstain.typing import AnyArray, Array, BoolArray, IntArray

#: Where the codes of a column of names are kept once they are known.
_CODES = {"labels": "label_codes", "prediction": "prediction_codes"}


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Predictions:
    """What a model said about n samples, and what was true.

    The one record that confidence scores, losses and evaluations start from. Arrays may come
    from NumPy, PyTorch, JAX, lists or dataframe columns; they are kept as NumPy, in their own
    precision, read-only and without a copy where possible. Whether class scores are logits or
    probabilities is said by the argument, never guessed.

    Parameters
    ----------
    logits : array of shape (n, K), optional
        Unnormalized log-scores, K >= 2. Exclusive with `probabilities`.
    probabilities : array of shape (n, K), optional
        Class probabilities. A row may miss 1 by the rounding of its storage (2e-3 for
        float16, 1e-4 for wider types, plus 1e-5 a class), and by what rounding the values to two
        decimals or more explains, of which `notes` then tells; each row is divided by its sum on
        use.
    prediction : array of shape (n,), optional
        Predicted classes, by name. Beside class scores it replaces their argmax: use it for
        predictions that were post-processed.
    labels : array of shape (n,), optional
        True classes, by name: integers, strings, anything hashable, but no decimals unless
        `classes` or class scores say what the classes are. May be left out only when `loss` is
        given.
    confidence : mapping from str to array of shape (n,), or array, optional
        Your own confidences, higher is more trusted. A bare array is named "confidence".
    loss : array of shape (n,), optional
        Your own finite, non-negative loss (1 - Dice, a graded answer); then the default loss.
    logit_samples, probability_samples : array of shape (n, S, K), optional
        Monte-Carlo samples or ensemble members, S >= 2, one of the two. Without class scores
        the mean probability over the samples takes their place.
    features : array of shape (n, d), optional
        Features, for scores that are fitted on them.
    group : array of shape (n,), optional
        Subgroup of each sample.
    weight : array of shape (n,), optional
        Frequency weights, not negative. Samples with weight 0 are ignored by everything that is
        computed from the predictions.
    ids : array of shape (n,), optional
        Names of the samples.
    classes : iterable, optional
        Class names in the order of the columns. By default 0 to K - 1; with `prediction`
        alone, the sorted union of labels and predictions.
    unknown_label : hashable, optional
        The label that marks samples of no known class: their code is -1, and whatever is
        predicted for them is wrong.
    renormalize : bool, default=False
        Take rows of probabilities that miss 1 by more than rounding explains.
    masked : bool, default=False
        Take logits of -inf, for classes that a sample cannot have: their probability is 0.
    lower_is_safer : bool, default=False
        The own `confidence` is an uncertainty. It is turned around, and named so: "entropy"
        becomes "-entropy".
    unlabeled : bool, default=False
        Nobody knows what is right: `labels` and `loss` are left out. Such predictions have
        confidences, and no losses.

    Attributes
    ----------
    notes : tuple of str
        What was accepted that a reader of the numbers should know, such as rows that do not sum
        to 1 but for rounding.

    Raises
    ------
    ShapeError
        Wrong number of axes, lengths that differ, K = 1, an empty array.
    DomainError
        NaN or infinite entries, labels outside the classes, negative probabilities or ones
        that do not sum to 1, negative losses or weights.
    MissingInputError
        No output of a model, or neither labels nor loss.
    InputError
        Two arguments that exclude each other.

    Notes
    -----
    Ties of the largest class score go to the lowest class code. With `loss` and `confidence`
    the model's output may be left out: nothing after the confidence needs it.

    Examples
    --------
    >>> p = Predictions(logits=[[2.0, 0.0], [0.0, 1.0], [3.0, 1.0]], labels=[0, 0, 0])
    >>> p.correct.tolist()
    [True, False, True]
    >>> p = Predictions(prediction=["cat", "dog"], labels=["cat", "eel"], unknown_label="eel")
    >>> p.classes, p.label_codes.tolist()
    (('cat', 'dog'), [0, -1])
    """

    logits: AnyArray = None
    probabilities: AnyArray = None
    prediction: AnyArray = None
    labels: AnyArray = None
    confidence: AnyArray = None
    loss: AnyArray = None
    logit_samples: AnyArray = None
    probability_samples: AnyArray = None
    features: AnyArray = None
    group: AnyArray = None
    weight: AnyArray = None
    ids: AnyArray = None
    classes: Iterable[Hashable] | None = None
    unknown_label: Hashable = None
    renormalize: InitVar[bool] = False
    masked: InitVar[bool] = False
    lower_is_safer: InitVar[bool] = False
    unlabeled: InitVar[bool] = False
    notes: tuple[str, ...] = field(default=(), init=False)

    def __post_init__(
        self, renormalize: bool, masked: bool, lower_is_safer: bool, unlabeled: bool
    ) -> None:
        """Validate every field and store it as NumPy."""
        given = {own.name: getattr(self, own.name) for own in fields(self)}
        accept = Permissions(renormalize=renormalize, masked=masked, unlabeled=unlabeled)
        for name, value in complete(given, accept, lower_is_safer=lower_is_safer).items():
            object.__setattr__(self, name, value)
        for name, mark in (("labels", self.unknown_label), ("prediction", None)):
            if isinstance(given[name], CodedNames):
                codes = encode(given[name], self.class_names, name, unknown=mark)
                self.__dict__[_CODES[name]] = codes
        # Computed now so that a label outside the classes is refused here, not at first use.
        if self.labels is not None:
            _ = self.label_codes
        if self.prediction is not None:
            _ = self.prediction_codes

    def __repr__(self) -> str:
        """Say what is there, not the numbers."""
        parts = [f"n={self.n}", f"n_classes={self.n_classes}"]
        parts += [
            f"{name}={getattr(self, name).dtype}"
            for name in ARRAYS
            if getattr(self, name) is not None
        ]
        if self.confidence:
            parts.append(f"confidence={list(self.confidence)}")
        return f"Predictions({', '.join(parts)})"

    @property
    def n(self) -> int:
        """Number of samples."""
        return next(
            int(array.shape[0])
            for array in (getattr(self, name) for name in ARRAYS)
            if array is not None
        )

    @property
    def n_classes(self) -> int:
        """Number of classes; 0 when neither labels nor an output are there."""
        return len(self.class_names)

    @property
    def class_names(self) -> tuple[Hashable, ...]:
        """The class names in the order of the codes: `classes`, typed as the tuple it is."""
        return tuple(self.classes or ())

    @property
    def has_labels(self) -> bool:
        """Whether labels are there."""
        return self.labels is not None

    @property
    def has_truth(self) -> bool:
        """Whether something says what is right: labels, or a loss."""
        return self.has_labels or self.loss is not None

    @property
    def has_logits(self) -> bool:
        """Whether deterministic logits are there."""
        return self.logits is not None

    @property
    def has_samples(self) -> bool:
        """Whether Monte-Carlo samples are there."""
        return self.logit_samples is not None or self.probability_samples is not None

    @property
    def has_class_scores(self) -> bool:
        """Whether class probabilities can be had: logits, probabilities or samples."""
        return self.has_logits or self.probabilities is not None or self.has_samples

    @property
    def has_prediction(self) -> bool:
        """Whether predicted classes can be had."""
        return self.prediction is not None or self.has_class_scores

    @cached_property
    def samples(self) -> ClassScores | None:
        """The Monte-Carlo samples, shape (n, S, K), with their kind; None without."""
        if self.logit_samples is not None:
            return ClassScores(self.logit_samples, are_logits=True)
        if self.probability_samples is not None:
            return ClassScores(self.probability_samples, are_logits=False)
        return None

    @cached_property
    def class_scores(self) -> ClassScores | None:
        """The class scores, shape (n, K), with their kind; None without.

        From Monte-Carlo samples alone these are the logarithms of the mean probabilities,
        which are logits too.
        """
        if self.logits is not None:
            return ClassScores(self.logits, are_logits=True)
        if self.probabilities is not None:
            return ClassScores(self.probabilities, are_logits=False)
        return None if self.samples is None else _mean_scores(self.samples)

    @cached_property
    def prediction_codes(self) -> IntArray:
        """Code of the predicted class of each sample, shape (n,)."""
        if self.prediction is not None:
            return encode(self.prediction, self.class_names, "prediction")
        if self.class_scores is None:
            raise MissingInputError(
                "these predictions hold no predicted classes; "
                "give `logits`, `probabilities` or `prediction`"
            )
        return self.class_scores.top_classes()

    @cached_property
    def label_codes(self) -> IntArray:
        """Code of the true class of each sample, shape (n,); -1 marks no known class."""
        if self.labels is None:
            raise MissingInputError("these predictions hold no labels; give `labels`")
        return encode(self.labels, self.class_names, "labels", unknown=self.unknown_label)

    @cached_property
    def correct(self) -> BoolArray:
        """Whether the predicted class is the true one, shape (n,); never for an unknown class."""
        labels = self.label_codes
        right: BoolArray = (labels == self.prediction_codes) & (labels != UNKNOWN)
        return right

    def view(self) -> ClassView | None:
        """Return what class-wise metrics need, or None without labels or predicted classes.

        Its probabilities are computed when they are first asked for, in float64 and log space.
        """
        return self._view

    @cached_property
    def _view(self) -> ClassView | None:
        if not (self.has_labels and self.has_prediction):
            return None
        return LazyClassView(
            self.label_codes, self.prediction_codes, self.class_names, self.class_scores
        )

    def subset(self, selection: AnyArray) -> "Predictions":
        """Return some of the samples, with all classes.

        Parameters
        ----------
        selection : mask of shape (n,), array of indices, or slice
            Which samples; an index may repeat.

        Returns
        -------
        Predictions
            Same classes and codes, rows in the order of the selection.

        Raises
        ------
        InputError
            Not a mask, indices or a slice, of the wrong length, out of range, or empty.

        Examples
        --------
        >>> p = Predictions(prediction=[0, 1, 2], labels=[0, 1, 1])
        >>> p.subset([0, 2]).correct.tolist()
        [True, False]
        """
        rows = rows_of(selection, self.n)
        out = object.__new__(type(self))
        # Rows of valid predictions are valid: nothing is checked a second time.
        for own in fields(self):
            value = getattr(self, own.name)
            if own.name in ARRAYS and value is not None:
                value = read_only(value[rows])
            elif own.name == "confidence" and value is not None:
                value = {name: read_only(column[rows]) for name, column in value.items()}
            object.__setattr__(out, own.name, value)
        for codes in _CODES.values():
            if codes in self.__dict__:
                out.__dict__[codes] = self.__dict__[codes][rows]
        return out

    def weighted(self, weight: AnyArray | None) -> "Predictions":
        """Return the same samples with other weights.

        Parameters
        ----------
        weight : array of shape (n,), or None for no weights
            Not negative. Samples with weight 0 are ignored by everything that is computed.

        Returns
        -------
        Predictions
            All else is the same.

        Raises
        ------
        ShapeError, DomainError
            Another length; a negative weight.

        Examples
        --------
        >>> Predictions(prediction=[0, 1], labels=[0, 1]).weighted([2, 1]).weight.tolist()
        [2.0, 1.0]
        """
        values = checks.weight(weight, length=self.n, is_batch=True)
        out = object.__new__(type(self))
        out.__dict__.update(self.__dict__)
        object.__setattr__(out, "weight", None if values is None else read_only(values))
        return out


def _mean_scores(samples: ClassScores) -> ClassScores:
    n, count, width = samples.values.shape
    out: Array = np.empty((n, width))
    for rows in row_blocks(n, count * width):
        out[rows] = log_mean_probabilities(samples.log_probabilities(rows))
    return ClassScores(out, are_logits=True)
