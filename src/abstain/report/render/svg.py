"""A matplotlib figure inside a page: its colors follow the page, its names clash with no other."""

import re
import warnings

from abstain.plots.bands import METHOD
from abstain.plots.drawable import Drawable
from abstain.plots.palette import LIGHT, variable
from abstain.plots.style import GRID, INK, MUTED, PAPER

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
_SIZE = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')


def inline_svg(display: Drawable, key: str) -> str:
    """Draw a display and return it as an element for a page.

    Parameters
    ----------
    display : Drawable
        Not drawn yet.
    key : str
        Letters, digits and hyphens that no other figure of the page has.

    Returns
    -------
    str
        An ``svg`` element without a title, whose text is escaped.
    """
    with warnings.catch_warnings():
        # Text stays text; whether a font of this machine has its letters does not matter.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        svg = display.image(".svg", letters=True, title=False).decode()
    body = _DROPPED.sub("", svg)
    used = set(_USED.findall(body))
    # Names of the caller stand between tags, where they must stay as they are.
    parts = [_tag(part, key, used) if part.startswith("<") else part for part in _TAG.split(body)]
    return "".join(part for part in parts if part.strip())


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
