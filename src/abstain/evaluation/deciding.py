"""`set_threshold` and `check_rule`: predictions and a score to a rule, and what it keeps."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import logit

from abstain.confidence import ConfidenceScore, Scorer
from abstain.errors import InputError
from abstain.evaluation._rule_checking import (
    as_probability,
    check_part,
    curve_for,
    is_binary,
)
from abstain.evaluation._rule_data import (
    FURTHEST,
    Part,
    as_said,
    named,
    on_scale_of,
    part_of,
)
from abstain.evaluation._rule_findings import findings_of, ordered
from abstain.evaluation.findings import sources
from abstain.evaluation.records import Finding
from abstain.evaluation.rule_checks import CHECK_COLUMNS, RuleChecks
from abstain.inference.proportions import level_of
from abstain.predictions import CostMatrix, Predictions
from abstain.thresholds import DecisionRule
from abstain.thresholds import fit as fit_rule
from abstain.typing import AnyArray, Scale, Split


def set_threshold(
    predictions: Predictions | Mapping[Split, Predictions],
    *,
    score: str | Scorer | None = None,
    loss: "str | CostMatrix | AnyArray | None" = None,
    method: str = "sgr",
    scale: Scale | None = None,
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
        hold one set.
    score : str or fitted score, optional
        A confidence column, a name of the catalogue, or what `abstain.confidence.fit` returned.
        By default the only confidence column, or "msr" where there are class scores alone.
    loss : str, CostMatrix or array of shape (n,), optional
        What counts as wrong; by default that of the predictions, or 0/1.
    method : str, default="sgr"
        A name in `abstain.thresholds.METHODS`.
    scale : {"log-odds", "probability", "score"}, optional
        What a confidence column is measured in. By default a probability where all of it lies in
        [0, 1], else a unit of its own. The scale of a computed score is known.
    **options
        Of the method, such as ``max_risk=0.05, delta=0.05``.

    Returns
    -------
    DecisionRule
        The threshold with what it promises, for the score and on the scale named in it; or the
        reason why the target is unattainable.

    Raises
    ------
    InputError
        Several data sets, several scores to choose from, or what the method refuses.
    UnknownNameError
        No score or method of that name.
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
    """
    part, own = part_of(_only(predictions), score, loss)
    if own is None or part.loss is None:
        msg = f"`predictions` must be a Predictions; got {type(predictions).__name__}"
        raise InputError(msg)
    own = as_said(own, scale)
    given = dict(options)
    if part.weight is not None:
        given.setdefault("weight", part.weight)
    rule = fit_rule(method, part.values, part.loss, **given)
    rule = _on_scale(rule, own) if method == "chow" else rule
    return rule.for_score(own.name, scale=own.scale)


def _on_scale(rule: DecisionRule, own: ConfidenceScore) -> DecisionRule:
    """Bring a threshold on probabilities to the scale of the score."""
    if own.scale == "score":
        msg = (
            f"Chow's rule needs confidences that are probabilities; those of {own.name!r} are "
            'none. Calibrate them, choose the threshold on data with method="cost", or say what '
            "they are with `scale` (--scale)"
        )
        raise InputError(msg)
    if own.scale == "probability" or rule.threshold is None:
        return rule
    odds = np.clip(logit(rule.threshold), -FURTHEST, FURTHEST)
    return replace(rule, threshold=float(odds))


def _only(predictions: Predictions | Mapping[Split, Predictions]) -> object:
    if not isinstance(predictions, Mapping):
        return predictions
    if len(predictions) != 1:
        names = ", ".join(name for _, name, _ in named(predictions)[:8]) if predictions else "none"
        msg = (
            f"a threshold is chosen on one set of predictions; got {len(predictions)} ({names}). "
            "Pass the calibration set alone and the others to `check_rule`"
        )
        raise InputError(msg)
    return next(iter(predictions.values()))


