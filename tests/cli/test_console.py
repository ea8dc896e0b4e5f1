"""What moves is for terminals alone, and a pipe has room for the tables, whatever is set."""

import os
import pty
import subprocess
import sys

import pytest

SAID = """
from abstain.cli.console import console, interactive_stderr, progress_bar, show_status
with show_status("Evaluating"):
    pass
print(console().width, interactive_stderr() is not None, hasattr(progress_bar(), "add_task"))
"""


def ran(terminal, **variables):
    """Return what is printed on standard output and error, the latter a terminal or not."""
    given = {k: v for k, v in os.environ.items() if k not in {"COLUMNS", "NO_COLOR", "TERM"}}
    main, behind = pty.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-c", SAID],
            env=given | variables, stdout=subprocess.PIPE, check=True, text=True,
            stderr=behind if terminal else subprocess.PIPE,
        )  # fmt: skip
        os.close(behind)
        behind = None
        return done.stdout, os.read(main, 10_000).decode() if terminal else done.stderr
    finally:
        os.close(main)
        if behind is not None:
            os.close(behind)


@pytest.mark.parametrize("variables", [{}, {"FORCE_COLOR": "1", "TERM": "xterm-color"}])
def test_in_a_pipe_nothing_moves(variables):
    assert ran(terminal=False, **variables) == ("100 False False\n", "")


def test_on_a_terminal_it_is_said_what_goes_on():
    out, err = ran(terminal=True, TERM="xterm")
    assert out == "100 True True\n"
    assert "Evaluating" in err
