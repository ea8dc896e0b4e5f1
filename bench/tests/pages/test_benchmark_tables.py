"""The tables of a benchmark for papers, programs and terminals."""

import csv
import re
from dataclasses import replace
from functools import cache

import polars as pl
import pytest
from bench.tests.pages.made_benchmark import made_results
from rich.console import Console
from tests.report.pages import HOSTILE, steering

from abstain.errors import InputError, UnknownNameError
from abstain.evaluation.comparison import Comparison
from abstain.plots.backbones import BackboneDisplay, BackboneValue
from abstain.report import build_document, render
from abstain.report.formatting import format_value
from abstain_bench.pages import (
    benchmark_latex,
    benchmark_markdown,
    benchmark_terminal,
    write_tables,
)
from abstain_bench.pages.benchmark.grids import footnote
from abstain_bench.pages.benchmark.leaderboard import Leaderboard
from abstain_bench.pages.benchmark.methods import backbone_display


@cache
def plain():
    return made_results()


@cache
def hostile():
    return made_results(HOSTILE, own=HOSTILE[0], words=HOSTILE[4])


def _text(entry):
    """Return a value as it is read."""
    return format_value(entry.number.value, scale=entry.number.scale)


def column_of(grid, entry):
    """Return the entries of the study of an entry."""
    columns = [list(grid.column(study).values()) for study in grid.studies]
    return next(column for column in columns if any(other is entry for other in column))


def test_latex_has_every_value_once():
    table = benchmark_latex(plain())
    lines = table.splitlines()
    assert lines[0] == r"% AUGRC $\times 10^3$ $\downarrow$. Needs \usepackage{booktabs}"
    heads = next(line for line in lines if line.endswith(r"Mean rank \\"))
    assert heads.split(" & ")[1:-1] == [s.title for s in plain().headline]
    grid = Leaderboard(plain()).grid("augrc")
    for method in grid.methods:
        row = next(text for text in lines if text.startswith(f"{method.name} & "))
        cells = row.removesuffix(r" \\").split(" & ")[1:-1]
        for cell, entry in zip(cells, grid.row(method), strict=True):
            ranks = sorted({e.rank for e in column_of(grid, entry)})
            styles = {ranks[0]: r"\textbf{%s}", ranks[1]: r"\underline{%s}"}
            bold = styles.get(entry.rank, "%s") % _text(entry)
            tie = r"\textsuperscript{\dag}" if entry.relation_to_best == "not told apart" else ""
            assert cell == bold + tie
    widths = {line.count("&") for line in lines if line.endswith(r"\\") and "multicol" not in line}
    assert widths == {5}


def test_latex_with_intervals_and_shades():
    table = benchmark_latex(plain(), "failure_auroc", intervals=True, shades=True)
    grid = Leaderboard(plain()).grid("failure_auroc")
    assert table.count(r"{\scriptsize [") == len(grid.methods) * len(grid.studies)
    assert r"\cellcolor{blue!45}" in table
    assert r"\usepackage[table]{xcolor}" in table
    assert "Values are fractions" in table


def test_notes_say_what_was_tested_and_what_accuracy_means():
    grid = replace(Leaderboard(plain()).grid("augrc"), metric="accuracy")
    entries = {
        place: replace(entry, relation_to_best="untested") for place, entry in grid.entries.items()
    }
    untested = replace(grid, entries=entries, studies=grid.studies[-1:])
    notes = footnote(untested, 0.95, intervals=False, ranked=True)
    assert "Differences were not tested." in notes
    assert "the accuracy mostly reflects their number" in notes
    assert "Mean rank over the columns" in notes
    known = footnote(
        replace(untested, studies=grid.studies[:1]), 0.95, intervals=False, ranked=False
    )
    assert "accuracy" not in known


def test_latex_escapes_every_name():
    table = benchmark_latex(hostile())
    assert r"\end{tabular}" in table
    assert table.count(r"\end{tabular}") == 1
    assert r"50 \%\_\#\$\textasciitilde{}\textasciicircum{}\textbackslash{}end" in table
    assert not steering(table)


def test_markdown_has_the_same_values():
    table = benchmark_markdown(plain(), intervals=True)
    grid = Leaderboard(plain()).grid("augrc")
    for method in grid.methods:
        row = next(t for t in table.splitlines() if t.startswith(f"| {method.name} |"))
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        for cell, entry in zip(cells[1:-1], grid.row(method), strict=True):
            plain_cell = re.sub(r"\*\*|†|</?ins>", "", cell)
            assert plain_cell.startswith(_text(entry))
            assert cell.startswith("**") == (entry.relation_to_best == "best")
    counts = {t.count("|") for t in table.splitlines() if t.startswith("|")}
    assert counts == {7}
    text = re.sub("</?ins>", "", benchmark_markdown(hostile()))
    assert not re.search(r"(?<!\\)<", text)


