"""`abstain threshold` for data of another law, without labels."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.cli.test_threshold import ASKED, frame, words

import abstain as ab
from abstain.cli.main import run
from abstain.thresholds import DecisionRule, sgr


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave figures and page out, which take most of the time."""
    monkeypatch.setattr("abstain.report.write_rule_figures", lambda *_: [])
    monkeypatch.setattr("abstain.report.write_threshold", lambda _, path, **__: path)


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two files without labels, of harder samples: confidences, and probabilities."""
    monkeypatch.chdir(tmp_path)
    frame(0).write_parquet("val.parquet")
    rng = np.random.default_rng(5)
    confidence = rng.beta(2, 1, 1500)
    pl.DataFrame({"confidence": confidence}).write_csv("new.csv")
    share = np.stack([confidence, 1 - confidence], axis=1)
    pl.DataFrame({"p_a": share[:, 0], "p_b": share[:, 1]}).write_parquet("scores.parquet")
    known = frame(6).with_columns(ratio=2 - pl.col("confidence"))
    known.write_parquet("known.parquet")


def test_a_threshold_for_a_file_without_labels(elsewhere, plain, capsys):
    arguments = [
        "threshold",
        "val.parquet",
        *ASKED,
        "--shifted-to",
        "new.csv",
        "--apply",
        "new.csv",
    ]
    assert run([*arguments, "--out", "left"]) == 0
    text = words(capsys.readouterr().out)
    assert "Rule: Learn then test" in text
    assert (
        "reweighted by density ratios that a classifier estimated (1200 samples, effective size"
        in text
    )
    assert "new.csv: the data have no labels, so the risk is only estimated" in text
    assert "by density ratios." in text
    rule = DecisionRule.from_json(Path("left/rule.json").read_text())
    assert rule.population.startswith("data like the calibration data reweighted")
    rows = pl.read_parquet("left/results.parquet")
    assert rows["estimated_risk_reweighted"].is_not_nan().to_list() == [False, True]


def test_a_part_of_the_calibration_file_says_for_whom(elsewhere, plain, capsys):
    whole = pl.concat(
        [frame(1).with_columns(part=pl.lit("val")), frame(7).with_columns(part=pl.lit("new"))]
    )
    whole.filter(pl.col("part") == "val").write_csv("apart.csv")
    whole.filter(pl.col("part") == "new").drop("label").write_csv("there.csv")
    whole.write_csv("whole.csv")
    assert (
        run(["threshold", "apart.csv", *ASKED, "--shifted-to", "there.csv", "--save", "a.json"])
        == 0
    )
    arguments = ["threshold", "whole.csv", *ASKED, "--calibrate", "part=val"]
    assert run([*arguments, "--shifted-to", "part=new", "--save", "b.json"]) == 0
    rules = [DecisionRule.from_json(Path(name).read_text()) for name in ("a.json", "b.json")]
    assert rules[0] == rules[1]
    capsys.readouterr()
    assert run([*arguments, "--shifted-to", "part=val"]) == 2
    assert "contains calibration samples" in words(capsys.readouterr().err)


def test_known_ratios_come_from_a_column(elsewhere, plain, capsys):
    arguments = ["threshold", "known.parquet", *ASKED, "--ratio", "ratio", "--max-ratio", "2"]
    assert run([*arguments, "--method", "sgr", "--save", "rule.json"]) == 0
    text = words(capsys.readouterr().out)
    assert "by the density ratios given" in text
    assert "no ratio is above" in text
    data = pl.read_parquet("known.parquet")
    ratios = ab.shift.density_ratios(data["ratio"].to_numpy(), largest=2.0)
    wrong = (data["label"] != data["prediction"]).to_numpy()
    rule = sgr(data["confidence"].to_numpy(), wrong, max_risk=0.1, delta=0.1, ratio=ratios)
    assert DecisionRule.from_json(Path("rule.json").read_text()).threshold == rule.threshold


def test_a_label_shift_is_seen_in_predictions(elsewhere, plain, capsys):
    new = frame(7).filter((pl.col("label") != 0) | (pl.col("study") == "noise_1")).drop("label")
    new.write_csv("fewer.csv")
    arguments = [
        "threshold",
        "val.parquet",
        *ASKED,
        "--shifted-to",
        "fewer.csv",
        "--shift",
        "label",
    ]
    assert run(arguments) == 0
    text = words(capsys.readouterr().out)
    assert "by class ratios estimated from predicted classes" in text
    assert "Ratios of the classes: 0 0.6" in text


def test_class_scores_without_labels_are_scored(elsewhere, plain, capsys):
    rng = np.random.default_rng(8)
    share = rng.beta(4, 1, 900)
    right = rng.random(900) < share
    pl.DataFrame(
        {"label": np.where(right, "a", "b"), "p_a": share, "p_b": 1 - share}
    ).write_parquet("probabilities.parquet")
    arguments = [
        "threshold",
        "probabilities.parquet",
        "--probabilities",
        "p_*",
        "--max-risk",
        "0.25",
    ]
    assert run([*arguments, "--apply", "scores.parquet", "--shifted-to", "scores.parquet"]) == 0
    text = words(capsys.readouterr().out)
    assert "scores.parquet: no column defines correctness" in text
    assert "scores.parquet: the data have no labels" in text


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--shift", "label"], "--shift has no effect without --shifted-to"),
        (["--max-ratio", "3"], "--max-ratio has no effect without --ratio"),
        (["--clip", "3"], "--clip has no effect without --shifted-to or --ratio"),
        (["--ratio", "r", "--shifted-to", "new.csv"], "drop one of them"),
        (["--ratio", "r", "--weight", "w"], "no guarantee supports both"),
        (["--method", "risk", "--shifted-to", "new.csv"], "takes no --ratio"),
    ],
)
def test_options_about_a_shift_that_do_not_fit_raise_an_error(elsewhere, capsys, options, says):
    arguments = ["--max-risk", "0.1"]
    assert run(["threshold", "val.parquet", *arguments, *options]) == 2
    assert says in words(capsys.readouterr().err)
