"""`Store` reads the contents of a folder of runs, which the manifest of the folder lists."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from dataclasses import fields as dataclass_fields
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np

from abstain._foundation import json_records, records
from abstain._foundation.files import make_folder, write_atomically
from abstain._foundation.input_files import MAX_HEADER_BYTES, read_json_object
from abstain.errors import FileFormatError, InputError
from abstain.typing import FloatArray
from abstain_bench.runs.methods import update_method_names
from abstain_bench.runs.store.runs import (
    VALIDATION,
    Run,
    RunScores,
    ScoreFile,
    delete_unlisted_files,
)

#: The file that lists the contents of the folder.
MANIFEST: Final = "manifest.json"
#: New name of a damaged manifest.
_DAMAGED: Final = f"{MANIFEST}.damaged"
#: Subfolder with the files of imported runs.
IMPORTED: Final = "imported"
#: Subfolder with the files of the jobs.
JOBS: Final = "jobs"

_KIND: Final = "abstain-benchmark"
_VERSION: Final = 1


@dataclass(frozen=True)
class ExposureFacts:
    """The fields of an `Exposure`, except its images.

    Attributes
    ----------
    key, name, title, kind : str
        Key in files, name in tables, title in reports, and kind of shift.
    corruption : str
        Name of the corruption, or empty.
    severity : int
        Severity of the corruption, or 0.
    """

    key: str
    name: str
    title: str
    kind: str
    corruption: str = ""
    severity: int = 0


@dataclass(frozen=True)
class StoredRun:
    """A run with the paths of its files, relative to the folder of runs.

    Attributes
    ----------
    run : Run
        The run.
    validation_file : str
    validation_file : str
        File with the scores on validation data, or empty if the run has no such scores.
    test_file : str
        File with the scores on the exposures, or empty if the run was not tested.
    validation_values : mapping
        Values on validation data by method and metric. An undefined value is None.
    """

    run: Run
    validation_file: str = ""
    test_file: str = ""
    validation_values: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)


@dataclass(frozen=True)
class _ManifestRow(Run):
    """The manifest entry of a run and its files."""

    validation: str = field(kw_only=True)
    tested: str = field(kw_only=True)
    validated: dict[str, dict[str, float | None]] = field(kw_only=True)

    def __post_init__(self) -> None:
        records.check(self, owner="a run")

    @classmethod
    def read(cls, row: Mapping[str, Any]) -> StoredRun:
        """Convert a manifest entry to a stored run."""
        # Earlier versions did not write `model` and `facts`.
        record = records.from_fields(cls, {"model": "", "facts": {}, **row}, "a run")
        run = Run(*(getattr(record, f.name) for f in dataclass_fields(Run)))
        values = update_method_names(record.validated)
        return StoredRun(run, record.validation, record.tested, values)


@dataclass(frozen=True)
class _Manifest:
    config: dict[str, Any]
    facts: dict[str, Any]
    classes: tuple[str, ...]
    exposures: tuple[ExposureFacts, ...]
    runs: tuple[dict[str, Any], ...]

    def __post_init__(self) -> None:
        records.check(self)


# ------------------------------------------------------------------------------- added scores
#: Subfolder with the added scores.
ADDED: Final = "added"
#: File that lists the added methods. Score files that it does not list are ignored.
_ADDED_FILE: Final = "added.json"

_ADDED_KIND: Final = "abstain-benchmark-added"
_ADDED_VERSION: Final = 1


@dataclass(frozen=True)
class AddedMethod:
    """A method that was added to a folder of runs.

    Attributes
    ----------
    name : str
        Unique name of the method in the folder.
    title : str
        Title in reports.
    file : str
        Name of the file that was added.
    digest : str
        SHA-256 hash of the file that was added.
    date : str
        Time of the addition in UTC.
    n : int
        Number of confidences.
    runs, exposures : tuple of str
        Scored runs and scored exposures. The exposures may include "validation".
    classifier : bool
        Whether the file contains predictions that replace the predictions of the runs.
    stored : mapping from str to str
        Path of the stored scores of each run, relative to the folder of runs.
    validated : mapping
        Values on validation data by run and metric.
    """

    name: str
    title: str
    file: str
    digest: str
    date: str
    n: int
    runs: tuple[str, ...]
    exposures: tuple[str, ...]
    classifier: bool = False
    stored: Mapping[str, str] = field(default_factory=dict)
    validated: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)


@dataclass(frozen=True)
class _AddedFile:
    methods: tuple[AddedMethod, ...]

    def __post_init__(self) -> None:
        records.check(self)


@dataclass(frozen=True, eq=False)
class Additions:
    """List of the methods that were added to a folder of runs.

    Attributes
    ----------
    folder : Path
        The folder of runs.
    methods : tuple of AddedMethod
        The methods in the order in which they were added.
    """

    folder: Path
    methods: tuple[AddedMethod, ...] = ()

    @classmethod
    def read(cls, folder: Path) -> "Additions":
        """Read the list of added methods, which is empty if the file does not exist."""
        path = folder / ADDED / _ADDED_FILE
        if not path.is_file():
            return cls(folder)
        try:
            content = read_json_object(path, MAX_HEADER_BYTES)
            json_records.pop_kind(content, (_ADDED_KIND,))
            json_records.pop_version(content, "version", (_ADDED_VERSION,))
            return cls(folder, records.from_fields(_AddedFile, content, "the added scores").methods)
        except (InputError, KeyError, TypeError, ValueError) as error:
            raise FileFormatError(
                f"{str(path)!r} is damaged: {error}. Delete it, and add the scores again"
            ) from None

    def write(self, methods: Iterable[AddedMethod]) -> None:
        """Replace the list of methods atomically, and delete score files that are not listed."""
        listed_methods = tuple(methods)
        content = {
            "kind": _ADDED_KIND,
            "version": _ADDED_VERSION,
            "methods": [asdict(method) for method in listed_methods],
        }
        text = json.dumps(content, indent=1, allow_nan=False)
        make_folder(self.folder / ADDED)
        write_atomically(self.folder / ADDED / _ADDED_FILE, text.encode())
        paths = (path for method in listed_methods for path in method.stored.values())
        delete_unlisted_files(self.folder, ADDED, paths)

    def validation_values(self, run: str) -> dict[str, Mapping[str, float | None]]:
        """Return the validation metrics of the added methods that have scores for a run.

        Methods that have separate predictions are not included.
        """
        return {
            method.name: method.validated.get(run, {})
            for method in self.methods
            if run in method.runs and not method.classifier
        }

    def confidence(self, run: str, scores: RunScores) -> dict[str, FloatArray]:
        """Return the added scores by method, for a run and the exposure of `scores`."""
        key = scores.exposure
        confidence = {}
        for method in self.methods:
            if method.classifier or run not in method.runs or key not in method.exposures:
                continue
            file = self._file(method.stored[run])
            if key not in file.exposures:
                continue
            added = file.read(key, logits=False)
            if not np.array_equal(added.prediction, scores.prediction):
                raise FileFormatError(
                    f"the run {run!r} has changed since {method.name!r} was added: it predicts "
                    f"other classes for {key!r}. Compute the scores again and add them with "
                    "`replace`, or remove them (`abstain benchmark remove-scores`)"
                )
            confidence[method.name] = added.confidence[method.name]
        return confidence

    def stored_networks(self, runs: Sequence[Run]) -> list[StoredRun]:
        """Return the runs of added methods that have separate predictions.

        Each such method has one additional run per scored run, with the name of the method as its
        arm.
        """
        run_by_name = {run.name: run for run in runs}
        networks = []
        for method in self.methods:
            if not method.classifier:
                continue
            scored_runs = [run_by_name[name] for name in method.runs if name in run_by_name]
            has_several_settings = len({(run.arm, run.setting) for run in scored_runs}) > 1
            for run in scored_runs:
                label = "-".join(filter(None, (run.arm, run.setting)))
                setting = label if has_several_settings else ""
                name = f"{method.name}-{run.name}"
                network = Run(name, method.name, setting, run.seed, method.title)
                file = method.stored[run.name]
                validation_file = file if VALIDATION in method.exposures else ""
                values = {method.name: method.validated.get(run.name) or {}}
                networks.append(StoredRun(network, validation_file, file, values))
        return networks

    def _file(self, name: str) -> ScoreFile:
        return self._files.setdefault(name, ScoreFile(self.folder / name))

    @cached_property
    def _files(self) -> dict[str, ScoreFile]:
        return {}


@dataclass(frozen=True, eq=False)
class Store:
    """Content of a folder of runs.

    Attributes
    ----------
    folder : Path
        The folder.
    config : mapping
        The configuration as plain values.
    facts : mapping
        Recorded facts, such as versions, device, precision and durations.
    classes : tuple of str
        Names of the known classes.
    exposures : tuple of ExposureFacts
        Exposures in the order of the tables. The i.i.d. exposure is the first.
    stored_runs : tuple of StoredRun
        The runs, which include ensembles and imported runs. The additional networks of added
        methods with separate predictions come last.
    additions : Additions
        Added scores.
    """

    folder: Path
    config: Mapping[str, Any]
    facts: Mapping[str, Any]
    classes: tuple[str, ...]
    exposures: tuple[ExposureFacts, ...]
    stored_runs: tuple[StoredRun, ...]
    additions: Additions

    @classmethod
    def read(cls, folder: str | Path, *, with_added: bool = True) -> "Store":
        """Read a folder of runs, including added methods if `with_added` is True."""
        folder = Path(folder)
        path = folder / MANIFEST
        if not path.is_file():
            raise InputError(f"{str(folder)!r} is no folder of runs: it has no {MANIFEST}")
        additions = Additions.read(folder) if with_added else Additions(folder)
        try:
            content = read_json_object(path, MAX_HEADER_BYTES)
            json_records.pop_kind(content, (_KIND,))
            json_records.pop_version(content, "version", (_VERSION,))
            manifest = records.from_fields(_Manifest, content, "a manifest")
            stored_runs = [_ManifestRow.read(row) for row in manifest.runs]
            added_networks = additions.stored_networks([stored.run for stored in stored_runs])
            for i, stored in enumerate(stored_runs):
                added_values = additions.validation_values(stored.run.name)
                values = {**stored.validation_values, **added_values}
                stored_runs[i] = replace(stored, validation_values=values)
            return cls(
                folder,
                manifest.config,
                manifest.facts,
                manifest.classes,
                manifest.exposures,
                (*stored_runs, *added_networks),
                additions,
            )
        except (InputError, KeyError, TypeError, ValueError) as error:
            first_step = "" if is_manifest_unreadable(folder) else "move it away and "
            raise FileFormatError(
                f"{str(path)!r} is no manifest of a benchmark, or a damaged one: {error}. If "
                f"jobs were run in its folder, {first_step}run the same command to write it again; "
                "imported runs must be imported again"
            ) from None

    @property
    def runs(self) -> tuple[Run, ...]:
        """All runs."""
        return tuple(stored.run for stored in self.stored_runs)

    @property
    def tested_runs(self) -> tuple[Run, ...]:
        """The runs that were tested."""
        return tuple(stored.run for stored in self.stored_runs if stored.test_file)

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of all runs, sorted."""
        return tuple(sorted({run.seed for run in self.runs}))

    @property
    def added_methods(self) -> tuple[AddedMethod, ...]:
        """The added methods, in the order in which they were added."""
        return self.additions.methods

    def validation_values(self, run: Run) -> Mapping[str, Mapping[str, float | None]]:
        """Return the validation metrics of a run by method and metric."""
        return self._by_name[run.name].validation_values

    def scores(self, run: Run, exposure: str, *, logits: bool = False) -> RunScores:
        """Return the scores of a run for one exposure, including added scores."""
        return self.scores_of(run, [exposure], logits=logits)[exposure]

    def scores_of(
        self, run: Run, exposures: Sequence[str], *, logits: bool = False
    ) -> dict[str, RunScores]:
        """Return the scores of a run for several exposures by key, including added scores."""
        stored = self._by_name[run.name]
        name = stored.validation_file if VALIDATION in exposures else stored.test_file
        if not name:
            raise InputError(f"the run {run.name!r} has no scores of the exposure {exposures[0]!r}")
        scores_by_key = self._file(name).read_all(exposures, logits=logits)
        for key, scores in scores_by_key.items():
            added_confidence = self.additions.confidence(run.name, scores)
            if added_confidence:
                confidence = {**scores.confidence, **added_confidence}
                scores_by_key[key] = replace(scores, confidence=confidence)
        return scores_by_key

    def first_scores(self, exposure: str, *, logits: bool = False) -> RunScores | None:
        """Return the scores of the first run that has the exposure, or None if there is none."""
        for stored in self.stored_runs:
            file = stored.validation_file if exposure == VALIDATION else stored.test_file
            if file:
                return self.scores(stored.run, exposure, logits=logits)
        return None

    def _file(self, name: str) -> ScoreFile:
        return self._files.setdefault(name, ScoreFile(self.folder / name))

    @cached_property
    def _files(self) -> dict[str, ScoreFile]:
        return {}

    @cached_property
    def _by_name(self) -> dict[str, StoredRun]:
        return {stored.run.name: stored for stored in self.stored_runs}


