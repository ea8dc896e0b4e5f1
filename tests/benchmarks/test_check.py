"""The check reports variants that exceed their stored results by more than 20%."""

import dataclasses

import pytest
from benchmarks.cases.kernels import NUMBA
from benchmarks.check import find_regressions
from benchmarks.results import Results
from tests.benchmarks.example_results import CASES, COMMAND, RANKING, RESULTS, measurement

from benchmarks import run


@pytest.fixture
def table(tmp_path):
    return Results(tmp_path / "cases.json", dict(RESULTS))


class FakeMeasure:
    """Return given ratios instead of measuring, and record the variants of each call."""

    def __init__(self, ratios, **fields):
        self.ratios, self.fields, self.calls = ratios, fields, []

    def __call__(self, case, variants):
        i = len(self.calls)
        self.calls.append(list(variants))
        return {key: measurement(self.ratios[key][i], **self.fields) for key in variants}


def test_a_variant_that_is_slower_in_three_measurements_is_reported(table):
    measure = FakeMeasure({"augrc (numba)": (3.5, 3.2, 3.3), "augrc (NumPy)": (7.0,)})
    (regression,) = find_regressions(RANKING, table, measure)
    assert (regression.variant, regression.quantity) == ("augrc (numba)", "ratio")
    assert (regression.before, regression.now) == (2.5, 3.2)
    assert str(regression) == "numbers: augrc (numba): ratio 3.2, stored value 2.5 (+28%)"
    assert measure.calls == [["augrc (numba)", "augrc (NumPy)"]] + [["augrc (numba)"]] * 2


def test_a_variant_that_is_slower_once_is_not_reported(table):
    measure = FakeMeasure({"augrc (numba)": (9.0, 2.6), "augrc (NumPy)": (6.0,)})
    assert not list(find_regressions(RANKING, table, measure))
    assert len(measure.calls) == 2


@pytest.mark.parametrize(("ratio", "n_regressions"), [(8.0 * 1.19, 0), (8.0 * 1.21, 1)])
def test_the_tolerance_is_20_percent(table, ratio, n_regressions):
    measure = FakeMeasure({"with page": [ratio] * 3}, peak=100.0, facts={"page, MB": 3.5})
    assert len(list(find_regressions(COMMAND, table, measure))) == n_regressions


@pytest.mark.parametrize(
    ("fields", "quantity"),
    [
        ({"peak": 130.0, "facts": {"page, MB": 3.5}}, "MiB"),
        ({"peak": 100.0, "facts": {"page, MB": 4.5}}, "page, MB"),
    ],
)
def test_memory_and_page_size_are_checked(table, fields, quantity):
    measure = FakeMeasure({"with page": [8.0] * 3}, **fields)
    (regression,) = find_regressions(COMMAND, table, measure)
    assert regression.quantity == quantity


def test_the_smallest_memory_of_all_measurements_counts(table):
    peaks, ratios = iter([130.0, 100.0, 140.0]), iter([10.0, 9.9, 9.8])

    def measure(case, variants):
        fields = {"peak": next(peaks), "facts": {"page, MB": 3.5}}
        return {key: measurement(next(ratios), **fields) for key in variants}

    (regression,) = find_regressions(COMMAND, table, measure)
    assert (regression.quantity, regression.now) == ("ratio", 9.8)


@pytest.mark.parametrize(("seconds", "n_regressions"), [(0.05, 0), (0.5, 1)])
def test_small_differences_of_processes_are_ignored(table, seconds, n_regressions):
    # The ratio increases by 25%. For 50 ms, this is about the variation of the start of a process.
    measure = FakeMeasure({"with page": [10.0] * 3}, seconds=seconds)
    assert len(list(find_regressions(COMMAND, table, measure))) == n_regressions


def test_peers_are_not_checked(table):
    measure = FakeMeasure({"with page": [8.0]})
    list(find_regressions(COMMAND, table, measure))
    assert measure.calls == [["with page"]]


def test_a_variant_that_fails_is_reported(table):
    def measure(case, variants):
        return {key: dataclasses.replace(measurement(1.0), reason="failed: no") for key in variants}

    messages = [str(failure) for failure in find_regressions(RANKING, table, measure)]
    assert messages == [f"numbers: augrc ({k}): failed: no" for k in (NUMBA, "NumPy")]


def test_exit_status_of_the_check(table, monkeypatch, capsys):
    cases = {"a command": CASES["a command"]}
    monkeypatch.setattr(run, "_measure_again", FakeMeasure({"with page": [8.0]}))
    assert run.compare_with_table(cases, table) == 0
    assert "No number exceeds the stored value by more than 20%" in capsys.readouterr().out
    monkeypatch.setattr(run, "_measure_again", FakeMeasure({"with page": [10.0] * 3}))
    assert run.compare_with_table(cases, table) == 1
    assert "a command: with page: ratio 10, stored value 8 (+25%)" in capsys.readouterr().out


def test_check_without_stored_results_fails(tmp_path, capsys):
    assert run.compare_with_table(CASES, Results(tmp_path / "none.json")) == 2
    assert "make bench" in capsys.readouterr().err


def test_check_of_a_pattern_without_a_case_fails(capsys):
    assert run.main(["--against", "--only", "no such case"]) == 2
    assert (
        "no case or section has this name; --against measures only the quick ones"
        in capsys.readouterr().err
    )
