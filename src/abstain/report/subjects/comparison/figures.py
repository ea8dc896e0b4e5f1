"""Every figure of a comparison with its name, drawn when asked for."""

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from abstain.evaluation.comparison import Comparison
from abstain.plots import (
    CriticalDifferenceDisplay,
    ForestDisplay,
    PerformanceProfileDisplay,
    RankBlobDisplay,
    RankingChangeDisplay,
    RiskCoverageBandDisplay,
    Series,
    SeriesDisplay,
    SignificanceMapDisplay,
)
from abstain.plots.drawable import Drawable
from abstain.plots.words import checked, sentence
from abstain.report.document import Block, Box, Figure
from abstain.report.subjects.comparison.place import Place, places_of
from abstain.tables import split_name
from abstain.typing import Split

_UNSAFE = re.compile(r"[^A-Za-z0-9.]+")

#: Pairs of metrics whose rankings are drawn.
_MOST_METRIC_PAIRS = 3


@dataclass(frozen=True, eq=False)
class Drawn:
    """A figure that is not drawn yet, and what it is of.

    `metric` is empty for curves, `data` None for all together, `name` that of its files.
    """

    kind: str
    metric: str
    data: Split | None
    name: str
    display: Any

    def block(self, key: str, more: str = "") -> Figure:
        """Return it as a part of a document; `more` ends its caption."""
        title, _, about = self.display.title.partition("\n")
        said = sentence(about.removeprefix("(").removesuffix(")"))
        if more:
            said = f"{said}. {more}" if said else more
            said += "" if said.endswith(".") else "."
        return Figure(key, title, self.display, said)


class Shown:
    """The data sets that a document shows in detail, with their figures and those over all."""

    def __init__(self, comparison: Comparison, data: Sequence[Split]) -> None:
        self.comparison, self.data = comparison, data
        found = enumerate(figures_of(comparison, data))
        self._known = {(d.kind, d.metric, d.data): (f"figure-{i}", d) for i, d in found}

    def of(self, kind: str, place: Place, more: str = "") -> list[Figure]:
        """Return the figure of one kind of a metric on a data set, if there is one."""
        known = self._known.get((kind, place.metric, place.data))
        return [known[1].block(known[0], more)] if known else []

    def views(self, blocks: Callable[[Place], Iterable[Block]]) -> Iterator[Box]:
        """Yield the blocks of each metric on each data set, seen when that is chosen."""
        for i, metric in enumerate(self.comparison.metrics):
            for j, place in enumerate(places_of(self.comparison, [metric], self.data)):
                yield Box(tuple(blocks(place)), tags={"metric": str(i), "data": str(j)})

    def changes(self) -> list[tuple[Drawn, Figure]]:
        """Return the figures of two rankings."""
        found = self._known.values()
        return [(d, d.block(key)) for key, d in found if d.kind == "rank-change"]


def comparison_figures(comparison: Comparison) -> Iterator[tuple[str, Drawable]]:
    """Yield every figure with its name."""
    every = figures_of(checked(comparison), comparison.data)
    return ((drawn.name, drawn.display) for drawn in every)


def first_curve(comparison: Comparison) -> Iterator[Figure]:
    """Yield the curves of the first data set, without bands."""
    first = comparison.data[0]
    display = RiskCoverageBandDisplay.from_comparison(
        comparison, data=first, methods=comparison.methods_with_curves
    )
    lines = tuple(
        Series(method, tuple(band.coverage.tolist()), tuple(band.risk.tolist()))
        for method, band in display.bands.items()
    )
    if lines:
        axes = ("Coverage", "Selective risk")
        drawn = SeriesDisplay(lines, "Selective risk by coverage", *axes, log_x=False)
        place = f" of {split_name(first)}" if first else ""
        about = f"Selective risk by coverage{place}: how wrong the accepted are."
        yield Figure("curve", drawn.title, drawn, about)


def figures_of(comparison: Comparison, data: Sequence[Split]) -> Iterator[Drawn]:
    """Yield the figures of the data sets given, and those over all."""
    for metric in comparison.metrics:
        for place in places_of(comparison, [metric], data):
            yield from _of_place(place)
        yield from _over_all(Place(comparison, metric, None))
    for split in [*data, *([None] if len(comparison.data) > 1 else [])]:
        yield from _rank_changes(comparison, split)
    for split in data:
        yield from _bands(comparison, split)


def _of_place(place: Place) -> Iterator[Drawn]:
    about = (place.comparison, place.metric)
    yield _drawn("forest", place, ForestDisplay.from_comparison(*about, data=place.data))
    square = SignificanceMapDisplay.from_comparison(*about, data=place.data)
    if square.pairs:
        yield _drawn("significance", place, square)
    blobs = RankBlobDisplay.from_comparison(*about, data=place.data)
    if blobs.standings:
        yield _drawn("ranks", place, blobs)


def _over_all(place: Place) -> Iterator[Drawn]:
    comparison, metric = place.comparison, place.metric
    if comparison.mean_ranks_of(metric) is not None:
        diagram = CriticalDifferenceDisplay.from_comparison(comparison, metric)
        yield _drawn("critical-difference", place, diagram)
    if any(p.metric == metric for p in comparison.profiles):
        yield _drawn(
            "profile", place, PerformanceProfileDisplay.from_comparison(comparison, metric)
        )
    if len(comparison.data) > 1 and place.standings:
        yield _drawn("ranks", place, RankBlobDisplay.from_comparison(comparison, metric))


def _rank_changes(comparison: Comparison, data: Split | None) -> Iterator[Drawn]:
    pairs = itertools.combinations(comparison.metrics, 2)
    for first, second in itertools.islice(pairs, _MOST_METRIC_PAIRS):
        display = RankingChangeDisplay.from_comparison(comparison, first, second, data=data)
        if display.ranks:
            yield _drawn("rank-change", Place(comparison, f"{first}-{second}", data), display)


def _bands(comparison: Comparison, data: Split) -> Iterator[Drawn]:
    methods = comparison.methods_with_curves
    for kind in ("selective", "generalized"):
        display = RiskCoverageBandDisplay.from_comparison(
            comparison, data=data, kind=kind, methods=methods
        )
        if display.bands:
            yield _drawn(f"{kind}-bands", Place(comparison, "", data), display)


def _drawn(kind: str, place: Place, display: Drawable) -> Drawn:
    parts = [kind, place.metric]
    if place.data is None:
        parts.append("all-data")
    elif place.data:
        # The position keeps data sets apart whose names hold nothing but odd characters.
        number = place.comparison.data.index(place.data) + 1
        parts.append(f"{number}-{'-'.join(value for _, value in place.data)}")
    name = "_".join(_slug(part) for part in parts if part)
    return Drawn(kind, place.metric, place.data, name, display)


def _slug(text: str) -> str:
    return _UNSAFE.sub("-", text).strip("-.")[:60] or "x"
