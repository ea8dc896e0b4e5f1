"""Evaluate scanned files batch by batch, with the same result as in memory."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

from abstain._foundation.checks import one_of, positive_int
from abstain._foundation.notes import READING, Note, merge_notes
from abstain._foundation.option_format import format_option
from abstain.errors import InputError
from abstain.evaluation.inputs import (
    RequestedScores,
    check_split_columns,
    loss_name,
    zero_weights_error,
)
from abstain.evaluation.intervals import IntervalOptions
from abstain.evaluation.records import RESULT_COLUMNS, Evaluation
from abstain.evaluation.results import EvaluationBuilder
from abstain.evaluation.stream.areas import measure_areas
from abstain.evaluation.stream.checkpoint import Checkpoint
from abstain.evaluation.stream.counts import CountingOptions, StreamCounts
from abstain.evaluation.stream.progress import StreamProgress
from abstain.evaluation.stream.scored_split import streamed_split
from abstain.metrics import Metric
from abstain.predictions import CostMatrix
from abstain.streaming import SortedRuns
from abstain.tables.scan import PredictionScan, ScannedBatch, Skipped, scan_predictions
from abstain.tables.scan.scan import is_partitioned
from abstain.typing import AnyArray

#: Rows times scores after which what waits to be counted is counted.
_WAITING = 1 << 25

#: Said of graded losses and weights.
_UNNAMED = (
    "Which classes and groups the AUGRC comes from is not computed: a stream tells it of 0/1 "
    "losses without weights"
)

#: The same for rows that are written: so many are in a file.
_WRITTEN = 1 << 22


@dataclass(frozen=True, eq=False)
class StreamOptions:
    """Options for reading predictions that do not fit in memory.

    Parameters
    ----------
    resume : path, optional
        Folder of the counts, from which an interrupted run resumes. The counts are identified by
        the names, sizes and modification times of the files and by the reading options.
    on_progress : callable, optional
        Called regularly with a `StreamProgress`.
    progress_interval : float, default=5.0
        Seconds between two calls of `on_progress` and between two saves of the counts.
    engine : {"local", "dask"}, default="local"
        "dask" reads and counts the files in the processes of a cluster; requires
        ``abstain[scale]``.
    scheduler : str, default=""
        Address of the Dask scheduler; by default two local processes are started.
    memory : int, default=2**32
        Bytes for metrics of graded losses or weights, 512 per row. With more rows, only areas under
        the curve are computed.
    """

    resume: str | Path | None = None
    on_progress: Callable[[StreamProgress], None] = field(default=lambda _: None)
    progress_interval: float = 5.0
    engine: str = "local"
    scheduler: str = ""
    memory: int = 1 << 32

    def __post_init__(self) -> None:
        """Raise InputError for options that exclude each other."""
        one_of(self.engine, "engine", ("local", "dask"))
        positive_int(self.memory, "memory")
        if self.engine == "dask" and self.resume is not None:
            raise InputError(
                f"{format_option('resume')} is for one process; dask does again itself what a "
                "worker that dies has not done"
            )


@dataclass(frozen=True, eq=False)
class StreamPlan:
    """The requested evaluation of a stream."""

    scores: RequestedScores
    metrics: list[Metric] | None
    loss: "str | CostMatrix | AnyArray | None"
    intervals: IntervalOptions
    curves: bool = True
    notes: tuple[Note, ...] = ()
    options: StreamOptions = field(default_factory=StreamOptions)

    @property
    def counting_options(self) -> CountingOptions:
        """What is counted."""
        # One metric takes so much, a page of them four times as much.
        return CountingOptions(
            self.scores, self.loss, memory=max(self.options.memory // 4, 1 << 16)
        )

    def __post_init__(self) -> None:
        """Raise InputError for options that need all samples at once."""
        if self.intervals.kind == "bootstrap":
            raise InputError(
                f"{format_option('interval', 'bootstrap')} draws from all samples, which a stream "
                f"does not keep; take {format_option('interval', 'analytic')}"
            )
        if self.intervals.clustered:
            raise InputError(
                f"{format_option('clustered')} needs the samples of each cluster, which a stream "
                "does not keep; evaluate in memory"
            )


def evaluate_stream(source: Any, plan: StreamPlan) -> Evaluation:
    """Evaluate a scan of files."""
    scan = _scan_of(source)
    if plan.options.engine == "dask" or scan.frame is not None:
        from abstain.evaluation.stream.cluster import count_on_cluster

        counts = count_on_cluster(scan, plan.counting_options, plan.options.scheduler)
        return evaluate_counts(scan, counts, plan)
    kept = plan.options.resume
    checkpoint = (
        None if kept is None else Checkpoint.for_scan(Path(kept), scan, plan.counting_options)
    )
    with _folder(checkpoint) as folder:
        return evaluate_counts(scan, count_batches(scan, plan, folder, checkpoint), plan)


@contextmanager
def _folder(checkpoint: Checkpoint | None) -> Iterator[Path]:
    """Give a folder for rows: beside what is kept, or one that is taken away."""
    if checkpoint is not None:
        with checkpoint.lock():
            yield checkpoint.rows_folder
        return
    with TemporaryDirectory(prefix="abstain-rows-") as folder:
        yield Path(folder)


def _scan_of(source: Any) -> PredictionScan:
    if isinstance(source, PredictionScan):
        return source
    if is_partitioned(source):
        return scan_predictions(source)
    raise InputError(
        "`predictions` must be a Predictions or a mapping from split to Predictions, what "
        f"`scan_predictions` returns, or a dask dataframe; got {type(source).__name__}"
    )


def _resumed(checkpoint: Checkpoint, memory: int) -> StreamCounts:
    """Return what was counted; where that was of other files, say that the count begins anew."""
    counts, folder = checkpoint.load(memory), checkpoint.path.parent
    if counts.n_pieces or not any(folder.glob("counted-*.npz")):
        return counts
    text = (
        f"{str(folder)!r} has counts, but of other files, of these before they changed, or with "
        "other options of reading: all rows were counted anew"
    )
    return replace(counts, notes=((0, (Note(READING, text),)),))


def count_batches(
    scan: PredictionScan, plan: StreamPlan, folder: Path, checkpoint: Checkpoint | None = None
) -> StreamCounts:
    """Read and count all batches; resume from a checkpoint and save a new one."""
    question = replace(plan.counting_options, folder=folder)
    counts = StreamCounts() if checkpoint is None else _resumed(checkpoint, question.memory)
    several, options = len(scan.paths) > 1, plan.options
    progress = StreamProgress.start_at(scan.paths, counts.n_rows)
    since, waiting = monotonic(), 0
    try:
        for batch in _left(scan, counts.n_pieces):
            counts = counts.updated(batch, question, several=several)
            progress = progress.after(batch.chunk, counts.n_rows)
            n_scores = max((len(split.scores) for split in counts.splits.values()), default=1)
            waiting += sum(p.n for p in batch.splits.values()) * n_scores
            late = monotonic() - since >= options.progress_interval
            full = waiting >= (_WRITTEN if counts.is_on_disk else _WAITING)
            # A file of rows for every look at the clock would be too many.
            kept = full or (late and not counts.is_on_disk)
            if kept:
                counts, waiting = counts.finalized, 0
            if late:
                since = monotonic()
                options.on_progress(progress)
            if kept and (late or counts.is_on_disk):
                _keep(counts, checkpoint)
    finally:
        # Also where it is interrupted, or a later row is bad.
        _keep(counts, checkpoint)
    return counts


def _keep(counts: StreamCounts, checkpoint: Checkpoint | None) -> None:
    if checkpoint is not None:
        checkpoint.save(counts.finalized)


def _left(scan: PredictionScan, done: int) -> Iterator[ScannedBatch]:
    """Yield the batches behind those that are counted."""
    for i, piece in enumerate(scan.chunks()):
        if i >= done:
            yield scan.read(piece)


def evaluate_counts(scan: PredictionScan, counts: StreamCounts, plan: StreamPlan) -> Evaluation:
    """Measure what was counted."""
    if not counts.splits and counts.n_rows:
        raise zero_weights_error(scan.source)
    if not counts.splits:
        reasons = "; ".join(s.reason for s in (*scan.skipped, *counts.skipped)[:1])
        raise InputError(f"{scan.source}: no row is left. {reasons}")
    check_split_columns(counts.splits, RESULT_COLUMNS)
    skipped = (*scan.skipped, *counts.skipped)
    left_out = [_left_out(skipped, counts.n_rows)] if skipped else []
    rough = [Note(READING, _UNNAMED)] if counts.is_on_disk and counts.has_names else []
    findings = [*plan.notes, *left_out, *scan.notes, *merge_notes(counts.notes), *rough]
    builder = EvaluationBuilder(plan.metrics, findings, curves=plan.curves)
    own: set[str] = set()
    for split, kept in counts.splits.items():
        for name, score in kept.scores.items():
            own |= {name} if score.is_column else set()
            if isinstance(score.state, SortedRuns) and not score.state.fits_in_memory:
                results, not_computed = measure_areas(
                    split, name, score.state, plan.metrics, plan.intervals
                )
                builder.add_results(results, not_computed, is_binary=score.state.binary)
            else:
                builder.add(streamed_split(split, name, kept, plan.intervals))
    given = scan.selection.correct is not None or scan.selection.loss is not None
    label = "own" if plan.loss is None and given else loss_name(plan.loss, ())
    return builder.build(label, frozenset(own))


def _left_out(skipped: tuple[Skipped, ...], rows: int) -> Note:
    """Return a note with the number of skipped rows and files, and the first reason."""
    lost = sum(s.n_rows for s in skipped if s.n_rows > 0)
    files = sum(s.n_rows < 0 for s in skipped)
    parts = [f"{lost:,} of {rows + lost:,} rows"] if lost else []
    what = "file or block" if files == 1 else "files or blocks"
    parts += [f"{files:,} {what} that cannot be read"] if files else []
    first = skipped[0]
    where = "" if first.reason.startswith(first.source) else f"{first.source}: "
    said = f"Left out as bad: {' and '.join(parts)}. The first: {where}{first.reason}"
    return Note.warning("skipped", said)
