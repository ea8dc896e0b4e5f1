"""Check a calibration on samples that were not used to fit it (`calibration_check`)."""

from dataclasses import dataclass

import numpy as np

from abstain._foundation import checks
from abstain._foundation.checks import rescale_weights
from abstain._foundation.frames import AnyFrame, Backend, convert_frame
from abstain._foundation.scored import ClassView, MetricValue, Scored, undefined
from abstain._foundation.tie_groups import TieGroups, equal_width_bins
from abstain.calibration import Temperature
from abstain.confidence import score as named_score
from abstain.curves.reliability import (
    BINNINGS,
    LOSS_HINT,
    Binning,
    ReliabilityCurve,
    cached_reliability_curve,
)
from abstain.errors import InputError, UnknownNameError, suggest
from abstain.evaluation.calibration.calibrated_score import CalibratedScore
from abstain.evaluation.inputs import positive_weight_rows
from abstain.metrics import METRICS, Metric, Need
from abstain.metrics.catalogue import DEFAULT_METRIC
from abstain.predictions import CostMatrix, Predictions, per_sample_loss
from abstain.predictions.softmax import log_softmax
from abstain.typing import AnyArray, FloatArray

_BINS = 15
#: Numbers of samples and of failures below which the check contains a warning.
_MIN_SAMPLES, _MIN_FAILURES = 1000, 20


@dataclass(frozen=True)
class MetricChange:
    """The value of a metric before and after calibration.

    Attributes
    ----------
    metric, title : str
        Name of the metric, and its title in reports.
    before, after : float
        Values as fractions. If the metric is undefined, the value is NaN and `reason` states why.
    reason : str
        Reason why a value is NaN, or an empty string.
    """

    metric: str
    title: str
    before: float
    after: float
    reason: str = ""


@dataclass(frozen=True, eq=False)
class CalibrationCheck:
    """The effect of a calibration on held-out samples.

    Attributes
    ----------
    name : str
        Name of the calibrated score.
    n : int
        Number of samples.
    failures : int
        Number of samples with a loss above zero.
    changes : tuple of MetricChange
        The changes of ECE, ECE with equal-mass bins, MCE, Brier score and NLL of a correct
        prediction, and AUGRC. For the method "temperature", Brier score and NLL of the class
        probabilities are included. Lower values are better for all metrics.
    expected_ece : float
        Expected ECE of these samples if the calibrated probabilities were exactly correct. An ECE
        below this value is not evidence of better calibration.
    reliability_before : ReliabilityCurve or None
        Reliability curve of the base score, or None if the base score is not a probability.
    reliability_after : ReliabilityCurve
        Reliability curve of the calibrated score.
    consistent_low, consistent_high : ndarray of shape (bins,)
        For each bin, the range that contains the accuracy with probability 95% if the mean
        confidence of the bin is exactly correct. For an empty bin, the bounds are NaN.
    note : str
        Remark on the reliability of the check, or an empty string.
    """

    name: str
    n: int
    failures: int
    changes: tuple[MetricChange, ...]
    expected_ece: float
    reliability_before: ReliabilityCurve | None
    reliability_after: ReliabilityCurve
    consistent_low: FloatArray
    consistent_high: FloatArray
    note: str = ""

    @property
    def ece(self) -> MetricChange:
        """The expected calibration error before and after calibration."""
        return self.changes[0]

    def change(self, metric: str) -> MetricChange:
        """Return the values of one metric before and after calibration."""
        changes = {change.metric: change for change in self.changes}
        if metric not in changes:
            available = ", ".join(map(repr, changes))
            raise UnknownNameError(
                f"the check has no metric {metric!r}.{suggest(metric, changes)} It has {available}."
            )
        return changes[metric]

    def frame(self, *, backend: Backend = "polars") -> AnyFrame:
        """Return a dataframe with one row for each metric, in which NaN becomes null."""
        import polars as pl

        rows = [
            {
                "score": self.name,
                "metric": change.metric,
                "title": change.title,
                "before": change.before,
                "after": change.after,
                "change": change.after - change.before,
                "reason": change.reason,
            }
            for change in self.changes
        ]
        table = pl.DataFrame(rows).with_columns(pl.col(pl.Float64).fill_nan(None))
        return convert_frame(table, backend)

    def __str__(self) -> str:
        """Return a text that summarizes the check."""
        ece = self.ece
        before = "" if np.isnan(ece.before) else f" {ece.before:.4f} before,"
        summary = (
            f"{self.name}: ECE{before} {ece.after:.4f} after, on {self.n} samples. A perfectly "
            f"calibrated score would have an ECE of about {self.expected_ece:.4f}."
        )
        return f"{summary} {self.note}".strip()


