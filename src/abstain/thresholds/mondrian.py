"""Thresholds for groups, each with a separate guarantee (Mondrian calibration)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from abstain._foundation import checks
from abstain.errors import InputError, MissingInputError
from abstain.shift import DensityRatios
from abstain.shift.ratios import as_density_ratios
from abstain.thresholds.catalogue import RULES, SEVERAL_RISKS_RULE, fit
from abstain.thresholds.group_names import encode_groups
from abstain.thresholds.limits import Limit, check_mask, fit_limits
from abstain.thresholds.rule import DecisionRule, RulePart
from abstain.thresholds.scales import RuleScale
from abstain.typing import AnyArray, Array


def fit_groups(
    method: str,
    confidence: AnyArray,
    loss: AnyArray | None,
    group: AnyArray,
    *,
    per: str = "group",
    joint: bool = False,
    score: str = "",
    scale: RuleScale | None = None,
    ratio: "AnyArray | DensityRatios | None" = None,
    limits: Sequence[Limit] | None = None,
    **options: Any,
) -> DecisionRule:
    """Choose a threshold for each group so that the guarantee holds in each group.

    Answers: which threshold does each hospital need to reach the target?

    Parameters
    ----------
    method : str
        The name in `RULES` of a rule that requires data.
    confidence : array of shape (n,)
        Confidences of the calibration samples.
    loss : array of shape (n,) or None
        Losses of the calibration samples, or None for rules that need no losses.
    group : array of shape (n,)
        The name of the group of each sample. The groups must be available when the rule is
        applied, so they may be predicted classes but not true classes.
    per : str, default="group"
        Name of the groups, which the rule records. Either the name of a column or "prediction".
    joint : bool, default=False
        Whether all guarantees hold jointly with probability 1 - delta. In this case, the groups
        that are large enough for a guarantee share delta equally. By default, the guarantee of
        each group may fail with probability delta.
    score : str, default=""
        Name of the confidence score, which the rules record.
    scale : {"log-odds", "probability", "score"}, optional
        Scale of the confidences, which the rules record.
    ratio : array of shape (n,) or DensityRatios, optional
        Density ratios (`abstain.shift`) that guarantee the target in each group of another
        population. Some rules do not accept ratios.
    limits : sequence of Limit, optional
        Several limits that the threshold of each group must respect. The method must be
        "learn_then_test", and the options are those of `several_risks`. For example, a limit for a
        class applies in each group to the samples of this class.
    **options
        Options of the rule, which `RULES[method].options` lists.

    Returns
    -------
    DecisionRule
        A rule with one part for each group, in the order of the names. If `limits` is passed, the
        rule of each group has a part for each limit, as in `several_risks`. A group that is too
        small for a guarantee has a reason instead of a threshold, and its samples are rejected. A
        group in which a limit has no samples is treated in the same way.

    Raises
    ------
    UnknownNameError, MissingInputError
        If no rule has this name, or a required option is missing.
    InputError
        If the rule requires no data or does not have an option, if weights are passed, if `joint`
        is True for a rule without delta, or if the method does not support `limits`.
    ShapeError, DomainError
        If values are invalid, or the group of a sample is missing.

    See Also
    --------
    check_groups : Measures the performance of a rule on each group.
    several_risks : Selects one threshold with a limit for each group.

    Notes
    -----
    The samples of a group are independent draws from the distribution of the group, and only these
    samples select the threshold of the group. The guarantee therefore holds in each group, for any
    sizes of the groups. For joint guarantees, delta is divided equally (Bonferroni) among k
    groups. The number k counts the groups that could be certified at level delta/k if they had no
    failures. The number k depends on the sizes of the groups but not on the losses. The cost is
    one sort of each group.

    All limits of a group hold jointly with the probability of the group, because `several_risks`
    does not divide delta among limits. For joint guarantees, k counts the groups that could be
    certified if each limit applied to all samples of the group.

    Within a group, the ratios need to be correct only up to a constant factor. If the upper limit
    of the ratios is unknown, the function uses the largest observed ratio in the group. Samples
    with a ratio of 0 do not occur in the other population and are therefore ignored. Groups that
    only contain such samples are ignored too. Ratios that were estimated from all groups together
    are valid in a group only if the same shift occurs in all groups.

    References
    ----------
    .. [1] Vovk, Gammerman and Shafer (2005), Algorithmic learning in a random world (Mondrian
       predictors), https://doi.org/10.1007/b106715
    .. [2] Geifman and El-Yaniv (2017), Selective classification for deep neural networks,
       https://arxiv.org/abs/1705.08500

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> confidence = np.tile(np.linspace(1, 0, 500), 2)
    >>> loss = np.r_[np.arange(500) > 400, np.arange(500) > 200]
    >>> group = np.repeat(["day", "night"], 500)
    >>> rule = ab.thresholds.fit_groups("sgr", confidence, loss, group, max_risk=0.05, delta=0.05)
    >>> [(part.name, round(part.rule.coverage, 2)) for part in rule.parts]
    [('day', 0.82), ('night', 0.41)]
    >>> few = ab.thresholds.fit_groups(
    ...     "sgr", confidence[:540], loss[:540], group[:540], max_risk=0.05, delta=0.05
    ... )
    >>> few.part("night").attainable, few.part("night").reason[:46]
    (False, '40 samples cannot certify a selective risk of ')
    """
    _check_group_rule(method, options, limits)
    values = checks.confidence(confidence)
    names, codes = encode_groups(group, values.size)
    losses = None if loss is None else checks.loss(loss, length=values.size)
    ratios = None if ratio is None else as_density_ratios(ratio, values.size)
    used = np.arange(values.size) if ratios is None else np.flatnonzero(ratios.values)
    codes = codes[used]
    used_codes, sizes = np.unique(codes, return_counts=True)
    names = [names[code] for code in used_codes]
    delta = options.get("delta")
    if joint and "delta" not in RULES[method].options:
        raise InputError(
            f"`joint` divides delta among the groups, but the rule {method!r} has no delta; drop it"
        )
    if joint and delta is not None:
        n_shares = n_delta_shares(method, sizes, options, limits)
        options = {**options, "delta": delta / n_shares}
    if limits is not None:
        limits = [replace(limit, mask=check_mask(limit, values.size)) for limit in limits]
    rows = np.split(used[np.argsort(codes, kind="stable")], np.cumsum(sizes)[:-1])
    parts = []
    for name, group_rows in zip(names, rows, strict=True):
        group_losses = None if losses is None else losses[group_rows]
        if ratios is not None:
            group_ratios = ratios.rows(group_rows)
            if not group_ratios.bounded:
                largest = float(group_ratios.values.max())
                group_ratios = replace(group_ratios, largest=largest)
            options["ratio"] = group_ratios
        group_limits = None if limits is None else [limit.subset(group_rows) for limit in limits]
        rule = _fit_group(method, values[group_rows], group_losses, group_limits, options)
        parts.append(RulePart(name, rule.for_score(score, scale=scale)))
    return DecisionRule.from_parts(per, tuple(parts), joint=joint, delta=delta)


def _fit_group(
    method: str,
    confidence: Array,
    loss: Array | None,
    limits: Sequence[Limit] | None,
    options: dict[str, Any],
) -> DecisionRule:
    """Select the threshold of one group, which may have several limits."""
    if limits is None:
        return fit(method, confidence, loss, **options)
    if loss is None:
        raise MissingInputError("several limits need `loss`; got None")
    return fit_limits(confidence, loss, limits, **options)


def _check_group_rule(method: str, options: dict[str, Any], limits: Sequence[Limit] | None) -> None:
    """Raise InputError for a rule without data, for weights, or for a rule without limits.

    The function removes the option `weight`.
    """
    if limits is not None and method != SEVERAL_RISKS_RULE:
        raise InputError(
            f"`limits` supports only the method {SEVERAL_RISKS_RULE!r}; got {method!r}"
        )
    if not RULES[method].needs_data:
        raise InputError(
            f"the rule {method!r} needs no data, so it has the same threshold for every group"
        )
    if options.pop("weight", None) is not None:
        raise InputError(
            "`weight` must be None for a threshold for each group; pass one row for each sample"
        )


def n_delta_shares(
    method: str, sizes: Array, options: dict[str, Any], limits: Sequence[Limit] | None = None
) -> int:
    """Return the smallest k for which at most k groups could be certified at level delta/k.

    A group could be certified if its rule would have a threshold without failures and with limits
    that apply to all its samples. The result therefore depends only on the sizes of the groups.
    """
    unmasked = None if limits is None else [replace(limit, mask=None) for limit in limits]
    distinct_sizes, counts = np.unique(sizes, return_counts=True)

    def n_attainable(k: int) -> int:
        share = {**options, "delta": options["delta"] / k}
        is_attainable = [
            _fit_group(method, np.arange(n, 0.0, -1.0), np.zeros(n), unmasked, share).attainable
            for n in distinct_sizes.tolist()
        ]
        return int(counts[np.asarray(is_attainable)].sum())

    low, high = 1, int(sizes.size)
    while low < high:
        middle = (low + high) // 2
        if n_attainable(middle) <= middle:
            high = middle
        else:
            low = middle + 1
    return low
