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

autodoc_typehints = "none"  # numpydoc's Parameters section says it
autodoc_member_order = "alphabetical"
default_role = "py:obj"  # a name in the words of an object is a link
# One page an object: autosummary writes what they include into docs/reference.
autosummary_generate = True
autosummary_imported_members = True
autosummary_ignore_module_all = False
templates_path = ["_templates"]
# A class has one page, and an alias of a type none.
autosummary_context = {
    "elsewhere": {name for name in ab.__all__ if isinstance(getattr(ab, name), type)} | {"Split"}
}
numpydoc_show_class_members = False  # autodoc lists them already

# The figures of the gallery, drawn while the pages are built.
plot_formats = [("png", 110)]
plot_html_show_formats = plot_html_show_source_link = False
plot_include_source = True
plot_rcparams = {"savefig.bbox": "tight"}

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_js_files = ["pages.js"]
html_copy_source = html_show_sourcelink = False
html_title = "abstain"


_EMPTY = re.compile(r'<th class="(head[^"]*)"><p></p></th>')


def _shallow(
    app: Sphinx, pagename: str, _template: str, context: dict[str, Any], _doctree: nodes.document
) -> None:
    """Let the theme find a menu without the pages of objects; one serves all of these.

    Every page would hold all of them, and making that menu anew takes most of a build.
    """
    if not (whole := context.get("toctree")):
        return

    def made(options: dict[str, Any]) -> str:
        # A heading of a menu is one of the second level, which Sphinx does not say.
        menu = str(whole(**{**options, "maxdepth": 1}))
        return menu.replace('role="heading"', 'role="heading" aria-level="2"')

    def menu(**options: Any) -> str:
        if not pagename.startswith("reference/"):
            return made(options)
        if not hasattr(app, "menu_of_objects"):
            app.menu_of_objects = made(options)
        return str(app.menu_of_objects)

    context["toctree"] = menu


def _read_aloud(
    _app: Sphinx, _page: str, _template: str, context: dict[str, Any], _doctree: nodes.document
) -> None:
    """Let sources be entries of their list: their own role is deprecated. Let no head be empty."""
    if body := context.get("body"):
        body = body.replace('role="doc-biblioentry"', 'role="listitem"')
        context["body"] = _EMPTY.sub(r'<td class="\1"></td>', body)


def setup(app: Sphinx) -> None:
    """Say what Sphinx calls before the theme."""
    # Tests read such blocks as files.
    app.add_lexer("csv", TextLexer)
    app.connect("builder-inited", lambda _: metric_pages.write())
    app.connect("html-page-context", _shallow, priority=400)
    app.connect("html-page-context", _read_aloud)
