"""Catalogue entries of areas between two coverages, made by name: ``partial_augrc@50-80cov``."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from abstain._foundation.ranks import TieGroups
from abstain._foundation.scored import Measured, Scored
from abstain.curves.quadrature import linear_segments
from abstain.inference.influence import Gradient, of_cumulated
from abstain.metrics._entry import Metric
from abstain.metrics._influence_areas import on_groups
from abstain.metrics.rank_weights import (
    partial_generalized,
    partial_selective,
    rank_weight,
    rank_weighted_risk,
)
from abstain.typing import FloatArray


@dataclass(frozen=True)
class _Kind:
    title: str
    meaning: str
    source: str
    weights: Callable[[float, float], Callable[[TieGroups], FloatArray]]
    selective: bool


_CODE = "code of FD-Shifts (rc_stats.py), https://github.com/IML-DKFZ/fd-shifts"
_KINDS = {
    "partial_aurc": _Kind(
        "mean selective risk from {} to {} % coverage",
        "Averaged over coverages from {} to {} %, {{value}} of the accepted are wrong.",
        _CODE,
        partial_selective,
        selective=True,
    ),
    "partial_augrc": _Kind(
        "mean generalized risk from {} to {} % coverage",
        "Averaged over coverages from {} to {} %, {{value}} of all samples are accepted and wrong.",
        "Traub et al. (2024), eq. 6, between two coverages, https://arxiv.org/abs/2407.01032",
        partial_generalized,
        selective=False,
    ),
}

_NUMBER = r"\d+(?:\.\d+)?"
_PATTERN = re.compile(rf"(?P<kind>[a-z_]+)@(?P<low>{_NUMBER})-(?P<high>{_NUMBER})cov")


def coverages_asked(name: str) -> tuple[float, float] | None:
    """Return the two coverages in the name of a partial area; None for other names."""
    match = _PATTERN.fullmatch(name)
    if match is None or match["kind"] not in _KINDS:
        return None
    low, high = float(match["low"]) / 100, float(match["high"]) / 100
    return (low, high) if low < high <= 1 else None


def partial_entry(name: str) -> Metric | None:
    """Make the metric that a name such as ``partial_augrc@50-80cov`` asks for, if it is one."""
    between, match = coverages_asked(name), _PATTERN.fullmatch(name)
    if between is None or match is None:
        return None
    kind = _KINDS[match["kind"]]
    weight = rank_weight(kind.weights(*between))

    def compute(s: Scored) -> Measured:
        return Measured(rank_weighted_risk(s.groups, weight) / (between[1] - between[0]))

    return Metric(
        name=name,
        title=kind.title.format(match["low"], match["high"]),
        family="area",
        compute=compute,
        lower_is_better=True,
        low=0.0,
        high=1.0 if kind.selective else sum(between) / 2,
        meaning=kind.meaning.format(match["low"], match["high"]),
        source=kind.source,
        per_thousand=True,
        averages_ties=not kind.selective,
        influence=partial(_influence, between=between, selective=kind.selective),
    )


def _influence(s: Scored, *, between: tuple[float, float], selective: bool) -> FloatArray:
    """Influence of each sample on the area over the width of the interval.

    The curve is continuous, so the two fixed coverages add nothing: moving the vertex of a segment
    moves the curve in it by its slope, as much as the vertex counts there.
    """
    groups = s.groups
    coverage = groups.through / groups.total
    divisor = groups.through if selective else groups.total
    value = groups.loss_through / divisor
    right, left = linear_segments(coverage, *between, flat=selective)
    # From the origin, or flat from the first vertex on, whose place then does not matter.
    before = np.concatenate((value[:1] if selective else [0.0], value[:-1]))
    slope = (value - before) / np.diff(coverage, prepend=0.0)
    counts = right + np.append(left[1:], 0.0)
    moved = -slope * right - np.append((slope * left)[1:], 0.0)
    through = moved / groups.total - (counts * value / divisor if selective else 0.0)
    found = of_cumulated(through, counts / divisor)
    width = between[1] - between[0]
    return on_groups(s, Gradient(found.weight / width, found.loss / width))
