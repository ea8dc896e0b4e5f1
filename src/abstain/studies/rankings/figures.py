"""The figures of the rankings: changes everywhere, rankings side by side, and two tests."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from abstain.curves import risk_coverage_curve, thin
from abstain.plots.rank_changes import RankChange, RankChangesDisplay
from abstain.plots.ranks import RankingChangeDisplay
from abstain.plots.series import Series, SeriesDisplay
from abstain.plots.significance import SignificanceMapDisplay, SignificanceMapsDisplay
from abstain.studies.rankings.changes import AFTER, BEFORE, PAIRED, TWO, UNADJUSTED, RankedStudies
from abstain.studies.rankings.violations import Disagreement

#: Methods that a map of every pair has room for, and rankings drawn one by one.
_MAPPED, _DRAWN = 12, 3

_NAMES: Final = f"{BEFORE.title} and {AFTER.title}"

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


def ranking_figures(
    ranked: RankedStudies, rows: Sequence[Row], changes: Sequence[Row]
) -> Iterator[RankingChangeDisplay]:
    """Draw the rankings of the studies where the metrics agree least."""
    resampled = all(f"{metric}_resampled_rank" in row for row in rows for metric in TWO)
    kind = "resampled_rank" if resampled else "rank"
    for change in sorted(changes, key=lambda c: c["tau"])[:_DRAWN]:
        study = change["study"]
        ranks = {
            row["method"]: (row[f"{TWO[0]}_{kind}"], row[f"{TWO[1]}_{kind}"])
            for row in rows
            if row["study"] == study
        }
        yield RankingChangeDisplay(*TWO, ranks, ranked.data[study], None)


def maps_figure(ranked: RankedStudies, study: str) -> SignificanceMapsDisplay | None:
    """Draw what the literature's test and the paired one find, by either metric."""
    order = ranked.values(AFTER.name, ranked.data[study])
    kept = sorted(order, key=lambda method: order[method])[:_MAPPED]
    maps = {}
    for metric in (BEFORE, AFTER):
        tested = ranked.tested(metric.name, study)
        values = ranked.values(metric.name, ranked.data[study])
        mapped = tuple(sorted(kept, key=lambda method: values[method]))
        for test, said in ((UNADJUSTED, "as published: not valid"), (PAIRED, "valid")):
            own = tuple(p for p in tested.get(test, ()) if {p.first, p.second} <= set(kept))
            if own:
                level = ranked.by[metric.name].level
                name = f"{metric.title}: {test} ({said})"
                maps[name] = SignificanceMapDisplay(mapped, own, level)
    rest = "" if len(order) == len(kept) else f", the first {len(kept)} of {len(order)} methods"
    title = f"Row better than column in {study}{rest}: two tests of the same numbers"
    return SignificanceMapsDisplay(maps, title) if maps else None


def curves_figure(found: Disagreement) -> SeriesDisplay:
    """Draw the curves of two methods that the metrics order differently, of the first run."""
    scored = found.units[0].scored
    curves = {
        method: thin(risk_coverage_curve(s.confidence, s.loss, weight=s.weight))
        for method, s in ((name, scored[name]) for name in (found.better, found.worse))
    }
    series = []
    for method, curve in curves.items():
        coverage, risk = np.asarray(curve.coverage), np.asarray(curve.risk)
        for panel, y in (("Selective risk", risk), ("Generalized risk", coverage * risk)):
            points = tuple(coverage.tolist()), tuple(y.tolist())
            series.append(Series(method, *points, panel=panel))
    better, worse = found.better, found.worse
    title = f"{AFTER.title} prefers {better}, {BEFORE.title} {worse}: {found.study}, first run"
    return SeriesDisplay(tuple(series), title, "Coverage (share accepted)", "", log_x=False)
