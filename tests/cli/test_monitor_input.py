"""`abstain monitor`: files that are replaced, renamed or damaged, and bad lines."""

import json
import os
import pathlib
import shutil
from pathlib import Path

import pytest

import abstain as ab
from abstain.cli.main import run
from abstain.monitoring.lines import MAX_LINE

RULE = ab.thresholds.DecisionRule("given", 0.5)
MONITOR = ["monitor", "rule.json", "--max-risk", "0.5"]
WATCH = [*MONITOR, "--watch", "stream", "--once", "--state", "s.npz"]


@pytest.fixture
def stream(tmp_path, monkeypatch):
    """The watched folder, beside a rule."""
    monkeypatch.chdir(tmp_path)
    ab.save(RULE, "rule.json")
    (tmp_path / "stream").mkdir()
    return tmp_path / "stream"


def text_of(prefix, n):
    """Prediction lines of equal length."""
    return "".join(f'{{"id": "{prefix}{i:05}", "confidence": 0.9}}\n' for i in range(n))


def counts():
    monitor = ab.load("s.npz")
    return monitor.predictions, monitor.state.counts.replayed


def run_with_input(text, monkeypatch, *more):
    with pathlib.Path("stdin").open("wb") as file:
        file.write(text if isinstance(text, bytes) else text.encode())
    with pathlib.Path("stdin").open() as file:
        monkeypatch.setattr("sys.stdin", file)
        return run([*MONITOR, *more])


# ------------------------------------------------------------------------------------ files
@pytest.mark.parametrize("is_same_inode", [True, False])
def test_a_file_replaced_by_lines_of_equal_length_is_read_from_its_beginning(
    stream, capsys, is_same_inode
):
    path = stream / "1.jsonl"
    path.write_text(text_of("a", 100))
    assert run(WATCH) == 0
    if is_same_inode:
        path.write_text(text_of("b", 150))
    else:
        (stream / "new").write_text(text_of("b", 150))
        (stream / "new").replace(path)
    assert run(WATCH) == 0
    assert "1.jsonl is not the file that was read before, or was changed" in capsys.readouterr().err
    assert counts() == (250, 0)


def test_a_change_in_the_middle_is_found_after_a_restart(stream, capsys):
    path = stream / "1.jsonl"
    text = text_of("a", 1000)
    path.write_text(text)
    assert run(WATCH) == 0
    path.write_text(text.replace('"a00500"', '"x00500"') + text_of("b", 1))
    assert run(WATCH) == 0
    assert "is not the file that was read before" in capsys.readouterr().err
    # The changed and the added line are new; the others are recognized by their ids.
    assert counts() == (1002, 999)


def test_a_restored_copy_of_a_file_is_read_on(stream, capsys):
    (stream / "1.jsonl").write_text(text_of("a", 100))
    assert run(WATCH) == 0
    (stream / "copy").write_text(text_of("a", 100) + text_of("b", 5))
    (stream / "copy").replace(stream / "1.jsonl")
    assert run(WATCH) == 0
    assert capsys.readouterr().err == ""
    assert counts() == (105, 0)


def test_files_that_were_rotated_while_nobody_read_are_read_on(stream, capsys):
    """Twice renamed: the remainder of the first, all of the second, and the new one."""
    log = stream / "log.jsonl"
    log.write_text(text_of("a", 100))
    assert run(WATCH) == 0
    with log.open("a") as file:
        file.write(text_of("b", 7))
    log.rename(stream / "log.jsonl.2")
    os.utime(stream / "log.jsonl.2", (1e9, 1e9))
    (stream / "log.jsonl.1").write_text(text_of("c", 11))
    log.write_text(text_of("d", 200))
    assert run(WATCH) == 0
    assert counts() == (318, 0)
    assert run(WATCH) == 0
    assert counts() == (318, 0)
    assert capsys.readouterr().err == ""


def test_a_file_that_was_copied_and_emptied_is_read_on(stream, capsys):
    log = stream / "log.jsonl"
    log.write_text(text_of("a", 100))
    assert run(WATCH) == 0
    (stream / "log.jsonl.1").write_text(text_of("a", 100) + text_of("b", 9))
    log.write_text(text_of("c", 5))
    assert run(WATCH) == 0
    assert counts() == (114, 0)
    assert capsys.readouterr().err == ""


