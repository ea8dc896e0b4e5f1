"""`check_rule`: a decision rule on other data, with labels or without."""

from collections.abc import Mapping, Sequence
from typing import Any

from abstain._foundation.lazy_imports import special
from abstain._foundation.notes import Note
from abstain.confidence import ScoreState
from abstain.curves.risk_coverage import Kind, curve_of
from abstain.errors import InputError
from abstain.evaluation.inputs import check_split_columns
from abstain.evaluation.notes import reading_notes
from abstain.evaluation.positive_weights import positive_weight_rows
from abstain.evaluation.records import warnings_first
from abstain.evaluation.rules.data import (
    RuleData,
    add_rule_groups,
    convert_to_rule_scale,
    read_calibration_set,
    read_data_sets,
    score_data,
)
from abstain.evaluation.rules.estimates import ESTIMATES, estimate_notes, estimate_risks
from abstain.evaluation.rules.notes import rule_notes
from abstain.evaluation.rules.record import CHECK_COLUMNS, RuleChecks
from abstain.inference.intervals import check_level
from abstain.predictions import CostMatrix, Predictions
from abstain.thresholds import DecisionRule, RuleCheck, check, check_groups, check_limits
from abstain.thresholds.scales import refuse_other
from abstain.typing import AnyArray, Scale


def check_rule(
    rule: DecisionRule,
    predictions: Predictions | AnyArray | Mapping[Any, Any],
    *,
    score: str | ScoreState | None = None,
    loss: "str | CostMatrix | AnyArray | None" = None,
    level: float = 0.95,
    scale: Scale | None = None,
    calibration: Predictions | Any | None = None,
    notes: Sequence[str | Note] = (),
) -> RuleChecks:
    """Check a decision rule on other data: achieved coverage and risk, and the excess per shift.

    Answers: does the threshold still keep its promise there, and if not, by how much is it off?

    Parameters
    ----------
    rule : DecisionRule
        From `set_threshold`, a function of `abstain.thresholds`, or a file.
    predictions : Predictions, array, or mapping from name or split to them
        The data sets, in the order in which they are shown: that of the severity of the shift.
        Also what `evaluate` opens: a path, a dataframe, a tuple of labels and probabilities. An
        array of shape (n,) holds confidences of samples whose labels are not known, as predictions
        with ``unlabeled=True`` are: of these only the coverage is checked, and with `calibration`
        the risk is estimated (`abstain.shift.unlabeled_risk`). An empty mapping checks nothing.
    score : str or fitted score, optional
        By default the score of the rule. A score that was fitted must be passed.
    loss : str, CostMatrix or array of shape (n,), optional
        As for `set_threshold`; an array only for a single data set.
    level : float, default=0.95
        Of every interval.
    scale : {"log-odds", "probability", "score"}, optional
        What confidence columns and arrays are measured in, as for `DecisionRule.apply`.
    calibration : Predictions, or what `evaluate` opens, optional
        The data that the rule was chosen on: for its risk-coverage curve, and to notice when they
        are among the data it is checked on.
    notes : sequence of str or Note
        Sentences to carry into the findings, such as those of the reader of a file.

    Returns
    -------
    RuleChecks
        The rule, its calibration facts, a `RuleCheck` for each data set and, where predictions
        have a `group`, for each group, with `rows` and `frame`. A data set "holds" only where
        every group does. Each group of a rule with parts is judged by its own threshold and
        promise, each limit by itself. `disparities` says how far apart the groups are.

    Raises
    ------
    InputError
        `rule` is no rule, the score of the rule is another one than `score`, or is a column in
        some of the data and computed in others; confidences that may be on another scale than
        the threshold, without `scale`.
    UnknownNameError, MissingInputError
        A data set lacks the score.
    ShapeError, DomainError
        Bad values.

    Notes
    -----
    Each data set is by itself: of twenty on which a rule keeps its promise, one in forty
    intervals of 95 % is above it by chance. The verdicts of a data set and its groups hold
    together at the level, as `abstain.thresholds.check_groups` says. The excess over shifts of
    rising severity shows where a promise breaks; [1]_ evaluates scores on such shifts.

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
    ...     name: ab.Predictions(confidence=np.ones(100), loss=np.arange(100) < wrong)
    ...     for name, wrong in (("mild", 3), ("hard", 30))
    ... }
    >>> [(c.name, round(c.excess, 2), c.verdict) for c in check_rule(rule, sets).checks]
    [('mild', -0.07, 'holds'), ('hard', 0.2, 'broken')]
    """
    level = check_level(level)
    requested_score = _score_of(rule, score)
    sets = read_data_sets(predictions)
    (calibration,) = positive_weight_rows(
        None if calibration is None else read_calibration_set(calibration)
    )
    parts = []
    for split, name, source in sets:
        data, per_sample = positive_weight_rows(source, loss, where=name)
        part = score_data(data, requested_score, per_sample, name=name, split=split)
        parts.append(add_rule_groups(rule, part, data))
    check_split_columns((part.split for part in parts), (*CHECK_COLUMNS, *ESTIMATES))
    chosen_on = None if calibration is None else score_data(calibration, requested_score, loss)
    all_parts = [*parts, *([chosen_on] if chosen_on else [])]
    _refuse_mixed_score(all_parts, rule)
    checked = [_checked(rule, part, level, scale) for part in parts]
    sources_of_notes = [calibration, *(source for *_, source in sets)]
    notes_of_readers = reading_notes(
        notes, [s for s in sources_of_notes if isinstance(s, Predictions)]
    )
    parts = [convert_to_rule_scale(rule, part, scale) for part in parts]
    curve = None
    if chosen_on is not None:
        chosen_on = convert_to_rule_scale(rule, chosen_on, scale)
        # Several thresholds are not on one curve.
        if chosen_on.s is not None and not rule.per:
            kind: Kind = "generalized" if rule.quantity == "generalized risk" else "selective"
            curve = curve_of(chosen_on.s.groups, kind)
    estimates = estimate_risks(rule, parts, chosen_on)
    notes_of_rule = [
        *rule_notes(rule, parts, checked, chosen_on),
        *estimate_notes(parts, estimates),
    ]
    return RuleChecks(
        rule=rule,
        checks=tuple(whole for whole, *_ in checked),
        groups=tuple(tuple(groups) for _, *groups in checked),
        splits=tuple(part.split for part in parts),
        level=level,
        curve=curve,
        notes=warnings_first([*notes_of_rule, *notes_of_readers]),
        is_binary=all(part.s is None or part.s.is_binary for part in all_parts),
        threshold_probability=_as_probability(rule, all_parts),
        estimates=estimates,
    )


