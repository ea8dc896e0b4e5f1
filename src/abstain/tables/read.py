"""`read_predictions`: files, dataframes and arrays to `Predictions`."""

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

from abstain._foundation.frames import is_list_of_rows
from abstain._foundation.input_files import check_exists
from abstain._foundation.notes import Note
from abstain.errors import InputError
from abstain.predictions import Predictions
from abstain.tables import hugging_face
from abstain.tables._build import build
from abstain.tables._choice import choose
from abstain.tables._reading import ColumnNames, Reading, ReadingOptions, options
from abstain.tables.array_files import are_arrays, joined
from abstain.tables.decimal_comma import with_decimal_mark
from abstain.tables.fd_shifts import read_folder
from abstain.tables.files import open_table
from abstain.tables.long_form import widened
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

    Columns that are not named are looked for under a few usual names; the notes of the result
    say which were taken. A name is also found where only case and blanks differ.
    Whether class scores are logits or probabilities is never guessed.

    Parameters
    ----------
    source : path, list of paths, dataframe, list of rows, or mapping from name to array
        Files by suffix: .csv, .tsv, .parquet, .feather, .arrow, .ipc, .jsonl, .ndjson, .npz,
        .json (one object of arrays, or a list of one object for each sample), .npy (one array;
        several files, named by what they hold, are one set), .pth, .pt (tensors, as `torch.save`
        writes them); logs of Inspect (.eval, .json) and samples of lm-evaluation-harness (.jsonl);
        a folder of FD-Shifts results (its data sets become splits) or of a data set of Hugging
        Face (``save_to_disk``). Dataframes of pandas, polars, pyarrow and whatever else narwhals
        knows; a `Dataset` or `DatasetDict` of Hugging Face.
    label : str, optional
        The true class. By default the first of label, labels, y_true, target that exists.
    prediction : str, optional
        The predicted class. By default the first of prediction, predictions, pred, y_pred,
        predicted; with class scores the class with the largest score, unless it is named.
    confidence : str or sequence of str, optional
        Confidences, higher is more trusted; patterns such as "conf_*" are allowed. By default
        the first of confidence, conf, score, and every column that starts with ``confidence_``.
        They keep the names of their columns.
    logits, probabilities : str or sequence of str, optional
        Columns of class scores as a pattern ("p_*") or a list, or one column of lists. The
        class names are the parts behind the common prefix.
    by : str or sequence of str, optional
        Columns whose values split the rows.
    unknown_label : label or sequence of labels, optional
        Labels of samples of no known class, always wrong. Beside class scores, "*" stands for
        all labels that have no column.
    missing : {"error", "drop", "reject"}, default "error"
        What to do about missing confidences, predictions and class scores: refuse the file,
        leave the rows out, or count them as abstentions (the lowest confidence of the column;
        a missing prediction is always wrong). Missing labels and losses: an error, or "drop".
    correct : str, optional
        Whether the answer is right, or a grade in [0, 1]; the loss is 1 minus it. Grades may be
        words: CORRECT and INCORRECT, C, P and I, yes and no, true and false, pass and fail. By
        default the first of correct, is_correct, graded_correct, verdict, if label and prediction
        do not both exist.
    loss : str, optional
        A loss of your own, not negative. By default loss, where nothing else says what is right.
    group, weight, id : str, optional
        Subgroup, frequency weight and name of each sample.
    lower_is_safer : bool, str or sequence of str, default False
        The confidences are uncertainties (True: all of them; or the names of some); they are
        turned around, and named so: "entropy" becomes "-entropy".
    renormalize : bool, default False
        Take rows of probabilities that miss 1 by more than rounding explains.
    masked : bool, default False
        Take logits of -inf, for classes that a sample cannot have.
    unlabeled : bool, default False
        Nothing says what is right, or it is not to be read.
    long : str, optional
        The column that names the class of each row, where a sample has a row for each class; its
        scores stand in the one column of `logits` or `probabilities`, and `id` names the sample.
    percent : bool, str or sequence of str, default False
        The confidences are percentages from 0 to 100 (True: all of them; or the names of some);
        they are divided by 100. Texts such as "90%" are read as fractions without this option.
    decimal : {".", ","}, default "."
        The decimal mark of numbers in text files.

    Returns
    -------
    Reading
        A mapping from split to `Predictions`, with notes. A split is a tuple of (column,
        value) pairs in the order of `by`; with several files ("file", name) comes first.

    Raises
    ------
    FileFormatError
        A file is damaged, empty, of another format than its name says, or holds pickles.
    UnknownNameError
        A column does not exist.
    InputError
        The path does not exist, two columns share a name, options exclude each other.
    DomainError
        Text where numbers belong, missing entries, or values that `Predictions` refuses.
    MissingInputError
        No column says which samples are right, or how confident the model was.

    Notes
    -----
    Files are never unpickled; of those of torch only tensors, arrays of numbers and plain values
    are taken. Numbers keep the precision of their storage.

    Of NPZ files and mappings the keys logits or probabilities (or probs), group, weight, ids,
    features, and logit_samples or probability_samples (or mcd_logits, mcd_probabilities) of
    shape (n, S, K) are taken unasked, since they say what they hold.

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
    the mapping: took label from 'label', prediction from 'prediction', confidence from 'confidence'
    """
    truth = {"label": label, "prediction": prediction, "correct": correct, "loss": loss}
    form: dict[str, Any] = {"unlabeled": unlabeled, "long": long, "decimal": decimal}
    form |= {"renormalize": renormalize, "masked": masked, "percent": percent}
    form |= {"lower_is_safer": lower_is_safer, "missing": missing, "unknown_label": unknown_label}
    asked = options(
        **truth,
        **form,
        confidence=confidence,
        logits=logits,
        probabilities=probabilities,
        by=by,
        group=group,
        weight=weight,
        id=id,
    )
    return _read(source, asked)


def _read(source: Any, asked: ReadingOptions) -> Reading:
    if isinstance(source, str | Path):
        return _read_path(Path(source), asked)
    if is_list_of_rows(source) and source:
        return _read_table(from_rows(source, "the list of rows"), asked)
    if isinstance(source, list | tuple):
        return _read_several(source, asked)
    if hugging_face.is_dataset(source):
        return _read_tables(hugging_face.tables_of(source), hugging_face.SPLIT, asked)
    return _read_table(_table_of(source), asked)


def _read_table(table: DataTable, asked: ReadingOptions) -> Reading:
    table, asked = widened(with_decimal_mark(table, asked.decimal), asked)
    return build(table, choose(table, asked), asked)


def _table_of(source: Any) -> DataTable:
    if isinstance(source, Mapping):
        return from_arrays(source, "the mapping")
    table = from_frame(source)
    if table is None:
        raise InputError(
            "`source` must be a path, a list of paths, a dataframe, a list of rows or a mapping "
            f"from name to array; got {type(source).__name__}"
        )
    return table


def _read_path(path: Path, asked: ReadingOptions) -> Reading:
    check_exists(path)
    if path.is_dir() and hugging_face.is_saved(path):
        return _read_tables(hugging_face.saved_tables(path), hugging_face.SPLIT, asked)
    if path.is_dir():
        return read_folder(path, asked)
    return _read_table(open_table(path), asked)


def _read_several(sources: Sequence[Any], asked: ReadingOptions) -> Reading:
    if not sources or not all(isinstance(s, str | Path) for s in sources):
        raise InputError(f"a list as `source` must hold paths of files; got {list(sources)[:3]!r}")
    paths = [Path(s) for s in sources]
    if are_arrays(paths):
        return _read_table(joined(paths), asked)
    names = [p.name for p in paths]
    if len(set(names)) < len(names):
        names = [str(p) for p in paths]
    if len(set(names)) < len(names):
        twice = next(n for i, n in enumerate(names) if n in names[:i])
        raise InputError(f"the file {twice!r} is given twice")
    return _together({n: _read_path(p, asked) for n, p in zip(names, paths, strict=True)}, "file")


def _read_tables(tables: Mapping[str, DataTable], column: str, asked: ReadingOptions) -> Reading:
    """Read tables that are parts by their names; one without a name is no part."""
    if list(tables) == [""]:
        return _read_table(tables[""], asked)
    return _together({name: _read_table(one, asked) for name, one in tables.items()}, column)


def _together(readings: Mapping[str, Reading], column: str) -> Reading:
    """Join what was read of several sources, which a column of their names sets apart."""
    splits: dict[Split, Predictions] = {}
    notes: list[Note] = []
    for name, reading in readings.items():
        splits |= {((column, name), *split): p for split, p in reading.items()}
        notes += [note.within(name) for note in reading.notes]
    return Reading(splits, tuple(notes), ", ".join(readings))
