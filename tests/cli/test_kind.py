"""What a person meets on the command line: all that was asked for, and what was meant."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import abstain as ab
from abstain.cli.main import run


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    wrong = rng.random(300) < 0.3
    columns = {"correct": 1 - wrong, "confidence": rng.random(300) ** (1 + wrong)}
    columns |= {"entropy": 1 - columns["confidence"], "model": rng.integers(3, size=300)}
    pl.DataFrame(columns).write_csv(tmp_path / "t.csv")
    return tmp_path / "t.csv"


def printed(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    assert run([str(argument) for argument in arguments]) == 0
    return capsys.readouterr().out


def test_every_metric_that_was_requested_is_printed(table, capsys):
    metric_names = ["cwsa@0.5", "cwsa@0.7", "cwsa_plus@0.5", "augrc", "coverage@2risk"]
    flags = [word for name in metric_names for word in ("--metric", name)]
    out = " ".join(printed(capsys, "evaluate", table, *flags).split())
    evaluation = ab.evaluate(ab.read_predictions(table), metrics=metric_names)
    for result in evaluation:
        # Values have the decimals of their standard errors; coverages and risks are percentages.
        value = result.value
        formats = (f"{value:.2f}", f"{value:.3f}", f"{value:.0%}", f"{value:.1%}")
        assert any(text in out for text in formats), result.metric.name
    assert "AUGRC" in out


def test_metrics_of_the_first_table_keep_their_table(table, capsys):
    out = printed(capsys, "evaluate", table, "--metric", "augrc", "--metric", "aurc")
    assert "AUGRC ↓" in out
    assert "What it means" not in out


@pytest.mark.parametrize("command", ["evaluate", "compare"])
def test_warnings_of_the_reader_are_warnings(table, command, capsys):
    out = printed(capsys, command, table, "--confidence", "entropy", "--confidence", "confidence")
    words = " ".join(out.split())
    assert "Warning: column 'model' has 3 values (0, 1, 2)" in words
    assert "pass --by model" in words
    assert "Warning: entropy: Failures tend to have higher confidence than successes" in words


def test_an_uncertainty_is_turned_around_by_a_flag(table, capsys):
    right = printed(capsys, "evaluate", table, "--confidence", "confidence", "--metric", "augrc")
    flags = ["--confidence", "entropy", "--lower-is-safer", "--metric", "augrc"]
    turned = printed(capsys, "evaluate", table, *flags)
    assert "Failures have higher" not in turned
    value = next(line for line in right.splitlines() if line.startswith("confidence")).split()[1]
    assert next(x for x in turned.splitlines() if x.startswith("-entropy")).split()[1] == value


def test_a_threshold_on_an_uncertainty_is_turned_around_and_stays_so(table, tmp_path, capsys):
    flags = ["--confidence", "entropy", "--max-risk", "0.3", "--method", "risk"]
    out = printed(capsys, "threshold", table, *flags, "--apply", table)
    assert "Failures tend to have higher confidence" in " ".join(out.split())
    rule = tmp_path / "rule.json"
    out = printed(capsys, "threshold", table, *flags, "--lower-is-safer", "--save", rule)
    assert "Failures have higher" not in out
    assert "Warning: column 'model' has 3 values" in " ".join(out.split())
    assert ab.load(rule).score == "-entropy"
    out = printed(capsys, "threshold", "--rule", rule, "--apply", table)
    unlabeled = tmp_path / "later.csv"
    pl.read_csv(table).select("entropy").write_csv(unlabeled)
    out += printed(capsys, "threshold", "--rule", rule, "--apply", unlabeled)
    assert "scale" not in " ".join(line for line in out.splitlines() if "Warning" in line)


def test_rounded_probabilities_are_told_and_more_is_requested(tmp_path, capsys):
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.ones(4), size=50).round(2)
    columns = {"label": p.argmax(axis=1)} | {f"p_{k}": p[:, k] for k in range(4)}
    path = tmp_path / "p.csv"
    pl.DataFrame(columns).write_csv(path)
    flags = ["--probabilities", "p_*", "--score", "msr", "--metric", "augrc"]
    assert "as rounding to 2 decimals explains" in " ".join(
        printed(capsys, "evaluate", path, *flags).split()
    )
    pl.DataFrame(columns | {"p_0": 0.7 * p[:, 0]}).write_csv(path)
    assert run(["evaluate", str(path), *flags]) == 2
    assert "--renormalize" in capsys.readouterr().err
    printed(capsys, "evaluate", path, *flags, "--renormalize")


def test_a_file_of_amounts_is_told_what_to_give(tmp_path, capsys):
    path = tmp_path / "r.csv"
    columns = {"label": [1.5, 2.25], "prediction": [1.4, 2.0], "confidence": [0.5, 0.6]}
    pl.DataFrame(columns).write_csv(path)
    assert run(["evaluate", str(path)]) == 2
    assert "--own-loss" in capsys.readouterr().err


def test_long_records_have_short_words(table):
    reading = ab.read_predictions(table, confidence=["confidence", "entropy"])
    evaluation = ab.evaluate(reading)
    assert repr(evaluation).startswith("Evaluation(1 split, 2 scores, ")
    assert len(repr(evaluation)) < 120
    comparison = ab.compare(reading)
    assert repr(comparison).startswith("Comparison(2 methods, 1 data set, 1 run, 1 metric, ")
    assert len(repr(comparison)) < 120
