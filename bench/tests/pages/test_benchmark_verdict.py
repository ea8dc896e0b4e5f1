"""The sentences about a benchmark: what was not tested is not said to be found."""

from dataclasses import replace

from bench.tests.pages.made_benchmark import made_results
from rich.console import Console

from abstain.report.document import Label, Number
from abstain_bench.pages import benchmark_terminal
from abstain_bench.pages.benchmark.document import glossary_entries
from abstain_bench.pages.benchmark.front import (
    baseline_sentences,
    best_methods_sentence,
    verdict_of,
)
from abstain_bench.pages.benchmark.leaderboard import Grid, GridEntry, Leaderboard
from abstain_bench.results import MethodFacts
from abstain_bench.runs.studies import Study


def grid(*columns, kind="sub-class"):
    """Return methods a, b, ... that stand to the best of each study as told."""
    names = "abcd"[: max(map(len, columns))]
    studies = tuple(Study(str(i), str(i), kind, ("iid",)) for i in range(len(columns)))
    entries = {
        (name, study.name): GridEntry(Number(float(i)), column[i], i + 1.0)
        for study, column in zip(studies, columns, strict=True)
        for i, name in enumerate(names[: len(column)])
    }
    methods = tuple(MethodFacts(name, name, "arm") for name in names)
    return Grid("augrc", Label("AUGRC", "lower", 1000), studies, methods, entries)


def untested():
    """Return results of a metric whose pairs were not tested."""
    results = made_results(metrics=("failure_auroc",))
    comparison = results.comparisons["failure_auroc"]
    return replace(results, comparisons={"failure_auroc": replace(comparison, pairs=())})


def test_several_studies_say_in_how_many_the_lead_is_more_than_probability():
    apart, alike = ("best", "worse", "worse"), ("best", "worse", "not told apart")
    some = "(significantly better than all others in 1 of them)"
    assert best_methods_sentence(grid(apart, alike)).endswith(
        f"“a” is best in 2 of 2 studies {some}."
    )
    none = "(significantly better than all others in none of them)"
    assert none in best_methods_sentence(grid(alike, alike))
    assert none in best_methods_sentence(grid(("best", "best", "worse"), alike))


def test_methods_that_lead_together_are_no_others():
    result = grid(("best", "best", "not told apart", "not told apart"))
    assert (
        "“a” and “b” are best (none of 2 others is significantly different)"
        in best_methods_sentence(result)
    )
    result = grid(("best", "best", "worse", "not told apart"))
    assert "(1 of 2 others are not significantly different)" in best_methods_sentence(result)


def test_a_baseline_that_is_told_from_the_best_everywhere_is_said_to_be_worse():
    def said(*columns):
        return baseline_sentences(grid(*columns), "b")[0].removeprefix("The baseline “b” is best ")

    worse, alike = ("best", "worse"), ("best", "not told apart")
    assert (
        said(worse, worse)
        == "in no study and significantly worse than the best in all tested studies."
    )
    result = said(worse, ("worse", "best"))
    assert result.endswith("and significantly worse than the best in all other tested studies.")
    assert said(worse, alike).startswith(
        "in no study and not significantly different from the best in 1 of 2"
    )
    assert said(("worse", "best"), ("worse", "best")) == "in all 2 studies."


def test_what_was_not_tested_is_not_said_to_be_found():
    verdict = verdict_of(Leaderboard(untested()))
    (leads,) = (one for one in verdict if one.startswith("By "))
    assert leads.count("(not tested)") == len(Leaderboard(untested()).grid("failure_auroc").studies)
    (base,) = (one for one in verdict if one.startswith("The baseline"))
    assert base.endswith("differences were not tested.")
    assert "significantly" not in leads + base


def test_the_terminal_counts_no_ties_where_nothing_was_tested():
    console = Console(width=100, no_color=True)
    with console.capture() as shown:
        console.print(benchmark_terminal(untested()))
    table = shown.get().split("Study")[1].split("\n\n")[0]
    rows = [line.split() for line in table.splitlines()[2:] if line.strip()]
    assert rows
    assert all(row[-2] == "–" for row in rows)


def test_the_page_says_where_networks_and_answers_differ():
    said = {word.title: word.meaning for word in glossary_entries(made_results())}
    assert "may refer to different networks" in said["Settings"]
    assert "the predictions of the mean probabilities" in said["Predictions"]
