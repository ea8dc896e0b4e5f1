"""Functions that write any result in any output format.

A `Subject` builds the documents for one type of result, such as `Evaluation`. A renderer writes the
document.
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
from abstain.report.document import Document, Format, ReportOptions, Section
from abstain.report.render import render
from abstain.tables.results import escape_formulas

if TYPE_CHECKING:
    from rich.console import RenderableType

    from abstain.evaluation.cascade import CascadeChecks
    from abstain.evaluation.comparison import Comparison
    from abstain.evaluation.records import Evaluation
    from abstain.evaluation.rules import RuleChecks
    from abstain.monitoring import Monitor
    from abstain.report.images import SampleImages

ResultT = TypeVar("ResultT")
NamedFigures = Iterable[tuple[str, Drawable]]

#: File formats of figures.
FIGURE_FORMATS: Final = ("svg", "pdf", "png")

#: Document formats by file suffix. Files with other suffixes are HTML.
_FORMAT_BY_SUFFIX: Final[dict[str, Format]] = {".md": "markdown", ".tex": "latex"}


def _raise_no_figures(result: object) -> NamedFigures:
    raise InputError(f"reports of {type(result).__name__} have no separate figures")


@dataclass(frozen=True)
class PageSection:
    """A section that a plugin adds to reports of one type of result.

    A plugin declares an entry point of the group ``abstain.sections``. The name of the entry point
    is the class name of the result, and its value is the location of a `PageSection`.

    The function `build` takes the result and returns the section, or None to omit the section.
    """

    build: Callable[[Any], Section | None]


@dataclass(frozen=True)
class Subject(Generic[ResultT]):
    """A type of result, with functions that build its document and its figures.

    Both functions raise an error for results of other types. The `figure_formats` are the default
    formats of the figures. The `supported_options` are the names of fields of `ReportOptions` that
    apply to this type of result.

    A plugin adds a type with an entry point of the group ``abstain.subjects``. The name of the
    entry point is the class name of the result, and its value is the location of a `Subject`. The
    class of the result must be part of the plugin.
    """

    document: Callable[[ResultT, ReportOptions], Document]
    figures: Callable[[ResultT], NamedFigures] = _raise_no_figures
    figure_formats: tuple[str, ...] = FIGURE_FORMATS
    supported_options: frozenset[str] = frozenset()

    def to_document(self, result: ResultT, options: ReportOptions) -> Document:
        """Build the document of a result, or raise an error for unsupported options."""
        supported = (_find_subject(result) or self).supported_options
        for name in ("images", "other_models"):
            if getattr(options, name) and name not in supported:
                raise InputError(f"`{name}` cannot be used with {type(result).__name__}")
        document = self.document(result, options)
        sections = []
        for extension in plugins.extensions(plugins.SECTIONS):
            if extension.name == type(result).__name__:
                section = plugins.load_extension(extension, PageSection).build(result)
                if section:
                    sections.append(section)
        if not sections:
            return document
        return replace(document, blocks=lambda: (*document.blocks(), *sections))

    def html(
        self,
        result: ResultT,
        *,
        title: str = "",
        source: str = "",
        notes: Sequence[str] = (),
        command: str = "",
        images: "SampleImages | None" = None,
        other_models: Sequence[Any] = (),
    ) -> str:
        """Write a result as one self-contained HTML page.

        Parameters
        ----------
        result : a result of one of the types of `build_document`
            Result to report. Functions that are named after a type of result accept only this type.
        title, source, notes, command, images, other_models
            As for `build_document`.

        Returns
        -------
        str
            HTML with all styles, scripts, figures and data. The page loads nothing from the
            network. All names and texts of the caller are escaped, including those in figures and
            JSON. For a benchmark with 31 methods and 12 studies, the page has about 5 MB and takes
            about 20 s.

        Raises
        ------
        InputError
            If `result` has another type.

        Examples
        --------
        >>> import abstain as ab
        >>> from abstain.report import html_report
        >>> samples = ab.Predictions(confidence=[0.9, 0.8, 0.7, 0.6], loss=[0, 0, 1, 0])
        >>> page = html_report(ab.evaluate(samples), title="Four <samples>")
        >>> "<h1>Four &lt;samples&gt;</h1>" in page
        True
        """
        options = ReportOptions(
            title, source, notes, command, images=images, other_models=other_models
        )
        return str(render(self.to_document(result, options), "html"))

    def write(
        self,
        result: ResultT,
        path: str | os.PathLike[str],
        *,
        title: str = "",
        source: str = "",
        notes: Sequence[str] = (),
        command: str = "",
        images: "SampleImages | None" = None,
        other_models: Sequence[Any] = (),
    ) -> Path:
        """Write the report of a result to a file, atomically.

        Parameters
        ----------
        result : a result of one of the types of `build_document`
            Result to report. Functions that are named after a type of result accept only this type.
        path : path-like
            Path of the file in an existing folder. The format is Markdown for the suffix ``.md``,
            LaTeX for ``.tex``, and HTML otherwise.
        title, source, notes, command, images, other_models
            As for `build_document`.

        Returns
        -------
        pathlib.Path
            Path of the file.

        Raises
        ------
        InputError
            If `result` has another type, or the file cannot be written.

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
        options = ReportOptions(
            title, source, notes, command, images=images, other_models=other_models
        )
        file_path = Path(path)
        text = render(
            self.to_document(result, options), _FORMAT_BY_SUFFIX.get(file_path.suffix, "html")
        )
        write_atomically(file_path, text.encode())
        return file_path

    def terminal(self, result: ResultT, *, full: bool = False) -> "RenderableType":
        r"""Return the summary of a result for a terminal.

        Parameters
        ----------
        result : a result of one of the types of `build_document`
            Result to report. Functions that are named after a type of result accept only this type.
        full : bool, default=False
            Whether to print all tables, warnings and notes. For an evaluation, the tables contain
            all metrics with explanations. For a comparison, there is a table for each metric and
            data set.

        Returns
        -------
        rich renderable
            Renderable that a `rich.console.Console` prints. The layout needs 100 columns, or 60
            columns for comparisons and benchmarks. A narrower terminal omits columns of tables and
            lists the names of the omitted columns.

        Raises
        ------
        InputError
            If `result` has another type.

        Examples
        --------
        >>> import abstain as ab
        >>> from abstain.report import terminal_table
        >>> samples = ab.Predictions(confidence=[0.9, 0.8, 0.7, 0.6], loss=[0, 0, 1, 0])
        >>> from rich.console import Console
        >>> with (console := Console(width=60)).capture() as printed:
        ...     console.print(terminal_table(ab.evaluate(samples, metrics=["augrc"])))
        >>> print("\n".join(line.rstrip() for line in printed.get().splitlines()[3:6]))
        Score              AUGRC ↓
        ──────────────────────────
        confidence  0.09 0.00–0.49
        """
        renderable: RenderableType = render(
            self.to_document(result, ReportOptions(full=full)), "terminal"
        )
        return renderable

    def write_figures(
        self,
        result: ResultT,
        folder: str | os.PathLike[str],
        *,
        formats: Sequence[str] | None = None,
    ) -> list[Path]:
        """Write all figures of a result, and a CSV file with the data of each figure.

        Parameters
        ----------
        result : Comparison, RuleChecks, CascadeChecks or Monitor
            Result to plot. Functions that are named after a type of result accept only this type.
        folder : path-like
            Folder for the files, which the function creates if necessary.
        formats : sequence of str, optional
            Some of "svg", "pdf" and "png". For a comparison, the default is all formats. The
            default for other results is "svg" and "png".

        Returns
        -------
        list of pathlib.Path
            Paths of the files. Each figure has one file per format and a CSV file with the plotted
            data.

        Raises
        ------
        InputError
            If `result` has another type, a format is unknown, or a file cannot be written.

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
        files = self.figure_files(result, self.figure_formats if formats is None else formats)
        folder_path = Path(folder)
        make_folder(folder_path)
        written = []
        for name, content in files:
            write_atomically(folder_path / name, content)
            written.append(folder_path / name)
        return written

    def figure_files(self, result: ResultT, formats: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """Return an iterator over pairs of the name and the content of each figure file."""
        unknown = [kind for kind in formats if kind not in FIGURE_FORMATS]
        if unknown:
            raise InputError(
                f"`formats` must be some of {', '.join(map(repr, FIGURE_FORMATS))}; got "
                f"{unknown[0]!r}"
            )
        return _figure_file_contents(self.figures(result), formats)


def _figure_file_contents(
    figures: NamedFigures, formats: Sequence[str]
) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the content of each figure file and of each CSV file."""
    for name, display in figures:
        for suffix in formats:
            with warnings.catch_warnings():
                # The figure shows boxes for characters that the font lacks. The CSV file contains
                # the characters.
                warnings.filterwarnings("ignore", message="Glyph .* missing from")
                image = display.image(f".{suffix}")
            yield f"{name}.{suffix}", image
        # Formulas are escaped, so that a spreadsheet program does not run a cell as a formula.
        yield f"{name}.csv", escape_formulas(display.frame()).write_csv().encode()


