"""Parse JSON lines of predictions and labels, and read lines from standard input."""

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from io import FileIO
from queue import Empty, SimpleQueue
from select import select
from threading import Semaphore, Thread
from typing import Any, Final, TypeAlias, TypeGuard

from abstain._foundation.json_records import parse_object, short_repr
from abstain.errors import FileFormatError, InputError

#: Maximum length of a line in bytes. A longer line is invalid.
MAX_LINE: Final = 1 << 20


def _ignore(_: int) -> None:
    """Do nothing, because a pipe has no read position."""


@dataclass(frozen=True)
class LineBatch:
    """A batch of lines, which is empty if no line arrived within the timeout.

    Attributes
    ----------
    lines : list of (location, text)
        Location and text of each line. The text of a line longer than `MAX_LINE` is None.
    accept : callable
        Function that stores the number of processed lines, after which reading continues in the
        next run.
    """

    lines: list[tuple[str, str | None]]
    accept: Callable[[int], None] = _ignore

    @classmethod
    def from_bytes(
        cls,
        lines: Sequence[bytes],
        n_before: int,
        file: str = "",
        accept: Callable[[int], None] = _ignore,
    ) -> "LineBatch":
        """Decode lines and add their locations, whose line numbers begin with `n_before` + 1."""
        prefix = f"{file}, " if file else ""
        numbered = enumerate(lines, n_before + 1)
        return cls([(f"{prefix}line {i}", _decode(line)) for i, line in numbered], accept)


def _decode(line: bytes) -> str | None:
    if len(line) > MAX_LINE:
        return None
    # Bytes that are not UTF-8 make the line invalid, or they become surrogates within an id.
    return line.decode("utf-8", "surrogateescape")


#: Fields that contain the outcome of a prediction. A label has one of these fields.
OUTCOME_FIELDS: Final = ("correct", "loss", "label")


#: Function of the index of an invalid line and of its error, which returns whether to continue.
OnBadLine: TypeAlias = Callable[[int, FileFormatError], bool]


@dataclass(frozen=True)
class Line:
    """A parsed line with a prediction, a label, or both.

    Attributes
    ----------
    location : str
        File name and line number, such as "part-2.jsonl, line 7", or only the line number.
    id : str
        Id of the prediction.
    confidence : float or None
        Confidence of the prediction, or None if the line contains only a label.
    prediction : str or None
        Predicted class.
    loss : float or None
        Loss of the prediction, in [0, 1].
    label : str or None
        True class.

    Examples
    --------
    >>> from abstain.monitoring.lines import parse_line
    >>> parse_line('{"id": 7, "correct": false}', "line 1").loss
    1.0
    """

    location: str
    id: str
    confidence: float | None = None
    prediction: str | None = None
    loss: float | None = None
    label: str | None = None

    @property
    def has_label(self) -> bool:
        """Whether the line contains a loss or a true class."""
        return self.loss is not None or self.label is not None


def parse_line(text: str | None, location: str, *, scale: str = "score") -> Line:
    """Parse and validate a line.

    Parameters
    ----------
    text : str or None
        A JSON object with an `id`. A prediction has the field `confidence`. A label has one of the
        fields `correct`, `loss` and `label`. A line may contain a prediction and a label. Other
        fields are ignored. None represents a line longer than `MAX_LINE`.
    location : str
        Location of the line for error messages.
    scale : str
        Scale of the confidences.

    Returns
    -------
    Line
        The validated fields.

    Raises
    ------
    FileFormatError
        If the line is invalid. The error message contains the location, the violated rule and the
        value.
    """
    if text is None:
        raise FileFormatError(f"{location}: the line is longer than {MAX_LINE:,} bytes")
    try:
        return _line_from_fields(parse_object(text), location, scale)
    except InputError as error:
        raise FileFormatError(f"{location}: {error}") from error


