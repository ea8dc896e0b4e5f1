"""A document as one HTML file that needs nothing but a browser."""

import base64
import json
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

import abstain as ab
from abstain.plots.bands import METHOD
from abstain.plots.style import DARK, GRID, INK, LIGHT, MUTED, PAPER, variable
from abstain.plots.words import visible
from abstain.report import document as doc
from abstain.report.render import elements

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

_PACKAGE: Final = "abstain.report"
_ROLES: Final[frozenset[doc.Role]] = frozenset({"key", "detail", "interactive"})


def html(document: doc.Document) -> str:
    """Return the page: style, script and figures inside, and nothing loaded from elsewhere."""
    parts = list(doc.select(document.blocks(), _ROLES))
    every = list(_within(parts))
    charts = [block for block in every if isinstance(block, doc.Chart)]
    scripts = [_library()] if charts else []
    if any(isinstance(b, doc.Controls) or (isinstance(b, doc.Table) and b.sortable) for b in every):
        scripts.append(resource("page.js") + (resource("charts.js") if charts else ""))
    sections = [part for part in parts if isinstance(part, doc.Section)]
    # Figures and the longest name have styles at their elements.
    at_elements = bool(document.longest) or any(isinstance(block, doc.Figure) for block in every)
    css = style()
    page = (
        environment()
        .get_template("document.html")
        .render(
            document=document,
            parts=parts,
            sections=[section for section in sections if section.nav is not None],
            start=sections[0].anchor if sections else "verdict",
            version=ab.__version__,
            policy=policy("'unsafe-inline'" if at_elements else _hashes([css]), _hashes(scripts)),
            css=_trusted(css),
            scripts=[_trusted(script) for script in scripts],
            data=_trusted(script_json(document.data())) if document.data and charts else "",
            specs=_trusted(script_json({c.key: _spec(c) for c in charts})) if charts else "",
        )
    )
    return _ANCHOR.sub(lambda found: _address(found, document), page)


def anchors(document: doc.Document) -> Iterator[str]:
    """Yield the places on a page that links may lead to."""
    yield from ("verdict", "warnings")
    for block in _within(document.blocks()):
        if isinstance(block, doc.Section | doc.Fold | doc.Table) and block.anchor:
            yield block.anchor


def _address(found: re.Match[str], document: doc.Document) -> str:
    """Let a link lead to the page that its anchor is on."""
    page = document.elsewhere.get(found[2], "")
    return f'{found[1]}="{page}#{found[2]}"'


#: A link within the page; a quote in what a caller wrote is escaped.
_ANCHOR: Final = re.compile(r'\b(href|value)="#([\w-]+)"')


def _spec(chart: doc.Chart) -> dict[str, Any]:
    return {"spec": chart.spec(), "x": chart.x, "y": chart.y}


def _within(blocks: Iterable[doc.Block]) -> Iterator[doc.Block]:
    """Yield blocks and all that is in them."""
    for block in doc.select(blocks, _ROLES):
        yield block
        if isinstance(block, doc.Section | doc.Box | doc.Fold):
            yield from _within(block.blocks)


# ------------------------------------------------------------------------------------- templates
def blocks(several: Iterable[doc.Block]) -> "Markup":
    """Return blocks one after another; the template of each has the name of its class."""
    from markupsafe import Markup

    made: Any = environment().get_template("blocks.html").module
    kept = doc.select(several, _ROLES)
    return Markup("").join(getattr(made, kind(block).lower())(block) for block in kept)


def kind(one: object) -> str:
    """Return the name of what something is."""
    return type(one).__name__


@cache
def environment() -> "Environment":
    """Return what renders the templates: everything escaped unless it is marked as ours."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader(_PACKAGE, "templates"),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.update(
        blocks=blocks, figure_svg=figure_svg, heading=elements.heading, joined=doc.joined, kind=kind
    )
    # What these write is escaped by them.
    written = (elements.entry, elements.inline, elements.label, elements.source, elements.tagged)
    made.globals.update({function.__name__: _ours(function) for function in written})
    return made


def _shown(value: Any) -> Any:
    """Write control characters of the caller's text out; what is marked as HTML is ours."""
    from markupsafe import Markup

    ours = not isinstance(value, str) or isinstance(value, Markup)
    return value if ours else visible(value, keep="\n\t")


def _trusted(text: str) -> "Markup":
    """Mark text that is ours, or JSON already escaped, as not to be escaped again."""
    from markupsafe import Markup

    return Markup(text)  # noqa: S704  never called on a string of the caller


def _ours(written: Callable[..., str]) -> "Callable[..., Markup]":
    return lambda *values, **options: _trusted(written(*values, **options))


