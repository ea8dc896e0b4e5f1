"""What a decision rule is chosen and checked on: confidences, losses and names by data set."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from abstain._foundation import checks
from abstain.confidence import ConfidenceScore, Scorer, applicable
from abstain.confidence import score as named_score
from abstain.errors import InputError, MissingInputError, UnknownNameError
from abstain.predictions import CostMatrix, Predictions, per_sample_loss
from abstain.typing import AnyArray, Array, FloatArray, Split


@dataclass(frozen=True, eq=False)
class Part:
    """One data set.

    Attributes
    ----------
    split : tuple of (column, value)
        What sets it apart, where columns do.
    name : str
        How people name it.
    values : ndarray of shape (n,)
        The confidences.
    loss : ndarray of shape (n,) or None
        None where nothing says what is right.
    weight : ndarray of shape (n,) or None
        Frequency weights.
    own : bool or None
        Whether the confidences are a column of the data; None where that is not known.
    log_odds : bool
        Whether they are known to be the log-odds of a probability.
    """

    split: Split
    name: str
    values: Array
    loss: Array | None
    weight: FloatArray | None
    own: bool | None
    log_odds: bool = False


def part_of(
    data: object,
    score: "str | Scorer | None",
    loss: "str | CostMatrix | AnyArray | None",
    *,
    name: str = "",
    split: Split = (),
) -> tuple[Part, ConfidenceScore | None]:
    """Score one data set; a bare array holds confidences of samples without labels."""
    if not isinstance(data, Predictions):
        values = checks.confidence(data, f"predictions[{name!r}]" if name else "predictions")
        return Part(split, name, values, None, None, None), None
    own = confidence_of(data, score, where=name)
    is_column = own.name in (data.confidence or {}) and not hasattr(score, "score")
    losses = per_sample_loss(data, loss)
    values, weight = own.values, data.weight
    return Part(split, name, values, losses, weight, is_column, is_log_odds(own)), own


def is_log_odds(own: ConfidenceScore) -> bool:
    """Tell whether the values of a score are the log-odds of its probabilities."""
    if own.probability is None or own.probability is own.values:
        return False
    return bool(np.allclose(expit(own.values), own.probability))


def confidence_of(
    predictions: Predictions, score: "str | Scorer | None", *, where: str = ""
) -> ConfidenceScore:
    """Return the confidences of one score, by default of the one that the data leave no doubt of.

    Raises
    ------
    InputError
        No score was named and the data allow several.
    UnknownNameError, MissingInputError
        The data lack what the score needs; the message says which scores they allow.
    """
    if score is None:
        score = _only_score(predictions)
    if not isinstance(score, str):
        return _fitted(predictions, score)
    try:
        return named_score(score, predictions)
    except (UnknownNameError, MissingInputError) as error:
        lacking = f"{where!r} has no score" if where else "these predictions have no score"
        usable = ", ".join(map(repr, applicable(predictions))) or "none"
        msg = f"{lacking} {score!r}; allowed there: {usable}"
        raise type(error)(msg) from error


def _only_score(predictions: Predictions) -> str:
    own: tuple[str, ...] = tuple(predictions.confidence or {})
    if len(own) == 1:
        return own[0]
    names = applicable(predictions)
    if not own and "msr" in names:
        return "msr"
    if not names:
        msg = (
            "these predictions allow no confidence score; give `confidence`, `logits` or "
            "`probabilities`"
        )
        raise MissingInputError(msg)
    listed = ", ".join(map(repr, names))
    msg = f"a rule is for one score: name it (`score`, --score). These predictions allow {listed}"
    raise InputError(msg)


def _fitted(predictions: Predictions, state: Any) -> ConfidenceScore:
    found = state.score(predictions) if callable(getattr(state, "score", None)) else None
    if not isinstance(found, ConfidenceScore):
        msg = f"`score` must be a name or a fitted score; got {type(state).__name__}"
        raise InputError(msg)
    return found


def named(data: object) -> list[tuple[Split, str, object]]:
    """Return the data sets with their splits and names; one alone is named "data".

    Parameters
    ----------
    data : Predictions, array, or mapping from name or split to them
        A split is a tuple of (column, value) pairs, as `read_predictions` returns them.

    Returns
    -------
    list of (split, name, data set)
        Names are short where they can be: the values of the columns.
    """
    if not isinstance(data, Mapping):
        return [((), "data", data)]
    keys = [_key(key) for key in data]
    short = [_name(key, full=False) for key in keys]
    clear = len(set(short)) == len(short)
    names = short if clear else [_name(key, full=True) for key in keys]
    splits: list[Split] = [() if isinstance(key, str) else key for key in keys]
    return list(zip(splits, names, data.values(), strict=True))


def _key(key: object) -> str | Split:
    if isinstance(key, str):
        return key
    if isinstance(key, tuple) and all(isinstance(p, tuple) and len(p) == 2 for p in key):
        return key
    msg = (
        "the keys of `predictions` must be names or tuples of (column, value) pairs, such as "
        f"(('study', 'iid'),); got {key!r}"
    )
    raise InputError(msg)


def _name(key: str | Split, *, full: bool) -> str:
    if isinstance(key, str):
        return key
    parts = [f"{column} = {value}" if full else value for column, value in key]
    return ", ".join(parts) or "data"
