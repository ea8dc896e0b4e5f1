"""Print the lowest versions that pyproject.toml declares, as constraints for pip.

`python tools/lowest.py > lowest.txt`, then `pip install -c lowest.txt '.[fast,test-minimal]'`.
Packages that only other packages require have no constraint. torch is omitted, because the
available builds differ between machines.
"""

import re
import tomllib
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[1]
_EXTRAS = ("fast", "torch", "scale", "test-minimal")
_LOWER_BOUND = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?>=([0-9.]+)")


def main() -> None:
    """Print one line for each package of the base and of the extras that users install."""
    project = _project(_ROOT)
    extras = project["optional-dependencies"]
    requirements = [*project["dependencies"], *_project(_ROOT / "bench")["dependencies"]]
    for name in _EXTRAS:
        requirements += extras[name]
    matches = [_LOWER_BOUND.match(requirement) for requirement in requirements]
    versions = dict(match.groups() for match in matches if match)
    versions.pop("torch", None)
    for name, version in sorted(versions.items()):
        print(f"{name}=={version}")


def _project(folder: Path) -> dict[str, Any]:
    text = (folder / "pyproject.toml").read_text(encoding="utf-8")
    project: dict[str, Any] = tomllib.loads(text)["project"]
    return project


if __name__ == "__main__":
    main()
