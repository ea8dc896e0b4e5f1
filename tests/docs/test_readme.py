"""The outputs in the README are current, and its links and commands work.

``python -m tests.docs.blocks`` updates the outputs.
"""

import re
import shlex

import pytest
from tests.docs.blocks import ROOT, blocks, output_lines, run_command, run_python

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = blocks(TEXT)
PYTHON = [block for block in BLOCKS if block.language == "python"]
COMMANDS = [
    (line, block.output)
    for block in BLOCKS
    if block.language == "sh"
    for line in block.code.splitlines()
]


@pytest.fixture
def working_directory(tmp_path, monkeypatch):
    """Change to a folder with the CSV file of the README."""
    (csv,) = [block.code for block in BLOCKS if block.language == "csv"]
    (tmp_path / "predictions.csv").write_text(csv, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    # The output must not depend on the terminal in which the tests run.
    for name in ("COLUMNS", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_every_python_block_has_an_output():
    assert len(PYTHON) == 4
    assert [line for line, _ in COMMANDS if line.startswith("abstain")]
    assert all(block.output for block in PYTHON)


@pytest.mark.usefixtures("working_directory")
@pytest.mark.parametrize("block", PYTHON, ids=["arrays", "logits", "comparison", "threshold"])
def test_python(block):
    assert output_lines(run_python(block.code)) == output_lines(block.output)


def test_output_and_files_of_the_command(working_directory):
    # The README omits the output of commands that train networks.
    ((line, output),) = [c for c in COMMANDS if c[0].startswith("abstain") and c[1]]
    assert output_lines(run_command(shlex.split(line)[1:])) == output_lines(output)
    files = {path.name for path in (working_directory / "report").iterdir()}
    tables = {"results.parquet", "results.csv", "table.tex", "table.md"}
    assert files == {*tables, "report.html", "receipt.json"}


def test_the_make_targets_exist():
    targets = re.findall(
        r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )
    used_targets = [line.split()[1] for line, _ in COMMANDS if line.startswith("make")]
    assert used_targets
    assert set(used_targets) <= set(targets)


def test_the_extras_exist():
    pyproject = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for extra in ("fast", "torch", "scale", "all"):
        assert re.search(rf"^{extra} = \[", pyproject, re.MULTILINE)


def test_links_have_existing_targets():
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", TEXT):
        assert target.startswith("https://") or (ROOT / target).is_file(), target
