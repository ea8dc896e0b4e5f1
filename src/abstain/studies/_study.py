"""What a study is, what it returns, and the catalogue of all of them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from abstain._foundation.catalogue import Catalogue
from abstain._foundation.extras import has
from abstain.errors import MissingInputError, UnknownNameError, suggest
from abstain.plots.drawable import Drawable

if TYPE_CHECKING:
    import polars as pl

#: One row of a table: columns to numbers, texts, booleans or None.
Row = Mapping[str, Any]

#: The name of the tidy table that `--out` leaves as results.csv and results.parquet.
RESULTS: Final = "results"


@dataclass(frozen=True, eq=False)
class StudyResult:
    """What a study found: numbers, figures and what they say.

    Attributes
    ----------
    name, title, question : str
        Of the study.
    parameters : mapping from str to value
        What it was run with: numbers, texts, a timedelta, or tuples of them.
    tables : mapping from str to rows
        The first is the tidy one of all numbers; the others are summaries of it. Rows are
        mappings from column to number, text, boolean or None.
    figures : mapping from str to figure
        Displays of `abstain.plots`, by a name of letters, digits and hyphens.
    notes : tuple of str
        What the reader should know before trusting the numbers.
    verdict : tuple of str
        What was found, in sentences, the most important one first.
    seconds : float
        How long it took.
    source : str
        Where the study was published.
    captions : mapping from str to str
        What a table or figure shows and how to read it, by its name.
    shown : tuple of str
        The tables that a terminal prints and a page opens; the others are folded or only in
        files. Empty: all but the first, or the first when it is alone.
    glossary : mapping from str to str
        Words of this study and what they mean.
    labels : mapping from str to str
        What people read instead of a text of the tables, such as "2 x SELE" for "2sele".

    Examples
    --------
    >>> from abstain.studies import STUDIES
    >>> found = STUDIES["weights"].run(sizes=[8], points=5)
    >>> found.name, found.frame().columns[:3]
    ('weights', ['n', 'rank', 'estimator'])
    """

    name: str
    title: str
    question: str
    parameters: Mapping[str, Any]
    tables: Mapping[str, Sequence[Row]]
    figures: Mapping[str, Drawable] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    verdict: tuple[str, ...] = ()
    seconds: float = 0.0
    source: str = ""
    captions: Mapping[str, str] = field(default_factory=dict)
    shown: tuple[str, ...] = ()
    glossary: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)

    def rows(self, table: str | None = None) -> Sequence[Row]:
        """Return the rows of one table, by default of the first."""
        name = next(iter(self.tables)) if table is None else table
        if name not in self.tables:
            msg = f"the study {self.name!r} has no table {name!r}.{suggest(name, self.tables)}"
            raise UnknownNameError(msg)
        return self.tables[name]

    def frame(self, table: str | None = None) -> "pl.DataFrame":
        """Return one table as a polars table, by default the first."""
        import polars as pl

        return pl.DataFrame([dict(row) for row in self.rows(table)], infer_schema_length=None)

    @property
    def open_tables(self) -> tuple[str, ...]:
        """The names of the tables that are shown at once."""
        names = tuple(self.tables)
        return self.shown or names[1:] or names


@dataclass(frozen=True)
class StudyEntry:
    """One study of the literature, as the catalogue knows it.

    Attributes
    ----------
    name : str
        The name scripts use: ``abstain study NAME``.
    title : str
        The name people read.
    question : str
        The question it answers.
    source : str
        Where it was published.
    run : callable
        From parameters, all of which have defaults, to a `StudyResult`.

    Examples
    --------
    >>> from abstain.studies import STUDIES
    >>> STUDIES["weights"].title
    'Bias and error of the rank weights'
    """

    name: str
    title: str
    question: str
    source: str
    run: Callable[..., StudyResult]

    def result(self, **found: Any) -> StudyResult:
        """Make the result of this study from what it found."""
        about = {name: getattr(self, name) for name in ("name", "title", "question", "source")}
        return StudyResult(**about, **found)


#: Every study, in the order in which they are listed.
STUDIES: Catalogue[StudyEntry] = Catalogue("study", listed="list studies")


def later(module: str, function: str, *, package: str, extra: str) -> Callable[..., StudyResult]:
    """Return a `run` that imports its module when it is called, and asks for the extra it needs.

    For studies whose module imports an optional package: they can be listed without it.
    """

    def run(*data: Any, **parameters: Any) -> StudyResult:
        if not has(package):
            msg = f"this study needs {package}; pip install 'abstain[{extra}]'"
            raise MissingInputError(msg)
        found: StudyResult = getattr(import_module(module), function)(*data, **parameters)
        return found

    return run


@contextmanager
def stopwatch() -> Iterator[Callable[[], float]]:
    """Measure the seconds since the start."""
    start = perf_counter()
    yield lambda: perf_counter() - start
