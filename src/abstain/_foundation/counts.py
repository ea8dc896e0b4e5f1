"""Samples with a 0/1 loss that were counted and not kept, as what metrics take: a `Scored`.

Its rows stand for several samples each, `Scored.times`.
"""

from typing import cast

import numpy as np

from abstain._foundation.kinds import kinds_of
from abstain._foundation.ranks import TieGroups
from abstain._foundation.scored import Scored
from abstain._foundation.turns import Ties, UncountedTies
from abstain.typing import Array, BoolArray, FloatArray


def of_groups(groups: TieGroups) -> Scored:
    """Return the samples of known tie groups: all that depends on confidence and loss is known."""
    k = kinds_of(groups)
    return Scored(
        k.confidence, k.loss, k.times, probability=k.confidence, known_groups=groups, times=k.times
    )


def of_turns(
    confidence: Array, count: FloatArray, failures: FloatArray, stretch: BoolArray
) -> Scored:
    """Return samples of which the groups that hold a failure are known, and counts between them.

    Most confident first. What takes the confidence of each success is refused: `UncountedTies`.
    """
    ties = cast("Ties", UncountedTies())
    events = TieGroups(confidence, count, failures, None, stretch, ties)
    failed = float(failures.sum())
    # A row for all successes and one for all failures: where they stand, the events say.
    times = np.array([float(count.sum()) - failed, failed])
    kept = times > 0
    loss, times = np.array([0.0, 1.0])[kept], times[kept]
    return Scored(1.0 - loss, loss, times, known_events=events, times=times)
