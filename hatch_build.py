"""Make the JavaScript that draws the charts of pages: part of every wheel, never of the repository.

`pip install .` and `pip install -e .` run this by themselves, with vl-convert installed for the
build alone. `python hatch_build.py` makes the file in a source tree that is used as it is, which
needs vl-convert-python.
"""

import os
from pathlib import Path
from typing import Any

#: The file, which the renderer of pages reads.
PLACE = Path("src", "abstain", "report", "templates", "vega.js")

#: The Vega-Lite that charts are written in; the tests hold them to its schema.
LANGUAGE = "6.4"

# The header keeps the notices of what is bundled; the names in it stay out of the page's own scope.
_FORM = """\
/*! Vega, Vega-Lite {language} and vega-embed: (c) University of Washington Interactive Data Lab,
BSD-3-Clause, https://vega.github.io; D3: (c) Mike Bostock, ISC, https://d3js.org; and others.
Bundled by vl-convert {version}. */
(() => {{{bundle}
}})();
"""


def javascript() -> str:
    """Return Vega, Vega-Lite and vega-embed as one script that can stand in a page."""
    import vl_convert

    bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=LANGUAGE)
    if "</script" in bundle.lower() or "\r" in bundle:
        msg = "the JavaScript of vl-convert cannot stand in a script element of HTML"
        raise ValueError(msg)
    return _FORM.format(bundle=bundle, language=LANGUAGE, version=vl_convert.__version__)


def make(root: Path) -> Path:
    """Write the script into a source tree; a build that is killed leaves no incomplete file.

    Two environments may be built from the same tree at the same time, so each process writes to its
    own temporary file.
    """
    path = root / PLACE
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    temporary.write_text(javascript(), encoding="utf-8", newline="\n")
    return temporary.replace(path)


if __name__ == "__main__":
    print(f"made {make(Path(__file__).resolve().parent)}")
else:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface

    class JavaScript(BuildHookInterface[Any]):
        """What the build of a wheel runs first, of an editable one too."""

        def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
            """Make the script, which git ignores, and have it taken along."""
            make(Path(self.root))
            build_data["artifacts"].append(f"/{PLACE.as_posix()}")
