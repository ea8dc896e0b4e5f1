"""`scan_predictions`: predictions too large for memory, read batch by batch."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeAlias

from abstain._foundation.notes import DROPPED, READING, Note
from abstain._foundation.option_format import format_option
from abstain.errors import AbstainError, FileFormatError, InputError
from abstain.predictions import Predictions
from abstain.tables._build import APART, build_part, check_lengths
from abstain.tables._choice import ChosenColumns, choose
from abstain.tables._reading import ColumnNames, ReadingOptions, options
from abstain.tables.column import NoRowLeftError
from abstain.tables.decimal_comma import with_decimal_mark
from abstain.tables.scan.bad_rows import BadRows
from abstain.tables.scan.parts import identity, names_of, parts_of
from abstain.tables.scan.pieces import Piece, cut_sizes, pieces_of
from abstain.tables.scan.schema import kinds_of, refuse_other
from abstain.tables.table import DataTable, from_frame
from abstain.typing import Split

#: The word for the files themselves where they are to be taken apart, and the column it means.
FILENAME, FILE = "filename", "file"

#: How messages name one.
FRAME = "the dask dataframe"

#: The file by which the columns are chosen, these, and what each of its columns holds.
_First: TypeAlias = tuple[Path, ChosenColumns, Mapping[str, str]]

_ASKED = tuple(own.name for own in fields(ReadingOptions))


@dataclass(frozen=True)
class Skipped:
    """Rows or files that were left out, and why.

    Attributes
    ----------
    source : str
        The file, and where in it.
    rows : int
        How many; -1 for a file, or a block of a text, whose rows nobody could count.
    reason : str
        The first rule that was broken.
    """

    source: str
    rows: int
    reason: str


@dataclass(frozen=True, eq=False)
class ScannedBatch:
    """What one piece of a file holds.

    Attributes
    ----------
    piece : Piece
        Which one.
    splits : mapping from split to Predictions
        As in a `Reading`; empty where every row was bad.
    notes : tuple of Note
        What was decided about rows.
    skipped : tuple of Skipped
        What was left out.
    rows : int
        Of the piece, those left out too.
    """

    piece: Piece
    splits: Mapping[Split, Predictions]
    notes: tuple[Note, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    rows: int = 0


@dataclass(frozen=True, eq=False)
class PredictionScan:
    r"""Predictions in files, none of which is read yet; made by `scan_predictions`.

    Attributes
    ----------
    paths : tuple of Path
        The parts of one set of predictions, in order.
    notes : tuple of Note
        Which columns are taken.
    skipped : tuple of Skipped
        Files that cannot be read, where these are to be left out.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from abstain.tables import scan_predictions
    >>> with TemporaryDirectory() as folder:
    ...     for part in "ab":
    ...         lines = "label,prediction,confidence\n1,1,0.9\n0,1,0.4\n"
    ...         _ = (Path(folder) / f"{part}.csv").write_text(lines)
    ...     scan = scan_predictions(f"{folder}/*.csv")
    ...     [batch.splits[()].n for batch in scan.batches()]
    [2, 2]
    """

    paths: tuple[Path, ...]
    asked: ReadingOptions = field(repr=False)
    chosen: ChosenColumns = field(repr=False)
    notes: tuple[Note, ...] = field(default=(), repr=False)
    skip_bad: bool = False
    by_file: bool = False
    skipped: tuple[Skipped, ...] = ()
    #: The partitions of a dask dataframe, in place of files.
    frame: Any = field(default=None, repr=False)

    @property
    def source(self) -> str:
        """How messages and pages name it."""
        if self.frame is not None:
            return FRAME
        names = [path.name for path in self.paths]
        return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]} ({len(names):,} files)"

    def identity(self) -> dict[str, Any]:
        """Return what changes when a file or an option of reading does, as JSON takes it."""
        values = {name: getattr(self.asked, name) for name in _ASKED}
        asked = {k: [str(x) for x in v] if isinstance(v, tuple) else v for k, v in values.items()}
        own = {"skip_bad": self.skip_bad, "by_file": self.by_file}
        return {"files": identity(self.paths), "asked": {**asked, **own}, "cut": cut_sizes()}

    def pieces(self) -> Iterator[Piece]:
        """Yield the pieces of all files, in order."""
        names = names_of(self.paths)
        for path in self.paths:
            for piece in pieces_of(path, len(self.chosen.names())):
                yield replace(piece, name=names[path])

    def batches(self) -> Iterator[ScannedBatch]:
        """Yield what the pieces hold, one after the other."""
        return map(self.read, self.pieces())

    def read(self, piece: Piece) -> ScannedBatch:
        """Read one piece."""
        file = ((FILE, piece.file),) if self.by_file else ()
        found = self._read(piece, piece.open)
        splits = {(*file, *split): p for split, p in found.splits.items()}
        return replace(found, splits=splits)

    def read_partition(self, partition: Any, number: int) -> ScannedBatch:
        """Read one partition of a dask dataframe, which is a dataframe of pandas."""
        piece = Piece(Path(f"partition {number}"), "", 0, len(partition), 0)
        if not piece.size:
            return ScannedBatch(piece, {})
        return self._read(piece, lambda: replace(table_of(partition, piece.source), first=0))

    def _read(self, piece: Piece, opened: Callable[[], DataTable]) -> ScannedBatch:
        try:
            table = with_decimal_mark(opened(), self.asked.decimal)
            return replace(self._rows(table), piece=piece)
        except NoRowLeftError as error:
            if self.asked.missing == "drop":
                return ScannedBatch(piece, {}, error.notes, (), error.n_rows)
            reasons = "; ".join(note.text for note in error.notes if note.kind == DROPPED)
            skipped = (Skipped(piece.source, error.n_rows, reasons),)
            return ScannedBatch(piece, {}, (), skipped, error.n_rows)
        except AbstainError as error:
            if not self.skip_bad:
                raise
            left_out = (Skipped(piece.source, piece.rows, str(error)),)
            return ScannedBatch(piece, {}, (), left_out, max(piece.rows, 0))

    def _rows(self, table: DataTable) -> ScannedBatch:
        """Read a table; where bad rows are to be left out, those that keep their rules."""
        piece = Piece(Path(), "", 0, 0, 0)
        if not self.skip_bad:
            found = build_part(table, self.chosen, self.asked)
            return ScannedBatch(piece, found.splits, found.notes, (), table.height)
        asked = replace(self.asked, missing="drop")
        table, height = table.loaded(self.chosen.names()), table.height
        # A column of another length is no matter of single rows.
        check_lengths(table, table.load(self.chosen.names()))
        skipped: tuple[Skipped, ...] = ()
        try:
            found = build_part(table, self.chosen, asked)
        except NoRowLeftError:
            raise
        except AbstainError as error:
            bad = BadRows(lambda part: build_part(part, self.chosen, asked), table)
            bad.look()
            skipped = (Skipped(table.source, bad.count, f"{error}{bad.beside}"),)
            if bad.count == table.height:
                return ScannedBatch(piece, {}, (), skipped, height)
            table = table.rows(bad.kept)
            found = build_part(table, self.chosen, asked)
        dropped = table.height - sum(p.n for p in found.splits.values())
        notes = found.notes
        if dropped and self.asked.missing == "error":
            reasons = "; ".join(note.text for note in notes if note.kind == DROPPED)
            skipped = (*skipped, Skipped(table.source, dropped, reasons))
            notes = tuple(note for note in notes if note.kind != DROPPED)
        return ScannedBatch(piece, found.splits, notes, skipped, height)


def scan_predictions(
    source: Any,
    *,
    label: str | None = None,
    prediction: str | None = None,
    confidence: ColumnNames = (),
    logits: ColumnNames | None = None,
    probabilities: ColumnNames | None = None,
    by: ColumnNames = (),
    unknown_label: Hashable | Sequence[Hashable] = None,
    missing: str = "error",
    correct: str | None = None,
    loss: str | None = None,
    group: str | None = None,
    weight: str | None = None,
    id: str | None = None,
    lower_is_safer: bool | ColumnNames = False,
    percent: bool | ColumnNames = False,
    renormalize: bool = False,
    masked: bool = False,
    skip_bad: bool = False,
    decimal: str = ".",
) -> PredictionScan:
    r"""Find predictions in files that need not fit in memory; they are read batch by batch later.

    All files are parts of one set of predictions. Columns are chosen once, by the rules of
    `read_predictions`, from the first file, and every other file must have them too.

    Parameters
    ----------
    source : path, pattern, folder, list of these, or dask dataframe
        Files as `read_predictions` takes them; ``big/*.parquet`` and a folder stand for the files
        in them, in the order of their names. The partitions of a dataframe stay where they are.
    label, prediction, confidence, logits, probabilities : str or sequence of str, optional
        As for `read_predictions`.
    by : str or sequence of str, optional
        Columns whose values split the rows; "filename" for the files themselves.
    unknown_label : label or sequence of labels, optional
        As for `read_predictions`.
    missing : {"error", "drop"}, default "error"
        What to do about missing values: refuse them, or leave the rows out. "reject" needs the
        lowest confidence of all rows, which no batch knows.
    correct, loss, group, weight, id : str, optional
        As for `read_predictions`.
    lower_is_safer, percent : bool, str or sequence of str, default False
        As for `read_predictions`.
    renormalize, masked : bool, default False
        As for `read_predictions`.
    skip_bad : bool, default False
        Leave out rows that break a rule, and files and row groups that cannot be read, and count
        them, instead of stopping there.
    decimal : {".", ","}, default "."
        As for `read_predictions`.

    Returns
    -------
    PredictionScan
        What `abstain.evaluate` takes in place of predictions.

    Raises
    ------
    FileFormatError
        A file is damaged, cut short, or lacks a column that the first file has.
    UnknownNameError, MissingInputError
        As for `read_predictions`.
    InputError
        No file is there, one is given twice, or `missing` is "reject".

    Notes
    -----
    A batch is as many row groups of a Parquet file as hold about a million rows, 32 MB of a text,
    or a stretch of rows. Arrays of an .npz that were saved without compression are looked at where
    they lie on the disk.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import abstain as ab
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "part-0.csv"
    ...     _ = path.write_text("label,prediction,confidence\n1,1,0.9\n0,1,0.4\n")
    ...     scan = ab.scan_predictions(f"{folder}/*.csv")
    ...     ab.evaluate(scan, metrics=["augrc"]).value("augrc")
    0.125
    """
    truth = {"label": label, "prediction": prediction, "correct": correct, "loss": loss}
    form = {"renormalize": renormalize, "masked": masked, "percent": percent, "decimal": decimal}
    asked = options(
        **truth,
        confidence=confidence,
        logits=logits,
        probabilities=probabilities,
        by=by,
        unknown_label=unknown_label,
        missing=missing,
        group=group,
        weight=weight,
        id=id,
        lower_is_safer=lower_is_safer,
        **form,
    )
    return _chosen(source, asked, skip_bad=skip_bad)


def is_partitioned(source: Any) -> bool:
    """Tell whether something is a dataframe of dask."""
    home = type(source).__module__.partition(".")[0]
    return home in {"dask", "dask_expr"} and hasattr(source, "to_delayed")


def table_of(frame: Any, source: str) -> DataTable:
    """Wrap a dataframe of pandas."""
    table = from_frame(frame, source)
    if table is None:
        raise InputError(f"{source} must be a dataframe; got {type(frame).__name__}")
    return table


def _of_frame(frame: Any, asked: ReadingOptions, *, skip_bad: bool) -> PredictionScan:
    """Choose the columns from the first rows of a dask dataframe."""
    chosen = choose(table_of(frame.head(1, npartitions=-1, compute=True), FRAME), asked)
    own = frame[list(dict.fromkeys(chosen.names()))]
    return PredictionScan((), asked, chosen, tuple(chosen.notes), skip_bad, frame=own)


def _chosen(source: Any, asked: ReadingOptions, *, skip_bad: bool) -> PredictionScan:
    """Choose the columns from the first file that has rows, and hold the others to them."""
    if asked.missing == "reject":
        raise InputError(
            f"{format_option('missing', 'reject')} needs the lowest confidence of all rows, which "
            f"nobody knows before all are read; take {format_option('missing', 'drop')}, or write "
            "a confidence for them"
        )
    if is_partitioned(source):
        return _of_frame(source, asked, skip_bad=skip_bad)
    paths = parts_of(source)
    by_file = FILENAME in asked.by
    asked = replace(asked, by=tuple(name for name in asked.by if name != FILENAME))
    first: _First | None = None
    kept: list[Path] = []
    skipped: list[Skipped] = []
    notes: tuple[Note, ...] = ()
    for path in paths:
        try:
            if first is None:
                first, notes = _first(path, asked)
            if first is not None:
                first_path, columns, kinds = first
                refuse_other(path, columns.names(), first_path, kinds)
        except AbstainError as error:
            if not skip_bad:
                raise
            skipped.append(Skipped(path.name, -1, str(error)))
        else:
            kept.append(path)
    if first is None:
        msg = f"none of {len(paths):,} files can be read: {skipped[0].reason}" if skipped else ""
        none = f"{paths[0].name} has a header but no rows; at least one sample is needed"
        raise FileFormatError(msg or none)
    notes = (*notes, *first[1].notes)
    return PredictionScan(tuple(kept), asked, first[1], notes, skip_bad, by_file, tuple(skipped))


def _first(path: Path, asked: ReadingOptions) -> tuple[_First | None, tuple[Note, ...]]:
    """Choose the columns by a file, with notes on it; None by one without rows."""
    piece = next(pieces_of(path), None)
    if piece is None:
        return None, ()
    table = with_decimal_mark(piece.open(), asked.decimal)
    chosen = choose(replace(table, source=path.name), asked)
    return (path, chosen, kinds_of(path)), (*table.notes, *_mixed(table, chosen))


def _mixed(table: DataTable, chosen: ChosenColumns) -> list[Note]:
    """Name columns that by their name set rows apart, and are not asked for."""
    found = [name for usual in APART if (name := table.find(usual)) is not None]
    return [
        Note(
            READING,
            f"every number here mixes the values of column {name!r}; pass "
            f"{format_option('by', name)} to take them apart",
        )
        for name in found
        if name not in chosen.names() and table.kinds[name] != "block"
    ]
