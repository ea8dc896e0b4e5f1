"""Choose a decision rule on calibration predictions (`set_threshold`)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from abstain._foundation.lazy_imports import special
from abstain._foundation.option_format import format_option
from abstain.confidence import ConfidenceScore, ScoreState
from abstain.errors import InputError, MissingInputError
from abstain.evaluation.inputs import positive_weight_rows
from abstain.evaluation.rules.data import (
    MAX_LOG_ODDS,
    read_calibration_set,
    score_data,
    set_scale,
)
from abstain.evaluation.rules.subsets import (
    GROUP,
    LABEL,
    OVERALL,
    resolve_groups,
    resolve_limits,
)
from abstain.predictions import CostMatrix, Predictions
from abstain.thresholds import RULES, DecisionRule, Limit, fit_groups, several_risks
from abstain.thresholds import fit as fit_rule
from abstain.thresholds.catalogue import DEFAULT_DELTA, SEVERAL_RISKS_RULE, default_rule
from abstain.thresholds.limits import check_no_weights
from abstain.thresholds.rule import PREDICTION
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

    Answers: at which confidence may the model answer, so that the target also holds on new data
    from the same distribution?

    Parameters
    ----------
    predictions : Predictions
        The calibration data. Do not include training samples of the model or of a fitted score, or
        samples on which you will check the rule. A mapping, such as the result of
        `read_predictions`, must contain a single data set. All inputs of `evaluate` are also
        accepted, such as a path, a dataframe, named arrays, or a tuple of labels and
        probabilities.
    score : str or fitted score, optional
        A confidence column, a registered score, or a fitted score from `abstain.confidence.fit`.
        The default is the only confidence column, or "msr" if there are only class scores.
    loss : str, CostMatrix or array of shape (n,), optional
        Loss of a prediction. The default is the loss of the predictions if they have one, and the
        0/1 loss otherwise.
    method : str, optional
        A name in `abstain.thresholds.RULES`. The default is "sgr" for `max_risk`,
        "learn_then_test" for `max_risk` with `ratio`, "coverage_guarantee" for `coverage` and
        "cost" for `abstention_cost`.
    scale : {"log-odds", "probability", "score"}, optional
        Scale of a confidence column. The default is "probability" if all values are in [0, 1], and
        "score" otherwise. For a score that is computed from predictions, the scale is known and
        need not be passed.
    per : {"group", "prediction"} or array of shape (n,), optional
        The grouping for a rule with one threshold for each group. "group" uses the groups of the
        predictions, "prediction" uses the predicted classes, and an array contains the group of
        each sample. The guarantee holds in each group (see `abstain.thresholds.fit_groups`).
    joint : bool, default=False
        Whether the guarantees of all groups hold jointly with probability 1 - delta. If False, each
        guarantee holds separately. The argument requires `per`.
    limits : mapping from str to float, optional
        Several limits on the risk that the threshold must respect. The limits hold jointly with
        probability 1 - delta. If `per` is passed, the limits hold jointly in each group. The key
        "overall" limits the risk of all samples. The keys "group", "prediction" and "label" limit
        the risk of each group, predicted class or true class. A key such as "label:cat" limits the
        risk of a single class. With 0/1 losses, the risk of a true class is its false-negative
        rate. `max_risk` is the limit "overall", and ``risk="generalized"`` selects the generalized
        risk. If a limit has no calibration samples in a group, the group has no threshold. See
        `abstain.thresholds.several_risks`.
    **options
        Options of the rule, such as ``max_risk=0.05``. The default of ``delta`` is 0.05.

    Returns
    -------
    DecisionRule
        The threshold and its guarantee, with the name and the scale of the score. If the target is
        unattainable, the rule has no threshold and states the reason. If `per` or `limits` is
        passed, the rule has parts. If both are passed, the part of each group has a part for each
        limit. If a group is too small for a guarantee, it has no threshold and its samples are
        rejected.

    Raises
    ------
    InputError
        If there are several data sets or several possible scores, if the rule rejects its options,
        or if `per` is the true class, which is unknown when a sample is answered.
    UnknownNameError
        If a score or rule does not exist.
    MissingInputError
        If the predictions do not have the inputs of the score.

    Notes
    -----
    The threshold is on the scale of the score, `rule.scale`. For "msr", the scale is log-odds,
    because different probabilities near 1 are rounded to the same number.
    ``rule.apply(predictions)`` and ``rule.apply(logits=...)`` compute the score, as does
    `check_rule`. If confidences are passed on another scale, an error is raised.

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> from abstain.evaluation import set_threshold
    >>> confidence = np.linspace(0.5, 1, 400)
    >>> is_failure = (np.arange(400) % 4 == 0) & (confidence < 0.8)
    >>> predictions = ab.Predictions(confidence={"score": confidence}, loss=is_failure)
    >>> rule = set_threshold(predictions, max_risk=0.05, delta=0.05)
    >>> rule.score, rule.attainable, 0.4 < rule.coverage < 0.6
    ('score', True, True)
    >>> shift = np.where(np.arange(400) % 3 == 0, "night", "day")
    >>> by_shift = set_threshold(predictions, per=shift, max_risk=0.1, delta=0.05)
    >>> [(part.name, part.rule.n, part.rule.accepted) for part in by_shift.parts]
    [('day', 266, 132), ('night', 134, 0)]
    """
    calibration_set: Any = read_calibration_set(predictions)
    calibration_set, loss, per = positive_weight_rows(calibration_set, loss, per)
    data = score_data(calibration_set, score, loss)
    if data.score is None:
        raise InputError(f"`predictions` must be a Predictions; got {type(predictions).__name__}")
    method = _resolve_method(method, per, limits, options, joint=joint)
    needs_loss = RULES[method].needs_loss or per is not None or limits is not None
    if data.loss is None and needs_loss:
        raise MissingInputError(
            f"the rule {method!r} needs labels or losses, and `predictions` have none"
        )
    scored = set_scale(data.score, scale)
    rule_options = dict(options)
    if data.weight is not None:
        rule_options.setdefault("weight", data.weight)
    if "delta" in RULES[method].options:
        rule_options.setdefault("delta", DEFAULT_DELTA)
    if limits is not None:
        limits = merge_overall_limit(limits, rule_options)
        rule_options["limits"] = _resolve_limits(limits, calibration_set, rule_options, per)
    if per is not None:
        name, groups = resolve_groups(calibration_set, per)
        rule = fit_groups(
            method, data.values, data.loss, groups, per=name, joint=joint, **rule_options
        )
    elif limits is not None:
        rule = several_risks(data.values, data.loss, **rule_options)
    else:
        rule = fit_rule(method, data.values, data.loss, **rule_options)
    # The thresholds of other rules are confidences, so they are already on the scale of the score.
    if rule.scale == "probability":
        rule = _convert_from_probability(rule, scored)
    return rule.for_score(scored.name, scale=scored.scale)


