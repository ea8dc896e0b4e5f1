"""All that is said of some studies in rows, from which tables, figures and words are made."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from abstain.curves import risk_coverage_curve, thin
from abstain_bench.studies.rankings.changes import BEFORE, RankedStudies
from abstain_bench.studies.rankings.violations import Disagreement, disagreements, failures_of

if TYPE_CHECKING:
    from abstain_bench.studies.rankings.folder import RankedFolder

#: Violations whose failures are listed, the strongest of as many studies, and failures of each.
_LISTED: Final = 6
_FAILURES: Final = 6

#: What of a piece stands in the tables of the study; the rest is for its figures.
TABLES: Final = (
    "results", "changes", "tests", "neighbors", "pairs", "disagreements", "violations", "failures",
)  # fmt: skip
_FOR_FIGURES: Final = ("curves", "pictures")

Row = dict[str, Any]


def tables_of(
    ranked: Sequence[RankedStudies], folder: "RankedFolder | None" = None
) -> dict[str, list[Row]]:
    """Say in rows what is found by each choice of settings; the samples are those of the last."""
    tables: dict[str, list[Row]] = {name: [] for name in (*TABLES, *_FOR_FIGURES)}
    for one in ranked:
        tables["results"] += one.rows()
        tables["changes"] += one.changes()
        tables["tests"] += one.maps()
        tables["neighbors"] += one.neighbors()
    for one in ranked[-1:]:
        tables["pairs"] += one.pairs()
        found = list(disagreements(one))
        tables["disagreements"] += [pair.row() for pair in found]
        for pair in _strongest(found):
            tables["violations"].append({**pair.brief(), "preferred_by": pair.preferred_by})
            failures = failures_of(pair, _FAILURES)
            tables["failures"] += [folder.named(row) if folder else row for row in failures]
            tables["curves"] += _curves(pair)
            tables["pictures"] += _pictures(folder, pair) if folder else []
    return tables


def together(pieces: Sequence[Mapping[str, Sequence[Row]]]) -> dict[str, list[Row]]:
    """Put pieces under each other; of the violations only the strongest are kept."""
    names = (*TABLES, *_FOR_FIGURES)
    tables = {name: [row for piece in pieces for row in piece[name]] for name in names}
    for name in ("results", "changes", "tests", "neighbors"):
        order = list(dict.fromkeys(row["selection"] for row in tables[name]))
        # What a piece says of one choice of settings alone comes last.
        order.sort(key=lambda selection: selection == tables[name][-1]["selection"])
        tables[name].sort(key=lambda row: order.index(row["selection"]))
    strongest = sorted(tables["violations"], key=lambda row: -row["preferred_by"])[:_LISTED]
    listed = [row["study"] for row in strongest]
    for name in ("failures", *_FOR_FIGURES):
        kept = [row for row in tables[name] if row["study"] in listed]
        tables[name] = sorted(kept, key=lambda row: listed.index(row["study"]))
    tables["violations"] = [{k: v for k, v in r.items() if k != "preferred_by"} for r in strongest]
    return tables


def _strongest(pairs: Sequence[Disagreement]) -> list[Disagreement]:
    """Return the strongest violation of each study."""
    first: dict[str, Disagreement] = {}
    for pair in pairs:
        if pair.violates:
            first.setdefault(pair.study, pair)
    return list(first.values())


def _curves(pair: Disagreement) -> Iterator[Row]:
    """Return the curves of both methods, of the first run, the better one first."""
    scored = pair.units[0].scored
    for method in (pair.better, pair.worse):
        s = scored[method]
        curve = thin(risk_coverage_curve(s.confidence, s.loss, weight=s.weight))
        coverage, risk = np.asarray(curve.coverage), np.asarray(curve.risk)
        points = {"coverage": coverage.tolist(), "risk": risk.tolist()}
        yield {"study": pair.study, "method": method, **points}


def _pictures(folder: "RankedFolder", pair: Disagreement) -> Iterator[Row]:
    """Return which pictures show the failures that make the difference, and their words."""
    labels = pair.units[0].labels
    for row in pair.blamed[:_FAILURES].tolist():
        exposure, place = folder.place(pair.study, row)
        name = "" if labels is None else f"{folder.label(int(labels[row]))}: "
        share = f"{100 * pair.surer_than(pair.better, row):.1f}\u00a0%"
        yield {
            "study": pair.study,
            "exposure": exposure,
            "place": place,
            "about": f"{name}{share}",
            "row": f"{pair.study}: {pair.better} is better, {BEFORE.title} prefers {pair.worse}",
        }
