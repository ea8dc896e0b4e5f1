"""Confusion matrix of a classifier that may abstain."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import read_only
from abstain._foundation.checks import positive_weight_mask
from abstain._foundation.frames import AnyFrame, Backend, convert_frame
from abstain._foundation.names import distinct_names, sort_names
from abstain.errors import DomainError, ShapeError
from abstain.predictions.classes import check_class_names, encode_classes, validate_names
from abstain.typing import AnyArray, Array, BoolArray, FloatArray, IntArray

Normalize = Literal["true", "pred", "all"]
_NORMALIZERS = ("true", "pred", "all")


@dataclass(frozen=True, eq=False)
class SelectiveConfusion:
    """Confusion matrix with an additional column for abstentions.

    Attributes
    ----------
    classes : tuple
        The classes, in the order of rows and columns.
    counts : ndarray of shape (K, K + 1)
        Rows are true classes and columns are predicted classes. The last column contains
        abstentions. The entries are integers, or sums of weights if weights are passed, or shares
        if normalized. Shares of a row or column without samples are NaN.
    normalize : {"true", "pred", "all"} or None
        Whether each row ("true"), each column ("pred") or the entire matrix ("all") sums to 1. None
        for counts.

    Examples
    --------
    >>> import numpy as np
    >>> SelectiveConfusion(("a", "b"), np.array([[3, 0, 1], [0, 2, 0]])).abstained.tolist()
    [1, 0]
    """

    classes: tuple[Hashable, ...]
    counts: Array
    normalize: Normalize | None = None

    @property
    def answered(self) -> Array:
        """Confusion matrix of the accepted samples, shape (K, K)."""
        return self.counts[:, :-1]

    @property
    def abstained(self) -> Array:
        """Abstentions in each true class, shape (K,)."""
        return self.counts[:, -1]

    @property
    def by_class(self) -> Array:
        """Shares of each true class, shape (K, K + 1), or `counts` if normalized by prediction."""
        if self.normalize == "pred":
            return self.counts
        return _normalized(self.counts, "true")

    def frame(self, *, backend: Backend = "polars") -> AnyFrame:
        """Return a data frame with one row for each cell of the matrix.

        Returns
        -------
        DataFrame
            The columns are `label`, `prediction`, `abstained` and `value`. Classes are text, and
            the prediction of an abstention is null.
        """
        import polars as pl

        class_names = [str(name) for name in self.classes]
        labels = []
        predictions: list[str | None] = []
        for class_name in class_names:
            labels += [class_name] * (len(class_names) + 1)
            predictions += [*class_names, None]
        cells = pl.DataFrame(
            {
                "label": labels,
                "prediction": predictions,
                "abstained": [prediction is None for prediction in predictions],
                "value": self.counts.ravel(),
            },
            schema_overrides={"prediction": pl.String},
        )
        return convert_frame(cells, backend)


def selective_confusion_matrix(
    labels: AnyArray,
    prediction: AnyArray,
    accepted: AnyArray,
    *,
    classes: Iterable[Hashable] | None = None,
    weight: AnyArray | None = None,
    normalize: Normalize | None = None,
) -> SelectiveConfusion:
    """Compute a confusion matrix with an additional column for abstentions.

    Answers: which classes are confused with each other, and on which classes does the classifier
    abstain?

    Parameters
    ----------
    labels : array of shape (n,)
        Names of the true classes.
    prediction : array of shape (n,)
        Names of the predicted classes. The function ignores the predictions of rejected samples,
        which may be the abstain label of a selective classifier.
    accepted : array of shape (n,)
        Whether each prediction is accepted, as booleans or as 0 and 1.
    classes : iterable, optional
        The classes in the order of rows and columns. The default is the sorted list of all classes
        in the labels and the accepted predictions.
    weight : array of shape (n,), optional
        Frequency weights. An integer weight m is equivalent to m copies of the sample.
    normalize : {"true", "pred", "all"}, optional
        Whether to return shares of the true class, of the answer, or of all samples.

    Returns
    -------
    SelectiveConfusion
        Counts of shape (K, K + 1), whose last column contains abstentions.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a label or an accepted prediction is not a class, or `accepted` has values other than 0
        and 1.
    InputError
        If `normalize` is invalid.

    Notes
    -----
    If all samples are accepted, the first K columns are the usual confusion matrix and the last
    column is 0. Shares of a row or column without samples are NaN. The running time is linear in
    the number of samples.

    References
    ----------
    .. [1] Condessa et al. (2017), Performance measures for classification systems with
       rejection, https://doi.org/10.1016/j.patcog.2016.10.011, section 3

    Examples
    --------
    >>> from abstain.metrics.selective_confusion import selective_confusion_matrix
    >>> confusion = selective_confusion_matrix(
    ...     ["cat", "cat", "dog", "dog"], ["cat", "dog", "dog", "cat"], [True, True, True, False]
    ... )
    >>> confusion.counts.tolist()
    [[1, 1, 0], [0, 1, 1]]
    """
    if normalize is not None:
        checks.one_of(normalize, "normalize", _NORMALIZERS)
    true_names = validate_names(labels, "labels")
    predicted_names = _check_length(validate_names(prediction, "prediction"), true_names.size)
    is_accepted = _accepted_mask(accepted, true_names.size)
    w = checks.weight(weight, length=true_names.size)
    has_weight = positive_weight_mask(w)
    if w is not None and has_weight is not None:
        w = w[has_weight]
        true_names = true_names[has_weight]
        predicted_names = predicted_names[has_weight]
        is_accepted = is_accepted[has_weight]
    if classes is None:
        class_list = _observed_classes(true_names, predicted_names[is_accepted])
    else:
        class_list = check_class_names(classes)
    row = _codes(true_names, class_list, "labels")
    column = _column_of_samples(predicted_names, is_accepted, class_list)
    counts = _counts(row, column, len(class_list), w)
    return SelectiveConfusion(class_list, read_only(_normalized(counts, normalize)), normalize)


def _check_length(prediction: Array, n: int) -> Array:
    """Return the predictions, or raise an error if their number is not n."""
    if prediction.size != n:
        raise ShapeError(
            f"`prediction` must have one entry for each of the {n} entries of `labels`; "
            f"got {prediction.size}"
        )
    return prediction


def _accepted_mask(accepted: AnyArray, n: int) -> BoolArray:
    """Return the acceptance of n samples as booleans, or raise an error for other values."""
    values = checks.vector(accepted, "accepted", length=n, reference="labels")
    is_invalid = (values != 0) & (values != 1)
    checks.reject_entries("accepted", "must be True or False", values, is_invalid)
    return values.astype(np.bool_)


def _observed_classes(true_names: Array, predicted_names: Array) -> tuple[Hashable, ...]:
    """Return the sorted names of all classes in the labels and predictions."""
    observed = set(distinct_names(true_names, "labels"))
    observed |= set(distinct_names(predicted_names, "prediction"))
    other_names = [name for name in observed if not isinstance(name, str)]
    if 0 < len(other_names) < len(observed):
        raise DomainError(
            "`labels` and `prediction` must have names of the same type; got text and "
            f"{type(other_names[0]).__name__}"
        )
    return tuple(sort_names(observed))


def _codes(values: Array, classes: tuple[Hashable, ...], name: str) -> IntArray:
    """Return the index of each name in `classes`; raise an error for other names."""
    unknown = [value for value in distinct_names(values, name) if value not in classes]
    if unknown:
        listed = ", ".join(map(repr, classes[:6])) + (", ..." if len(classes) > 6 else "")
        raise DomainError(f"`{name}` must be one of `classes` ({listed}); got {unknown[0]!r}")
    return encode_classes(values, classes, name)


def _column_of_samples(
    predicted_names: Array, is_accepted: BoolArray, classes: tuple[Hashable, ...]
) -> IntArray:
    """Return the column of each sample, which is the last column for abstentions."""
    columns = np.full(predicted_names.size, len(classes), dtype=np.int64)
    if is_accepted.any():
        columns[is_accepted] = _codes(predicted_names[is_accepted], classes, "prediction")
    return columns


def _counts(row: IntArray, column: IntArray, n_classes: int, weight: FloatArray | None) -> Array:
    """Return the number or the total weight of the samples in each cell of the matrix."""
    n_columns = n_classes + 1
    cell = row * n_columns + column
    counts = np.bincount(cell, weights=weight, minlength=n_classes * n_columns)
    return counts.reshape(n_classes, n_columns)


def _normalized(counts: Array, normalize: Normalize | None) -> Array:
    """Divide counts by the sums of rows, of columns or of all entries; None keeps the counts."""
    if normalize is None:
        return counts
    axis = {"true": 1, "pred": 0, "all": None}[normalize]
    total = counts.sum(axis=axis, keepdims=True).astype(np.float64)
    # Shares of a row or column without samples are undefined.
    total[total == 0] = np.nan
    return np.asarray(counts / total)
