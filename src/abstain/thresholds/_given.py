"""What a decision rule is applied to: confidences, or that from which they are computed."""

from typing import Any

import numpy as np

from abstain.confidence import ConfidenceScore, Scorer, score
from abstain.errors import InputError, MissingInputError
from abstain.predictions import Predictions
from abstain.typing import AnyArray


def one_of(confidence: object, logits: Any, probabilities: Any) -> object:
    """Return what was given: confidences, or predictions made of class scores."""
    given = [x for x in (confidence, logits, probabilities) if x is not None]
    if len(given) != 1:
        msg = (
            "give one of `confidence` (or predictions), `logits` and `probabilities`; "
            f"got {len(given)} of them"
        )
        raise (InputError if given else MissingInputError)(msg)
    if confidence is not None:
        return confidence
    rows = len(given[0]) if hasattr(given[0], "__len__") else 1
    # Of unknown truth, which no score looks at.
    return Predictions(logits=logits, probabilities=probabilities, loss=np.zeros(rows))


def scored(predictions: Predictions, wanted: str, state: Scorer | None) -> ConfidenceScore:
    """Return the confidences that a rule for the score `wanted` is about."""
    if not wanted and state is None:
        msg = "the rule names no score. Give its confidences, or name it: rule.for_score('msr')"
        raise MissingInputError(msg)
    return score(wanted if state is None else state, predictions)


def on_scale(
    found: ConfidenceScore, wanted: str, own: str, scale: str | None
) -> tuple[AnyArray, str | None]:
    """Return the values to compare with a threshold on the scale `own`, and what they are in.

    Parameters
    ----------
    found : ConfidenceScore
        A column of the caller's, of which nothing is known but what `scale` says, or computed.
    wanted : str
        The score of the rule; "" for any.
    own : str
        The scale of the threshold.
    scale : str or None
        What was said of the values.

    Returns
    -------
    tuple of ndarray of shape (n,) and str or None
        As `_scales.reached` takes them.
    """
    if wanted and found.name and found.name != wanted:
        msg = (
            f"the rule is for the score {wanted!r}; got {found.name!r}. A threshold of one score "
            "means nothing on the scale of another"
        )
        raise InputError(msg)
    if found.own:
        return found.values, scale
    if scale is not None and scale != found.scale:
        msg = (
            f"the score {found.name!r} is computed, and its scale is {found.scale!r}; got {scale!r}"
        )
        raise InputError(f"{msg}. Drop `scale` (--scale)")
    if found.scale == own:
        return found.values, "score"
    if own == "probability" and found.probability is not None:
        return found.probability, "score"
    return found.values, found.scale
