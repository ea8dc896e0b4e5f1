"""The fenced blocks of Markdown pages, and what running one prints.

``python -m tests.docs.blocks`` writes the outputs in the README anew.
"""

import contextlib
import io
import os
import re
import shlex
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
#: The pages that people wrote; what is built of them lies in a folder of its own.
PAGES = sorted(
    path for pattern in ("*.md", "studies/*.md", "cli/*.md") for path in DOCS.glob(pattern)
)

_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    """A fenced block, and the `text` block right after it, which shows its output."""

    language: str
    code: str
    output: str | None


def blocks(text: str) -> list[Block]:
    result = list(_FENCE.finditer(text))
    out = []
    for block, following in zip(result, [*result, None][1:], strict=True):
        shown = (
            following is not None
            and following[1] == "text"
            and not text[block.end() : following.start()].strip()
        )
        out.append(Block(block[1], block[2], following[2] if shown else None))
    return out


def printed(text: str) -> list[str]:
    """Lines without trailing blanks, which Markdown does not show."""
    return [line.rstrip() for line in text.strip("\n").splitlines()]


def run_python(code: str, names: dict[str, Any] | None = None) -> str:
    """What it prints; with `names` it goes on from the blocks that left them."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "block", "exec"), {} if names is None else names)
    return out.getvalue()


def run_command(arguments: list[str]) -> str:
    from abstain.cli.main import run

    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert run(arguments) == 0
    return out.getvalue()


def refreshed(text: str) -> str:
    """The README with what its examples print now, run in a folder with its CSV file in it."""
    result = blocks(text)
    (csv,) = [block.code for block in result if block.language == "csv"]
    Path("predictions.csv").write_text(csv, encoding="utf-8")
    for block in result:
        if block.output is None:
            continue
        python = block.language == "python"
        out = run_python(block.code) if python else run_command(shlex.split(block.code)[1:])
        fence = f"{block.code}```\n\n```text\n"
        new = "".join(line + "\n" for line in printed(out))
        text = text.replace(fence + block.output, fence + new)
    return text


if __name__ == "__main__":
    readme = ROOT / "README.md"
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        readme.write_text(refreshed(readme.read_text(encoding="utf-8")), encoding="utf-8")
        os.chdir(ROOT)