def calibration_check(
    calibrated: CalibratedScore,
    predictions: Predictions,
    *,
    loss: "str | CostMatrix | AnyArray | None" = None,
    binning: Binning = "equal_width",
) -> CalibrationCheck:
    """Compare a score before and after calibration, on samples that were not used to fit it.

    Answers: did the calibration improve the score on new data?

    Parameters
    ----------
    calibrated : CalibratedScore
        Result of `calibrate`.
    predictions : Predictions
        Samples that were not used in the fit. The function cannot verify that the samples were not
        used. On the samples that were used in the fit, isotonic and histogram calibration have an
        ECE of 0.
    loss : str, CostMatrix or array of shape (n,), optional
        Loss of a prediction, as in `calibrate`.
    binning : {"equal_width", "equal_mass"}, default="equal_width"
        Binning of the two reliability curves, which have 15 bins.

    Returns
    -------
    CalibrationCheck
        The metrics and the reliability curves before and after calibration.

    Raises
    ------
    DomainError
        If a loss is outside [0, 1].
    MissingInputError
        If the predictions do not have the inputs of the score.
    InputError
        If `binning` is unknown.

    Notes
    -----
    Metrics whose names end in ``_correct`` are metrics of a correct prediction. The Brier score of
    a correct prediction is the weighted mean of (p - (1 - loss))^2. The NLL of a correct prediction
    is the weighted mean of -(1 - loss) ln p - loss ln(1 - p). The ECE of n samples has a positive
    expectation even if the probabilities are correct. For correct probabilities, the expectation
    is the sum over bins of sqrt(2 v / pi) / n, where v is the sum of p (1 - p) in the bin.

    References
    ----------
    .. [1] Guo et al. (2017), On calibration of modern neural networks,
       https://arxiv.org/abs/1706.04599
    .. [2] Bröcker and Smith (2007), Increasing the reliability of reliability diagrams,
       https://doi.org/10.1175/WAF993.1

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> rng = np.random.default_rng(0)
    >>> p = 0.5 + rng.random(4000) / 2
    >>> sharper = p**2 / (p**2 + (1 - p) ** 2)
    >>> data = ab.Predictions(confidence=sharper, loss=rng.random(4000) > p)
    >>> platt = ab.calibrate("confidence", data.subset(slice(0, 2000)))
    >>> ece = ab.calibration_check(platt, data.subset(slice(2000, None))).change("ece")
    >>> round(ece.before, 3), round(ece.after, 3)
    (0.104, 0.024)
    """
    checks.one_of(binning, "binning", BINNINGS)
    argument: object = calibrated
    if not isinstance(argument, CalibratedScore):
        raise InputError(
            f"`calibrated` must be a result of `calibrate`; got {type(argument).__name__}"
        )
    predictions, loss = positive_weight_rows(predictions, loss)
    losses = per_sample_loss(predictions, loss)
    checks.unit_interval(losses, "loss", hint=LOSS_HINT)
    base_score, new_score = named_score(calibrated.base, predictions), calibrated.score(predictions)
    weight = rescale_weights(predictions.weight)
    view = predictions.class_view()
    new_view = _apply_temperature(calibrated, predictions, view)
    before = Scored(base_score.values, losses, weight, base_score.probability, view)
    after = Scored(new_score.values, losses, weight, new_score.probability, new_view)
    reliability_before = None
    if base_score.probability is not None:
        reliability_before = cached_reliability_curve(before, _BINS, binning)
    reliability_after = cached_reliability_curve(after, _BINS, binning)
    low, high = _consistent_range(reliability_after)
    return CalibrationCheck(
        name=new_score.name,
        n=after.groups.n_samples,
        failures=int(np.count_nonzero(losses)),
        changes=_metric_changes(before, after, calibrated),
        expected_ece=_expected_ece(after.probability_groups),
        reliability_before=reliability_before,
        reliability_after=reliability_after,
        consistent_low=low,
        consistent_high=high,
        note=_note(after, calibrated),
    )


def _expected_ece(groups: TieGroups) -> float:
    """Return the expected ECE if all probabilities are exactly correct."""
    index, edges = equal_width_bins(groups, _BINS)
    p = groups.confidence.astype(np.float64)
    variance_of_bin = np.bincount(index, groups.weight * p * (1.0 - p), edges.size - 1)
    expected_gaps = np.sqrt(np.maximum(variance_of_bin, 0.0) * 2 / np.pi)
    return float(expected_gaps.sum() / groups.total_weight)


def _consistent_range(curve: ReliabilityCurve) -> tuple[FloatArray, FloatArray]:
    """Return a 95% range of the accuracy in each bin if the mean confidence equals P(correct)."""
    from scipy.stats import binom

    count, p = np.asarray(curve.count), np.clip(curve.confidence, 0.0, 1.0)
    is_filled = count > 0
    low, high = np.full(count.size, np.nan), np.full(count.size, np.nan)
    low[is_filled] = binom.ppf(0.025, count[is_filled], p[is_filled]) / count[is_filled]
    high[is_filled] = binom.ppf(0.975, count[is_filled], p[is_filled]) / count[is_filled]
    return low, high


