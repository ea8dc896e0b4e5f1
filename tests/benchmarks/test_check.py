"""A variant that takes 20 % more than the table is named; a busy moment is not."""

import dataclasses

import pytest
from benchmarks.cases.kernels import NUMBA
from benchmarks.check import find_regressions
from benchmarks.results import Results
from tests.benchmarks.made_table import CASES, PLAIN, RANKING, RESULTS, measurement

from benchmarks import run


@pytest.fixture
def table(tmp_path):
    return Results(tmp_path / "cases.json", dict(RESULTS))


class Measuring:
    """Tells made-up ratios, one for each time it is asked; counts what it is asked."""

    def __init__(self, ratios, **more):
        self.ratios, self.more, self.asked = ratios, more, []

    def __call__(self, case, variants):
        turn = len(self.asked)
        self.asked.append(list(variants))
        return {key: measurement(self.ratios[key][turn], **self.more) for key in variants}


def test_what_is_slower_three_times_is_named(table):
    measure = Measuring({"augrc (numba)": (3.5, 3.2, 3.3), "augrc (NumPy)": (7.0,)})
    (worse,) = find_regressions(RANKING, table, measure)
    assert (worse.variant, worse.quantity, worse.before, worse.now) == (
        "augrc (numba)",
        "ratio",
        2.5,
        3.2,
    )
    assert str(worse) == "numbers: augrc (numba): ratio 3.2, stored value 2.5 (+28%)"
    assert measure.asked == [["augrc (numba)", "augrc (NumPy)"]] + [["augrc (numba)"]] * 2


def test_a_busy_moment_is_measured_again(table):
    measure = Measuring({"augrc (numba)": (9.0, 2.6), "augrc (NumPy)": (6.0,)})
    assert not list(find_regressions(RANKING, table, measure))
    assert len(measure.asked) == 2


@pytest.mark.parametrize(("ratio", "worse"), [(8.0 * 1.19, 0), (8.0 * 1.21, 1)])
def test_twenty_percent_is_the_limit(table, ratio, worse):
    measure = Measuring({"with page": [ratio] * 3}, peak=100.0, facts={"page, MB": 3.5})
    assert len(list(find_regressions(PLAIN, table, measure))) == worse


@pytest.mark.parametrize(
    ("more", "of"),
    [
        ({"peak": 130.0, "facts": {"page, MB": 3.5}}, "MiB"),
        ({"peak": 100.0, "facts": {"page, MB": 4.5}}, "page, MB"),
    ],
)
def test_memory_and_pages_are_held_too(table, more, of):
    (worse,) = find_regressions(PLAIN, table, Measuring({"with page": [8.0] * 3}, **more))
    assert worse.quantity == of


def test_the_least_memory_of_the_tries_counts(table):
    peaks, ratios = iter([130.0, 100.0, 140.0]), iter([10.0, 9.9, 9.8])

    def measure(case, variants):
        more = {"peak": next(peaks), "facts": {"page, MB": 3.5}}
        return {key: measurement(next(ratios), **more) for key in variants}

    (worse,) = find_regressions(PLAIN, table, measure)
    assert (worse.quantity, worse.now) == ("ratio", 9.8)


@pytest.mark.parametrize(("seconds", "worse"), [(0.05, 0), (0.5, 1)])
def test_a_moment_of_a_process_is_no_slower_variant(table, seconds, worse):
    # A quarter more: of 50 ms it is ten milliseconds, by which starts differ.
    measure = Measuring({"with page": [10.0] * 3}, seconds=seconds)
    assert len(list(find_regressions(PLAIN, table, measure))) == worse


def test_peers_are_not_held_to_the_table(table):
    measure = Measuring({"with page": [8.0]})
    list(find_regressions(PLAIN, table, measure))
    assert measure.asked == [["with page"]]


def test_a_variant_that_does_not_open_is_named(table):
    def measure(case, variants):
        return {key: dataclasses.replace(measurement(1.0), reason="failed: no") for key in variants}

    messages = [str(one) for one in find_regressions(RANKING, table, measure)]
    assert messages == [f"numbers: augrc ({k}): failed: no" for k in (NUMBA, "NumPy")]


def test_the_command_says_it_by_its_status(table, monkeypatch, capsys):
    cases = {"a command": CASES["a command"]}
    monkeypatch.setattr(run, "_measure_again", Measuring({"with page": [8.0]}))
    assert run.compare_with_table(cases, table) == 0
    assert "No number exceeds the stored value by more than 20%" in capsys.readouterr().out
    monkeypatch.setattr(run, "_measure_again", Measuring({"with page": [10.0] * 3}))
    assert run.compare_with_table(cases, table) == 1
    assert "a command: with page: ratio 10, stored value 8 (+25%)" in capsys.readouterr().out


def test_without_a_table_there_is_nothing_to_check(tmp_path, capsys):
    assert run.compare_with_table(CASES, Results(tmp_path / "none.json")) == 2
    assert "make bench" in capsys.readouterr().err


def test_a_pattern_without_a_case_is_no_pass(capsys):
    assert run.main(["--against", "--only", "no such case"]) == 2
    assert (
        "no case or section has this name; --against measures only the quick ones"
        in capsys.readouterr().err
    )
