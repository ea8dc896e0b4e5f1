"""`BenchmarkResults`: all that a folder of runs says, with its tables."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from abstain.benchmark.protocol import Study
from abstain.benchmark.results.records import (
    CalibrationRow,
    CurvePoints,
    Extreme,
    MethodFacts,
    ThresholdRow,
)
from abstain.benchmark.selection import Chosen
from abstain.errors import InputError, suggest
from abstain.evaluation import Comparison, Finding

if TYPE_CHECKING:
    import polars as pl

__all__ = ["BenchmarkResults"]


@dataclass(frozen=True, eq=False)
class BenchmarkResults:
    """All that a folder of runs says.

    Attributes
    ----------
    facts : mapping
        The configuration ("config"), versions and seeds, as plain values.
    studies : tuple of Study
        The columns of the tables.
    methods : tuple of MethodFacts
        The rows, in the order of the catalogue, those that were added last.
    metrics : tuple of str
        In the order asked for.
    chosen : tuple of Chosen
        The setting of each method, by metric.
    comparisons : mapping from str to Comparison
        By metric; data are ``(("study", name),)``, runs the seeds.
    thresholds : tuple of ThresholdRow
        Thresholds set on validation data, in the headline studies.
    curves : mapping from (study, method) to CurvePoints
        Of the first seed.
    extremes : tuple of Extreme
        The most confident failures and least confident successes, in the headline studies.
    left_out : mapping from str to str
        Methods that gave no numbers, and why.
    findings : tuple of Finding
        What the reader should know, warnings first.
    calibration : tuple of CalibrationRow
        ECE with and without calibration.
    undefined : mapping from (metric, study) to str
        Metrics that have no values in a study, and why.
    level : float
        Of the intervals.

    Examples
    --------
    >>> from abstain.benchmark.results import results_of
    >>> from abstain.benchmark.store import Store
    >>> results = results_of(Store.read("runs"))  # doctest: +SKIP
    >>> results.frame("estimates").filter(run="mean")  # doctest: +SKIP
    """

    facts: Mapping[str, Any]
    studies: tuple[Study, ...]
    methods: tuple[MethodFacts, ...]
    metrics: tuple[str, ...]
    chosen: tuple[Chosen, ...]
    comparisons: Mapping[str, Comparison]
    thresholds: tuple[ThresholdRow, ...]
    curves: Mapping[tuple[str, str], CurvePoints]
    extremes: tuple[Extreme, ...]
    left_out: Mapping[str, str]
    findings: tuple[Finding, ...]
    calibration: tuple[CalibrationRow, ...] = ()
    undefined: Mapping[tuple[str, str], str] = field(default_factory=dict)
    level: float = 0.95

    #: The tables of `rows`: fields of this record, and those of its comparisons.
    OWN: ClassVar[tuple[str, ...]] = (
        "studies",
        "methods",
        "chosen",
        "thresholds",
        "calibration",
        "extremes",
        "curves",
        "left_out",
        "findings",
    )
    TABLES: ClassVar[tuple[str, ...]] = (*Comparison.TABLES, *OWN)

    @property
    def headline(self) -> tuple[Study, ...]:
        """The columns of the main table."""
        return tuple(study for study in self.studies if study.headline)

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
            return [row for own in self.comparisons.values() for row in own.rows(table)]
        if table not in self.OWN:
            known = ", ".join(map(repr, self.TABLES))
            msg = f"`table` must be one of {known}; got {table!r}.{suggest(table, self.TABLES)}"
            raise InputError(msg)
        if table == "curves":
            return [row for place, own in self.curves.items() for row in _points(place, own)]
        if table == "left_out":
            return [{"method": name, "reason": why} for name, why in self.left_out.items()]
        return [_flat(asdict(record)) for record in getattr(self, table)]

    def frame(self, table: str = "estimates") -> "pl.DataFrame":
        """Return one table as a tidy polars frame; see `rows`."""
        import polars as pl

        return pl.DataFrame(self.rows(table), infer_schema_length=None)


def _points(place: tuple[str, str], own: CurvePoints) -> list[dict[str, Any]]:
    study, method = place
    names = ("coverage", "selective_risk", "generalized_risk")
    columns = zip(*(getattr(own, name).tolist() for name in names), strict=True)
    return [
        {"study": study, "method": method, "run": own.run, **dict(zip(names, point, strict=True))}
        for point in columns
    ]


def _flat(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record with texts where it holds tuples or mappings."""
    return {name: _text(value) for name, value in record.items()}


def _text(value: Any) -> Any:
    if isinstance(value, Mapping):
        return "; ".join(f"{name or '(the only one)'}: {own:.6g}" for name, own in value.items())
    if isinstance(value, tuple):
        return "; ".join(" = ".join(v) if isinstance(v, tuple) else str(v) for v in value)
    return value
