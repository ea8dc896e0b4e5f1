"""Pages as files."""

import os
from collections.abc import Sequence
from pathlib import Path

from abstain._foundation.files import write_atomically
from abstain.benchmark.results import BenchmarkResults
from abstain.evaluation.comparison import Comparison
from abstain.evaluation.records import Evaluation
from abstain.evaluation.rules import RuleChecks
from abstain.report.pages import (
    benchmark_html,
    comparison_html,
    html_report,
    study_html,
    threshold_html,
)
from abstain.report.subjects.benchmark.pictures import Pictures
from abstain.studies import StudyResult


def write_html(
    evaluation: Evaluation,
    path: str | os.PathLike[str],
    *,
    title: str = "",
    source: str = "",
    notes: Sequence[str] = (),
    command: str = "",
) -> Path:
    """Write the page to a file: all of it or, when something fails, nothing.

    Parameters
    ----------
    evaluation : Evaluation
        What `evaluate` returned.
    path : path-like
        The file; its folder must exist.
    title, source, notes, command
        As for `html_report`.

    Returns
    -------
    pathlib.Path
        The file written.

    Raises
    ------
    InputError
        If `evaluation` is something else, or the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> import abstain as ab
    >>> samples = ab.Predictions(confidence=[0.9, 0.8, 0.7, 0.6], loss=[0, 0, 1, 0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = write_html(ab.evaluate(samples), f"{folder}/report.html")
    >>> written.name
    'report.html'
    """
    page = html_report(evaluation, title=title, source=source, notes=notes, command=command)
    return _written(path, page)


def write_comparison(
    comparison: Comparison,
    path: str | os.PathLike[str],
    *,
    title: str = "",
    source: str = "",
    notes: Sequence[str] = (),
    command: str = "",
) -> Path:
    """Write the page to a file: all of it or, when something fails, nothing.

    Parameters
    ----------
    comparison : Comparison
        What `compare` returned.
    path : path-like
        The file; its folder must exist.
    title, source, notes, command
        As for `comparison_html`.

    Returns
    -------
    pathlib.Path
        The file written.

    Raises
    ------
    InputError
        If `comparison` is something else, or the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> import abstain as ab
    >>> from abstain.evaluation import compare
    >>> samples = ab.Predictions(
    ...     confidence={"msr": [4, 3, 2, 1], "mls": [3, 4, 1, 2]}, loss=[0, 0, 1, 0]
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = write_comparison(compare(samples), f"{folder}/report.html")
    >>> written.name
    'report.html'
    """
    page = comparison_html(comparison, title=title, source=source, notes=notes, command=command)
    return _written(path, page)


def write_threshold(
    checks: RuleChecks,
    path: str | os.PathLike[str],
    *,
    title: str = "",
    source: str = "",
    notes: Sequence[str] = (),
    command: str = "",
) -> Path:
    """Write the page to a file: all of it or, when something fails, nothing.

    Parameters
    ----------
    checks : RuleChecks
        What `check_rule` returned.
    path : path-like
        The file; its folder must exist.
    title, source, notes, command
        As for `threshold_html`.

    Returns
    -------
    pathlib.Path
        The file written.

    Raises
    ------
    InputError
        If `checks` is something else, or the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import abstain as ab
    >>> from abstain.evaluation import check_rule
    >>> rule = ab.thresholds.DecisionRule("risk", 0.5, target=0.1)
    >>> later = ab.Predictions(confidence=np.ones(100), loss=np.arange(100) < 30)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = write_threshold(check_rule(rule, later), f"{folder}/report.html")
    >>> written.name
    'report.html'
    """
    page = threshold_html(checks, title=title, source=source, notes=notes, command=command)
    return _written(path, page)


def write_study(
    result: StudyResult,
    path: str | os.PathLike[str],
    *,
    title: str = "",
    notes: Sequence[str] = (),
    command: str = "",
) -> Path:
    """Write the page to a file: all of it or, when something fails, nothing.

    Parameters
    ----------
    result : StudyResult
        What a study returned.
    path : path-like
        The file; its folder must exist.
    title, notes, command
        As for `study_html`.

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
    >>> from abstain.studies import STUDIES
    >>> found = STUDIES["weights"].run(sizes=[8], points=5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = write_study(found, f"{folder}/report.html")
    >>> written.name
    'report.html'
    """
    page = study_html(result, title=title, notes=notes, command=command)
    return _written(path, page)


def write_benchmark(
    results: BenchmarkResults,
    path: str | os.PathLike[str],
    *,
    pictures: Pictures | None = None,
    beside: Sequence[BenchmarkResults] = (),
    title: str = "",
    notes: Sequence[str] = (),
    command: str = "",
) -> Path:
    """Write the page to a file: all of it or, when something fails, nothing.

    Parameters
    ----------
    results : BenchmarkResults
        What `results_of` returned.
    path : path-like
        The file; its folder must exist.
    pictures, beside, title, notes, command
        As for `benchmark_html`.

    Returns
    -------
    pathlib.Path
        The file written.

    Raises
    ------
    InputError
        If `results` is something else, or the file cannot be written.

    Examples
    --------
    >>> from abstain.report import write_benchmark
    >>> write_benchmark({}, "report.html")
    Traceback (most recent call last):
    abstain.errors.InputError: `results` must be what `results_of` returned; got dict
    """
    page = benchmark_html(
        results, pictures=pictures, beside=beside, title=title, notes=notes, command=command
    )
    return _written(path, page)


def _written(path: str | os.PathLike[str], page: str) -> Path:
    write_atomically(Path(path), page.encode())
    return Path(path)
