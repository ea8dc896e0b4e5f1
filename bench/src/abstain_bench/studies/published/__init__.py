"""Check whether the published tables of four papers are consistent."""

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

#: Relative differences for which the study reports the share of smaller differences.
_TOLERANCE = 0.03
_WIDE_TOLERANCE = 0.10


@timed
def study_published() -> StudyResult:
    """Check whether the published numbers of four papers are consistent.

    The study answers four questions. Do the printed ranks agree with the printed numbers? How
    similar are the rankings by AURC and AUGRC? Which numbers can be computed from other numbers?
    Which numbers are wrong?

    Returns
    -------
    StudyResult
        Tables "results" (all computed numbers), "ranks" (recomputed ranks by pair of tables),
        "changes" (Kendall's tau between the ranks by AURC and by AUGRC), "relations" (numbers that
        are computed from other numbers), "contradictions" and "tables" (the tables of
        `abstain_bench.published`); figures "tau" and "formula".

    Notes
    -----
    The study has no options and uses only packaged tables, so its result is always the same. Tied
    methods share the lowest of their ranks, as in the papers. Rounded numbers may be tied even if
    the original numbers are different. A published rank is possible if some order of the tied
    methods yields this rank. The study takes less than a second.

    References
    ----------
    .. [1] Jaeger et al. (2023), tables 1, 9, 11 and 13, https://arxiv.org/abs/2211.15259
    .. [2] Traub et al. (2024), eq. 7, tables 3 and 4, https://arxiv.org/abs/2407.01032

    .. rubric:: Captions

    ranks
        The column "printed" contains the number of values in the first table. The column
        "equal_as_printed" counts the values whose rank equals the rank in the second table. The
        columns "ranks", "equal" and "possible" refer to new ranks among the common methods of both
        tables. A rank is possible if some order of the numbers that are tied after rounding leads
        to this rank. The column "reversed" counts the pairs of methods in opposite orders, without
        ties. The ranks of two papers differ in the selection of hyperparameters.
    changes
        Hyperparameters are selected separately by each metric. For the column "tau_of_one_choice",
        they are selected by AUGRC for both metrics.
    relations
        A difference is the computed minus the printed number, or the number in the other table
        minus the number in this table.
    contradictions
        Cells that violate a rule that the remaining cells of the table satisfy.
    tables
        `abstain_bench.published.table(NAME)` returns a table. The column "doubtful" counts the
        cells whose reliability is doubtful.
    tau
        Each point is a study. For points above the line, the rankings are more similar if both
        metrics use the same hyperparameters.
    formula
        Numbers for corruptions are means over severities, to which the formula does not apply
        exactly.

    .. rubric:: Glossary

    Rank
        Position of a method, where rank 1 is best. Tied methods have the lowest rank of the tie.
    Tau
        Kendall's tau-b, which is 1 for equal orders, 0 for unrelated orders, and -1 for opposite
        orders.
    Part
        Block of a printed table. For the ranks of Traub et al., the metric that selects the
        hyperparameters.
    Study
        Test data of the papers. The studies are iid, cor (corruptions), sub (new sub-classes of
        known classes), s-ncs (semantic new classes) and ns-ncs (non-semantic new classes).

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
    """Return a label that consists of the first author and the table number."""
    if not entry.number:
        return entry.title
    first_author = entry.cited.partition(" ")[0]
    return f"{first_author}, table {entry.number}"


#: Columns that identify a number.
_KEYS: Final = ("table", "against", "part", "classifier", "dataset", "study", "method")


def _long_rows(check: str, rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Convert the rows of a check to rows with a single computed number each."""
    for row in rows:
        keys = {"check": check, **{key: row.get(key, "") for key in _KEYS}}
        for quantity, value in row.items():
            if isinstance(value, int | float):
                yield {**keys, "quantity": quantity, "value": float(value)}


# ------------------------------------------------------------------------------- summaries
def _summarize_ranks(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Sum the counts over the columns for each pair of tables and part."""
    counts = ("printed", "equal_as_printed", "ranks", "equal", "possible", "pairs", "reversed")
    for (table_name, against, part), group in group_rows(rows, "table", "against", "part").items():
        yield {
            "table": table_name,
            "against": against,
            "part": part,
            "columns": len(group),
            **{name: total(group, name) if name in group[0] else None for name in counts},
        }


def _rank_changes(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Yield Kendall's tau for each data set and study, for both selections of settings."""
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
    """Return a row of the table "relations"."""
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
    """Summarize the differences for each kind of study and over all studies."""
    rows_by_kind: dict[str, list[Row]] = {}
    for row in rows:
        kind = row["study"].partition(":")[0]
        rows_by_kind.setdefault(kind, []).append(row)
    rows_by_kind["all"] = list(rows)
    for kind, group in rows_by_kind.items():
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
    """Yield a row that describes each published table."""
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
    """Plot Kendall's tau for both selections, and the computed against the published AUGRCs."""
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
    """Yield notes about rounding, impossible ranks and Kendall's tau."""
    yield (
        "Printed values are rounded. Two printed values count as equal if they differ by at most "
        "one unit of the last digit."
    )
    invalid = recomputed.invalid_rank_columns()
    if invalid:
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
    """Yield conclusions about ranks, metrics, recomputed areas and contradictions."""
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
    """Explain differences between published ranks by methods that are missing in one table."""
    unmatched_by_tables = {(row["table"], row["against"]): row["unmatched"] for row in ranks}
    sentences = []
    for row in rank_summary:
        unmatched = unmatched_by_tables.get((row["table"], row["against"]))
        if not unmatched:
            continue
        only_in_numbers, only_in_ranks = unmatched
        numbers_source = tables()[row["table"]].source
        ranks_source = tables()[row["against"]].source
        sentences.append(
            f"As printed, {row['equal_as_printed']} of {row['printed']} ranks of {ranks_source} "
            f"equal those of {numbers_source}. Their methods differ: the ranks include "
            f"{only_in_ranks} instead of {only_in_numbers}, and no number of {only_in_ranks} is "
            f"printed. If the {row['ranks'] // row['columns']} common methods are ranked again, "
            f"{row['equal']} of {row['ranks']} ranks are equal."
        )
    yield from dict.fromkeys(sentences)


def _equal_ranks(row: Row) -> str:
    part = f" ({row['part']})" if row["part"] else ""
    return f"{row['equal']} of {row['ranks']} in {tables()[row['against']].source}{part}"


def _conclude_metric_ranks(metric_ranks: Sequence[Row]) -> Iterator[str]:
    """Report the similarity of the rankings by AURC and AUGRC for each selection of settings."""
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
