"""Lines of a pipe: as they arrive, and a sign of life while none does."""

import os
from collections.abc import Iterator
from io import FileIO
from queue import Empty, SimpleQueue
from select import select
from threading import Semaphore, Thread
from typing import Final, TypeGuard

from abstain.errors import InputError
from abstain.monitoring.lines import MAX_LINE, LineBatch

#: At most so many bytes are read at once, and so many blocks before the first of them is taken:
#: after a request to stop, this much is still taken.
BLOCK: Final = 1 << 18
_N_BLOCKS: Final = 2
#: Seconds without a block after which a pipe counts as empty, when reading is to end.
_EMPTY_AFTER: Final = 0.2


class LineSplitter:
    """Cut blocks of bytes into lines, with work and memory that do not depend on their length."""

    def __init__(self) -> None:
        self._pending = bytearray()
        #: Whether the rest of a line that is too long is being dropped.
        self._is_dropping = False

    def add(self, block: bytes) -> list[bytes]:
        """Return the lines that this block completes, and a line that has become too long."""
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
        """The last line, whose end has not arrived."""
        return bytes(self._pending)


class Pipe:
    """Standard input, read by a thread so that waiting for it can end at any time.

    Parameters
    ----------
    descriptor : int
        The open file.
    events : SimpleQueue
        Blocks are put here by the thread. Others may put None: then reading ends once everything
        that has already arrived is read.
    """

    def __init__(self, descriptor: int, events: "SimpleQueue[bytes | OSError | None]") -> None:
        # Its own, since the caller may close the other one while the thread waits for bytes.
        self._descriptor, self._events = os.dup(descriptor), events
        self._free_blocks = Semaphore(_N_BLOCKS)
        #: Whether the input ended in the middle of a line, which was not read.
        self.is_cut = self._is_at_end = False

    def batches(self, timeout: float) -> Iterator[LineBatch]:
        """Yield lines as they arrive, and an empty batch after `timeout` seconds of silence."""
        Thread(target=self._read, name="abstain-pipe", daemon=True).start()
        splitter, n_lines = LineSplitter(), 0
        for block in self._blocks(timeout):
            lines = splitter.add(block)
            if lines or not block:
                yield LineBatch.from_bytes(lines, n_lines)
            n_lines += len(lines)
        if splitter.unfinished and self._is_at_end:
            yield LineBatch.from_bytes([splitter.unfinished], n_lines)
        self.is_cut = bool(splitter.unfinished) and not self._is_at_end

    def _blocks(self, timeout: float) -> Iterator[bytes]:
        """Yield blocks of bytes, and an empty one after `timeout` seconds of silence."""
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
                # A request to stop may arrive together with the end: whoever wrote the lines was
                # perhaps stopped too, in the middle of the last one.
                self._is_at_end = self._events.empty()
                return
            yield event
            self._free_blocks.release()

    def _remaining_blocks(self) -> Iterator[bytes]:
        """Yield what has arrived already: what lies in a pipe is no more than `MAX_LINE`.

        A last line without its end is then not complete: its writer may have been stopped too.
        """
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
        """Return whether bytes arrived, and not the end of the input."""
        if isinstance(event, OSError):
            raise InputError(f"standard input cannot be read: {event.strerror or event}") from event
        return bool(event)

    def _read(self) -> None:
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
    """Wait for bytes, also if another program has set the pipe so that a read does not wait."""
    while (block := file.read(BLOCK)) is None:
        select([file], [], [])
    return block
