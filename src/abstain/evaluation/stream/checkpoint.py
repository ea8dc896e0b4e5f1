"""Save counts of samples to a checkpoint file, from which an interrupted run resumes.

A checkpoint is a single file, which is written atomically. The name of the checkpoint contains a
hash of the options and of the names, sizes and modification times of the scanned files.
"""

import hashlib
import json
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from abstain._foundation.archives import Archive
from abstain._foundation.files import lock_file, make_folder, open_atomically, remove_stale_files
from abstain._foundation.notes import READING, Note, RowCount
from abstain._foundation.option_format import format_option
from abstain.confidence import ScoreState
from abstain.errors import FileFormatError, InputError
from abstain.evaluation.records import ExtremeSample
from abstain.evaluation.stream.counts import (
    CountingOptions,
    CountsByName,
    KeyedSample,
    NameCounts,
    SampleState,
    ScoreCounts,
    SplitCounts,
    StreamCounts,
)
from abstain.predictions import CostMatrix
from abstain.streaming import GroupCounts, SortedRuns
from abstain.streaming.groups import ValueCounts, checked_value_counts
from abstain.streaming.runs import SortedRun
from abstain.tables.scan import PredictionScan, Skipped
from abstain.typing import Array

#: Version of the file format. Version 1 did not store checksums of the run files.
_VERSION = 2
#: Fields of `SortedRuns` that are stored in addition to its files.
_RUN_FIELDS = ("n", "total", "weighted", "binary", "precision")
#: Entry of the archive that stores all values other than arrays, as JSON.
_JSON_ENTRY = "plain"


@dataclass(frozen=True)
class Checkpoint:
    """A file with the counts of one scan for given options."""

    path: Path

    @classmethod
    def for_scan(cls, folder: Path, scan: PredictionScan, options: CountingOptions) -> "Checkpoint":
        """Return the checkpoint in the folder for a scan and its counting options."""
        make_folder(folder)
        identity = {
            "version": _VERSION,
            "scores": _score_identity(options),
            **_loss_identity(options),
            **scan.identity(),
        }
        key = hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:16]
        remove_stale_files(folder)
        return cls(folder / f"counted-{key}.npz")

    @property
    def rows_folder(self) -> Path:
        """Folder in which rows with graded losses or weights are stored."""
        return self.path.with_name(f"{self.path.stem}-rows")

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the checkpoint: concurrent runs of a scan would delete each other's files."""
        msg = (
            f"another run counts the same files in {str(self.path.parent)!r}; wait for it, or take "
            f"another folder for {format_option('resume')}"
        )
        with lock_file(self.path.with_suffix(".lock"), msg):
            yield

    def load(self, memory: int) -> StreamCounts:
        """Read the stored counts, or return empty counts if the file does not exist.

        Rows that were stored after the last save are deleted, because they are read again.
        """
        counts = self._load(memory)
        stored_paths = {run.path for state in _states(counts) for run in state.runs}
        for path in (*self.rows_folder.glob("run-*.npy"), *self.rows_folder.glob(".run-*.tmp")):
            if path not in stored_paths:
                path.unlink()
        return counts

    def _load(self, memory: int) -> StreamCounts:
        """Read the stored counts; raise FileFormatError if the file is damaged."""
        if not self.path.exists():
            return StreamCounts()
        try:
            return _read(Archive(self.path), SortedRuns(self.rows_folder, memory))
        except (InputError, KeyError, TypeError, ValueError, IndexError) as error:
            raise FileFormatError(
                f"{self.path} is damaged ({error}); delete it to count anew"
            ) from error

    def save(self, counts: StreamCounts) -> None:
        """Write the counts to the file, after all rows have been written to disk."""
        arrays = _Arrays({})
        metadata = arrays.stream(counts)
        entries: dict[str, Any] = {_JSON_ENTRY: np.array(json.dumps(metadata)), **arrays.entries}
        with open_atomically(self.path) as file:
            np.savez(file, **entries)


