"""Results as HTML pages, each in one piece that needs no other file."""

from collections.abc import Sequence

from abstain.benchmark.results import BenchmarkResults
from abstain.evaluation.comparison import Comparison
from abstain.evaluation.records import Evaluation
from abstain.evaluation.rules import RuleChecks
from abstain.report.document import Origin
from abstain.report.render.html import html
from abstain.report.subjects.benchmark.document import benchmark_document
from abstain.report.subjects.benchmark.pictures import Pictures
from abstain.report.subjects.comparison.document import comparison_document
from abstain.report.subjects.evaluation.document import evaluation_document
from abstain.report.subjects.rule.document import rule_document
from abstain.report.subjects.study.document import study_document
from abstain.studies import StudyResult


def html_report(
    evaluation: Evaluation,
    *,
    title: str = "",
    source: str = "",
    notes: Sequence[str] = (),
    command: str = "",
) -> str:
    """Write an evaluation as one self-contained HTML page.

    Parameters
    ----------
    evaluation : Evaluation
        What `evaluate` returned.
    title : str, optional
        The heading; by default that of the subject.
    source : str
        Where the data come from: a file name, a description.
    notes : sequence of str
        Sentences to show beside the warnings.
    command : str
        The command line or code that reproduces the page.

    Returns
    -------
    str
        HTML with style, script and data inside; it loads nothing from the network.
        Every string of the caller is escaped, also in the embedded JSON.

    Raises
    ------
    InputError
        If `evaluation` is something else.

    Examples
    --------
    >>> import abstain as ab
    >>> samples = ab.Predictions(confidence=[0.9, 0.8, 0.7, 0.6], loss=[0, 0, 1, 0])
    >>> page = html_report(ab.evaluate(samples), title="Four <samples>")
    >>> "<h1>Four &lt;samples&gt;</h1>" in page
    True
    """
    return html(evaluation_document(evaluation, Origin(title, source, notes, command)))


def comparison_html(
    comparison: Comparison,
    *,
    title: str = "",
    source: str = "",
    notes: Sequence[str] = (),
    command: str = "",
) -> str:
    """Write a comparison as one self-contained HTML page.

    Parameters
    ----------
    comparison : Comparison
        What `compare` returned.
    title, source, notes, command
        As for `html_report`.

    Returns
    -------
    str
        HTML with style, script and figures inside; it loads nothing from the network.
        Every string of the caller is escaped, also in the figures.

    Raises
    ------
    InputError
        If `comparison` is something else.

    Examples
    --------
    >>> import abstain as ab
    >>> from abstain.evaluation import compare
    >>> samples = ab.Predictions(
    ...     confidence={"msr": [4, 3, 2, 1], "mls": [3, 4, 1, 2]}, loss=[0, 0, 1, 0]
    ... )
    >>> page = comparison_html(compare(samples), title="Two <methods>")
    >>> "<h1>Two &lt;methods&gt;</h1>" in page
    True
    """
    return html(comparison_document(comparison, Origin(title, source, notes, command)))


def threshold_html(
    checks: RuleChecks,
    *,
    title: str = "",
    source: str = "",
    notes: Sequence[str] = (),
    command: str = "",
) -> str:
    """Write a decision rule and its checks as one self-contained HTML page.

    Parameters
    ----------
    checks : RuleChecks
        What `check_rule` returned.
    title, source, notes, command
        As for `html_report`.

    Returns
    -------
    str
        HTML with style and figures inside; it loads nothing from the network and runs no script.
        Every string of the caller is escaped, also in the figures.

    Raises
    ------
    InputError
        If `checks` is something else.

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> from abstain.evaluation import check_rule
    >>> rule = ab.thresholds.DecisionRule("risk", 0.5, target=0.1)
    >>> later = ab.Predictions(confidence=np.ones(100), loss=np.arange(100) < 30)
    >>> page = threshold_html(check_rule(rule, {"<later>": later}))
    >>> "broken on \u201c&lt;later&gt;\u201d" in page
    True
    """
    return html(rule_document(checks, Origin(title, source, notes, command)))


def study_html(
    result: StudyResult,
    *,
    title: str = "",
    notes: Sequence[str] = (),
    command: str = "",
) -> str:
    """Write what a study found as one self-contained HTML page.

    Parameters
    ----------
    result : StudyResult
        What a study returned.
    title, notes, command
        As for `html_report`.

    Returns
    -------
    str
        HTML with style and figures inside; it loads nothing from the network and runs no script.
        Every string of the caller is escaped, also in the figures.

    Raises
    ------
    InputError
        If `result` is something else.

    Examples
    --------
    >>> from abstain.studies import STUDIES
    >>> found = STUDIES["weights"].run(sizes=[8], points=5)
    >>> page = study_html(found, title="The <weights>")
    >>> "<h1>The &lt;weights&gt;</h1>" in page
    True
    """
    return html(study_document(result, Origin(title, "", notes, command)))


def benchmark_html(
    results: BenchmarkResults,
    *,
    pictures: Pictures | None = None,
    beside: Sequence[BenchmarkResults] = (),
    title: str = "",
    notes: Sequence[str] = (),
    command: str = "",
) -> str:
    """Write the results of a benchmark as one self-contained HTML page.

    Parameters
    ----------
    results : BenchmarkResults
        What `results_of` returned.
    pictures : Pictures, optional
        What `benchmark_pictures` returned; without them the page says why there are none.
    beside : sequence of BenchmarkResults
        Of the same task with other models: they are compared with this one.
    title, notes, command
        As for `html_report`.

    Returns
    -------
    str
        HTML with style, script, figures and pictures inside; it loads nothing from the network.
        Every string of the caller is escaped, also in the figures.

    Raises
    ------
    InputError
        If `results` is something else.

    Notes
    -----
    With 31 methods and 12 studies the page has some 5 MB and takes about 20 seconds.

    Examples
    --------
    >>> from abstain.report import benchmark_html
    >>> benchmark_html({})
    Traceback (most recent call last):
    abstain.errors.InputError: `results` must be what `results_of` returned; got dict
    """
    return html(benchmark_document(results, Origin(title, "", notes, command), pictures, beside))
