"""A comparison as one HTML file that needs nothing but a browser."""

import os
from collections.abc import Sequence
from pathlib import Path

import abstain as ab
from abstain._foundation.files import write_atomically
from abstain.evaluation.comparison import Comparison
from abstain.plots import chosen
from abstain.report.comparison_summary import summarize_comparison
from abstain.report.html import environment, policy, resource, style, trusted
from abstain.report.summary import Origin


def comparison_html(
    comparison: Comparison,
    *,
    title: str = "Comparison of confidence scores",
    source: str = "",
    notes: Sequence[str] = (),
    command: str = "",
) -> str:
    """Write a comparison as one self-contained HTML page.

    Parameters
    ----------
    comparison : Comparison
        What `compare` returned.
    title : str
        The heading.
    source : str
        Where the predictions come from: a file name, a description.
    notes : sequence of str
        Sentences to show beside the warnings.
    command : str
        The command line or code that reproduces the page.

    Returns
    -------
    str
        HTML with style, script and figures inside; it loads nothing from the network.

    Raises
    ------
    InputError
        If `comparison` is something else.

    Notes
    -----
    Every string of the caller is escaped, also in the figures.

    Examples
    --------
    >>> from abstain.evaluation.comparison import Comparison, Estimate
    >>> estimate = Estimate(
    ...     "augrc", (), "", "msr", 0.04, 0.03, 0.05, 0.005, 0.95, "log scale", 900, 80, True
    ... )
    >>> one = Comparison(
    ...     ("augrc",), ("msr",), ((),), ("",), 0.95, (estimate,), (), (), (), (), (), (), (), ""
    ... )
    >>> "<h1>One &lt;method&gt;</h1>" in comparison_html(one, title="One <method>")
    True
    """
    summary = summarize_comparison(
        chosen.checked(comparison), Origin(title, source, notes, command)
    )
    template = environment().get_template("comparison.html")
    javascript = resource("sorting.js") + resource("comparison.js")
    return template.render(
        **summary,
        version=ab.__version__,
        trusted=trusted,
        css=trusted(style() + resource("comparison.css")),
        policy=policy(javascript),
        javascript=trusted(javascript),
    )


def write_comparison(
    comparison: Comparison,
    path: str | os.PathLike[str],
    *,
    title: str = "Comparison of confidence scores",
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
    >>> from abstain.evaluation.comparison import Comparison, Estimate
    >>> estimate = Estimate(
    ...     "augrc", (), "", "msr", 0.04, 0.03, 0.05, 0.005, 0.95, "log scale", 900, 80, True
    ... )
    >>> one = Comparison(
    ...     ("augrc",), ("msr",), ((),), ("",), 0.95, (estimate,), (), (), (), (), (), (), (), ""
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = write_comparison(one, f"{folder}/comparison.html")
    >>> written.name
    'comparison.html'
    """
    page = comparison_html(comparison, title=title, source=source, notes=notes, command=command)
    write_atomically(Path(path), page.encode())
    return Path(path)
