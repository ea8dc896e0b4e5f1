"""Two processes on gloo train as one does: the same losses, the same gradients."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
    pytest.skip("this torch has no gloo", allow_module_level=True)

WORKER = Path(__file__).with_name("rank_worker.py")
SRC = WORKER.parents[2] / "src"


def worker():
    spec = importlib.util.spec_from_file_location("rank_worker", WORKER)
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
    "aurc", "augrc, ties", "partial", "soft", "soft, ranking alone", "queue", "soft and queue",
    "sample weights", "last batch empty on one", "function",
])  # fmt: skip
def test_two_processes_train_as_one(found, case):
    alone = found["alone"][case]
    assert found["0"][case] == pytest.approx(alone, rel=0, abs=1e-12)
    # The last number is the evaluation of the first process.
    assert found["1"][case] == pytest.approx(alone[: len(found["1"][case])], rel=0, abs=1e-12)
    assert max(map(abs, alone)) > 1e-3


def test_the_processes_did_see_different_samples(found):
    values = [found[name]["own"][0] for name in ("0", "1", "alone")]
    assert len(set(values)) == 3


def test_trouble_on_one_process_is_told_to_all(found):
    for name in ("0", "1"):
        assert found[name]["nan"] == [True]
        assert "the batches of all processes are empty" in found[name]["empty"]
