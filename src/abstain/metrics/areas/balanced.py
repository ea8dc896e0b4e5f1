"""Balanced-accuracy AURC and AUGRC: every class counts the same, however rare."""

from dataclasses import replace

import numpy as np

from abstain._foundation.arrays import beside, is_on_device, namespace
from abstain._foundation.foreign import double, scalar
from abstain._foundation.names import codes_of
from abstain._foundation.ranks import TieGroups, group_index, group_ties
from abstain._foundation.scored import Measured, Scored, scored
from abstain._foundation.segments import distinct, still_to_come, sums_by
from abstain.curves.quadrature import linear_weights
from abstain.inference.influence import Gradient, tail_sums, trapezoid_steps
from abstain.metrics.areas.generalized import augrc_gradient
from abstain.metrics.class_views import view_of
from abstain.metrics.entry import Metric, Need, value_of
from abstain.metrics.influences import of_mean, weights_of
from abstain.metrics.rank_weights import augrc_weight, rank_weighted_risk, vertex_area
from abstain.typing import AnyArray, BoolArray, FloatArray, IntArray, Scalar


def balanced_aurc(
    confidence: AnyArray, loss: AnyArray, labels: AnyArray, *, weight: AnyArray | None = None
) -> float:
    """Compute the AURC of the mean class-wise selective risk.

    Answers: averaged over all coverages, how wrong are the accepted samples of a typical class?

    Parameters
    ----------
    confidence, loss : array of shape (n,)
        As in `aurc`.
    labels : array of shape (n,)
        The true class of each sample, of any type.
    weight : array of shape (n,), optional
        Frequency weights.

    Returns
    -------
    float
        In [0, 1] for losses in [0, 1]; **lower is better**.

    Raises
    ------
    ShapeError, DomainError
        As in `aurc`; also if `labels` has another length.

    Notes
    -----
    At each vertex the risk is the mean over the classes of the class's selective risk; a class
    of which nothing is accepted counts 0, as in FD-Shifts. Trapezoid over coverage, ties share
    a vertex. Cost: two sorts.

    References
    ----------
    .. [1] The code of FD-Shifts (rc_stats.py), https://github.com/IML-DKFZ/fd-shifts

    Examples
    --------
    >>> import abstain as ab
    >>> ab.balanced_aurc([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1], ["a", "a", "b", "b"])
    0.1875
    """
    s = scored(confidence, loss, weight)
    return value_of(_balanced_aurc(s, _codes(labels, s)), "balanced_aurc")


def _codes(labels: AnyArray, s: Scored) -> AnyArray:
    """Return a code for each label; names of any type are read on the host, once."""
    if is_on_device(labels) and tuple(labels.shape) == (s.n,):
        return namespace(labels).unique_inverse(labels)[1]
    codes = codes_of(labels, "labels", s.n)
    return codes if s.xp is np else beside(codes, "labels", s.confidence)


def _balanced_aurc(s: Scored, labels: IntArray) -> Measured:
    groups = s.groups
    area = linear_weights(groups.through / groups.total, 0.0, 1.0, flat=True)
    # The risk of a class stays the same until its next vertex, so it counts with the area from
    # its own vertex to just before that one: differences of the area still to come.
    xp = s.xp
    to_come = xp.concat((still_to_come(area), xp.zeros_like(area[:1])))
    present = _present_classes(s, labels)
    order = xp.argsort(labels, stable=True)
    ordered = xp.take(labels, order)
    bounds = xp.searchsorted(ordered, present)
    ends = xp.searchsorted(ordered, present, side="right")
    total = sum(
        _class_area(s, groups, order[int(bounds[k]) : int(ends[k])], to_come)
        for k in range(present.shape[0])
    )
    return Measured(total / present.shape[0])


def _present_classes(s: Scored, labels: IntArray) -> AnyArray:
    return distinct(labels if s.weight is None else labels[s.weight > 0])


def _class_area(s: Scored, groups: TieGroups, rows: IntArray, to_come: IntArray) -> Scalar:
    take = s.xp.take
    weight = None if s.weight is None else take(s.weight, rows)
    own = group_ties(take(s.confidence, rows), take(s.loss, rows), weight)
    start = take(to_come, group_index(groups, own.confidence))
    end = s.xp.concat((start[1:], s.xp.zeros_like(start[:1])))
    return scalar(s.xp.sum(own.loss_through / own.through * (start - end)))


def balanced_augrc(
    confidence: AnyArray, loss: AnyArray, labels: AnyArray, *, weight: AnyArray | None = None
) -> float:
    """Compute the AUGRC with every class given the same weight.

    Answers: averaged over all coverages, how likely is a sample of a typical class to be
    accepted and wrong?

    Parameters
    ----------
    confidence, loss : array of shape (n,)
        As in `augrc`.
    labels : array of shape (n,)
        The true class of each sample, of any type.
    weight : array of shape (n,), optional
        Frequency weights.

    Returns
    -------
    float
        In [0, 1] for losses in [0, 1]; **lower is better**.

    Raises
    ------
    ShapeError, DomainError
        As in `augrc`; also if `labels` has another length.

    Notes
    -----
    The loss of a sample is multiplied by n/(K n_class), K the number of classes present, while
    coverage stays the share of samples accepted, as in FD-Shifts. Cost: one sort.

    References
    ----------
    .. [1] The code of FD-Shifts (rc_stats.py), https://github.com/IML-DKFZ/fd-shifts

    Examples
    --------
    >>> import abstain as ab
    >>> round(ab.balanced_augrc([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1], ["a", "a", "a", "b"]), 6)
    0.166667
    """
    s = scored(confidence, loss, weight)
    return value_of(_balanced_augrc(s, _codes(labels, s)), "balanced_augrc")


