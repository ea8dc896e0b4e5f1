"""Write the first page of a benchmark report, with its main conclusions."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from abstain.evaluation.comparison import MeanRanks, RelationToBest
from abstain.plots import SeriesDisplay
from abstain.plots.formatting import capitalize_first, format_percent
from abstain.report import document as doc
from abstain.report.formatting import format_count, join_quoted, short_title
from abstain.report.images import SampleImages
from abstain_bench.data.images import KINDS
from abstain_bench.pages.benchmark.grids import curve_series, figure, method_link
from abstain_bench.pages.benchmark.leaderboard import Grid, Leaderboard, kind_title
from abstain_bench.pages.benchmark.pictures import example_image
from abstain_bench.runs.studies import Study

#: Number of methods in the table of the best methods.
_N_ROWS: Final = 5
#: Coverage at which the sentences state error rates.
_COVERAGE: Final = 0.8

_CURVE: Final = (
    "Each line is one source of failures. The coverage increases from left to right, and the most "
    "confident answers are accepted first. Lower lines are better: fewer accepted answers are "
    "wrong."
)


def best_method(board: Leaderboard) -> str:
    """Return the method with the best mean rank, according to the first metric.

    If there are no mean ranks, the result is the best method of the first study, or the baseline.
    """
    means = _mean_ranks(board)
    if means:
        return min(means, key=lambda name: means[name])
    studies = board.results.headline
    ranked_methods = board.order(studies[0]) if studies else []
    return ranked_methods[0] if ranked_methods else board.baseline


def _mean_ranks(board: Leaderboard) -> dict[str, float]:
    """Return the mean rank of each method, according to the first metric."""
    return board.mean_rank_by_method(board.metrics[0]) if board.metrics else {}


def summary_sentences(board: Leaderboard) -> tuple[str, ...]:
    """Return up to four sentences about the best method, its mean rank and its error rates."""
    best = best_method(board)
    sentences = (*_best_method_sentences(board, best), _error_rate_sentence(board, best))
    return tuple(filter(None, sentences))


def front_context(board: Leaderboard) -> tuple[str, ...]:
    """Return the numbers of methods and of failure sources as two texts."""
    results = board.results
    return (
        f"{format_count(len(results.methods))} confidence scores",
        f"{format_count(len(results.headline))} sources of failures",
    )


def _best_method_sentences(board: Leaderboard, best: str) -> Iterator[str]:
    """Yield sentences about the best mean rank, the number of wins and the significance."""
    means = _mean_ranks(board)
    if best not in means:
        return
    grid = board.grid(board.metrics[0])
    wins = _count_wins(grid, grid.studies)
    yield f"“{best}” has the best mean rank: {means[best]:.2f} of {len(means)}."
    yield f"It is the best method in {wins[best]} of {len(grid.studies)} studies."
    yield _first_rank_sentence(board)


def _first_rank_sentence(board: Leaderboard) -> str:
    """State whether the best mean rank over several studies is significantly the best."""
    mean_ranks = board.mean_ranks(board.metrics[0])
    if mean_ranks is None or mean_ranks.blocks < 2:
        return ""
    n_others = len(mean_ranks.methods) - 1
    n_similar = len(_methods_similar_to_first(mean_ranks))
    if not n_similar:
        return f"It is significantly better than all {n_others} others (Nemenyi's test)."
    return (
        f"Its first rank is not certain: by Nemenyi's test, {n_similar} of {n_others} others are "
        f"not significantly different, so its rank is between 1 and {1 + n_similar}."
    )


def _error_rate_sentence(board: Leaderboard, best: str) -> str:
    """Compare the error rates at 80% coverage without shift and under each shift."""
    risk_by_study = {study.name: risk for study, risk in _risks(board, best)}
    iid_study = next((study.name for study in board.results.headline if study.kind == "iid"), None)
    shift_risks = [risk for name, risk in risk_by_study.items() if name != iid_study]
    if iid_study not in risk_by_study or not shift_risks:
        return ""
    low = format_percent(round(min(shift_risks), 2))
    high = format_percent(round(max(shift_risks), 2))
    risk_range = low if low == high else f"{low} to {high}"
    iid_risk = format_percent(round(risk_by_study[iid_study], 2))
    return (
        f"At {format_percent(_COVERAGE)} coverage, {iid_risk} of its accepted answers are wrong on "
        f"images from the training distribution, and {risk_range} for the other sources of "
        "failures."
    )


def _risks(board: Leaderboard, method: str) -> Iterator[tuple[Study, float]]:
    """Yield each study that has a curve of the method, with the selective risk at `_COVERAGE`."""
    for study in board.results.headline:
        curve = board.results.curves.get((study.name, method))
        if curve is not None and len(curve.coverage):
            yield study, float(np.interp(_COVERAGE, curve.coverage, curve.selective_risk))


def front_blocks(board: Leaderboard, images: SampleImages | None) -> Iterator[doc.Block]:
    """Yield example images, the curves of the best method, and a table of the best methods."""
    if not board.metrics:
        return
    if images is not None:
        yield from _example_images(board.results.headline, images)
    best = best_method(board)
    about = f"Method “{best}”. {_CURVE}"
    figures = figure(_curve(board, best), "front", "Error rate of accepted answers", about)
    yield doc.Box((*figures, _best_methods_table(board)), "side")


def front_curve(board: Leaderboard) -> Iterator[doc.Figure]:
    """Yield the figure of the risk-coverage curves of the best method."""
    display = _curve(board, best_method(board))
    yield from figure(display, "front", "Error rate of accepted answers", _CURVE)


def _example_images(studies: Sequence[Study], images: SampleImages) -> Iterator[doc.Block]:
    """Yield the available example images of each study, or the reason why there are none."""
    thumbnails = []
    for study in studies:
        source = images.sources.get(example_image(study))
        if source:
            name = kind_title("iid") if study.kind == "iid" else capitalize_first(study.title)
            alternative_text = f"An image of {KINDS.get(study.kind, study.kind)}"
            thumbnails.append(doc.Thumbnail(source, alternative_text, name, "", ""))
    if thumbnails:
        yield doc.Thumbnails("", tuple(thumbnails), layout="strip", role="interactive")
    elif images.reason:
        reason = f"Example images are not available: {images.reason.rstrip('.')}."
        yield doc.Prose(reason, "about", role="interactive")


def _curve(board: Leaderboard, method: str) -> SeriesDisplay | None:
    """Return the risk-coverage curve of a method for the first study of each kind of shift."""
    first_studies: dict[str, Study] = {}
    for study in board.results.headline:
        first_studies.setdefault(kind_title(study.kind), study)
    curves = {
        f"{title}: {study.title}": board.results.curves.get((study.name, method))
        for title, study in first_studies.items()
    }
    series = curve_series(curves)
    if not series:
        return None
    return SeriesDisplay(
        series,
        f"Error rate of accepted answers, {method}",
        "Coverage: share of accepted answers",
        "Share of wrong answers among the accepted",
        log_x=False,
    )


def _best_methods_table(board: Leaderboard) -> doc.Table:
    """Return a table of the methods with the best mean ranks, according to the first metric."""
    metric = board.metrics[0]
    grid = board.grid(metric)
    means = board.mean_rank_by_method(metric)
    methods = {method.name: method for method in grid.methods}
    order = sorted(means, key=lambda name: means[name]) or list(methods)
    wins = _count_wins(grid, grid.studies)
    rows: list[tuple[doc.Cell, ...]] = [
        (
            method_link(board, methods[name]),
            methods[name].title,
            doc.Number(means.get(name, doc.NAN), number_format="two_decimals"),
            doc.Number(wins[name], number_format="count"),
        )
        for name in order[:_N_ROWS]
        if name in methods
    ]
    title = f"The best {len(rows)} of {len(grid.methods)} by mean rank"
    return doc.Table(
        (
            doc.METHOD_COLUMN,
            doc.Column("Description", "words"),
            doc.number_column("Mean rank"),
            doc.number_column("Studies with best value"),
        ),
        doc.single_group(rows),
        title=title,
        caption=f"{title} over {len(grid.studies)} sources of failures, by {short_title(metric)}.",
        layout="leads",
    )


def _count_wins(grid: Grid, studies: Sequence[Study]) -> Counter[str]:
    """Count the studies in which each method has the best value."""
    return Counter(name for study in studies for name in grid.methods_with_relation(study))


#: Phrase that a sentence uses for each kind of study.
_PHRASES: Final = {
    "iid": "on i.i.d. data",
    "corruption": "under corruption",
    "sub-class": "under sub-class shift",
    "new-class": "with semantically new classes",
    "far-new-class": "with far new classes",
}


def verdict_of(board: Leaderboard) -> tuple[str, ...]:
    """Return sentences about the best methods for each failure source and about the baseline."""
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
    """For each kind of study, name the methods that are best in the most studies."""
    kinds = dict.fromkeys(study.kind for study in grid.studies)
    clauses = list(filter(None, (_best_methods_of_kind(grid, kind) for kind in kinds)))
    if not clauses:
        return f"No method is best: {grid.label.text} is equal for all methods."
    return f"By {grid.label.text}, {'; '.join(clauses)}."


def _best_methods_of_kind(grid: Grid, kind: str) -> str:
    """Name the methods that are best in the most studies of one kind, with significance."""
    studies = [study for study in grid.studies if study.kind == kind]
    wins = _count_wins(grid, studies)
    if not wins:
        return ""
    max_wins = max(wins.values())
    names = [name for name, count in wins.items() if count == max_wins]
    phrase = _PHRASES.get(kind, f"on {KINDS.get(kind, kind)}")
    verb = "is" if len(names) == 1 else "are"
    clause = f"{phrase} {join_quoted(names)} {verb} best"
    if len(studies) == 1:
        return f"{clause}{_significance_in_study(grid, studies[0])}"
    each = " each" if len(names) > 1 else ""
    significance = _significance_in_studies(grid, studies)
    return f"{clause} in {max_wins} of {len(studies)} studies{each}{significance}"


def _significance_in_studies(grid: Grid, studies: Sequence[Study]) -> str:
    """Count the studies in which the best method is significantly better than all other methods."""
    if not any(map(grid.is_tested, studies)):
        return " (not tested)"
    n_significant = sum(_has_significant_winner(grid, study) for study in studies)
    return f" (significantly better than all others in {n_significant or 'none'} of them)"


def _has_significant_winner(grid: Grid, study: Study) -> bool:
    """Return whether a single method is significantly better than all others in a study."""
    not_worse: tuple[RelationToBest, ...] = ("not told apart", "untested", "undefined")
    return len(grid.methods_with_relation(study)) == 1 and not any(
        grid.methods_with_relation(study, relation) for relation in not_worse
    )


def _significance_in_study(grid: Grid, study: Study) -> str:
    """Count, in parentheses, the methods that are not significantly different from the best."""
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
    """Name the studies in which the baseline is best or not significantly worse than the best."""
    entries = [(study, grid.column(study).get(name)) for study in grid.studies]
    relations = [(study, entry.relation_to_best) for study, entry in entries if entry]
    n_defined = sum(relation != "undefined" for _, relation in relations)
    if not n_defined:
        return []
    best = [study for study, relation in relations if relation == "best"]
    sentence = f"The baseline “{name}” is best {_studies_text(best, n_defined)}"
    if not any(map(grid.is_tested, grid.studies)):
        return [f"{sentence}; differences were not tested."]
    if len(best) == n_defined:
        return [f"{sentence}."]
    similar = [study for study, relation in relations if relation == "not told apart"]
    if similar:
        studies_text = _studies_text(similar, n_defined)
        return [f"{sentence} and not significantly different from the best {studies_text}."]
    studies_text = "all other tested studies" if best else "all tested studies"
    return [f"{sentence} and significantly worse than the best in {studies_text}."]


def _studies_text(studies: Sequence[Study], n_studies: int) -> str:
    """Return text that states for how many of the studies a statement is true."""
    if not studies:
        return "in no study"
    if len(studies) == n_studies:
        return f"in all {n_studies} studies" if n_studies > 1 else "in the only study"
    titles = join_quoted([study.title for study in studies])
    return f"in {len(studies)} of {n_studies} studies ({titles})"


def _mean_rank_sentence(board: Leaderboard) -> list[str]:
    """Name the method with the best mean rank for each metric, and state the significance."""
    mean_ranks = board.mean_ranks(board.metrics[0])
    clauses = ", ".join(_best_mean_rank_clauses(board))
    if mean_ranks is None or not clauses:
        return []
    note = f" {capitalize_first(mean_ranks.note).rstrip('.')}." if mean_ranks.note else ""
    scope = f"Over {mean_ranks.blocks} studies" if mean_ranks.blocks > 1 else "In one study"
    return [f"{scope} {clauses}{_similar_methods(mean_ranks)}.{note}"]


def _best_mean_rank_clauses(board: Leaderboard) -> Iterator[str]:
    """Yield a clause for each method that has the best mean rank for at least one metric."""
    ranks_by_methods: dict[tuple[str, ...], list[str]] = {}
    for metric in board.metrics:
        means = board.mean_rank_by_method(metric)
        best_rank = min(means.values(), default=math.nan)
        best = tuple(name for name, rank in means.items() if rank == best_rank)
        if best:
            rank_text = f"{short_title(metric)} ({best_rank:.2f})"
            ranks_by_methods.setdefault(best, []).append(rank_text)
    for names, ranks in ranks_by_methods.items():
        verb = "has" if len(names) == 1 else "have"
        yield f"{join_quoted(names)} {verb} the best mean rank by {' and '.join(ranks)}"


def _similar_methods(mean_ranks: MeanRanks) -> str:
    """Count the methods whose mean ranks are not significantly different from the best."""
    n_similar = len(_methods_similar_to_first(mean_ranks))
    if not n_similar:
        return ""
    n_others = len(mean_ranks.methods) - 1
    count_text = f"{n_similar} of {n_others} others are not significantly different"
    return f"; {count_text} by {short_title(mean_ranks.metric)} (Nemenyi's test)"


def _methods_similar_to_first(mean_ranks: MeanRanks) -> set[str]:
    """Return the methods whose mean ranks are not significantly different from the best."""
    means = dict(zip(mean_ranks.methods, mean_ranks.mean_ranks, strict=True))
    first = min(means, key=lambda name: means[name], default="")
    return {name for clique in mean_ranks.cliques if first in clique for name in clique} - {first}
