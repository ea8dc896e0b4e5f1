"""Names and sentences use the words of the field (CONTRIBUTING, "How we write").

Both counts are thermometers: a sentence without these words can still be unclear.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator

import pytest
from tests.architecture.source import FILES, ROOT, SourceFile

#: Words that name nothing: participles, pronouns and adverbs in the place of a noun.
VAGUE_WORDS = """
found own place known said one kept given asked shown whole told wanted whom seen rest held least most
chosen drawn apart beside beyond lacking looked taken meant sure surer alike such these those whose
thing things joined opened what here there why others
"""
VAGUE = frozenset(VAGUE_WORDS.split())

#: Names with such a word that have a meaning in the field, with the reason.
PERMITTED = {
    "held_out": "a term of the field: classes or samples that are not trained on",
    "one_hot": "a term of the field",
    "one_pass": "reads the samples once, in contrast to two passes",
    "own_loss": "the option --own-loss of released versions",
}

#: Phrases that no manual of the field uses.
PHRASES = re.compile(
    r"\b(told|said|apart|elsewhere|alike|beside|whole|of (?:its|their) own|by itself|for a look|"
    r"as to|what (?:is|it|they|was|a|the)|whom|surer|in words|is due|comes? of|stands?|"
    r"(?:is|are) (?:left|kept)|asked)\b",
    re.IGNORECASE,
)

#: Vague names of 1,000 names, and phrases of 1,000 words in docstrings or pages.
MAX_VAGUE_NAMES, MAX_PHRASES = 8, 2

#: Numbers of packages that are not rewritten yet (names, phrases). Lower an entry when a package
#: improves, and delete it when the package meets the limits.
NOT_REWRITTEN: dict[str, tuple[float, float]] = {
    "abstain.evaluation": (45, 3),
    "abstain.monitoring": (20, 4),
    "abstain.thresholds": (17, 1),
    "abstain.training": (19, 6),
    "abstain_bench.data": (48, 6),
    "abstain_bench.networks": (12, 8),
    "abstain_bench.published": (12, 10),
    "abstain_bench.results": (121, 11),
}


def names(tree: ast.Module) -> Iterator[str]:
    """Yield the names of functions, classes, parameters and assigned variables."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg) and node.arg not in {"self", "cls"}:
            yield node.arg


def is_vague(name: str) -> bool:
    return name not in PERMITTED and bool(VAGUE & set(name.strip("_").lower().split("_")))


def docstrings(tree: ast.Module) -> str:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    texts = [ast.get_docstring(node) for node in ast.walk(tree) if isinstance(node, kinds)]
    return "\n\n".join(text for text in texts if text)


def prose(page: str) -> str:
    """Return a page without code, tables and doctests."""
    page = re.sub(r"```.*?```", "", page, flags=re.DOTALL)
    page = re.sub(r"^(\||>>>|\.\.\. ).*$", "", page, flags=re.MULTILINE)
    return re.sub(r"`[^`]*`", "X", page)


def per_thousand(part: int, total: int) -> float:
    return 1000 * part / max(total, 1)


def phrase_rate(text: str) -> float:
    return per_thousand(len(PHRASES.findall(text)), len(text.split()))


def packages() -> dict[str, list[SourceFile]]:
    files = defaultdict(list)
    for file in FILES:
        files[f"{file.folder.name}.{file.top}"].append(file)
    return files


PACKAGES = packages()


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_names_and_docstrings_use_the_words_of_the_field(package):
    max_names, max_phrases = NOT_REWRITTEN.get(package, (MAX_VAGUE_NAMES, MAX_PHRASES))
    every = [name for file in PACKAGES[package] for name in names(file.tree)]
    vague = [name for name in every if is_vague(name)]
    # One short module is not judged by a rate.
    assert len(vague) <= 2 or per_thousand(len(vague), len(every)) <= max_names, vague
    text = prose("\n\n".join(docstrings(file.tree) for file in PACKAGES[package]))
    assert len(PHRASES.findall(text)) <= 2 or phrase_rate(text) <= max_phrases


def test_pages_use_the_words_of_the_field():
    docs = ROOT / "docs"
    generated = {docs / name for name in ("_build", "generated", "reference", "metrics")}
    pages = [page for page in docs.rglob("*.md") if generated.isdisjoint(page.parents)]
    text = "\n\n".join(prose(page.read_text("utf-8")) for page in [ROOT / "README.md", *pages])
    assert phrase_rate(text) <= MAX_PHRASES


def test_the_measures_themselves():
    tree = ast.parse('def found_value(place, n):\n    """Say what is told."""\n    one_pass = n\n')
    assert [name for name in names(tree) if is_vague(name)] == ["found_value", "place"]
    assert len(PHRASES.findall(docstrings(tree))) == 2
