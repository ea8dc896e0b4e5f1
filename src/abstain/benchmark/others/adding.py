"""`add_scores`: someone else's confidence scoring function on the runs of a folder."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from abstain.benchmark.others.coverage import covered_runs
from abstain.benchmark.others.rows import methods_of, refuse_taken, rows_of, titled, unused
from abstain.benchmark.others.writing import Writing
from abstain.benchmark.store import AddedFacts, Additions, Store
from abstain.errors import UnknownNameError, suggest
from abstain.tables.files import open_table


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

    methods: tuple[AddedFacts, ...]
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

    Answers: where does my confidence scoring function stand among the others, on every shift?

    Parameters
    ----------
    folder : str or Path
        Of runs.
    path : str or Path
        A file of any kind that `abstain.tables.read_predictions` reads, one row a picture. The
        columns `run`, `exposure` and `row` say which picture it is, as in the file that `export`
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
        The folder is no folder of runs, or the file lacks pictures, exposures, seeds, or the
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
    >>> from abstain.benchmark.others import add_scores
    >>> add_scores("runs", "my_scores.parquet", name="mine").methods  # doctest: +SKIP
    """
    store = Store.read(folder, added=False)
    before = Additions.read(store.folder).facts
    table = open_table(Path(path))
    asked = methods_of(table, columns, name)
    for method in asked.values():
        refuse_taken(method, store, before, replace)
    rows = rows_of(store, table)
    runs, notes = covered_runs(store, rows.cells, table.source)
    work = Writing(store, rows, runs, Path(path), lower_is_safer)
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
    return AddedScores(tuple(added), (*table.notes, *notes))


def remove_scores(folder: str | Path, name: str) -> AddedFacts:
    """Remove a method that was added to a folder of runs.

    Parameters
    ----------
    folder : str or Path
        Of runs.
    name : str
        Of the method.

    Returns
    -------
    AddedFacts
        What was known of it.

    Raises
    ------
    UnknownNameError
        No method of that name was added.

    Examples
    --------
    >>> from abstain.benchmark.others import remove_scores
    >>> remove_scores("runs", "mine")  # doctest: +SKIP
    """
    additions = Additions.read(Store.read(folder, added=False).folder)
    by_name = {one.name: one for one in additions.facts}
    if name not in by_name:
        shown = ", ".join(by_name) or "none"
        msg = f"no method {name!r} was added to {str(folder)!r}.{suggest(name, by_name)} It has: "
        raise UnknownNameError(msg + shown)
    additions.write(one for one in additions.facts if one.name != name)
    return by_name[name]
