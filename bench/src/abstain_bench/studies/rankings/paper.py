"""The ranks that Traub et al. print, of all their methods and studies."""

from collections.abc import Iterator
from typing import Any, Final

from abstain_bench.published import table
from abstain_bench.studies.rankings.changes import TWO, changed

#: Ranks by AURC and by AUGRC, with settings chosen in two ways.
_TABLE = "augrc_table_4"


#: How the name of a study of i.i.d. test data ends.
IID: Final = " iid"

#: On how many of the six i.i.d. test sets the first three methods change, by section 4.1.
SAID_TO_CHANGE: Final = 5


def printed_ranks() -> list[dict[str, Any]]:
    """Return the printed ranks, a row a choice of settings, study and method."""
    found: dict[tuple[str, str, str], dict[str, float]] = {}
    for cell in table(_TABLE):
        study = f"{cell['dataset']} {cell['study']}"
        own = found.setdefault((str(cell["block"]), study, str(cell["printed"])), {})
        own[str(cell["metric"])] = float(cell["number"] or 0)
    return [
        dict(zip(("selection", "study", "method"), place, strict=True))
        | {f"{metric}_rank": ranks[metric] for metric in TWO}
        | {"change": ranks[TWO[1]] - ranks[TWO[0]]}
        for place, ranks in found.items()
    ]


def printed_changes(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Return what changes in each study, with settings chosen in each way."""
    for selection, study in dict.fromkeys((row["selection"], row["study"]) for row in rows):
        own = [row for row in rows if (row["selection"], row["study"]) == (selection, study)]
        yield {"selection": selection, "study": study, **changed(own)}
