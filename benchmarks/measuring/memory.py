"""Peak extra memory of one call, as the high-water mark of a process of its own.

`python -m benchmarks.measuring.memory RACE DOOR [--quick]` prints the bytes.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")

#: How much of the data the call sees first, so that what it compiles and imports is there.
SMALL = 0.02


def peak_extra(race: str, contender: str, words: tuple[str, ...]) -> float | None:
    """Return MiB in a fresh process; None where that cannot be measured."""
    if not CLEAR.exists():
        return None
    command = [sys.executable, "-m", __name__, race, contender, *words]
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root)
    return float(done.stdout.split()[-1]) / 2**20 if done.returncode == 0 else None


def resident(key: str) -> int:
    """Return the bytes of a line of this process's status: VmRSS, or its mark VmHWM."""
    for line in STATUS.read_text().splitlines():
        if line.startswith(key):
            return 1024 * int(line.split()[1])
    raise LookupError(key)


def extra(race: str, contender: str, *, small: bool) -> int:
    """Return the bytes that one call needs beyond what was resident before."""
    from benchmarks.cases import catalogue
    from benchmarks.cases.entry import FULL
    from benchmarks.cases.entry import SMALL as TINY
    from benchmarks.measuring.rounds import choose

    found = catalogue(TINY if small else FULL)[race]
    chosen = found.contender(contender)
    choose(chosen)
    with tempfile.TemporaryDirectory(prefix="abstain-bench-") as folder:
        chosen.start(found.setup(Path(folder), SMALL))()
        call = chosen.start(found.setup(Path(folder), 1.0))
        CLEAR.write_text("5")  # sets the high-water mark to what is resident now
        before = resident("VmRSS")
        call()
        return resident("VmHWM") - before


if __name__ == "__main__":
    print(extra(sys.argv[1], sys.argv[2], small="--quick" in sys.argv))
