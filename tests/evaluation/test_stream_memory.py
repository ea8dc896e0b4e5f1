"""A stream takes memory by its distinct confidences, not by its rows."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

#: Evaluates a scan and prints the most memory that the process has had, in MB. `ru_maxrss` would
#: count that of the process which began it too, a worker that has run other tests.
_CODE = """
import sys
from pathlib import Path
import abstain as ab
found = ab.evaluate(ab.scan_predictions(sys.argv[1]))
lines = Path("/proc/self/status").read_text().splitlines()
most = next(line.split()[1] for line in lines if line.startswith("VmHWM"))
print(found.curves[0].n, int(most) // 1024)
"""


def _written(folder: Path, parts: int, rows: int) -> str:
    rng = np.random.default_rng(0)
    confidence = np.round(1 - rng.random(rows, dtype=np.float32) ** 2, 6)
    right = rng.random(rows, dtype=np.float32) > 0.15 * (1 - confidence) + 0.01
    frame = pl.DataFrame({"correct": right, "confidence": confidence})
    first = folder / "part-0.parquet"
    frame.write_parquet(first)
    for part in range(1, parts):
        (folder / f"part-{part}.parquet").hardlink_to(first)
    return str(folder / "*.parquet")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone tells it there")
def test_thirty_million_rows_stay_below_a_gigabyte(tmp_path):
    files = _written(tmp_path, parts=10, rows=3_000_000)
    out = subprocess.run(
        [sys.executable, "-c", _CODE, files],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path), "PATH": ""},
    )
    n, most = map(int, out.stdout.split())
    assert n == 30_000_000
    assert most < 1000
