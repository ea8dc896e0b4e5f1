"""A document as one HTML file that needs nothing but a browser."""

import base64
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

import abstain as ab
from abstain.plots.palette import DARK, LIGHT
from abstain.plots.visible import visible
from abstain.report.document import (
    Block,
    Box,
    Cell,
    Chart,
    Column,
    Controls,
    Document,
    Figure,
    Fold,
    Interval,
    Label,
    Number,
    Section,
    Span,
    Table,
    Text,
    joined,
    shown_in,
)
from abstain.report.render.svg import inline_svg
from abstain.report.words import UNDEFINED, between, linked, spelled, spread

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

_PACKAGE: Final = "abstain.report"

#: What stands where there is nothing.
_NOTHING: Final = "–"

#: The elements of pieces of text; the others are plain.
_ELEMENTS: Final = {
    "strong": "<strong>{}</strong>",
    "em": "<em>{}</em>",
    "best": '<strong class="best">{}</strong>',
    "code": "<code>{}</code>",
    "muted": '<span class="muted">{}</span>',
    "small": "<small>{}</small>",
    "undefined": '<span class="undefined">{}</span>',
    "good": '<span class="said good">{}</span>',
    "bad": '<span class="said bad">{}</span>',
    "open": '<span class="said">{}</span>',
}

_ARROWS: Final = {"lower": "\u2193", "higher": "\u2191"}
_NUMERIC: Final = (Number, Interval)


def html(document: Document) -> str:
    """Return the page: style, script and figures inside, and nothing loaded from elsewhere."""
    parts = shown_in(document.sections(), "html")
    every = list(_within(parts))
    charts = [block for block in every if isinstance(block, Chart)]
    scripts = [_library()] if charts else []
    if any(isinstance(b, Controls) or (isinstance(b, Table) and b.sortable) for b in every):
        scripts.append(resource("page.js") + (resource("charts.js") if charts else ""))
    sections = [part for part in parts if isinstance(part, Section)]
    return (
        environment()
        .get_template("document.html")
        .render(
            document=document,
            parts=parts,
            sections=[section for section in sections if section.nav is not None],
            start=sections[0].anchor if sections else "verdict",
            version=ab.__version__,
            policy=policy(*scripts),
            css=_trusted(style()),
            scripts=[_trusted(script) for script in scripts],
            data=_trusted(script_json(document.data())) if document.data and charts else "",
            specs=_trusted(script_json({c.key: _spec(c) for c in charts})) if charts else "",
        )
    )


def _spec(chart: Chart) -> dict[str, Any]:
    return {"spec": chart.spec(), "x": chart.x, "y": chart.y}


