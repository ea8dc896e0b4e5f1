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
from abstain.metrics._entry import Metric, Need, value_of
from abstain.metrics._views import view_of
from abstain.metrics.rank_weights import augrc_weight, rank_weighted_risk
from abstain.typing import AnyArray, IntArray, Scalar

_SOURCE = "code of FD-Shifts (rc_stats.py), https://github.com/IML-DKFZ/fd-shifts"


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


ENTRIES = (
    Metric(
        name="aurc_ba",
        title="AURC, balanced accuracy",
        family="area",
        compute=lambda s: _balanced_aurc(s, view_of(s).labels),
        lower_is_better=True,
        low=0.0,
        high=1.0,
        meaning="Averaged over coverages and classes, {value} of the accepted samples are wrong.",
        source=_SOURCE,
        needs=frozenset({Need.CLASSES}),
        convention="trapezoid; a class with nothing accepted counts 0",
        per_thousand=True,
        # Which class a failure belongs to matters too, not only the order of the losses.
        ordered=False,
        duplication="limit",
    ),
    Metric(
        name="augrc_ba",
        title="AUGRC, balanced accuracy",
        family="area",
        compute=lambda s: _balanced_augrc(s, view_of(s).labels),
        lower_is_better=True,
        low=0.0,
        high=1.0,
        meaning="Were all classes equally frequent, {value} of all samples would be silent "
        "failures.",
        source=_SOURCE,
        needs=frozenset({Need.CLASSES}),
        per_thousand=True,
        ordered=False,
    ),
)
