"""`abstain monitor` as a process: an open pipe, signals, and files that change while it runs."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

import abstain as ab
from abstain.cli.main import run
from abstain.errors import InputError
from abstain.monitoring.lines import LineBatch

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")

COMMAND = [sys.executable, "-m", "abstain", "monitor", "rule.json", "--max-risk", "0.5"]
#: Seconds until something must have happened, on a busy machine.
PATIENCE = 60


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a rule, in which commands run."""
    monkeypatch.chdir(tmp_path)
    ab.save(ab.thresholds.DecisionRule("given", 0.5), "rule.json")
    return tmp_path


@pytest.fixture
def start(folder):
    """Start the command; whatever still runs at the end of the test is killed."""
    processes = []

    def begin(*options):
        process = subprocess.Popen(
            [*COMMAND, "--state", "s.npz", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return process

    yield begin
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate()


def send(process, text):
    process.stdin.write(text)
    process.stdin.flush()


def predictions_text(prefix, n):
    return "".join(f'{{"id": "{prefix}{i:04}", "confidence": 0.9}}\n' for i in range(n))


def wait_until(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.05)


def saved_predictions():
    # Before the first state there is none.
    return ab.load("s.npz").predictions if pathlib.Path("s.npz").exists() else -1


def ended(process):
    out, message = process.communicate(timeout=PATIENCE)
    return process.returncode, out, message


def test_labels_are_requested_through_an_open_pipe_and_sigterm_loses_no_line(folder, start):
    process = start("--label-share", "0.2", "--ask", "ask.jsonl")
    send(process, predictions_text("a", 300))
    # The pipe stays open, and nothing more comes.
    wait_until(lambda: saved_predictions() == 300)
    wait_until((folder / "ask.jsonl").exists)
    requested = [json.loads(line)["id"] for line in (folder / "ask.jsonl").read_text().splitlines()]
    assert 20 < len(requested) < 120
    send(process, "".join(json.dumps({"id": name, "correct": True}) + "\n" for name in requested))
    wait_until(lambda: not (folder / "ask.jsonl").read_text())
    send(process, predictions_text("b", 900) + '{"id": "half')
    process.send_signal(signal.SIGTERM)
    status, _, message = ended(process)
    assert status == 128 + signal.SIGTERM
    assert "the last line is incomplete" in message
    result = ab.load("s.npz")
    assert (result.predictions, result.state.requests.labeled >= len(requested)) == (1200, True)


def test_ctrl_c_takes_what_has_arrived_and_a_kill_loses_two_seconds_at_most(folder, start):
    process = start()
    send(process, predictions_text("a", 200))
    wait_until(lambda: saved_predictions() == 200)
    process.kill()
    assert ended(process)[0] == -signal.SIGKILL
    assert saved_predictions() == 200
    again = start()
    send(again, predictions_text("a", 250))
    wait_until(lambda: saved_predictions() == 250)
    send(again, predictions_text("c", 3000))
    again.send_signal(signal.SIGINT)
    assert ended(again)[0] == 130
    assert (saved_predictions(), ab.load("s.npz").state.counts.replayed) == (3250, 200)


def test_a_folder_is_followed_through_a_rotation_and_a_replacement(folder, start):
    (folder / "stream").mkdir()
    log = folder / "stream" / "log.jsonl"
    log.write_text(predictions_text("a", 100))
    process = start("--watch", "stream")
    wait_until(lambda: saved_predictions() == 100)
    # The writer goes on in the renamed file for a moment.
    with log.open("a") as file:
        log.rename(folder / "stream" / "log.jsonl.1")
        log.write_text(predictions_text("b", 150))
        file.write(predictions_text("c", 10))
    wait_until(lambda: saved_predictions() == 260)
    assert process.poll() is None
    # The same file with other lines of the same length.
    log.write_text(predictions_text("d", 150))
    wait_until(lambda: saved_predictions() == 410)
    process.send_signal(signal.SIGTERM)
    status, _, message = ended(process)
    assert status == 128 + signal.SIGTERM
    assert message.count("log.jsonl is not the file that was read before") == 1
    assert ab.load("s.npz").state.counts.replayed == 0


def test_a_pipe_that_does_not_block_is_read_to_its_end(folder):
    read, write = os.pipe()
    os.set_blocking(read, False)
    command = [*COMMAND, "--state", "s.npz"]
    with subprocess.Popen(command, stdin=read) as process, os.fdopen(write, "w") as file:
        wait_until(lambda: saved_predictions() == 0)
        time.sleep(1)
        file.write(predictions_text("a", 100))
        file.close()
        assert process.wait(PATIENCE) == 0
    os.close(read)
    assert saved_predictions() == 100


def test_an_error_of_the_input_loses_no_line_that_was_taken(folder, monkeypatch):
    class BrokenPipe:
        is_cut = False

        def __init__(self, *_):
            pass

        def batches(self, _):
            yield LineBatch.from_bytes(predictions_text("a", 7).encode().splitlines(), 0)
            raise InputError("standard input cannot be read: Input/output error")

    monkeypatch.setattr("abstain.monitoring.lines.Pipe", BrokenPipe)
    with pathlib.Path(os.devnull).open() as file:
        monkeypatch.setattr("sys.stdin", file)
        assert run([*COMMAND[3:], "--state", "s.npz"]) == 2
    assert saved_predictions() == 7
