"""`BenchmarkResults`: the results of a folder of runs, as plain records and tables."""

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
        Names for scripts and for people.
    arm : str
        The arm whose networks it scores; if there are several, that of the first selected setting.
    source, meaning : str
        Citation and description of its confidence; empty for added methods.
    added : bool
        Whether its scores were added to the folder, so that the catalogue does not contain it.
    averages : bool
        Whether it scores the mean prediction of dropout passes or of several networks.
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
    """Coverage and risk in a study at thresholds that were set on validation data.

    Numbers are means over the seeds with accepted samples.

    Attributes
    ----------
    study, method : str
        Names.
    run : str
        The seed, or "mean" for several seeds.
    risk, delta : float
        The target: a selective risk of at most `risk`, which may fail with probability `delta`.
    checks : tuple of RuleCheck
        One for each seed.
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
        """Share of failures among the accepted samples."""
        return _mean_of_finite(check.selective_risk for check in self.checks)

    @property
    def excess(self) -> float:
        """Selective risk minus `risk`: positive values exceed the target."""
        return _mean_of_finite(check.excess for check in self.checks)

    @property
    def verdict(self) -> str:
        """The verdict of all seeds, or "differs"."""
        verdicts = {check.verdict for check in self.checks}
        return verdicts.pop() if len(verdicts) == 1 else "differs"

    def count(self, verdict: str) -> int:
        """Count the seeds with a verdict."""
        return sum(check.verdict == verdict for check in self.checks)

    def row(self) -> dict[str, Any]:
        """Return plain values; threshold and intervals are empty for several seeds."""
        single = self.checks[0] if len(self.checks) == 1 else None
        bounds = (nan if c.rule.bound is None else float(c.rule.bound) for c in self.checks)
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
    """Calibration errors of a method in one study.

    Attributes
    ----------
    study, method, run : str
        Names; the run is a seed, or "mean" over the seeds.
    raw : float or None
        ECE of the unscaled confidences; None if they are no probabilities.
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
    """An image for which the confidence of a method is most misleading.

    Attributes
    ----------
    study, method : str
        Names.
    run, seed : str and int
        Name and seed of the run.
    kind : {"overconfident", "underconfident"}
        A failure with a high confidence, or a success with a low one.
    rank : int
        1 for the most extreme.
    exposure, row : str and int
        Key of the exposure of the image, and its row in this exposure.
    label, prediction : int
        Class codes; the label -1 stands for no known class.
    confidence : float
        Confidence of the method.
    quantile : float
        Share of the samples of the study with a lower confidence; ties count half.
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
    """A risk-coverage curve with few points, for plots.

    Attributes
    ----------
    coverage, selective_risk, generalized_risk : float64 ndarray of shape (points,)
        Values by increasing coverage, up to 1.
    run : str
        The seed.
    """

    coverage: FloatArray
    selective_risk: FloatArray
    generalized_risk: FloatArray
    run: str = ""

    def points(self) -> list[dict[str, float]]:
        """Return coverage and risks by name for each point."""
        names = ("coverage", "selective_risk", "generalized_risk")
        columns = [getattr(self, name).tolist() for name in names]
        return [dict(zip(names, point, strict=True)) for point in zip(*columns, strict=True)]


@dataclass(frozen=True, eq=False)
class BenchmarkResults(NotebookDisplay):
    """The results of a folder of runs: comparisons, thresholds, curves and notes.

    Attributes
    ----------
    facts : mapping
        The configuration ("config"), versions and seeds, as plain values.
    studies : tuple of Study
        The columns of the tables.
    methods : tuple of MethodFacts
        The rows, in the order of the catalogue; added methods come last.
    metrics : tuple of str
        Names in the requested order.
    chosen : tuple of SelectedSetting
        The setting of each method, by metric.
    comparisons : mapping from str to Comparison
        Comparisons by metric; their data are ``(("study", name),)``, and their runs are the seeds.
    thresholds : tuple of ThresholdRow
        Thresholds set on validation data, in the headline studies.
    curves : mapping from (study, method) to CurvePoints
        Curves of the first seed.
    extremes : tuple of Extreme
        The most confident failures and least confident successes, in the headline studies.
    left_out : mapping from str to str
        Methods without values, with the reason.
    findings : tuple of Note
        Notes on the results, warnings first.
    calibration : tuple of CalibrationRow
        ECE with and without calibration.
    undefined : mapping from (metric, study) to str
        Metrics without values in a study, with the reason.
    level : float
        Confidence level of the intervals.
    costs : tuple of Cost
        Durations of the stages of the run, as measured by its jobs.
    published : tuple of PublishedNumber
        Published values of the same methods and studies, if `with_published` was called.
    published_orders : tuple of PublishedOrder
        Rank correlations between the published values and those of the runs.

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

    #: The tables of `rows`: fields of this record, and those of its comparisons.
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
    TABLES: ClassVar[tuple[str, ...]] = (*Comparison.TABLES, *BENCHMARK_TABLES)

    @property
    def headline(self) -> tuple[Study, ...]:
        """The columns of the main table."""
        return tuple(study for study in self.studies if study.headline)

    def configured(self, name: str) -> Any:
        """Return an entry of the configuration or of its table "benchmark"; empty if missing."""
        return configured(self.facts.get("config") or {}, name)

    @property
    def task(self) -> str:
        """The name of the task; empty if it is unknown."""
        return str(self.configured("task"))

    @property
    def model(self) -> str:
        """The name of the backbone of the networks; empty if it is unknown."""
        model = self.configured("model") or self.facts.get("model", "")
        return str(model.get("name", "")) if isinstance(model, Mapping) else str(model)

    def rows(self, table: str = "estimates") -> list[dict[str, Any]]:
        """Return one table as flat rows.

        Parameters
        ----------
        table : str, default="estimates"
            One of `TABLES`; those of a `Comparison` hold all metrics.

        Returns
        -------
        list of dict
            Plain values, one number a column.

        Raises
        ------
        InputError
            There is no such table.
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
        """Return one table as a tidy dataframe; see `rows`."""
        import polars as pl

        if table not in Comparison.TABLES:
            return frame_from_rows(self.rows(table), backend)
        # Metric by metric: the pairs of all as rows of Python take hundreds of megabytes.
        frames = [comparison.frame(table) for comparison in self.comparisons.values()]
        nonempty = [frame for frame in frames if frame.height]
        frame = pl.concat(nonempty, how="vertical_relaxed") if nonempty else pl.DataFrame()
        return convert_frame(frame, backend)


def _as_cell(value: Any) -> Any:
    """Return a tuple or a mapping as text, and other values unchanged."""
    if isinstance(value, Mapping):
        return "; ".join(f"{name or '(the only one)'}: {x:.6g}" for name, x in value.items())
    if isinstance(value, tuple):
        return "; ".join(" = ".join(v) if isinstance(v, tuple) else str(v) for v in value)
    return value
