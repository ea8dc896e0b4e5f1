"""The report as one HTML file that needs nothing but a browser."""

import base64
import os
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import abstain as ab
from abstain._foundation.files import write_atomically
from abstain.evaluation.records import Evaluation
from abstain.plots.palette import DARK, LIGHT
from abstain.plots.visible import visible
from abstain.report import charts
from abstain.report.chart_data import chart_data, script_json
from abstain.report.pivot import pivot
from abstain.report.summary import Origin, summarize

if TYPE_CHECKING:
    from jinja2 import Environment

_PACKAGE = "abstain.report"


def html_report(
    evaluation: Evaluation,
    *,
    title: str = "Selective classification report",
    source: str = "",
    notes: Sequence[str] = (),
    command: str = "",
) -> str:
    """Write an evaluation as one self-contained HTML page.

    Parameters
    ----------
    evaluation : Evaluation
        What `evaluate` returned.
    title : str
        The heading.
    source : str
        Where the predictions come from: a file name, a description.
    notes : sequence of str
        Sentences to show beside the warnings.
    command : str
        The command line or code that reproduces the report.

    Returns
    -------
    str
        HTML with style, script and data inside; it loads nothing from the network.

    Raises
    ------
    InputError
        If `evaluation` is something else.

    Notes
    -----
    Every string of the caller is escaped, also inside the embedded JSON.

    Examples
    --------
    >>> import abstain as ab
    >>> predictions = ab.Predictions(
    ...     prediction=[1, 0, 1, 1], labels=[1, 0, 0, 1], confidence=[0.9, 0.8, 0.7, 0.6]
    ... )
    >>> page = html_report(ab.evaluate(predictions), title="Four <samples>")
    >>> "<h1>Four &lt;samples&gt;</h1>" in page
    True
    """
    summary = summarize(evaluation, Origin(title, source, notes, command))
    template = environment().get_template("report.html")
    javascript = resource("sorting.js") + resource("report.js")
    return template.render(
        **summary,
        version=ab.__version__,
        policy=policy(_library(), javascript),
        css=trusted(style()),
        javascript=trusted(javascript),
        library=trusted(_library()),
        data=trusted(script_json(chart_data(pivot(evaluation)))),
        specs=trusted(script_json(_specs(summary))),
    )


def write_html(
    evaluation: Evaluation,
    path: str | os.PathLike[str],
    *,
    title: str = "Selective classification report",
    source: str = "",
    notes: Sequence[str] = (),
    command: str = "",
) -> Path:
    """Write the report to a file: all of it or, when something fails, nothing.

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
    >>> predictions = ab.Predictions(
    ...     prediction=[1, 0, 1, 1], labels=[1, 0, 0, 1], confidence=[0.9, 0.8, 0.7, 0.6]
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = write_html(ab.evaluate(predictions), f"{folder}/report.html")
    >>> written.name
    'report.html'
    """
    page = html_report(evaluation, title=title, source=source, notes=notes, command=command)
    write_atomically(Path(path), page.encode())
    return Path(path)


def _specs(summary: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the charts of the page with the fields of their axes."""
    names = [score["name"] for score in summary["scores"]]
    about = {"zero_one": summary["zero_one"], "level": summary["bands"]}
    specs = {
        kind: _spec(charts.risk_coverage(names, kind=kind, **about), "risk")
        for kind in ("selective", "generalized")
    }
    if summary["has_reliability"]:
        specs["reliability"] = _spec(charts.reliability(names), "accuracy", x="confidence")
    if summary["has_cwsa"]:
        specs["cwsa"] = _spec(charts.metric_coverage(names, title="CWSA"), "value")
        specs["cwsa_plus"] = _spec(charts.metric_coverage(names, title="CWSA+"), "value")
    return specs


def _spec(spec: dict[str, Any], y: str, *, x: str = "coverage") -> dict[str, Any]:
    return {"spec": spec, "x": x, "y": y}


@cache
def environment() -> "Environment":
    """Return what renders the templates: everything escaped unless it is marked as ours."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader(_PACKAGE, "templates"),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _shown(value: Any) -> Any:
    """Write control characters of the caller's text out; what is marked as HTML is ours."""
    from markupsafe import Markup

    ours = not isinstance(value, str) or isinstance(value, Markup)
    return value if ours else visible(value, keep="\n\t")


def trusted(text: str) -> Any:
    """Mark text that is ours, or JSON already escaped, as not to be escaped again."""
    from markupsafe import Markup

    return Markup(text)  # noqa: S704  never called on a string of the caller


def policy(*scripts: str) -> str:
    """Return what the browser is to allow a page: these scripts of ours, and to load nothing.

    Styles may stand in the page, as figures have them at their elements; pictures are data.
    """
    keys = (base64.b64encode(sha256(text.encode()).digest()).decode() for text in scripts)
    allowed = " ".join(f"'sha256-{key}'" for key in keys) or "'none'"
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def resource(name: str) -> str:
    """Return a file that lies beside the templates."""
    return files(_PACKAGE).joinpath("templates", name).read_text(encoding="utf-8")


def style() -> str:
    """Return the style sheet with the colors of the scores filled in."""
    css = resource("report.css")
    for mark, colors in (("@@LIGHT@@", LIGHT), ("@@DARK@@", DARK)):
        lines = (f"--score-{i}: {color};" for i, color in enumerate(colors))
        css = css.replace(mark, " ".join(lines))
    return css


@cache
def _library() -> str:
    """Return the JavaScript that draws the charts, kept out of the global scope."""
    import altair as alt
    import vl_convert

    language = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=language)
    return f"(() => {{{bundle}\n}})();"
