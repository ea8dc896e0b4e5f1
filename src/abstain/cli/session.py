"""One run of `abstain monitor`: what becomes of the lines, and what is saved when."""

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from abstain.cli.console import console, leave_word, say
from abstain.cli.monitor_options import ALARMED, Kept
from abstain.cli.out import Out, command, files_of
from abstain.cli.stop_signals import StopSignals
from abstain.errors import FileFormatError, InputError
from abstain.plots.formatting import escape_control_characters

if TYPE_CHECKING:
    from abstain.monitoring import Monitor
    from abstain.monitoring.lines import LineBatch

#: Seconds between two looks at a folder, two states on the disk, two tables on a terminal.
_LOOK, _SAVE, _SHOW = 1.0, 2.0, 10.0
#: Seconds without lines after which it is checked whether something is to be saved.
_SILENCE: Final = 0.5


@dataclass
class BadLines:
    """How many lines were skipped, and why the first of them was."""

    n: int = 0
    first: str = ""

    def add(self, message: str) -> None:
        """Count a bad line."""
        self.first = self.first or message
        self.n += 1


@dataclass
class Session:
    """What one run of the command does with the lines."""

    begun: "Monitor"
    kept: Kept
    to: Out | None
    stop: StopSignals
    bad_lines: BadLines = field(default_factory=BadLines)

    def __post_init__(self) -> None:
        from abstain.monitoring.folder import Folder
        from abstain.monitoring.running import RunningMonitor

        self._course = RunningMonitor(self.begun.plan, self.begun.state)
        self._n_alarms = len(self.begun.alarms)
        self._n_good_lines = 0
        watch = self.kept.watch
        self._folder = None if watch is None else Folder(watch, self.begun.read_positions, warn)
        self._state_mark = _mark(self.kept.state)
        # Whether something was taken that the saved state, or the page, does not hold.
        self._is_unsaved = self._is_unshown = True
        self._saved_at = self._shown_at = time.monotonic()
        self._every = self.kept.every
        if self._every is None and sys.stdout.isatty():
            self._every = _SHOW

    @property
    def monitor(self) -> "Monitor":
        """The monitor after the lines that were taken."""
        from abstain.monitoring import Monitor

        read = self.begun.read_positions if self._folder is None else self._folder.read
        return Monitor(self.begun.plan, self._course.done(), read)

    def run(self) -> None:
        """Take all lines until the input ends or a signal arrives.

        After an error or a signal the lines before it are saved too.
        """
        try:
            for batch in self._batches():
                self._take(batch)
                self._save_and_show_when_due()
        except (FileFormatError, InputError):
            self.save()
            raise
        self._end()

    def exit_status(self) -> int:
        """Return the exit status; an InputError is raised if all lines were bad."""
        if self.stop.number:
            return 128 + self.stop.number
        if self.bad_lines.n and not self._n_good_lines:
            raise FileFormatError(
                f"none of the {self.bad_lines.n:,} lines could be read"
                if self.bad_lines.n > 1
                else "the only line could not be read"
            )
        stands = any(not alarm.acknowledged for alarm in self._course.alarms)
        return ALARMED if stands else 0

    # ------------------------------------------------------------------------ lines
    def _batches(self) -> "Iterator[LineBatch]":
        """Yield batches of lines, and empty ones while nothing arrives."""
        if self._folder is None:
            yield from self._pipe_batches()
            return
        while True:
            for batch in self._folder.batches():
                yield batch
                if self.stop.number:
                    return
            if self.kept.once or self.stop.number:
                break
            yield _nothing()
            self.stop.wait(_LOOK)
        for name in self._folder.unfinished() if self.kept.once else ():
            warn(
                f"the last line of {name} has no end of line, so it may be unfinished and was not "
                "read: end it, and run this command again"
            )

    def _pipe_batches(self) -> "Iterator[LineBatch]":
        from abstain.monitoring.pipe import Pipe

        if sys.stdin is None:
            raise InputError(
                "standard input is closed; pipe lines in, or name a folder with --watch"
            )
        pipe = Pipe(sys.stdin.fileno(), self.stop.events)
        yield from pipe.batches(_SILENCE)
        if pipe.is_cut:
            warn("the last line was not complete and was not read; send it again")

    def _take(self, batch: "LineBatch") -> None:
        """Take lines, and print new alarms; with --skip-bad a bad line is only counted."""
        from abstain.monitoring.lines import parse_lines

        if not batch.lines:
            return
        self._is_unsaved = self._is_unshown = True
        course, n_taken, n_bad = self._course, len(batch.lines), self.bad_lines.n
        first_error: FileFormatError | None = None

        def on_bad_line(index: int, error: FileFormatError) -> bool:
            nonlocal n_taken, first_error
            if self.kept.skip_bad:
                self.bad_lines.add(str(error))
            else:
                n_taken, first_error = index, error
            return self.kept.skip_bad

        lines, indices = parse_lines(batch.lines, course.plan.scale, on_bad_line)
        n_unreadable = self.bad_lines.n - n_bad
        course.take_lines(lines, lambda i, error: on_bad_line(indices[i], error))
        self._n_good_lines += len(lines) - (self.bad_lines.n - n_bad - n_unreadable)
        # Printed first, saved then: killed between the two it is printed again, never lost.
        for alarm in course.alarms[self._n_alarms :]:
            say(alarm.line)
        self._n_alarms = len(course.alarms)
        sys.stdout.flush()
        batch.accept(n_taken)
        if first_error is not None:
            raise first_error

    # ------------------------------------------------------------------------ results
    def _save_and_show_when_due(self) -> None:
        now = time.monotonic()
        if self._is_unsaved and now - self._saved_at >= _SAVE:
            self.save()
        if self._every is not None and self._is_unshown and now - self._shown_at >= self._every:
            self._show()

    def save(self) -> None:
        """Write the state and the labels that are requested."""
        state, monitor = self.kept.state, self.monitor
        if state is not None:
            if _mark(state) != self._state_mark:
                raise InputError(
                    f"{state.name} was written by another run since this one began to keep it, and "
                    "is left as it is: end one of them, and run this command again (files are read "
                    "on from there; send a pipe again)"
                )
            monitor.save(state)
            self._state_mark = _mark(state)
        if self.kept.ask is not None:
            from abstain._foundation.files import write_atomically

            lines = (json.dumps(row) + "\n" for row in monitor.label_requests())
            write_atomically(self.kept.ask, "".join(lines).encode())
        self._is_unsaved, self._saved_at = False, time.monotonic()

    def _show(self) -> None:
        """Print the table, and write the page if there is a folder for it."""
        from abstain.report.output import MONITOR

        monitor = self.monitor
        console().print(MONITOR.terminal(monitor))
        self._write_page(monitor)
        self._is_unshown, self._shown_at = False, time.monotonic()

    def _end(self) -> None:
        """Save and show all results."""
        self.save()
        if self.stop.number or sys.stdout.isatty() or self.kept.every is not None:
            self._show()
            leave_word([self.to.folder] if self.to is not None else [])
        else:
            self._write_page(self.monitor)
        if self.bad_lines.n:
            lines = f"{self.bad_lines.n:,} bad line{'s' if self.bad_lines.n > 1 else ''}"
            warn(f"{lines} skipped, the first: {self.bad_lines.first}")

    def _write_page(self, monitor: "Monitor") -> None:
        from abstain.report.output import MONITOR

        if self.to is None:
            return
        page = MONITOR.html(monitor, command=command())
        tables = {"results": monitor.rows(), "history": monitor.points()}
        self.to.leave(files_of(tables, page, monitor, ("svg",)))


def warn(sentence: str) -> None:
    """Print a sentence on standard error, without its control characters."""
    sys.stderr.write(escape_control_characters(f"abstain: {sentence}") + "\n")
    sys.stderr.flush()


def _nothing() -> "LineBatch":
    from abstain.monitoring.lines import LineBatch

    return LineBatch([])


def _mark(state: Path | None) -> tuple[int, int, int] | None:
    """Return what changes when a state is written anew; None where there is none."""
    if state is None or not state.exists():
        return None
    status = state.stat()
    return status.st_ino, status.st_mtime_ns, status.st_size
