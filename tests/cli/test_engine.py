"""`abstain evaluate --engine stream` and `dask`: the same table, page and files as in memory."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from abstain.cli.main import run
from abstain.tables.scan import chunks


def _parts(folder: Path, parts: int = 3, rows: int = 500) -> str:
    folder.mkdir()
    rng = np.random.default_rng(2)
    for part in range(parts):
        confidence = rng.random(rows).astype(np.float32).round(3)
        frame = pl.DataFrame(
            {
                "correct": rng.random(rows) < 0.3 + 0.7 * confidence,
                "confidence": confidence,
                "model": rng.choice(["a", "b"], rows),
            }
        )
        frame.write_parquet(folder / f"part-{part}.parquet", row_group_size=rows // 5)
    return str(folder / "part-*.parquet")


def _table(out: Path) -> pl.DataFrame:
    return pl.read_parquet(out / "results.parquet")


def _printed_table(capsys) -> str:
    """Return the printed table. The answer above it differs: a stream cannot compare samples."""
    answer, table = capsys.readouterr().out.split("Each model")
    assert answer.startswith("a has the lowest AUGRC")
    return table.split("Note")[0]


def test_the_files_of_a_stream_equal_those_of_memory(tmp_path, capsys):
    files = _parts(tmp_path / "big")
    whole = pl.concat([pl.read_parquet(p) for p in sorted((tmp_path / "big").iterdir())])
    whole.write_parquet(tmp_path / "whole.parquet")
    assert run(["evaluate", str(tmp_path / "whole.parquet"), "--by", "model"]) == 0
    displayed = _printed_table(capsys)
    options = ["--by", "model", "--out"]
    assert run(["evaluate", str(tmp_path / "whole.parquet"), *options, str(tmp_path / "one")]) == 0
    capsys.readouterr()
    again = [*options, str(tmp_path / "two"), "--engine", "stream"]
    assert run(["evaluate", files, *again]) == 0
    assert _printed_table(capsys) == displayed
    first, second = _table(tmp_path / "one"), _table(tmp_path / "two")
    kept = first.filter(pl.col("metric").is_in(second["metric"].to_list()))
    numbers = [name for name, kind in kept.schema.items() if kind.is_float()]
    assert kept.drop(numbers).equals(second.drop(numbers))
    for name in numbers:
        np.testing.assert_allclose(kept[name], second[name], rtol=1e-9, atol=1e-14)
    assert (tmp_path / "two" / "report.html").stat().st_size > 100_000


def test_a_pattern_stands_for_its_files_in_memory_too(tmp_path, capsys):
    files = _parts(tmp_path / "big", parts=2)
    assert run(["evaluate", files]) == 0
    out = capsys.readouterr().out
    assert "part-0.parquet" in out
    assert "part-1.parquet" in out


def test_other_metrics_read_nothing_again(tmp_path, capsys):
    files, state = _parts(tmp_path / "big"), str(tmp_path / "state")
    options = ["--engine", "stream", "--resume", state]
    assert run(["evaluate", files, *options]) == 0
    (kept,) = (tmp_path / "state").glob("*.npz")
    before = kept.read_bytes()
    assert run(["evaluate", files, *options, "--metric", "sele"]) == 0
    assert "SELE" in capsys.readouterr().out
    assert list((tmp_path / "state").glob("*.npz")) == [kept]
    assert len(kept.read_bytes()) == len(before)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--resume", "x"], "--resume has no effect with --engine memory"),
        (["--skip-bad"], "--skip-bad has no effect with --engine memory"),
        (["--memory", "2"], "--memory has no effect with --engine memory"),
        (["--engine", "stream", "--memory", "-1"], "--memory must be a number of GiB above 0"),
        (["--engine", "stream", "--scheduler", "tcp://x"], "add --engine dask"),
        (["--engine", "dask", "--resume", "x"], "--resume has no effect with --engine dask"),
        (["--engine", "stream", "--interval", "bootstrap"], "--interval bootstrap draws from all"),
        (["--engine", "stream", "--missing", "reject"], "--missing drop"),
    ],
)
def test_what_has_no_effect_raises_an_error(tmp_path, capsys, options, said):
    assert run(["evaluate", _parts(tmp_path / "big", parts=1), *options]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_memory_says_what_is_computed_of_graded_losses(tmp_path, capsys):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"confidence": rng.random(900), "cost": rng.random(900)})
    frame.write_parquet(tmp_path / "part.parquet")
    command = ["evaluate", str(tmp_path / "part.parquet"), "--own-loss", "cost"]
    for memory, there in (("1", True), ("1e-9", False)):
        out = tmp_path / memory
        assert run([*command, "--engine", "stream", "--memory", memory, "--out", str(out)]) == 0
        names = set(_table(out)["metric"])
        assert "augrc" in names
        assert ("selective_risk@80cov" in names) == there
    assert capsys.readouterr().err == ""


def test_bad_rows_are_omitted_and_said(tmp_path, capsys):
    files = _parts(tmp_path / "big", parts=1)
    frame = pl.read_parquet(files)
    confidence = frame["confidence"].to_numpy().copy()
    confidence[450] = np.nan
    frame = frame.with_columns(confidence=confidence)
    frame.write_parquet(tmp_path / "big" / "part-0.parquet", row_group_size=100)
    assert run(["evaluate", files, "--engine", "stream"]) == 2
    assert "part-0.parquet: 1 of 500 rows" in " ".join(capsys.readouterr().err.split())
    assert run(["evaluate", files, "--engine", "stream", "--skip-bad"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "Left out as bad: 1 of 500 rows. The first: part-0.parquet: no confidence" in text


# ------------------------------------------------------------------------------------ kill -9
#: Runs the command with chunks so small, and looks at the clock so often, that it takes a while.
_SLOWLY = """
import sys, time
from abstain.evaluation.stream import evaluation
from abstain.tables.scan import chunks, scan
from abstain.cli.main import run
import abstain as ab
chunks._MAX_ROWS = chunks._MIN_ROWS = 100
evaluation._MAX_PENDING_ROWS = 1
read = scan.PredictionScan.read
def slowly(self, piece):
    time.sleep({pause})
    return read(self, piece)