# --------------------------------------------------------------------------------- the subjects
# The builders of a subject are imported when a result of its type is reported.
def _lazy_builder(location: str) -> Callable[..., Any]:
    return lazy_function(f"abstain.report.subjects.{location}")


EVALUATION: Subject["Evaluation"] = Subject(
    _lazy_builder("evaluation.document:evaluation_document"),
    supported_options=frozenset({"images"}),
)
COMPARISON: Subject["Comparison"] = Subject(
    _lazy_builder("comparison.document:comparison_document"),
    _lazy_builder("comparison.figures:comparison_figures"),
)
RULE: Subject["RuleChecks"] = Subject(
    _lazy_builder("rule.document:rule_document"),
    _lazy_builder("rule.document:rule_figures"),
    ("svg", "png"),
)
CASCADE: Subject["CascadeChecks"] = Subject(
    _lazy_builder("cascade:cascade_document"),
    _lazy_builder("cascade:cascade_figures"),
    ("svg", "png"),
)
MONITOR: Subject["Monitor"] = Subject(
    _lazy_builder("monitor:monitor_document"),
    _lazy_builder("monitor:monitor_figures"),
    ("svg", "png"),
)
#: Subjects by the class name of the result, which is unique in the package.
_SUBJECT_BY_CLASS_NAME: Final[Mapping[str, Subject[Any]]] = {
    "CascadeChecks": CASCADE,
    "Comparison": COMPARISON,
    "Evaluation": EVALUATION,
    "Monitor": MONITOR,
    "RuleChecks": RULE,
}


