"""Figures of the rankings: rank changes, rankings, significance maps and curves."""

from collections.abc import Iterable, Sequence
from typing import Final

from abstain.evaluation.comparison import PairedDifference
from abstain.plots.rank_changes import RankChange, RankChangesDisplay
from abstain.plots.ranks import RankingChangeDisplay, RankingChangesDisplay
from abstain.plots.series import Series, SeriesDisplay
from abstain.plots.significance import SignificanceMapDisplay, SignificanceMapsDisplay
from abstain_bench.studies._tables import Row, group_rows
from abstain_bench.studies.rankings.ranked_studies import (
    FIRST_METRIC,
    METRIC_NAMES,
    PAIRED,
    SECOND_METRIC,
    UNADJUSTED,
)

#: Largest numbers of methods of a map with p-values, and of a panel in a figure of many.
_MAX_MAP_METHODS, _MAX_PANEL_METHODS = 12, 16

_METRIC_TITLES: Final = f"{FIRST_METRIC.title} and {SECOND_METRIC.title}"

#: Validity of the tests.
_VALIDITY: Final = {UNADJUSTED: "as published, not valid", PAIRED: "valid"}


def changes_figure(rows: Sequence[Row], selection: str) -> RankChangesDisplay:
    """Plot the ranks of all methods in all studies by both metrics."""
    selected = [row for row in rows if row["selection"] == selection]
    mean_ranks = {
        method: sum(row[f"{SECOND_METRIC.name}_rank"] for row in group) / len(group)
        for method, group in group_rows(selected, "method").items()
    }
    # Methods with equal means keep their order.
    order = sorted(mean_ranks, key=lambda method: mean_ranks[method])
    cells = [
        RankChange(row["method"], row["study"], *(row[f"{m}_rank"] for m in METRIC_NAMES))
        for row in sorted(selected, key=lambda row: order.index(row["method"]))
    ]
    settings = f"; settings selected {selection}" if selection else ""
    return RankChangesDisplay(
        tuple(cells),
        f"Ranks by {FIRST_METRIC.title} → {SECOND_METRIC.title}{settings}. Blue: better by "
        f"{SECOND_METRIC.title}",
    )


def rankings_figure(rows: Sequence[Row]) -> RankingChangesDisplay:
    """Plot the rankings by both metrics, one panel for each study, of the best methods."""
    has_resamples = all(
        f"{metric}_resampled_rank" in row for row in rows for metric in METRIC_NAMES
    )
    suffix = "resampled_rank" if has_resamples else "rank"
    first, second = (f"{metric}_{suffix}" for metric in METRIC_NAMES)
    rows_by_study = group_rows(rows, "study")
    panels = {}
    for study, group in rows_by_study.items():
        best = sorted(group, key=lambda row: min(row[first], row[second]))[:_MAX_PANEL_METHODS]
        ranks = {row["method"]: (row[first], row[second]) for row in best}
        panels[study] = RankingChangeDisplay(*METRIC_NAMES, ranks, (), None)
    kind = "mean rank over the resamples" if has_resamples else "test sets"
    title = f"Rankings by {_METRIC_TITLES} ({kind}){_restriction(rows_by_study.values())}"
    return RankingChangesDisplay(panels, title)


def _restriction(groups: Iterable[Sequence[Row]]) -> str:
    """Return a text about the methods that a panel omits."""
    n_methods = max(map(len, groups), default=0)
    if n_methods <= _MAX_PANEL_METHODS:
        return ""
    return f"; the best {_MAX_PANEL_METHODS} of {n_methods} methods"


def study_maps_figure(
    rows: Sequence[Row], pairs: Sequence[Row], study: str, level: float
) -> SignificanceMapsDisplay | None:
    """Plot the significant pairs of both tests in one study, by either metric."""
    study_rows = [row for row in rows if row["study"] == study]
    maps = {}
    for metric in (FIRST_METRIC, SECOND_METRIC):
        for test, validity in _VALIDITY.items():
            significance = _significance_map(
                study_rows, pairs, metric.name, test, level=level, max_methods=_MAX_MAP_METHODS
            )
            if significance is not None:
                maps[f"{metric.title}: {test} ({validity})"] = significance
    if not maps:
        return None
    restriction = ""
    if len(study_rows) > _MAX_MAP_METHODS:
        restriction = f", the best {_MAX_MAP_METHODS} of {len(study_rows)} methods"
    title = f"Row better than column in {study}{restriction}: two tests of the same values"
    return SignificanceMapsDisplay(maps, title)


def all_maps_figure(
    rows: Sequence[Row], pairs: Sequence[Row], test: str, level: float
) -> SignificanceMapsDisplay | None:
    """Plot the significant pairs of one test in every study, by either metric."""
    rows_by_study = group_rows(rows, "study")
    maps = {}
    for study, study_rows in rows_by_study.items():
        for metric in (FIRST_METRIC, SECOND_METRIC):
            significance = _significance_map(
                study_rows, pairs, metric.name, test, level=level, max_methods=_MAX_PANEL_METHODS
            )
            if significance is not None:
                maps[f"{study}, {metric.title}"] = significance
    if not maps:
        return None
    restriction = _restriction(rows_by_study.values())
    return SignificanceMapsDisplay(
        maps, f"Row better than column: {test} ({_VALIDITY[test]}){restriction}"
    )


def _significance_map(
    rows: Sequence[Row],
    pairs: Sequence[Row],
    metric: str,
    test: str,
    *,
    level: float,
    max_methods: int,
) -> SignificanceMapDisplay | None:
    """Plot one test by one metric in one study, with methods in the order of their values."""
    best = sorted(rows, key=lambda row: row[SECOND_METRIC.name])[:max_methods]
    methods = [row["method"] for row in sorted(best, key=lambda row: row[metric])]
    key = (rows[0]["study"], metric, test)
    differences = [
        PairedDifference(
            metric,
            (),
            row["first"],
            row["second"],
            0.0,
            p_value=row["p_value"],
            adjusted=row["p_value" if test == UNADJUSTED else "adjusted_p_value"],
            better=row["better"],
            test=test,
            valid=test == PAIRED,
        )
        for row in pairs
        if (row["study"], row["metric"], row["test"]) == key
        and {row["first"], row["second"]} <= set(methods)
    ]
    if not differences:
        return None
    return SignificanceMapDisplay(tuple(methods), tuple(differences), level)


def curves_figure(curves: Sequence[Row]) -> SeriesDisplay:
    """Plot the curves of two methods that the metrics rank in opposite orders."""
    series = []
    for row in curves:
        coverage, risk = tuple(row["coverage"]), tuple(row["risk"])
        generalized_risk = tuple(c * r for c, r in zip(coverage, risk, strict=True))
        series.append(Series(row["method"], coverage, risk, panel="Selective risk"))
        series.append(Series(row["method"], coverage, generalized_risk, panel="Generalized risk"))
    better, worse = (row["method"] for row in curves)
    title = (
        f"{SECOND_METRIC.title} prefers {better}, {FIRST_METRIC.title} {worse}: "
        f"{curves[0]['study']}, first run"
    )
    return SeriesDisplay(tuple(series), title, "Coverage", "", log_x=False)