scan.PredictionScan.read = slowly
old = ab.StreamOptions.__init__
def init(self, **options):
    old(self, **{{**options, "every": 0.0}})
ab.StreamOptions.__init__ = init
print("begun", flush=True)
raise SystemExit(run(sys.argv[1:]))
"""


def _killed_after(seconds: float, command: list[str], pause: float) -> bool:
    """Run a command and kill it; tell whether it was still running."""
    code = _SLOWLY.format(pause=pause)
    with subprocess.Popen(
        [sys.executable, "-c", code, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        process.stdout.readline()
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            return True
    return False


def _hold_killed(
    tmp_path: Path, monkeypatch, instants: list[float], pause: float, *, graded: bool = False
) -> None:
    for size in ("_MAX_ROWS", "_MIN_ROWS"):
        monkeypatch.setattr(chunks, size, 100)
    files = _parts(tmp_path / "big")
    for path in sorted((tmp_path / "big").iterdir()) if graded else ():
        frame = pl.read_parquet(path)
        loss = pl.Series("loss", np.random.default_rng(1).random(frame.height))
        frame.drop("correct").with_columns(loss).write_parquet(path, row_group_size=50)
    command = ["evaluate", files, "--engine", "stream", "--by", "model"]
    assert run([*command, "--out", str(tmp_path / "whole")]) == 0
    whole = _table(tmp_path / "whole")
    killed = 0
    for i, instant in enumerate(instants):
        state, out = tmp_path / f"state-{i}", tmp_path / f"out-{i}"
        again = [*command, "--resume", str(state), "--out", str(out)]
        killed += _killed_after(instant, again, pause)
        # Nothing that is half written has a name that is looked for.
        assert not out.exists() or _table(out).equals(whole)
        assert run(again) == 0
        assert _table(out).equals(whole)
    assert killed >= len(instants) // 2


def test_a_killed_run_goes_on_to_the_same_result(tmp_path, monkeypatch):
    _hold_killed(tmp_path, monkeypatch, [0.25], pause=0.1)


@pytest.mark.slow
def test_a_run_killed_at_twenty_instants_goes_on_to_the_same_result(tmp_path, monkeypatch):
    draw = random.Random(5)
    _hold_killed(tmp_path, monkeypatch, [draw.uniform(0.0, 0.4) for _ in range(20)], pause=0.02)


@pytest.mark.slow
def test_a_killed_run_of_graded_losses_goes_on_to_the_same_result(tmp_path, monkeypatch):
    draw = random.Random(6)
    instants = [draw.uniform(0.0, 0.4) for _ in range(8)]
    _hold_killed(tmp_path, monkeypatch, instants, pause=0.02, graded=True)
    (rows,) = (tmp_path / "state-0").glob("counted-*-rows")
    assert all(path.name.startswith("run-") for path in rows.iterdir())
