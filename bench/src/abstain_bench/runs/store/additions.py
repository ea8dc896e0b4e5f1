"""`Additions`: the scores of others that lie in a folder of runs, and what is known of them."""

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
from abstain_bench.runs.store.runs import Run, RunScores, ScoreFile, keep_only

__all__ = ["ADDED", "AddedFacts", "Additions"]

#: Where the scores of others are, in a folder of runs.
ADDED: Final = "added"
#: The one file that says what was added: what it does not name is not there.
_RECEIPTS: Final = "added.json"

_KIND: Final = "abstain-benchmark-added"
_VERSION: Final = 1


@dataclass(frozen=True)
class AddedFacts:
    """What is known of a method that was added: its receipt.

    Attributes
    ----------
    name : str
        Of the method, unlike any other in the folder.
    title : str
        The name people read.
    file : str
        The name of the file that it came in.
    digest : str
        The SHA-256 of that file.
    date : str
        When it was added, in UTC.
    n : int
        Number of its confidences.
    runs, exposures : tuple of str
        What it scores; "validation" is among the exposures where it was there.
    classifier : bool
        Whether it came with predictions of its own, which are judged instead of those of the run.
    stored : mapping from str to str
        By the name of the run: the file of the confidences, relative to the folder of runs.
    validated : mapping
        By the name of the run and the metric: the values on validation data.
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
class _Receipts:
    methods: tuple[AddedFacts, ...]

    def __post_init__(self) -> None:
        records.check(self)


@dataclass(frozen=True, eq=False)
class Additions:
    """All that was added to a folder of runs.

    Attributes
    ----------
    folder : Path
        Of the runs.
    facts : tuple of AddedFacts
        In the order in which the methods were added.
    """

    folder: Path
    facts: tuple[AddedFacts, ...] = ()

    @classmethod
    def read(cls, folder: Path) -> "Additions":
        """Read the receipts; a folder to which nothing was added has none."""
        path = folder / ADDED / _RECEIPTS
        if not path.is_file():
            return cls(folder)
        try:
            found = read_json_object(path, MAX_HEADER_BYTES)
            json_records.pop_kind(found, (_KIND,))
            json_records.pop_version(found, "version", (_VERSION,))
            return cls(folder, records.from_fields(_Receipts, found, "what was added").methods)
        except (InputError, KeyError, TypeError, ValueError) as error:
            raise FileFormatError(
                f"{str(path)!r} is damaged: {error}. Delete it, and the scores of others can be "
                "added again"
            ) from None

    def write(self, facts: Iterable[AddedFacts]) -> None:
        """Replace the receipts, whole or not at all, and delete files that none names."""
        facts = tuple(facts)
        content = {"kind": _KIND, "version": _VERSION, "methods": [asdict(one) for one in facts]}
        text = json.dumps(content, indent=1, allow_nan=False)
        make_folder(self.folder / ADDED)
        write_atomically(self.folder / ADDED / _RECEIPTS, text.encode())
        keep_only(self.folder, ADDED, (path for one in facts for path in one.stored.values()))

    def values_of(self, run: str) -> dict[str, Mapping[str, float | None]]:
        """Return the values on validation data of the methods that score a run."""
        return {
            one.name: one.validated.get(run, {})
            for one in self.facts
            if run in one.runs and not one.classifier
        }

    def confidence(self, run: str, said: RunScores) -> dict[str, FloatArray]:
        """Return the confidences that were added for what a run says of one exposure."""
        out = {}
        for one in self.facts:
            if one.classifier or run not in one.runs or said.exposure not in one.exposures:
                continue
            file = self._file(one.stored[run])
            if said.exposure not in file.exposures:
                continue
            found = file.read(said.exposure, logits=False)
            if not np.array_equal(found.prediction, said.prediction):
                raise FileFormatError(
                    f"the run {run!r} has changed since {one.name!r} was added: it predicts other "
                    f"classes of {said.exposure!r}. Compute the scores again and add them with "
                    "`replace`, or remove them (`abstain benchmark remove-scores`)"
                )
            out[one.name] = found.confidence[one.name]
        return out

    def classifiers(self, runs: Sequence[Run]) -> list[tuple[Run, AddedFacts, str]]:
        """Return a run for each network that came with an added method, and its file.

        Its arm is the name of the method, its seed that of the run whose pictures were scored.
        """
        by_name = {run.name: run for run in runs}
        out = []
        for one in self.facts:
            if not one.classifier:
                continue
            base = [by_name[name] for name in one.runs if name in by_name]
            several = len({(run.arm, run.setting) for run in base}) > 1
            for run in base:
                setting = "-".join(filter(None, (run.arm, run.setting))) if several else ""
                own = Run(f"{one.name}-{run.name}", one.name, setting, run.seed, one.title)
                out.append((own, one, one.stored[run.name]))
        return out

    def _file(self, name: str) -> ScoreFile:
        return self._files.setdefault(name, ScoreFile(self.folder / name))

    @cached_property
    def _files(self) -> dict[str, ScoreFile]:
        return {}
