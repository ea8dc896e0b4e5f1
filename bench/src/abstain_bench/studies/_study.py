"""Define the entries, results and catalogue of studies."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from inspect import Parameter, cleandoc, signature
from pathlib import Path
from time import perf_counter
from types import UnionType
from typing import Any, ParamSpec, get_args, get_origin

from docstring_parser import parse

from abstain._foundation.catalogue import Catalogue
from abstain._foundation.frames import AnyFrame, Backend, NotebookDisplay, frame_from_rows
from abstain._foundation.lazy_imports import is_installed
from abstain._foundation.notes import Note
from abstain.errors import MissingInputError, UnknownNameError, suggest
from abstain.plots.drawable import Drawable
from abstain_bench.studies._display import OVER_MODELS, OVER_MODELS_CAPTION, Row

P = ParamSpec("P")


@dataclass(frozen=True, eq=False)
class StudyResult(NotebookDisplay):
    """Tables, figures and conclusions of a study.

    Attributes
    ----------
    name, title, question : str
        Name, title and research question of the study.
    parameters : mapping from str to value
        Parameters of the run. A value is a number, a text, a timedelta, or a tuple of these.
    tables : mapping from str to rows
        Tables by name. The first table contains all numbers in tidy form, one per row. The other
        tables are summaries. Each row maps column names to numbers, texts, booleans or None.
    figures : mapping from str to figure
        Displays of `abstain.plots` by name. Names contain letters, digits and hyphens.
    notes : tuple of str or Note
        Remarks about the reliability and the definition of the numbers.
    verdict : tuple of str
        Conclusions in complete sentences, in descending order of importance.
    seconds : float
        Duration of the run.
    source : str
        Publication of the study.
    captions : mapping from str to str
        Captions of tables and figures, by name.
    main_tables : tuple of str
        Names of the tables that the terminal and the page display. The page displays all other
        tables in collapsed form. The default is all tables except the first, or the only table.
    glossary : mapping from str to str
        Definitions by term.
    labels : mapping from str to str
        Display texts for table values, such as "2 x SELE" for "2sele".

    Examples
    --------
    >>> from abstain_bench.studies import STUDIES
    >>> result = STUDIES["weights"].run(sizes=[8], points=5)
    >>> result.name, result.frame().columns[:3]
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
    main_tables: tuple[str, ...] = ()
    glossary: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)

    def rows(self, table: str | None = None) -> Sequence[Row]:
        """Return the rows of the named table, by default the first table."""
        name = next(iter(self.tables)) if table is None else table
        if name not in self.tables:
            raise UnknownNameError(
                f"the study {self.name!r} has no table {name!r}.{suggest(name, self.tables)}"
            )
        return self.tables[name]

    def frame(self, table: str | None = None, *, backend: Backend = "polars") -> AnyFrame:
        """Return the named table as a dataframe, by default the first table."""
        return frame_from_rows([dict(row) for row in self.rows(table)], backend)

    @property
    def displayed_tables(self) -> tuple[str, ...]:
        """Names of the tables that the terminal and the page display."""
        names = tuple(self.tables)
        return self.main_tables or names[1:] or names


@dataclass(frozen=True)
class StudyOption:
    """Command-line option for one parameter of a study function."""

    #: Name of the parameter.
    name: str
    #: Name of the option without dashes.
    flag: str
    #: Type to which the parser converts the option.
    kind: Any
    default: Any
    help: str
    is_positional: bool


