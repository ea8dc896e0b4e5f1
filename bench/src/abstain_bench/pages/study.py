"""The report of a study: tables, figures, conclusion and glossary."""

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

#: Maximum number of rows of a table on a page and in a terminal; the files contain all rows.
_PAGE, _SCREEN = 200, 24

#: Suffixes of columns with the standard error or standard deviation of another column.
_ERRORS: Final = ("_se", "_deviation")
_LOW, _HIGH = "_low", "_high"

#: Longest word, in characters, that is not broken on a page.
_WORD: Final = 20

#: Maximum number of names that a parameter lists.
_LISTED: Final = 5

#: Maximum number of numbers that a parameter lists instead of their range.
_NUMBERS: Final = 6

#: The space before a percent sign.
_PERCENT = re.compile(r"(?<=[0-9]) %")

#: Valid names of figures, which become parts of identifiers and file names.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*")

#: Words with a fixed spelling in column headers.
_SPELLED: Final = {
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
    """Return the report of a study."""
    known = checked_study(result)
    said = enumerate(known.verdict)
    return doc.Document(
        origin.title or known.title,
        "Study",
        lambda: (
            doc.DeferredBlocks(lambda: _summary(known), role="summary"),
            doc.DeferredBlocks(lambda: _sections(known, origin.command), role="detail"),
        ),
        verdict=tuple(_prose(s) if i else doc.Span(_prose(s), "strong") for i, s in said),
        facts=tuple(_facts(known)),
        findings=tuple(_remarks([*known.notes, *origin.notes])),
        is_complete=True,
    )


def checked_study(result: StudyResult) -> StudyResult:
    """Raise an error if the argument is not the result of a study."""
    given: object = result
    if not isinstance(given, StudyResult):
        raise InputError(
            f"`result` must be a StudyResult, as studies return it; got {type(given).__name__}"
        )
    return result


def study_figures(result: StudyResult) -> list[tuple[str, Drawable]]:
    """Return the figures of a study by name; raise an error for names that are not file names."""
    for name in checked_study(result).figures:
        if not _NAME.fullmatch(name):
            raise InputError(
                f"the name of a figure must be letters, digits and hyphens; got {name!r}"
            )
    return list(result.figures.items())


def _prose(text: str) -> str:
    """Replace the space before a percent sign by a non-breaking space."""
    return _PERCENT.sub("\u00a0%", text)


def _remarks(notes: Iterable[str | Note]) -> list[doc.Remark]:
    """Return the notes as remarks, warnings first."""
    remarks = [
        doc.Remark(note.level if isinstance(note, Note) else "note", _prose(str(note)))
        for note in notes
    ]
    return sorted(remarks, key=lambda remark: remark.level != "warning")


def _sections(result: StudyResult, command: str) -> Iterator[doc.Section]:
    filled = [name for name in result.tables if result.rows(name)]
    shown = [name for name in result.displayed_tables if name in filled]
    tables: list[doc.Block] = [_table(result, name) for name in shown]
    if len(shown) > 1:
        tables = [
            doc.Section(f"table-{i}", _title(name), (table,), level=3)
            for i, (name, table) in enumerate(zip(shown, tables, strict=True))
        ]
    if tables:
        lead = doc.Prose(_prose(result.question), "lead")
        yield doc.Section("tables", "Results", (lead, *tables))
    if result.figures:
        drawn = tuple(_figure(result, *named) for named in study_figures(result))
        yield doc.Section("figures", "Figures", (doc.Box(drawn, layout="figures"),))
    folded = tuple(
        doc.Collapsible(
            f"{_title(name)}: {format_count(len(result.rows(name)))} rows", (_table(result, name),)
        )
        for name in filled
        if name not in shown
    )
    if folded:
        # A page collapses these tables; papers omit them; the files contain all of them.
        yield doc.Section("all", "All numbers", folded, role="interactive")
    words = [doc.GlossaryEntry(word, _prose(said)) for word, said in result.glossary.items()]
    words += [doc.GlossaryEntry("Published", split_links(result.source))] if result.source else []
    if words:
        yield doc.Section("glossary", "Glossary", (doc.Glossary(tuple(words)),))
    yield doc.reproduce_section(command)


def _figure(result: StudyResult, name: str, display: Any) -> doc.Figure:
    title = getattr(display, "title", "") or head(name)
    about = _prose(result.captions.get(name, ""))
    return doc.Figure(f"figure-{name}".replace(".", "-"), title, display, about)


def _summary(result: StudyResult) -> Iterator[doc.Block]:
    yield from (doc.Prose(result.title, "strong"), doc.Prose(result.question, "lead"))
    yield from map(doc.Prose, result.verdict)
    for name in result.displayed_tables:
        if result.rows(name):
            yield replace(_table(result, name, _SCREEN), title=result.captions.get(name, ""))
            if (n_more := len(result.rows(name)) - _SCREEN) > 0:
                yield doc.SeeAlso(f"{format_count(n_more)} more rows ", "with --out", "in .rows()")
    yield doc.Facts(tuple(_facts(result)))


# --------------------------------------------------------------------------------- the tables
def _title(table: str) -> str:
    return head(table.replace("-", "_"))


def _table(result: StudyResult, name: str, most: int = _PAGE) -> doc.Table:
    """Return a table with standard errors and intervals in the cells of their values."""
    rows, caption = result.rows(name), result.captions.get(name, "")
    # Columns without any value are omitted.
    columns = unique(c for row in rows for c, value in row.items() if value != "")
    shown = [column for column in columns if not _belongs(column, columns)]
    kept = rows[:most]
    body = [[_cell(row, column, result.labels) for column in shown] for row in kept]
    heads = tuple(_column(c, [row[i] for row in body]) for i, c in enumerate(shown))
    body = [[_prose(c) if isinstance(c, str) else c for c in row] for row in body]
    left = len(rows) - len(kept)
    said = f" First rows; {format_count(left)} more are in {name}.csv." if left else ""
    about = f"{_prose(caption) or _title(name)}{said}"
    return doc.Table(
        heads, doc.single_group(body), title=_title(name), caption=about, layout="study"
    )


def _belongs(column: str, columns: Sequence[str]) -> bool:
    """Return True if a column belongs to the cells of another column."""
    return any(
        column.endswith(ending) and column.removesuffix(ending) in columns
        for ending in (*_ERRORS, _LOW, _HIGH)
    )


def _column(name: str, cells: Sequence[doc.Cell]) -> doc.Column:
    """Return the header of a column of numbers, text, or long names that may be broken."""
    if any(isinstance(cell, doc.Number) for cell in cells):
        return doc.Column(head(name), "number")
    words = [word for cell in cells if isinstance(cell, str) for word in cell.split()]
    return doc.Column(head(name), "name" if max(map(len, words), default=0) > _WORD else "text")


def _cell(row: Mapping[str, Any], column: str, labels: Mapping[str, str]) -> doc.Cell:
    value = row.get(column)
    if value is None:
        return None
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return labels.get(value, value)
    whole = isinstance(value, int)
    spreads = (_finite(row.get(f"{column}{ending}")) for ending in _ERRORS)
    return doc.Number(
        value if whole else float(value),
        _finite(row.get(f"{column}{_LOW}")),
        _finite(row.get(f"{column}{_HIGH}")),
        next((spread for spread in spreads if not math.isnan(spread)), math.nan),
        number_format="count" if whole else "number",
    )


def _finite(value: Any) -> float:
    return value if isinstance(value, float) and math.isfinite(value) else math.nan


def head(column: str) -> str:
    """Format the name of a column as a header.

    Examples
    --------
    >>> head("mse"), head("sd_ratio"), head("estimator")
    ('MSE', 'SD ratio', 'Estimator')
    """
    words = [_SPELLED.get(word, word) for word in column.split("_")]
    first = words[0]
    words[0] = first if first in _SPELLED.values() else first[:1].upper() + first[1:]
    return " ".join(words)


# ---------------------------------------------------------------------------------- the facts
def _facts(result: StudyResult) -> Iterator[tuple[str, str]]:
    """Yield the parameters of the study and its run time."""
    yield from ((head(name), _parameter(value)) for name, value in result.parameters.items())
    yield "Time of this run", format_duration(result.seconds)


def _parameter(value: Any) -> str:
    if isinstance(value, tuple | list):
        if len(value) > _NUMBERS and all(isinstance(v, int | float) for v in value):
            return f"{_parameter(value[0])} to {_parameter(value[-1])} ({len(value)} values)"
        mark = "; " if any("," in str(v) for v in value) else ", "
        shown = mark.join(_parameter(v) for v in value[:_LISTED])
        return shown if len(value) <= _LISTED else f"{shown} and {len(value) - _LISTED} more"
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
