"""From the options of `abstain cascade` to what each model said: columns of a file, or files."""

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
    """Where a model is found: in two columns, in the rows that have a value, or in its own file."""

    name: str
    confidence: str = ""
    outcome: str = ""
    condition: ColumnValue | None = None
    file: Path | None = None


def parse_stages(texts: Sequence[str]) -> tuple[StageSource, ...]:
    """Read `--stage NAME=CONFIDENCE,CORRECT`, `NAME=COLUMN=VALUE` and `NAME=FILE`."""
    out = [_parse_stage(text) for text in texts]
    if len({stage.file is None for stage in out}) > 1:
        raise InputError(
            "--stage names columns or rows of FILE for every model, or a file for every model"
        )
    names = [stage.name for stage in out]
    for name in names:
        if name in {PERSON, ERROR} or names.count(name) > 1:
            why = "has a meaning of its own" if names.count(name) == 1 else "is there twice"
            raise InputError(f"--stage: the name {name!r} {why}; take another one")
    return tuple(out)


def _parse_stage(text: str) -> StageSource:
    name, _, where = text.partition("=")
    confidence, comma, right = where.partition(",")
    if name and where and not comma:
        if Path(where).exists():
            return StageSource(name, file=Path(where))
        if (rows := parse_column_value(where)) is not None:
            return StageSource(name, condition=rows)
    elif name and confidence and right and "," not in right:
        return StageSource(name, confidence, right)
    said = "" if comma or not where else f"; there is no file {where!r}"
    raise InputError(
        f"--stage takes NAME=CONFIDENCE,CORRECT, NAME=COLUMN=VALUE or NAME=FILE; got {text!r}{said}"
    )


@dataclass(frozen=True)
class CascadeSource:
    """The file of calibration predictions, the models in it, and the rows that are meant."""

    file: Path | None
    stages: tuple[StageSource, ...]
    columns: Columns
    conditions: tuple[ColumnValue, ...] = ()
    person: str | None = None

    @property
    def has_separate_files(self) -> bool:
        """Whether each model has a file of its own."""
        return bool(self.stages) and self.stages[0].file is not None

    @property
    def files(self) -> list[Path]:
        """The files of the models that have one of their own."""
        return [stage.file for stage in self.stages if stage.file is not None]

    def read_calibration(self, person_error: float | None) -> tuple[dict[str, Any], list[Any]]:
        """Return what each model said of the calibration samples, and the notes of the reader."""
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
        picks: Sequence[ColumnValue],
        person_error: float | None,
        *,
        labeled: bool = False,
    ) -> tuple[dict[str, Any], list[Any]]:
        """Return what each model said of these rows of these files, and the notes of the reader.

        Unless they must be `labeled`, a file may lack the columns of what is right.
        """
        each = list(files) * len(self.stages) if len(files) == 1 else list(files)
        if len(each) != len(self.stages):
            raise InputError(
                f"name one file, or one for each of the {len(self.stages)} stages, parted by "
                f"commas; got {len(files)}"
            )
        found: dict[str, Any] = {}
        notes: list[Any] = []
        for stage, path in zip(self.stages, each, strict=True):
            bare = not labeled and self._has_only_confidences(stage, path, picks)
            if bare:
                found[stage.name] = _confidences(path, stage.confidence)
                continue
            reading = self._read_stage(stage, path, picks)
            said = reading.only()
            if self.columns.id is None and (
                stage.condition is not None or (picks and len(set(each)) > 1)
            ):
                # Rows are numbered as in their file, where no other model says anything of them.
                said = replace(said, ids=None)
            found[stage.name] = said
            notes += _notes_of(reading, path)
        notes += self._order_warnings(each)
        if person_error is not None:
            found[PERSON] = person_error
        if self.person is not None:
            if len(set(each)) > 1:
                raise InputError(f"--person names a column of FILE; {len(files)} files were given")
            found[PERSON] = self._read_person(each[0], picks)
        return found, notes

    def _has_only_confidences(
        self, stage: StageSource, path: Path, picks: Sequence[ColumnValue]
    ) -> bool:
        """Tell whether a file has the confidences of a model, and not what is right."""
        if not stage.confidence or picks or has_column(path, stage.outcome):
            return False
        return has_numeric_column(path, stage.confidence)

    def _read_stage(
        self, stage: StageSource, path: Path, picks: Sequence[ColumnValue]
    ) -> "Reading":
        if not stage.confidence:
            own = picks if stage.condition is None else (*picks, stage.condition)
            return _read_rows(path, self.columns, own)
        second = "correct" if self.columns.label is None else "prediction"
        options: dict[str, Any] = {"confidence": (stage.confidence,), second: stage.outcome}
        return _read_rows(path, replace(self.columns, **options), picks)

    def _order_warnings(self, files: Sequence[Path]) -> "list[Note]":
        """Warn where nothing says that the samples of several models are in the same order."""
        rows = any(stage.condition is not None for stage in self.stages)
        if self.columns.id is not None or not (rows or len(set(files)) > 1):
            return []
        where = ", ".join(dict.fromkeys(path.name for path in files))
        return [
            Note.warning(
                "order",
                f"{where}: The samples of all models are taken to be in the same order. --id "
                "COLUMN matches them by name.",
            )
        ]

    def _read_person(self, path: Path, picks: Sequence[ColumnValue]) -> "Predictions":
        first = self.stages[0]
        own = (first.confidence,) if first.confidence else self.columns.confidence
        columns = replace(
            self.columns, confidence=own, correct=self.person, label=None, prediction=None
        )
        rows = picks if first.condition is None else (*picks, first.condition)
        return _read_rows(path, columns, rows).only()


