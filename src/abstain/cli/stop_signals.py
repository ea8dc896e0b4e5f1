"""Ctrl-C and SIGTERM as a request to stop at the next good moment."""

import signal
import threading
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Any, Self


class StopSignals:
    """While this context is open, the first Ctrl-C or SIGTERM is recorded; a second one interrupts.

    Attributes
    ----------
    number : int
        The signal that arrived; 0 if none did.
    events : SimpleQueue
        The signal puts None here, so whoever waits for this queue wakes up.
    """

    def __init__(self) -> None:
        self.number = 0
        # The only queue to which a signal handler can write safely.
        self.events: SimpleQueue[Any] = SimpleQueue()
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                previous: Callable[..., Any] | int | None = signal.signal(number, self._record)
                self._stack.callback(partial(signal.signal, number, previous))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def wait(self, seconds: float) -> None:
        """Wait so long, or until a signal arrives."""
        try:
            self.events.get(timeout=seconds)
        except Empty:
            return

    def _record(self, number: int, _: FrameType | None) -> None:
        if self.number:
            raise KeyboardInterrupt
        self.number = number
        self.events.put(None)
