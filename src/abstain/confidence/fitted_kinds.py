"""The catalogue of fitted confidence scores, and functions that fit or restore a score by name."""

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

#: All fitted confidence scores, in the order of the documentation.
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


#: Field names in files of earlier versions and their current names, for each kind of score.
_OLD_FIELD_NAMES = {"rank": {"steps": "fitted_values", "places": "ranks"}}


def fit(
    name: str,
    predictions: Predictions,
    *,
    criterion: Criterion | ScoreCriterion | None = None,
    **options: Any,
) -> FittedScore:
    """Fit a confidence score on predictions.

    The fitted score can then compute the confidences of other samples without their labels.

    Parameters
    ----------
    name : str
        A name in `FITTED`.
    predictions : Predictions
        Training samples for scores of features. Held-out samples for scores that select a
        parameter by `criterion` or learn from correct and incorrect predictions.
    criterion : callable, optional
        Function of confidence (n,) and loss (n,) that returns a number, such as `abstain.augrc`;
        lower is better. Only "pnorm" and "temperature" use it. `abstain.fit_score` accepts the
        name of a metric instead.
    **options : optional
        Options of the score. ``FITTED[name].options`` lists them, and `docs/scores.md` explains
        them.

    Returns
    -------
    FittedScore
        The fitted score. Use ``.score(predictions)`` or ``score(state, predictions)`` to score
        other samples.

    Raises
    ------
    UnknownNameError
        If no score has this name.
    MissingInputError
        If an option is missing, or if the predictions lack a required input, such as features.
    DomainError
        If a class has too few samples, a covariance is singular, or a value is out of range.
    ShapeError
        If the shapes of last layer and features disagree.
    InputError
        If the score has no such option or does not support sample weights.

    Notes
    -----
    The cost depends on the score, for n samples with d features. Gaussian scores and ViM compute a
    matrix product with n d^2 operations. "knn" copies the features, and its costly step is scoring.
    "react" and "rank" sort the values. A search evaluates the criterion once per candidate.

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
    entry = find_fitted_kind(name)
    source: object = predictions
    if not isinstance(source, Predictions):
        raise InputError(f"`predictions` must be a Predictions; got {type(source).__name__}")
    _check_options(entry, options)
    if reason := entry.reason_not_applicable(predictions):
        raise MissingInputError(
            f"the score {name!r} {reason} to be fitted; pass it to the predictions"
        )
    _check_weights(entry, predictions)
    if entry.searches:
        return entry.fit(predictions, **{**entry.options, **options}, criterion=criterion)
    if criterion is not None:
        raise InputError(f"the score {name!r} searches nothing; drop `criterion`")
    return entry.fit(predictions, **{**entry.options, **options})


def from_arrays(plain: Mapping[str, Any], arrays: Mapping[str, Array]) -> FittedScore:
    """Restore a fitted score from the dictionaries that `FittedScore.to_arrays` returns.

    Parameters
    ----------
    plain : mapping
        Plain values by field name, and "kind", the name of the score in `FITTED`.
    arrays : mapping from str to ndarray
        Arrays by field name.

    Returns
    -------
    FittedScore
        The restored score.

    Raises
    ------
    InputError
        If a field is missing, unknown or invalid. The message names the field.

    Examples
    --------
    >>> import abstain.confidence as confidence
    >>> p = Predictions(logits=[[2.0, 0.0], [0.0, 1.0]], labels=[0, 0])
    >>> state = confidence.fit("temperature", p, temperature=2.0)
    >>> confidence.from_arrays(*state.to_arrays()).name
    'msr@T=2'
    """
    fields_, remaining_arrays = dict(plain), dict(arrays)
    kind = json_records.pop_kind(fields_, FITTED)
    if isinstance(fields_.get("parts"), list | tuple):
        fields_["parts"] = [
            _restore_part(f"parts.{i}.", x, remaining_arrays)
            for i, x in enumerate(fields_["parts"])
        ]
    elif "parts" in fields_:
        # The wrong type of `parts` raises an error below, so the arrays of parts are ignored.
        remaining_arrays = {
            name: x for name, x in remaining_arrays.items() if not name.startswith("parts.")
        }
    if duplicates := fields_.keys() & remaining_arrays.keys():
        raise InputError(f"`{min(duplicates)}` occurs twice: as an array and as a plain value")
    state = FITTED[kind].state
    for old_name, new_name in _OLD_FIELD_NAMES.get(kind, {}).items():
        if old_name in remaining_arrays:
            remaining_arrays[new_name] = remaining_arrays.pop(old_name)
    # Files of earlier versions lack the fields that have a default.
    defaults = {f.name: f.default for f in fields(state) if f.default is not MISSING}
    return records.from_fields(
        state, {**defaults, **fields_, **remaining_arrays}, f"the fitted score {kind!r}"
    )


def _restore_part(prefix: str, x: Any, arrays: dict[str, Array]) -> Any:
    """Restore one part of a composite score, and remove its arrays from `arrays`."""
    if not isinstance(x, Mapping):
        return x
    names = [name for name in arrays if name.startswith(prefix)]
    return from_arrays(x, {name.removeprefix(prefix): arrays.pop(name) for name in names})


def find_fitted_kind(name: str) -> FittedKind:
    """Return the entry of a fitted score. An unknown name raises an error with a suggestion."""
    source: object = name
    if not isinstance(source, str):
        raise InputError(
            f"`name` must be the name of a fitted score, such as 'knn'; got {source!r}"
        )
    return FITTED[name]


def _check_options(entry: FittedKind, options: Mapping[str, Any]) -> None:
    """Raise an error if an option is unknown or a required option is missing."""
    option_names = (*entry.required, *entry.options)
    for name in options:
        if name not in option_names:
            available = f"it has {', '.join(option_names)}" if option_names else "it has none"
            raise InputError(
                f"the score {entry.name!r} has no option {name!r}; "
                f"{available}.{suggest(name, option_names)}"
            )
    for name in entry.required:
        if name not in options:
            raise MissingInputError(f"the score {entry.name!r} needs the option `{name}`")


def _check_weights(entry: FittedKind, predictions: Predictions) -> None:
    """Raise an InputError if the weights are unequal and the score does not support weights."""
    weight = predictions.weight
    if weight is not None and not entry.weighted and np.ptp(weight) > 0:
        raise InputError(
            f"the score {entry.name!r} cannot be fitted with unequal weights. Drop the weights, or "
            "sample the rows in proportion to them first."
        )
