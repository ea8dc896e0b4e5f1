"""Jobs in several processes: one that dies takes no other job along."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import wait as wait_for
from threading import Thread
from typing import Any

from abstain.benchmark.jobs.devices import number_this_process
from abstain.benchmark.jobs.record import Job, Outcome
from abstain.benchmark.jobs.table import JobTable

#: Does one job.
Do = Callable[[Job], Outcome]


def in_processes(table: JobTable, do: Do, processes: int) -> None:
    """Do jobs in a pool until none can begin, or until a process dies and takes the pool along."""
    # Started anew and not forked: a fork copies torch's threads in an unknown state.
    context = multiprocessing.get_context("spawn")
    running: dict[Future[Outcome], Job] = {}
    begun = context.Value("i", 0)
    with ProcessPoolExecutor(processes, context, _attend, (begun,)) as pool:
        try:
            # No more are handed out than run, so that it is known which ones a death cut short.
            while _filled(table, pool, do, running, processes):
                _collect(table, running)
        except BrokenProcessPool:
            for job in running.values():
                table.died(job)
        except BaseException:
            # What is half done is not kept, so nothing is lost. The pool waits for them on leaving.
            for process in list((pool._processes or {}).values()):  # noqa: SLF001
                process.kill()
            raise


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
