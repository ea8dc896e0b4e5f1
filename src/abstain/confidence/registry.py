"""Define the catalogue of confidence scores, and compute scores by name."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, cast

from abstain._foundation import checks
from abstain._foundation.catalogue import Catalogue
from abstain.confidence import kernels, logit_scores, monte_carlo, softmax_scores
from abstain.confidence.entry import ConfidenceScore, Score
from abstain.confidence.fitted_score import ScoreState
from abstain.errors import InputError, MissingInputError
from abstain.predictions import Predictions
from abstain.typing import Array, FloatArray

_TEMPERATURE_MARK = "@T="

#: All built-in confidence scores, in the order of reports.
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
):
    SCORES.add(_entry)

#: Default score of predictions with class scores, and the reference method in comparisons.
BASELINE: Final = softmax_scores.MSR.name


def find_score(name: str) -> Score:
    """Return the catalogue entry for a name such as "msr" or "msr@T=1.5".

    Parameters
    ----------
    name : str
        A name in `SCORES`, or "NAME@T=TEMPERATURE".

    Returns
    -------
    Score
        The catalogue entry, with the temperature in the name.

    Raises
    ------
    UnknownNameError
        If no score has this name.
    InputError
        If the temperature is not a positive number, or if the score has no temperature.

    Examples
    --------
    >>> find_score("msr@T=2").name
    'msr@T=2'
    """
    base, separator, temperature = name.partition(_TEMPERATURE_MARK)
    if not separator:
        return SCORES[name]
    # `with_temperature` raises the error for a temperature that is not a number.
    return SCORES[base].with_temperature(cast("float", temperature))


def score(
    name: str | ScoreState, predictions: Predictions, *, temperature: float | None = None
) -> ConfidenceScore:
    """Compute the confidence of each sample by one score.

    Parameters
    ----------
    name : str or ScoreState
        Name of a confidence column in the predictions, a name in `SCORES`,
        "NAME@T=TEMPERATURE", or a fitted score. A column takes precedence over a score with the
        same name.
    predictions : Predictions
        Output of the model. Its labels are not used.
    temperature : float, optional
        Number that divides the logits, for scores that have a temperature.

    Returns
    -------
    ConfidenceScore
        Name and values of shape (n,), and probabilities if the score determines them. If all values
        of a confidence column are in [0, 1], they are treated as probabilities.

    Raises
    ------
    UnknownNameError
        If no column and no score has this name.
    MissingInputError
        If the predictions lack a required input of the score.
    InputError
        If a temperature is passed twice, or if the score has no temperature.

    Examples
    --------
    >>> p = Predictions(logits=[[2.0, 0.0], [0.0, 1.0]], labels=[0, 0])
    >>> score("msr", p).values.tolist()
    [2.0, 1.0]
    >>> score("msr", p).probability.round(4).tolist()
    [0.8808, 0.7311]
    """
    if not isinstance(name, str):
        return _apply_fitted_score(name, predictions, temperature)
    if name in (predictions.confidence or {}):
        return _user_column(name, predictions.confidence[name], temperature)
    entry = find_score(name)
    if temperature is not None:
        if _TEMPERATURE_MARK in name:
            raise InputError(
                f"`temperature` is set twice: by the name {name!r} and as {temperature!r}"
            )
        entry = entry.with_temperature(temperature)
    missing = entry.reason_not_applicable(predictions)
    if missing:
        usable = ", ".join(map(repr, applicable(predictions))) or "none"
        raise MissingInputError(f"the score {name!r} {missing}; these predictions allow {usable}")
    return entry.evaluate(predictions)


def score_many(
    names: Sequence[str | ScoreState], predictions: Predictions
) -> Iterator[ConfidenceScore]:
    """Yield the result of each score."""
    score_names = [name for name in names if isinstance(name, str)]
    shared_values = _scores_in_one_pass(score_names, predictions)
    for name in names:
        if isinstance(name, str) and name in shared_values:
            yield SCORES[name].result(shared_values[name])
        else:
            yield score(name, predictions)


def _scores_in_one_pass(names: Sequence[str], predictions: Predictions) -> dict[str, FloatArray]:
    """Compute several scores in one pass over the class probabilities.

    If there are few classes, the result is empty, because separate passes are as fast.
    """
    shared_kernels: dict[str, kernels.Kernel] = {}
    for name in names:
        if name not in SCORES or name in (predictions.confidence or {}):
            continue
        entry = SCORES[name]
        is_applicable = not entry.reason_not_applicable(predictions)
        if entry.kernel and is_applicable and not entry.is_multiplied_by_temperature:
            shared_kernels[name] = entry.kernel
    scores = predictions.class_scores if shared_kernels else None
    if scores is None:
        return {}
    n_classes = scores.values.shape[1]
    if n_classes < 4 * len(shared_kernels):
        return {}
    return kernels.apply_in_one_pass(shared_kernels, scores)


def applicable(predictions: Predictions) -> tuple[str, ...]:
    """Return the names of all scores that can be computed, including confidence columns.

    Parameters
    ----------
    predictions : Predictions
        Output of the model.

    Returns
    -------
    tuple of str
        Valid names for `score`: first confidence columns, then built-in scores.

    Examples
    --------
    >>> applicable(Predictions(prediction=[0, 1], labels=[0, 0], confidence=[0.9, 0.6]))
    ('confidence',)
    """
    names = list(predictions.confidence or {})
    for name, entry in SCORES.items():
        if name not in names and not entry.reason_not_applicable(predictions):
            names.append(name)
    return tuple(names)


def _apply_fitted_score(
    state: Any, predictions: Predictions, temperature: float | None
) -> ConfidenceScore:
    """Apply a fitted score to predictions, and validate the confidences."""
    if not isinstance(state, ScoreState) or isinstance(state, type):
        raise InputError(f"a score must be a name or a fitted score; got {state!r}")
    if temperature is not None:
        raise InputError(f"the fitted score {state.name!r} has no option `temperature`; drop it")
    result = state.score(predictions)
    checks.confidence(result.values, f"the score {result.name!r}", length=predictions.n)
    return result


def _user_column(name: str, values: Array, temperature: float | None) -> ConfidenceScore:
    """Return a confidence column as a `ConfidenceScore`."""
    if temperature is not None:
        raise InputError(f"the confidence column {name!r} has no temperature; drop `temperature`")
    is_probability = bool(values.min() >= 0 and values.max() <= 1)
    probability = values if is_probability else None
    return ConfidenceScore(name, values, probability, is_user_column=True)
