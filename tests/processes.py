"""Run the same computation in two gloo processes and in one process, to compare the results."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

SRC = Path(__file__).parents[1] / "src"


def results_of_two_and_one(worker: Path, folder: Path) -> dict:
    """Run a worker in two processes and in this process, and return the results by name.

    The names are "0" and "1" for the ranks of the two processes and "alone" for this process. The
    worker is a script with four arguments: rank, number of processes, file of the rendezvous, and
    JSON file for the results. Its function `results(rank, processes)` returns the results.
    """
    environment = os.environ | {"PYTHONPATH": str(SRC), "OMP_NUM_THREADS": "1"}
    processes = {}
    for name in ("0", "1"):
        command = [sys.executable, worker, name, "2", folder / "meet", folder / name]
        with (folder / f"{name}.log").open("w") as log:
            processes[name] = subprocess.Popen(command, env=environment, stderr=log)
    try:
        alone = _import_script(worker).results(0, 1)
        exit_codes = {name: process.wait(timeout=120) for name, process in processes.items()}
    finally:
        for process in processes.values():
            process.kill()
            process.wait()
    logs = [(folder / f"{name}.log").read_text() for name in processes]
    assert set(exit_codes.values()) == {0}, logs
    results = {name: json.loads((folder / name).read_text()) for name in processes}
    return results | {"alone": alone}


def _import_script(worker: Path):
    spec = importlib.util.spec_from_file_location(worker.stem, worker)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
