"""What a benchmark cost: seconds by stage and by score."""

from collections.abc import Iterator, Sequence
from typing import Final

from abstain.report import document as doc
from abstain_bench.pages.benchmark.grids import TOP, back, wide_table
from abstain_bench.runs.costs import Cost, CostRow, by_score, by_stage

_LEAD: Final = (
    "Seconds that the jobs of the run measured, all of them together: several at a time take less "
    "of the clock. Pictures are made once by each process, and a network is asked once for all "
    "scores, so that scores have no seconds of passes."
)


def costs_section(costs: Sequence[Cost]) -> Iterator[doc.Section]:
    """Return what each stage took, and each score; nothing where nothing was run."""
    if not costs:
        return
    stages = _table("What each stage took", ("Stage", "Part"), by_stage(costs))
    scores = by_score(costs)
    title = "What each score took, fitted and computed"
    folds = [doc.Fold(title, (_table(title, ("Score",), scores),))] if scores else []
    blocks = (doc.Prose(_LEAD, "lead"), stages, *folds, back(TOP))
    yield doc.Section("costs", "What it cost", blocks, nav="Costs")


def _table(title: str, heads: Sequence[str], rows: Sequence[CostRow]) -> doc.Table:
    columns = (*map(doc.Column, heads), *map(doc.numbers, ("Jobs", "Seconds", "Share")))
    return wide_table(title, columns, map(_cells, rows))


def _cells(row: CostRow) -> list[doc.Cell]:
    return [
        *row.words,
        doc.Number(row.jobs, form="count"),
        doc.Number(row.seconds, said=f"{row.seconds:.1f}"),
        doc.Number(row.share, said=f"{row.share:.1%}"),
    ]
