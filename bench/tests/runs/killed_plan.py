"""A small plan, run as a process of its own, that is killed at any moment."""

import hashlib
import os
import sys
import time
from pathlib import Path

from abstain._foundation.files import write_atomically
from abstain_bench.runs.jobs import Job, run_jobs


def plan():
    """Return twelve jobs: three first, each with two that need it, and three that need those."""
    first = [Job(f"first{i}", {"ms": 10 + 5 * i}) for i in range(3)]
    middle = [Job(f"middle{i}", {"ms": 12 * i, "i": i}, (first[i // 2],)) for i in range(6)]
    last = [
        Job(f"last{i}", {"ms": 8, "i": i}, (middle[i], middle[i + 3], first[i])) for i in range(3)
    ]
    return [*first, *middle, *last]


def work(job, folder):
    """Sleep, and write what follows from the job and from the files that it needs."""
    side = os.open(folder.parent / "begun", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(side, f"{job.name} {os.getpid()}\n".encode())
    os.close(side)
    time.sleep(job.spec["ms"] / 1000)
    said = hashlib.sha256(job.key.encode())
    for other in job.needs:
        said.update(other.path(folder, ".bin").read_bytes())
    # Long, so that a kill may find it half written.
    write_atomically(job.path(folder, ".bin"), said.digest() * 20_000)
    write_atomically(job.path(folder, ".txt"), said.hexdigest().encode())
    return {"said": said.hexdigest()}


if __name__ == "__main__":
    run_jobs(plan(), work, Path(sys.argv[1]), processes=2)
