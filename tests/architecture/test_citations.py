"""What is cited of the four papers exists there, and is about what it is cited for."""

import re
from dataclasses import dataclass
from importlib import import_module

import pytest
from tests.architecture.papers import FUNCTION_TOPICS, METRIC_TOPICS, PAPERS
from tests.architecture.source import ROOT

from abstain._foundation.lazy_imports import is_installed
from abstain.metrics import METRICS
from abstain_bench.studies import STUDIES

#: Whose paper a study is about: how its file and its page begin.
STUDIES_OF = {
    "Jaeger": ("backbones", "precision"),
    "Shahnazari": ("cwsa",),
    "Traub": ("requirements",),
    "Zhou": ("_", "convergence", "estimators", "finetun", "population", "posterior", "weights"),
}

#: Where "the paper" has one meaning and its author is not always named.
OF_ONE_PAPER = {
    f"{folder}/{study}": author
    for author, studies in STUDIES_OF.items()
    for study in studies
    for folder in ("docs/studies", "bench/src/abstain_bench/studies")
} | {"docs/estimators.md": "Zhou", "docs/choosing-a-metric.md": "Traub"}

_NUMBER = r"(?:[A-Z](?:\.\d+)+|S?\d+(?:\.\d+)*|[A-J])\b"
_AND = r"(?:, (?:and )?| and |[-–])"
_KINDS = {
    "equations": r"(?:[Ee]qs?\.?|[Ee]quations?)",
    "sections": r"(?:[Ss]ections?|[Aa]ppendix)",
    "tables": r"[Tt]ables?",
    "figures": r"(?:[Ff]igs?\.|[Ff]igures?)",
    "others": r"(?:[Pp]roposition|Prop\.|Listing|Definition)",
}
_CITED = re.compile(
    "|".join(
        rf"(?P<{kind}>\b{word} \(?{_NUMBER}(?:{_AND}{_NUMBER})*)" for kind, word in _KINDS.items()
    )
    # Inside one citation what a number is about may stand beside it: "eq. 18 (log), 21 (bias)".
    + rf"|(?<=\)), (?P<more>\d+(?:{_AND}\d+)*) \([a-zA-Z0-9 -]+\)"
)
#: How a citation of anyone begins.
_AUTHOR = re.compile(r"([A-Z][\w'’-]+)(?: et al\.| and [A-Z][\w-]+| & [A-Z][\w-]+)?,? \(?\d{4}")


@dataclass(frozen=True)
class Citation:
    """A number cited of a paper, and where."""

    place: str
    author: str
    kind: str
    number: str


def numbers(text):
    """The numbers of a list such as "12-13 and 18"; a range of whole ones has all in between."""
    for part in re.split(r", (?:and )?| and ", text):
        ends = re.findall(_NUMBER, part)
        if len(ends) == 2 and all(end.isdigit() for end in ends):
            yield from map(str, range(int(ends[0]), int(ends[1]) + 1))
        else:
            yield from ends


def citations(text, place, default=None):
    """Every number that a text cites of one of the papers."""
    for paragraph in re.split(r"\n\s*\n|\n- |\n\| |^(?:class|def) ", text, flags=re.MULTILINE):
        flat = re.sub(r"\s*\n\s*(?:#:? ?)?", " ", paragraph)
        # Only what the last author before it has written is meant.
        authors = [(m.start(), m[1]) for m in _AUTHOR.finditer(flat)]
        kind = ""
        for found in _CITED.finditer(flat):
            if flat[: found.start()].endswith('format("'):
                # What is put into a template is read where it ends up: in the catalogues.
                continue
            before = [name for start, name in authors if start < found.start()]
            author = before[-1] if before else default
            kind = kind if found.lastgroup == "more" else found.lastgroup
            if author in PAPERS:
                for number in numbers(found[0]):
                    yield Citation(place, author, kind, number)


def in_files():
    for folder, endings in (
        ("src", (".py", ".toml")),
        ("bench", (".py", ".toml")),
        ("docs", (".md",)),
        ("tests", (".py",)),
        ("examples", (".py", ".toml")),
        ("benchmarks", (".py", ".md")),
    ):
        for path in sorted((ROOT / folder).rglob("*")):
            place = path.relative_to(ROOT).as_posix()
            if path.suffix in endings and not place.startswith("tests/architecture"):
                default = next((p for at, p in OF_ONE_PAPER.items() if place.startswith(at)), None)
                yield from citations(path.read_text(encoding="utf-8"), place, default)