def check_rule(
    rule: DecisionRule,
    predictions: Predictions | AnyArray | Mapping[Any, Any],
    *,
    score: str | Scorer | None = None,
    loss: "str | CostMatrix | AnyArray | None" = None,
    level: float = 0.95,
    scale: Scale | None = None,
    calibration: Predictions | None = None,
    notes: Sequence[str | Finding] = (),
) -> RuleChecks:
    """Check a decision rule on other data: achieved coverage and risk, and the excess per shift.

    Answers: does the threshold still keep its promise there, and if not, by how much is it off?

    Parameters
    ----------
    rule : DecisionRule
        From `set_threshold`, a function of `abstain.thresholds`, or a file.
    predictions : Predictions, array, or mapping from name or split to them
        The data sets, in the order in which they are shown: that of the severity of the shift. An
        array of shape (n,) holds confidences of samples whose labels are not known; of these only
        the coverage is checked. An empty mapping checks nothing.
    score : str or fitted score, optional
        By default the score of the rule. A score that was fitted must be passed.
    loss : str, CostMatrix or array of shape (n,), optional
        As for `set_threshold`; an array only for a single data set.
    level : float, default=0.95
        Of every interval.
    scale : {"log-odds", "probability", "score"}, optional
        What confidence columns and arrays are measured in, as for `DecisionRule.apply`.
    calibration : Predictions, optional
        The data that the rule was chosen on: for its risk-coverage curve, and to notice when they
        are among the data it is checked on.
    notes : sequence of str or Finding
        Sentences to carry into the findings, such as those of the reader of a file.

    Returns
    -------
    RuleChecks
        The rule, its calibration facts, a `RuleCheck` for each data set and, where predictions
        have a `group`, for each group, with `rows` and `frame`. A data set "holds" only where
        every group does.

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
    level = level_of(level)
    wanted = _score_of(rule, score)
    parts = [
        part_of(data, wanted, loss, name=name, split=split)[0]
        for split, name, data in named(predictions)
    ]
    _refuse_columns(parts)
    chosen_on = None if calibration is None else part_of(calibration, wanted, loss)[0]
    seen = [*parts, *([chosen_on] if chosen_on else [])]
    _refuse_mixture(seen, rule)
    checked = [check_part(rule, part, level, scale) for part in parts]
    found = tuple(whole for whole, *_ in checked)
    given = (calibration, *(data for _, _, data in named(predictions)))
    told = sources(notes, [data for data in given if isinstance(data, Predictions)])
    parts = [on_scale_of(rule, part, scale) for part in parts]
    chosen_on = None if chosen_on is None else on_scale_of(rule, chosen_on, scale)
    return RuleChecks(
        rule=rule,
        checks=found,
        groups=tuple(tuple(groups) for _, *groups in checked),
        splits=tuple(part.split for part in parts),
        level=level,
        curve=None if chosen_on is None else curve_for(rule, chosen_on),
        findings=ordered([*findings_of(rule, parts, checked, chosen_on), *told]),
        binary=all(is_binary(part) for part in seen),
        probability=as_probability(rule, seen),
    )


def _score_of(rule: DecisionRule, score: str | Scorer | None) -> str | Scorer | None:
    """Return the score to compute; refuse one that the rule is not for, and what is no rule."""
    given: object = rule
    if not isinstance(given, DecisionRule):
        msg = f"`rule` must be a DecisionRule; got {type(given).__name__}"
        raise InputError(msg)
    if score is None:
        return rule.score or None
    name = score if isinstance(score, str) else getattr(score, "name", "")
    if rule.score and name != rule.score:
        msg = (
            f"the rule is for the score {rule.score!r}; got {name!r}. A threshold of one score "
            "means nothing on the scale of another"
        )
        raise InputError(msg)
    return score


def _refuse_columns(parts: list[Part]) -> None:
    for column in (column for part in parts for column, _ in part.split):
        if column in CHECK_COLUMNS:
            msg = (
                f"the data are split by a column named {column!r}, which is also a column of the "
                "results; rename it"
            )
            raise InputError(msg)


def _refuse_mixture(parts: list[Part], rule: DecisionRule) -> None:
    """Refuse a score that is a column here and computed there: the scales may differ."""
    own = {part.own: part for part in parts if part.own is not None}
    if len(own) == 2:
        column, computed = own[True].name, own[False].name
        msg = (
            f"the score {rule.score!r} is a column of {column or 'the calibration data'!r} and is "
            f"computed from class scores in {computed or 'the calibration data'!r}; their scales "
            "may differ. Rename the column or drop it"
        )
        raise InputError(msg)
