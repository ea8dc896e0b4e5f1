"""Whole commands: wall time, processor time and peak memory of one child alone.

The child is started by a small process of its own (this file, run as a script), because a child
begins its life as a copy of its parent, whose memory would count as the child's peak.
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

#: No command takes longer than so many seconds; one that does is ended.
LIMIT = 200


@dataclass(frozen=True)
class Spent:
    """What one turn took."""

    seconds: float
    processor: float
    #: Peak resident memory of a whole process, in MiB.
    peak: float | None = None
    facts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Command:
    """A command line, and what is read off what it left: names and numbers."""

    argv: Sequence[str]
    left: Callable[[], Mapping[str, float]] = dict

    def __call__(self) -> Spent:
        """Run it once."""
        # -S: without what is installed, so that the starter stays small.
        starter = [sys.executable, "-I", "-S", str(Path(__file__)), *self.argv]
        done = subprocess.run(starter, capture_output=True, text=True, check=False)
        last = done.stdout.strip().rsplit("\n", 1)[-1]
        if done.returncode:
            told = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
            raise RuntimeError(f"{' '.join(self.argv[-4:])}: {told[-1]}")
        return Spent(**json.loads(last), facts=dict(self.left()))


def python(*words: str, left: Callable[[], Mapping[str, float]] = dict) -> Command:
    """Return the command that runs this Python with these words."""
    return Command((sys.executable, *words), left)


def abstain(*words: object, left: Callable[[], Mapping[str, float]] = dict) -> Command:
    """Return the command `abstain` with these words."""
    return python("-m", "abstain", *map(str, words), left=left)


def _start(argv: Sequence[str]) -> int:
    """Run a command, print what it took as JSON; its output goes nowhere, its errors through."""
    null = os.open(os.devnull, os.O_RDWR)
    start = time.perf_counter()
    actions = [(os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, null, 1)]
    child = os.posix_spawnp(argv[0], argv, os.environ, file_actions=actions)

    def end(*_: object) -> None:
        print(f"ended after {LIMIT} s", file=sys.stderr)
        os.kill(child, signal.SIGKILL)

    signal.signal(signal.SIGALRM, end)
    signal.alarm(LIMIT)
    _, status, used = os.wait4(child, 0)
    seconds = time.perf_counter() - start
    unit = 2**20 if sys.platform == "darwin" else 2**10
    spent = {
        "seconds": seconds,
        "processor": used.ru_utime + used.ru_stime,
        "peak": used.ru_maxrss / unit,
    }
    print(json.dumps(spent))
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(abs(_start(sys.argv[1:])))
