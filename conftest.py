"""Configure Hypothesis, matplotlib and pytest for all tests, and define shared fixtures."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("MPLBACKEND", "Agg")

# Assertions in these helper modules show their values, as in test modules.
pytest.register_assert_rewrite("tests.processes", "tests.report.page_rules")

ROOT = Path(__file__).resolve().parent

# There is no deadline, because the first call of a kernel compiles it, which takes seconds.
# In CI, the examples are the same in every run, so that a failure is due to the change.
settings.register_profile(
    "default",
    max_examples=60,
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("thorough", settings.get_profile("default"), max_examples=1000)
# Profile of `make test` and `make test-minimal`.
settings.register_profile("quick", settings.get_profile("default"), max_examples=20)
# Profile of `make check`, which runs for every commit.
settings.register_profile("few", settings.get_profile("default"), max_examples=5)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_configure() -> None:
    """Write the JavaScript bundle of reports if the checkout was not installed."""
    if not (ROOT / "src/abstain/report/templates/vega.js").exists():
        # If this fails, writing a report raises an error with an instruction.
        subprocess.run([sys.executable, ROOT / "hatch_build.py"], check=False)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort slow tests first, and exclude them from coverage, which would double their time."""
    _remove_duplicate_doctests(items)
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker("no_cover")


def _remove_duplicate_doctests(items: list[pytest.Item]) -> None:
    """Remove repeated doctests, which pytest collects for methods that have several names."""
    existing = set()
    for item in list(items):
        doctest = getattr(item, "dtest", None)
        if doctest is None:
            continue
        key = (doctest.filename, doctest.lineno, doctest.docstring)
        if key in existing:
            items.remove(item)
        existing.add(key)


@pytest.fixture(scope="session")
def root() -> Path:
    """Return the root folder of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder of shared data, such as real predictions and reference tables.

    By default, the folder is next to the checkout.
    """
    path = Path(os.environ.get("ABSTAIN_SHARED", ROOT.parent / "shared"))
    if not path.is_dir():
        pytest.skip(f"no shared data at {path} (ABSTAIN_SHARED sets another folder)")
    return path
