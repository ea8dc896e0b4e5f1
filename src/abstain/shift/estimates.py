"""Estimate the selective risk of unlabeled data, without a guarantee."""

from dataclasses import dataclass

import numpy as np

from abstain._foundation import checks
from abstain._foundation.scored import validate_samples_on_host
from abstain.calibration import fit_isotonic
from abstain.shift.ratios import DensityRatios, as_density_ratios
from abstain.typing import AnyArray, Array, FloatArray

_NAN = float("nan")


@dataclass(frozen=True)
class UnlabeledRisk:
    """Estimates of the selective risk of samples without labels.

    Attributes
    ----------
    threshold : float or None
        Samples with at least this confidence are accepted. None accepts all samples.
    n, accepted : int
        Number of unlabeled samples, and number of unlabeled samples that are accepted.
    coverage : float
        Share of the unlabeled samples that is accepted.
    calibration_risk : float
        Mean loss of the accepted calibration samples, an estimate of the risk without a shift.
    mean_confidence : float
        One minus the mean confidence of the accepted samples after isotonic calibration.
    thresholded_confidence : float
        Average thresholded confidence (ATC), the share of the accepted samples below a threshold.
        The threshold is selected so that the share of calibration samples below it equals their
        error rate.
    reweighted : float
        Mean loss of the accepted calibration samples, weighted by their density ratios. NaN without
        ratios.

    Notes
    -----
    The estimates are NaN if no unlabeled sample or no calibration sample is accepted.

    Examples
    --------
    >>> from abstain.shift import unlabeled_risk
    >>> found = unlabeled_risk([0.9, 0.8, 0.4, 0.3], [0, 0, 1, 0], [0.9, 0.3, 0.3, 0.2])
    >>> found.thresholded_confidence, found.calibration_risk
    (0.75, 0.25)
    """

    threshold: float | None
    n: int
    accepted: int
    coverage: float
    calibration_risk: float
    mean_confidence: float
    thresholded_confidence: float
    reweighted: float

    @property
    def accuracy(self) -> dict[str, float]:
        """One minus each estimated error rate, by the name of the estimate."""
        names = ("mean_confidence", "thresholded_confidence", "reweighted")
        return {name: 1.0 - float(getattr(self, name)) for name in names}


