"""Run jobs in processes or on a dask cluster, and assign devices to them.

If a process dies, the jobs that it interrupted are restarted once.
"""

import multiprocessing
import os
import secrets
import signal
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from multiprocessing.connection import wait as wait_for
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, Self

from abstain._foundation import checks
from abstain._foundation.dask_cluster import (
    connect_to_scheduler,
    import_distributed,
    start_local_cluster,
)
from abstain._foundation.files import make_folder, remove_stale_files, write_atomically
from abstain.errors import InputError
from abstain_bench.runs.jobs.record import (
    PROGRESS_SUFFIX,
    Job,
    JobRunner,
    JobTable,
    OnOutcome,
    Outcome,
    Work,
    run_job,
)

#: Index of this process among the processes that share the devices.
_process_index = 0


def parse_devices(text: str) -> tuple[str, ...]:
    """Parse a comma-separated list of devices, such as "cuda:0, cuda:1"."""
    names = tuple(part.strip() for part in text.split(","))
    for name in names:
        kind, colon, index = name.partition(":")
        if not kind.isalpha() or (colon and not (index.isascii() and index.isdigit())):
            raise InputError(
                f"`device` must be like 'cpu', 'cuda' or 'cuda:0,cuda:1'; got {text!r}"
            )
        if len(names) > 1 and not colon:
            raise InputError(f"`device` must number the devices if there are several; got {text!r}")
    if len(set(names)) < len(names):
        raise InputError(f"`device` must name each device once; got {text!r}")
    device_kind(names)
    return names


def device_kind(devices: Sequence[str]) -> str:
    """Return the type of the devices, such as "cuda".

    Results may depend on the device type but not on the device index.
    """
    kinds = sorted({name.partition(":")[0] for name in devices})
    if len(kinds) != 1:
        raise InputError(
            f"`device` must name devices of one kind; got {', '.join(kinds) or 'none'}"
        )
    return kinds[0]


def check_devices_available(devices: Iterable[str]) -> None:
    """Raise an error if one of the devices is not available in torch."""
    from abstain_bench._torch import torch

    for name in devices:
        try:
            # The device "meta" has no data, so `item` raises an error.
            torch.zeros(1, device=torch.device(name)).item()
        except (RuntimeError, AssertionError, TypeError) as error:
            first_line = (str(error).splitlines() or [""])[0]
            raise InputError(f"`device` {name!r} cannot be used: {first_line}") from None


def device_of_this_process(devices: Sequence[str]) -> str:
    """Return the device that is assigned to the current process.

    Devices are assigned to the processes in cyclic order. If a dask worker dies, its replacement
    gets the same device. Outside `run_jobs`, the first device is used.

    Examples
    --------
    >>> from abstain_bench.runs.jobs.engine import device_of_this_process
    >>> device_of_this_process(["cuda:0", "cuda:1"])
    'cuda:0'
    """
    return devices[_process_index % len(devices)]


def set_process_index(number: int) -> None:
    """Set the index of this process, which determines its device."""
    global _process_index  # noqa: PLW0603  the index belongs to the process
    _process_index = number


#: Executors of jobs.
ENGINES = ("processes", "dask")


