"""Options of `abstain monitor` about its input and output."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

#: The exit status when an alarm stands.
ALARMED: Final = 3


@dataclass(frozen=True, kw_only=True)
class Kept:
    """Where lines come from, and what is left where."""

    watch: Annotated[
        Path | None, Parameter(help="read the *.jsonl of this folder instead of standard input")
    ] = None
    once: Annotated[bool, Parameter(help="read what is in the folder and end", negative=())] = False
    skip_bad: Annotated[
        bool, Parameter(help="skip bad lines and count them instead of stopping", negative=())
    ] = False
    state: Annotated[Path | None, Parameter(help="file (.npz) to go on from, and to keep")] = None
    reset: Annotated[
        bool, Parameter(help="acknowledge the alarms of the state first", negative=())
    ] = False
    ask: Annotated[
        Path | None, Parameter(help="file (.jsonl) of the labels that are asked for")
    ] = None
    out: Annotated[Path | None, Parameter(help="folder for results, figures, report.html")] = None
    every: Annotated[
        float | None,
        Parameter(help="seconds between two tables [default: 10 on a terminal, else none]"),
    ] = None
