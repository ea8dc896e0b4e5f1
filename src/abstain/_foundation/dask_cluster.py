"""A dask.distributed cluster, a running one or one of this machine, while it is needed."""

import asyncio
import logging
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from importlib import import_module
from tempfile import TemporaryDirectory
from typing import Any

from abstain._foundation.optional_packages import is_installed
from abstain.errors import InputError, MissingInputError

#: Seconds to wait for an answer of a scheduler.
_ANSWER = 3


def import_distributed() -> Any:
    """Return dask.distributed, or say in one line that it is missing."""
    if not is_installed("distributed"):
        raise MissingInputError(
            "the engine 'dask' needs dask.distributed: pip install 'abstain[scale]'"
        )
    # As a module of any type: only half of it says its types.
    return import_module("distributed")


@contextmanager
def connect_to_scheduler(address: str) -> Iterator[Any]:
    """Connect to a scheduler."""
    dask = import_distributed()
    # Asked first: a client that finds nobody leaves noise behind. In a thread, since a notebook has
    # a loop of its own.
    with ThreadPoolExecutor(1) as pool:
        try:
            pool.submit(asyncio.run, _answered(address)).result()
        except (OSError, ValueError) as error:
            first = (str(error).splitlines() or [type(error).__name__])[0]
            raise InputError(f"no dask scheduler answers at {address!r} ({first})") from None
    # A scheduler that goes away is said in one line, not in dask's twenty.
    log = logging.getLogger("distributed.client")
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        with dask.Client(address, timeout=_ANSWER, set_as_default=False) as client:
            yield client
    finally:
        log.setLevel(before)


async def _answered(address: str) -> None:
    """Connect to a scheduler and take leave."""
    comm = await import_distributed().comm.connect(address, timeout=_ANSWER)
    await comm.close()


@contextmanager
def start_local_cluster(n_workers: int, *, max_worker_deaths: int = 0) -> Iterator[Any]:
    """Start a cluster on this machine, one thread a worker; leave no process and no file.

    What a worker does when it dies is done by others, unless so many died of it before.
    """
    dask = import_distributed()
    with ExitStack() as stack:
        place = stack.enter_context(
            TemporaryDirectory(prefix="abstain-dask-", ignore_cleanup_errors=True)
        )
        cluster = dask.LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            host="127.0.0.1",
            # Two runs on a machine would quarrel about its port.
            dashboard_address=None,
            # Jobs that need much memory are as free as in processes of our own.
            memory_limit=0,
            local_directory=place,
            silence_logs=logging.CRITICAL,
            scheduler_kwargs={"allowed_failures": max_worker_deaths},
        )
        stack.enter_context(cluster)
        client = stack.enter_context(dask.Client(cluster, set_as_default=False))
        stack.push(partial(_end_at_once, cluster))
        yield client


def _end_at_once(cluster: Any, kind: Any, *_: Any) -> None:
    """Kill the workers where this run is ended: a thread cannot be stopped."""
    # What is half done is not kept, so nothing is lost.
    for nanny in cluster.workers.values() if kind is not None else ():
        nanny.auto_restart = False
        with suppress(ProcessLookupError, TypeError):
            os.kill(nanny.pid, signal.SIGKILL)
