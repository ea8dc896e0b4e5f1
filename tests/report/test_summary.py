"""What the reports say in words, and which result they call the best."""

from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

import abstain as ab
from abstain.confidence import SCORES
from abstain.evaluation import Evaluation, Note
from abstain.evaluation.records import NOT_REQUESTED
from abstain.predictions import LOSSES
from abstain.report import html_report, terminal_table
from abstain.report.document import (
    Document,
    Glossary,
    ReportOptions,
    Section,
    Table,
    plain_text,
    select_blocks,
)
from abstain.report.formatting import format_number
from abstain.report.formatting import headline_metrics as words_headline
from abstain.report.render import grid
from abstain.report.subjects.evaluation import lookup
from abstain.report.subjects.evaluation.document import evaluation_document
from abstain.report.subjects.evaluation.lookup import ResultLookup
from abstain.report.subjects.evaluation.samples import contribution_tables
from abstain.report.subjects.evaluation.tables import all_metrics
from abstain.report.subjects.evaluation.verdict import evaluation_verdict


def said(evaluation: Evaluation) -> Document:
    return evaluation_document(evaluation, ReportOptions("A title", "file.csv"))


def section(evaluation: Evaluation, anchor: str) -> Section:
    def within(blocks):
        for block in blocks:
            if isinstance(block, Section):
                yield block
                yield from within(block.blocks)

    return next(
        s
        for s in within(select_blocks(said(evaluation).blocks(), {"detail"}))
        if s.anchor == anchor
    )


def explained(evaluation: Evaluation) -> Table:
    """The table of every number of the page."""
    return next(
        block for block in all_metrics(ResultLookup(evaluation)) if isinstance(block, Table)
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1.0, "1.000"),
        (0.99999, "1.000"),
        (0.123456, "0.1235"),
        (0.00123456, "0.001235"),
        (-0.5, "-0.5000"),
        (12345.6, "12,346"),
        (float("inf"), "inf"),
        (float("nan"), "undefined"),
    ],
)
def test_number(value, text):
    assert format_number(value) == text


def test_best_is_the_best(plain):
    found = ResultLookup(plain)
    for result in plain:
        rivals = [r.value for r in plain if r.metric == result.metric]
        marked = (result.split, result.score, result.metric.name) in found.best_keys
        if marked:
            extreme = min(rivals) if result.metric.lower_is_better else max(rivals)
            assert result.value == pytest.approx(extreme, rel=1e-11)
            assert len(set(rivals)) > 1


def test_equal_scores_have_no_best(plain):
    assert not ResultLookup(plain).best_scores((), "accuracy")


def test_verdict_takes_its_numbers_from_the_results(plain):
    sentences = " ".join(evaluation_verdict(ResultLookup(plain)))
    leader = ResultLookup(plain).best_scores((), "augrc")[0]
    assert f"“{leader}”" in sentences
    assert format_number(plain.value("augrc", score=leader)) in sentences
    assert format_number(plain.value("accuracy", score=leader)) in sentences
    assert "80%" in sentences


def test_verdict_gives_the_interval_of_the_leader(plain):
    sentences = " ".join(evaluation_verdict(ResultLookup(plain)))
    leader = ResultLookup(plain).best_scores((), "augrc")[0]
    found = next(r for r in plain if r.metric.name == "augrc" and r.score == leader)
    said = (
        f"95% interval {format_number(found.interval.low)} to {format_number(found.interval.high)})"
    )
    assert said in sentences
    assert "Run abstain compare to test whether the difference is significant" in sentences


def test_verdict_of_one_score_compares_nothing(graded):
    sentences = " ".join(evaluation_verdict(ResultLookup(graded)))
    assert "95% interval" in sentences
    assert "compare" not in sentences


def test_verdict_without_an_interval(plain):
    bare = tuple(replace(r, interval=NOT_REQUESTED) for r in plain)
    sentences = " ".join(evaluation_verdict(ResultLookup(replace(plain, results=bare))))
    assert "interval" not in sentences
    assert "nan" not in sentences


def test_verdict_of_a_graded_loss_speaks_of_loss(graded):
    assert "wrong" not in " ".join(said(graded).verdict)


def test_whether_answers_are_right_or_wrong_is_read_not_guessed(plain):
    only = tuple(r for r in plain if r.metric.name == "augrc")
    assert "of the answers are wrong" in " ".join(said(replace(plain, results=only)).verdict)
    # By its name, or by a metric that could be computed, this would pass for a 0/1 loss.
    assert "the mean loss is" in " ".join(said(replace(plain, is_binary=False)).verdict)


def test_an_own_column_is_not_the_score_of_its_name():
    p = ab.Predictions(
        prediction=[1, 0, 1, 1], labels=[1, 0, 0, 1], confidence={"msr": [0.9, 0.8, 0.7, 0.6]}
    )
    (own,) = scores_in(ab.evaluate(p))
    assert own.title == "msr"
    assert (
        own.meaning == "A confidence score in the data; a higher value means a more trusted answer."
    )
    assert not own.source
    logits = ab.Predictions(logits=np.eye(3), labels=[0, 1, 1])
    (built_in,) = scores_in(ab.evaluate(logits, scores=["msr"]))
    assert built_in.title == SCORES["msr"].title


