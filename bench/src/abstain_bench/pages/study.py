"""Create the report of a study."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from abstain._foundation.notes import Note
from abstain.errors import InputError
from abstain.metrics import METRICS
from abstain.metrics.catalogue import FAMILIES
from abstain.plots.drawable import Drawable
from abstain.plots.formatting import capitalize_first
from abstain.report import document as doc
from abstain.report.formatting import format_count, format_duration, split_links, unique
from abstain.report.output import Subject
from abstain_bench.studies import StudyResult

#: Maximum number of table rows on a page. The files contain all rows.
_MAX_ROWS_ON_PAGE: Final = 200
#: Maximum number of table rows in a terminal.
_MAX_ROWS_IN_TERMINAL: Final = 24

#: Suffixes of columns with the standard error or the standard deviation of another column.
_ERROR_SUFFIXES: Final = ("_se", "_deviation")
#: Suffixes of columns with the bounds of another column.
_LOW_SUFFIX: Final = "_low"
_HIGH_SUFFIX: Final = "_high"

#: Maximum number of characters of a word that is not broken on a page.
_MAX_WORD_LENGTH: Final = 20

#: Maximum number of names that are listed as the value of a parameter.
_MAX_LISTED_NAMES: Final = 5

#: Maximum number of numbers that are listed as the value of a parameter, rather than their range.
_MAX_LISTED_NUMBERS: Final = 6

#: Pattern of valid names of figures, which are used in identifiers and file names.
_FIGURE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*")


def _metric_abbreviations() -> dict[str, str]:
    """Return display titles of metrics, such as "AUGRC" for "augrc"."""
    titles = {metric.name: metric.title for metric in METRICS.values()}
    for family in FAMILIES:
        metric = family.parse(family.example_name)
        if metric is not None:
            name = metric.name.partition("@")[0]
            titles[name] = metric.title.partition(" at ")[0]
    return {name: title for name, title in titles.items() if title.isupper()}


#: Words with a fixed spelling in column headers.
_FIXED_SPELLINGS: Final = {
    **_metric_abbreviations(),
    "mse": "MSE",
    "rmse": "RMSE",
    "mae": "MAE",
    "sd": "SD",
    "n": "n",
    "u": "u",
    "csf": "CSF",
}


def study_document(result: StudyResult, origin: doc.ReportOptions) -> doc.Document:
    """Create the report of a study."""
    study_result = checked_study(result)
    return doc.Document(
        origin.title or study_result.title,
        ("Study",),
        lambda: (
            doc.DeferredBlocks(lambda: _summary(study_result), role="summary"),
            doc.DeferredBlocks(lambda: _sections(study_result), role="detail"),
        ),
        answer=tuple(study_result.verdict),
        facts=tuple(_facts(study_result)),
        findings=tuple(_remarks([*study_result.notes, *origin.notes])),
        command=origin.command,
        is_complete=True,
    )


def checked_study(result: StudyResult) -> StudyResult:
    """Raise an error if the argument is not a `StudyResult`."""
    argument: object = result
    if not isinstance(argument, StudyResult):
        raise InputError(
            f"`result` must be a StudyResult, as studies return it; got {type(argument).__name__}"
        )
    return result


def study_figures(result: StudyResult) -> list[tuple[str, Drawable]]:
    """Return each figure of a study by its name.

    Raises
    ------
    InputError
        If the name of a figure contains characters other than letters, digits, dots and hyphens.
    """
    for name in checked_study(result).figures:
        if not _FIGURE_NAME.fullmatch(name):
            raise InputError(
                f"the name of a figure must be letters, digits and hyphens; got {name!r}"
            )
    return list(result.figures.items())


def _remarks(notes: Iterable[str | Note]) -> list[doc.Remark]:
    """Convert notes to remarks in the document, warnings first."""
    remarks = []
    for note in notes:
        level = note.level if isinstance(note, Note) else "note"
        remarks.append(doc.Remark(level, str(note)))
    return sorted(remarks, key=lambda remark: remark.level != "warning")


def _sections(result: StudyResult) -> Iterator[doc.Section]:
    """Yield the sections of a study: tables, figures, collapsed tables and the glossary."""
    displayed = _nonempty_displayed_tables(result)
    if displayed:
        lead = doc.Prose(result.question, "lead")
        yield doc.Section("tables", "Results", (lead, *_displayed_blocks(result, displayed)))
    if result.figures:
        figures = tuple(_figure(result, name, display) for name, display in study_figures(result))
        yield doc.Section("figures", "Figures", (doc.Box(figures, layout="figures"),))
    collapsed = tuple(
        _collapsed_table(result, name)
        for name in result.tables
        if name not in displayed and result.rows(name)
    )
    if collapsed:
        # Only HTML pages contain interactive sections.
        yield doc.Section("all", "All numbers", collapsed, role="interactive")
    entries = [doc.GlossaryEntry(word, meaning) for word, meaning in result.glossary.items()]
    if result.source:
        entries.append(doc.GlossaryEntry("Published", split_links(result.source)))
    if entries:
        yield doc.Section("glossary", "Glossary", (doc.Glossary(tuple(entries)),))


def _nonempty_displayed_tables(result: StudyResult) -> list[str]:
    return [name for name in result.displayed_tables if result.rows(name)]


def _displayed_blocks(result: StudyResult, names: Sequence[str]) -> list[doc.Block]:
    """Return the only table, or one section per table if there are several."""
    tables = [_table(result, name) for name in names]
    if len(tables) == 1:
        return [*tables]
    return [
        doc.Section(f"table-{i}", _title(name), (table,), level=3)
        for i, (name, table) in enumerate(zip(names, tables, strict=True))
    ]


def _collapsed_table(result: StudyResult, name: str) -> doc.Collapsible:
    n_rows = format_count(len(result.rows(name)))
    return doc.Collapsible(f"{_title(name)}: {n_rows} rows", (_table(result, name),))


def _figure(result: StudyResult, name: str, display: Any) -> doc.Figure:
    title = getattr(display, "title", "") or format_header(name)
    about = result.captions.get(name, "")
    return doc.Figure(f"figure-{name}".replace(".", "-"), title, display, about)


def _summary(result: StudyResult) -> Iterator[doc.Block]:
    """Yield the question of a study, the first rows of its tables, and its parameters."""
    yield doc.Prose(result.question, "lead")
    for name in _nonempty_displayed_tables(result):
        table = _table(result, name, _MAX_ROWS_IN_TERMINAL)
        yield replace(table, title=result.captions.get(name, ""))
        n_more = len(result.rows(name)) - _MAX_ROWS_IN_TERMINAL
        if n_more > 0:
            yield doc.SeeAlso(f"{format_count(n_more)} more rows ", "with --out", "in .rows()")
    yield doc.Facts(tuple(_facts(result)))


# --------------------------------------------------------------------------------- the tables
def _title(table: str) -> str:
    return format_header(table.replace("-", "_"))


def _table(result: StudyResult, name: str, max_rows: int = _MAX_ROWS_ON_PAGE) -> doc.Table:
    """Create a table in which each cell contains a value, its standard error and its interval."""
    rows = result.rows(name)
    columns = _displayed_columns(rows)
    body = [[_cell(row, column, result.labels) for column in columns] for row in rows[:max_rows]]
    headers = tuple(
        _column(column, [cells[i] for cells in body]) for i, column in enumerate(columns)
    )
    caption = result.captions.get(name) or _title(name)
    n_omitted = len(rows) - len(body)
    if n_omitted:
        caption += f" First rows; {format_count(n_omitted)} more are in {name}.csv."
    return doc.Table(
        headers, doc.single_group(body), title=_title(name), caption=caption, layout="study"
    )


def _displayed_columns(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the nonempty columns, except those displayed within the cells of another column."""
    columns = unique(column for row in rows for column, value in row.items() if value != "")
    return [column for column in columns if not _is_part_of_other_column(column, columns)]


