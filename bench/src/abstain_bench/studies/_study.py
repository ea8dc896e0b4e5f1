"""Entries, results and the catalogue of the studies."""

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
    """The result of a study: tables, figures and conclusions.

    Attributes
    ----------
    name, title, question : str
        Name, title and research question of the study.
    parameters : mapping from str to value
        Parameters of the run: numbers, texts, a timedelta, or tuples of them.
    tables : mapping from str to rows
        The first table is tidy and contains all numbers; the others are summaries. Rows are
        mappings from column to number, text, boolean or None.
    figures : mapping from str to figure
        Displays of `abstain.plots`, by a name of letters, digits and hyphens.
    notes : tuple of str or Note
        Remarks about the reliability and the definition of the numbers.
    verdict : tuple of str
        Conclusions in sentences, the most important one first.
    seconds : float
        Duration of the run.
    source : str
        Publication of the study.
    captions : mapping from str to str
        Captions of tables and figures, by name.
    main_tables : tuple of str
        Tables that a terminal prints and a page displays expanded. All other tables are collapsed
        or only in files. If empty: all tables but the first, or the first if there is no other.
    glossary : mapping from str to str
        Terms of this study and their definitions.
    labels : mapping from str to str
        Display texts for values of the tables, such as "2 x SELE" for "2sele".

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
        """Return the rows of a table, by default of the first one."""
        name = next(iter(self.tables)) if table is None else table
        if name not in self.tables:
            raise UnknownNameError(
                f"the study {self.name!r} has no table {name!r}.{suggest(name, self.tables)}"
            )
        return self.tables[name]

    def frame(self, table: str | None = None, *, backend: Backend = "polars") -> AnyFrame:
        """Return a table as a dataframe, by default the first one."""
        return frame_from_rows([dict(row) for row in self.rows(table)], backend)

    @property
    def displayed_tables(self) -> tuple[str, ...]:
        """Names of the tables that are displayed expanded."""
        names = tuple(self.tables)
        return self.main_tables or names[1:] or names


@dataclass(frozen=True)
class StudyOption:
    """An option of the command of a study, derived from a parameter of its function."""

    #: Parameter of the function.
    name: str
    #: Option of the command, without the dashes.
    flag: str
    #: Type of the option, for the parser.
    kind: Any
    default: Any
    help: str
    is_positional: bool


@dataclass(frozen=True)
class StudyEntry:
    """A study of the literature. The list, the command and the page are generated from it.

    Attributes
    ----------
    name : str
        Name in scripts: ``abstain study NAME``.
    title : str
        Title for people.
    question : str
        Research question.
    source : str
        Publication.
    run : callable
        Function that returns a `StudyResult`. All parameters have defaults. Its annotations and its
        docstring define the options of the command. The rubrics "Captions" and "Glossary" of the
        docstring define the captions of tables and figures and the terms of the page. A positional
        parameter `data` receives the files of predictions.
    job_folders : tuple of str
        For a study that consists of jobs: the subfolders of the results that contain the finished
        jobs. Then `run` also accepts `out` and `on_outcome`, and a table "jobs" has the status of
        each job.
    quick : mapping from str to value
        Parameters of a run that takes seconds, for ``--quick``.
    configuration : callable or None
        Function from the arguments of the command to the text of the configuration.
    terms : mapping from str to str
        Terms of the glossary that are not in the docstring.
    labels : mapping from str to str
        Attribute of every `StudyResult`.

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
        """Whether the study reads files of predictions, as its first parameter `data`."""
        return any(_is_data(argument) for argument in signature(self.run).parameters.values())

    @cached_property
    def options(self) -> tuple[StudyOption, ...]:
        """Options of the command, from the signature and the docstring of `run`."""
        descriptions = {
            name: parameter.description or ""
            for parameter in parse(self.run.__doc__ or "").params
            for name in parameter.arg_name.split(", ")
        }
        return tuple(
            _make_option(argument, " ".join(descriptions.get(name, "").split()))
            for name, argument in signature(self.run).parameters.items()
            if name not in {"out", "on_outcome"} and not _is_data(argument)
        )

    @cached_property
    def captions(self) -> dict[str, str]:
        """Captions of tables and figures by name, from the docstring of `run`."""
        definitions = _read_definitions(self.run.__doc__, "Captions")
        by_name = {name: text for names, text in definitions.items() for name in names.split(", ")}
        return {OVER_MODELS: OVER_MODELS_CAPTION, **by_name}

    @cached_property
    def glossary(self) -> dict[str, str]:
        """Terms and their definitions: those of the docstring of `run`, then `terms`."""
        return {**_read_definitions(self.run.__doc__, "Glossary"), **self.terms}

    def result(self, **fields: Any) -> StudyResult:
        """Create a result of this study. It may have captions in addition to those of the study."""
        fields["captions"] = {**self.captions, **fields.get("captions", {})}
        shared = ("name", "title", "question", "source", "glossary", "labels")
        return StudyResult(**{name: getattr(self, name) for name in shared} | fields)


def _read_definitions(docstring: str | None, title: str) -> dict[str, str]:
    """Return the definitions below a rubric of a docstring: terms, with indented texts below."""
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


def _make_option(argument: Parameter, description: str) -> StudyOption:
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


#: All studies, in the order of the list.
STUDIES: Catalogue[StudyEntry] = Catalogue("study", list_command="list studies")


def require_package(package: str) -> None:
    """Raise an error if an optional package is not installed."""
    if not is_installed(package):
        raise MissingInputError(f"this study needs {package}: pip install {package}")


def timed(study: Callable[P, StudyResult]) -> Callable[P, StudyResult]:
    """Decorate a study so that its result contains the duration of the run."""

    @wraps(study)
    def run(*args: P.args, **kwargs: P.kwargs) -> StudyResult:
        start = perf_counter()
        result = study(*args, **kwargs)
        return replace(result, seconds=perf_counter() - start)

    return run