def unlabeled_risk(
    confidence: AnyArray,
    loss: AnyArray,
    deployed: AnyArray,
    *,
    threshold: float | None = None,
    ratio: "AnyArray | DensityRatios | None" = None,
) -> UnlabeledRisk:
    """Estimate the error rate of samples without labels.

    Answers: approximately how many predictions are wrong if no labels are available?

    Parameters
    ----------
    confidence, loss : array of shape (n,)
        Confidences and 0/1 losses of calibration samples.
    deployed : array of shape (m,)
        Confidences of unlabeled samples, computed by the same score.
    threshold : float, optional
        Only samples with at least this confidence are accepted. By default, all samples are
        accepted.
    ratio : array of shape (n,) or DensityRatios, optional
        Density ratios of the calibration samples, for `reweighted`.

    Returns
    -------
    UnlabeledRisk
        Three estimates of the selective risk. No intervals are computed, because the main error is
        a violation of the assumptions (see Notes). The page `docs/shift.md` lists measured errors.

    Raises
    ------
    ShapeError, DomainError
        If a value is invalid, or a loss is not 0 or 1.

    Notes
    -----
    The estimate `mean_confidence` assumes that the calibrated probabilities remain correct under
    the shift. The estimate `thresholded_confidence` [1]_ assumes that the share of samples below
    the threshold still equals the error rate. The estimate `reweighted` assumes that the ratios
    are correct. No estimate detects confident errors that do not occur in the calibration data,
    such as errors on new classes. If several calibration samples are tied at the ATC threshold,
    only a fraction of the tied samples is counted. This fraction is the same in both data sets.

    The cost is two sorts.

    References
    ----------
    .. [1] Garg, Balakrishnan, Lipton, Neyshabur and Sedghi (2022), Leveraging unlabeled data to
       predict out-of-distribution performance, https://arxiv.org/abs/2201.04234

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.shift import unlabeled_risk
    >>> rng = np.random.default_rng(0)
    >>> sure, less = rng.beta(4, 1, 5000), rng.beta(3, 1, 5000)
    >>> found = unlabeled_risk(sure, rng.random(5000) > sure, less, threshold=0.5)
    >>> truth = 1 - less[less >= 0.5].mean()  # the confidences are calibrated
    >>> bool(abs(found.mean_confidence - truth) < 0.01), bool(found.calibration_risk < truth)
    (True, True)
    """
    samples = validate_samples_on_host(confidence, loss)
    checks.binary_loss(samples.loss, required_by="unlabeled_risk")
    deployed_confidence = checks.confidence(deployed, "deployed")
    if threshold is not None:
        threshold = checks.number(threshold, "threshold")
    losses = samples.loss.astype(np.float64)
    is_accepted = _accepted_mask(samples.confidence, threshold)
    is_deployed_accepted = _accepted_mask(deployed_confidence, threshold)
    weights = None
    if ratio is not None:
        weights = as_density_ratios(ratio, losses.size).values[is_accepted]
    accepted_loss = losses[is_accepted]
    deployed_accepted = deployed_confidence[is_deployed_accepted]
    calibration_risk = float(accepted_loss.mean()) if is_accepted.any() else _NAN
    mean_confidence = thresholded_confidence = reweighted = _NAN
    if is_accepted.any() and is_deployed_accepted.any():
        mean_confidence = _risk_from_mean_confidence(samples.confidence, losses, deployed_accepted)
        thresholded_confidence = _risk_from_thresholded_confidence(
            samples.confidence[is_accepted], calibration_risk, deployed_accepted
        )
        reweighted = _reweighted_risk(accepted_loss, weights)
    return UnlabeledRisk(
        threshold=threshold,
        n=int(deployed_confidence.size),
        accepted=int(is_deployed_accepted.sum()),
        coverage=float(is_deployed_accepted.mean()),
        calibration_risk=calibration_risk,
        mean_confidence=mean_confidence,
        thresholded_confidence=thresholded_confidence,
        reweighted=reweighted,
    )


def _accepted_mask(confidence: Array, threshold: float | None) -> Array:
    """Return a mask of the accepted samples, which are all samples if the threshold is None."""
    if threshold is None:
        return np.ones(confidence.size, dtype=np.bool_)
    with np.errstate(over="ignore"):
        mask: Array = confidence >= np.asarray(threshold).astype(confidence.dtype)
    return mask


def _risk_from_mean_confidence(confidence: Array, loss: FloatArray, deployed: Array) -> float:
    """Return one minus the mean confidence of the deployed samples after isotonic calibration."""
    if loss.min() == loss.max():
        return float(loss[0])
    calibrator = fit_isotonic(confidence, loss)
    return 1.0 - float(np.mean(calibrator.apply(deployed)))


def _risk_from_thresholded_confidence(confidence: Array, risk: float, deployed: Array) -> float:
    """Return the share of deployed samples below the `risk` quantile of calibration samples."""
    ordered = np.sort(confidence.astype(np.float64))
    n_failures = risk * ordered.size
    atc_threshold = ordered[min(int(n_failures), ordered.size - 1)]
    n_below = np.searchsorted(ordered, atc_threshold, side="left")
    n_through = np.searchsorted(ordered, atc_threshold, side="right")
    tie_fraction = (n_failures - n_below) / (n_through - n_below)
    deployed_confidence = deployed.astype(np.float64)
    share_below = (deployed_confidence < atc_threshold).mean()
    share_tied = (deployed_confidence == atc_threshold).mean()
    return float(share_below + tie_fraction * share_tied)


def _reweighted_risk(loss: FloatArray, weights: FloatArray | None) -> float:
    """Return the weighted mean loss, or NaN if all weights are 0."""
    if weights is None or not weights.any():
        return _NAN
    return float(weights @ loss / weights.sum())
