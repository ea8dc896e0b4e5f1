"""Density ratios between deployed and calibration data, passed by the user or estimated."""

from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import read_only, to_numpy
from abstain._foundation.random import as_seed, named_generator
from abstain.errors import DomainError, InputError, ShapeError
from abstain.typing import AnyArray, BoolArray, FloatArray, Rng

#: Origin of the ratios, and its description in texts.
Origin = Literal["given", "classifier", "labels"]
_ORIGIN_PHRASES: Final = {
    "given": "by the density ratios given",
    "classifier": "by density ratios that a classifier estimated",
    "labels": "by class ratios estimated from predicted classes",
}

#: Share of the samples with the largest ratios, for `DensityRatios.top_share`.
_TOP_SHARE: Final = 0.01


@dataclass(frozen=True, eq=False)
class DensityRatios:
    """Density ratios (importance weights) of the calibration samples.

    The ratio of a sample is dQ/dP, where P is the distribution of the calibration data and Q the
    distribution of the deployed data. Ratios are not frequency weights. A sample with a ratio of 3
    is still a single sample.

    Attributes
    ----------
    values : ndarray of shape (n,)
        Finite, non-negative ratios, of which at least one is positive, up to a constant factor.
    largest : float
        Upper bound of all ratios, including ratios of unobserved samples.
    origin : {"given", "classifier", "labels"}
        Origin of the ratios: known ("given"), estimated by a classifier between the two data sets
        ("classifier"), or estimated from predicted classes ("labels").
    bounded : bool
        Whether `largest` is a known bound. If not, `largest` is the largest observed ratio.
    cut : float
        Share of the weight that clipping removed, in [0, 1).
    standard_error : float or None
        Largest standard error of the estimated ratios of all classes, or None.

    Raises
    ------
    InputError, ShapeError, DomainError
        If the values are not valid ratios, a ratio is above `largest`, or the origin is unknown.

    Examples
    --------
    >>> from abstain.shift import density_ratios
    >>> ratios = density_ratios([0.5, 0.5, 1.0, 2.0], largest=4.0)
    >>> ratios.n, round(ratios.effective_size, 2), ratios.expected_draws
    (4, 2.91, 1.0)
    """

    values: FloatArray
    largest: float
    origin: Origin = "given"
    bounded: bool = False
    cut: float = 0.0
    standard_error: float | None = None

    def __post_init__(self) -> None:
        """Validate the ratios and their upper bound."""
        checks.one_of(self.origin, "origin", tuple(_ORIGIN_PHRASES))
        values = _check_ratio(self.values)
        largest = checks.positive(self.largest, "largest")
        if largest < values.max():
            _reject_above(values, largest)
        object.__setattr__(self, "values", read_only(values))

    @property
    def n(self) -> int:
        """Number of samples."""
        return int(self.values.size)

    @property
    def effective_size(self) -> float:
        """Effective sample size, which is (sum of ratios)^2 / (sum of squared ratios)."""
        scaled = self.values / self.values.max()
        return float(scaled.sum() ** 2 / (scaled @ scaled))

    @property
    def expected_draws(self) -> float:
        """Expected number of samples that `draw` retains: the sum of the ratios / `largest`."""
        return float((self.values / self.largest).sum())

    @property
    def top_share(self) -> float:
        """Share of the total weight of the 1% of the samples with the largest ratios."""
        count = max(1, int(_TOP_SHARE * self.n))
        largest_ratios = np.sort(self.values)[-count:]
        return float(largest_ratios.sum() / self.values.sum())

    @property
    def heaviest(self) -> int:
        """Index of the first sample with the largest ratio."""
        return int(np.argmax(self.values))

    def draw(self, rng: Rng = None) -> BoolArray:
        """Sample from the deployed distribution by rejection sampling.

        A sample is retained with probability ratio / `largest`.

        Parameters
        ----------
        rng : int, Generator or None
            Random number generator.

        Returns
        -------
        ndarray of shape (n,)
            Mask of the retained samples. If the ratios are exact and at most `largest`, the
            retained samples are independent draws from the deployed distribution.

        Examples
        --------
        >>> from abstain.shift import density_ratios
        >>> density_ratios([1.0, 0.0, 1.0], largest=1.0).draw(0).tolist()
        [True, False, True]
        """
        # A named stream is independent of data that were simulated with the same seed.
        generator = named_generator(as_seed(rng), "density ratios")
        is_accepted: BoolArray = generator.random(self.n) * self.largest < self.values
        return is_accepted

    def rows(self, selection: AnyArray) -> "DensityRatios":
        """Return the ratios of a subset of the samples, with the same upper bound.

        Parameters
        ----------
        selection : array
            A mask or indices.

        Returns
        -------
        DensityRatios
            The ratios of these samples.

        Raises
        ------
        ShapeError, DomainError
            If the selection is empty, or all its ratios are 0.

        Examples
        --------
        >>> from abstain.shift import density_ratios
        >>> density_ratios([0.5, 0.5, 2.0]).rows([0, 1]).largest
        2.0
        """
        return replace(self, values=self.values[np.asarray(selection)])

    def __str__(self) -> str:
        """Describe the effective sample size and the largest ratios."""
        mean = float(self.values.mean())
        heaviest = self.heaviest
        text = (
            f"{self.n} samples have an effective size of {self.effective_size:.0f} "
            f"{_ORIGIN_PHRASES[self.origin]}. The largest ratio, of sample {heaviest}, is "
            f"{self.values[heaviest] / mean:.3g} times the mean; the largest 1% of the ratios have "
            f"{100 * self.top_share:.3g}% of the weight; "
        )
        if self.bounded:
            text += f"no ratio is above {self.largest / mean:.3g} times the mean"
        else:
            text += "the upper bound is the largest observed ratio"
        if self.standard_error is not None:
            text += f"; their standard errors are at most {self.standard_error:.2g}"
        if self.cut:
            text += f"; clipping removed {100 * self.cut:.2g}% of the weight"
        return text

    @property
    def target(self) -> str:
        """Text that names the population for which a guarantee with these ratios holds."""
        text = f"data like the calibration data reweighted {_ORIGIN_PHRASES[self.origin]}"
        if self.cut:
            text += ", except for clipped ratios"
        return text


