"""Evaluate scanned files batch by batch, with the same metric values as in memory."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

import numpy as np

from abstain._foundation.checks import one_of, positive_int
from abstain._foundation.input_files import file_size
from abstain._foundation.notes import READING, Note, merge_notes
from abstain._foundation.option_format import format_option
from abstain.errors import DomainError, InputError, UncountedError
from abstain.evaluation.inputs import (
    RequestedScores,
    check_split_columns,
    loss_name,
    zero_weights_error,
)
from abstain.evaluation.intervals import IntervalOptions
from abstain.evaluation.records import NOT_REQUESTED, RESULT_COLUMNS, Evaluation, Result
from abstain.evaluation.results import EvaluationBuilder
from abstain.evaluation.stream.checkpoint import Checkpoint
from abstain.evaluation.stream.counts import CountingOptions, StreamCounts
from abstain.evaluation.stream.scored_split import streamed_split
from abstain.inference.intervals import no_interval
from abstain.metrics import METRICS, Metric
from abstain.predictions import CostMatrix
from abstain.streaming import SortedRuns, compute
from abstain.tables.scan import PredictionScan, ScannedBatch, Skipped, scan_predictions
from abstain.tables.scan.chunks import FileChunk
from abstain.tables.scan.scan import is_partitioned
from abstain.typing import AnyArray, Split


@dataclass(frozen=True)
class StreamProgress:
    """Progress of the evaluation of a stream.

    Attributes
    ----------
    sizes : mapping from path to int
        Size of each file in bytes.
    n_bytes_read : int
        Number of bytes that were read, including the part of the current file that was read.
    n_rows, n_rows_before : int
        Number of counted rows, and of rows that an earlier run had counted.
    n_bytes_before : int or None
        Number of bytes that this run does not read, because an earlier run has counted them.
    start_time, current_time : float
        Times of the start and of this progress, in seconds of a monotonic clock.
    """

    sizes: dict[Path, int]
    n_bytes_read: int = 0
    n_rows: int = 0
    n_rows_before: int = 0
    n_bytes_before: int | None = None
    start_time: float = 0.0
    current_time: float = 0.0

    @classmethod
    def start_at(cls, paths: Sequence[Path], rows: int) -> "StreamProgress":
        """Return the initial progress, in which rows from a checkpoint are already counted."""
        now = monotonic()
        return cls({path: file_size(path) for path in paths}, 0, rows, rows, None, now, now)

    def after(self, piece: FileChunk, rows: int) -> "StreamProgress":
        """Return the progress after a part of a file; `rows` rows have been counted so far."""
        paths = list(self.sizes)
        earlier_paths = paths[: paths.index(piece.path)]
        n_bytes_of_earlier_files = sum(self.sizes[path] for path in earlier_paths)
        n_bytes_before = self.n_bytes_before
        if n_bytes_before is None:
            n_bytes_before = n_bytes_of_earlier_files
        return replace(
            self,
            n_bytes_read=n_bytes_of_earlier_files + int(self.sizes[piece.path] * piece.share),
            n_rows=rows,
            n_bytes_before=n_bytes_before,
            current_time=monotonic(),
        )

    @property
    def share(self) -> float:
        """Share of all bytes that have been read."""
        return self.n_bytes_read / max(sum(self.sizes.values()), 1)

    @property
    def rate(self) -> float:
        """Number of rows counted per second."""
        return (self.n_rows - self.n_rows_before) / max(self.current_time - self.start_time, 1e-9)

    @property
    def remaining_seconds(self) -> float:
        """Estimated remaining time in seconds, which is infinite at the start."""
        n_bytes_of_run = self.n_bytes_read - (self.n_bytes_before or 0)
        if n_bytes_of_run <= 0:
            return float("inf")
        n_bytes_remaining = sum(self.sizes.values()) - self.n_bytes_read
        return n_bytes_remaining * (self.current_time - self.start_time) / n_bytes_of_run


_NO_INTERVAL = "an interval needs all rows in memory"


def measure_areas(
    split: Split,
    score: str,
    state: SortedRuns,
    metrics: Sequence[Metric] | None,
    options: IntervalOptions,
) -> tuple[list[Result], dict[str, str]]:
    """Return the metrics that can be computed from counts, and why the others are skipped."""
    n_failures, n_tied = _count_failures_and_ties(state)
    reason = (
        f"needs all {state.n:,} rows in memory, for losses or weights that differ; more "
        f"{format_option('memory')}, or fewer rows, would do"
    )
    interval = NOT_REQUESTED
    if options.kind != "none":
        interval = no_interval(options.level, _NO_INTERVAL)
    results: list[Result] = []
    skipped: dict[str, str] = {}
    for metric in METRICS.values() if metrics is None else metrics:
        try:
            value = compute(state, metric.name).value
        except (UncountedError, DomainError):
            skipped[metric.name] = reason
            continue
        result = Result(
            split=split,
            score=score,
            metric=metric,
            value=value,
            n=state.n,
            failures=n_failures,
            accepted=None,
            tied_share=n_tied / state.n,
            tie_low=np.nan,
            tie_high=np.nan,
            reason="",
            interval=interval,
        )
        results.append(result)
    return results, skipped


def _count_failures_and_ties(state: SortedRuns) -> tuple[int, int]:
    """Return the number of samples with a loss above zero and the number of tied samples."""
    n_failures = n_tied = 0
    for rows in state.blocks():
        n_failures += int(rows["times"][rows["loss"] > 0].sum())
        confidence = rows["confidence"]
        group_starts = np.flatnonzero(np.append(True, confidence[1:] != confidence[:-1]))
        group_sizes = np.add.reduceat(rows["times"], group_starts)
        n_tied += int(group_sizes[group_sizes > 1].sum())
    return n_failures, n_tied


#: Maximum number of rows times scores in memory before the rows are counted.
_MAX_PENDING_COUNTS = 1 << 25
#: The same maximum for rows with graded losses or weights, which are written to a file.
_MAX_PENDING_ROWS = 1 << 22

_NO_CONTRIBUTIONS = (
    "The contributions of classes and groups to the AUGRC are not computed: a stream computes them "
    "only for 0/1 losses without weights"
)


@dataclass(frozen=True, eq=False)
class StreamOptions:
    """Options for reading predictions that do not fit in memory.

    Parameters
    ----------
    resume : path, optional
        Folder in which counts are stored, and from which an interrupted run resumes. Counts are
        only reused for files with the same names, sizes and modification times, and for the same
        reading options.
    on_progress : callable, optional
        Function that is called regularly with a `StreamProgress`.
    progress_interval : float, default=5.0
        Seconds between two calls of `on_progress`, and between two saves of the counts.
    engine : {"local", "dask"}, default="local"
        The engine that reads and counts the files. "dask" uses the processes of a cluster and
        requires ``abstain[scale]``.
    scheduler : str, default=""
        Address of the Dask scheduler. If the address is empty, two local processes are started.
    memory : int, default=2**32
        Memory in bytes for metrics of graded losses or weights. For these metrics, 512 bytes are
        needed per row. If this memory is not sufficient, only areas under risk-coverage curves are
        computed.
    """

    resume: str | Path | None = None
    on_progress: Callable[[StreamProgress], None] = field(default=lambda _: None)
    progress_interval: float = 5.0
    engine: str = "local"
    scheduler: str = ""
    memory: int = 1 << 32

    def __post_init__(self) -> None:
        """Raise InputError for options that cannot be combined."""
        one_of(self.engine, "engine", ("local", "dask"))
        positive_int(self.memory, "memory")
        if self.engine == "dask" and self.resume is not None:
            raise InputError(
                f"{format_option('resume')} is for one process; dask itself repeats the tasks of a "
                "worker that dies"
            )


@dataclass(frozen=True, eq=False)
class StreamPlan:
    """The options with which a stream is evaluated."""

    scores: RequestedScores
    metrics: list[Metric] | None
    loss: "str | CostMatrix | AnyArray | None"
    intervals: IntervalOptions
    curves: bool = True
    notes: tuple[Note, ...] = ()
    options: StreamOptions = field(default_factory=StreamOptions)

    @property
    def counting_options(self) -> CountingOptions:
        """The scores and the loss for which samples are counted, and the memory for each metric."""
        # All metrics of a report together use about four times the memory of a single metric.
        memory_of_metric = max(self.options.memory // 4, 1 << 16)
        return CountingOptions(self.scores, self.loss, memory=memory_of_metric)

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
    """Evaluate a scan of files or a dask dataframe."""
    scan = _scan_of(source)
    if plan.options.engine == "dask" or scan.frame is not None:
        from abstain.evaluation.stream.cluster import count_on_cluster

        counts = count_on_cluster(scan, plan.counting_options, plan.options.scheduler)
        return evaluate_counts(scan, counts, plan)
    checkpoint = None
    if plan.options.resume is not None:
        folder = Path(plan.options.resume)
        checkpoint = Checkpoint.for_scan(folder, scan, plan.counting_options)
    with _rows_folder(checkpoint) as rows_folder:
        counts = count_batches(scan, plan, rows_folder, checkpoint)
        return evaluate_counts(scan, counts, plan)


@contextmanager
def _rows_folder(checkpoint: Checkpoint | None) -> Iterator[Path]:
    """Yield the folder for stored rows, which is temporary if there is no checkpoint."""
    if checkpoint is not None:
        with checkpoint.lock():
            yield checkpoint.rows_folder
        return
    with TemporaryDirectory(prefix="abstain-rows-") as folder:
        yield Path(folder)


def _scan_of(source: Any) -> PredictionScan:
    """Return the source as a scan, or raise InputError if the source cannot be scanned."""
    if isinstance(source, PredictionScan):
        return source
    if is_partitioned(source):
        return scan_predictions(source)
    raise InputError(
        "`predictions` must be a Predictions or a mapping from split to Predictions, what "
        f"`scan_predictions` returns, or a dask dataframe; got {type(source).__name__}"
    )


def _load_counts(checkpoint: Checkpoint, memory: int) -> StreamCounts:
    """Return the saved counts, and a note if the folder only contains counts of other files."""
    counts, folder = checkpoint.load(memory), checkpoint.path.parent
    has_saved_files = any(folder.glob("counted-*.npz"))
    if counts.n_pieces > 0 or not has_saved_files:
        return counts
    text = (
        f"{str(folder)!r} has counts of other files, of these files before they changed, or with "
        "other reading options: all rows were counted again"
    )
    return replace(counts, notes=((0, (Note(READING, text),)),))


def count_batches(
    scan: PredictionScan, plan: StreamPlan, folder: Path, checkpoint: Checkpoint | None = None
) -> StreamCounts:
    """Count all batches, beginning with the counts in the checkpoint, and update it."""
    counting = replace(plan.counting_options, folder=folder)
    counts = StreamCounts() if checkpoint is None else _load_counts(checkpoint, counting.memory)
    has_several_files = len(scan.paths) > 1
    progress = StreamProgress.start_at(scan.paths, counts.n_rows)
    last_report, n_pending = monotonic(), 0
    try:
        for batch in _remaining_batches(scan, counts.n_pieces):
            counts = counts.updated(batch, counting, several=has_several_files)
            progress = progress.after(batch.chunk, counts.n_rows)
            n_pending += _count_rows_times_scores(batch, counts)
            is_report_due = monotonic() - last_report >= plan.options.progress_interval
            max_pending = _MAX_PENDING_ROWS if counts.is_on_disk else _MAX_PENDING_COUNTS
            # Rows are not written to disk at each report, because this would create too many files.
            is_finalized = n_pending >= max_pending or (is_report_due and not counts.is_on_disk)
            if is_finalized:
                counts, n_pending = counts.finalized, 0
            if is_report_due:
                last_report = monotonic()
                plan.options.on_progress(progress)
            if is_finalized and (is_report_due or counts.is_on_disk):
                _save(counts, checkpoint)
    finally:
        # The counts are also saved after an interruption or an invalid row.
        _save(counts, checkpoint)
    return counts


def _count_rows_times_scores(batch: ScannedBatch, counts: StreamCounts) -> int:
    """Return the number of rows of a batch times the largest number of scores in any split."""
    n_rows = sum(p.n for p in batch.splits.values())
    n_scores = max((len(split.scores) for split in counts.splits.values()), default=1)
    return n_rows * n_scores


def _save(counts: StreamCounts, checkpoint: Checkpoint | None) -> None:
    if checkpoint is not None:
        checkpoint.save(counts.finalized)


def _remaining_batches(scan: PredictionScan, n_counted: int) -> Iterator[ScannedBatch]:
    """Yield the batches that have not been counted yet."""
    for i, piece in enumerate(scan.chunks()):
        if i >= n_counted:
            yield scan.read(piece)


def evaluate_counts(scan: PredictionScan, counts: StreamCounts, plan: StreamPlan) -> Evaluation:
    """Compute the metrics from the counts, and return the evaluation."""
    skipped = (*scan.skipped, *counts.skipped)
    if not counts.splits and counts.n_rows:
        raise zero_weights_error(scan.source)
    if not counts.splits:
        reason = skipped[0].reason if skipped else ""
        raise InputError(f"{scan.source}: no row is left. {reason}")
    check_split_columns(counts.splits, RESULT_COLUMNS)
    notes = list(plan.notes)
    if skipped:
        notes.append(_skipped_note(skipped, counts.n_rows))
    notes += [*scan.notes, *merge_notes(counts.notes)]
    if counts.is_on_disk and counts.has_names:
        notes.append(Note(READING, _NO_CONTRIBUTIONS))
    builder = EvaluationBuilder(plan.metrics, notes, curves=plan.curves)
    score_columns: set[str] = set()
    for split, split_counts in counts.splits.items():
        for name, score in split_counts.scores.items():
            if score.is_column:
                score_columns.add(name)
            if isinstance(score.state, SortedRuns) and not score.state.fits_in_memory:
                results, not_computed = measure_areas(
                    split, name, score.state, plan.metrics, plan.intervals
                )
                builder.add_results(results, not_computed, is_binary=score.state.binary)
            else:
                builder.add(streamed_split(split, name, split_counts, plan.intervals))
    has_loss_column = scan.selection.correct is not None or scan.selection.loss is not None
    label = "own" if plan.loss is None and has_loss_column else loss_name(plan.loss, ())
    return builder.build(label, frozenset(score_columns))


def _skipped_note(skipped: tuple[Skipped, ...], n_counted: int) -> Note:
    """Return a note with the numbers of skipped rows and files, and the first reason."""
    n_rows = sum(s.n_rows for s in skipped if s.n_rows > 0)
    # A skipped file or block has an unknown number of rows, stored as -1.
    n_files = sum(s.n_rows < 0 for s in skipped)
    counts = []
    if n_rows:
        counts.append(f"{n_rows:,} of {n_counted + n_rows:,} rows")
    if n_files:
        noun = "file or block" if n_files == 1 else "files or blocks"
        counts.append(f"{n_files:,} {noun} that cannot be read")
    first = skipped[0]
    location = "" if first.reason.startswith(first.source) else f"{first.source}: "
    text = f"Left out as bad: {' and '.join(counts)}. The first: {location}{first.reason}"
    return Note.warning("skipped", text)