def _within(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield blocks and all that is in them."""
    for block in shown_in(blocks, "html"):
        yield block
        if isinstance(block, Section | Box | Fold):
            yield from _within(block.blocks)


# ---------------------------------------------------------------------------------- inline text
def inline(text: Text) -> "Markup":
    """Return words as HTML, everything of them escaped."""
    from markupsafe import Markup

    if isinstance(text, tuple):
        return Markup("").join(map(inline, text))
    if isinstance(text, str):
        return Markup("{}").format(visible(text, keep="\n\t"))
    element = _ELEMENTS.get(text.kind)
    if text.title and not text.link:
        element = (element or "<span>{}</span>").replace(">", ' title="{title}">', 1)
    shown = inline(text.text)
    shown = _trusted(element).format(shown, title=visible(text.title)) if element else shown
    return _link(shown, text.link, text.title) if text.link else shown


def _link(shown: "Markup", to: str, title: str) -> "Markup":
    from markupsafe import Markup

    said = Markup(' title="{}"').format(visible(title)) if title else ""
    if to.startswith("#"):
        return Markup('<a href="{}"{}>{}</a>').format(to, said, shown)
    # No other scheme than this one gets into an address.
    safe = to if to.startswith("https://") else "#"
    return Markup('<a href="{}" rel="noreferrer"{}>{}</a>').format(safe, said, shown)


def label(name: Label | str) -> "Markup":
    """Return the name of what is measured with its unit and where better is."""
    from markupsafe import Markup

    if isinstance(name, str):
        return inline(name)
    shown = inline(f"{name.text} × 1000" if name.scale > 1 else name.text)
    if name.link:
        shown = _link(shown, name.link, name.title)
    if name.better:
        # A line break would part the arrow from what it is about.
        arrow = '{}&nbsp;<span class="arrow" aria-label="{} is better">{}</span>'
        shown = _trusted(arrow).format(shown, name.better, _ARROWS[name.better])
    return shown + Markup("<small>{}</small>").format(visible(name.note)) if name.note else shown


def heading(name: Label | str) -> str:
    """Return the words of a label alone."""
    return name if isinstance(name, str) else name.text


# ----------------------------------------------------------------------------------------- cells
def entry(cell: Cell, column: Column, *, head: bool, stacked: bool) -> "Markup":
    """Return a cell as an element; stacked ones carry the head of their column along."""
    from markupsafe import Markup

    attributes: dict[str, str] = {"scope": "row"} if head else {}
    classes = [{"number": "num", "name": "name", "words": "words"}.get(column.kind, "")]
    if isinstance(cell, Number) and cell.shade is not None:
        classes.append(f"r{cell.shade}")
    if isinstance(cell, Span) and cell.kind in {"better", "alike"}:
        classes.append(cell.kind)
    attributes["class"] = " ".join(filter(None, classes))
    if isinstance(cell, _NUMERIC):
        attributes["title"] = cell.note if isinstance(cell, Number) else cell.title
    if stacked and not head:
        attributes["data-label"] = heading(column.label)
    written = Markup("").join(
        Markup(' {}="{}"').format(name, visible(value))
        for name, value in attributes.items()
        if value
    )
    return Markup("<{0}{1}>{2}</{0}>").format("th" if head else "td", written, content(cell))


def content(cell: Cell) -> "Markup":
    """Return what stands in a cell."""
    if cell is None or cell == "":
        return inline(_NOTHING if cell is None else "")
    if isinstance(cell, Number):
        return _number(cell)
    if isinstance(cell, Interval):
        found = between(cell.low, cell.high, cell.form, scale=cell.scale)
        return inline(found or _NOTHING)
    return label(cell) if isinstance(cell, Label) else inline(cell)


def _number(cell: Number) -> "Markup":
    from markupsafe import Markup

    if math.isnan(cell.value) and not cell.said:
        undefined = Markup('<span class="undefined" title="{}">{}</span>')
        return undefined.format(visible(cell.reason), UNDEFINED)
    scales = {"one": cell.scale, "kilo": 1000} if cell.per_thousand else {"": cell.scale}
    # A count stays one; a number of NumPy is written as the number it is.
    value = cell.value if isinstance(cell.value, int) else float(cell.value)
    exact = "" if math.isnan(value) else repr(value)
    shown = Markup("")
    for choice, scale in scales.items():
        looks = " ".join(filter(None, [choice, "best" if cell.stands == "best" else ""]))
        look = Markup(' class="{}"').format(looks) if looks else ""
        text = cell.said or spelled(cell.value, cell.form, scale=scale)
        shown += Markup('<data{} value="{}">{}</data>').format(look, exact, visible(text))
    if cell.stands == "tie":
        shown += Markup('<sup title="cannot be told from the best">†</sup>')
    return shown + _beside(cell, scales)


def _beside(cell: Number, scales: Mapping[str, int]) -> "Markup":
    """Return the small words below a number."""
    from markupsafe import Markup

    small = Markup("<small>{}</small>")
    shown = Markup("")
    spans = {c: between(cell.low, cell.high, cell.form, scale=s) for c, s in scales.items()}
    if all(spans.values()):
        one = Markup('<span class="{}">{}</span>')
        said = [one.format(c, span) if c else span for c, span in spans.items()]
        shown += Markup('<small class="interval">{}</small>').format(Markup("").join(said))
    if not math.isnan(cell.spread):
        shown += Markup('<small class="spread">± {}</small>').format(spread(cell.spread))
    return shown + (small.format(visible(cell.beside)) if cell.beside else "")


# ------------------------------------------------------------------------------------- templates
def blocks(several: Iterable[Block]) -> "Markup":
    """Return blocks one after another; the template of each has the name of its class."""
    from markupsafe import Markup

    made: Any = environment().get_template("blocks.html").module
    kept = shown_in(several, "html")
    return Markup("").join(getattr(made, kind(block).lower())(block) for block in kept)


def kind(one: object) -> str:
    """Return the name of what something is."""
    return type(one).__name__


def figure_svg(figure: Figure) -> "Markup":
    """Draw a figure for the page."""
    return _trusted(inline_svg(figure.draw(), figure.key))


def tagged(tags: Mapping[str, str]) -> "Markup":
    """Return the attributes by which a choice finds a part."""
    from markupsafe import Markup

    pairs = (Markup(' data-in-{}="{}"').format(name, key) for name, key in tags.items())
    return Markup("").join(pairs)


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
    ours = (
        blocks,
        content,
        entry,
        figure_svg,
        heading,
        inline,
        joined,
        kind,
        label,
        linked,
        tagged,
    )
    made.globals.update({function.__name__: function for function in ours})
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


@cache
def _library() -> str:
    """Return the JavaScript that draws the charts, kept out of the global scope."""
    import altair as alt
    import vl_convert

    language = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=language)
    return f"(() => {{{bundle}\n}})();"
