"""`abstain cascade` as a user runs it: what it prints, leaves behind and refuses."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import abstain as ab
from abstain.cli.main import run
from abstain.tables import load

STAGES = ["--stage", "small=conf_small,right_small", "--stage", "large=conf_large,right_large"]
ASKED = ["--max-risk", "0.1", "--cost", "small=1", "--cost", "large=10", "--cost", "person=100"]


def frame(seed: int, n: int = 1500, *, shift: float = 0.0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    hard = np.clip(rng.random(n) + shift, 0, 1)
    wrong = [rng.random(n) < 0.6 * hard**2, rng.random(n) < 0.3 * hard**3]
    label = rng.integers(3, size=n)
    return pl.DataFrame(
        {
            "id": [f"s{i}" for i in range(n)],
            "conf_small": 1 - hard,
            "right_small": (~wrong[0]).astype(int),
            "said_small": np.where(wrong[0], (label + 1) % 3, label),
            "conf_large": 1 - hard**2,
            "right_large": (~wrong[1]).astype(int),
            "said_large": np.where(wrong[1], (label + 1) % 3, label),
            "right_person": (rng.random(n) > 0.05).astype(int),
            "label": label,
        }
    )


def pairs(data: pl.DataFrame) -> dict:
    return {
        name: (data[f"conf_{name}"].to_numpy(), 1 - data[f"right_{name}"].to_numpy())
        for name in ("small", "large")
    }


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    frame(0).write_parquet("val.parquet")
    frame(1).write_csv("test.csv")
    return tmp_path


def words(text: str) -> str:
    return " ".join(text.split())


COSTS = {"small": 1, "large": 10, "person": 100}


def test_prints_the_cascade_and_leaves_files(folder, capsys):
    frame(2, shift=0.4).write_parquet("shifted.parquet")
    applied = ["--apply", "test.csv", "--apply", "shifted.parquet", "--capacity", "0.5"]
    assert run(["cascade", "val.parquet", *STAGES, *ASKED, *applied, "--out", "out"]) == 0
    printed = capsys.readouterr().out
    ours = ab.set_cascade(pairs(frame(0)), max_risk=0.1, capacity=0.5, costs=COSTS)
    kept = load("out/cascade.json")
    assert [s.threshold for s in kept.stages] == [s.threshold for s in ours.stages]
    text = words(printed)
    run_stage = next(s for s in ours.stages if s.answers == "some")
    assert f"answers if its confidence is at least {run_stage.threshold:.9g}" in text
    assert "at most 10% of all answers are wrong, and at most 50% of the samples are" in text
    assert "The guarantee is violated on 1 of 2 data sets (“shifted.parquet”)" in text
    assert max(map(len, printed.splitlines()[:-1])) <= 100
    assert {p.name for p in (folder / "out").iterdir()} == {
        "cascade.json",
        "results.parquet",
        "results.csv",
        "report.html",
        "receipt.json",
        "figures",
    }
    rows = pl.read_parquet("out/results.parquet")
    assert rows["name"].to_list() == ["calibration", "test.csv", "shifted.parquet"]
    assert rows["risk"][0] == pytest.approx(ours.risk)
    page = (folder / "out/report.html").read_text()
    assert "Risk of each stage" in page
    assert "<svg" in page


def test_columns_of_predictions_and_files_of_their_own_say_the_same(folder, capsys):
    assert run(["cascade", "val.parquet", *STAGES, *ASKED, "--save", "one.json"]) == 0
    named = ["--label", "label", "--stage", "small=conf_small,said_small"]
    named += ["--stage", "large=conf_large,said_large"]
    assert run(["cascade", "val.parquet", *named, *ASKED, "--save", "two.json"]) == 0
    for name, seed in (("small", 3), ("large", 4)):
        own = frame(0).select("id", confidence=f"conf_{name}", correct=f"right_{name}")
        # The small model keeps its order: the samples are divided by it.
        own = own if name == "small" else own.sample(fraction=1, shuffle=True, seed=seed)
        own.write_csv(f"{name}.csv")
    apart = ["--stage", "small=small.csv", "--stage", "large=large.csv", "--id", "id"]
    capsys.readouterr()
    assert run(["cascade", *apart[:4], *ASKED]) == 0
    assert "assumed to be in the same order. Pass --id" in words(capsys.readouterr().out)
    assert run(["cascade", *apart, *ASKED, "--save", "three.json"]) == 0
    long = [pl.read_csv(f"{n}.csv").with_columns(model=pl.lit(n)) for n in ("small", "large")]
    pl.concat(long).write_parquet("long.parquet")
    rows = ["--stage", "small=model=small", "--stage", "large=model=large", "--id", "id"]
    assert run(["cascade", "long.parquet", *rows, *ASKED, "--save", "four.json"]) == 0
    assert load("four.json") == load("three.json")
    # Without names the rows of either model are taken to be in one order, though not the same rows.
    one = [pl.read_csv("small.csv").sort("id"), pl.read_csv("large.csv").sort("id")]
    ordered = [
        own.with_columns(model=pl.lit(n)) for own, n in zip(one, ("small", "large"), strict=True)
    ]
    pl.concat(ordered).drop("id").write_parquet("long.parquet")
    capsys.readouterr()
    assert run(["cascade", "long.parquet", *rows[:4], *ASKED, "--save", "five.json"]) == 0
    assert "assumed to be in the same order. Pass --id" in words(capsys.readouterr().out)
    assert (
        run(
            ["cascade", "long.parquet", "--rule", "five.json", *rows[:4], "--apply", "long.parquet"]
        )
        == 0
    )
    results = [load(f"{name}.json") for name in ("one", "two", "three")]
    assert results[0] == results[1]
    assert [s.threshold for s in results[0].stages] == [s.threshold for s in results[2].stages]
    assert results[0].risk == results[2].risk


def test_a_saved_cascade_is_checked_and_parts_of_one_file_are_distinguished(folder, capsys):
    both = pl.concat([frame(0).with_columns(part=pl.lit("a")), frame(1).with_columns(part=pl.lit("b"))])  # fmt: skip
    both.write_parquet("both.parquet")
    parts = ["--calibrate", "part=a", "--apply", "part=b", "--save", "c.json"]
    assert run(["cascade", "both.parquet", *STAGES, *ASKED, *parts]) == 0
    first = words(capsys.readouterr().out)
    assert run(["cascade", "--rule", "c.json", *STAGES, "--apply", "test.csv"]) == 0
    second = words(capsys.readouterr().out)
    risk = ab.check_cascade(load("c.json"), pairs(frame(1))).checks[0].risk
    assert f"{risk:.4f}" in first
    assert f"{risk:.4f}" in second


def test_the_person_is_measured_or_assumed_and_data_may_lack_labels(folder, capsys):
    person = ["--person", "right_person", "--apply", "test.csv", "--save", "c.json"]
    assert run(["cascade", "val.parquet", *STAGES, *ASKED, *person]) == 0
    assert load("c.json").plan.person_error is None
    assert "said, not measured" not in words(capsys.readouterr().out)
    frame(1).select("conf_small", "conf_large").write_parquet("bare.parquet")
    rate = ["--person-error", "0.02", "--apply", "bare.parquet", "--save", "d.json"]
    assert run(["cascade", "val.parquet", *STAGES, *ASKED, *rate]) == 0
    assert load("d.json").plan.person_error == 0.02
    assert "The data have no labels" in words(capsys.readouterr().out)


def test_unattainable_says_what_comes_closest_and_exits_with_3(folder, capsys):
    arguments = ["--max-risk", "0.01", "--capacity", "5", "--per-day", "200"]
    assert run(["cascade", "val.parquet", *STAGES, *arguments]) == 3
    text = words(capsys.readouterr().out)
    assert "Unattainable: no thresholds could be certified" in text
    assert "with 200 samples per day, more than 5 on at most 5% of the days" in text
    assert "the safest choice of" in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["val.parquet", *ASKED], "--stage"),
        (["val.parquet", *STAGES], "--max-risk"),
        ([*STAGES, *ASKED], "calibration predictions"),
        (["val.parquet", "--stage", "small", *ASKED], "NAME=CONFIDENCE,CORRECT"),
        (["val.parquet", *STAGES, "--max-risk", "0.1", "--cost", "small"], "NAME=COST"),
        (["val.parquet", *STAGES, "--max-risk", "0.1", "--cost", "small=1"], "person"),
        (["val.parquet", *STAGES, *ASKED, "--apply", "id=s1"], "contains calibration samples"),
        (["val.parquet", *STAGES, *ASKED, "--capacity", "40"], "--per-day"),
        (["val.parquet", *STAGES, *ASKED, "--capacity", "40", "--per-day", "20"], "--capacity"),
        (["val.parquet", "--stage", "person=conf_small,right_small", *ASKED], "'person'"),
        (["val.parquet", *STAGES, *STAGES, *ASKED], "'small' occurs twice"),
        (["val.parquet", "--stage", "small=conf_small,rigth_small", *ASKED], "'rigth_small'"),
        (["--rule", "val.parquet", *ASKED], "--rule has"),
        (["val.parquet", *STAGES, *ASKED, "--group", "label"], "drop --group"),
        (["val.parquet", *STAGES, *ASKED, "--level", "0.9"], "--level"),
        (["val.parquet", *STAGES, *ASKED, "--overflow", "0.1"], "--overflow is a share of days"),
        (["val.parquet", *STAGES, *ASKED, "--ordered-by", "1.5"], "`ordered_by`"),
    ],
)
def test_refuses_with_a_plain_line(folder, capsys, arguments, said):
    assert run(["cascade", *arguments]) == 2
    output = capsys.readouterr().err
    assert said in output
    assert "unexpected error" not in output
