"""The conclusions of a benchmark: best methods, and results of the baseline."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from abstain.evaluation.comparison import MeanRanks, RelationToBest
from abstain.plots.formatting import capitalize_first
from abstain.report.formatting import join_quoted, short_title
from abstain_bench.data.exposures import KINDS
from abstain_bench.pages.benchmark.leaderboard import Grid, Leaderboard
from abstain_bench.runs.studies import Study

#: Phrases for the kinds of studies.
_ON: Final = {
    "iid": "on i.i.d. data",
    "corruption": "under corruption",
    "sub-class": "under sub-class shift",
    "new-class": "with semantically new classes",
    "far-new-class": "with far new classes",
}


def verdict_of(board: Leaderboard) -> tuple[str, ...]:
    """Describe the best methods for each source of failures and the results of the baseline."""
    if not board.metrics:
        return ("No metric was computed.",)
    grid = board.grid(board.metrics[0])
    if len(grid.methods) < 2:
        return (f"Only {len(grid.methods)} method was evaluated, so there is no comparison.",)
    return (*_overall(board), leads_of(grid), *baseline_of(grid, board.baseline))


def leads_of(grid: Grid) -> str:
    """Describe the best methods for each kind of study."""
    kinds = dict.fromkeys(study.kind for study in grid.studies)
    clauses = [clause for kind in kinds if (clause := _of_kind(grid, kind))]
    if not clauses:
        return f"No method is best: {grid.label.text} is equal for all methods."
    return f"By {grid.label.text}, {'; '.join(clauses)}."


def _of_kind(grid: Grid, kind: str) -> str:
    studies = [study for study in grid.studies if study.kind == kind]
    on = _ON.get(kind, f"on {KINDS.get(kind, kind)}")
    wins = Counter(name for study in studies for name in grid.standing(study))
    if not wins:
        return ""
    most = max(wins.values())
    names = [name for name, count in wins.items() if count == most]
    lead = f"{on} {join_quoted(names)} {'is' if len(names) == 1 else 'are'} best"
    if len(studies) == 1:
        return f"{lead}{_alike(grid, studies[0])}"
    each = " each" if len(names) > 1 else ""
    return f"{lead} in {most} of {len(studies)} studies{each}{_alone(grid, studies)}"


def _alone(grid: Grid, studies: Sequence[Study]) -> str:
    """State in how many studies the best method is significantly better than all others."""
    if not any(map(grid.is_tested, studies)):
        return " (not tested)"
    shared: tuple[RelationToBest, ...] = ("not told apart", "untested", "undefined")
    alone = sum(
        len(grid.standing(study)) == 1 and not any(grid.standing(study, how) for how in shared)
        for study in studies
    )
    return f" (significantly better than all others in {alone or 'none'} of them)"


def _alike(grid: Grid, study: Study) -> str:
    if not grid.is_tested(study):
        return " (not tested)"
    alike = grid.standing(study, "not told apart")
    if not alike:
        return ""
    others = len(grid.column(study)) - len(grid.standing(study))
    if len(alike) == others:
        return f" (none of {others} others is significantly different)"
    return f" ({len(alike)} of {others} others are not significantly different)"


def baseline_of(grid: Grid, name: str) -> list[str]:
    """Describe where the baseline is best or not significantly different from the best."""
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
        return [f"{said} and not significantly different from the best {_in(alike, len(known))}."]
    where = "all other tested studies" if best else "all tested studies"
    return [f"{said} and significantly worse than the best in {where}."]


def _in(studies: Sequence[Study], of: int) -> str:
    if not studies:
        return "in no study"
    if len(studies) == of:
        return f"in all {of} studies" if of > 1 else "in the only study"
    return f"in {len(studies)} of {of} studies ({join_quoted([s.title for s in studies])})"


def _overall(board: Leaderboard) -> list[str]:
    """Describe the best mean rank by each metric and its significance."""
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
    """State how many methods are not significantly different from the first over all studies."""
    means = dict(zip(across.methods, across.mean_ranks, strict=True))
    first = min(means, key=lambda name: means[name], default="")
    near = {name for clique in across.cliques if first in clique for name in clique} - {first}
    if not near:
        return ""
    others = f"{len(near)} of {len(means) - 1} others are not significantly different"
    return f"; {others} by {short_title(across.metric)} (Nemenyi's test)"
