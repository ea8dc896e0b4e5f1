"""Read and count batches with dask; the workers only return counts."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any

from abstain._foundation.dask_cluster import (
    connect_to_scheduler,
    import_distributed,
    start_local_cluster,
)
from abstain._foundation.lazy_imports import is_installed
from abstain.errors import InputError
from abstain.evaluation.stream.counts import CountingOptions, StreamCounts
from abstain.tables.scan import PredictionScan
from abstain.tables.scan.chunks import FileChunk

#: Number of processes that are started if there is no cluster.
_N_PROCESSES = 2

#: Maximum number of tasks. With more tasks, the scheduler would limit the speed.
_MAX_TASKS = 1024

#: A task fails after this number of worker deaths.
_MAX_DEATHS = 5


def count_on_cluster(scan: PredictionScan, options: CountingOptions, address: str) -> StreamCounts:
    """Read and count all batches with dask workers, and return the total counts.

    Files are counted by the cluster at `address`, or by two processes on this machine. A dask
    dataframe is counted by the cluster at `address`, or by the client or the scheduler of the
    caller (threads by default). Counts are merged in pairs in the order of the batches, so the
    result is bitwise equal to that of a single process.
    """
    work = _Work(scan if scan.frame is None else replace(scan, frame=None), options)
    client_in_use = None if scan.frame is None or address else _client_in_use()
    if scan.frame is not None and not address and client_in_use is None:
        return _count_with_configured_scheduler(scan.frame, work)
    with _client(client_in_use, address) as client:
        # If tasks were marked as pure, dask would reuse the results of an earlier run.
        submit = partial(client.submit, pure=False, retries=_MAX_DEATHS)
        if scan.frame is None:
            counts = [submit(work, pieces) for pieces in _group_pieces(scan)]
        else:
            # Each partition is counted by the worker that holds the partition.
            partitions = client.compute(scan.frame.to_delayed(), retries=_MAX_DEATHS)
            counts = [submit(work.partition, rows, i) for i, rows in enumerate(partitions)]
            del partitions
        total = _merge_in_pairs(counts, partial(submit, _merge_two))
        return _gather(client, total)


def _client_in_use() -> Any:
    """Return the dask client of the caller, or None if the caller has no client."""
    if not is_installed("distributed"):
        return None
    with suppress(ValueError):
        return import_distributed().get_client()
    return None


def _count_with_configured_scheduler(frame: Any, work: "_Work") -> StreamCounts:
    """Count the partitions with the configured scheduler, which uses threads by default.

    With processes, a script without a main guard would be executed again.
    """
    delayed: Any = import_module("dask").delayed
    count, merge = delayed(work.partition, pure=False), delayed(_merge_two, pure=False)
    counts = [count(partition, i) for i, partition in enumerate(frame.to_delayed())]
    total: StreamCounts = _merge_in_pairs(counts, merge).compute()
    return total


def _client(client_in_use: Any, address: str) -> AbstractContextManager[Any]:
    """Return a client of the cluster at `address`, the current client, or a new local one."""
    if address:
        return connect_to_scheduler(address)
    if client_in_use is not None:
        return nullcontext(client_in_use)
    return start_local_cluster(_N_PROCESSES, max_worker_deaths=_MAX_DEATHS)


def _group_pieces(scan: PredictionScan) -> list[list[FileChunk]]:
    """Divide the files into at most `_MAX_TASKS` lists of consecutive parts."""
    pieces = list(scan.chunks())
    size = -(-len(pieces) // _MAX_TASKS)
    return [pieces[i : i + size] for i in range(0, len(pieces), size)]


def _merge_in_pairs(counts: list[Any], merge: Callable[[Any, Any], Any]) -> Any:
    """Merge counts, which are futures or delayed values, in pairs until one total remains."""
    while len(counts) > 1:
        merged = [merge(counts[i], counts[i + 1]) for i in range(0, len(counts) - 1, 2)]
        if len(counts) % 2 == 1:
            merged.append(counts[-1])
        counts = merged
    return counts[0]


def _gather(client: Any, future: Any) -> StreamCounts:
    """Wait for the total counts and return them; raise InputError if the cluster fails."""
    dask = import_distributed()
    try:
        counts: StreamCounts = client.gather(future)
    except dask.KilledWorker as error:
        raise InputError(
            f"workers died {_MAX_DEATHS} times during one task ({error}): give them more memory, "
            "or read their logs"
        ) from error
    except (OSError, TimeoutError, dask.CancelledError) as error:
        raise InputError("the dask scheduler has stopped; start it, and run this again") from error
    return counts


class _Work:
    """A task that reads and counts parts of the files, and can run in any process."""

    def __init__(self, scan: PredictionScan, options: CountingOptions) -> None:
        self.scan, self.options = scan, options

    def __call__(self, pieces: Sequence[FileChunk]) -> StreamCounts:
        """Count the samples in these parts of the files."""
        counts, several = StreamCounts(), len(self.scan.paths) > 1
        for piece in pieces:
            batch = self.scan.read(piece)
            counts = counts.updated(batch, self.options, several=several)
        return counts.finalized

    def partition(self, rows: Any, number: int) -> StreamCounts:
        """Count the samples in a partition of a dask dataframe."""
        batch = self.scan.read_partition(rows, number)
        return StreamCounts().updated(batch, self.options, several=True).finalized


def _merge_two(first: StreamCounts, second: StreamCounts) -> StreamCounts:
    return first.merged(second)
