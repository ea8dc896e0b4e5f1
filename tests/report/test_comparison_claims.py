"""What a comparison claims in words: no more than its numbers carry, on page and terminal alike."""

import re
from dataclasses import replace
from functools import partial

import pytest
from rich.console import Console
from tests.plots.comparisons import DATA, METHODS, critical, made_up
from tests.report.pages import Page

from abstain.evaluation.comparison import AggregateRow, NonInferiorityRow, Profile
from abstain.plots.formatting import NOT_ADJUSTED, SIMULATION_ASSUMPTION
from abstain.report import comparison_html, comparison_terminal
from abstain.report.subjects.comparison.verdict import comparison_answer, non_inferiority_line

#: Each draws a page of many figures.
pytestmark = pytest.mark.slow


def printed(renderable, width=300):
    console = Console(width=width)
    with console.capture() as capture:
        console.print(renderable)
    return capture.get()


def words(comparison):
    return " ".join("".join(Page(comparison_html(comparison)).text).split())


@pytest.fixture(scope="module")
def plain():
    return made_up()


def of_runs(runs=5):
    """One data set with several runs."""
    one = made_up(METHODS[:3], ("augrc",), ((),))
    profiles = tuple(
        Profile("augrc", m, (0.01, 0.02), (0.4, 1.0), (0.2, 0.8), (0.6, 1.0)) for m in one.methods
    )
    means = tuple(AggregateRow("augrc", m, 0.04, 0.03, 0.05, runs) for m in one.methods)
    return replace(
        one,
        runs=tuple(map(str, range(runs))),
        estimates=tuple(replace(e, run="mean") for e in one.estimates),
        mean_ranks=(critical(3, runs, names=one.methods),),
        aggregates=means,
        profiles=profiles,
    )


# -------------------------------------------------------------------------- chances of ranks
def test_chances_suppose_that_the_estimates_are_true():
    text = words(made_up(METHODS[:3], ("augrc", "aurc"), ((),)))
    assert "if the estimates were the true values" in text
    assert "not adjusted for multiple comparisons; p-values are" in text
    assert "of 100 studies" not in text


def test_every_table_of_chances_says_so(plain):
    captions = re.findall("<caption>(.*?)</caption>", comparison_html(plain))
    chances = [c for c in captions if "a method has each rank" in c]
    assert len(chances) == len(plain.metrics) * (len(plain.data) + 1)
    assert all(SIMULATION_ASSUMPTION in c and NOT_ADJUSTED in c for c in chances)


# ------------------------------------------------------------------------------ over all data
def test_tests_across_data_sets_say_what_they_suppose(plain):
    for text in (words(plain), printed(comparison_terminal(plain))):
        assert "tests assume independent data sets" in text
        assert "Corrupted copies of the same images are not independent" in text
        assert "Use the pairwise tests of a data set for differences on this data set" in text
    assert "Results over all data sets" in words(plain)
    alone = made_up(METHODS[:3], ("augrc",), ((),))
    said = words(alone) + printed(comparison_terminal(alone))
    assert not re.search(r"assumes? independent", said)


def test_runs_of_one_data_set_are_called_runs():
    comparison = of_runs()
    text = words(comparison)
    assert "Results over all runs" in text
    assert "Mean ranks by AUGRC over 5 runs" in text
    assert "Share of runs at least as good" in text
    assert "tests assume independent runs" in text
    assert "all data sets" not in text.lower()
    assert "tests assume independent runs" in printed(comparison_terminal(comparison))


@pytest.mark.parametrize(("runs", "few"), [(5, True), (10, False)])
def test_few_runs_behind_an_interquartile_mean_are_counted(runs, few):
    text = words(of_runs(runs))
    assert f"Interquartile mean over {runs} runs; AUGRC." in text
    caution = f"The intervals are based on only {runs} runs and may have less than their nominal"
    assert (caution in text) == few


def test_data_sets_without_a_leader_are_accounted_for(plain):
    first = DATA[0]
    tied = tuple(
        replace(e, value=0.5) if (e.metric, e.data) == ("augrc", first) else e
        for e in plain.estimates
    )
    sentence = comparison_answer(replace(plain, estimates=tied))[0]
    assert "no method on 1" in sentence
    counts = re.search(r"on (\d+) of 3 data sets(.*?)\.", sentence)
    others = [int(n) for n in re.findall(r"on (\d+)", counts[2])]
    assert int(counts[1]) + sum(others) == 3
    assert "no method" not in comparison_answer(plain)[0]


def test_notes_start_sentences_with_a_capital():
    comparison = made_up()
    noted = tuple(
        replace(p, note="with 3 data sets this test finds nothing") if p.valid else p
        for p in comparison.pairs
    )
    text = words(replace(comparison, pairs=noted))
    assert "first divided by second. Scroll to see all 15 pairs. With 3 data sets" in text
    assert not re.search(r"\. (with|influence)\b", text)


