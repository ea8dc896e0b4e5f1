"""What a study is, what it returns, and the catalogue of all of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from inspect import Parameter, signature
from pathlib import Path
from time import perf_counter
from types import UnionType
from typing import Any, Final, ParamSpec, get_args, get_origin

from docstring_parser import parse

from abstain._foundation.catalogue import Catalogue
from abstain._foundation.frames import AnyFrame, Backend, NotebookDisplay, frame_from_rows
from abstain._foundation.notes import Note
from abstain._foundation.optional_packages import is_installed
from abstain.errors import MissingInputError, UnknownNameError, suggest
from abstain.plots.drawable import Drawable

P = ParamSpec("P")

#: One row of a table: columns to numbers, texts, booleans or None.
Row = Mapping[str, Any]

#: The name of the tidy table that `--out` leaves as results.csv and results.parquet.
RESULTS: Final = "results"


@dataclass(frozen=True, eq=False)
class StudyResult(NotebookDisplay):
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
        return frame_from_rows([dict(row) for row in self.rows(table)], backend)

    @property
    def open_tables(self) -> tuple[str, ...]:
        """The names of the tables that are shown at once."""
        names = tuple(self.tables)
        return self.shown or names[1:] or names


@dataclass(frozen=True)
class StudyOption:
    """An option of the command of a study, derived from a parameter of its function."""

    #: The parameter of the function.
    name: str
    #: The option of the command, without the dashes.
    flag: str
    #: The type of the option, for the parser.
    kind: Any
    default: Any
    help: str
    is_positional: bool


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
        From parameters, all of which have defaults, to a `StudyResult`. Its annotations and its
        docstring define the options of the command. A first parameter `data` takes the files of
        predictions.
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
    keeps: tuple[str, ...] = ()
    quick: Mapping[str, Any] = field(default_factory=dict)
    configuration: Callable[..., str] | None = None
    captions: Mapping[str, str] = field(default_factory=dict)
    glossary: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def reads_files(self) -> bool:
        """Whether the study reads files of predictions, as its first parameter `data`."""
        return any(_is_data(argument) for argument in signature(self.run).parameters.values())

    @cached_property
    def options(self) -> tuple[StudyOption, ...]:
        """The options of the command, from the signature and the docstring of `run`."""
        descriptions = {
            name: parameter.description or ""
            for parameter in parse(self.run.__doc__ or "").params
            for name in parameter.arg_name.split(", ")
        }
        return tuple(
            _option(argument, " ".join(descriptions.get(name, "").split()))
            for name, argument in signature(self.run).parameters.items()
            if name not in {"out", "on_outcome"} and not _is_data(argument)
        )

    def result(self, **found: Any) -> StudyResult:
        """Make the result of this study from what it found."""
        of_all = ("name", "title", "question", "source", "captions", "glossary", "labels")
        return StudyResult(**{name: getattr(self, name) for name in of_all} | found)


def _is_data(argument: Parameter) -> bool:
    return argument.name == "data" and argument.kind is not Parameter.KEYWORD_ONLY


def _option(argument: Parameter, description: str) -> StudyOption:
    kind = _option_type(argument.annotation)
    flag = "seed" if argument.name == "rng" else argument.name
    if kind == tuple[str, ...]:
        flag = {"losses": "loss", "studies": "study"}.get(flag, flag.removesuffix("s"))
    elif argument.default is None:
        kind = kind | None
    is_positional = argument.kind is not Parameter.KEYWORD_ONLY
    text = description.replace("``", "`")
    return StudyOption(argument.name, flag, kind, argument.default, text, is_positional)


def _option_type(annotation: Any) -> Any:
    """Return the type of an option: a tuple for a sequence, a path or a seed for a union."""
    members = get_args(annotation) if isinstance(annotation, UnionType) else (annotation,)
    for member in members:
        if get_origin(member) is Sequence:
            item: Any = _option_type(get_args(member)[0])
            return tuple[item, ...]
    return next((kind for kind in (Path, int, str) if kind in members), members[0])


#: Every study, in the order in which they are listed.
STUDIES: Catalogue[StudyEntry] = Catalogue("study", list_command="list studies")


def need(package: str) -> None:
    """Refuse to run a study without a package; its function imports that afterwards."""
    if not is_installed(package):
        raise MissingInputError(f"this study needs {package}: pip install {package}")


def timed(study: Callable[P, StudyResult]) -> Callable[P, StudyResult]:
    """Let a study say how long it took."""

    @wraps(study)
    def run(*args: P.args, **kwargs: P.kwargs) -> StudyResult:
        start = perf_counter()
        found = study(*args, **kwargs)
        return replace(found, seconds=perf_counter() - start)

    return run
