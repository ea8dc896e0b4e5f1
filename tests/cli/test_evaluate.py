"""The commands as a user runs them: what they print, what they leave, how they refuse."""

import os
import shlex
import subprocess
import sys
import warnings
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name

import numpy as np
import polars as pl
import pytest
from PIL import Image
from rich.console import Console

import abstain as ab
from abstain.cli.catalogues import all_catalogues
from abstain.cli.main import run
from abstain.errors import InputError
from abstain.evaluation import results
from abstain.tables import read_predictions


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    n = 300
    label = rng.integers(0, 3, n)
    wrong = rng.random(n) < 0.2
    frame = pl.DataFrame(
        {
            "y_true": label,
            "y_pred": np.where(wrong, (label + 1) % 3, label),
            "confidence": np.clip(rng.beta(5, 1, n) - 0.3 * wrong * rng.random(n), 0, 1),
            "entropy": rng.normal(size=n),
            "site": np.where(rng.random(n) < 0.5, "a", "b"),
        }
    )
    frame.write_csv(tmp_path / "predictions.csv")
    return tmp_path / "predictions.csv"


COLUMNS = ["--label", "y_true", "--prediction", "y_pred", "--confidence", "confidence"]


def test_one_name_is_a_sweep(table: Path, tmp_path: Path) -> None:
    names = ["--metric", "cwsa@0.5:0.9:3", "--metric", "selective_risk@50:100:2cov"]
    to = tmp_path / "out"
    assert run(["evaluate", str(table), *COLUMNS, *names, "--out", str(to)]) == 0
    result = pl.read_parquet(to / "results.parquet")
    metric_names = [
        "cwsa@0.5",
        "cwsa@0.7",
        "cwsa@0.9",
        "selective_risk@50cov",
        "selective_risk@100cov",
    ]
    assert result["metric"].to_list() == metric_names
    assert result["low"].is_finite().all()
    predictions = read_predictions(table).only()
    swept = ab.cwsa_sweep(
        predictions.confidence["confidence"], ~predictions.correct, thresholds=[0.5, 0.7, 0.9]
    )
    np.testing.assert_allclose(result["value"][:3], swept.cwsa, rtol=0, atol=1e-12)


