"""The first screen of a comparison, and its tables for papers: no column contradicts another."""

import re
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console
from tests.plots.comparisons import METHODS, made_up, with_summary
from tests.report.pages import HOSTILE, Page

import abstain as ab
from abstain.report import comparison_html, comparison_terminal, document, render
from abstain.report.cells import Axis, Column, IntervalMark
from abstain.report.paper import mark_best_values, paper_files
from abstain.report.render.elements import axis_header, table_cell
from abstain.report.subjects.comparison.document import comparison_document
from abstain.report.subjects.comparison.metric_result import MetricResult
from abstain.report.subjects.comparison.overview import Overview, format_adjusted
from abstain.report.subjects.comparison.verdict import comparison_answer

MANY = tuple(f"method {i}" for i in range(30))


def comparison_of(n_methods=6, reference=None, spread=0.2):
    plain = made_up(MANY[:n_methods], ("augrc",), ((),), literature=False, spread=spread)
    return with_summary(plain, reference)


def overview_of(comparison):
    return Overview(MetricResult(comparison, "augrc", ()))


def printed(comparison, width=80):
    console = Console(width=width)
    with console.capture() as capture:
        console.print(comparison_terminal(comparison))
    return capture.get()


# ------------------------------------------------------------------------------------ answer
def test_the_answer_counts_what_the_table_concludes():
    comparison = comparison_of(30, "method 10", spread=0.03)
    overview = overview_of(comparison)
    n_worse = len(overview.methods_with("significantly worse"))
    first, rest = comparison_answer(comparison)
    assert n_worse > 3
    assert first.startswith(
        f"By AUGRC, “method 10” is significantly better than {n_worse} of 29 methods"
    )
    n_similar = len(overview.methods_with("not significantly different"))
    assert re.search(rf"{n_similar} methods are|(.* and )?method .* not significantly", rest)
    numbers = {number.label: number.value for number in overview.key_numbers()}
    assert numbers["Significantly worse"] == str(n_worse)
    assert numbers["Not significantly different"] == str(n_similar)


def test_the_only_difference_has_its_size_and_p_value():
    comparison = comparison_of(2, "method 1")
    text = " ".join(comparison_answer(comparison))
    row = next(row for row in comparison.summary if row.method == "method 0")
    assert ("significantly" in text) == (row.adjusted < 0.05) or "not significantly" in text
    assert re.search(r"\(AUGRC 0\.\d+ (lower|higher), adjusted p [<=] [\d.]+\)", text)


def test_no_simulated_study_stands_beside_a_test():
    text = "".join(Page(comparison_html(comparison_of(6))).text)
    assert "of 100 studies" not in text
    assert "99 of 100" not in text


# ------------------------------------------------------------------------------------- table
@pytest.mark.parametrize("reference", [None, "method 0", "method 14", "method 29"])
def test_rows_around_the_reference_are_visible(reference):
    comparison = comparison_of(30, reference)
    blocks = list(overview_of(comparison).blocks())
    (table,) = (b for b in blocks if isinstance(b, document.Table))
    names = [row.cells[0] for row in table.rows]
    collapsed = [b for b in blocks if isinstance(b, document.Collapsible)]
    hidden = [row.cells[0] for block in collapsed for row in block.blocks[0].rows]
    assert len(names) == 12
    assert sorted(names + hidden) == sorted(MANY)
    assert (reference or next(r.reference for r in comparison.summary)) in names
    for block in collapsed:
        assert block.summary.startswith(f"{len(block.blocks[0].rows)} others: ")
    assert len(list(overview_of(comparison_of(15)).blocks())) == 2


def test_a_line_excludes_0_if_the_conclusion_says_so():
    comparison = comparison_of(30, "method 10")
    for row in comparison.summary:
        if row.conclusion != "reference":
            excludes_zero = row.difference_low > 0 or row.difference_high < 0
            assert excludes_zero == row.conclusion.startswith("significantly")
    table = next(b for b in overview_of(comparison).blocks() if isinstance(b, document.Table))
    for row in table.rows:
        mark, conclusion = row.cells[4], row.cells[7]
        assert mark.kind == {"significantly better": "better", "significantly worse": "worse"}.get(
            conclusion, ""
        )


