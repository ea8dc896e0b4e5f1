"""What every test shares: Hypothesis profiles, a headless matplotlib, and the shared data."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("MPLBACKEND", "Agg")

# What is asserted there shows its values, as in the tests themselves.
pytest.register_assert_rewrite("tests.processes", "tests.report.page_rules")

ROOT = Path(__file__).resolve().parent

# No deadline: the first call of a compiled kernel takes seconds, the next microseconds.
# In CI the examples are the same each time, so that a red run is about the change and not luck.
settings.register_profile(
    "default",
    max_examples=60,
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("thorough", settings.get_profile("default"), max_examples=1000)
# What a change must pass (`make test`), and a second run of the same tests on the base install.
settings.register_profile("quick", settings.get_profile("default"), max_examples=20)
# What runs for every commit (`make check`).
settings.register_profile("few", settings.get_profile("default"), max_examples=5)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_configure() -> None:
    """Make the JavaScript of pages in a checkout that nobody installed, such as a new work tree."""
    if not (ROOT / "src/abstain/report/templates/vega.js").exists():
        # Where it cannot be made, the pages say so.
        subprocess.run([sys.executable, ROOT / "hatch_build.py"], check=False)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the long tests, and trace none of them for coverage: it would double their time."""
    _once(items)
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker("no_cover")


def _once(items: list[pytest.Item]) -> None:
    """Keep one of the doctests that are the same: bound methods under names of their own."""
    seen = set()
    for item in list(items):
        test = getattr(item, "dtest", None)
        place = test and (test.filename, test.lineno, test.docstring)
        if place and place in seen:
            items.remove(item)
        seen.add(place)


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared data (real predictions, conformance tables) beside the checkout."""
    path = Path(os.environ.get("ABSTAIN_SHARED", ROOT.parent / "shared"))
    if not path.is_dir():
        pytest.skip(f"no shared data at {path} (ABSTAIN_SHARED names another place)")
    return path
