"""The `abstain` program: its commands, and errors as one plain line."""

import os
import sys
import warnings

from abstain.errors import AbstainError, UndefinedMetricWarning


def main(arguments: list[str] | None = None) -> None:
    """Run the program and leave with its exit status."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: list[str]) -> int:
    """Run one command; 0 when it worked, 2 when what was asked cannot be done."""
    from abstain._foundation.option_words import options_written
    from abstain.cli._words import ARGUMENTS, as_flag

    with warnings.catch_warnings(), options_written(as_flag):
        # Undefined metrics are named in the results with their reason.
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        told = ARGUMENTS.set(tuple(arguments))
        try:
            return _status(arguments)
        finally:
            ARGUMENTS.reset(told)


def _status(arguments: list[str]) -> int:
    try:
        # Inside, since Ctrl-C may come while the libraries load.
        from abstain.cli.app import app

        app(arguments, result_action="return_value")
        # Here, as a pipe closed by its reader would otherwise be noticed after the last handler.
        sys.stdout.flush()
    except BrokenPipeError:
        return _reader_gone()
    except (AbstainError, OSError) as error:
        _say(f"abstain: {error}")
        return 2
    except KeyboardInterrupt:
        _say("abstain: stopped")
        return 130
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 2
    return 0


def _reader_gone() -> int:
    """End as programs do whose reader (`head`) has seen enough; nothing more can be printed."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


def _say(text: str) -> None:
    from abstain.plots.visible import visible

    sys.stderr.write(visible(text) + "\n")
