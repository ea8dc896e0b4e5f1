"""Every declared dependency is imported somewhere: by the package, or by what developers run."""

import ast
import re
import tomllib
from pathlib import Path

import pytest
from tests.architecture.source import ROOT

import abstain as ab

SAID = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT, BUILD = SAID["project"], SAID["build-system"]["requires"]
EXTRAS = PROJECT["optional-dependencies"]
#: What only those who work on the package install.
DEVELOPERS = {"lint", "test-minimal", "test", "docs", "bench", "peers"}
#: Packages whose module has another name.
MODULES = {
    "dask": "distributed", "ibis-framework": "ibis", "pillow": "PIL", "scikit-learn": "sklearn",
    "vl-convert-python": "vl_convert",
}  # fmt: skip
#: Started by name, or named in a configuration; torch-uncertainty is loaded by path.
NEVER_IMPORTED = {
    "furo", "import-linter", "mypy", "myst-parser", "pre-commit", "pytest-cov", "pytest-xdist",
    "ruff", "sphinx", "torch-uncertainty",
}  # fmt: skip
BY_NAME = {"import_module", "importorskip", "import_peer", "folder_of_peer"}


def imported(path: Path) -> set[str]:
    """Top-level names that a file imports, also by the functions that take a name."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(node.module or "")
        elif isinstance(node, ast.Call) and node.args:
            first = node.args[0]
            if ast.unparse(node.func).split(".")[-1] in BY_NAME and isinstance(first, ast.Constant):
                names.add(str(first.value))
    return {name.split(".")[0] for name in names}


def imported_below(*folders: str) -> set[str]:
    return set().union(*(imported(p) for f in folders for p in (ROOT / f).rglob("*.py")))


def packages(requirements: list[str]) -> set[str]:
    names = {re.match(r"[A-Za-z0-9._-]+", one)[0] for one in requirements}
    return names - {"abstain"}


def module(package: str) -> str:
    return MODULES.get(package, package.replace("-", "_"))


def of_extras(names: set[str]) -> set[str]:
    return set().union(*(packages(EXTRAS[name]) for name in names))


BENCH = tomllib.loads((ROOT / "bench/pyproject.toml").read_text(encoding="utf-8"))["project"]
USERS = packages(PROJECT["dependencies"]) | of_extras(set(EXTRAS) - DEVELOPERS)
OURS = of_extras(DEVELOPERS)


def test_the_package_imports_what_its_users_install():
    there = imported_below("src")
    assert not {package for package in USERS if module(package) not in there}


def test_abstain_bench_imports_what_its_users_install():
    there = imported_below("bench/src")
    assert not {p for p in packages(BENCH["dependencies"]) if module(p) not in there}


def test_abstain_bench_needs_the_abstain_of_the_same_commit():
    import abstain_bench

    assert abstain_bench.__version__ == ab.__version__
    assert f"abstain=={ab.__version__}" in BENCH["dependencies"]


def test_developers_install_nothing_that_is_not_used():
    there = imported_below("src", "bench", "tests", "tools", "benchmarks", "examples", "docs")
    assert not {p for p in OURS - NEVER_IMPORTED if module(p) not in there}
    assert OURS >= NEVER_IMPORTED, "take it out of the ledger"


def test_what_makes_and_checks_charts_is_needed_by_no_user():
    assert not imported_below("src") & {"altair", "vl_convert"}
    assert not USERS & {"altair", "vl-convert-python"}


def test_the_build_imports_what_it_asks_for_and_developers_have_the_same():
    there = imported(ROOT / "hatch_build.py")
    assert not {package for package in packages(BUILD) if module(package) not in there}
    assert [one for one in BUILD if one in EXTRAS["test"]] == BUILD[1:]


@pytest.mark.parametrize("code", ["import os.path", "import_module('os')", "from os import path"])
def test_an_import_is_seen(code, tmp_path):
    path = tmp_path / "module.py"
    path.write_text(code, encoding="utf-8")
    assert imported(path) == {"os"}
