"""Estimate class frequencies from predicted classes under a label shift."""

from collections.abc import Hashable
from dataclasses import dataclass
from math import isnan
from typing import Final

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import read_only, to_numpy
from abstain._foundation.lazy_imports import special
from abstain._foundation.names import encode_names
from abstain._foundation.random import as_seed, named_generator
from abstain.errors import DomainError, InputError
from abstain.shift.ratios import DensityRatios
from abstain.typing import AnyArray, Array, FloatArray, IntArray, Rng

#: Quantile of the changes of the confusion matrix over resamples. If the smallest singular value is
#: below it, the matrix counts as singular.
_NOISE_QUANTILE: Final = 0.95
#: Joint significance level of the tests for a negative ratio of any class.
_DOUBT_LEVEL: Final = 0.05


@dataclass(frozen=True, eq=False)
class LabelShift:
    """Frequency of each class in deployed data divided by its frequency in calibration data.

    Attributes
    ----------
    classes : tuple
        Names of the classes.
    ratio : ndarray of shape (K,)
        Non-negative ratio q(y) / p(y) of each class.
    standard_error : ndarray of shape (K,)
        Standard error of each ratio, computed from resamples of both data sets.
    raw, raw_error : ndarray of shape (K,)
        Ratios before negative values are replaced by 0, and their standard errors.
    least_singular : float
        Smallest singular value of the confusion matrix. If it is small, the ratios are inaccurate.
    noise : float
        95% quantile of the change of the confusion matrix over resamples, in the spectral norm.

    Examples
    --------
    >>> from abstain.shift import label_shift
    >>> found = label_shift([0, 0, 1, 1] * 50, [0, 0, 1, 1] * 50, [0, 1, 1, 1] * 50, rng=0)
    >>> found.ratio.round(3).tolist()
    [0.5, 1.5]
    """

    classes: tuple[Hashable, ...]
    ratio: FloatArray
    standard_error: FloatArray
    raw: FloatArray
    raw_error: FloatArray
    least_singular: float
    noise: float

    @property
    def doubtful(self) -> tuple[Hashable, ...]:
        """Classes whose ratio is significantly negative, which contradicts a label shift."""
        # The level is corrected for the number of classes, because an absent class has a negative
        # raw ratio with probability 1/2.
        quantile = special.ndtri(_DOUBT_LEVEL / len(self.classes))
        is_doubtful = self.raw < quantile * self.raw_error
        return tuple(self.classes[i] for i in np.flatnonzero(is_doubtful))

    def ratios(self, labels: AnyArray) -> DensityRatios:
        """Return the density ratio of each calibration sample, the frequency ratio of its class.

        Parameters
        ----------
        labels : array of shape (n,)
            True classes of the calibration samples.

        Returns
        -------
        DensityRatios
            Density ratios for the argument `ratio=` of the rules.

        Raises
        ------
        DomainError
            If a label is not in `classes`, or if all ratios are 0.

        Examples
        --------
        >>> from abstain.shift import label_shift
        >>> found = label_shift([0, 0, 1, 1] * 50, [0, 0, 1, 1] * 50, [0, 1, 1, 1] * 50, rng=0)
        >>> found.ratios([1, 0, 1]).values.round(3).tolist()
        [1.5, 0.5, 1.5]
        """
        code = {name: i for i, name in enumerate(self.classes)}
        codes = _class_codes(labels, "labels", code)
        return DensityRatios(
            read_only(self.ratio[codes]),
            float(self.ratio.max()),
            "labels",
            bounded=True,
            standard_error=float(self.standard_error.max()),
        )


