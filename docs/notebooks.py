"""Run the tutorials anew: ``python -m docs.notebooks [NAME...]``.

Of each page in ``docs/tutorials`` the outputs are written as they are found, the figures that it
saves are kept in ``docs/_static/tutorials``, and a notebook of the same cells is left in
``examples/notebooks``. ``tests/docs/test_tutorials.py`` fails when one of these is not current.
"""

import ast
import contextlib
import hashlib
import json
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.docs.blocks import ROOT, Block, blocks, printed, run_command, run_python

PAGES = ROOT / "docs" / "tutorials"
FIGURES = ROOT / "docs" / "_static" / "tutorials"
NOTEBOOKS = ROOT / "examples" / "notebooks"

_STEP = re.compile(
    r"^```(?:python|sh)\n(.*?)^```$(?:\n\n^```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE
)


def names() -> list[str]:
    """Those with a page, without the page that lists them."""
    return sorted(page.stem for page in PAGES.glob("*.md") if page.stem != "index")


def text_of(name: str) -> str:
    return (PAGES / f"{name}.md").read_text(encoding="utf-8")


def steps(text: str) -> list[Block]:
    """What is run, in order: Python, and commands of `abstain`, one a block."""
    return [block for block in blocks(text) if block.language in {"python", "sh"}]


def outputs(text: str) -> Iterator[tuple[Block, str]]:
    """Each step with what it prints in the folder where this is called; Python keeps its names."""
    kept: dict[str, Any] = {}
    for step in steps(text):
        if step.language == "python":
            yield step, run_python(step.code, kept)
        else:
            yield step, run_command(shlex.split(step.code, comments=True)[1:])


def refreshed(text: str) -> str:
    """Return the page with what its steps print now; commands that show nothing go on so."""
    for step, found in outputs(text):
        if step.language == "sh" and step.output is None:
            continue
        shown = f"{step.code}```"
        lines = "".join(line + "\n" for line in printed(found))
        old = "" if step.output is None else f"\n\n```text\n{step.output}```"
        new = f"\n\n```text\n{lines}```" if lines else ""
        text = text.replace(shown + old, shown + new)
    return text


def notebook(text: str) -> str:
    """Return the page as a notebook, in the JSON of version 4 of its format."""
    cells: list[dict[str, Any]] = []
    end = 0
    for count, step in enumerate(_STEP.finditer(text), 1):
        cells += _words(text[end : step.start()])
        # A line with "!" has a terminal, and so colors and what moves while it works.
        code = step[1].rstrip("\n")
        said = f"%%sh\n{code}" if step[0].startswith("```sh") else _quiet(code)
        cells.append(_code(said, step[2], count))
        end = step.end()
    cells += _words(text[end:])
    for place, cell in enumerate(cells):
        key = f"{place}{''.join(cell['source'])}"
        cell["id"] = hashlib.sha256(key.encode()).hexdigest()[:8]
    whole = {
        "cells": cells,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(whole, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def _words(text: str) -> list[dict[str, Any]]:
    """Text between two steps; its links lead from the folder of the notebooks."""
    text = re.sub(r"\]\(([a-z-]+)\.md", r"](\1.ipynb", text.strip())
    text = text.replace("](../", "](../../docs/")
    return [{"cell_type": "markdown", "metadata": {}, "source": _lines(text)}] if text else []


def _quiet(code: str) -> str:
    """Return a cell that does not show what its last call returns, such as the path of a figure.

    A name on a line of its own is there to be shown.
    """
    last = ast.parse(code).body[-1]
    called = isinstance(last, ast.Expr) and isinstance(last.value, ast.Call)
    return f"{code};" if called and not ast.unparse(last).startswith("print(") else code


def _code(code: str, output: str | None, count: int) -> dict[str, Any]:
    stream = {"name": "stdout", "output_type": "stream", "text": _lines(output or "")}
    return {
        "cell_type": "code",
        "execution_count": count,
        "metadata": {},
        "outputs": [stream] if output else [],
        "source": _lines(code),
    }


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def write(name: str) -> None:
    """Run a tutorial in a folder of its own, and keep what it printed and drew."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        text = refreshed(text_of(name))
        for figure in Path().glob("*.png"):
            shutil.copyfile(figure, FIGURES / figure.name)
    (PAGES / f"{name}.md").write_text(text, encoding="utf-8")
    (NOTEBOOKS / f"{name}.ipynb").write_text(notebook(text), encoding="utf-8")


if __name__ == "__main__":
    os.environ.pop("COLUMNS", None)
    for each in sys.argv[1:] or names():
        write(each)