def test_a_test_that_is_not_valid_finds_nobody_better(plain):
    page = comparison_html(plain)
    for part in page.split('<details class="caution">')[1:]:
        table = part.split("</details>")[0]
        assert "Found better" not in table
        assert 'class="best"' not in table
    swapped = tuple(
        p if p.valid else replace(p, better=p.second if p.better else p.first) for p in plain.pairs
    )
    other = replace(plain, pairs=swapped)
    assert comparison_answer(other) == comparison_answer(plain)
    assert comparison_html(other) == page


# ------------------------------------------------------------------------------------ curves
def test_curves_that_are_left_out_are_counted(plain):
    twelve = made_up([f"score {i}" for i in range(12)], ("augrc",), ((),), literature=False)
    text = words(twelve)
    assert "The figures contain the 8 best of 12 methods." in text
    assert "Selective risk by coverage, 8 of 12 methods" in text
    assert "The figures contain" not in words(plain)


def test_a_band_that_speaks_late_is_said_not_drawn():
    one = made_up(METHODS[:2], ("augrc",), ((),))
    late = tuple(
        replace(b, compute=partial(replace, b.selective, simultaneous_from=0.9)) for b in one.bands
    )
    text = words(replace(one, bands=late))
    assert "too few samples for simultaneous bands" in text
    assert "A simultaneous band needs a coverage of at least 0.9." in text


def test_many_data_sets_name_an_option_of_the_command():
    data = tuple((("shift", f"s{i}"),) for i in range(30))
    text = words(made_up(METHODS[:3], ("augrc",), data, draws=20))
    assert "`--figures svg` writes all figures" in text
    assert "write_figures" not in text


# ------------------------------------------------------------------------------------ margins
def held(comparison, *, margin=0.002):
    """Hold every method but the first against the first; shown where it is not worse at all."""
    reference = comparison.methods[0]
    rows = []
    for metric in comparison.metrics:
        for data in comparison.data:
            values = {e.method: e.value for e in comparison.estimates_of(metric, data)}
            for method in comparison.methods[1:]:
                worse = values[method] - values[reference]
                rows.append(
                    NonInferiorityRow(
                        metric, data, method, reference, margin, worse, worse + 0.0019,
                        0.01, 0.02 if worse < 0 else 0.3, worse < 0,
                    )
                )  # fmt: skip
    return replace(comparison, non_inferiority=tuple(rows))


def test_margins_are_said_line_by_line():
    lines = [
        non_inferiority_line(
            NonInferiorityRow("augrc", (), "pe", "msr", 0.002, gap, bound, 0.2, p, shown)
        )
        for gap, bound, p, shown in (
            (0.0012, 0.0031, 0.4, False),
            (-0.0003, 0.0011, 0.01, True),
            (-0.003, -0.001, 0.0001, True),
        )
    ]
    assert lines == [
        f"pe: {said}"
        for said in (
            (
                "worse than msr by 0.001200, at most 0.003100 (margin 0.002, adjusted p = 0.4): not "
                "shown to be within the margin"
            ),
            (
                "better than msr by 0.0003000, at most 0.001100 worse (margin 0.002, adjusted p = "
                "0.01): within the margin"
            ),
            (
                "better than msr by 0.003000, at least 0.001000 (margin 0.002, adjusted p < 0.001): "
                "within the margin"
            ),
        )
    ]


def test_a_method_that_cannot_be_worse_is_at_most_0_worse():
    row = NonInferiorityRow("augrc", (), "pe", "msr", 0.002, -0.001, 0.0, 0.01, 0.01, True)
    assert "better than msr by 0.001000, at most 0 worse (margin" in non_inferiority_line(row)


def test_margins_are_in_the_terminal_and_its_verdict():
    comparison = held(made_up(METHODS[:3], ("augrc", "aurc"), ((),)))
    text = printed(comparison_terminal(comparison), width=300)
    for found in comparison.non_inferiority:
        assert f"  {non_inferiority_line(found)}" in text
    assert "The same margin, 0.002, is used for all metrics" in text
    assert "AUGRC at most 0.002 worse than “msr”: " in text
    assert "The same margin" not in printed(comparison_terminal(held(many(2))))


def test_margins_are_on_the_page():
    comparison = held(made_up(METHODS[:3], ("augrc", "aurc"), ((),)))
    text = words(comparison)
    assert "AUGRC: at most 0.002 worse than msr. The same margin, 0.002, is used for all" in text
    page = comparison_html(comparison)
    assert page.count(">Within the margin</th>") == 2
    shown = sum(n.non_inferior for n in comparison.non_inferiority)
    assert page.count("<strong>shown</strong>") == shown
    assert page.count("<td>not shown</td>") == len(comparison.non_inferiority) - shown


def test_margins_of_many_data_sets_are_one_line_each():
    text = printed(comparison_terminal(held(many())), width=300)
    heads = [x for x in text.splitlines() if "at most 0.002 worse than msr: " in x]
    assert len(heads) == 30
    assert all("hown for mls" in line for line in heads)


def many(n=30):
    data = tuple((("shift", f"s{i}"),) for i in range(n))
    return made_up(METHODS[:3], ("augrc",), data, draws=20)