def density_ratios(
    ratio: AnyArray,
    *,
    largest: float | None = None,
    clip: float | None = None,
    origin: Origin = "given",
) -> DensityRatios:
    """Validate density ratios of calibration samples for guarantees on deployed data.

    Answers: how many independent samples are equivalent to the reweighted calibration data?

    Parameters
    ----------
    ratio : array of shape (n,)
        Density of the deployed data divided by the density of the calibration data at each
        calibration sample, up to a constant factor. No ratio may be negative, and at least one must
        be positive.
    largest : float, optional
        Upper bound of all possible ratios, which a guarantee requires. The default is the largest
        entry of `ratio`, which is only an estimate.
    clip : float, optional
        Multiple of the mean ratio at which ratios are clipped. If ratios are clipped, the
        guarantee holds for another distribution. On the deployed data, the generalized risk can
        exceed the guaranteed risk by the share of the total weight that clipping removes. The
        attribute `cut` is an estimate of this share.
    origin : {"given", "classifier", "labels"}, default="given"
        Origin of the ratios, which the description of the guarantee states.

    Returns
    -------
    DensityRatios
        Density ratios for the argument `ratio=` of the rules.

    Raises
    ------
    InputError, ShapeError, DomainError
        If `ratio` is not a finite vector, a ratio is negative or all ratios are zero. The error is
        also raised if `largest` is below the largest ratio, `clip` is not above 1, or `largest` and
        `clip` are both passed.

    Notes
    -----
    Rejection sampling retains a sample with probability ratio / largest, and the retained samples
    have the deployed distribution [1]_. With a largest ratio of 100 and a mean ratio of 1, only 1%
    of the samples are retained.

    References
    ----------
    .. [1] Park, Dobriban, Lee and Bastani (2022), PAC prediction sets under covariate shift,
       ICLR, https://arxiv.org/abs/2106.09848

    Examples
    --------
    >>> from abstain.shift import density_ratios
    >>> ratios = density_ratios([0.2, 0.4, 0.4, 9.0], clip=2.0)
    >>> ratios.values.tolist(), round(ratios.cut, 2)
    ([0.2, 0.4, 0.4, 5.0], 0.4)
    """
    values = _check_ratio(ratio)
    if clip is not None:
        if largest is not None:
            raise InputError("pass `largest` or `clip`: clipped ratios have an upper bound")
        return _clip_ratios(values, clip, origin)
    max_ratio = float(values.max())
    if largest is None:
        return DensityRatios(values, max_ratio, origin)
    return DensityRatios(values, checks.positive(largest, "largest"), origin, bounded=True)


def _reject_above(values: FloatArray, bound: float) -> None:
    """Raise a DomainError for a largest ratio above the upper bound."""
    index = int(np.argmax(values))
    raise DomainError(
        f"`largest` must be at least every ratio; got {bound!r}, and {values[index]:g} at index "
        f"{index}. Increase it (--max-ratio), or clip the ratios with `clip` (--clip)"
    )


def _check_ratio(ratio: AnyArray) -> FloatArray:
    """Validate finite, non-negative ratios with a positive sum."""
    values = checks.finite(checks.vector(ratio, "ratio"), "ratio").astype(np.float64)
    checks.reject_entries("ratio", "must not be negative", values, values < 0)
    checks.finite_sum(values, "ratio")
    if not values.any():
        raise DomainError("`ratio` must not be zero everywhere: no sample is from deployed data")
    return values