def test_a_mark_is_drawn_on_its_axis():
    axis = Axis(-1.0, 3.0, ((0.0, "0"), (2.0, "<b>")), "better", "worse")
    column = Column("Interval & difference", axis=axis)
    cell = table_cell(
        IntervalMark(1.0, 0.0, 2.0, "0 to 2", "worse"), column, is_header=False, is_stacked=False
    )
    assert '<line x1="25.0%" x2="75.0%"' in cell
    assert '<circle cx="50.0%"' in cell
    assert 'aria-label="0 to 2"' in cell
    assert "circle" not in table_cell(
        IntervalMark(np.nan, np.nan, np.nan, ""), column, is_header=False, is_stacked=False
    )
    header = axis_header(column, axis)
    assert "Interval &amp; difference" in header
    assert "&lt;b&gt;" in header
    assert axis.fraction(99.0) == 1.0


@pytest.mark.parametrize("format", ["markdown", "latex", "notebook"])
def test_text_formats_have_the_intervals(format):
    comparison = comparison_of(4, "method 0")
    text = str(render(comparison_document(comparison, document.ReportOptions()), format))
    assert "not significantly different" in text or "not different" in text
    if format == "markdown":
        assert " to +0." in text


def test_the_terminal_has_answer_table_and_notes_in_80_columns():
    lines = printed(comparison_of(30, "method 10")).splitlines()
    assert max(map(len, lines)) <= 80
    text = "\n".join(lines)
    places = [text.index(part) for part in ("is significantly", "Conclusion", "others: ", "Test: ")]
    assert places == sorted(places)


def test_hostile_names_are_escaped():
    comparison = with_summary(made_up(HOSTILE, ("augrc",), ((),), literature=False), HOSTILE[0])
    page = comparison_html(comparison)
    assert "<script>alert" not in page
    assert "<img" not in page


def test_a_p_value_is_not_rounded_to_the_level():
    assert format_adjusted(0.04996, 0.05) == "< 0.05"
    assert format_adjusted(0.0504, 0.05) == "0.050"


# ------------------------------------------------------------------------------------- paper
def test_paper_tables_of_one_metric():
    comparison = comparison_of(5, "method 0")
    files = {name: text.decode() for name, text in paper_files(comparison).items()}
    assert set(files) == {"table.tex", "table.md"}
    tex, markdown = files["table.tex"], files["table.md"]
    for part in (
        "\\begin{table}",
        "\\caption{",
        "\\label{tab:comparison}",
        "\\toprule",
        "\\underline{",
    ):
        assert tex.count(part) == 1
    assert tex.count("\\textbf{") == 1
    assert markdown.count("**") == 2
    assert "\\" not in markdown
    n_significant = sum(r.conclusion.startswith("significantly") for r in comparison.summary)
    assert markdown.split("\n\n")[0].count("†") == n_significant
    assert not re.search("click|scroll|hover|--", markdown.split("\n\n")[1], re.IGNORECASE)


def test_paper_tables_of_several_metrics_and_data_sets():
    text = paper_files(made_up(METHODS, literature=False))["table.tex"].decode()
    assert r"\multicolumn{3}{c}{AUGRC" in text
    assert r"\cmidrule(lr){2-4}\cmidrule(lr){5-7}" in text
    assert text.count("\\textbf{") >= 6


def test_paper_table_of_an_evaluation():
    rng = np.random.default_rng(0)
    loss = (rng.random(200) < 0.3).astype(float)
    confidence = {name: rng.normal(size=200) - i * loss for i, name in enumerate(["a", "p_e"])}
    evaluation = ab.evaluate(ab.Predictions(confidence=confidence, loss=loss))
    files = paper_files(evaluation)
    markdown = files["table.md"].decode()
    assert re.search(r"\| p_e \| .*\*\*0\.\d+\*\* \(0\.\d+–0\.\d+\)", markdown)
    assert "\\" not in markdown
    assert b"\\label{tab:evaluation}" in files["table.tex"]


def test_best_and_second_best_values():
    values = {"a": 0.3, "b": 0.1, "c": 0.2, "d": 0.1 + 1e-15, "e": float("nan")}
    expected = {"b": "strong", "d": "strong", "c": "second"}
    assert mark_best_values(values, lower_is_better=True) == expected
    assert mark_best_values({"a": 1.0, "b": 1.0}, lower_is_better=True) == {}


def test_a_comparison_without_values_has_no_table():
    comparison = replace(comparison_of(2), summary=())
    assert paper_files(comparison) == {}
