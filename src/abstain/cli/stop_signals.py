"""Handle Ctrl-C and SIGTERM as requests to stop after the current step."""

import signal
import threading
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Any, Self


class StopSignals:
    """Context that records the first Ctrl-C or SIGTERM. A second signal interrupts the program.

    Attributes
    ----------
    number : int
        Number of the signal that arrived, or 0 if none arrived.
    events : SimpleQueue
        Queue that contains None after a signal. Threads can use the queue to wait for a signal.
    """

    def __init__(self) -> None:
        self.number = 0
        # This is the only queue to which a signal handler can write safely.
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
        """Wait for a number of seconds, or until a signal arrives."""
        try:
            self.events.get(timeout=seconds)
        except Empty:
            return

    def _record(self, number: int, _: FrameType | None) -> None:
        if self.number:
            raise KeyboardInterrupt
        self.number = number
        self.events.put(None)
