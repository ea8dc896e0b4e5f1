"""The sentences about a benchmark: what was not tested is not said to be found."""

from dataclasses import replace

from rich.console import Console
from tests.report.made_benchmark import made_results

from abstain.benchmark.protocol import Study
from abstain.benchmark.results import MethodFacts
from abstain.report.benchmark_grid import Entry, Grid, Line, grid_of
from abstain.report.benchmark_terminal import benchmark_terminal
from abstain.report.benchmark_verdict import _leads, benchmark_verdict
from abstain.report.benchmark_words import words_of


def grid(*columns, kind="sub-class"):
    """Return methods a, b, ... that stand to the best of each study as told."""
    lines = tuple(
        Line(
            MethodFacts(name, name, "arm"),
            tuple(
                Entry(float(i), "", "", own[i], i + 1.0, len(own), "") if i < len(own) else None
                for own in columns
            ),
        )
        for i, name in enumerate("abcd"[: max(map(len, columns))])
    )
    studies = tuple(Study(str(i), str(i), kind, ("iid",)) for i in range(len(columns)))
    return Grid("augrc", "AUGRC", True, "", studies, (("arm", lines),))


def untested():
    """Return results of a metric whose pairs were not tested."""
    results = made_results(metrics=("failure_auroc",))
    comparison = results.comparisons["failure_auroc"]
    return replace(results, comparisons={"failure_auroc": replace(comparison, pairs=())})


def test_several_studies_say_in_how_many_the_lead_is_more_than_chance():
    apart, alike = ("best", "worse", "worse"), ("best", "worse", "not told apart")
    some = "(the best can be told from all others in 1 of them)"
    assert _leads(grid(apart, alike)).endswith(f"“a” leads in 2 of 2 studies {some}.")
    none = "(the best can be told from all others in none of them)"
    assert none in _leads(grid(alike, alike))
    assert none in _leads(grid(("best", "best", "worse"), alike))


def test_methods_that_lead_together_are_no_others():
    found = grid(("best", "best", "not told apart", "not told apart"))
    assert "“a” and “b” lead (none of 2 others can be told from it)" in _leads(found)
    found = grid(("best", "best", "worse", "not told apart"))
    assert "(1 of 2 others cannot be told from it)" in _leads(found)


def test_what_was_not_tested_is_not_said_to_be_found():
    said = benchmark_verdict(untested())
    (leads,) = (one for one in said if one.startswith("By "))
    assert leads.count("(not tested)") == len(grid_of(untested(), "failure_auroc").studies)
    (base,) = (one for one in said if one.startswith("The baseline"))
    assert base.endswith("differences were not tested.")
    assert "told from" not in leads + base


def test_the_terminal_counts_no_ties_where_nothing_was_tested():
    console = Console(width=100, no_color=True)
    with console.capture() as shown:
        console.print(benchmark_terminal(untested()))
    table = shown.get().split("Study")[1].split("\n\n")[0]
    rows = [line.split() for line in table.splitlines()[2:] if line.strip()]
    assert rows
    assert all(row[-2] == "–" for row in rows)


def test_the_page_says_where_networks_and_answers_differ():
    said = {word["title"]: word["meaning"] for word in words_of(made_results())}
    assert "may be of different networks" in said["Settings"]
    assert "the answers of the mean probabilities" in said["Predictions"]
