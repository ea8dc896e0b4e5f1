"""Where the silent failures come from: the parts of classes and groups, as the templates print."""

from typing import Any

from abstain.evaluation.records import Case, Part
from abstain.report.words import count, number

#: Rows of a table of parts.
_SHOWN = 8


def parts_of(case: Case) -> list[dict[str, Any]]:
    """Return a table for the classes and one for the groups, where there are several of them."""
    named = (("class", case.by_class), ("group", case.by_group))
    return [_table(kind, parts) for kind, parts in named if len(parts) > 1 and case.failures]


def _table(kind: str, parts: tuple[Part, ...]) -> dict[str, Any]:
    return {
        "kind": kind,
        "more": max(len(parts) - _SHOWN, 0),
        "rows": [
            {
                "name": part.name,
                "n": count(part.n),
                "sample_share": number(part.sample_share),
                "share": number(part.share),
                "contribution": number(part.contribution),
                # Worth a mark: more silent failures than the size of the part explains.
                "above": part.share > part.sample_share,
            }
            for part in parts[:_SHOWN]
        ],
    }
