"""Samples with a 0/1 loss of which only counts are known, as the `Scored` that metrics take.

A row stands for several samples; `Scored.times` is their number.
"""

from abstain._foundation.kinds import kinds_of
from abstain._foundation.ranks import TieGroups
from abstain._foundation.scored import Scored


def scored_from_groups(groups: TieGroups) -> Scored:
    """Return the samples of these tie groups."""
    k = kinds_of(groups)
    return Scored(
        k.confidence, k.loss, k.times, probability=k.confidence, known_groups=groups, times=k.times
    )


def scored_from_events(events: TieGroups) -> Scored:
    """Return the samples of these events; the confidence of a row is the rank of its group.

    If the events have unknown ties, what needs the confidence of each success raises an
    UncountedError.
    """
    k = kinds_of(events)
    return Scored(k.confidence, k.loss, k.times, known_events=events, times=k.times)
