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
_PHRASES: Final = {
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
    return (
        *_mean_rank_sentence(board),
        best_methods_sentence(grid),
        *baseline_sentences(grid, board.baseline),
    )


def best_methods_sentence(grid: Grid) -> str:
    """Describe the best methods for each kind of study."""
    kinds = dict.fromkeys(study.kind for study in grid.studies)
    clauses = [clause for kind in kinds if (clause := _best_methods_of_kind(grid, kind))]
    if not clauses:
        return f"No method is best: {grid.label.text} is equal for all methods."
    return f"By {grid.label.text}, {'; '.join(clauses)}."


def _best_methods_of_kind(grid: Grid, kind: str) -> str:
    studies = [study for study in grid.studies if study.kind == kind]
    phrase = _PHRASES.get(kind, f"on {KINDS.get(kind, kind)}")
    wins = Counter(name for study in studies for name in grid.methods_with_relation(study))
    if not wins:
        return ""
    max_wins = max(wins.values())
    names = [name for name, count in wins.items() if count == max_wins]
    clause = f"{phrase} {join_quoted(names)} {'is' if len(names) == 1 else 'are'} best"
    if len(studies) == 1:
        return f"{clause}{_significance_in_study(grid, studies[0])}"
    each = " each" if len(names) > 1 else ""
    significance = _significance_in_studies(grid, studies)
    return f"{clause} in {max_wins} of {len(studies)} studies{each}{significance}"


def _significance_in_studies(grid: Grid, studies: Sequence[Study]) -> str:
    """State in how many studies the best method is significantly better than all others."""
    if not any(map(grid.is_tested, studies)):
        return " (not tested)"
    not_worse: tuple[RelationToBest, ...] = ("not told apart", "untested", "undefined")
    n_significant = sum(
        len(grid.methods_with_relation(study)) == 1
        and not any(grid.methods_with_relation(study, relation) for relation in not_worse)
        for study in studies
    )
    return f" (significantly better than all others in {n_significant or 'none'} of them)"


def _significance_in_study(grid: Grid, study: Study) -> str:
    if not grid.is_tested(study):
        return " (not tested)"
    similar = grid.methods_with_relation(study, "not told apart")
    if not similar:
        return ""
    n_others = len(grid.column(study)) - len(grid.methods_with_relation(study))
    if len(similar) == n_others:
        return f" (none of {n_others} others is significantly different)"
    return f" ({len(similar)} of {n_others} others are not significantly different)"


def baseline_sentences(grid: Grid, name: str) -> list[str]:
    """Describe where the baseline is best or not significantly different from the best."""
    columns = [(study, grid.column(study).get(name)) for study in grid.studies]
    defined = [
        (study, entry)
        for study, entry in columns
        if entry and entry.relation_to_best != "undefined"
    ]
    if not defined:
        return []
    best, similar = (
        [study for study, entry in defined if entry.relation_to_best == relation]
        for relation in ("best", "not told apart")
    )
    sentence = f"The baseline “{name}” is best {_studies_text(best, len(defined))}"
    if not any(map(grid.is_tested, grid.studies)):
        return [f"{sentence}; differences were not tested."]
    if len(best) == len(defined):
        return [f"{sentence}."]
    if similar:
        studies_text = _studies_text(similar, len(defined))
        return [f"{sentence} and not significantly different from the best {studies_text}."]
    studies_text = "all other tested studies" if best else "all tested studies"
    return [f"{sentence} and significantly worse than the best in {studies_text}."]


def _studies_text(studies: Sequence[Study], n_studies: int) -> str:
    if not studies:
        return "in no study"
    if len(studies) == n_studies:
        return f"in all {n_studies} studies" if n_studies > 1 else "in the only study"
    return f"in {len(studies)} of {n_studies} studies ({join_quoted([s.title for s in studies])})"


def _mean_rank_sentence(board: Leaderboard) -> list[str]:
    """Describe the best mean rank by each metric and its significance."""
    ranks_by_methods: dict[str, list[str]] = {}
    for metric in board.metrics:
        means = board.mean_rank_by_method(metric)
        best = [name for name, rank in means.items() if rank == min(means.values())]
        if best:
            rank = f"{short_title(metric)} ({means[best[0]]:.2f})"
            ranks_by_methods.setdefault(
                f"{join_quoted(best)} {'has' if len(best) == 1 else 'have'}", []
            ).append(rank)
    across = board.mean_ranks(board.metrics[0])
    if across is None or not ranks_by_methods:
        return []
    clauses = [
        f"{methods} the best mean rank by {' and '.join(ranks)}"
        for methods, ranks in ranks_by_methods.items()
    ]
    note = f" {capitalize_first(across.note).rstrip('.')}." if across.note else ""
    scope = f"Over {across.blocks} studies" if across.blocks > 1 else "In one study"
    return [f"{scope} {', '.join(clauses)}{_similar_methods(across)}.{note}"]


def _similar_methods(across: MeanRanks) -> str:
    """State how many methods are not significantly different from the first over all studies."""
    means = dict(zip(across.methods, across.mean_ranks, strict=True))
    first = min(means, key=lambda name: means[name], default="")
    similar = {name for clique in across.cliques if first in clique for name in clique} - {first}
    if not similar:
        return ""
    count_text = f"{len(similar)} of {len(means) - 1} others are not significantly different"
    return f"; {count_text} by {short_title(across.metric)} (Nemenyi's test)"
