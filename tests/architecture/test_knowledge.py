"""No file outside `thresholds/` names a rule by a string."""

import ast
from collections.abc import Iterator

from tests.architecture.source import FILES, SourceFile

from abstain.thresholds import RULES

_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)

#: Names of rules that are also those of quantities.
COMMON = {"coverage", "cost", "risk"}


def rules_in(file: SourceFile) -> Iterator[tuple[int, str]]:
    """Find the strings of a file that name a rule, but for its docstrings."""
    docs = {
        node.body[0].value
        for node in file.walk()
        if isinstance(node, _DOCUMENTED) and node.body and isinstance(node.body[0], ast.Expr)
    }
    rules = RULES.keys() - COMMON
    for node in file.walk():
        if isinstance(node, ast.Constant) and node not in docs and node.value in rules:
            yield node.lineno, node.value


def test_rules_are_named_by_their_entries_alone():
    naming = {
        file.name: rules
        for file in FILES
        if file.top != "thresholds" and (rules := list(rules_in(file)))
    }
    assert not naming
