"""Density ratios of the deployed and the calibration data: known, or estimated by a classifier."""

from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import read_only, to_numpy
from abstain._foundation.random import as_seed, named_generator
from abstain.errors import DomainError, InputError, ShapeError
from abstain.typing import AnyArray, BoolArray, FloatArray, Rng

#: Origin of the ratios, and the phrases for it.
Origin = Literal["given", "classifier", "labels"]
_ORIGIN_PHRASES: Final = {
    "given": "by the density ratios given",
    "classifier": "by density ratios that a classifier estimated",
    "labels": "by class ratios estimated from predicted classes",
}

#: Share of the samples with the largest ratios whose share of the weight is reported.
_TOP_SHARE: Final = 0.01


@dataclass(frozen=True, eq=False)
class DensityRatios:
    """Density ratios (importance weights) of the calibration samples.

    The ratio of a sample is dQ/dP, with the distribution P of the calibration data and Q of the
    deployed data. Ratios are not frequency weights: a sample with ratio 3 is one sample, not three.

    Attributes
    ----------
    values : ndarray of shape (n,)
        Finite, not negative, not all zero; only their proportions matter.
    largest : float
        Upper bound of all ratios, also of samples that were not observed.
    origin : {"given", "classifier", "labels"}
        Whether the ratios are known, estimated by a classifier between the two data sets, or
        estimated from predicted classes.
    bounded : bool
        Whether `largest` is known; otherwise it is the largest of the values.
    cut : float
        Share of the weight that clipping removed, in [0, 1).
    standard_error : float or None
        Largest standard error of an estimated ratio over the classes, if available.

    Raises
    ------
    InputError, ShapeError, DomainError
        If the values are not valid ratios or above `largest`, or the origin is unknown.

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
        """Effective sample size: (sum of ratios)^2 / sum of squared ratios."""
        scaled = self.values / self.values.max()
        return float(scaled.sum() ** 2 / (scaled @ scaled))

    @property
    def expected_draws(self) -> float:
        """Expected number of samples that `draw` keeps: sum of the ratios / `largest`."""
        return float((self.values / self.largest).sum())

    @property
    def top_share(self) -> float:
        """Share of the weight of the 1% of the samples with the largest ratios (at least one)."""
        count = max(1, int(_TOP_SHARE * self.n))
        return float(np.sort(self.values)[-count:].sum() / self.values.sum())

    @property
    def heaviest(self) -> int:
        """Index of the sample with the largest ratio; the first one of equals."""
        return int(np.argmax(self.values))

    def draw(self, rng: Rng = None) -> BoolArray:
        """Sample from the deployed distribution by rejection sampling.

        A sample is kept with probability ratio / `largest`.

        Parameters
        ----------
        rng : int, Generator or None
            Random number generator.

        Returns
        -------
        ndarray of shape (n,)
            Booleans. The kept samples are independent draws from Q if the ratios are exact and none
            exceeds `largest`.

        Examples
        --------
        >>> from abstain.shift import density_ratios
        >>> density_ratios([1.0, 0.0, 1.0], largest=1.0).draw(0).tolist()
        [True, False, True]
        """
        # A separate stream, independent of data that were generated with the same seed.
        generator = named_generator(as_seed(rng), "density ratios")
        is_accepted: BoolArray = generator.random(self.n) * self.largest < self.values
        return is_accepted

    def rows(self, selection: AnyArray) -> "DensityRatios":
        """Select the ratios of some samples; the upper bound does not change.

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
            If there are no samples, or all ratios are 0.

        Examples
        --------
        >>> from abstain.shift import density_ratios
        >>> density_ratios([0.5, 0.5, 2.0]).rows([0, 1]).largest
        2.0
        """
        return replace(self, values=self.values[np.asarray(selection)])

    def __str__(self) -> str:
        """Describe the effective size and the largest ratios."""
        mean, heaviest = float(self.values.mean()), self.heaviest
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
        return text + (
            f"; clipping removed {100 * self.cut:.2g}% of the weight" if self.cut else ""
        )

    @property
    def target(self) -> str:
        """Description of the population to which a guarantee with these ratios refers."""
        text = f"data like the calibration data reweighted {_ORIGIN_PHRASES[self.origin]}"
        return text + (", except for clipped ratios" if self.cut else "")


def density_ratios(
    ratio: AnyArray,
    *,
    largest: float | None = None,
    clip: float | None = None,
    origin: Origin = "given",
) -> DensityRatios:
    """Validate density ratios of calibration samples, for guarantees on deployed data.

    Answers: how many independent samples are equivalent to the reweighted calibration data?

    Parameters
    ----------
    ratio : array of shape (n,)
        Density of the deployed data divided by that of the calibration data, at each calibration
        sample; up to a constant factor. Not negative, not all zero.
    largest : float, optional
        Upper bound of all ratios, in the same unit, which a guarantee requires. By default the
        largest of `ratio`, which is an estimate.
    clip : float, optional
        Clip ratios at this multiple of their mean. The guarantee then refers to another
        distribution: the generalized risk on the deployed data can be larger by the share of the
        weight that clipping removed, which `cut` estimates.
    origin : {"given", "classifier", "labels"}, default="given"
        Origin of the ratios, for the description of the guarantee.

    Returns
    -------
    DensityRatios
        Density ratios for the argument `ratio=` of the rules.

    Raises
    ------
    InputError, ShapeError, DomainError
        If `ratio` is not a finite vector, is negative or all zero, `largest` is below the largest
        ratio, `clip` is not above 1, or `largest` and `clip` are both passed.

    Notes
    -----
    Rejection sampling keeps a sample with probability ratio / largest, and the kept samples follow
    the deployed distribution [1]_. With a largest ratio of 100 and a mean ratio of 1, it removes
    99% of the samples; `expected_draws` is the expected number of kept samples.

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
    index = int(np.argmax(values))
    raise DomainError(
        f"`largest` must be at least every ratio; got {bound!r}, and {values[index]:g} at index "
        f"{index}. Increase it (--max-ratio), or clip the ratios with `clip` (--clip)"
    )


