"""Check the printed tables of the four papers against each other."""

from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any, Final

from abstain._foundation.notes import Note
from abstain.plots.agreement import AgreementDisplay, Pair
from abstain_bench.published import PublishedTable, table, tables
from abstain_bench.studies._display import Row, group_rows, total, unique_values
from abstain_bench.studies._study import StudyEntry, StudyResult, timed
from abstain_bench.studies.published import recomputed
from abstain_bench.studies.published.contradictions import (
    find_contradictions,
    find_impossible_numbers,
)

#: Relative differences up to which a computed number counts as equal to the printed one.
_TOLERANCE, _WIDE_TOLERANCE = 0.03, 0.10


@timed
def study_published() -> StudyResult:
    """Check the printed numbers of the four papers against each other.

    The study answers the questions: do the printed ranks agree with the printed numbers, how
    similar are the rankings by AURC and AUGRC, which numbers follow from others, and which are
    wrong?

    Returns
    -------
    StudyResult
        Tables "results" (every computed number: check, table, column, method, quantity, value),
        "ranks" (recomputed ranks by pair of tables), "changes" (Kendall's tau of the ranks by AURC
        and by AUGRC on each data set and study), "relations" (numbers that follow from others),
        "contradictions" (violations of rules that the other cells satisfy) and "tables" (the tables
        of `abstain_bench.published`); figures "tau" and "formula".

    Notes
    -----
    The study is deterministic and has no options. It uses the packaged tables only. Ranks are
    minimum ranks, as in the papers. A printed rank is possible if it is the rank for some order of
    the numbers that are tied after rounding. Cost: under a second.

    References
    ----------
    .. [1] Jaeger et al. (2023), tables 1, 9, 11 and 13, https://arxiv.org/abs/2211.15259
    .. [2] Traub et al. (2024), eq. 7, tables 3 and 4, https://arxiv.org/abs/2407.01032

    .. rubric:: Captions

    ranks
        Printed: numbers in the first table. Equal as printed: number of their ranks that equal the
        ranks in the second table. Ranks, equal, possible: after the common methods of both tables
        are ranked again; possible: a rank for some order of the numbers that are tied after
        rounding. Reversed: pairs of methods in the opposite order, among those without ties. Ranks
        of two papers differ in the selection of hyperparameters.
    changes
        Hyperparameters selected by each metric. Tau of one choice: selected by AUGRC for both.
    relations
        Difference: computed minus printed, or other table minus this table.
    contradictions
        Violations of rules that the other cells of the table satisfy.
    tables
        `abstain_bench.published.table(NAME)` returns a table. Doubtful: cells with doubts.
    tau
        One point for each study. Above the line, the rankings are more similar if both metrics use
        the same hyperparameters.
    formula
        Numbers for corruptions are means over severities, to which the formula does not apply
        exactly.

    .. rubric:: Glossary

    Rank
        1 is best; tied methods have the lowest rank of the tie.
    Tau
        Kendall's tau-b: 1 for the same order, 0 for unrelated orders, -1 for the reverse.
    Part
        Block of a printed table. For the ranks of Traub et al.: the metric that selects the
        hyperparameters.
    Study
        iid; cor (corruptions); sub (new sub-classes of known classes); s-ncs, ns-ncs (semantic and
        non-semantic new classes).

    Examples
    --------
    >>> result = study_published()
    >>> for row in result.rows("ranks")[:2]:
    ...     print(row["against"], row["equal"], row["possible"], row["ranks"], row["reversed"])
    fd_shifts_table_11 482 483 483 0
    fd_shifts_table_13 196 231 231 0
    """
    ranks = list(recomputed.recompute_ranks())
    ranks_of_papers = list(recomputed.compare_papers())
    metric_ranks = list(recomputed.compare_metrics())
    areas = list(recomputed.recompute_areas())
    accuracies = list(recomputed.recompute_accuracies())
    repeated = list(recomputed.compare_repeated_numbers())
    contradictions = [*find_contradictions(), *find_impossible_numbers()]
    checks = {
        "ranks": ranks,
        "ranks of two papers": ranks_of_papers,
        "two metrics": metric_ranks,
        "area from others": areas,
        "accuracy from others": accuracies,
        "printed twice": repeated,
    }
    rank_summary = [*_summarize_ranks(ranks), *_summarize_ranks(ranks_of_papers)]
    return PUBLISHED.result(
        parameters={"tables": len(tables()), "cells": sum(len(table(name)) for name in tables())},
        tables={
            "results": [row for check, rows in checks.items() for row in _long_rows(check, rows)],
            "ranks": rank_summary,
            "changes": list(_rank_changes(metric_ranks)),
            "relations": [
                *_summarize_areas(areas),
                _summarize_accuracies(accuracies),
                *_summarize_repeated(repeated),
            ],
            "contradictions": contradictions,
            "tables": list(_list_tables()),
        },
        figures=_figures(metric_ranks, areas),
        notes=tuple(_notes(metric_ranks)),
        verdict=tuple(_conclusions(rank_summary, ranks, metric_ranks, areas, contradictions)),
        main_tables=("ranks", "changes", "contradictions"),
        labels={name: _table_label(entry) for name, entry in tables().items()},
    )


