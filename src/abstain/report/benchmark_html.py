"""A benchmark as one HTML file that needs nothing but a browser."""

import os
from collections.abc import Sequence
from pathlib import Path

import abstain as ab
from abstain._foundation.files import write_atomically
from abstain.benchmark.results import BenchmarkResults
from abstain.report.benchmark_grid import checked_results
from abstain.report.benchmark_pictures import Pictures
from abstain.report.benchmark_summary import summarize_benchmark
from abstain.report.html import environment, policy, resource, style, trusted

_STYLES = ("comparison.css", "study.css", "benchmark.css")


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
    title : str, optional
        The heading; by default it names the task.
    notes : sequence of str
        Sentences to show beside the warnings.
    command : str
        The command line or code that reproduces the page.

    Returns
    -------
    str
        HTML with style, script, figures and pictures inside; it loads nothing from the network.

    Raises
    ------
    InputError
        If `results` is something else.

    Notes
    -----
    Every string of the caller is escaped, also in the figures. With 31 methods and 12 studies
    the page has some 5 MB and takes about 20 seconds.

    Examples
    --------
    >>> from abstain.report.benchmark_html import benchmark_html
    >>> benchmark_html({})
    Traceback (most recent call last):
    abstain.errors.InputError: `results` must be what `results_of` returned; got dict
    """
    known = checked_results(results)
    others = [checked_results(one) for one in beside]
    summary = summarize_benchmark(known, pictures, others)
    template = environment().get_template("benchmark.html")
    javascript = resource("sorting.js") + resource("benchmark.js")
    return template.render(
        **{**summary, "title": title or summary["title"]},
        notes=list(notes),
        command=command,
        version=ab.__version__,
        trusted=trusted,
        css=trusted(style() + "".join(map(resource, _STYLES))),
        policy=policy(javascript),
        javascript=trusted(javascript),
    )


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
    >>> from abstain.report.benchmark_html import write_benchmark
    >>> write_benchmark({}, "report.html")
    Traceback (most recent call last):
    abstain.errors.InputError: `results` must be what `results_of` returned; got dict
    """
    page = benchmark_html(
        results, pictures=pictures, beside=beside, title=title, notes=notes, command=command
    )
    write_atomically(Path(path), page.encode())
    return Path(path)
