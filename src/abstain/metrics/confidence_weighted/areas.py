"""What the areas under CWSA and CWSA+ against coverage have in common in the catalogue."""

from collections.abc import Callable
from functools import partial
from typing import Any

from abstain._foundation.measurement import Measured
from abstain.metrics.confidence_weighted.sums import NEEDS
from abstain.metrics.entry import Metric
from abstain.metrics.influences import of_kinds
from abstain.typing import FloatArray


def area_metric(
    name: str,
    *,
    plus: bool,
    compute: Callable[..., Measured],
    influence: Callable[..., FloatArray],
    **attributes: Any,
) -> Metric:
    """Return the metric of an area under CWSA, or CWSA+ with `plus`, against coverage.

    `compute` and `influence` take a `Scored` and `plus`; `attributes` are those of the `Metric`
    that differ between areas.
    """
    return Metric(
        name=name,
        family="cwsa",
        compute=partial(compute, plus=plus),
        lower_is_better=False,
        low=0.0 if plus else -0.5,
        high=1.0 if plus else 0.5,
        needs=NEEDS,
        function=f"{name}(confidence, loss)",
        rank_based=False,
        gradients=frozenset({"loss", "confidence"}),
        influence=of_kinds(partial(influence, plus=plus)),
        rests_on_failures=False,
        **attributes,
    )
