"""What the page of a benchmark says of thresholds, seeds and words, and what it leaves undrawn."""

import html
import math
import re
from dataclasses import replace
from functools import cache

from bench.tests.pages.made_benchmark import METRICS, NAMES, made_results
from tests.report import page_rules as rules
from tests.report.pages import Page

from abstain.plots.formatting import capitalize_first
from abstain.report.document import Label
from abstain_bench.pages.benchmark.document import facts_of
from abstain_bench.pages.benchmark.grids import value_explanation
from abstain_bench.pages.benchmark.leaderboard import NEW_CLASS_KINDS, Leaderboard, kind_title
from abstain_bench.pages.benchmark.output import benchmark_html
from abstain_bench.pages.benchmark.studies import severity_display, study_sentence
from abstain_bench.runs.studies import ERROR_RULES


@cache
def plain():
    return made_results()


@cache
def plain_text():
    other = made_results(seed=5, model="vgg13", metrics=("aurc",))
    return benchmark_html(plain(), other_models=[other])


def test_growing_corruption():
    display = severity_display(Leaderboard(plain()))
    rows = {(r.study, r.method): r for r in plain().thresholds}
    line = next(s for s in display.series if s.name == "msr" and s.panel != "Coverage")
    assert line.x == (0.0, 1.0, 2.0)
    assert line.y == tuple(rows[s, "msr"].excess for s in ("iid", "corruption-1", "corruption-2"))
    none = replace(plain(), thresholds=())
    assert severity_display(Leaderboard(none)) is None


def _severities(results):
    """Return what the page says of growing corruption, and whether it draws that."""
    text = benchmark_html(replace(results, curves={}, extremes=()))
    own = text[text.index('id="severities"') : text.index('id="new-classes"')]
    lead = re.search(r'<p class="lead">(.*?)</p>', own).group(1)
    return html.unescape(lead), "<svg" in own


def _unattainable(results, names):
    def gone(row):
        stages = tuple(replace(stage, share=0.0) for stage in row.checks[0].stages)
        changes = {"verdict": "unattainable", "excess": math.nan, "stages": stages}
        return replace(row, checks=tuple(replace(check, **changes) for check in row.checks))

    return replace(
        results,
        thresholds=tuple(gone(row) if row.method in names else row for row in results.thresholds),
    )


def test_a_page_says_why_a_line_or_the_figure_is_missing():
    first, *others = Leaderboard(plain()).order_under_corruption
    lead, figure = _severities(_unattainable(plain(), [first]))
    assert figure
    assert f"“{first}” has no threshold for this target." in lead
    assert all(f"“{name}”" in lead for name in others)
    assert first not in severity_display(Leaderboard(_unattainable(plain(), [first]))).names

    lead, figure = _severities(_unattainable(plain(), NAMES))
    assert not figure
    assert "For no method do the validation data support a threshold for a share of" in lead

    lead, figure = _severities(replace(plain(), thresholds=()))
    assert not figure
    assert "No thresholds were set" in lead


def test_one_severity_beside_clean_data_is_drawn_and_said():
    one = replace(plain(), studies=tuple(s for s in plain().studies if s.severity != 2))
    lead, figure = _severities(one)
    assert figure
    assert "Only severity 1 was tested." in lead
    alone = replace(one, studies=tuple(s for s in one.studies if s.kind != "iid"))
    lead, figure = _severities(alone)
    assert not figure
    assert "Only one severity was evaluated" in lead


def test_the_page_says_which_column_is_the_mean_and_has_the_pooled_one():
    text = benchmark_html(replace(plain(), curves={}, extremes=()))
    own = html.unescape(text[text.index('id="severities"') : text.index('id="new-classes"')])
    heads = re.findall(r"<th[^>]*>(.*?)</th>", own, re.DOTALL)
    assert any("corruptions, pooled" in head for head in heads)
    assert any("severity 2" in head for head in heads)
    assert "the mean over the severities, as in FD-Shifts" in own


def test_severities_without_their_mean_are_drawn():
    own = [s for s in plain().studies if s.kind != "corruption" or s.severity]
    display = severity_display(Leaderboard(replace(plain(), studies=tuple(own))))
    assert display.series[0].x == (0.0, 1.0, 2.0)


def test_a_method_with_one_seed_keeps_its_rows():
    rows = [row for row in plain().thresholds if row.study == "iid"]
    seeds = [replace(row, run=run) for row in rows for run in ("1", "2")]
    single = [replace(row, run="1") for row in rows[:1]]
    kept = [*single, *rows[1:], *(r for r in seeds if r.method != rows[0].method)]
    result = Leaderboard(replace(plain(), thresholds=tuple(kept))).thresholds
    assert result == [*single, *rows[1:]]


def test_every_kind_of_study_and_metric_is_explained():
    text = html.unescape(plain_text())
    glossary = text[text.index('id="glossary"') :]
    for study in plain().headline:
        assert f"<dt>{kind_title(study.kind)}</dt>" in glossary
    assert kind_title("far-new-class") not in glossary
    for metric in METRICS:
        assert value_explanation(metric, Leaderboard(plain()).grid(metric).label) in text
    assert value_explanation("aurc", Label("AURC", "lower", 1000)).endswith("; lower is better.")
    assert value_explanation("mine", Label("mine")) == ""


def test_what_counts_as_an_error_is_said_where_there_are_new_classes_only():
    board = Leaderboard(plain())
    for study in plain().studies:
        messages = [
            name
            for name, rule in ERROR_RULES.items()
            if capitalize_first(rule) in study_sentence(board, study)
        ]
        assert messages == ([study.errors] if study.kind in NEW_CLASS_KINDS else []), study.name
    assert {study.kind in NEW_CLASS_KINDS for study in plain().studies} == {True, False}


def test_the_better_the_rank_in_a_column_the_stronger_the_color():
    """Four methods stand at 0, 1/3, 2/3 and 1 of the ranks of a column."""
    board = Leaderboard(plain())
    grid = board.grid("augrc")
    for study in grid.studies:
        entries = grid.column(study).values()
        assert {e.rank: e.number.shade for e in entries} == {1: 0, 2: 3, 3: 4, 4: None}


def test_a_lone_seed_is_counted():
    one = replace(plain(), facts={**plain().facts, "seeds": [0]})
    assert ("Seeds", "1 (0)") in facts_of(one)


def test_means_are_called_so_only_where_they_are():
    assert "Fractions, means over the seeds." in plain_text()
    single = tuple(replace(row, run="1") for row in plain().thresholds)
    fits = tuple(replace(row, run="1") for row in plain().calibration)
    tried = tuple(replace(setting, seeds=1) for setting in plain().chosen)
    text = benchmark_html(
        replace(plain(), thresholds=single, calibration=fits, chosen=tried, curves={})
    )
    assert "over the seeds" not in text


def test_benchmarks_with_nothing_in_common_are_said_to_have_nothing():
    other = made_results(("pe", "mine"), own="other", metrics=("augrc",))
    own = made_results(NAMES[:2], metrics=("augrc",))
    text = benchmark_html(replace(own, curves={}, thresholds=()), other_models=[other])
    assert "These benchmarks have no common study and metric" in text
    rules.references_have_targets(Page(text))
