"""Compute metrics, intervals, curves and notes of each score on each split."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from abstain._foundation.notes import Note
from abstain._foundation.scored import MetricValue, Scored
from abstain.curves.bands import RiskCoverageBand, compute_band
from abstain.curves.metric_coverage import MetricCoverageCurve
from abstain.curves.reliability import ReliabilityCurve, cached_reliability_curve
from abstain.curves.risk_coverage import curve_from_groups, thin
from abstain.errors import InputError
from abstain.evaluation.intervals import interval_of_replicates
from abstain.evaluation.notes import score_notes
from abstain.evaluation.records import Evaluation, Result, ScoreCurves, warnings_first
from abstain.evaluation.scored_split import ScoredSplit
from abstain.inference.draws import Draws
from abstain.inference.intervals import Interval, no_interval
from abstain.metrics import METRICS, Metric
from abstain.metrics.confidence_weighted.areas import sweep_thresholds
from abstain.metrics.entry import compute_metrics
from abstain.metrics.intervals import interval_of_metric
from abstain.metrics.resampling import replicates as replicates_of
from abstain.metrics.ties import BrokenTies, has_exact_tie_bounds

#: Families of metrics that have a range over all orders of tied samples.
_WITH_TIE_BOUNDS = frozenset({"area", "ranking"})


class ResultCollector:
    """Collect results, curves and notes, and the metrics that do not apply."""

    def __init__(
        self, metrics: list[Metric] | None, findings: Iterable[Note], *, curves: bool
    ) -> None:
        self.metrics, self.curves = metrics, curves
        self.results: list[Result] = []
        self.score_curves: list[ScoreCurves] = []
        self.notes = list(findings)
        self.skipped: dict[str, str] = {}
        self.binary = True

    def add(self, part: ScoredSplit) -> None:
        """Evaluate one score on one split."""
        self.binary = self.binary and part.s.is_binary
        measured = _with_intervals(self._measured(part), part)
        self.results += measured
        self.score_curves += [compute_curves(part)] if self.curves else []
        self.notes += score_notes(part, measured)

    def add_results(
        self, results: Iterable[Result], skipped: Mapping[str, str], *, binary: bool
    ) -> None:
        """Add results without curves."""
        self.results += results
        self.skipped |= skipped
        self.binary = self.binary and binary

    def evaluation(self, loss: str, own: frozenset[str]) -> Evaluation:
        """Return the evaluation; raise InputError if a requested metric applies to no split."""
        _refuse_inapplicable(self.metrics, self.results, self.skipped)
        for name in {result.metric.name for result in self.results}:
            # It applied to another score or split.
            self.skipped.pop(name, None)
        asked = tuple(metric.name for metric in self.metrics or ())
        return Evaluation(
            tuple(self.results),
            tuple(self.score_curves),
            warnings_first(self.notes),
            loss,
            self.skipped,
            self.binary,
            asked,
            own,
        )

    def _measured(self, part: ScoredSplit) -> list[Result]:
        apply = []
        for metric in METRICS.values() if self.metrics is None else self.metrics:
            missing = part.reason_not_applicable(metric)
            if missing:
                self.skipped[metric.name] = missing
            else:
                apply.append(metric)
        orders = BrokenTies(part.s)
        out: list[Result] = []
        # Those that take the same samples share passes over them.
        taken = {id(s): s for s in map(part.samples_for, apply)}
        for s in taken.values():
            own = [m for m in apply if part.samples_for(m) is s]
            found = zip(own, compute_metrics(own, s), strict=True)
            out += [_result(part, m, value, orders) for m, value in found]
        place = {metric.name: i for i, metric in enumerate(apply)}
        return sorted(out, key=lambda result: place[result.metric.name])


def _result(part: ScoredSplit, metric: Metric, measured: MetricValue, orders: BrokenTies) -> Result:
    s = part.s
    tied = s.merged_groups.n_tied
    bounded = (
        metric.identity.family in _WITH_TIE_BOUNDS
        and part.has_tie_bounds
        and has_exact_tie_bounds(metric, s)
    )
    low, high = (float("nan"), float("nan"))
    if bounded:
        value = measured.value
        low, high = orders.bounds(metric) if tied and not measured.reason else (value, value)
    return Result(
        split=part.split,
        score=part.score,
        metric=metric,
        value=float(measured.value),
        n=s.n_samples,
        failures=s.n_failures,
        accepted=measured.n_accepted,
        tied_share=tied / s.n_samples,
        tie_low=float(low),
        tie_high=float(high),
        reason=measured.reason,
    )


def _refuse_inapplicable(
    chosen: list[Metric] | None, results: list[Result], skipped: Mapping[str, str]
) -> None:
    """Raise InputError if a requested metric applies to no split."""
    measured = {result.metric.name for result in results}
    for metric in chosen or ():
        if metric.name not in measured:
            raise InputError(
                f"the metric {metric.name!r} does not apply: it {skipped[metric.name]}"
            )


# ------------------------------------------------------------------------------------ intervals
def _with_intervals(results: Sequence[Result], part: ScoredSplit) -> list[Result]:
    """Return the results with their intervals."""
    options = part.intervals
    if options.kind == "none":
        return list(results)
    defined = [result for result in results if not result.reason]
    make = _analytic if options.kind == "analytic" else _resampled
    intervals = iter(make(defined, part))
    undefined = no_interval(options.level, "the value itself is undefined")
    return [
        replace(result, interval=undefined if result.reason else next(intervals))
        for result in results
    ]


def _analytic(results: Sequence[Result], part: ScoredSplit) -> list[Interval]:
    return [
        interval_of_metric(
            result.metric,
            part.samples_for(result.metric),
            level=part.intervals.level,
            cluster=part.cluster,
            measured=MetricValue(result.value),
        )
        for result in results
    ]


def _resampled(results: Sequence[Result], part: ScoredSplit) -> list[Interval]:
    metrics = [result.metric for result in results]
    draws = Draws(
        part.s.n_rows, part.intervals.resamples, rng=part.intervals.seed, cluster=part.cluster
    )
    table = replicates_of([part.s], metrics, draws)[:, 0]
    return [
        interval_of_replicates(
            metric,
            own,
            part.s,
            cluster=part.cluster,
            level=part.intervals.level,
            measured=MetricValue(result.value),
        )
        for metric, own, result in zip(metrics, table, results, strict=True)
    ]


# ------------------------------------------------------------------------------------ curves
#: Vertices of a curve at most. A page draws up to 400 of them, whose steps of coverage these are
#: parts of: it draws the same as from all, but for coverages on the very end of a step.
_VERTICES = 20_000
#: Thresholds of the CWSA curves, decreasing so that coverage rises.
_THRESHOLDS = np.arange(19, -1, -1) / 20
#: Coverages of the bands: denser where few samples are accepted and the band bends.
_COVERAGES = np.concatenate(([0.005, 0.01, 0.015], np.arange(2, 10) / 100, np.arange(5, 51) / 50))
#: Clusters cost a pass over the samples for each coverage: above this many steps it takes fewer.
_STEPS = 10_000_000


def compute_curves(part: ScoredSplit) -> ScoreCurves:
    """Compute the curves and notable samples of one score on one split."""
    s, sure = part.s, part.scored_by_probability
    calibrated = _calibration_curves(sure) if sure.is_calibratable else (None, None, None)
    selective = thin(curve_from_groups(s.groups, "selective"), vertices=_VERTICES)
    return ScoreCurves(
        split=part.split,
        score=part.score,
        n=s.n_samples,
        failures=s.n_failures,
        risk=s.merged_groups.risk,
        tied_share=s.merged_groups.n_tied / s.n_samples,
        selective=selective,
        generalized=replace(
            selective, kind="generalized", risk=selective.failures / selective.total
        ),
        reliability=calibrated[0],
        cwsa=calibrated[1],
        cwsa_plus=calibrated[2],
        is_column=part.is_column,
        band=None if part.intervals.kind == "none" else _band(part),
        **part.curve_fields(),
    )


def _band(part: ScoredSplit) -> RiskCoverageBand:
    """Return the band of the selective risk, which also determines the generalized one."""
    s, cluster, options = part.s, part.cluster, part.intervals
    coarse = cluster is not None and s.n_samples * _COVERAGES.size > _STEPS
    coverage = _COVERAGES[2::3] if coarse else _COVERAGES
    # Below the first whole sample there is nothing to say.
    kept = coverage[coverage >= min(1.0, 1 / s.merged_groups.n_samples)]
    return compute_band(
        s, "selective", level=options.level, coverage=kept, cluster=cluster, rng=options.seed
    )


def _calibration_curves(
    s: Scored,
) -> tuple[ReliabilityCurve, MetricCoverageCurve, MetricCoverageCurve]:
    """Return the reliability curve, and CWSA and CWSA+ against the coverage."""
    # A threshold that accepts nothing has no CWSA+.
    reached = _THRESHOLDS[float(s.probability_groups.confidence[0]) >= _THRESHOLDS]
    swept = sweep_thresholds(s, reached)
    drawn = [
        MetricCoverageCurve(name, swept.threshold, swept.coverage, value, swept.accepted)
        for name, value in (("cwsa", swept.cwsa), ("cwsa_plus", swept.cwsa_plus))
    ]
    reliability = cached_reliability_curve(s, 15, "equal_width")
    return reliability, drawn[0], drawn[1]
