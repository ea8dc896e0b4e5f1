"""What was counted so far, on the disk: an interrupted run goes on from it.

One file, which appears whole or not at all. Its name says of which files and options it is: with
others nothing is found, and the count begins anew.
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
from abstain.streaming.run_files import SortedRun
from abstain.streaming.value_counts import ValueCounts, checked_value_counts
from abstain.tables.scan import PredictionScan, Skipped
from abstain.typing import Array

#: Of the format. Version 1 kept no checksums of the files of rows.
_VERSION = 2
#: What is known of rows besides their files.
_OF_RUNS = ("n", "total", "weighted", "binary", "precision")
#: The entry that holds what is no array, as JSON.
_PLAIN = "plain"


@dataclass(frozen=True)
class Checkpoint:
    """Where the counts of one question about some files are kept."""

    path: Path

    @classmethod
    def for_scan(
        cls, folder: Path, scan: PredictionScan, question: CountingOptions
    ) -> "Checkpoint":
        """Return that of a scan and of what is counted."""
        make_folder(folder)
        scores = question.scores
        names = [scores] if isinstance(scores, str | ScoreState) else scores or ()
        texts = [score if isinstance(score, str) else repr(score) for score in names]
        asked = None if scores is None else texts
        said = json.dumps(
            {"version": _VERSION, "scores": asked, **_loss(question), **scan.identity()}
        )
        key = hashlib.sha256(said.encode()).hexdigest()[:16]
        remove_stale_files(folder)
        return cls(folder / f"counted-{key}.npz")

    @property
    def rows_folder(self) -> Path:
        """Where rows are written that cannot be counted."""
        return self.path.with_name(f"{self.path.stem}-rows")

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep others from counting the same here: each would take away what the other writes."""
        msg = (
            f"another run counts the same files in {str(self.path.parent)!r}; wait for it, or take "
            f"another folder for {format_option('resume')}"
        )
        with lock_file(self.path.with_suffix(".lock"), msg):
            yield

    def load(self, memory: int) -> StreamCounts:
        """Return what was counted; of nothing where nothing is kept.

        Rows that were written after it was kept are deleted, since they are read again, and so are
        files that a killed run did not finish. No other run writes here: see `held`.
        """
        counts = self._load(memory)
        known = {run.path for state in _states(counts) for run in state.runs}
        for path in (*self.rows_folder.glob("run-*.npy"), *self.rows_folder.glob(".run-*.tmp")):
            if path not in known:
                path.unlink()
        return counts

    def _load(self, memory: int) -> StreamCounts:
        if not self.path.exists():
            return StreamCounts()
        try:
            return _read(Archive(self.path), SortedRuns(self.rows_folder, memory))
        except (InputError, KeyError, TypeError, ValueError, IndexError) as error:
            raise FileFormatError(
                f"{self.path} is damaged ({error}); delete it to count anew"
            ) from error

    def save(self, counts: StreamCounts) -> None:
        """Keep what is counted; of rows, those that are on disk must be all."""
        arrays = _Arrays({})
        plain = arrays.stream(counts)
        every: dict[str, Any] = {_PLAIN: np.array(json.dumps(plain)), **arrays.found}
        with open_atomically(self.path) as file:
            np.savez(file, **every)


def _loss(question: CountingOptions) -> dict[str, Any]:
    """Return the loss as JSON takes it; nothing by default."""
    loss = question.loss
    if isinstance(loss, CostMatrix):
        return {"loss": [np.asarray(loss.costs).tolist(), loss.unknown]}
    if loss is None or isinstance(loss, str):
        return {} if loss is None else {"loss": loss}
    return {"loss": np.asarray(loss).tolist()}


def _states(counts: StreamCounts) -> Iterator[SortedRuns]:
    for split in counts.splits.values():
        for kept in split.scores.values():
            yield from (s for s in (kept.state, kept.by_probability) if isinstance(s, SortedRuns))