def run_jobs(
    jobs: Sequence[Job],
    work: Work,
    folder: Path,
    *,
    processes: int = 1,
    engine: str = "processes",
    address: str = "",
    on_outcome: OnOutcome | None = None,
    earlier: Sequence[Outcome] = (),
    total: int = 0,
    pool: "WorkerPool | None" = None,
) -> list[Outcome]:
    """Run all jobs that are not finished.

    A job starts when all jobs that it depends on are finished.

    Notes
    -----
    If the process of a job is killed, the job is restarted once. On an existing cluster, the dask
    option ``distributed.scheduler.allowed-failures`` limits the number of restarts. If you press
    Ctrl-C, the processes of this call are stopped. Jobs that run on an existing cluster continue,
    and the next call uses their results.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from abstain_bench.runs.jobs import Job, run_jobs
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for _ in range(2):
    ...         outcomes = run_jobs([Job("a", {"x": 2})], lambda job, _: job.spec, Path(folder))
    ...         print(outcomes[0].status, outcomes[0].facts)
    done {'x': 2}
    kept {'x': 2}
    """
    checks.one_of(engine, "engine", ENGINES)
    if address and engine != "dask":
        raise InputError(f"`address` of a dask scheduler requires `engine` 'dask'; got {engine!r}")
    make_folder(folder)
    remove_stale_files(folder)
    remove_stale_files(folder, f"*{PROGRESS_SUFFIX}")
    table = JobTable(jobs, folder, on_outcome, earlier=earlier, total=total)
    run = partial(run_job, work=work, folder=folder)
    if engine == "dask" and table.waiting:
        # The path is absolute, because a worker may have another working directory.
        run_on_cluster(table, work, folder.resolve(), processes, address)
    if processes == 1:
        while (job := table.next_job()) is not None:
            table.start(job)
            table.finish(run(job))
        return table.outcomes()
    with ExitStack() as stack:
        workers = stack.enter_context(WorkerPool(processes)) if pool is None else pool
        while table.waiting:
            workers.run(table, run)
    return table.outcomes()


class WorkerPool:
    """A pool of processes for one or several calls of `run_jobs`.

    Each process imports modules and loads a task only once. The processes start with the first job
    and stop at the end of the ``with`` block.

    Parameters
    ----------
    processes : int
        Number of processes.
    """

    def __init__(self, processes: int) -> None:
        self.processes = processes
        self.pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Self:
        """Return the process pool, which is created for the first job."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the processes."""
        self._shut_down()

    def run(self, table: JobTable, run: JobRunner) -> None:
        """Run jobs until no more can start, or until a process dies."""
        running: dict[Future[Outcome], Job] = {}
        if self.pool is None:
            # A forked process would inherit the state of the threads of torch, which is undefined.
            context = multiprocessing.get_context("spawn")
            n_started = context.Value("i", 0)
            self.pool = ProcessPoolExecutor(
                self.processes, context, _initialize_process, (n_started,)
            )
        try:
            while self._submit_jobs(table, self.pool, run, running):
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    outcome = future.result()
                    del running[future]
                    table.finish(outcome)
        except BrokenProcessPool:
            for job in running.values():
                table.handle_process_death(job)
            self._shut_down()
        except BaseException:
            # Unfinished jobs have no results. The shutdown waits until the killed processes end.
            for process in list((self.pool._processes or {}).values()):  # noqa: SLF001
                process.kill()
            self._shut_down()
            raise

    def _submit_jobs(
        self,
        table: JobTable,
        pool: ProcessPoolExecutor,
        run: JobRunner,
        running: dict[Future[Outcome], Job],
    ) -> bool:
        """Submit jobs until all processes are busy, and return whether jobs are running.

        At most one job per process is submitted, so if a process dies, exactly the jobs in
        `running` are interrupted.
        """
        while len(running) < self.processes and (job := table.next_job()) is not None:
            if table.must_run_alone(job, running.values()):
                break
            # If a process has died, `submit` raises an error before the start is recorded.
            with _delay_ctrl_c():
                future = pool.submit(run, job)
            table.start(job)
            running[future] = job
        return bool(running)

    def _shut_down(self) -> None:
        if self.pool is not None:
            self.pool.shutdown()
            self.pool = None


@contextmanager
def _delay_ctrl_c() -> Iterator[None]:
    """Block Ctrl-C while a process starts, until the process ignores it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _initialize_process(n_started: Any) -> None:
    """Make a process ignore Ctrl-C, set its index, and stop it when its parent process ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with n_started.get_lock():
        set_process_index(n_started.value)
        n_started.value += 1
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Wait until the parent process ends, then exit."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait_for([parent.sentinel])
        os._exit(1)


#: Maximum number of seconds to wait for the first worker.
_WORKER_TIMEOUT = 60

#: Seconds between two checks for new workers.
_POLL_INTERVAL = 5

