"""Sphinx configuration: `make docs`."""

import importlib.metadata

project = "abstain"
author = "The abstain authors"
copyright = "The abstain authors"  # noqa: A001 - the name is Sphinx's
release = version = importlib.metadata.version("abstain")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "numpydoc",
]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build", "generated"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_typehints = "none"  # numpydoc's Parameters section says it
autodoc_member_order = "alphabetical"
autosummary_generate = False  # numpydoc loads autosummary, whose stubs we do not use
numpydoc_show_class_members = False  # autodoc lists them already

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_title = "abstain"
