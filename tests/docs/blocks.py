"""Parse and run the fenced code blocks of Markdown pages.

``python -m tests.docs.blocks`` updates the outputs in the README.
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
#: Pages that are committed. Pages that the build writes are in other folders.
PAGES = sorted(
    path for pattern in ("*.md", "studies/*.md", "cli/*.md") for path in DOCS.glob(pattern)
)

_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    """A fenced code block and its output.

    The output is the `text` block that follows directly, or None if there is no such block.
    """

    language: str
    code: str
    output: str | None


def blocks(text: str) -> list[Block]:
    """Return all fenced blocks of a page with their outputs."""
    matches = list(_FENCE.finditer(text))
    result = []
    for match, following in zip(matches, [*matches, None][1:], strict=True):
        has_output = (
            following is not None
            and following[1] == "text"
            and not text[match.end() : following.start()].strip()
        )
        result.append(Block(match[1], match[2], following[2] if has_output else None))
    return result


def output_lines(text: str) -> list[str]:
    """Return the lines of an output without trailing spaces, which Markdown does not display."""
    return [line.rstrip() for line in text.strip("\n").splitlines()]


def run_python(code: str, names: dict[str, Any] | None = None) -> str:
    """Run Python code in the namespace `names`, by default a new one, and return its output."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(code, "block", "exec"), {} if names is None else names)
    return output.getvalue()


def run_command(arguments: list[str]) -> str:
    """Run a command of `abstain` in this process and return its output."""
    from abstain.cli.main import run

    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        assert run(arguments) == 0
    return output.getvalue()


def with_current_outputs(text: str) -> str:
    """Return the README with the current outputs of its examples.

    The CSV file of the README is written into the working directory.
    """
    all_blocks = blocks(text)
    (csv,) = [block.code for block in all_blocks if block.language == "csv"]
    Path("predictions.csv").write_text(csv, encoding="utf-8")
    for block in all_blocks:
        if block.output is None:
            continue
        if block.language == "python":
            output = run_python(block.code)
        else:
            output = run_command(shlex.split(block.code)[1:])
        fence = f"{block.code}```\n\n```text\n"
        current = "".join(line + "\n" for line in output_lines(output))
        text = text.replace(fence + block.output, fence + current)
    return text


if __name__ == "__main__":
    readme = ROOT / "README.md"
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        text = with_current_outputs(readme.read_text(encoding="utf-8"))
        readme.write_text(text, encoding="utf-8")
        os.chdir(ROOT)
