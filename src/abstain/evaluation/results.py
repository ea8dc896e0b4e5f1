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
    """Collector of the results, curves and notes of all scores for an `Evaluation`."""

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
        """Create the evaluation; raise InputError if a requested metric applies to no split."""
        evaluated = {result.metric.name for result in self.results}
        requested = tuple(metric.name for metric in self.metrics or ())
        for name in requested:
            if name not in evaluated:
                raise InputError(f"the metric {name!r} does not apply: it {self.skipped[name]}")
        # A metric that applies to some scores or splits only is not skipped.
        skipped = {name: reason for name, reason in self.skipped.items() if name not in evaluated}
        return Evaluation(
            results=tuple(self.results),
            curves=tuple(self.score_curves),
            notes=warnings_first(self.notes),
            loss=loss,
            skipped=skipped,
            is_binary=self.is_binary,
            requested_metrics=requested,
            column_scores=column_scores,
        )


def _compute_results(metrics: Sequence[Metric], part: ScoredSplit) -> list[Result]:
    """Return the values of the metrics, with their ranges over all orders of tied samples."""
    values = _compute_values(metrics, part)
    s, broken_ties = part.s, BrokenTies(part.s)
    n_tied = s.merged_groups.n_tied
    results = []
    for metric in metrics:
        value = values[metric.name]
        tie_low = tie_high = float("nan")
        has_bounds = metric.identity.family in _WITH_TIE_BOUNDS and part.has_tie_bounds
        if has_bounds and has_exact_tie_bounds(metric, s):
            tie_low = tie_high = float(value.value)
            if n_tied and not value.reason:
                tie_low, tie_high = map(float, broken_ties.bounds(metric))
        result = Result(
            split=part.split,
            score=part.score,
            metric=metric,
            value=float(value.value),
            n=s.n_samples,
            failures=s.n_failures,
            accepted=value.n_accepted,
            tied_share=n_tied / s.n_samples,
            tie_low=tie_low,
            tie_high=tie_high,
            reason=value.reason,
        )
        results.append(result)
    return results


def _compute_values(metrics: Sequence[Metric], part: ScoredSplit) -> dict[str, MetricValue]:
    """Compute the metrics, and return their values by name."""
    metrics_by_samples: dict[Scored, list[Metric]] = {}
    for metric in metrics:
        metrics_by_samples.setdefault(part.samples_for(metric), []).append(metric)
    values: dict[str, MetricValue] = {}
    for samples, metrics_of_samples in metrics_by_samples.items():
        results = compute_metrics(metrics_of_samples, samples)
        for metric, result in zip(metrics_of_samples, results, strict=True):
            values[metric.name] = result
    return values


def _with_intervals(results: list[Result], part: ScoredSplit) -> list[Result]:
    """Add confidence intervals to the results."""
    if part.intervals.kind == "none":
        return results
    defined = [result for result in results if not result.reason]
    if part.intervals.kind == "analytic":
        intervals = _analytic_intervals(defined, part)
    else:
        intervals = _bootstrap_intervals(defined, part)
    undefined = no_interval(part.intervals.level, "the value itself is undefined")
    return [
        replace(result, interval=intervals.get(result.metric.name, undefined)) for result in results
    ]


def _analytic_intervals(results: list[Result], part: ScoredSplit) -> dict[str, Interval]:
    """Return the analytic interval of each metric by its name."""
    intervals = {}
    for result in results:
        intervals[result.metric.name] = interval_of_metric(
            result.metric,
            part.samples_for(result.metric),
            level=part.intervals.level,
            cluster=part.cluster,
            measured=MetricValue(result.value),
        )
    return intervals


def _bootstrap_intervals(results: list[Result], part: ScoredSplit) -> dict[str, Interval]:
    """Return the bootstrap interval of each metric by its name."""
    options = part.intervals
    draws = Draws(part.s.n_rows, options.resamples, rng=options.seed, cluster=part.cluster)
    tables = replicates([part.s], [result.metric for result in results], draws)
    intervals = {}
    for result, table in zip(results, tables, strict=True):
        intervals[result.metric.name] = interval_of_replicates(
            result.metric,
            table[0],
            part.s,
            cluster=part.cluster,
            level=options.level,
            measured=MetricValue(result.value),
        )
    return intervals


# ------------------------------------------------------------------------------------ curves
#: Maximum number of points of a curve. A report draws at most 400 of them.
_MAX_VERTICES = 20_000
#: Thresholds of the CWSA curves. They decrease, so the coverage increases.
_THRESHOLDS = np.arange(19, -1, -1) / 20
#: Coverages of the bands. They are denser at small coverages, where the bands are curved.
_COVERAGES = np.concatenate(([0.005, 0.01, 0.015], np.arange(2, 10) / 100, np.arange(5, 51) / 50))
#: With clusters, each coverage of a band requires one pass over the samples. A band has fewer
#: coverages if their number times the number of samples would exceed this limit.
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
    """Return the confidence band of the selective risk."""
    s, cluster, options = part.s, part.cluster, part.intervals
    is_slow = cluster is not None and s.n_samples * _COVERAGES.size > _MAX_VISITS
    coverage = _COVERAGES[2::3] if is_slow else _COVERAGES
    # The band begins at the coverage of one accepted sample.
    coverage = coverage[coverage >= min(1.0, 1 / s.merged_groups.n_samples)]
    return compute_band(
        s, "selective", level=options.level, coverage=coverage, cluster=cluster, rng=options.seed
    )


def _threshold_probabilities(s: Scored, thresholds: Array) -> Array | None:
    """Convert the thresholds to probabilities of a correct prediction.

    The result is None if the score already is a probability or cannot be converted.
    """
    probability = other_probability(s)
    if probability is None:
        return None
    order = np.argsort(s.confidence, kind="stable")
    index = np.searchsorted(s.confidence[order], thresholds)
    return np.asarray(probability[order][index])


def _calibration_curves(s: Scored) -> dict[str, Any]:
    """Return the reliability curve and the curves of CWSA and CWSA+, if they are defined."""
    if not s.is_calibratable:
        return dict.fromkeys(("reliability", "cwsa", "cwsa_plus"))
    # CWSA+ is undefined for a threshold at which no sample is accepted.
    highest_confidence = float(s.probability_groups.confidence[0])
    thresholds = _THRESHOLDS[highest_confidence >= _THRESHOLDS]
    sweep = sweep_thresholds(s, thresholds)
    cwsa = MetricCoverageCurve("cwsa", sweep.threshold, sweep.coverage, sweep.cwsa, sweep.accepted)
    cwsa_plus = replace(cwsa, metric="cwsa_plus", value=sweep.cwsa_plus)
    return {
        "reliability": cached_reliability_curve(s, 15, "equal_width"),
        "cwsa": cwsa,
        "cwsa_plus": cwsa_plus,
    }
