"""Sphinx configuration: `make docs`."""

import importlib.metadata
import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

import abstain as ab

sys.path.insert(0, str(Path(__file__).resolve().parent))
import metric_pages

project = "abstain"
author = "The abstain authors"
copyright = "The abstain authors"  # noqa: A001 - the name is Sphinx's
release = version = importlib.metadata.version("abstain")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "numpydoc",
    "matplotlib.sphinxext.plot_directive",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "generated"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_typehints = "none"  # the Parameters sections of the docstrings contain the types
autodoc_member_order = "alphabetical"
default_role = "py:obj"  # names in single backticks become links
# autosummary writes one page per object into docs/reference.
autosummary_generate = True
autosummary_imported_members = True
autosummary_ignore_module_all = False
templates_path = ["_templates"]
# Classes of the top-level package have only one page. The type alias `Split` has no page.
autosummary_context = {
    "excluded": {name for name in ab.__all__ if isinstance(getattr(ab, name), type)} | {"Split"}
}
numpydoc_show_class_members = False  # autodoc lists the members

# The build draws the figures of the gallery.
plot_formats = [("png", 110)]
plot_html_show_formats = plot_html_show_source_link = False
plot_include_source = True
plot_rcparams = {"savefig.bbox": "tight"}

# Without "D", because "--out" would become a dash.
smartquotes_action = "qe"

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_js_files = ["pages.js"]
html_copy_source = html_show_sourcelink = False
html_title = "abstain"


_EMPTY_HEADER_CELL = re.compile(r'<th class="(head[^"]*)"><p></p></th>')


def _shorten_menu(
    app: Sphinx, pagename: str, _template: str, context: dict[str, Any], _doctree: nodes.document
) -> None:
    """Replace the navigation menu of a page by a menu without the pages of objects.

    A complete menu would list every object on every page and would take most of the build time. All
    pages in `reference` share one menu.
    """
    toctree = context.get("toctree")
    if not toctree:
        return

    def render_menu(options: dict[str, Any]) -> str:
        menu = str(toctree(**{**options, "maxdepth": 1}))
        # Sphinx omits the level of the headings in the menu.
        return menu.replace('role="heading"', 'role="heading" aria-level="2"')

    def menu(**options: Any) -> str:
        if not pagename.startswith("reference/"):
            return render_menu(options)
        if not hasattr(app, "reference_menu"):
            app.reference_menu = render_menu(options)
        return str(app.reference_menu)

    context["toctree"] = menu


def _correct_accessibility(
    _app: Sphinx, _page: str, _template: str, context: dict[str, Any], _doctree: nodes.document
) -> None:
    """Replace a deprecated role of bibliography entries, and header cells that are empty."""
    body = context.get("body")
    if body:
        body = body.replace('role="doc-biblioentry"', 'role="listitem"')
        context["body"] = _EMPTY_HEADER_CELL.sub(r'<td class="\1"></td>', body)


def setup(app: Sphinx) -> None:
    """Register a lexer and the functions that Sphinx calls before those of the theme."""
    # Tests read the blocks of the language "csv" as files.
    app.add_lexer("csv", TextLexer)
    app.connect("builder-inited", lambda _: metric_pages.write())
    app.connect("html-page-context", _shorten_menu, priority=400)
    app.connect("html-page-context", _correct_accessibility)
