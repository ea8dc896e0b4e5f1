"""`abstain monitor`: predictions as they come, an alarm when a rule breaks its promise."""

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import Parameter

import abstain as ab
from abstain._foundation.files import write_atomically
from abstain.cli.command_line import flag
from abstain.cli.console import console, leave_word, say
from abstain.cli.options import USUAL_COLUMNS, Columns
from abstain.cli.out import REPORT, Out, command, files_of, place
from abstain.cli.predictions import read_scored
from abstain.cli.threshold import read_rule
from abstain.errors import FileFormatError, InputError
from abstain.typing import Scale

if TYPE_CHECKING:
    from abstain.monitoring import Monitor
    from abstain.monitoring.folder import Placed

#: The exit status when an alarm stands.
ALARMED: Final = 3
#: Seconds between two looks at a folder, two states on the disk, two tables on a terminal.
_LOOK, _SAVE, _SHOW = 1.0, 2.0, 10.0


@dataclass(frozen=True, kw_only=True)
class Promise:
    """What is watched, and how surely."""

    calibration: Annotated[
        Path | None, Parameter(help="the predictions that the rule was chosen on")
    ] = None
    delta: Annotated[
        float | None, Parameter(help="chance of any false alarm, ever [default: 0.05]")
    ] = None
    max_risk: Annotated[
        float | None, Parameter(help="what the risk is held to [default: the target of the rule]")
    ] = None
    coverage: Annotated[
        tuple[float, float] | None,
        Parameter(
            help="low and high of the coverage [default: by the calibration samples]", negative=()
        ),
    ] = None
    scale: Annotated[
        Scale | None, Parameter(help="what confidences are, for a rule in log-odds")
    ] = None
    label_share: Annotated[
        float | None, Parameter(help="share of the answers whose labels to ask for")
    ] = None
    patience: Annotated[
        int | None, Parameter(help="predictions until a label is given up [default: 10000]")
    ] = None
    remember: Annotated[
        int | None, Parameter(help="predictions that are known by id [default: 1000000]")
    ] = None
    seed: Annotated[int | None, Parameter(help="of everything drawn [default: 0]")] = None

    def given(self) -> dict[str, Any]:
        """Return what was said, but for the calibration data."""
        names = (n for n in self.__dataclass_fields__ if n != "calibration")
        return {n: getattr(self, n) for n in names if getattr(self, n) is not None}