def test_curves_are_made_for_a_page_alone(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    compute_curves = results.compute_curves
    made_by = import_module("abstain.evaluation.results")
    monkeypatch.setattr(
        made_by, "compute_curves", lambda part: made.append(part) or compute_curves(part)
    )
    assert run(["evaluate", str(table), *COLUMNS]) == 0
    assert not made
    assert run(["evaluate", str(table), *COLUMNS, "--out", str(tmp_path / "out")]) == 0
    assert len(made) == 1


def test_prints_a_table_in_100_columns(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["evaluate", str(table), *COLUMNS]) == 0
    out = capsys.readouterr().out
    assert "AUGRC" in out
    assert max(map(len, out.splitlines())) <= 100


def test_leaves_tables_and_a_report(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "results"
    assert run(["evaluate", str(table), *COLUMNS, "--by", "site", "--out", str(out)]) == 0
    assert sorted(p.name for p in out.iterdir()) == [
        "receipt.json",
        "report.html",
        "results.csv",
        "results.parquet",
        "table.md",
        "table.tex",
    ]
    rows = pl.read_parquet(out / "results.parquet")
    expected = {"site", "score", "metric", "value", "n", "failures", "tied_share", "convention"}
    assert expected <= set(rows.columns)
    frame = pl.read_csv(table).filter(pl.col("site") == "a")
    wrong = (frame["y_true"] != frame["y_pred"]).to_numpy()
    value = rows.filter(site="a", metric="augrc")["value"].item()
    assert value == ab.augrc(frame["confidence"].to_numpy(), wrong), "full double precision"
    csv = pl.read_csv(out / "results.csv", null_values=["NaN"])
    assert csv.filter(site="a", metric="augrc")["value"].item() == value


def test_pictures_lie_beside_the_file_or_where_it_is_said(
    table: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = [f"{i}.png" for i in range(300)]
    pl.read_csv(table).with_columns(image=pl.Series(names)).write_csv(table)
    Image.new("L", (9, 9)).save(tmp_path / "0.png")
    seen, to = tmp_path / "seen", tmp_path / "out"
    seen.mkdir()
    for name in names:
        Image.new("L", (9, 9)).save(seen / name)
    arguments = ["evaluate", str(table), *COLUMNS, "--id", "image", "--out", str(to)]
    assert run(arguments) == 0
    assert "samples have no image" in (to / "report.html").read_text()
    assert run([*arguments, "--pictures", str(seen)]) == 0
    page = (to / "report.html").read_text()
    assert "samples have no image" not in page
    monkeypatch.chdir(seen)
    assert run(arguments) == 0
    assert "samples have no image" not in (to / "report.html").read_text()
    assert page.count('alt="Image of sample ') == 48
    assert run([*arguments, "--pictures", str(tmp_path / "none")]) == 2
    assert "none" in capsys.readouterr().err
    assert run(["evaluate", str(table), *COLUMNS, "--pictures", str(seen)]) == 2
    assert "adds images to the report of --out" in capsys.readouterr().err


def test_several_confidences_scores_and_metrics(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = [*COLUMNS, "--confidence", "entropy", "--metric", "coverage@7risk", "--full"]
    assert run(["evaluate", str(table), *options]) == 0
    out = capsys.readouterr().out
    assert "entropy" in out
    assert "Coverage at 7% risk" in out


def test_logits_in_an_npz(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(1)
    logits = rng.normal(size=(200, 4))
    np.savez(tmp_path / "run.npz", logits=logits, labels=logits.argmax(1) ^ (rng.random(200) < 0.1))
    assert run(["evaluate", str(tmp_path / "run.npz"), "--out", str(tmp_path / "out")]) == 0
    rows = pl.read_parquet(tmp_path / "out" / "results.parquet")
    assert set(rows["score"]) == {
        "msr", "mls", "pe", "margin", "logit_margin", "gini", "gen", "energy", "pnorm",
    }  # fmt: skip
    assert "msr" in capsys.readouterr().out


def test_several_files(table: Path, tmp_path: Path) -> None:
    second = tmp_path / "second.csv"
    second.write_text(table.read_text())
    out = tmp_path / "out"
    assert run(["evaluate", str(table), str(second), *COLUMNS, "--out", str(out)]) == 0
    assert set(pl.read_parquet(out / "results.parquet")["file"]) == {
        "predictions.csv",
        "second.csv",
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--label", "y_tru"], "y_true"),
        ([*COLUMNS, "--metric", "augrcc"], "Did you mean 'augrc'"),
        ([*COLUMNS, "--score", "msrr"], "no score named 'msrr'"),
        ([*COLUMNS, "--by", "sites"], "site"),
        ([*COLUMNS, "--loss", "brierr"], "brier"),
    ],
)
def test_refuses_in_one_plain_line(
    options: list[str], message: str, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["evaluate", str(table), *options]) == 2
    err = capsys.readouterr().err
    assert err.startswith("abstain: ")
    assert message in err
    assert "Traceback" not in err


def test_hints_are_flags(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "label=1.csv"
    path.write_text("label,prediction,confidence,loss=2\n-1,1,0.9,1\n1,1,,2\n1,1,0.5,2\n")
    assert run(["evaluate", str(path)]) == 2
    err = capsys.readouterr().err
    assert err.startswith("abstain: label=1.csv: ")
    assert "--missing drop removes" in err
    assert run(["evaluate", str(path), "--missing", "drop", "--by", "loss=2"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "label=1.csv: read label" in out
    assert "pass --unknown-label=-1" in out
    assert "loss=2" in out
    assert "--label" not in out
    assert "--own-loss" not in out
    assert run(["evaluate", str(path), "--own-loss", "los"]) == 2
    assert "requested by --own-loss" in capsys.readouterr().err


def test_hints_are_keywords_again_after_a_command(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("label,prediction,confidence\n1,1,\n")
    assert run(["evaluate", str(path)]) == 2
    with pytest.raises(InputError, match="missing='drop' removes"):
        read_predictions(path)


def test_a_missing_file_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["evaluate", "nowhere.csv"]) == 2
    assert "nowhere.csv" in capsys.readouterr().err


def test_an_output_folder_that_is_a_file_is_said(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["evaluate", str(table), *COLUMNS, "--out", str(table)]) == 2
    err = capsys.readouterr().err
    assert err.startswith("abstain: the folder ")
    assert err.endswith("predictions.csv' is a file, not a folder\n")
    assert "Errno" not in err


def test_a_column_of_the_results_cannot_split_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.csv").write_text("label,prediction,confidence,metric\n1,1,0.9,a\n0,1,0.5,b\n")
    assert run(["evaluate", str(tmp_path / "p.csv"), "--by", "metric"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("abstain: ")
    assert "'metric'" in err
    assert err.count("\n") == 1


def test_the_report_names_the_command_that_ran(table: Path, tmp_path: Path) -> None:
    arguments = ["evaluate", str(table), *COLUMNS, "--out", str(tmp_path / "out")]
    assert run(arguments) == 0
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert f"<code>{shlex.join(['abstain', *arguments])}</code>" in page


def test_warnings_are_as_they_were(table: Path) -> None:
    before = list(warnings.filters)
    assert run(["evaluate", str(table), *COLUMNS]) == 0
    assert warnings.filters == before


def test_nothing_of_a_file_steers_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    attack = "\x1b[31mred\x9b2J\u202e\x07"
    path = tmp_path / "p.csv"
    path.write_text(f"label,prediction,confidence,{attack}\n{attack},x,0.9,1\ny,y,0.5,2\n")
    assert run(["evaluate", str(path), "--label", "no"]) == 2
    refused = capsys.readouterr().err
    assert run(["evaluate", str(path), "--by", attack, "--out", str(tmp_path / "[bold]")]) == 0
    printed = capsys.readouterr().out
    assert r"\x1b[31mred\x9b2J\u202e\x07" in refused
    assert str(tmp_path / "[bold]" / "report.html") in printed
    for steering in "\x1b\x9b\u202e\x07":
        assert steering not in refused + printed


def test_an_unknown_option_is_refused(table: Path) -> None:
    assert run(["evaluate", str(table), "--colour", "red"]) != 0


@pytest.mark.parametrize(
    ("what", "name"), [("metrics", "augrc"), ("scores", "msr"), ("losses", "brier")]
)
def test_list(what: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["list", what]) == 0
    assert name in capsys.readouterr().out


@pytest.mark.parametrize("what", all_catalogues())
def test_a_list_fits_80_columns_and_cuts_no_address(
    what: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("abstain.cli.listing.console", lambda: Console(width=80))
    if run(["list", what]) != 0:
        assert "pip install" in capsys.readouterr().err
        return
    lines = capsys.readouterr().out.splitlines()
    # Only what has no blank to break at may be longer.
    assert not [line for line in lines if len(line) > 80 and " " in line.strip()]
    for section in all_catalogues()[what]:
        result = resolve_name(section.entries)
        for entry in (result() if callable(result) else result).values():
            for word in getattr(entry, "source", "").split():
                assert any(word in line for line in lines), word


def test_a_list_of_nothing_says_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["list"]) == 0
    printed = capsys.readouterr().out
    assert not [what for what in all_catalogues() if what not in printed]


@pytest.mark.parametrize(
    "arguments", [["--help"], ["evaluate", "--help"], ["list", "--help"], ["--version"]]
)
def test_help_and_version(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 0
    assert capsys.readouterr().out.strip()


def test_as_a_program(table: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "abstain", "evaluate", str(table), *COLUMNS],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(ab.__file__).parents[1])},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    assert "AUGRC" in done.stdout


@pytest.mark.parametrize("options", [[], ["--full"]])
def test_a_reader_that_stops_reading_ends_it_quietly(
    options: list[str], table: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    words = ["evaluate", str(table), *COLUMNS, *options, "--out", str(out)]
    program = subprocess.Popen(
        [sys.executable, "-m", "abstain", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(ab.__file__).parents[1])},
    )
    program.stdout.close()
    assert program.stderr.read() == b""
    program.stderr.close()
    assert program.wait() == 1
    assert (out / "report.html").exists()
