"""Every document in every format: all blocks written, every word escaped, numbers spelled alike."""

import re

import pytest
from rich.console import Console
from tests.plots.comparisons import made_up
from tests.report.page_rules import headings_are_in_order, references_have_targets
from tests.report.pages import DISARMED, HOSTILE, Page, steering
from tests.report.test_threshold_page import hostile as hostile_rule

from abstain import Predictions, evaluate
from abstain.errors import InputError, UnknownNameError
from abstain.evaluation import compare
from abstain.plots import Series, SeriesDisplay
from abstain.report import build_document, render
from abstain.report.document import (
    FORMATS,
    NAN,
    Box,
    Choice,
    Code,
    Collapsible,
    Column,
    Controls,
    DeferredBlocks,
    Document,
    Facts,
    Figure,
    Findings,
    Glossary,
    GlossaryEntry,
    JumpMenu,
    KeyNumber,
    Label,
    Links,
    Number,
    Option,
    Prose,
    Range,
    Remark,
    Row,
    Section,
    Span,
    Switch,
    Table,
    TableRows,
    Thumbnail,
    Thumbnails,
)

NUMBERS = (
    Number(0.0123456, 0.01, 0.02, mark="best", tooltip="beware"),
    Number(0.0123456, 0.01, 0.02, scale=1000, mark="tie", shade=2),
    Number(NAN, reason="nothing was accepted"),
    Number(-0.25, number_format="signed", standard_error=0.012),
    Number(1234, number_format="count", small_text="of 5"),
    Range(0.1, 0.2),
    Range(NAN, NAN),
    None,
)


def everything(name: str) -> Document:
    """Every kind of block, with one name wherever a name can stand."""
    columns = (
        Column(Label(name, "lower", 1000, short_text=name, note=name), "name"),
        *(Column(f"{name}{i}", "number") for i in range(len(NUMBERS))),
        Column(name, "words"),
    )
    cells = ((name, Span(name, "code")), *NUMBERS, (name, Span(name, "small", tooltip=name)))
    table = Table(
        columns,
        (TableRows((Row(cells, tags={"one": "0"}), Row(cells, "group")), title=name),),
        title=name,
        caption=name,
        anchor="numbers-here",
        layout="grid",
        column_groups=((name, 2),),
        footer=name,
    )
    line = Series(name, (0.0, 1.0), (0.5, 0.25))
    figure = Figure("drawn", name, SeriesDisplay((line,), name, "x", "y"), name)
    blocks = (
        Prose(name, "lead"),
        Controls((Choice("one", name, (Option("0", name),)), Switch("loud", name)), name),
        Controls((JumpMenu(name, ((name, (("first", name),)),)),)),
        Box((table, figure), "pair", {"one": "0"}),
        Collapsible(name, (Facts(((name, name),)), Code(f"{name}\n````\n{name}"))),
        Findings((Remark("warning", name, name, (Remark("note", name, name),)),)),
        Glossary((GlossaryEntry(name, name, name, name, f"{name} https://a.example/b"),)),
        Links((("first", name),)),
    )
    pictures = Thumbnails(name, (Thumbnail("", name, name, name, name),))
    deepest = Section("deepest", name, (pictures,), level=4)
    said = Prose((Span(name, "strong"), Span(name, link="#first")))
    deeper = Section("deeper", name, (said, deepest), level=3)
    return Document(
        name,
        (name,),
        lambda: (
            DeferredBlocks(lambda: (table, *blocks), role="summary"),
            Section("first", name, (*blocks, deeper)),
        ),
        answer=(name, name),
        key_numbers=(KeyNumber(name, name, name),),
        overview=lambda: (Prose(name, role="key"),),
        facts=((name, name),),
        findings=(
            Remark("warning", name, name, (Remark("warning", name, name),)),
            Remark("note", name, name),
            Remark("note", name, is_about_reading=True),
        ),
        command=name,
        citation_advice=name,
    )


def printed(document: Document, width: int = 300) -> str:
    console = Console(width=width)
    with console.capture() as capture:
        console.print(render(document, "terminal"))
    return capture.get()


@pytest.fixture(scope="module", params=range(len(HOSTILE)))
def attack(request) -> str:
    return HOSTILE[request.param]


