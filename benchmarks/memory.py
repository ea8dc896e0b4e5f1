"""Peak extra memory of one call, as the high-water mark of a child process's resident memory.

`python benchmarks/memory.py KIND N CONTENDER` prints the bytes.
"""

import subprocess
import sys
from pathlib import Path

from cases import case
from contenders import choose, prepare

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def peak_extra(kind: str, n: int, contender: str) -> float | None:
    """Return bytes a sample in a fresh process; None where that cannot be measured."""
    if not CLEAR.exists():
        return None
    command = [sys.executable, __file__, kind, str(n), contender]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return float(done.stdout.split()[-1]) / n if done.returncode == 0 else None


def _resident(key: str) -> int:
    for line in STATUS.read_text().splitlines():
        if line.startswith(key):
            return 1024 * int(line.split()[1])
    raise LookupError(key)


def _child(kind: str, n: int, contender: str) -> int:
    # Compile and import on a small case; its form is the one that counts.
    prepare(contender, case(kind, 20_000))
    full = case(kind, n)
    call = _unprepared(contender, full)
    choose(contender)
    CLEAR.write_text("5")  # sets the high-water mark to what is resident now
    before = _resident("VmRSS")
    call()
    return _resident("VmHWM") - before


def _unprepared(contender: str, full: object):
    from contenders import CONTENDERS

    return CONTENDERS[contender][0](full)[0]


if __name__ == "__main__":
    print(_child(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
