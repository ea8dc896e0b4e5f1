"""The AUC-MCC: the area under CWSA or CWSA+ against coverage, over a grid of thresholds."""

from dataclasses import replace
from typing import Final

import numpy as np

from abstain._foundation.measurement import Measured
from abstain._foundation.scored import Scored
from abstain.metrics.confidence_weighted.areas import area_measurement
from abstain.metrics.confidence_weighted.moments import sums_at_each
from abstain.metrics.confidence_weighted.sums import RAMPS, SOURCE, Sums, checked
from abstain.metrics.entry import Identity, Metric, value_of
from abstain.metrics.influences import of_mean
from abstain.typing import AnyArray, FloatArray, Scalar

#: The thresholds of the paper's tables and released code.
THRESHOLDS: Final = np.linspace(0.5, 0.99, 20)

#: If fewer samples reach the last threshold, the area under CWSA+ has no valid interval: whether
#: any do, and so whether the threshold counts, differs between samples of one population.
_FEWEST: Final = 10


def auc_mcc(confidence: AnyArray, loss: AnyArray, *, weight: AnyArray | None = None) -> float:
    """Compute the AUC-MCC of CWSA: the paper's area under CWSA against coverage.

    Answers: which single number does the paper compute from its sweep of CWSA?

    Parameters
    ----------
    confidence, loss, weight : array of shape (n,)
        As in `cwsa`.

    Returns
    -------
    float
        In [-0.5, 0.5]; **higher is better**. 0 if all 20 thresholds accept the same samples.

    Raises
    ------
    ShapeError, DomainError
        As in `cwsa`.

    Notes
    -----
    Trapezoids between the coverages of 20 evenly spaced thresholds from 0.5 to 0.99. Coverages
    below that of the last threshold and above that of the first do not count, so a model that is
    right and certain of every sample has the value 0. `cwsa_area` covers all coverages. For other
    thresholds, use `CwsaSweep.auc_mcc`. Linear ramp, divided by the weight of all samples. Cost:
    one pass.

    References
    ----------
    .. [1] Shahnazari et al. (2025), sections 4.3 and A.4 (AUC-MCC), https://arxiv.org/abs/2505.18622

    Examples
    --------
    >>> from abstain.metrics import auc_mcc
    >>> round(auc_mcc([1.0, 0.9, 0.8, 0.6], [0, 0, 1, 0]), 4)
    0.2374
    """
    return value_of(_area_of(checked(confidence, loss, weight), plus=False), "auc_mcc")


def auc_mcc_plus(confidence: AnyArray, loss: AnyArray, *, weight: AnyArray | None = None) -> float:
    """Compute the AUC-MCC of CWSA+: the paper's area under CWSA+ against coverage.

    Answers: which single number does the paper compute from its sweep of CWSA+?

    Parameters
    ----------
    confidence, loss, weight : array of shape (n,)
        As in `auc_mcc`.

    Returns
    -------
    float
        In [0, 1]; **higher is better**. 0 if all 20 thresholds accept the same samples.

    Raises
    ------
    ShapeError, DomainError
        As in `auc_mcc`.

    Notes
    -----
    As `auc_mcc`, but divided by the weight accepted. A threshold that accepts no sample has no
    CWSA+ and is left out. If fewer than 10 samples reach the threshold 0.99, there is no analytic
    interval, since other samples may decide whether it counts. Cost: one pass.

    References
    ----------
    .. [1] Shahnazari et al. (2025), sections 4.3 and A.4 (AUC-MCC), https://arxiv.org/abs/2505.18622

    Examples
    --------
    >>> from abstain.metrics import auc_mcc_plus
    >>> round(auc_mcc_plus([1.0, 0.9, 0.8, 0.6], [0, 0, 1, 0]), 4)
    0.4806
    """
    return value_of(_area_of(checked(confidence, loss, weight), plus=True), "auc_mcc_plus")


def _area_of(s: Scored, *, plus: bool) -> Measured:
    sums = _sums_where_defined(s, plus=plus)
    values = [_value_at(at_threshold, plus=plus) for at_threshold in sums]
    widths = _trapezoid_widths(_coverages(sums)).tolist()
    # Scalars of the caller's library, so that gradients reach confidences and losses.
    return Measured(sum((width * v for width, v in zip(widths, values, strict=True)), 0.0))


