"""Options for the input and the output of `abstain monitor`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

#: Exit status while an alarm is active.
ALARM_EXIT_STATUS: Final = 3


@dataclass(frozen=True, kw_only=True)
class InputOutputOptions:
    """Input and output of `abstain monitor`."""

    watch: Annotated[
        Path | None, Parameter(help="Folder whose *.jsonl files are read instead of standard input")
    ] = None
    once: Annotated[
        bool, Parameter(help="Read the files of the folder once and exit", negative=())
    ] = False
    skip_bad: Annotated[
        bool, Parameter(help="Skip and count invalid lines instead of stopping", negative=())
    ] = False
    state: Annotated[
        Path | None, Parameter(help="File (.npz) of the state, read at the start and updated")
    ] = None
    reset: Annotated[bool, Parameter(help="Acknowledge the alarms of the state", negative=())] = (
        False
    )
    ask: Annotated[Path | None, Parameter(help="File (.jsonl) for the requested labels")] = None
    out: Annotated[Path | None, Parameter(help="Folder for results, figures and report.html")] = (
        None
    )
    every: Annotated[
        float | None,
        Parameter(
            help="Seconds between two tables [default: 10 in a terminal, otherwise no tables]"
        ),
    ] = None
