"""`set_threshold`: predictions and a score to a decision rule."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from abstain._foundation.imports import special
from abstain.confidence import ConfidenceScore, ScoreState
from abstain.errors import InputError
from abstain.evaluation.rules.data import FURTHEST, as_said, data_of, named
from abstain.predictions import CostMatrix, Predictions
from abstain.thresholds import RULES, DecisionRule
from abstain.thresholds import fit as fit_rule
from abstain.thresholds.catalogue import USUAL
from abstain.typing import AnyArray, Scale, Split


def set_threshold(
    predictions: Predictions | Mapping[Split, Predictions],
    *,
    score: str | ScoreState | None = None,
    loss: "str | CostMatrix | AnyArray | None" = None,
    method: str = USUAL,
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
        A name in `abstain.thresholds.RULES`.
    scale : {"log-odds", "probability", "score"}, optional
        What a confidence column is measured in. By default a probability where all of it lies in
        [0, 1], else a unit of its own. The scale of a computed score is known.
    **options
        Of the rule, such as ``max_risk=0.05, delta=0.05``.

    Returns
    -------
    DecisionRule
        The threshold with what it promises, for the score and on the scale named in it; or the
        reason why the target is unattainable.

    Raises
    ------
    InputError
        Several data sets, several scores to choose from, or what the rule refuses.
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
    """
    part = data_of(_only(predictions), score, loss)
    if part.scored is None or part.loss is None:
        msg = f"`predictions` must be a Predictions; got {type(predictions).__name__}"
        raise InputError(msg)
    own = as_said(part.scored, scale)
    given = dict(options)
    if part.weight is not None:
        given.setdefault("weight", part.weight)
    rule = fit_rule(method, part.values, part.loss, **given)
    # Other rules choose one of the confidences, which is on their scale.
    rule = _on_scale(rule, own) if rule.scale == "probability" else rule
    return rule.for_score(own.name, scale=own.scale)


def _on_scale(rule: DecisionRule, own: ConfidenceScore) -> DecisionRule:
    """Bring a threshold on probabilities to the scale of the score."""
    if own.scale == "score":
        msg = (
            f"{RULES[rule.method].title} needs confidences that are probabilities; those of "
            f"{own.name!r} are none. Calibrate them, choose the threshold on data with "
            'method="cost", or say what they are with `scale` (--scale)'
        )
        raise InputError(msg)
    if own.scale == "probability" or rule.threshold is None:
        return rule
    odds = np.clip(special.logit(rule.threshold), -FURTHEST, FURTHEST)
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
