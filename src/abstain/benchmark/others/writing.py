"""Writing confidences that came from elsewhere beside the runs they belong to."""

import hashlib
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np

from abstain._foundation.files import make_folder, write_atomically
from abstain._foundation.reading import digest
from abstain.benchmark.others.rows import RowIndex
from abstain.benchmark.selection import validated
from abstain.benchmark.store import ADDED, VALIDATION, AddedFacts, Run, RunScores, Store, packed
from abstain.errors import InputError
from abstain.typing import FloatArray, IntArray

#: What is computed on validation data where the folder does not say: those of the papers.
_SUMMARIZED: Final = ("augrc", "aurc", "failure_auroc", "accuracy", "ece")


def metrics_of(store: Store | None) -> tuple[str, ...]:
    """Return the metrics that are computed on validation data."""
    return tuple((store.config.get("metrics") if store else None) or _SUMMARIZED)


@dataclass(frozen=True, eq=False)
class Writing:
    """Writes the files of methods.

    Attributes
    ----------
    store : Store
        The folder, without what was added before.
    rows : RowIndex
        The rows of the file.
    runs : tuple of Run
        Those that are scored in full.
    path : Path
        The file.
    lower_is_safer : bool
        Whether the sign of its columns is changed.
    """

    store: Store
    rows: RowIndex
    runs: tuple[Run, ...]
    path: Path
    lower_is_safer: bool

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the file."""
        return digest(self.path)

    @cached_property
    def own(self) -> IntArray | None:
        """The predictions of the file, by row of it; None where they are those of the runs."""
        if "prediction" not in self.rows.table.kinds:
            return None
        found = self.rows.codes("prediction", self.store.classes)
        same = all(
            np.array_equal(found[self.rows.cells[place]], said.prediction)
            for place, said in self._pictures.items()
        )
        return None if same else found

    @property
    def notes(self) -> list[str]:
        """What was decided."""
        if self.own is None:
            return []
        return ["judged by the predictions of the file, which differ from those of the runs"]

    def add(self, values: FloatArray, name: str, title: str) -> AddedFacts:
        """Write the confidences of one method; nothing counts before the receipts name it."""
        values = -values if self.lower_is_safer else values
        make_folder(self.store.folder / ADDED)
        stored: dict[str, str] = {}
        checked: dict[str, dict[str, float | None]] = {}
        n = 0
        keys = [VALIDATION, *(one.key for one in self.store.exposures)]
        for number, run in enumerate(self.runs):
            there = [key for key in keys if (run.name, key) in self.rows.cells]
            parts = [self._said(run, key, name, values) for key in there]
            content = packed(parts)
            mark = hashlib.sha256(content).hexdigest()[:12]
            place = f"{ADDED}/{name}-{number}-{mark}.npz"
            write_atomically(self.store.folder / place, content)
            stored[run.name] = place
            n += sum(part.n for part in parts)
            if there[0] == VALIDATION:
                checked |= {
                    run.name: validated(parts[0], {name: False}, metrics_of(self.store))[name]
                }
        seen = {exposure for _, exposure in self._pictures}
        return AddedFacts(
            name=name,
            title=title,
            file=self.path.name,
            digest=self.digest,
            date=datetime.now(UTC).isoformat(timespec="seconds"),
            n=n,
            runs=tuple(run.name for run in self.runs),
            exposures=tuple(key for key in keys if key in seen),
            classifier=self.own is not None,
            stored=stored,
            validated=checked,
        )

    def refuse_other_labels(self) -> None:
        """Where the file has labels they must be those of the folder, or rows were mixed up."""
        if "label" not in self.rows.table.kinds:
            return
        labels = self.rows.codes("label", self.store.classes)
        for (run, key), said in self._pictures.items():
            own = labels[self.rows.cells[run, key]]
            if not np.array_equal(own, said.labels):
                place = int(np.flatnonzero(own != said.labels)[0])
                msg = (
                    f"{self.rows.table.source}: the label of row {place} of the exposure {key!r} "
                    f"of the run {run!r} is {said.labels[place]} in the folder; got {own[place]}. "
                    "Are the rows counted as in the file that `export` writes?"
                )
                raise InputError(msg)

    @cached_property
    def _pictures(self) -> dict[tuple[str, str], RunScores]:
        """What the runs say of each run and exposure of the file, without their confidences."""
        by_name = {run.name: run for run in self.runs}
        return {
            (run, key): replace(self.store.scores(by_name[run], key), confidence={}, reasons={})
            for run, key in self.rows.cells
            if run in by_name
        }

    def _said(self, run: Run, key: str, name: str, values: FloatArray) -> RunScores:
        base = self._pictures[run.name, key]
        rows = self.rows.cells[run.name, key]
        prediction = base.prediction if self.own is None else self.own[rows]
        return replace(base, prediction=prediction, averaged=None, confidence={name: values[rows]})
