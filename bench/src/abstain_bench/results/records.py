"""Define the data classes and tables of benchmark results."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from math import isfinite, nan
from typing import Any, ClassVar

import numpy as np

from abstain._foundation.frames import (
    AnyFrame,
    Backend,
    NotebookDisplay,
    convert_frame,
    frame_from_rows,
)
from abstain.errors import InputError, suggest
from abstain.evaluation import Comparison, Note
from abstain.thresholds import RuleCheck
from abstain.typing import FloatArray
from abstain_bench.results.published import PublishedNumber, PublishedOrder
from abstain_bench.runs.costs import Cost
from abstain_bench.runs.selection import SelectedSetting
from abstain_bench.runs.store import configured
from abstain_bench.runs.studies import Study


@dataclass(frozen=True)
class MethodFacts:
    """Title, source and meaning of a method.

    Attributes
    ----------
    name, title : str
        Unique name, and title in tables.
    arm : str
        Training objective of the scored networks, from the first selected setting.
    source, meaning : str
        Citation and description of the confidence, or empty for added methods.
    added : bool
        Whether the scores were added to the folder. If True, the method is not part of the
        catalogue.
    averages : bool
        Whether the method scores the mean prediction of dropout passes or of several networks.
    """

    name: str
    title: str
    arm: str
    source: str = ""
    meaning: str = ""
    added: bool = False
    averages: bool = False


@dataclass(frozen=True)
class ThresholdRow:
    """Coverage and selective risk of a method at a threshold that was selected on validation data.

    Means are taken over the seeds for which samples are accepted.

    Attributes
    ----------
    study, method : str
        Names of the study and the method.
    run : str
        Seed, or "mean" for several seeds.
    risk, delta : float
        Maximum selective risk of the decision rule, and probability that the risk is larger.
    checks : tuple of RuleCheck
        Check of the decision rule for each seed.
    """

    study: str
    method: str
    run: str
    risk: float
    delta: float
    checks: tuple[RuleCheck, ...]

    @property
    def coverage(self) -> float:
        """Share of accepted samples."""
        return _mean_of_finite(check.coverage for check in self.checks)

    @property
    def selective_risk(self) -> float:
        """Fraction of failures among the accepted samples."""
        return _mean_of_finite(check.selective_risk for check in self.checks)

    @property
    def excess(self) -> float:
        """Selective risk minus `risk`."""
        return _mean_of_finite(check.excess for check in self.checks)

    @property
    def verdict(self) -> str:
        """Verdict that all seeds share, or "differs" if the verdicts differ."""
        verdicts = {check.verdict for check in self.checks}
        return verdicts.pop() if len(verdicts) == 1 else "differs"

    def count(self, verdict: str) -> int:
        """Return the number of seeds with the given verdict."""
        return sum(check.verdict == verdict for check in self.checks)

    def row(self) -> dict[str, Any]:
        """Return a table row.

        If the row summarizes several seeds, its threshold and intervals are empty.
        """
        single = self.checks[0] if len(self.checks) == 1 else None
        bounds = [
            nan if check.rule.bound is None else float(check.rule.bound) for check in self.checks
        ]
        coverage = single.coverage_interval if single else None
        risk = single.selective_risk_interval if single else None
        return {
            "study": self.study,
            "method": self.method,
            "run": self.run,
            "risk": self.risk,
            "delta": self.delta,
            "threshold": single.rule.threshold if single else None,
            "bound": _mean_of_finite(bounds),
            "n": sum(check.n for check in self.checks),
            "accepted": sum(check.accepted for check in self.checks),
            "coverage": self.coverage,
            "coverage_low": coverage.low if coverage else nan,
            "coverage_high": coverage.high if coverage else nan,
            "selective_risk": self.selective_risk,
            "selective_risk_low": risk.low if risk else nan,
            "selective_risk_high": risk.high if risk else nan,
            "excess": self.excess,
            "verdict": self.verdict,
            "holds": self.count("holds"),
            "broken": self.count("broken"),
            "runs": len(self.checks),
            "note": single.rule.reason or single.selective_risk_interval.note if single else "",
        }


def _mean_of_finite(values: Iterable[float]) -> float:
    finite = [value for value in values if isfinite(value)]
    return float(np.mean(finite)) if finite else nan


@dataclass(frozen=True)
class CalibrationRow:
    """Calibration errors of one method in one study.

    Attributes
    ----------
    study, method : str
        Names of the study and the method.
    run : str
        Seed, or "mean" for the mean over the seeds.
    raw : float or None
        ECE of the confidences before Platt scaling, or None if they are not probabilities.
    platt : float
        ECE of the confidences after Platt scaling on validation data.
    """

    study: str
    method: str
    run: str
    raw: float | None
    platt: float


@dataclass(frozen=True)
class Extreme:
    """A failure with high confidence or a success with low confidence.

    Attributes
    ----------
    study, method : str
        Names of the study and the method.
    run, seed : str and int
        Name and seed of the run.
    kind : {"overconfident", "underconfident"}
        "overconfident" for failures and "underconfident" for successes.
    rank : int
        Rank of the confidence among the images of the same kind. Rank 1 is the most extreme.
    exposure, row : str and int
        Key of the exposure that contains the image, and row of the image in this exposure.
    label, prediction : int
        Class codes. The label -1 denotes a new class.
    confidence : float
        Confidence of the method.
    quantile : float
        Share of the samples of the study with a lower confidence. Samples with the same confidence
        count as one half.
    """

    study: str
    method: str
    run: str
    seed: int
    kind: str
    rank: int
    exposure: str
    row: int
    label: int
    prediction: int
    confidence: float
    quantile: float


@dataclass(frozen=True, eq=False)
class CurvePoints:
    """A risk-coverage curve that is reduced to a small number of points.

    Attributes
    ----------
    coverage, selective_risk, generalized_risk : float64 ndarray of shape (points,)
        Values in ascending order of coverage. The last coverage is 1.
    run : str
        Seed.
    """

    coverage: FloatArray
    selective_risk: FloatArray
    generalized_risk: FloatArray
    run: str = ""

    def points(self) -> list[dict[str, float]]:
        """Return a row for each point, which contains the coverage and both risks."""
        names = ("coverage", "selective_risk", "generalized_risk")
        columns = [getattr(self, name).tolist() for name in names]
        return [dict(zip(names, point, strict=True)) for point in zip(*columns, strict=True)]


@dataclass(frozen=True, eq=False)
class BenchmarkResults(NotebookDisplay):
    """Comparisons, thresholds, curves and notes from the evaluation of a benchmark.

    Attributes
    ----------
    facts : mapping
        Configuration ("config"), versions and seeds as plain values.
    studies : tuple of Study
        Compared studies in the order of the tables.
    methods : tuple of MethodFacts
        Compared methods in the order of the catalogue, followed by added methods.
    metrics : tuple of str
        Names of the metrics in the requested order.
    chosen : tuple of SelectedSetting
        Selected setting of each method for each metric.
    comparisons : mapping from str to Comparison
        Comparisons by metric. In each comparison, the data set of a study is named ``(("study",
        name),)``, and the runs are the seeds.
    thresholds : tuple of ThresholdRow
        Checks of thresholds that were set on validation data. The list includes the headline
        studies and the studies with one severity.
    curves : mapping from (study, method) to CurvePoints
        Risk-coverage curves of the first seed.
    extremes : tuple of Extreme
        Most confident failures and least confident successes in the headline studies.
    left_out : mapping from str to str
        Reasons by the name of the method for methods without values.
    findings : tuple of Note
        Notes on the results. Warnings precede the remaining notes.
    calibration : tuple of CalibrationRow
        Calibration errors before and after Platt scaling.
    undefined : mapping from (metric, study) to str
        Reasons by metric and study for metrics without values.
    level : float
        Confidence level of the intervals.
    costs : tuple of Cost
        Durations of the stages of the run.
    published : tuple of PublishedNumber
        Published values of the same methods and studies, added by `with_published`.
    published_orders : tuple of PublishedOrder
        Rank correlations between the values of the runs and published values.

    Examples
    --------
    >>> from abstain_bench.results import results_of
    >>> from abstain_bench.runs.store import configured, Store
    >>> results = results_of(Store.read("runs"))  # doctest: +SKIP
    >>> results.frame("estimates").filter(run="mean")  # doctest: +SKIP
    """

    facts: Mapping[str, Any]
    studies: tuple[Study, ...]
    methods: tuple[MethodFacts, ...]
    metrics: tuple[str, ...]
    chosen: tuple[SelectedSetting, ...]
    comparisons: Mapping[str, Comparison]
    thresholds: tuple[ThresholdRow, ...]
    curves: Mapping[tuple[str, str], CurvePoints]
    extremes: tuple[Extreme, ...]
    left_out: Mapping[str, str]
    findings: tuple[Note, ...]
    calibration: tuple[CalibrationRow, ...] = ()
    undefined: Mapping[tuple[str, str], str] = field(default_factory=dict)
    level: float = 0.95
    costs: tuple[Cost, ...] = ()
    published: tuple[PublishedNumber, ...] = ()
    published_orders: tuple[PublishedOrder, ...] = ()

    #: Tables of `rows` that are fields of this record.
    BENCHMARK_TABLES: ClassVar[tuple[str, ...]] = (
        "studies",
        "methods",
        "chosen",
        "thresholds",
        "calibration",
        "extremes",
        "curves",
        "left_out",
        "findings",
        "costs",
        "published",
        "published_orders",
    )
    #: All tables of `rows`, including the tables of the comparisons.
    TABLES: ClassVar[tuple[str, ...]] = (*Comparison.TABLES, *BENCHMARK_TABLES)

    @property
    def headline(self) -> tuple[Study, ...]:
        """Studies in the main table."""
        return tuple(study for study in self.studies if study.headline)

    def configured(self, name: str) -> Any:
        """Return a field of the configuration or of its table "benchmark", or an empty string."""
        return configured(self.facts.get("config") or {}, name)

    @property
    def task(self) -> str:
        """Name of the task, or empty if it is unknown."""
        return str(self.configured("task"))

    @property
    def model(self) -> str:
        """Name of the network architecture, or empty if it is unknown."""
        model = self.configured("model") or self.facts.get("model", "")
        if isinstance(model, Mapping):
            return str(model.get("name", ""))
        return str(model)

    def rows(self, table: str = "estimates") -> list[dict[str, Any]]:
        """Return the rows of a table.

        Parameters
        ----------
        table : str, default="estimates"
            Name in `TABLES`. Tables of `Comparison` contain all metrics.

        Returns
        -------
        list of dict
            Rows of the table, as dictionaries from column names to plain values.

        Raises
        ------
        InputError
            If the table does not exist.
        """
        if table in Comparison.TABLES:
            comparisons = self.comparisons.values()
            return [row for comparison in comparisons for row in comparison.rows(table)]
        if table not in self.BENCHMARK_TABLES:
            names = ", ".join(map(repr, self.TABLES))
            raise InputError(
                f"`table` must be one of {names}; got {table!r}.{suggest(table, self.TABLES)}"
            )
        if table == "curves":
            return [
                {"study": study, "method": method, "run": curve.run, **point}
                for (study, method), curve in self.curves.items()
                for point in curve.points()
            ]
        if table == "thresholds":
            return [threshold.row() for threshold in self.thresholds]
        if table == "left_out":
            return [{"method": name, "reason": text} for name, text in self.left_out.items()]
        return [
            {column.name: _as_cell(getattr(record, column.name)) for column in fields(record)}
            for record in getattr(self, table)
        ]

    def frame(self, table: str = "estimates", *, backend: Backend = "polars") -> AnyFrame:
        """Return a table as a dataframe with one row per observation.

        The names of the tables are those of `rows`.
        """
        import polars as pl

        if table not in Comparison.TABLES:
            return frame_from_rows(self.rows(table), backend)
        # Frames are concatenated, because Python rows of all pairs need hundreds of megabytes.
        frames = [comparison.frame(table) for comparison in self.comparisons.values()]
        nonempty = [frame for frame in frames if frame.height]
        frame = pl.concat(nonempty, how="vertical_relaxed") if nonempty else pl.DataFrame()
        return convert_frame(frame, backend)


def _as_cell(field_value: Any) -> Any:
    """Convert a tuple or mapping to text for a table cell; return other values unchanged."""
    if isinstance(field_value, Mapping):
        entries = [
            f"{name or '(the only one)'}: {number:.6g}" for name, number in field_value.items()
        ]
        return "; ".join(entries)
    if isinstance(field_value, tuple):
        entries = [
            " = ".join(entry) if isinstance(entry, tuple) else str(entry) for entry in field_value
        ]
        return "; ".join(entries)
    return field_value