def _resolve_method(
    method: str | None, per: object, limits: object, options: Mapping[str, Any], *, joint: bool
) -> str:
    """Return the name of the requested rule, or of the default rule for the target."""
    joint_option, per_option = format_option("joint"), format_option("per")
    if joint and per is None:
        raise InputError(
            f"{joint_option} requires groups: add {per_option}, or drop {joint_option}"
        )
    if limits is None:
        return method or default_rule(options)
    if method not in {None, SEVERAL_RISKS_RULE}:
        raise InputError(
            f"{format_option('limits')} supports only the method {SEVERAL_RISKS_RULE!r}; got "
            f"{method!r}"
        )
    return SEVERAL_RISKS_RULE


def merge_overall_limit(limits: Mapping[str, float], options: dict[str, Any]) -> dict[str, float]:
    """Add `max_risk` to the limits as the overall limit, and remove it from the options."""
    overall = options.pop("max_risk", None)
    if overall is None:
        return dict(limits)
    if limits.get(OVERALL, overall) != overall:
        raise InputError(
            f"{format_option('max_risk')} is the limit {OVERALL!r}, and there are two values: "
            f"{overall!r} and {limits[OVERALL]!r}; drop one"
        )
    return {OVERALL: overall, **limits}


def _resolve_limits(
    limits: Mapping[str, float], predictions: Predictions, options: dict[str, Any], per: object
) -> list[Limit]:
    """Create the limits of a rule, and remove the options that define them."""
    _check_limits_per_group(limits, per)
    check_no_weights(options.pop("weight", None), method="several risks")
    resolved = resolve_limits(limits, predictions, options.pop("risk", "selective"))
    unsupported = sorted(options.keys() - {"delta", "starts", "ratio"})
    if unsupported:
        supported = ", ".join(map(format_option, ("delta", "risk", "starts", "ratio")))
        raise InputError(
            f"{format_option('limits')} can be combined with {supported}; got "
            f"{format_option(unsupported[0])}"
        )
    return resolved


def _check_limits_per_group(limits: Mapping[str, float], per: object) -> None:
    """Raise InputError for limits that cannot be combined with the groups of `per`."""
    is_per_prediction = isinstance(per, str) and per == PREDICTION
    same_as_per = PREDICTION if is_per_prediction else GROUP
    kinds = {name.partition(":")[0] for name in limits}
    if per is not None and same_as_per in kinds:
        raise InputError(
            f"with {format_option('per')}, every limit applies in each group: replace the limit "
            f"{same_as_per!r} by {OVERALL!r} ({format_option('max_risk')})"
        )
    if is_per_prediction and LABEL in kinds:
        raise InputError(
            f"among the samples of a predicted class, every answer to another true class is wrong: "
            f"drop the limit {LABEL!r}, or choose another {format_option('per')}"
        )


def _convert_from_probability(rule: DecisionRule, score: ConfidenceScore) -> DecisionRule:
    """Convert the threshold of a rule from a probability to the scale of the score."""
    if score.scale == "score":
        raise InputError(
            f"{RULES[rule.method].title} needs confidences that are probabilities; those of "
            f"{score.name!r} are not. Calibrate them, choose the threshold on data with "
            'method="cost", or pass their scale with `scale` (--scale)'
        )
    if score.scale == "probability" or rule.threshold is None:
        return rule
    log_odds = np.clip(special.logit(rule.threshold), -MAX_LOG_ODDS, MAX_LOG_ODDS)
    return replace(rule, threshold=float(log_odds))
