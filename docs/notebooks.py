"""Update the outputs of the tutorials: ``python -m docs.notebooks [NAME...]``.

The program runs the code of each page in ``docs/tutorials`` and writes the current outputs into the
page. It saves the figures of the page in ``docs/_static/tutorials`` and writes a notebook with the
same cells to ``examples/notebooks``. ``tests/docs/test_tutorials.py`` fails if a page or a notebook
is not current.
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

from tests.docs.blocks import ROOT, Block, blocks, output_lines, run_command, run_python

PAGES = ROOT / "docs" / "tutorials"
FIGURES = ROOT / "docs" / "_static" / "tutorials"
NOTEBOOKS = ROOT / "examples" / "notebooks"

_CODE_BLOCK = re.compile(
    r"^```(?:python|sh)\n(.*?)^```$(?:\n\n^```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE
)


def tutorial_names() -> list[str]:
    """Return the names of the tutorials, without the index page."""
    return sorted(page.stem for page in PAGES.glob("*.md") if page.stem != "index")


def read_tutorial(name: str) -> str:
    """Return the Markdown text of a tutorial."""
    return (PAGES / f"{name}.md").read_text(encoding="utf-8")


def code_blocks(text: str) -> list[Block]:
    """Return the blocks of Python code and of shell commands of a page, in order."""
    return [block for block in blocks(text) if block.language in {"python", "sh"}]


def run_code_blocks(text: str) -> Iterator[tuple[Block, str]]:
    """Run the code blocks of a page in the working directory; yield each block and its output.

    The Python blocks share one namespace. A shell block contains one command of `abstain`.
    """
    namespace: dict[str, Any] = {}
    for block in code_blocks(text):
        if block.language == "python":
            yield block, run_python(block.code, namespace)
        else:
            yield block, run_command(shlex.split(block.code, comments=True)[1:])


def with_current_outputs(text: str) -> str:
    """Return the page with the current outputs of its code blocks.

    Commands without an output in the page remain without an output.
    """
    for block, output in run_code_blocks(text):
        if block.language == "sh" and block.output is None:
            continue
        code = f"{block.code}```"
        lines = "".join(line + "\n" for line in output_lines(output))
        previous = "" if block.output is None else f"\n\n```text\n{block.output}```"
        current = f"\n\n```text\n{lines}```" if lines else ""
        text = text.replace(code + previous, code + current)
    return text


def notebook_json(text: str) -> str:
    """Return the page as a notebook in version 4 of the Jupyter format."""
    cells: list[dict[str, Any]] = []
    end = 0
    for count, block in enumerate(_CODE_BLOCK.finditer(text), 1):
        cells += _markdown_cells(text[end : block.start()])
        code = block[1].rstrip("\n")
        # "!abstain" would run in a terminal, so the output would have colors and progress bars.
        is_shell = block[0].startswith("```sh")
        source = f"%%sh\n{code}" if is_shell else _hide_last_result(code)
        cells.append(_code_cell(source, block[2], count))
        end = block.end()
    cells += _markdown_cells(text[end:])
    for i, cell in enumerate(cells):
        key = f"{i}{''.join(cell['source'])}"
        cell["id"] = hashlib.sha256(key.encode()).hexdigest()[:8]
    document = {
        "cells": cells,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(document, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def _markdown_cells(text: str) -> list[dict[str, Any]]:
    """Return a cell with the text between two code blocks, or no cell if the text is empty.

    Links are changed to be relative to the folder of the notebooks.
    """
    text = re.sub(r"\]\(([a-z-]+)\.md", r"](\1.ipynb", text.strip())
    text = text.replace("](../", "](../../docs/")
    return [{"cell_type": "markdown", "metadata": {}, "source": _lines(text)}] if text else []


def _hide_last_result(code: str) -> str:
    """Append a semicolon if the code ends with a call, so that the notebook hides its result.

    An example is the path that a call returns after it saved a figure.
    """
    last_statement = ast.parse(code).body[-1]
    is_call = isinstance(last_statement, ast.Expr) and isinstance(last_statement.value, ast.Call)
    is_print = ast.unparse(last_statement).startswith("print(")
    return f"{code};" if is_call and not is_print else code


def _code_cell(code: str, output: str | None, count: int) -> dict[str, Any]:
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


def update_tutorial(name: str) -> None:
    """Run a tutorial in a temporary folder, and write its page, figures and notebook."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        text = with_current_outputs(read_tutorial(name))
        for figure in Path().glob("*.png"):
            shutil.copyfile(figure, FIGURES / figure.name)
    (PAGES / f"{name}.md").write_text(text, encoding="utf-8")
    (NOTEBOOKS / f"{name}.ipynb").write_text(notebook_json(text), encoding="utf-8")


if __name__ == "__main__":
    os.environ.pop("COLUMNS", None)
    for name in sys.argv[1:] or tutorial_names():
        update_tutorial(name)
