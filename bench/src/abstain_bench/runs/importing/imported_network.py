"""Scores of an imported network: applicable methods, external confidences, matching images."""

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

#: Scores that depend on the level of the logits, which is unknown for logits from probabilities.
LEVEL_SCORES: Final = frozenset({"dg_mls", "dg_energy"})


def score_network(
    results: ResultsFolder, objective: str
) -> tuple[list[RunScores], dict[str, str], list[str]]:
    """Score every exposure with every method that can be computed for all of them.

    Returns the scores, the reasons why other methods have none, and notes on the external
    confidences.
    """
    external_columns, notes = _match_external_confidences(results, objective)
    notes += _probability_notes(results, objective)
    by_key = {exposure.facts.key: exposure for exposure in results.exposures}
    validation = by_key[VALIDATION].outputs if VALIDATION in by_key else None
    methods, reasons = _applicable_methods(results, objective, validation)
    weight, bias = results.last_layer or (None, None)
    data = FitData(results.train, validation, weight, bias)
    fitted = fit_all([m for m in methods if m.name not in external_columns], data)
    scored = []
    for exposure in results.exposures:
        scores = fitted.score(exposure.outputs)
        reasons |= scores.reasons
        external = {name: exposure.external[c] for name, c in external_columns.items()}
        available = {**scores, **external}
        confidence = {m.name: available[m.name] for m in methods if m.name not in scores.reasons}
        key = exposure.facts.key
        scored.append(RunScores.from_outputs(key, exposure.outputs, confidence, {}))
    common = [m for m in scored[0].confidence if all(m in s.confidence for s in scored)]
    scored = [
        replace(s, confidence={m: s.confidence[m] for m in common}, reasons=reasons) for s in scored
    ]
    return scored, reasons, notes


def _applicable_methods(
    results: ResultsFolder, objective: str, validation: Predictions | None
) -> tuple[list[Method], dict[str, str]]:
    """Return the applicable methods, and the reasons why others are not."""
    reasons: dict[str, str] = {}
    methods = []
    # The initial classifier of a network was trained with its own objective.
    objectives = filter(None, (objective, INITIAL_OBJECTIVES.get(objective)))
    for method in methods_of(objectives, missing={"ensemble"}, all_scores=True):
        if "train" in method.fitted_splits and results.train is None:
            reasons[method.name] = (
                "it is fitted on training images, which requires train_features.npz, "
                "last_layer.npz and encoded_output.npz"
            )
        elif "validation" in method.fitted_splits and validation is None:
            reasons[method.name] = "it is fitted on validation data, which are missing"
        elif method.name in LEVEL_SCORES and not results.has_logit_level:
            reasons[method.name] = "the logits are known up to a constant for each image"
        else:
            methods.append(method)
    return methods, reasons


def _probability_notes(results: ResultsFolder, objective: str) -> list[str]:
    """Return a note if the logits look like probabilities, which some versions stored instead."""
    is_in_unit_interval = all(
        exposure.outputs.logits.min() >= 0 and exposure.outputs.logits.max() <= 1
        for exposure in results.exposures
    )
    if objective != "deep-gamblers" or not is_in_unit_interval:
        return []
    note = (
        "all logits lie in [0, 1]: versions of FD-Shifts before November 2023 stored probabilities "
        "of DeepGamblers networks in raw_logits.npz. If these are, import the folder with "
        "`stored_probabilities` (--stored-probabilities)"
    )
    return [note]


def _match_external_confidences(
    results: ResultsFolder, objective: str
) -> tuple[dict[str, str], list[str]]:
    """Return the column of external confidences by method, and notes on their use."""
    columns = [c for c in EXTERNAL_COLUMNS.values() if c in results.exposures[0].external]
    method_by_column = {
        column: method.name
        for score, column in EXTERNAL_COLUMNS.items()
        for method in METHODS.values()
        if method.objective == objective and method.score == score
    }
    column_by_method: dict[str, str] = {}
    notes = []
    for column in columns:
        if not all(column in exposure.external for exposure in results.exposures):
            reason = "not available for all exposures"
        elif column not in method_by_column:
            reason = "no method of such networks"
        else:
            method = method_by_column[column]
            column_by_method[method] = column
            notes.append(f"the external confidences {column!r} are the method {method!r}")
            continue
        notes.append(f"the external confidences {column!r} are not used: {reason}")
    return column_by_method, notes


def align_with_store(
    store: Store, exposures: Sequence[ExposureOutputs]
) -> tuple[ExposureOutputs, ...]:
    """Return exposures in the order of a store, with its source indices; reject other images."""
    by_key = {exposure.facts.key: exposure for exposure in exposures}
    required = [exposure.key for exposure in store.exposures]
    tested = [key for key in by_key if key != VALIDATION]
    if set(tested) != set(required):
        missing = ", ".join(key for key in required if key not in tested)
        surplus = ", ".join(key for key in tested if key not in required)
        raise InputError(
            "all runs of a folder must be tested on the same exposures; of those of the folder "
            f"these are missing: {missing or 'none'}; these are not in it: {surplus or 'none'}"
        )
    aligned = []
    for key in ([VALIDATION] if VALIDATION in by_key else []) + required:
        stored, exposure = store.first_scores(key, logits=True), by_key[key]
        if stored is None:
            aligned.append(exposure)
            continue
        _check_same_images(key, exposure.outputs, stored)
        outputs = replace(exposure.outputs, ids=stored.source_indices)
        aligned.append(replace(exposure, outputs=outputs))
    return tuple(aligned)


def _check_same_images(key: str, outputs: Predictions, stored: RunScores) -> None:
    n_classes = outputs.n_classes if stored.logits is None else stored.logits.shape[1]
    if outputs.n != stored.n or outputs.n_classes != n_classes:
        raise InputError(
            f"the exposure {key!r} of the folder has {stored.n:,} images and {n_classes} classes; "
            f"got {outputs.n:,} and {outputs.n_classes}"
        )
    if not np.array_equal(outputs.labels, stored.labels):
        row = int(np.flatnonzero(outputs.labels != stored.labels)[0])
        raise InputError(
            f"the exposure {key!r} must have the same images in the same order as in the folder; "
            f"the label of image {row} is {stored.labels[row]} there, and got {outputs.labels[row]}"
        )
