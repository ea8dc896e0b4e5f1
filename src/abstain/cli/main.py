"""The program `abstain`, which runs a command and prints errors as one line."""

import codecs
import os
import pathlib
import sys
import traceback
import warnings
from typing import TextIO

from abstain.cli.memory import retain_freed_memory
from abstain.errors import AbstainError, UndefinedMetricWarning


def main(arguments: list[str] | None = None) -> None:
    """Run the program and exit with its status."""
    retain_freed_memory()
    prepare_streams()
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def prepare_streams() -> None:
    """Replace closed standard streams, and print `?` for characters that a stream cannot encode.

    If a standard stream is closed, Python sets it to None. A file that is opened later could then
    get the file descriptor of the stream, and receive the output by mistake. Therefore, the null
    device replaces the stream.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            null = open(os.devnull, mode, encoding="utf-8")  # noqa: PTH123, SIM115
            setattr(sys, name, null)
        elif mode == "w" and _fails_for_some_characters(stream):
            stream.reconfigure(errors="replace")


def _fails_for_some_characters(stream: TextIO) -> bool:
    """Return whether the encoding of a stream lacks some characters."""
    errors = getattr(stream, "errors", "")
    if errors == "surrogateescape":
        # This error handler of the locale "C" encodes only undecodable bytes of file names.
        return codecs.lookup(stream.encoding).name != "utf-8"
    return errors == "strict"


#: Option of every command that prints where an error occurred.
_TRACEBACK = "--traceback"


def run(arguments: list[str]) -> int:
    """Run a command, and return its exit status, such as 0 after success and 2 after an error."""
    from abstain._foundation.option_format import option_format
    from abstain.cli.command_line import ARGUMENTS, format_flag

    # cyclopts does not parse this option, because it also applies to errors of the parser. After
    # "--", all arguments are file names.
    end = arguments.index("--") if "--" in arguments else len(arguments)
    with_traceback = _TRACEBACK in arguments[:end]
    options = [argument for argument in arguments[:end] if argument != _TRACEBACK]
    arguments = [*options, *arguments[end:]]
    with warnings.catch_warnings(), option_format(format_flag):
        # The results contain the reason for each undefined metric.
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        token = ARGUMENTS.set(tuple(arguments))
        try:
            return _run_command(arguments, with_traceback=with_traceback)
        finally:
            ARGUMENTS.reset(token)


def _run_command(arguments: list[str], *, with_traceback: bool) -> int:
    """Run a command. An error is printed as one line."""
    try:
        # These modules are imported here, because Ctrl-C may occur during the import.
        from abstain.cli.app import application, is_command
        from abstain.cli.standard_input import standard_input

        # Files without a command are inspected, and the proposed command is run.
        if arguments and not is_command(arguments[0]) and _is_file_argument(arguments[0]):
            arguments = ["inspect", "--run", *arguments]
        with standard_input(arguments) as file_arguments:
            application(file_arguments)(file_arguments, result_action="return_value")
        # Flush now, because a BrokenPipeError after the last handler would not be handled.
        sys.stdout.flush()
    except BrokenPipeError:
        return _end_after_broken_pipe()
    except KeyboardInterrupt:
        _print_error("abstain: stopped")
        return 130
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 2
    except BaseException as error:  # noqa: BLE001  includes panics of libraries
        if with_traceback:
            _print_error(traceback.format_exc().rstrip(), keep="\n")
        _print_error(f"abstain: {_error_message(error)}")
        return 2
    return 0


def _is_file_argument(word: str) -> bool:
    """Return whether a word is a file, a pattern or standard input, and not a command."""
    if word.startswith("-"):
        return word == "-"
    return any(character in word for character in "./\\*?[") or pathlib.Path(word).exists()


def _error_message(error: BaseException) -> str:
    """Return the message of an error. If the error is unexpected, add its type."""
    if isinstance(error, AbstainError | OSError):
        return str(error)
    if isinstance(error, MemoryError):
        return f"there is not enough memory; pass {_TRACEBACK} to see where it ran out"
    first_line = "".join(str(error).splitlines()[:1])
    name = type(error).__name__
    description = f"{name}: {first_line}" if first_line else name
    return f"{description} (unexpected error; pass {_TRACEBACK} to see where it occurred)"


def _end_after_broken_pipe() -> int:
    """Discard further output after a pipe was closed, and return the exit status."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


def _print_error(text: str, *, keep: str = "") -> None:
    from abstain.plots.formatting import escape_control_characters

    sys.stderr.write(escape_control_characters(text, allowed=keep) + "\n")
