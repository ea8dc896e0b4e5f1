"""What a benchmark found, in plain sentences: who leads where, and where a baseline is enough."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from abstain.evaluation.comparison import MeanRanks, RelationToBest
from abstain.plots.formatting import capitalize_first
from abstain.report.formatting import join_quoted, short_title
from abstain_bench.data.exposures import KINDS
from abstain_bench.pages.benchmark.leaderboard import Grid, Leaderboard
from abstain_bench.runs.studies import Study

#: How a kind of study is said in a sentence.
_ON: Final = {
    "iid": "on i.i.d. data",
    "corruption": "under corruption",
    "sub-class": "under sub-class shift",
    "new-class": "with semantically new classes",
    "far-new-class": "with far new classes",
}


def verdict_of(board: Leaderboard) -> tuple[str, ...]:
    """Say who leads on which source of failures, and where the baseline is not beaten."""
    if not board.metrics:
        return ("No metric was computed.",)
    grid = board.grid(board.metrics[0])
    if len(grid.methods) < 2:
        return (f"Only {len(grid.methods)} method was compared, so nothing leads.",)
    return (*_overall(board), leads_of(grid), *baseline_of(grid, board.baseline))


def leads_of(grid: Grid) -> str:
    """Say for each kind of study who is best."""
    kinds = dict.fromkeys(study.kind for study in grid.studies)
    clauses = [clause for kind in kinds if (clause := _of_kind(grid, kind))]
    if not clauses:
        return f"No method leads: {grid.label.text} tells none from another."
    return f"By {grid.label.text}, {'; '.join(clauses)}."


def _of_kind(grid: Grid, kind: str) -> str:
    studies = [study for study in grid.studies if study.kind == kind]
    on = _ON.get(kind, f"on {KINDS.get(kind, kind)}")
    wins = Counter(name for study in studies for name in grid.standing(study))
    if not wins:
        return ""
    most = max(wins.values())
    names = [name for name, count in wins.items() if count == most]
    lead = f"{on} {join_quoted(names)} {'leads' if len(names) == 1 else 'lead'}"
    if len(studies) == 1:
        return f"{lead}{_alike(grid, studies[0])}"
    each = " each" if len(names) > 1 else ""
    return f"{lead} in {most} of {len(studies)} studies{each}{_alone(grid, studies)}"


def _alone(grid: Grid, studies: Sequence[Study]) -> str:
    """Say in how many studies the lead is more than chance."""
    if not any(map(grid.is_tested, studies)):
        return " (not tested)"
    shared: tuple[RelationToBest, ...] = ("not told apart", "untested", "undefined")
    alone = sum(
        len(grid.standing(study)) == 1 and not any(grid.standing(study, how) for how in shared)
        for study in studies
    )
    return f" (the best can be told from all others in {alone or 'none'} of them)"


def _alike(grid: Grid, study: Study) -> str:
    if not grid.is_tested(study):
        return " (not tested)"
    alike = grid.standing(study, "not told apart")
    if not alike:
        return ""
    others = len(grid.column(study)) - len(grid.standing(study))
    if len(alike) == others:
        return f" (none of {others} others can be told from it)"
    return f" ({len(alike)} of {others} others cannot be told from it)"


def baseline_of(grid: Grid, name: str) -> list[str]:
    """Say where the baseline is best, and where it is not told from the best."""
    columns = [(study, grid.column(study).get(name)) for study in grid.studies]
    known = [(study, entry) for study, entry in columns if entry and entry.stands != "undefined"]
    if not known:
        return []
    best, alike = (
        [study for study, entry in known if entry.stands == how]
        for how in ("best", "not told apart")
    )
    said = f"The baseline “{name}” is best {_in(best, len(known))}"
    if not any(map(grid.is_tested, grid.studies)):
        return [f"{said}; differences were not tested."]
    if len(best) == len(known):
        return [f"{said}."]
    if alike:
        return [f"{said} and cannot be told from the best {_in(alike, len(known))}."]
    where = "wherever else" if best else "wherever"
    return [f"{said} and worse than the best {where} that was tested."]


def _in(studies: Sequence[Study], of: int) -> str:
    if not studies:
        return "in no study"
    if len(studies) == of:
        return f"in all {of} studies" if of > 1 else "in the only study"
    return f"in {len(studies)} of {of} studies ({join_quoted([s.title for s in studies])})"


def _overall(board: Leaderboard) -> list[str]:
    """Say who has the best mean rank by each metric, and whether that may be chance."""
    by: dict[str, list[str]] = {}
    for metric in board.metrics:
        means = board.means(metric)
        best = [name for name, rank in means.items() if rank == min(means.values())]
        if best:
            rank = f"{short_title(metric)} ({means[best[0]]:.2f})"
            by.setdefault(f"{join_quoted(best)} {'has' if len(best) == 1 else 'have'}", []).append(
                rank
            )
    across = board.across(board.metrics[0])
    if across is None or not by:
        return []
    said = [f"{who} the best mean rank by {' and '.join(ranks)}" for who, ranks in by.items()]
    note = f" {capitalize_first(across.note).rstrip('.')}." if across.note else ""
    over = f"Over {across.blocks} studies" if across.blocks > 1 else "In one study"
    return [f"{over} {', '.join(said)}{_near(across)}.{note}"]


def _near(across: MeanRanks) -> str:
    """Say how many methods the test over all studies does not tell from the first."""
    means = dict(zip(across.methods, across.mean_ranks, strict=True))
    first = min(means, key=lambda name: means[name], default="")
    near = {name for clique in across.cliques if first in clique for name in clique} - {first}
    if not near:
        return ""
    others = f"{len(near)} of {len(means) - 1} others cannot be told from it"
    return f"; {others} by {short_title(across.metric)} (Nemenyi's test)"
