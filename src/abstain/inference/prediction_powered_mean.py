"""Prediction-powered estimates of a mean loss from predictions and a few sampled labels."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from abstain._foundation import checks
from abstain._foundation.lazy_imports import special
from abstain.errors import DomainError
from abstain.inference.intervals import Interval, check_level, no_interval
from abstain.typing import AnyArray, FloatArray

_METHOD: Final = "normal, independent samples"


@dataclass(frozen=True)
class PredictionPoweredMean:
    """Estimates of a mean with and without the predictions for unlabeled samples.

    Attributes
    ----------
    value : float
        The prediction-powered estimate, which uses all predictions and the available labels.
    interval : Interval
        Normal confidence interval of `value`, valid for a single inspection.
    labels_only : float
        The estimate from the labels alone, weighted by their inverse sampling probabilities.
    labels_only_interval : Interval
        Normal confidence interval of `labels_only`, valid for a single inspection.
    n_samples, n_labeled : int
        Number of samples, and number of samples with a label.

    Examples
    --------
    >>> from abstain.inference.prediction_powered_mean import prediction_powered_mean
    >>> losses = [0.0, 1.0, float("nan"), 0.0]
    >>> estimate = prediction_powered_mean([0.1, 0.3, 0.2, 0.2], losses, [0.5] * 4)
    >>> round(estimate.value, 3), estimate.labels_only
    (0.4, 0.5)
    """

    value: float
    interval: Interval
    labels_only: float
    labels_only_interval: Interval
    n_samples: int
    n_labeled: int


def prediction_powered_mean(
    predicted: AnyArray, loss: AnyArray, probability: AnyArray, *, level: float = 0.95
) -> PredictionPoweredMean:
    """Estimate a mean loss from predictions for all samples and labels for a few samples.

    Answers: how large is the risk if I can label only 3% of the samples?

    Parameters
    ----------
    predicted : array of shape (n,)
        Predicted loss of each sample, such as one minus a calibrated confidence. The prediction for
        a sample must not depend on its label.
    loss : array of shape (n,)
        The losses, or NaN for samples without a label.
    probability : array of shape (n,)
        The probability, in (0, 1], with which each sample was selected for labeling, including
        samples that were not selected.
    level : float, default=0.95
        Confidence level of the intervals.

    Returns
    -------
    PredictionPoweredMean
        The estimates with and without predictions. Both estimates are unbiased, even if the
        predictions are inaccurate. If all terms of the mean are equal, the bounds are NaN and the
        note states the reason.

    Raises
    ------
    ShapeError, DomainError
        If the lengths differ, or if a probability is outside (0, 1].

    Notes
    -----
    The estimate is the mean of f + (loss - f) labeled/probability, where f is the predicted loss.
    For equal probabilities, the method is prediction-powered inference [1]_. For other
    probabilities, the method is active inference [2]_.

    References
    ----------
    .. [1] Angelopoulos et al. (2023), Prediction-powered inference,
       https://arxiv.org/abs/2301.09633
    .. [2] Zrnic and Candes (2024), Active statistical inference,
       https://arxiv.org/abs/2403.03208

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.inference.prediction_powered_mean import prediction_powered_mean
    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(0.5, 4.5, 20_000)
    >>> is_labeled = rng.random(p.size) < 0.05
    >>> loss = np.where(is_labeled, rng.random(p.size) < p, np.nan)
    >>> estimate = prediction_powered_mean(p, loss, np.full(p.size, 0.05))
    >>> estimate.interval.standard_error < estimate.labels_only_interval.standard_error
    True
    """
    prediction = checks.finite(checks.vector(predicted, "predicted"), "predicted")
    losses = checks.vector(loss, "loss", length=prediction.size)
    p = checks.vector(probability, "probability", length=prediction.size)
    is_valid = (p > 0) & (p <= 1)
    if not is_valid.all():
        raise DomainError(f"`probability` must lie in (0, 1]; got {p[~is_valid][0]!r}")
    is_labeled = ~np.isnan(losses)
    label_terms = np.where(is_labeled, losses, 0.0) / p
    powered_terms = prediction + label_terms - prediction * is_labeled / p
    sums = np.array(
        [
            [powered_terms.sum(), np.square(powered_terms).sum()],
            [label_terms.sum(), np.square(label_terms).sum()],
        ]
    )
    return estimates_from_sums(sums, prediction.size, int(is_labeled.sum()), level=level)


def estimates_from_sums(
    sums: FloatArray, n_samples: int, n_labeled: int, *, level: float = 0.95
) -> PredictionPoweredMean:
    """Compute the estimates with and without predictions from sums over the samples.

    The first row of `sums` contains the sum and the sum of squares of f + (loss - f)
    labeled/probability. The second row contains the same sums of loss labeled/probability.
    """
    value, interval = _mean_with_interval(*sums[0], n=n_samples, level=level)
    labels_only, labels_only_interval = _mean_with_interval(*sums[1], n=n_samples, level=level)
    return PredictionPoweredMean(
        value, interval, labels_only, labels_only_interval, n_samples, n_labeled
    )


def _mean_with_interval(
    total: float, squares: float, *, n: int, level: float
) -> tuple[float, Interval]:
    """Return a mean and its normal interval from a sum and a sum of squares."""
    level = check_level(level)
    if n < 2:
        value = float(total) / n if n else float("nan")
        return value, no_interval(level, "fewer than two samples")
    mean = float(total / n)
    error = float(np.sqrt(max(squares / n - mean * mean, 0.0) / (n - 1)))
    if error <= 1e-14:
        reason = "all terms are equal, so the standard error is unknown"
        return mean, no_interval(level, reason, error)
    half_width = -float(special.ndtri((1 - level) / 2)) * error
    low = float(np.clip(mean - half_width, 0, 1))
    high = float(np.clip(mean + half_width, 0, 1))
    return mean, Interval(low, high, level, _METHOD, error)
