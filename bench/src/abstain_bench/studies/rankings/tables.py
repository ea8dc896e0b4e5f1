"""Tables of rankings, made study by study and joined."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from abstain.curves import risk_coverage_curve, thin
from abstain_bench.studies.rankings.disagreements import Disagreement, find_disagreements
from abstain_bench.studies.rankings.ranked_studies import FIRST_METRIC, RankedStudies

if TYPE_CHECKING:
    from abstain_bench.studies.rankings.folder import RankedFolder

#: Largest numbers of studies whose violation is listed in detail, and of failures of each.
_MAX_VIOLATIONS: Final = 6
_MAX_FAILURES: Final = 6

#: Tables of the result, and tables from which figures are made.
TABLES: Final = (
    "results", "changes", "tests", "neighbors", "pairs", "disagreements", "violations", "failures",
)  # fmt: skip
_FIGURE_TABLES: Final = ("curves", "images")

_Row = dict[str, Any]


def make_tables(
    ranked: Sequence[RankedStudies], folder: "RankedFolder | None" = None
) -> dict[str, list[_Row]]:
    """Return all tables for each selection of settings.

    Pairs and samples are those of the last selection.
    """
    tables: dict[str, list[_Row]] = {name: [] for name in (*TABLES, *_FIGURE_TABLES)}
    for studies in ranked:
        tables["results"] += studies.rows()
        tables["changes"] += studies.changes()
        tables["tests"] += studies.test_rows()
        tables["neighbors"] += studies.neighbor_rows()
    if not ranked:
        return tables
    tables["pairs"] += ranked[-1].pair_rows()
    pairs = list(find_disagreements(ranked[-1]))
    tables["disagreements"] += [pair.row() for pair in pairs]
    for pair in _strongest_violations(pairs):
        preference = {"relative_preference": pair.relative_preference}
        tables["violations"].append(pair.violation_row() | preference)
        tables["curves"] += _curve_rows(pair)
        failures = pair.failure_rows(_MAX_FAILURES)
        if folder is None:
            tables["failures"] += failures
        else:
            tables["failures"] += [folder.with_sample_name(row) for row in failures]
            tables["images"] += _image_rows(folder, pair)
    return tables


def join_tables(study_tables: Sequence[Mapping[str, Sequence[_Row]]]) -> dict[str, list[_Row]]:
    """Join the tables of all studies, with the details of the strongest violations only."""
    names = (*TABLES, *_FIGURE_TABLES)
    tables = {name: [row for tables in study_tables for row in tables[name]] for name in names}
    for name in ("results", "changes", "tests", "neighbors"):
        _sort_by_selection(tables[name])
    strongest = sorted(tables["violations"], key=lambda row: -row["relative_preference"])
    strongest = strongest[:_MAX_VIOLATIONS]
    studies = [row["study"] for row in strongest]
    for name in ("failures", *_FIGURE_TABLES):
        rows = [row for row in tables[name] if row["study"] in studies]
        tables[name] = sorted(rows, key=lambda row: studies.index(row["study"]))
    tables["violations"] = [
        {column: value for column, value in row.items() if column != "relative_preference"}
        for row in strongest
    ]
    return tables


def _sort_by_selection(rows: list[_Row]) -> None:
    """Sort rows by selection in the order of appearance, the selection of the last row last."""
    if not rows:
        return
    last = rows[-1]["selection"]
    order = [s for s in dict.fromkeys(row["selection"] for row in rows) if s != last]
    order.append(last)
    rows.sort(key=lambda row: order.index(row["selection"]))


def _strongest_violations(pairs: Sequence[Disagreement]) -> list[Disagreement]:
    """Return the strongest violation of R2 in each study."""
    by_study: dict[str, Disagreement] = {}
    for pair in pairs:
        if pair.violates_r2:
            by_study.setdefault(pair.study, pair)
    return list(by_study.values())


def _curve_rows(pair: Disagreement) -> Iterator[_Row]:
    """Yield the curves of both methods in the first run, the better method first."""
    for method in (pair.better, pair.worse):
        samples = pair.runs[0].scored[method]
        curve = risk_coverage_curve(samples.confidence, samples.loss, weight=samples.weight)
        thinned = thin(curve)
        yield {
            "study": pair.study,
            "method": method,
            "coverage": np.asarray(thinned.coverage).tolist(),
            "risk": np.asarray(thinned.risk).tolist(),
        }


def _image_rows(folder: "RankedFolder", pair: Disagreement) -> Iterator[_Row]:
    """Yield location, label and panel of the images of the responsible failures."""
    labels = pair.runs[0].labels
    for row in pair.adverse_samples[:_MAX_FAILURES].tolist():
        exposure, index = folder.locate(pair.study, row)
        class_name = "" if labels is None else f"{folder.class_name(int(labels[row]))}: "
        quantile = f"{100 * pair.confidence_quantile(pair.better, row):.1f}%"
        yield {
            "study": pair.study,
            "exposure": exposure,
            "index": index,
            "label": f"{class_name}{quantile}",
            "panel": (
                f"{pair.study}: {pair.better} is better, {FIRST_METRIC.title} prefers {pair.worse}"
            ),
        }
