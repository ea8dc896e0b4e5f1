"""What an evaluation returns: numbers, the curves behind them, and what it noticed."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from abstain._foundation.frames import AnyFrame, Backend, NotebookDisplay, frame_from_rows
from abstain._foundation.notes import Note
from abstain.curves.bands import RiskCoverageBand
from abstain.curves.metric_coverage import MetricCoverageCurve
from abstain.curves.reliability import ReliabilityCurve
from abstain.curves.risk_coverage import RiskCoverageCurve
from abstain.inference.intervals import Interval, no_interval
from abstain.metrics import Metric
from abstain.typing import Split

#: The interval of a result for which none was requested.
NOT_REQUESTED = no_interval(float("nan"), "")

#: The columns of a table of results, after those that split the data.
RESULT_COLUMNS = (
    "score",
    "metric",
    "value",
    "n",
    "failures",
    "accepted",
    "tied_share",
    "tie_low",
    "tie_high",
    "convention",
    "lower_is_better",
    "reason",
    "low",
    "high",
    "standard_error",
    "level",
    "interval",
    "interval_note",
)


@dataclass(frozen=True, repr=False)
class Result:
    """The value of one metric for one score on one part of the data.

    Attributes
    ----------
    split : tuple of (column, value)
        The part of the data; empty for all of them.
    score : str
        The name in the catalogue or of a confidence column.
    metric : Metric
        The entry of the catalogue.
    value : float
        A fraction in double precision; NaN when undefined, then `reason` says why.
    n, failures : int
        Samples, and those of them with a loss above zero.
    accepted : int or None
        Samples behind the number when that is not all of them.
    tied_share : float
        Share of samples whose confidence equals that of another sample.
    tie_low, tie_high : float
        The least and the largest value over all orders of tied samples; NaN for metrics that
        do not depend on ranks only.
    reason : str
        Why the value is NaN, or empty.
    interval : Interval
        The confidence interval. If there is none, its ends are NaN; its level is NaN if no
        intervals were requested.
    """

    split: Split
    score: str
    metric: Metric
    value: float
    n: int
    failures: int
    accepted: int | None
    tied_share: float
    tie_low: float
    tie_high: float
    reason: str
    interval: Interval = NOT_REQUESTED

    def row(self) -> dict[str, Any]:
        """Return the result as a flat row: split columns first."""
        values = (
            self.score,
            self.metric.name,
            self.value,
            self.n,
            self.failures,
            self.accepted,
            self.tied_share,
            self.tie_low,
            self.tie_high,
            self.metric.identity.convention,
            self.metric.lower_is_better,
            self.reason,
            self.interval.low,
            self.interval.high,
            self.interval.standard_error,
            self.interval.level,
            self.interval.method if self.interval.exists else "",
            self.interval.note,
        )
        return {**dict(self.split), **dict(zip(RESULT_COLUMNS, values, strict=True))}

    def __repr__(self) -> str:
        """Write the columns of the result."""
        return f"Result({', '.join(f'{name}={value!r}' for name, value in self.row().items())})"


@dataclass(frozen=True)
class ExtremeSample:
    """One sample worth looking at."""

    id: str
    label: str
    prediction: str
    confidence: float
    loss: float


@dataclass(frozen=True)
class Part:
    """What one class or group of samples contributes to the AUGRC of all.

    Attributes
    ----------
    name : str
        The class or group.
    n : int
        Its samples.
    sample_share : float
        Its share of all samples.
    contribution : float
        Its part of the AUGRC; the parts add up to it.
    share : float
        The same as a share of the AUGRC; NaN when that is 0. A part whose share is above its
        sample share has more silent failures than its size explains.
    """

    name: str
    n: int
    sample_share: float
    contribution: float
    share: float


@dataclass(frozen=True, eq=False)
class Case:
    """The curves and samples of one score on one split.

    `own` is True when the score is a column of the data, False when it is one of the catalogue.
    `overconfident` are the most confident failures, `underconfident` the least confident
    successes. `by_class` and `by_group` say where the AUGRC comes from, the largest part first;
    empty without labels or groups. `of_groups` has the curves of the dozen largest groups, against
    their own coverages; none in a stream. Curves are complete up to 20,000 vertices; of longer ones
    `thin` kept about as many, the extremes among them. `band` is where the selective risk may lie
    on new data, at some sixty coverages; None when no intervals were asked for.
    `abstain.curves.bands.as_generalized` turns it into that of the
    generalized risk.
    """

    split: Split
    score: str
    n: int
    failures: int
    risk: float
    tied_share: float
    selective: RiskCoverageCurve
    generalized: RiskCoverageCurve
    reliability: ReliabilityCurve | None
    cwsa: MetricCoverageCurve | None
    cwsa_plus: MetricCoverageCurve | None
    overconfident: tuple[ExtremeSample, ...]
    underconfident: tuple[ExtremeSample, ...]
    by_class: tuple[Part, ...] = ()
    by_group: tuple[Part, ...] = ()
    own: bool = False
    band: RiskCoverageBand | None = None
    of_groups: Mapping[str, RiskCoverageCurve] = field(default_factory=dict)


def ordered(findings: Iterable[Note]) -> tuple[Note, ...]:
    """Put warnings first; the same sentence on the same split is said once."""
    return tuple(sorted(dict.fromkeys(findings), key=lambda finding: finding.level != "warning"))


@dataclass(frozen=True, eq=False)
class Evaluation(NotebookDisplay):
    """All results of one call of `evaluate`.

    Attributes
    ----------
    results : tuple of Result
        One for each split, score and metric.
    cases : tuple of Case
        One for each split and score; none where no curves were asked for.
    findings : tuple of Note
        Ties, saturation, small counts, what the reader of the file met.
    loss : str
        Name of the loss.
    skipped : mapping
        Metric name to the reason why it does not apply to these data.
    binary : bool
        Whether every loss is 0 or 1, so that a mean loss is a share of wrong samples.
    asked : tuple of str
        The metrics that were asked for by name, in that order; empty for all that apply.
    own : frozenset of str
        The scores that are columns of the data.
    """

    results: tuple[Result, ...]
    cases: tuple[Case, ...]
    findings: tuple[Note, ...]
    loss: str
    skipped: Mapping[str, str] = field(default_factory=dict)
    binary: bool = True
    asked: tuple[str, ...] = ()
    own: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        """Say what is there, not the numbers."""
        counts = {
            "split": len({r.split for r in self.results}),
            "score": len({r.score for r in self.results}),
            "metric": len({r.metric.name for r in self.results}),
            "warning": sum(finding.level == "warning" for finding in self.findings),
        }
        return f"Evaluation({counted(counts)}; .frame() has the numbers)"

    def __iter__(self) -> Iterator[Result]:
        """Iterate over the results."""
        return iter(self.results)

    def __len__(self) -> int:
        """Count the results."""
        return len(self.results)

    def value(self, metric: str, *, score: str | None = None, split: Split | None = None) -> float:
        """Return one number; `score` and `split` may be left out when there is only one."""
        found = [
            r
            for r in self.results
            if r.metric.name == metric
            and score in {None, r.score}
            and (split is None or r.split == split)
        ]
        return _single(found, metric, score, split, self.results)

    def rows(self) -> list[dict[str, Any]]:
        """Return the results as flat rows, tidy: one number a row."""
        return [result.row() for result in self.results]

    def frame(self, *, backend: Backend = "polars") -> AnyFrame:
        """Return the results as a tidy dataframe."""
        return frame_from_rows(self.rows(), backend)


def counted(counts: Mapping[str, int]) -> str:
    """Write what there is of each kind: "1 score, 46 metrics"."""
    return ", ".join(f"{n:,} {what}{'' if n == 1 else 's'}" for what, n in counts.items())


def _single(
    found: list[Result],
    metric: str,
    score: str | None,
    split: Split | None,
    among: tuple[Result, ...],
) -> float:
    from abstain.errors import UnknownNameError, suggest

    if len(found) == 1:
        return found[0].value
    asked = f"metric {metric!r}, score {score!r}, split {split!r}"
    if not found:
        hint = suggest(metric, {r.metric.name for r in among})
        raise UnknownNameError(f"there is no result for {asked}.{hint}")
    raise UnknownNameError(f"{len(found)} results match {asked}; {_to_add(metric, found)}")


def _to_add(metric: str, found: list[Result]) -> str:
    """Say which arguments single one result out, with the values that there are."""
    there: dict[str, list[Any]] = {
        "score": [r.score for r in found],
        "split": [r.split for r in found],
    }
    several = {name: list(dict.fromkeys(values)) for name, values in there.items()}
    left = {name: values for name, values in several.items() if len(values) > 1}
    call = ", ".join(f"{name}={values[0]!r}" for name, values in left.items())
    known = "; ".join(
        f"`{name}` is one of {', '.join(map(repr, values[:6]))}{', ...' * (len(values) > 6)}"
        for name, values in left.items()
    )
    return f"add what is missing, as in `.value({metric!r}, {call})`: {known}"
