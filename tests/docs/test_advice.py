"""Every command line that an error, a page or a document advises is one that the program takes.

Parsed by the program's own parser, and not run. In code: what stands in backticks, or as code in a
template. In documents: that, and the lines of the shell blocks.
"""

import ast
import functools
import gc
import importlib
import re
import shlex
from pathlib import Path

import pytest
from cyclopts import App, CycloptsError
from cyclopts.exceptions import MissingArgumentError
from tests.docs.blocks import PAGES, ROOT, blocks

from abstain._foundation.catalogue import Catalogue
from abstain._foundation.lazy_imports import is_installed
from abstain.cli.app import complete_application
from abstain.cli.main import run
from abstain.errors import UnknownNameError
from abstain.tables.files import SUFFIXES

PACKAGE = ROOT / "src" / "abstain"
BENCH = ROOT / "bench" / "src" / "abstain_bench"
CODE = re.compile(r"`(abstain [a-z][^`]*)`")
IN_A_PAGE = re.compile(r"<code>(abstain [a-z][^<]*)</code>")
#: What stands for a value in a message, as for the parser.
VALUES = {"NAME": "mnist", "R": "0.05", "D": "0.05", "C": "label"}


@functools.cache
def program() -> App:
    """With all its commands, which takes seconds: for a test, not for every import of this."""
    return complete_application()


def texts(path: Path):
    """Yield the texts of a module, a value that is filled in written as X."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    parts = {id(p) for n in ast.walk(tree) if isinstance(n, ast.JoinedStr) for p in n.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(p.value if isinstance(p, ast.Constant) else "X" for p in node.values)
        elif (
            isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts
        ):
            yield node.value


@functools.cache
def advised():
    """Return each command line once, with the place that it was found at first."""
    lines = {}

    def add(line, place):
        lines.setdefault(" ".join(line.split()), place)

    for path in sorted([*PACKAGE.rglob("*.py"), *BENCH.rglob("*.py")]):
        for text in texts(path):
            for line in CODE.findall(text):
                add(line, f"{path.relative_to(ROOT)}")
    for path in sorted((PACKAGE / "report" / "templates").iterdir()):
        text = path.read_text(encoding="utf-8")
        for line in [*CODE.findall(text), *IN_A_PAGE.findall(text)]:
            add(line, f"{path.relative_to(ROOT)}")
    for path in [*PAGES, ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"]:
        # The help of a command stands there in a frame.
        text = path.read_text(encoding="utf-8").replace("│", "")
        for line in CODE.findall(text):
            add(line, path.name)
        for block in blocks(text):
            if block.language == "sh":
                for line in block.code.replace("\\\n", " ").splitlines():
                    if line.startswith("abstain "):
                        add(line, f"{path.name}, a block")
    return lines


def path_of(words: list[str]) -> tuple[list[str], list[str]]:
    """Split a command line into the names of commands and the rest."""
    here = program()
    for i, word in enumerate(words):
        names = [name for name in here if not name.startswith("-")]
        if word not in names:
            return words[:i], words[i:]
        here = here[word]
    return words, []


def problem(line: str) -> str:
    """Return why the program would not take a line; empty when it would."""
    words = [VALUES.get(word, word) for word in shlex.split(line, comments=True)[1:]]
    # A pattern or a redirection is the shell's, and "|" stands between choices.
    words = words[: next((i for i, word in enumerate(words) if word in {"<", ">"}), None)]
    path, rest = path_of(words)
    if not path:
        # A file alone is inspected and evaluated.
        a_file = Path(rest[0]).suffix in SUFFIXES if len(rest) == 1 else False
        return "" if a_file else "there is no such command"
    if rest in ([], ["--help"]):
        # A command that is named, not a line to type; and all of them have their help.
        return ""
    if path == ["study"] and not rest[0].startswith("--"):
        return "" if rest[0] in {"mnist", "..."} else "there is no such study"
    if path == ["benchmark"] and "|" in rest[0]:
        there = {name for name in program()["benchmark"] if not name.startswith("-")}
        return "" if set(rest[0].split("|")) <= there else "there is no such command"
    if rest == ["..."]:
        return ""
    if rest[-1].startswith("--") and rest[-1] != "--full":
        # An option that is named without a value.
        rest, option = rest[:-1], rest[-1]
        command = functools.reduce(App.__getitem__, path, program())
        known = {n for a in command.assemble_argument_collection() for n in a.names}
        if option not in known:
            return f"there is no option {option}"
    try:
        program().parse_args([*path, *rest], exit_on_error=False, print_error=False)
    except MissingArgumentError as error:
        # Of "`abstain compare --out DIR` leaves ..." nobody types the part.
        return "" if "--folder" not in str(error) else str(error)
    except CycloptsError as error:
        return str(error) or type(error).__name__
    return ""


def test_the_program_takes_what_is_advised():
    said = {(line, place): problem(line) for line, place in advised().items()}
    assert not {where: what for where, what in said.items() if what}


def test_what_is_advised_was_found():
    assert len(advised()) > 60
    for line in ("abstain list scores", "abstain data fetch X --folder X", "abstain data list"):
        assert line in advised()


@pytest.mark.parametrize(
    "line",
    [
        "abstain lists scores",
        "abstain list rank weights",
        "abstain list nothing",
        "abstain evaluate p.csv --nothing",
        "abstain evaluate --nothing",
        "abstain threshold p.csv --max-risk high",
        "abstain study nothing p.csv",
        "abstain data fetch mnist",
    ],
)
def test_wrong_advice_is_seen(line):
    assert problem(line)


def catalogues() -> list[Catalogue]:
    for name in ("simulate", "thresholds", "confidence"):
        importlib.import_module(f"abstain.{name}")
    for name in ("studies", "data.fetching", "runs.methods", "runs.tasks"):
        importlib.import_module(f"abstain_bench.{name}")
    if is_installed("torch"):
        importlib.import_module("abstain.training")
        importlib.import_module("abstain_bench.networks")
    results = [one for one in gc.get_objects() if type(one) is Catalogue]
    # Those of other tests have no entry, or one of their own.
    return [one for one in results if len(one) > 2]


def test_the_list_that_a_catalogue_names_has_all_its_entries(capsys):
    tried = []
    for catalogue in catalogues():
        with pytest.raises(UnknownNameError) as refused:
            catalogue["no such name"]
        [line] = CODE.findall(str(refused.value))
        assert run(shlex.split(line)[1:]) == 0, line
        printed = capsys.readouterr().out
        assert not [name for name in catalogue if name not in printed], line
        tried.append(line)
    assert len(tried) >= (13 if is_installed("torch") else 12)
