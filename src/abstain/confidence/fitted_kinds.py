"""The catalogue of fitted confidence scores, and functions that fit or restore a score by name."""

from collections.abc import Mapping, Sequence
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

    To score other samples, the fitted score does not require labels.

    Parameters
    ----------
    name : str
        A name in `FITTED`.
    predictions : Predictions
        Use training samples for scores of features, and held-out samples for scores that use
        `criterion` or learn from correct and incorrect predictions.
    criterion : callable, optional
        Function of confidence (n,) and loss (n,) that returns a number, such as `abstain.augrc`;
        lower is better. Only the scores "pnorm" and "temperature" use a criterion.
        `abstain.fit_score` accepts the name of a metric instead.
    **options : optional
        Options of the score. The option names are in ``FITTED[name].options``, and `docs/scores.md`
        describes the options.

    Returns
    -------
    FittedScore
        The fitted score. To score other samples, call ``.score(predictions)`` or ``score(state,
        predictions)``.

    Raises
    ------
    UnknownNameError
        If no score has this name.
    MissingInputError
        If an option is missing, or if the predictions lack a required input, such as features.
    DomainError
        If a class has too few samples, a covariance is singular, or a value is out of range.
    ShapeError
        If the shapes of the last layer and the features are incompatible.
    InputError
        If the score has no such option or does not support sample weights.

    Notes
    -----
    For n samples with d features, Mahalanobis scores and ViM require n d^2 operations. "knn" only
    copies the features. "react" and "rank" sort numbers. With `criterion`, the criterion is
    evaluated once for each candidate value.

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
    reason = entry.reason_not_applicable(predictions)
    if reason:
        raise MissingInputError(
            f"the score {name!r} {reason} to be fitted; pass it to the predictions"
        )
    _check_weights(entry, predictions)
    all_options = {**entry.options, **options}
    if entry.searches:
        return entry.fit(predictions, criterion=criterion, **all_options)
    if criterion is not None:
        raise InputError(f"the score {name!r} searches nothing; drop `criterion`")
    return entry.fit(predictions, **all_options)


def from_arrays(plain: Mapping[str, Any], arrays: Mapping[str, Array]) -> FittedScore:
    """Restore a fitted score from the dictionaries that `FittedScore.to_arrays` returns.

    Parameters
    ----------
    plain : mapping
        JSON values by field name, including "kind", the name of the score in `FITTED`.
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
    plain_fields = dict(plain)
    kind = json_records.pop_kind(plain_fields, FITTED)
    array_fields = {name: x for name, x in arrays.items() if not _is_array_of_part(name, plain)}
    if isinstance(plain.get("parts"), list | tuple):
        plain_fields["parts"] = _restore_parts(plain["parts"], arrays)
    duplicates = plain_fields.keys() & array_fields.keys()
    if duplicates:
        raise InputError(f"`{min(duplicates)}` occurs twice: as an array and as a plain value")
    for old_name, new_name in _OLD_FIELD_NAMES.get(kind, {}).items():
        if old_name in array_fields:
            array_fields[new_name] = array_fields.pop(old_name)
    score_class = FITTED[kind].state
    # Files of earlier versions lack the fields that have a default.
    defaults = {f.name: f.default for f in fields(score_class) if f.default is not MISSING}
    values = {**defaults, **plain_fields, **array_fields}
    return records.from_fields(score_class, values, f"the fitted score {kind!r}")


def _is_array_of_part(name: str, plain: Mapping[str, Any]) -> bool:
    """Return whether an array belongs to a component of a composite score."""
    parts = plain.get("parts")
    if not isinstance(parts, list | tuple):
        # The wrong type of `parts` raises an error later, so all arrays of parts are ignored.
        return "parts" in plain and name.startswith("parts.")
    for i, part in enumerate(parts):
        if isinstance(part, Mapping) and name.startswith(f"parts.{i}."):
            return True
    return False


def _restore_parts(parts: Sequence[Any], arrays: Mapping[str, Array]) -> list[Any]:
    """Restore the fitted scores that are components of a composite score."""
    restored = []
    for i, part in enumerate(parts):
        if not isinstance(part, Mapping):
            restored.append(part)
            continue
        prefix = f"parts.{i}."
        part_arrays = {
            name.removeprefix(prefix): x for name, x in arrays.items() if name.startswith(prefix)
        }
        restored.append(from_arrays(part, part_arrays))
    return restored


def find_fitted_kind(name: str) -> FittedKind:
    """Return the catalogue entry of a fitted score."""
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
