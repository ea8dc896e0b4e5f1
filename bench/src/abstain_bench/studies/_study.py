"""What a study is, what it returns, and the catalogue of all of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from time import perf_counter
from typing import Any, Final, ParamSpec

from abstain._foundation.catalogue import Catalogue
from abstain._foundation.extras import has
from abstain._foundation.frames import AnyFrame, Backend, InNotebook, of_rows
from abstain._foundation.notes import Note
from abstain.errors import MissingInputError, UnknownNameError, suggest
from abstain.plots.drawable import Drawable

P = ParamSpec("P")

#: One row of a table: columns to numbers, texts, booleans or None.
Row = Mapping[str, Any]

#: The name of the tidy table that `--out` leaves as results.csv and results.parquet.
RESULTS: Final = "results"


@dataclass(frozen=True, eq=False)
class StudyResult(InNotebook):
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
    notes : tuple of str or Note
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
    >>> from abstain_bench.studies import STUDIES
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
    notes: tuple[str | Note, ...] = ()
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
            raise UnknownNameError(
                f"the study {self.name!r} has no table {name!r}.{suggest(name, self.tables)}"
            )
        return self.tables[name]

    def frame(self, table: str | None = None, *, backend: Backend = "polars") -> AnyFrame:
        """Return one table as a dataframe, by default the first."""
        return of_rows([dict(row) for row in self.rows(table)], backend)

    @property
    def open_tables(self) -> tuple[str, ...]:
        """The names of the tables that are shown at once."""
        names = tuple(self.tables)
        return self.shown or names[1:] or names


@dataclass(frozen=True)
class StudyOption:
    """A parameter of a study as the command line asks for it.

    What it is without being given is the default of the function. Numbers of a tuple stand in a
    row (``--sizes 8 32``), an option with a tuple of text is given again and again.

    Attributes
    ----------
    name : str
        Of the parameter of the function.
    kind : type
        What one value is: `int`, ``int | None``, ``tuple[str, ...]``, a `Literal` and so on.
    meaning : str
        What the help says.
    flag : str
        Its name on the command line, where that is another: "seed" for `rng`.
    positional : bool
        Whether it is given by its place, without a flag.

    Examples
    --------
    >>> from abstain_bench.studies import STUDIES
    >>> [(option.name, option.meaning) for option in STUDIES["weights"].options][1]
    ('points', 'population ranks at which they are computed')
    """

    name: str
    kind: Any
    meaning: str
    flag: str = ""
    positional: bool = False


@dataclass(frozen=True)
class StudyEntry:
    """One study of the literature: the catalogue, its command and its page are made from it.

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
    about : str
        What the help of its command says; by default the question.
    options : tuple of StudyOption
        The parameters that its command has, in the order of the help.
    reads : bool
        Whether files of predictions can be given, which `run` takes by name as its only argument
        without a keyword.
    keeps : tuple of str
        Of a study that is made of jobs: what of them is kept in the folder of its results. Then
        `run` takes `out` and `on_outcome` too, and a table "jobs" has the status of each.
    quick : mapping from str to value
        The parameters of a run that takes seconds, with ``--quick``.
    configuration : callable or None
        From the arguments of its command to the text of the configuration that it would run.
    captions, glossary, labels : mapping from str to str
        Of every `StudyResult`.

    Examples
    --------
    >>> from abstain_bench.studies import STUDIES
    >>> STUDIES["weights"].title
    'Bias and error of the rank weights'
    """

    name: str
    title: str
    question: str
    source: str
    run: Callable[..., StudyResult]
    about: str = ""
    options: tuple[StudyOption, ...] = ()
    reads: bool = False
    keeps: tuple[str, ...] = ()
    quick: Mapping[str, Any] = field(default_factory=dict)
    configuration: Callable[..., str] | None = None
    captions: Mapping[str, str] = field(default_factory=dict)
    glossary: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)

    def result(self, **found: Any) -> StudyResult:
        """Make the result of this study from what it found."""
        of_all = ("name", "title", "question", "source", "captions", "glossary", "labels")
        return StudyResult(**{name: getattr(self, name) for name in of_all} | found)


#: Every study, in the order in which they are listed.
STUDIES: Catalogue[StudyEntry] = Catalogue("study", listed="list studies")

#: A parameter that every study has which draws anything.
SEED: Final = StudyOption("rng", int, "of everything drawn", flag="seed")


def need(package: str) -> None:
    """Refuse to run a study without a package; its function imports that afterwards."""
    if not has(package):
        raise MissingInputError(f"this study needs {package}: pip install {package}")


def timed(study: Callable[P, StudyResult]) -> Callable[P, StudyResult]:
    """Let a study say how long it took."""

    @wraps(study)
    def run(*args: P.args, **kwargs: P.kwargs) -> StudyResult:
        start = perf_counter()
        found = study(*args, **kwargs)
        return replace(found, seconds=perf_counter() - start)

    return run