def _influence(s: Scored, *, plus: bool) -> FloatArray:
    """Compute the influence of each sample on the AUC-MCC.

    The area A depends on the coverages C_k and on the mean scores N_k at the thresholds t_k, where
    CWSA is N_k and CWSA+ is N_k/C_k. A sample that is accepted at the first j thresholds adds
    dA/dC_k + dA/dN_k (p - t_k)/(1 - t_k) score for each of them.
    """
    sums = _sums_where_defined(s, plus=plus)
    if not sums:
        return np.zeros(s.n)
    coverage, thresholds = _coverages(sums), THRESHOLDS[: len(sums)]
    value = np.array([_value_at(at_threshold, plus=plus) for at_threshold in sums])
    by_coverage, by_score = _slopes_by_coverage(value), _trapezoid_widths(coverage)
    if plus:
        by_coverage = by_coverage - by_score * value / coverage
        by_score = by_score / coverage
    constant, slope, intercept = (
        np.concatenate(([0.0], np.cumsum(terms)))
        for terms in (
            by_coverage,
            by_score / (1 - thresholds),
            by_score * thresholds / (1 - thresholds),
        )
    )
    p = s.shown
    n_accepting = np.searchsorted(thresholds.astype(p.dtype), p, side="right")
    score = 1.0 - (1.0 if plus else 2.0) * s.loss
    ramps = slope[n_accepting] * p.astype(np.float64) - intercept[n_accepting]
    return of_mean(s, constant[n_accepting] + ramps * score)


def _few_accepted(s: Scored) -> str:
    """Return why CWSA+ at these thresholds allows no interval, or an empty string."""
    last = THRESHOLDS[-1]
    [sums] = sums_at_each(s, THRESHOLDS[-1:], RAMPS["linear"])
    if sums.count >= _FEWEST:
        return ""
    return (
        f"{sums.count} samples reach the threshold {last:g}; with fewer than {_FEWEST}, other "
        "samples may decide whether it counts"
    )


def _sums_where_defined(s: Scored, *, plus: bool) -> list[Sums]:
    """Return the sums at each threshold; for CWSA+ those that accept a sample, which come first."""
    every = sums_at_each(s, THRESHOLDS, RAMPS["linear"])
    return [sums for sums in every if sums.count] if plus else every


def _value_at(sums: Sums, *, plus: bool) -> Scalar:
    return (sums.cwsa_plus("accepted") if plus else sums.cwsa("all")).value


def _coverages(sums: list[Sums]) -> FloatArray:
    return np.array([at_threshold.weight / at_threshold.total for at_threshold in sums])


def _trapezoid_widths(coverage: FloatArray) -> FloatArray:
    """Return the derivative of the area with respect to the value at each threshold."""
    padded = np.pad(coverage, 1, mode="edge") if coverage.size else coverage
    return (padded[:-2] - padded[2:]) / 2


def _slopes_by_coverage(value: FloatArray) -> FloatArray:
    """Return the derivative of the area with respect to the coverage at each threshold."""
    return np.diff(np.pad((value[1:] + value[:-1]) / 2, 1))


ENTRIES = (
    Metric(
        Identity(
            name="auc_mcc",
            title="AUC-MCC of CWSA",
            family="cwsa",
            lower_is_better=False,
            meaning="The area under CWSA between the coverages at thresholds of 0.5 and 0.99 is "
            "{value}.",
            source=SOURCE.format("4.3, AUC-MCC"),
            convention="20 thresholds from 0.5 to 0.99, CWSA divided by the number of samples",
            function="auc_mcc(confidence, loss)",
        ),
        area_measurement(_area_of, _influence, plus=False),
    ),
    Metric(
        Identity(
            name="auc_mcc_plus",
            title="AUC-MCC of CWSA+",
            family="cwsa",
            lower_is_better=False,
            meaning="The area under CWSA+ between the coverages at thresholds of 0.5 and 0.99 is "
            "{value}.",
            source=SOURCE.format("4.3, AUC-MCC"),
            convention="20 thresholds from 0.5 to 0.99, CWSA+ divided by the number accepted",
            function="auc_mcc_plus(confidence, loss)",
        ),
        replace(area_measurement(_area_of, _influence, plus=True), unreliable_reason=_few_accepted),
    ),
)
