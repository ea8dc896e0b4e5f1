"""Functions that read files, dataframes and arrays as `Predictions`."""

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

from abstain._foundation.frames import is_list_of_rows
from abstain._foundation.input_files import check_exists
from abstain._foundation.notes import Note
from abstain.errors import InputError
from abstain.predictions import Predictions
from abstain.tables import hugging_face
from abstain.tables._build import build_reading
from abstain.tables._column_selection import select_columns
from abstain.tables._reading import ColumnNames, Reading, ReadingOptions, make_options
from abstain.tables.fd_shifts import read_folder
from abstain.tables.files import are_arrays, open_arrays, open_table
from abstain.tables.long_form import to_wide_form
from abstain.tables.table import DataTable, from_arrays, from_frame, from_rows
from abstain.typing import Split


def read_predictions(
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
    renormalize: bool = False,
    masked: bool = False,
    unlabeled: bool = False,
    long: str | None = None,
    percent: bool | ColumnNames = False,
    decimal: str = ".",
) -> Reading:
    """Read predictions from files, dataframes or arrays.

    If no option names a column, the reader searches for a default name, regardless of case and
    spaces. The selected columns are listed in the notes of the result. Class scores are read only
    if they are declared as logits or probabilities.

    Parameters
    ----------
    source : path, list of paths, dataframe, list of rows, or mapping from name to array
        Files: .csv, .tsv, .parquet, .feather, .arrow, .ipc, .jsonl, .ndjson, .npz, .json (an
        object with arrays, or a list with an object per sample), .npy (one array; pass several
        files with the names of their contents), .pth and .pt (tensors written by `torch.save`);
        logs of Inspect (.eval, .json) and samples of lm-evaluation-harness (.jsonl). Folders:
        FD-Shifts results, whose data sets become splits, or a Hugging Face data set
        (``save_to_disk``). Objects: a dataframe of pandas, polars, pyarrow or another library that
        narwhals supports, or a `Dataset` or `DatasetDict` of Hugging Face.
    label : str, optional
        Column with the true class. Default: the first of label, labels, y_true, target.
    prediction : str, optional
        Column with the predicted class. Default: the first of prediction, predictions, pred,
        y_pred, predicted. If there are class scores, the default is the class with the largest
        score.
    confidence : str or sequence of str, optional
        Columns with confidences; higher is more confident. Patterns such as "conf_*" are allowed.
        Default: the first of confidence, conf, score, and all columns whose names start with
        ``confidence_``. The name of a confidence is the name of its column.
    logits, probabilities : str or sequence of str, optional
        Columns with class scores: a pattern ("p_*"), a list, or one column of lists. The class
        names are the column names without their common prefix.
    by : str or sequence of str, optional
        Columns whose values define the splits.
    unknown_label : label or sequence of labels, optional
        Labels of samples of unknown classes, whose predictions are always wrong. If there are class
        scores, "*" means all labels that have no column of class scores.
    missing : {"error", "drop", "reject"}, default "error"
        Treatment of missing confidences, predictions and class scores. "error" raises an error.
        "drop" drops the rows. "reject" counts the rows as abstentions: a missing confidence becomes
        the lowest confidence of its column, and a missing prediction is always wrong. Missing
        labels and losses raise an error unless `missing` is "drop".
    correct : str, optional
        Column with correctness or grades from 0 to 1. The loss is 1 minus the grade. Grades may be
        words: CORRECT and INCORRECT, C, P and I, yes and no, true and false, pass and fail.
        Default: the first of correct, is_correct, graded_correct, verdict, unless label and
        prediction both exist.
    loss : str, optional
        Column with a custom, non-negative loss. Default: the column loss, if no other column
        defines correctness.
    group, weight, id : str, optional
        Columns with the group, the frequency weight and the name of each sample.
    lower_is_safer : bool, str or sequence of str, default False
        Names of confidences that are uncertainties, or True for all confidences. The reader negates
        them and adds "-" to their names, so "entropy" becomes "-entropy".
    renormalize : bool, default False
        Whether to accept probabilities whose sum differs from 1 by more than the rounding error. In
        this case, each row of probabilities is divided by its sum.
    masked : bool, default False
        Whether to accept logits of -inf, which mark classes that are impossible for a sample.
    unlabeled : bool, default False
        Whether to read unlabeled data. Labels and correctness are then ignored.
    long : str, optional
        Column with the class of each row, for a table in long form. A table in long form has one
        row for each pair of sample and class. `logits` or `probabilities` then names the only
        column of class scores, and `id` names the column of sample names.
    percent : bool, str or sequence of str, default False
        Names of confidences that are percentages from 0 to 100, or True for all confidences. The
        reader divides them by 100. By default, only texts with a percent sign, such as "90%", are
        divided by 100.
    decimal : {".", ","}, default "."
        Decimal mark of the numbers in text files.

    Returns
    -------
    Reading
        A mapping from each split to its `Predictions`, with notes. A split is a tuple of (column,
        value) pairs in the order of `by`. For several files, the first pair is ("file", name).

    Raises
    ------
    FileFormatError
        If a file is damaged, empty or contains pickles, or if its format does not match its suffix.
    UnknownNameError
        If a column does not exist.
    InputError
        If the path does not exist, if two columns have the same name, or if options exclude each
        other.
    DomainError
        If text occurs instead of numbers, entries are missing, or `Predictions` rejects a value.
    MissingInputError
        If no column defines correctness or no column defines a confidence.

    Notes ----- Files are never unpickled. Files of `torch.save` may contain only tensors, arrays of
    numbers and plain values. Numbers keep the precision in which they are stored.

    In NPZ files and mappings, the following keys are read by default because they identify their
    contents: logits, probabilities (or probs), group, weight, ids and features. The keys
    logit_samples and probability_samples (or mcd_logits, mcd_probabilities) contain Monte Carlo
    samples of class scores, shape (n, S, K).

    Examples
    --------
    >>> columns = {
    ...     "study": ["a", "a", "b"],
    ...     "label": ["x", "y", "y"],
    ...     "prediction": ["x", "x", "y"],
    ...     "confidence": [0.9, 0.4, 0.7],
    ... }
    >>> reading = read_predictions(columns, by="study")
    >>> {split: p.correct.tolist() for split, p in reading.items()}
    {(('study', 'a'),): [True, False], (('study', 'b'),): [True]}
    >>> print(reading.notes[0])
    the mapping: read label from 'label', prediction from 'prediction', confidence from 'confidence'
    """
    arguments = dict(locals())
    del arguments["source"]
    options = make_options(**arguments)
    if isinstance(source, str | Path):
        return _read_path(Path(source), options)
    if is_list_of_rows(source) and source:
        return _read_table(from_rows(source, "the list of rows"), options)
    if isinstance(source, list | tuple):
        return _read_files(source, options)
    if hugging_face.is_dataset(source):
        tables = hugging_face.tables_by_split(source)
        return _read_tables(tables, hugging_face.SPLIT, options)
    return _read_table(_open_object(source), options)


