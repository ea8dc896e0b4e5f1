"""The tutorials are executed: what their pages and notebooks show is what happens.

``python -m docs.notebooks`` writes the outputs, figures and notebooks anew.
"""

import json
import re

import pytest
from docs.notebooks import FIGURES, NOTEBOOKS, names, notebook, outputs, steps, text_of
from tests.docs.blocks import printed

#: Packages of extras that a tutorial imports.
NEEDS = {"pytorch-loop": ("torch", "torchmetrics"), "own-score": ("torch", "lightning_fabric")}
#: Trains networks, in processes of their own.
LONG = {"own-score"}

NAMES = [pytest.param(n, marks=pytest.mark.slow if n in LONG else ()) for n in names()]


@pytest.mark.parametrize("name", NAMES)
def test_a_tutorial_shows_what_happens(name, tmp_path, monkeypatch):
    for package in NEEDS.get(name, ()):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    for variable in ("COLUMNS", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(variable, raising=False)
    for step, found in outputs(text_of(name)):
        # Commands that train networks show no output.
        if step.language == "python" or step.output is not None:
            assert printed(found) == printed(step.output or ""), step.code
    drawn = {path.name for path in tmp_path.glob("*.png")}
    assert drawn == {path.name for path in FIGURES.glob("*.png") if path.name in text_of(name)}


@pytest.mark.parametrize("name", names())
def test_its_notebook_is_current(name):
    kept = (NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8")
    assert kept == notebook(text_of(name)), f"run `python -m docs.notebooks {name}`"
    code = [cell for cell in json.loads(kept)["cells"] if cell["cell_type"] == "code"]
    assert len(code) == len(steps(text_of(name)))
    # Else a notebook shows the path of each figure that is saved.
    assert not [c for c in code if re.match(r"[\w.]+\.save\(.*[^;]$", c["source"][-1])]


def test_no_notebook_is_left_over_and_every_tutorial_is_listed():
    assert sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb")) == names()
    listed = text_of("index").split("```{toctree}")[1]
    assert sorted(set(listed.split()) & set(names())) == names()


def test_figures_are_small_and_belong_to_a_tutorial():
    for figure in FIGURES.glob("*.png"):
        assert figure.stat().st_size < 60_000
        assert any(figure.name in text_of(name) for name in names()), figure
