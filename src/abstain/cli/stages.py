"""Read the predictions of each stage of a cascade from columns, rows or files."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from abstain._foundation.notes import COLUMNS, Note
from abstain.cli.options import Columns
from abstain.cli.predictions import has_numeric_column, read_files
from abstain.cli.subsets import ColumnValue, parse_column_value, read_subset
from abstain.errors import InputError
from abstain.thresholds.cascade import ERROR, PERSON

if TYPE_CHECKING:
    from abstain.predictions import Predictions
    from abstain.tables import Reading


@dataclass(frozen=True)
class StageSource:
    """Location of the predictions of one model: two columns, rows with a value, or a file."""

    name: str
    confidence: str = ""
    #: Column with the correctness, or with the prediction if there is a column of labels.
    outcome: str = ""
    #: Condition on the rows of the model.
    condition: ColumnValue | None = None
    file: Path | None = None


def parse_stages(texts: Sequence[str]) -> tuple[StageSource, ...]:
    """Parse `--stage NAME=CONFIDENCE,CORRECT`, `NAME=COLUMN=VALUE` and `NAME=FILE`."""
    stages = [_parse_stage(text) for text in texts]
    if len({stage.file is None for stage in stages}) > 1:
        raise InputError(
            "--stage names either columns or rows of FILE for every model, or a file for every "
            "model"
        )
    names = [stage.name for stage in stages]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"--stage: the name {name!r} occurs twice; use different names")
        if name in {PERSON, ERROR}:
            raise InputError(f"--stage: the name {name!r} is reserved; use another one")
    return tuple(stages)


def _parse_stage(text: str) -> StageSource:
    """Parse the argument of one `--stage`."""
    name, _, location = text.partition("=")
    confidence, comma, outcome = location.partition(",")
    if name and comma and confidence and outcome and "," not in outcome:
        return StageSource(name, confidence, outcome)
    hint = ""
    if name and location and not comma:
        if Path(location).exists():
            return StageSource(name, file=Path(location))
        condition = parse_column_value(location)
        if condition is not None:
            return StageSource(name, condition=condition)
        hint = f"; the file {location!r} does not exist"
    raise InputError(
        f"--stage takes NAME=CONFIDENCE,CORRECT, NAME=COLUMN=VALUE or NAME=FILE; got {text!r}{hint}"
    )


@dataclass(frozen=True)
class CascadeSource:
    """The calibration files, the models, and the conditions that select rows."""

    file: Path | None
    stages: tuple[StageSource, ...]
    columns: Columns
    conditions: tuple[ColumnValue, ...] = ()
    #: Column with the correctness of the person.
    person: str | None = None

    @property
    def has_separate_files(self) -> bool:
        """Whether each model has its own file."""
        return bool(self.stages) and self.stages[0].file is not None

    @property
    def files(self) -> list[Path]:
        """The files of the models that have their own file."""
        return [stage.file for stage in self.stages if stage.file is not None]

    def read_calibration(self, person_error: float | None) -> tuple[dict[str, Any], list[Any]]:
        """Return the calibration predictions of each stage, and notes on the data."""
        if self.has_separate_files:
            return self.read(self.files, self.conditions, person_error, labeled=True)
        if self.file is None:
            raise InputError(
                "name the file of calibration predictions, or a saved cascade with --rule"
            )
        return self.read([self.file], self.conditions, person_error, labeled=True)

    def read(
        self,
        files: Sequence[Path],
        conditions: Sequence[ColumnValue],
        person_error: float | None,
        *,
        labeled: bool = False,
    ) -> tuple[dict[str, Any], list[Any]]:
        """Return the predictions of each stage in the selected rows, and notes on the data.

        If `labeled` is false, the columns that define correctness may be missing.
        """
        paths = list(files) * len(self.stages) if len(files) == 1 else list(files)
        if len(paths) != len(self.stages):
            raise InputError(
                f"name one file, or one for each of the {len(self.stages)} stages, separated by "
                f"commas; got {len(files)}"
            )
        has_several_files = len(set(paths)) > 1
        stages: dict[str, Any] = {}
        notes: list[Any] = []
        for stage, path in zip(self.stages, paths, strict=True):
            if not labeled and self._has_only_confidences(stage, path, conditions):
                stages[stage.name] = _read_confidences(path, stage.confidence)
                continue
            reading = self._read_stage(stage, path, conditions)
            predictions = reading.only()
            is_subset = stage.condition is not None or (conditions and has_several_files)
            if self.columns.id is None and is_subset:
                # Row numbers would not match those of the other models.
                predictions = replace(predictions, ids=None)
            stages[stage.name] = predictions
            # The notes on columns are omitted, because options name all columns.
            notes += [note.within(path.name) for note in reading.notes if note.kind != COLUMNS]
        notes += self._order_warnings(paths)
        if person_error is not None:
            stages[PERSON] = person_error
        if self.person is not None:
            if has_several_files:
                raise InputError(
                    f"--person names a column of FILE, but {len(files)} files were passed"
                )
            stages[PERSON] = self._read_person(paths[0], conditions)
        return stages, notes

    def _has_only_confidences(
        self, stage: StageSource, path: Path, conditions: Sequence[ColumnValue]
    ) -> bool:
        """Return whether a file has the confidences of a model, but no correctness columns."""
        if not stage.confidence or conditions or has_column(path, stage.outcome):
            return False
        return has_numeric_column(path, stage.confidence)

    def _read_stage(
        self, stage: StageSource, path: Path, conditions: Sequence[ColumnValue]
    ) -> "Reading":
        """Read the predictions of a model from the rows of a file that belong to this model."""
        if not stage.confidence:
            if stage.condition is not None:
                conditions = (*conditions, stage.condition)
            return _read_rows(path, self.columns, conditions)
        outcome_role = "correct" if self.columns.label is None else "prediction"
        options: dict[str, Any] = {"confidence": (stage.confidence,), outcome_role: stage.outcome}
        return _read_rows(path, replace(self.columns, **options), conditions)

    def _order_warnings(self, files: Sequence[Path]) -> "list[Note]":
        """Warn if nothing confirms that the models have the same samples in the same order."""
        uses_subsets = any(stage.condition is not None for stage in self.stages)
        if self.columns.id is not None or not (uses_subsets or len(set(files)) > 1):
            return []
        names = ", ".join(dict.fromkeys(path.name for path in files))
        text = (
            f"{names}: The samples of all models are assumed to be in the same order. Pass --id "
            "COLUMN to match them by name."
        )
        return [Note.warning("order", text)]

    def _read_person(self, path: Path, conditions: Sequence[ColumnValue]) -> "Predictions":
        """Read the correctness of the person."""
        first_stage = self.stages[0]
        confidence = self.columns.confidence
        if first_stage.confidence:
            confidence = (first_stage.confidence,)
        columns = replace(
            self.columns, confidence=confidence, correct=self.person, label=None, prediction=None
        )
        if first_stage.condition is not None:
            conditions = (*conditions, first_stage.condition)
        return _read_rows(path, columns, conditions).only()


def read_test_sets(
    arguments: Sequence[str], source: CascadeSource, person_error: float | None
) -> tuple[dict[str, Any], list[Any]]:
    """Read the test sets of --apply, and return the data sets by name, and notes on the data."""
    test_sets: dict[str, Any] = {}
    notes: list[Any] = []
    if arguments and not source.stages:
        raise InputError("name the predictions of each stage in the data of --apply with --stage")
    for argument in arguments:
        condition = parse_column_value(argument)
        conditions: tuple[ColumnValue, ...]
        if condition is None:
            files = [Path(path) for path in argument.split(",")]
            name = ", ".join(file.name for file in files)
            conditions = ()
        else:
            files = _calibration_files(condition, source)
            name = str(condition)
            conditions = (condition,)
        if name in test_sets:
            raise InputError(f"{name!r} occurs twice in --apply")
        test_sets[name], reader_notes = source.read(files, conditions, person_error)
        notes += reader_notes
    return test_sets, notes


def _calibration_files(condition: ColumnValue, source: CascadeSource) -> list[Path]:
    """Return the calibration files.

    Raise an error if a condition for test data selects calibration samples.
    """
    files = source.files or [path for path in [source.file] if path is not None]
    if not files:
        raise InputError(
            f"--apply {condition} selects rows of the calibration file, but no calibration file "
            "was passed; name a file"
        )
    calibration_values = dict(source.conditions)
    if calibration_values.get(condition.column, condition.value) == condition.value:
        raise InputError(
            f"--apply {condition} contains calibration samples. Choose the cascade on another "
            f"subset with --calibrate {condition.column}=..."
        )
    return files


def _read_rows(path: Path, columns: Columns, conditions: Sequence[ColumnValue]) -> "Reading":
    if conditions:
        return read_subset(path, columns, "", conditions)
    return read_files((path,), columns)


def has_column(path: Path, name: str) -> bool:
    """Return whether a file has a column with this name.

    If the path is a folder, the result is True.
    """
    from abstain.tables.files import open_table

    return path.is_dir() or name in open_table(path).kind_by_column


def _read_confidences(path: Path, name: str) -> Any:
    """Return the confidences in a file that has no labels."""
    from abstain.tables.files import open_table

    return open_table(path).load([name])[name].values
