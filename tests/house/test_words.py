"""One word for one thing: a class, or a catalogue, has a name that no other has."""

import ast
from collections import defaultdict
from pathlib import Path

from tests.house.remaining import HOMONYMS, NO_NOUNS
from tests.house.source import FILES

#: Words in "ing" and "ed" that the field has for a thing, or that say of which kind all is that a
#: module holds: `thresholds/certified.py` has the certified ones.
NOUNS = {
    "binning",
    "finetuning",
    "listing",
    "monitoring",
    "ranking",
    "resampling",
    "streaming",
    "training",
}
KINDS = {
    "balanced", "certified", "combined", "compiled", "embedded", "generalized", "missing", "named",
    "paired", "published", "ranked", "tied", "tuned", "weighted",
}  # fmt: skip


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
    assert not HOMONYMS - several, "cured: take these names out of tests/house/remaining.py"


def test_modules_are_named_by_what_is_inside():
    words = {file.name: Path(file.name).with_suffix("").parts for file in FILES}
    doings = {
        name
        for name, parts in words.items()
        for part in parts
        if part.endswith(("ing", "ed"))
        and part.rpartition("_")[2] not in NOUNS | KINDS
        # What annotations are made of has the name of Python's own module.
        and part != "typing"
    }
    assert not doings - NO_NOUNS
    assert not NO_NOUNS - doings, "cured: take these modules out of tests/house/remaining.py"