def _is_part_of_other_column(column: str, columns: Sequence[str]) -> bool:
    """Return whether a column contains the errors or interval bounds of another column."""
    return any(
        column.endswith(ending) and column.removesuffix(ending) in columns
        for ending in (*_ERROR_SUFFIXES, _LOW_SUFFIX, _HIGH_SUFFIX)
    )


def _column(name: str, cells: Sequence[doc.Cell]) -> doc.Column:
    """Create the header of a column. Words in columns of kind "name" may be broken."""
    header = format_header(name)
    if any(isinstance(cell, doc.Number) for cell in cells):
        return doc.Column(header, "number")
    words = [word for cell in cells if isinstance(cell, str) for word in cell.split()]
    has_long_word = any(len(word) > _MAX_WORD_LENGTH for word in words)
    return doc.Column(header, "name" if has_long_word else "text")


def _cell(row: Mapping[str, Any], column: str, labels: Mapping[str, str]) -> doc.Cell:
    """Create a table cell from a value, its standard error and its interval."""
    value = row.get(column)
    if value is None:
        return None
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return labels.get(value, value)
    low = _finite_or_nan(row.get(f"{column}{_LOW_SUFFIX}"))
    high = _finite_or_nan(row.get(f"{column}{_HIGH_SUFFIX}"))
    errors = [_finite_or_nan(row.get(f"{column}{suffix}")) for suffix in _ERROR_SUFFIXES]
    error = next((error for error in errors if not math.isnan(error)), math.nan)
    if isinstance(value, int):
        return doc.Number(value, low, high, error, number_format="count")
    return doc.Number(float(value), low, high, error, number_format="number")


