"""Any result in any format: one entry for each kind of result, and what writes them all.

A builder says a result as a document, a renderer writes the document, and here the two are joined.
"""

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from abstain._foundation import plugins
from abstain._foundation.files import make_folder, write_atomically
from abstain._foundation.lazy_imports import lazy_function
from abstain.errors import InputError
from abstain.plots.drawable import Drawable
from abstain.report.document import Document, Format, Origin, Section
from abstain.report.render import render
from abstain.tables.results import escape_formulas

if TYPE_CHECKING:
    from rich.console import RenderableType

    from abstain.evaluation.cascade import CascadeChecks
    from abstain.evaluation.comparison import Comparison
    from abstain.evaluation.records import Evaluation
    from abstain.evaluation.rules import RuleChecks
    from abstain.monitoring import Monitor
    from abstain.report.pictures import Pictures

ResultT = TypeVar("ResultT")
Named = Iterable[tuple[str, Drawable]]

#: The kinds of files that a figure can be.
FORMATS: Final = ("svg", "pdf", "png")

#: The endings of files that are no page.
_ENDINGS: Final[dict[str, Format]] = {".md": "markdown", ".tex": "latex"}


def _undrawn(result: object) -> Named:
    msg = "`result` must have figures beside its page; got"
    raise InputError(f"{msg} {type(result).__name__}")


@dataclass(frozen=True)
class PageSection:
    """A section at the end of the reports of an existing kind of result.

    A package adds one with an entry point of the group ``abstain.sections``: its name is the class
    name of the result, its value the location of a `PageSection`. `build` gets the result and
    returns the section, or None where there is nothing to show.
    """

    build: Callable[[Any], Section | None]


def _with_added_sections(result: object, document: Document) -> Document:
    """Append the sections that other packages add to the reports of this kind of result."""
    added = [
        extension
        for extension in plugins.extensions(plugins.SECTIONS)
        if extension.name == type(result).__name__
    ]
    if not added:
        return document
    builders = [plugins.load_extension(extension, PageSection).build for extension in added]
    sections = tuple(section for build in builders if (section := build(result)))
    return replace(document, blocks=lambda: (*document.blocks(), *sections))


