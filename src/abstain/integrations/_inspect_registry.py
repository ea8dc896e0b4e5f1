"""Registration of a scorer and metrics for Inspect under names such as `abstain/confident`.

Inspect imports this module when it reads such a name, because of an entry point in pyproject.toml.
"""

from typing import Any, Final

from abstain._foundation.lazy_imports import is_installed
from abstain.integrations.language_models import inspect_metric, with_confidence
from abstain.integrations.trackers import DEFAULT_METRICS
from abstain.metrics import METRICS, Need

#: Requirements of metrics that an answer with a confidence and a grade meets.
_AVAILABLE_INPUTS: Final = {Need.BINARY_LOSS, Need.UNIT_LOSS, Need.UNIT_CONFIDENCE}


def register() -> None:
    """Register the scorer, and all metrics that require only a confidence and a grade."""
    from inspect_ai.scorer import accuracy, scorer
    from inspect_ai.util import registry_create

    for metric in METRICS.values():
        if set(metric.measurement.needs) <= _AVAILABLE_INPUTS:
            inspect_metric(metric.name)

    def confident(inner: str = "match", confidence: str = "mean_logprob") -> Any:
        return with_confidence(registry_create("scorer", inner), confidence)

    scorer(metrics=[accuracy(), *map(inspect_metric, DEFAULT_METRICS)], name="confident")(confident)


if is_installed("inspect_ai"):
    register()
