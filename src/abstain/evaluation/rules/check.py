"""Check a decision rule on other data, with or without labels (`check_rule`)."""

from collections.abc import Iterator, Mapping, Sequence
from math import isnan
from typing import Any

from abstain._foundation.lazy_imports import special
from abstain._foundation.notes import Note
from abstain._foundation.scored import Scored
from abstain.confidence import ScoreState
from abstain.curves.risk_coverage import Kind, RiskCoverageCurve, curve_from_groups
from abstain.errors import InputError
from abstain.evaluation.inputs import check_split_columns, positive_weight_rows
from abstain.evaluation.notes import reading_notes
from abstain.evaluation.records import warnings_first
from abstain.evaluation.rules.conditions import answer_conditions
from abstain.evaluation.rules.data import (
    RuleData,
    add_rule_groups,
    convert_to_rule_scale,
    read_calibration_set,
    read_data_sets,
    score_data,
)
from abstain.evaluation.rules.notes import rule_notes
from abstain.evaluation.rules.outcomes import (
    add_positive_class,
    answer_outcomes,
    resolve_positive_class,
)
from abstain.evaluation.rules.record import CHECK_COLUMNS, ESTIMATES, RuleChecks
from abstain.evaluation.rules.remedies import find_remedies
from abstain.inference.intervals import check_level
from abstain.predictions import CostMatrix, Predictions
from abstain.shift import UnlabeledRisk, unlabeled_risk
from abstain.thresholds import DecisionRule, RuleCheck, check, check_groups, check_limits
from abstain.thresholds.scales import check_score_name
from abstain.typing import AnyArray, Scale, Split


def check_rule(
    rule: DecisionRule,
    predictions: Predictions | AnyArray | Mapping[Any, Any],
    *,
    score: str | ScoreState | None = None,
    loss: "str | CostMatrix | AnyArray | None" = None,
    level: float = 0.95,
    scale: Scale | None = None,
    calibration: Predictions | Any | None = None,
    positive: object = None,
    notes: Sequence[str | Note] = (),
) -> RuleChecks:
    """Compute the coverage, the risk and the excess over the target of a rule on other data.

    Answers: does the target of the rule hold on these data, and if not, how far is it exceeded?

    Parameters
    ----------
    rule : DecisionRule
        A decision rule from `set_threshold`, from a function of `abstain.thresholds`, or from a
        file.
    predictions : Predictions, array, or mapping from name or split to them
        The data sets, in the order of the output, for example by the severity of a shift. All
        inputs of `evaluate` are also accepted, such as a path, a dataframe, or a tuple of labels
        and probabilities. An array of shape (n,) contains confidences of unlabeled samples. For
        unlabeled samples, including predictions with ``unlabeled=True``, only the coverage is
        checked. If `calibration` is also passed, the risk of unlabeled samples is estimated (see
        `abstain.shift.unlabeled_risk`). If the mapping is empty, no data set is checked.
    score : str or fitted score, optional
        The confidence score. The default is the score for which the rule was selected. If the rule
        was selected for a fitted score, this score must be passed.
    loss : str, CostMatrix or array of shape (n,), optional
        Loss of a prediction, as for `set_threshold`. An array is only valid for a single data set.
    level : float, default=0.95
        Confidence level of all intervals.
    scale : {"log-odds", "probability", "score"}, optional
        Scale of confidence columns and arrays, as for `DecisionRule.apply`.
    calibration : Predictions, or an input of `evaluate`, optional
        The calibration data of the rule. If calibration data are passed, the result contains their
        risk-coverage curve, and a warning if a data set contains the same samples.
    positive : class name, optional
        The positive class for sensitivity, specificity, false negatives and false positives. The
        default is the second of two classes. For more than two classes, these numbers are only
        computed if the positive class is passed.
    notes : sequence of str or Note
        Notes to add to those of the check, such as the notes of a file reader.

    Returns
    -------
    RuleChecks
        The rule with a `RuleCheck` for each data set, and for each group if the predictions have
        a `group`. The verdict of a data set is "holds" only if the verdict of every group is
        "holds". If a rule has a threshold for each group, each group is checked with its threshold
        and target. If the rule has several limits, each limit is checked separately, and
        separately in each group with its own threshold. The method `disparities` compares the
        groups.

    Raises
    ------
    InputError
        If `rule` is not a decision rule, if it belongs to another score than `score`, if the score
        is a column of some data sets and computed in others, or if confidences may be on another
        scale than the threshold and `scale` is not passed.
    UnknownNameError, MissingInputError
        If a data set does not have the score.
    ShapeError, DomainError
        If values are invalid.

    Notes
    -----
    Each data set is checked separately. If the true risk equals the target, a 95% interval lies
    above the target with a probability of 2.5%. The verdicts of a data set and its groups hold
    jointly at the level (see `abstain.thresholds.check_groups`). For data sets with increasing
    severity of a shift, as in [1]_, the excess shows from which severity on the target is
    exceeded.

    References
    ----------
    .. [1] Jaeger et al. (2023), A call to reflect on evaluation practices for failure detection,
       https://arxiv.org/abs/2211.15259

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> from abstain.evaluation import check_rule
    >>> rule = ab.thresholds.DecisionRule("risk", 0.5, target=0.1)
    >>> sets = {
    ...     name: ab.Predictions(confidence=np.ones(100), loss=np.arange(100) < n_failures)
    ...     for name, n_failures in (("mild", 3), ("hard", 30))
    ... }
    >>> [(c.name, round(c.excess, 2), c.verdict) for c in check_rule(rule, sets).checks]
    [('mild', -0.07, 'holds'), ('hard', 0.2, 'broken')]
    """
    level = check_level(level)
    requested_score = _resolve_score(rule, score)
    named_sources = read_data_sets(predictions)
    calibration_data = None
    if calibration is not None:
        (calibration,) = positive_weight_rows(read_calibration_set(calibration))
        calibration_data = score_data(calibration, requested_score, loss)
    sources = [calibration, *(source for _, _, source in named_sources)]
    all_predictions = [source for source in sources if isinstance(source, Predictions)]
    n_classes = max((p.n_classes for p in all_predictions), default=0)
    positive_class = resolve_positive_class(all_predictions, positive)
    data_sets = [
        _score_data_set(rule, named_source, requested_score, loss, positive_class)
        for named_source in named_sources
    ]
    all_data = [data for data in (*data_sets, calibration_data) if data is not None]
    _check_data_sets(data_sets, all_data, rule)
    checks = [_check_data_set(rule, data, level, scale) for data in data_sets]
    data_sets = [convert_to_rule_scale(rule, data, scale) for data in data_sets]
    if calibration_data is not None:
        calibration_data = _prepare_calibration(rule, calibration_data, calibration, scale)
    converted = [data for data in (calibration_data, *data_sets) if data is not None]
    curve, group_curves = _calibration_curves(rule, calibration_data)
    remedies = find_remedies(rule, calibration_data, n_classes=n_classes)
    estimates = _estimate_risks(rule, data_sets, calibration_data)
    explained_groups = [remedy.group for remedy in remedies]
    all_notes = rule_notes(rule, data_sets, checks, calibration_data, explained_groups)
    all_notes += [*_estimate_notes(data_sets, estimates), *reading_notes(notes, all_predictions)]
    return RuleChecks(
        rule=rule,
        checks=tuple(overall for overall, *_ in checks),
        groups=tuple(tuple(groups) for _, *groups in checks),
        splits=tuple(data.split for data in data_sets),
        level=level,
        curve=curve,
        notes=warnings_first(all_notes),
        is_binary=all(data.s is None or data.s.is_binary for data in all_data),
        threshold_probability=_threshold_probability(rule, all_data),
        estimates=estimates,
        group_curves=group_curves,
        conditions=answer_conditions(rule, converted, n_classes=n_classes),
        positive=positive_class,
        outcomes=tuple(
            answer_outcomes(rule, data, checks_of_data, level)
            for data, checks_of_data in zip(data_sets, checks, strict=True)
        ),
        remedies=remedies,
    )


