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
from abstain.report import document as doc
from abstain.report.formatting import format_count, format_duration, split_links, unique
from abstain.report.output import Subject
from abstain_bench.studies import StudyResult

#: Maximum numbers of table rows on a page and in a terminal. The files contain all rows.
_MAX_ROWS_ON_PAGE, _MAX_ROWS_IN_TERMINAL = 200, 24

#: Suffixes of columns with the standard error or the standard deviation of another column.
_ERROR_SUFFIXES: Final = ("_se", "_deviation")
_LOW_SUFFIX, _HIGH_SUFFIX = "_low", "_high"

#: Maximum number of characters of a word that is not broken on a page.
_MAX_WORD_LENGTH: Final = 20

#: Maximum number of names that are listed as the value of a parameter.
_MAX_LISTED_NAMES: Final = 5

#: Maximum number of numbers that are listed as the value of a parameter. More numbers are displayed
#: as a range.
_MAX_LISTED_NUMBERS: Final = 6

#: Pattern of valid names of figures, which are used in identifiers and file names.
_FIGURE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*")

#: Words with a fixed spelling in column headers.
_FIXED_SPELLINGS: Final = {
    **{metric.name: metric.title for metric in METRICS.values() if metric.title.isupper()},
    **{
        made.name.partition("@")[0]: word
        for family in FAMILIES
        if (made := family.parse(family.example_name))
        and (word := made.title.partition(" at ")[0]).isupper()
    },
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
    """Raise an error if the argument is not the result of a study."""
    argument: object = result
    if not isinstance(argument, StudyResult):
        raise InputError(
            f"`result` must be a StudyResult, as studies return it; got {type(argument).__name__}"
        )
    return result


def study_figures(result: StudyResult) -> list[tuple[str, Drawable]]:
    """Return the names and figures of a study.

    Raises
    ------
    InputError
        If the name of a figure contains other characters than letters, digits, dots and hyphens.
    """
    for name in checked_study(result).figures:
        if not _FIGURE_NAME.fullmatch(name):
            raise InputError(
                f"the name of a figure must be letters, digits and hyphens; got {name!r}"
            )
    return list(result.figures.items())


def _remarks(notes: Iterable[str | Note]) -> list[doc.Remark]:
    """Convert notes to remarks. Warnings precede the remaining remarks."""
    remarks = [
        doc.Remark(note.level if isinstance(note, Note) else "note", str(note)) for note in notes
    ]
    return sorted(remarks, key=lambda remark: remark.level != "warning")


def _sections(result: StudyResult) -> Iterator[doc.Section]:
    """Yield the sections with displayed tables, figures, collapsed tables and the glossary."""
    nonempty = [name for name in result.tables if result.rows(name)]
    displayed = [name for name in result.displayed_tables if name in nonempty]
    tables: list[doc.Block] = [_table(result, name) for name in displayed]
    if len(displayed) > 1:
        tables = [
            doc.Section(f"table-{i}", _title(name), (table,), level=3)
            for i, (name, table) in enumerate(zip(displayed, tables, strict=True))
        ]
    if tables:
        lead = doc.Prose(result.question, "lead")
        yield doc.Section("tables", "Results", (lead, *tables))
    if result.figures:
        figures = tuple(_figure(result, *named_display) for named_display in study_figures(result))
        yield doc.Section("figures", "Figures", (doc.Box(figures, layout="figures"),))
    collapsed = tuple(
        doc.Collapsible(
            f"{_title(name)}: {format_count(len(result.rows(name)))} rows", (_table(result, name),)
        )
        for name in nonempty
        if name not in displayed
    )
    if collapsed:
        # Only HTML pages contain interactive sections.
        yield doc.Section("all", "All numbers", collapsed, role="interactive")
    entries = [doc.GlossaryEntry(word, meaning) for word, meaning in result.glossary.items()]
    entries += [doc.GlossaryEntry("Published", split_links(result.source))] if result.source else []
    if entries:
        yield doc.Section("glossary", "Glossary", (doc.Glossary(tuple(entries)),))


def _figure(result: StudyResult, name: str, display: Any) -> doc.Figure:
    title = getattr(display, "title", "") or format_header(name)
    about = result.captions.get(name, "")
    return doc.Figure(f"figure-{name}".replace(".", "-"), title, display, about)


def _summary(result: StudyResult) -> Iterator[doc.Block]:
    """Yield the question, the first rows of the displayed tables, and the parameters."""
    yield doc.Prose(result.question, "lead")
    for name in result.displayed_tables:
        if result.rows(name):
            yield replace(
                _table(result, name, _MAX_ROWS_IN_TERMINAL), title=result.captions.get(name, "")
            )
            if (n_more := len(result.rows(name)) - _MAX_ROWS_IN_TERMINAL) > 0:
                yield doc.SeeAlso(f"{format_count(n_more)} more rows ", "with --out", "in .rows()")
    yield doc.Facts(tuple(_facts(result)))


# --------------------------------------------------------------------------------- the tables
def _title(table: str) -> str:
    return format_header(table.replace("-", "_"))


def _table(result: StudyResult, name: str, max_rows: int = _MAX_ROWS_ON_PAGE) -> doc.Table:
    """Create a table. The cell of a value also contains its standard error and its interval."""
    rows = result.rows(name)
    caption = result.captions.get(name, "")
    # Columns in which all values are empty are omitted.
    columns = unique(c for row in rows for c, value in row.items() if value != "")
    displayed = [column for column in columns if not _is_part_of_other_column(column, columns)]
    displayed_rows = rows[:max_rows]
    body = [[_cell(row, column, result.labels) for column in displayed] for row in displayed_rows]
    headers = tuple(_column(c, [row[i] for row in body]) for i, c in enumerate(displayed))
    n_omitted = len(rows) - len(displayed_rows)
    omission = (
        f" First rows; {format_count(n_omitted)} more are in {name}.csv." if n_omitted else ""
    )
    caption_text = f"{caption or _title(name)}{omission}"
    return doc.Table(
        headers, doc.single_group(body), title=_title(name), caption=caption_text, layout="study"
    )


def _is_part_of_other_column(column: str, columns: Sequence[str]) -> bool:
    """Return whether a column contains an error or a bound of the values of another column."""
    return any(
        column.endswith(ending) and column.removesuffix(ending) in columns
        for ending in (*_ERROR_SUFFIXES, _LOW_SUFFIX, _HIGH_SUFFIX)
    )


def _column(name: str, cells: Sequence[doc.Cell]) -> doc.Column:
    """Create the header of a column. Words in columns of kind "name" may be broken."""
    if any(isinstance(cell, doc.Number) for cell in cells):
        return doc.Column(format_header(name), "number")
    words = [word for cell in cells if isinstance(cell, str) for word in cell.split()]
    return doc.Column(
        format_header(name),
        "name" if max(map(len, words), default=0) > _MAX_WORD_LENGTH else "text",
    )


def _cell(row: Mapping[str, Any], column: str, labels: Mapping[str, str]) -> doc.Cell:
    """Convert a value, with its error and its interval, to a cell."""
    value = row.get(column)
    if value is None:
        return None
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return labels.get(value, value)
    is_integer = isinstance(value, int)
    errors = (_finite(row.get(f"{column}{ending}")) for ending in _ERROR_SUFFIXES)
    return doc.Number(
        value if is_integer else float(value),
        _finite(row.get(f"{column}{_LOW_SUFFIX}")),
        _finite(row.get(f"{column}{_HIGH_SUFFIX}")),
        next((spread for spread in errors if not math.isnan(spread)), math.nan),
        number_format="count" if is_integer else "number",
    )


def _finite(value: Any) -> float:
    return value if isinstance(value, float) and math.isfinite(value) else math.nan


def format_header(column: str) -> str:
    """Format the name of a column as a header.

    Examples
    --------
    >>> format_header("mse"), format_header("sd_ratio"), format_header("estimator")
    ('MSE', 'SD ratio', 'Estimator')
    """
    words = [_FIXED_SPELLINGS.get(word, word) for word in column.split("_")]
    first = words[0]
    words[0] = first if first in _FIXED_SPELLINGS.values() else first[:1].upper() + first[1:]
    return " ".join(words)


# ---------------------------------------------------------------------------------- the facts
def _facts(result: StudyResult) -> Iterator[tuple[str, str]]:
    """Yield the names and texts of the parameters, and the duration of the run."""
    yield from (
        (format_header(name), _format_parameter(value)) for name, value in result.parameters.items()
    )
    yield "Time of this run", format_duration(result.seconds)


def _format_parameter(value: Any) -> str:
    """Format the value of a parameter. Long sequences are shortened."""
    if isinstance(value, tuple | list):
        if len(value) > _MAX_LISTED_NUMBERS and all(isinstance(v, int | float) for v in value):
            first, last = _format_parameter(value[0]), _format_parameter(value[-1])
            return f"{first} to {last} ({len(value)} values)"
        separator = "; " if any("," in str(v) for v in value) else ", "
        listed = separator.join(_format_parameter(v) for v in value[:_MAX_LISTED_NAMES])
        return (
            listed
            if len(value) <= _MAX_LISTED_NAMES
            else f"{listed} and {len(value) - _MAX_LISTED_NAMES} more"
        )
    if value is None or isinstance(value, bool):
        return {None: "–", True: "yes", False: "no"}[value]
    if isinstance(value, timedelta):
        return format_duration(value.total_seconds())
    if isinstance(value, int):
        return format_count(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


STUDY: Final[Subject[StudyResult]] = Subject(study_document, study_figures, ("svg",))

study_html, write_study, study_terminal = STUDY.html, STUDY.write, STUDY.terminal
write_study_figures = STUDY.write_figures
