"""Figures of a comparison; a figure is drawn when a renderer needs it."""

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
    """A figure that is not drawn yet, with its metric and data set.

    `metric` is empty for curves, `data` is None for all data sets together, and `name` is the name
    of its files.
    """

    kind: str
    metric: str
    data: Split | None
    name: str
    display: Any

    def to_block(self, key: str, caption_suffix: str = "") -> Figure:
        """Return the figure as a block; `caption_suffix` is the end of its caption."""
        title, _, subtitle = self.display.title.partition("\n")
        description = capitalize_first(subtitle.removeprefix("(").removesuffix(")"))
        if caption_suffix:
            description = f"{description}. {caption_suffix}" if description else caption_suffix
            description += "" if description.endswith(".") else "."
        return Figure(key, title, self.display, description)


class DetailView:
    """Data sets with detailed results in a document, and the figures of the comparison."""

    def __init__(self, comparison: Comparison, data: Sequence[Split]) -> None:
        self.comparison, self.data = comparison, data
        self._entries = {
            (entry.kind, entry.metric, entry.data): (f"figure-{i}", entry)
            for i, entry in enumerate(figure_entries(comparison, data))
        }

    def figures(self, kind: str, result: MetricResult, caption_suffix: str = "") -> list[Figure]:
        """Return the figure of one kind for a result, or an empty list."""
        key = (kind, result.metric, result.data)
        if key not in self._entries:
            return []
        figure_key, entry = self._entries[key]
        return [entry.to_block(figure_key, caption_suffix)]

    def boxes(self, blocks: Callable[[MetricResult], Iterable[Block]]) -> Iterator[Box]:
        """Yield a box for each metric and data set, visible if these are selected."""
        for i, metric in enumerate(self.comparison.metrics):
            for j, result in enumerate(metric_results(self.comparison, [metric], self.data)):
                yield Box(tuple(blocks(result)), tags={"metric": str(i), "data": str(j)})

    def rank_changes(self) -> list[tuple[FigureEntry, Figure]]:
        """Return the figures that compare two rankings."""
        entries = self._entries.values()
        return [
            (entry, entry.to_block(key)) for key, entry in entries if entry.kind == "rank-change"
        ]


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
    """Yield the figures of some data sets, and the figures over all data sets."""
    for metric in comparison.metrics:
        for result in metric_results(comparison, [metric], data):
            yield from _data_set_figures(result)
        yield from _overall_figures(MetricResult(comparison, metric, None))
    for split in [*data, *([None] if len(comparison.data) > 1 else [])]:
        yield from _rank_change_figures(comparison, split)
    for split in data:
        yield from _band_figures(comparison, split)


def _data_set_figures(result: MetricResult) -> Iterator[FigureEntry]:
    arguments = (result.comparison, result.metric)
    yield _figure_entry(
        "forest", result, ForestDisplay.from_comparison(*arguments, data=result.data)
    )
    significance_map = SignificanceMapDisplay.from_comparison(*arguments, data=result.data)
    if significance_map.pairs:
        yield _figure_entry("significance", result, significance_map)
    rank_plot = RankBlobDisplay.from_comparison(*arguments, data=result.data)
    if rank_plot.standings:
        yield _figure_entry("ranks", result, rank_plot)


def _overall_figures(result: MetricResult) -> Iterator[FigureEntry]:
    comparison, metric = result.comparison, result.metric
    if comparison.mean_ranks_of(metric) is not None:
        diagram = CriticalDifferenceDisplay.from_comparison(comparison, metric)
        yield _figure_entry("critical-difference", result, diagram)
    if any(p.metric == metric for p in comparison.profiles):
        yield _figure_entry(
            "profile", result, PerformanceProfileDisplay.from_comparison(comparison, metric)
        )
    if len(comparison.data) > 1 and result.standings:
        yield _figure_entry("ranks", result, RankBlobDisplay.from_comparison(comparison, metric))


def _rank_change_figures(comparison: Comparison, data: Split | None) -> Iterator[FigureEntry]:
    pairs = itertools.combinations(comparison.metrics, 2)
    for first, second in itertools.islice(pairs, _MAX_METRIC_PAIRS):
        display = RankingChangeDisplay.from_comparison(comparison, first, second, data=data)
        if display.ranks:
            yield _figure_entry(
                "rank-change", MetricResult(comparison, f"{first}-{second}", data), display
            )


def _band_figures(comparison: Comparison, data: Split) -> Iterator[FigureEntry]:
    methods = comparison.methods_with_curves
    for kind in ("selective", "generalized"):
        display = RiskCoverageBandDisplay.from_comparison(
            comparison, data=data, kind=kind, methods=methods
        )
        if display.bands:
            yield _figure_entry(f"{kind}-bands", MetricResult(comparison, "", data), display)


def _figure_entry(kind: str, result: MetricResult, display: Drawable) -> FigureEntry:
    name_parts = [kind, result.metric]
    if result.data is None:
        name_parts.append("all-data")
    elif result.data:
        # The index makes names unique if they differ only in characters that are replaced.
        number = result.comparison.data.index(result.data) + 1
        name_parts.append(f"{number}-{'-'.join(value for _, value in result.data)}")
    name = "_".join(_slug(part) for part in name_parts if part)
    return FigureEntry(kind, result.metric, result.data, name, display)


def _slug(text: str) -> str:
    return _UNSAFE.sub("-", text).strip("-.")[:60] or "x"
