"""Two processes on gloo give the number of one."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchmetrics")

if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
    pytest.skip("this torch has no gloo", allow_module_level=True)

WORKER = Path(__file__).with_name("torchmetrics_worker.py")
SRC = WORKER.parents[2] / "src"


def worker():
    spec = importlib.util.spec_from_file_location("torchmetrics_worker", WORKER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What each of two processes found, and what one process finds."""
    folder = tmp_path_factory.mktemp("processes")
    environment = os.environ | {"PYTHONPATH": str(SRC), "OMP_NUM_THREADS": "1"}
    running = {}
    for name in ("0", "1"):
        command = [sys.executable, WORKER, name, "2", folder / "meet", folder / name]
        with (folder / f"{name}.log").open("w") as log:
            running[name] = subprocess.Popen(command, env=environment, stderr=log)
    try:
        alone = worker().results(0, 1)
        codes = {name: process.wait(timeout=120) for name, process in running.items()}
    finally:
        for process in running.values():
            process.kill()
            process.wait()
    assert set(codes.values()) == {0}, [(folder / f"{name}.log").read_text() for name in running]
    both = {name: json.loads((folder / name).read_text()) for name in running}
    return both | {"alone": alone}


@pytest.mark.parametrize("case", [
    "exact", "bounded", "one process without samples", "bounded, one without samples",
    "threshold", "mixed types", "mixed types, bounded", "collection", "forward", "synced by hand",
])  # fmt: skip
def test_two_processes_give_the_number_of_one(found, case):
    assert found["0"][case] == found["1"][case] == found["alone"][case]


def test_graded_losses_differ_by_the_rounding_of_sums(found):
    assert found["0"]["graded"] == found["1"]["graded"]
    assert found["0"]["graded"] == pytest.approx(found["alone"]["graded"], rel=1e-14)


def test_the_processes_did_see_different_samples(found):
    values = [found[name]["own"][0] for name in ("0", "1", "alone")]
    assert len(set(values)) == 3
    # The bounded case is one where something was lost.
    _, low, high, _ = found["alone"]["bounded"]
    assert low <= found["alone"]["exact"][0] <= high