def _score_of(rule: DecisionRule, score: str | ScoreState | None) -> str | ScoreState | None:
    """Return the score to compute; refuse one that the rule is not for, and what is no rule."""
    if not isinstance(rule, DecisionRule):
        raise InputError(f"`rule` must be a DecisionRule; got {type(rule).__name__}")
    if score is None:
        return rule.score or None
    refuse_other(rule.score, score if isinstance(score, str) else getattr(score, "name", ""))
    return score


def _refuse_mixed_score(parts: list[RuleData], rule: DecisionRule) -> None:
    """Refuse a score that is a column of some data and is computed on others."""
    by_origin = {part.is_column: part for part in parts if part.is_column is not None}
    if len(by_origin) == 2:
        column, computed = by_origin[True].name, by_origin[False].name
        raise InputError(
            f"the score {rule.score!r} is a column of {column or 'the calibration data'!r} and is "
            f"computed from class scores in {computed or 'the calibration data'!r}; their scales "
            "may differ. Rename the column or drop it"
        )


def _checked(
    rule: DecisionRule, part: RuleData, level: float, scale: Scale | None
) -> tuple[RuleCheck, ...]:
    """Return what the rule achieves on a data set, then on each of its groups."""
    # A rule without a recorded scale is compared with the numbers as they are; a note warns.
    is_bare = part.score is None or (rule.scale == "unknown" and not part.is_column)
    values: AnyArray = part.values if is_bare else part.score
    options: dict[str, Any] = {"name": part.name, "weight": part.weight, "level": level}
    options["scale"] = scale
    try:
        if part.limit_masks is not None:
            return check_limits(rule, values, part.loss, part.limit_masks, **options)
        if part.group is None:
            return (check(rule, values, part.loss, **options),)
        # In the groups of the rule itself, each is judged by its own part.
        by = None if part.threshold_group is part.group else part.threshold_group
        return check_groups(rule, values, part.loss, part.group, by=by, **options)
    except InputError as error:
        raise type(error)(f"{part.name}: {error}") from error


def _as_probability(rule: DecisionRule, parts: list[RuleData]) -> float | None:
    """Return the threshold as a probability, where it is known to be log-odds of one."""
    if rule.scale == "log-odds":
        return rule.threshold_on("probability")
    if (
        rule.scale != "unknown"
        or rule.threshold is None
        or not any(part.is_in_log_odds for part in parts)
    ):
        return None
    return float(special.expit(rule.threshold))
