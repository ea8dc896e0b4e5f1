"""`run_jobs`: the jobs that are not done yet, each after those it needs.

Where several processes do them, one that dies takes no other job along.
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
from abstain_bench.runs.jobs.cluster import in_cluster
from abstain_bench.runs.jobs.devices import number_this_process
from abstain_bench.runs.jobs.record import NOW, Do, Job, JobTable, OnOutcome, Outcome, Work, done

__all__ = ["ENGINES", "Crew", "run_jobs"]

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
    crew: "Crew | None" = None,
) -> list[Outcome]:
    """Do the jobs that are not done yet, each after those it needs.

    Notes
    -----
    A job whose process is killed is begun once more, and the others go on. On a cluster of your
    own, its scheduler decides how often (``distributed.scheduler.allowed-failures``). Ctrl-C ends
    the processes that this call started; on workers of your own the jobs that run are let go on to
    their end, and what they leave is found by the next call.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from abstain_bench.runs.jobs import Job, run_jobs
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for _ in range(2):
    ...         found = run_jobs([Job("a", {"x": 2})], lambda job, _: job.spec, Path(folder))
    ...         print(found[0].status, found[0].facts)
    done {'x': 2}
    kept {'x': 2}
    """
    checks.one_of(engine, "engine", ENGINES)
    if address and engine != "dask":
        raise InputError(
            f"`address` is that of a dask scheduler: give `engine` 'dask', got {engine!r}"
        )
    make_folder(folder)
    remove_stale_files(folder)
    remove_stale_files(folder, f"*{NOW}")
    table = JobTable(jobs, folder, on_outcome, earlier=earlier, total=total)
    do = partial(done, work=work, folder=folder)
    if engine == "dask" and table.waiting:
        # A worker may have been started elsewhere.
        place = folder.resolve()
        in_cluster(table, partial(done, work=work, folder=place), place, processes, address)
    if processes == 1:
        while (job := table.next()) is not None:
            table.begin(job)
            table.end(do(job))
        return table.outcomes()
    with ExitStack() as stack:
        hands = stack.enter_context(Crew(processes)) if crew is None else crew
        while table.waiting:
            hands.do(table, do)
    return table.outcomes()


class Crew:
    """Processes that do jobs, of one round or of several: each imports and loads once.

    They begin when there is something to do, and end with the context.

    Parameters
    ----------
    processes : int
        How many jobs at a time.
    """

    def __init__(self, processes: int) -> None:
        self.processes = processes
        self.pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Self:
        """Begin nothing yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the processes."""
        self._leave()

    def do(self, table: JobTable, do: Do) -> None:
        """Do jobs until none can begin, or until a process dies and takes the others along."""
        running: dict[Future[Outcome], Job] = {}
        if self.pool is None:
            # Started anew and not forked: a fork copies torch's threads in an unknown state.
            context = multiprocessing.get_context("spawn")
            begun = context.Value("i", 0)
            self.pool = ProcessPoolExecutor(self.processes, context, _attend, (begun,))
        try:
            # No more are handed out than run, so that it is known which ones a death cut short.
            while _filled(table, self.pool, do, running, self.processes):
                _collect(table, running)
        except BrokenProcessPool:
            for job in running.values():
                table.died(job)
            self._leave()
        except BaseException:
            # What is half done is not kept, so nothing is lost. The pool waits for them on leaving.
            for process in list((self.pool._processes or {}).values()):  # noqa: SLF001
                process.kill()
            self._leave()
            raise

    def _leave(self) -> None:
        if self.pool is not None:
            self.pool.shutdown()
            self.pool = None


def _collect(table: JobTable, running: dict[Future[Outcome], Job]) -> None:
    """Wait until a job is over, and write down how it ended."""
    for future in wait(running, return_when=FIRST_COMPLETED).done:
        outcome = future.result()
        del running[future]
        table.end(outcome)


def _filled(
    table: JobTable,
    pool: ProcessPoolExecutor,
    do: Do,
    running: dict[Future[Outcome], Job],
    processes: int,
) -> bool:
    """Hand out jobs until all processes have one; tell whether any runs."""
    while len(running) < processes and (job := table.next()) is not None:
        if table.apart(job, running.values()):
            break
        # First: where a process has just died, this raises and the job still waits.
        with _uninterrupted():
            future = pool.submit(do, job)
        table.begin(job)
        running[future] = job
    return bool(running)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Put Ctrl-C off while a process begins: it would hear it too, before it can be deaf to it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _attend(begun: Any) -> None:
    """Begin a process: Ctrl-C is the business of the one that hands out jobs; end with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with begun.get_lock():
        number_this_process(begun.value)
        begun.value += 1
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Wait until the process that hands out jobs is gone, killed perhaps, and leave no orphan."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait_for([parent.sentinel])
        os._exit(1)