@dataclass(frozen=True)
class StudyEntry:
    """A study in the catalogue.

    Attributes
    ----------
    name : str
        Name of the study, as in ``abstain study NAME``.
    title : str
        Display title.
    question : str
        Research question.
    source : str
        Publication.
    run : callable
        Function that returns a `StudyResult`. All parameters have defaults. The command-line
        options are derived from the annotations and the docstring of the function. The docstring
        also contains the rubric "Captions" for tables and figures, and the rubric "Glossary". If
        there is a positional parameter `data`, it receives the predictions that are read from
        files.
    job_folders : tuple of str
        Subfolders of the results that contain finished jobs. If this is not empty, `run` also
        accepts `out` and `on_outcome`, and its table "jobs" contains the status of each job.
    quick : mapping from str to value
        Parameters for the option ``--quick``, with which a run takes seconds.
    configuration : callable or None
        Function that converts the arguments of the command to the text of a configuration file.
    terms : mapping from str to str
        Definitions by term, in addition to the rubric "Glossary".
    labels : mapping from str to str
        Display texts for table values, see `StudyResult`.

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
    job_folders: tuple[str, ...] = ()
    quick: Mapping[str, Any] = field(default_factory=dict)
    configuration: Callable[..., str] | None = None
    terms: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def reads_files(self) -> bool:
        """Whether the study has a positional parameter `data` for predictions from files."""
        return any(_is_data(argument) for argument in signature(self.run).parameters.values())

    @cached_property
    def options(self) -> tuple[StudyOption, ...]:
        """Command-line options that are derived from the signature and the docstring of `run`."""
        descriptions: dict[str, str] = {}
        for parameter in parse(self.run.__doc__ or "").params:
            for name in parameter.arg_name.split(", "):
                descriptions[name] = " ".join((parameter.description or "").split())
        return tuple(
            _make_option(argument, descriptions.get(name, ""))
            for name, argument in signature(self.run).parameters.items()
            if name not in {"out", "on_outcome"} and not _is_data(argument)
        )

    @cached_property
    def captions(self) -> dict[str, str]:
        """Captions of tables and figures by name, from the docstring of `run`."""
        captions = {OVER_MODELS: OVER_MODELS_CAPTION}
        for names, text in _read_definitions(self.run.__doc__, "Captions").items():
            captions |= dict.fromkeys(names.split(", "), text)
        return captions

    @cached_property
    def glossary(self) -> dict[str, str]:
        """Definitions of terms, from the docstring of `run` and the attribute `terms`."""
        return {**_read_definitions(self.run.__doc__, "Glossary"), **self.terms}

    def result(self, **fields: Any) -> StudyResult:
        """Create a result with the title, source, glossary and captions of the study."""
        fields["captions"] = {**self.captions, **fields.get("captions", {})}
        shared = ("name", "title", "question", "source", "glossary", "labels")
        return StudyResult(**{name: getattr(self, name) for name in shared} | fields)


def _read_definitions(docstring: str | None, title: str) -> dict[str, str]:
    """Read terms and their indented definitions under a rubric of a docstring."""
    _, _, section = cleandoc(docstring or "").partition(f"\n.. rubric:: {title}\n\n")
    definitions: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in section.partition("\n\n")[0].splitlines():
        if line.startswith(" "):
            lines.append(line.strip())
        else:
            lines = definitions.setdefault(line, [])
    return {term: " ".join(text) for term, text in definitions.items()}


def _is_data(argument: Parameter) -> bool:
    return argument.name == "data" and argument.kind is not Parameter.KEYWORD_ONLY


#: Names of options that are not the name of the parameter without a final "s".
_SPECIAL_FLAGS = {"rng": "seed", "losses": "loss", "studies": "study"}


def _make_option(argument: Parameter, description: str) -> StudyOption:
    """Create the command-line option for one parameter of a study function."""
    base_type = _option_type(argument.annotation)
    # An option with texts is repeated on the command line, so its name is singular.
    is_repeated = base_type == tuple[str, ...]
    name = argument.name.removesuffix("s") if is_repeated else argument.name
    is_optional = argument.default is None and not is_repeated
    return StudyOption(
        name=argument.name,
        flag=_SPECIAL_FLAGS.get(argument.name, name),
        kind=base_type | None if is_optional else base_type,
        default=argument.default,
        help=description.replace("``", "`"),
        is_positional=argument.kind is not Parameter.KEYWORD_ONLY,
    )


def _option_type(annotation: Any) -> Any:
    """Return the type to which the command-line parser converts an option.

    A sequence becomes a tuple. A union is converted to the most specific of the types `Path`, `int`
    and `str`.
    """
    members = get_args(annotation) if isinstance(annotation, UnionType) else (annotation,)
    for member in members:
        if get_origin(member) is Sequence:
            item: Any = _option_type(get_args(member)[0])
            return tuple[item, ...]
    for preferred in (Path, int, str):
        if preferred in members:
            return preferred
    return members[0]


#: All studies, in the order of the list.
STUDIES: Catalogue[StudyEntry] = Catalogue("study", list_command="list studies")


def require_package(package: str) -> None:
    """Raise an error if an optional package is not installed."""
    if not is_installed(package):
        raise MissingInputError(f"this study needs {package}: pip install {package}")


def timed(study: Callable[P, StudyResult]) -> Callable[P, StudyResult]:
    """Measure the duration of a study and store it in its result."""

    @wraps(study)
    def run(*args: P.args, **kwargs: P.kwargs) -> StudyResult:
        start = perf_counter()
        result = study(*args, **kwargs)
        return replace(result, seconds=perf_counter() - start)

    return run