def _line_from_fields(fields: dict[str, Any], location: str, scale: str) -> Line:
    """Validate the fields of a line, and return the line."""
    outcomes = [name for name in OUTCOME_FIELDS if name in fields]
    if len(outcomes) > 1:
        raise InputError(
            f"a line has one of `correct`, `loss` and `label`; got {' and '.join(outcomes)}"
        )
    if "confidence" not in fields and not outcomes:
        msg = "a line has `confidence` (a prediction), or `correct`, `loss` or `label` (a label)"
        raise InputError(f"{msg}; got {', '.join(map(repr, fields)) or 'nothing'}")
    loss = confidence = prediction = label = None
    if outcomes and outcomes[0] != "label":
        loss = _parse_loss(fields, outcomes[0])
    name = _parse_name(fields, "id")
    if "confidence" in fields:
        confidence = _parse_confidence(fields, scale)
    if "prediction" in fields:
        prediction = _parse_name(fields, "prediction")
    if "label" in fields:
        label = _parse_name(fields, "label")
    return Line(location, name, confidence, prediction, loss, label)


def parse_lines(
    texts: Sequence[tuple[str, str | None]], scale: str, on_bad_line: OnBadLine
) -> tuple[list[Line], list[int]]:
    """Parse nonempty lines, and return the valid lines and their indices."""
    lines: list[Line] = []
    indices: list[int] = []
    for i, (location, text) in enumerate(texts):
        if text is not None and not text.strip():
            continue
        try:
            line = parse_line(text, location, scale=scale)
        except FileFormatError as error:
            if not on_bad_line(i, error):
                break
        else:
            lines.append(line)
            indices.append(i)
    return lines, indices


def _parse_name(fields: dict[str, Any], field: str) -> str:
    """Convert an id or a class, which must be a nonempty text or an integer, to text."""
    value = fields.get(field)
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        description = short_repr(value) if field in fields else "none"
        raise InputError(
            f"`{field}` must be a text that is not empty, or a whole number; got {description}"
        )
    return str(value)


def _parse_confidence(fields: dict[str, Any], scale: str) -> float:
    """Return the confidence of a line after checking that it is valid on the scale."""
    value = fields["confidence"]
    if isinstance(value, bool) or not isinstance(value, int | float) or not _finite(value):
        raise InputError(f"`confidence` must be a finite number; got {short_repr(value)}")
    if scale == "probability" and not 0 <= value <= 1:
        raise InputError(
            f"`confidence` must lie in [0, 1] with scale 'probability'; got {short_repr(value)}"
        )
    return float(value)


def _parse_loss(fields: dict[str, Any], field: str) -> float:
    """Return the loss of a line from its field `correct` or `loss`."""
    value = fields[field]
    is_number = isinstance(value, bool | int | float)
    if not is_number or not _finite(value) or not 0 <= value <= 1:
        rule = "true, false or in [0, 1]" if field == "correct" else "a number in [0, 1]"
        raise InputError(f"`{field}` must be {rule}; got {short_repr(value)}")
    return 1.0 - float(value) if field == "correct" else float(value)


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


#: Maximum number of bytes in a block, and of blocks that are read in advance.
BLOCK: Final = 1 << 18
_N_BLOCKS: Final = 2
#: Seconds without a block after which a pipe counts as empty, once reading was stopped.
_EMPTY_AFTER: Final = 0.2


class LineSplitter:
    """Split blocks of bytes into lines, with limited memory for overlong lines."""

    def __init__(self) -> None:
        self._pending = bytearray()
        #: Whether the remaining bytes of an overlong line are being dropped.
        self._is_dropping = False

    def add(self, block: bytes) -> list[bytes]:
        """Return the lines that a block completes, or the start of a line that is too long."""
        if self._is_dropping:
            _, newline, block = block.partition(b"\n")
            if not newline:
                return []
            self._is_dropping = False
        n_before = len(self._pending)
        self._pending += block
        lines: list[bytes] = []
        end = self._pending.rfind(b"\n", n_before)
        if end >= 0:
            lines = bytes(self._pending[:end]).split(b"\n")
            del self._pending[: end + 1]
        if len(self._pending) > MAX_LINE:
            lines.append(bytes(self._pending))
            self._pending.clear()
            self._is_dropping = True
        return lines

    @property
    def unfinished(self) -> bytes:
        """The beginning of the last line, whose line break has not arrived."""
        return bytes(self._pending)