def _score_data_set(
    rule: DecisionRule,
    named_source: tuple[Split, str, object],
    score: str | ScoreState | None,
    loss: "str | CostMatrix | AnyArray | None",
    positive_class: str,
) -> RuleData:
    """Return the confidences, losses, groups and classes of a data set."""
    split, name, source = named_source
    samples, losses = positive_weight_rows(source, loss, where=name)
    data = score_data(samples, score, losses, name=name, split=split)
    return add_positive_class(add_rule_groups(rule, data, samples), samples, positive_class)


def _prepare_calibration(
    rule: DecisionRule, data: RuleData, source: object, scale: Scale | None
) -> RuleData:
    """Return the calibration data with their groups, and with confidences on the rule's scale."""
    data = convert_to_rule_scale(rule, data, scale)
    has_parts = bool(rule.parts) and isinstance(source, Predictions)
    return add_rule_groups(rule, data, source) if has_parts else data


def _calibration_curves(
    rule: DecisionRule, calibration: RuleData | None
) -> tuple[RiskCoverageCurve | None, tuple[tuple[str, RiskCoverageCurve], ...]]:
    """Return the curve of the calibration data, or the curve of each group of the rule."""
    if calibration is None or calibration.s is None:
        return None, ()
    samples, groups = calibration.s, calibration.threshold_group
    kind: Kind = "generalized" if rule.quantity == "generalized risk" else "selective"
    if not rule.per:
        return curve_from_groups(samples.groups, kind), ()
    if groups is None:
        return None, ()
    curves = []
    for name in rule.names:
        is_in_group = groups == name
        if is_in_group.any():
            weight = None if samples.weight is None else samples.weight[is_in_group]
            subset = Scored(samples.confidence[is_in_group], samples.loss[is_in_group], weight)
            curves.append((name, curve_from_groups(subset.groups, kind)))
    return None, tuple(curves)


