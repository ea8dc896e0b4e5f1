"""`set_threshold`: predictions and a score to a decision rule."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from abstain._foundation.lazy_imports import special
from abstain._foundation.option_format import format_option
from abstain.confidence import ConfidenceScore, ScoreState
from abstain.errors import InputError, MissingInputError
from abstain.evaluation.positive_weights import positive_weight_rows
from abstain.evaluation.rules.data import (
    MAX_LOG_ODDS,
    RuleData,
    read_calibration_set,
    score_data,
    set_scale,
)
from abstain.evaluation.rules.subsets import OVERALL, resolve_groups, resolve_limits
from abstain.predictions import CostMatrix, Predictions
from abstain.thresholds import RULES, DecisionRule, fit_groups, several_risks
from abstain.thresholds import fit as fit_rule
from abstain.thresholds.catalogue import DELTA, SEVERAL, default_rule
from abstain.thresholds.limits import refuse_weights
from abstain.typing import AnyArray, Scale, Split


def set_threshold(
    predictions: Predictions | Mapping[Split, Predictions] | Any,
    *,
    score: str | ScoreState | None = None,
    loss: "str | CostMatrix | AnyArray | None" = None,
    method: str | None = None,
    scale: Scale | None = None,
    per: "str | AnyArray | None" = None,
    joint: bool = False,
    limits: Mapping[str, float] | None = None,
    **options: Any,
) -> DecisionRule:
    """Choose the threshold of a confidence score on calibration predictions.

    Answers: from which confidence on may the model answer, so that what I ask for holds on new
    data of the same kind?

    Parameters
    ----------
    predictions : Predictions
        The calibration data: not those that trained the model or fitted the score, and not those
        on which the rule is checked afterwards. A mapping, as `read_predictions` returns it, may
        hold one set. Also what `evaluate` opens: a path, a dataframe, arrays by name, a tuple of
        labels and probabilities.
    score : str or fitted score, optional
        A confidence column, a name of the catalogue, or what `abstain.confidence.fit` returned.
        By default the only confidence column, or "msr" where there are class scores alone.
    loss : str, CostMatrix or array of shape (n,), optional
        What counts as wrong; by default that of the predictions, or 0/1.
    method : str, optional
        A name in `abstain.thresholds.RULES`. By default "sgr" for `max_risk`,
        "coverage_guarantee" for `coverage` and "cost" for `abstention_cost`, as for the command;
        "learn_then_test" for `max_risk` with `ratio`.
    scale : {"log-odds", "probability", "score"}, optional
        What a confidence column is measured in. By default a probability where all of it lies in
        [0, 1], else a unit of its own. The scale of a computed score is known.
    per : {"group", "prediction"} or array of shape (n,), optional
        One threshold for each group of the predictions, each predicted class, or each of these
        groups, with the promise in each of them: see `abstain.thresholds.fit_groups`.
    joint : bool, default=False
        With `per`: whether the promises hold together with probability 1 - delta, or each does.
    limits : mapping from str to float, optional
        One threshold that keeps several risks, each at most this: of "overall", of each "group",
        "prediction" or "label" (the true class: its false negatives), or of one of them, such as
        "label:cat", all together with probability 1 - delta. `max_risk` is the limit "overall",
        ``risk="generalized"`` says which risk. See `abstain.thresholds.several_risks`.
    **options
        Of the rule, such as ``max_risk=0.05``; ``delta`` is 0.05 unless it is given.

    Returns
    -------
    DecisionRule
        The threshold with what it promises, for the score and on the scale named in it; or the
        reason why the target is unattainable. With `per` or `limits` the rule has parts, and a
        group too small for a promise has no threshold and is abstained on.

    Raises
    ------
    InputError
        Several data sets, several scores to choose from, or what the rule refuses; `per` the true
        class, which nobody knows when a sample is to be answered.
    UnknownNameError
        No score or rule of that name.
    MissingInputError
        The predictions lack what the score needs.

    Notes
    -----
    The threshold is on the scale of the score, `rule.scale`: that of "msr" is log-odds, since
    probabilities near 1 run together. ``rule.apply(predictions)`` and ``rule.apply(logits=...)``
    compute the score, as `check_rule` does; confidences on another scale are refused.

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> from abstain.evaluation import set_threshold
    >>> confidence = np.linspace(0.5, 1, 400)
    >>> wrong = (np.arange(400) % 4 == 0) & (confidence < 0.8)
    >>> predictions = ab.Predictions(confidence={"own": confidence}, loss=wrong)
    >>> rule = set_threshold(predictions, max_risk=0.05, delta=0.05)
    >>> rule.score, rule.attainable, 0.4 < rule.coverage < 0.6
    ('own', True, True)
    >>> shift = np.where(np.arange(400) % 3 == 0, "night", "day")
    >>> by_shift = set_threshold(predictions, per=shift, max_risk=0.1, delta=0.05)
    >>> [(part.name, part.rule.n, part.rule.accepted) for part in by_shift.parts]
    [('day', 266, 132), ('night', 134, 0)]
    """
    known: Any = read_calibration_set(predictions)
    known, loss, per = positive_weight_rows(known, loss, per)
    part = score_data(known, score, loss)
    if part.score is None:
        raise InputError(f"`predictions` must be a Predictions; got {type(predictions).__name__}")
    method = _method_for(method, per, limits, options, joint=joint)
    needs_loss = RULES[method].needs_loss or not (per is None and limits is None)
    if part.loss is None and needs_loss:
        raise MissingInputError(
            "`predictions` without labels choose no threshold that has to do with being right"
        )
    own = set_scale(part.score, scale)
    given = dict(options)
    if part.weight is not None:
        given.setdefault("weight", part.weight)
    if "delta" in RULES[method].options:
        given.setdefault("delta", DELTA)
    if limits is not None:
        rule = _within(part, merge_overall_limit(limits, given), known, given)
    elif per is not None:
        name, groups = resolve_groups(known, per)
        rule = fit_groups(method, part.values, part.loss, groups, per=name, joint=joint, **given)
    else:
        rule = fit_rule(method, part.values, part.loss, **given)
    # Other rules choose one of the confidences, which is on their scale.
    if rule.scale == "probability":
        rule = _on_scale(rule, own)
    return rule.for_score(own.name, scale=own.scale)


def _method_for(
    method: str | None, per: object, limits: object, options: Mapping[str, Any], *, joint: bool
) -> str:
    """Return the name of the rule: the requested one, or the default one of the target."""
    if joint and per is None:
        raise InputError(
            f"{format_option('joint')} is about the groups of {format_option('per')}; add it or "
            f"drop {format_option('joint')}"
        )
    if limits is None:
        return method or default_rule(options)
    if per is not None:
        raise InputError(
            f"{format_option('per')} gives each group a threshold, {format_option('limits')} all "
            f"of them one; drop {format_option('per')} or {format_option('limits')}"
        )
    if method not in {None, SEVERAL}:
        raise InputError(
            f"{format_option('limits')} takes the method {SEVERAL!r} alone; got {method!r}"
        )
    return SEVERAL


def merge_overall_limit(limits: Mapping[str, float], options: dict[str, Any]) -> dict[str, float]:
    """Return the limits, with `max_risk` as the overall one; it is taken out of the options."""
    overall = options.pop("max_risk", None)
    if overall is not None and limits.get(OVERALL, overall) != overall:
        raise InputError(
            f"{format_option('max_risk')} is the limit {OVERALL!r}, and there are two: {overall!r} "
            f"and {limits[OVERALL]!r}; drop one"
        )
    return dict(limits) if overall is None else {OVERALL: overall, **limits}


def _within(
    part: RuleData, limits: dict[str, float], known: Predictions, options: dict[str, Any]
) -> DecisionRule:
    """Choose one threshold that keeps several limits."""
    refuse_weights(options.pop("weight", None), method="several risks")
    asked = resolve_limits(limits, known, options.pop("risk", "selective"))
    unknown = sorted(options.keys() - {"delta", "starts", "ratio"})
    if unknown:
        takes = ", ".join(map(format_option, ("delta", "risk", "starts", "ratio")))
        raise InputError(
            f"{format_option('limits')} takes {takes} besides; got {format_option(unknown[0])}"
        )
    return several_risks(part.values, part.loss, asked, **options)


def _on_scale(rule: DecisionRule, own: ConfidenceScore) -> DecisionRule:
    """Bring a threshold on probabilities to the scale of the score."""
    if own.scale == "score":
        raise InputError(
            f"{RULES[rule.method].title} needs confidences that are probabilities; those of "
            f"{own.name!r} are none. Calibrate them, choose the threshold on data with "
            'method="cost", or say what they are with `scale` (--scale)'
        )
    if own.scale == "probability" or rule.threshold is None:
        return rule
    odds = np.clip(special.logit(rule.threshold), -MAX_LOG_ODDS, MAX_LOG_ODDS)
    return replace(rule, threshold=float(odds))
