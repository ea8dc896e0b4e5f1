"""A benchmark as its report reads it: methods x studies by each metric, and who is best there."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from abstain.confidence.registry import BASELINE
from abstain.errors import UnknownNameError, suggest
from abstain.evaluation.comparison import MeanRanks, RelationToBest
from abstain.metrics import metric_named
from abstain.plots.formatting import capitalize_first, check_result_type
from abstain.report.document import NAN, Label, Number
from abstain.report.formatting import find_metric, headline_metrics, is_printed_x1000, short_title
from abstain.report.subjects.comparison.metric_result import MetricResult
from abstain_bench.data.exposures import KINDS
from abstain_bench.results import BenchmarkResults, MethodFacts, ThresholdRow
from abstain_bench.results.records import MEAN
from abstain_bench.runs.studies import Study

#: Sources of failures that no answer is right for.
NEW: Final = frozenset({"new-class", "far-new-class"})

#: Up to which share of the ranks of a column a cell has which color, the strongest first.
_SHADES: Final = (0.07, 0.18, 0.32, 0.5, 0.7)

#: Lines of a figure, beside that of the baseline.
_LINES: Final = 4

#: The arms that have a name of their own.
_ARMS: Final = {
    "ensemble": "The networks of all seeds together",
    "": "Trained elsewhere",
}


@dataclass(frozen=True)
class GridEntry:
    """One method in one study by one metric; it `stands` to the best there, and has a rank."""

    number: Number
    stands: RelationToBest
    rank: float = NAN


@dataclass(frozen=True)
class Grid:
    """Methods in several studies by one metric; `entries` by the names of both."""

    metric: str
    label: Label
    studies: tuple[Study, ...]
    methods: tuple[MethodFacts, ...]
    entries: Mapping[tuple[str, str], GridEntry]

    @property
    def of_classifier(self) -> bool:
        """Whether the metric knows only the classifier."""
        metric = find_metric(self.metric)
        return metric is not None and metric.identity.ignores_confidence

    @property
    def groups(self) -> dict[str, list[MethodFacts]]:
        """The methods by what their networks were trained by."""
        arms: dict[str, list[MethodFacts]] = {}
        for method in self.methods:
            arms.setdefault(method.arm, []).append(method)
        return arms

    def only(self, studies: Iterable[Study]) -> "Grid":
        """Return the columns of some studies, in their order, and who has something there."""
        kept = tuple(study for study in studies if study in self.studies)
        grid = replace(self, studies=kept)
        return replace(grid, methods=tuple(m for m in self.methods if any(grid.row(m))))

    def row(self, method: MethodFacts) -> list[GridEntry | None]:
        """Return what a method has in each study."""
        return [self.entries.get((method.name, study.name)) for study in self.studies]

    def column(self, study: Study) -> dict[str, GridEntry]:
        """Return what each method has in one study; nothing where it is no column."""
        if study not in self.studies:
            return {}
        found = ((m.name, self.entries.get((m.name, study.name))) for m in self.methods)
        return {name: entry for name, entry in found if entry}

    def standing(self, study: Study, footing: RelationToBest = "best") -> list[str]:
        """Return the methods that stand so to the best of a study, the best first."""
        found = {n: e.rank for n, e in self.column(study).items() if e.stands == footing}
        return sorted(found, key=lambda name: found[name])

    def is_tested(self, study: Study) -> bool:
        """Tell whether the methods of a study were tested against its best."""
        return bool(self.standing(study, "worse") or self.standing(study, "not told apart"))


@dataclass(frozen=True)
class Leaderboard:
    """The results of a benchmark, with each metric laid out once, and each study looked up once."""

    results: BenchmarkResults
    _grids: dict[str, Grid] = field(default_factory=dict, init=False, repr=False)
    _places: dict[tuple[str, str], MetricResult] = field(
        default_factory=dict, init=False, repr=False
    )

    def __post_init__(self) -> None:
        """Refuse what is no result of a benchmark."""
        check_result_type(self.results, BenchmarkResults, "results", "results_of")

    @cached_property
    def metrics(self) -> list[str]:
        """The metrics that rank, the first one deciding; by default the first of all."""
        metrics = list(self.results.comparisons)
        # Areas under a curve weigh every coverage.
        return [
            m for m in headline_metrics(metrics) if metric_named(m).measurement.rank_weight
        ] or metrics[:1]

    @cached_property
    def baseline(self) -> str:
        """The maximum softmax response, or else the first method."""
        names = [method.name for method in self.results.methods]
        return BASELINE if BASELINE in names or not names else names[0]

    @cached_property
    def places(self) -> dict[str, str]:
        """The anchors of studies by their names: positions, never names of the caller."""
        return {study.name: f"study-{i}" for i, study in enumerate(self.results.headline, 1)}

    def metric(self, name: str | None) -> str:
        """Return a metric of the results, by default the one that ranks first."""
        if name is None:
            return self.metrics[0]
        if name not in self.results.comparisons:
            hint = suggest(str(name), self.results.comparisons)
            raise UnknownNameError(f"`metric`: the benchmark has no metric {name!r}.{hint}")
        return name

    def whole(self, metric: str) -> Grid:
        """Return one metric in all studies, also those that no main table has."""
        if metric not in self._grids:
            self._grids[metric] = self._laid_out(metric)
        return self._grids[metric]

    def grid(self, metric: str) -> Grid:
        """Return one metric in the studies of the main tables."""
        return self.whole(metric).only(self.results.headline)

    def _laid_out(self, metric: str) -> Grid:
        comparison, results = self.results.comparisons[metric], self.results
        studies = tuple(study for study in results.studies if at(study) in comparison.data)
        entries = {
            (name, study.name): entry
            for study in studies
            for name, entry in _entries(self.found(metric, study))
        }
        lower = next((e.lower_is_better for e in comparison.estimates if e.metric == metric), True)
        label = Label(short_title(metric), "lower" if lower else "higher", _scale(metric))
        # Those whose networks were trained alike stand together.
        arms = list(dict.fromkeys(method.arm for method in results.methods))
        methods = sorted(results.methods, key=lambda method: arms.index(method.arm))
        return Grid(metric, label, studies, tuple(methods), entries).only(studies)

    def found(self, metric: str, study: Study | None) -> MetricResult:
        """Return what was found by a metric in a study, or over all."""
        where = metric, study.name if study else ""
        if where not in self._places:
            data = at(study) if study else None
            self._places[where] = MetricResult(self.results.comparisons[metric], metric, data)
        return self._places[where]

    def across(self, metric: str) -> MeanRanks | None:
        """Return the ranking over all that was compared by a metric."""
        return self.results.comparisons[metric].mean_ranks_of(metric)

    def means(self, metric: str) -> dict[str, float]:
        """Return the mean rank of each method over all that was compared by a metric."""
        across = self.across(metric)
        return dict(zip(across.methods, across.mean_ranks, strict=True)) if across else {}

    def ranks(self, metric: str, study: Study | None) -> dict[str, float]:
        """Return the ranks in a study, or over all, the best first."""
        return {s.method: s.rank for s in self.found(metric, study).standings}

    def order(self, study: Study) -> list[str]:
        """Return the methods of a study that have a rank, the best first."""
        ranks = self.ranks(self.metrics[0], study) if self.metrics else {}
        return [name for name, rank in ranks.items() if not math.isnan(rank)]

    def leaders(self, study: Study, most: int = _LINES) -> list[str]:
        """Return the best methods of a study and the baseline: what a figure has room for."""
        return _with_baseline(self.order(study), self.baseline, most)

    @cached_property
    def thresholds(self) -> list[ThresholdRow]:
        """What thresholds achieve: the means over the seeds, and methods with one seed."""
        rows = self.results.thresholds
        means = {(row.study, row.method) for row in rows if row.run == MEAN}
        return [row for row in rows if row.run == MEAN or (row.study, row.method) not in means]

    @cached_property
    def usable(self) -> set[str]:
        """The methods that found a threshold for the target risk with some seed."""
        return {row.method for row in self.results.thresholds if row.verdict != "unattainable"}

    @cached_property
    def corrupted(self) -> list[str]:
        """The methods by their rank under all corruptions, or under the strongest one."""
        studies = [study for study in self.results.studies if study.kind == "corruption"]
        strongest = min(studies, key=lambda s: (s.severity > 0, -s.severity), default=None)
        return self.order(strongest) if strongest else []

    @cached_property
    def followed(self) -> list[str]:
        """The best methods under corruption that have a threshold, and the baseline."""
        names = [name for name in self.corrupted if name in self.usable]
        return _with_baseline(names, self.baseline)

    @cached_property
    def drawn(self) -> tuple[str, ...]:
        """All methods that some figure draws, so that each keeps its color on the page."""
        names = [name for study in self.results.headline for name in self.leaders(study)]
        return tuple(dict.fromkeys([self.baseline, *names, *self.followed]))

    def place(self, method: MethodFacts) -> str:
        """Return the anchor of a method."""
        return f"method-{self.results.methods.index(method) + 1}"


def _with_baseline(names: Sequence[str], base: str, most: int = _LINES) -> list[str]:
    return list(dict.fromkeys([*names[:most], *([base] if base in names else [])]))


def at(study: Study) -> tuple[tuple[str, str], ...]:
    """Return a study as the comparisons name it."""
    return (("study", study.name),)


def _scale(metric: str) -> int:
    return 1000 if is_printed_x1000(metric) else 1


def _entries(place: MetricResult) -> Iterator[tuple[str, GridEntry]]:
    ranks = {s.method: s.rank for s in place.standings if not math.isnan(s.rank)}
    for name, number in place.numbers.items():
        rank = ranks.get(name, NAN)
        shown = replace(number, scale=_scale(place.metric), shade=_shade(rank, len(ranks)))
        yield name, GridEntry(shown, place.comparison_with_best[name], rank)


def _shade(rank: float, of: int) -> int | None:
    """Return the color of a cell: the better the rank, the stronger."""
    if math.isnan(rank) or of < 2:
        return None
    place = (rank - 1) / (of - 1)
    return next((i for i, most in enumerate(_SHADES) if place <= most), None)


def over_seeds(rows: Iterable[ThresholdRow]) -> str:
    """Say that values are means, where they are."""
    return ", means over the seeds" if any(row.run == MEAN for row in rows) else ""


def arm_title(arm: str) -> str:
    """Say what the networks of a group were trained by."""
    return _ARMS.get(arm) or f"Trained by {arm}"


def kind_title(kind: str) -> str:
    """Return the name of a source of failures that people read."""
    return "No shift" if kind == "iid" else capitalize_first(KINDS.get(kind, kind))
