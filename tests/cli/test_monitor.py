"""`abstain monitor`: lines in, alarms out, and a state that survives anything."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from tests.monitoring.streams import calibrated, drawn, names

import abstain as ab
from abstain.cli.main import run

RULE, DATA = calibrated()


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a rule and its calibration data, in which commands run."""
    monkeypatch.chdir(tmp_path)
    ab.save(RULE, "rule.json")
    rows = zip(DATA.confidence["own"].tolist(), DATA.loss.tolist(), strict=True)
    (tmp_path / "calibration.csv").write_text(
        "own,correct\n" + "".join(f"{c!r},{1 - int(wrong)}\n" for c, wrong in rows)
    )
    return tmp_path


def lines(prefix, n, *, seed, labels=True, **options):
    confidence, loss = drawn(np.random.default_rng(seed), n, **options)
    ids = names(prefix, n)
    said = [json.dumps({"id": i, "confidence": c}) for i, c in zip(ids, confidence, strict=True)]
    if labels:
        said += [
            json.dumps({"id": i, "correct": not wrong}) for i, wrong in zip(ids, loss, strict=True)
        ]
    return "\n".join(said) + "\n"


def monitored(text, place, monkeypatch, *more, calibration=True):
    (place / "stdin").write_text(text)
    given = ["--calibration", "calibration.csv", "--confidence", "own"] if calibration else []
    with (place / "stdin").open() as file:
        monkeypatch.setattr("sys.stdin", file)
        return run(["monitor", "rule.json", *given, *more])


def test_quiet_in_a_pipe_and_an_alarm_is_one_line(place, monkeypatch, capsys):
    assert monitored(lines("a", 800, seed=1), place, monkeypatch, "--state", "s.npz") == 0
    assert capsys.readouterr().out == ""
    worse = lines("b", 1500, seed=2, worse=3.0)
    assert monitored(worse, place, monkeypatch, "--state", "s.npz") == 3
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("ALARM risk: the selective risk is above the maximum of 0.1")
    # The alarm stands, and is not said again; the same lines are not counted again.
    assert monitored(worse, place, monkeypatch, "--state", "s.npz", calibration=False) == 3
    assert capsys.readouterr().out == ""
    result = ab.load("s.npz")
    assert (result.predictions, result.state.counts.replayed) == (2300, 1500)
    assert monitored("", place, monkeypatch, "--state", "s.npz", "--reset") == 0


def test_a_page_a_table_and_what_to_label(place, monkeypatch, capsys):
    more = ["--out", "page", "--every", "0", "--label-share", "0.1", "--ask", "ask.jsonl"]
    assert monitored(lines("a", 600, seed=3, labels=False), place, monkeypatch, *more) == 0
    output = capsys.readouterr().out
    assert "No alarm after 600 predictions" in output
    assert "Coverage" in output
    asked = [json.loads(line) for line in (place / "ask.jsonl").read_text().splitlines()]
    assert 20 < len(asked) < 80
    assert {*asked[0]} == {"id", "chance", "predicted"}
    assert {"report.html", "history.csv", "results.csv"} <= {
        p.name for p in (place / "page").iterdir()
    }


def test_a_bad_line_is_named_and_may_be_skipped(place, monkeypatch, capsys):
    text = '{"id": "a", "confidence": 0.9}\n{"id": "b", "confidence": 9}\n{"id": "c", "confidence": 0.9}\n'
    assert monitored(text, place, monkeypatch, "--state", "s.npz") == 2
    assert (
        "line 2: `confidence` must lie in [0, 1] with scale 'probability'; got 9"
        in capsys.readouterr().err
    )
    assert ab.load("s.npz").predictions == 1
    assert monitored(text, place, monkeypatch, "--state", "s.npz", "--skip-bad") == 0
    assert "1 bad line skipped, the first: line 2" in capsys.readouterr().err
    assert ab.load("s.npz").predictions == 2


def test_a_class_for_a_prediction_without_one_is_a_bad_line(place, monkeypatch, capsys):
    text = """{"id": "a", "confidence": 0.99}
{"id": "b", "confidence": 0.99, "prediction": "cat"}
{"id": "b", "label": "dog"}
{"id": "a", "label": "dog"}
"""
    assert monitored(text, place, monkeypatch) == 2
    assert "line 4: the label of 'a' names a class" in capsys.readouterr().err
    assert monitored(text, place, monkeypatch, "--state", "s.npz", "--skip-bad") == 0
    tally = ab.load("s.npz").watches[2].tally
    assert (tally.n, tally.total) == (1, 1.0)


