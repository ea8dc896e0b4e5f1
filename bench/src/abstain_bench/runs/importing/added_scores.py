"""`add_scores`: add a confidence score that was computed elsewhere to a folder of runs."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

import numpy as np

from abstain._foundation.input_files import input_sha256
from abstain.errors import InputError, UnknownNameError, suggest
from abstain.report.formatting import join_first
from abstain.tables.files import open_table
from abstain.typing import FloatArray, IntArray
from abstain_bench.runs.importing.rows import (
    MAX_LISTED,
    RowIndex,
    check_method_name,
    match_rows,
    method_names,
    method_title,
    unused_column_notes,
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
    """Result of `add_scores`.

    Attributes
    ----------
    methods : tuple of AddedMethod
        The added methods.
    notes : tuple of str
        Remarks on the addition.
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
    """Add confidence scores that were computed elsewhere to a folder of runs.

    Each score column becomes a method, which is ranked together with the methods of the folder.

    Parameters
    ----------
    folder : str or Path
        Folder of runs.
    path : str or Path
        A file with one row per image, in a format that `abstain.tables.read_predictions` can read.
        The columns `run`, `exposure` and `row` identify the image, as in the files that `export`
        writes. If the predictions in the column `prediction` differ from those of the runs, the
        added methods are evaluated with the predictions of the file.
    name : str, optional
        Name of the method. The default is the name of the column. If there are several score
        columns, `name` is the prefix of the method names.
    title : str, optional
        Title of the method in reports. The default title is the name.
    columns : sequence of str, optional
        Columns of confidences. The default is all numeric columns that `export` does not write.
    lower_is_safer : bool, default=False
        Whether the columns contain uncertainties, which are negated.
    replace : bool, default=False
        Whether to replace a method that was added under the same name.

    Returns
    -------
    AddedScores
        The added methods, and notes for the user. `Store.added_methods` also contains the methods.

    Raises
    ------
    InputError
        If the folder contains no runs, or if the name is already in use. If images, exposures or
        seeds are missing, an image is repeated, or labels differ from those of the folder. If the
        file contains several settings but no validation rows, which are needed to select a setting.
    UnknownNameError
        If a run, exposure or column does not exist.
    DomainError
        If a confidence score is not finite, or if a row number or a class is invalid.
    FileFormatError
        If the file is damaged or its format is unknown. No file is unpickled.

    Notes
    -----
    As for all methods, the setting with the best metric on the validation data is selected for each
    metric. An interrupted call adds no method.

    Examples
    --------
    >>> from abstain_bench.runs.importing import add_scores
    >>> add_scores("runs", "my_scores.parquet", name="mine").methods  # doctest: +SKIP
    """
    store = Store.read(folder, with_added=False)
    earlier = Additions.read(store.folder).methods
    table = open_table(Path(path))
    method_by_column = method_names(table, columns, name)
    for method in method_by_column.values():
        check_method_name(method, store, earlier, replace)
    index = match_rows(store, table)
    runs, notes = covered_runs(store, index.rows_by_exposure, table.source)
    writer = _ScoreWriter(store, index, runs, Path(path), lower_is_safer)
    # Run all checks before the first file is written.
    writer.check_labels()
    values = {column: index.confidences(column) for column in method_by_column}
    notes += unused_column_notes(table, method_by_column)
    if writer.custom_prediction is not None:
        notes.append(
            "evaluated with the predictions of the file, which differ from those of the runs"
        )
    added = []
    for column, method in method_by_column.items():
        full_title = method_title(title, column, method, len(method_by_column))
        added.append(writer.add(values[column], method, full_title))
    retained = [method for method in earlier if method.name not in method_by_column.values()]
    Additions(store.folder).write([*retained, *added])
    return AddedScores(tuple(added), (*map(str, table.notes), *notes))


