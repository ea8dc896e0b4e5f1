"""Connect to a dask.distributed cluster, or start a cluster on this machine."""

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

from abstain._foundation.lazy_imports import is_installed
from abstain.errors import InputError, MissingInputError

#: Time in seconds to wait for a scheduler.
_TIMEOUT = 3


def import_distributed() -> Any:
    """Import dask.distributed. A missing installation raises a MissingInputError."""
    if not is_installed("distributed"):
        raise MissingInputError(
            "the engine 'dask' needs dask.distributed: pip install 'abstain[scale]'"
        )
    # The module has the type `Any`, because dask.distributed is only partly annotated.
    return import_module("distributed")


@contextmanager
def connect_to_scheduler(address: str) -> Iterator[Any]:
    """Connect to a running scheduler, and yield the client."""
    dask = import_distributed()
    # A client without a scheduler prints many warnings, so the connection is tested first. The test
    # runs in a thread, because a notebook already runs an event loop in this thread.
    with ThreadPoolExecutor(1) as pool:
        try:
            pool.submit(asyncio.run, _ping_scheduler(address)).result()
        except (OSError, ValueError) as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise InputError(f"no dask scheduler answers at {address!r} ({reason})") from None
    # If the scheduler stops, abstain prints one line instead of the log of dask.
    log = logging.getLogger("distributed.client")
    previous_level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        with dask.Client(address, timeout=_TIMEOUT, set_as_default=False) as client:
            yield client
    finally:
        log.setLevel(previous_level)


async def _ping_scheduler(address: str) -> None:
    """Connect to a scheduler and close the connection."""
    comm = await import_distributed().comm.connect(address, timeout=_TIMEOUT)
    await comm.close()


@contextmanager
def start_local_cluster(n_workers: int, *, max_worker_deaths: int = 0) -> Iterator[Any]:
    """Start a local cluster with one thread per worker, and stop it on exit.

    A task fails after the death of more than `max_worker_deaths` workers that compute the task.
    """
    dask = import_distributed()
    with ExitStack() as stack:
        folder = stack.enter_context(
            TemporaryDirectory(prefix="abstain-dask-", ignore_cleanup_errors=True)
        )
        cluster = dask.LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            host="127.0.0.1",
            # Two runs on one machine would otherwise use the same port.
            dashboard_address=None,
            # Workers have no memory limit, like other processes.
            memory_limit=0,
            local_directory=folder,
            silence_logs=logging.CRITICAL,
            scheduler_kwargs={"allowed_failures": max_worker_deaths},
        )
        stack.enter_context(cluster)
        client = stack.enter_context(dask.Client(cluster, set_as_default=False))
        stack.push(partial(_kill_workers, cluster))
        yield client


def _kill_workers(cluster: Any, kind: Any, *_: Any) -> None:
    """Kill the workers if the run ends with an error or is interrupted by the user."""
    if kind is None:
        return
    # Threads of workers cannot be stopped. Results of unfinished tasks would not be stored anyway.
    for nanny in cluster.workers.values():
        nanny.auto_restart = False
        with suppress(ProcessLookupError, TypeError):
            os.kill(nanny.pid, signal.SIGKILL)