def _finite_or_nan(value: Any) -> float:
    return value if isinstance(value, float) and math.isfinite(value) else math.nan


def format_header(column: str) -> str:
    """Convert the name of a column to the text of its header.

    Examples
    --------
    >>> format_header("mse"), format_header("sd_ratio"), format_header("estimator")
    ('MSE', 'SD ratio', 'Estimator')
    """
    words = [_FIXED_SPELLINGS.get(word, word) for word in column.split("_")]
    if words[0] not in _FIXED_SPELLINGS.values():
        words[0] = capitalize_first(words[0])
    return " ".join(words)


# ---------------------------------------------------------------------------------- the facts
def _facts(result: StudyResult) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each parameter, and of the duration."""
    for name, value in result.parameters.items():
        yield format_header(name), _format_parameter(value)
    yield "Time of this run", format_duration(result.seconds)


def _format_parameter(value: Any) -> str:
    """Format the value of a parameter, and shorten long sequences."""
    if isinstance(value, tuple | list):
        return _format_sequence(value)
    if value is None or isinstance(value, bool):
        return {None: "–", True: "yes", False: "no"}[value]
    if isinstance(value, timedelta):
        return format_duration(value.total_seconds())
    if isinstance(value, int):
        return format_count(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _format_sequence(values: Sequence[Any]) -> str:
    """Format long sequences of numbers as a range, and other sequences as a shortened list."""
    is_numeric = all(isinstance(value, int | float) for value in values)
    if is_numeric and len(values) > _MAX_LISTED_NUMBERS:
        first, last = _format_parameter(values[0]), _format_parameter(values[-1])
        return f"{first} to {last} ({len(values)} values)"
    separator = "; " if any("," in str(value) for value in values) else ", "
    listed = separator.join(_format_parameter(value) for value in values[:_MAX_LISTED_NAMES])
    n_omitted = len(values) - _MAX_LISTED_NAMES
    return f"{listed} and {n_omitted} more" if n_omitted > 0 else listed


STUDY: Final[Subject[StudyResult]] = Subject(study_document, study_figures, ("svg",))

study_html, write_study, study_terminal = STUDY.html, STUDY.write, STUDY.terminal
write_study_figures = STUDY.write_figures