def in_catalogues():
    for metric in METRICS.values():
        yield from citations(metric.identity.source, metric.name)
    catalogues = [STUDIES]
    if is_installed("torch"):
        from abstain.training import RANK_WEIGHTS

        catalogues.append(RANK_WEIGHTS)
    for catalogue in catalogues:
        for entry in catalogue.values():
            yield from citations(entry.source, entry.name)


def exists(cited):
    known = getattr(PAPERS[cited.author], cited.kind)
    return (
        int(cited.number) if cited.kind == "equations" and cited.number.isdigit() else cited.number
    ) in known


def test_the_finder_finds():
    text = """
    .. [1] Zhou et al. (2025), eq. 12-13 and 18, https://arxiv.org/abs/2410.15361
    .. [2] Brier (1950), eq. 2

    As Traub et al. (2024, section 2.3 and table 1) say: figures 2 and 5; Jaeger et al. (2023, E.1).
    Zhou et al. (2025): eq. 3 and 8 (population), 15-17 (draws), proposition 3.6.
    """
    results = [(c.author, c.kind, c.number) for c in citations(text, "here")]
    assert results == [
        ("Zhou", "equations", "12"),
        ("Zhou", "equations", "13"),
        ("Zhou", "equations", "18"),
        ("Traub", "sections", "2.3"),
        ("Traub", "tables", "1"),
        ("Traub", "figures", "2"),
        ("Traub", "figures", "5"),
        ("Zhou", "equations", "3"),
        ("Zhou", "equations", "8"),
        ("Zhou", "equations", "15"),
        ("Zhou", "equations", "16"),
        ("Zhou", "equations", "17"),
        ("Zhou", "others", "3.6"),
    ]


def test_everything_cited_of_the_papers_exists():
    results = [*in_files(), *in_catalogues()]
    assert len(results) > 80
    assert {cited.author for cited in results} == set(PAPERS)
    assert [cited for cited in results if not exists(cited)] == []


def test_no_metric_cites_a_paper_without_the_place():
    # A paper of forty pages is no source: of these four the equation or the section is named.
    for metric in METRICS.values():
        author = _AUTHOR.search(metric.identity.source)
        if author and author[1] in PAPERS:
            assert list(citations(metric.identity.source, metric.name)), metric.name


def test_metrics_cite_equations_about_them():
    cited = {}
    for metric in METRICS.values():
        for one in citations(metric.identity.source, metric.name):
            if one.kind == "equations":
                cited.setdefault(metric.name, []).append(
                    PAPERS[one.author].equations[int(one.number)]
                )
    assert cited.keys() == METRIC_TOPICS.keys()
    for name, topics in cited.items():
        assert all(METRIC_TOPICS[name] in topic for topic in topics), name


@pytest.mark.parametrize("name", FUNCTION_TOPICS)
def test_functions_cite_equations_about_them(name):
    module, _, function = name.rpartition(".")
    text = getattr(import_module(module), function).__doc__
    references = text[text.index("References") : text.index("Examples")]
    cited = [c for c in citations(references, name) if c.kind == "equations"]
    assert cited
    for one in cited:
        topic = PAPERS[one.author].equations[int(one.number)]
        assert any(word in topic for word in FUNCTION_TOPICS[name]), (one, topic)


@pytest.mark.parametrize("author", PAPERS)
def test_the_facts_equal_those_of_the_text(author, shared):
    paper = PAPERS[author]
    text = (shared / "papers" / paper.file).read_text(encoding="utf-8")
    tags = {int(n) for n in re.findall(r"\((\d{1,2})\)(?=\$| \||\s*\n|\s*$)", text)}
    tags |= {int(n) for n in re.findall(r"\\tag\{(\d{1,2})\}", text)}
    last = max(paper.equations, default=0)
    assert set(paper.equations) == set(range(1, last + 1))
    assert last + 1 not in tags
    if author != "Shahnazari":
        assert set(paper.equations) - tags == set()
    headings = re.findall(rf"^#* *\**({_NUMBER})\.? [A-Z]", text, re.MULTILINE)
    if author != "Traub":
        assert {h for h in headings if "." in h} - paper.sections - paper.others == set()
