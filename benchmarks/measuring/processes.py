"""Measure wall time, CPU time and peak memory of a command.

This file, run as a script, is a small process that starts the command. A child process begins as a
copy of its parent, so the memory of a large parent would count as the peak of the command.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

#: Commands are killed after this many seconds.
TIMEOUT = 200


@dataclass(frozen=True)
class Cost:
    """Time and memory of one run."""

    seconds: float
    cpu_seconds: float
    #: Peak resident memory of the process in MiB; None for calls in this process.
    peak: float | None = None
    facts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Command:
    """A command line, and a function that returns facts about its output."""

    argv: Sequence[str]
    read_facts: Callable[[], Mapping[str, float]] = dict

    def __call__(self) -> Cost:
        """Run the command once."""
        # -S ignores installed packages, so that the starter needs little memory.
        starter = [sys.executable, "-I", "-S", str(Path(__file__)), *self.argv]
        process = subprocess.run(starter, capture_output=True, text=True, check=False)
        last_line = process.stdout.strip().rsplit("\n", 1)[-1]
        if process.returncode:
            lines = process.stderr.strip().splitlines() or [f"status {process.returncode}"]
            raise RuntimeError(f"{' '.join(self.argv[-4:])}: {lines[-1]}")
        return Cost(**json.loads(last_line), facts=dict(self.read_facts()))


def python(*arguments: str, read_facts: Callable[[], Mapping[str, float]] = dict) -> Command:
    """Return the command that runs this Python with arguments."""
    return Command((sys.executable, *arguments), read_facts)


def abstain(*arguments: object, read_facts: Callable[[], Mapping[str, float]] = dict) -> Command:
    """Return the command `abstain` with arguments."""
    return python("-m", "abstain", *map(str, arguments), read_facts=read_facts)


def _start(argv: Sequence[str]) -> int:
    """Run a command without its standard output, and print its cost as JSON."""
    null = os.open(os.devnull, os.O_RDWR)
    start = time.perf_counter()
    actions = [(os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, null, 1)]
    child = os.posix_spawnp(argv[0], argv, os.environ, file_actions=actions)

    def kill(*_: object) -> None:
        print(f"killed after {TIMEOUT} s", file=sys.stderr)
        os.kill(child, signal.SIGKILL)

    signal.signal(signal.SIGALRM, kill)
    signal.alarm(TIMEOUT)
    _, status, usage = os.wait4(child, 0)
    seconds = time.perf_counter() - start
    unit = 2**20 if sys.platform == "darwin" else 2**10
    cost = {
        "seconds": seconds,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "peak": usage.ru_maxrss / unit,
    }
    print(json.dumps(cost))
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(abs(_start(sys.argv[1:])))