def label_shift(
    labels: AnyArray,
    prediction: AnyArray,
    deployed: AnyArray,
    *,
    resamples: int = 200,
    rng: Rng = 0,
) -> LabelShift:
    """Estimate the frequency ratio of each class from predicted classes (BBSE).

    Answers: which classes are more frequent in the application, for which no labels are available?

    Parameters
    ----------
    labels, prediction : array of shape (n,)
        True and predicted classes of the calibration samples, by name.
    deployed : array of shape (m,)
        Predicted classes of the unlabeled samples.
    resamples : int, default=200
        Number of resamples of both data sets, at least 2, for the standard errors and the test of
        the confusion matrix.
    rng : int, Generator or None, default=0
        Random number generator of the resamples.

    Returns
    -------
    LabelShift
        The frequency ratio of each class with its standard error. Its method `ratios` returns
        density ratios of samples, which the rules accept.

    Raises
    ------
    ShapeError
        If lengths differ or an array is empty.
    DomainError
        If a predicted class has no calibration sample, or the confusion matrix is not significantly
        different from a singular matrix.

    Notes
    -----
    The method solves C w = mu for the ratios w [1]_. C contains the share of each pair of
    predicted and true class among the calibration samples. The vector mu contains the share of
    each predicted class among the unlabeled samples. Negative ratios are replaced by 0. The method
    is valid for a label shift, in which the distribution within each class does not change. For a
    covariate shift, use `fit_ratios`.

    The function raises a DomainError if the smallest singular value of C is within the sampling
    error of C, which is estimated by resampling in the spectral norm. This test is not part of the
    paper.

    For K classes, the cost is one pass over the samples and K^3 operations for each resample.

    References
    ----------
    .. [1] Lipton, Wang and Smola (2018), Detecting and correcting for label shift with black box
       predictors, https://arxiv.org/abs/1802.03916

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.shift import label_shift
    >>> labels = np.repeat(["cat", "dog"], 500)
    >>> prediction = np.where(np.arange(1000) % 10 == 0, "dog", labels)  # 10% of the cats
    >>> found = label_shift(labels, prediction, np.repeat(["cat", "dog"], [225, 775]), rng=0)
    >>> found.classes, found.ratio.round(3).tolist()
    (('cat', 'dog'), [0.5, 1.5])
    """
    class_names, _ = _encode_classes(labels, "labels")
    classes = tuple(class_names)
    code = {name: i for i, name in enumerate(classes)}
    true_codes = _class_codes(labels, "labels", code)
    predicted_codes = _class_codes(prediction, "prediction", code)
    deployed_codes = _class_codes(deployed, "deployed", code)
    if predicted_codes.size != true_codes.size:
        checks.vector(predicted_codes, "prediction", length=true_codes.size, reference="labels")
    n_classes = len(classes)
    matrix = _confusion_matrix(predicted_codes, true_codes, n_classes)
    shares = np.bincount(deployed_codes, minlength=n_classes) / deployed_codes.size
    random = named_generator(as_seed(rng), "label shift")
    solutions = []
    matrix_changes = []
    n_resamples = checks.positive_int(resamples, "resamples")
    if n_resamples < 2:
        raise InputError("`resamples` must be at least 2 for a standard error")
    for _ in range(n_resamples):
        sampled = random.integers(true_codes.size, size=true_codes.size)
        resampled_matrix = _confusion_matrix(
            predicted_codes[sampled], true_codes[sampled], n_classes
        )
        matrix_changes.append(float(np.linalg.norm(resampled_matrix - matrix, 2)))
        resampled_shares = random.multinomial(deployed_codes.size, shares) / deployed_codes.size
        solutions.append(np.linalg.lstsq(resampled_matrix, resampled_shares, rcond=None)[0])
    smallest = float(np.linalg.svd(matrix)[1][-1])
    noise = float(np.quantile(matrix_changes, _NOISE_QUANTILE))
    _reject_singular_matrix(matrix, classes, smallest, noise, true_codes.size)
    raw = np.linalg.solve(matrix, shares)
    return LabelShift(
        classes=classes,
        ratio=read_only(np.maximum(raw, 0.0)),
        standard_error=read_only(np.std(np.maximum(solutions, 0.0), axis=0, ddof=1)),
        raw=read_only(raw),
        raw_error=read_only(np.std(solutions, axis=0, ddof=1)),
        least_singular=smallest,
        noise=noise,
    )


def _confusion_matrix(prediction: IntArray, labels: IntArray, n_classes: int) -> FloatArray:
    """Return the share of the samples with each predicted class (row) and true class (column)."""
    counts = np.bincount(prediction * n_classes + labels, minlength=n_classes * n_classes)
    matrix: FloatArray = counts.reshape(n_classes, n_classes) / labels.size
    return matrix


def _encode_classes(labels: AnyArray, name: str) -> tuple[list[Hashable], IntArray]:
    """Return the distinct classes, and the index of the class of each sample."""
    values: Array = to_numpy(labels, name)
    if values.ndim != 1 or values.size == 0:
        checks.vector(np.zeros(values.shape), name)
    is_missing = np.array([value is None or _is_nan(value) for value in values.tolist()])
    checks.reject_entries(name, "must name a class for every sample", values, is_missing)
    return encode_names(values, name)


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and isnan(value)


def _class_codes(labels: AnyArray, name: str, code: dict[Hashable, int]) -> IntArray:
    """Return the code of the class of each sample. An unknown class raises a DomainError."""
    classes, class_index = _encode_classes(labels, name)
    for class_name in classes:
        if class_name not in code:
            _reject_unknown_class(class_name, name, code)
    class_codes = np.array([code[class_name] for class_name in classes], dtype=np.int64)
    codes: IntArray = class_codes[class_index]
    return codes


def _reject_unknown_class(value: Hashable, name: str, code: dict[Hashable, int]) -> None:
    """Raise a DomainError for a value that is not in the list of classes."""
    rule = f"`{name}` must hold classes that have a calibration sample; got {value!r}"
    same_text = [class_name for class_name in code if str(class_name) == str(value)]
    if same_text:
        types = f"{type(value).__name__}, where the labels hold {type(same_text[0]).__name__}"
        msg = f"{rule} of type {types} {same_text[0]!r}: use one type for both"
    else:
        msg = (
            f"{rule}, which has no labeled sample. Its frequency cannot be estimated: label some "
            "of its samples, or remove them"
        )
    raise DomainError(msg)


def _reject_singular_matrix(
    matrix: FloatArray, names: tuple[Hashable, ...], smallest: float, noise: float, n: int
) -> None:
    """Raise a DomainError if the confusion matrix may be singular."""
    if smallest > noise:
        return
    # The ratios are uncertain in the direction of the last right singular vector.
    direction = np.abs(np.linalg.svd(matrix)[2][-1])
    uncertain_classes = [names[i] for i in np.argsort(-direction)[:2]]
    class_list = " and ".join(map(repr, uncertain_classes))
    raise DomainError(
        f"the confusion matrix of {n} samples may be singular: its smallest singular value is "
        f"{smallest:.3g}, and resampling changes it by up to {noise:.3g}. The least certain "
        f"classes are {class_list}: label more samples, merge "
        "classes, or use a model that confuses them less"
    )