def _balanced_augrc(s: Scored, labels: IntArray) -> Measured:
    xp, present = s.xp, _present_classes(s, labels)
    classes = present.shape[0]
    place = xp.clip(xp.searchsorted(present, labels), 0, classes - 1)
    # A class of which no sample has weight is not among those present.
    there = double(xp.take(present, place) == labels)
    weight = there if s.weight is None else there * s.weight
    balance = s.total / (classes * sums_by(place, weight, classes))
    mass = weight * s.loss * xp.take(balance, place)
    # Only the losses differ from the groups at hand, and on the host only where there are any.
    kept = xp.nonzero(mass)[0] if xp is np else xp.nonzero(weight > 0)[0]
    home = group_index(s.groups, xp.take(s.confidence, kept))
    loss = sums_by(home, xp.take(mass, kept), s.groups.loss.shape[0])
    return Measured(rank_weighted_risk(replace(s.groups, loss=loss), augrc_weight))


def _aurc_influence(s: Scored) -> FloatArray:
    """AURC of the mean class-wise selective risk."""
    groups, kept = s.groups, weights_of(s) > 0
    place, present = _places(s)
    area = vertex_area(groups)
    to_come = np.append(tail_sums(area), 0.0)
    out = np.zeros(s.n)
    rises = np.zeros(groups.loss.size)
    place_of, loss = s.home, s.loss.astype(np.float64)
    for rows in _by_class(place, kept, present):
        # The groups of this class, in the same order.
        start, mine = np.unique(place_of[rows], return_inverse=True)
        weight = np.ones(rows.size) if s.weight is None else s.weight[rows]
        through = np.cumsum(np.bincount(mine, weights=weight))
        risk = np.cumsum(np.bincount(mine, weights=weight * loss[rows])) / through
        here = (to_come[start] - np.append(to_come[start[1:]], 0.0)) / through
        gradient = Gradient(-tail_sums(here * risk), tail_sums(here))
        out[rows] = s.total * (gradient.weight[mine] + gradient.loss[mine] * loss[rows])
        rises[start] += np.diff(risk, prepend=0.0)
    value = np.cumsum(rises)
    moved = tail_sums(trapezoid_steps(value, flat=True)) / groups.total
    by_place = Gradient(moved, np.zeros_like(area)).influence(groups, s.home, s.loss)
    return of_mean(s, (out + by_place) / present)


def _by_class(place: IntArray, kept: BoolArray, present: int) -> list[IntArray]:
    """Return the rows of each class."""
    # Small integers are sorted by counting them.
    small = place.astype(np.int16) if present < 1 << 15 else place
    order = np.argsort(small, kind="stable")
    order = order[kept[order]]
    ends = np.searchsorted(place[order], np.arange(1, present))
    return np.split(order, ends)


def _augrc_influence(s: Scored) -> FloatArray:
    """AUGRC with every class given the same weight W/(K W_k), which the sample changes too."""
    place, present = _places(s)
    w = weights_of(s)
    mass = np.bincount(place, weights=w, minlength=present)
    balanced = s.loss * (s.total / (present * mass))[place]
    in_groups = np.bincount(s.home[w > 0], (w * balanced)[w > 0], s.groups.loss.size)
    group_loss = in_groups.astype(np.float64)
    groups = type(s.groups)(s.groups.confidence, s.groups.weight, group_loss, s.groups.count)
    at_fixed = augrc_gradient(groups).influence(s.groups, s.home, balanced)
    phi = np.append(augrc_weight(groups), 0.0)[s.home]
    of_class = np.bincount(place, weights=w * phi * balanced, minlength=present) / s.total
    # `at_fixed` is centered on the groups of the true losses: both steps are centered at once.
    return of_mean(s, at_fixed - (of_class * s.total / mass)[place])


def _places(s: Scored) -> tuple[IntArray, int]:
    """Return the place of each sample's class among those present, and how many those are."""
    labels, kept = view_of(s).labels, weights_of(s) > 0
    present = np.unique(labels[kept])
    return np.searchsorted(present, labels).clip(max=present.size - 1), int(present.size)


_SOURCE = "code of FD-Shifts (rc_stats.py), https://github.com/IML-DKFZ/fd-shifts"


ENTRIES = (
    Metric(
        name="aurc_ba",
        title="AURC, balanced accuracy",
        family="area",
        compute=lambda s: _balanced_aurc(s, view_of(s).labels),
        lower_is_better=True,
        meaning="Averaged over coverages and classes, {value} of the accepted samples are wrong.",
        source=_SOURCE,
        needs=frozenset({Need.CLASSES}),
        convention="trapezoid; a class with nothing accepted counts 0",
        function="balanced_aurc(confidence, loss, labels)",
        per_thousand=True,
        # Which class a failure belongs to matters too, not only the order of the losses.
        ordered=False,
        duplication="limit",
        influence=_aurc_influence,
        heavy=True,
    ),
    Metric(
        name="augrc_ba",
        title="AUGRC, balanced accuracy",
        family="area",
        compute=lambda s: _balanced_augrc(s, view_of(s).labels),
        lower_is_better=True,
        meaning="Were all classes equally frequent, {value} of all samples would be silent "
        "failures.",
        source=_SOURCE,
        needs=frozenset({Need.CLASSES}),
        function="balanced_augrc(confidence, loss, labels)",
        per_thousand=True,
        ordered=False,
        influence=_augrc_influence,
    ),
)
