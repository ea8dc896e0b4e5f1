"""Label shift: how often each class comes up, from the classes that were predicted."""

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

#: A matrix is refused when it may be singular at this level.
_LEVEL: Final = 0.95
#: How often a label shift is doubted that is one: the chance that any class is named.
_DOUBT: Final = 0.05


@dataclass(frozen=True, eq=False)
class LabelShift:
    """How often each class comes up where a rule is used, by how often in the calibration data.

    Attributes
    ----------
    classes : tuple
        The names of the classes.
    ratio : ndarray of shape (K,)
        q(y) / p(y) of each class; not negative.
    standard_error : ndarray of shape (K,)
        Of each, by resampling both data sets.
    raw, raw_error : ndarray of shape (K,)
        The solution before negative ratios were set to 0, and its standard error.
    least_singular : float
        The smallest singular value of the confusion matrix: the smaller, the less is known.
    noise : float
        What chance moves the matrix by, in the spectral norm (95 % quantile of the resamples).

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
        """Classes whose ratio came out far below 0: more changed than how often they come up."""
        # One in twenty over all classes: every class that is not there is below 0 half the time.
        far = self.raw < special.ndtri(_DOUBT / len(self.classes)) * self.raw_error
        return tuple(name for name, there in zip(self.classes, far, strict=True) if there)

    def ratios(self, labels: AnyArray) -> DensityRatios:
        """Return the ratio of each calibration sample, that of its class.

        Parameters
        ----------
        labels : array of shape (n,)
            The true classes of the calibration samples.

        Returns
        -------
        DensityRatios
            What `ratio=` of the rules takes.

        Raises
        ------
        DomainError
            A class that was not there; none of a class that comes up.

        Examples
        --------
        >>> from abstain.shift import label_shift
        >>> found = label_shift([0, 0, 1, 1] * 50, [0, 0, 1, 1] * 50, [0, 1, 1, 1] * 50, rng=0)
        >>> found.ratios([1, 0, 1]).values.round(3).tolist()
        [1.5, 0.5, 1.5]
        """
        codes = _codes(labels, "labels", {name: i for i, name in enumerate(self.classes)})
        error = float(self.standard_error.max())
        values = read_only(self.ratio[codes])
        return DensityRatios(
            values, float(self.ratio.max()), "labels", bounded=True, standard_error=error
        )


def label_shift(
    labels: AnyArray,
    prediction: AnyArray,
    deployed: AnyArray,
    *,
    resamples: int = 200,
    rng: Rng = 0,
) -> LabelShift:
    """Estimate how often each class comes up, from predicted classes alone (BBSE).

    Answers: there are no labels where the model is used; which classes come up more often there?

    Parameters
    ----------
    labels, prediction : array of shape (n,)
        True and predicted classes of the calibration samples, by name.
    deployed : array of shape (m,)
        Predicted classes of the samples without labels.
    resamples : int, default=200
        Of both data sets, at least 2, for the standard errors and for what the matrix is worth.
    rng : int, Generator or None, default=0
        Of the resamples.

    Returns
    -------
    LabelShift
        The ratio of each class with its standard error; `ratios(labels)` for the rules.

    Raises
    ------
    ShapeError
        Lengths that differ, nothing there.
    DomainError
        A class that is predicted and has no calibration sample; a confusion matrix that chance
        does not tell from a singular one.

    Notes
    -----
    Solves C w = mu with C the shares of (predicted class, true class) among the calibration
    samples, mu the shares of the predicted classes among the others [1]_. That is right where the
    classes come up more or less often and each class looks as before (label shift); a covariate
    shift needs `fit_ratios`. Ratios below 0 are set to 0.

    By the inequality of Weyl no singular value of a matrix moves by more than the spectral norm of
    what it is changed by. So C is refused where its smallest one is within what resampling changes
    it by. The paper bounds the error by the inverse of that value, and refuses nothing.

    Cost: one pass, and K^3 for each resample.

    References
    ----------
    .. [1] Lipton, Wang and Smola (2018), Detecting and correcting for label shift with black box
       predictors, https://arxiv.org/abs/1802.03916

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.shift import label_shift
    >>> labels = np.repeat(["cat", "dog"], 500)
    >>> prediction = np.where(np.arange(1000) % 10 == 0, "dog", labels)  # a tenth of the cats
    >>> found = label_shift(labels, prediction, np.repeat(["cat", "dog"], [225, 775]), rng=0)
    >>> found.classes, found.ratio.round(3).tolist()
    (('cat', 'dog'), [0.5, 1.5])
    """
    names = tuple(_named(labels, "labels")[0])
    code = {name: i for i, name in enumerate(names)}
    y, seen = _codes(labels, "labels", code), _codes(prediction, "prediction", code)
    new = _codes(deployed, "deployed", code)
    if seen.size != y.size:
        checks.vector(seen, "prediction", length=y.size, reference="labels")
    size = len(names)
    whole = _matrix(seen, y, size)
    shares = np.bincount(new, minlength=size) / new.size
    random = named_generator(as_seed(rng), "label shift")
    solved, moved = [], []
    count = checks.positive_int(resamples, "resamples")
    if count < 2:
        raise InputError("`resamples` must be at least 2: one has no spread")
    for _ in range(count):
        rows = random.integers(y.size, size=y.size)
        own = _matrix(seen[rows], y[rows], size)
        moved.append(float(np.linalg.norm(own - whole, 2)))
        other = random.multinomial(new.size, shares) / new.size
        solved.append(np.linalg.lstsq(own, other, rcond=None)[0])
    least, noise = float(np.linalg.svd(whole)[1][-1]), float(np.quantile(moved, _LEVEL))
    _refuse_singular(whole, names, least, noise, y.size)
    raw = np.linalg.solve(whole, shares)
    spread = [read_only(np.std(x, axis=0, ddof=1)) for x in (np.maximum(solved, 0.0), solved)]
    return LabelShift(
        names, read_only(np.maximum(raw, 0.0)), spread[0], read_only(raw), spread[1], least, noise
    )


def _matrix(prediction: IntArray, labels: IntArray, size: int) -> FloatArray:
    counts = np.bincount(prediction * size + labels, minlength=size * size)
    out: FloatArray = counts.reshape(size, size) / labels.size
    return out


def _named(x: AnyArray, name: str) -> tuple[list[Hashable], IntArray]:
    """Return the distinct classes and the place of each sample among them."""
    values: Array = to_numpy(x, name)
    if values.ndim != 1 or values.size == 0:
        checks.vector(np.zeros(values.shape), name)
    missing = np.array([own is None or _is_nan(own) for own in values.tolist()])
    checks.reject_entries(name, "must name a class for every sample", values, missing)
    return encode_names(values, name)


def _is_nan(own: object) -> bool:
    return isinstance(own, float) and isnan(own)


def _codes(x: AnyArray, name: str, code: dict[Hashable, int]) -> IntArray:
    found, place = _named(x, name)
    for own in found:
        if own not in code:
            _refuse_unknown(own, name, code)
    out: IntArray = np.array([code[own] for own in found], dtype=np.int64)[place]
    return out


def _refuse_unknown(own: Hashable, name: str, code: dict[Hashable, int]) -> None:
    rule = f"`{name}` must hold classes that have a calibration sample; got {own!r}"
    alike = [known for known in code if str(known) == str(own)]
    if alike:
        types = f"{type(own).__name__}, where the labels hold {type(alike[0]).__name__}"
        msg = f"{rule} of type {types} {alike[0]!r}: give both as one type"
    else:
        msg = (
            f"{rule}, of which none is labeled. How often it comes up cannot be told: label some, "
            "or leave its samples out"
        )
    raise DomainError(msg)


def _refuse_singular(
    matrix: FloatArray, names: tuple[Hashable, ...], least: float, noise: float, n: int
) -> None:
    """Refuse a confusion matrix that says too little of a mixture of classes."""
    if least > noise:
        return
    direction = np.abs(np.linalg.svd(matrix)[2][-1])
    worst = [names[i] for i in np.argsort(-direction)[:2]]
    raise DomainError(
        f"the confusion matrix of {n} samples does not tell the classes apart well enough: its "
        f"smallest singular value is {least:.3g}, and chance alone moves it by {noise:.3g}. "
        f"Least is known of {' and '.join(map(repr, worst))}: label more samples, merge classes, "
        "or use a model that confuses them less"
    )
