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
_EDGE: Final = 1e-9
#: Knots of a curve: 4 to 6 came nearest on mixtures of two normal or beta laws, n = 500 and 4000.
_KNOTS: Final = 5
#: More columns than this have no curves.
_MANY: Final = 50


@dataclass(frozen=True, eq=False)
class FittedRatios:
    """Density ratios that a classifier estimated, and how well it told the data sets apart.

    Attributes
    ----------
    ratios : DensityRatios
        Of the calibration samples: what `ratio=` of the rules takes.
    auroc : float
        How well the classifier tells deployed samples from calibration samples that it was not
        fitted on: 0.5 where it finds no shift, 1 where the data sets do not overlap.
    folds : int
        Into how many parts both data sets were cut.

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

    Answers: how much more often does each calibration sample come up where the rule is used?

    Parameters
    ----------
    calibration : array of shape (n,) or (n, d)
        Numbers that describe the calibration samples: features, class scores, or a confidence.
    deployed : array of shape (m,) or (m, d)
        The same of samples from where the rule is used, without labels.
    clip : float, optional
        Cut ratios to this many times their mean, as `density_ratios` does.
    classifier : scikit-learn classifier, optional
        With `predict_proba`; by default logistic regression on splines of the ranks of each
        column (on standardized columns where there are more than 50).
    folds : int, default=5
        Each sample's chance comes from a classifier fitted on the other folds.
    rng : int, Generator or None, default=0
        Of the folds.

    Returns
    -------
    FittedRatios
        The ratios and how well the two data sets are told apart.

    Raises
    ------
    ShapeError, DomainError
        Not finite; other numbers of columns; fewer samples than folds.
    InputError
        Fewer than two folds; a classifier without `predict_proba`.

    Notes
    -----
    The ratio is (n / m) p / (1 - p), p the chance to be a deployed sample. A guarantee that rests
    on it is a guarantee for the law that these ratios make of the calibration data: it is about
    the deployed data only as far as the ratios are right, and as far as samples that look the same
    here are wrong equally often there. Nothing here tests the latter. The loss must not be among
    the numbers. The largest ratio of the law is not known, and the largest seen stands for it.

    The proofs take ratios that were there before the calibration data. Here that of a sample comes
    from the other folds, without any label: it held in what was measured (`docs/shift.md`), and is
    not proven. For a proof fit the classifier on data of its own, and give the rule an array.

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
    >>> truth = np.exp(0.5 * x - 0.125)  # of two normal laws
    >>> bool(np.abs(found.ratios.values / found.ratios.values.mean() - truth).mean() < 0.1)
    True
    """
    here, there = _columns(calibration, "calibration"), _columns(deployed, "deployed")
    if here.shape[1] != there.shape[1]:
        raise ShapeError(
            f"`deployed` must have the {here.shape[1]} columns of `calibration`; got "
            f"{there.shape[1]}"
        )
    parts = _fold_count(folds, min(len(here), len(there)))
    x = np.concatenate([here, there])
    is_new = np.arange(len(x)) >= len(here)
    chance = _out_of_fold(x, is_new, _classifier(classifier, x.shape), parts, rng)
    p = np.clip(chance[~is_new], _EDGE, 1 - _EDGE)
    values = len(here) / len(there) * p / (1 - p)
    ratios = density_ratios(values, clip=clip, origin="classifier")
    return FittedRatios(ratios, _auroc(chance, is_new), parts)


def _columns(x: AnyArray, name: str) -> FloatArray:
    values = to_numpy(x, name)
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or values.size == 0:
        raise ShapeError(f"`{name}` must have shape (n,) or (n, d); got shape {values.shape}")
    for column in values.T:
        checks.finite(checks.vector(column, name), name)
    out: FloatArray = values.astype(np.float64)
    return out


def _fold_count(folds: int, least: int) -> int:
    count = checks.positive_int(folds, "folds")
    if count < 2:
        raise InputError(
            "`folds` must be at least 2: ratios of the samples that were fitted on are too sure"
        )
    if least < 2 * count:
        raise DomainError(
            f"both data sets must have at least {2 * count} samples for {count} folds; got {least}"
        )
    return count


def _classifier(given: Any, shape: tuple[int, ...]) -> Any:
    if given is None:
        return _splines(*shape)
    if not callable(getattr(given, "predict_proba", None)):
        raise InputError(f"`classifier` must have predict_proba; got {type(given).__name__}")
    return given


def _splines(n: int, columns: int) -> Any:
    """Return logistic regression on curves of each column: a log-ratio is seldom a straight line.

    Of ranks, so that no tail decides, and level beyond the outermost samples.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import QuantileTransformer, SplineTransformer, StandardScaler

    regression = LogisticRegression(max_iter=1000)
    if columns > _MANY:
        return make_pipeline(StandardScaler(), regression)
    ranks = QuantileTransformer(n_quantiles=min(500, n // 2), random_state=0)
    return make_pipeline(ranks, SplineTransformer(n_knots=_KNOTS), regression)


def _out_of_fold(x: FloatArray, is_new: BoolArray, model: Any, folds: int, rng: Rng) -> FloatArray:
    """Return the chance of each row to be a deployed one, by models not fitted on it."""
    from sklearn.base import clone

    random = named_generator(as_seed(rng), "folds")
    fold = np.empty(len(x), dtype=np.int64)
    for own in (is_new, ~is_new):
        fold[own] = random.permutation(np.arange(int(own.sum())) % folds)
    chance = np.empty(len(x))
    for k in range(folds):
        held = fold == k
        fitted = clone(model).fit(x[~held], is_new[~held].astype(np.int64))
        chance[held] = fitted.predict_proba(x[held])[:, 1]
    return chance


def _auroc(score: FloatArray, positive: BoolArray) -> float:
    """Return the chance that a positive has the higher score, ties counted half."""
    ordered = np.sort(score[~positive])
    below = np.searchsorted(ordered, score[positive], side="left")
    through = np.searchsorted(ordered, score[positive], side="right")
    return float((below + through).mean() / (2 * ordered.size))