def _check_ratio(ratio: AnyArray) -> FloatArray:
    values = checks.finite(checks.vector(ratio, "ratio"), "ratio").astype(np.float64)
    checks.reject_entries("ratio", "must not be negative", values, values < 0)
    checks.finite_sum(values, "ratio")
    if not values.any():
        raise DomainError("`ratio` must not be zero everywhere: no sample is from deployed data")
    return values


def _clip_ratios(values: FloatArray, clip: float, origin: Origin) -> DensityRatios:
    multiple = checks.number(clip, "clip")
    if multiple <= 1:
        raise DomainError(f"`clip` must be above 1, a multiple of the mean ratio; got {multiple!r}")
    bound = multiple * float(values.mean())
    clipped = np.minimum(values, bound)
    cut_share = max(1.0 - float(clipped.sum() / values.sum()), 0.0)
    # If no ratio reaches the bound, the largest ratio is the tighter bound.
    largest = min(bound, float(values.max()))
    return DensityRatios(clipped, largest, origin, bounded=largest == bound, cut=cut_share)


def as_density_ratios(ratio: "AnyArray | DensityRatios", n: int) -> DensityRatios:
    """Return density ratios of n samples; an array is validated."""
    attribute = getattr(ratio, "ratios", None)
    if isinstance(attribute, DensityRatios):
        raise InputError(
            f"`ratio` must be density ratios, not a {type(ratio).__name__}: pass its .ratios"
        )
    ratios = ratio if isinstance(ratio, DensityRatios) else density_ratios(ratio)
    if ratios.n != n:
        checks.vector(ratios.values, "ratio", length=n, reference="confidence")
    return ratios


#: Chances are kept this far from 0 and 1, so that no ratio is infinite.
_MIN_PROBABILITY: Final = 1e-9
#: Knots of a curve: 4 to 6 came nearest on mixtures of two normal or beta laws, n = 500 and 4000.
_KNOTS: Final = 5
#: More columns than this have no curves.
_MAX_SPLINE_COLUMNS: Final = 50


