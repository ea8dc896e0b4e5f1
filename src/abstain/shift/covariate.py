"""Covariate shift: density ratios from a classifier that tells two data sets apart."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import to_numpy
from abstain._foundation.random import as_seed, named_generator
from abstain.errors import DomainError, InputError, ShapeError
from abstain.shift.ratios import DensityRatios, density_ratios
from abstain.typing import AnyArray, BoolArray, FloatArray, Rng

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

    Cost: that of fitting the classifier `folds` times.

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
