"""A benchmark that is killed goes on where it was, and ends with the same results."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

from bench.tests.runs.test_run import contents, smallest

from abstain_bench.runs.run import run_benchmark
from abstain_bench.runs.store import JOBS, Store

ROOT = Path(__file__).parents[3]

#: How often the run is killed; the issue's 20 were run by hand with this very file.
KILLS = int(os.environ.get("ABSTAIN_KILLS", "1"))

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    store, _ = run_benchmark(smallest(), folder)
    return store


def begun(folder, engine):
    command = [sys.executable, "-m", "bench.tests.runs.killed_run", str(folder), "2", engine]
    # A session of its own, so that its processes are killed with it.
    return subprocess.Popen(command, cwd=ROOT, start_new_session=True)


def assert_same(whole, folder):
    assert contents(folder) == contents(whole.folder)
    result = Store.read(folder)
    assert [stored_run.run for stored_run in result.stored_runs] == [
        stored_run.run for stored_run in whole.stored_runs
    ]
    assert [stored_run.validation_values for stored_run in result.stored_runs] == [
        stored_run.validation_values for stored_run in whole.stored_runs
    ]
    names = [path.name for path in folder.rglob("*") if path.is_file()]
    assert not [name for name in names if name.endswith((".part", ".log"))]
    assert receipts(folder) == receipts(whole.folder)


def receipts(folder):
    return sorted(path.name for path in (folder / JOBS).glob("*.json"))


def test_killed_at_random_instants(whole, tmp_path):
    rng = np.random.default_rng(0)
    kills = 0
    while kills < KILLS:
        process = begun(tmp_path / "runs", "processes")
        try:
            # Starting takes seconds, and the longer ones reach the tests.
            process.wait(timeout=float(rng.uniform(4.0, 14.0)))
            break
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            kills += 1
    assert begun(tmp_path / "runs", "processes").wait(timeout=300) == 0
    assert_same(whole, tmp_path / "runs")


def test_two_dask_workers_of_which_one_is_killed(whole, tmp_path):
    pytest.importorskip("distributed")
    folder = tmp_path / "runs"
    process = begun(folder, "dask")
    try:
        worker = worker_of(process.pid, folder)
        os.kill(worker, signal.SIGKILL)
        assert process.wait(timeout=300) == 0
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert_same(whole, folder)


def worker_of(parent, folder):
    """Wait until jobs are done by workers, and return the process of one."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if folder.is_dir() and any((folder / JOBS).glob("*.json")):
            for place in Path("/proc").iterdir():
                if place.name.isdigit() and is_worker(place, parent):
                    return int(place.name)
        time.sleep(0.05)
    pytest.fail("no worker did a job")


def is_worker(place, parent):
    try:
        above = int((place / "stat").read_text().rpartition(")")[2].split()[1])
        content = (place / "cmdline").read_bytes()
    except OSError:
        return False
    return above == parent and b"spawn_main" in content
