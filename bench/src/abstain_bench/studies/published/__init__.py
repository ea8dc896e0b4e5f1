"""What the tables of the four papers say together: what agrees, and what cannot be right."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from statistics import median
from typing import Any, Final

from abstain._foundation.notes import Note
from abstain.plots.agreement import AgreementDisplay, Pair
from abstain_bench.published import PublishedTable, table, tables
from abstain_bench.studies._study import Row, StudyEntry, StudyResult, timed
from abstain_bench.studies.published import orders, relations
from abstain_bench.studies.published.contradictions import conflicts
from abstain_bench.studies.published.sweeps import impossible

#: Shares of a number within which it is said to be met.
_NEAR, _FAR = 0.03, 0.10


@timed
def study_published() -> StudyResult:
    """Check the numbers that the four papers print against each other.

    Answers: are the printed ranks those of the printed numbers, how alike do AURC and AUGRC rank,
    which numbers follow from others, and which cannot be right?

    Returns
    -------
    StudyResult
        Tables "results" (every number that was computed: check, table, column, method, quantity,
        value), "ranks" (recomputed ranks by pair of tables), "changes" (Kendall's tau of the ranks
        by AURC and by AUGRC on each data set and study), "relations" (numbers that follow from
        others), "contradictions" (what does not fit, each found by a rule that other cells pass)
        and "tables" (what `abstain_bench.published` has); figures "tau" and "formula".

    Notes
    -----
    Nothing is drawn and nothing is asked for: everything is computed from the packaged tables.
    Ranks are minimum ranks, as the papers print them. A printed rank is possible where rounded
    numbers that are tied may have had it. Cost: under a second.

    References
    ----------
    .. [1] Jaeger et al. (2023), tables 1, 9, 11 and 13, https://arxiv.org/abs/2211.15259
    .. [2] Traub et al. (2024), eq. 7, tables 3 and 4, https://arxiv.org/abs/2407.01032

    Examples
    --------
    >>> found = study_published()
    >>> for row in found.rows("ranks")[:2]:
    ...     print(row["against"], row["equal"], row["possible"], row["ranks"], row["reversed"])
    fd_shifts_table_11 482 483 483 0
    fd_shifts_table_13 196 231 231 0
    """
    ranked, moved = list(orders.recomputed()), list(orders.changes())
    apart, areas = list(orders.elsewhere()), list(relations.areas())
    shares, twice = list(relations.accuracies()), list(relations.repeated())
    wrong = [*conflicts(), *impossible()]
    parts = {"ranks": ranked, "ranks of two papers": apart, "two metrics": moved}
    parts |= {"area from others": areas, "accuracy from others": shares, "printed twice": twice}
    summary = [*_ranks(ranked), *_ranks(apart)]
    related = [*_areas(areas), _accuracies(shares), *_twice(twice)]
    return PUBLISHED.result(
        parameters={"tables": len(tables()), "cells": sum(len(table(name)) for name in tables())},
        tables={
            "results": [long for check, rows in parts.items() for long in _long(check, rows)],
            "ranks": summary,
            "changes": list(_changes(moved)),
            "relations": related,
            "contradictions": wrong,
            "tables": list(_tables()),
        },
        figures=_figures(moved, areas),
        notes=tuple(_notes(moved)),
        verdict=tuple(_verdict(summary, ranked, moved, areas, wrong)),
        shown=("ranks", "changes", "contradictions"),
        labels={name: _short(one) for name, one in tables().items()},
    )


def _short(one: PublishedTable) -> str:
    """Name a table by the first author and its number."""
    return f"{one.cited.partition(' ')[0]}, table {one.number}" if one.number else one.title


#: What says which number it is; all else of a row is a number that was found.
_KEYS: Final = ("table", "against", "part", "classifier", "dataset", "study", "method")


def _long(check: str, rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Write every number that was found as a row of its own."""
    for row in rows:
        about = {"check": check, **{key: row.get(key, "") for key in _KEYS}}
        for quantity, value in row.items():
            if isinstance(value, int | float):
                yield {**about, "quantity": quantity, "value": float(value)}


