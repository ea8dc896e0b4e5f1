"""`import_fd_shifts`: results of the original benchmark as a run among others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from abstain._foundation.input_files import input_sha256
from abstain.errors import InputError, suggest
from abstain_bench.runs.importing.configuration import (
    check_same_model,
    configured_held_out,
    configured_model,
)
from abstain_bench.runs.importing.fd_shifts import (
    ResultsFolder,
    flag,
    never_learned,
    told_by,
    without,
)
from abstain_bench.runs.importing.imported_network import same_pictures, scored
from abstain_bench.runs.methods import METHODS
from abstain_bench.runs.selection import reported_metrics, validation_values
from abstain_bench.runs.specification.arms import ARM_NAME
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

#: What FD-Shifts calls networks and their external confidences, and the objectives here.
_OBJECTIVES: Final = {
    "vit": "cross-entropy",
    "tcp": "confidnet",
    "dg": "deep-gamblers",
}
#: The objective of networks that have an output for abstention.
_ABSTAINS: Final = "deep-gamblers"
#: What a folder says that was begun by an import.
_BEGUN: Final = "FD-Shifts"


@dataclass(frozen=True)
class Imported:
    """What `import_fd_shifts` did.

    Attributes
    ----------
    run : Run
        The run that is there now.
    methods : tuple of str
        Those that score it.
    exposures : tuple of ExposureFacts
        Of the folder of runs.
    reasons : mapping from str to str
        Why the other methods of such a network could not score it.
    notes : tuple of str
        What was met and decided, in sentences.
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
) -> Imported:
    """Make a run of a folder of FD-Shifts test results.

    Answers: where do these networks, which were trained and tested by the original code, stand?

    Parameters
    ----------
    results : str or Path
        The folder, with raw_logits.npz, or the one above.
    out : str or Path
        The folder of runs; a new one is begun where there is none.
    arm : str
        What the network was trained by. The names of the objectives of this benchmark and those
        of FD-Shifts ("vit", "dg", "tcp") are known.
    seed : int
        Of the network.
    exposures : sequence of str
        What each data set of the folder is, in the order of their indexes: "validation", "iid",
        "corruption" (stacked as 15 corruptions x 5 severities), "sub-class:NAME",
        "new-class:NAME", "far-new-class:NAME", or "-" to leave it out. FD-Shifts tests, in this
        order: validation (with ``val_tuning``), i.i.d., noise, in-class and new-class studies.
    setting : str, optional
        What distinguishes the network from others of this arm: "dropout1-reward2.2".
    model : str, optional
        Its backbone. All runs of a folder must be of one model. Where no name is given, the
        backbone in the configuration of the folder or the number of features is compared.
    objective : str, optional
        The objective in `abstain.training.OBJECTIVES`, where `arm` is another name.
    held_out : sequence of int, optional
        Of an open-set network: the codes of the classes that it was not trained on (FD-Shifts:
        ``out_classes``). Its outputs for them are taken away, its i.i.d. images of them become
        the exposure "held-out-classes" to new classes, and other images of them are left out.
    stored_probabilities : bool, default=False
        Whether raw_logits.npz holds probabilities, as versions of FD-Shifts before November 2023
        stored for DeepGamblers. Their logarithms then replace the logits. The maximum logit and
        the energy cannot be computed from them; the passes with dropout are logits in any version.
    replaces : bool, default=False
        Whether a run that was imported under the same name is replaced.

    Returns
    -------
    Imported
        The run, its methods, and what was met.

    Raises
    ------
    InputError
        It is no such folder, `stored_probabilities` is set for another network than DeepGamblers
        or for a folder without probabilities, `exposures` or `held_out` do not fit it or its
        configuration, a run of the name is there, or the folder of runs is of other exposures,
        other classes, other images or another model.
    MissingInputError
        The folder holds probabilities only.
    FileFormatError
        A file is damaged. Nothing is ever unpickled.

    Notes
    -----
    What a ConfidNet folder holds is said by its classifier, which was trained by cross-entropy, so
    the methods of such networks score it too; the last layer of DeepGamblers has a row for
    abstention, which is left out. FD-Shifts leaves no logits for it.

    Each network has all scores that FD-Shifts computes for it, and the other methods of its
    objective. They are computed from the logits and features here, but for external confidences:
    of ConfidNet ("tcp"), DeepGamblers ("dg") and DeVries & Taylor ("devries") they are the methods
    "confidnet", "dg_res" and "devries", their means over passes "mcd_confidnet", "dg_res_mcd" and
    "mcd_devries", and these less their standard deviations "confidnet_waic", "dg_res_waic" and
    "devries_waic". They stay probabilities, which rank as their log-odds do. Logits of float16
    are widened; differences that float16 cannot hold are lost.

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
    run = _run(arm, setting, seed, model)
    trained_by = _objective(objective or arm)
    path, abstains = Path(results), trained_by == _ABSTAINS
    told = told_by(path, exposures, abstains=abstains, stored_probabilities=stored_probabilities)
    told = _open_set(told, path, held_out)
    run = replace(run, facts=_identity(path, told))
    folder, store = Path(out), None
    if (folder / MANIFEST).is_file():
        store = Store.read(folder, with_added=False)
        told = _fitting(told, store, run, replaces=replaces)
    scores, reasons, more = scored(told, trained_by)
    notes = (*told.notes, *more)
    facts = {
        "imported": str(results),
        **run.facts,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "notes": list(notes),
        "held_out": list(held_out),
        "stored_probabilities": stored_probabilities,
    }
    kept = _written(folder, replace(run, facts=facts), scores, store)
    _record(folder, store, kept, told)
    methods = tuple(scores[0].confidence)
    return Imported(kept.run, methods, Store.read(folder).exposures, reasons, notes)


def _fitting(told: ResultsFolder, store: Store, run: Run, *, replaces: bool) -> ResultsFolder:
    """Return the results on the images of a folder of runs; reject those that do not fit it."""
    _refuse_taken(store, run, replaces)
    _refuse_other_classes(store, told)
    notes = (*told.notes, *check_same_model(store, run))
    return replace(told, parts=same_pictures(store, told.parts), notes=notes)


def _identity(results: Path, told: ResultsFolder) -> dict[str, Any]:
    """Return what identifies the network: a hash of its logits, and facts about its model."""
    features = told.parts[0].outputs.features
    return {
        "digest": input_sha256(_logits(results)),
        "configured_model": configured_model(results),
        "n_features": None if features is None else features.shape[1],
    }


def _run(arm: str, setting: str, seed: Any, model: str) -> Run:
    for name, given in {"arm": arm, "setting": setting}.items():
        if not (name == "setting" and given == "") and not ARM_NAME.fullmatch(given):
            raise InputError(
                f"`{name}` must be up to 60 letters, digits, dots, hyphens and underscores; "
                f"got {given!r}"
            )
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise InputError(f"`seed` must be a whole number, at least 0; got {seed!r}")
    name = "-".join(filter(None, (arm, setting, f"seed{seed}")))
    return Run(name, arm, setting, seed, model)


def _objective(given: str) -> str:
    known = tuple(dict.fromkeys(METHODS[name].objective for name in METHODS))
    found = _OBJECTIVES.get(given, given)
    if found not in known:
        listed = ", ".join(map(repr, (*known, *_OBJECTIVES)))
        raise InputError(
            f"what {given!r} networks are trained by is not known.{suggest(given, known)} Say it "
            f"with `objective`: one of {listed}"
        )
    return found


def _open_set(told: ResultsFolder, results: Path, held_out: Sequence[int]) -> ResultsFolder:
    """Return what is told of the classes that were learned."""
    wanted = configured_held_out(results)
    if wanted and set(wanted) != set(held_out):
        got = ", ".join(map(str, held_out)) or "none"
        raise InputError(
            "`held_out` must be the classes that the configuration of the folder says were held "
            f"out of training (out_classes): {flag(wanted)}; got {got}"
        )
    if not held_out:
        return replace(told, notes=(*told.notes, *never_learned(told)))
    return without(told, held_out)


def _refuse_other_classes(store: Store, told: ResultsFolder) -> None:
    """Refuse a network of other classes; those of own runs have names, and are counted only."""
    codes = store.facts.get("imported") == _BEGUN
    if codes and store.classes != told.classes:
        raise InputError(
            "all networks of a folder must tell the same classes apart, and those of the folder "
            f"are {', '.join(store.classes)}; got {', '.join(told.classes)}. Networks that hold "
            "out other classes need a folder of their own"
        )


def _logits(path: Path) -> Path:
    found = path / "raw_logits.npz"
    return found if found.is_file() else path / "test_results" / found.name


def _refuse_taken(store: Store, run: Run, replaces: bool) -> None:
    by_name = {kept.run.name: kept for kept in store.stored_runs}
    there = by_name.get(run.name)
    if there is None:
        return
    if "imported" not in there.run.facts:
        raise InputError(
            f"a run {run.name!r} was trained in this folder; choose another `arm` or `setting`"
        )
    if not replaces:
        raise InputError(
            f"a run {run.name!r} was imported before; choose another `seed` or `setting`, or ask "
            "to replace it"
        )


def _written(folder: Path, run: Run, scores: Sequence[RunScores], store: Store | None) -> StoredRun:
    """Write the files of a run; nothing counts before the manifest names them."""
    parts = {
        "validate": [part for part in scores if part.exposure == VALIDATION],
        "test": [part for part in scores if part.exposure != VALIDATION],
    }
    files = {
        what: write_scores(folder, f"{IMPORTED}/{what}-{run.name}", own) if own else ""
        for what, own in parts.items()
    }
    values: dict[str, dict[str, float | None]] = {name: {} for name in scores[0].confidence}
    if parts["validate"]:
        averages = {name: METHODS[name].uses_mean_prediction for name in values}
        values = validation_values(parts["validate"][0], averages, reported_metrics(store))
    return StoredRun(run, files["validate"], files["test"], values)


def _record(folder: Path, store: Store | None, kept: StoredRun, told: ResultsFolder) -> None:
    """Write the manifest with the run in it, and delete files that it no longer names."""
    if store is not None:
        others = [one for one in store.stored_runs if one.run.name != kept.run.name]
        write_manifest(
            folder,
            config=store.config,
            facts=store.facts,
            classes=store.classes,
            exposures=store.exposures,
            stored_runs=[*others, kept],
        )
        named = {name for one in (*others, kept) for name in (one.validation_file, one.test_file)}
        delete_unlisted_files(folder, IMPORTED, named)
        return
    write_manifest(
        folder,
        config={"metrics": list(reported_metrics(None))},
        facts={
            "imported": _BEGUN,
            "model": kept.run.model or kept.run.facts["configured_model"],
        },
        classes=told.classes,
        exposures=[part.facts for part in told.parts if part.facts.key != VALIDATION],
        stored_runs=[kept],
    )
