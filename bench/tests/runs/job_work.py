"""Work for the tests of jobs, where other processes can import it."""

import os
import signal
import time

from abstain._foundation.files import write_atomically
from abstain_bench.runs.jobs.engine import device_of_this_process


def work(job, folder):
    """Fail, sleep, die, or write a file, as the job says."""
    asked = job.spec.get("do", "")
    if asked == "fail":
        msg = "no luck\nat all"
        raise ValueError(msg)
    if asked == "sleep":
        write_atomically(folder / f"{job.name}.here", str(os.getpid()).encode())
        time.sleep(60)
    if asked == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if asked == "die once" and not (folder / "died").exists():
        (folder / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if asked == "nap":
        time.sleep(0.02)
    if asked == "look":
        # Long enough that each process has one; or none is over before two have begun.
        time.sleep(0.3)
        (folder / f"{os.getpid()}.looks").touch()
        until = time.monotonic() + 30
        while (
            len(list(folder.glob("*.looks"))) < job.spec.get("with", 1) and time.monotonic() < until
        ):
            time.sleep(0.02)
        return {"device": device_of_this_process(["d:0", "d:1"]), "pid": os.getpid()}
    read = [other.path(folder, ".txt").read_text() for other in job.needs]
    job.path(folder, ".txt").write_text(job.name + "".join(read))
    return {"read": len(read)}
