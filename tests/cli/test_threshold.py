"""`abstain threshold` as a user runs it: what it prints, leaves behind and refuses."""

import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import abstain as ab
from abstain.calibration import fit_platt
from abstain.cli.main import run
from abstain.tables import save
from abstain.thresholds import DecisionRule, check, conformal_risk_control, sgr


def frame(seed: int, n: int = 1200, *, hard: float = 0.0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    confidence = rng.beta(3, 1, n)
    wrong = rng.random(n) < np.clip((1 - confidence) ** 1.3 + hard, 0, 1)
    label = rng.integers(0, 3, n)
    return pl.DataFrame(
        {
            "label": label,
            "prediction": np.where(wrong, (label + 1) % 3, label),
            "confidence": confidence,
            "study": np.where(np.arange(n) < n // 2, "noise_1", "noise_2"),
        }
    )


def arrays(data: pl.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    return data["confidence"].to_numpy(), (data["label"] != data["prediction"]).to_numpy()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    frame(0).write_parquet("val.parquet")
    frame(1).write_csv("test.csv")
    shifted = frame(2, hard=0.15)
    np.savez("shifted.npz", **{name: shifted[name].to_numpy() for name in shifted.columns[:3]})
    frame(2, hard=0.15).write_parquet("shifted.parquet")
    return tmp_path


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave figures and page out, which take most of the time."""
    monkeypatch.setattr("abstain.report.write_rule_figures", lambda *_: [])
    monkeypatch.setattr("abstain.report.write_threshold", lambda _, path, **__: path)


ASKED = ["--max-risk", "0.1", "--delta", "0.1"]


def words(text: str) -> str:
    return " ".join(text.split())


def test_prints_the_rule_and_leaves_files(folder, capsys):
    applied = ["--apply", "test.csv", "--apply", "shifted.npz"]
    assert run(["threshold", "val.parquet", *ASKED, *applied, "--out", "out"]) == 0
    printed = capsys.readouterr().out
    rule = sgr(*arrays(frame(0)), max_risk=0.1, delta=0.1)
    text = words(printed)
    displayed = re.search(r"Answer if “confidence” ≥ ([\d.]+); otherwise abstain", text)
    assert abs(float(displayed[1]) - rule.threshold) < 1e-3
    assert "Guarantee: at most 10% of the answers are wrong" in text
    assert "with a probability of at least 90% over calibration sets" in text
    assert f"Expected coverage on such data: about {100 * rule.coverage:.3g}%" in text
    assert "violated on 1 of 2 data sets (“shifted.npz”)" in text
    assert max(map(len, printed.splitlines()[:-1])) <= 100
    assert {p.name for p in (folder / "out").iterdir()} == {
        "rule.json",
        "results.parquet",
        "results.csv",
        "report.html",
        "receipt.json",
        "figures",
    }
    figures = {p.name for p in (folder / "out" / "figures").iterdir()}
    assert figures == {
        f"{n}.{k}" for n in ("decision-rule", "risk-excess") for k in ("svg", "png", "csv")
    }
    saved = DecisionRule.from_json((folder / "out" / "rule.json").read_text())
    assert saved == rule.for_score("confidence", scale="probability")
    rows = pl.read_parquet("out/results.parquet")
    assert rows["name"].to_list() == ["calibration", "test.csv", "shifted.npz"]
    for i, data in ((1, frame(1)), (2, frame(2, hard=0.15))):
        wanted = check(rule, *arrays(data)).row()
        for name in ("n", "accepted", "coverage", "selective_risk", "excess_high", "verdict"):
            assert rows[name][i] == wanted[name], name
    low, high = (100 * rows[f"selective_risk_{bound}"][2] for bound in ("low", "high"))
    assert f"({100 * rows['selective_risk'][2]:.1f}%) [{low:.1f}–{high:.1f}%]" in printed


@pytest.mark.usefixtures("plain")
def test_parts_of_one_file_by_a_column(folder, capsys):
    arguments = ["threshold", "val.parquet", *ASKED, "--by", "study", "--out", "out"]
    assert run([*arguments, "--apply", "shifted.parquet"]) == 0
    rows = pl.read_parquet("out/results.parquet")
    assert rows["name"].to_list() == ["calibration", "noise_1", "noise_2"]
    assert rows["study"].to_list() == ["", "noise_1", "noise_2"]
    assert run([*arguments, "--apply", "test.csv", "--apply", "shifted.parquet"]) == 0
    rows = pl.read_parquet("out/results.parquet")
    assert rows["name"].to_list()[1:3] == ["test.csv, noise_1", "test.csv, noise_2"]
    assert rows["file"].to_list()[3:] == ["shifted.parquet"] * 2
    capsys.readouterr()


@pytest.mark.usefixtures("plain")
def test_a_saved_rule_is_applied_without_its_data(folder, capsys):
    assert run(["threshold", "val.parquet", *ASKED, "--save", "kept.json", "--out", "a",
                "--apply", "test.csv"]) == 0  # fmt: skip
    assert run(["threshold", "--rule", "kept.json", "--apply", "test.csv", "--out", "b"]) == 0
    first, second = pl.read_parquet("a/results.parquet"), pl.read_parquet("b/results.parquet")
    assert first.equals(second)
    assert Path("b/rule.json").read_text() == Path("kept.json").read_text()
    # The rule finds its own column where that has no usual name.
    frame(1).rename({"confidence": "mine"}).write_parquet("mine.parquet")
    text = json.loads(Path("kept.json").read_text())
    Path("mine.json").write_text(json.dumps({**text, "score": "mine"}))
    assert run(["threshold", "--rule", "mine.json", "--apply", "mine.parquet", "--out", "c"]) == 0
    three = pl.read_parquet("c/results.parquet")
    assert three["accepted"].to_list() == first["accepted"].to_list()
    capsys.readouterr()


def test_unattainable_has_its_own_exit_status(folder, capsys):
    arguments = ["threshold", "val.parquet", "--max-risk", "0.0001", "--apply", "test.csv"]
    assert run([*arguments, "--out", "out"]) == 3
    text = words(capsys.readouterr().out)
    assert text.startswith("Unattainable: no threshold could be certified to guarantee")
    assert "no option found" in text
    assert (folder / "out" / "report.html").exists()
    assert not (folder / "out" / "figures" / "risk-excess.svg").exists()
    assert run(["threshold", "--rule", "out/rule.json"]) == 3
    capsys.readouterr()


@pytest.mark.usefixtures("plain")
def test_files_without_labels_are_checked_for_coverage(folder, capsys):
    frame(1).select("confidence").write_csv("deployed.csv")
    assert run(["threshold", "val.parquet", *ASKED, "--apply", "deployed.csv", "--out", "out"]) == 0
    row = pl.read_parquet("out/results.parquet").row(1, named=True)
    rule = sgr(*arrays(frame(0)), max_risk=0.1, delta=0.1)
    assert row["accepted"] == rule.apply(arrays(frame(1))[0]).sum()
    assert row["selective_risk"] != row["selective_risk"]
    assert "The data have no labels" in words(capsys.readouterr().out)
    # A label that was asked for by name and is not there is a mistake, not a file without labels.
    arguments = ["threshold", "val.parquet", *ASKED, "--label", "label", "--apply", "deployed.csv"]
    assert run(arguments) == 2
    assert "no column 'label'" in capsys.readouterr().err


@pytest.mark.usefixtures("plain")
def test_a_missing_confidence_follows_the_policy(folder, capsys):
    holes = frame(1).select(
        pl.when(pl.arange(0, 1200) == 3).then(None).otherwise("confidence").alias("confidence")
    )
    holes.write_parquet("holes.parquet")
    arguments = ["threshold", "val.parquet", *ASKED, "--apply", "holes.parquet", "--out", "out"]
    assert run(arguments) == 2
    assert "have no confidence" in capsys.readouterr().err
    assert run([*arguments, "--missing", "drop"]) == 0
    assert pl.read_parquet("out/results.parquet")["n"].to_list() == [1200, 1199]
    capsys.readouterr()


@pytest.mark.parametrize(
    ("options", "method", "guarantee"),
    [
        (["--coverage", "0.5"], "coverage_guarantee", "coverage"),
        (["--cost", "0.2"], "cost", "none"),
        (["--max-risk", "0.1", "--method", "risk"], "risk", "none"),
        (["--max-risk", "0.05", "--method", "conformal_risk_control"], "conformal_risk_control", "generalized risk"),
        (["--max-risk", "0.05", "--method", "learn_then_test", "--risk", "generalized"], "learn_then_test", "generalized risk"),
    ],
)  # fmt: skip
def test_methods(folder, capsys, options, method, guarantee):
    assert run(["threshold", "val.parquet", *options, "--save", "rule.json"]) == 0
    rule = DecisionRule.from_json(Path("rule.json").read_text())
    assert (rule.method, rule.guarantee) == (method, guarantee)
    if method == "conformal_risk_control":
        assert rule.threshold == conformal_risk_control(*arrays(frame(0)), max_risk=0.05).threshold
    capsys.readouterr()


def test_scores_from_logits(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 400)
    values = 3 * np.eye(3)[labels] + 2 * rng.normal(size=(400, 3))
    np.savez("a.npz", logits=values, labels=labels)
    assert run(["threshold", "a.npz", "--max-risk", "0.2", "--save", "r.json"]) == 0
    p = ab.Predictions(logits=values, labels=labels)
    rule = sgr(ab.confidence.score("msr", p).values, ~p.correct, max_risk=0.2, delta=0.05)
    assert DecisionRule.from_json(Path("r.json").read_text()) == rule.for_score(
        "msr", scale="log-odds"
    )
    assert (
        run(["threshold", "a.npz", "--max-risk", "0.2", "--score", "pe", "--save", "r.json"]) == 0
    )
    assert DecisionRule.from_json(Path("r.json").read_text()).score == "pe"
    capsys.readouterr()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--max-risk", "0.1"], "name the file"),
        (["val.parquet"], "--max-risk, --coverage and --cost; got none"),
        (["val.parquet", "--max-risk", "0.1", "--cost", "0.1"], "got --max-risk, --cost"),
        (["val.parquet", "--max-risk", "0.1", "--method", "srg"], "Did you mean 'sgr'"),
        (
            ["val.parquet", "--max-risk", "0.1", "--method", "coverage"],
            "takes no --max-risk; it needs --coverage",
        ),
        (["val.parquet", "--cost", "0.1", "--delta", "0.1"], "takes no --delta"),
        (
            ["val.parquet", "--max-risk", "0.1", "--risk", "selective"],
            "takes no --risk",
        ),
        (["val.parquet", "--max-risk", "5"], "max_risk"),
        (["val.parquet", *ASKED, "--score", "own"], "no score 'own'"),
        (["val.parquet", *ASKED, "--confidence", "confdence"], "Did you mean 'confidence'"),
        (["val.parquet", *ASKED, "--apply", "tset.csv"], "Did you mean 'test.csv'"),
        (["val.parquet", *ASKED, "--apply", "test.csv", "--apply", "./test.csv"], "twice"),
        (["val.parquet", *ASKED, "--apply", "test.csv", "--by", "site"], "no column 'site'"),
        (["val.parquet", *ASKED, "--level", "95", "--apply", "test.csv"], "level"),
        (
            ["val.parquet", *ASKED, "--level", "0.9"],
            "--level has no effect without the test data of --apply",
        ),
        (
            ["val.parquet", *ASKED, "--group", "study"],
            "--group has no effect without the test data of --apply",
        ),
        (
            ["val.parquet", *ASKED, "--by", "study"],
            "To choose the rule on one subset of the file and check it on another: --calibrate study=VALUE",
        ),
        (
            ["--rule", "rule.json", "--loss", "0/1", "--label", "label"],
            "--loss, --label have no effect without",
        ),
        (["--rule", "rule.json", "--calibrate", "study=noise_1"], "drop --calibrate"),
        (["val.parquet", *ASKED, "--calibrate", "noise_1"], "takes COLUMN=VALUE"),
        (["val.parquet", *ASKED, "--calibrate", "study=a", "--calibrate", "study=b"], "one value"),
        (
            ["val.parquet", *ASKED, "--calibrate", "study=noise1"],
            "no row has 'study=noise1'; the values of 'study' are 'noise_1', 'noise_2'. Did you mean 'noise_1'?",
        ),
        (["val.parquet", *ASKED, "--calibrate", "site=a"], "no column 'site'"),
        (
            ["val.parquet", *ASKED, "--apply", "study=noise_2"],
            "contains calibration samples (all of",
        ),
        (
            ["val.parquet", *ASKED, "--calibrate", "study=noise_1", "--apply", "study=noise_1"],
            "contains calibration samples (--calibrate study=noise_1)",
        ),
        (
            ["--rule", "rule.json", "--apply", "study=noise_2"],
            "no calibration file was passed; name a file",
        ),
        (["val.parquet", *ASKED, "--scale", "log-odds", "--score", "pe"], "no score 'pe'"),
        (["val.parquet", "--rule", "rule.json"], "drop the calibration file"),
        (["--rule", "rule.json", "--delta", "0.1"], "drop --delta"),
        (["--rule", "none.json"], "there is no file"),
        (["--rule", "broken.json"], "broken.json cannot be loaded"),
        (["--rule", "edited.json"], "`delta`"),
        (["--rule", "val.parquet"], "val.parquet cannot be loaded"),
        (["--rule", "platt.json"], "contains a Platt, not a decision rule"),
        (["val.parquet", *ASKED, "--save", "rule.txt"], "must end in '.json'"),
    ],
)
def test_refuses_in_one_plain_line(folder, capsys, arguments, said):
    rule = sgr(*arrays(frame(0)), max_risk=0.1, delta=0.1)
    Path("rule.json").write_text(rule.to_json())
    Path("broken.json").write_text("{")
    Path("edited.json").write_text(rule.to_json().replace('"delta": 0.1', '"delta": 7'))
    save(fit_platt([0.1, 0.9, 0.8], [1, 0, 1]), "platt.json")
    assert run(["threshold", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("abstain: ")
    assert said in error
    assert error.count("\n") == 1


def test_several_confidences_need_a_choice(folder, capsys):
    frame(0).with_columns(confidence_b=pl.col("confidence")).write_parquet("two.parquet")
    assert run(["threshold", "two.parquet", *ASKED]) == 2
    assert "'confidence', 'confidence_b'" in capsys.readouterr().err
    assert run(["threshold", "two.parquet", *ASKED, "--score", "confidence_b"]) == 0
    capsys.readouterr()


def test_hostile_names_are_printed_as_they_are(folder, capsys):
    name = "[1] x[red]x[_] \x1b[31m.csv"
    frame(1).write_csv(name)
    assert run(["threshold", "val.parquet", *ASKED, "--apply", name]) == 0
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert "[red]x" in printed


PICKED = ["--calibrate", "study=noise_1", "--apply", "study=noise_2"]


@pytest.mark.usefixtures("plain")
def test_calibration_and_test_data_from_one_file(folder, capsys):
    assert run(["threshold", "val.parquet", *ASKED, *PICKED, "--out", "out"]) == 0
    first, second = frame(0)[:600], frame(0)[600:]
    rule = sgr(*arrays(first), max_risk=0.1, delta=0.1)
    saved = DecisionRule.from_json((folder / "out" / "rule.json").read_text())
    assert saved == rule.for_score("confidence", scale="probability")
    row = pl.read_parquet("out/results.parquet").row(1, named=True)
    assert (row["name"], row["study"], row["n"]) == ("noise_2", "noise_2", 600)
    wanted = check(rule, *arrays(second)).row()
    assert (row["accepted"], row["excess_high"]) == (wanted["accepted"], wanted["excess_high"])
    # Beside a file, split further, in groups that the calibration data need not have.
    frame(3).with_columns(site=pl.lit("x"), ward=pl.lit("w")).write_csv("later.csv")
    two = frame(0).with_columns(
        site=pl.when(pl.int_range(1200) % 2 == 0).then(pl.lit("a")).otherwise(pl.lit("b")),
        ward=pl.when(pl.int_range(1200) % 3 == 0).then(pl.lit("u")).otherwise(pl.lit("v")),
    )
    two.write_parquet("two.parquet")
    more = ["--apply", "later.csv", "--by", "site", "--group", "ward", "--out", "more"]
    assert run(["threshold", "two.parquet", *ASKED, *PICKED, *more]) == 0
    rows = pl.read_parquet("more/results.parquet")
    assert rows["name"].unique(maintain_order=True).to_list() == [
        "calibration", "noise_2, a", "noise_2, b", "later.csv, x",
    ]  # fmt: skip
    assert rows["subgroup"].to_list() == ["", "", "u", "v", "", "u", "v", "", "w"]
    capsys.readouterr()


@pytest.mark.usefixtures("plain")
def test_what_the_rule_was_chosen_on_together_is_told(folder, capsys):
    arguments = ["threshold", "val.parquet", *ASKED, "--by", "study", "--apply", "shifted.parquet"]
    assert run(arguments) == 0
    said = "chosen on all 2 values of 'study' together; pass --calibrate study=VALUE to choose it on one"
    assert said in words(capsys.readouterr().out)
    assert run([*arguments, "--calibrate", "study=noise_1"]) == 0
    assert "together; --calibrate" not in words(capsys.readouterr().out)


@pytest.mark.usefixtures("plain")
def test_a_group_that_is_broken_is_shown(folder, capsys):
    n = 10_000
    data = pl.DataFrame(
        {
            "confidence": np.ones(n),
            "correct": np.r_[np.arange(9000) % 100 > 0, np.arange(1000) % 5 > 0].astype(int),
            "site": ["a"] * 9000 + ["b"] * 1000,
        }
    )
    data.write_csv("groups.csv")
    rule = DecisionRule("risk", 0.5, target=0.05, score="confidence", scale="probability")
    save(rule, "half.json")
    arguments = ["threshold", "--rule", "half.json", "--apply", "groups.csv"]
    assert run(arguments) == 0
    assert "holds on" in words(capsys.readouterr().out)
    assert run([*arguments, "--group", "site", "--out", "out"]) == 0
    printed = words(capsys.readouterr().out)
    assert "The limit is violated for b. The limit holds overall and for a." in printed
    assert "broken in 1 of 2 groups ('b')" in printed
    verdicts = pl.read_parquet("out/results.parquet")["verdict"].to_list()
    assert verdicts == ["broken", "holds", "broken"]


@pytest.mark.usefixtures("plain")
def test_the_scale_of_a_column_is_requested(folder, capsys):
    odds = frame(1).with_columns(
        confidence=(pl.col("confidence") / (1 - pl.col("confidence"))).log()
    )
    odds.write_csv("odds.csv")
    arguments = ["threshold", "val.parquet", *ASKED, "--apply", "odds.csv"]
    assert run(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("abstain: odds.csv: `confidence` may be on another scale")
    assert "(--scale)" in error
    assert run(["threshold", "val.parquet", *ASKED, "--save", "kept.json"]) == 0
    with_scale = ["--scale", "log-odds", "--out", "out"]
    assert run(["threshold", "--rule", "kept.json", "--apply", "odds.csv", *with_scale]) == 0
    row = pl.read_parquet("out/results.parquet").row(-1, named=True)
    rule = DecisionRule.from_json(Path("kept.json").read_text())
    assert row["accepted"] == rule.apply(arrays(frame(1))[0]).sum()
    assert row["threshold_scale"] == "probability"
    printed = words(capsys.readouterr().out)
    assert f"Answer if “confidence” ≥ {rule.threshold:.3f}" in printed


@pytest.mark.usefixtures("plain")
def test_the_positive_class_is_named(folder, capsys):
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    is_ill = rng.random(2000) < p
    data = pl.DataFrame({"label": np.where(is_ill, "ill", "well"), "p_ill": p, "p_well": 1 - p})
    data.write_csv("ill.csv")
    asked = ["threshold", "ill.csv", "--probabilities", "p_*", "--max-risk", "0.2"]
    assert run([*asked, "--apply", "ill.csv", "--positive", "ill", "--out", "out"]) == 0
    assert "Sensitivity" in capsys.readouterr().out
    assert "p is the probability of ill; positive class: ill" in Path("out/report.html").read_text()
    assert run([*asked, "--positive", "ill"]) == 2
    assert "--positive has no effect without the test data" in words(capsys.readouterr().err)
    assert run([*asked, "--apply", "ill.csv", "--positive", "il"]) == 2
    assert "Did you mean 'ill'?" in words(capsys.readouterr().err)
