"""The figures of the rankings: changes everywhere, rankings side by side, and two tests."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from abstain.evaluation.comparison import PairedDifference
from abstain.plots.rank_changes import RankChange, RankChangesDisplay
from abstain.plots.ranks import RankingChangeDisplay, RankingChangesDisplay
from abstain.plots.series import Series, SeriesDisplay
from abstain.plots.significance import SignificanceMapDisplay, SignificanceMapsDisplay
from abstain_bench.studies.rankings.changes import AFTER, BEFORE, PAIRED, TWO, UNADJUSTED

#: Methods that a map with its p-values has room for, and those that a panel of many has.
_MAPPED, _DRAWN = 12, 16

_NAMES: Final = f"{BEFORE.title} and {AFTER.title}"

#: What stands beside a test.
_SAID: Final = {UNADJUSTED: "as published: not valid", PAIRED: "valid"}

Row = Mapping[str, Any]


def changes_figure(rows: Sequence[Row], selection: str) -> RankChangesDisplay:
    """Draw the ranks of all methods in all studies by both metrics."""
    own = [row for row in rows if row["selection"] == selection]
    means: dict[str, list[float]] = {}
    for row in own:
        means.setdefault(row["method"], []).append(row[f"{AFTER.name}_rank"])
    order = sorted(means, key=lambda method: sum(means[method]) / len(means[method]))
    own = sorted(own, key=lambda row: order.index(row["method"]))
    cells = [
        RankChange(row["method"], row["study"], *(row[f"{metric}_rank"] for metric in TWO))
        for row in own
    ]
    how = f"; settings {selection}" if selection else ""
    title = f"Ranks by {BEFORE.title} → {AFTER.title}{how}. Blue: better by {AFTER.title}"
    return RankChangesDisplay(tuple(cells), title)


def rankings_figure(rows: Sequence[Row]) -> RankingChangesDisplay:
    """Draw the rankings by both metrics, a panel a study; of many methods the first."""
    resampled = all(f"{metric}_resampled_rank" in row for row in rows for metric in TWO)
    kind = "resampled_rank" if resampled else "rank"
    panels, most = {}, 0
    for study in dict.fromkeys(row["study"] for row in rows):
        own = [row for row in rows if row["study"] == study]
        most = max(most, len(own))
        kept = sorted(own, key=lambda row: min(row[f"{metric}_{kind}"] for metric in TWO))[:_DRAWN]
        ranks = {r["method"]: (r[f"{TWO[0]}_{kind}"], r[f"{TWO[1]}_{kind}"]) for r in kept}
        panels[study] = RankingChangeDisplay(*TWO, ranks, (), None)
    by = "the mean rank over the resamples" if resampled else "the test sets as they are"
    rest = "" if most <= _DRAWN else f"; of {most} methods the {_DRAWN} that either ranks first"
    return RankingChangesDisplay(panels, f"Rankings by {_NAMES}, of {by}{rest}")


def maps_figure(
    rows: Sequence[Row], pairs: Sequence[Row], study: str, level: float
) -> SignificanceMapsDisplay | None:
    """Draw what the literature's test and the paired one find in a study, by either metric."""
    known = [row for row in rows if row["study"] == study]
    maps = {
        f"{metric.title}: {test} ({said})": made
        for metric in (BEFORE, AFTER)
        for test, said in _SAID.items()
        if (made := _map(known, pairs, metric.name, test, level=level, most=_MAPPED))
    }
    rest = "" if len(known) <= _MAPPED else f", the first {_MAPPED} of {len(known)} methods"
    title = f"Row better than column in {study}{rest}: two tests of the same numbers"
    return SignificanceMapsDisplay(maps, title) if maps else None


def every_map_figure(
    rows: Sequence[Row], pairs: Sequence[Row], test: str, level: float
) -> SignificanceMapsDisplay | None:
    """Draw what one test finds in every study, by either metric side by side."""
    maps, most = {}, 0
    for study in dict.fromkeys(row["study"] for row in rows):
        known = [row for row in rows if row["study"] == study]
        most = max(most, len(known))
        for metric in (BEFORE, AFTER):
            made = _map(known, pairs, metric.name, test, level=level, most=_DRAWN)
            if made is not None:
                maps[f"{study}, {metric.title}"] = made
    rest = "" if most <= _DRAWN else f"; of {most} methods the first {_DRAWN}"
    title = f"Row better than column: {test} ({_SAID[test]}){rest}"
    return SignificanceMapsDisplay(maps, title) if maps else None


def _map(
    rows: Sequence[Row], pairs: Sequence[Row], metric: str, test: str, *, level: float, most: int
) -> SignificanceMapDisplay | None:
    """Draw one test by one metric in one study; methods stand in the order of their values."""
    first = sorted(rows, key=lambda row: row[f"{AFTER.name}"])[:most]
    methods = [row["method"] for row in sorted(first, key=lambda row: row[metric])]
    study = rows[0]["study"]
    own = [
        PairedDifference(
            metric,
            (),
            row["first"],
            row["second"],
            0.0,
            p_value=row["p_value"],
            adjusted=row["p_value" if test == UNADJUSTED else "adjusted"],
            better=row["better"],
            test=test,
            valid=test == PAIRED,
        )
        for row in pairs
        if (row["study"], row["metric"], row["test"]) == (study, metric, test)
        and {row["first"], row["second"]} <= set(methods)
    ]
    return SignificanceMapDisplay(tuple(methods), tuple(own), level) if own else None


def curves_figure(curves: Sequence[Row]) -> SeriesDisplay:
    """Draw the curves of two methods that the metrics order differently, the better one first."""
    series = []
    for row in curves:
        generalized = [c * r for c, r in zip(row["coverage"], row["risk"], strict=True)]
        for panel, y in (("Selective risk", row["risk"]), ("Generalized risk", generalized)):
            points = tuple(row["coverage"]), tuple(y)
            series.append(Series(row["method"], *points, panel=panel))
    better, worse = (row["method"] for row in curves)
    study = curves[0]["study"]
    title = f"{AFTER.title} prefers {better}, {BEFORE.title} {worse}: {study}, first run"
    return SeriesDisplay(tuple(series), title, "Coverage (share accepted)", "", log_x=False)
