"""Smoke tests of the simulation scripts in `benchmarks`, with a few draws."""

import importlib
import sys
from types import ModuleType

import polars as pl
import pytest

from abstain import simulate


@pytest.fixture
def load(root, monkeypatch):
    """Return a function that imports a script by its name."""
    monkeypatch.syspath_prepend(root / "benchmarks")

    def import_script(name: str) -> ModuleType:
        monkeypatch.delitem(sys.modules, name, raising=False)
        return importlib.import_module(name)

    return import_script


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("cascade_guarantees", ["--sets", "1"]),
        ("shift_guarantees", ["--sets", "1", "--fitted", "1"]),
        ("threshold_groups", ["--sets", "4"]),
        ("threshold_guarantees", ["--sets", "4", "--full"]),
    ],
)
def test_script_prints_a_table(load, monkeypatch, capsys, name: str, arguments: list[str]) -> None:
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    load(name).main()
    assert "| --- |" in capsys.readouterr().out


def test_simulated_monitors_equal_the_monitors_of_the_library(load, capsys) -> None:
    script = load("monitor_alarms")
    # `check_coverage` compares the first streams with `abstain.monitoring`.
    script.print_false_alarms(script.N_CHECKED, 30, 0)
    assert "| any | 0.0000 |" in capsys.readouterr().out
    for labeling in script.LABELINGS:
        delays = script.detection_delays(labeling, 0.05, 2, n_streams=3, max_after=5)
        assert delays.shape == (3,)
    script.print_estimates(0, n=500, n_sets=3)
    assert "| requested, equal probabilities |" in capsys.readouterr().out


def test_shift_estimates_read_a_file(load, monkeypatch, capsys, tmp_path) -> None:
    confidence, loss = simulate.two_gaussians(0.2, 1.6).sample(400, rng=0)
    frame = pl.DataFrame({"confidence": confidence, "correct": loss == 0})
    studies = ["iid"] * 200 + ["blur_1"] * 100 + ["blur_2"] * 100
    path = tmp_path / "predictions.parquet"
    frame.with_columns(study=pl.Series(studies)).write_parquet(path)
    monkeypatch.setattr(sys, "argv", ["shift_estimates", str(path)])
    load("shift_estimates").main()
    output = capsys.readouterr().out
    assert "| predictions | iid | 1 | all |" in output
    assert "| predictions | blur | 2 | accepted |" in output


@pytest.mark.parametrize("name", ["only_read", "one_pass", "two_passes", "histogram", "polars"])
def test_calls_on_many_rows_read_all_rows(load, capsys, tmp_path, name: str) -> None:
    pytest.importorskip("pyarrow")
    script = load("many_rows")
    path = tmp_path / "rows.parquet"
    script.generate(path, 2000)
    script.run_call(name, path)
    assert f'"name": "{name}"' in capsys.readouterr().out
