"""Check a decision rule on other data, in total and in groups, and compute group disparities."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np

from abstain._foundation import checks
from abstain.errors import InputError
from abstain.inference.intervals import Interval, check_level, no_interval
from abstain.thresholds._consistency import OVERALL
from abstain.thresholds.group_names import encode_groups
from abstain.thresholds.rule import DecisionRule
from abstain.thresholds.rule_check import (
    AcceptedLosses,
    RuleCheck,
    Verdict,
    apply_rule,
    check_losses,
    measure_rule,
    worst_verdict,
)
from abstain.typing import AnyArray, BoolArray, IntArray, Scale

#: Verdicts that refer to a target.
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
    """Measure the performance of a rule on other data, and test whether its target holds.

    Answers: does the threshold still reach its target on these data?

    Parameters
    ----------
    rule : DecisionRule
        The rule.
    confidence, loss : array of shape (n,)
        Finite confidences of the score of the rule, as an array or as `abstain.confidence.score`
        returns them, and finite losses of at least 0. For unlabeled samples, pass None to compute
        only the coverage.
    name : str, default=""
        Name of the data, for tables.
    weight : array of shape (n,), optional
        Weights of at least 0, not all 0. Weights do not change the number of observations.
    level : float, default=0.95
        Confidence level of every interval, between 0 and 1.
    scale : {"log-odds", "probability", "score"}, optional
        Scale of the confidences, as in `DecisionRule.apply`.

    Returns
    -------
    RuleCheck
        The coverage and both risks with intervals, the excess over the target, and the verdict.

    Raises
    ------
    InputError
        If `rule` is not a decision rule, or the confidences may be on another scale than the
        threshold.
    ShapeError, DomainError
        If values are invalid, lengths differ, or `level` is outside (0, 1).

    Notes
    -----
    Do not pass the data that selected the threshold, because all numbers would be optimistic.
    Intervals of shares are exact (Clopper-Pearson). With weights, they are approximate and use the
    effective sample size. If the rule has a guarantee and the data have the distribution of the
    calibration data, the probability of the verdict "broken" is at most delta + (1 - level) / 2. A
    rule that accepts no sample has a generalized risk of 0. The cost is one pass over the samples.

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> rule = ab.thresholds.DecisionRule("risk", 0.5, target=0.1)
    >>> confidence, loss = np.repeat([0.9, 0.5, 0.1], 100), np.repeat([0, 1, 1], [190, 10, 100])
    >>> result = ab.thresholds.check(rule, confidence, loss, name="hospital B")
    >>> result.accepted, result.selective_risk, round(result.excess, 3), result.verdict
    (200, 0.05, -0.05, 'holds')
    """
    accepted = apply_rule(rule, confidence, scale)
    return measure_rule(rule, check_losses(accepted, loss, weight, level=check_level(level)), name)


def check_many(
    rule: DecisionRule,
    data: Mapping[str, tuple[AnyArray, ...]],
    *,
    level: float = 0.95,
    scale: Scale | None = None,
) -> tuple[RuleCheck, ...]:
    """Measure the performance of one rule on several data sets, such as distribution shifts.

    Answers: for which shifts does the threshold miss its target, and by how much?

    Parameters
    ----------
    rule : DecisionRule
        The rule.
    data : mapping from str to tuple of arrays
        The arrays (confidence, loss) or (confidence, loss, weight) of each data set, by name.
    level : float, default=0.95
        Confidence level of every interval, between 0 and 1.
    scale : {"log-odds", "probability", "score"}, optional
        Scale of the confidences, as in `DecisionRule.apply`.

    Returns
    -------
    tuple of RuleCheck
        One check for each data set, in the same order. The list `[c.row() for c in ...]` contains
        the rows of a table.

    Raises
    ------
    InputError
        If a data set does not have two or three arrays, or if `check` raises this error.

    Notes
    -----
    For data sets with increasing severity of a shift, the excess shows from which severity on a
    guarantee no longer holds. Jaeger et al. [1]_ evaluate scores on shifts of increasing severity.

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
    >>> checks = ab.thresholds.check_many(
    ...     rule, {"mild": (confidence, mild), "hard": (confidence, hard)}
    ... )
    >>> [(c.name, round(c.excess, 2), c.verdict) for c in checks]
    [('mild', -0.07, 'holds'), ('hard', 0.2, 'broken')]
    """
    results = []
    for name, arrays in data.items():
        if len(arrays) not in {2, 3}:
            raise InputError(
                f"`data` must have (confidence, loss) or (confidence, loss, weight) for {name!r}"
            )
        weight = arrays[2] if len(arrays) == 3 else None
        options: dict[str, Any] = {"name": name, "weight": weight, "level": level, "scale": scale}
        results.append(check(rule, arrays[0], arrays[1], **options))
    return tuple(results)


def check_groups(
    rule: DecisionRule,
    confidence: AnyArray,
    loss: AnyArray | None,
    group: AnyArray,
    *,
    rule_group: AnyArray | None = None,
    masks: Mapping[str, AnyArray] | None = None,
    name: str = "",
    weight: AnyArray | None = None,
    level: float = 0.95,
    scale: Scale | None = None,
) -> tuple[RuleCheck, ...]:
    """Measure the performance of a rule on other data and on each group.

    Answers: does the threshold reach its target in every group, or only on average?

    Parameters
    ----------
    rule : DecisionRule
        The rule.
    confidence, loss : array of shape (n,)
        As in `check`.
    group : array of shape (n,)
        The name of the group of each sample, such as a hospital or a language.
    rule_group : array of shape (n,), optional
        The groups that select the threshold of each sample. The default is `group`.
    masks : mapping from str to array of shape (n,), optional
        Boolean masks of the samples of each limit, as in `check_limits`, if each group has several
        limits.
    name : str, default=""
        Name of the data, for tables.
    weight : array of shape (n,), optional
        Weights of at least 0, not all 0. Weights do not change the number of observations.
    level : float, default=0.95
        Probability with which all verdicts are correct jointly.
    scale : {"log-odds", "probability", "score"}, optional
        Scale of the confidences, as in `DecisionRule.apply`.

    Returns
    -------
    tuple of RuleCheck
        The check of all samples, then the check of each group, sorted by name. The check of a
        group is followed by the checks of its limits. The verdict of the first check summarizes
        the verdicts of all samples and of every group. The summary is "holds" if the target holds
        for all samples together and for every group. The summary is "broken" if the target is
        exceeded for all samples together or for any group, and "cannot tell" otherwise.
        `excess_verdict` is the verdict of the total alone.

    Raises
    ------
    InputError, ShapeError, DomainError
        As in `check`; also if the group of a sample is missing.

    Notes
    -----
    For G groups, the function performs G + 1 tests, and by the Bonferroni correction each interval
    has the level 1 - (1 - level) / (G + 1). Each limit of a group is a further test. A verdict is
    wrong if it is "holds" although the target is broken, or "broken" although the target holds.
    The intervals are exact for 0/1 losses without weights. In this case, the probability of any
    wrong verdict is at most 1 - level, for any dependence of the groups. If the rule accepts no
    sample of a group, the summary cannot be "holds". The guarantee of a single threshold refers to
    all samples together, so the target may be exceeded in a group. The cost is one pass over the
    data and one pass over each group.

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
    >>> checks = ab.thresholds.check_groups(rule, np.ones(10_000), loss, group)
    >>> [(c.group, round(c.selective_risk, 3), c.verdict) for c in checks]
    [('', 0.029, 'broken'), ('a', 0.01, 'holds'), ('b', 0.2, 'broken')]
    >>> checks[0].excess_verdict
    'holds'
    """
    accepted = apply_rule(rule, confidence, scale, group if rule_group is None else rule_group)
    names, codes = encode_groups(group, accepted.size)
    s = check_losses(accepted, loss, weight, level=check_level(level))
    if s.source_rows is not None:
        codes = codes[s.source_rows]
    rows_by_code = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    uses_part_rules = bool(rule.per) and rule_group is None
    limit_masks = _check_masks(rule, masks or {}, s) if uses_part_rules else {}
    subsets = []
    for rows in filter(len, rows_by_code):
        group_name = names[codes[rows[0]]]
        group_rule = rule.part(group_name) if uses_part_rules else rule
        subsets.append(_Subset(group_rule, rows, group_name))
        for limit, mask in limit_masks.items():
            subsets.append(_Subset(group_rule.part(limit), rows[mask[rows]], group_name, limit))
    return _check_total_and_subsets(rule, s, name, subsets, uses_part_rules=uses_part_rules)


def check_limits(
    rule: DecisionRule,
    confidence: AnyArray,
    loss: AnyArray | None,
    masks: Mapping[str, AnyArray],
    *,
    name: str = "",
    weight: AnyArray | None = None,
    level: float = 0.95,
    scale: Scale | None = None,
) -> tuple[RuleCheck, ...]:
    """Check several risk limits of one threshold on other data.

    Answers: do the overall risk, the risk of each group and the false negatives of a class stay
    within their limits?

    Parameters
    ----------
    rule : DecisionRule
        A rule of `several_risks`.
    confidence, loss : array of shape (n,)
        As in `check`.
    masks : mapping from str to array of shape (n,)
        Boolean masks of the samples of each limit, by the name of the limit. The limit "overall"
        contains all samples. A limit without a mask is not checked.
    name : str, default=""
        Name of the data, for tables.
    weight : array of shape (n,), optional
        As in `check`.
    level : float, default=0.95
        Probability with which all verdicts are correct jointly.
    scale : {"log-odds", "probability", "score"}, optional
        As in `check`.

    Returns
    -------
    tuple of RuleCheck
        The check of all samples, then the check of each limit. The attribute `group` of a check is
        the name of the limit. The first verdict summarizes all verdicts, as in `check_groups`.

    Raises
    ------
    InputError, ShapeError, DomainError
        As in `check`; also if the rule has several thresholds, or a limit is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> from abstain.thresholds import Limit
    >>> confidence, cat = np.linspace(1, 0, 2000), np.arange(2000) % 4 == 0
    >>> loss = np.arange(2000) > np.where(cat, 900, 1400)
    >>> limits = [Limit("overall", 0.1), Limit("label:cat", 0.2, cat)]
    >>> rule = ab.thresholds.several_risks(confidence, loss, limits, delta=0.05)
    >>> checks = ab.thresholds.check_limits(rule, confidence, loss, {"label:cat": cat})
    >>> [(c.group, round(c.selective_risk, 2), c.verdict) for c in checks]
    [('', 0.04, 'cannot tell'), ('label:cat', 0.15, 'cannot tell')]
    >>> checks[0].excess_verdict
    'holds'
    """
    accepted = apply_rule(rule, confidence, scale)
    if rule.per:
        raise InputError(f"`rule` must have one threshold; this rule has one per {rule.per!r}")
    s = check_losses(accepted, loss, weight, level=check_level(level))
    subsets = [
        _Subset(rule.part(limit), np.flatnonzero(mask), limit)
        for limit, mask in _check_masks(rule, masks, s).items()
    ]
    return _check_total_and_subsets(rule, s, name, subsets, uses_part_rules=True)


def _check_masks(
    rule: DecisionRule, masks: Mapping[str, AnyArray], s: AcceptedLosses
) -> dict[str, BoolArray]:
    """Validate the masks of the limits, and select the entries of samples with positive weight."""
    unknown = masks.keys() - {part.name for part in rule.limits}
    if unknown:
        raise InputError(f"`masks` must name limits of the rule; got {sorted(unknown)}")
    rows = slice(None) if s.source_rows is None else s.source_rows
    return {
        limit: np.asarray(checks.vector(mask, "masks"), dtype=np.bool_)[rows]
        for limit, mask in masks.items()
        if limit != OVERALL
    }


class _Subset(NamedTuple):
    """The samples of one group or limit, and the rule that applies to them."""

    rule: DecisionRule
    rows: IntArray
    group: str
    limit: str = ""


def _check_total_and_subsets(
    rule: DecisionRule,
    s: AcceptedLosses,
    name: str,
    subsets: Sequence[_Subset],
    *,
    uses_part_rules: bool,
) -> tuple[RuleCheck, ...]:
    """Return the checks of all samples and of each subset, whose intervals hold jointly."""
    subsets = [subset for subset in subsets if subset.rows.size]
    # The check of a single group with the rule of the total is the same test as the total.
    n_verdicts = len(subsets)
    if len(subsets) > 1 or uses_part_rules:
        n_verdicts += 1
    n_verdicts = max(n_verdicts, 1)
    s = replace(s, level=1 - (1 - s.level) / n_verdicts)
    total = replace(measure_rule(rule, s, name), n_joint_verdicts=n_verdicts)
    groups = []
    for subset in subsets:
        result = measure_rule(subset.rule, s.subset(subset.rows), name)
        result = replace(result, group=subset.group, limit=subset.limit)
        groups.append(replace(result, n_joint_verdicts=n_verdicts))
    return (_with_worst_verdict(total, groups), *groups)


def _with_worst_verdict(total: RuleCheck, groups: list[RuleCheck]) -> RuleCheck:
    """Return the check of all samples, with a verdict that summarizes all checks."""
    # All samples of a group without a threshold are rejected, so the group cannot break the target.
    verdicts = [c.verdict for c in (total, *groups) if c.verdict not in _WITHOUT_TARGET]
    has_target = total.verdict in _DECISIVE or (total.verdict == "no target" and verdicts)
    if not has_target:
        return total
    # A group in which no sample is accepted leaves the total undecided.
    decisive = [v if v in _DECISIVE else "cannot tell" for v in verdicts]
    return replace(total, verdict=worst_verdict(decisive), excess_verdict=total.verdict)


_METHOD: Final = "range of simultaneous intervals"
_TOO_FEW_GROUPS: Final = "fewer than two groups have this number"


@dataclass(frozen=True)
class Disparity:
    """The largest difference and the largest ratio of a quantity between groups.

    Attributes
    ----------
    name : str
        Name of the data set.
    quantity : str
        "rejection rate" (1 - coverage), "selective risk" or "generalized risk".
    highest, lowest : str
        The groups with the largest and the smallest value, or "" if fewer than two groups have a
        value.
    difference, ratio : float
        The largest value minus the smallest value, and the largest value divided by the smallest
        value. The ratio is infinite if the smallest value is 0 and the largest value is not. The
        difference and the ratio are NaN if fewer than two groups have a value.
    difference_interval, ratio_interval : Interval
        Confidence intervals of the true largest difference and ratio between the groups.
    n_groups : int
        Number of groups that have a value.
    """

    name: str
    quantity: str
    highest: str
    lowest: str
    difference: float
    difference_interval: Interval
    ratio: float
    ratio_interval: Interval
    n_groups: int


def disparities(groups: Sequence[RuleCheck]) -> tuple[Disparity, ...]:
    """Compute the disparities of rejection rate and risks between groups.

    Answers: which group is rejected more often, and which group gets more wrong answers?

    Parameters
    ----------
    groups : sequence of RuleCheck
        Checks of the groups of one data set, such as ``check_groups(...)[1:]``.

    Returns
    -------
    tuple of Disparity
        The disparities of rejection rate, selective risk and generalized risk. Empty for fewer than
        two groups.

    Raises
    ------
    AttributeError
        If an element is not a `RuleCheck`.

    See Also
    --------
    check_groups : Computes the checks of the groups.

    Notes
    -----
    The intervals of the groups, l_g to u_g, hold jointly at the requested level. The true largest
    value therefore lies between max l_g and max u_g, and the true smallest value between min l_g
    and min u_g. The true largest difference lies between max(0, max l_g - min u_g) and max u_g -
    min l_g. The bounds of the ratio are computed analogously. The difference is significant only
    if the intervals of at least two groups do not overlap. Groups in which no sample is accepted
    have no selective risk and are excluded. The observed largest difference overestimates the true
    one on average, because the values of small groups vary randomly. The interval accounts for
    this bias.

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> rule = ab.thresholds.DecisionRule("risk", 0.5, target=0.05)
    >>> confidence = np.r_[np.ones(900), np.zeros(100), np.ones(500), np.zeros(500)]
    >>> group = np.repeat(["day", "night"], 1000)
    >>> checks = ab.thresholds.check_groups(rule, confidence, np.zeros(2000), group)
    >>> rejection = ab.thresholds.disparities(checks[1:])[0]
    >>> rejection.quantity, rejection.highest, round(rejection.difference, 3)
    ('rejection rate', 'night', 0.4)
    >>> interval = rejection.difference_interval
    >>> round(interval.low, 2), round(interval.high, 2)
    (0.34, 0.46)
    """
    if len(groups) < 2:
        return ()
    return tuple(_disparity(groups, quantity) for quantity in _QUANTITIES)


_QUANTITIES: Final = ("rejection rate", "selective risk", "generalized risk")


def _value_with_bounds(check: RuleCheck, quantity: str) -> tuple[float, float, float]:
    """Return the value of a quantity and the bounds of its interval."""
    if quantity == "rejection rate":
        coverage = check.coverage_interval
        return 1 - check.coverage, 1 - coverage.high, 1 - coverage.low
    name = quantity.replace(" ", "_")
    interval: Interval = getattr(check, f"{name}_interval")
    return getattr(check, name), interval.low, interval.high


def _disparity(groups: Sequence[RuleCheck], quantity: str) -> Disparity:
    """Compute the disparity of one quantity between groups."""
    first = groups[0]
    level = 1 - first.n_joint_verdicts * (1 - first.coverage_interval.level)
    names = []
    values_with_bounds = []
    for group_check in groups:
        value, low, high = _value_with_bounds(group_check, quantity)
        if not np.isnan(value):
            names.append(group_check.group)
            values_with_bounds.append((value, low, high))
    n_groups = len(names)
    if n_groups < 2:
        missing, nan = no_interval(level, _TOO_FEW_GROUPS), float("nan")
        return Disparity(first.name, quantity, "", "", nan, missing, nan, missing, n_groups)
    values, lows, highs = np.array(values_with_bounds).T
    highest, lowest = int(values.argmax()), int(values.argmin())
    min_difference = max(lows.max() - highs.min(), 0.0)
    max_difference = highs.max() - lows.min()
    min_ratio = max(_ratio(lows.max(), highs.min()), 1.0)
    max_ratio = _ratio(highs.max(), lows.min())
    return Disparity(
        name=first.name,
        quantity=quantity,
        highest=names[highest],
        lowest=names[lowest],
        difference=float(values[highest] - values[lowest]),
        difference_interval=_interval(min_difference, max_difference, level),
        ratio=_ratio(values[highest], values[lowest]),
        ratio_interval=_interval(min_ratio, max_ratio, level),
        n_groups=n_groups,
    )


def _ratio(high: float, low: float) -> float:
    """Divide two numbers; the ratio of two zeros is 1."""
    if low > 0:
        return float(high / low)
    return float("inf") if high > 0 else 1.0


def _interval(low: float, high: float, level: float) -> Interval:
    if np.isnan(low) or np.isnan(high):
        return no_interval(level, "a group has no interval")
    return Interval(float(low), float(high), level, _METHOD)
