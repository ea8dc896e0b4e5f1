"""Jobs that are killed at any moment: what is there is whole, and the rest is done once."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from bench.tests.runs.killed_plan import plan, work

from abstain_bench.runs.jobs import run_jobs
from abstain_bench.runs.jobs.record import stored_outcome

#: Seconds in which a job has surely gone on to its next step.
_STEP = 0.03


def begun(folder):
    """Return the jobs that were begun, in order, and the processes that did it."""
    path = folder.parent / "begun"
    text = path.read_text() if path.is_file() else ""
    return [(name, int(pid)) for name, pid in map(str.split, text.splitlines())]


def contents(folder):
    """Return what is in the folder, but for the time that jobs took and unfinished files."""
    results = {p.name: p.read_bytes() for p in folder.iterdir() if not p.name.startswith(".")}
    receipts = {name: json.loads(text) for name, text in results.items() if name.endswith(".json")}
    return results | {name: told | {"seconds": 0} for name, told in receipts.items()}


def gone(pid):
    """Tell whether a process is over; one whose parent was killed may wait for init to see it."""
    status = Path(f"/proc/{pid}/status")
    if status.parent.parent.joinpath("self").exists():
        with contextlib.suppress(OSError):
            return "State:\tZ" in status.read_text()
        return True
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        return False
    return True


def killed(folder, how, after, delay):
    """Run the plan in a process group of its own; kill it a moment after so many jobs began."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    run = subprocess.Popen(
        [sys.executable, "-m", "bench.tests.runs.killed_plan", str(folder)],
        env=environment,
        start_new_session=True,
        stderr=subprocess.DEVNULL,
    )
    try:
        limit = time.monotonic() + 60
        while len(begun(folder)) < after and run.poll() is None and time.monotonic() < limit:
            time.sleep(0.002)
        time.sleep(delay)
        with contextlib.suppress(ProcessLookupError):
            if how == "parent":
                run.kill()
            else:
                os.killpg(run.pid, signal.SIGKILL)
        run.wait(30)
        while not all(gone(pid) for _, pid in begun(folder)):
            # Killed alone, the parent takes its processes along.
            assert time.monotonic() < limit, "a process went on without its parent"
            time.sleep(0.01)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")
def test_a_plan_that_is_killed_is_finished_by_the_next_run(tmp_path):
    whole = tmp_path / "whole" / "jobs"
    run_jobs(plan(), work, whole)
    expected = contents(whole)
    assert len(expected) == 3 * len(plan()) == 36
    midway = 0
    rng = np.random.default_rng(6)
    for number in range(20):
        folder = tmp_path / str(number) / "jobs"
        folder.parent.mkdir()
        # By progress and not by the clock, so that a busy machine is killed at work too.
        how = ("group", "parent")[number % 2]
        killed(folder, how, int(rng.integers(1, 13)), rng.uniform(0, _STEP))
        before = Counter(name for name, _ in begun(folder))
        finished = {job.name for job in plan() if stored_outcome(job, folder) is not None}
        midway += 0 < len(finished) < len(plan())
        # Nothing under its own name is half written.
        assert all(expected[n] == x for n, x in contents(folder).items() if n.endswith(".bin"))
        outcomes = run_jobs(plan(), work, folder)
        assert {o.job.name for o in outcomes if o.status == "kept"} == finished
        assert {o.status for o in outcomes} <= {"kept", "done"}
        again = Counter(name for name, _ in begun(folder)) - before
        assert again == Counter(job.name for job in plan() if job.name not in finished)
        assert contents(folder) == expected
    # Instants before the first receipt or after the last one say less.
    assert midway >= 10
