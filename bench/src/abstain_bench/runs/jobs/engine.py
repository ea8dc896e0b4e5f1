"""`run_jobs`: run the jobs that are not done yet, each after those it needs.

If several processes run jobs and one dies, the jobs of the others continue or are repeated.
"""

import multiprocessing
import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from functools import partial
from multiprocessing.connection import wait as wait_for
from pathlib import Path
from threading import Thread
from typing import Any, Self

from abstain._foundation import checks
from abstain._foundation.files import make_folder, remove_stale_files
from abstain.errors import InputError
from abstain_bench.runs.jobs.cluster import run_on_cluster
from abstain_bench.runs.jobs.devices import set_process_index
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

__all__ = ["ENGINES", "WorkerPool", "run_jobs"]

#: Where jobs can run.
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
    """Run the jobs that are not done yet, each after those it needs.

    Notes
    -----
    A job whose process is killed is started once more. On your own cluster, its scheduler decides
    how often it is started (``distributed.scheduler.allowed-failures``). Ctrl-C ends the processes
    that this call started. Jobs on your own workers run to their end, and the next call finds their
    files.

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
        # A worker may have another working directory.
        folder = folder.resolve()
        run_on_cluster(
            table, partial(run_job, work=work, folder=folder), folder, processes, address
        )
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
    """Processes that run jobs of one or several rounds, so that each imports and loads once.

    The processes start with the first job and end with the context.

    Parameters
    ----------
    processes : int
        Number of processes.
    """

    def __init__(self, processes: int) -> None:
        self.processes = processes
        self.pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Self:
        """Return the pool; the processes start later."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the processes."""
        self._shut_down()

    def run(self, table: JobTable, run: JobRunner) -> None:
        """Run jobs until none can start, or until a process dies, which ends the pool."""
        running: dict[Future[Outcome], Job] = {}
        if self.pool is None:
            # Spawned and not forked: a fork copies the threads of torch in an undefined state.
            context = multiprocessing.get_context("spawn")
            n_started = context.Value("i", 0)
            self.pool = ProcessPoolExecutor(
                self.processes, context, _initialize_process, (n_started,)
            )
        try:
            # Submit only as many jobs as can run, so that a death interrupts known jobs only.
            while _submit_jobs(table, self.pool, run, running, self.processes):
                _collect(table, running)
        except BrokenProcessPool:
            for job in running.values():
                table.handle_process_death(job)
            self._shut_down()
        except BaseException:
            # Unfinished jobs leave no results. Shutting down waits for the processes.
            for process in list((self.pool._processes or {}).values()):  # noqa: SLF001
                process.kill()
            self._shut_down()
            raise

    def _shut_down(self) -> None:
        if self.pool is not None:
            self.pool.shutdown()
            self.pool = None


def _collect(table: JobTable, running: dict[Future[Outcome], Job]) -> None:
    """Wait until a job ends and record its outcome."""
    for future in wait(running, return_when=FIRST_COMPLETED).done:
        outcome = future.result()
        del running[future]
        table.finish(outcome)


def _submit_jobs(
    table: JobTable,
    pool: ProcessPoolExecutor,
    run: JobRunner,
    running: dict[Future[Outcome], Job],
    processes: int,
) -> bool:
    """Submit jobs until all processes are busy; return whether any job is running."""
    while len(running) < processes and (job := table.next_job()) is not None:
        if table.must_run_alone(job, running.values()):
            break
        # Submit before the start is recorded: this raises if a process has just died.
        with _delay_ctrl_c():
            future = pool.submit(run, job)
        table.start(job)
        running[future] = job
    return bool(running)


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
    """Ignore Ctrl-C in this process, number it, and end it with its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with n_started.get_lock():
        set_process_index(n_started.value)
        n_started.value += 1
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Wait until the parent process ends, and exit."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait_for([parent.sentinel])
        os._exit(1)