def policy(styles: str, scripts: str) -> str:
    """Return what the browser is to allow a page: our styles, our scripts, and to load nothing.

    Pictures are data.
    """
    return (
        f"default-src 'none'; script-src {scripts}; style-src {styles}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hashes(texts: Iterable[str]) -> str:
    """Return what allows these texts between the tags of an element, and no other."""
    keys = (base64.b64encode(sha256(text.encode()).digest()).decode() for text in texts)
    return " ".join(f"'sha256-{key}'" for key in keys) or "'none'"


def resource(name: str) -> str:
    """Return a file that lies beside the templates."""
    return files(_PACKAGE).joinpath("templates", name).read_text(encoding="utf-8")


def style() -> str:
    """Return the style sheet with the colors of the scores filled in."""
    css = resource("page.css")
    for mark, colors in (("@@LIGHT@@", LIGHT), ("@@DARK@@", DARK)):
        lines = (f"--score-{i}: {color};" for i, color in enumerate(colors))
        css = css.replace(mark, " ".join(lines))
    return css


def script_json(value: object) -> str:
    r"""Write JSON that can stand inside a script element whatever its strings hold.

    Examples
    --------
    >>> print(script_json({"name": "</script>"}))
    {"name":"\u003c/script\u003e"}
    """
    text = json.dumps(value, allow_nan=False, ensure_ascii=True, separators=(",", ":"))
    for character in "<>&'":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _library() -> str:
    """Return the JavaScript that draws the charts, which the build of the package left here."""
    try:
        return resource("vega.js")
    except FileNotFoundError as error:
        raise FileNotFoundError(_UNBUILT) from error


_UNBUILT: Final = (
    "this source tree has no JavaScript for charts yet: `python hatch_build.py` in it makes that "
    "(with vl-convert-python installed), and so does `pip install -e .`"
)


# ------------------------------------------------------------------------------------- figures
# Light and dark scheme choose what these are.
_COLORS = {
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    GRID: "var(--grid)",
    PAPER: "var(--raised)",
    "#000000": "var(--ink)",
    **{color: variable(i) for i, color in enumerate(LIGHT)},
}

_TAG = re.compile(r"(<[^>]*>)")
_DROPPED = re.compile(
    r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->|^.*?(?=<svg)", re.DOTALL
)
_USED = re.compile(r'(?:url\(#|xlink:href="#)([^)"]+)')
_ID = re.compile(r' id="([^"]*)"')
_LONG = re.compile(r"(\.\d\d)\d+")
_CURVE_LONG, _CURVE = re.compile(r"(\.\d)\d+"), 1500
_FONT = re.compile(r"font-family:[^;\"]*;? ?")
# Copies of one mark; opacity of a group is not that of its parts.
_ALIKE = re.compile(r'<use [^>]*( style="(?![^"]*(?<!-)opacity)[^"]*")/>(?:<use [^>]*\1/>)+')
_SIZE = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')


def figure_svg(figure: doc.Figure) -> "Markup":
    """Draw a figure for the page: an ``svg`` element without a title, whose text is escaped.

    Its key keeps the identifiers of one figure apart from those of another.
    """
    with warnings.catch_warnings():
        # Text stays text; whether a font of this machine has its letters does not matter.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        svg = figure.display.image(".svg", letters=True, title=False).decode()
    body = _DROPPED.sub("", svg)
    used = set(_USED.findall(body))
    # Names of the caller stand between tags, where they must stay as they are.
    parts = [
        _tag(part, figure.key, used) if part.startswith("<") else part for part in _TAG.split(body)
    ]
    drawn = "".join(part for part in parts if part.strip())
    return _trusted(_ALIKE.sub(_under_one_style, drawn))


def _under_one_style(several: re.Match[str]) -> str:
    """Say once how a row of copies looks."""
    style = several[1]
    return f"<g{style}>{several[0].replace(style, '')}</g>"


def _tag(tag: str, key: str, used: set[str]) -> str:
    if tag.startswith("<svg"):
        return _root(tag)
    tag = _ID.sub(lambda found: _named(found[1], key, used), tag)
    tag = _USED.sub(lambda found: found[0].replace(found[1], f"{key}-{found[1]}"), tag)
    # A tenth of a point is fine for a curve; a small mark needs more.
    digits = _LONG if len(tag) < _CURVE else _CURVE_LONG
    tag = _FONT.sub("", digits.sub(r"\1", tag))
    for color, named in _COLORS.items():
        tag = tag.replace(color, named)
    return " ".join(tag.split())


def _named(name: str, key: str, used: set[str]) -> str:
    if name in used:
        return f' id="{key}-{name}"'
    return f' class="{name}"' if name.startswith(METHOD) else ""


def _root(tag: str) -> str:
    width, height = (float(v) for v in _SIZE.findall(tag)[0])
    return (
        f'<svg class="plot" viewBox="0 0 {width:g} {height:g}" '
        'aria-hidden="true" focusable="false" '
        # Smaller than this its letters are hard to read; it scrolls instead.
        f'style="width: {width / 72:.2f}in; min-width: {width / 104:.2f}in; '
        'stroke-linejoin: round">'
    )