def test_a_state_is_of_one_rule_and_one_guarantee(place, monkeypatch, capsys):
    assert monitored("", place, monkeypatch, "--state", "s.npz") == 0
    assert monitored("", place, monkeypatch, "--state", "s.npz", "--delta", "0.01") == 2
    assert "created with delta = 0.05; got 0.01" in capsys.readouterr().err
    ab.save(ab.thresholds.DecisionRule("given", 0.3), "rule.json")
    assert monitored("", place, monkeypatch, "--state", "s.npz", calibration=False) == 2
    assert "the state belongs to another rule" in capsys.readouterr().err
    assert monitored("", place, monkeypatch, "--reset", calibration=False) == 2
    assert "--reset has no effect without --state" in capsys.readouterr().err


def test_a_folder_is_read_on_from_where_it_was_left(place, capsys):
    stream = place / "stream"
    stream.mkdir()
    watch = ["monitor", "rule.json", "--watch", "stream", "--once", "--state", "s.npz"]
    (stream / "1.jsonl").write_text('{"id": "a", "confidence": 0.9}\n{"id": "b", "conf')
    assert run(watch) == 0
    assert [position[:3] for position in ab.load("s.npz").read_positions] == [("1.jsonl", 31, 1)]
    with (stream / "1.jsonl").open("a") as file:
        file.write('idence": 0.5}\nno\n')
    assert run(watch) == 2
    assert "1.jsonl, line 3: it is not valid JSON" in capsys.readouterr().err
    assert ab.load("s.npz").predictions == 2


def killed_often(place, times):
    """Run the command on a folder, killed at random moments, and then to its end."""
    command = [sys.executable, "-m", "abstain", "monitor", "rule.json", "--calibration"]
    command += ["calibration.csv", "--confidence", "own", "--watch", "stream", "--once"]
    rng, kills = np.random.default_rng(times), 0
    while kills < times:
        process = subprocess.Popen([*command, "--state", "killed.npz"], stdout=subprocess.DEVNULL)
        time.sleep(rng.uniform(0.5, 3))
        process.send_signal(signal.SIGKILL)
        kills += 1
        process.wait()
    for name in ("killed.npz", "whole.npz"):
        done = subprocess.run([*command, "--state", name], capture_output=True, check=False)
        assert done.returncode in {0, 3}, done.stderr
    return (place / "killed.npz").read_bytes() == (place / "whole.npz").read_bytes()


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="there is no SIGKILL")
def test_killed_and_run_again_it_ends_the_same(place):
    (place / "stream").mkdir()
    for i in range(4):
        text = lines(f"f{i}-", 2500, seed=i, worse=1 + i)
        (place / "stream" / f"{i}.jsonl").write_text(text)
    assert killed_often(place, 4)


def test_a_state_that_another_run_keeps_is_not_overwritten(place, monkeypatch, capsys):
    """Two runs at one state: the second to write would drop what the first one saw."""
    from abstain.cli.session import Session

    take = Session._take

    def take_while_another_run_saves(self, batch):
        take(self, batch)
        ab.load("s.npz").update(["other"], [0.99]).save("s.npz")

    monkeypatch.setattr(Session, "_take", take_while_another_run_saves)
    assert monitored(lines("a", 5, seed=1), place, monkeypatch, "--state", "s.npz") == 2
    assert "s.npz was changed by another run after" in capsys.readouterr().err
    assert ab.load("s.npz").predictions == 1


def test_what_a_folder_does_not_give_is_said(place, capsys):
    watch = ["monitor", "rule.json", "--once", "--state", "s.npz", "--watch"]
    (place / "in").mkdir()
    (place / "in" / "a.jsonl").write_text(
        '{"id": 1, "confidence": 0.9}\n{"id": 2, "confidence": 0.9}'
    )
    assert run([*watch, "in"]) == 0
    assert "the last line of a.jsonl does not end with a line end" in capsys.readouterr().err
    assert ab.load("s.npz").predictions == 1
    assert run([*watch, "in/a.jsonl"]) == 2
    assert "a.jsonl is a file: give the folder that it lies in" in capsys.readouterr().err
    (place / "in" / "b.jsonl").symlink_to("nowhere")
    assert run([*watch, "in"]) == 2
    assert "nowhere" in capsys.readouterr().err


def test_a_line_that_is_no_object_is_told_so(place, monkeypatch, capsys):
    assert monitored("[1]\n", place, monkeypatch) == 2
    assert "line 1: it is not a JSON object ({...})" in capsys.readouterr().err
