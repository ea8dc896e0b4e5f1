"""What a rule gets wrong where no labels are known: estimates, which promise nothing."""

from dataclasses import dataclass

import numpy as np

from abstain._foundation import checks
from abstain._foundation.scored import validate_samples_on_host
from abstain.calibration import fit_isotonic
from abstain.shift.ratios import DensityRatios, ratios_of
from abstain.typing import AnyArray, Array, FloatArray

_NAN = float("nan")


@dataclass(frozen=True)
class UnlabeledRisk:
    """Estimates of the selective risk of samples without labels.

    Attributes
    ----------
    threshold : float or None
        Samples of at least this confidence are answered; None for all.
    n, accepted : int
        Samples without labels, and how many of them are answered.
    coverage : float
        The share of them that is answered.
    calibration_risk : float
        Mean loss of the answered calibration samples: what no shift would leave it at.
    mean_confidence : float
        One minus the mean confidence of the answered, after isotonic calibration.
    thresholded_confidence : float
        The share of the answered below the confidence under which as many calibration samples lie
        as are wrong (ATC).
    reweighted : float
        The mean loss of the answered calibration samples, each weighted with its density ratio;
        NaN without ratios.

    Notes
    -----
    Each is NaN where nothing is answered here, or in the calibration data.

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
        """One minus each estimate, by its name."""
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
    """Estimate the error rate of samples without labels, at a threshold or of all of them.

    Answers: nobody has labeled anything here; how many of the answers are wrong, roughly?

    Parameters
    ----------
    confidence, loss : array of shape (n,)
        Of calibration samples: confidences, and 0 or 1, whether each is wrong.
    deployed : array of shape (m,)
        Confidences of the samples without labels, from the same score.
    threshold : float, optional
        Only samples of at least this confidence are answered; by default all.
    ratio : array of shape (n,) or DensityRatios, optional
        Density ratios of the calibration samples, for `reweighted`.

    Returns
    -------
    UnlabeledRisk
        Three estimates of the selective risk. No interval: what they are off by is no chance, but
        how far their assumption is from the shift (`docs/shift.md` has measured errors).

    Raises
    ------
    ShapeError, DomainError
        Bad values; losses other than 0 and 1.

    Notes
    -----
    `mean_confidence` assumes that a confidence means the same here (calibration is kept),
    `thresholded_confidence` is average thresholded confidence [1]_ among the answered: a share of
    samples under a confidence is right where the shift moves confidences as it moves errors.
    `reweighted` assumes what the ratios assume. None can see errors made with high confidence that
    the calibration data do not have: samples of new classes, say. With ties the part of a tie group
    that has to count in the calibration data counts here; the program of the paper takes a
    threshold at a sample, so both agree without ties.

    Cost: two sorts.

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
    >>> truth = 1 - less[less >= 0.5].mean()  # each is right as often as its confidence says
    >>> bool(abs(found.mean_confidence - truth) < 0.01), bool(found.calibration_risk < truth)
    (True, True)
    """
    s = validate_samples_on_host(confidence, loss)
    checks.binary_loss(s.loss, required_by="unlabeled_risk")
    new = checks.confidence(deployed, "deployed")
    at = None if threshold is None else checks.number(threshold, "threshold")
    inside, wrong = _reaches(s.confidence, at), s.loss.astype(np.float64)
    answered = _reaches(new, at)
    known = bool(inside.any() and answered.any())
    weights = None if ratio is None else ratios_of(ratio, wrong.size).values[inside]
    own, bad, here = s.confidence[inside], wrong[inside], new[answered]
    return UnlabeledRisk(
        at,
        int(new.size),
        int(answered.sum()),
        float(answered.mean()),
        float(bad.mean()) if inside.any() else _NAN,
        _mean_confidence(s.confidence, wrong, here) if known else _NAN,
        _thresholded(own, float(bad.mean()), here) if known else _NAN,
        _reweighted(bad, weights) if known else _NAN,
    )


def _reaches(x: Array, threshold: float | None) -> Array:
    if threshold is None:
        return np.ones(x.size, dtype=np.bool_)
    with np.errstate(over="ignore"):
        out: Array = x >= np.asarray(threshold).astype(x.dtype)
    return out


def _mean_confidence(confidence: Array, wrong: FloatArray, here: Array) -> float:
    """Return one minus the mean of calibrated confidences.

    With one kind of loss there is nothing to fit: the risk is that of the calibration data.
    """
    if wrong.min() == wrong.max():
        return float(wrong[0])
    return 1.0 - float(np.mean(fit_isotonic(confidence, wrong).apply(here)))


def _thresholded(confidence: Array, risk: float, here: Array) -> float:
    """Return the share of samples below the confidence under which a share `risk` lies."""
    ordered = np.sort(confidence.astype(np.float64))
    needed = risk * ordered.size
    at = ordered[min(int(needed), ordered.size - 1)]
    below, through = (np.searchsorted(ordered, at, side=side) for side in ("left", "right"))
    part = (needed - below) / (through - below)
    x = here.astype(np.float64)
    return float((x < at).mean() + part * (x == at).mean())


def _reweighted(wrong: FloatArray, weights: FloatArray | None) -> float:
    if weights is None or not weights.any():
        return _NAN
    return float(weights @ wrong / weights.sum())
