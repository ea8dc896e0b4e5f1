"""Batches read, counted and measured: the same record as of predictions in memory."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

from abstain._foundation.option_words import option
from abstain.errors import InputError
from abstain.evaluation.assembly import Assembly
from abstain.evaluation.inputs import Asked, loss_name, refuse_columns
from abstain.evaluation.records import RESULT_COLUMNS, Evaluation, Finding
from abstain.evaluation.stream.checkpoint import Checkpoint
from abstain.evaluation.stream.counts import StreamCounts
from abstain.evaluation.stream.part import part_of
from abstain.evaluation.stream.progress import StreamProgress
from abstain.evaluation.uncertainty import Uncertainty
from abstain.metrics import Metric
from abstain.predictions import CostMatrix
from abstain.tables.column import joined
from abstain.tables.scan import PredictionScan, ScannedBatch, Skipped
from abstain.typing import AnyArray

#: Rows times scores after which what waits to be counted is counted.
_WAITING = 1 << 25


@dataclass(frozen=True, eq=False)
class StreamPlan:
    """What is asked of a stream."""

    scores: Asked
    metrics: list[Metric] | None
    loss: "str | CostMatrix | AnyArray | None"
    how: Uncertainty
    curves: bool = True
    findings: tuple[Finding, ...] = ()
    #: A folder for what was counted so far, from which an interrupted run goes on.
    resume: Path | None = None
    #: Is told now and then how far it is.
    told: Callable[[StreamProgress], None] = field(default=lambda _: None)
    #: Seconds between two looks at the clock that say so, and write down what was counted.
    every: float = 5.0

    def __post_init__(self) -> None:
        """Refuse what takes every sample at once."""
        if self.how.kind == "bootstrap":
            msg = (
                f"{option('interval', 'bootstrap')} draws from all samples, which a stream does "
                f"not keep; take {option('interval', 'analytic')}"
            )
            raise InputError(msg)
        if self.how.clustered:
            msg = (
                f"{option('clustered')} needs the samples of each cluster, which a stream does not "
                "keep; evaluate in memory"
            )
            raise InputError(msg)


def counted_evaluation(source: Any, plan: StreamPlan) -> Evaluation:
    """Evaluate a scan of files."""
    scan = _scan_of(source)
    checkpoint = None if plan.resume is None else Checkpoint.of(plan.resume, scan, plan.scores)
    return measured(scan, counted(scan, plan, checkpoint), plan)


def _scan_of(source: Any) -> PredictionScan:
    if isinstance(source, PredictionScan):
        return source
    msg = (
        "`predictions` must be a Predictions or a mapping from split to Predictions, or what "
        f"`scan_predictions` returns; got {type(source).__name__}"
    )
    raise InputError(msg)


def counted(
    scan: PredictionScan, plan: StreamPlan, checkpoint: Checkpoint | None = None
) -> StreamCounts:
    """Read and count all batches; go on from a checkpoint, and leave one behind."""
    counts = StreamCounts() if checkpoint is None else checkpoint.load()
    several = len(scan.paths) > 1
    progress = StreamProgress.of(scan.paths, counts.rows)
    since, waiting = monotonic(), 0
    for batch in _left(scan, counts.pieces):
        counts = counts.updated(batch, plan.scores, plan.loss, several=several)
        progress = progress.after(batch.piece, counts.rows)
        waiting += sum(p.n for p in batch.splits.values()) * _breadth(counts)
        late = monotonic() - since >= plan.every
        if late or waiting >= _WAITING:
            counts, waiting = counts.settled, 0
        if late:
            since = monotonic()
            plan.told(progress)
            _keep(counts, checkpoint)
    _keep(counts, checkpoint)
    return counts


def _keep(counts: StreamCounts, checkpoint: Checkpoint | None) -> None:
    if checkpoint is not None:
        checkpoint.save(counts)


def _left(scan: PredictionScan, done: int) -> Iterator[ScannedBatch]:
    """Yield the batches behind those that are counted."""
    for i, piece in enumerate(scan.pieces()):
        if i >= done:
            yield scan.read(piece)


def _breadth(counts: StreamCounts) -> int:
    return max((len(split.scores) for split in counts.splits.values()), default=1)


def measured(scan: PredictionScan, counts: StreamCounts, plan: StreamPlan) -> Evaluation:
    """Measure what was counted."""
    if not counts.splits:
        reasons = "; ".join(s.reason for s in (*scan.skipped, *counts.skipped)[:1])
        msg = f"{scan.source}: no row is left. {reasons}"
        raise InputError(msg)
    refuse_columns(counts.splits, RESULT_COLUMNS)
    skipped = (*scan.skipped, *counts.skipped)
    said = [Finding.note("source", note) for note in (*scan.notes, *joined(counts.notes))]
    left_out = [_left_out(skipped, counts.rows)] if skipped else []
    found = Assembly(plan.metrics, [*plan.findings, *left_out, *said], curves=plan.curves)
    own: set[str] = set()
    for split, kept in counts.splits.items():
        for name, score in kept.scores.items():
            found.add(part_of(split, name, kept, plan.how))
            own |= {name} if score.own else set()
    given = scan.chosen.correct is not None or scan.chosen.loss is not None
    label = "own" if plan.loss is None and given else loss_name(plan.loss, ())
    return found.evaluation(label, frozenset(own))


def _left_out(skipped: tuple[Skipped, ...], rows: int) -> Finding:
    """Say how much was left out, and where the first of it is."""
    lost = sum(s.rows for s in skipped if s.rows > 0)
    files = sum(s.rows < 0 for s in skipped)
    parts = [f"{lost:,} of {rows + lost:,} rows"] if lost else []
    parts += [f"{files:,} files or blocks that cannot be read"] if files else []
    first = skipped[0]
    where = "" if first.reason.startswith(first.source) else f"{first.source}: "
    said = f"Left out as bad: {' and '.join(parts)}. The first: {where}{first.reason}"
    return Finding.warning("skipped", said)
