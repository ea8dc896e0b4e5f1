"""The measurement that areas under CWSA and CWSA+ against coverage share."""

from collections.abc import Callable
from functools import partial

from abstain._foundation.measurement import Measured
from abstain.metrics.confidence_weighted.sums import NEEDS
from abstain.metrics.entry import Measurement
from abstain.metrics.influences import of_kinds
from abstain.typing import FloatArray


def area_measurement(
    compute: Callable[..., Measured], influence: Callable[..., FloatArray], *, plus: bool
) -> Measurement:
    """Return the measurement of an area under CWSA, or CWSA+ with `plus`, against coverage.

    `compute` and `influence` take a `Scored` and `plus`.
    """
    return Measurement(
        compute=partial(compute, plus=plus),
        low=0.0 if plus else -0.5,
        high=1.0 if plus else 0.5,
        needs=NEEDS,
        rank_based=False,
        gradients=frozenset({"loss", "confidence"}),
        influence=of_kinds(partial(influence, plus=plus)),
        n_failures=None,
    )