def _note(after: Scored, calibrated: CalibratedScore) -> str:
    """Return a warning about small samples, followed by the note about the fit, as one text."""
    sentences = []
    n, n_failures = after.groups.n_samples, after.n_failures
    if n < _MIN_SAMPLES or n_failures < _MIN_FAILURES:
        sentences.append(
            f"Only {n} samples and {n_failures} failures: these numbers are uncertain, and ECE is "
            "too high on average."
        )
    if calibrated.note:
        sentences.append(f"Note of the fit: {calibrated.note}.")
    return " ".join(sentences)


# ------------------------------------------------------------------------------------ numbers
def _apply_temperature(
    calibrated: CalibratedScore, predictions: Predictions, view: ClassView | None
) -> ClassView | None:
    """Return the predictions after temperature scaling, or `view` unchanged for other methods."""
    calibration, scores = calibrated.calibration, predictions.class_scores
    if view is None or scores is None or not isinstance(calibration, Temperature):
        return view
    log_p = log_softmax(scores.log_scores() / calibration.temperature)
    return ClassView(view.labels, view.prediction, view.classes, np.exp(log_p), log_p)


def _metric_changes(
    before: Scored, after: Scored, calibrated: CalibratedScore
) -> tuple[MetricChange, ...]:
    """Return the values of each metric before and after calibration."""
    has_new_classes = (
        isinstance(calibrated.calibration, Temperature) and after.class_view is not None
    )
    no_probability = undefined("the score is no probability")
    had_probability = before.probability is not None
    changes = []
    for metric in _metrics_to_compare(with_classes=has_new_classes):
        is_defined = had_probability or not _needs_probability(metric)
        value_before = metric.compute(before) if is_defined else no_probability
        value_after = metric.compute(after)
        changes.append(_metric_change(metric.name, metric.title, value_before, value_after))
    brier_before = nll_before = no_probability
    if had_probability:
        brier_before, nll_before = _brier_score(before), _negative_log_likelihood(before)
    brier_after, nll_after = _brier_score(after), _negative_log_likelihood(after)
    brier_title, nll_title = "Brier score of being right", "NLL of being right"
    changes.append(_metric_change("brier_correct", brier_title, brier_before, brier_after))
    changes.append(_metric_change("nll_correct", nll_title, nll_before, nll_after))
    return tuple(changes)


def _metrics_to_compare(*, with_classes: bool) -> list[Metric]:
    """Return the calibration metrics and the AUGRC, and optionally the metrics of the classes."""
    metrics = [
        metric
        for metric in METRICS.values()
        if metric.identity.family == "calibration" and _needs_probability(metric)
    ]
    metrics.append(METRICS[DEFAULT_METRIC])
    if with_classes:
        metrics += [
            metric
            for metric in METRICS.values()
            if metric.identity.family == "classifier"
            and Need.PROBABILITIES in metric.measurement.needs
        ]
    return metrics


def _needs_probability(metric: Metric) -> bool:
    return Need.UNIT_CONFIDENCE in metric.measurement.needs


def _metric_change(name: str, title: str, before: MetricValue, after: MetricValue) -> MetricChange:
    values = {"before": before, "after": after}
    reasons = [f"{time}: {value.reason}" for time, value in values.items() if value.reason]
    return MetricChange(name, title, before.value, after.value, "; ".join(reasons))


def _brier_score(s: Scored) -> MetricValue:
    p, loss = s.probability_or_confidence.astype(np.float64), s.loss.astype(np.float64)
    return MetricValue(float(np.average((p - (1.0 - loss)) ** 2, weights=s.weight)))


def _negative_log_likelihood(s: Scored) -> MetricValue:
    """Return the mean negative log-likelihood of a correct prediction."""
    p, loss = s.probability_or_confidence.astype(np.float64), s.loss.astype(np.float64)
    is_impossible = ((p == 0) & (loss < 1)) | ((p == 1) & (loss > 0))
    n_impossible = int(is_impossible.sum())
    if n_impossible:
        return undefined(
            f"it is infinite: the outcomes of {n_impossible} samples had probability 0"
        )
    # An outcome with probability 1 has a negative log-likelihood of 0.
    is_certain = (p == 0) | (p == 1)
    safe_p = np.where(is_certain, 0.5, p)
    log_likelihood = (1.0 - loss) * np.log(safe_p) + loss * np.log1p(-safe_p)
    negative_log_likelihood = np.where(is_certain, 0.0, -log_likelihood)
    return MetricValue(float(np.average(negative_log_likelihood, weights=s.weight)))
