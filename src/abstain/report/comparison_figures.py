"""Every figure of a comparison with its name, drawn when asked for; `write_figures`."""

import itertools
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from abstain.evaluation.comparison import Comparison
from abstain.plots import (
    CriticalDifferenceDisplay,
    ForestDisplay,
    PerformanceProfileDisplay,
    RankBlobDisplay,
    RankingChangeDisplay,
    RiskCoverageBandDisplay,
    SignificanceMapDisplay,
    chosen,
)
from abstain.plots.drawable import Drawable
from abstain.report.figure_files import FORMATS, write_displays
from abstain.typing import Split

_UNSAFE = re.compile(r"[^A-Za-z0-9.]+")

#: Pairs of metrics whose rankings are drawn.
MOST_METRIC_PAIRS = 3


@dataclass(frozen=True, eq=False)
class Figure:
    """A figure that is not drawn yet, and what it is of.

    Attributes
    ----------
    kind : str
        "forest", "significance", "ranks", "rank-change", "critical-difference" or "bands".
    metric : str
        The metric, or the first of two; empty for curves.
    data : tuple of (column, value), or None
        The data set; None for all together.
    name : str
        Of its files, without an ending.
    display : Drawable
        The figure.
    """

    kind: str
    metric: str
    data: Split | None
    name: str
    display: Drawable


def figures_of(comparison: Comparison, data: Sequence[Split] | None = None) -> Iterator[Figure]:
    """Yield the figures of the data sets given, by default of all, and those over all."""
    splits = comparison.data if data is None else data
    for metric in comparison.metrics:
        for split in splits:
            yield from _of_metric(comparison, metric, split)
        yield from _over_all(comparison, metric)
    for split in splits:
        yield from _rank_changes(comparison, split)
    if len(comparison.data) > 1:
        yield from _rank_changes(comparison, None)
    for split in splits:
        yield from _bands(comparison, split)


def _of_metric(comparison: Comparison, metric: str, data: Split) -> Iterator[Figure]:
    forest = ForestDisplay.from_comparison(comparison, metric, data=data)
    yield _figure("forest", comparison, metric, data, forest)
    square = SignificanceMapDisplay.from_comparison(comparison, metric, data=data)
    if square.pairs:
        yield _figure("significance", comparison, metric, data, square)
    blobs = RankBlobDisplay.from_comparison(comparison, metric, data=data)
    if blobs.standings:
        yield _figure("ranks", comparison, metric, data, blobs)


def _over_all(comparison: Comparison, metric: str) -> Iterator[Figure]:
    if chosen.across_in(comparison, metric) is not None:
        diagram = CriticalDifferenceDisplay.from_comparison(comparison, metric)
        yield _figure("critical-difference", comparison, metric, None, diagram)
    if any(p.metric == metric for p in comparison.profiles):
        profile = PerformanceProfileDisplay.from_comparison(comparison, metric)
        yield _figure("profile", comparison, metric, None, profile)
    found = chosen.standings_in(comparison, metric, None)
    if len(comparison.data) > 1 and found:
        blobs = RankBlobDisplay.from_comparison(comparison, metric)
        yield _figure("ranks", comparison, metric, None, blobs)


def _rank_changes(comparison: Comparison, data: Split | None) -> Iterator[Figure]:
    pairs = itertools.combinations(comparison.metrics, 2)
    for first, second in itertools.islice(pairs, MOST_METRIC_PAIRS):
        display = RankingChangeDisplay.from_comparison(comparison, first, second, data=data)
        if display.ranks:
            metrics = f"{first}-{second}"
            yield _figure("rank-change", comparison, metrics, data, display)


def _bands(comparison: Comparison, data: Split) -> Iterator[Figure]:
    methods = chosen.with_curves(comparison)
    for kind in ("selective", "generalized"):
        display = RiskCoverageBandDisplay.from_comparison(
            comparison, data=data, kind=kind, methods=methods
        )
        if display.bands:
            yield _figure(f"{kind}-bands", comparison, "", data, display)


def _figure(
    kind: str, comparison: Comparison, metric: str, data: Split | None, display: Drawable
) -> Figure:
    parts = [kind, metric]
    if data is None:
        parts.append("all-data")
    elif data:
        # The position keeps data sets apart whose names hold nothing but odd characters.
        place = comparison.data.index(data) + 1
        parts.append(f"{place}-{'-'.join(value for _, value in data)}")
    return Figure(kind, metric, data, "_".join(_slug(p) for p in parts if p), display)


def _slug(text: str) -> str:
    return _UNSAFE.sub("-", text).strip("-.")[:60] or "x"


def find_figure(
    figures: list[dict[str, Any]], kind: str, metric: str, data: Split | None
) -> dict[str, Any] | None:
    """Return a figure of a page among those drawn."""
    wanted = (kind, metric, data)
    return next((f for f in figures if (f["kind"], f["metric"], f["data"]) == wanted), None)


def write_figures(
    comparison: Comparison,
    folder: str | os.PathLike[str],
    *,
    formats: Sequence[str] = FORMATS,
) -> list[Path]:
    """Write every figure of a comparison, each with its table.

    Parameters
    ----------
    comparison : Comparison
        What `compare` returned.
    folder : path-like
        Made when it does not exist.
    formats : sequence of str, default=("svg", "pdf", "png")
        Some of these.

    Returns
    -------
    list of pathlib.Path
        The files written: for each figure one in each format and a CSV of what it draws.

    Raises
    ------
    InputError
        If `comparison` is something else, a format is unknown, or a file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from abstain.evaluation.comparison import Comparison, Estimate
    >>> estimate = Estimate(
    ...     "augrc", (), "", "msr", 0.04, 0.03, 0.05, 0.005, 0.95, "log scale", 900, 80, True
    ... )
    >>> one = Comparison(
    ...     ("augrc",), ("msr",), ((),), ("",), 0.95, (estimate,), (), (), (), (), (), (), (), ""
    ... )
    >>> with tempfile.TemporaryDirectory() as place:
    ...     [path.name for path in write_figures(one, place, formats=["svg"])]
    ['forest_augrc.svg', 'forest_augrc.csv']
    """
    chosen.checked(comparison)
    return write_displays(
        ((figure.name, figure.display) for figure in figures_of(comparison)), folder, formats
    )