def _clip_ratios(values: FloatArray, clip: float, origin: Origin) -> DensityRatios:
    """Clip ratios at a multiple of their mean; return them and the removed share of their sum."""
    multiple = checks.number(clip, "clip")
    if multiple <= 1:
        raise DomainError(f"`clip` must be above 1, a multiple of the mean ratio; got {multiple!r}")
    bound = multiple * float(values.mean())
    clipped = np.minimum(values, bound)
    cut_share = max(1.0 - float(clipped.sum() / values.sum()), 0.0)
    # If no ratio reaches the bound, the largest ratio is a tighter bound.
    largest = min(bound, float(values.max()))
    return DensityRatios(clipped, largest, origin, bounded=largest == bound, cut=cut_share)


def as_density_ratios(ratio: "AnyArray | DensityRatios", n: int) -> DensityRatios:
    """Convert an array to density ratios, and check that there are n of them."""
    attribute = getattr(ratio, "ratios", None)
    if isinstance(attribute, DensityRatios):
        raise InputError(
            f"`ratio` must be density ratios, not a {type(ratio).__name__}: pass its .ratios"
        )
    ratios = ratio if isinstance(ratio, DensityRatios) else density_ratios(ratio)
    if ratios.n != n:
        checks.vector(ratios.values, "ratio", length=n, reference="confidence")
    return ratios


#: Minimum distance of probabilities from 0 and 1, so that no ratio is infinite.
_MIN_PROBABILITY: Final = 1e-9
#: Number of knots of a spline. In simulations, 4 to 6 knots were most accurate.
_KNOTS: Final = 5
#: Maximum number of columns for which the classifier uses splines.
_MAX_SPLINE_COLUMNS: Final = 50


@dataclass(frozen=True, eq=False)
class FittedRatios:
    """Density ratios that a classifier estimated, and the AUROC of this classifier.

    Attributes
    ----------
    ratios : DensityRatios
        Density ratios of the calibration samples, for the argument `ratio=` of the rules.
    auroc : float
        Cross-validated AUROC of the classifier between calibration and deployed samples. The AUROC
        is 0.5 without a detectable shift and 1 if the data sets do not overlap.
    folds : int
        Number of folds.

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.shift import fit_ratios
    >>> rng = np.random.default_rng(0)
    >>> found = fit_ratios(rng.normal(0, 1, 2000), rng.normal(0.5, 1, 2000), rng=0)
    >>> round(found.auroc, 2), found.ratios.n
    (0.64, 2000)
    """

    ratios: DensityRatios
    auroc: float
    folds: int


def fit_ratios(
    calibration: AnyArray,
    deployed: AnyArray,
    *,
    clip: float | None = None,
    classifier: Any = None,
    folds: int = 5,
    rng: Rng = 0,
) -> FittedRatios:
    """Estimate density ratios by a classifier between calibration and deployed samples.

    Answers: how much more frequent is each calibration sample in the deployed data?

    Parameters
    ----------
    calibration : array of shape (n,) or (n, d)
        Numeric inputs of the classifier for the calibration samples, such as features, class
        scores or a confidence.
    deployed : array of shape (m,) or (m, d)
        The same numbers for unlabeled samples from the application.
    clip : float, optional
        Multiple of the mean ratio at which ratios are clipped, as in `density_ratios`.
    classifier : scikit-learn classifier, optional
        A classifier with `predict_proba`. The default is logistic regression on splines of the
        ranks of each column, or on standardized columns if the number of columns is above 50.
    folds : int, default=5
        Number of folds. The ratio of each sample is predicted by a classifier that is fitted on the
        other folds.
    rng : int, Generator or None, default=0
        Random number generator of the folds.

    Returns
    -------
    FittedRatios
        The ratios and the AUROC of the classifier.

    Raises
    ------
    ShapeError, DomainError
        If a value is not finite, the numbers of columns differ, or a data set has too few samples.
    InputError
        If `folds` is below 2, or the classifier has no `predict_proba`.

    Notes
    -----
    The ratio is (n / m) p / (1 - p), where p is the probability that a sample is a deployed sample.
    A guarantee with estimated ratios holds for the deployed data under two conditions. First, the
    ratios are correct. Second, samples with equal features have the same error rate in both data
    sets. The features must not contain the loss. The upper bound of the ratios is unknown, so the
    largest observed ratio is used instead.

    The proofs of guarantees require ratios that are independent of the calibration data. With
    cross-fitting, the guarantee held in simulations (`docs/shift.md`) but is not proven. For a
    proven guarantee, fit the classifier on separate data and pass the ratios as an array.

    The classifier is fitted `folds` times.

    References
    ----------
    .. [1] Tibshirani, Barber, Candes and Ramdas (2019), Conformal prediction under covariate
       shift, https://arxiv.org/abs/1904.06019

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.shift import fit_ratios
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(0, 1, 4000)
    >>> found = fit_ratios(x, rng.normal(0.5, 1, 4000), rng=0)
    >>> truth = np.exp(0.5 * x - 0.125)  # for two normal distributions
    >>> bool(np.abs(found.ratios.values / found.ratios.values.mean() - truth).mean() < 0.1)
    True
    """
    calibration_rows = _check_features(calibration, "calibration")
    deployed_rows = _check_features(deployed, "deployed")
    if calibration_rows.shape[1] != deployed_rows.shape[1]:
        raise ShapeError(
            f"`deployed` must have the {calibration_rows.shape[1]} columns of `calibration`; got "
            f"{deployed_rows.shape[1]}"
        )
    n_folds = _check_folds(folds, min(len(calibration_rows), len(deployed_rows)))
    features = np.concatenate([calibration_rows, deployed_rows])
    is_deployed = np.arange(len(features)) >= len(calibration_rows)
    model = _check_classifier(classifier, features.shape)
    deployed_probability = _cross_fitted_probability(features, is_deployed, model, n_folds, rng)
    probability = np.clip(
        deployed_probability[~is_deployed], _MIN_PROBABILITY, 1 - _MIN_PROBABILITY
    )
    values = len(calibration_rows) / len(deployed_rows) * probability / (1 - probability)
    ratios = density_ratios(values, clip=clip, origin="classifier")
    return FittedRatios(ratios, _auroc(deployed_probability, is_deployed), n_folds)