def _table_label(entry: PublishedTable) -> str:
    """Return the first author and the number of a table."""
    if not entry.number:
        return entry.title
    first_author = entry.cited.partition(" ")[0]
    return f"{first_author}, table {entry.number}"


#: Columns that identify a number. All other columns of a row contain computed numbers.
_KEYS: Final = ("table", "against", "part", "classifier", "dataset", "study", "method")


def _long_rows(check: str, rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Yield one row for each computed number."""
    for row in rows:
        keys = {"check": check, **{key: row.get(key, "") for key in _KEYS}}
        for quantity, value in row.items():
            if isinstance(value, int | float):
                yield {**keys, "quantity": quantity, "value": float(value)}


# ------------------------------------------------------------------------------- summaries
def _summarize_ranks(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Add up the columns of each pair of tables and part."""
    counts = ("printed", "equal_as_printed", "ranks", "equal", "possible", "pairs", "reversed")
    keys = ("table", "against", "part")
    for values, group in group_rows(rows, *keys).items():
        sums = {name: sum(r[name] for r in group) if name in group[0] else None for name in counts}
        yield {**dict(zip(keys, values, strict=True)), "columns": len(group), **sums}


def _rank_changes(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Yield tau of each column, with separate and with common hyperparameters."""
    separate, common = group_rows(rows, "part").values()
    tau_with_common = {(row["dataset"], row["study"]): row["tau"] for row in common}
    columns = ("dataset", "study", "tau", "pairs", "reversed", "best_by_AURC", "best_by_AUGRC")
    for row in separate:
        yield {
            **{column: row[column] for column in columns},
            "tau_of_one_choice": tau_with_common[row["dataset"], row["study"]],
        }


def _summarize_differences(
    relation: str, study: str, relative: Sequence[float], absolute: Sequence[float]
) -> dict[str, Any]:
    return {
        "relation": relation,
        "study": study,
        "cells": len(relative),
        "median_relative_difference": median(relative),
        f"within_{_TOLERANCE:.0%}": _share_within(relative, _TOLERANCE),
        f"within_{_WIDE_TOLERANCE:.0%}": _share_within(relative, _WIDE_TOLERANCE),
        "largest_difference": max(abs(difference) for difference in absolute),
    }


def _share_within(differences: Sequence[float], tolerance: float) -> float:
    return sum(abs(difference) <= tolerance for difference in differences) / len(differences)


def _summarize_areas(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Yield the differences for each kind of study, and for all studies."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["study"].partition(":")[0], []).append(row)
    for kind, group in {**groups, "all": list(rows)}.items():
        yield _summarize_differences(
            "AUGRC from accuracy and failure AUROC",
            kind,
            [row["relative_difference"] for row in group],
            [row["computed"] - row["printed"] for row in group],
        )


def _summarize_accuracies(rows: Sequence[Row]) -> dict[str, Any]:
    return _summarize_differences(
        "accuracy with new classes from the i.i.d. accuracy",
        "new classes",
        [row["computed"] / row["printed"] - 1 for row in rows],
        [row["difference"] for row in rows],
    )


def _summarize_repeated(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    for name, group in group_rows(rows, "table").items():
        yield _summarize_differences(
            f"{name} repeats numbers of other tables",
            ", ".join(unique_values(group, "study")),
            [row["other_printed"] / row["printed"] - 1 for row in group],
            [row["other_printed"] - row["printed"] for row in group],
        )


def _list_tables() -> Iterator[dict[str, Any]]:
    for name, entry in tables().items():
        cells = table(name)
        yield {
            "table": name,
            "source": entry.source,
            "title": entry.title,
            "scale": entry.scale,
            "cells": len(cells),
            "doubtful": sum(bool(cell["doubt"]) for cell in cells),
            "doubts": " ".join(doubt.text for doubt in entry.doubts),
        }


# --------------------------------------------------------------------------------- figures
def _figures(metric_ranks: Sequence[Row], areas: Sequence[Row]) -> dict[str, Any]:
    separate, common = group_rows(metric_ranks, "part").values()
    tau_with_common = {(row["dataset"], row["study"]): row["tau"] for row in common}
    tau_pairs = tuple(
        Pair(
            f"{row['dataset']} {row['study']}",
            row["dataset"],
            row["tau"],
            tau_with_common[row["dataset"], row["study"]],
        )
        for row in separate
    )
    area_pairs = tuple(
        Pair(
            f"{row['dataset']} {row['study']}, {row['method']}",
            row["dataset"],
            row["printed"],
            row["computed"],
        )
        for row in areas
    )
    return {
        "tau": AgreementDisplay(
            tau_pairs,
            "Kendall's tau of the ranks by AURC and by AUGRC",
            "Hyperparameters selected by each metric",
            "Selected by AUGRC for both",
        ),
        "formula": AgreementDisplay(
            area_pairs,
            "AUGRC computed from accuracy and failure AUROC",
            "AUGRC as printed by Traub et al.",
            "(computed - printed) / printed",
            is_relative_difference=True,
        ),
    }


# ------------------------------------------------------------------------------ conclusions
def _notes(metric_ranks: Sequence[Row]) -> Iterator[str | Note]:
    yield (
        "Printed values are rounded. Two printed values count as equal if they differ by at most "
        "one unit of the last digit."
    )
    if invalid := recomputed.invalid_rank_columns():
        columns = ", ".join(f"{name} {column.title}" for name, _, column in invalid)
        text = f"the printed ranks in {columns} are not minimum ranks of any numbers."
        yield Note.warning("invalid_ranks", text)
    else:
        yield "Every column of printed ranks consists of valid minimum ranks, ties included."
    n_pairs = [row["pairs"] for row in metric_ranks]
    yield (
        f"Kendall's tau is computed from {min(n_pairs)} to {max(n_pairs)} pairs of methods that "
        "neither metric ties, with a correction for ties."
    )


def _conclusions(
    rank_summary: Sequence[Row],
    ranks: Sequence[Row],
    metric_ranks: Sequence[Row],
    areas: Sequence[Row],
    contradictions: Sequence[Row],
) -> Iterator[str]:
    reranked = [row for row in rank_summary if row["ranks"] is not None]
    n_reversed = total(reranked, "reversed")
    agreement = "do not all agree" if n_reversed else "agree"
    yield (
        f"The printed ranks {agreement} with the printed numbers: {n_reversed} of "
        f"{total(reranked, 'pairs')} pairs of methods without ties have the opposite order."
    )
    yield from _explain_printed_ranks(rank_summary, ranks)
    yield (
        "After the common methods of both tables are ranked again, with ties as printed, "
        f"{', '.join(map(_equal_ranks, reranked))} are equal. {total(reranked, 'possible')} "
        f"of {total(reranked, 'ranks')} ranks are possible for the numbers before rounding."
    )
    yield from _conclude_metric_ranks(metric_ranks)
    differences = [row["relative_difference"] for row in areas]
    yield (
        "AUGRC follows from accuracy and failure AUROC (Traub et al. 2024, eq. 7), although these "
        f"are from another paper: of {len(areas)} cells, "
        f"{_share_within(differences, _TOLERANCE):.0%} differ by at most {_TOLERANCE:.0%} and "
        f"{_share_within(differences, _WIDE_TOLERANCE):.1%} by at most {_WIDE_TOLERANCE:.0%}."
    )
    n_by_paper = Counter(row["source"].partition(",")[0] for row in contradictions)
    if n_by_paper:
        counts = ", ".join(f"{count} in {paper}" for paper, count in n_by_paper.items())
        yield (
            f"{sum(n_by_paper.values())} findings are contradictions or numbers of other runs: "
            f"{counts}."
        )


def _explain_printed_ranks(rank_summary: Sequence[Row], ranks: Sequence[Row]) -> Iterator[str]:
    """Explain the printed ranks that are equal only after ranking the common methods again."""
    unmatched_by_tables = {(row["table"], row["against"]): row["unmatched"] for row in ranks}
    sentences = []
    for row in rank_summary:
        unmatched = unmatched_by_tables.get((row["table"], row["against"]))
        if not unmatched:
            continue
        numbers_source, ranks_source = (tables()[row[key]].source for key in ("table", "against"))
        sentences.append(
            f"As printed, {row['equal_as_printed']} of {row['printed']} ranks of {ranks_source} "
            f"equal those of {numbers_source}. Their methods differ: the ranks include "
            f"{unmatched[1]} instead of {unmatched[0]}, and no number of {unmatched[1]} is "
            f"printed. If the {row['ranks'] // row['columns']} common methods are ranked again, "
            f"{row['equal']} of {row['ranks']} ranks are equal."
        )
    yield from dict.fromkeys(sentences)


def _equal_ranks(row: Row) -> str:
    part = f" ({row['part']})" if row["part"] else ""
    return f"{row['equal']} of {row['ranks']} in {tables()[row['against']].source}{part}"


def _conclude_metric_ranks(metric_ranks: Sequence[Row]) -> Iterator[str]:
    for part, group in group_rows(metric_ranks, "part").items():
        lowest = min(group, key=lambda row: row["tau"])
        n_different_best = sum(row["best_by_AURC"] != row["best_by_AUGRC"] for row in group)
        yield (
            f"With hyperparameters selected {part}, the median Kendall's tau between the rankings "
            f"by AURC and AUGRC is {median(row['tau'] for row in group):.2f} over {len(group)} "
            f"studies, and the smallest {lowest['tau']:.2f} ({lowest['dataset']} "
            f"{lowest['study']}). The best methods differ in {n_different_best} of them."
        )


#: The study in the catalogue.
PUBLISHED: Final = StudyEntry(
    name="published",
    title="Consistency of the published tables",
    question=(
        "Do the printed ranks agree with the printed numbers, how similar are the rankings of the "
        "published methods by AURC and AUGRC, and which numbers of the four papers are wrong?"
    ),
    source="Traub et al. (2024), tables 3 and 4, https://arxiv.org/abs/2407.01032",
    run=study_published,
)
