"""`Predictions`: the validated output of a model for n samples."""

from collections.abc import Hashable, Iterable
from dataclasses import InitVar, dataclass, field, fields
from functools import cached_property

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import read_only
from abstain._foundation.scored import ClassView
from abstain.errors import MissingInputError
from abstain.predictions._fields import ARRAYS, row_numbers, validate_fields
from abstain.predictions.class_view import LazyClassView
from abstain.predictions.classes import UNKNOWN, CodedNames, encode_classes
from abstain.predictions.outputs import ClassScores, Permissions
from abstain.predictions.softmax import log_mean_probabilities, row_blocks
from abstain.typing import AnyArray, Array, BoolArray, IntArray

#: Cached properties that contain the class codes of labels and predictions.
_CODE_ATTRIBUTES = {"labels": "label_codes", "prediction": "prediction_codes"}


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Predictions:
    """The output of a model for n samples, with labels.

    Confidence scores, losses and evaluations are computed from these data. The arguments are NumPy
    arrays, PyTorch tensors, JAX arrays, lists or dataframe columns. The data are stored as
    read-only NumPy arrays in the original precision, without a copy if possible. Class scores are
    passed as `logits` or as `probabilities`.

    Parameters
    ----------
    logits : array of shape (n, K), optional
        Unnormalized log-scores, K >= 2. Exclusive with `probabilities`.
    probabilities : array of shape (n, K), optional
        Class probabilities. Each row is normalized to sum 1. Sums may differ from 1 by the rounding
        error of the dtype (2e-3 for float16, 1e-4 for wider types, plus 1e-5 per class). Larger
        differences are accepted if entries are rounded to two or more decimals, and are reported in
        `notes`.
    prediction : array of shape (n,), optional
        Names of the predicted classes. The default is the class with the largest class score. Pass
        `prediction` if predictions are post-processed.
    labels : array of shape (n,), optional
        Names of the true classes: integers, strings or other hashable values. Floats are accepted
        only if `classes` or class scores are passed. Either `labels` or `loss` is required, unless
        `unlabeled` is True.
    confidence : mapping from str to array of shape (n,), or array, optional
        Confidences by name; higher is more confident. An array without a name is called
        "confidence".
    loss : array of shape (n,), optional
        Finite, non-negative losses, such as 1 - Dice. They become the default loss.
    logit_samples, probability_samples : array of shape (n, S, K), optional
        Monte Carlo samples or outputs of ensemble members, with S >= 2. The arguments exclude each
        other. Without class scores, the mean probability over the samples is used.
    features : array of shape (n, d), optional
        Features for fitted confidence scores.
    group : array of shape (n,), optional
        Group of each sample.
    weight : array of shape (n,), optional
        Non-negative frequency weights. Samples with weight 0 are ignored.
    ids : array of shape (n,), optional
        Names of the samples.
    classes : iterable, optional
        Class names in the order of the columns. The default is 0 to K - 1, or the sorted union of
        labels and predictions if there are no class scores.
    unknown_label : hashable, optional
        Label that marks samples of none of the classes. Such labels have code -1, and every
        prediction for such a sample counts as an error.
    renormalize : bool, default=False
        Whether to accept rows of probabilities whose sum differs from 1 by more than the rounding
        error.
    masked : bool, default=False
        Whether to accept logits of -inf, which mark classes that are impossible for a sample. The
        probability of these classes is 0.
    lower_is_safer : bool, default=False
        Whether `confidence` is an uncertainty. Uncertainties are negated, and "-" is prepended to
        their names, so "entropy" becomes "-entropy".
    unlabeled : bool, default=False
        Whether the samples have neither labels nor losses.

    Attributes
    ----------
    notes : tuple of str
        Remarks about accepted irregularities, such as rounded rows whose sum is not 1.

    Raises
    ------
    ShapeError
        If an array is empty or has the wrong number of axes, if lengths differ, or if K = 1.
    DomainError
        If an entry is NaN or infinite, or a label is not a class. A DomainError is also raised if
        probabilities are negative or do not sum to 1, or if a loss or weight is negative.
    MissingInputError
        If there is no model output, or if there are neither labels nor losses.
    InputError
        If two arguments are incompatible.

    Notes
    -----
    If several classes have the largest score, the one with the lowest code is predicted. No model
    output is required if `loss` and `confidence` are passed.

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
        """Validate every field and store it as a NumPy array."""
        arguments = {f.name: getattr(self, f.name) for f in fields(self)}
        permissions = Permissions(
            renormalize=renormalize, allow_masked=masked, allow_unlabeled=unlabeled
        )
        validated = validate_fields(arguments, permissions, lower_is_safer=lower_is_safer)
        for name, value in validated.items():
            object.__setattr__(self, name, value)
        for name, unknown in (("labels", self.unknown_label), ("prediction", None)):
            if isinstance(arguments[name], CodedNames):
                codes = encode_classes(arguments[name], self.class_names, name, unknown=unknown)
                self.__dict__[_CODE_ATTRIBUTES[name]] = codes
        # The codes are computed now, so that an invalid label raises its error here.
        if self.labels is not None:
            _ = self.label_codes
        if self.prediction is not None:
            _ = self.prediction_codes

    def __repr__(self) -> str:
        """Return a summary with the names and data types of the fields."""
        texts = [f"n={self.n}", f"n_classes={self.n_classes}"]
        for name in ARRAYS:
            array = getattr(self, name)
            if array is not None:
                texts.append(f"{name}={array.dtype}")
        if self.confidence:
            texts.append(f"confidence={list(self.confidence)}")
        return f"Predictions({', '.join(texts)})"

    @property
    def n(self) -> int:
        """Number of samples."""
        arrays = [getattr(self, name) for name in ARRAYS]
        first_array = next(array for array in arrays if array is not None)
        return int(first_array.shape[0])

    @property
    def n_classes(self) -> int:
        """Number of classes, or 0 if there are neither labels nor a model output."""
        return len(self.class_names)

    @property
    def class_names(self) -> tuple[Hashable, ...]:
        """Class names as a tuple, in the order of the codes."""
        return tuple(self.classes or ())

    @property
    def has_labels(self) -> bool:
        """Whether there are labels."""
        return self.labels is not None

    @property
    def has_truth(self) -> bool:
        """Whether there are labels or a loss."""
        return self.has_labels or self.loss is not None

    @property
    def has_logits(self) -> bool:
        """Whether there are deterministic logits."""
        return self.logits is not None

    @property
    def has_samples(self) -> bool:
        """Whether there are Monte Carlo samples."""
        return self.logit_samples is not None or self.probability_samples is not None

    @property
    def has_class_scores(self) -> bool:
        """Whether class probabilities can be computed from logits, probabilities or samples."""
        return self.has_logits or self.probabilities is not None or self.has_samples

    @property
    def has_prediction(self) -> bool:
        """Whether predicted classes are available or can be computed from class scores."""
        return self.prediction is not None or self.has_class_scores

    @cached_property
    def samples(self) -> ClassScores | None:
        """Monte Carlo samples, shape (n, S, K), or None."""
        if self.logit_samples is not None:
            return ClassScores(self.logit_samples, are_logits=True)
        if self.probability_samples is not None:
            return ClassScores(self.probability_samples, are_logits=False)
        return None

    @cached_property
    def class_scores(self) -> ClassScores | None:
        """Class scores, shape (n, K), or None.

        With only Monte Carlo samples, the class scores are the logarithms of the mean
        probabilities.
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
            return encode_classes(self.prediction, self.class_names, "prediction")
        if self.class_scores is None:
            raise MissingInputError(
                "these predictions have no predicted classes; "
                "pass `logits`, `probabilities` or `prediction`"
            )
        return self.class_scores.top_classes()

    @cached_property
    def label_codes(self) -> IntArray:
        """Code of the true class of each sample, shape (n,). It is -1 for unknown labels."""
        if self.labels is None:
            raise MissingInputError("these predictions have no labels; pass `labels`")
        return encode_classes(self.labels, self.class_names, "labels", unknown=self.unknown_label)

    @cached_property
    def correct(self) -> BoolArray:
        """Whether each prediction is correct, shape (n,). It is False for unknown labels."""
        labels = self.label_codes
        is_correct: BoolArray = (labels == self.prediction_codes) & (labels != UNKNOWN)
        return is_correct

    def class_view(self) -> ClassView | None:
        """Return the inputs of class-wise metrics, or None if labels or predictions are missing.

        The log-probabilities are computed in float64 on first use.
        """
        return self._class_view

    @cached_property
    def _class_view(self) -> ClassView | None:
        if not (self.has_labels and self.has_prediction):
            return None
        return LazyClassView(
            self.label_codes, self.prediction_codes, self.class_names, self.class_scores
        )

    def subset(self, selection: AnyArray) -> "Predictions":
        """Select samples without changing the classes.

        Parameters
        ----------
        selection : mask of shape (n,), array of indices, or slice
            The selected samples. An index may occur several times.

        Returns
        -------
        Predictions
            The selected samples in the order of `selection`, with the same classes and codes.

        Raises
        ------
        InputError
            If the selection is empty, out of range, of the wrong length, or not a mask, an index
            array or a slice.

        Examples
        --------
        >>> p = Predictions(prediction=[0, 1, 2], labels=[0, 1, 1])
        >>> p.subset([0, 2]).correct.tolist()
        [True, False]
        """
        rows = row_numbers(selection, self.n)
        subset = object.__new__(type(self))
        # Rows of validated predictions are valid, so they are not validated again.
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name in ARRAYS and value is not None:
                value = read_only(value[rows])
            elif f.name == "confidence" and value is not None:
                value = {name: read_only(column[rows]) for name, column in value.items()}
            object.__setattr__(subset, f.name, value)
        for codes in _CODE_ATTRIBUTES.values():
            if codes in self.__dict__:
                subset.__dict__[codes] = self.__dict__[codes][rows]
        return subset

    def with_weight(self, weight: AnyArray | None) -> "Predictions":
        """Return the same samples with other weights.

        Parameters
        ----------
        weight : array of shape (n,), or None for no weights
            Non-negative weights. Samples with weight 0 are ignored.

        Returns
        -------
        Predictions
            The same samples with these weights.

        Raises
        ------
        ShapeError
            If the length of `weight` is not n.
        DomainError
            If a weight is negative, NaN or infinite.

        Examples
        --------
        >>> Predictions(prediction=[0, 1], labels=[0, 1]).with_weight([2, 1]).weight.tolist()
        [2.0, 1.0]
        """
        values = checks.weight(weight, length=self.n, is_batch=True)
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        object.__setattr__(copy, "weight", None if values is None else read_only(values))
        return copy


def _mean_scores(samples: ClassScores) -> ClassScores:
    n, n_samples, n_classes = samples.values.shape
    values: Array = np.empty((n, n_classes))
    for rows in row_blocks(n, n_samples * n_classes):
        values[rows] = log_mean_probabilities(samples.log_probabilities(rows))
    return ClassScores(values, are_logits=True)
