"""HTML renderer, which writes a document as one self-contained page."""

import base64
import json
import math
import os
import posixpath
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache, partial
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

import abstain as ab
from abstain.plots.bands import METHOD_CLASS_PREFIX
from abstain.plots.formatting import escape_control_characters
from abstain.plots.style import DARK, GRID, INK, LIGHT, MUTED, PAPER, css_variable
from abstain.report import document as doc
from abstain.report.render import elements
from abstain.report.render.line_chart import line_chart_svg

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

_PACKAGE: Final = "abstain.report"
_ROLES: Final[frozenset[doc.Role]] = frozenset({"key", "detail", "interactive"})


def html(document: doc.Document) -> str:
    """Return a page with all styles, scripts and figures, which loads no other files."""
    first_screen = list(document.first_screen(_ROLES))
    blocks = list(doc.select_blocks(document.blocks(), _ROLES))
    end_matter = list(document.end_matter())
    nested_blocks = list(_walk_blocks([*first_screen, *blocks, *end_matter]))
    charts = [block for block in nested_blocks if isinstance(block, doc.Chart)]
    sections = [block for block in blocks if isinstance(block, doc.Section)]
    scripts = _page_scripts(nested_blocks, has_charts=bool(charts))
    css = style_sheet()
    has_figures = any(isinstance(block, doc.Figure) for block in nested_blocks)
    style_sources = _csp_hashes([css])
    if has_figures or document.name_width > 0:
        # The page has style attributes, which no hash in the policy can permit.
        style_sources = "'unsafe-inline'"
    chart_specs = _chart_specs(charts) if charts else ""
    chart_data = ""
    if charts and document.chart_data:
        chart_data = json_for_script(document.chart_data())
    template = environment().get_template("document.html")
    page = template.render(
        document=document,
        first_screen=first_screen,
        blocks=[*blocks, *end_matter],
        nav_sections=[section for section in sections if section.nav_title is not None],
        date=_report_date(),
        version=ab.__version__,
        policy=content_security_policy(style_sources, _csp_hashes(scripts)),
        css=_mark_safe(css),
        scripts=[_mark_safe(script) for script in scripts],
        chart_data=_mark_safe(chart_data),
        chart_specs=_mark_safe(chart_specs),
    )

    def link_to_page(match: re.Match[str]) -> str:
        attribute, anchor = match.groups()
        address = document.page_by_anchor.get(anchor, "")
        return f'{attribute}="{address}#{anchor}"'

    return _ANCHOR.sub(link_to_page, page)


def _page_scripts(blocks: Sequence[doc.Block], *, has_charts: bool) -> list[str]:
    """Return the scripts that the blocks of a page need."""
    scripts = [_chart_library()] if has_charts else []
    has_controls = any(isinstance(block, doc.Controls) for block in blocks)
    has_sortable_table = any(getattr(block, "is_sortable", False) for block in blocks)
    if has_controls or has_sortable_table:
        script = read_template_file("page.js")
        if has_charts:
            script += read_template_file("charts.js")
        scripts.append(script)
    return scripts


def _chart_specs(charts: Iterable[doc.Chart]) -> str:
    """Return the specification of each chart as JSON, by the key of the chart."""
    specs = {}
    for chart in charts:
        specs[chart.key] = {"spec": chart.build_spec(), "x": chart.x_field, "y": chart.y_field}
    return json_for_script(specs)


