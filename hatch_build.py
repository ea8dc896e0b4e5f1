"""Write the JavaScript bundle that draws the charts of HTML reports.

Wheels contain the bundle, whereas git ignores it. `pip install .` and `pip install -e .` run this
hook with vl-convert in the build environment. In a source tree that is not installed, run
`python hatch_build.py`, which requires vl-convert-python.
"""

import os
from pathlib import Path
from typing import Any

#: Path of the bundle, which `abstain.report` reads.
BUNDLE_PATH = Path("src", "abstain", "report", "templates", "vega.js")

#: Version of Vega-Lite. Tests validate the charts against the schema of this version.
VEGA_LITE_VERSION = "6.4"

# The header contains the copyright notices of the bundled libraries. The function scope keeps the
# names of the bundle out of the global scope of the page.
_TEMPLATE = """\
/*! Vega, Vega-Lite {vega_lite} and vega-embed: (c) University of Washington Interactive Data Lab,
BSD-3-Clause, https://vega.github.io; D3: (c) Mike Bostock, ISC, https://d3js.org; and others.
Bundled by vl-convert {vl_convert}. */
(() => {{{bundle}
}})();
"""


def bundle_javascript() -> str:
    """Return Vega, Vega-Lite and vega-embed as one script that a page can include inline."""
    import vl_convert

    bundle = vl_convert.javascript_bundle(
        "window.vegaEmbed = vegaEmbed;", vl_version=VEGA_LITE_VERSION
    )
    if "</script" in bundle.lower() or "\r" in bundle:
        msg = "the JavaScript of vl-convert cannot be included in a script element of HTML"
        raise ValueError(msg)
    return _TEMPLATE.format(
        bundle=bundle, vega_lite=VEGA_LITE_VERSION, vl_convert=vl_convert.__version__
    )


def write_bundle(root: Path) -> Path:
    """Write the bundle into a source tree atomically.

    Two environments may be built from the same tree at the same time, so each process writes to its
    own temporary file.
    """
    path = root / BUNDLE_PATH
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    temporary.write_text(bundle_javascript(), encoding="utf-8", newline="\n")
    return temporary.replace(path)


if __name__ == "__main__":
    print(f"Wrote {write_bundle(Path(__file__).resolve().parent)}")
else:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface

    class BundleHook(BuildHookInterface[Any]):
        """Build hook of all wheels, including editable ones."""

        def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
            """Write the bundle and add it to the wheel, although git ignores it."""
            write_bundle(Path(self.root))
            build_data["artifacts"].append(f"/{BUNDLE_PATH.as_posix()}")
