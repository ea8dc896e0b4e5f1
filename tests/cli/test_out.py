"""What `--out` leaves is one set with a receipt, whichever command leaves it."""

import hashlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import abstain as ab
from abstain.cli.app import all_commands
from abstain.cli.main import run
from abstain.tables import write_results

EVALUATE = ["evaluate", "p.csv", "--out", "out"]
COMMANDS = {
    "evaluate": EVALUATE,
    "compare": ["compare", "p.csv", "--figures", "svg", "--out", "out"],
    "threshold": ["threshold", "p.csv", "--coverage", "0.5", "--score", "a", "--out", "out"],
}
STUDY = ["study", "precision", "--out", "out"]
if "study" in all_commands():
    COMMANDS["study"] = STUDY


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_predictions(tmp_path / "p.csv", 60)
    return tmp_path


def write_predictions(path: Path, n: int) -> None:
    rng = np.random.default_rng(0)
    columns = {"label": rng.integers(2, size=n), "prediction": rng.integers(2, size=n)}
    pl.DataFrame({**columns, **{f"confidence_{c}": rng.random(n) for c in "ab"}}).rename(
        {"confidence_a": "a", "confidence_b": "b"}
    ).write_csv(path)


def set_in(out: Path) -> dict[str, str]:
    """Return the hashes of all files, the receipt left out."""
    results = {path.relative_to(out).as_posix(): path for path in out.rglob("*") if path.is_file()}
    results.pop("receipt.json", None)
    return {n: hashlib.sha256(path.read_bytes()).hexdigest() for n, path in results.items()}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_leaves_a_receipt_of_all_its_files(folder, capsys, command):
    arguments = [*COMMANDS[command], *named(command)]
    assert run(arguments) == 0, capsys.readouterr().err
    receipt = json.loads((folder / "out" / "receipt.json").read_text())
    assert receipt["files"] == set_in(folder / "out")
    assert {"results.csv", "results.parquet", "report.html"} <= receipt["files"].keys()
    assert receipt["command"] == shlex.join(["abstain", *arguments])
    assert receipt["abstain"] == ab.__version__
    key = hashlib.sha256((folder / "p.csv").read_bytes()).hexdigest()
    read = [{"name": "p.csv", "sha256": key}]
    assert receipt["inputs"] == ([] if command == "study" else read)
    before = set_in(folder / "out")
    assert run(arguments) == 0, "its own files are replaced"
    assert set_in(folder / "out").keys() == before.keys()


def named(command: str) -> list[str]:
    if command == "study":
        return []
    both = [] if command == "threshold" else ["--confidence", "b"]
    return ["--confidence", "a", *both]


