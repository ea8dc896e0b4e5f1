"""Measure the peak of extra memory of one call in a separate process.

`python -m benchmarks.measuring.memory CASE VARIANT [--quick]` prints the bytes.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")

#: Share of the data of a first call, which compiles kernels and imports modules.
WARM_UP_SHARE = 0.02


def peak_extra(case: str, variant: str, options: tuple[str, ...]) -> float | None:
    """Return the extra memory of a variant in MiB, or None if the system does not report memory."""
    if not CLEAR.exists():
        return None
    command = [sys.executable, "-m", __name__, case, variant, *options]
    root = Path(__file__).resolve().parents[2]
    process = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root)
    return float(process.stdout.split()[-1]) / 2**20 if process.returncode == 0 else None


def resident(key: str) -> int:
    """Return a size in bytes from the status of this process: VmRSS, or its peak VmHWM."""
    for line in STATUS.read_text().splitlines():
        if line.startswith(key):
            return 1024 * int(line.split()[1])
    raise LookupError(key)


def extra_bytes(case_name: str, key: str, *, small: bool) -> int:
    """Return the peak of resident bytes during one call, minus the resident bytes before it."""
    from benchmarks.cases import catalogue
    from benchmarks.cases.entry import FULL, SMALL
    from benchmarks.measuring.rounds import select_kernels

    case = catalogue(SMALL if small else FULL)[case_name]
    variant = case.variant(key)
    select_kernels(variant)
    with tempfile.TemporaryDirectory(prefix="abstain-bench-") as folder:
        variant.prepare(case.setup(Path(folder), WARM_UP_SHARE))()
        call = variant.prepare(case.setup(Path(folder), 1.0))
        CLEAR.write_text("5")  # resets the peak to the resident bytes
        before = resident("VmRSS")
        call()
        return resident("VmHWM") - before


if __name__ == "__main__":
    print(extra_bytes(sys.argv[1], sys.argv[2], small="--quick" in sys.argv))
