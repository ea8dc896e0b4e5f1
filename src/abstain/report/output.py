"""Any result in any format: one entry for each kind of result, and what writes them all.

A builder says a result as a document, a renderer writes the document, and here the two are joined.
"""

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from abstain._foundation.files import make_folder, write_atomically
from abstain._foundation.imports import later
from abstain.errors import InputError
from abstain.plots.drawable import Drawable
from abstain.report.document import Document, Format, Origin
from abstain.report.render import render
from abstain.tables.results import escaped

if TYPE_CHECKING:
    from rich.console import RenderableType

    from abstain.benchmark.results import BenchmarkResults
    from abstain.evaluation.cascade import CascadeChecks
    from abstain.evaluation.comparison import Comparison
    from abstain.evaluation.records import Evaluation
    from abstain.evaluation.rules import RuleChecks
    from abstain.monitoring import Monitor
    from abstain.report.pictures import Pictures
    from abstain.studies import StudyResult

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
class Subject(Generic[ResultT]):
    """A kind of result: what is said of it and what is drawn, both refusing any other kind.

    `formats` are those of its figures unless others are asked for.
    """

    document: Callable[[ResultT, Origin], Document]
    figures: Callable[[ResultT], Named] = _undrawn
    formats: tuple[str, ...] = FORMATS

    def said(self, result: ResultT, origin: Origin) -> Document:
        """Say a result; refuse what only others have a use for."""
        for name, kinds in {"pictures": (BENCHMARK, EVALUATION), "beside": (BENCHMARK,)}.items():
            if getattr(origin, name) and _known_of(result) not in kinds:
                also = "an evaluation or " * (EVALUATION in kinds)
                msg = f"`{name}` are for {also}the results of a benchmark"
                raise InputError(f"{msg}; got {type(result).__name__}")
        return self.document(result, origin)

    def html(
        self,
        result: ResultT,
        *,
        title: str = "",
        source: str = "",
        notes: Sequence[str] = (),
        command: str = "",
        pictures: "Pictures | None" = None,
        beside: "Sequence[BenchmarkResults]" = (),
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
        beside: "Sequence[BenchmarkResults]" = (),
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
        result : Comparison, RuleChecks, CascadeChecks, Monitor or StudyResult
            What is drawn; of a name with a subject, that subject.
        folder : path-like
            Made when it does not exist.
        formats : sequence of str, optional
            Some of "svg", "pdf" and "png"; by default all, but no "pdf" by `write_rule_figures`
            and "svg" alone by `write_study_figures`.

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
        >>> from abstain.report import write_figures
        >>> from abstain.studies import STUDIES
        >>> found = STUDIES["precision"].run()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     files = write_figures(found, folder, formats=["svg"])
        >>> [path.name for path in files]
        ['loss.svg', 'loss.csv']
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
            msg = f"`formats` must be some of {', '.join(map(repr, FORMATS))}; got {unknown[0]!r}"
            raise InputError(msg)
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
        yield f"{name}.csv", escaped(display.frame()).write_csv().encode()


# --------------------------------------------------------------------------------- the subjects
# Each is loaded when a result of its kind is said: nobody waits for the builders of the others.
_OF = "abstain.report.subjects"


def _with_pictures(name: str) -> Subject[Any]:
    own = f"{_OF}.{name}.document:{name}"
    return Subject(later(f"{own}_document"), later(f"{own}_figures"), ("svg", "png"))


EVALUATION: Subject["Evaluation"] = Subject(later(f"{_OF}.evaluation.document:evaluation_document"))
COMPARISON: Subject["Comparison"] = Subject(
    later(f"{_OF}.comparison.document:comparison_document"),
    later(f"{_OF}.comparison.figures:comparison_figures"),
)
RULE: Subject["RuleChecks"] = _with_pictures("rule")
CASCADE: Subject["CascadeChecks"] = _with_pictures("cascade")
MONITOR: Subject["Monitor"] = _with_pictures("monitor")
STUDY: Subject["StudyResult"] = Subject(
    later(f"{_OF}.study:study_document"), later(f"{_OF}.study:study_figures"), ("svg",)
)
BENCHMARK: Subject["BenchmarkResults"] = Subject(
    later(f"{_OF}.benchmark.document:benchmark_document")
)

#: By the name of what was found, which no other class of the package has.
_KINDS: Final[Mapping[str, Subject[Any]]] = {
    "BenchmarkResults": BENCHMARK,
    "CascadeChecks": CASCADE,
    "Comparison": COMPARISON,
    "Evaluation": EVALUATION,
    "Monitor": MONITOR,
    "RuleChecks": RULE,
    "StudyResult": STUDY,
}


def _known_of(result: object) -> Subject[Any] | None:
    own = (kind.__name__ for kind in type(result).__mro__ if kind.__module__.startswith("abstain."))
    return next((_KINDS[name] for name in own if name in _KINDS), None)


def _subject_of(result: object) -> Subject[Any]:
    found = _known_of(result)
    if found is None:
        known = ", ".join(sorted(_KINDS))
        msg = f"`result` must be one of {known}; got {type(result).__name__}"
        raise InputError(msg)
    return found


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
    beside: "Sequence[BenchmarkResults]" = (),
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
study_html, write_study, study_terminal = STUDY.html, STUDY.write, STUDY.terminal
write_study_figures = STUDY.write_figures
benchmark_html, write_benchmark = BENCHMARK.html, BENCHMARK.write
benchmark_terminal = BENCHMARK.terminal
