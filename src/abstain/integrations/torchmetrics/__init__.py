"""Classes of torchmetrics for metrics of classifiers that may abstain.

The classes require the extra ``torch``: ``pip install 'abstain[torch]'``.
"""

from abstain.integrations.torchmetrics.metric import SelectiveMetric as SelectiveMetric
from abstain.integrations.torchmetrics.metric import selective_metrics as selective_metrics
from abstain.integrations.torchmetrics.named import AUGRC as AUGRC
from abstain.integrations.torchmetrics.named import AURC as AURC
from abstain.integrations.torchmetrics.named import CWSA as CWSA
from abstain.integrations.torchmetrics.named import CoverageAtRisk as CoverageAtRisk
from abstain.integrations.torchmetrics.named import CWSAPlus as CWSAPlus
from abstain.integrations.torchmetrics.named import FailureAUROC as FailureAUROC
from abstain.integrations.torchmetrics.named import (
    SelectiveRiskAtCoverage as SelectiveRiskAtCoverage,
)

__all__ = [
    "AUGRC",
    "AURC",
    "CWSA",
    "CWSAPlus",
    "CoverageAtRisk",
    "FailureAUROC",
    "SelectiveMetric",
    "SelectiveRiskAtCoverage",
    "selective_metrics",
]
