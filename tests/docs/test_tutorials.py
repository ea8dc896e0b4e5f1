"""The outputs in the pages and notebooks of the tutorials are current.

``python -m docs.notebooks`` updates the outputs, figures and notebooks.
"""

import json
import re

import pytest
from docs.notebooks import (
    FIGURES,
    NOTEBOOKS,
    code_blocks,
    notebook_json,
    read_tutorial,
    run_code_blocks,
    tutorial_names,
)
from tests.docs.blocks import output_lines

#: Packages of extras that a tutorial imports.
NEEDS = {"pytorch-loop": ("torch", "torchmetrics"), "own-score": ("torch", "lightning_fabric")}
#: Tutorials that train networks in other processes.
LONG = {"own-score"}

NAMES = [pytest.param(n, marks=pytest.mark.slow if n in LONG else ()) for n in tutorial_names()]


@pytest.mark.parametrize("name", NAMES)
def test_outputs_are_current(name, tmp_path, monkeypatch):
    for package in NEEDS.get(name, ()):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    for variable in ("COLUMNS", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(variable, raising=False)
    text = read_tutorial(name)
    for block, output in run_code_blocks(text):
        # The pages omit the output of commands that train networks.
        if block.language == "python" or block.output is not None:
            assert output_lines(output) == output_lines(block.output or ""), block.code
    saved_figures = {path.name for path in tmp_path.glob("*.png")}
    assert saved_figures == {path.name for path in FIGURES.glob("*.png") if path.name in text}


@pytest.mark.parametrize("name", tutorial_names())
def test_notebook_is_current(name):
    text = read_tutorial(name)
    stored = (NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8")
    assert stored == notebook_json(text), f"run `python -m docs.notebooks {name}`"
    cells = [cell for cell in json.loads(stored)["cells"] if cell["cell_type"] == "code"]
    assert len(cells) == len(code_blocks(text))
    # Without a semicolon, a notebook displays the path of each saved figure.
    assert not [cell for cell in cells if re.match(r"[\w.]+\.save\(.*[^;]$", cell["source"][-1])]


def test_every_notebook_has_a_tutorial_and_every_tutorial_is_listed():
    names = tutorial_names()
    assert sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb")) == names
    contents = read_tutorial("index").split("```{toctree}")[1]
    assert sorted(set(contents.split()) & set(names)) == names


def test_figures_are_small_and_belong_to_a_tutorial():
    for figure in FIGURES.glob("*.png"):
        assert figure.stat().st_size < 60_000
        assert any(figure.name in read_tutorial(name) for name in tutorial_names()), figure
