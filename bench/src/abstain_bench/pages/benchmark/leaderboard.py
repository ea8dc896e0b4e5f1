"""Organize benchmark results by metric, method and study for the report."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from abstain.confidence.registry import BASELINE
from abstain.errors import UnknownNameError, suggest
from abstain.evaluation.comparison import MEAN, MeanRanks, RelationToBest
from abstain.metrics import metric_named
from abstain.plots.formatting import capitalize_first, check_result_type
from abstain.report.document import NAN, Label, Number
from abstain.report.formatting import find_metric, headline_metrics, is_printed_x1000, short_title
from abstain.report.subjects.comparison.metric_result import MetricResult
from abstain_bench.data.images import KINDS
from abstain_bench.results import BenchmarkResults, MethodFacts, ThresholdRow
from abstain_bench.runs.studies import Study

#: Kinds of studies with images of new classes.
NEW_CLASS_KINDS: Final = frozenset({"new-class", "far-new-class"})

#: Upper bound of the relative rank for each color of a cell, from the darkest color on.
_SHADES: Final = (0.07, 0.18, 0.32, 0.5, 0.7)

#: Number of methods in a figure, in addition to the baseline.
_N_LINES: Final = 4

#: Titles of the groups of methods without a training objective.
_ARM_TITLES: Final = {
    "ensemble": "Ensembles of the networks of all seeds",
    "": "Added scores",
}


@dataclass(frozen=True)
class GridEntry:
    """Value of a method in a study, with its rank and its comparison with the best method."""

    number: Number
    relation_to_best: RelationToBest
    rank: float = NAN


@dataclass(frozen=True)
class Grid:
    """Values of one metric, indexed by method and study."""

    metric: str
    label: Label
    studies: tuple[Study, ...]
    methods: tuple[MethodFacts, ...]
    entries: Mapping[tuple[str, str], GridEntry]

    @property
    def ignores_confidence(self) -> bool:
        """Whether the values of the metric are independent of the confidence scores."""
        metric = find_metric(self.metric)
        return metric is not None and metric.identity.ignores_confidence

    @property
    def groups(self) -> dict[str, list[MethodFacts]]:
        """The methods, grouped by training objective."""
        arms: dict[str, list[MethodFacts]] = {}
        for method in self.methods:
            arms.setdefault(method.arm, []).append(method)
        return arms

    def select(self, studies: Iterable[Study]) -> "Grid":
        """Return a grid with the given studies and only the methods that have values in them."""
        selected = tuple(study for study in studies if study in self.studies)
        grid = replace(self, studies=selected)
        methods = tuple(method for method in self.methods if any(grid.row(method)))
        return replace(grid, methods=methods)

    def row(self, method: MethodFacts) -> list[GridEntry | None]:
        """Return the entry of a method in each study, or None if it has no value."""
        return [self.entries.get((method.name, study.name)) for study in self.studies]

    def column(self, study: Study) -> dict[str, GridEntry]:
        """Return the entries of a study by method, which are empty if the study does not exist."""
        if study not in self.studies:
            return {}
        names = [method.name for method in self.methods]
        entries = ((name, self.entries.get((name, study.name))) for name in names)
        return {name: entry for name, entry in entries if entry}

    def methods_with_relation(self, study: Study, relation: RelationToBest = "best") -> list[str]:
        """Return the methods with `relation` to the best method of a study, sorted by rank."""
        ranks = {
            name: entry.rank
            for name, entry in self.column(study).items()
            if entry.relation_to_best == relation
        }
        return sorted(ranks, key=lambda name: ranks[name])

    def is_tested(self, study: Study) -> bool:
        """Return whether methods were compared with the best method of a study by a test."""
        return bool(
            self.methods_with_relation(study, "worse")
            or self.methods_with_relation(study, "not told apart")
        )


@dataclass(frozen=True)
class Leaderboard:
    """Benchmark results by metric and study, computed on first access."""

    results: BenchmarkResults
    _grids: dict[str, Grid] = field(default_factory=dict, init=False, repr=False)
    _metric_results: dict[tuple[str, str], MetricResult] = field(
        default_factory=dict, init=False, repr=False
    )

    def __post_init__(self) -> None:
        """Check the type of the results."""
        check_result_type(self.results, BenchmarkResults, "results", "results_of")

    @cached_property
    def metrics(self) -> list[str]:
        """The metrics that are used for ranking, or the first metric if there are none."""
        metrics = list(self.results.comparisons)
        ranking_metrics = [
            name for name in headline_metrics(metrics) if metric_named(name).measurement.rank_weight
        ]
        return ranking_metrics or metrics[:1]

    @cached_property
    def baseline(self) -> str:
        """The maximum softmax response if it was evaluated, or else the first method."""
        names = [method.name for method in self.results.methods]
        return BASELINE if BASELINE in names or not names else names[0]

    @cached_property
    def anchors(self) -> dict[str, str]:
        """Anchors of the studies by name."""
        return {study.name: f"study-{i}" for i, study in enumerate(self.results.headline, start=1)}

    def metric(self, name: str | None) -> str:
        """Return the name of a metric after checking that the results contain it.

        The default is the first of the metrics that are used for ranking.
        """
        if name is None:
            return self.metrics[0]
        if name not in self.results.comparisons:
            hint = suggest(str(name), self.results.comparisons)
            raise UnknownNameError(f"`metric`: the benchmark has no metric {name!r}.{hint}")
        return name

    def full_grid(self, metric: str) -> Grid:
        """Return the grid of one metric for all studies."""
        if metric not in self._grids:
            self._grids[metric] = self._build_grid(metric)
        return self._grids[metric]

    def grid(self, metric: str) -> Grid:
        """Return the grid of one metric for the studies in the main tables."""
        return self.full_grid(metric).select(self.results.headline)

    def _build_grid(self, metric: str) -> Grid:
        """Return the grid of one metric with the methods grouped by training objective."""
        results = self.results
        comparison = results.comparisons[metric]
        studies = tuple(study for study in results.studies if study_split(study) in comparison.data)
        entries = {
            (name, study.name): entry
            for study in studies
            for name, entry in _entries(self.metric_result(metric, study))
        }
        lower_is_better = next(
            (e.lower_is_better for e in comparison.estimates if e.metric == metric), True
        )
        label = Label(short_title(metric), "lower" if lower_is_better else "higher", _scale(metric))
        arms = list(dict.fromkeys(method.arm for method in results.methods))
        methods = sorted(results.methods, key=lambda method: arms.index(method.arm))
        return Grid(metric, label, studies, tuple(methods), entries).select(studies)

    def metric_result(self, metric: str, study: Study | None) -> MetricResult:
        """Return the results of a metric for one study, or over all studies if `study` is None."""
        key = (metric, study.name if study else "")
        if key not in self._metric_results:
            comparison = self.results.comparisons[metric]
            data = study_split(study) if study else None
            self._metric_results[key] = MetricResult(comparison, metric, data)
        return self._metric_results[key]

    def mean_ranks(self, metric: str) -> MeanRanks | None:
        """Return the mean ranks over all studies for one metric."""
        return self.results.comparisons[metric].mean_ranks_of(metric)

    def mean_rank_by_method(self, metric: str) -> dict[str, float]:
        """Return the mean rank over all studies for each method."""
        mean_ranks = self.mean_ranks(metric)
        if mean_ranks is None:
            return {}
        return dict(zip(mean_ranks.methods, mean_ranks.mean_ranks, strict=True))

    def ranks(self, metric: str, study: Study | None) -> dict[str, float]:
        """Return the rank of each method in one study, or over all studies if `study` is None."""
        standings = self.metric_result(metric, study).standings
        return {standing.method: standing.rank for standing in standings}

    def order(self, study: Study) -> list[str]:
        """Return the ranked methods of a study, sorted by rank."""
        ranks = self.ranks(self.metrics[0], study) if self.metrics else {}
        return [name for name, rank in ranks.items() if not math.isnan(rank)]

    def leaders(self, study: Study, max_methods: int = _N_LINES) -> list[str]:
        """Return the methods to plot for a study: the best methods and the baseline."""
        return _with_baseline(self.order(study), self.baseline, max_methods)

    @cached_property
    def thresholds(self) -> list[ThresholdRow]:
        """Threshold results as means over the seeds, or of the only seed."""
        rows = self.results.thresholds
        means = {(row.study, row.method) for row in rows if row.run == MEAN}
        return [row for row in rows if row.run == MEAN or (row.study, row.method) not in means]

    @cached_property
    def methods_with_threshold(self) -> set[str]:
        """The methods for which a threshold meets the target risk, for at least one seed."""
        return {row.method for row in self.results.thresholds if row.verdict != "unattainable"}

    @cached_property
    def order_under_corruption(self) -> list[str]:
        """Methods sorted by rank over all corruption severities, or at the highest severity."""
        studies = [study for study in self.results.studies if study.kind == "corruption"]
        # The study of all severities has severity 0.
        reference = min(studies, key=lambda s: (s.severity > 0, -s.severity), default=None)
        return self.order(reference) if reference else []

    @cached_property
    def threshold_methods(self) -> list[str]:
        """Methods to plot under corruption: the best methods with a threshold, and the baseline."""
        names = [
            name for name in self.order_under_corruption if name in self.methods_with_threshold
        ]
        return _with_baseline(names, self.baseline)

    @cached_property
    def plotted_methods(self) -> tuple[str, ...]:
        """All methods that occur in figures, in the order in which colors are assigned."""
        names = [name for study in self.results.headline for name in self.leaders(study)]
        return tuple(dict.fromkeys([self.baseline, *names, *self.threshold_methods]))

    def method_anchor(self, method: MethodFacts) -> str:
        """Return the anchor of a method."""
        return f"method-{self.results.methods.index(method) + 1}"


def _with_baseline(names: Sequence[str], base: str, max_methods: int = _N_LINES) -> list[str]:
    """Return the first `max_methods` names, and the baseline if `names` contains it."""
    leaders = list(names[:max_methods])
    if base in names and base not in leaders:
        leaders.append(base)
    return leaders


def study_split(study: Study) -> tuple[tuple[str, str], ...]:
    """Return the split that represents a study in the comparisons."""
    return (("study", study.name),)


def _scale(metric: str) -> int:
    return 1000 if is_printed_x1000(metric) else 1


def _entries(metric_result: MetricResult) -> Iterator[tuple[str, GridEntry]]:
    """Yield each method with its entry, which is colored by rank."""
    ranks = {s.method: s.rank for s in metric_result.standings if not math.isnan(s.rank)}
    scale = _scale(metric_result.metric)
    for name, number in metric_result.numbers.items():
        rank = ranks.get(name, NAN)
        displayed = replace(number, scale=scale, shade=_shade(rank, len(ranks)))
        yield name, GridEntry(displayed, metric_result.comparison_with_best[name], rank)


def _shade(rank: float, n_ranks: int) -> int | None:
    """Return the index of a cell color, where 0 is the darkest, or None for no color."""
    if math.isnan(rank) or n_ranks < 2:
        return None
    relative_rank = (rank - 1) / (n_ranks - 1)
    return next((i for i, bound in enumerate(_SHADES) if relative_rank <= bound), None)


def seeds_note(rows: Iterable[ThresholdRow]) -> str:
    """Return a note that values are means over the seeds, if this is the case."""
    return ", means over the seeds" if any(row.run == MEAN for row in rows) else ""


def arm_title(arm: str) -> str:
    """Return the title for the methods of one training objective."""
    return _ARM_TITLES.get(arm) or f"Trained by {arm}"


def kind_title(kind: str) -> str:
    """Return the display title of a kind of shift."""
    return "No shift" if kind == "iid" else capitalize_first(KINDS.get(kind, kind))
