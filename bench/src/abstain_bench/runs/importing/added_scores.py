"""`add_scores`: someone else's confidence score on the runs of a folder."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

import numpy as np

from abstain._foundation.input_files import input_sha256
from abstain.errors import InputError, UnknownNameError, suggest
from abstain.tables.files import open_table
from abstain.typing import FloatArray, IntArray
from abstain_bench.runs.importing.rows import (
    RowIndex,
    methods_of,
    refuse_taken,
    rows_of,
    titled,
    unused,
)
from abstain_bench.runs.selection import reported_metrics, validation_values
from abstain_bench.runs.store import (
    ADDED,
    VALIDATION,
    AddedMethod,
    Additions,
    Run,
    RunScores,
    Store,
    write_scores,
)


@dataclass(frozen=True)
class AddedScores:
    """What `add_scores` did.

    Attributes
    ----------
    methods : tuple of AddedFacts
        What is there now that was not.
    notes : tuple of str
        What was met and decided, in sentences.
    """

    methods: tuple[AddedMethod, ...]
    notes: tuple[str, ...] = ()


def add_scores(
    folder: str | Path,
    path: str | Path,
    *,
    name: str | None = None,
    title: str = "",
    columns: Sequence[str] = (),
    lower_is_safer: bool = False,
    replace: bool = False,
) -> AddedScores:
    """Add confidences that were computed elsewhere, to be ranked with the methods of a folder.

    Answers: where does my confidence score stand among the others, on every shift?

    Parameters
    ----------
    folder : str or Path
        Of runs.
    path : str or Path
        A file of any kind that `abstain.tables.read_predictions` reads, one row an image. The
        columns `run`, `exposure` and `row` say which image it is, as in the file that `export`
        writes; all other columns of numbers are confidences, each of one method. With a column
        `prediction` that differs from what the runs predict, the method is judged by that.
    name : str, optional
        Of the method; the name of the column by default. With several columns it is put before
        their names.
    title : str, optional
        The name that people read; the name by default.
    columns : sequence of str, optional
        The confidences; by default all columns of numbers but those named above and the
        columns label, logit_0, logit_1, ...
    lower_is_safer : bool, default=False
        The columns hold uncertainties: their sign is changed.
    replace : bool, default=False
        Whether a method that was added under the same name is replaced.

    Returns
    -------
    AddedScores
        The receipts, which `Store.added` gives too, and what was met.

    Raises
    ------
    InputError
        The folder is no folder of runs, or the file lacks images, exposures, seeds, or the
        validation rows that are needed to choose among several settings; or has some twice; or
        its labels are others; or the name is taken.
    UnknownNameError
        There is no such run, exposure or column.
    DomainError
        Confidences that are not finite, or rows and classes that are not what they must be.
    FileFormatError
        The file is damaged, or of a format that is not read. Nothing is ever unpickled.

    Notes
    -----
    Confidences of the exposure "validation" choose among the settings that the file covers, by
    metric, as for any other method. Adding is done when the receipts are written: if it is
    interrupted before that, nothing was added.

    Examples
    --------
    >>> from abstain_bench.runs.importing import add_scores
    >>> add_scores("runs", "my_scores.parquet", name="mine").methods  # doctest: +SKIP
    """
    store = Store.read(folder, with_added=False)
    before = Additions.read(store.folder).methods
    table = open_table(Path(path))
    asked = methods_of(table, columns, name)
    for method in asked.values():
        refuse_taken(method, store, before, replace)
    rows = rows_of(store, table)
    runs, notes = covered_runs(store, rows.cells, table.source)
    work = _Writing(store, rows, runs, Path(path), lower_is_safer)
    work.refuse_other_labels()
    # All that can be refused is, before anything is written.
    values = {column: rows.numbers(column) for column in asked}
    notes += [*unused(table, asked), *work.notes]
    added = [
        work.add(values[column], method, titled(title, column, method, len(asked)))
        for column, method in asked.items()
    ]
    kept = [one for one in before if one.name not in asked.values()]
    Additions(store.folder).write([*kept, *added])
    return AddedScores(tuple(added), (*map(str, table.notes), *notes))


def remove_scores(folder: str | Path, name: str) -> AddedMethod:
    """Remove a method that was added to a folder of runs.

    Examples
    --------
    >>> from abstain_bench.runs.importing import remove_scores
    >>> remove_scores("runs", "mine")  # doctest: +SKIP
    """
    additions = Additions.read(Store.read(folder, with_added=False).folder)
    by_name = {one.name: one for one in additions.methods}
    if name not in by_name:
        shown = ", ".join(by_name) or "none"
        msg = f"no method {name!r} was added to {str(folder)!r}.{suggest(name, by_name)} It has: "
        raise UnknownNameError(msg + shown)
    additions.write(one for one in additions.methods if one.name != name)
    return by_name[name]


def covered_runs(
    store: Store, cells: Collection[tuple[str, str]], source: str
) -> tuple[tuple[Run, ...], list[str]]:
    """Return the runs that are scored in full, in the order of the folder, and what is to say.

    Refused where exposures of a run, seeds of a setting, or the validation rows that a choice among
    settings needs are missing. `cells` are the run and exposure of all rows.
    """
    by_run: dict[str, set[str]] = {}
    for run, exposure in cells:
        by_run.setdefault(run, set()).add(exposure)
    tested = {run.name: run for run in store.tested_runs}
    notes = _untested(by_run, tested, source)
    runs = tuple(run for run in store.tested_runs if run.name in by_run)
    if not runs:
        raise InputError(
            f"{source} scores no run that was tested; the runs that were: {_listed(list(tested))}"
        )
    for one in runs:
        _refuse_part(store, one, by_run[one.name], source)
    _refuse_lacking_seeds(store, runs, source)
    return runs, notes + _validation_notes(runs, by_run, source)


def _untested(by_run: Mapping[str, set[str]], tested: Mapping[str, Run], source: str) -> list[str]:
    """Refuse tests that never were; leave out validation rows that can choose nothing."""
    others = [name for name in by_run if name not in tested]
    for name in others:
        if surplus := sorted(by_run[name] - {VALIDATION}):
            raise InputError(
                f"{source}: the run {name!r} was not tested, since no method chose its setting; "
                f"got rows of its exposure {surplus[0]!r}. Leave its rows out"
            )
    if not others:
        return []
    return [
        "not used, as these runs were not tested and cannot be chosen: the validation rows of "
        + _listed(others)
    ]


def _refuse_part(store: Store, run: Run, there: set[str], source: str) -> None:
    lacking = [one.key for one in store.exposures if one.key not in there]
    if lacking:
        raise InputError(
            f"{source}: all exposures of a run must be scored, so that every table can show the "
            f"method; of the run {run.name!r} these are missing: {_listed(lacking)}"
        )


def _refuse_lacking_seeds(store: Store, runs: tuple[Run, ...], source: str) -> None:
    places = {(run.arm, run.setting) for run in runs}
    there = {run.name for run in runs}
    lacking = [
        run.name
        for run in store.tested_runs
        if (run.arm, run.setting) in places and run.name not in there
    ]
    if lacking:
        raise InputError(
            f"{source}: all seeds of a setting must be scored, as methods are compared over the "
            f"same seeds; missing: {_listed(lacking)}"
        )


def _validation_notes(
    runs: tuple[Run, ...], by_run: Mapping[str, set[str]], source: str
) -> list[str]:
    lacking = [run.name for run in runs if VALIDATION not in by_run[run.name]]
    if not lacking:
        return []
    places = dict.fromkeys((run.arm, run.setting) for run in runs)
    if len(places) > 1:
        labels = [f"{arm} {setting}".strip() for arm, setting in places]
        raise InputError(
            f"{source}: it scores {len(places)} settings ({_listed(labels)}), and among "
            "them only validation data may choose; add the rows of the exposure 'validation' of "
            f"{_listed(lacking)}, or keep the rows of one setting"
        )
    if len(lacking) < len(runs):
        raise InputError(
            f"{source}: the exposure 'validation' must be scored for all runs or for none; "
            f"missing: {_listed(lacking)}"
        )
    note = (
        "there are no rows of the exposure 'validation': what needs them (calibration errors, "
        "thresholds) cannot be told of this method"
    )
    return [note]


def _listed(names: list[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


@dataclass(frozen=True, eq=False)
class _Writing:
    """Writes the files of methods: the rows of a file, for the runs that are scored in full."""

    store: Store
    rows: RowIndex
    runs: tuple[Run, ...]
    path: Path
    lower_is_safer: bool

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the file."""
        return input_sha256(self.path)

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

    def add(self, values: FloatArray, name: str, title: str) -> AddedMethod:
        """Write the confidences of one method; nothing counts before the receipts name it."""
        values = -values if self.lower_is_safer else values
        stored: dict[str, str] = {}
        checked: dict[str, dict[str, float | None]] = {}
        n = 0
        keys = [VALIDATION, *(one.key for one in self.store.exposures)]
        for number, run in enumerate(self.runs):
            there = [key for key in keys if (run.name, key) in self.rows.cells]
            parts = [self._said(run, key, name, values) for key in there]
            stored[run.name] = write_scores(self.store.folder, f"{ADDED}/{name}-{number}", parts)
            n += sum(part.n for part in parts)
            if there[0] == VALIDATION:
                checked |= {
                    run.name: validation_values(
                        parts[0], {name: False}, reported_metrics(self.store)
                    )[name]
                }
        seen = {exposure for _, exposure in self._pictures}
        return AddedMethod(
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
                raise InputError(
                    f"{self.rows.table.source}: the label of row {place} of the exposure {key!r} "
                    f"of the run {run!r} is {said.labels[place]} in the folder; got {own[place]}. "
                    "Are the rows counted as in the file that `export` writes?"
                )

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
        return replace(
            base, prediction=prediction, mean_prediction=None, confidence={name: values[rows]}
        )
