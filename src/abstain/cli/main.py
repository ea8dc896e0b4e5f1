"""The `abstain` program: its commands, and errors as one plain line."""

import codecs
import os
import pathlib
import sys
import traceback
import warnings
from typing import TextIO

from abstain.cli.memory import keep_freed
from abstain.errors import AbstainError, UndefinedMetricWarning


def main(arguments: list[str] | None = None) -> None:
    """Run the program and leave with its exit status."""
    keep_freed()
    prepare_streams()
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def prepare_streams() -> None:
    """Open the standard streams that are closed, and print `?` for characters they cannot encode.

    A closed stream is None. In its place stands an empty file, which takes the descriptor, so that
    no file that is opened later is printed into.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            null = open(os.devnull, mode, encoding="utf-8")  # noqa: PTH123, SIM115
            setattr(sys, name, null)
        elif mode == "w" and _refuses_characters(stream):
            stream.reconfigure(errors="replace")


def _refuses_characters(stream: TextIO) -> bool:
    """Return whether printing to a stream fails for some characters.

    In the locale "C", the handler of errors is "surrogateescape", which helps bytes of file names
    only.
    """
    errors = getattr(stream, "errors", "")
    return errors == "strict" or (
        errors == "surrogateescape" and codecs.lookup(stream.encoding).name != "utf-8"
    )


#: Any command takes it: where an error arose.
_TRACEBACK = "--traceback"


def run(arguments: list[str]) -> int:
    """Run one command; 0 when it worked, 2 when what was asked cannot be done."""
    from abstain._foundation.option_format import option_format
    from abstain.cli.command_line import ARGUMENTS, as_flag

    # Here, as it is about errors of the parser's libraries too; after "--" all are file names.
    end = arguments.index("--") if "--" in arguments else len(arguments)
    whole = _TRACEBACK in arguments[:end]
    arguments = [a for i, a in enumerate(arguments) if a != _TRACEBACK or i > end]
    with warnings.catch_warnings(), option_format(as_flag):
        # Undefined metrics are named in the results with their reason.
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        told = ARGUMENTS.set(tuple(arguments))
        try:
            return _status(arguments, whole=whole)
        finally:
            ARGUMENTS.reset(told)


def _status(arguments: list[str], *, whole: bool) -> int:
    try:
        # Inside, since Ctrl-C may come while the libraries load.
        from abstain.cli.app import application, is_command
        from abstain.cli.standard_input import standard_input

        # Files alone are evaluated by what their columns may be.
        if arguments and not is_command(arguments[0]) and _are_files(arguments[0]):
            arguments = ["inspect", "--run", *arguments]
        with standard_input(arguments) as given:
            application(given)(given, result_action="return_value")
        # Here, as a pipe closed by its reader would otherwise be noticed after the last handler.
        sys.stdout.flush()
    except BrokenPipeError:
        return _reader_gone()
    except KeyboardInterrupt:
        _say("abstain: stopped")
        return 130
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 2
    except BaseException as error:  # noqa: BLE001  whatever it is, a library's panic too: one line
        if whole:
            _say(traceback.format_exc().rstrip(), keep="\n")
        _say(f"abstain: {_said(error)}")
        return 2
    return 0


def _are_files(word: str) -> bool:
    """Tell what is meant as a file, a pattern or standard input from a command."""
    if word.startswith("-"):
        return word == "-"
    return any(sign in word for sign in "./\\*?[") or pathlib.Path(word).exists()


def _said(error: BaseException) -> str:
    """Return our own sentence, or what a library raised that nobody foresaw."""
    if isinstance(error, AbstainError | OSError):
        return str(error)
    if isinstance(error, MemoryError):
        return f"there is not enough memory for this; {_TRACEBACK} shows where it ran out"
    first = "".join(str(error).splitlines()[:1])
    what = f"{type(error).__name__}: {first}" if first else type(error).__name__
    return f"{what} (not foreseen; {_TRACEBACK} shows where)"


def _reader_gone() -> int:
    """End as programs do whose reader (`head`) has seen enough; nothing more can be printed."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


def _say(text: str, *, keep: str = "") -> None:
    from abstain.plots.formatting import escape_control_characters

    sys.stderr.write(escape_control_characters(text, allowed=keep) + "\n")