@dataclass(frozen=True, eq=False)
class FittedRatios:
    """Density ratios that a classifier estimated, and how well it told the data sets apart.

    Attributes
    ----------
    ratios : DensityRatios
        Density ratios of the calibration samples, for the argument `ratio=` of the rules.
    auroc : float
        Cross-validated AUROC of the classifier between calibration and deployed samples: 0.5
        without a detectable shift, 1 if the data sets do not overlap.
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
        Numbers that describe the calibration samples: features, class scores, or a confidence.
    deployed : array of shape (m,) or (m, d)
        The same numbers for unlabeled samples from the application.
    clip : float, optional
        Clip ratios at this multiple of their mean, as `density_ratios` does.
    classifier : scikit-learn classifier, optional
        A classifier with `predict_proba`. By default, logistic regression on splines of the ranks
        of each column (on standardized columns if there are more than 50).
    folds : int, default=5
        Number of folds. The probability of each sample comes from a classifier that was fitted on
        the other folds.
    rng : int, Generator or None, default=0
        Random number generator of the folds.

    Returns
    -------
    FittedRatios
        The ratios, and the AUROC of the classifier.

    Raises
    ------
    ShapeError, DomainError
        If a value is not finite, the numbers of columns differ, or there are too few samples.
    InputError
        If there are fewer than two folds, or the classifier has no `predict_proba`.

    Notes
    -----
    The ratio is (n / m) p / (1 - p), where p is the probability that a sample is a deployed one. A
    guarantee with these ratios refers to the calibration distribution reweighted by the ratios. It
    holds for the deployed data if the ratios are correct, and if samples with equal features have
    the same error rate in both data sets. The latter is not tested. The features must not contain
    the loss. The largest ratio of the distribution is not known and is replaced by the largest
    observed ratio.

    The proofs require ratios that are independent of the calibration data. Here, the ratio of a
    sample is computed from the other folds, without labels. The guarantee held in simulations
    (`docs/shift.md`), but is not proven. For a proven guarantee, fit the classifier on separate
    data and pass the ratios as an array.

    The cost is that of fitting the classifier `folds` times.

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
    calibration_rows, deployed_rows = (
        _check_features(calibration, "calibration"),
        _check_features(deployed, "deployed"),
    )
    if calibration_rows.shape[1] != deployed_rows.shape[1]:
        raise ShapeError(
            f"`deployed` must have the {calibration_rows.shape[1]} columns of `calibration`; got "
            f"{deployed_rows.shape[1]}"
        )
    n_folds = _check_folds(folds, min(len(calibration_rows), len(deployed_rows)))
    x = np.concatenate([calibration_rows, deployed_rows])
    is_deployed = np.arange(len(x)) >= len(calibration_rows)
    deployed_probability = _cross_fitted_probability(
        x, is_deployed, _check_classifier(classifier, x.shape), n_folds, rng
    )
    calibration_probability = np.clip(
        deployed_probability[~is_deployed], _MIN_PROBABILITY, 1 - _MIN_PROBABILITY
    )
    values = (
        len(calibration_rows)
        / len(deployed_rows)
        * calibration_probability
        / (1 - calibration_probability)
    )
    ratios = density_ratios(values, clip=clip, origin="classifier")
    return FittedRatios(ratios, _auroc(deployed_probability, is_deployed), n_folds)


def _check_features(x: AnyArray, name: str) -> FloatArray:
    values = to_numpy(x, name)
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or values.size == 0:
        raise ShapeError(f"`{name}` must have shape (n,) or (n, d); got shape {values.shape}")
    for column in values.T:
        checks.finite(checks.vector(column, name), name)
    features: FloatArray = values.astype(np.float64)
    return features


def _check_folds(folds: int, n_smaller: int) -> int:
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
    if classifier is None:
        return _default_classifier(*shape)
    if not callable(getattr(classifier, "predict_proba", None)):
        raise InputError(f"`classifier` must have predict_proba; got {type(classifier).__name__}")
    return classifier


def _default_classifier(n: int, columns: int) -> Any:
    """Return logistic regression on splines of the ranks of each column.

    A log-ratio is rarely linear. Ranks limit the influence of the tails, and the splines are
    constant outside the range of the samples.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import QuantileTransformer, SplineTransformer, StandardScaler

    regression = LogisticRegression(max_iter=1000)
    if columns > _MAX_SPLINE_COLUMNS:
        return make_pipeline(StandardScaler(), regression)
    ranks = QuantileTransformer(n_quantiles=min(500, n // 2), random_state=0)
    return make_pipeline(ranks, SplineTransformer(n_knots=_KNOTS), regression)


def _cross_fitted_probability(
    x: FloatArray, is_deployed: BoolArray, model: Any, folds: int, rng: Rng
) -> FloatArray:
    """Return the cross-fitted probability that each row is a deployed sample."""
    from sklearn.base import clone

    random = named_generator(as_seed(rng), "folds")
    fold = np.empty(len(x), dtype=np.int64)
    for members in (is_deployed, ~is_deployed):
        fold[members] = random.permutation(np.arange(int(members.sum())) % folds)
    probability = np.empty(len(x))
    for k in range(folds):
        is_held_out = fold == k
        fitted = clone(model).fit(x[~is_held_out], is_deployed[~is_held_out].astype(np.int64))
        probability[is_held_out] = fitted.predict_proba(x[is_held_out])[:, 1]
    return probability


def _auroc(score: FloatArray, positive: BoolArray) -> float:
    """Compute the AUROC: the probability that a positive has a higher score; ties count half."""
    ordered = np.sort(score[~positive])
    n_below = np.searchsorted(ordered, score[positive], side="left")
    n_through = np.searchsorted(ordered, score[positive], side="right")
    return float((n_below + n_through).mean() / (2 * ordered.size))
