"""Every command line in an error message, a report or a document is valid.

The tests parse the command lines with the parser of the program, but do not run them. In code, a
command line is in backticks, or in a `<code>` element of a template. In documents, command lines
are in backticks or in shell blocks.
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
HTML_CODE = re.compile(r"<code>(abstain [a-z][^<]*)</code>")
#: Values for the placeholders in messages.
PLACEHOLDER_VALUES = {"NAME": "mnist", "R": "0.05", "D": "0.05", "C": "label"}


@functools.cache
def application() -> App:
    """Return the program with all commands. Creating it takes seconds, so it is cached."""
    return complete_application()


def string_literals(path: Path):
    """Yield the strings of a module; an X replaces each expression of an f-string."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    f_strings = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    for f_string in f_strings:
        yield "".join(p.value if isinstance(p, ast.Constant) else "X" for p in f_string.values)
    parts = {id(part) for f_string in f_strings for part in f_string.values}
    for node in ast.walk(tree):
        is_string = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_string and id(node) not in parts:
            yield node.value


@functools.cache
def command_lines():
    """Return the file in which each command line occurs first, by command line."""
    lines = {}

    def add(line, location):
        lines.setdefault(" ".join(line.split()), location)

    for path in sorted([*PACKAGE.rglob("*.py"), *BENCH.rglob("*.py")]):
        for text in string_literals(path):
            for line in CODE.findall(text):
                add(line, f"{path.relative_to(ROOT)}")
    for path in sorted((PACKAGE / "report" / "templates").iterdir()):
        text = path.read_text(encoding="utf-8")
        for line in [*CODE.findall(text), *HTML_CODE.findall(text)]:
            add(line, f"{path.relative_to(ROOT)}")
    for path in [*PAGES, ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"]:
        # Remove the frame around the help of a command.
        text = path.read_text(encoding="utf-8").replace("│", "")
        for line in CODE.findall(text):
            add(line, path.name)
        for block in blocks(text):
            if block.language == "sh":
                for line in block.code.replace("\\\n", " ").splitlines():
                    if line.startswith("abstain "):
                        add(line, f"{path.name}, shell block")
    return lines


def subcommands(app: App) -> set[str]:
    return {name for name in app if not name.startswith("-")}


def split_command(words: list[str]) -> tuple[list[str], list[str]]:
    """Split the words of a command line into the names of commands and the arguments."""
    app = application()
    for i, word in enumerate(words):
        if word not in subcommands(app):
            return words[:i], words[i:]
        app = app[word]
    return words, []


def problem(line: str) -> str:
    """Return the reason why a command line is invalid, or an empty text if it is valid."""
    words = [PLACEHOLDER_VALUES.get(word, word) for word in shlex.split(line, comments=True)[1:]]
    # The shell interprets a redirection and the words after it.
    words = words[: next((i for i, word in enumerate(words) if word in {"<", ">"}), None)]
    command, arguments = split_command(words)
    if not command:
        # `abstain FILE` inspects and evaluates a file.
        is_file = len(arguments) == 1 and Path(arguments[0]).suffix in SUFFIXES
        return "" if is_file else "there is no such command"
    if arguments in ([], ["--help"]):
        # The text mentions the command without its arguments, or its help.
        return ""
    if command == ["study"] and not arguments[0].startswith("--"):
        return "" if arguments[0] in {"mnist", "..."} else "there is no such study"
    if command == ["benchmark"] and "|" in arguments[0]:
        # "|" separates alternative commands.
        names = set(arguments[0].split("|"))
        is_valid = names <= subcommands(application()["benchmark"])
        return "" if is_valid else "there is no such command"
    if arguments == ["..."]:
        return ""
    if arguments[-1].startswith("--") and arguments[-1] != "--full":
        # The text mentions an option without its value.
        arguments, option = arguments[:-1], arguments[-1]
        app = functools.reduce(App.__getitem__, command, application())
        names = {name for a in app.assemble_argument_collection() for name in a.names}
        if option not in names:
            return f"there is no option {option}"
    try:
        application().parse_args([*command, *arguments], exit_on_error=False, print_error=False)
    except MissingArgumentError as error:
        # Texts such as "`abstain compare --out DIR` writes ..." omit other required arguments.
        return "" if "--folder" not in str(error) else str(error)
    except CycloptsError as error:
        return str(error) or type(error).__name__
    return ""


def test_every_command_line_is_valid():
    problems = {(line, file): problem(line) for line, file in command_lines().items()}
    assert not {location: reason for location, reason in problems.items() if reason}


def test_command_lines_are_found():
    assert len(command_lines()) > 60
    for line in ("abstain list scores", "abstain data fetch X --folder X", "abstain data list"):
        assert line in command_lines()


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
def test_an_invalid_command_line_is_detected(line):
    assert problem(line)


def catalogues() -> list[Catalogue]:
    """Import all modules with catalogues, and return the catalogues."""
    for name in ("simulate", "thresholds", "confidence"):
        importlib.import_module(f"abstain.{name}")
    for name in ("studies", "data.fetching", "runs.methods", "runs.tasks"):
        importlib.import_module(f"abstain_bench.{name}")
    if is_installed("torch"):
        importlib.import_module("abstain.training")
        importlib.import_module("abstain_bench.networks")
    all_catalogues = [item for item in gc.get_objects() if type(item) is Catalogue]
    # Catalogues of other tests have at most two entries.
    return [catalogue for catalogue in all_catalogues if len(catalogue) > 2]


def test_the_command_in_the_error_of_a_catalogue_lists_all_entries(capsys):
    lines = []
    for catalogue in catalogues():
        with pytest.raises(UnknownNameError) as error:
            catalogue["no such name"]
        [line] = CODE.findall(str(error.value))
        assert run(shlex.split(line)[1:]) == 0, line
        output = capsys.readouterr().out
        assert not [name for name in catalogue if name not in output], line
        lines.append(line)
    assert len(lines) >= (13 if is_installed("torch") else 12)
