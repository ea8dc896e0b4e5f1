"""`Store`: what a folder of runs holds, as its manifest says."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from dataclasses import fields as dataclass_fields
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from abstain._foundation import json_records, records
from abstain._foundation.files import write_atomically
from abstain._foundation.input_files import MAX_HEADER_BYTES, read_json_object
from abstain.errors import FileFormatError, InputError
from abstain_bench.runs.methods import by_method
from abstain_bench.runs.store.additions import AddedFacts, Additions
from abstain_bench.runs.store.runs import VALIDATION, Run, RunScores, ScoreFile

__all__ = ["IMPORTED", "JOBS", "MANIFEST", "ExposureFacts", "Store", "StoredRun"]

#: The file that says what the folder holds.
MANIFEST: Final = "manifest.json"
#: Where one goes that was cut off.
_DAMAGED: Final = f"{MANIFEST}.damaged"
#: Where the files of imported runs are.
IMPORTED: Final = "imported"
#: Where the files of the jobs are.
JOBS: Final = "jobs"

_KIND: Final = "abstain-benchmark"
_VERSION: Final = 1


@dataclass(frozen=True)
class ExposureFacts:
    """What is known of an exposure without its pictures; the fields are those of `Exposure`.

    Attributes
    ----------
    key, name, title, kind : str
        For files, for tables, for people, and where failures come from.
    corruption : str
        The name of the corruption, or empty.
    severity : int
        Of the corruption, or 0.
    """

    key: str
    name: str
    title: str
    kind: str
    corruption: str = ""
    severity: int = 0


@dataclass(frozen=True)
class StoredRun:
    """A run and where its files are, relative to the folder.

    Attributes
    ----------
    run : Run
        Which.
    validation : str
        The file of its scores on validation data; empty where there are none.
    tested : str
        The file of its scores on the exposures; empty where no method chose this setting.
    validated : mapping
        By method and metric: the values on validation data; None where one is undefined.
    """

    run: Run
    validation: str = ""
    tested: str = ""
    validated: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)


@dataclass(frozen=True)
class _Row(Run):
    """A run with its files, as the manifest has them beside each other."""

    validation: str = field(kw_only=True)
    tested: str = field(kw_only=True)
    validated: dict[str, dict[str, float | None]] = field(kw_only=True)

    def __post_init__(self) -> None:
        records.check(self, owner="a run")

    @classmethod
    def read(cls, found: Mapping[str, Any]) -> StoredRun:
        # Not every version wrote these two.
        self = records.from_fields(cls, {"model": "", "facts": {}, **found}, "a run")
        run = Run(*(getattr(self, one.name) for one in dataclass_fields(Run)))
        return StoredRun(run, self.validation, self.tested, by_method(self.validated))


@dataclass(frozen=True)
class _Manifest:
    config: dict[str, Any]
    facts: dict[str, Any]
    classes: tuple[str, ...]
    exposures: tuple[ExposureFacts, ...]
    runs: tuple[dict[str, Any], ...]

    def __post_init__(self) -> None:
        records.check(self)


@dataclass(frozen=True, eq=False)
class Store:
    """What a folder of runs holds.

    Attributes
    ----------
    folder : Path
        Where it is.
    config : mapping
        The configuration as plain values.
    facts : mapping
        Versions, device, precision, times.
    classes : tuple of str
        The names of the known classes.
    exposures : tuple of ExposureFacts
        In the order of the tables, i.i.d. first.
    kept : tuple of StoredRun
        The runs, ensembles and imported ones included. Networks that came with the scores of
        others are the last.
    additions : Additions
        The scores of others.
    """

    folder: Path
    config: Mapping[str, Any]
    facts: Mapping[str, Any]
    classes: tuple[str, ...]
    exposures: tuple[ExposureFacts, ...]
    kept: tuple[StoredRun, ...]
    additions: Additions

    @classmethod
    def read(cls, folder: str | Path, *, added: bool = True) -> "Store":
        """Read a folder that `abstain benchmark run` wrote."""
        place = Path(folder)
        path = place / MANIFEST
        if not path.is_file():
            raise InputError(f"{str(place)!r} is no folder of runs: it has no {MANIFEST}")
        additions = Additions.read(place) if added else Additions(place)
        try:
            found = read_json_object(path, MAX_HEADER_BYTES)
            json_records.pop_kind(found, (_KIND,))
            json_records.pop_version(found, "version", (_VERSION,))
            own = records.from_fields(_Manifest, found, "a manifest")
            kept = _with_added(tuple(map(_Row.read, own.runs)), additions)
            return cls(place, own.config, own.facts, own.classes, own.exposures, kept, additions)
        except (InputError, KeyError, TypeError, ValueError) as error:
            first = "" if lost(place) else "move it away and "
            raise FileFormatError(
                f"{str(path)!r} is no manifest of a benchmark, or a damaged one: {error}. If "
                f"its folder was run, {first}run the same command, which writes it anew; "
                "what was imported must be imported again"
            ) from None

    @property
    def runs(self) -> tuple[Run, ...]:
        """All runs."""
        return tuple(kept.run for kept in self.kept)

    @property
    def tested(self) -> tuple[Run, ...]:
        """The runs that were tested on the exposures."""
        return tuple(kept.run for kept in self.kept if kept.tested)

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of all runs, in order."""
        return tuple(sorted({kept.run.seed for kept in self.kept}))

    @property
    def added(self) -> tuple[AddedFacts, ...]:
        """What is known of the methods of others, in the order in which they were added."""
        return self.additions.facts

    def validated(self, run: Run) -> Mapping[str, Mapping[str, float | None]]:
        """Return the values of a run on validation data, by method and metric."""
        return self._by_name[run.name].validated

    def scores(self, run: Run, exposure: str, *, logits: bool = False) -> RunScores:
        """Return what a run says of one exposure, the scores of others included."""
        return self.scores_of(run, [exposure], logits=logits)[exposure]

    def scores_of(
        self, run: Run, exposures: Sequence[str], *, logits: bool = False
    ) -> dict[str, RunScores]:
        """Return what a run says of several exposures, by their keys; see `scores`."""
        kept = self._by_name[run.name]
        name = kept.validation if VALIDATION in exposures else kept.tested
        if not name:
            raise InputError(f"the run {run.name!r} has no scores of the exposure {exposures[0]!r}")
        read = self._file(name).read_all(exposures, logits=logits)
        return {key: self._with_others(run, found) for key, found in read.items()}

    def _with_others(self, run: Run, found: RunScores) -> RunScores:
        more = self.additions.confidence(run.name, found)
        return replace(found, confidence={**found.confidence, **more}) if more else found

    def first(self, exposure: str, *, logits: bool = False) -> RunScores | None:
        """Return what the first run says of an exposure; None where none was tested on it."""
        for kept in self.kept:
            if kept.validation if exposure == VALIDATION else kept.tested:
                return self.scores(kept.run, exposure, logits=logits)
        return None

    def _file(self, name: str) -> ScoreFile:
        return self._files.setdefault(name, ScoreFile(self.folder / name))

    @cached_property
    def _files(self) -> dict[str, ScoreFile]:
        return {}

    @cached_property
    def _by_name(self) -> dict[str, StoredRun]:
        return {kept.run.name: kept for kept in self.kept}


