"""What the catalogue knows of a metric, declared once and read by CLI, docs, laws and reports."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from abstain._foundation.catalogue import Catalogue
from abstain._foundation.foreign import scalar
from abstain._foundation.scored import Measured, Scored
from abstain.errors import UndefinedMetricWarning
from abstain.typing import FloatArray, Scalar


class Need(StrEnum):
    """What a metric needs beyond a confidence and a loss; the value is the reason shown."""

    BINARY_LOSS = "needs a 0/1 loss"
    UNIT_LOSS = "needs a loss in [0, 1]"
    UNIT_CONFIDENCE = "needs a confidence in [0, 1]"
    CLASSES = "needs labels and predictions"
    PROBABILITIES = "needs class probabilities or logits"
    TWO_CLASSES = "needs a task with two classes"


@dataclass(frozen=True)
class Metric:
    """One metric.

    Attributes
    ----------
    name : str
        The name scripts use.
    title : str
        The name people read.
    family : str
        "area", "ranking", "working point", "calibration", "classifier" or "cwsa".
    compute : callable
        From a `Scored` that meets the needs to a `Measured`.
    lower_is_better : bool
        The direction.
    low, high : float
        The declared range, for losses in [0, 1].
    meaning : str
        One plain sentence, with ``{value}`` where the number goes.
    source : str
        Where it is defined, with the equation.
    needs : frozenset of Need
        What must be there besides confidence and loss.
    convention : str
        The named convention among several in use, or empty.
    short : str
        A name that fits a column head; empty where the title does.
    narrow : str
        What a terminal's column head says; empty where the short name fits there too.
    per_thousand : bool
        Whether the literature prints it times 1000. The value itself stays a fraction.
    headline : int or None
        Its place among the metrics a reader sees first; None for the rest.
    rank_based : bool
        Whether only the order of the confidences matters.
    ordered : bool
        Whether, without ties, moving a failure below a success never makes it worse. Then the
        losses sorted are its extremes.
    averages_ties : bool
        Whether the value with ties is the mean over all orders of the tied samples.
    duplication : str
        "exact" when repeating all samples leaves the value, else "limit".
    gradients : frozenset of str
        Which inputs a gradient of the value flows to, where they are differentiated: "loss",
        "confidence" (its values; the order has no gradient), "probabilities" (of the classes).
        Empty for what counts, of which the value is always a plain number.
    influence : callable or None
        From a `Scored` that meets the needs to the influence of each sample, shape (n,), with
        weighted mean 0, for analytic intervals. The metrics of this package have theirs in
        `_influence_registry`, by name.
    """

    name: str
    title: str
    family: str
    compute: Callable[[Scored], Measured]
    lower_is_better: bool
    low: float
    high: float
    meaning: str
    source: str
    needs: frozenset[Need] = frozenset()
    convention: str = ""
    short: str = ""
    narrow: str = ""
    per_thousand: bool = False
    headline: int | None = None
    rank_based: bool = True
    ordered: bool = True
    averages_ties: bool = False
    duplication: str = "exact"
    gradients: frozenset[str] = frozenset({"loss"})
    influence: Callable[[Scored], FloatArray] | None = None

    def missing(self, scored: Scored) -> str:
        """Return why the metric does not apply to these data, or an empty string."""
        unmet = [need.value for need in Need if need in self.needs and not _CHECKS[need](scored)]
        return "; ".join(unmet)


def _unit_confidence(scored: Scored) -> bool:
    return scored.sure


_CHECKS: dict[Need, Callable[[Scored], bool]] = {
    Need.BINARY_LOSS: lambda s: s.binary,
    Need.UNIT_LOSS: lambda s: s.bounded,
    Need.UNIT_CONFIDENCE: _unit_confidence,
    Need.CLASSES: lambda s: s.view is not None,
    Need.PROBABILITIES: lambda s: s.view is not None and s.view.log_probabilities is not None,
    Need.TWO_CLASSES: lambda s: s.view is not None and len(s.view.classes) == 2,
}

#: Every metric, in the order reports show them.
METRICS: Catalogue[Metric] = Catalogue("metric")


def value_of(measured: Measured, name: str) -> Scalar:
    """Return the number for a caller of a plain function, warning when it is undefined."""
    if measured.reason:
        warnings.warn(
            f"{name} is undefined here: {measured.reason}", UndefinedMetricWarning, stacklevel=3
        )
    return scalar(measured.value)
