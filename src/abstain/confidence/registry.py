"""The catalogue of confidence scores, and how predictions are scored by name."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, cast

from abstain._foundation import checks
from abstain._foundation.catalogue import Catalogue
from abstain.confidence import kernels, logit_scores, monte_carlo, softmax_scores, waic
from abstain.confidence.entry import ConfidenceScore, Score
from abstain.confidence.fitted_score import ScoreState
from abstain.errors import InputError, MissingInputError
from abstain.predictions import Predictions
from abstain.typing import Array, FloatArray

_MARK = "@T="

#: Every built-in confidence score, in the order reports show them.
SCORES: Catalogue[Score] = Catalogue("score")
for _entry in (
    softmax_scores.MSR,
    logit_scores.MLS,
    softmax_scores.PE,
    softmax_scores.MARGIN,
    logit_scores.LOGIT_MARGIN,
    softmax_scores.GINI,
    softmax_scores.GEN,
    logit_scores.ENERGY,
    logit_scores.PNORM,
    *monte_carlo.ENTRIES,
    waic.WAIC,
):
    SCORES.add(_entry)

#: What class scores are scored by where nobody says how, and what others are compared with.
BASELINE: Final = softmax_scores.MSR.name


def find(name: str) -> Score:
    """Return the score of a name, with or without a temperature: "msr", "msr@T=1.5".

    Parameters
    ----------
    name : str
        A name in `SCORES`, or "NAME@T=TEMPERATURE".

    Returns
    -------
    Score
        Computed at that temperature.

    Raises
    ------
    UnknownNameError
        No score of that name.
    InputError
        A temperature that is no number above 0, or a score that has none.

    Examples
    --------
    >>> find("msr@T=2").name
    'msr@T=2'
    """
    base, mark, temperature = name.partition(_MARK)
    if not mark:
        return SCORES[name]
    # A text that is no number is refused there, by name and value.
    return SCORES[base].at(cast("float", temperature))


def score(
    name: str | ScoreState, predictions: Predictions, *, temperature: float | None = None
) -> ConfidenceScore:
    """Return the confidences of the samples under one score.

    Parameters
    ----------
    name : str or ScoreState
        One of the predictions' own confidence columns, a name in `SCORES`, or
        "NAME@T=TEMPERATURE". An own column comes before a built-in score of the same name. Or
        what `fit` returned, or anything else with a `name` and a method `score`.
    predictions : Predictions
        What the model said; labels are not looked at.
    temperature : float, optional
        Divides the logits, for scores that have a temperature.

    Returns
    -------
    ConfidenceScore
        Name, values (n,) with higher more confident, and probabilities where the score means
        one. An own column within [0, 1] is its own probability.

    Raises
    ------
    UnknownNameError
        No column and no score of that name.
    MissingInputError
        The predictions lack what the score needs.
    InputError
        A temperature for a score that has none, for a fitted one, or one given twice.

    Examples
    --------
    >>> p = Predictions(logits=[[2.0, 0.0], [0.0, 1.0]], labels=[0, 0])
    >>> score("msr", p).values.tolist()
    [2.0, 1.0]
    >>> score("msr", p).probability.round(4).tolist()
    [0.8808, 0.7311]
    """
    if not isinstance(name, str):
        return _fitted(name, predictions, temperature)
    if name in (predictions.confidence or {}):
        return _own_column(name, predictions.confidence[name], temperature)
    entry = find(name)
    if temperature is not None:
        if _MARK in name:
            raise InputError(
                f"`temperature` is given twice: by the name {name!r} and as {temperature!r}"
            )
        entry = entry.at(temperature)
    missing = entry.missing(predictions)
    if missing:
        usable = ", ".join(map(repr, applicable(predictions))) or "none"
        raise MissingInputError(f"the score {name!r} {missing}; these predictions allow {usable}")
    return _of_values(entry, entry.compute(predictions))


def _of_values(entry: Score, values: FloatArray) -> ConfidenceScore:
    to_probability = entry.to_probability
    return ConfidenceScore(
        entry.name, values, None if to_probability is None else to_probability(values)
    )


def several(
    asked: Sequence[str | ScoreState], predictions: Predictions
) -> Iterator[ConfidenceScore]:
    """Compute several scores, one at a time but for those of many classes, which share a pass."""
    held = _together([name for name in asked if isinstance(name, str)], predictions)
    for one in asked:
        known = held.get(one) if isinstance(one, str) else None
        yield score(one, predictions) if known is None else _of_values(SCORES[str(one)], known)


def _together(names: Sequence[str], predictions: Predictions) -> dict[str, FloatArray]:
    """Return what one pass over the class scores gives, where it is small beside them."""
    built_in = [n for n in names if n in SCORES and n not in (predictions.confidence or {})]
    shared = {
        name: kernel
        for name in built_in
        if (kernel := SCORES[name].kernel) is not None
        and not (SCORES[name].times_temperature or SCORES[name].missing(predictions))
    }
    scores = predictions.class_scores if shared else None
    if scores is None or 4 * len(shared) > scores.values.shape[1]:
        return {}
    return kernels.in_one_pass(shared, scores)


def applicable(predictions: Predictions) -> tuple[str, ...]:
    """Return the names of the scores these predictions allow: own columns, then built-in ones.

    Parameters
    ----------
    predictions : Predictions
        What the model said.

    Returns
    -------
    tuple of str
        Names that `score` accepts, none twice.

    Examples
    --------
    >>> applicable(Predictions(prediction=[0, 1], labels=[0, 0], confidence=[0.9, 0.6]))
    ('confidence',)
    """
    own = tuple(predictions.confidence or {})
    return own + tuple(
        name for name, entry in SCORES.items() if name not in own and not entry.missing(predictions)
    )


def _fitted(state: Any, predictions: Predictions, temperature: float | None) -> ConfidenceScore:
    if not isinstance(state, ScoreState) or isinstance(state, type):
        raise InputError(f"a score must be given by name or as a fitted state; got {state!r}")
    if temperature is not None:
        raise InputError(
            f"the fitted score {state.name!r} has its own parameters; drop `temperature`"
        )
    found = state.score(predictions)
    checks.confidence(found.values, f"the score {found.name!r}", length=predictions.n)
    return found


def _own_column(name: str, values: Array, temperature: float | None) -> ConfidenceScore:
    if temperature is not None:
        raise InputError(f"the confidence column {name!r} has no temperature; drop `temperature`")
    inside = bool(values.min() >= 0 and values.max() <= 1)
    return ConfidenceScore(name, values, values if inside else None, own=True)