def _check_features(array: AnyArray, name: str) -> FloatArray:
    """Validate finite features, and return them with shape (n, d)."""
    values = to_numpy(array, name)
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or values.size == 0:
        raise ShapeError(f"`{name}` must have shape (n,) or (n, d); got shape {values.shape}")
    for column in values.T:
        checks.finite(checks.vector(column, name), name)
    features: FloatArray = values.astype(np.float64)
    return features


def _check_folds(folds: int, n_smaller: int) -> int:
    """Validate the number of folds for the size of the smaller data set."""
    count = checks.positive_int(folds, "folds")
    if count < 2:
        raise InputError(
            "`folds` must be at least 2: ratios of the fitting samples would be overconfident"
        )
    if n_smaller < 2 * count:
        raise DomainError(
            f"both data sets must have at least {2 * count} samples for {count} folds; got "
            f"{n_smaller}"
        )
    return count


def _check_classifier(classifier: Any, shape: tuple[int, ...]) -> Any:
    """Return the classifier of the user, or the default classifier for features of this shape."""
    if classifier is None:
        return _default_classifier(*shape)
    if not callable(getattr(classifier, "predict_proba", None)):
        raise InputError(f"`classifier` must have predict_proba; got {type(classifier).__name__}")
    return classifier


def _default_classifier(n: int, columns: int) -> Any:
    """Return logistic regression on splines of the ranks of each column."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import QuantileTransformer, SplineTransformer, StandardScaler

    regression = LogisticRegression(max_iter=1000)
    if columns > _MAX_SPLINE_COLUMNS:
        return make_pipeline(StandardScaler(), regression)
    # A log-ratio is rarely linear, and ranks limit the influence of outliers.
    ranks = QuantileTransformer(n_quantiles=min(500, n // 2), random_state=0)
    return make_pipeline(ranks, SplineTransformer(n_knots=_KNOTS), regression)


def _cross_fitted_probability(
    features: FloatArray, is_deployed: BoolArray, model: Any, folds: int, rng: Rng
) -> FloatArray:
    """Return the cross-validated probability that each sample is a deployed sample."""
    from sklearn.base import clone

    random = named_generator(as_seed(rng), "folds")
    fold = np.empty(len(features), dtype=np.int64)
    for members in (is_deployed, ~is_deployed):
        fold[members] = random.permutation(np.arange(int(members.sum())) % folds)
    probability = np.empty(len(features))
    for k in range(folds):
        is_held_out = fold == k
        fitted = clone(model).fit(
            features[~is_held_out], is_deployed[~is_held_out].astype(np.int64)
        )
        probability[is_held_out] = fitted.predict_proba(features[is_held_out])[:, 1]
    return probability


def _auroc(score: FloatArray, positive: BoolArray) -> float:
    """Compute the area under the ROC curve of a score, where each tied pair counts one half."""
    negative_scores = np.sort(score[~positive])
    n_below = np.searchsorted(negative_scores, score[positive], side="left")
    n_through = np.searchsorted(negative_scores, score[positive], side="right")
    return float((n_below + n_through).mean() / (2 * negative_scores.size))
