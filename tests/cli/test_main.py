"""However a command ends, it says so in one line."""

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

        monkeypatch.setattr(evaluate, "read", read)

    return let_fail


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (KeyError("x"), "KeyError: 'x' (not foreseen; --traceback shows where)"),
        (ValueError("one\ntwo"), "ValueError: one (not foreseen; --traceback shows where)"),
        (AssertionError(), "AssertionError (not foreseen; --traceback shows where)"),
        (RecursionError("deep"), "RecursionError: deep (not foreseen; --traceback shows where)"),
        (Panic("at \x1b[31m"), r"Panic: at \x1b[31m (not foreseen; --traceback shows where)"),
        (MemoryError(), "there is not enough memory for this; --traceback shows where it ran out"),
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


def test_a_closed_pipe_says_nothing():
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

    seen = []

    class Told:
        width = 80

        def print(self, *_, **__):
            seen.append(ARGUMENTS.get())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("abstain.cli.listing.console", Told)
        assert run(["list", "metrics", "--traceback"]) == 0
    assert set(seen) == {("list", "metrics")}
