"""What an imported network says: scored by the methods it allows, on the images of a folder."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from abstain.errors import InputError
from abstain.predictions import Predictions
from abstain_bench.runs.importing.fd_shifts import ExposureOutputs, ResultsFolder
from abstain_bench.runs.methods import METHODS, FitData, Method, fit_all, methods_of
from abstain_bench.runs.outputs import EXTERNAL_COLUMNS
from abstain_bench.runs.specification.arms import INITIAL_OBJECTIVES
from abstain_bench.runs.store import VALIDATION, RunScores, Store

#: Scores of the level of the logits, which logits known up to a constant do not have.
LEVEL_SCORES: Final = frozenset({"dg_mls", "dg_energy"})


def scored(
    told: ResultsFolder, objective: str
) -> tuple[list[RunScores], dict[str, str], list[str]]:
    """Score every part by every method that can be computed for all of them.

    Also returned: why others could not score the network, by the name of the method, and what
    became of external confidences.
    """
    external, notes = _external(told, objective)
    notes += _suspect(told, objective)
    by_key = {part.facts.key: part for part in told.parts}
    valid = by_key[VALIDATION].outputs if VALIDATION in by_key else None
    methods, reasons = _possible(told, objective, valid)
    known = FitData(told.train, valid)
    known = replace(known, **dict(zip(("weight", "bias"), told.layer or (None, None), strict=True)))
    fitted = fit_all([method for method in methods if method.name not in external], known)
    out = []
    for part in told.parts:
        found = fitted.score(part.outputs)
        reasons |= found.reasons
        own = {name: part.external[column] for name, column in external.items()}
        both = {**found, **own}
        confidence = {m.name: both[m.name] for m in methods if m.name not in found.reasons}
        out.append(RunScores.from_outputs(part.facts.key, part.outputs, confidence, {}))
    common = [m for m in out[0].confidence if all(m in part.confidence for part in out)]
    return (
        [
            replace(part, confidence={m: part.confidence[m] for m in common}, reasons=reasons)
            for part in out
        ],
        reasons,
        notes,
    )


def _possible(
    told: ResultsFolder, objective: str, valid: Predictions | None
) -> tuple[list[Method], dict[str, str]]:
    """Return the methods that may be tried, and why others may not."""
    reasons: dict[str, str] = {}
    methods = []
    # What a network begins with is trained first, by itself.
    trained_by = filter(None, (objective, INITIAL_OBJECTIVES.get(objective)))
    for method in methods_of(trained_by, missing={"ensemble"}, all_scores=True):
        if "train" in method.fitted_splits and told.train is None:
            reasons[method.name] = (
                "it is fitted on training images, of which train_features.npz, last_layer.npz "
                "and encoded_output.npz are needed"
            )
        elif "validation" in method.fitted_splits and valid is None:
            reasons[method.name] = "it is fitted on validation data, and there are none"
        elif method.name in LEVEL_SCORES and not told.has_logit_level:
            reasons[method.name] = "the logits are known up to a constant for each image"
        else:
            methods.append(method)
    return methods, reasons


def _suspect(told: ResultsFolder, objective: str) -> list[str]:
    """Say where logits look like the probabilities that some versions stored in their place."""
    between = all(
        part.outputs.logits.min() >= 0 and part.outputs.logits.max() <= 1 for part in told.parts
    )
    if objective != "deep-gamblers" or not between:
        return []
    note = (
        "all logits lie in [0, 1]: versions of FD-Shifts before November 2023 stored probabilities "
        "of DeepGamblers networks in raw_logits.npz. If these are, import the folder with "
        "`stored_probabilities` (--stored-probabilities)"
    )
    return [note]


def _external(told: ResultsFolder, objective: str) -> tuple[dict[str, str], list[str]]:
    """Return which external confidences are which method, and what is not used."""
    there = [column for column in EXTERNAL_COLUMNS.values() if column in told.parts[0].external]
    names = {
        column: method.name
        for score, column in EXTERNAL_COLUMNS.items()
        for method in METHODS.values()
        if method.objective == objective and method.score == score
    }
    found: dict[str, str] = {}
    notes = []
    for column in there:
        everywhere = all(column in part.external for part in told.parts)
        if column in names and everywhere:
            found[names[column]] = column
            notes.append(f"the external confidences {column!r} are the method {names[column]!r}")
        else:
            why = "no method of such networks" if everywhere else "not there for all exposures"
            notes.append(f"the external confidences {column!r} are not used: {why}")
    return found, notes


def same_pictures(store: Store, parts: Sequence[ExposureOutputs]) -> tuple[ExposureOutputs, ...]:
    """Return the parts in the order of a store, with its places; refuse other images."""
    by_key = {part.facts.key: part for part in parts}
    wanted = [one.key for one in store.exposures]
    there = [key for key in by_key if key != VALIDATION]
    if set(there) != set(wanted):
        lacking = ", ".join(key for key in wanted if key not in there)
        surplus = ", ".join(key for key in there if key not in wanted)
        raise InputError(
            "all runs of a folder must be tested on the same exposures; of those of the folder "
            f"these are missing: {lacking or 'none'}; these are not in it: {surplus or 'none'}"
        )
    out = []
    for key in ([VALIDATION] if VALIDATION in by_key else []) + wanted:
        own, part = store.first_scores(key, logits=True), by_key[key]
        if own is None:
            out.append(part)
            continue
        _refuse_other(key, part.outputs, own)
        out.append(replace(part, outputs=replace(part.outputs, ids=own.source_indices)))
    return tuple(out)


def _refuse_other(key: str, outputs: Predictions, own: RunScores) -> None:
    classes = outputs.n_classes if own.logits is None else own.logits.shape[1]
    if outputs.n != own.n or outputs.n_classes != classes:
        raise InputError(
            f"the exposure {key!r} of the folder has {own.n:,} images and {classes} classes; got "
            f"{outputs.n:,} and {outputs.n_classes}"
        )
    if not np.array_equal(outputs.labels, own.labels):
        row = int(np.flatnonzero(outputs.labels != own.labels)[0])
        raise InputError(
            f"the exposure {key!r} must be of the same images in the same order as in the "
            f"folder, or nothing can be compared; the label of image {row} is "
            f"{own.labels[row]} there, and got {outputs.labels[row]}"
        )
