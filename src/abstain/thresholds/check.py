"""Does a rule keep on other data what it promised? Achieved numbers, intervals, verdicts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from abstain._foundation import checks
from abstain.errors import InputError
from abstain.inference.intervals import check_level
from abstain.thresholds._parts import OVERALL
from abstain.thresholds.group_names import grouped
from abstain.thresholds.rule import DecisionRule
from abstain.thresholds.rule_check import (
    AcceptedLosses,
    RuleCheck,
    Verdict,
    decided,
    measured,
    sample,
    worst_verdict,
)
from abstain.typing import AnyArray, IntArray, Scale

#: Verdicts about a target; the others are the same for the whole and its groups.
_DECISIVE: Final[tuple[Verdict, ...]] = ("broken", "cannot tell", "holds")
_WITHOUT_TARGET: Final[tuple[Verdict, ...]] = ("unattainable", "no target")


def check(
    rule: DecisionRule,
    confidence: AnyArray,
    loss: AnyArray | None,
    *,
    name: str = "",
    weight: AnyArray | None = None,
    level: float = 0.95,
    scale: Scale | None = None,
) -> RuleCheck:
    """Compute what a rule achieves on other data, and whether its target holds there.

    Answers: does the threshold that I chose then still do what it should, here?

    Parameters
    ----------
    rule : DecisionRule
        The rule.
    confidence, loss : array of shape (n,)
        Of the data to check on: finite confidences from the score of the rule, as an array or as
        `abstain.confidence.score` returned them; losses that are finite and not negative. A loss
        of None, for samples without labels, gives the coverage alone.
    name : str, default=""
        Name of the data, for tables.
    weight : array of shape (n,), optional
        Weights: not negative, not all zero. A row is one observation whatever its weight.
    level : float, default=0.95
        Of every interval, between 0 and 1.
    scale : {"log-odds", "probability", "score"}, optional
        What the confidences are measured in, as for `DecisionRule.apply`.

    Returns
    -------
    RuleCheck
        Coverage, selective and generalized risk with intervals; excess over the target; verdict.

    Raises
    ------
    InputError
        `rule` is no rule; confidences that may be on another scale than the threshold.
    ShapeError, DomainError
        Bad values, lengths that differ, `level` outside (0, 1).

    Notes
    -----
    The data must not be those that chose the threshold: on those every number flatters. Intervals
    of shares are exact (Clopper-Pearson); with weights they take the effective number of samples.
    "broken" on data like the calibration data happens to a rule with a guarantee with a chance of
    at most delta + (1 - level) / 2. Accepting nothing keeps a generalized risk. Cost: one pass.

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> rule = ab.thresholds.DecisionRule("risk", 0.5, target=0.1)
    >>> confidence, loss = np.repeat([0.9, 0.5, 0.1], 100), np.repeat([0, 1, 1], [190, 10, 100])
    >>> found = ab.thresholds.check(rule, confidence, loss, name="hospital B")
    >>> found.accepted, found.selective_risk, round(found.excess, 3), found.verdict
    (200, 0.05, -0.05, 'holds')
    """
    accepted = decided(rule, confidence, scale)
    return measured(rule, sample(accepted, loss, weight, level=check_level(level)), name)


def check_many(
    rule: DecisionRule,
    data: Mapping[str, tuple[AnyArray, ...]],
    *,
    level: float = 0.95,
    scale: Scale | None = None,
) -> tuple[RuleCheck, ...]:
    """Compute what one rule achieves on several data sets: the risk excess per shift.

    Answers: on which shifts does the threshold no longer keep its promise, and by how much?

    Parameters
    ----------
    rule : DecisionRule
        The rule.
    data : mapping from str to tuple of arrays
        Name of each data set to its (confidence, loss) or (confidence, loss, weight).
    level : float, default=0.95
        Of every interval, between 0 and 1.
    scale : {"log-odds", "probability", "score"}, optional
        What the confidences are measured in, as for `DecisionRule.apply`.

    Returns
    -------
    tuple of RuleCheck
        One a data set, in the order given; `[c.row() for c in ...]` is the table.

    Raises
    ------
    InputError
        A data set that is not two or three arrays; as in `check` otherwise.

    Notes
    -----
    The excess against the severity of the shift shows where a promise breaks; [1]_ evaluates
    scores on such shifts.

    References
    ----------
    .. [1] Jaeger et al. (2023), A call to reflect on evaluation practices for failure detection,
       https://arxiv.org/abs/2211.15259

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> rule = ab.thresholds.DecisionRule("risk", 0.5, target=0.1)
    >>> confidence, mild, hard = np.ones(100), np.arange(100) < 3, np.arange(100) < 30
    >>> found = ab.thresholds.check_many(
    ...     rule, {"mild": (confidence, mild), "hard": (confidence, hard)}
    ... )
    >>> [(c.name, round(c.excess, 2), c.verdict) for c in found]
    [('mild', -0.07, 'holds'), ('hard', 0.2, 'broken')]
    """
    out = []
    for name, arrays in data.items():
        if len(arrays) not in {2, 3}:
            raise InputError(
                f"`data` must hold (confidence, loss) or (confidence, loss, weight) at {name!r}"
            )
        weight = arrays[2] if len(arrays) == 3 else None
        options: dict[str, Any] = {"name": name, "weight": weight, "level": level, "scale": scale}
        out.append(check(rule, arrays[0], arrays[1], **options))
    return tuple(out)


def check_groups(
    rule: DecisionRule,
    confidence: AnyArray,
    loss: AnyArray | None,
    group: AnyArray,
    *,
    by: AnyArray | None = None,
    name: str = "",
    weight: AnyArray | None = None,
    level: float = 0.95,
    scale: Scale | None = None,
) -> tuple[RuleCheck, ...]:
    """Compute what a rule achieves on other data and on each group in them.

    Answers: does the threshold keep to its target for everyone, or on average only?

    Parameters
    ----------
    rule : DecisionRule
        The rule.
    confidence, loss : array of shape (n,)
        As for `check`.
    group : array of shape (n,)
        The group of each sample (its hospital, its language), by name.
    by : array of shape (n,), optional
        Where a rule has a threshold for each group of another kind: these groups. By default
        `group`; then each group is judged by its own rule.
    name : str, default=""
        Name of the data, for tables.
    weight : array of shape (n,), optional
        Weights: not negative, not all zero. A row is one observation whatever its weight.
    level : float, default=0.95
        How surely all verdicts are right together.
    scale : {"log-odds", "probability", "score"}, optional
        What the confidences are measured in, as for `DecisionRule.apply`.

    Returns
    -------
    tuple of RuleCheck
        The whole, then each group in the order of its name. The verdict of the whole is that of
        the worst: "holds" when the target is kept by the whole and by every group, "broken" when
        it is broken in one of them, else "cannot tell"; `alone` is its verdict by itself.

    Raises
    ------
    InputError, ShapeError, DomainError
        As for `check`; a group that is missing.

    Notes
    -----
    The whole and its G groups are G + 1 questions. Each interval is at the level
    1 - (1 - level) / (G + 1) (Bonferroni). So the chance that any verdict is wrong, "holds" where
    the target is broken or "broken" where it is kept, is at most 1 - level where intervals are
    exact (0/1 losses without weights), however the groups depend on each other. A group in which
    nothing is accepted leaves the whole undecided. A guarantee is about the whole: it may be kept
    there and broken in a group, which is then said. Cost: one pass, and one over each group.

    References
    ----------
    .. [1] Clopper and Pearson (1934), The use of confidence or fiducial limits,
       https://doi.org/10.1093/biomet/26.4.404

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> rule = ab.thresholds.DecisionRule("risk", 0.5, target=0.05)
    >>> group = np.repeat(["a", "b"], [9000, 1000])
    >>> loss = np.concatenate([np.arange(9000) % 100 == 0, np.arange(1000) % 5 == 0])
    >>> found = ab.thresholds.check_groups(rule, np.ones(10_000), loss, group)
    >>> [(c.group, round(c.selective_risk, 3), c.verdict) for c in found]
    [('', 0.029, 'broken'), ('a', 0.01, 'holds'), ('b', 0.2, 'broken')]
    >>> found[0].alone
    'holds'
    """
    accepted = decided(rule, confidence, scale, group if by is None else by)
    names, codes = grouped(group, accepted.size)
    s = sample(accepted, loss, weight, level=check_level(level))
    if s.from_rows is not None:
        codes = codes[s.from_rows]
    rows = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    known = [(names[codes[own[0]]], own) for own in rows if own.size]
    own_rules = bool(rule.per) and by is None
    return _together(rule, s, name, known, own_rules=own_rules)


def check_limits(
    rule: DecisionRule,
    confidence: AnyArray,
    loss: AnyArray | None,
    among: Mapping[str, AnyArray],
    *,
    name: str = "",
    weight: AnyArray | None = None,
    level: float = 0.95,
    scale: Scale | None = None,
) -> tuple[RuleCheck, ...]:
    """Compute whether each of several limits holds on other data, under their one threshold.

    Answers: are the overall risk, each group's and a class's false negatives all kept here?

    Parameters
    ----------
    rule : DecisionRule
        Of `several_risks`.
    confidence, loss : array of shape (n,)
        As for `check`.
    among : mapping from str to array of shape (n,)
        For each limit, by its name, booleans: the samples that it is about. "overall" is about
        all. A limit that is left out is not checked.
    name : str, default=""
        Name of the data, for tables.
    weight : array of shape (n,), optional
        As for `check`.
    level : float, default=0.95
        How surely all verdicts are right together.
    scale : {"log-odds", "probability", "score"}, optional
        As for `check`.

    Returns
    -------
    tuple of RuleCheck
        The whole, then each limit, its name as the `group`: as `check_groups` returns groups.

    Raises
    ------
    InputError, ShapeError, DomainError
        As for `check`; no set of rules with one threshold, or an unknown limit.

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> from abstain.thresholds import Limit
    >>> confidence, cat = np.linspace(1, 0, 2000), np.arange(2000) % 4 == 0
    >>> loss = np.arange(2000) > np.where(cat, 900, 1400)
    >>> limits = [Limit("overall", 0.1), Limit("label:cat", 0.2, cat)]
    >>> rule = ab.thresholds.several_risks(confidence, loss, limits, delta=0.05)
    >>> found = ab.thresholds.check_limits(rule, confidence, loss, {"label:cat": cat})
    >>> [(c.group, round(c.selective_risk, 2), c.verdict) for c in found]
    [('', 0.04, 'cannot tell'), ('label:cat', 0.15, 'cannot tell')]
    >>> found[0].alone
    'holds'
    """
    accepted = decided(rule, confidence, scale)
    unknown = [limit for limit in among if limit not in {part.name for part in rule.parts}]
    if rule.per or unknown:
        raise InputError(f"`among` must name limits of one threshold; got {unknown or rule.per!r}")
    s = sample(accepted, loss, weight, level=check_level(level))
    known = []
    for limit, inside in among.items():
        rows = np.asarray(checks.vector(inside, "among"), dtype=np.bool_)
        rows = rows if s.from_rows is None else rows[s.from_rows]
        known += [(limit, np.flatnonzero(rows))] if limit != OVERALL and rows.any() else []
    return _together(rule, s, name, known, own_rules=True)


def _together(
    rule: DecisionRule,
    s: AcceptedLosses,
    name: str,
    known: Sequence[tuple[str, IntArray]],
    *,
    own_rules: bool,
) -> tuple[RuleCheck, ...]:
    """Return the whole and its parts, with intervals that hold together."""
    # A single group under the rule of the whole is the whole: one question.
    together = max(len(known) + (len(known) > 1 or own_rules), 1)
    s = replace(s, level=1 - (1 - s.level) / together)
    whole = measured(rule, s, name)
    groups = []
    for named, rows in known:
        own = rule.part(named) if own_rules else rule
        found = measured(own, s.subset(rows), name)
        groups.append(replace(found, group=named, together=together))
    return (_joined(replace(whole, together=together), groups), *groups)


def _joined(whole: RuleCheck, groups: list[RuleCheck]) -> RuleCheck:
    """Return the check of the whole with a verdict that is no better than that of a group."""
    # A group without a threshold of its own is not answered: it breaks nothing.
    verdicts = [c.verdict for c in (whole, *groups) if c.verdict not in _WITHOUT_TARGET]
    has_target = whole.verdict in _DECISIVE or (whole.verdict == "no target" and verdicts)
    if not has_target:
        return whole
    # A group in which nothing is accepted leaves the whole undecided.
    decisive = [v if v in _DECISIVE else "cannot tell" for v in verdicts]
    return replace(whole, verdict=worst_verdict(decisive), alone=whole.verdict)
