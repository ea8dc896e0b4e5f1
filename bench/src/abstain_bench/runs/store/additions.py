"""`Additions`: scores that were computed elsewhere and added to a folder of runs."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np

from abstain._foundation import json_records, records
from abstain._foundation.files import make_folder, write_atomically
from abstain._foundation.input_files import MAX_HEADER_BYTES, read_json_object
from abstain.errors import FileFormatError, InputError
from abstain.typing import FloatArray
from abstain_bench.runs.store.runs import Run, RunScores, ScoreFile, delete_unlisted_files

#: Subfolder of a folder of runs with the added scores.
ADDED: Final = "added"
#: The file that lists the added methods. Files that it does not list are ignored.
_FILE_NAME: Final = "added.json"

_KIND: Final = "abstain-benchmark-added"
_VERSION: Final = 1


@dataclass(frozen=True)
class AddedMethod:
    """A method whose scores were added.

    Attributes
    ----------
    name : str
        Unique name of the method in the folder.
    title : str
        Name for people.
    file : str
        Name of the file with the scores.
    digest : str
        SHA-256 hash of that file.
    date : str
        Time of the addition, in UTC.
    n : int
        Number of confidence scores.
    runs, exposures : tuple of str
        Scored runs, and scored exposures with "validation" if it was in the file.
    classifier : bool
        Whether the file has its own predictions, which are evaluated instead of those of the runs.
    stored : mapping from str to str
        Path of the stored scores by run, relative to the folder of runs.
    validated : mapping
        Values on validation data, by run and metric.
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
    """The methods that were added to a folder of runs.

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
        """Read the list of added methods; empty if there is no such file."""
        path = folder / ADDED / _FILE_NAME
        if not path.is_file():
            return cls(folder)
        try:
            content = read_json_object(path, MAX_HEADER_BYTES)
            json_records.pop_kind(content, (_KIND,))
            json_records.pop_version(content, "version", (_VERSION,))
            return cls(folder, records.from_fields(_AddedFile, content, "the added scores").methods)
        except (InputError, KeyError, TypeError, ValueError) as error:
            raise FileFormatError(
                f"{str(path)!r} is damaged: {error}. Delete it, and add the scores again"
            ) from None

    def write(self, methods: Iterable[AddedMethod]) -> None:
        """Replace the list of methods atomically, and delete score files that it does not list."""
        methods = tuple(methods)
        content = {"kind": _KIND, "version": _VERSION, "methods": [asdict(m) for m in methods]}
        text = json.dumps(content, indent=1, allow_nan=False)
        make_folder(self.folder / ADDED)
        write_atomically(self.folder / ADDED / _FILE_NAME, text.encode())
        listed = (path for method in methods for path in method.stored.values())
        delete_unlisted_files(self.folder, ADDED, listed)

    def validation_values(self, run: str) -> dict[str, Mapping[str, float | None]]:
        """Return the values on validation data of the added methods that score a run."""
        return {
            method.name: method.validated.get(run, {})
            for method in self.methods
            if run in method.runs and not method.classifier
        }

    def confidence(self, run: str, scores: RunScores) -> dict[str, FloatArray]:
        """Return the added confidences for the scores of a run on one exposure."""
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

    def networks(self, runs: Sequence[Run]) -> list[tuple[Run, AddedMethod, str]]:
        """Return the networks of methods with their own predictions, with method and file.

        The arm of such a run is the name of the method, its seed that of the scored run.
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
                networks.append((network, method, method.stored[run.name]))
        return networks

    def _file(self, name: str) -> ScoreFile:
        return self._files.setdefault(name, ScoreFile(self.folder / name))

    @cached_property
    def _files(self) -> dict[str, ScoreFile]:
        return {}