@pytest.mark.parametrize("format", ["markdown", "latex"])
def test_the_whole_report_is_written_for_a_paper(format):
    text = render(build_document(plain(), notes=("a note",)), format)
    assert "a note" in text
    for metric in plain().comparisons:
        grid = Leaderboard(plain()).grid(metric)
        for method in grid.methods:
            assert all(_text(entry) in text for entry in grid.row(method))
    # What only a page can do is not in it.
    assert "Back to the top" not in text
    attacked = render(build_document(hostile(), title=HOSTILE[1]), format)
    assert not steering(attacked.replace("\u202f", ""))
    assert attacked.count(r"\begin{tabular}") == attacked.count(r"\end{tabular}")


def test_unknown_metrics_raise_an_error():
    for write in (benchmark_latex, benchmark_markdown):
        with pytest.raises(UnknownNameError, match="no metric 'augr'"):
            write(plain(), "augr")
        with pytest.raises(InputError, match="got list"):
            write([])


@pytest.mark.parametrize("width", [60, 100, 160])
@pytest.mark.parametrize("results", [plain, hostile])
def test_the_terminal_keeps_its_width(results, width):
    console = Console(width=width)
    with console.capture() as printed:
        console.print(benchmark_terminal(results()))
    text = printed.get()
    assert max(map(len, text.splitlines())) <= width
    assert not steering(text)
    if results is plain:
        top = Leaderboard(plain()).grid("augrc")
        assert _text(top.row(top.methods[0])[0]) in text
        assert "Excluded methods (reasons in the report): vim." in text


def test_every_table_is_a_file(tmp_path):
    left = write_tables(plain(), tmp_path / "tables")
    names = {path.name for path in left}
    assert names == {path.name for path in (tmp_path / "tables").iterdir()}
    for name in ("values", "ranks", "pairs", "chosen", "thresholds", "calibration"):
        assert {f"{name}.csv", f"{name}.parquet"} <= names
    assert {"table-augrc.tex", "table-augrc.md", "table-failure-auroc.tex"} <= names
    # Points to draw are a hundred thousand rows: no text of them.
    assert {name for name in names if name.startswith("curves")} == {"curves.parquet"}
    assert pl.read_parquet(tmp_path / "tables" / "curves.parquet").equals(plain().frame("curves"))
    with (tmp_path / "tables" / "values.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    result = plain().rows("estimates")
    assert [float(row["value"]) for row in rows] == [row["value"] for row in result]
    assert {row["study"] for row in rows} == {study.name for study in plain().studies}
    with pytest.raises(InputError, match="got dict"):
        write_tables({}, tmp_path / "no")
    assert not (tmp_path / "no").exists()


def test_each_study_is_looked_up_once_for_all_tables(tmp_path, monkeypatch):
    calls, result = [], Comparison.estimates_of

    def counted(self, metric, data):
        calls.append((metric, data))
        return result(self, metric, data)

    monkeypatch.setattr(Comparison, "estimates_of", counted)
    write_tables(plain(), tmp_path)
    assert len(calls) == len(set(calls)) > len(plain().studies)


def test_hostile_names_stay_in_their_cells(tmp_path):
    write_tables(hostile(), tmp_path)
    with (tmp_path / "values.csv").open(encoding="utf-8", newline="") as file:
        assert {row["method"] for row in csv.DictReader(file)} == set(HOSTILE)


# --------------------------------------------------------------------------------- backbones
def test_models_in_parallel():
    other = made_results(seed=4, model="vgg13")
    display = backbone_display(Leaderboard(plain()), [Leaderboard(other)])
    assert {v.model for v in display.values} == {"small-conv", "vgg13"}
    for model, results in (("small-conv", plain()), ("vgg13", other)):
        grid = Leaderboard(results).grid("aurc")
        own = [v for v in display.values if (v.model, v.metric) == (model, "AURC\u00a0↓")]
        for i, value in enumerate(own):
            assert value.baseline == grid.column(grid.studies[i])["msr"].number.value
            assert value.best_method == grid.methods_with_relation(grid.studies[i])[0]
    assert backbone_display(Leaderboard(plain()), []) is None
    # Two recipes of one network are two models.
    both = backbone_display(Leaderboard(plain()), [Leaderboard(made_results(seed=4))])
    assert {v.model for v in both.values} == {"small-conv", "small-conv (2)"}


def test_the_figure_of_models_draws_each_value():
    values = tuple(
        BackboneValue(model, data, "AURC", 0.1 * i + 0.05, 0.1 * i, "pe")
        for i, (model, data) in enumerate((m, d) for m in ("a", "b", "$x$") for d in ("iid", "fog"))
    )
    display = BackboneDisplay(values, "msr", "Backbones").plot()
    points = {line.get_xdata()[0] for line in display.ax_.get_lines() if len(line.get_xdata()) == 1}
    assert points == {v.baseline for v in values} | {v.best for v in values}
    labels = [t.get_text() for t in display.figure_.legends[0].get_texts()]
    assert labels == ["a", "b", "$x$", "msr", "best method"]
    assert display.frame().height == 6
    with pytest.raises(InputError, match="at least one value"):
        BackboneDisplay((), "msr", "x")