def _score_identity(options: CountingOptions) -> list[str] | None:
    """Return the names of the requested scores as a JSON value, or None for all scores."""
    scores = options.scores
    if scores is None:
        return None
    requested = [scores] if isinstance(scores, str | ScoreState) else scores
    return [score if isinstance(score, str) else repr(score) for score in requested]


def _loss_identity(options: CountingOptions) -> dict[str, Any]:
    """Return the loss as JSON fields, or an empty dict for the default loss."""
    loss = options.loss
    if loss is None:
        return {}
    if isinstance(loss, str):
        return {"loss": loss}
    if isinstance(loss, CostMatrix):
        return {"loss": [np.asarray(loss.costs).tolist(), loss.unknown]}
    return {"loss": np.asarray(loss).tolist()}


def _states(counts: StreamCounts) -> Iterator[SortedRuns]:
    """Yield the states of all scores whose rows are stored on disk."""
    scores = [score for split in counts.splits.values() for score in split.scores.values()]
    for score in scores:
        for state in (score.state, score.by_probability):
            if isinstance(state, SortedRuns):
                yield state


# ------------------------------------------------------------------------------------ writing
@dataclass(frozen=True)
class _Arrays:
    """Convert counts to JSON values, and collect their arrays in `entries`."""

    entries: dict[str, Array]

    def stream(self, counts: StreamCounts) -> dict[str, Any]:
        """Return the JSON values of all splits, and add their arrays to the entries."""
        splits = [
            [split, self.split(split_counts)] for split, split_counts in counts.splits.items()
        ]
        notes = [
            [n_rows, [asdict(note) for note in notes_of_batch]]
            for n_rows, notes_of_batch in counts.notes
        ]
        return {
            "pieces": counts.n_pieces,
            "rows": counts.n_rows,
            "notes": notes,
            "skipped": [asdict(skipped) for skipped in counts.skipped],
            "splits": splits,
        }

    def split(self, counts: SplitCounts) -> dict[str, Any]:
        """Return the JSON values of one split, and add its arrays to the entries."""
        return {
            "n": counts.n,
            "unknown": counts.n_unknown_class,
            "weighted": counts.has_weights,
            "named": counts.has_names,
            "answers": [[*pair, count] for pair, count in counts.label_prediction_counts.items()],
            "scores": [[name, self.score(score)] for name, score in counts.scores.items()],
        }

    def score(self, counts: ScoreCounts) -> dict[str, Any]:
        """Return the JSON values of one score, and add its arrays to the entries."""
        return {
            "state": self.state(counts.state),
            "chance": None if counts.by_probability is None else self.state(counts.by_probability),
            "sure": counts.is_probability,
            "own": counts.is_column,
            "by_class": self.named(counts.by_class),
            "by_group": self.named(counts.by_group),
            "overconfident": [[key, asdict(sample)] for key, sample in counts.overconfident],
            "underconfident": [[key, asdict(sample)] for key, sample in counts.underconfident],
        }

    def state(self, state: SampleState) -> list[int] | dict[str, Any]:
        """Return the JSON values of stored samples, and add their counts to the entries."""
        if isinstance(state, SortedRuns):
            runs = [[run.path.name, run.n_rows, run.sha256] for run in state.runs]
            return {"runs": runs, **{name: getattr(state, name) for name in _RUN_FIELDS}}
        successes, failures = self.tally(state.successes), self.tally(state.failures)
        return [successes, failures, state.n, state.precision]

    def named(self, counts_by_name: CountsByName) -> list[list[Any]]:
        """Return the JSON values of classes or groups, and add their arrays to the entries."""
        return [
            [name, counts.n, self.tally(counts.failures)] for name, counts in counts_by_name.items()
        ]

    def tally(self, counts: ValueCounts) -> int:
        """Add the counts of confidences to the entries, and return their identifying number."""
        finalized, number = counts.finalized, len(self.entries) // 2
        self.entries[f"{number}.value"] = finalized.value
        self.entries[f"{number}.count"] = finalized.count
        return number