def read_test_sets(
    given: Sequence[str], source: CascadeSource, person_error: float | None
) -> tuple[dict[str, Any], list[Any]]:
    """Read what the cascade is checked on, by name, with the notes of the reader."""
    sets: dict[str, Any] = {}
    notes: list[Any] = []
    if given and not source.stages:
        raise InputError(
            "say with --stage where each stage of the cascade is found in the data of --apply"
        )
    for text in given:
        pick = parse_column_value(text)
        if pick is None:
            files = [Path(part) for part in text.split(",")]
            name = ", ".join(path.name for path in files)
            picks: tuple[ColumnValue, ...] = ()
        else:
            files, name, picks = _calibration_files(pick, source), str(pick), (pick,)
        if name in sets:
            raise InputError(f"{name!r} is given twice with --apply")
        sets[name], said = source.read(files, picks, person_error)
        notes += said
    return sets, notes


def _calibration_files(pick: ColumnValue, source: CascadeSource) -> list[Path]:
    """Return the calibration files; refuse a part that the cascade was chosen on."""
    on = {own.column: own.value for own in source.conditions}
    files = source.files or [path for path in [source.file] if path is not None]
    if not files:
        raise InputError(
            f"--apply {pick} is a part of the calibration file, and there is none; name a file"
        )
    if on.get(pick.column, pick.value) == pick.value:
        raise InputError(
            f"--apply {pick} would check the cascade on samples that chose it. Choose on another "
            f"part with --calibrate {pick.column}=..."
        )
    return files


def _read_rows(path: Path, columns: Columns, picks: Sequence[ColumnValue]) -> "Reading":
    return read_subset(path, columns, "", picks) if picks else read_files((path,), columns)


def _notes_of(reading: "Reading", path: Path) -> "list[Note]":
    """Return what the reader met, but for the columns, which were named one by one."""
    return [note.within(path.name) for note in reading.notes if note.kind != COLUMNS]


def has_column(path: Path, name: str) -> bool:
    """Tell whether a file has a column of that name, of any kind."""
    from abstain.tables.files import open_table

    return path.is_dir() or name in open_table(path).kind_by_column


def _confidences(path: Path, name: str) -> Any:
    """Return the confidences of a file without labels."""
    from abstain.tables.files import open_table

    return open_table(path).load([name])[name].values
