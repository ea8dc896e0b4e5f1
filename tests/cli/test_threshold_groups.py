"""`abstain threshold --per` and `--limit` as a user runs them."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import abstain as ab
from abstain._foundation.files import file_sha256
from abstain.cli.main import run
from abstain.tables import load

ASKED = ["--max-risk", "0.1"]


def frame(seed: int, n: int = 3000) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    site = rng.choice(["north", "south", "tiny"], n, p=[0.6, 0.39, 0.01])
    confidence = rng.beta(3, 1, n)
    wrong = rng.random(n) < np.where(site == "south", 0.5, 0.3) * (1 - confidence)
    label = rng.choice(["cat", "dog", "owl"], n)
    turned = {"cat": "dog", "dog": "owl", "owl": "cat"}
    said = np.where(wrong, [turned[name] for name in label], label)
    return pl.DataFrame(
        {"label": label, "prediction": said, "confidence": confidence, "site": site}
    )


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("abstain.report.threshold_html", lambda *_, **__: "")
    monkeypatch.setattr("abstain.plots.DecisionRuleDisplay.save", lambda *_, **__: None)
    frame(0).write_parquet("val.parquet")
    frame(1).write_parquet("test.parquet")


def printed(capsys, *arguments: str) -> str:
    capsys.readouterr()
    status = run(["threshold", *arguments])
    out = capsys.readouterr()
    assert status == 0, out.err
    return " ".join(out.out.split())


def refused(capsys, *arguments: str) -> str:
    capsys.readouterr()
    assert run(["threshold", *arguments]) == 2
    return " ".join(capsys.readouterr().err.split())


def test_a_threshold_for_each_value_of_a_column(capsys):
    given = ["val.parquet", "--per", "site", "--joint", *ASKED, "--save", "rule.json"]
    text = printed(capsys, *given, "--apply", "test.parquet")
    assert "2 of 3 groups have a threshold; the rule abstains on all samples of tiny." in text
    assert "for all groups jointly" in text
    assert "1 of 3 groups have no threshold" in text
    assert "Rejection rate tiny" in text
    rule = load("rule.json")
    predictions = ab.read_predictions("val.parquet", group="site").only()
    made = ab.set_threshold(predictions, per="group", joint=True, max_risk=0.1, delta=0.05)
    assert rule.per == "site"
    assert rule.parts == made.parts
    # Saved, it knows its column.
    again = printed(capsys, "--rule", "rule.json", "--apply", "test.parquet")
    assert "abstains on all samples of tiny" in again
    assert "north" in again
    frame(2).with_columns(site=pl.lit("east")).write_parquet("east.parquet")
    unseen = printed(capsys, "--rule", "rule.json", "--apply", "east.parquet")
    assert "3000 samples belong to 1 group without calibration data ('east')" in unseen
    frame(2).drop("site").write_parquet("bare.parquet")
    assert "'site'" in refused(capsys, "--rule", "rule.json", "--apply", "bare.parquet")
    both = ["--rule", "rule.json", "--apply", "test.parquet", "--group", "label"]
    assert (
        "--group label has no effect, because the rule has one threshold for each 'site'"
        in refused(capsys, *both)
    )


def test_a_threshold_for_each_predicted_class(capsys):
    per = ["--per", "prediction", *ASKED]
    text = printed(capsys, "val.parquet", *per, "--apply", "test.parquet")
    assert "Each predicted class has its own threshold." in text
    named = ["--per", "label", *ASKED]
    assert "the true class is unknown" in refused(capsys, "val.parquet", *named)
    said = refused(capsys, "val.parquet", *named, "--label", "label")
    assert "Use --per prediction" in said
    assert "--joint requires groups" in refused(capsys, "val.parquet", *ASKED, "--joint")


def test_several_limits(capsys):
    limits = ["--limit", "label=0.2", "--limit", "label:cat=0.15", "--limit", "group=0.5"]
    given = ["val.parquet", "--group", "site", *limits, *ASKED, "--save", "rule.json"]
    text = printed(capsys, *given)
    assert (
        "at most 10% of the answers are wrong; of the answered samples of class cat, at most 15% are "
        "answered with another class (false negatives)"
    ) in text
    rule = load("rule.json")
    targets = {part.name: part.rule.target for part in rule.parts}
    assert targets["overall"] == 0.1
    assert (targets["label:cat"], targets["label:dog"]) == (0.15, 0.2)
    assert {name for name in targets if name.startswith("group")} == {
        "group:north", "group:south", "group:tiny",
    }  # fmt: skip
    checked = printed(capsys, "--rule", "rule.json", "--apply", "test.parquet", "--group", "site")
    assert "FN of cat" in checked
    assert "SUBSET=RISK" in refused(capsys, "val.parquet", "--limit", "label")
    assert "drop the limit 'label'" in refused(
        capsys, "val.parquet", "--limit", "label=0.1", "--per", "prediction"
    )
    assert "replace the limit 'group' by 'overall' (--max-risk)" in refused(
        capsys, "val.parquet", "--limit", "group=0.1", "--per", "site"
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--limit", "overall=0.2", "--max-risk", "0.1"], "--max-risk is the limit 'overall'"),
        (["--limit", "overall=0.1", "--limit", "overall=0.2"], "overall occurs twice"),
        (["--limit", "overall=0.1", "--delta", "0"], "`delta` must lie strictly"),
        (
            ["--limit", "overall=0.1", "--method", "sgr"],
            "--limit supports only the method 'learn_then_test'",
        ),
        (["--limit", "group=0.1"], "--group"),
        (["--limit", "overall=0.1", "--starts", "1.5"], "`starts` must lie in (0, 1]"),
        ([*ASKED, "--starts", "0.5"], "the rule 'sgr' takes no --starts"),
        (["--rule", "val.parquet", "--starts", "0.5"], "drop the calibration file, --starts"),
    ],
)
def test_refuses_limits_that_contradict_each_other(capsys, arguments, said):
    assert said in refused(capsys, "val.parquet", *arguments)


def test_where_walks_start_may_be_said(capsys):
    limits = ["--limit", "label:cat=0.15", *ASKED, "--starts", "0.9", "0.4", "--save", "rule.json"]
    printed(capsys, "val.parquet", *limits)
    asked = {"limits": {"label:cat": 0.15}, "max_risk": 0.1, "delta": 0.05}
    data = ab.read_predictions("val.parquet").only()
    assert load("rule.json") == ab.set_threshold(data, **asked, starts=(0.9, 0.4))
    own = [*ASKED, "--method", "learn_then_test", "--starts", "0.3", "--save", "rule.json"]
    printed(capsys, "val.parquet", *own)
    options = {"method": "learn_then_test", "max_risk": 0.1, "delta": 0.05}
    assert load("rule.json") == ab.set_threshold(data, **options, starts=[0.3])


def test_limits_that_cannot_be_met_exit_as_unattainable(capsys):
    capsys.readouterr()
    assert run(["threshold", "val.parquet", "--limit", "label=0.001", "--max-risk", "0.1"]) == 3
    text = " ".join(capsys.readouterr().out.split())
    assert text.startswith("Unattainable: no threshold could be certified for all limits.")
    # The reasons are printed once.
    assert text.count("label:cat: ") == 1


def test_limits_in_each_group_end_to_end(capsys, monkeypatch, tmp_path):
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    per = ["--per", "site", "--limit", "label:cat=0.2", *ASKED]
    checked = ["--apply", "test.parquet", "--out", "report"]
    text = printed(capsys, "val.parquet", *per, *checked)
    assert "2 of 3 groups have a threshold; the rule abstains on all samples of tiny." in text
    assert (
        "at most 10% of the answers are wrong; of the answered samples of class cat, at most 20% are "
        "answered with another class (false negatives)"
    ) in text
    assert "the limits are 10% of all answers and 20% for false negatives of cat" in text
    page = Path("report/report.html").read_text(encoding="utf-8")
    assert f"test.parquet, SHA-256 {file_sha256(Path('test.parquet'))}" in page
    assert "All limits hold jointly in each group with a probability of at least 95%" in text
    data = ab.read_predictions("val.parquet", group="site").only()
    options = {"per": "group", "max_risk": 0.1, "limits": {"label:cat": 0.2}}
    assert load("report/rule.json").parts == ab.set_threshold(data, **options).parts
    rows = pl.read_csv("report/results.csv").filter(pl.col("role") == "limit")
    assert rows["subgroup"].to_list() == [f"{s}: label:cat" for s in ("north", "south", "tiny")]
    assert set(rows["target"]) == {0.2}
    page = Path("report/report.html").read_text()
    assert page.count('<tr class="group"><th scope="row" class="name">FN of cat</th>') >= 6
    jointly = printed(capsys, "val.parquet", *per, "--joint")
    assert "All limits and all groups hold jointly with a probability of at least 95%" in jointly
    again = printed(capsys, "--rule", "report/rule.json", "--apply", "test.parquet")
    assert "FN of cat" in again
