"""Methods x studies by one metric: the table of the papers, in every output format the same."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from abstain.benchmark.protocol import Study
from abstain.benchmark.results import BenchmarkResults, MethodFacts
from abstain.errors import InputError
from abstain.evaluation.comparison import Comparison, Estimate
from abstain.plots import chosen
from abstain.report.comparison_words import arrow_of, between, kilo_of, written
from abstain.report.words import short_title

#: What stands where a method has no value.
NONE: Final = "–"

#: Sources of failures that no answer is right for.
NEW: Final = frozenset({"new-class", "far-new-class"})

_MIX: Final = (
    "Pictures of new classes count as wrong answers: with them, accuracy says mostly how many "
    "there are."
)

#: The metrics by which methods are ranked first, where they were computed.
_RANKING: Final = ("augrc", "aurc")


@dataclass(frozen=True)
class Entry:
    """One method in one study by one metric.

    Attributes
    ----------
    value : float
        As it is; NaN where undefined.
    text, interval : str
        As they are read; the interval is empty where there is none.
    stands : Footing
        How it stands to the best of the study.
    rank : float
        1 is best; NaN without a value.
    of : int
        How many have a rank in the study.
    note : str
        What to be careful about.
    """

    value: float
    text: str
    interval: str
    stands: chosen.Footing
    rank: float
    of: int
    note: str

    @property
    def ranked(self) -> str:
        """The rank as it is read."""
        return NONE if math.isnan(self.rank) else f"{self.rank:g}"


@dataclass(frozen=True)
class Line:
    """A method and its entries, one for each study, None where it has none."""

    method: MethodFacts
    entries: tuple[Entry | None, ...]


@dataclass(frozen=True)
class Grid:
    """All methods in several studies by one metric.

    Attributes
    ----------
    metric, title : str
        Its name and the one that people read.
    kilo : bool
        Whether values are printed times 1000.
    arrow : str
        Where better is.
    studies : tuple of Study
        The columns.
    groups : tuple of (str, tuple of Line)
        The rows, by what the networks were trained by.
    """

    metric: str
    title: str
    kilo: bool
    arrow: str
    studies: tuple[Study, ...]
    groups: tuple[tuple[str, tuple[Line, ...]], ...]

    @property
    def lines(self) -> list[Line]:
        """All rows."""
        return [line for _, lines in self.groups for line in lines]

    @property
    def spans(self) -> list[tuple[str, int]]:
        """The kinds of studies over the columns, with how many columns each has."""
        kinds = itertools.groupby(self.studies, lambda study: study.kind)
        return [(kind, len(list(group))) for kind, group in kinds]

    def standing(self, column: int, footing: chosen.Footing = "best") -> list[str]:
        """Return the methods that stand so to the best of a study, the best first."""
        found = [
            (entry.rank, line.method.name)
            for line in self.lines
            if (entry := line.entries[column]) and entry.stands == footing
        ]
        return [name for _, name in sorted(found, key=lambda pair: pair[0])]

    def only(self, studies: Sequence[Study]) -> "Grid":
        """Return the columns of some studies, in their order."""
        kept = [self.studies.index(study) for study in studies if study in self.studies]
        groups = tuple(
            (arm, tuple(Line(one.method, tuple(one.entries[i] for i in kept)) for one in lines))
            for arm, lines in self.groups
        )
        return replace(self, studies=tuple(self.studies[i] for i in kept), groups=groups)

    def of(self, study: Study) -> dict[str, Entry]:
        """Return what each method has in one study; nothing where it is no column."""
        if study not in self.studies:
            return {}
        i = self.studies.index(study)
        return {line.method.name: e for line in self.lines if (e := line.entries[i])}


def checked_results(results: object) -> BenchmarkResults:
    """Refuse what is no result of a benchmark."""
    if not isinstance(results, BenchmarkResults):
        msg = f"`results` must be what `results_of` returned; got {type(results).__name__}"
        raise InputError(msg)
    return results


def headline(results: BenchmarkResults) -> tuple[Study, ...]:
    """Return the studies that are columns of the main tables."""
    return tuple(study for study in results.studies if study.headline)


def ranking_metrics(results: BenchmarkResults) -> list[str]:
    """Return the metrics that rank, the first one deciding; by default the first of all."""
    known = [metric for metric in _RANKING if metric in results.comparisons]
    return known or list(results.comparisons)[:1]


def at(study: Study) -> tuple[tuple[str, str], ...]:
    """Return a study as the comparisons name it."""
    return (("study", study.name),)


def grid_of(results: BenchmarkResults, metric: str, studies: Sequence[Study] | None = None) -> Grid:
    """Lay one metric out over studies, by default over those of the main tables."""
    comparison = results.comparisons[metric]
    wanted = headline(results) if studies is None else studies
    columns = tuple(study for study in wanted if at(study) in comparison.data)
    entries = [_entries(comparison, metric, study) for study in columns]
    rows = [
        Line(method, tuple(column.get(method.name) for column in entries))
        for method in results.methods
    ]
    kept = [line for line in rows if any(line.entries)]
    arms = dict.fromkeys(line.method.arm for line in kept)
    return Grid(
        metric,
        short_title(metric),
        kilo_of(metric, thousand=True),
        arrow_of(e for e in comparison.estimates if e.metric == metric),
        columns,
        tuple((arm, tuple(line for line in kept if line.method.arm == arm)) for arm in arms),
    )


def _entries(comparison: Comparison, metric: str, study: Study) -> dict[str, Entry]:
    data = at(study)
    found = chosen.estimates_in(comparison, metric, data)
    stands = chosen.footing(found, chosen.pairs_in(comparison, metric, data))
    ranks = {s.method: s.rank for s in chosen.standings_in(comparison, metric, data)}
    kilo = kilo_of(metric, thousand=True)
    ranked = sum(not math.isnan(rank) for rank in ranks.values())
    return {
        e.method: _entry(e, stands[e.method], (ranks.get(e.method, math.nan), ranked), kilo)
        for e in found
    }


def _entry(
    estimate: Estimate, stands: chosen.Footing, rank: tuple[float, int], kilo: bool
) -> Entry:
    text = NONE if math.isnan(estimate.value) else written(estimate.value, kilo=kilo)
    interval = between(estimate.low, estimate.high, kilo=kilo)
    return Entry(estimate.value, text, interval, stands, *rank, estimate.note)


def mean_ranks(results: BenchmarkResults, metric: str) -> dict[str, float]:
    """Return the mean rank of each method over all that was compared by a metric."""
    across = chosen.across_in(results.comparisons[metric], metric)
    return dict(zip(across.methods, across.mean_ranks, strict=True)) if across else {}


def by_rank(results: BenchmarkResults, metric: str, study: Study) -> list[str]:
    """Return the methods of a study, the best first, those without a rank left out."""
    found = chosen.standings_in(results.comparisons[metric], metric, at(study))
    return [standing.method for standing in found if not math.isnan(standing.rank)]


def leaders(results: BenchmarkResults, metric: str, study: Study, most: int = 4) -> list[str]:
    """Return the best methods of a study and the baseline: what a figure has room for."""
    names = by_rank(results, metric, study)
    base = baseline(results)
    return list(dict.fromkeys([*names[:most], *([base] if base in names else [])]))


def baseline(results: BenchmarkResults) -> str:
    """Return the maximum softmax response, or else the first method."""
    names = [method.name for method in results.methods]
    return "msr" if "msr" in names or not names else names[0]


def footnote(grid: Grid, level: float, *, intervals: bool, ranked: bool) -> list[str]:
    """Return the sentences under a table; `{tie}` stands for the mark of a tie."""
    stands = {entry.stands for line in grid.lines for entry in line.entries if entry}
    said = ["The arrow points to where better is; bold marks the best value of a column."]
    said.append("Values are times 1000." if grid.kilo else "Values are fractions.")
    if "not told apart" in stands:
        alpha = chosen.percent(round(1 - level, 10))
        said.append(
            f"{{tie}}: cannot be told from the best at {alpha}; the level holds for all pairs of a "
            "column together."
        )
    if "untested" in stands:
        rest = "Values without a mark" if "not told apart" in stands else "Differences"
        said.append(f"{rest} were not tested.")
    if ranked:
        said.append("Mean rank: over the columns; 1 is best.")
    if grid.metric == "accuracy" and any(study.kind in NEW for study in grid.studies):
        said.append(_MIX)
    if intervals:
        said.append(f"In brackets: {chosen.percent(level)} intervals.")
    return said
