"""The tables of a benchmark's page as the templates print them: strings, and exact numbers."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from abstain.benchmark.data.exposures import KINDS
from abstain.benchmark.protocol import Study
from abstain.benchmark.results import BenchmarkResults, MethodFacts
from abstain.plots import chosen
from abstain.report.benchmark_grid import NONE, Entry, Grid, footnote, headline
from abstain.report.words import number

#: Up to which share of the ranks of a column a cell has which color.
_SHADES: Final = ((0.07, "r0"), (0.18, "r1"), (0.32, "r2"), (0.5, "r3"), (0.7, "r4"))

#: The arms that have a name of their own.
_ARMS: Final = {
    "ensemble": "The networks of all seeds together",
    "": "Trained elsewhere",
}


@dataclass(frozen=True)
class Keys:
    """What links to studies and methods point at: positions, never names of the caller.

    Attributes
    ----------
    studies, methods : mapping from str to str
        By name; a study without a part of its own has none.
    """

    studies: Mapping[str, str]
    methods: Mapping[str, str]

    @classmethod
    def of(cls, results: BenchmarkResults) -> "Keys":
        """Give each study of the main tables and each method its number."""
        return cls(
            {study.name: f"study-{i}" for i, study in enumerate(headline(results), 1)},
            {method.name: f"method-{i}" for i, method in enumerate(results.methods, 1)},
        )

    def named(self, method: MethodFacts) -> dict[str, Any]:
        """Return a method as a link."""
        return {
            "key": self.methods[method.name],
            "name": method.name,
            "title": method.title,
            "added": method.added,
        }


def arm_title(arm: str) -> str:
    """Say what the networks of a group were trained by."""
    return _ARMS.get(arm) or f"Trained by {arm}"


def kind_title(kind: str) -> str:
    """Return the name of a source of failures that people read."""
    return "No shift" if kind == "iid" else chosen.sentence(KINDS.get(kind, kind))


def grid_head(grid: Grid) -> str:
    """Return the metric with its unit and where better is."""
    unit = " × 1000" if grid.kilo else ""
    # A line break would part the arrow from what it is about.
    return f"{grid.title}{unit}\u00a0{grid.arrow}"


def page_grid(
    grid: Grid, keys: Keys, level: float, means: Mapping[str, float] | None = None
) -> dict[str, Any]:
    """Return methods x studies; mean ranks stand in the last column where they are given."""
    notes = footnote(grid, level, intervals=False, ranked=bool(means))
    said = " ".join(notes).replace("{tie}", "†")
    return {
        "label": grid.title,
        "head": grid_head(grid),
        "note": said,
        "spans": [{"title": kind_title(kind), "size": size} for kind, size in grid.spans],
        "studies": page_studies(grid.studies, keys),
        "width": len(grid.studies) + 1 + bool(means),
        "ranked": bool(means),
        "groups": [
            {
                "title": arm_title(arm),
                "rows": [
                    {
                        "method": keys.named(line.method),
                        "entries": [page_entry(entry) for entry in line.entries],
                        "mean": mean_said((means or {}).get(line.method.name, math.nan)),
                    }
                    for line in lines
                ],
            }
            for arm, lines in grid.groups
        ],
    }


def page_studies(studies: Sequence[Study], keys: Keys) -> list[dict[str, str]]:
    """Return the heads of columns, linked where a study has a part of its own."""
    return [{"key": keys.studies.get(s.name, ""), "title": s.title} for s in studies]


def mean_said(rank: float) -> str:
    """Write a mean rank."""
    return NONE if math.isnan(rank) else f"{rank:.2f}"


def page_entry(entry: Entry | None) -> dict[str, Any] | None:
    """Return one cell."""
    if entry is None:
        return None
    return {
        "text": entry.text,
        "exact": exact(entry.value),
        "best": entry.stands == "best",
        "tie": entry.stands == "not told apart",
        "interval": entry.interval,
        "rank": entry.ranked,
        "shade": shade_of(entry),
        "note": entry.note,
    }


def shade_of(entry: Entry) -> str:
    """Return the class of a cell's color: the better the rank, the stronger."""
    if math.isnan(entry.rank) or entry.of < 2:
        return ""
    place = (entry.rank - 1) / (entry.of - 1)
    return next((shade for most, shade in _SHADES if place <= most), "")


def exact(value: float) -> str:
    """Write all digits of a number; nothing for NaN."""
    return "" if math.isnan(value) else repr(float(value))


def words(text: str) -> dict[str, Any]:
    """Return a cell of words."""
    return _cell(text)


def link(key: str, text: str, title: str = "") -> dict[str, Any]:
    """Return a cell that leads to another part of the page."""
    return {**_cell(text), "key": key, "title": title}


def numeral(value: float, text: str = "", beside: str = "") -> dict[str, Any]:
    """Return a cell of a number, as the house writes it unless a text is given."""
    written = NONE if math.isnan(value) else text or number(value)
    return {**_cell(written), "numeric": True, "exact": exact(value), "beside": beside}


def _cell(text: str) -> dict[str, Any]:
    return {
        "text": text,
        "key": "",
        "title": "",
        "numeric": False,
        "exact": "",
        "beside": "",
        "best": False,
        "tie": False,
        "shade": "",
    }


def plain_table(
    title: str, caption: str, heads: Sequence[tuple[str, bool]], rows: Sequence[Sequence[Any]]
) -> dict[str, Any]:
    """Return a table of one row of heads that can be sorted."""
    return {
        "title": title,
        "caption": caption,
        "heads": [{"title": head, "numeric": numeric} for head, numeric in heads],
        "rows": rows,
    }
