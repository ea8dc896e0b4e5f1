"""Figures of a comparison, which are drawn when a renderer writes them."""

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
from abstain.plots.formatting import capitalize_first, check_comparison
from abstain.report.document import Block, Box, Figure
from abstain.report.subjects.comparison.metric_result import MetricResult, metric_results
from abstain.tables import split_name
from abstain.typing import Split

_UNSAFE = re.compile(r"[^A-Za-z0-9.]+")

#: Maximum number of pairs of metrics with a figure of rank changes.
_MAX_METRIC_PAIRS = 3


@dataclass(frozen=True, eq=False)
class FigureEntry:
    """A figure with its metric and data set, which is drawn when a renderer writes the report.

    The `metric` is empty for curves. If `data` is None, the figure shows all data sets together.
    The `name` is the file name of the figure, without suffix.
    """

    kind: str
    metric: str
    data: Split | None
    name: str
    display: Any

    def to_block(self, key: str, caption_suffix: str = "") -> Figure:
        """Return the figure as a block of the report. Its caption ends with `caption_suffix`."""
        title, _, subtitle = self.display.title.partition("\n")
        description = capitalize_first(subtitle.removeprefix("(").removesuffix(")"))
        if caption_suffix:
            description = f"{description}. {caption_suffix}" if description else caption_suffix
            description += "" if description.endswith(".") else "."
        return Figure(key, title, self.display, description)


class DetailView:
    """The data sets that a report describes in detail, and the figures of these data sets."""

    def __init__(self, comparison: Comparison, data: Sequence[Split]) -> None:
        self.comparison, self.data = comparison, data
        self._entries: dict[tuple[str, str, Split | None], tuple[str, FigureEntry]] = {}
        for i, entry in enumerate(figure_entries(comparison, data)):
            self._entries[entry.kind, entry.metric, entry.data] = (f"figure-{i}", entry)

    def figures(self, kind: str, result: MetricResult, caption_suffix: str = "") -> list[Figure]:
        """Return a list with the figure of one kind for a result, or an empty list."""
        key = (kind, result.metric, result.data)
        if key not in self._entries:
            return []
        figure_key, entry = self._entries[key]
        return [entry.to_block(figure_key, caption_suffix)]

    def boxes(self, blocks: Callable[[MetricResult], Iterable[Block]]) -> Iterator[Box]:
        """Yield a container for each metric and data set, of which the menus of a page show one."""
        for i, metric in enumerate(self.comparison.metrics):
            for j, result in enumerate(metric_results(self.comparison, [metric], self.data)):
                yield Box(tuple(blocks(result)), tags={"metric": str(i), "data": str(j)})

    def rank_changes(self) -> Iterator[tuple[FigureEntry, Figure]]:
        """Yield figures that compare the rankings by two metrics."""
        for key, entry in self._entries.values():
            if entry.kind == "rank-change":
                yield entry, entry.to_block(key)


def comparison_figures(comparison: Comparison) -> Iterator[tuple[str, Drawable]]:
    """Return an iterator over the names and displays of all figures."""
    entries = figure_entries(check_comparison(comparison), comparison.data)
    return ((entry.name, entry.display) for entry in entries)


def first_curve_figure(comparison: Comparison) -> Iterator[Figure]:
    """Yield the figure of the curves of the first data set, without bands."""
    data = comparison.data[0]
    band_display = RiskCoverageBandDisplay.from_comparison(
        comparison, data=data, methods=comparison.methods_with_curves
    )
    lines = tuple(
        Series(method, tuple(band.coverage.tolist()), tuple(band.risk.tolist()))
        for method, band in band_display.bands.items()
    )
    if not lines:
        return
    axis_titles = ("Coverage", "Selective risk")
    display = SeriesDisplay(lines, "Selective risk by coverage", *axis_titles, log_x=False)
    data_suffix = f" on {split_name(data)}" if data else ""
    description = f"Selective risk (mean loss of the accepted samples) by coverage{data_suffix}."
    yield Figure("curve", display.title, display, description)


def figure_entries(comparison: Comparison, data: Sequence[Split]) -> Iterator[FigureEntry]:
    """Yield the figures of the given data sets, and the figures over all data sets."""
    for metric in comparison.metrics:
        yield from _metric_figures(comparison, metric, data)
    data_or_all: list[Split | None] = list(data)
    if len(comparison.data) > 1:
        data_or_all.append(None)
    metric_pairs = list(itertools.combinations(comparison.metrics, 2))[:_MAX_METRIC_PAIRS]
    for split, (first, second) in itertools.product(data_or_all, metric_pairs):
        changes = RankingChangeDisplay.from_comparison(comparison, first, second, data=split)
        if changes.ranks:
            yield _entry(comparison, "rank-change", f"{first}-{second}", split, changes)
    for split, kind in itertools.product(data, ("selective", "generalized")):
        curves = RiskCoverageBandDisplay.from_comparison(
            comparison, data=split, kind=kind, methods=comparison.methods_with_curves
        )
        if curves.bands:
            yield _entry(comparison, f"{kind}-bands", "", split, curves)


def _metric_figures(
    comparison: Comparison, metric: str, data: Sequence[Split]
) -> Iterator[FigureEntry]:
    """Yield the figures of one metric for each data set and over all data sets."""
    for split in data:
        forest = ForestDisplay.from_comparison(comparison, metric, data=split)
        yield _entry(comparison, "forest", metric, split, forest)
        differences = SignificanceMapDisplay.from_comparison(comparison, metric, data=split)
        if differences.pairs:
            yield _entry(comparison, "significance", metric, split, differences)
        ranks = RankBlobDisplay.from_comparison(comparison, metric, data=split)
        if ranks.standings:
            yield _entry(comparison, "ranks", metric, split, ranks)
    if comparison.mean_ranks_of(metric) is not None:
        diagram = CriticalDifferenceDisplay.from_comparison(comparison, metric)
        yield _entry(comparison, "critical-difference", metric, None, diagram)
    if any(profile.metric == metric for profile in comparison.profiles):
        profiles = PerformanceProfileDisplay.from_comparison(comparison, metric)
        yield _entry(comparison, "profile", metric, None, profiles)
    if len(comparison.data) > 1 and comparison.standings_of(metric, None):
        ranks = RankBlobDisplay.from_comparison(comparison, metric)
        yield _entry(comparison, "ranks", metric, None, ranks)


def _entry(
    comparison: Comparison, kind: str, metric: str, data: Split | None, display: Drawable
) -> FigureEntry:
    """Return a figure with a unique file name that contains only safe characters."""
    name_parts = [kind, metric]
    if data is None:
        name_parts.append("all-data")
    elif data:
        # The index distinguishes names that differ only in replaced characters.
        number = comparison.data.index(data) + 1
        name_parts.append(f"{number}-{'-'.join(value for _, value in data)}")
    slugs = [_UNSAFE.sub("-", part).strip("-.")[:60] or "x" for part in name_parts if part]
    return FigureEntry(kind, metric, data, "_".join(slugs), display)
