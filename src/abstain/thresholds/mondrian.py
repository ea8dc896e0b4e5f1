"""A threshold for each group, each with its own guarantee (Mondrian calibration)."""

from dataclasses import replace
from typing import Any

import numpy as np

from abstain._foundation import checks
from abstain.errors import InputError
from abstain.shift import DensityRatios
from abstain.shift.ratios import as_density_ratios
from abstain.thresholds.catalogue import RULES, fit
from abstain.thresholds.group_names import encode_groups
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
    **options: Any,
) -> DecisionRule:
    """Choose a threshold for each group, so that the guarantee holds in each group.

    Answers: which threshold does each hospital need to reach the target?

    Parameters
    ----------
    method : str
        A name in `RULES`, of a rule that requires data.
    confidence : array of shape (n,)
        Confidences of the calibration samples.
    loss : array of shape (n,) or None
        Losses of the calibration samples; None for rules that need none.
    group : array of shape (n,)
        The group of each sample, by name. It must be known when a sample is answered, so it cannot
        be the true class. It may be the predicted class.
    per : str, default="group"
        Name of the groups, recorded in the rule: a column, or "prediction".
    joint : bool, default=False
        Whether all guarantees hold together with probability 1 - delta. The groups that are large
        enough for a guarantee then share delta equally. By default, each fails with probability
        delta.
    score : str, default=""
        Name of the confidence score, recorded in the rules.
    scale : {"log-odds", "probability", "score"}, optional
        Scale of the confidences, recorded in the rules.
    ratio : array of shape (n,) or DensityRatios, optional
        Density ratios (`abstain.shift`), for rules that accept them, to guarantee the target for
        each group of another population.
    **options
        Options of the rule: `RULES[method].options`.

    Returns
    -------
    DecisionRule
        A part for each group, in the order of the names. A group that is too small for a guarantee
        has no threshold, with a reason; its samples are rejected.

    Raises
    ------
    UnknownNameError, MissingInputError
        If there is no such rule, or a required option is missing.
    InputError
        For a rule without data, for weights, for an option that the rule does not have, or for
        `joint` with a rule without delta.
    ShapeError, DomainError
        For invalid values, or a missing group.

    See Also
    --------
    check_groups : Measure the performance of these thresholds, or of one, on each group.
    several_risks : One threshold with a limit for each group.

    Notes
    -----
    The samples of a group are independent draws from its distribution, and only they select its
    threshold. Each guarantee is therefore that of the rule alone, whatever the sizes of the groups.
    For joint guarantees, delta is divided equally (Bonferroni) among the k groups that could be
    certified at delta/k if none of their samples failed. This depends on the sizes, not on the
    losses, so small groups cost nothing. The cost is one sort of each group.

    Within a group, the distribution changes by the ratios of its samples, on any scale. If the
    upper limit of the ratios is unknown, the largest observed ratio in the group is used. Samples
    with a ratio of 0 do not exist in the other population: they are dropped, and so are groups
    without other samples. Ratios that were estimated over all groups are valid in each group only
    if the groups change in the same way, given the inputs of the estimate.

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
    _check_group_rule(method, options)
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
        options = {**options, "delta": delta / n_delta_shares(method, sizes, options)}
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
        rule = fit(method, values[group_rows], group_losses, score=score, scale=scale, **options)
        parts.append(RulePart(name, rule))
    return DecisionRule.from_parts(per, tuple(parts), joint=joint, delta=delta)


def _check_group_rule(method: str, options: dict[str, Any]) -> None:
    """Raise InputError for a rule without data, or for weights; remove weights of None."""
    if not RULES[method].needs_data:
        raise InputError(
            f"the rule {method!r} needs no data, so it has the same threshold for every group"
        )
    if options.pop("weight", None) is not None:
        raise InputError(
            "`weight` must be None for a threshold for each group; pass one row for each sample"
        )


def n_delta_shares(method: str, sizes: Array, options: dict[str, Any]) -> int:
    """Return the number of shares of delta: the smallest k for which at most k groups use a share.

    A group uses a share if its rule is attainable for its number of samples without a failure. The
    number therefore does not depend on the losses.
    """
    distinct_sizes, counts = np.unique(sizes, return_counts=True)

    def n_attainable(k: int) -> int:
        share = {**options, "delta": options["delta"] / k}
        is_attainable = [
            fit(method, np.arange(n, 0.0, -1.0), np.zeros(n), **share).attainable
            for n in distinct_sizes.tolist()
        ]
        return int(counts[np.asarray(is_attainable)].sum())

    low, high = 1, int(sizes.size)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if n_attainable(middle) <= middle else (middle + 1, high)
    return low
