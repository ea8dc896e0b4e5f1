"""`Comparison`: all that one call of `compare` found, in plain records."""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

from abstain.errors import InputError, suggest
from abstain.evaluation.compared import Estimate, PairedDifference, Standing
from abstain.evaluation.compared_across import (
    AcrossData,
    Aggregate,
    Agreement,
    BandOf,
    Improvement,
    NonInferiority,
    Profile,
    Stability,
)
from abstain.evaluation.records import Finding, counted
from abstain.typing import Split

if TYPE_CHECKING:
    import polars as pl

#: What the columns that split the data hold in rows about all of them.
ALL = "(all)"

__all__ = [
    "AcrossData",
    "Aggregate",
    "Agreement",
    "BandOf",
    "Comparison",
    "Estimate",
    "Improvement",
    "NonInferiority",
    "PairedDifference",
    "Profile",
    "Stability",
    "Standing",
]


@dataclass(frozen=True, eq=False)
class Comparison:
    """All that one call of `compare` found.

    Attributes
    ----------
    metrics, methods : tuple of str
        What was compared by what, in the order given.
    data : tuple of Split
        The data sets; ``((),)`` when there is one.
    runs : tuple of str
        The runs; ``("",)`` when there is one.
    level : float
        Of all intervals; tests call a difference found below 1 - level.
    estimates : tuple of Estimate
        One for each metric, data set, run and method, and the means over several runs.
    pairs : tuple of PairedDifference
        One for each metric, data set, pair of methods and test.
    standings : tuple of Standing
        One for each metric, data set and method, and for all data sets together.
    across : tuple of AcrossData
        One for each metric when there are several data sets or runs.
    agreements : tuple of Agreement
        One for each pair of metrics and data set.
    stability : tuple of Stability
        With a bootstrap only.
    bands : tuple of BandOf
        One for each data set and method, of the first run.
    findings : tuple of Finding
        Warnings and notes, in plain words.
    test : str
        The test that decides, one of those in `pairs`.
    bootstrap : int
        Resamples drawn; 0 for none.
    seed : int or None
        Of the resamples.
    non_inferiority : tuple of NonInferiority
        With a margin only: one for each metric, data set and method but the reference.
    aggregates, improvements, profiles : tuple of records
        With several runs or data sets only: interquartile means, chances that one method
        improves on another, performance profiles.
    """

    metrics: tuple[str, ...]
    methods: tuple[str, ...]
    data: tuple[Split, ...]
    runs: tuple[str, ...]
    level: float
    estimates: tuple[Estimate, ...]
    pairs: tuple[PairedDifference, ...]
    standings: tuple[Standing, ...]
    across: tuple[AcrossData, ...]
    agreements: tuple[Agreement, ...]
    stability: tuple[Stability, ...]
    bands: tuple[BandOf, ...]
    findings: tuple[Finding, ...]
    test: str
    bootstrap: int = 0
    seed: int | None = None
    non_inferiority: tuple[NonInferiority, ...] = ()
    aggregates: tuple[Aggregate, ...] = ()
    improvements: tuple[Improvement, ...] = ()
    profiles: tuple[Profile, ...] = ()

    #: The tables of `frame`, each a field of this record.
    TABLES: ClassVar[tuple[str, ...]] = (
        "estimates",
        "pairs",
        "standings",
        "across",
        "agreements",
        "stability",
        "non_inferiority",
        "aggregates",
        "improvements",
    )

    def __repr__(self) -> str:
        """Say what is there, not the numbers."""
        counts = {
            "method": len(self.methods),
            "data set": len(self.data),
            "run": len(self.runs),
            "metric": len(self.metrics),
            "warning": sum(finding.level == "warning" for finding in self.findings),
        }
        return f"Comparison({counted(counts)}; .frame() has the numbers)"

    def rows(self, table: str = "pairs") -> list[dict[str, Any]]:
        """Return one table as flat rows: "estimates", "pairs", "standings" and so on."""
        if table not in self.TABLES:
            known = ", ".join(map(repr, self.TABLES))
            msg = f"`table` must be one of {known}; got {table!r}.{suggest(table, self.TABLES)}"
            raise InputError(msg)
        columns = dict.fromkeys(column for split in self.data for column, _ in split)
        return [_row(record, tuple(columns)) for record in getattr(self, table)]

    def frame(self, table: str = "pairs") -> "pl.DataFrame":
        """Return one table as a tidy polars frame."""
        import polars as pl

        return pl.DataFrame(self.rows(table), infer_schema_length=None)


def _row(record: Any, columns: tuple[str, ...]) -> dict[str, Any]:
    """Return a record as a flat row, the columns that split the data first."""
    row: dict[str, Any] = {}
    if "data" in record.__dataclass_fields__:
        # What is said of all data sets together stands beside what is said of each.
        row |= dict.fromkeys(columns, ALL) if record.data is None else dict(record.data)
    told = ((f.name, getattr(record, f.name)) for f in fields(record) if f.name != "data")
    return row | {name: _flat(value) for name, value in told}


def _flat(value: Any) -> Any:
    if not isinstance(value, tuple):
        return value
    return "; ".join(_joined(v) for v in value)


def _joined(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
