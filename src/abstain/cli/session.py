"""A run of `abstain monitor`, which processes lines, saves the state and prints results."""

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from abstain.cli.console import console, print_text, print_written_files
from abstain.cli.monitor_options import ALARM_EXIT_STATUS, InputOutputOptions
from abstain.cli.output_folder import OutputFolder, current_command, make_files
from abstain.cli.stop_signals import StopSignals
from abstain.errors import FileFormatError, InputError
from abstain.plots.formatting import escape_control_characters

if TYPE_CHECKING:
    from abstain.monitoring import Monitor
    from abstain.monitoring.lines import LineBatch

#: Seconds between two checks of a folder, two writes of the state, and two tables in a terminal.
_POLL_SECONDS, _SAVE_SECONDS, _SHOW_SECONDS = 1.0, 2.0, 10.0
#: Seconds without lines after which an empty batch is yielded, so that results can be saved.
_IDLE_SECONDS: Final = 0.5


@dataclass
class BadLines:
    """Number of invalid lines that were skipped, and the error message of the first such line."""

    count: int = 0
    first_error: str = ""

    def add(self, message: str) -> None:
        """Count a bad line."""
        self.first_error = self.first_error or message
        self.count += 1


@dataclass
class Session:
    """One run of the command."""

    initial_monitor: "Monitor"
    options: InputOutputOptions
    output: OutputFolder | None
    stop: StopSignals
    bad_lines: BadLines = field(default_factory=BadLines)

    def __post_init__(self) -> None:
        """Prepare the monitor and the watched folder."""
        from abstain.monitoring.followed_file import Folder
        from abstain.monitoring.running import RunningMonitor

        self._running_monitor = RunningMonitor(
            self.initial_monitor.plan, self.initial_monitor.state
        )
        self._n_alarms = len(self.initial_monitor.alarms)
        self._n_good_lines = 0
        watch = self.options.watch
        self._folder = (
            None if watch is None else Folder(watch, self.initial_monitor.read_positions, warn)
        )
        self._state_mark = _file_state(self.options.state)
        # Whether lines were processed since the state was saved or the results were shown.
        self._is_unsaved = self._is_unshown = True
        self._saved_at = self._shown_at = time.monotonic()
        self._every = self.options.every
        if self._every is None and sys.stdout.isatty():
            self._every = _SHOW_SECONDS

    @property
    def monitor(self) -> "Monitor":
        """The monitor after the processed lines."""
        from abstain.monitoring import Monitor

        read = self.initial_monitor.read_positions if self._folder is None else self._folder.read
        return Monitor(self.initial_monitor.plan, self._running_monitor.done(), read)

    def run(self) -> None:
        """Process all lines until the input ends or a signal arrives.

        After an error, the state is saved too.
        """
        try:
            for batch in self._batches():
                self._take(batch)
                self._save_and_show_when_due()
        except (FileFormatError, InputError):
            self.save_state()
            raise
        self._end()

    def exit_status(self) -> int:
        """Return the exit status, or raise FileFormatError if all lines were invalid."""
        if self.stop.number:
            return 128 + self.stop.number
        if self.bad_lines.count and not self._n_good_lines:
            raise FileFormatError(
                f"none of the {self.bad_lines.count:,} lines could be read"
                if self.bad_lines.count > 1
                else "the only line could not be read"
            )
        is_alarmed = any(not alarm.acknowledged for alarm in self._running_monitor.alarms)
        return ALARM_EXIT_STATUS if is_alarmed else 0

    # ------------------------------------------------------------------------ lines
    def _batches(self) -> "Iterator[LineBatch]":
        """Yield batches of lines, and empty batches while no line arrives."""
        if self._folder is None:
            yield from self._pipe_batches()
            return
        while True:
            for batch in self._folder.batches():
                yield batch
                if self.stop.number:
                    return
            if self.options.once or self.stop.number:
                break
            yield _empty_batch()
            self.stop.wait(_POLL_SECONDS)
        for name in self._folder.unfinished() if self.options.once else ():
            warn(
                f"the last line of {name} does not end with a line end, so it may be unfinished "
                "and was not read; add a line end and run this command again"
            )

    def _pipe_batches(self) -> "Iterator[LineBatch]":
        """Yield batches of lines of standard input, and empty batches while no line arrives."""
        from abstain.monitoring.lines import Pipe

        if sys.stdin is None:
            raise InputError(
                "standard input is closed; pipe lines into the command, or name a folder with "
                "--watch"
            )
        pipe = Pipe(sys.stdin.fileno(), self.stop.events)
        yield from pipe.batches(_IDLE_SECONDS)
        if pipe.is_cut:
            warn("the last line is incomplete and was not read; send it again")

    def _take(self, batch: "LineBatch") -> None:
        """Process lines and print new alarms.

        With --skip-bad, invalid lines are skipped and counted.
        """
        from abstain.monitoring.lines import parse_lines

        if not batch.lines:
            return
        self._is_unsaved = self._is_unshown = True
        running_monitor = self._running_monitor
        n_processed = len(batch.lines)
        first_error: FileFormatError | None = None

        def on_bad_line(index: int, error: FileFormatError) -> bool:
            nonlocal n_processed, first_error
            if self.options.skip_bad:
                self.bad_lines.add(str(error))
            else:
                n_processed = index
                first_error = error
            return self.options.skip_bad

        def on_rejected_line(i: int, error: FileFormatError) -> bool:
            return on_bad_line(indices[i], error)

        lines, indices = parse_lines(batch.lines, running_monitor.plan.scale, on_bad_line)
        n_bad_after_parsing = self.bad_lines.count
        running_monitor.take_lines(lines, on_rejected_line)
        self._n_good_lines += len(lines) - (self.bad_lines.count - n_bad_after_parsing)
        # Alarms are printed before the state is saved. If the process is killed in between, an
        # alarm is printed twice and is not lost.
        for alarm in running_monitor.alarms[self._n_alarms :]:
            print_text(alarm.line)
        self._n_alarms = len(running_monitor.alarms)
        sys.stdout.flush()
        batch.accept(n_processed)
        if first_error is not None:
            raise first_error

    # ------------------------------------------------------------------------ results
    def _save_and_show_when_due(self) -> None:
        now = time.monotonic()
        if self._is_unsaved and now - self._saved_at >= _SAVE_SECONDS:
            self.save_state()
        if self._every is not None and self._is_unshown and now - self._shown_at >= self._every:
            self._show()

    def save_state(self) -> None:
        """Write the state file and the file of requested labels."""
        monitor = self.monitor
        if self.options.state is not None:
            self._write_state(monitor, self.options.state)
        if self.options.ask is not None:
            _write_label_requests(monitor, self.options.ask)
        self._is_unsaved = False
        self._saved_at = time.monotonic()

    def _write_state(self, monitor: "Monitor", path: Path) -> None:
        """Write the state. Raise an error if another run has changed the file."""
        if _file_state(path) != self._state_mark:
            raise InputError(
                f"{path.name} was changed by another run after the start of this one and is "
                "not overwritten; stop one of them, and run this command again (reading of "
                "files continues; send the lines of a pipe again)"
            )
        monitor.save(path)
        self._state_mark = _file_state(path)

    def _show(self) -> None:
        """Print the table of the tests. If an output folder was passed, write the report."""
        from abstain.report.output import MONITOR

        monitor = self.monitor
        console().print(MONITOR.terminal(monitor))
        self._write_page(monitor)
        self._is_unshown = False
        self._shown_at = time.monotonic()

    def _end(self) -> None:
        """Save and show all results."""
        self.save_state()
        if self.stop.number or sys.stdout.isatty() or self.options.every is not None:
            self._show()
            if self.output is not None:
                print_written_files([self.output.folder])
        else:
            self._write_page(self.monitor)
        if self.bad_lines.count:
            lines = f"{self.bad_lines.count:,} bad line{'s' if self.bad_lines.count > 1 else ''}"
            warn(f"{lines} skipped, the first: {self.bad_lines.first_error}")

    def _write_page(self, monitor: "Monitor") -> None:
        from abstain.report.output import MONITOR

        if self.output is None:
            return
        page = MONITOR.html(monitor, command=current_command())
        tables = {"results": monitor.rows(), "history": monitor.points()}
        self.output.write(make_files(tables, page, monitor, ("svg",)))


def _write_label_requests(monitor: "Monitor", path: Path) -> None:
    """Write the predictions for which labels are requested, one JSON object per line."""
    from abstain._foundation.files import write_atomically

    lines = [json.dumps(request) + "\n" for request in monitor.label_requests()]
    write_atomically(path, "".join(lines).encode())


def warn(sentence: str) -> None:
    """Print a sentence on standard error without control characters."""
    sys.stderr.write(escape_control_characters(f"abstain: {sentence}") + "\n")
    sys.stderr.flush()


def _empty_batch() -> "LineBatch":
    from abstain.monitoring.lines import LineBatch

    return LineBatch([])


def _file_state(state: Path | None) -> tuple[int, int, int] | None:
    """Return the inode, modification time and size of a state file, or None if there is none."""
    if state is None or not state.exists():
        return None
    status = state.stat()
    return status.st_ino, status.st_mtime_ns, status.st_size
