"""A threshold for each group, each with its own promise (Mondrian calibration)."""

from dataclasses import replace
from typing import Any

import numpy as np

from abstain._foundation import checks
from abstain.errors import InputError
from abstain.shift import DensityRatios
from abstain.shift.ratios import as_density_ratios
from abstain.thresholds.catalogue import fit
from abstain.thresholds.entry import RULES
from abstain.thresholds.group_names import grouped
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
    """Choose a threshold for each group, so that what is promised holds in each of them.

    Answers: from which confidence on do I answer for each hospital, so that each keeps the target?

    Parameters
    ----------
    method : str
        A name in `RULES` that needs data.
    confidence : array of shape (n,)
        Of the calibration samples.
    loss : array of shape (n,) or None
        Their losses; None for the rules that need none.
    group : array of shape (n,)
        The group of each sample, by name: known when a sample is to be answered, so not its true
        class. The predicted class is such a group.
    per : str, default="group"
        What the groups are, noted in the rule: a column, or "prediction".
    joint : bool, default=False
        Whether all promises hold together with probability 1 - delta: the groups that are large
        enough for a promise then share delta equally. By default each fails with chance delta.
    score : str, default=""
        Name of the confidence score, noted in the rules.
    scale : {"log-odds", "probability", "score"}, optional
        What the confidences are measured in, noted in the rules.
    ratio : array of shape (n,) or DensityRatios, optional
        Density ratios (`abstain.shift`), where the rule takes them, to promise what it does for
        each group of data of another law.
    **options
        Of the rule: `RULES[method].options`.

    Returns
    -------
    DecisionRule
        A part for each group, in the order of the names. A group of which nothing can be promised
        has no threshold, with the reason: it is abstained on, and takes no other group's.

    Raises
    ------
    UnknownNameError, MissingInputError
        No such rule; an option that it needs is not there.
    InputError
        A rule without data; weights; an option that the rule does not have; `joint` of a rule
        without delta.
    ShapeError, DomainError
        Bad values; a group that is missing.

    See Also
    --------
    check_groups : What one threshold, or these, do to each group elsewhere.
    several_risks : One threshold for all that keeps a limit in each group.

    Notes
    -----
    Samples of one group are independent draws of its law, and nothing else chooses its threshold,
    so each promise is that of the rule alone, whatever the groups' sizes and the other groups.
    Where promises are joint, each of the k groups that could be certified at delta/k if none of
    their samples failed has delta/k (Bonferroni, among these alone): the sizes tell, not the
    losses, so that leaving small groups out costs nothing. Cost: one sort of each group.

    Within a group the law changes by the ratios of its own samples, up to a constant, and no rule
    needs more. Where nobody knows what no ratio exceeds, the largest seen in the group stands for
    it. Samples with a ratio of 0 do not come up there: they are left out first, and a group that
    holds no others is as one that was not there. Ratios that were estimated over all groups say how
    each group changes only where these change alike, given what the estimate saw.

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
    _refuse(method, options)
    values = checks.confidence(confidence)
    names, codes = grouped(group, values.size)
    losses = None if loss is None else checks.loss(loss, length=values.size)
    ratios = None if ratio is None else as_density_ratios(ratio, values.size)
    counted = np.arange(values.size) if ratios is None else np.flatnonzero(ratios.values)
    codes = codes[counted]
    here, sizes = np.unique(codes, return_counts=True)
    names = [names[code] for code in here]
    delta = options.get("delta")
    if joint and "delta" not in RULES[method].options:
        raise InputError(
            f"`joint` shares delta among the groups, and the rule {method!r} has none; drop it"
        )
    if joint and delta is not None:
        options = {**options, "delta": delta / shares_of(method, sizes, options)}
    rows = np.split(counted[np.argsort(codes, kind="stable")], np.cumsum(sizes)[:-1])
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
    return DecisionRule.of_parts(per, tuple(parts), joint=joint, delta=delta)


def _refuse(method: str, options: dict[str, Any]) -> None:
    """Refuse what cannot be chosen group by group; weights of None are taken out."""
    if not RULES[method].needs_data:
        raise InputError(
            f"the rule {method!r} chooses without data, so it has one threshold for every group"
        )
    if options.pop("weight", None) is not None:
        raise InputError(
            "`weight` must be left out of a threshold for each group; keep one sample a row"
        )


def shares_of(method: str, sizes: Array, options: dict[str, Any]) -> int:
    """Return the number of shares of delta: the least k of which at most k groups can use one.

    A group can use a share if its rule is attainable on as many samples without a failure, so that
    the shares do not depend on the losses.
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
