"""`abstain compare` as a user runs it, and the intervals of `abstain evaluate`."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import abstain as ab
from abstain.cli.main import run


def frame(seed: int, n: int = 300) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    label = np.random.default_rng(0).integers(0, 3, n)  # the same images in every run
    right = rng.random(n) < 0.85
    return pl.DataFrame(
        {
            "id": [f"x{i}" for i in range(n)],
            "label": label,
            "prediction": np.where(right, label, (label + 1) % 3),
            "msr": right + rng.normal(size=n),
            "pe": right + 3 * rng.normal(size=n),
            "mls": right + 1.2 * rng.normal(size=n),
            "patient": np.arange(n) // 10,
            "site": np.where(np.arange(n) % 2, "a", "b"),
        }
    )


@pytest.fixture
def table(tmp_path: Path) -> Path:
    frame(1).write_parquet(tmp_path / "preds.parquet")
    return tmp_path / "preds.parquet"


FIGURES = ["--figures", "svg", "--figures", "pdf", "--figures", "png"]
SCORES = ["--confidence", "msr", "--confidence", "mls", "--confidence", "pe"]


def test_prints_in_100_columns_and_leaves_tables_report_and_figures(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "cmp"
    assert (
        run(["compare", str(table), *SCORES, "--metric", "augrc", "--out", str(out), *FIGURES]) == 0
    )
    printed = capsys.readouterr().out
    assert "AUGRC" in printed
    assert "mls" in printed
    assert max(map(len, printed.splitlines()[:-1])) <= 100
    left = {p.name for p in out.iterdir()}
    assert {"results.parquet", "results.csv", "pairs.csv", "standings.parquet"} <= left
    assert {"report.html", "figures"} <= left
    assert {".svg", ".pdf", ".png", ".csv"} == {p.suffix for p in (out / "figures").iterdir()}
    rows = pl.read_parquet(out / "results.parquet")
    data = frame(1)
    wrong = (data["label"] != data["prediction"]).to_numpy()
    value = rows.filter(method="pe", metric="augrc")["value"].item()
    assert value == ab.augrc(data["pe"].to_numpy(), wrong), "full double precision"


def test_only_the_confidences_named_are_methods(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "cmp"
    arguments = ["--confidence", "msr", "--confidence", "pe"]
    assert run(["compare", str(table), *arguments, "--out", str(out)]) == 0
    rows = pl.read_parquet(out / "results.parquet")
    assert rows["method"].to_list() == ["msr", "pe"]


def test_a_file_a_run(tmp_path: Path) -> None:
    for seed in (1, 2, 3):
        data = frame(seed)
        np.savez(tmp_path / f"run{seed}.npz", **{k: data[k].to_numpy() for k in data.columns[1:6]})
    files = [str(tmp_path / f"run{seed}.npz") for seed in (1, 2, 3)]
    options = [*SCORES, "--runs-from", "filename", "--metric", "augrc", "--metric", "aurc"]
    out = tmp_path / "cmp"
    assert (
        run(["compare", *files, *options, "--bootstrap", "64", "--literature", "--out", str(out)])
        == 0
    )
    rows = pl.read_parquet(out / "results.parquet").filter(method="msr", metric="augrc")
    assert rows["run"].to_list() == ["run1.npz", "run2.npz", "run3.npz", "mean"]
    assert rows["value"][3] == pytest.approx(rows["value"][:3].mean())
    tests = set(pl.read_parquet(out / "pairs.parquet")["test"])
    assert {"paired bootstrap", "Wilcoxon on bootstrap replicates"} <= tests


def test_runs_and_methods_in_columns(tmp_path: Path) -> None:
    parts = [
        frame(seed).with_columns(model=pl.lit(model), seed=pl.lit(seed))
        for model, seed in (("a", 1), ("b", 2))
    ]
    pl.concat(parts).write_csv(tmp_path / "all.csv")
    out = tmp_path / "cmp"
    options = ["--confidence", "msr", "--methods-from", "model", "--id", "id", "--out", str(out)]
    assert run(["compare", str(tmp_path / "all.csv"), *options]) == 0
    rows = pl.read_parquet(out / "results.parquet")
    assert rows["method"].to_list() == ["a", "b"]


def test_clustered_non_inferiority_and_permutation(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "cmp"
    options = [*SCORES, "--group", "patient", "--clustered", "--test", "permutation"]
    options += ["--margin", "0.05", "--reference", "msr", "--out", str(out)]
    assert run(["compare", str(table), *options]) == 0
    result = pl.read_parquet(out / "non_inferiority.parquet")
    assert set(result["method"]) == {"mls", "pe"}
    assert pl.read_parquet(out / "pairs.parquet")["test"][0] == "permutation"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--confidence", "msr"], "at least two methods"),
        ([*SCORES, "--metric", "augcr"], "Did you mean"),
        ([*SCORES, "--runs-from", "seed"], "seed"),
        ([*SCORES, "--level", "2"], "level"),
        ([*SCORES, "--clustered"], "group"),
        ([*SCORES, "--margin", "0.1"], "reference"),
        ([*SCORES, "--figures", "svg"], "--out"),
        ([*SCORES, "--bootstrap", "1"], "at least 2"),
    ],
)
def test_refuses_in_one_plain_line(
    table: Path, options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["compare", str(table), *options]) == 2
    error = capsys.readouterr().err
    assert error.startswith("abstain: ")
    assert words in error
    assert error.count("\n") == 1


# ------------------------------------------------------------------------------------ evaluate
@pytest.mark.parametrize("kind", ["analytic", "bootstrap", "none"])
def test_intervals_of_evaluate(
    table: Path, tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "results"
    options = ["--interval", kind, "--metric", "augrc"]
    options += ["--level", "0.9"] if kind != "none" else []
    options += ["--bootstrap", "100"] if kind == "bootstrap" else []
    options += ["--metric", "fpr_at_95tpr", "--out", str(out)]
    assert run(["evaluate", str(table), "--confidence", "msr", *options]) == 0
    row = pl.read_parquet(out / "results.parquet").filter(metric="augrc").row(0, named=True)
    printed = capsys.readouterr().out
    if kind == "none":
        assert np.isnan(row["low"])
        assert not row["interval"]
        assert "% interval" not in printed
        return
    assert row["level"] == 0.9
    assert row["low"] < row["value"] < row["high"]
    assert "90% interval" in printed
    fpr = pl.read_parquet(out / "results.parquet").filter(metric="fpr_at_95tpr").row(0, named=True)
    assert np.isnan(fpr["low"]) == (kind == "analytic")
    assert ("bootstrap" in fpr["interval_note"]) == (kind == "analytic")


def test_weights_and_a_bootstrap_of_every_metric(table: Path, tmp_path: Path) -> None:
    data = pl.read_parquet(table).with_columns(weight=pl.int_range(pl.len()) % 3 + 0.5)
    data.write_parquet(tmp_path / "weighted.parquet")
    options = ["--weight", "weight", "--interval", "bootstrap", "--bootstrap", "20"]
    files = [str(tmp_path / "weighted.parquet"), "--confidence", "msr"]
    assert run(["evaluate", *files, *options, "--out", str(tmp_path / "out")]) == 0
    rows = pl.read_parquet(tmp_path / "out" / "results.parquet").filter(metric="augrc")
    assert rows["low"].item() < rows["value"].item() < rows["high"].item()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["evaluate", "--bootstrap", "50"], "--bootstrap has no effect with --interval analytic"),
        (["evaluate", "--interval", "none", "--level", "0.9"], "--level has no effect"),
        (["evaluate", "--interval", "none", "--clustered", "--group", "site"], "--clustered has"),
        (["evaluate", "--interval", "none", "--bootstrap", "9", "--level", "0.9"], "drop them"),
        (["evaluate", "--group", "site"], "--group has no effect without --out"),
        (["compare", *SCORES, "--group", "site"], "--group has no effect without --clustered"),
        (["compare", *SCORES, "--methods-from", "filename"], "requires one file per method"),
        (["compare", *SCORES, "--figures", "svg"], "--out"),
    ],
)
def test_an_option_without_effect_raises_an_error(
    table: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command, *options = arguments
    named = ["--confidence", "msr"] if command == "evaluate" else []
    assert run([command, str(table), *named, *options]) == 2
    assert said in capsys.readouterr().err
