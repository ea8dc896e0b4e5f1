"""Batches read and counted by the processes of a dask cluster; only counts travel."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from typing import Any

from abstain._foundation.cluster import connected, distributed, started
from abstain.errors import InputError
from abstain.evaluation.stream.counts import Question, StreamCounts
from abstain.tables.scan import PredictionScan
from abstain.tables.scan.pieces import Piece

#: Processes that are started where there is no cluster.
_PROCESSES = 2

#: Tasks that pieces are divided among at most, so that the scheduler is not what takes the time.
_TASKS = 1024

#: Deaths of workers that one task may be in the middle of.
_DEATHS = 5


def counted_by_workers(scan: PredictionScan, question: Question, address: str) -> StreamCounts:
    """Count all batches on a cluster, a running one or two processes of this machine.

    What a worker that dies had counted is counted again by another. Counts are joined in the order
    of the pieces, two and two, so that they are those of one process to the last bit.
    """
    with _client(scan, address) as client:
        work = _Work(scan if scan.frame is None else replace(scan, frame=None), question)
        # Pure tasks have names by what they do, and a later run would find an earlier one's.
        once = {"pure": False, "retries": _DEATHS}
        if scan.frame is None:
            counts = [client.submit(work, run, **once) for run in _runs(scan)]
        else:
            # Partitions stay with the workers that have them.
            parts = client.compute(scan.frame.to_delayed(), retries=_DEATHS)
            counts = [client.submit(work.partition, p, i, **once) for i, p in enumerate(parts)]
            del parts
        return _only(client, _joined(client, counts))


def _client(scan: PredictionScan, address: str) -> AbstractContextManager[Any]:
    """Return a client: of a running cluster, of the one in use, or of two processes made for it."""
    if address:
        return connected(address)
    if scan.frame is not None:
        with suppress(ValueError):
            return nullcontext(distributed().get_client())
    return started(_PROCESSES, deaths=_DEATHS)


def _runs(scan: PredictionScan) -> list[list[Piece]]:
    """Divide the pieces, neighbors together."""
    pieces = list(scan.pieces())
    size = -(-len(pieces) // _TASKS)
    return [pieces[i : i + size] for i in range(0, len(pieces), size)]


def _joined(client: Any, counts: list[Any]) -> Any:
    """Join neighbors, two and two, until one is left; none of them comes here."""
    while len(counts) > 1:
        pairs = [counts[i : i + 2] for i in range(0, len(counts), 2)]
        counts = [
            client.submit(_merged, *pair, pure=False, retries=_DEATHS) if len(pair) > 1 else pair[0]
            for pair in pairs
        ]
    return counts[0]


def _only(client: Any, counts: Any) -> StreamCounts:
    """Wait for the last."""
    dask = distributed()
    try:
        found: StreamCounts = client.gather(counts)
    except dask.KilledWorker as error:
        msg = (
            f"workers died {_DEATHS} times over one part of the files ({error}): give them more "
            "memory, or look at their logs"
        )
        raise InputError(msg) from error
    except (OSError, TimeoutError, dask.CancelledError) as error:
        msg = "the dask scheduler is gone; start it, and run this again"
        raise InputError(msg) from error
    return found


class _Work:
    """Reads and counts some pieces, wherever it is sent."""

    def __init__(self, scan: PredictionScan, question: Question) -> None:
        self.scan, self.question = scan, question

    def __call__(self, pieces: Sequence[Piece]) -> StreamCounts:
        """Return the counts of pieces."""
        counts, several = StreamCounts(), len(self.scan.paths) > 1
        for piece in pieces:
            batch = self.scan.read(piece)
            counts = counts.updated(batch, self.question, several=several)
        return counts.settled

    def partition(self, rows: Any, number: int) -> StreamCounts:
        """Return the counts of a partition of a dask dataframe."""
        batch = self.scan.read_partition(rows, number)
        return StreamCounts().updated(batch, self.question, several=True).settled


def _merged(one: StreamCounts, two: StreamCounts) -> StreamCounts:
    return one.merged(two)