def test_a_page_without_curves_has_the_same_numbers():
    p = ab.Predictions(
        prediction=[1, 0, 1, 1], labels=[1, 0, 0, 1], confidence={"msr": [0.9, 0.8, 0.7, 0.6]}
    )
    whole, bare = ab.evaluate(p), ab.evaluate(p, curves=False)
    assert not bare.curves
    assert repr(bare.results) == repr(whole.results)
    assert bare.notes == whole.notes
    assert said(bare).facts == said(whole).facts
    assert scores_in(bare) == scores_in(whole)
    anchors = [
        [
            s.anchor
            for s in select_blocks(said(e).blocks(), {"detail", "interactive"})
            if isinstance(s, Section)
        ]
        for e in (bare, whole)
    ]
    assert [name for name in anchors[1] if name not in anchors[0]] == [
        "curves",
        "reliability",
        "cwsa",
        "samples",
    ]
    assert "0.09375" in html_report(ab.evaluate(p, metrics=["accuracy", "augrc"], curves=False))


def test_each_cell_of_a_table_of_the_terminal_is_written_once(monkeypatch):
    # Of many scores there are thousands of cells, and most tables fit as they are.
    cells = []
    write = grid._cell_line

    def cell(table, i, *rest):
        cells.append(i)
        return write(table, i, *rest)

    monkeypatch.setattr(grid, "_cell_line", cell)
    p = ab.Predictions(
        loss=[0, 1, 0, 1], confidence={f"s{i}": [0.9, 0.8, 0.7, 0.1 * i] for i in range(5)}
    )
    out = Console(width=100)
    with out.capture() as printed:
        out.print(terminal_table(ab.evaluate(p, metrics=["augrc"])))
    assert printed.get().count("s4") == 2
    assert len(cells) == 2 * 5 * 2, "two tables of five rows and two columns"


def scores_in(evaluation):
    (words,) = section(evaluation, "scores").blocks
    assert isinstance(words, Glossary)
    return words.entries


@pytest.mark.parametrize("name", [name for name in LOSSES if name != "own"])
def test_a_loss_has_the_title_of_the_catalogue(name, plain):
    facts = dict(said(replace(plain, loss=name)).facts)
    assert facts["Loss"] == f"{LOSSES[name].title}: {LOSSES[name].meaning}"


def test_verdict_without_failures(faultless):
    assert "no answer is wrong" in " ".join(said(faultless).verdict)


def test_verdict_of_many_splits_names_the_extremes(large):
    sentences = " ".join(said(large).verdict)
    assert "on the 20 splits" in sentences
    assert "shift = s19" in sentences


def test_what_holds_for_all_rows_is_found_once(plain, monkeypatch):
    asked = []

    def headline(names):
        asked.append(names)
        return words_headline(names)

    monkeypatch.setattr(lookup, "headline_metrics", headline)
    rows = [row for group in explained(plain).groups for row in group.rows]
    assert len(rows) == len(plain.results) > 1
    assert len(asked) == 1


def test_nothing_to_report():
    nothing = Evaluation((), (), (), "zero_one")
    assert not said(nothing).verdict
    assert not explained(nothing).rows
    assert "nothing" in html_report(nothing, title="nothing")


def test_findings_are_grouped_and_warnings_come_first(plain):
    findings = (
        Note("ties", "one", (), "first"),
        Note("source", "read", (), ""),
        Note("source", "dropped", (), ""),
        Note("ties", "two", (), "second"),
        Note("saturation", "three", (), "first", "warning"),
    )
    found = said(replace(plain, notes=findings)).findings
    assert [one.text for one in found] == ["three", "one", "read", "dropped"]
    assert [one.text for one in found[1].similar] == ["two"]


def test_a_metric_that_is_not_registered_is_printed_with_its_title(plain):
    result = plain.results[0]
    identity = replace(result.metric.identity, name="mine", title="My metric")
    unregistered = replace(result, metric=replace(result.metric, identity=identity))
    page = explained(replace(plain, results=(unregistered,)))
    assert page.rows[0].cells[0].text == "My metric"


def test_tie_range_is_shown_only_when_the_digits_differ(plain):
    def moved(**ends):
        one = replace(plain.results[0], **ends)
        return explained(replace(plain, results=(one,))).rows[0].cells[2].small_text

    assert moved(tie_low=0.1, tie_high=0.1000001) == ""
    assert moved(tie_low=0.1, tie_high=0.2) == "0.1000 to 0.2000 over all orders of tied samples"
    assert moved(tie_low=float("nan")) == ""


def test_every_number_has_a_sentence(plain, faultless, graded):
    for evaluation in (plain, faultless, graded):
        sentences = [plain_text(row.cells[3]) for row in explained(evaluation).rows]
        assert all(sentence.endswith(".") for sentence in sentences)
        assert not [sentence for sentence in sentences if "{" in sentence]


def test_parts_of_classes_and_groups_are_listed() -> None:
    p = ab.Predictions(
        prediction=[0, 0, 1, 1],
        labels=[1, 0, 1, 0],
        confidence=[0.9, 0.2, 0.8, 0.95],
        group=["x<b>", "x<b>", "y", "y"],
    )
    evaluation = ab.evaluate(p)
    tables = list(contribution_tables(evaluation.curves[0], ""))
    assert [table.columns[0].label for table in tables] == ["Class", "Group"]
    assert {row.cells[0] for row in tables[1].rows} == {"x<b>", "y"}
    page = html_report(evaluation)
    assert "x&lt;b&gt;" in page
    assert "x<b>" not in page