#: Limits each process to one job, because all threads of a process share the random generator and
#: the thread settings of torch.
_PROCESS_LOCK = Lock()


def run_on_cluster(table: JobTable, work: Work, folder: Path, processes: int, address: str) -> None:
    """Run jobs on a dask cluster until no more can start.

    If no address is given, a local cluster is started.
    """
    cluster = connect_to_scheduler(address) if address else start_local_cluster(processes)
    with cluster as client:
        if address:
            _check_shared_folder(client, folder)
        # A local cluster does not restart a job whose worker died, so the table restarts it.
        run = partial(run_job, work=work, folder=folder)
        dispatcher = _JobDispatcher(table, run, client, may_restart=not address)
        try:
            while dispatcher.submit_jobs():
                dispatcher.collect()
        except BaseException:
            # An error of a closed client must not replace the original error.
            with suppress(Exception):
                client.cancel(list(dispatcher.running), force=True)
            raise


class _JobDispatcher:
    """Submits jobs to a cluster, at most one per worker at a time."""

    def __init__(self, table: JobTable, run: JobRunner, client: Any, *, may_restart: bool) -> None:
        self.table = table
        self.run = run
        self.client = client
        self.may_restart = may_restart
        self.running: dict[Any, Job] = {}
        self.finished: SimpleQueue[Any] = SimpleQueue()
        self.worker_indices: dict[str, int] = {}

    def submit_jobs(self) -> bool:
        """Submit jobs until all workers are busy, and return whether jobs are running."""
        worker_addresses = self._worker_addresses()
        n_workers = len(worker_addresses)
        while len(self.running) < n_workers and (job := self.table.next_job()) is not None:
            # The key is unique, because dask returns the earlier result for a repeated key.
            key = f"{job.stem}-{secrets.token_hex(4)}"
            future = self.client.submit(
                _run_on_worker, self.run, job, self.worker_indices, key=key, pure=False, retries=0
            )
            self.table.start(job)
            self.running[future] = job
            future.add_done_callback(self.finished.put)
        return bool(self.running)

    def collect(self) -> None:
        """Wait for the next job to end, up to a time limit, and record its outcome."""
        with suppress(Empty):
            future = self.finished.get(timeout=_POLL_INTERVAL)
            job = self.running.pop(future)
            self._record_outcome(future, job)

    def _record_outcome(self, future: Any, job: Job) -> None:
        """Record the outcome of a job when its future is done."""
        if future.status == "finished":
            self.table.finish(future.result())
            return
        if future.status != "error":
            raise InputError("the dask scheduler is gone; run this again: finished jobs are kept")
        error = future.exception()
        if not isinstance(error, import_distributed().KilledWorker):
            # `run_job` catches the errors of a job, so the worker could not load the job.
            raise error
        self.table.handle_process_death(job, may_restart=self.may_restart)

    def _worker_addresses(self) -> list[str]:
        """Wait for the first worker, and return the addresses of all workers."""
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
    """Return the index of each worker on its machine.

    A worker keeps its previous index. A new worker gets the lowest unused index on its machine.
    """
    indices = {address: previous[address] for address in addresses if address in previous}
    for address in addresses:
        if address not in indices:
            host = _host(address)
            used = {index for other, index in indices.items() if _host(other) == host}
            indices[address] = min(set(range(len(used) + 1)) - used)
    return indices


def _host(address: str) -> str:
    return address.rpartition(":")[0]


def _run_on_worker(run: JobRunner, job: Job, worker_indices: dict[str, int]) -> Outcome:
    """Run a job on a worker, one at a time even if the worker has several threads."""
    with _PROCESS_LOCK:
        worker_address = import_distributed().get_worker().address
        set_process_index(worker_indices.get(worker_address, 0))
        return run(job)


def _check_shared_folder(client: Any, folder: Path) -> None:
    """Raise an error if a worker cannot access the folder of the jobs."""
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
    """Return whether a file exists; this function is run on the workers."""
    return Path(path).is_file()