def lost(folder: Path) -> bool:
    """Tell whether a manifest is there that nobody can read: empty, zeros, cut off.

    Such a one is what a crash of the machine leaves; a manifest of another kind or version, or one
    that somebody changed, is not lost.
    """
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


def set_aside(folder: Path) -> None:
    """Move a lost manifest away, so that a new one is written; one of zeros is worth nothing."""
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
    kept: Sequence[StoredRun],
) -> None:
    """Write what `Store.read` reads, whole or not at all."""
    found = {
        "kind": _KIND,
        "version": _VERSION,
        "config": config,
        "facts": facts,
        "classes": list(classes),
        "exposures": [asdict(one) for one in exposures],
        "runs": [(own := asdict(one)).pop("run") | own for one in kept],
    }
    text = json.dumps(found, indent=1, allow_nan=False)
    write_atomically(folder / MANIFEST, text.encode())


def _with_added(kept: tuple[StoredRun, ...], additions: Additions) -> tuple[StoredRun, ...]:
    """Return the runs with the methods of others, and the networks that came with some."""
    more = []
    for one in kept:
        values = additions.values_of(one.run.name)
        more.append(replace(one, validated={**one.validated, **values}) if values else one)
    for run, facts, file in additions.classifiers([one.run for one in kept]):
        base = run.name.removeprefix(f"{facts.name}-")
        checked = facts.validated.get(base)
        validation = file if VALIDATION in facts.exposures else ""
        more.append(StoredRun(run, validation, file, {facts.name: checked or {}}))
    return tuple(more)
