"""Reader for predictions that do not fit in memory, which reads them in batches."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from abstain._foundation.notes import DROPPED, READING, Note
from abstain._foundation.option_format import format_option
from abstain.errors import AbstainError, FileFormatError, InputError
from abstain.predictions import Predictions
from abstain.tables._build import build_chunk_reading, check_lengths, pooled_columns
from abstain.tables._column_selection import ColumnSelection, select_columns
from abstain.tables._reading import ColumnNames, Reading, ReadingOptions, make_options
from abstain.tables.column import NoRowsLeftError
from abstain.tables.scan.bad_rows import find_bad_rows
from abstain.tables.scan.chunks import FileChunk, chunk_size_limits, iter_chunks
from abstain.tables.scan.source_files import (
    check_same_columns,
    column_kinds,
    file_labels,
    file_states,
    resolve_files,
)
from abstain.tables.table import DataTable, from_frame
from abstain.typing import Split

#: Value of `by` that makes each file a split, and the name of the split column.
FILENAME, FILE = "filename", "file"

#: Name of a dask dataframe in messages.
FRAME = "the dask dataframe"

_OPTION_NAMES = tuple(option_field.name for option_field in fields(ReadingOptions))


@dataclass(frozen=True)
class _ReferenceFile:
    """The first file that has rows. It determines the selected columns of all files."""

    path: Path
    selection: ColumnSelection
    #: Description of the contents of each column, such as "numbers".
    column_kinds: Mapping[str, str]
    notes: tuple[Note, ...]


@dataclass(frozen=True)
class Skipped:
    """A record of skipped rows, or of a skipped file, with the reason.

    Attributes
    ----------
    source : str
        Name of the file, and the position in the file.
    n_rows : int
        Number of rows, or -1 for a file or a block of text whose rows could not be counted.
    reason : str
        Message of the first error.
    """

    source: str
    n_rows: int
    reason: str


@dataclass(frozen=True, eq=False)
class ScannedBatch:
    """Predictions of one chunk of a file.

    Attributes
    ----------
    chunk : FileChunk
        Position of the rows in the file.
    splits : mapping from split to Predictions
        Predictions by split as in a `Reading`, or nothing if every row was skipped.
    notes : tuple of Note
        Remarks that state a number of rows.
    skipped : tuple of Skipped
        Rows that were skipped.
    n_rows : int
        Number of rows of the chunk, including skipped rows.
    """

    chunk: FileChunk
    splits: Mapping[Split, Predictions]
    notes: tuple[Note, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    n_rows: int = 0


@dataclass(frozen=True, eq=False)
class PredictionScan:
    r"""Predictions that are read from files in batches. `scan_predictions` returns this object.

    Attributes
    ----------
    paths : tuple of Path
        The files of one set of predictions, in order.
    notes : tuple of Note
        Notes on the selected columns.
    skipped : tuple of Skipped
        Files that cannot be read, if `skip_bad` is True.

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
    options: ReadingOptions = field(repr=False)
    selection: ColumnSelection = field(repr=False)
    notes: tuple[Note, ...] = field(default=(), repr=False)
    skip_bad: bool = False
    by_file: bool = False
    skipped: tuple[Skipped, ...] = ()
    #: A dask dataframe that is read instead of files.
    frame: Any = field(default=None, repr=False)

    @property
    def source(self) -> str:
        """Name of the files in messages and reports."""
        if self.frame is not None:
            return FRAME
        names = [path.name for path in self.paths]
        return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]} ({len(names):,} files)"

    def identity(self) -> dict[str, Any]:
        """Return a description of the files and options, to identify them in a checkpoint.

        The keys must not be renamed, because saved checkpoints contain them.
        """
        options: dict[str, Any] = {"skip_bad": self.skip_bad, "by_file": self.by_file}
        for name in _OPTION_NAMES:
            value = getattr(self.options, name)
            options[name] = list(map(str, value)) if isinstance(value, tuple) else value
        return {
            "files": file_states(self.paths),
            "asked": options,
            "cut": chunk_size_limits(),
        }

    def chunks(self) -> Iterator[FileChunk]:
        """Yield the chunks of all files, in order."""
        labels = file_labels(self.paths)
        for path in self.paths:
            for chunk in iter_chunks(path, len(self.selection.names())):
                yield replace(chunk, custom_label=labels[path])

    def batches(self) -> Iterator[ScannedBatch]:
        """Yield the predictions of each chunk, in order."""
        return map(self.read, self.chunks())

    def read(self, chunk: FileChunk) -> ScannedBatch:
        """Read the predictions of one chunk."""
        batch = self._read(chunk, chunk.open)
        if not self.by_file:
            return batch
        file = (FILE, chunk.file_label)
        splits = {(file, *split): predictions for split, predictions in batch.splits.items()}
        return replace(batch, splits=splits)

    def read_partition(self, partition: Any, number: int) -> ScannedBatch:
        """Read one partition of a dask dataframe, which is a pandas dataframe."""
        chunk = FileChunk(Path(f"partition {number}"), "", 0, len(partition), 0)
        if not chunk.size:
            return ScannedBatch(chunk, {})

        def open_partition() -> DataTable:
            return replace(table_from_frame(partition, chunk.source), first_row=0)

        return self._read(chunk, open_partition)

    def _read(self, chunk: FileChunk, open_chunk: Callable[[], DataTable]) -> ScannedBatch:
        """Read one chunk.

        Chunks without a valid row are skipped. If `skip_bad` is true, chunks that raise an error
        are skipped too.
        """
        try:
            table = open_chunk()
            if self.options.decimal == ",":
                table = table.with_numbers(",")
            if self.skip_bad:
                return self._read_valid_rows(chunk, table)
            reading = build_chunk_reading(table, self.selection, self.options)
            return ScannedBatch(chunk, reading.splits, reading.notes, (), table.n_rows)
        except NoRowsLeftError as error:
            if self.options.missing == "drop":
                return ScannedBatch(chunk, {}, error.notes, (), error.n_rows)
            skipped = Skipped(chunk.source, error.n_rows, _reasons_for_drops(error.notes))
            return ScannedBatch(chunk, {}, (), (skipped,), error.n_rows)
        except AbstainError as error:
            if not self.skip_bad:
                raise
            skipped = Skipped(chunk.source, chunk.n_rows, str(error))
            return ScannedBatch(chunk, {}, (), (skipped,), max(chunk.n_rows, 0))

    def _read_valid_rows(self, chunk: FileChunk, table: DataTable) -> ScannedBatch:
        """Read the valid rows of a table."""
        n_rows = table.n_rows
        options = replace(self.options, missing="drop")
        table = table.with_loaded_columns(self.selection.names())
        # A column of wrong length makes the whole file invalid, not single rows.
        check_lengths(table, table.load(self.selection.names()))

        def build(subset: DataTable) -> Reading:
            return build_chunk_reading(subset, self.selection, options)

        skipped: tuple[Skipped, ...] = ()
        try:
            reading = build(table)
        except NoRowsLeftError:
            raise
        except AbstainError as error:
            is_bad, remark = find_bad_rows(build, table)
            skipped = (Skipped(table.source, int(is_bad.sum()), f"{error}{remark}"),)
            if is_bad.all():
                return ScannedBatch(chunk, {}, (), skipped, n_rows)
            table = table.select_rows(np.flatnonzero(~is_bad))
            reading = build(table)
        n_dropped = table.n_rows - sum(p.n for p in reading.splits.values())
        notes = reading.notes
        if n_dropped and self.options.missing == "error":
            skipped = (*skipped, Skipped(table.source, n_dropped, _reasons_for_drops(notes)))
            notes = tuple(note for note in notes if note.kind != DROPPED)
        return ScannedBatch(chunk, reading.splits, notes, skipped, n_rows)


