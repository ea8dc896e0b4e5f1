"""A comparison in the terminal, in Markdown and in LaTeX."""

import re
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console
from tests.plots.comparisons import DATA, METHODS, made_up
from tests.report.pages import DISARMED, HOSTILE, steering

from abstain.curves.bands import RiskCoverageBand
from abstain.errors import InputError, UnknownNameError
from abstain.evaluation.comparison import (
    Comparison,
    Estimate,
    PairedDifference,
    compute_relations_to_best,
    sort_best_first,
)
from abstain.plots.formatting import SIMULATION_ASSUMPTION
from abstain.report import (
    build_document,
    comparison_latex,
    comparison_markdown,
    comparison_terminal,
    render,
)
from abstain.report.formatting import format_narrow_number
from abstain.report.subjects.comparison.document import _band_rows

WRITERS = (comparison_latex, comparison_markdown, comparison_terminal)


def small():
    """Three methods: the best, one that is not told from it and one found worse."""
    values = {"m_1": 0.03, "m|2": 0.031, "m&3": 0.05}
    estimates = tuple(
        Estimate("augrc", (), "", m, v, v - 0.004, v + 0.005, 0.002, 0.95, "log", 900, 80, True)
        for m, v in values.items()
    )
    adjusted = {("m_1", "m|2"): 0.4, ("m_1", "m&3"): 0.001, ("m|2", "m&3"): 0.002}
    pairs = tuple(
        PairedDifference(
            "augrc", (), a, b, -0.01, -0.02, 0.0, 0.005, 0.9, 0.8, 1.0, p / 2, p, "holm",
            "influence function", 0.9, a if p < 0.05 else "",
        )
        for (a, b), p in adjusted.items()
    )  # fmt: skip
    return Comparison(
        ("augrc",), tuple(values), ((),), ("",), 0.95, (), "influence",
        estimates=estimates, pairs=pairs,
    )  # fmt: skip


@pytest.fixture(scope="module")
def plain():
    return made_up(spread=0.3)


@pytest.fixture(scope="module")
def hostile():
    return made_up(HOSTILE, ("augrc", "aurc"), tuple(((HOSTILE[0], v),) for v in HOSTILE[:2]))


def printed(renderable, width=100):
    console = Console(width=width, file=None, quiet=False, force_terminal=False)
    with console.capture() as capture:
        console.print(renderable)
    return capture.get()


# ---------------------------------------------------------------------------------- exact text
def test_markdown_to_the_letter():
    assert comparison_markdown(small()) == (
        "| Method | AUGRC ↓ |\n"
        "| --- | ---: |\n"
        "| m_1 | **0.03000** |\n"
        "| m\\|2 | 0.03100† |\n"
        "| m\\&3 | 0.05000 |\n"
        "\n"
        "Arrows point to better values; bold marks the best value. Values are fractions. "
        "†: not significantly different from the best at 5% (influence function, adjusted by Holm "
        "over all pairs of a column).\n"
    )


def test_latex_to_the_letter():
    assert comparison_latex(small(), times_1000=True, intervals=True) == (
        "% Needs \\usepackage{booktabs}\n"
        "\n"
        "\\begin{tabular}{lr}\n"
        "\\toprule\n"
        "Method & AUGRC $\\times 10^3$ $\\downarrow$ \\\\\n"
        "\\midrule\n"
        "m\\_1 & \\textbf{30.00} {\\scriptsize [26.00, 35.00]} \\\\\n"
        "m\\textbar{}2 & 31.00\\textsuperscript{\\dag} {\\scriptsize [27.00, 36.00]} \\\\\n"
        "m\\&3 & 50.00 {\\scriptsize [46.00, 55.00]} \\\\\n"
        "\\bottomrule\n"
        "\\end{tabular}\n"
        "\n"
        "{\\footnotesize Arrows point to better values; bold marks the best value. Columns "
        "with $\\times$ 1000 are multiplied by 1000; other values are fractions. "
        "\\textsuperscript{\\dag}: not significantly different from the best at 5\\% (influence "
        "function, adjusted by Holm over all pairs of a column). In brackets: 95\\% intervals.}\n"
    )


def test_several_data_sets_stand_under_their_metric(plain):
    text = comparison_latex(plain)
    assert r" & \multicolumn{3}{c}{AUGRC $\downarrow$} & \multicolumn{3}{c}{AURC" in text
    assert r"\cmidrule(lr){2-4}\cmidrule(lr){5-7}" in text
    assert "| Method | AUGRC ↓, study = iid | AUGRC ↓, study = corruption |" in comparison_markdown(
        plain
    )


# -------------------------------------------------------------------------------------- shape
def test_marks_are_those_of_the_comparison(plain):
    lines = comparison_markdown(plain, metrics=["aurc"]).splitlines()[2 : 2 + len(METHODS)]
    for line, method in zip(lines, METHODS, strict=True):
        cells = [cell.strip() for cell in line.strip("|").split("|")][1:]
        for cell, data in zip(cells, DATA, strict=True):
            estimates = plain.estimates_of("aurc", data)
            stands = compute_relations_to_best(estimates, plain.pairs_of("aurc", data))[method]
            assert cell.startswith("**") == (stands == "best")
            assert cell.endswith("†") == (stands == "not told apart")


