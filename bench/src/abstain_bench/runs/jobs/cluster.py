"""Jobs on a dask.distributed cluster. If a worker dies, the jobs of the others continue."""

import secrets
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock
from typing import Any

from abstain._foundation.dask_cluster import (
    connect_to_scheduler,
    import_distributed,
    start_local_cluster,
)
from abstain._foundation.files import write_atomically
from abstain.errors import InputError
from abstain_bench.runs.jobs.devices import set_process_index
from abstain_bench.runs.jobs.record import Job, JobRunner, JobTable, Outcome

#: Seconds to wait for a worker if there is none.
_WORKER_TIMEOUT = 60

#: Seconds between two checks for new workers.
_POLL_INTERVAL = 5

#: Allows one job per process: the generator and threads of torch belong to the process.
_PROCESS_LOCK = Lock()


def run_on_cluster(
    table: JobTable, do: JobRunner, folder: Path, processes: int, address: str
) -> None:
    """Run jobs on a running cluster, or on a local one, until none can start."""
    with connect_to_scheduler(address) if address else start_local_cluster(processes) as client:
        if address:
            _check_shared_folder(client, folder)
        # A local cluster gives a job up at the first death of its worker; the table restarts it.
        dispatcher = _JobDispatcher(table, do, client, may_restart=not address)
        try:
            while dispatcher.submit_jobs():
                dispatcher.collect()
        except BaseException:
            # The client may be closed already; the original error matters.
            with suppress(Exception):
                client.cancel(list(dispatcher.running), force=True)
            raise


class _JobDispatcher:
    """Submits jobs to a cluster, at most one per worker."""

    def __init__(self, table: JobTable, do: JobRunner, client: Any, *, may_restart: bool) -> None:
        self.table, self.do, self.client, self.may_restart = table, do, client, may_restart
        self.running: dict[Any, Job] = {}
        self.finished: SimpleQueue[Any] = SimpleQueue()
        self.worker_indices: dict[str, int] = {}

    def submit_jobs(self) -> bool:
        """Submit jobs until all workers are busy; return whether any job is running."""
        workers = self._workers()
        while len(self.running) < len(workers) and (job := self.table.next_job()) is not None:
            # With a unique key, because dask would return the result of an earlier submission.
            name = f"{job.stem}-{secrets.token_hex(4)}"
            future = self.client.submit(
                _run_on_worker, self.do, job, self.worker_indices, key=name, pure=False, retries=0
            )
            self.table.start(job)
            self.running[future] = job
            future.add_done_callback(self.finished.put)
        return bool(self.running)

    def collect(self) -> None:
        """Wait a limited time until a job ends, and record its outcome."""
        with suppress(Empty):
            future = self.finished.get(timeout=_POLL_INTERVAL)
            self._end(future, self.running.pop(future))

    def _end(self, future: Any, job: Job) -> None:
        if future.status == "finished":
            self.table.finish(future.result())
        elif future.status != "error":
            raise InputError("the dask scheduler is gone; run this again: finished jobs are kept")
        elif isinstance(error := future.exception(), import_distributed().KilledWorker):
            self.table.handle_process_death(job, may_restart=self.may_restart)
        else:
            # Jobs catch their own errors, so the worker could not receive or load the job.
            raise error

    def _workers(self) -> list[str]:
        """Return the addresses of the workers; wait for a worker if there is none."""
        try:
            addresses = list(self.client.nthreads())
            if not addresses:
                self.client.wait_for_workers(1, timeout=_WORKER_TIMEOUT)
                addresses = list(self.client.nthreads())
        except (OSError, TimeoutError):
            raise InputError(
                "the dask cluster has no workers, or its scheduler is gone; start them and run "
                "this again: finished jobs are kept"
            ) from None
        self.worker_indices = assign_worker_indices(addresses, self.worker_indices)
        return addresses


def assign_worker_indices(addresses: list[str], previous: dict[str, int]) -> dict[str, int]:
    """Return an index per worker, from 0 on each machine; new workers take the lowest free one."""
    indices = {address: previous[address] for address in addresses if address in previous}
    for address in addresses:
        if address not in indices:
            host = _host(address)
            used = {index for other, index in indices.items() if _host(other) == host}
            indices[address] = min(set(range(len(used) + 1)) - used)
    return indices


def _host(address: str) -> str:
    return address.rpartition(":")[0]


def _run_on_worker(do: JobRunner, job: Job, worker_indices: dict[str, int]) -> Outcome:
    """Run a job, one at a time in each process even if a worker has several threads."""
    with _PROCESS_LOCK:
        set_process_index(worker_indices.get(import_distributed().get_worker().address, 0))
        return do(job)


def _check_shared_folder(client: Any, folder: Path) -> None:
    """Raise an error if a worker does not see the folder of this process."""
    token = folder / f".{secrets.token_hex(8)}.tmp"
    write_atomically(token, b"")
    try:
        answers = client.run(_file_exists, str(token), on_error="return")
    finally:
        token.unlink(missing_ok=True)
    for address, answer in answers.items():
        if isinstance(answer, BaseException):
            raise InputError(
                f"the worker at {address} cannot run jobs: {type(answer).__name__}: {answer}"
            )
        if not answer:
            raise InputError(f"the worker at {address} does not see the folder {str(folder)!r}")


def _file_exists(path: str) -> bool:
    """Return whether a file exists. A worker without abstain cannot load this function."""
    return Path(path).is_file()