def _find_subject(result: object) -> Subject[Any] | None:
    """Return the `Subject` for the type of a result, or None if there is none."""
    for class_ in type(result).__mro__:
        package = class_.__module__.partition(".")[0]
        if package == "abstain" and class_.__name__ in _SUBJECT_BY_CLASS_NAME:
            return _SUBJECT_BY_CLASS_NAME[class_.__name__]
        for extension in plugins.extensions(plugins.SUBJECTS):
            if (extension.name, extension.module.partition(".")[0]) == (class_.__name__, package):
                return plugins.load_extension(extension, Subject)
    return None


def _get_subject(result: object) -> Subject[Any]:
    subject = _find_subject(result)
    if subject is None:
        extensions = plugins.extensions(plugins.SUBJECTS)
        names = sorted({*_SUBJECT_BY_CLASS_NAME, *(extension.name for extension in extensions)})
        raise InputError(f"`result` must be one of {', '.join(names)}; got {type(result).__name__}")
    return subject


#: Subject that accepts results of all types.
ANY: Final[Subject[Any]] = Subject(
    lambda result, origin: _get_subject(result).document(result, origin),
    lambda result: _get_subject(result).figures(result),
)


def build_document(
    result: object,
    *,
    title: str = "",
    source: str = "",
    notes: Sequence[str] = (),
    command: str = "",
    full: bool = False,
    images: "SampleImages | None" = None,
    other_models: Sequence[Any] = (),
) -> Document:
    """Build the document of a result, which `render` converts to any output format.

    Parameters
    ----------
    result : Evaluation, Comparison, RuleChecks, CascadeChecks, Monitor, or a study or benchmark
        Result to report.
    title : str, optional
        Title of the report. The default depends on the type of the result.
    source : str
        Source of the data, such as a file name or a description.
    notes : sequence of str
        Additional notes, listed after the warnings.
    command : str
        Command line or code that reproduces the report.
    full : bool, default=False
        Whether a terminal prints everything, for an evaluation or a comparison.
    images : SampleImages, optional
        Images of samples. The function `sample_images` loads images for an evaluation, and
        `benchmark_pictures` loads images for a benchmark.
    other_models : sequence of BenchmarkResults
        For a benchmark, results of other models on the same task, to compare with `result`.

    Returns
    -------
    Document
        Blocks of the report, independent of the format.

    Raises
    ------
    InputError
        If `result` has another type.

    Examples
    --------
    >>> import abstain as ab
    >>> from abstain.evaluation import check_rule
    >>> from abstain.report import build_document, render
    >>> rule = ab.thresholds.DecisionRule("risk", 0.5, target=0.1)
    >>> text = render(build_document(check_rule(rule, {}), title="A rule"), "markdown")
    >>> print(text.splitlines()[0])
    # A rule
    """
    options = ReportOptions(title, source, notes, command, full, images, other_models)
    return ANY.to_document(result, options)


def notebook_html(result: object) -> str:
    """Return the HTML representation of a result for notebooks, with a table and a curve."""
    return str(render(build_document(with_empty_checks(result)), "notebook"))


def with_empty_checks(result: object) -> Any:
    """Return check results without data sets for a decision rule or a cascade.

    Other results are returned unchanged.
    """
    from abstain.thresholds import Cascade, DecisionRule

    if isinstance(result, DecisionRule):
        from abstain.evaluation import check_rule

        return check_rule(result, {})
    if isinstance(result, Cascade):
        from abstain.evaluation import check_cascade

        return check_cascade(result, {})
    return result


def figure_files(result: object, formats: Sequence[str]) -> dict[str, bytes]:
    """Return the contents of the figure files, by file name."""
    return {f"figures/{name}": content for name, content in ANY.figure_files(result, formats)}


# ------------------------------------------------------------------ functions of each subject
write, write_figures = ANY.write, ANY.write_figures
html_report, write_html, terminal_table = EVALUATION.html, EVALUATION.write, EVALUATION.terminal
comparison_html, write_comparison = COMPARISON.html, COMPARISON.write
comparison_terminal = COMPARISON.terminal
threshold_html, write_threshold, threshold_terminal = RULE.html, RULE.write, RULE.terminal
write_rule_figures = RULE.write_figures
