"""The report as one HTML file that needs nothing but a browser."""

import base64
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from abstain.plots.palette import DARK, LIGHT
from abstain.plots.visible import visible

if TYPE_CHECKING:
    from jinja2 import Environment

_PACKAGE = "abstain.report"


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
