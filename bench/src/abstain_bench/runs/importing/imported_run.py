"""`import_fd_shifts`: import results of FD-Shifts as a run of a folder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np

from abstain._foundation.input_files import input_sha256
from abstain.errors import InputError, suggest
from abstain.predictions import Predictions
from abstain_bench.runs.importing.fd_shifts import (
    ExposureOutputs,
    ResultsFolder,
    check_same_model,
    configured_held_out,
    configured_model,
    held_out_flag,
    hold_out_classes,
    read_results,
    untrained_class_notes,
)
from abstain_bench.runs.methods import METHODS, FitData, Method, fit_all, methods_of
from abstain_bench.runs.outputs import EXTERNAL_COLUMNS
from abstain_bench.runs.selection import reported_metrics, validation_values
from abstain_bench.runs.specification.arms import ARM_NAME, INITIAL_OBJECTIVES
from abstain_bench.runs.store import (
    IMPORTED,
    MANIFEST,
    VALIDATION,
    ExposureFacts,
    Run,
    RunScores,
    Store,
    StoredRun,
    delete_unlisted_files,
    write_manifest,
    write_scores,
)

#: Objectives by the names that FD-Shifts gives to networks and external confidences.
_OBJECTIVE_BY_FD_SHIFTS_NAME: Final = {
    "vit": "cross-entropy",
    "tcp": "confidnet",
    "dg": "deep-gamblers",
}
#: The objective of networks with an output for abstention.
_ABSTAINING_OBJECTIVE: Final = "deep-gamblers"
#: Value of the fact "imported" in the manifest of a folder that an import created.
_IMPORT_ORIGIN: Final = "FD-Shifts"


@dataclass(frozen=True)
class ImportedRun:
    """Result of `import_fd_shifts`.

    Attributes
    ----------
    run : Run
        The imported run.
    methods : tuple of str
        Methods whose scores the run contains.
    exposures : tuple of ExposureFacts
        Exposures of the folder of runs.
    reasons : mapping from str to str
        The reason for each other method of the objective that has no scores.
    notes : tuple of str
        Remarks on the import.
    """

    run: Run
    methods: tuple[str, ...]
    exposures: tuple[ExposureFacts, ...]
    reasons: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def import_fd_shifts(
    results: str | Path,
    out: str | Path,
    *,
    arm: str,
    seed: int,
    exposures: Sequence[str],
    setting: str = "",
    model: str = "",
    objective: str = "",
    held_out: Sequence[int] = (),
    stored_probabilities: bool = False,
    replaces: bool = False,
) -> ImportedRun:
    """Import a folder of FD-Shifts results as a run.

    Parameters
    ----------
    results : str or Path
        The folder that contains raw_logits.npz, or its parent folder.
    out : str or Path
        The folder of runs; it is created if it does not exist.
    arm : str
        Arm of the network. If it is the name of a training objective in this package or in
        FD-Shifts ("vit", "dg", "tcp"), it also sets `objective`.
    seed : int
        Seed of the network.
    exposures : sequence of str
        Exposure of each data set of the folder, in the order of their indices. An entry is
        "validation", "iid", "corruption" (stacked as 15 corruptions x 5 severities),
        "sub-class:NAME", "new-class:NAME", "far-new-class:NAME", or "-" to leave the data set out.
        FD-Shifts tests the data sets in the order validation (with ``val_tuning``), i.i.d., noise,
        in-class and new-class studies.
    setting : str, optional
        Label that distinguishes this setting of the arm from other settings, such as
        "dropout1-reward2.2".
    model : str, optional
        Name of the backbone. All runs in a folder must use the same model. If no name is set,
        models are compared by the backbones in the configurations, or by the numbers of features.
    objective : str, optional
        Objective in `abstain.training.OBJECTIVES`. Required if `arm` is not the name of a training
        objective.
    held_out : sequence of int, optional
        Codes of the classes that an open-set network was not trained on (``out_classes`` of
        FD-Shifts). The logits and probabilities of these classes are removed. The i.i.d. images of
        these classes become the exposure "held-out-classes" of the kind "new-class". Images of
        held-out classes in all other data sets are removed.
    stored_probabilities : bool, default=False
        Whether raw_logits.npz contains probabilities, as for DeepGamblers in versions of FD-Shifts
        before November 2023. The logarithms of the probabilities then replace the logits, except in
        dropout passes. The maximum logit and the energy cannot be computed from probabilities.
    replaces : bool, default=False
        Whether to replace an imported run with the same name.

    Returns
    -------
    ImportedRun
        The run, its methods, and notes for the user.

    Raises
    ------
    InputError
        If the folder contains no results, or if a run with this name exists. If
        `stored_probabilities` is set, but the network is not a DeepGamblers network or no
        probabilities are stored. If `exposures` or `held_out` do not match the results or the
        configuration. If the runs in the folder have other exposures, classes, images or another
        model.
    MissingInputError
        If the folder contains probabilities but no logits.
    FileFormatError
        If a file is damaged. No file is unpickled.

    Notes
    -----
    A ConfidNet folder contains the outputs of a classifier that was trained with cross-entropy, so
    the methods for cross-entropy are also computed. For DeepGamblers, the abstention row of the
    final layer is removed, because FD-Shifts does not store the abstention logits.

    Scores are computed from logits and features, except external confidences, which are imported as
    they are. The methods of external confidences are:

    - "confidnet", "dg_res" and "devries" for ConfidNet ("tcp"), DeepGamblers ("dg") and DeVries &
      Taylor ("devries"),
    - "mcd_confidnet", "dg_res_mcd" and "mcd_devries" for the means over the passes with dropout,
    - "confidnet_waic", "dg_res_waic" and "devries_waic" for these means minus the standard
      deviations over the passes.

    Logits in float16 are converted to float32. Differences that are smaller than the precision of
    float16 cannot be recovered.

    Examples
    --------
    >>> from abstain_bench.runs.importing import import_fd_shifts
    >>> import_fd_shifts(
    ...     "cifar10/test_results",
    ...     "runs",
    ...     arm="confidnet",
    ...     seed=1,
    ...     exposures=["validation", "iid", "corruption", "new-class:svhn"],
    ... )  # doctest: +SKIP
    """
    run = _make_run(arm, setting, seed, model)
    objective = _resolve_objective(objective or arm)
    path = Path(results)
    contents = read_results(
        path,
        exposures,
        abstains=objective == _ABSTAINING_OBJECTIVE,
        stored_probabilities=stored_probabilities,
    )
    contents = _apply_held_out(contents, path, held_out)
    logits_path = path / "raw_logits.npz"
    if not logits_path.is_file():
        logits_path = path / "test_results" / logits_path.name
    features = contents.exposures[0].outputs.features
    # These facts identify the network and its model.
    network_facts = {
        "digest": input_sha256(logits_path),
        "configured_model": configured_model(path),
        "n_features": None if features is None else features.shape[1],
    }
    run = replace(run, facts=network_facts)
    folder = Path(out)
    store = None
    if (folder / MANIFEST).is_file():
        store = Store.read(folder, with_added=False)
        _check_run_name(store, run, replaces)
        _check_same_classes(store, contents)
        notes = (*contents.notes, *check_same_model(store, run))
        aligned = _align_with_store(store, contents.exposures)
        contents = replace(contents, exposures=aligned, notes=notes)
    scores, reasons, scoring_notes = score_network(contents, objective)
    notes = (*contents.notes, *scoring_notes)
    facts = {
        "imported": str(results),
        **network_facts,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "notes": list(notes),
        "held_out": list(held_out),
        "stored_probabilities": stored_probabilities,
    }
    stored = _write_run(folder, replace(run, facts=facts), scores, store)
    _update_manifest(folder, store, stored, contents)
    methods = tuple(scores[0].confidence)
    return ImportedRun(stored.run, methods, Store.read(folder).exposures, reasons, notes)


def _make_run(arm: str, setting: str, seed: Any, model: str) -> Run:
    """Return a run with a valid arm, setting and seed, which also form its name."""
    for name, text in {"arm": arm, "setting": setting}.items():
        is_optional = name == "setting" and text == ""
        if not is_optional and not ARM_NAME.fullmatch(text):
            raise InputError(
                f"`{name}` must be up to 60 letters, digits, dots, hyphens and underscores; "
                f"got {text!r}"
            )
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise InputError(f"`seed` must be a whole number, at least 0; got {seed!r}")
    name = "-".join(filter(None, (arm, setting, f"seed{seed}")))
    return Run(name, arm, setting, seed, model)


def _resolve_objective(name: str) -> str:
    """Return the training objective for a name in this package or in FD-Shifts."""
    available = tuple(dict.fromkeys(method.objective for method in METHODS.values()))
    objective = _OBJECTIVE_BY_FD_SHIFTS_NAME.get(name, name)
    if objective not in available:
        listed = ", ".join(map(repr, (*available, *_OBJECTIVE_BY_FD_SHIFTS_NAME)))
        raise InputError(
            f"the training objective of {name!r} networks is unknown.{suggest(name, available)} "
            f"Set `objective` to one of {listed}"
        )
    return objective


def _apply_held_out(results: ResultsFolder, path: Path, held_out: Sequence[int]) -> ResultsFolder:
    """Remove the held-out classes, and check that they match the configuration."""
    configured = configured_held_out(path)
    if configured and set(configured) != set(held_out):
        got = ", ".join(map(str, held_out)) or "none"
        raise InputError(
            "`held_out` must be the classes that the configuration of the folder holds out "
            f"(out_classes): {held_out_flag(configured)}; got {got}"
        )
    if not held_out:
        return replace(results, notes=(*results.notes, *untrained_class_notes(results)))
    return hold_out_classes(results, held_out)


def _check_same_classes(store: Store, results: ResultsFolder) -> None:
    """Raise an error if the classes differ from those of the folder of runs."""
    # A folder with trained runs has names of classes, which cannot be compared with codes.
    has_codes = store.facts.get("imported") == _IMPORT_ORIGIN
    if has_codes and store.classes != results.classes:
        raise InputError(
            "all networks of a folder must have the same classes, and those of the folder are "
            f"{', '.join(store.classes)}; got {', '.join(results.classes)}. Import networks that "
            "hold out other classes into another folder"
        )


def _check_run_name(store: Store, run: Run, replaces: bool) -> None:
    """Raise an error if a run of this name exists and may not be replaced."""
    existing = next((other for other in store.runs if other.name == run.name), None)
    if existing is None:
        return
    if "imported" not in existing.facts:
        raise InputError(
            f"a run {run.name!r} was trained in this folder; choose another `arm` or `setting`"
        )
    if not replaces:
        raise InputError(
            f"a run {run.name!r} was imported before; choose another `seed` or `setting`, or set "
            "`replaces`"
        )


def _write_run(
    folder: Path, run: Run, scores: Sequence[RunScores], store: Store | None
) -> StoredRun:
    """Write the score files of a run, which have no effect until the manifest lists them."""
    validation = [part for part in scores if part.exposure == VALIDATION]
    tested = [part for part in scores if part.exposure != VALIDATION]
    validation_file = ""
    test_file = ""
    values: dict[str, dict[str, float | None]] = {name: {} for name in scores[0].confidence}
    if validation:
        validation_file = write_scores(folder, f"{IMPORTED}/validate-{run.name}", validation)
        uses_mean = {name: METHODS[name].uses_mean_prediction for name in values}
        values = validation_values(validation[0], uses_mean, reported_metrics(store))
    if tested:
        test_file = write_scores(folder, f"{IMPORTED}/test-{run.name}", tested)
    return StoredRun(run, validation_file, test_file, values)


def _update_manifest(
    folder: Path, store: Store | None, stored: StoredRun, results: ResultsFolder
) -> None:
    """Add a run to the manifest, and delete files that are no longer listed in the manifest."""
    if store is not None:
        other_runs = [other for other in store.stored_runs if other.run.name != stored.run.name]
        stored_runs = [*other_runs, stored]
        write_manifest(
            folder,
            config=store.config,
            facts=store.facts,
            classes=store.classes,
            exposures=store.exposures,
            stored_runs=stored_runs,
        )
        validation_files = {run.validation_file for run in stored_runs}
        test_files = {run.test_file for run in stored_runs}
        delete_unlisted_files(folder, IMPORTED, validation_files | test_files)
        return
    write_manifest(
        folder,
        config={"metrics": list(reported_metrics(None))},
        facts={
            "imported": _IMPORT_ORIGIN,
            "model": stored.run.model or stored.run.facts["configured_model"],
        },
        classes=results.classes,
        exposures=[
            exposure.facts for exposure in results.exposures if exposure.facts.key != VALIDATION
        ],
        stored_runs=[stored],
    )


#: Methods that depend on the level of the logits. Probabilities do not determine this level.
LEVEL_SCORES: Final = frozenset({"dg_mls", "dg_energy"})


def score_network(
    results: ResultsFolder, objective: str
) -> tuple[list[RunScores], dict[str, str], list[str]]:
    """Compute the scores that are available for all exposures.

    The function returns the scores of each exposure, the reason for each missing method, and notes.
    """
    column_by_method, notes = _match_external_confidences(results, objective)
    if objective == _ABSTAINING_OBJECTIVE and _may_be_probabilities(results):
        notes.append(
            "all logits lie in [0, 1]: versions of FD-Shifts before November 2023 stored "
            "probabilities of DeepGamblers networks in raw_logits.npz. If these are, import the "
            "folder with `stored_probabilities` (--stored-probabilities)"
        )
    outputs_by_key = {exposure.facts.key: exposure.outputs for exposure in results.exposures}
    validation = outputs_by_key.get(VALIDATION)
    methods, reasons = _applicable_methods(results, objective, validation)
    weight, bias = results.last_layer or (None, None)
    data = FitData(results.train, validation, weight, bias)
    fitted = fit_all([method for method in methods if method.name not in column_by_method], data)
    fitted_scores = [fitted.score(exposure.outputs) for exposure in results.exposures]
    for scores in fitted_scores:
        reasons |= scores.reasons
    # A method without a score for one exposure is left out of all exposures.
    names = [method.name for method in methods if method.name not in reasons]
    scores_by_exposure = []
    for exposure, scores in zip(results.exposures, fitted_scores, strict=True):
        confidence = {}
        for name in names:
            column = column_by_method.get(name)
            confidence[name] = scores[name] if column is None else exposure.external[column]
        key = exposure.facts.key
        scores_by_exposure.append(
            RunScores.from_outputs(key, exposure.outputs, confidence, reasons)
        )
    return scores_by_exposure, reasons, notes


def _may_be_probabilities(results: ResultsFolder) -> bool:
    """Return whether all logits in a folder are in [0, 1]."""
    for exposure in results.exposures:
        logits = exposure.outputs.logits
        if logits.min() < 0 or logits.max() > 1:
            return False
    return True


def _applicable_methods(
    results: ResultsFolder, objective: str, validation: Predictions | None
) -> tuple[list[Method], dict[str, str]]:
    """Return the methods that can be computed, and the reason for each other method."""
    reasons: dict[str, str] = {}
    methods = []
    # Methods of the objective that trained the initial classifier also apply.
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


def _match_external_confidences(
    results: ResultsFolder, objective: str
) -> tuple[dict[str, str], list[str]]:
    """Return the column of external confidences for each method, with a note on each column."""
    method_by_column = {}
    for method in METHODS.values():
        if method.objective == objective and method.score in EXTERNAL_COLUMNS:
            method_by_column[EXTERNAL_COLUMNS[method.score]] = method.name
    column_by_method: dict[str, str] = {}
    notes = []
    for column in EXTERNAL_COLUMNS.values():
        if column not in results.exposures[0].external:
            continue
        prefix = f"the external confidences {column!r} are"
        if not all(column in exposure.external for exposure in results.exposures):
            notes.append(f"{prefix} not used: not available for all exposures")
        elif column not in method_by_column:
            notes.append(f"{prefix} not used: no method of such networks")
        else:
            name = method_by_column[column]
            column_by_method[name] = column
            notes.append(f"{prefix} the method {name!r}")
    return column_by_method, notes


def _align_with_store(
    store: Store, exposures: Sequence[ExposureOutputs]
) -> tuple[ExposureOutputs, ...]:
    """Return the exposures in the order of the store and with the same source indices.

    InputError is raised if the exposures or images differ from those of the store.
    """
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
    keys = [VALIDATION, *required] if VALIDATION in by_key else required
    for key in keys:
        stored = store.first_scores(key, logits=True)
        exposure = by_key[key]
        if stored is None:
            aligned.append(exposure)
            continue
        _check_same_images(key, exposure.outputs, stored)
        outputs = replace(exposure.outputs, ids=stored.source_indices)
        aligned.append(replace(exposure, outputs=outputs))
    return tuple(aligned)


def _check_same_images(key: str, outputs: Predictions, stored: RunScores) -> None:
    """Raise an error if the numbers of images or classes or the labels differ."""
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
