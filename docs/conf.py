"""Sphinx configuration: `make docs`."""

import importlib.metadata

import abstain

project = "abstain"
author = "The abstain authors"
copyright = "The abstain authors"  # noqa: A001 - the name is Sphinx's
release = version = importlib.metadata.version("abstain")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "numpydoc",
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
    "elsewhere": {name for name in abstain.__all__ if isinstance(getattr(abstain, name), type)}
    | {"Split"}
}
numpydoc_show_class_members = False  # autodoc lists them already

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_title = "abstain"


class Menu:
    """The menu of the pages, without those of objects; one serves all of these.

    Every page would hold all of them, and making that menu anew takes most of a build.
    """

    def __init__(self):
        self.of_objects = None

    def give(self, app, pagename, templatename, context, doctree):
        """Let the theme find a shallow menu."""
        if whole := context.get("toctree"):
            context["toctree"] = lambda **options: self._made(pagename, whole, options)

    def _made(self, pagename, whole, options):
        shallow = {**options, "maxdepth": 1}
        if not pagename.startswith("reference/"):
            return whole(**shallow)
        self.of_objects = self.of_objects or whole(**shallow)
        return self.of_objects


def setup(app):
    """Say what Sphinx calls before the theme."""
    app.connect("html-page-context", Menu().give, priority=400)