def test_a_folder_that_is_used_again_keeps_no_files_of_another_run(folder, capsys):
    for command in ("compare", "threshold"):
        assert run([*COMMANDS[command], *named(command)]) == 0
    left = set_in(folder / "out").keys()
    assert "pairs.csv" not in left
    assert {name.split(".")[0] for name in left if "/" in name} == {"figures/decision-rule"}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_of_others_raises_an_error_before_any_work(folder, capsys, command):
    (folder / "out").mkdir()
    (folder / "out" / "results.csv").write_text("a year of work")
    (folder / "p.csv").unlink()
    assert run([*COMMANDS[command], *named(command)]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err == (
        "abstain: 'out/results.csv' is not from abstain, so it is not replaced; move it away, or "
        "choose another folder\n"
    )
    assert (folder / "out" / "results.csv").read_text() == "a year of work"


def test_a_rule_that_is_also_saved_there_is_one_file(folder, capsys):
    arguments = [*COMMANDS["threshold"], *named("threshold"), "--save"]
    assert run([*arguments, "out/rule.json"]) == 0, capsys.readouterr().err
    assert run([*arguments, "rule.json"]) == 0
    text = (folder / "out" / "rule.json").read_bytes()
    assert (folder / "rule.json").read_bytes() == text


def test_a_folder_of_results_is_named_by_its_archives(folder, capsys):
    outputs = np.column_stack([np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2])
    (folder / "theirs").mkdir()
    np.savez(folder / "theirs" / "raw_logits.npz", np.column_stack([outputs, np.zeros(20)]))
    assert run(["evaluate", "theirs", "--out", "out"]) == 0, capsys.readouterr().err
    inputs = json.loads((folder / "out" / "receipt.json").read_text())["inputs"]
    assert [one["name"] for one in inputs] == ["theirs/raw_logits.npz"]


def test_a_file_that_changes_while_it_is_read_has_no_hash(folder, capsys, monkeypatch):
    from abstain.cli import evaluate

    def changing(*given):
        result = read(*given)
        with (folder / "p.csv").open("a") as file:
            file.write("1,1,0.5,0.5\n")
        return result

    read = evaluate.read_files
    monkeypatch.setattr(evaluate, "read_files", changing)
    assert run([*EVALUATE, *named("evaluate")]) == 0
    receipt = json.loads((folder / "out" / "receipt.json").read_text())
    assert receipt["inputs"] == [{"name": "p.csv", "sha256": None}]


# ------------------------------------------------------------------------ earlier versions
def without_receipt(out: Path) -> None:
    """Leave the files that a version without receipts wrote."""
    (out / "receipt.json").unlink()
    for name in ("table.tex", "table.md"):
        (out / name).unlink(missing_ok=True)


def test_a_set_of_a_version_without_receipts_is_replaced(folder, capsys):
    arguments = [*EVALUATE, *named("evaluate")]
    assert run(arguments) == 0
    without_receipt(folder / "out")
    assert run(arguments) == 0, capsys.readouterr().err
    assert (folder / "out" / "receipt.json").exists()


@pytest.mark.parametrize(
    ("name", "content"),
    [("results.csv", "a,b\n1,2\n"), ("report.html", "<p>mine"), ("results.parquet", "PAR1")],
)
def test_without_receipt_only_what_is_surely_ours_is(folder, capsys, name, content):
    arguments = [*EVALUATE, *named("evaluate")]
    assert run(arguments) == 0
    without_receipt(folder / "out")
    (folder / "out" / name).write_text(content)
    assert run(arguments) == 2
    assert "is not from abstain, so it is not replaced" in capsys.readouterr().err
    assert (folder / "out" / name).read_text() == content


def test_tables_of_others_beside_no_page_of_ours_stay(folder, capsys):
    write_results([{"a": 1}], folder / "out")
    assert run([*EVALUATE, *named("evaluate")]) == 2
    assert "results.parquet" in capsys.readouterr().err


def test_the_list_of_an_earlier_study_is_taken_over(folder, capsys):
    if "study" not in COMMANDS:
        pytest.skip("needs abstain-bench")
    assert run(STUDY) == 0
    out = folder / "out"
    without_receipt(out)
    kept = {n: key for n, key in set_in(out).items() if n != "report.html"}
    old = {"figures/old.svg": hashlib.sha256(b"old").hexdigest()}
    (out / "figures" / "old.svg").write_bytes(b"old")
    (out / ".abstain-files.json").write_text(json.dumps(kept | old))
    assert run(STUDY) == 0, capsys.readouterr().err
    assert not (out / ".abstain-files.json").exists()
    assert not (out / "figures" / "old.svg").exists()
    assert set_in(out).keys() == {*kept, "report.html"}


@pytest.mark.skipif(sys.platform == "win32", reason="there is no /dev/zero")
@pytest.mark.parametrize("is_link", [False, True])
def test_a_list_that_names_a_device_is_not_followed(folder, is_link):
    assert run([*EVALUATE, *named("evaluate")]) == 0
    without_receipt(folder / "out")
    names = folder / "out" / ".abstain-files.json"
    if is_link:
        names.symlink_to("/dev/zero")
    else:
        names.write_text('{"/dev/zero": "", "../p.csv": ""}')
    program = [sys.executable, "-m", "abstain", *EVALUATE, *named("evaluate")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run(program, check=True, stdout=subprocess.DEVNULL, env=env, timeout=60)
    assert (folder / "p.csv").exists()


# ----------------------------------------------------------------------------------- kills
@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_killed_at_any_instant_there_is_a_whole_set_or_a_marked_one(folder):
    kills(folder, 3)


def kills(folder: Path, times: int) -> dict[str, int]:
    """Kill an evaluation at instants spread over its run; count what is found."""
    out, seen = folder / "out", {}
    arguments = [sys.executable, "-m", "abstain", *EVALUATE, *named("evaluate")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    begin = time.monotonic()
    subprocess.run(arguments, check=True, stdout=subprocess.DEVNULL, env=env)
    length = time.monotonic() - begin
    for i in range(times):
        # Another input each time, so that the sets differ.
        write_predictions(folder / "p.csv", 61 + i)
        before = json.loads((out / "receipt.json").read_text())["files"] if out.exists() else {}
        program = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, env=env)
        time.sleep(length * (i + 1) / (times + 1))
        program.send_signal(signal.SIGKILL)
        program.wait()
        result = look(out, before)
        seen[result] = seen.get(result, 0) + 1
    return seen


def look(out: Path, before: dict[str, str]) -> str:
    """Return what a reader finds."""
    receipt = out / "receipt.json"
    left = {n: key for n, key in set_in(out).items() if not n.startswith(".abstain-")}
    if not receipt.exists():
        assert (out / ".abstain-publishing").is_dir() or not left
        assert "report.html" in left or not left, "tables without a page"
        return "between" if left else "nothing"
    assert json.loads(receipt.read_text())["files"] == left
    return "old" if left == before else "new"


def test_a_file_name_for_the_folder_is_rejected_with_the_remedy(folder, capsys):
    assert run(["evaluate", "p.csv", "--out", "report.html"]) == 2
    message = capsys.readouterr().err
    assert "--out must be a folder" in message
    assert "Use --out report" in message
    assert not Path("report.html").exists()