@dataclass(frozen=True, kw_only=True)
class Kept:
    """Where lines come from, and what is left where."""

    watch: Annotated[
        Path | None, Parameter(help="read the *.jsonl of this folder instead of standard input")
    ] = None
    once: Annotated[bool, Parameter(help="read what is in the folder and end", negative=())] = False
    skip_bad: Annotated[
        bool, Parameter(help="count bad lines instead of stopping", negative=())
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


_PROMISE, _KEPT = Promise(), Kept()


def monitor(
    rule: Annotated[Path, Parameter(help="the rule, as `abstain threshold --save` leaves it")],
    /,
    *,
    promise: Annotated[Promise, Parameter(name="*")] = _PROMISE,
    kept: Annotated[Kept, Parameter(name="*")] = _KEPT,
    columns: Annotated[Columns, Parameter(name="*")] = USUAL_COLUMNS,
) -> None:
    """Watch a rule in use: its coverage, the confidences, and the risk as labels arrive.

    Reads JSON lines: predictions ({"id": .., "confidence": ..}) and labels ({"id": ..,
    "correct": ..}) in any order. An alarm is a line that begins with ALARM, said once; while one
    stands the exit status is 3. The other options are about the calibration file.
    """
    _refuse_idle(promise, kept)
    to = place(kept.out, [REPORT], [rule, promise.calibration])
    found = _begun(rule, promise, kept, columns)
    session = Session(found, kept, to)
    try:
        for lines, read in _batches(found, kept):
            session.take(lines, read)
    except KeyboardInterrupt:
        session.end(shown=True)
        raise SystemExit(130) from None
    except FileFormatError:
        # What came before the bad line is not lost.
        session.save()
        raise
    session.end(shown=sys.stdout.isatty())
    if session.found.standing:
        sys.stdout.flush()
        raise SystemExit(ALARMED)


def _refuse_idle(promise: Promise, kept: Kept) -> None:
    """Refuse options that have no effect without others."""
    needs = (
        (kept.reset, "reset", kept.state, "state"),
        (kept.once, "once", kept.watch, "watch"),
        (promise.label_share is not None, "label_share", kept.ask, "ask"),
    )
    for given, name, other, its in needs:
        if given and other is None:
            msg = f"{flag(name)} has no effect without {flag(its)}; add it"
            raise InputError(msg)


def _begun(rule: Path, promise: Promise, kept: Kept, columns: Columns) -> "Monitor":
    """Return the monitor of the state, or a new one."""
    from abstain.monitoring.outset import refuse_other

    decision = read_rule(rule)
    if not isinstance(decision, ab.thresholds.DecisionRule):
        msg = (
            f"{rule.name} holds several rules; keep each in a file (`ab.save(ab.load("
            f"{rule.name!r}).part(NAME), ...)`), watch it on the lines of its group with a state "
            "of its own, and share --delta among them"
        )
        raise InputError(msg)
    data: Any = None
    if promise.calibration is not None:
        data = read_scored(promise.calibration, columns, decision.score).only()
    if kept.state is None or not kept.state.exists():
        begun = ab.monitoring.start(decision, calibration=data, **promise.given())
        return begun.keep(kept.state) if kept.state is not None else begun
    found = ab.load(kept.state)
    if not isinstance(found, ab.monitoring.Monitor):
        msg = f"{kept.state.name} holds no state of a monitor but a {type(found).__name__}"
        raise FileFormatError(msg)
    refuse_other(found, decision, data, **promise.given())
    return found.reset() if kept.reset else found


def _batches(found: "Monitor", kept: Kept) -> "Iterator[tuple[Placed, Any]]":
    """Yield lines with how far the files were read; nothing where none came for a while."""
    from abstain.monitoring.folder import lines_from, lines_in

    if kept.watch is None:
        for lines in lines_from(sys.stdin.fileno()):
            yield lines, ()
        return
    read = found.read
    while True:
        for lines, reached in lines_in(kept.watch, read):
            read = reached
            yield lines, read
        if kept.once:
            _say_unfinished(kept.watch, read)
            return
        yield [], read
        time.sleep(_LOOK)


def _mark(state: Path | None) -> tuple[int, int, int] | None:
    """Return what changes when a state is written anew; None where there is none."""
    if state is None or not state.exists():
        return None
    found = state.stat()
    return found.st_ino, found.st_mtime_ns, found.st_size


def _say_unfinished(folder: Path, read: Any) -> None:
    """Say which files end in a line without its end, which is not read."""
    from abstain.monitoring.folder import unfinished

    for name in unfinished(folder, read):
        sys.stderr.write(
            f"abstain: the last line of {name} has no end of line, so it may be unfinished and was "
            "not read: end it, and run this command again\n"
        )


class Session:
    """What one run of the command does with the lines."""

    def __init__(self, found: "Monitor", kept: Kept, to: Out | None) -> None:
        self.found, self.kept, self.to = found, kept, to
        self.skipped: list[str] = []
        self.left = _mark(kept.state)
        self.saved = self.shown = time.monotonic()
        self.every = kept.every
        if self.every is None and sys.stdout.isatty():
            self.every = _SHOW

    def take(self, lines: "Placed", read: Any) -> None:
        """Take lines, say new alarms, and now and then keep the state and show the table."""
        from abstain.monitoring.lines import Line, read_lines

        skipped = self.skipped if self.kept.skip_bad else None
        good: list[Line] = []
        bad = None
        try:
            # What comes before a bad line is taken.
            good.extend(read_lines(lines, scale=self.found.plan.scale, skipped=skipped))
        except FileFormatError as error:
            bad = error
        before = len(self.found.alarms)
        self.found = self.found.take(good, skipped=skipped)
        # Said first, kept then: killed between the two it is said again, never lost.
        for alarm in self.found.alarms[before:]:
            say(alarm.line)
        sys.stdout.flush()
        if bad is not None:
            raise bad
        self.found = self.found.at(read)
        now = time.monotonic()
        if now - self.saved >= _SAVE:
            self.save()
        if self.every is not None and now - self.shown >= self.every:
            self.show()

    def save(self) -> None:
        """Keep the state and what is asked for."""
        state = self.kept.state
        if state is not None:
            if _mark(state) != self.left:
                msg = (
                    f"{state.name} was written by another run since this one began to keep it, and "
                    "is left as it is: end one of them, and run this command again (files are read "
                    "on from there; send a pipe again)"
                )
                raise InputError(msg)
            self.found.keep(state)
            self.left = _mark(state)
        if self.kept.ask is not None:
            lines = (json.dumps(row) + "\n" for row in self.found.wanted())
            write_atomically(self.kept.ask, "".join(lines).encode())
        self.saved = time.monotonic()

    def show(self) -> None:
        """Print the table, and leave the page where there is a place for it."""
        from abstain.report.output import MONITOR

        console().print(MONITOR.terminal(self.found))
        self._leave()
        self.shown = time.monotonic()

    def end(self, *, shown: bool) -> None:
        """Keep all that was found."""
        self.save()
        if shown or self.kept.every is not None:
            self.show()
            leave_word([self.to.folder] if self.to is not None else [])
        else:
            self._leave()
        if self.skipped:
            lines = f"{len(self.skipped)} bad line{'s' if len(self.skipped) > 1 else ''}"
            sys.stderr.write(f"abstain: {lines} skipped, the first: {self.skipped[0]}\n")

    def _leave(self) -> None:
        from abstain.report.output import MONITOR

        if self.to is None:
            return
        page = MONITOR.html(self.found, command=command())
        tables = {"results": self.found.rows(), "history": self.found.points()}
        self.to.leave(files_of(tables, page, self.found, ("svg",)))
