"""Limits of files and functions; ruff limits complexity, nesting and positional parameters."""

import ast

from tests.architecture.source import FILES

MAX_FILE_LINES = 600
MAX_CODE_LINES = 60

#: Functions that may be longer, as "file:function", each with the reason.
EXCEPTIONS: dict[str, str] = {}


def code_lines(function: ast.FunctionDef | ast.AsyncFunctionDef, source: list[str]) -> int:
    """Count the lines of a function without its docstring, blank lines and comment lines."""
    first = function.body[0]
    has_docstring = ast.get_docstring(function, clean=False) is not None
    docstring = range(first.lineno, first.end_lineno + 1) if has_docstring else ()
    numbers = range(function.lineno, function.end_lineno + 1)
    lines = [source[number - 1].strip() for number in numbers if number not in docstring]
    return sum(1 for line in lines if line and not line.startswith("#"))


def test_files_and_functions_are_short():
    too_long = {}
    for file in FILES:
        source = file.text.splitlines()
        if len(source) > MAX_FILE_LINES:
            too_long[file.name] = len(source)
        for function in file.functions():
            n_lines = code_lines(function, source)
            if n_lines > MAX_CODE_LINES:
                too_long[f"{file.name}:{function.name}"] = n_lines
    assert too_long.keys() == EXCEPTIONS.keys(), too_long


def test_docstrings_comments_and_blank_lines_do_not_count():
    text = 'def f(a):\n    """Doc.\n\n    More.\n    """\n    # why\n    a += 1\n\n    return a\n'
    assert code_lines(ast.parse(text).body[0], text.splitlines()) == 3
