"""Influence functions of metrics that subtract or divide by what the best order would reach."""

import numpy as np

from abstain._foundation.scored import Scored
from abstain.inference.influence import Gradient, tail_sums, trapezoid_steps
from abstain.metrics._augrc import augrc_optimum
from abstain.metrics._influence_areas import (
    augrc_gradient,
    kept,
    of_loss,
    on_groups,
    oracle_influence,
    plugin_gradient,
    trapezoid_gradient,
)
from abstain.metrics.excess_aurc import aurc_optimum
from abstain.metrics.rank_weights import (
    augrc_weight,
    rank_weighted_risk,
    trapezoid_weight,
    vertex_area,
)
from abstain.typing import FloatArray


@kept
def augrc(s: Scored) -> FloatArray:
    """AUGRC."""
    return on_groups(s, augrc_gradient(s.groups))


@kept
def best_augrc(s: Scored) -> FloatArray:
    """AUGRC of the best order."""
    return oracle_influence(s, augrc_gradient(s.oracle))


def excess_augrc(s: Scored) -> FloatArray:
    """AUGRC less that of the best order."""
    return augrc(s) - best_augrc(s)


def prr(s: Scored) -> FloatArray:
    """(R/2 - AUGRC) / (R/2 - best AUGRC), by the rule for quotients."""
    random = on_groups(s, of_loss(s.groups)) / 2
    best = augrc_optimum(s)
    gain = s.groups.risk / 2 - best
    value = (s.groups.risk / 2 - rank_weighted_risk(s.groups, augrc_weight)) / gain
    return (random - augrc(s) - value * (random - best_augrc(s))) / gain


@kept
def trapezoid(s: Scored) -> FloatArray:
    """AURC, trapezoid."""
    return on_groups(s, trapezoid_gradient(s.groups))


def e_aurc(s: Scored) -> FloatArray:
    """AURC less its optimum."""
    return trapezoid(s) - best_trapezoid(s)


def normalized_aurc(s: Scored) -> FloatArray:
    """Excess AURC over that of a random order, by the rule for quotients."""
    best = aurc_optimum(s)
    room = s.groups.risk - best
    value = max(0.0, rank_weighted_risk(s.groups, trapezoid_weight) - best) / room
    lowest, random = best_trapezoid(s), on_groups(s, of_loss(s.groups))
    return (trapezoid(s) - lowest - value * (random - lowest)) / room


@kept
def best_trapezoid(s: Scored) -> FloatArray:
    """Optimum of the trapezoid AURC: over distinct scores, or over the score's own ties."""
    best = oracle_influence(s, plugin_gradient(s.oracle))
    # Without ties the trapezoid is the plug-in estimator, (least loss - R)/(2n) apart.
    untied = best - oracle_influence(s, of_loss(s.oracle)) / (2 * s.total)
    value, tied_value = aurc_optimum(s), _value_over_ties(s)
    distinct = s.groups.tied == 0 or value < tied_value * (1 - 1e-9)
    return untied if distinct else _best_over_ties(s)


def _value_over_ties(s: Scored) -> float:
    area = vertex_area(s.groups)
    return float(area @ (_least_mass(s) / s.groups.through))


def _least_mass(s: Scored) -> FloatArray:
    """Return the loss mass that each vertex accepts when the least losses come first."""
    ends = np.concatenate(([0.0], s.oracle.through))
    masses = np.concatenate(([0.0], s.oracle.loss_through))
    return np.interp(s.groups.through, ends, masses)


def _best_over_ties(s: Scored) -> FloatArray:
    """Influence when the losses, least first, are handed out over the tie groups.

    Each vertex then accepts the loss mass O(x) of the x least losses. One more sample of loss l
    below the loss q that is next in line there pushes some of q out: O changes by l - q. Where a
    vertex stands between two losses, the mean of both directions counts.
    """
    groups, oracle = s.groups, s.oracle
    each = oracle.loss / oracle.weight
    sides = (groups.through * (1 - 1e-12), groups.through * (1 + 1e-12))
    steps = [np.searchsorted(oracle.through, side).clip(max=each.size - 1) for side in sides]
    return np.asarray(np.mean([_over_ties(s, each[step]) for step in steps], axis=0))


def _over_ties(s: Scored, next_loss: FloatArray) -> FloatArray:
    groups = s.groups
    risk = _least_mass(s) / groups.through
    area = vertex_area(groups)
    on_mass = area / groups.through
    moved = trapezoid_steps(risk, flat=True) / groups.total - on_mass * risk
    place = Gradient(tail_sums(moved + on_mass * next_loss), np.zeros_like(area))
    pushed = _pushed(s.loss.astype(np.float64), next_loss, on_mass)
    pushed -= float(np.average(pushed, weights=s.weight))
    if s.weight is not None:
        pushed[s.weight == 0] = 0.0
    out: FloatArray = place.influence(groups, s.home, np.zeros(s.n)) + groups.total * pushed
    return out


def _pushed(loss: FloatArray, next_loss: FloatArray, on_mass: FloatArray) -> FloatArray:
    """Sum over the vertices of on_mass x min(loss - next_loss, 0); next_loss never falls."""
    beyond = np.searchsorted(next_loss, loss, side="right")
    weights = np.append(tail_sums(on_mass), 0.0)
    weighted = np.append(tail_sums(on_mass * next_loss), 0.0)
    out: FloatArray = loss * weights[beyond] - weighted[beyond]
    return out