@dataclass(frozen=True)
class Subject(Generic[ResultT]):
    """A kind of result: functions that build its document and its figures and reject other kinds.

    `formats` are the default formats of its figures. `options` names the parts of `Origin` that
    only some kinds accept. A package adds a kind with an entry point of the group
    ``abstain.subjects``: its name is the class name of the result, which the same package defines,
    its value the location of a `Subject`.
    """

    document: Callable[[ResultT, Origin], Document]
    figures: Callable[[ResultT], Named] = _undrawn
    formats: tuple[str, ...] = FORMATS
    options: frozenset[str] = frozenset()

    def said(self, result: ResultT, origin: Origin) -> Document:
        """Build the document of a result; reject options that its kind does not accept."""
        options = (_find_subject(result) or self).options
        for name in ("pictures", "beside"):
            if getattr(origin, name) and name not in options:
                raise InputError(f"`{name}` cannot be used with {type(result).__name__}")
        return _with_added_sections(result, self.document(result, origin))

    def html(
        self,
        result: ResultT,
        *,
        title: str = "",
        source: str = "",
        notes: Sequence[str] = (),
        command: str = "",
        pictures: "Pictures | None" = None,
        beside: Sequence[Any] = (),
    ) -> str:
        """Write a result as one self-contained HTML page.

        Parameters
        ----------
        result : a result of one of the kinds of `document_of`
            What the page is about; of a name with a subject, that subject.
        title, source, notes, command, pictures, beside
            As for `document_of`.

        Returns
        -------
        str
            HTML with style, script, figures and data inside; it loads nothing from the network.
            Every string of the caller is escaped, also in the figures and the embedded JSON. That
            of a benchmark with 31 methods and 12 studies has some 5 MB and takes about 20 seconds.

        Raises
        ------
        InputError
            If `result` is something else.

        Examples
        --------
        >>> import abstain as ab
        >>> from abstain.report import html_report
        >>> samples = ab.Predictions(confidence=[0.9, 0.8, 0.7, 0.6], loss=[0, 0, 1, 0])
        >>> page = html_report(ab.evaluate(samples), title="Four <samples>")
        >>> "<h1>Four &lt;samples&gt;</h1>" in page
        True
        """
        origin = Origin(title, source, notes, command, pictures=pictures, beside=beside)
        return str(render(self.said(result, origin), "html"))

    def write(
        self,
        result: ResultT,
        path: str | os.PathLike[str],
        *,
        title: str = "",
        source: str = "",
        notes: Sequence[str] = (),
        command: str = "",
        pictures: "Pictures | None" = None,
        beside: Sequence[Any] = (),
    ) -> Path:
        """Write a result to a file: all of it or, when something fails, nothing.

        Parameters
        ----------
        result : a result of one of the kinds of `document_of`
            What the file is about; of a name with a subject, that subject.
        path : path-like
            The file; its folder must exist. It holds Markdown where it ends in ``.md``, LaTeX where
            it ends in ``.tex``, and else an HTML page.
        title, source, notes, command, pictures, beside
            As for `document_of`.

        Returns
        -------
        pathlib.Path
            The file written.

        Raises
        ------
        InputError
            If `result` is something else, or the file cannot be written.

        Examples
        --------
        >>> import tempfile
        >>> import abstain as ab
        >>> from abstain.report import write
        >>> samples = ab.Predictions(confidence=[0.9, 0.8, 0.7, 0.6], loss=[0, 0, 1, 0])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     written = write(ab.evaluate(samples), f"{folder}/report.html")
        >>> written.name
        'report.html'
        """
        origin = Origin(title, source, notes, command, pictures=pictures, beside=beside)
        place = Path(path)
        said = render(self.said(result, origin), _ENDINGS.get(place.suffix, "html"))
        write_atomically(place, said.encode())
        return place

    def terminal(self, result: ResultT, *, full: bool = False) -> "RenderableType":
        r"""Lay a result out for a terminal.

        Parameters
        ----------
        result : a result of one of the kinds of `document_of`
            What is said; of a name with a subject, that subject.
        full : bool, default=False
            Of an evaluation every metric with the sentence that says what it means, of a comparison
            a table for every metric and data set, and of both every finding.

        Returns
        -------
        rich renderable
            Print it with a `rich.console.Console`; it is made for 100 columns, of comparisons and
            benchmarks for 60. What has no room is left out, and named.

        Raises
        ------
        InputError
            If `result` is something else.

        Examples
        --------
        >>> import abstain as ab
        >>> from abstain.report import terminal_table
        >>> samples = ab.Predictions(confidence=[0.9, 0.8, 0.7, 0.6], loss=[0, 0, 1, 0])
        >>> from rich.console import Console
        >>> with (console := Console(width=60)).capture() as printed:
        ...     console.print(terminal_table(ab.evaluate(samples, metrics=["augrc"])))
        >>> print("\n".join(line.rstrip() for line in printed.get().splitlines()[:3]))
        Score        AUGRC ↓
        ────────────────────
        confidence   0.09375
        """
        made: RenderableType = render(self.said(result, Origin(full=full)), "terminal")
        return made

    def write_figures(
        self,
        result: ResultT,
        folder: str | os.PathLike[str],
        *,
        formats: Sequence[str] | None = None,
    ) -> list[Path]:
        """Write every figure of a result, each with its table.

        Parameters
        ----------
        result : Comparison, RuleChecks, CascadeChecks or Monitor
            What is drawn; of a name with a subject, that subject.
        folder : path-like
            Made when it does not exist.
        formats : sequence of str, optional
            Some of "svg", "pdf" and "png"; by default all, but no "pdf" by
            `write_rule_figures`.

        Returns
        -------
        list of pathlib.Path
            The files written: for each figure one in each format and a CSV of what it draws.

        Raises
        ------
        InputError
            If `result` is something else, a format is unknown, or a file cannot be written.

        Examples
        --------
        >>> import tempfile
        >>> import abstain as ab
        >>> from abstain.report import write_figures
        >>> rule = ab.thresholds.DecisionRule("risk", 0.5, target=0.5)
        >>> data = ab.Predictions(confidence=[0.9, 0.8, 0.4], loss=[0, 1, 0])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     files = write_figures(ab.check_rule(rule, data), folder, formats=["svg"])
        >>> [path.name for path in files][:2]
        ['decision-rule.svg', 'decision-rule.csv']
        """
        files = self.files(result, self.formats if formats is None else formats)
        place = Path(folder)
        make_folder(place)
        left = []
        for name, content in files:
            write_atomically(place / name, content)
            left.append(place / name)
        return left

    def files(self, result: ResultT, formats: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """Return the files of `write_figures` by name."""
        unknown = [kind for kind in formats if kind not in FORMATS]
        if unknown:
            raise InputError(
                f"`formats` must be some of {', '.join(map(repr, FORMATS))}; got {unknown[0]!r}"
            )
        return _drawn(self.figures(result), formats)


def _drawn(named: Named, formats: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    for name, display in named:
        for kind in formats:
            with warnings.catch_warnings():
                # A name in letters that the font lacks is drawn as boxes; its table has it whole.
                warnings.filterwarnings("ignore", message="Glyph .* missing from")
                image = display.image(f".{kind}")
            yield f"{name}.{kind}", image
        # As in the tables of results: no cell is run as a formula by a spreadsheet.
        yield f"{name}.csv", escape_formulas(display.frame()).write_csv().encode()


# --------------------------------------------------------------------------------- the subjects
# Each is loaded when a result of its kind is said: nobody waits for the builders of the others.
_OF = "abstain.report.subjects"


def _with_pictures(name: str) -> Subject[Any]:
    own = f"{_OF}.{name}.document:{name}"
    return Subject(
        lazy_function(f"{own}_document"), lazy_function(f"{own}_figures"), ("svg", "png")
    )


EVALUATION: Subject["Evaluation"] = Subject(
    lazy_function(f"{_OF}.evaluation.document:evaluation_document"), options=frozenset({"pictures"})
)
COMPARISON: Subject["Comparison"] = Subject(
    lazy_function(f"{_OF}.comparison.document:comparison_document"),
    lazy_function(f"{_OF}.comparison.figures:comparison_figures"),
)
RULE: Subject["RuleChecks"] = _with_pictures("rule")
CASCADE: Subject["CascadeChecks"] = _with_pictures("cascade")
MONITOR: Subject["Monitor"] = _with_pictures("monitor")
#: By the name of what was found, which no other class of the package has.
_KINDS: Final[Mapping[str, Subject[Any]]] = {
    "CascadeChecks": CASCADE,
    "Comparison": COMPARISON,
    "Evaluation": EVALUATION,
    "Monitor": MONITOR,
    "RuleChecks": RULE,
}


def _find_subject(result: object) -> Subject[Any] | None:
    for kind in type(result).__mro__:
        package = kind.__module__.partition(".")[0]
        if package == "abstain" and kind.__name__ in _KINDS:
            return _KINDS[kind.__name__]
        for extension in plugins.extensions(plugins.SUBJECTS):
            if (extension.name, extension.module.partition(".")[0]) == (kind.__name__, package):
                return plugins.load_extension(extension, Subject)
    return None


def _subject_of(result: object) -> Subject[Any]:
    subject = _find_subject(result)
    if subject is None:
        extensions = plugins.extensions(plugins.SUBJECTS)
        names = ", ".join(sorted({*_KINDS, *(extension.name for extension in extensions)}))
        raise InputError(f"`result` must be one of {names}; got {type(result).__name__}")
    return subject


#: Any of them.
ANY: Final[Subject[Any]] = Subject(
    lambda result, origin: _subject_of(result).document(result, origin),
    lambda result: _subject_of(result).figures(result),
)


def document_of(
    result: object,
    *,
    title: str = "",
    source: str = "",
    notes: Sequence[str] = (),
    command: str = "",
    full: bool = False,
    pictures: "Pictures | None" = None,
    beside: Sequence[Any] = (),
) -> Document:
    """Say a result as a document, which `render` writes in any format.

    Parameters
    ----------
    result : Evaluation, Comparison, RuleChecks, CascadeChecks, Monitor, or of a study or benchmark
        What was found.
    title : str, optional
        The heading; by default that of the subject.
    source : str
        Where the data come from: a file name, a description.
    notes : sequence of str
        Sentences to show beside the warnings.
    command : str
        The command line or code that reproduces the document.
    full : bool, default=False
        Of an evaluation or a comparison, leave nothing out on a terminal.
    pictures : Pictures, optional
        Of an evaluation, what `sample_pictures` returned; of a benchmark, what
        `benchmark_pictures` did: without them its page says why there are none.
    beside : sequence of BenchmarkResults
        Of a benchmark, those of the same task with other models: they are compared with this one.

    Returns
    -------
    Document
        The blocks, before any format.

    Raises
    ------
    InputError
        If `result` is something else.

    Examples
    --------
    >>> import abstain as ab
    >>> from abstain.evaluation import check_rule
    >>> from abstain.report import document_of, render
    >>> rule = ab.thresholds.DecisionRule("risk", 0.5, target=0.1)
    >>> said = render(document_of(check_rule(rule, {}), title="A rule"), "markdown")
    >>> print(said.splitlines()[0])
    # A rule
    """
    return ANY.said(result, Origin(title, source, notes, command, full, pictures, beside))


def figure_files(result: object, formats: Sequence[str]) -> dict[str, bytes]:
    """Return the content of the files of `write_figures`, by their names in a folder."""
    return {f"figures/{name}": content for name, content in ANY.files(result, formats)}


# ------------------------------------------------------------- the same by the name of a subject
write, write_figures = ANY.write, ANY.write_figures
html_report, write_html, terminal_table = EVALUATION.html, EVALUATION.write, EVALUATION.terminal
comparison_html, write_comparison = COMPARISON.html, COMPARISON.write
comparison_terminal = COMPARISON.terminal
threshold_html, write_threshold, threshold_terminal = RULE.html, RULE.write, RULE.terminal
write_rule_figures = RULE.write_figures
