"""Means from a few labels that were asked for with known chances, and from predictions of all."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from abstain._foundation import checks
from abstain._foundation.lazy_imports import special
from abstain.errors import DomainError
from abstain.inference.intervals import Interval, level_of, no_interval
from abstain.typing import AnyArray, FloatArray

_METHOD: Final = "normal, independent samples"


@dataclass(frozen=True)
class PoweredMean:
    """A mean estimated from all predictions and a few labels, beside the labels alone.

    Attributes
    ----------
    value : float
        The prediction-powered estimate.
    interval : Interval
        For one look, by the normal distribution.
    labels_only : float
        The same from the labels alone, each counted by one over its chance.
    labels_only_interval : Interval
        Likewise.
    n, asked : int
        Samples, and how many of them have a label.

    Examples
    --------
    >>> from abstain.inference.powered_mean import powered_mean
    >>> found = powered_mean([0.1, 0.3, 0.2, 0.2], [0.0, 1.0, float("nan"), 0.0], [0.5] * 4)
    >>> round(found.value, 3), found.labels_only
    (0.4, 0.5)
    """

    value: float
    interval: Interval
    labels_only: float
    labels_only_interval: Interval
    n: int
    asked: int


def powered_mean(
    predicted: AnyArray, loss: AnyArray, chance: AnyArray, *, level: float = 0.95
) -> PoweredMean:
    """Estimate a mean loss from predictions of all samples and the labels of a few.

    Answers: what is the risk, when I can have three per cent of the labels?

    Parameters
    ----------
    predicted : array of shape (n,)
        What each loss is thought to be, before any label: one minus a calibrated confidence.
    loss : array of shape (n,)
        The losses; NaN where no label was asked for.
    chance : array of shape (n,)
        With which chance, in (0, 1], each label was to be asked for, whether it was or not.
    level : float, default=0.95
        Of the intervals.

    Returns
    -------
    PoweredMean
        Both estimates are unbiased, whatever the predictions are worth; good ones make the first
        interval shorter. NaN ends, with a note, where nothing varies.

    Raises
    ------
    ShapeError, DomainError
        Lengths that differ, or chances outside (0, 1].

    Notes
    -----
    The mean of f + (loss - f) asked/chance: prediction-powered inference [1]_ where all chances
    are equal, active inference [2]_ where they are not.

    References
    ----------
    .. [1] Angelopoulos et al. (2023), Prediction-powered inference,
       https://arxiv.org/abs/2301.09633
    .. [2] Zrnic and Candes (2024), Active statistical inference,
       https://arxiv.org/abs/2403.03208

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.inference.powered_mean import powered_mean
    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(0.5, 4.5, 20_000)
    >>> asked = rng.random(p.size) < 0.05
    >>> found = powered_mean(
    ...     p, np.where(asked, rng.random(p.size) < p, np.nan), np.full(p.size, 0.05)
    ... )
    >>> found.interval.standard_error < found.labels_only_interval.standard_error
    True
    """
    f = checks.finite(checks.vector(predicted, "predicted"), "predicted")
    y = checks.vector(loss, "loss", length=f.size)
    p = checks.vector(chance, "chance", length=f.size)
    if not ((p > 0) & (p <= 1)).all():
        raise DomainError(f"`chance` must lie in (0, 1]; got {p[~((p > 0) & (p <= 1))][0]!r}")
    known = ~np.isnan(y)
    mass = np.where(known, y, 0.0) / p
    powered = f + mass - f * known / p
    sums = np.array([[x.sum(), (x * x).sum()] for x in (powered, mass)])
    return mean_of_sums(sums, f.size, int(known.sum()), level=level)


def mean_of_sums(sums: FloatArray, n: int, asked: int, *, level: float = 0.95) -> PoweredMean:
    """Return the estimates from the sums and the sums of squares of the terms of both.

    `sums` has a row for the powered terms f + (loss - f) asked/chance and one for the terms
    loss asked/chance of the labels alone.
    """
    (powered, first), (bare, second) = (_mean(*row, n=n, level=level) for row in sums)
    return PoweredMean(powered, first, bare, second, n, asked)


def _mean(total: float, squares: float, *, n: int, level: float) -> tuple[float, Interval]:
    level = level_of(level)
    if n < 2:
        return (float(total) / n if n else float("nan")), no_interval(
            level, "fewer than two samples"
        )
    mean = float(total / n)
    error = float(np.sqrt(max(squares / n - mean * mean, 0.0) / (n - 1)))
    if error <= 1e-14:
        return mean, no_interval(level, "nothing varies, so the spread cannot be seen", error)
    reach = -float(special.ndtri((1 - level) / 2)) * error
    ends = float(np.clip(mean - reach, 0, 1)), float(np.clip(mean + reach, 0, 1))
    return mean, Interval(*ends, level, _METHOD, error)