def remove_scores(folder: str | Path, name: str) -> AddedMethod:
    """Remove an added method from a folder of runs.

    Examples
    --------
    >>> from abstain_bench.runs.importing import remove_scores
    >>> remove_scores("runs", "mine")  # doctest: +SKIP
    """
    additions = Additions.read(Store.read(folder, with_added=False).folder)
    by_name = {method.name: method for method in additions.methods}
    if name not in by_name:
        listed = ", ".join(by_name) or "none"
        raise UnknownNameError(
            f"no method {name!r} was added to {str(folder)!r}.{suggest(name, by_name)} "
            f"It has: {listed}"
        )
    additions.write(method for method in additions.methods if method.name != name)
    return by_name[name]


def covered_runs(
    store: Store, pairs: Collection[tuple[str, str]], source: str
) -> tuple[tuple[Run, ...], list[str]]:
    """Return the tested runs that have scores in a file, in the order of the folder, and notes.

    `pairs` contains each run and exposure of the file. InputError is raised if an exposure, a seed
    of a setting, or required validation rows are missing.
    """
    exposures_by_run: dict[str, set[str]] = {}
    for name, exposure in pairs:
        exposures_by_run.setdefault(name, set()).add(exposure)
    tested = [run.name for run in store.tested_runs]
    notes = _check_untested_runs(exposures_by_run, tested, source)
    runs = tuple(run for run in store.tested_runs if run.name in exposures_by_run)
    if not runs:
        raise InputError(
            f"{source} scores no run that was tested; tested runs are: "
            f"{join_first(tested, MAX_LISTED)}"
        )
    for run in runs:
        _check_exposures(store, run, exposures_by_run[run.name], source)
    _check_seeds(store, runs, source)
    return runs, notes + _check_validation_rows(runs, exposures_by_run, source)


def _check_untested_runs(
    exposures_by_run: Mapping[str, set[str]], tested: Collection[str], source: str
) -> list[str]:
    """Return a note about validation rows of untested runs; raise an error for their other rows."""
    untested = [name for name in exposures_by_run if name not in tested]
    for name in untested:
        surplus = sorted(exposures_by_run[name] - {VALIDATION})
        if surplus:
            raise InputError(
                f"{source}: the run {name!r} was not tested, because no method selected its "
                f"setting; got rows of its exposure {surplus[0]!r}. Remove its rows"
            )
    if not untested:
        return []
    note = (
        "not used, because these runs were not tested and cannot be selected: the validation rows "
        f"of {join_first(untested, MAX_LISTED)}"
    )
    return [note]


def _check_exposures(store: Store, run: Run, scored: set[str], source: str) -> None:
    """Raise an error if an exposure of a run is missing in the file."""
    missing = [exposure.key for exposure in store.exposures if exposure.key not in scored]
    if missing:
        raise InputError(
            f"{source}: all exposures of a run must be scored, so that every table can contain the "
            f"method; of the run {run.name!r} these are missing: {join_first(missing, MAX_LISTED)}"
        )


def _check_seeds(store: Store, runs: tuple[Run, ...], source: str) -> None:
    """Raise an error if the file contains only some of the tested seeds of a setting."""
    settings = {(run.arm, run.setting) for run in runs}
    scored = {run.name for run in runs}
    missing = [
        run.name
        for run in store.tested_runs
        if (run.arm, run.setting) in settings and run.name not in scored
    ]
    if missing:
        raise InputError(
            f"{source}: all seeds of a setting must be scored, because methods are compared over "
            f"the same seeds; missing: {join_first(missing, MAX_LISTED)}"
        )


def _check_validation_rows(
    runs: tuple[Run, ...], exposures_by_run: Mapping[str, set[str]], source: str
) -> list[str]:
    """Return a note if the file has no validation rows.

    InputError is raised if only some runs have validation rows, or if they are missing for several
    settings.
    """
    missing = [run.name for run in runs if VALIDATION not in exposures_by_run[run.name]]
    if not missing:
        return []
    settings = dict.fromkeys((run.arm, run.setting) for run in runs)
    if len(settings) > 1:
        labels = [f"{arm} {setting}".strip() for arm, setting in settings]
        raise InputError(
            f"{source}: it scores {len(settings)} settings ({join_first(labels, MAX_LISTED)}), "
            "among which validation data must select; add the rows of the exposure 'validation' of "
            f"{join_first(missing, MAX_LISTED)}, or retain the rows of one setting"
        )
    if len(missing) < len(runs):
        raise InputError(
            f"{source}: the exposure 'validation' must be scored for all runs or for none; "
            f"missing: {join_first(missing, MAX_LISTED)}"
        )
    note = (
        "there are no rows of the exposure 'validation', so calibration errors and thresholds of "
        "this method cannot be computed"
    )
    return [note]