@pytest.mark.parametrize("format", ["markdown", "latex", "terminal"])
def test_no_name_steers_or_breaks_out(attack, format):
    document = everything(attack)
    text = printed(document) if format == "terminal" else render(document, format)
    assert not steering(text.replace("\u202f", ""))
    if format == "latex":
        assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 1
        assert not re.search(r"(?<!\\)[#^]", text.replace(r"$\times 10^3$", ""))
        assert text.count("{") - text.count(r"\{") == text.count("}") - text.count(r"\}")
    if format == "markdown":
        fenced = re.sub(r"(`{4,})\n.*?\n\1", "", text, flags=re.DOTALL)
        unquoted = re.sub(r"`[^`]*`", "", fenced.replace(r"\`", ""))
        assert not re.search(r"(?<!\\)<(?!$)", unquoted)
        assert "](http" in text
        rows = [line for line in text.splitlines() if line.startswith("| ")]
        assert (
            len(
                {
                    len(re.findall(r"(?<!\\)\|", re.sub("`[^`]*`", "", row.replace(r"\`", ""))))
                    for row in rows
                }
            )
            == 1
        )


def test_no_name_becomes_an_element(attack):
    page = Page(render(everything(attack), "html"))
    references_have_targets(page)
    headings_are_in_order(page)
    assert not page.of("img")
    assert not [a for _, a in page.elements if any(name.startswith("on") for name in a)]
    said = [value for _, attributes in page.elements for value in attributes.values()]
    assert not steering("".join([*page.text, *said]))
    shown = DISARMED if attack == HOSTILE[-1] else attack
    assert "".join(page.text).count(shown) > 30


@pytest.mark.parametrize("format", ["html", "markdown", "latex", "terminal"])
def test_a_warning_names_its_place_everywhere(format):
    found = (Remark("warning", "Only few failures.", "cifar, msr"), Remark("note", "Rounded."))
    document = Document("d", ("d",), tuple, findings=found)
    text = printed(document) if format == "terminal" else render(document, format)
    said = " ".join("".join(Page(text).text).split()) if format == "html" else text
    assert said.count("cifar, msr") == 1
    assert said.index("cifar, msr") < said.index("Rounded.")
    assert said.index("Only few failures.") < said.index("Rounded.")


def test_a_number_is_spelled_alike_everywhere():
    document = everything("name")
    page = re.sub(r"[ \n]+", " ", "".join(Page(render(document, "html")).text))
    texts = [page, printed(document), render(document, "markdown"), render(document, "latex")]
    for text in texts:
        for said in ("0.01235", "12.35", "undef", "0.2500", "0.012", "1,234"):
            assert said in text, said
    assert "0.01000 to 0.02000" in page
    for text in texts[1:]:
        assert "[0.01000, 0.02000]" in text
        assert "[10.00, 20.00]" in text
    assert "**0.01235** [0.01000, 0.02000]" in texts[2]
    assert "12.35†" in texts[2]
    assert r"\textbf{0.01235}" in texts[3]
    assert r"12.35\textsuperscript{\dag}" in texts[3]
    assert "12.35 ≈" in texts[1]


@pytest.mark.parametrize("format", FORMATS)
def test_every_subject_has_every_format(hostile, plain, format):
    compared = made_up(HOSTILE[:3], data=tuple(((HOSTILE[0], v),) for v in HOSTILE[:2]), draws=40)
    for result in (plain, hostile, hostile_rule(), compared):
        has_format(result, format)


def has_format(result, format):
    """Assert that a result is written in one format, with its title and notes, and escaped."""
    document = build_document(result, title="A title", source="file", notes=("a note",))
    text = printed(document) if format == "terminal" else render(document, format)
    assert not steering(text) or format in {"html", "notebook"}
    if format not in {"terminal", "notebook"}:
        assert "A title" in text
        assert "Warning" in text or "Note" in text
        assert "a note" in text
        assert "abstain" in text


@pytest.mark.parametrize("format", ["html", "markdown", "latex"])
def test_a_fact_that_is_not_known_is_not_said(format):
    found = build_document(compare(Predictions(confidence={"a": [3, 2], "b": [2, 3]}, loss=[0, 1])))
    assert "Source" not in dict(found.facts)
    assert "Source" not in render(found, format)
    evaluated = evaluate(Predictions(confidence=[3, 2], loss=[0, 1]))
    assert "Source" not in dict(build_document(evaluated).facts)
    assert dict(build_document(evaluated, source="here.csv").facts)["Source"] == "here.csv"


def test_only_known_formats_and_results_are_written(plain):
    with pytest.raises(UnknownNameError, match="`format` must be one of html"):
        render(build_document(plain), "htm")
    with pytest.raises(InputError, match=r"must be one of .*Evaluation.*; got dict"):
        build_document({})
