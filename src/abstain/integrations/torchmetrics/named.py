"""Classes of torchmetrics for frequently used metrics."""

from decimal import Decimal
from typing import Any

from abstain._foundation import checks
from abstain.integrations.torchmetrics.metric import SelectiveMetric
from abstain.metrics.confidence_weighted.cwsa import check_threshold
from abstain.typing import AurcEstimator

_AURC = {
    "trapezoid": "aurc",
    "plugin": "aurc_plugin",
    "log": "aurc_log",
    "sele": "sele",
    "2sele": "two_sele",
}


def _digits(x: float) -> str:
    """Format a number as part of a metric name, with all digits and without an exponent."""
    return f"{Decimal(repr(x)):f}"


def _percent(x: float) -> str:
    return f"{(100 * Decimal(repr(x))).normalize():f}"


class AUGRC(SelectiveMetric):
    """Area under the generalized risk-coverage curve.

    AUGRC is the generalized risk (share of samples that are accepted failures), averaged over all
    coverages.

    Parameters
    ----------
    **kwargs : dict
        `inputs`, `score`, `bins`, `scale` and arguments of `torchmetrics.Metric`, see
        `SelectiveMetric`.

    See Also
    --------
    abstain.augrc : Compute the metric from arrays.

    Examples
    --------
    >>> import torch
    >>> from abstain.integrations.torchmetrics import AUGRC
    >>> metric = AUGRC()
    >>> metric.update(torch.tensor([0.9, 0.8, 0.7, 0.6]), torch.tensor([0, 1, 0, 1]))
    >>> metric.compute()
    tensor(0.1875, dtype=torch.float64)
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__("augrc", **kwargs)


class AURC(SelectiveMetric):
    """Area under the selective risk-coverage curve.

    AURC is the selective risk (mean loss of the accepted samples), averaged over all coverages.

    Parameters
    ----------
    estimator : {"trapezoid", "plugin", "log", "sele", "2sele"}, default="trapezoid"
        As in `abstain.aurc`.
    **kwargs : dict
        `inputs`, `score`, `bins`, `scale` and arguments of `torchmetrics.Metric`, see
        `SelectiveMetric`.

    See Also
    --------
    abstain.aurc : Compute the metric from arrays.

    Examples
    --------
    >>> import torch
    >>> from abstain.integrations.torchmetrics import AURC
    >>> metric = AURC(estimator="plugin")
    >>> metric.update(torch.tensor([0.9, 0.8, 0.7, 0.6]), torch.tensor([0, 1, 0, 1]))
    >>> round(metric.compute().item(), 6)
    0.333333
    """

    def __init__(self, estimator: AurcEstimator = "trapezoid", **kwargs: Any) -> None:
        super().__init__(_AURC[checks.one_of(estimator, "estimator", tuple(_AURC))], **kwargs)


class FailureAUROC(SelectiveMetric):
    """Area under the ROC curve of failure detection.

    Failure AUROC is the probability that a random correct prediction has a higher confidence than a
    random wrong prediction.

    Parameters
    ----------
    **kwargs : dict
        `inputs`, `score`, `bins`, `scale` and arguments of `torchmetrics.Metric`, see
        `SelectiveMetric`.

    See Also
    --------
    abstain.failure_auroc : Compute the metric from arrays.

    Examples
    --------
    >>> import torch
    >>> from abstain.integrations.torchmetrics import FailureAUROC
    >>> metric = FailureAUROC()
    >>> metric.update(torch.tensor([0.9, 0.8, 0.7, 0.6]), torch.tensor([0, 1, 0, 1]))
    >>> metric.compute().item()
    0.75
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__("failure_auroc", **kwargs)