def _report_date() -> str:
    """Return the date in the variable SOURCE_DATE_EPOCH, or the current date if it is not set."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    now = datetime.now(UTC) if epoch is None else datetime.fromtimestamp(int(epoch), UTC)
    return f"{now.day} {now:%B %Y}"


#: Pattern of a link to an anchor. Strings of the caller cannot match, because quotes are escaped.
_ANCHOR: Final = re.compile(r'\b(href|value)="#([\w-]+)"')


def _anchors(document: doc.Document) -> Iterator[str]:
    """Yield the anchors of a page."""
    all_blocks = (*document.overview(), *document.blocks(), *document.end_matter())
    for block in _walk_blocks(all_blocks):
        if isinstance(block, doc.Section | doc.Collapsible | doc.Table) and block.anchor:
            yield block.anchor


def link_pages(page_by_address: Mapping[str, doc.Document]) -> dict[str, doc.Document]:
    """Add the address of the page to links whose anchor is on another page.

    If several pages have the same anchor, the link leads to the first of these pages.
    """
    # The blocks of each page are built only once.
    pages = {}
    for address, page in page_by_address.items():
        blocks = tuple(doc.select_blocks(page.blocks(), _ROLES))
        pages[address] = replace(page, blocks=partial(tuple, blocks))
    anchors_by_address = {address: set(_anchors(page)) for address, page in pages.items()}
    address_by_anchor: dict[str, str] = {}
    for address, page_anchors in anchors_by_address.items():
        for anchor in page_anchors:
            address_by_anchor.setdefault(anchor, address)
    linked = {}
    for address, page in pages.items():
        folder = posixpath.dirname(address) or "."
        page_by_anchor = {
            anchor: posixpath.relpath(target, folder)
            for anchor, target in address_by_anchor.items()
            if anchor not in anchors_by_address[address]
        }
        linked[address] = replace(page, page_by_anchor=page_by_anchor)
    return linked


def _walk_blocks(blocks: Iterable[doc.Block]) -> Iterator[doc.Block]:
    """Yield blocks and the blocks inside them."""
    for block in doc.select_blocks(blocks, _ROLES):
        yield block
        if isinstance(block, doc.Section | doc.Box | doc.Collapsible):
            yield from _walk_blocks(block.blocks)


# ------------------------------------------------------------------------------------- templates
def render_blocks(blocks: Iterable[doc.Block]) -> "Markup":
    """Render each block with the template macro that is named after the class of the block."""
    from markupsafe import Markup

    macros: Any = environment().get_template("blocks.html").module
    visible_blocks = doc.select_blocks(blocks, _ROLES)
    return Markup("").join(
        getattr(macros, type_name(block).lower())(block) for block in visible_blocks
    )


def type_name(value: object) -> str:
    """Return the name of the class of a value."""
    return type(value).__name__


@cache
def environment() -> "Environment":
    """Return the template environment.

    The templates escape all values, except values that are marked as safe HTML.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    env = Environment(
        loader=PackageLoader(_PACKAGE, "templates"),
        autoescape=True,
        finalize=_escape_controls,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.globals.update(
        figure_svg=figure_svg,
        plain_text=doc.plain_text,
        render_blocks=render_blocks,
        type_name=type_name,
    )
    # These functions escape their output.
    for function in (
        elements.axis_header,
        elements.breakable,
        elements.table_cell,
        elements.inline,
        elements.label,
        elements.reference,
        elements.tag_attributes,
        line_chart_svg,
    ):
        env.globals[function.__name__] = _returning_markup(function)
    return env


def _escape_controls(value: Any) -> Any:
    """Replace control characters in a string. HTML that is marked as safe is unchanged."""
    from markupsafe import Markup

    is_safe = not isinstance(value, str) or isinstance(value, Markup)
    return value if is_safe else escape_control_characters(value, allowed="\n\t")


def _returning_markup(function: Callable[..., str]) -> "Callable[..., Markup]":
    return lambda *args, **options: _mark_safe(function(*args, **options))


def _mark_safe(text: str) -> "Markup":
    """Mark generated HTML or escaped JSON as safe, so that it is not escaped again."""
    from markupsafe import Markup

    return Markup(text)  # noqa: S704  never called with an unescaped string of the caller


def content_security_policy(styles: str, scripts: str) -> str:
    """Return a content security policy that permits only these styles and scripts."""
    return (
        f"default-src 'none'; script-src {scripts}; style-src {styles}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _csp_hashes(texts: Iterable[str]) -> str:
    """Return the sources of a content security policy for inline scripts or styles."""
    digests = (base64.b64encode(sha256(text.encode()).digest()).decode() for text in texts)
    return " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"


def read_template_file(name: str) -> str:
    """Return the text of a file in the template folder."""
    return files(_PACKAGE).joinpath("templates", name).read_text(encoding="utf-8")


def style_sheet() -> str:
    """Return the style sheet with the colors of the scores."""
    css = read_template_file("page.css")
    css = css.replace("@@LIGHT@@", score_variables(LIGHT))
    css = css.replace("@@SWATCHES@@", _swatch_rules())
    return css.replace("@@DARK@@", score_variables(DARK))


def _swatch_rules() -> str:
    """Return the CSS rules for the colored marks of scores in tables."""
    return " ".join(f".s{i} {{ background: {css_variable(i)}; }}" for i in range(len(LIGHT)))


def score_variables(colors: Iterable[str]) -> str:
    """Return CSS variables with the colors of the scores."""
    return " ".join(f"--score-{i}: {color};" for i, color in enumerate(colors))


def json_for_script(value: object) -> str:
    r"""Return JSON that can be embedded in a script element.

    Examples
    --------
    >>> print(json_for_script({"name": "</script>"}))
    {"name":"\u003c/script\u003e"}
    """
    text = json.dumps(value, allow_nan=False, ensure_ascii=True, separators=(",", ":"))
    for character in "<>&'":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _chart_library() -> str:
    """Return the JavaScript library for charts.

    The file is created when the package is built.
    """
    try:
        return read_template_file("vega.js")
    except FileNotFoundError as error:
        raise FileNotFoundError(
            "the JavaScript library for charts is missing in this source tree; run `pip install -e "
            ".`, or run `python hatch_build.py` with vl-convert-python installed"
        ) from error


# ------------------------------------------------------------------------------------- figures
# Colors of figures are replaced by CSS variables of the light and the dark color scheme.
_COLORS = {
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    GRID: "var(--grid)",
    PAPER: "var(--raised)",
    "#000000": "var(--ink)",
    **{color: css_variable(i) for i, color in enumerate(LIGHT)},
}

_TAG = re.compile(r"(<[^>]*>)")
_REMOVED = re.compile(
    r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->|^.*?(?=<svg)", re.DOTALL
)
_REFERENCE = re.compile(r'(?:url\(#|xlink:href="#)([^)"]+)')
_ID = re.compile(r' id="([^"]*)"')
_EXTRA_DIGITS = re.compile(r"(\.\d\d)\d+")
_EXTRA_CURVE_DIGITS, _MIN_CURVE_LENGTH = re.compile(r"(\.\d)\d+"), 1500
_FONT = re.compile(r"font-family:[^;\"]*;? ?")
# Consecutive marks with one style. Opacity has a different effect on a group and on an element.
_EQUAL_MARKS = re.compile(r'<use [^>]*( style="(?![^"]*(?<!-)opacity)[^"]*")/>(?:<use [^>]*\1/>)+')
_SIZE = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')
_FONT_SIZE = re.compile(r"font(?:-size)?: (?:[^;\"]* )?([\d.]+)px")
# On a phone, text of figures has at least 11 px, and a figure has at most 358 px without scrolling.
_MIN_TEXT_SIZE, _PHONE_WIDTH = 11, 358
_FONT_SIZE = re.compile(r"font(?:-size)?: [^;\"]*?([\d.]+)px")
#: Smallest text on a narrow screen, in pixels.
_MIN_TEXT_SIZE = 11


def figure_svg(figure: doc.Figure) -> "Markup":
    """Draw a figure as an ``svg`` element without a title, and escape its text.

    All ids in the element start with the key of the figure, so they are unique on the page.
    """
    with warnings.catch_warnings():
        # Text is not converted to paths, so missing glyphs in local fonts are irrelevant.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        svg = figure.display.image(".svg", keep_text=True, title=False).decode()
    body = _REMOVED.sub("", svg)
    referenced_ids = set(_REFERENCE.findall(body))
    smallest_text = min(map(float, _FONT_SIZE.findall(body)), default=_MIN_TEXT_SIZE)
    # The text between tags can contain names of the caller. Therefore only tags are changed.
    pieces = [
        _clean_tag(part, figure.key, referenced_ids, smallest_text) if part[:1] == "<" else part
        for part in _TAG.split(body)
    ]
    svg = "".join(part for part in pieces if part.strip())
    # The style of consecutive marks moves to a group element.
    return _mark_safe(
        _EQUAL_MARKS.sub(lambda marks: f"<g{marks[1]}>{marks[0].replace(marks[1], '')}</g>", svg)
    )


def _clean_tag(tag: str, key: str, referenced_ids: set[str], smallest_text: float) -> str:
    """Return an SVG tag with unique ids, rounded numbers and the colors of the page."""
    if tag.startswith("<svg"):
        width, height = map(float, _SIZE.findall(tag)[0])
        # A figure scrolls on a screen that is too narrow for text of a legible size.
        legible_width = math.ceil(width * _MIN_TEXT_SIZE / smallest_text)
        css_class = "plot wide" if legible_width > _PHONE_WIDTH else "plot"
        return (
            f'<svg class="{css_class}" viewBox="0 0 {width:g} {height:g}" '
            'aria-hidden="true" focusable="false" '
            f'style="width: {width / 72:.2f}in; min-width: {width / 104:.2f}in; '
            f'--legible-width: {legible_width}px; stroke-linejoin: round">'
        )

    def replace_id(match: re.Match[str]) -> str:
        name = match[1]
        if name in referenced_ids:
            return f' id="{key}-{name}"'
        return f' class="{name}"' if name.startswith(METHOD_CLASS_PREFIX) else ""

    tag = _ID.sub(replace_id, tag)
    tag = _REFERENCE.sub(lambda match: match[0].replace(match[1], f"{key}-{match[1]}"), tag)
    # Curves are rounded to 0.1 points, small marks to 0.01 points.
    extra_digits = _EXTRA_DIGITS if len(tag) < _MIN_CURVE_LENGTH else _EXTRA_CURVE_DIGITS
    tag = _FONT.sub("", extra_digits.sub(r"\1", tag))
    for color, replacement in _COLORS.items():
        tag = tag.replace(color, replacement)
    return " ".join(tag.split())
