"""Define the result of a comparison, with methods to select rows of its tables (`Comparison`)."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar

from abstain._foundation.frames import AnyFrame, Backend, NotebookDisplay, frame_from_rows
from abstain._foundation.names import split_name
from abstain._foundation.notes import Note
from abstain.errors import InputError, UnknownNameError, suggest
from abstain.evaluation.comparison.tables import (
    MEAN,
    AggregateRow,
    Agreement,
    Estimate,
    Improvement,
    MeanRanks,
    MethodBand,
    NonInferiorityRow,
    PairedDifference,
    Profile,
    RelationToBest,
    Stability,
    Standing,
    SummaryRow,
    compute_relations_to_best,
)
from abstain.evaluation.comparison.values import MethodValues
from abstain.evaluation.records import format_counts
from abstain.typing import Split

#: Value of the split columns in rows about all data sets.
_ALL = "(all)"

#: Maximum number of methods with a curve in one figure.
_CURVES = 8


@dataclass(frozen=True, eq=False, kw_only=True)
class ComparisonTables:
    """The rows of all tables, for one data set or for all data sets together."""

    estimates: tuple[Estimate, ...] = ()
    pairs: tuple[PairedDifference, ...] = ()
    standings: tuple[Standing, ...] = ()
    summary: tuple[SummaryRow, ...] = ()
    mean_ranks: tuple[MeanRanks, ...] = ()
    agreements: tuple[Agreement, ...] = ()
    stability: tuple[Stability, ...] = ()
    bands: tuple[MethodBand, ...] = ()
    non_inferiority: tuple[NonInferiorityRow, ...] = ()
    aggregates: tuple[AggregateRow, ...] = ()
    improvements: tuple[Improvement, ...] = ()
    profiles: tuple[Profile, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class DataSetComparison(ComparisonTables):
    """The rows for one data set, and the values of each metric."""

    data: Split
    sampled: tuple[MethodValues, ...]
    resamples: int = 0


@dataclass(frozen=True, eq=False)
class Comparison(ComparisonTables, NotebookDisplay):
    """The result of `compare`.

    Attributes
    ----------
    metrics, methods : tuple of str
        Names of the metrics and methods, in the order in which they were passed.
    data : tuple of Split
        The data sets, or ``((),)`` if there is a single data set.
    runs : tuple of str
        The runs, or ``("",)`` if there is a single run.
    level : float
        Confidence level of all intervals. A difference is significant if its adjusted p-value is
        below 1 - level.
    estimates : tuple of Estimate
        One estimate for each metric, data set, run and method, and for each mean over several runs.
    pairs : tuple of PairedDifference
        One paired difference for each metric, data set, pair of methods and test.
    standings : tuple of Standing
        One standing for each metric, data set and method, and for all data sets together.
    summary : tuple of SummaryRow
        One row for each metric, data set and method, and for all data sets together. A row contains
        the difference from the reference, the interval of the rank and the conclusion. Methods are
        sorted from the best to the worst.
    mean_ranks : tuple of MeanRanks
        One entry for each metric if there are several data sets or runs.
    agreements : tuple of Agreement
        One entry for each pair of metrics and each data set.
    stability : tuple of Stability
        Agreement between the rankings of pairs of resamples. It requires the bootstrap.
    bands : tuple of MethodBand
        One entry for each data set and method, for the first run. Bands are computed on first
        access.
    notes : tuple of Note
        Notes about the comparison. Warnings come first.
    test : str
        The test that decides which differences are significant.
    bootstrap : int
        Number of resamples, or 0 if no resamples were drawn.
    seed : int or None
        Seed of the resamples.
    reference : str
        The specified reference method, or an empty string.
    non_inferiority : tuple of NonInferiorityRow
        One row for each metric, data set and method except the reference. It is empty without a
        margin.
    aggregates, improvements, profiles : tuple of records
        Interquartile means, probabilities that one method improves on another, and performance
        profiles. These tables are only computed for several runs or data sets.
    """

    metrics: tuple[str, ...]
    methods: tuple[str, ...]
    data: tuple[Split, ...]
    runs: tuple[str, ...]
    level: float
    notes: tuple[Note, ...]
    test: str
    bootstrap: int = 0
    seed: int | None = None
    reference: str = ""

    #: Names of the tables that `frame` returns. Each table is a field of this class.
    TABLES: ClassVar[tuple[str, ...]] = (
        "estimates",
        "pairs",
        "standings",
        "summary",
        "mean_ranks",
        "agreements",
        "stability",
        "non_inferiority",
        "aggregates",
        "improvements",
    )

    def __repr__(self) -> str:
        """Return a summary with the numbers of methods, data sets, runs, metrics and warnings."""
        counts = {
            "method": len(self.methods),
            "data set": len(self.data),
            "run": len(self.runs),
            "metric": len(self.metrics),
            "warning": sum(note.level == "warning" for note in self.notes),
        }
        return f"Comparison({format_counts(counts)}; .frame() has the numbers)"

    def rows(self, table: str = "pairs") -> list[dict[str, Any]]:
        """Return the rows of one table, such as "estimates", "pairs" or "summary"."""
        if table not in self.TABLES:
            names = ", ".join(map(repr, self.TABLES))
            raise InputError(
                f"`table` must be one of {names}; got {table!r}.{suggest(table, self.TABLES)}"
            )
        columns = dict.fromkeys(column for split in self.data for column, _ in split)
        return [_row(record, tuple(columns)) for record in getattr(self, table)]

    def frame(self, table: str = "pairs", *, backend: Backend = "polars") -> AnyFrame:
        """Return one table as a tidy dataframe."""
        return frame_from_rows(self.rows(table), backend)

    # ------------------------------------------------------------------- validation of arguments
    def metric_or_first(self, metric: str | None, argument: str = "metric") -> str:
        """Return a validated metric name; None selects the first metric."""
        if metric is None:
            return self.metrics[0]
        if metric not in self.metrics:
            hint = suggest(str(metric), self.metrics)
            raise UnknownNameError(f"`{argument}`: the comparison has no metric {metric!r}.{hint}")
        return metric

    def data_or_only(self, data: Split | None) -> Split:
        """Return a validated data set; None selects the only data set."""
        if data is None and len(self.data) == 1:
            return self.data[0]
        if data not in self.data or data is None:
            names = "; ".join(split_name(split) for split in self.data)
            raise UnknownNameError(
                f"`data` must be one of the data sets of the comparison ({names}); got {data!r}"
            )
        return data

    def data_or_all(self, data: Split | None) -> Split | None:
        """Return a validated data set; None selects all data sets if there are several."""
        return None if data is None and len(self.data) > 1 else self.data_or_only(data)

    # ----------------------------------------------------------------------- properties for display
    @property
    def displayed_run(self) -> str:
        """The name of the displayed run, which is "mean" if there are several runs."""
        return self.runs[0] if len(self.runs) == 1 else MEAN

    @property
    def n_pairs(self) -> int:
        """Number of pairs of methods."""
        return len(self.methods) * (len(self.methods) - 1) // 2

    @property
    def joint_level(self) -> float:
        """Joint confidence level of the conclusions and all ranks if a reference is specified.

        The tests against the reference have any error with a probability of at most 1 - level, and
        so do the tests of all pairs.
        """
        return round(max(2 * self.level - 1, 0.0), 10)

    @property
    def block_kind(self) -> str:
        """Unit over which the methods are ranked: "data sets" or "runs"."""
        return "data sets" if len(self.data) > 1 else "runs"

    @property
    def aggregated_over(self) -> str:
        """Description of the values over which aggregates are computed."""
        if len(self.runs) == 1:
            return "data sets"
        return f"runs of {len(self.data)} data sets" if len(self.data) > 1 else "runs"

    @property
    def methods_with_curves(self) -> tuple[str, ...]:
        """Names of the best methods, whose curves are plotted, in the order of `methods`."""
        standings = self.standings_of(self.metrics[0], self.data[0])
        ranked_methods = [standing.method for standing in standings]
        selected = list(dict.fromkeys([*ranked_methods, *self.methods]))[:_CURVES]
        return tuple(method for method in self.methods if method in selected)

    # ------------------------------------------------------------------------ selection of rows
    def estimates_of(self, metric: str, data: Split) -> list[Estimate]:
        """Return the estimates of one metric on one data set, in the order of the methods."""
        key = (metric, data, self.displayed_run)
        by_method = {e.method: e for e in self.estimates if (e.metric, e.data, e.run) == key}
        return [by_method[method] for method in self.methods if method in by_method]

    @cached_property
    def _pairs_by_test(self) -> dict[tuple[str, Split | None], dict[str, list[PairedDifference]]]:
        """The pairs of each metric and data set, grouped by test."""
        grouped: dict[tuple[str, Split | None], dict[str, list[PairedDifference]]] = {}
        for pair in self.pairs:
            tests = grouped.setdefault((pair.metric, pair.data), {})
            tests.setdefault(pair.test, []).append(pair)
        return grouped

    def deciding_test(self, metric: str, data: Split | None) -> str:
        """Return the name of the requested test if it was run, or else of the first valid test.

        The result is an empty string if there is no valid test.
        """
        tests = self._pairs_by_test.get((metric, data), {})
        valid = [test for test, pairs in tests.items() if any(p.valid for p in pairs)]
        # The names of tests contain the option, as "paired bootstrap" contains "bootstrap".
        matching = (test for test in valid if self.test and self.test in test)
        return next(matching, valid[0] if valid else "")

    def tests_of(self, metric: str, data: Split | None) -> list[str]:
        """Return the tests of one metric on one data set; the decisive test comes first."""
        first = self.deciding_test(metric, data)
        return sorted(self._pairs_by_test.get((metric, data), {}), key=lambda test: test != first)

    def pairs_of(
        self, metric: str, data: Split | None, test: str | None = None
    ) -> list[PairedDifference]:
        """Return the pairs of one metric on one data set, by default with the decisive test."""
        selected_test = self.deciding_test(metric, data) if test is None else test
        return list(self._pairs_by_test.get((metric, data), {}).get(selected_test, ()))

    def relations_to_best(self, metric: str, data: Split) -> dict[str, RelationToBest]:
        """Return the relation of each method to the best method according to the decisive test."""
        return compute_relations_to_best(
            self.estimates_of(metric, data), self.pairs_of(metric, data)
        )

    def standings_of(
        self, metric: str, data: Split | None, source: str | None = None
    ) -> list[Standing]:
        """Return the ranks from one source (by default the first), sorted from the best."""
        standings = [s for s in self.standings if (s.metric, s.data) == (metric, data)]
        if standings and source is None:
            source = standings[0].source
        selected = [s for s in standings if s.source == source]
        return sorted(selected, key=lambda s: math.inf if math.isnan(s.rank) else s.rank)

    def summary_of(self, metric: str, data: Split | None) -> list[SummaryRow]:
        """Return the summary of each method for one metric on one data set; the best is first."""
        return [row for row in self.summary if (row.metric, row.data) == (metric, data)]

    def mean_ranks_of(self, metric: str) -> MeanRanks | None:
        """Return the mean ranks over all data sets or runs; None if these were not computed."""
        return next((a for a in self.mean_ranks if a.metric == metric), None)

    @property
    def is_adjusted(self) -> bool:
        """Whether p-values are adjusted for multiple comparisons."""
        methods = [pair.adjustment for pair in self.pairs]
        return not methods or any(method != "none" for method in methods)

    @property
    def p_value_label(self) -> str:
        """Label of the p-values, which is "p" without an adjustment and "adjusted p" with one."""
        return "adjusted p" if self.is_adjusted else "p"

    def describe_tests(self, metrics: Iterable[str] | None = None) -> str:
        """Return a text that names the tests and adjustments of the pairs on each data set."""
        descriptions: dict[str, None] = {}
        for metric in self.metrics if metrics is None else metrics:
            for data in self.data:
                pairs = self.pairs_of(metric, data)
                if pairs:
                    descriptions[pairs[0].test_description] = None
        return "; ".join(descriptions)


def _row(record: Any, columns: tuple[str, ...]) -> dict[str, Any]:
    """Return a record as a flat row that begins with the split columns."""
    row: dict[str, Any] = {}
    if "data" in record.__dataclass_fields__:
        # A row about all data sets has the value `_ALL` in every split column.
        row |= dict.fromkeys(columns, _ALL) if record.data is None else dict(record.data)
    for field in fields(record):
        if field.name != "data":
            row[field.name] = _flatten(getattr(record, field.name))
    return row


def _flatten(value: Any) -> Any:
    """Convert a tuple, which may be nested, to text, and return any other value unchanged."""
    if not isinstance(value, tuple):
        return value
    return "; ".join(", ".join(map(str, v)) if isinstance(v, tuple) else str(v) for v in value)