def test_rows_line_up(hostile):
    columns = 2 * 2 + 1
    markdown = [x for x in comparison_markdown(hostile).splitlines() if x.startswith("|")]
    assert len(markdown) == len(HOSTILE) + 2
    for line in markdown:
        assert len(re.findall(r"(?<!\\)\|", line)) == columns + 1
    latex = comparison_latex(hostile).split(r"\midrule")[1].split(r"\bottomrule")[0]
    for line in latex.strip().splitlines():
        assert len(re.findall(r"(?<!\\)&", line)) == columns - 1


def test_no_attack_steers_a_table(hostile):
    assert not steering(comparison_markdown(hostile))
    assert not steering(comparison_latex(hostile))
    text = printed(comparison_terminal(hostile), width=400)
    assert DISARMED in text
    assert "[bold]rich[/bold]" in text
    assert not steering(text)


def test_undefined_says_why():
    comparison = made_up(METHODS[:3], ("augrc",), ((),), undefined="pe")
    for write in (comparison_markdown, comparison_latex):
        assert "undefined" in write(comparison)
        assert "Notes: no failures: nothing to rank" in write(comparison)
    assert "undefined" in printed(comparison_terminal(comparison))


@pytest.mark.parametrize("write", WRITERS)
def test_only_a_comparison_is_written(write):
    with pytest.raises(InputError, match="what `compare` returned; got dict"):
        write({})


@pytest.mark.parametrize("write", [comparison_markdown, comparison_latex])
def test_unknown_metric_is_refused(write, plain):
    with pytest.raises(UnknownNameError, match="`metrics`: the comparison has no metric 'augcr'"):
        write(plain, metrics=["augcr"])


# ----------------------------------------------------------------------------------- terminal
@pytest.mark.parametrize("width", [60, 80, 100])
@pytest.mark.parametrize("name", ["plain", "hostile"])
def test_terminal_fits_and_cuts_nothing(name, width, request):
    text = printed(comparison_terminal(request.getfixturevalue(name)), width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text


def test_terminal_has_values_intervals_ranks_and_p(plain):
    text = printed(comparison_terminal(plain))
    for estimate in plain.estimates:
        assert f"{estimate.value:.2f}" in text
    assert "study = corruption" in text
    assert "95% interval" in text
    assert "1 to " in text
    assert "not different" in text
    assert "Warning: " in text


def many(n=30):
    data = tuple((("shift", f"s{i}"),) for i in range(n))
    return made_up(METHODS[:3], ("augrc",), data, draws=20)


def test_many_tables_are_lines_unless_all_are_asked_for():
    comparison = many()
    short = printed(comparison_terminal(comparison), width=300)
    full = printed(comparison_terminal(comparison, full=True), width=300)
    assert "Conclusion" not in short
    assert "Pass --full to print a table for each line, or --out to write all tables." in short
    assert full.count("Conclusion") == 30
    assert "--full" not in full
    lines = [line for line in short.splitlines() if line.startswith("AUGRC, shift = ")]
    assert len(lines) == 30
    found = sort_best_first(comparison.estimates_of("augrc", comparison.data[0]))
    top = found[0]
    ends = f"{format_narrow_number(top.value)} [{format_narrow_number(top.low)}, {format_narrow_number(top.high)}]"
    assert lines[0].startswith(f"AUGRC, shift = s0: best {top.method} {ends}")
    stands = compute_relations_to_best(found, comparison.pairs_of("augrc", comparison.data[0]))
    alike = [m for m, footing in stands.items() if footing == "not told apart"]
    assert lines[0].endswith(f"; not significantly different: {', '.join(alike)}" if alike else "]")


def test_the_verdict_comes_first(plain):
    text = printed(comparison_terminal(plain))
    assert text.index("has the lowest AUGRC") < text.index("AUGRC ↓")
    assert text.index("tests assume independent data sets") < text.index("AUGRC ↓")


def test_resamples_are_counted_and_the_literature_left_to_the_report(plain):
    said = "400 bootstrap resamples. The results of the test from the literature are in the report"
    assert said in printed(comparison_terminal(plain), width=200)
    bare = printed(comparison_terminal(replace(plain, bootstrap=0)))
    assert "resamples" not in bare


def test_ranks_follow_from_the_tests(plain):
    text = printed(comparison_terminal(plain), width=400)
    assert "adjusted for all 15 pairs, from which the rank intervals follow" in text
    assert SIMULATION_ASSUMPTION not in text


@pytest.mark.parametrize("size", [1, 2, 19, 26, 57])
def test_some_points_of_a_curve_rise_to_full_coverage(size):
    coverage = np.arange(1, size + 1) / size
    band = RiskCoverageBand("selective", coverage, *(coverage / 10 for _ in range(6)), level=0.95)
    shown = [point.value for _, point, *_ in _band_rows("msr", band)]
    assert shown == sorted(set(shown)), "each once"
    assert shown[-1] == 1
    assert min(size, 10) <= len(shown) < 20


@pytest.mark.parametrize(("runs", "said"), [(("",), ""), (("1", "2"), " (averaged over its runs)")])
def test_runs_that_are_averaged_are_said_over_all_data_sets(plain, runs, said):
    text = render(build_document(replace(plain, runs=runs)), "html")
    assert f"The methods are ranked on each data set{said}." in text