class Pipe:
    """Standard input, read by a separate thread so that waiting for input can be stopped.

    Parameters
    ----------
    descriptor : int
        Descriptor of the open file.
    events : SimpleQueue
        Queue to which the thread adds blocks. To stop reading, another thread adds None to the
        queue. Blocks that are already in the queue are still processed.
    """

    def __init__(self, descriptor: int, events: "SimpleQueue[bytes | OSError | None]") -> None:
        # The descriptor is duplicated, because the caller may close it while the thread waits.
        self._descriptor = os.dup(descriptor)
        self._events = events
        self._free_blocks = Semaphore(_N_BLOCKS)
        #: Whether reading was stopped in the middle of a line, which was not processed.
        self.is_cut = False
        self._is_at_end = False

    def batches(self, timeout: float) -> Iterator[LineBatch]:
        """Yield lines as they arrive, and an empty batch after `timeout` seconds without input."""
        Thread(target=self._read, name="abstain-pipe", daemon=True).start()
        splitter = LineSplitter()
        n_lines = 0
        for block in self._blocks(timeout):
            lines = splitter.add(block)
            if lines or not block:
                yield LineBatch.from_bytes(lines, n_lines)
            n_lines += len(lines)
        if splitter.unfinished and self._is_at_end:
            yield LineBatch.from_bytes([splitter.unfinished], n_lines)
        self.is_cut = bool(splitter.unfinished) and not self._is_at_end

    def _blocks(self, timeout: float) -> Iterator[bytes]:
        """Yield blocks of bytes, and an empty block after `timeout` seconds without input."""
        while True:
            try:
                event = self._events.get(timeout=timeout)
            except Empty:
                yield b""
                continue
            if event is None:
                yield from self._remaining_blocks()
                return
            if not self._is_block(event):
                # If a request to stop arrives with the end of the input, the writer may have been
                # stopped in the middle of the last line.
                self._is_at_end = self._events.empty()
                return
            yield event
            self._free_blocks.release()

    def _remaining_blocks(self) -> Iterator[bytes]:
        """Yield blocks that are already in the queue, up to about `MAX_LINE` bytes."""
        n_bytes = 0
        while n_bytes <= MAX_LINE:
            try:
                event = self._events.get(timeout=_EMPTY_AFTER)
            except Empty:
                return
            if event is None:
                continue
            if not self._is_block(event):
                return
            n_bytes += len(event)
            yield event
            self._free_blocks.release()

    def _is_block(self, event: bytes | OSError) -> TypeGuard[bytes]:
        """Return whether a queue entry is a nonempty block.

        An empty block marks the end of the input.
        """
        if isinstance(event, OSError):
            raise InputError(f"standard input cannot be read: {event.strerror or event}") from event
        return bool(event)

    def _read(self) -> None:
        """Read standard input in the thread, and put the blocks into the queue."""
        event: bytes | OSError = b"first"
        with os.fdopen(self._descriptor, "rb", buffering=0) as file:
            while event and not isinstance(event, OSError):
                self._free_blocks.acquire()
                try:
                    event = _next_block(file)
                except OSError as error:
                    event = error
                self._events.put(event)


def _next_block(file: FileIO) -> bytes:
    """Wait for bytes and return them, also if another program made the pipe non-blocking."""
    block = file.read(BLOCK)
    while block is None:
        select([file], [], [])
        block = file.read(BLOCK)
    return block
