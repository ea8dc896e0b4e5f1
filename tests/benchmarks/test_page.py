"""The page is made of the catalogue and of what was measured, and of nothing else."""

import dataclasses

import pytest
from benchmarks.cases import SECTIONS, catalogue
from benchmarks.cases.entry import SMALL, format_size
from benchmarks.figure import draw, panels
from benchmarks.growth import exponents
from benchmarks.page import code, page, short
from benchmarks.results import Results
from benchmarks.table import markdown
from tests.benchmarks.made_table import CASES, RESULTS

GROWS = {case.growing for case in catalogue(SMALL).values() if case.growing}


@pytest.fixture
def text(tmp_path):
    return page(Results(tmp_path / "cases.json", dict(RESULTS)), CASES)


def test_ratios_stand_in_parallel_with_numpys_in_brackets(text):
    assert "| relative to `np.sort` " in text
    assert "| augrc " in text
    assert "2.5 (7.0\\*) |" in text


def test_memory_is_told_by_the_sample(text):
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


def test_a_limit_is_marked_where_it_is_missed(text):
    (row,) = [line for line in text.splitlines() if line.startswith("| with page")]
    assert row.endswith("5.0 s, 3.0\\* (page, MB) |")
    assert " 3.5 | " in row


def test_a_variant_that_failed_is_told_with_its_reason(text):
    assert "Not measured: broken: failed: ValueError: no such / variant." in text


def test_growth_has_the_cost_of_a_unit_and_the_exponent(text):
    (row,) = [line for line in text.splitlines() if line.startswith("| evaluate")]
    assert [cell.strip() for cell in row.split("|")[2:-1]] == ["1,000"] * 3 + ["1.00", "1.00"]


def test_a_case_that_was_not_measured_is_omitted(tmp_path):
    text = page(Results(tmp_path / "cases.json", {"numbers": RESULTS["numbers"]}), CASES)
    assert "### A command" not in text
    assert text.split("## How cost grows")[1].endswith("Not measured yet.\n")


def test_every_heading_is_there_without_a_number(tmp_path):
    text = page(Results(tmp_path / "cases.json"), CASES)
    assert text.count("\n## ") - 1 == text.count("Not measured yet.") == len(SECTIONS)


def test_where_and_with_what(text):
    assert "Machine: a machine." in text
    assert "in 3 minutes. The load average before each case was 0.1 to 0.1." in text
    assert "Versions: numpy 2." in text


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("ab.augrc, weights", "`ab.augrc`, weights"),
        ("ab.evaluate(..., interval=1)", "`ab.evaluate(..., interval=1)`"),
        ("abstain, AURC", "abstain, AURC"),
        ("abstain --help", "`abstain --help`"),
        ("augrc", "augrc"),
    ],
)
def test_what_is_typed_is_code(name, shown):
    assert code(name) == shown


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_exponents_of_a_power(power):
    sizes = [10.0, 1.0, 1000.0]
    assert exponents(sizes, [7 * n**power for n in sizes]) == pytest.approx((power, power))


def test_one_size_has_no_exponent():
    assert all(x != x for x in exponents([10], [1]))


def test_a_table_in_markdown():
    assert markdown(["", "number"], [["a", "1"]]) == (
        "|     | number |\n| --- | -----: |\n| a   |      1 |"
    )


@pytest.mark.parametrize(
    ("x", "shown"),
    [(0.0123456, "0.012"), (2.345, "2.3"), (23.45, "23"), (12345.6, "12,346"), (2e-5, "2.0e-05")],
)
def test_numbers_have_few_digits(x, shown):
    assert short(x) == shown


def test_sizes_are_told_as_they_are_said():
    assert [format_size(n) for n in (1000, 9000, 10**6, 10**7)] == ["1,000", "9,000", "1e6", "1e7"]


def test_the_picture_of_growth(tmp_path):
    results = Results(tmp_path / "cases.json", dict(RESULTS))
    result = panels(results, CASES)
    assert list(result) == ["rows"]
    assert result["rows"]["evaluate"].sizes == [10, 100, 1000]
    assert result["rows"]["evaluate"].microseconds_per_unit == pytest.approx([1000, 1000, 1000])
    draw(result, tmp_path / "picture.svg")
    assert (tmp_path / "picture.svg").read_text("utf-8").count('id="line2d_') > 3
    assert "](_static/picture.svg)" in page(results, CASES, figure="_static/picture.svg")


def test_every_thing_that_grows_has_its_panel(tmp_path):
    case, measured = CASES["growth with rows"], RESULTS["growth with rows"]
    cases = {grows: dataclasses.replace(case, name=grows, growing=grows) for grows in GROWS}
    results = Results(tmp_path / "cases.json", dict.fromkeys(GROWS, measured))
    assert set(panels(results, cases)) == GROWS
    draw(panels(results, cases), tmp_path / "picture.svg")
    drawn = (tmp_path / "picture.svg").read_text("utf-8")
    assert all(f"<!-- Cost by number of {grows} -->" in drawn for grows in GROWS)