# ------------------------------------------------------------------------------------ writing
@dataclass(frozen=True)
class _Arrays:
    """Takes the arrays out of counts, and returns the rest."""

    found: dict[str, Array]

    def stream(self, counts: StreamCounts) -> dict[str, Any]:
        """Take those of all splits."""
        return {
            "pieces": counts.n_pieces,
            "rows": counts.n_rows,
            "notes": [[n, [asdict(note) for note in notes]] for n, notes in counts.notes],
            "skipped": [asdict(skipped) for skipped in counts.skipped],
            "splits": [[split, self.split(kept)] for split, kept in counts.splits.items()],
        }

    def split(self, counts: SplitCounts) -> dict[str, Any]:
        """Take those of one."""
        return {
            "n": counts.n,
            "unknown": counts.n_unknown_class,
            "weighted": counts.has_weights,
            "named": counts.has_names,
            "answers": [[*pair, count] for pair, count in counts.label_prediction_counts.items()],
            "scores": [[name, self.score(kept)] for name, kept in counts.scores.items()],
        }

    def score(self, kept: ScoreCounts) -> dict[str, Any]:
        """Take those of one score."""
        return {
            "state": self.state(kept.state),
            "chance": None if kept.by_probability is None else self.state(kept.by_probability),
            "sure": kept.is_probability,
            "own": kept.is_column,
            "by_class": self.named(kept.by_class),
            "by_group": self.named(kept.by_group),
            "overconfident": [[key, asdict(sample)] for key, sample in kept.overconfident],
            "underconfident": [[key, asdict(sample)] for key, sample in kept.underconfident],
        }

    def state(self, state: SampleState) -> list[int] | dict[str, Any]:
        """Take those of a state; of one on disk, the names of its files."""
        if isinstance(state, SortedRuns):
            runs = [[run.path.name, run.n_rows, run.sha256] for run in state.runs]
            return {"runs": runs, **{name: getattr(state, name) for name in _OF_RUNS}}
        own = [self.tally(state.successes), self.tally(state.failures)]
        return [*own, state.n, state.precision]

    def named(self, named: CountsByName) -> list[list[Any]]:
        """Take those of names."""
        return [[name, counts.n, self.tally(counts.failures)] for name, counts in named.items()]

    def tally(self, tally: ValueCounts) -> int:
        """Take those of a tally; return its number."""
        settled, number = tally.finalized, len(self.found) // 2
        self.found[f"{number}.value"] = settled.value
        self.found[f"{number}.count"] = settled.count
        return number


# ------------------------------------------------------------------------------------ reading
def _rows(kept: Mapping[str, Any], empty: SortedRuns) -> SortedRuns:
    """Find the files of rows; refuse others than were written."""
    runs = tuple(SortedRun(empty.folder / name, *run) for name, *run in kept["runs"])
    for run in runs:
        run.open()
    return replace(empty, runs=runs, **{name: kept[name] for name in _OF_RUNS})


def _samples(kept: list[Any]) -> tuple[KeyedSample, ...]:
    return tuple((key, ExtremeSample(**sample)) for key, sample in kept)


def _read_note(stored: str | dict[str, Any]) -> Note:
    if isinstance(stored, str):
        # Versions before 0.2 stored the text.
        return Note(READING, stored)
    rows = None if stored["rows"] is None else RowCount(**stored["rows"])
    return Note(**stored | {"split": tuple(map(tuple, stored["split"])), "rows": rows})


def _read(archive: Archive, empty: SortedRuns) -> StreamCounts:
    plain = json.loads(str(archive[_PLAIN]))
    arrays = archive.read(name for name in archive if name != _PLAIN)

    def tally(number: int) -> ValueCounts:
        return checked_value_counts(
            arrays[f"{number}.value"], arrays[f"{number}.count"], f"tally {number}"
        )

    def state(kept: Any) -> SampleState:
        if isinstance(kept, dict):
            return _rows(kept, empty)
        right, wrong, n, precision = kept
        return GroupCounts(tally(right), tally(wrong), n, precision)

    def named(kept: list[Any]) -> dict[Hashable, NameCounts]:
        return {name: NameCounts(n, tally(number)) for name, n, number in kept}

    def score(kept: Mapping[str, Any]) -> ScoreCounts:
        return ScoreCounts(
            state(kept["state"]),
            None if kept["chance"] is None else state(kept["chance"]),
            kept["sure"],
            kept["own"],
            named(kept["by_class"]),
            named(kept["by_group"]),
            _samples(kept["overconfident"]),
            _samples(kept["underconfident"]),
        )

    def split(kept: Mapping[str, Any]) -> SplitCounts:
        answers = {(label, given): count for label, given, count in kept["answers"]}
        scores = {name: score(own) for name, own in kept["scores"]}
        said = (bool(kept.get(name)) for name in ("weighted", "named"))
        return SplitCounts(kept["n"], kept["unknown"], answers, scores, *said)

    return StreamCounts(
        plain["pieces"],
        plain["rows"],
        {tuple(map(tuple, name)): split(kept) for name, kept in plain["splits"]},
        tuple((n, tuple(map(_read_note, notes))) for n, notes in plain["notes"]),
        tuple(Skipped(**skipped) for skipped in plain["skipped"]),
    )
