"""Ranks that Traub et al. print for all their methods and studies."""

from collections.abc import Iterator
from typing import Any, Final

from abstain_bench.published import table
from abstain_bench.studies._tables import Row, group_rows
from abstain_bench.studies.rankings.ranked_studies import METRIC_NAMES, summarize_changes

#: Ranks by AURC and by AUGRC with two selections of settings.
_TABLE = "augrc_table_4"

#: Suffix of the name of a study of i.i.d. test data.
IID: Final = " iid"

#: Number of the six i.i.d. test sets on which the first three methods change (section 4.1).
N_CHANGES_IN_TEXT: Final = 5


def printed_rank_rows() -> list[dict[str, Any]]:
    """Return the printed ranks, one row for each selection, study and method."""
    ranks: dict[tuple[str, str, str], dict[str, float]] = {}
    for cell in table(_TABLE):
        study = f"{cell['dataset']} {cell['study']}"
        key = (str(cell["block"]), study, str(cell["printed"]))
        ranks.setdefault(key, {})[str(cell["metric"])] = float(cell["number"] or 0)
    first, second = METRIC_NAMES
    return [
        {
            "selection": selection,
            "study": study,
            "method": method,
            **{f"{metric}_rank": method_ranks[metric] for metric in METRIC_NAMES},
            "change": method_ranks[second] - method_ranks[first],
        }
        for (selection, study, method), method_ranks in ranks.items()
    ]


def printed_changes(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield a summary of the changes for each selection and study."""
    groups: dict[tuple[str, str], list[Row]] = group_rows(rows, "selection", "study")
    for (selection, study), group in groups.items():
        yield {"selection": selection, "study": study, **summarize_changes(group)}
