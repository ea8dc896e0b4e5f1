"""Terminal, Markdown and LaTeX tables."""

import re
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console
from tests.report.conftest import predictions
from tests.report.pages import DISARMED, HOSTILE, steering

from abstain.errors import InputError, UnknownNameError
from abstain.evaluation import evaluate
from abstain.evaluation.records import NOT_REQUESTED
from abstain.report import html_report, latex_table, markdown_table, terminal_table
from abstain.report.formatting import format_number
from abstain.report.render.latex import escape as latex_escape
from abstain.report.render.markdown import escape as markdown_escape
from abstain.report.subjects.evaluation.lookup import ResultLookup


def printed(renderable, width=100):
    console = Console(width=width, record=True, file=None, quiet=False, force_terminal=False)
    with console.capture() as capture:
        console.print(renderable)
    return capture.get()


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("name", ["plain", "hostile", "large", "faultless", "graded"])
def test_terminal_table_fits_100_columns(name, full, request):
    text = printed(terminal_table(request.getfixturevalue(name), full=full))
    assert max(map(len, text.splitlines())) <= 100


def test_terminal_table_cuts_no_number(large, plain):
    for evaluation in (large, plain):
        text = printed(terminal_table(evaluation))
        assert "…" not in text
        lookup = ResultLookup(evaluation)
        accuracy = lookup.value(lookup.best.split, lookup.best.score, "accuracy")
        assert f"{100 * accuracy:.1f}%" in text or f"{100 * accuracy:.0f}%" in text


def test_terminal_table_reads_no_markup(hostile):
    text = printed(terminal_table(hostile), width=400)
    assert "[bold]rich[/bold]" in text


@pytest.mark.parametrize("full", [False, True])
def test_no_attack_steers_the_terminal(hostile, full):
    text = printed(terminal_table(hostile, full=full), width=400)
    assert DISARMED in text
    assert not steering(text)


def test_no_attack_steers_a_table(hostile):
    assert not steering(markdown_table(hostile))
    assert not steering(latex_table(hostile))


def test_footnotes_say_only_what_holds_of_ties(plain):
    for table in (markdown_table(plain), latex_table(plain)):
        assert "averaged over all orders" not in table
        assert "accepted or rejected together" in table


def test_full_terminal_table_has_every_metric(plain):
    text = printed(terminal_table(plain, full=True))
    for result in plain:
        assert result.reason or format_number(result.value) in text


def test_markdown_cells_line_up(hostile):
    for line in markdown_table(hostile).splitlines():
        if line.startswith("|"):
            assert len(re.findall(r"(?<!\\)\|", line)) == len(HOSTILE) + 2


def test_markdown_bold_is_the_best(plain):
    line = next(x for x in markdown_table(plain, metrics=["augrc"]).splitlines() if "AUGRC" in x)
    best = min(r.value for r in plain if r.metric.name == "augrc")
    assert f"**{format_number(best)}**" in line


def test_markdown_escapes_html():
    assert "<img" not in markdown_escape("<img src=x>").replace("\\<", "")
    assert markdown_escape("a\nb") == "a b"


def test_latex_rows_line_up(hostile):
    for line in latex_table(hostile).splitlines():
        if line.startswith("AUGRC"):
            assert len(re.findall(r"(?<!\\)&", line)) == len(HOSTILE)


def test_latex_escapes_commands():
    assert latex_escape(r"\end{x} 5% a_b #1 $x$ ~^&") == (
        r"\textbackslash{}end\{x\} 5\% a\_b \#1 \$x\$ \textasciitilde{}\textasciicircum{}\&"
    )


def test_latex_quotes_need_no_font_encoding():
    assert latex_escape('a "b"') == "a ''b''"


def test_latex_environments_balance(hostile):
    text = latex_table(hostile)
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 3


def test_latex_thousand_says_so(plain):
    text = latex_table(plain, metrics=["augrc", "accuracy"], times_1000=True)
    value = plain.value("augrc", score="first")
    assert format_number(1000 * value) in text
    assert r"AUGRC $\times 10^3$" in text
    assert r"Accuracy $\uparrow$" in text


def test_markdown_intervals(plain):
    text = markdown_table(plain, metrics=["augrc", "ece"], intervals=True)
    best = min((r for r in plain if r.metric.name == "augrc"), key=lambda r: r.value)
    assert (
        f"**{format_number(best.value)}** [{format_number(best.interval.low)}, {format_number(best.interval.high)}] |"
        in text
    )
    worse = max(r.value for r in plain if r.metric.name == "ece")
    assert f" {format_number(worse)} |" in text  # it has none, and nothing stands for it
    assert "In brackets: 95% confidence intervals. Methods: influence function, logit scale" in text
    assert "No interval: ECE has no analytic interval" in text
    assert "In brackets" not in markdown_table(plain)


def test_latex_intervals(plain):
    text = latex_table(plain, metrics=["augrc", "accuracy"], times_1000=True, intervals=True)
    found = next(r for r in plain if r.metric.name == "augrc" and r.score == "first")
    low, high = format_number(1000 * found.interval.low), format_number(1000 * found.interval.high)
    assert rf"{{\scriptsize [{low}, {high}]}}" in text
    assert r"95\% confidence intervals" in text
    assert "Wilson (Accuracy)" in text
    assert "scriptsize" not in latex_table(plain)


def test_tables_of_results_without_intervals_say_so(plain):
    bare = tuple(replace(r, interval=NOT_REQUESTED) for r in plain)
    for write in (markdown_table, latex_table):
        text = write(replace(plain, results=bare), metrics=["augrc"], intervals=True)
        assert "No number has an interval." in text
        assert "nan" not in text


def test_cautions_of_intervals_are_printed(plain):
    few = tuple(replace(r, interval=replace(r.interval, note="only 3 failures")) for r in plain)
    text = markdown_table(replace(plain, results=few), metrics=["augrc"], intervals=True)
    assert "Notes on the intervals: only 3 failures." in text


def test_interval_cells_line_up(hostile):
    for line in markdown_table(hostile, intervals=True).splitlines():
        if line.startswith("|"):
            assert len(re.findall(r"(?<!\\)\|", line)) == len(HOSTILE) + 2


def test_unknown_metric_is_refused(plain):
    with pytest.raises(UnknownNameError, match="augrc"):
        markdown_table(plain, metrics=["augcr"])


@pytest.mark.parametrize("write", [latex_table, markdown_table, terminal_table, html_report])
def test_only_an_evaluation_is_written(write):
    with pytest.raises(InputError, match="what `evaluate` returned; got dict"):
        write({"augrc": 0.1})


@pytest.mark.parametrize("width", [40, 60])
def test_a_narrow_terminal_cuts_no_number(plain, width):
    text = printed(terminal_table(plain), width)
    assert "…" not in text
    assert "Adj. p" in text
    assert max(map(len, text.splitlines())) <= width


def test_requested_metrics_are_printed_with_their_intervals():
    p = predictions(np.random.default_rng(5), 200, ["a", "b"])
    options = {"interval": "bootstrap", "bootstrap": 50}
    text = printed(terminal_table(evaluate(p, metrics=["accuracy", "ece"], **options)))
    assert "Acc. ↑" in text
    assert "ECE ↓" in text
    ece = next(iter(evaluate(p, metrics=["ece"], **options)))
    assert f"{ece.value:.2f}" in text