class SelectiveRiskAtCoverage(SelectiveMetric):
    """Lowest selective risk among the thresholds whose coverage is at least `coverage`.

    Parameters
    ----------
    coverage : float
        Minimum coverage, in [0, 1].
    **kwargs : dict
        `inputs`, `score`, `bins`, `scale` and arguments of `torchmetrics.Metric`, see
        `SelectiveMetric`.

    See Also
    --------
    abstain.selective_risk : Compute the metric from arrays.

    Examples
    --------
    >>> import torch
    >>> from abstain.integrations.torchmetrics import SelectiveRiskAtCoverage
    >>> metric = SelectiveRiskAtCoverage(coverage=0.5)
    >>> metric.update(torch.tensor([0.9, 0.8, 0.7, 0.6]), torch.tensor([1, 0, 0, 0]))
    >>> metric.compute().item()
    0.25
    """

    def __init__(self, coverage: float, **kwargs: Any) -> None:
        share = checks.fraction(coverage, "coverage")
        super().__init__(f"selective_risk@{_percent(share)}cov", **kwargs)


class CoverageAtRisk(SelectiveMetric):
    """Largest coverage among the thresholds whose selective risk is at most `max_risk`.

    Parameters
    ----------
    max_risk : float
        Maximum selective risk, in [0, 1].
    **kwargs : dict
        `inputs`, `score`, `bins`, `scale` and arguments of `torchmetrics.Metric`, see
        `SelectiveMetric`.

    See Also
    --------
    abstain.coverage_at_risk : Compute the metric from arrays.

    Examples
    --------
    >>> import torch
    >>> from abstain.integrations.torchmetrics import CoverageAtRisk
    >>> metric = CoverageAtRisk(max_risk=0.4)
    >>> metric.update(torch.tensor([0.9, 0.8, 0.7, 0.6]), torch.tensor([0, 0, 1, 1]))
    >>> metric.compute().item()
    0.75
    """

    def __init__(self, max_risk: float, **kwargs: Any) -> None:
        risk = checks.fraction(max_risk, "max_risk")
        super().__init__(f"coverage@{_percent(risk)}risk", **kwargs)


class CWSA(SelectiveMetric):
    """Confidence-weighted selective accuracy at a threshold.

    CWSA is positive if confident correct predictions outweigh confident wrong predictions.

    Parameters
    ----------
    threshold : float
        Threshold in [0, 1). A sample is accepted if its confidence is at least the threshold.
    **kwargs : dict
        `inputs`, `score`, `bins`, `scale` and arguments of `torchmetrics.Metric`, see
        `SelectiveMetric`.

    See Also
    --------
    abstain.cwsa : Compute the metric from arrays.

    Examples
    --------
    >>> import torch
    >>> from abstain.integrations.torchmetrics import CWSA
    >>> metric = CWSA(threshold=0.5)
    >>> metric.update(torch.tensor([1.0, 0.9, 0.8, 0.3]), torch.tensor([0, 0, 1, 0]))
    >>> round(metric.compute().item(), 4)
    0.3
    """

    def __init__(self, threshold: float, **kwargs: Any) -> None:
        super().__init__(f"cwsa@{_digits(check_threshold(threshold))}", **kwargs)


class CWSAPlus(SelectiveMetric):
    """CWSA+, which rewards confident correct predictions and does not penalize wrong predictions.

    CWSA+ is high if accepted samples are both correct and confident.

    Parameters
    ----------
    threshold : float
        Threshold in [0, 1). A sample is accepted if its confidence is at least the threshold.
    **kwargs : dict
        `inputs`, `score`, `bins`, `scale` and arguments of `torchmetrics.Metric`, see
        `SelectiveMetric`.

    See Also
    --------
    abstain.cwsa_plus : Compute the metric from arrays.

    Examples
    --------
    >>> import torch
    >>> from abstain.integrations.torchmetrics import CWSAPlus
    >>> metric = CWSAPlus(threshold=0.5)
    >>> metric.update(torch.tensor([1.0, 0.9, 0.8, 0.3]), torch.tensor([0, 0, 1, 0]))
    >>> round(metric.compute().item(), 4)
    0.6
    """

    def __init__(self, threshold: float, **kwargs: Any) -> None:
        super().__init__(f"cwsa_plus@{_digits(check_threshold(threshold))}", **kwargs)