def test_a_deleted_file_is_forgotten(stream):
    (stream / "1.jsonl").write_text(text_of("a", 10))
    assert run(WATCH) == 0
    (stream / "1.jsonl").unlink()
    assert run(WATCH) == 0
    assert ab.load("s.npz").read_positions == ()


# ------------------------------------------------------------------------------------ bad lines
def test_a_restart_after_a_malformed_line_counts_nothing_again(stream, capsys):
    (stream / "1.jsonl").write_text(text_of("a", 50) + "no\n" + text_of("b", 5))
    for _ in range(2):
        assert run(WATCH) == 2
        assert "1.jsonl, line 51: it is not valid JSON" in capsys.readouterr().err
        assert counts() == (50, 0)
    assert run([*WATCH, "--skip-bad"]) == 0
    assert "1 bad line skipped, the first: 1.jsonl, line 51" in capsys.readouterr().err
    assert counts() == (55, 0)


def test_a_restart_after_a_label_that_does_not_fit_counts_nothing_again(stream):
    label = json.dumps({"id": "a00003", "label": "cat"}) + "\n"
    (stream / "1.jsonl").write_text(text_of("a", 50) + label + text_of("b", 5))
    for _ in range(2):
        assert run(WATCH) == 2
        assert counts() == (50, 0)
    assert run([*WATCH, "--skip-bad"]) == 0
    assert counts() == (55, 0)


@pytest.mark.parametrize(("n_good", "status"), [(0, 2), (1, 0)])
def test_the_exit_status_tells_that_no_line_could_be_read(
    stream, monkeypatch, capsys, n_good, status
):
    text = "no\n" * 20_000 + text_of("a", n_good)
    assert run_with_input(text, monkeypatch, "--skip-bad", "--state", "s.npz") == status
    message = capsys.readouterr().err
    assert "20,000 bad lines skipped, the first: line 1: it is not valid JSON" in message
    assert ("none of the 20,000 lines could be read" in message) == (n_good == 0)
    assert len(message) < 500


def test_no_control_character_reaches_the_terminal(stream, monkeypatch, capsys):
    line = '{"id": "a", "confidence": 0.5, "\x1b[31m": 1, "\x1b[31m": 2}\n'
    bad = line.replace("\x1b", "\\u001b").encode()
    assert run_with_input(bad, monkeypatch) == 2
    assert run_with_input(bad, monkeypatch, "--skip-bad") == 2
    (stream / "\x1b[31m.jsonl").write_text("{")
    assert run(WATCH) == 0
    (stream / "\x1b[31m.jsonl").write_text("{\n")
    assert run([*WATCH, "--skip-bad"]) == 2
    out, message = capsys.readouterr()
    assert "\x1b" not in out + message
    assert message.count(r"\x1b[31m") >= 4


def test_a_line_that_is_too_long_is_a_bad_line(stream, monkeypatch, capsys):
    long = b'{"id": "a", "more": "' + b"x" * (3 * MAX_LINE) + b'", "confidence": 0.9}\n'
    text = text_of("a", 3).encode() + long + text_of("b", 4).encode()
    assert run_with_input(text, monkeypatch) == 2
    assert "line 4: the line is longer than 1,048,576 bytes" in capsys.readouterr().err
    assert run_with_input(text, monkeypatch, "--skip-bad", "--state", "p.npz") == 0
    assert ab.load("p.npz").predictions == 7
    # In a folder, its end may come later.
    half = len(text) // 2
    path = stream / "1.jsonl"
    path.write_bytes(text[:half])
    assert run([*WATCH, "--skip-bad"]) == 0
    assert counts() == (3, 0)
    assert run(WATCH) == 2
    path.write_bytes(text)
    assert run([*WATCH, "--skip-bad"]) == 0
    assert counts() == (7, 0)
    assert ab.load("s.npz").read_positions[0].lines == 8


# ------------------------------------------------------------------------------------ states
def test_a_state_of_the_previous_version_is_read_on(stream):
    """Written by the version before the one that records inodes and hashes of files."""
    shutil.copy(Path(__file__).parents[1] / "monitoring" / "state_form_2.npz", "s.npz")
    assert ab.load("s.npz").read_positions == (("1.jsonl", 720, 20, 0, ""),)
    (stream / "1.jsonl").write_text(text_of("a", 20) + text_of("b", 5))
    assert run([*WATCH, "--ask", "ask.jsonl"]) == 0
    assert counts() == (25, 0)
    (position,) = ab.load("s.npz").read_positions
    assert (position.lines, position.inode > 0, len(position.digest)) == (25, True, 32)
