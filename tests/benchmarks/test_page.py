"""The page contains the cases of the catalogue and the stored results."""

import dataclasses

import pytest
from benchmarks.cases import SECTIONS, catalogue
from benchmarks.cases.entry import SMALL, format_size
from benchmarks.figure import draw, panels
from benchmarks.growth import exponents
from benchmarks.page import code, page, short
from benchmarks.results import Results
from benchmarks.table import markdown
from tests.benchmarks.example_results import CASES, RESULTS

QUANTITIES = {case.growing for case in catalogue(SMALL).values() if case.growing}


@pytest.fixture
def text(tmp_path):
    return page(Results(tmp_path / "cases.json", dict(RESULTS)), CASES)


def test_table_of_ratios_has_numpy_kernels_in_parentheses(text):
    assert "| relative to `np.sort` " in text
    assert "| augrc " in text
    assert "2.5 (7.0\\*) |" in text


def test_memory_is_listed_per_sample(text):
    (row,) = [line for line in text.splitlines() if "extra bytes per sample" in line]
    assert row.split() == [
        "|",
        "augrc,",
        "numba:",
        "extra",
        "bytes",
        "per",
        "sample",
        "|",
        "10.0",
        "|",
    ]


def test_missed_targets_are_marked(text):
    (row,) = [line for line in text.splitlines() if line.startswith("| with page")]
    assert row.endswith("5.0 s, 3.0\\* (page, MB) |")
    assert " 3.5 | " in row


def test_failed_variant_has_a_reason(text):
    assert "Not measured: broken: failed: ValueError: no such / variant." in text


def test_table_of_growth_has_costs_per_unit_and_exponents(text):
    (row,) = [line for line in text.splitlines() if line.startswith("| evaluate")]
    assert [cell.strip() for cell in row.split("|")[2:-1]] == ["1,000"] * 3 + ["1.00", "1.00"]


def test_unmeasured_case_is_omitted(tmp_path):
    text = page(Results(tmp_path / "cases.json", {"numbers": RESULTS["numbers"]}), CASES)
    assert "### A command" not in text
    assert text.split("## How cost grows")[1].endswith("Not measured yet.\n")


def test_page_without_results_has_all_headings(tmp_path):
    text = page(Results(tmp_path / "cases.json"), CASES)
    assert text.count("\n## ") - 1 == text.count("Not measured yet.") == len(SECTIONS)


def test_page_lists_machine_duration_and_versions(text):
    assert "Machine: a machine." in text
    assert "in 3 minutes. The load average before each case was 0.1 to 0.1." in text
    assert "Versions: numpy 2." in text


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ab.augrc, weights", "`ab.augrc`, weights"),
        ("ab.evaluate(..., interval=1)", "`ab.evaluate(..., interval=1)`"),
        ("abstain, AURC", "abstain, AURC"),
        ("abstain --help", "`abstain --help`"),
        ("augrc", "augrc"),
    ],
)
def test_python_code_and_commands_are_formatted_as_code(name, expected):
    assert code(name) == expected


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_exponents_of_a_power_function(power):
    sizes = [10.0, 1.0, 1000.0]
    assert exponents(sizes, [7 * n**power for n in sizes]) == pytest.approx((power, power))


def test_one_size_has_no_exponent():
    assert all(x != x for x in exponents([10], [1]))


def test_markdown_table():
    assert markdown(["", "number"], [["a", "1"]]) == (
        "|     | number |\n| --- | -----: |\n| a   |      1 |"
    )


@pytest.mark.parametrize(
    ("x", "expected"),
    [(0.0123456, "0.012"), (2.345, "2.3"), (23.45, "23"), (12345.6, "12,346"), (2e-5, "2.0e-05")],
)
def test_numbers_have_two_significant_digits(x, expected):
    assert short(x) == expected


def test_format_of_sizes():
    assert [format_size(n) for n in (1000, 9000, 10**6, 10**7)] == ["1,000", "9,000", "1e6", "1e7"]


def test_figure_of_growth(tmp_path):
    results = Results(tmp_path / "cases.json", dict(RESULTS))
    (quantity, series), *others = panels(results, CASES).items()
    assert (quantity, others) == ("rows", [])
    assert series["evaluate"].sizes == [10, 100, 1000]
    assert series["evaluate"].microseconds_per_unit == pytest.approx([1000, 1000, 1000])
    path = tmp_path / "growth.svg"
    draw({quantity: series}, path)
    assert path.read_text("utf-8").count('id="line2d_') > 3
    assert "](_static/growth.svg)" in page(results, CASES, figure="_static/growth.svg")


def test_figure_has_a_panel_for_each_growing_quantity(tmp_path):
    case, result = CASES["growth with rows"], RESULTS["growth with rows"]
    cases = {
        quantity: dataclasses.replace(case, name=quantity, growing=quantity)
        for quantity in QUANTITIES
    }
    results = Results(tmp_path / "cases.json", dict.fromkeys(QUANTITIES, result))
    assert set(panels(results, cases)) == QUANTITIES
    path = tmp_path / "growth.svg"
    draw(panels(results, cases), path)
    text = path.read_text("utf-8")
    assert all(f"<!-- Cost by number of {quantity} -->" in text for quantity in QUANTITIES)
