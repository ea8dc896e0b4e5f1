"""Batches read and counted by the processes of a dask cluster; only counts travel."""

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

#: Processes that are started where there is no cluster.
_PROCESSES = 2

#: Tasks that pieces are divided among at most, so that the scheduler is not what takes the time.
_TASKS = 1024

#: Deaths of workers that one task may be in the middle of.
_DEATHS = 5


def count_on_cluster(scan: PredictionScan, question: CountingOptions, address: str) -> StreamCounts:
    """Count all batches by the workers of dask.

    Files are counted on a running cluster or by two processes of this machine. A dask dataframe is
    counted by the cluster at `address`, else by the client or the scheduler of the caller, else by
    threads: processes would run the script of the caller again, unless it has a main guard. What a
    worker that dies had counted is counted again by another. Counts are joined in the order of the
    pieces, two and two, so that they are those of one process to the last bit.
    """
    work = _Work(scan if scan.frame is None else replace(scan, frame=None), question)
    client_in_use = None if scan.frame is None or address else _client_in_use()
    if scan.frame is not None and not address and client_in_use is None:
        return _counted_by_scheduler(scan.frame, work)
    with _client(client_in_use, address) as client:
        # Pure tasks have names by what they do, and a later run would find an earlier one's.
        once = {"pure": False, "retries": _DEATHS}
        if scan.frame is None:
            counts = [client.submit(work, run, **once) for run in _runs(scan)]
        else:
            # Partitions stay with the workers that have them.
            parts = client.compute(scan.frame.to_delayed(), retries=_DEATHS)
            counts = [client.submit(work.partition, p, i, **once) for i, p in enumerate(parts)]
            del parts
        return _only(client, _joined(counts, partial(client.submit, _merged, **once)))


def _client_in_use() -> Any:
    """Return the client of the caller; None if there is none."""
    if not is_installed("distributed"):
        return None
    with suppress(ValueError):
        return import_distributed().get_client()
    return None


def _counted_by_scheduler(frame: Any, work: "_Work") -> StreamCounts:
    """Count the partitions by the scheduler that dask is configured with, threads by default."""
    delayed: Any = import_module("dask").delayed
    count, join = delayed(work.partition, pure=False), delayed(_merged, pure=False)
    counts = [count(partition, i) for i, partition in enumerate(frame.to_delayed())]
    found: StreamCounts = _joined(counts, join).compute()
    return found


def _client(client_in_use: Any, address: str) -> AbstractContextManager[Any]:
    """Return a client: of a running cluster, the one in use, or of two processes made for it."""
    if address:
        return connect_to_scheduler(address)
    if client_in_use is not None:
        return nullcontext(client_in_use)
    return start_local_cluster(_PROCESSES, max_worker_deaths=_DEATHS)


def _runs(scan: PredictionScan) -> list[list[FileChunk]]:
    """Divide the pieces, neighbors together."""
    pieces = list(scan.chunks())
    size = -(-len(pieces) // _TASKS)
    return [pieces[i : i + size] for i in range(0, len(pieces), size)]


def _joined(counts: list[Any], join: Callable[[Any, Any], Any]) -> Any:
    """Join neighbors, two and two, until one is left; none of them comes here."""
    while len(counts) > 1:
        pairs = [counts[i : i + 2] for i in range(0, len(counts), 2)]
        counts = [join(*pair) if len(pair) > 1 else pair[0] for pair in pairs]
    return counts[0]


def _only(client: Any, counts: Any) -> StreamCounts:
    """Wait for the last."""
    dask = import_distributed()
    try:
        found: StreamCounts = client.gather(counts)
    except dask.KilledWorker as error:
        raise InputError(
            f"workers died {_DEATHS} times over one part of the files ({error}): give them more "
            "memory, or look at their logs"
        ) from error
    except (OSError, TimeoutError, dask.CancelledError) as error:
        raise InputError("the dask scheduler is gone; start it, and run this again") from error
    return found


class _Work:
    """Reads and counts some pieces, wherever it is sent."""

    def __init__(self, scan: PredictionScan, question: CountingOptions) -> None:
        self.scan, self.question = scan, question

    def __call__(self, pieces: Sequence[FileChunk]) -> StreamCounts:
        """Return the counts of pieces."""
        counts, several = StreamCounts(), len(self.scan.paths) > 1
        for piece in pieces:
            batch = self.scan.read(piece)
            counts = counts.updated(batch, self.question, several=several)
        return counts.finalized

    def partition(self, rows: Any, number: int) -> StreamCounts:
        """Return the counts of a partition of a dask dataframe."""
        batch = self.scan.read_partition(rows, number)
        return StreamCounts().updated(batch, self.question, several=True).finalized


def _merged(one: StreamCounts, two: StreamCounts) -> StreamCounts:
    return one.merged(two)
