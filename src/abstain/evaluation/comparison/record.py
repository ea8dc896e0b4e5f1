"""The result of a comparison, and the selection of its rows (`Comparison`)."""

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
    """Rows of all tables, of one data set or of all data sets together."""

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
    """The rows of one data set, and the values of each metric."""

    data: Split
    sampled: tuple[MethodValues, ...]
    resamples: int = 0


@dataclass(frozen=True, eq=False)
class Comparison(ComparisonTables, NotebookDisplay):
    """The result of `compare`.

    Attributes
    ----------
    metrics, methods : tuple of str
        Names of the metrics and methods, in the order of the input.
    data : tuple of Split
        The data sets; ``((),)`` if there is one.
    runs : tuple of str
        The runs; ``("",)`` if there is one.
    level : float
        Confidence level of all intervals. A difference is significant if its adjusted p-value is
        below 1 - level.
    estimates : tuple of Estimate
        One for each metric, data set, run and method, and the means over several runs.
    pairs : tuple of PairedDifference
        One for each metric, data set, pair of methods and test.
    standings : tuple of Standing
        One for each metric, data set and method, and for all data sets together.
    summary : tuple of SummaryRow
        One for each metric, data set and method, and for all data sets together, the best first:
        difference from the reference, rank interval and conclusion.
    mean_ranks : tuple of MeanRanks
        One for each metric if there are several data sets or runs.
    agreements : tuple of Agreement
        One for each pair of metrics and data set.
    stability : tuple of Stability
        Only with a bootstrap.
    bands : tuple of MethodBand
        One for each data set and method, of the first run; computed on first access.
    notes : tuple of Note
        Warnings and notes, warnings first.
    test : str
        The test that decides, one of those in `pairs`.
    bootstrap : int
        Number of resamples; 0 for none.
    seed : int or None
        Seed of the resamples.
    reference : str
        The reference method that was specified; empty without one.
    non_inferiority : tuple of NonInferiorityRow
        Only with a margin: one for each metric, data set and method except the reference.
    aggregates, improvements, profiles : tuple of records
        Only with several runs or data sets: interquartile means, probabilities that one method
        improves on another, and performance profiles.
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

    #: The tables of `frame`, each a field of this record.
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
        """Return the numbers of methods, data sets, runs, metrics and warnings."""
        counts = {
            "method": len(self.methods),
            "data set": len(self.data),
            "run": len(self.runs),
            "metric": len(self.metrics),
            "warning": sum(note.level == "warning" for note in self.notes),
        }
        return f"Comparison({format_counts(counts)}; .frame() has the numbers)"

    def rows(self, table: str = "pairs") -> list[dict[str, Any]]:
        """Return one table as flat rows: "estimates", "pairs", "summary" and so on."""
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
        """Return a metric of the comparison, by default the first one."""
        if metric is None:
            return self.metrics[0]
        if metric not in self.metrics:
            hint = suggest(str(metric), self.metrics)
            raise UnknownNameError(f"`{argument}`: the comparison has no metric {metric!r}.{hint}")
        return metric

    def data_or_only(self, data: Split | None) -> Split:
        """Return a data set of the comparison; None selects the only one."""
        if data is None and len(self.data) == 1:
            return self.data[0]
        if data not in self.data or data is None:
            names = "; ".join(split_name(split) for split in self.data)
            raise UnknownNameError(
                f"`data` must be one of the data sets of the comparison ({names}); got {data!r}"
            )
        return data

    def data_or_all(self, data: Split | None) -> Split | None:
        """Return a data set; None selects all data sets if there are several."""
        return None if data is None and len(self.data) > 1 else self.data_or_only(data)

    # ----------------------------------------------------------------------- properties for display
    @property
    def displayed_run(self) -> str:
        """The run whose estimates are displayed: the only one, or the mean over all runs."""
        return self.runs[0] if len(self.runs) == 1 else MEAN

    @property
    def n_pairs(self) -> int:
        """Number of pairs of methods."""
        return len(self.methods) * (len(self.methods) - 1) // 2

    @property
    def joint_level(self) -> float:
        """Probability that the conclusions and all ranks are correct, with a specified reference.

        Two families of tests, those against the reference and those of all pairs, each contain an
        error with a probability of at most 1 - level.
        """
        return round(max(2 * self.level - 1, 0.0), 10)

    @property
    def block_kind(self) -> str:
        """The blocks that rank the methods once: data sets, or runs if there is one data set."""
        return "data sets" if len(self.data) > 1 else "runs"

    @property
    def aggregated_over(self) -> str:
        """Description of the values over which aggregates are computed."""
        if len(self.runs) == 1:
            return "data sets"
        return f"runs of {len(self.data)} data sets" if len(self.data) > 1 else "runs"

    @property
    def methods_with_curves(self) -> tuple[str, ...]:
        """The methods whose curves are displayed: the best ones, in the order of `methods`."""
        standings = self.standings_of(self.metrics[0], self.data[0])
        selected = list(dict.fromkeys([*(s.method for s in standings), *self.methods]))[:_CURVES]
        return tuple(m for m in self.methods if m in selected)

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
        """Return the test that decides: that of the comparison, or else the first valid test.

        Empty if there is no valid test.
        """
        tests = self._pairs_by_test.get((metric, data), {})
        valid = [test for test, pairs in tests.items() if any(p.valid for p in pairs)]
        # "influence" selects the test "influence function", "bootstrap" selects "paired bootstrap".
        matching = (test for test in valid if self.test and self.test in test)
        return next(matching, valid[0] if valid else "")

    def tests_of(self, metric: str, data: Split | None) -> list[str]:
        """Return the tests of one metric on one data set, beginning with the one that decides."""
        first = self.deciding_test(metric, data)
        return sorted(self._pairs_by_test.get((metric, data), {}), key=lambda test: test != first)

    def pairs_of(
        self, metric: str, data: Split | None, test: str | None = None
    ) -> list[PairedDifference]:
        """Return the pairs of one metric on one data set, by default of the test that decides."""
        selected_test = self.deciding_test(metric, data) if test is None else test
        return list(self._pairs_by_test.get((metric, data), {}).get(selected_test, ()))

    def relations_to_best(self, metric: str, data: Split) -> dict[str, RelationToBest]:
        """Return the relation of each method to the best one, by the test that decides."""
        return compute_relations_to_best(
            self.estimates_of(metric, data), self.pairs_of(metric, data)
        )

    def standings_of(
        self, metric: str, data: Split | None, source: str | None = None
    ) -> list[Standing]:
        """Return the standings of one source, by default the first, sorted by rank."""
        standings = [s for s in self.standings if (s.metric, s.data) == (metric, data)]
        if standings and source is None:
            source = standings[0].source
        selected = [s for s in standings if s.source == source]
        return sorted(selected, key=lambda s: math.inf if math.isnan(s.rank) else s.rank)

    def summary_of(self, metric: str, data: Split | None) -> list[SummaryRow]:
        """Return the summary of each method by one metric on one data set, the best first."""
        return [row for row in self.summary if (row.metric, row.data) == (metric, data)]

    def mean_ranks_of(self, metric: str) -> MeanRanks | None:
        """Return the mean ranks over all data sets or runs, if there are any."""
        return next((a for a in self.mean_ranks if a.metric == metric), None)

    @property
    def is_adjusted(self) -> bool:
        """Whether p-values are adjusted for the number of pairs."""
        methods = [pair.adjustment for pair in self.pairs]
        return not methods or any(method != "none" for method in methods)

    @property
    def p_value_label(self) -> str:
        """Label of the p-values that decide: "adjusted p", or "p" if they are not adjusted."""
        return "adjusted p" if self.is_adjusted else "p"

    def describe_tests(self, metrics: Iterable[str] | None = None) -> str:
        """Return the tests and adjustments of the pairs of each data set as text."""
        names = self.metrics if metrics is None else metrics
        pair_lists = (self.pairs_of(metric, data) for metric in names for data in self.data)
        return "; ".join(dict.fromkeys(pairs[0].test_description for pairs in pair_lists if pairs))


def _row(record: Any, columns: tuple[str, ...]) -> dict[str, Any]:
    """Return a record as a flat row that begins with the split columns."""
    row: dict[str, Any] = {}
    if "data" in record.__dataclass_fields__:
        # Rows about all data sets have the value `_ALL` in every split column.
        row |= dict.fromkeys(columns, _ALL) if record.data is None else dict(record.data)
    values = ((f.name, getattr(record, f.name)) for f in fields(record) if f.name != "data")
    return row | {name: _flat(value) for name, value in values}


def _flat(value: Any) -> Any:
    if not isinstance(value, tuple):
        return value
    return "; ".join(", ".join(map(str, v)) if isinstance(v, tuple) else str(v) for v in value)