def _reasons_for_drops(notes: Iterable[Note]) -> str:
    return "; ".join(note.text for note in notes if note.kind == DROPPED)


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
    r"""Prepare to read predictions in batches from files that do not fit in memory.

    All files belong to one set of predictions. The columns are selected from the first file, in the
    same way as by `read_predictions`. Every other file must have these columns.

    Parameters
    ----------
    source : path, pattern, folder, list of these, or dask dataframe
        Files in the formats of `read_predictions`. The files of a folder or of a pattern such as
        ``big/*.parquet`` are sorted by name. Partitions of a dataframe are read by the Dask
        workers.
    label, prediction, confidence, logits, probabilities : str or sequence of str, optional
        See `read_predictions`.
    by : str or sequence of str, optional
        Columns whose values define the splits. "filename" makes each file a split.
    unknown_label : label or sequence of labels, optional
        See `read_predictions`.
    missing : {"error", "drop"}, default "error"
        Treatment of missing entries: raise an error or drop the rows. "reject" is not available,
        because it needs the lowest confidence of all rows, and a batch contains only some rows.
    correct, loss, group, weight, id : str, optional
        See `read_predictions`.
    lower_is_safer, percent : bool, str or sequence of str, default False
        See `read_predictions`.
    renormalize, masked : bool, default False
        See `read_predictions`.
    skip_bad : bool, default False
        Whether to skip and count invalid rows, and files and row groups that cannot be read. By
        default, they raise an error.
    decimal : {".", ","}, default "."
        See `read_predictions`.

    Returns
    -------
    PredictionScan
        An object that `abstain.evaluate` accepts instead of predictions.

    Raises
    ------
    FileFormatError
        If a file is damaged or truncated, or if it lacks a column of the first file.
    UnknownNameError, MissingInputError
        See `read_predictions`.
    InputError
        If there is no file, if a file occurs twice, or if `missing` is "reject".

    Notes
    -----
    A batch consists of row groups of a Parquet file with about a million rows, of 32 MB of text, or
    of a range of rows. Arrays of uncompressed .npz files are memory-mapped.

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
    arguments = dict(locals())
    del arguments["source"], arguments["skip_bad"]
    options = make_options(**arguments)
    if options.missing == "reject":
        raise InputError(
            f"{format_option('missing', 'reject')} requires the lowest confidence of all rows, "
            f"which is not available for a batch; use {format_option('missing', 'drop')}, or fill "
            "the missing confidences"
        )
    if is_partitioned(source):
        return _scan_frame(source, options, skip_bad=skip_bad)
    return _scan_files(resolve_files(source), options, skip_bad=skip_bad)


def is_partitioned(source: Any) -> bool:
    """Return whether an object is a dask dataframe."""
    package = type(source).__module__.partition(".")[0]
    return package in {"dask", "dask_expr"} and hasattr(source, "to_delayed")


def table_from_frame(frame: Any, source: str) -> DataTable:
    """Convert a pandas dataframe to a table."""
    table = from_frame(frame, source)
    if table is None:
        raise InputError(f"{source} must be a dataframe; got {type(frame).__name__}")
    return table


def _scan_frame(frame: Any, options: ReadingOptions, *, skip_bad: bool) -> PredictionScan:
    """Select columns, based on the first row of a dask dataframe."""
    first_row = frame.head(1, npartitions=-1, compute=True)
    selection = select_columns(table_from_frame(first_row, FRAME), options)
    frame = frame[list(dict.fromkeys(selection.names()))]
    return PredictionScan((), options, selection, tuple(selection.notes), skip_bad, frame=frame)


def _scan_files(
    paths: Sequence[Path], options: ReadingOptions, *, skip_bad: bool
) -> PredictionScan:
    """Select columns, based on the first file that has rows, and check the other files."""
    by_file = FILENAME in options.by
    options = replace(options, by=tuple(name for name in options.by if name != FILENAME))
    reference: _ReferenceFile | None = None
    readable: list[Path] = []
    skipped: list[Skipped] = []
    for path in paths:
        try:
            if reference is None:
                reference = _inspect_file(path, options)
            if reference is not None:
                names = reference.selection.names()
                check_same_columns(path, names, reference.path, reference.column_kinds)
        except AbstainError as error:
            if not skip_bad:
                raise
            skipped.append(Skipped(path.name, -1, str(error)))
        else:
            readable.append(path)
    if reference is None and skipped:
        raise FileFormatError(f"none of {len(paths):,} files can be read: {skipped[0].reason}")
    if reference is None:
        raise FileFormatError(
            f"{paths[0].name} has a header but no rows; at least one sample is needed"
        )
    return PredictionScan(
        tuple(readable),
        options,
        reference.selection,
        reference.notes,
        skip_bad,
        by_file,
        tuple(skipped),
    )


def _inspect_file(path: Path, options: ReadingOptions) -> _ReferenceFile | None:
    """Select columns, based on the first chunk of a file, or return None if it has no rows."""
    chunk = next(iter_chunks(path), None)
    if chunk is None:
        return None
    table = chunk.open()
    if options.decimal == ",":
        table = table.with_numbers(",")
    selection = select_columns(replace(table, source=path.name), options)
    notes = list(table.notes)
    for name in pooled_columns(table, selection):
        text = (
            f"all values of column {name!r} are evaluated together; pass "
            f"{format_option('by', name)} to evaluate them separately"
        )
        notes.append(Note(READING, text))
    notes += selection.notes
    return _ReferenceFile(path, selection, column_kinds(path), tuple(notes))
