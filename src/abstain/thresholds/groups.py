"""Does a rule keep its promise in every group? Verdicts that hold together."""

from dataclasses import replace
from typing import Final

import numpy as np

from abstain._foundation.arrays import to_numpy
from abstain._foundation.names import coded, codes_of
from abstain.inference.proportions import level_of
from abstain.thresholds import _achieved
from abstain.thresholds._achieved import Sample
from abstain.thresholds.check import RuleCheck, Verdict, decided, measured
from abstain.thresholds.rule import DecisionRule
from abstain.typing import AnyArray, Scale

#: Verdicts about a target, the worst first; others are the same for the whole and its groups.
_WORST_FIRST: Final[tuple[Verdict, ...]] = ("broken", "cannot tell", "holds")


def check_groups(
    rule: DecisionRule,
    confidence: AnyArray,
    loss: AnyArray,
    group: AnyArray,
    *,
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
    accepted = decided(rule, confidence, scale)
    codes_of(group, "group", accepted.size)  # refuses what names no group
    names, codes = coded(to_numpy(group, "group"), "group")
    s = _achieved.sample(accepted, loss, weight, level=level_of(level))
    if weight is not None:
        codes = codes[to_numpy(weight, "weight") > 0]
    rows = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    known = [(str(names[codes[own[0]]]), own) for own in rows if own.size]
    together = len(known) + (len(known) > 1)
    s = replace(s, level=1 - (1 - s.level) / together)
    whole = measured(rule, s, name)
    groups = [
        replace(measured(rule, _rows_of(s, own), name), group=named, together=together)
        for named, own in known
    ]
    return (_joined(replace(whole, together=together), groups), *groups)


def _rows_of(s: Sample, rows: AnyArray) -> Sample:
    weight = None if s.weight is None else s.weight[rows]
    return Sample(s.loss[rows], s.accepted[rows], weight, s.level, s.binary)


def _joined(whole: RuleCheck, groups: list[RuleCheck]) -> RuleCheck:
    """Return the check of the whole with a verdict that is no better than that of a group."""
    if whole.verdict not in _WORST_FIRST:
        return whole
    found = [_decisive(c.verdict) for c in (whole, *groups)]
    verdict = min(found, key=_WORST_FIRST.index)
    return replace(whole, verdict=verdict, alone=whole.verdict)


def _decisive(verdict: Verdict) -> Verdict:
    """Return the verdict; of a group in which nothing is accepted nothing is known."""
    return verdict if verdict in _WORST_FIRST else "cannot tell"