# ------------------------------------------------------------------------------- the summaries
def _ranks(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Sum the columns of each pair of tables and part."""
    keys = ("table", "against", "part")
    for about, own in groupby(rows, key=lambda row: tuple(row[key] for key in keys)):
        mine = list(own)
        counts = (
            "printed", "equal_as_printed", "ranks", "equal", "possible", "pairs", "reversed",
        )  # fmt: skip
        sums = {name: sum(r[name] for r in mine) if name in mine[0] else None for name in counts}
        yield {**dict(zip(keys, about, strict=True)), "columns": len(mine), **sums}


def _changes(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Put the parts of each column beside each other."""
    part = rows[0]["part"]
    other = {(r["dataset"], r["study"]): r["tau"] for r in rows if r["part"] != part}
    for row in rows:
        if row["part"] == part:
            kept = ("dataset", "study", "tau", "pairs", "reversed", "best_by_AURC", "best_by_AUGRC")
            with_one_choice = other[row["dataset"], row["study"]]
            yield {**{key: row[key] for key in kept}, "tau_of_one_choice": with_one_choice}


def _areas(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Say for each kind of study how far the formula is off; last, for all."""
    kinds = dict.fromkeys(row["study"].partition(":")[0] for row in rows)
    for kind in (*kinds, ""):
        mine = [row for row in rows if row["study"].partition(":")[0] == kind or not kind]
        off = [row["relative_difference"] for row in mine]
        yield {
            "relation": "AUGRC from accuracy and failure AUROC",
            "study": kind or "all",
            "cells": len(mine),
            "median_relative_difference": median(off),
            f"within_{_NEAR:.0%}": sum(abs(x) <= _NEAR for x in off) / len(off),
            f"within_{_FAR:.0%}": sum(abs(x) <= _FAR for x in off) / len(off),
            "largest_difference": max(abs(row["computed"] - row["printed"]) for row in mine),
        }


def _accuracies(rows: Sequence[Row]) -> dict[str, Any]:
    off = [row["computed"] / row["printed"] - 1 for row in rows]
    return {
        "relation": "accuracy beside new classes from that without",
        "study": "new classes",
        "cells": len(rows),
        "median_relative_difference": median(off),
        f"within_{_NEAR:.0%}": sum(abs(x) <= _NEAR for x in off) / len(off),
        f"within_{_FAR:.0%}": sum(abs(x) <= _FAR for x in off) / len(off),
        "largest_difference": max(abs(row["difference"]) for row in rows),
    }


def _twice(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    for name, own in groupby(rows, key=lambda row: row["table"]):
        mine = list(own)
        off = [row["elsewhere"] / row["printed"] - 1 for row in mine]
        yield {
            "relation": f"{name} prints numbers of other tables again",
            "study": ", ".join(dict.fromkeys(row["study"] for row in mine)),
            "cells": len(mine),
            "median_relative_difference": median(off),
            f"within_{_NEAR:.0%}": sum(abs(x) <= _NEAR for x in off) / len(off),
            f"within_{_FAR:.0%}": sum(abs(x) <= _FAR for x in off) / len(off),
            "largest_difference": max(abs(row["elsewhere"] - row["printed"]) for row in mine),
        }


def _tables() -> Iterator[dict[str, Any]]:
    for name, one in tables().items():
        cells = table(name)
        yield {
            "table": name,
            "source": one.source,
            "title": one.title,
            "scale": one.scale,
            "cells": len(cells),
            "doubtful": sum(bool(cell["doubt"]) for cell in cells),
            "doubts": " ".join(doubt.text for doubt in one.doubts),
        }


# --------------------------------------------------------------------------------- the figures
def _figures(moved: Sequence[Row], areas: Sequence[Row]) -> dict[str, Any]:
    first, second = dict.fromkeys(row["part"] for row in moved)
    taus = {(r["part"], r["dataset"], r["study"]): r["tau"] for r in moved}
    return {
        "tau": AgreementDisplay(
            tuple(
                Pair(f"{dataset} {study}", dataset, tau, taus[second, dataset, study])
                for (part, dataset, study), tau in taus.items()
                if part == first
            ),
            "Kendall's tau of the ranks by AURC and by AUGRC",
            "Hyperparameters chosen by each metric",
            "Chosen by AUGRC for both",
        ),
        "formula": AgreementDisplay(
            tuple(
                Pair(
                    f"{row['dataset']} {row['study']}, {row['method']}",
                    row["dataset"],
                    row["printed"],
                    row["computed"],
                )
                for row in areas
            ),
            "AUGRC computed from accuracy and failure AUROC",
            "AUGRC as printed by Traub et al.",
            "(computed - printed) / printed",
            difference=True,
        ),
    }


# ---------------------------------------------------------------------------------- the words
def _notes(moved: Sequence[Row]) -> Iterator[str | Note]:
    yield (
        "Values are as printed, rounded: what two tables print may differ by a unit of the last "
        "digit and is then taken for the same."
    )
    if bad := orders.invalid():
        columns = ", ".join(f"{name} {column.said}" for name, _, column in bad)
        text = f"no numbers have the ranks that are printed in {columns}."
        yield Note.warning("invalid_ranks", text)
    else:
        yield "Every column of printed ranks is one that numbers can have, ties included."
    counts = [row["pairs"] for row in moved]
    yield (
        f"Kendall's tau is over {min(counts)} to {max(counts)} pairs of methods that both metrics "
        "rank apart, corrected for ties."
    )


def _verdict(
    summary: Sequence[Row],
    columns: Sequence[Row],
    moved: Sequence[Row],
    areas: Sequence[Row],
    wrong: Sequence[Row],
) -> Iterator[str]:
    ranked = [row for row in summary if row["ranks"] is not None]
    turned = _total(ranked, "reversed")
    agree = "are not all" if turned else "are"
    yield (
        f"The printed ranks {agree} those of the printed numbers: of {_total(ranked, 'pairs')} "
        f"pairs of methods that both tell apart, {turned} are in the other order."
    )
    yield from _as_printed(summary, columns)
    yield (
        f"Among the methods of both tables, with ties as printed, {', '.join(map(_equal, ranked))} "
        "are equal. "
        f"{_total(ranked, 'possible')} of {_total(ranked, 'ranks')} ranks are those that numbers "
        "tied in print may have."
    )
    yield from _of_metrics(moved)
    off = [row["relative_difference"] for row in areas]
    near = sum(abs(x) <= _NEAR for x in off) / len(off)
    yield (
        f"AUGRC follows from accuracy and failure AUROC (Traub et al. 2024, eq. 7), although these "
        f"are of another paper: of {len(off)} cells {near:.0%} lie within {_NEAR:.0%}, "
        f"{sum(abs(x) <= _FAR for x in off) / len(off):.1%} within {_FAR:.0%}."
    )
    by = {source: len(list(own)) for source, own in groupby(wrong, key=_paper)}
    if by:
        yield (
            f"{sum(by.values())} things cannot be right or are of other runs: "
            f"{', '.join(f'{count} in {paper}' for paper, count in by.items())}."
        )


def _as_printed(summary: Sequence[Row], ranked: Sequence[Row]) -> Iterator[str]:
    """Explain the printed ranks that are equal only after ranking the shared methods again."""
    differing = {(row["table"], row["against"]): row["unmatched"] for row in ranked}
    sentences = []
    for row in summary:
        unmatched = differing.get((row["table"], row["against"]))
        if not unmatched:
            continue
        of_numbers, of_ranks = (tables()[row[key]].source for key in ("table", "against"))
        sentences.append(
            f"As printed, {row['equal_as_printed']} of {row['printed']} ranks of {of_ranks} are "
            f"those of {of_numbers}. Their methods differ: the ranks count {unmatched[1]}, of "
            f"which no number is printed, where the numbers have {unmatched[0]}. If the "
            f"{row['ranks'] // row['columns']} methods of both tables are ranked again among "
            f"themselves, {row['equal']} of {row['ranks']} are equal."
        )
    yield from dict.fromkeys(sentences)


def _total(rows: Sequence[Row], column: str) -> int:
    return sum(row[column] for row in rows)


def _equal(row: Row) -> str:
    about = f" ({row['part']})" if row["part"] else ""
    return f"{row['equal']} of {row['ranks']} in {tables()[row['against']].source}{about}"


def _of_metrics(moved: Sequence[Row]) -> Iterator[str]:
    for part, own in groupby(moved, key=lambda row: row["part"]):
        mine = list(own)
        least = min(mine, key=lambda row: row["tau"])
        other = sum(row["best_by_AURC"] != row["best_by_AUGRC"] for row in mine)
        yield (
            f"With hyperparameters chosen {part}, AURC and AUGRC rank alike with a tau of "
            f"{median(row['tau'] for row in mine):.2f} in the median of {len(mine)} studies, "
            f"{least['tau']:.2f} at least ({least['dataset']} {least['study']}); in {other} of "
            "them the best methods are not the same."
        )


def _paper(row: Mapping[str, Any]) -> str:
    return str(row["source"]).partition(",")[0]


#: The study in the catalogue.
PUBLISHED: Final = StudyEntry(
    name="published",
    title="The published tables against each other",
    question=(
        "Are the printed ranks those of the printed numbers, how alike do AURC and AUGRC rank the "
        "published methods, and what in the four papers cannot be right?"
    ),
    source="Traub et al. (2024), tables 3 and 4, https://arxiv.org/abs/2407.01032",
    run=study_published,
    captions={
        "ranks": (
            "Printed: numbers in the first table. Equal as printed: how many of their ranks the "
            "second table prints. Ranks, equal, possible: after the methods of both tables are "
            "ranked again among themselves; possible: any rank of rounded numbers that are tied. "
            "Reversed: pairs of methods in the other order, of those that both tables rank "
            "apart. Ranks of two papers are of other choices of hyperparameters."
        ),
        "changes": (
            "Hyperparameters chosen by each metric itself; tau of one choice: by AUGRC for both."
        ),
        "relations": "Difference: computed less printed, or elsewhere less here.",
        "contradictions": "Each found by a rule that the other cells of its table pass.",
        "tables": "Returned by `abstain_bench.published.table(NAME)`; doubtful: cells with doubts.",
        "tau": "A point a study: above the line the choice alone made the two rank less alike.",
        "formula": "Corruptions are a mean over severities, for which the formula is no identity.",
    },
    glossary={
        "Rank": "1 is best; methods that are tied share the best of their ranks.",
        "Tau": "Kendall's tau-b: 1 for the same order, 0 for unrelated ones, -1 for the reverse.",
        "Part": "Which part of a printed table; of Traub's ranks, what chose the hyperparameters.",
        "Study": (
            "iid; cor (corruptions); sub (known classes that look different); s-ncs, ns-ncs (new "
            "classes, semantic or not)."
        ),
    },
)
