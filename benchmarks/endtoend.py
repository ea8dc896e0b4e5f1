"""`abstain evaluate` of a large Parquet file, report included, as a whole process."""

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

ROWS = 10**6


def write_predictions(path: Path, rows: int) -> None:
    """Write string labels and three confidences, one rounded and one saturated; 5 % failures."""
    import polars as pl

    rng = np.random.default_rng(0)
    names = np.array([f"class_{i}" for i in range(20)])
    label = rng.integers(0, names.size, rows)
    wrong = rng.random(rows) < 0.05
    prediction = np.where(wrong, (label + 1) % names.size, label)
    plain = rng.beta(5, 1, rows).astype(np.float32)
    plain[wrong] *= rng.random(wrong.sum(), dtype=np.float32)
    pl.DataFrame(
        {
            "label": names[label],
            "prediction": names[prediction],
            "confidence_plain": plain,
            "confidence_rounded": plain.round(3),
            "confidence_saturated": np.where(rng.random(rows) < 0.3, np.float32(1), plain),
        }
    ).write_parquet(path)


def evaluate_file(rows: int) -> tuple[float, float]:
    """Return the seconds and the peak memory (GiB) of one run of the command."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "predictions.parquet"
        write_predictions(path, rows)
        source = str(Path(__file__).resolve().parents[1] / "src")
        command = [sys.executable, "-m", "abstain", "evaluate", str(path), "--out", f"{folder}/out"]
        start = time.perf_counter()
        subprocess.run(
            command,
            check=True,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": source},
        )
        seconds = time.perf_counter() - start
    return seconds, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20


def section(rows: int) -> Iterator[str]:
    """Lines for the results page."""
    seconds, memory = evaluate_file(rows)
    yield "### `abstain evaluate FILE --out DIR`: three confidences, every metric, the report\n"
    yield f"{rows:,} rows: {seconds:.1f} s, start of Python included; peak memory {memory:.1f} GiB"
