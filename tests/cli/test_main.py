"""However a command ends, it says so in one line."""

import os
import shlex
import subprocess
import sys

import pytest

from abstain.cli import evaluate
from abstain.cli.main import run
from abstain.errors import InputError


class Panic(BaseException):
    """As libraries in Rust raise: no `Exception`."""


@pytest.fixture
def failing(monkeypatch):
    """Return a function that lets `abstain evaluate` fail with an error."""

    def let_fail(error):
        def read(*_):
            raise error

        monkeypatch.setattr(evaluate, "read_files", read)

    return let_fail


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            KeyError("x"),
            "KeyError: 'x' (unexpected error; pass --traceback to see where it occurred)",
        ),
        (
            ValueError("one\ntwo"),
            "ValueError: one (unexpected error; pass --traceback to see where it occurred)",
        ),
        (
            AssertionError(),
            "AssertionError (unexpected error; pass --traceback to see where it occurred)",
        ),
        (
            RecursionError("deep"),
            "RecursionError: deep (unexpected error; pass --traceback to see where it occurred)",
        ),
        (
            Panic("at \x1b[31m"),
            r"Panic: at \x1b[31m (unexpected error; pass --traceback to see where it occurred)",
        ),
        (MemoryError(), "there is not enough memory; pass --traceback to see where it ran out"),
        (OSError(28, "No space left"), "[Errno 28] No space left"),
        (InputError("a name\nin two lines"), r"a name\nin two lines"),
    ],
)
def test_any_error_is_one_line_and_status_2(failing, capsys, error, said):
    failing(error)
    assert run(["evaluate", "p.csv"]) == 2
    captured = capsys.readouterr()
    assert captured.err == f"abstain: {said}\n"
    assert captured.out == ""


@pytest.mark.parametrize("error", [KeyError("x"), InputError("x"), Panic("x")])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_traceback_shows_where(failing, capsys, error, place):
    failing(error)
    arguments = ["evaluate", "p.csv"]
    arguments.insert(place, "--traceback")
    assert run(arguments) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert any(line.endswith("in read") for line in lines)
    assert lines[-1].startswith("abstain: ")


def test_a_file_may_have_that_name(capsys):
    assert run(["evaluate", "--", "--traceback"]) == 2
    assert "there is no file '--traceback'" in capsys.readouterr().err


@pytest.mark.parametrize("more", [[], ["--traceback"]])
def test_ctrl_c_is_no_error(failing, capsys, more):
    failing(KeyboardInterrupt())
    assert run(["evaluate", "p.csv", *more]) == 130
    assert capsys.readouterr().err == "abstain: stopped\n"


def test_a_closed_pipe_prints_nothing():
    program = subprocess.Popen(
        [sys.executable, "-m", "abstain", "list", "metrics"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    program.stdout.close()
    assert program.stderr.read() == b""
    program.stderr.close()
    assert program.wait() == 1


def test_the_report_repeats_the_command_without_it(capsys):
    from abstain.cli.command_line import ARGUMENTS

    calls = []

    class Told:
        width = 80

        def print(self, *_, **__):
            calls.append(ARGUMENTS.get())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("abstain.cli.listing.console", Told)
        assert run(["list", "metrics", "--traceback"]) == 0
    assert set(calls) == {("list", "metrics")}


# ------------------------------------------------------------------------ standard streams
@pytest.fixture
def table(tmp_path):
    path = tmp_path / "größe.csv"
    rows = [f"{i % 3 > 0:d},{i / 40:.3f},é" for i in range(40)]
    path.write_text("\n".join(["correct,confidence,größe", *rows]), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "encoding", ["ascii", "latin-1", "cp1252", "utf-8", "ascii:surrogateescape"]
)
def test_a_table_is_printed_in_any_encoding(table, encoding):
    program = [sys.executable, "-m", "abstain", "evaluate", str(table), "--by", "größe"]
    env = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(program, capture_output=True, env=env, check=False)
    assert done.returncode == 0, done.stderr
    encoding = encoding.partition(":")[0]
    printed = done.stdout.decode(encoding)
    assert "AUGRC" in printed
    assert ("gr??e" if encoding == "ascii" else "größe") in printed
    assert "↓" in printed or encoding != "utf-8"


@pytest.mark.skipif(sys.platform == "win32", reason="the shell closes the streams")
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(
    ("command", "status"), [("evaluate", 0), ("inspect", 0), ("evaluate -", 2)]
)
def test_a_closed_stream_is_an_empty_one(table, command, status, closed):
    files = "" if command.endswith("-") else shlex.quote(str(table))
    line = f"{shlex.quote(sys.executable)} -m abstain {command} {files} {closed}"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        line, shell=True, capture_output=True, text=True, env=env, stdin=subprocess.DEVNULL,
        check=False,
    )  # fmt: skip
    assert done.returncode == status, done.stderr
    assert "unexpected error" not in done.stderr