def _resolve_score(rule: DecisionRule, score: str | ScoreState | None) -> str | ScoreState | None:
    """Return the score to compute; raise InputError if the rule was selected for another score."""
    if not isinstance(rule, DecisionRule):
        raise InputError(f"`rule` must be a DecisionRule; got {type(rule).__name__}")
    if score is None:
        return rule.score or None
    check_score_name(rule.score, score if isinstance(score, str) else getattr(score, "name", ""))
    return score


def _check_data_sets(
    data_sets: list[RuleData], all_data: list[RuleData], rule: DecisionRule
) -> None:
    """Raise InputError for reserved column names, or if a score has different origins.

    A score is either a column or computed from class scores. Their scales may differ.
    """
    check_split_columns((data.split for data in data_sets), (*CHECK_COLUMNS, *ESTIMATES))
    by_origin = {data.is_column: data for data in all_data if data.is_column is not None}
    if len(by_origin) < 2:
        return
    column, computed = by_origin[True].name, by_origin[False].name
    raise InputError(
        f"the score {rule.score!r} is a column of {column or 'the calibration data'!r} and is "
        f"computed from class scores in {computed or 'the calibration data'!r}; their scales "
        "may differ. Rename the column or drop it"
    )


def _check_data_set(
    rule: DecisionRule, data: RuleData, level: float, scale: Scale | None
) -> tuple[RuleCheck, ...]:
    """Return the check of a data set, followed by the checks of its groups."""
    # If the scale of the rule is unknown, the confidences are not converted, and a note warns.
    use_values = data.score is None or (rule.scale == "unknown" and not data.is_column)
    confidence: AnyArray = data.values if use_values else data.score
    options: dict[str, Any] = {
        "name": data.name,
        "weight": data.weight,
        "level": level,
        "scale": scale,
    }
    try:
        if data.limit_masks is not None and not rule.per:
            return check_limits(rule, confidence, data.loss, data.limit_masks, **options)
        if data.group is None:
            return (check(rule, confidence, data.loss, **options),)
        # If the rule has a threshold for each of these groups, each group uses its own threshold.
        threshold_group = None if data.threshold_group is data.group else data.threshold_group
        return check_groups(
            rule,
            confidence,
            data.loss,
            data.group,
            rule_group=threshold_group,
            masks=data.limit_masks,
            **options,
        )
    except InputError as error:
        raise type(error)(f"{data.name}: {error}") from error


def _threshold_probability(rule: DecisionRule, data_sets: list[RuleData]) -> float | None:
    """Return the threshold as a probability, or None if the threshold cannot be converted."""
    if rule.scale == "log-odds":
        return rule.threshold_on("probability")
    is_in_log_odds = any(data.is_in_log_odds for data in data_sets)
    if rule.scale == "unknown" and rule.threshold is not None and is_in_log_odds:
        return float(special.expit(rule.threshold))
    return None


def _estimate_risks(
    rule: DecisionRule, data_sets: Sequence[RuleData], calibration: RuleData | None
) -> tuple[UnlabeledRisk | None, ...]:
    """Return the estimated selective risk of each data set, or None for labeled data sets.

    The estimate requires a rule with one threshold, and calibration data with 0/1 losses and
    without frequency weights.
    """
    no_estimates = (None,) * len(data_sets)
    samples = None if calibration is None else calibration.s
    if rule.parts or samples is None or rule.threshold is None:
        return no_estimates
    # For a guarantee about another population, the weights are density ratios.
    has_frequency_weights = samples.weight is not None and not rule.population
    if not samples.is_binary or has_frequency_weights:
        return no_estimates
    estimates: list[UnlabeledRisk | None] = []
    for data in data_sets:
        estimate = None
        if data.loss is None:
            estimate = unlabeled_risk(
                samples.confidence,
                samples.loss,
                data.values,
                threshold=rule.threshold,
                ratio=samples.weight,
            )
        estimates.append(estimate)
    return tuple(estimates)


def _estimate_notes(
    data_sets: Sequence[RuleData], estimates: Sequence[UnlabeledRisk | None]
) -> Iterator[Note]:
    """Yield a note with the estimated risk of each unlabeled data set."""
    for data, estimate in zip(data_sets, estimates, strict=True):
        if estimate is None or estimate.accepted == 0:
            continue
        reweighted = ""
        if not isnan(estimate.reweighted):
            reweighted = f", {100 * estimate.reweighted:.3g}% by density ratios"
        yield Note(
            "estimated_risk",
            f"{data.name}: the data have no labels, so the risk is only estimated, without a "
            f"guarantee. Estimated selective risk: {100 * estimate.mean_confidence:.3g}% by "
            f"calibrated confidence, {100 * estimate.thresholded_confidence:.3g}% by thresholded "
            f"confidence (ATC){reweighted}. On the calibration data it was "
            f"{100 * estimate.calibration_risk:.3g}%. The estimates miss errors that do not occur "
            "in the calibration data, such as those on new classes.",
        )