# ------------------------------------------------------------------------------------ reading
def _rows(stored: Mapping[str, Any], empty: SortedRuns) -> SortedRuns:
    """Restore sorted runs; raise an error if a file has changed."""
    runs = tuple(SortedRun(empty.folder / name, *run) for name, *run in stored["runs"])
    for run in runs:
        run.open()
    return replace(empty, runs=runs, **{name: stored[name] for name in _RUN_FIELDS})


def _samples(stored: list[Any]) -> tuple[KeyedSample, ...]:
    return tuple((key, ExtremeSample(**sample)) for key, sample in stored)


def _read_note(stored: str | dict[str, Any]) -> Note:
    """Restore a note from its fields."""
    if isinstance(stored, str):
        # Versions before 0.2 stored a text instead of fields.
        return Note(READING, stored)
    rows = None if stored["rows"] is None else RowCount(**stored["rows"])
    return Note(**stored | {"split": tuple(map(tuple, stored["split"])), "rows": rows})


def _read(archive: Archive, empty: SortedRuns) -> StreamCounts:
    """Restore the counts from an archive."""
    metadata = json.loads(str(archive[_JSON_ENTRY]))
    arrays = archive.read(name for name in archive if name != _JSON_ENTRY)
    return _Reader(arrays, empty).stream(metadata)


@dataclass(frozen=True)
class _Reader:
    """Restore counts from the JSON values and arrays of `_Arrays`."""

    arrays: Mapping[str, Array]
    #: Sorted runs without rows, for the folder of the rows and the memory.
    empty_runs: SortedRuns

    def stream(self, stored: Mapping[str, Any]) -> StreamCounts:
        """Return the counts of all splits."""
        splits = {}
        for split, stored_split in stored["splits"]:
            splits[tuple(map(tuple, split))] = self.split(stored_split)
        notes = [(n_rows, tuple(map(_read_note, texts))) for n_rows, texts in stored["notes"]]
        return StreamCounts(
            n_pieces=stored["pieces"],
            n_rows=stored["rows"],
            splits=splits,
            notes=tuple(notes),
            skipped=tuple(Skipped(**skipped) for skipped in stored["skipped"]),
        )

    def split(self, stored: Mapping[str, Any]) -> SplitCounts:
        """Return the counts of one split."""
        pair_counts = {}
        for label, prediction, count in stored["answers"]:
            pair_counts[label, prediction] = count
        return SplitCounts(
            n=stored["n"],
            n_unknown_class=stored["unknown"],
            label_prediction_counts=pair_counts,
            scores={name: self.score(stored_score) for name, stored_score in stored["scores"]},
            has_weights=bool(stored.get("weighted")),
            has_names=bool(stored.get("named")),
        )

    def score(self, stored: Mapping[str, Any]) -> ScoreCounts:
        """Return the counts of one score."""
        by_probability = stored["chance"]
        return ScoreCounts(
            state=self.state(stored["state"]),
            by_probability=None if by_probability is None else self.state(by_probability),
            is_probability=stored["sure"],
            is_column=stored["own"],
            by_class=self.named(stored["by_class"]),
            by_group=self.named(stored["by_group"]),
            overconfident=_samples(stored["overconfident"]),
            underconfident=_samples(stored["underconfident"]),
        )

    def state(self, stored: Any) -> SampleState:
        """Restore samples, which are counts or rows on disk."""
        if isinstance(stored, dict):
            return _rows(stored, self.empty_runs)
        successes, failures, n, precision = stored
        return GroupCounts(self.tally(successes), self.tally(failures), n, precision)

    def named(self, stored: list[Any]) -> dict[Hashable, NameCounts]:
        """Restore the counts of classes or groups."""
        return {name: NameCounts(n, self.tally(number)) for name, n, number in stored}

    def tally(self, number: int) -> ValueCounts:
        """Restore the counts of confidences with this identifying number."""
        value, count = self.arrays[f"{number}.value"], self.arrays[f"{number}.count"]
        return checked_value_counts(value, count, f"tally {number}")
