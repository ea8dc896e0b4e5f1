"""Jobs on a dask.distributed cluster: a worker that dies takes no other job along."""

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
from abstain_bench.runs.jobs.devices import number_this_process
from abstain_bench.runs.jobs.record import Do, Job, JobTable, Outcome

#: Seconds to wait for a first worker, or for one where all have died.
_WORKERS = 60

#: Seconds after which is looked whether workers have joined.
_LOOK = 5

#: Of the workers' process: torch's generator and threads are those of a process, not of a thread.
_ALONE = Lock()


def in_cluster(table: JobTable, do: Do, folder: Path, processes: int, address: str) -> None:
    """Do jobs on a cluster, a running one or one of this machine, until none can begin."""
    with connect_to_scheduler(address) if address else start_local_cluster(processes) as client:
        if address:
            _refuse_apart(client, folder)
        # A cluster that is started here gives up a job at the first death and leaves it to us.
        hand = _Hand(table, do, client, again=not address)
        try:
            while hand.filled():
                hand.collect()
        except BaseException:
            # It may be closed already; what was raised first is what counts.
            with suppress(Exception):
                client.cancel(list(hand.running), force=True)
            raise


class _Hand:
    """Hands out jobs, no more at a time than there are workers."""

    def __init__(self, table: JobTable, do: Do, client: Any, *, again: bool) -> None:
        self.table, self.do, self.client, self.again = table, do, client, again
        self.running: dict[Any, Job] = {}
        self.over: SimpleQueue[Any] = SimpleQueue()
        self.numbers: dict[str, int] = {}

    def filled(self) -> bool:
        """Hand out jobs until all workers have one; tell whether any runs."""
        workers = self._workers()
        while len(self.running) < len(workers) and (job := self.table.next()) is not None:
            # Under a name of its own, so that no result of an earlier run is taken for it.
            name = f"{job.stem}-{secrets.token_hex(4)}"
            future = self.client.submit(
                _on_worker, self.do, job, self.numbers, key=name, pure=False, retries=0
            )
            self.table.begin(job)
            self.running[future] = job
            future.add_done_callback(self.over.put)
        return bool(self.running)

    def collect(self) -> None:
        """Wait until a job is over, but not for long, and write down how it ended."""
        with suppress(Empty):
            future = self.over.get(timeout=_LOOK)
            self._end(future, self.running.pop(future))

    def _end(self, future: Any, job: Job) -> None:
        if future.status == "finished":
            self.table.end(future.result())
        elif future.status != "error":
            raise InputError("the dask scheduler is gone; what is done is kept, so run this again")
        elif isinstance(error := future.exception(), import_distributed().KilledWorker):
            self.table.died(job, again=self.again)
        else:
            # The work itself never raises: a worker could not be told what to do.
            raise error

    def _workers(self) -> list[str]:
        """Return the addresses of the workers; wait for one where there is none."""
        try:
            found = list(self.client.nthreads())
            if not found:
                self.client.wait_for_workers(1, timeout=_WORKERS)
                found = list(self.client.nthreads())
        except (OSError, TimeoutError):
            raise InputError(
                "the dask cluster has no workers, or its scheduler is gone; start them, and run \
this again: what is done is kept"
            ) from None
        self.numbers = numbered(found, self.numbers)
        return found


def numbered(workers: list[str], before: dict[str, int]) -> dict[str, int]:
    """Count the workers of each machine from 0; who comes takes the number of one that went."""
    numbers = {address: before[address] for address in workers if address in before}
    for address in workers:
        if address not in numbers:
            host = _host(address)
            taken = {number for other, number in numbers.items() if _host(other) == host}
            numbers[address] = min(set(range(len(taken) + 1)) - taken)
    return numbers


def _host(address: str) -> str:
    return address.rpartition(":")[0]


def _on_worker(do: Do, job: Job, numbers: dict[str, int]) -> Outcome:
    """Do a job, alone in its process even where a worker has several threads."""
    with _ALONE:
        number_this_process(numbers.get(import_distributed().get_worker().address, 0))
        return do(job)


def _refuse_apart(client: Any, folder: Path) -> None:
    """Refuse workers that see another folder than this process."""
    token = folder / f".{secrets.token_hex(8)}.tmp"
    write_atomically(token, b"")
    try:
        seen = client.run(_sees, str(token), on_error="return")
    finally:
        token.unlink(missing_ok=True)
    for address, found in seen.items():
        if isinstance(found, BaseException):
            raise InputError(
                f"the worker at {address} cannot do jobs: {type(found).__name__}: {found}"
            )
        if not found:
            raise InputError(f"the worker at {address} does not see the folder {str(folder)!r}")


def _sees(path: str) -> bool:
    """Tell whether a file is there; that this can be asked shows that abstain is installed."""
    return Path(path).is_file()
