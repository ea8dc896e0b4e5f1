"""Two processes on gloo keep one price of hints and one set of targets."""

import importlib.util
import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
    pytest.skip("this torch has no gloo", allow_module_level=True)

WORKER = Path(__file__).with_name("objectives_worker.py")
SRC = WORKER.parents[2] / "src"


def alone():
    spec = importlib.util.spec_from_file_location("objectives_worker", WORKER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.results(0, 1)


def test_two_processes_are_as_one(tmp_path):
    environment = os.environ | {"PYTHONPATH": str(SRC), "OMP_NUM_THREADS": "1"}
    running = {}
    for name in ("0", "1"):
        command = [sys.executable, WORKER, name, "2", tmp_path / "meet", tmp_path / name]
        with (tmp_path / f"{name}.log").open("w") as log:
            running[name] = subprocess.Popen(command, env=environment, stderr=log)
    try:
        expected = alone()
        codes = {name: process.wait(timeout=120) for name, process in running.items()}
    finally:
        for process in running.values():
            process.kill()
            process.wait()
    assert set(codes.values()) == {0}, [(tmp_path / f"{name}.log").read_text() for name in running]
    first, second = (json.loads((tmp_path / name).read_text()) for name in running)
    assert first == second
    assert first["targets"] == pytest.approx(expected["targets"], abs=1e-6)
    assert first["prices"] == pytest.approx(expected["prices"], rel=1e-6)
    steps = [after / before for before, after in pairwise([0.1, *first["prices"]])]
    assert min(steps) < 1 < max(steps)  # the price went both ways
