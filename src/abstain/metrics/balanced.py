"""Balanced-accuracy AURC and AUGRC: every class counts the same, however rare."""

from dataclasses import replace

import numpy as np

from abstain._foundation.names import codes_of
from abstain._foundation.ranks import TieGroups, group_index, group_ties
from abstain._foundation.scored import Measured, Scored, scored
from abstain.curves.quadrature import linear_weights
from abstain.metrics._entry import Metric, Need, value_of
from abstain.metrics._views import view_of
from abstain.metrics.rank_weights import augrc_weight, rank_weighted_risk
from abstain.typing import AnyArray, IntArray

_SOURCE = "Traub et al. (2024), appendix, https://arxiv.org/abs/2407.01032"


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
    .. [1] Traub et al. (2024), appendix, https://arxiv.org/abs/2407.01032

    Examples
    --------
    >>> import abstain as ab
    >>> ab.balanced_aurc([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1], ["a", "a", "b", "b"])
    0.1875
    """
    s = scored(confidence, loss, weight)
    return value_of(_balanced_aurc(s, codes_of(labels, "labels", s.n)), "balanced_aurc")


def _balanced_aurc(s: Scored, labels: IntArray) -> Measured:
    groups = s.groups
    area = linear_weights(groups.through / groups.total, 0.0, 1.0, flat=True)
    # The risk of a class stays the same until its next vertex, so it counts with the area from
    # its own vertex to just before that one: differences of the area still to come.
    to_come = np.append(np.cumsum(area[::-1])[::-1], 0.0)
    present = _present_classes(s, labels)
    order = np.argsort(labels, kind="stable")
    bounds = np.searchsorted(labels[order], present)
    ends = np.searchsorted(labels[order], present, side="right")
    total = sum(
        _class_area(s, groups, order[a:b], to_come) for a, b in zip(bounds, ends, strict=True)
    )
    return Measured(total / present.size)


def _present_classes(s: Scored, labels: IntArray) -> IntArray:
    return np.unique(labels if s.weight is None else labels[s.weight > 0])


def _class_area(s: Scored, groups: TieGroups, rows: IntArray, to_come: IntArray) -> float:
    weight = None if s.weight is None else s.weight[rows]
    own = group_ties(s.confidence[rows], s.loss[rows], weight)
    start = group_index(groups, own.confidence)
    risk = own.loss_through / own.through
    return float(np.sum(risk * (to_come[start] - np.append(to_come[start[1:]], 0.0))))


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
    .. [1] Traub et al. (2024), appendix, https://arxiv.org/abs/2407.01032

    Examples
    --------
    >>> import abstain as ab
    >>> round(ab.balanced_augrc([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1], ["a", "a", "a", "b"]), 6)
    0.166667
    """
    s = scored(confidence, loss, weight)
    return value_of(_balanced_augrc(s, codes_of(labels, "labels", s.n)), "balanced_augrc")


def _balanced_augrc(s: Scored, labels: IntArray) -> Measured:
    weight = np.ones(s.n) if s.weight is None else s.weight
    present = _present_classes(s, labels)
    place = np.searchsorted(present, labels).clip(max=present.size - 1)
    mass = np.bincount(place, weights=weight * (present[place] == labels), minlength=present.size)
    balance = s.total / (present.size * mass)
    # Only the losses differ from the groups at hand, and only where there are any.
    wrong = np.flatnonzero(s.loss * weight)
    mass = (weight * s.loss * balance[place])[wrong]
    home = group_index(s.groups, s.confidence[wrong])
    loss = np.bincount(home, mass, s.groups.loss.size).astype(np.float64)
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
        ordered=False,
    ),
)
