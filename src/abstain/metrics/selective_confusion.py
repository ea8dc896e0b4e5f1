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
        The part of the matrix that sums to 1: each row ("true"), each column ("pred") or the entire
        matrix ("all"). None for counts.

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
        return self.counts if self.normalize == "pred" else _normalized(self.counts, "true")

    def frame(self, *, backend: Backend = "polars") -> AnyFrame:
        """Return a data frame with one row for each cell of the matrix.

        Returns
        -------
        DataFrame
            The columns are `label`, `prediction`, `abstained` and `value`. Classes are text, and
            the prediction of an abstention is null.
        """
        import polars as pl

        columns = [*map(str, self.classes), None]
        k = len(self.classes)
        cells = pl.DataFrame(
            {
                "label": [str(name) for name in self.classes for _ in columns],
                "prediction": columns * k,
                "abstained": [name is None for name in columns] * k,
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
        Names of the predicted classes. The function ignores the values of samples that are not
        accepted, which may be the abstain label of a selective classifier.
    accepted : array of shape (n,)
        Whether each prediction is accepted, as booleans or as 0 and 1.
    classes : iterable, optional
        The classes in the order of rows and columns. The default is the sorted list of all classes
        in the labels and the accepted predictions.
    weight : array of shape (n,), optional
        Frequency weights. A sample with an integer weight m counts as m samples.
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
    column is 0. Shares of a row or column without samples are NaN. The cost is one pass over the
    samples.

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
    rows = positive_weight_mask(w)
    if w is not None and rows is not None:
        w, is_accepted = w[rows], is_accepted[rows]
        true_names, predicted_names = true_names[rows], predicted_names[rows]
    if classes is None:
        class_list = _observed_classes(true_names, predicted_names[is_accepted])
    else:
        class_list = check_class_names(classes)
    counts = _counts(
        _codes(true_names, class_list, "labels"),
        _column_of_samples(predicted_names, is_accepted, class_list),
        len(class_list),
        w,
    )
    return SelectiveConfusion(class_list, read_only(_normalized(counts, normalize)), normalize)


def _check_length(prediction: Array, n: int) -> Array:
    if prediction.size != n:
        raise ShapeError(
            f"`prediction` must have one entry for each of the {n} entries of `labels`; "
            f"got {prediction.size}"
        )
    return prediction


def _accepted_mask(accepted: AnyArray, n: int) -> BoolArray:
    values = checks.vector(accepted, "accepted", length=n, reference="labels")
    checks.reject_entries(
        "accepted", "must be True or False", values, (values != 0) & (values != 1)
    )
    return values.astype(np.bool_)


def _observed_classes(true_names: Array, predicted_names: Array) -> tuple[Hashable, ...]:
    """Return the sorted names of all classes in the labels and predictions."""
    observed = {
        *distinct_names(true_names, "labels"),
        *distinct_names(predicted_names, "prediction"),
    }
    if len({isinstance(name, str) for name in observed}) > 1:
        raise DomainError(
            "`labels` and `prediction` must have names of the same type; got text and "
            f"{type(next(name for name in observed if not isinstance(name, str))).__name__}"
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


def _counts(row: IntArray, column: IntArray, k: int, weight: FloatArray | None) -> Array:
    cells = np.bincount(row * (k + 1) + column, weights=weight, minlength=k * (k + 1))
    return cells.reshape(k, k + 1)


def _normalized(counts: Array, normalize: Normalize | None) -> Array:
    if normalize is None:
        return counts
    axis = {"true": 1, "pred": 0, "all": None}[normalize]
    total = counts.sum(axis=axis, keepdims=True).astype(np.float64)
    # Shares of a row or column without samples are undefined.
    total[total == 0] = np.nan
    return np.asarray(counts / total)