def is_manifest_unreadable(folder: Path) -> bool:
    """Return whether the manifest of a folder is not valid JSON, for example after a crash."""
    try:
        text = (folder / MANIFEST).read_text(encoding="utf-8")
    except FileNotFoundError:
        return False
    except UnicodeDecodeError:
        return True
    try:
        json.loads(text)
    except json.JSONDecodeError:
        return True
    except (ValueError, RecursionError):
        return False
    return False


def move_damaged_manifest(folder: Path) -> None:
    """Rename an unreadable manifest, or delete it if it contains no data."""
    path = folder / MANIFEST
    if path.read_bytes().strip(b"\0 \n"):
        path.replace(folder / _DAMAGED)
    else:
        path.unlink()


def write_manifest(
    folder: Path,
    *,
    config: Mapping[str, Any],
    facts: Mapping[str, Any],
    classes: Sequence[str],
    exposures: Sequence[ExposureFacts],
    stored_runs: Sequence[StoredRun],
) -> None:
    """Write the manifest of a folder of runs atomically."""
    content = {
        "kind": _KIND,
        "version": _VERSION,
        "config": config,
        "facts": facts,
        "classes": list(classes),
        "exposures": [asdict(exposure) for exposure in exposures],
        "runs": [_manifest_row(stored) for stored in stored_runs],
    }
    text = json.dumps(content, indent=1, allow_nan=False)
    write_atomically(folder / MANIFEST, text.encode())


def _manifest_row(stored: StoredRun) -> dict[str, Any]:
    """Return the manifest entry of a run and its files."""
    return {
        **asdict(stored.run),
        "validation": stored.validation_file,
        "tested": stored.test_file,
        "validated": stored.validation_values,
    }


def configured(config: Mapping[str, Any], name: str) -> Any:
    """Return a field of the configuration or of its table "benchmark", or an empty string."""
    table = config.get("benchmark")
    entry = table.get(name) if isinstance(table, Mapping) else None
    return entry or config.get(name, "")
