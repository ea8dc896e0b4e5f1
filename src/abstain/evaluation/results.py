"""Compute the metrics, intervals, curves and notes of each score on each split."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from abstain._foundation.notes import Note
from abstain._foundation.scored import MetricValue, Scored
from abstain.curves.bands import RiskCoverageBand, compute_band
from abstain.curves.metric_coverage import MetricCoverageCurve
from abstain.curves.reliability import cached_reliability_curve
from abstain.curves.risk_coverage import curve_from_groups, thin
from abstain.errors import InputError
from abstain.evaluation.intervals import interval_of_replicates
from abstain.evaluation.notes import score_notes
from abstain.evaluation.records import Evaluation, Result, ScoreCurves, warnings_first
from abstain.evaluation.scored_split import ScoredSplit, other_probability
from abstain.inference.draws import Draws
from abstain.inference.intervals import Interval, no_interval
from abstain.metrics import METRICS, Metric
from abstain.metrics.confidence_weighted.areas import sweep_thresholds
from abstain.metrics.entry import compute_metrics
from abstain.metrics.intervals import interval_of_metric
from abstain.metrics.resampling import replicates
from abstain.metrics.ties import BrokenTies, has_exact_tie_bounds
from abstain.typing import Array

#: Families of metrics for which the range over all orders of tied samples is computed.
_WITH_TIE_BOUNDS = frozenset({"area", "ranking"})


class EvaluationBuilder:
    """Collect the results, curves and notes of all scores, and the metrics that do not apply."""

    def __init__(
        self, metrics: list[Metric] | None, notes: Iterable[Note], *, curves: bool
    ) -> None:
        """Store the options, and start with empty results."""
        self.metrics, self.curves = metrics, curves
        self.results: list[Result] = []
        self.score_curves: list[ScoreCurves] = []
        self.notes = list(notes)
        self.skipped: dict[str, str] = {}
        self.is_binary = True

    def add(self, part: ScoredSplit) -> None:
        """Add the results, curves and notes of one score on one split."""
        applicable = []
        for metric in METRICS.values() if self.metrics is None else self.metrics:
            reason = part.reason_not_applicable(metric)
            if reason:
                self.skipped[metric.name] = reason
            else:
                applicable.append(metric)
        results = _with_intervals(_compute_results(applicable, part), part)
        self.add_results(results, {}, is_binary=part.s.is_binary)
        if self.curves:
            self.score_curves.append(compute_curves(part))
        self.notes += score_notes(part, results)

    def add_results(
        self, results: Iterable[Result], skipped: Mapping[str, str], *, is_binary: bool
    ) -> None:
        """Add the results of one score on one split, without curves."""
        self.results += results
        self.skipped |= skipped
        self.is_binary = self.is_binary and is_binary

    def build(self, loss: str, column_scores: frozenset[str]) -> Evaluation:
        """Return the evaluation; raise InputError if a requested metric applies to no split."""
        evaluated = {result.metric.name for result in self.results}
        requested = tuple(metric.name for metric in self.metrics or ())
        for name in requested:
            if name not in evaluated:
                raise InputError(f"the metric {name!r} does not apply: it {self.skipped[name]}")
        return Evaluation(
            results=tuple(self.results),
            curves=tuple(self.score_curves),
            notes=warnings_first(self.notes),
            loss=loss,
            # A metric may apply to some scores or splits only.
            skipped={
                name: reason for name, reason in self.skipped.items() if name not in evaluated
            },
            is_binary=self.is_binary,
            requested_metrics=requested,
            column_scores=column_scores,
        )


def _compute_results(metrics: Sequence[Metric], part: ScoredSplit) -> list[Result]:
    """Return the metrics; metrics of the same samples share passes over these samples."""
    metrics_by_samples: dict[Scored, list[Metric]] = {}
    for metric in metrics:
        metrics_by_samples.setdefault(part.samples_for(metric), []).append(metric)
    values: dict[str, MetricValue] = {}
    for samples, group in metrics_by_samples.items():
        names = (metric.name for metric in group)
        values |= zip(names, compute_metrics(group, samples), strict=True)
    s, broken_ties = part.s, BrokenTies(part.s)
    n_tied = s.merged_groups.n_tied
    results = []
    for metric in metrics:
        value = values[metric.name]
        tie_bounds = (float("nan"), float("nan"))
        has_bounds = metric.identity.family in _WITH_TIE_BOUNDS and part.has_tie_bounds
        if has_bounds and has_exact_tie_bounds(metric, s):
            is_tied = n_tied and not value.reason
            tie_bounds = broken_ties.bounds(metric) if is_tied else (value.value, value.value)
        result = Result(
            split=part.split,
            score=part.score,
            metric=metric,
            value=float(value.value),
            n=s.n_samples,
            failures=s.n_failures,
            accepted=value.n_accepted,
            tied_share=n_tied / s.n_samples,
            tie_low=float(tie_bounds[0]),
            tie_high=float(tie_bounds[1]),
            reason=value.reason,
        )
        results.append(result)
    return results


def _with_intervals(results: list[Result], part: ScoredSplit) -> list[Result]:
    """Return the results with confidence intervals added."""
    options = part.intervals
    if options.kind == "none":
        return results
    level, cluster = options.level, part.cluster
    defined = [result for result in results if not result.reason]
    intervals: dict[str, Interval] = {}
    if options.kind == "analytic":
        for result in defined:
            intervals[result.metric.name] = interval_of_metric(
                result.metric,
                part.samples_for(result.metric),
                level=level,
                cluster=cluster,
                measured=MetricValue(result.value),
            )
    else:
        draws = Draws(part.s.n_rows, options.resamples, rng=options.seed, cluster=cluster)
        tables = replicates([part.s], [result.metric for result in defined], draws)
        for result, table in zip(defined, tables, strict=True):
            intervals[result.metric.name] = interval_of_replicates(
                result.metric,
                table[0],
                part.s,
                cluster=cluster,
                level=level,
                measured=MetricValue(result.value),
            )
    undefined = no_interval(level, "the value itself is undefined")
    return [
        replace(result, interval=intervals.get(result.metric.name, undefined)) for result in results
    ]


# ------------------------------------------------------------------------------------ curves
#: Maximum number of vertices of a curve. A report draws up to 400 coverages and rounds each
#: coverage to the nearest vertex.
_MAX_VERTICES = 20_000
#: Thresholds of the CWSA curves. They decrease, so the coverage increases.
_THRESHOLDS = np.arange(19, -1, -1) / 20
#: Coverages of the bands. They are denser at small coverages, where the bands are curved.
_COVERAGES = np.concatenate(([0.005, 0.01, 0.015], np.arange(2, 10) / 100, np.arange(5, 51) / 50))
#: With clusters, each coverage requires one pass over the samples. The band has fewer coverages if
#: the number of coverages times the number of samples would exceed this limit.
_MAX_VISITS = 10_000_000


def compute_curves(part: ScoredSplit) -> ScoreCurves:
    """Return the curves and the notable samples of one score on one split."""
    s = part.s
    selective = thin(curve_from_groups(s.groups, "selective"), vertices=_MAX_VERTICES)
    generalized_risk = selective.failures / selective.total
    return ScoreCurves(
        split=part.split,
        score=part.score,
        n=s.n_samples,
        failures=s.n_failures,
        risk=s.merged_groups.risk,
        tied_share=s.merged_groups.n_tied / s.n_samples,
        selective=selective,
        generalized=replace(selective, kind="generalized", risk=generalized_risk),
        is_column=part.is_column,
        band=None if part.intervals.kind == "none" else _band(part),
        probabilities=_threshold_probabilities(part.s, selective.thresholds),
        **_calibration_curves(part.scored_by_probability),
        **part.curve_fields(),
    )


def _band(part: ScoredSplit) -> RiskCoverageBand:
    """Return the band of the selective risk, from which the generalized band is computed."""
    s, cluster, options = part.s, part.cluster, part.intervals
    is_slow = cluster is not None and s.n_samples * _COVERAGES.size > _MAX_VISITS
    coverage = _COVERAGES[2::3] if is_slow else _COVERAGES
    # The band begins at the coverage of one accepted sample.
    coverage = coverage[coverage >= min(1.0, 1 / s.merged_groups.n_samples)]
    return compute_band(
        s, "selective", level=options.level, coverage=coverage, cluster=cluster, rng=options.seed
    )


def _threshold_probabilities(s: Scored, thresholds: Array) -> Array | None:
    """Return thresholds as probabilities; None if the score is one already or has none."""
    probability = other_probability(s)
    if probability is None:
        return None
    order = np.argsort(s.confidence, kind="stable")
    return np.asarray(probability[order][np.searchsorted(s.confidence[order], thresholds)])


def _calibration_curves(s: Scored) -> dict[str, Any]:
    """Return the reliability curve, and CWSA and CWSA+ against coverage, if they are defined."""
    if not s.is_calibratable:
        return dict.fromkeys(("reliability", "cwsa", "cwsa_plus"))
    # CWSA+ is undefined for a threshold at which no sample is accepted.
    largest = float(s.probability_groups.confidence[0])
    sweep = sweep_thresholds(s, _THRESHOLDS[largest >= _THRESHOLDS])
    columns = sweep.threshold, sweep.coverage
    return {
        "reliability": cached_reliability_curve(s, 15, "equal_width"),
        "cwsa": MetricCoverageCurve("cwsa", *columns, sweep.cwsa, sweep.accepted),
        "cwsa_plus": MetricCoverageCurve("cwsa_plus", *columns, sweep.cwsa_plus, sweep.accepted),
    }