@dataclass(frozen=True, eq=False)
class _ScoreWriter:
    """Writes the score files of added methods."""

    store: Store
    index: RowIndex
    runs: tuple[Run, ...]
    path: Path
    lower_is_safer: bool

    @cached_property
    def custom_prediction(self) -> IntArray | None:
        """Predictions in the file, or None if they are missing or equal to those of the runs."""
        if "prediction" not in self.index.table.kind_by_column:
            return None
        prediction = self.index.class_codes("prediction", self.store.classes)
        for pair, scores in self._run_scores.items():
            rows = self.index.rows_by_exposure[pair]
            if not np.array_equal(prediction[rows], scores.prediction):
                return prediction
        return None

    def add(self, values: FloatArray, name: str, title: str) -> AddedMethod:
        """Write the score files of one method, which have no effect until the method is listed."""
        confidence = -values if self.lower_is_safer else values
        stored: dict[str, str] = {}
        values_by_run: dict[str, dict[str, float | None]] = {}
        n_images = 0
        keys = [VALIDATION, *(exposure.key for exposure in self.store.exposures)]
        for number, run in enumerate(self.runs):
            run_keys = [key for key in keys if (run.name, key) in self.index.rows_by_exposure]
            run_scores = [self._scores_for(run.name, key, name, confidence) for key in run_keys]
            stored[run.name] = write_scores(
                self.store.folder, f"{ADDED}/{name}-{number}", run_scores
            )
            n_images += sum(scores.n for scores in run_scores)
            if run_keys[0] == VALIDATION:
                metrics = reported_metrics(self.store)
                value_by_method = validation_values(run_scores[0], {name: False}, metrics)
                values_by_run[run.name] = value_by_method[name]
        scored_keys = {exposure for _, exposure in self._run_scores}
        return AddedMethod(
            name=name,
            title=title,
            file=self.path.name,
            digest=input_sha256(self.path),
            date=datetime.now(UTC).isoformat(timespec="seconds"),
            n=n_images,
            runs=tuple(run.name for run in self.runs),
            exposures=tuple(key for key in keys if key in scored_keys),
            classifier=self.custom_prediction is not None,
            stored=stored,
            validated=values_by_run,
        )

    def _scores_for(self, run: str, key: str, method: str, confidence: FloatArray) -> RunScores:
        """Return the outputs of a run for one exposure, with the added scores of a method."""
        rows = self.index.rows_by_exposure[run, key]
        scores = self._run_scores[run, key]
        if self.custom_prediction is not None:
            scores = replace(scores, prediction=self.custom_prediction[rows])
        return replace(scores, mean_prediction=None, confidence={method: confidence[rows]})

    def check_labels(self) -> None:
        """Raise an error if labels in the file differ from those of the folder."""
        if "label" not in self.index.table.kind_by_column:
            return
        file_labels = self.index.class_codes("label", self.store.classes)
        for (run, key), scores in self._run_scores.items():
            labels = file_labels[self.index.rows_by_exposure[run, key]]
            if not np.array_equal(labels, scores.labels):
                row = int(np.flatnonzero(labels != scores.labels)[0])
                raise InputError(
                    f"{self.index.table.source}: the label of row {row} of the exposure {key!r} "
                    f"of the run {run!r} is {scores.labels[row]} in the folder; got {labels[row]}. "
                    "Are the rows counted as in the file that `export` writes?"
                )

    @cached_property
    def _run_scores(self) -> dict[tuple[str, str], RunScores]:
        """Stored outputs of each run and exposure in the file, without scores."""
        by_name = {run.name: run for run in self.runs}
        return {
            (run, key): replace(self.store.scores(by_name[run], key), confidence={}, reasons={})
            for run, key in self.index.rows_by_exposure
            if run in by_name
        }
