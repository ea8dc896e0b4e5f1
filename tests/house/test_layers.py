"""The import table of DESIGN section 4 holds, and lists exactly what exists."""

import os
import subprocess
import sys
import tomllib

import pytest
from tests.house.source import ROOT, SRC


def contract() -> dict:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return config["tool"]["importlinter"]["contracts"][0]


def layers() -> list[str]:
    return [name.strip() for row in contract()["layers"] for name in row.split("|")]


def exists(layer: str) -> bool:
    return (SRC / f"{layer}.py").exists() or (SRC / layer / "__init__.py").exists()


def test_every_layer_that_is_not_optional_exists():
    assert not [name for name in layers() if not name.startswith("(") and not exists(name)]


def test_imports_point_down():
    pytest.importorskip("importlinter")
    code = "from importlinter.cli import lint_imports_command as main; main()"
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-c", code, "--no-cache"],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_layer_that_exists_is_not_optional():
    optional = [name.strip("()") for name in layers() if name.startswith("(")]
    assert not [name for name in optional if exists(name)], "take the parentheses off"
