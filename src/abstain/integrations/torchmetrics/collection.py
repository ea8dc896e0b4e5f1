"""Several metrics over one shared state."""

from collections.abc import Iterable
from typing import Any

from abstain.integrations.torchmetrics._library import MetricCollection
from abstain.integrations.torchmetrics.metric import SelectiveMetric

DEFAULTS = ("augrc", "aurc", "failure_auroc", "selective_risk@80cov", "coverage@5risk")


def selective_metrics(
    metrics: Iterable[str] = DEFAULTS,
    *,
    prefix: str | None = None,
    postfix: str | None = None,
    **kwargs: Any,
) -> Any:
    """Make a collection of metrics that share one state.

    Answers: how do I watch several numbers and keep the samples once?

    Parameters
    ----------
    metrics : iterable of str, optional
        Names as in `SelectiveMetric`; by default AUGRC, AURC, failure AUROC, the selective risk at
        80 % coverage and the coverage at 5 % risk.
    prefix, postfix : str, optional
        Put around each name in the results, "val/" for one.
    **kwargs : dict
        `inputs`, `score`, `bins`, `scale` and those of `torchmetrics.Metric`, for all metrics.

    Returns
    -------
    torchmetrics.MetricCollection
        By name; a point in a name becomes a comma ("cwsa@0,5"), since modules of PyTorch have no
        points in their names.

    Raises
    ------
    UnknownNameError, InputError
        As in `SelectiveMetric`.

    Examples
    --------
    >>> import torch
    >>> from abstain.integrations.torchmetrics import selective_metrics
    >>> metrics = selective_metrics(["augrc", "coverage@5risk"], prefix="val/")
    >>> metrics.update(torch.tensor([0.9, 0.8, 0.7, 0.6]), torch.tensor([0, 0, 1, 0]))
    >>> {name: round(value.item(), 4) for name, value in metrics.compute().items()}
    {'val/augrc': 0.0938, 'val/coverage@5risk': 0.5}
    """
    return MetricCollection(
        {name.replace(".", ","): SelectiveMetric(name, **kwargs) for name in metrics},
        prefix=prefix,
        postfix=postfix,
    )
