"""The catalogue of confidence scores that need fitting, and how they are fitted by name."""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

import numpy as np

from abstain._foundation import json_records, records
from abstain._foundation.catalogue import Catalogue
from abstain.confidence import (
    activations,
    combined,
    distances,
    energies,
    neighbors,
    patterns,
    tuned,
)
from abstain.confidence.fitted_score import FittedKind, FittedScore
from abstain.confidence.registry import SCORES
from abstain.confidence.tuned import Criterion, ScoreCriterion
from abstain.errors import InputError, MissingInputError, suggest
from abstain.predictions import Predictions
from abstain.typing import Array

#: Every confidence score that needs fitting, in the order the documentation shows them.
FITTED: Catalogue[FittedKind] = Catalogue("fitted score", list_command="list scores")
for _kind in (
    *distances.ENTRIES,
    *neighbors.ENTRIES,
    *energies.ENTRIES,
    *activations.ENTRIES,
    *patterns.ENTRIES,
    *tuned.ENTRIES,
    *combined.ENTRIES,
):
    FITTED.add(_kind)
SCORES.add_redirect(
    FITTED,
    "the score {0!r} must be fitted first: `state = abstain.confidence.fit({0!r}, train)`, then "
    "`score(state, predictions)`",
)
FITTED.add_redirect(SCORES, "the score {0!r} needs no fitting: use `score({0!r}, predictions)`")


def fit(
    name: str,
    predictions: Predictions,
    *,
    criterion: Criterion | ScoreCriterion | None = None,
    **options: Any,
) -> FittedScore:
    """Fit a confidence score on predictions.

    Answers: what must this score know of the training data, to score other samples without
    looking at their labels?

    Parameters
    ----------
    name : str
        A name in `FITTED`.
    predictions : Predictions
        What to fit on: training samples for scores of features, held-out samples for those
        that choose a parameter by `criterion` or learn from right and wrong.
    criterion : callable, optional
        From confidence (n,) and loss (n,) to a number, lower is better, such as `abstain.augrc`;
        for "pnorm" and "temperature". `abstain.fit_score` takes a metric by name.
    **options : optional
        Of the score, listed in ``FITTED[name].options`` and explained in the documentation
        (`docs/scores.md`).

    Returns
    -------
    FittedScore
        Frozen; ``.score(predictions)`` or ``score(state, predictions)`` scores other samples.

    Raises
    ------
    UnknownNameError
        No such score.
    MissingInputError
        The predictions lack what the score needs, such as features.
    DomainError
        Too few samples of a class, a singular covariance, a value outside its range.
    ShapeError
        A last layer that does not fit the features.
    InputError
        An option that the score has not, one that is missing, or weights it cannot use.

    Notes
    -----
    Cost for n samples of d features: one product n d^2 for the Gaussian scores and ViM, a copy
    for "knn" (whose scoring is the costly part), a sort for "react" and "rank", one evaluation
    of the criterion for each candidate of a search.

    Examples
    --------
    >>> from abstain.confidence import fit, score
    >>> train = Predictions(
    ...     features=[[0.0, 0.0], [2.0, 0.0], [9.0, 9.0]], prediction=[0, 0, 1], labels=[0, 0, 1]
    ... )
    >>> state = fit("knn", train, k=2, normalize=False)
    >>> new = Predictions(features=[[1.0, 0.0], [9.0, 12.0]], prediction=[0, 1], labels=[0, 1])
    >>> score(state, new).values.round(3).tolist()
    [-1.0, -13.892]
    """
    entry = kind_named(name)
    given: object = predictions
    if not isinstance(given, Predictions):
        raise InputError(f"`predictions` must be a Predictions; got {type(given).__name__}")
    _refuse_options(entry, options)
    if missing := entry.missing(predictions):
        raise MissingInputError(
            f"the score {name!r} {missing} to be fitted; give it to the predictions"
        )
    _refuse_weights(entry, predictions)
    if entry.searches:
        return entry.fit(predictions, **{**entry.options, **options}, criterion=criterion)
    if criterion is not None:
        raise InputError(f"the score {name!r} searches nothing; drop `criterion`")
    return entry.fit(predictions, **{**entry.options, **options})


def from_arrays(plain: Mapping[str, Any], arrays: Mapping[str, Array]) -> FittedScore:
    """Make a fitted score from what its `to_arrays` gave.

    Answers: which score is this, and is everything it needs there and sound?

    Parameters
    ----------
    plain : mapping
        Plain values by field, and "kind", the name in `FITTED`.
    arrays : mapping from str to ndarray
        Arrays by field.

    Returns
    -------
    FittedScore
        Scores as the one that was taken apart.

    Raises
    ------
    InputError
        A field is missing, unknown, or holds what it cannot; the message names it.

    Examples
    --------
    >>> import abstain.confidence as confidence
    >>> p = Predictions(logits=[[2.0, 0.0], [0.0, 1.0]], labels=[0, 0])
    >>> state = confidence.fit("temperature", p, temperature=2.0)
    >>> confidence.from_arrays(*state.to_arrays()).name
    'msr@T=2'
    """
    found, rest = dict(plain), dict(arrays)
    kind = json_records.pop_kind(found, FITTED)
    if isinstance(found.get("parts"), list | tuple):
        found["parts"] = [_part(f"parts.{i}.", x, rest) for i, x in enumerate(found["parts"])]
    elif "parts" in found:
        # Of another kind than parts are, which is then said; their arrays are not looked at.
        rest = {name: x for name, x in rest.items() if not name.startswith("parts.")}
    if twice := found.keys() & rest.keys():
        raise InputError(f"`{min(twice)}` occurs twice: as an array and as a plain value")
    state = FITTED[kind].state
    # A field with a default was added later: older files are of that.
    later = {f.name: f.default for f in fields(state) if f.default is not MISSING}
    return records.from_fields(state, {**later, **found, **rest}, f"the fitted score {kind!r}")


def _part(place: str, x: Any, arrays: dict[str, Array]) -> Any:
    """Return a part, for which its arrays are taken out of those of the whole."""
    if not isinstance(x, Mapping):
        return x
    own = [name for name in arrays if name.startswith(place)]
    return from_arrays(x, {name.removeprefix(place): arrays.pop(name) for name in own})


def kind_named(name: str) -> FittedKind:
    """Return what the catalogue knows of a score that needs fitting, or say what is near."""
    given: object = name
    if not isinstance(given, str):
        raise InputError(f"`name` must be the name of a fitted score, such as 'knn'; got {given!r}")
    return FITTED[name]


def _refuse_options(entry: FittedKind, options: Mapping[str, Any]) -> None:
    known = (*entry.required, *entry.options)
    for name in options:
        if name not in known:
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise InputError(
                f"the score {entry.name!r} has no option {name!r}; {has}.{suggest(name, known)}"
            )
    for name in entry.required:
        if name not in options:
            raise MissingInputError(f"the score {entry.name!r} needs the option `{name}`")


def _refuse_weights(entry: FittedKind, predictions: Predictions) -> None:
    """Refuse weights that would be ignored; equal ones say nothing."""
    weight = predictions.weight
    if weight is not None and not entry.weighted and np.ptp(weight) > 0:
        raise InputError(
            f"the score {entry.name!r} is fitted on samples that count alike; these have weights. "
            "Drop them, or draw the samples by them first."
        )