def _read_table(table: DataTable, options: ReadingOptions) -> Reading:
    """Read the predictions of each split from one table."""
    if options.decimal == ",":
        table = table.with_numbers(",")
    table, options = to_wide_form(table, options)
    return build_reading(table, select_columns(table, options), options)


def _open_object(source: Any) -> DataTable:
    """Convert a mapping or a dataframe to a table."""
    if isinstance(source, Mapping):
        return from_arrays(source, "the mapping")
    table = from_frame(source)
    if table is None:
        raise InputError(
            "`source` must be a path, a list of paths, a dataframe, a list of rows or a mapping "
            f"from name to array; got {type(source).__name__}"
        )
    return table


def _read_path(path: Path, options: ReadingOptions) -> Reading:
    check_exists(path)
    if path.is_dir() and hugging_face.is_saved(path):
        return _read_tables(hugging_face.saved_tables(path), hugging_face.SPLIT, options)
    if path.is_dir():
        return read_folder(path, options)
    return _read_table(open_table(path), options)


def _read_files(sources: Sequence[Any], options: ReadingOptions) -> Reading:
    """Read several files.

    The name of each file is the value of the split column "file". Files that contain a single array
    become the columns of one table.
    """
    if not sources or not all(isinstance(source, str | Path) for source in sources):
        raise InputError(f"a list as `source` must contain paths; got {list(sources)[:3]!r}")
    paths = [Path(source) for source in sources]
    if are_arrays(paths):
        return _read_table(open_arrays(paths), options)
    names = [path.name for path in paths]
    if len(set(names)) < len(names):
        names = [str(path) for path in paths]
    if len(set(names)) < len(names):
        duplicate = next(name for i, name in enumerate(names) if name in names[:i])
        raise InputError(f"the file {duplicate!r} occurs twice in `source`")
    path_by_name = dict(zip(names, paths, strict=True))
    readings = {name: _read_path(path, options) for name, path in path_by_name.items()}
    return _combine(readings, "file")


def _read_tables(tables: Mapping[str, DataTable], column: str, options: ReadingOptions) -> Reading:
    """Read several tables. The name of each table is the value of a split column.

    If there is a single table without a name, there is no such column.
    """
    if list(tables) == [""]:
        return _read_table(tables[""], options)
    readings = {name: _read_table(table, options) for name, table in tables.items()}
    return _combine(readings, column)


def _combine(readings: Mapping[str, Reading], column: str) -> Reading:
    """Combine named readings into one reading.

    The name of each table is the value of the first split column.
    """
    splits: dict[Split, Predictions] = {}
    notes: list[Note] = []
    for name, reading in readings.items():
        for split, predictions in reading.items():
            splits[((column, name), *split)] = predictions
        notes += [note.within(name) for note in reading.notes]
    return Reading(splits, tuple(notes), ", ".join(readings))
