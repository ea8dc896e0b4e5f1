"""One word for one thing: a class, or a catalogue, has a name that no other has."""

import ast
from collections import defaultdict

from tests.architecture.remaining import HOMONYMS
from tests.architecture.source import FILES


def named() -> dict[str, set[str]]:
    """The files of each public class and each catalogue, by its name."""
    found = defaultdict(set)
    for file in FILES:
        for node in file.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].add(file.name)
            elif isinstance(node, ast.AnnAssign) and "Catalogue[" in ast.unparse(node.annotation):
                found[ast.unparse(node.target)].add(file.name)
    return found


def test_no_two_things_have_one_name():
    several = {name for name, files in named().items() if len(files) > 1}
    assert not several - HOMONYMS
    assert not HOMONYMS - several, "cured: take these names out of tests/architecture/remaining.py"
