"""Files, functions, nesting and parameter lists stay small enough to read at once."""

import ast

from tests.architecture.source import FILES, SourceFile

MAX_FILE_LINES = 600
MAX_CODE_LINES = 60
MAX_NESTING = 3
MAX_PARAMETERS = 7  # a public function may have as many keyword-only options as it needs

BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.Match)
Function = ast.FunctionDef | ast.AsyncFunctionDef


def code_lines(function: Function, source: list[str]) -> int:
    """Lines of the function without its docstring, blank lines and comment lines."""
    skipped: set[int] = set()
    if ast.get_docstring(function, clean=False) is not None:
        docstring = function.body[0]
        skipped = set(range(docstring.lineno, docstring.end_lineno + 1))
    numbers = range(function.lineno, function.end_lineno + 1)
    lines = [source[number - 1].strip() for number in numbers if number not in skipped]
    return sum(1 for line in lines if line and not line.startswith("#"))


def nesting(node: ast.AST, depth: int = 0) -> int:
    """Depth of the deepest block; an elif is no deeper than its if, an inner function restarts."""
    deepest = depth
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function | ast.Lambda | ast.ClassDef):
            continue
        is_elif = isinstance(node, ast.If) and isinstance(child, ast.If) and node.orelse == [child]
        inner = depth + (isinstance(child, BLOCKS) and not is_elif)
        deepest = max(deepest, nesting(child, inner))
    return deepest


def parameters(function: Function) -> int:
    """Number of parameters without self and cls, and without the options of a public function."""
    arguments = function.args
    positional = [a.arg for a in arguments.posonlyargs + arguments.args]
    if positional and positional[0] in {"self", "cls"}:
        positional = positional[1:]
    public = not function.name.startswith("_") or function.name == "__init__"
    return len(positional) + (0 if public else len(arguments.kwonlyargs))


def long_functions(file: SourceFile) -> list[str]:
    source = file.text.splitlines()
    counts = [(f, code_lines(f, source)) for f in file.functions()]
    return [f"{file.at(f.lineno)} {f.name}: {n} lines" for f, n in counts if n > MAX_CODE_LINES]


def test_files_are_short():
    lengths = [(file, len(file.text.splitlines())) for file in FILES]
    assert not [f"{file.name}: {n} lines" for file, n in lengths if n > MAX_FILE_LINES]


def test_functions_are_short():
    assert not [message for file in FILES for message in long_functions(file)]


def test_nesting_is_shallow():
    found = [(file, f, nesting(f)) for file in FILES for f in file.functions()]
    assert not [f"{file.at(f.lineno)} {f.name}: {n}" for file, f, n in found if n > MAX_NESTING]


def test_parameter_lists_are_short():
    # A parameter of a command is a flag of the command line: as many as there are flags.
    files = [file for file in FILES if not file.is_command]
    found = [(file, f, parameters(f)) for file in files for f in file.functions()]
    assert not [f"{file.at(f.lineno)} {f.name}: {n}" for file, f, n in found if n > MAX_PARAMETERS]


def test_the_measures_themselves():
    text = '''
def f(a, *, b):
    """Doc

    more.
    """
    # why
    if a:
        for x in b:
            pass
    elif b:
        with a:
            while b:
                pass

    return a
'''
    function = ast.parse(text).body[0]
    assert code_lines(function, text.splitlines()) == 9
    assert nesting(function) == 3
    assert parameters(function) == 1
