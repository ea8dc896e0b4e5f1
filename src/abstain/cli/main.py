"""The `abstain` program: its commands, and errors as one plain line."""

import sys
import warnings

from abstain.errors import AbstainError, UndefinedMetricWarning


def main(arguments: list[str] | None = None) -> None:
    """Run the program and leave with its exit status."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: list[str]) -> int:
    """Run one command; 0 when it worked, 2 when what was asked cannot be done."""
    from abstain.cli._words import as_options
    from abstain.cli.app import app

    # Undefined metrics are named in the results with their reason.
    warnings.simplefilter("ignore", UndefinedMetricWarning)
    try:
        app(arguments, result_action="return_value")
    except (AbstainError, OSError) as error:
        _say(f"abstain: {as_options(str(error))}")
        return 2
    except KeyboardInterrupt:
        _say("abstain: stopped")
        return 130
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 2
    return 0


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
