"""The README is executed: what it shows is what happens.

Where only the printed words changed, ``python -m tests.docs.blocks`` writes them anew.
"""

import re
import shlex

import pytest
from tests.docs.blocks import ROOT, blocks, printed, run_command, run_python

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
def workplace(tmp_path, monkeypatch):
    """A folder with the CSV file of the README in it."""
    (csv,) = [block.code for block in BLOCKS if block.language == "csv"]
    (tmp_path / "predictions.csv").write_text(csv, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    # Colors and widths of the terminal that runs the tests are not those of the README.
    for name in ("COLUMNS", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_every_snippet_shows_its_output():
    assert len(PYTHON) == 4
    assert [line for line, _ in COMMANDS if line.startswith("abstain")]
    assert all(block.output for block in PYTHON)


@pytest.mark.parametrize("block", PYTHON, ids=["arrays", "logits", "comparison", "threshold"])
def test_python(block, workplace):
    assert printed(run_python(block.code)) == printed(block.output)


def test_the_command_prints_and_leaves_what_the_readme_says(workplace):
    # Those that train networks show no output.
    ((line, output),) = [c for c in COMMANDS if c[0].startswith("abstain") and c[1]]
    assert printed(run_command(shlex.split(line)[1:])) == printed(output)
    left = {path.name for path in (workplace / "report").iterdir()}
    tables = {"results.parquet", "results.csv", "table.tex", "table.md"}
    assert left == {*tables, "report.html", "receipt.json"}


def test_the_make_targets_exist():
    targets = re.findall(
        r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )
    named = [line.split()[1] for line, _ in COMMANDS if line.startswith("make")]
    assert named
    assert set(named) <= set(targets)


def test_the_extras_exist():
    pyproject = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for extra in ("fast", "torch", "scale", "all"):
        assert re.search(rf"^{extra} = \[", pyproject, re.MULTILINE)


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", TEXT):
        assert target.startswith("https://") or (ROOT / target).is_file(), target
