"""Bootstrap replicates, intervals, standard errors and biases of metrics.

A resample is stored as the number of times that each sample is drawn, and these counts serve as
sample weights. Areas such as the AUGRC are computed for all scores and resamples at once, and
common metrics are computed from these areas.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias, cast

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import read_only
from abstain._foundation.scored import Scored, validate_samples_on_host
from abstain._foundation.tie_groups import TieGroups
from abstain.errors import InputError, ShapeError
from abstain.inference.bootstrap_intervals import (
    Scale,
    bca,
    bias_note,
    debiased_percentile,
    percentile,
    studentized,
    with_notes,
)
from abstain.inference.draws import Draws, bootstrap
from abstain.inference.intervals import Interval, check_level
from abstain.inference.resampled_areas import (
    SortedSamples,
    map_in_threads,
    resampled_areas,
    sort_samples,
)
from abstain.inference.small_samples import few_clusters_warning
from abstain.metrics.catalogue import metric_named
from abstain.metrics.classes import select_rows
from abstain.metrics.entry import Metric, ResampledFormula
from abstain.metrics.influences import sample_weights
from abstain.metrics.intervals import check_needs, influence_of, value_bounds
from abstain.typing import AnyArray, Array, BoolArray, FloatArray, IntArray, Rng


def replicates(
    scored_sets: Sequence[Scored],
    metrics: Sequence[Metric],
    draws: Draws,
    *,
    threads: int | None = None,
) -> FloatArray:
    """Compute metrics of several scores of the same samples in every resample.

    The samples must meet the requirements of all metrics. The result has the shape (metrics,
    scores, resamples) and contains NaN for undefined values. The default number of threads is the
    number of available processors, but at most two.
    """
    for s in scored_sets:
        if s.n_rows != draws.n:
            raise ShapeError(
                f"every score needs the {draws.n} samples that are drawn from; got {s.n_rows}"
            )
    presorted = map_in_threads(
        lambda s: sort_samples(s.confidence, s.loss, s.weight), scored_sets, threads
    )
    values = np.full((len(metrics), len(scored_sets), draws.resamples), np.nan)
    has_formula = _has_exact_formula(metrics, scored_sets)
    score_index = np.flatnonzero(has_formula.any(axis=0)).tolist()
    if score_index:
        metric_index = np.flatnonzero(has_formula.any(axis=1)).tolist()
        formulas = {
            m: cast("ResampledFormula", metrics[m].measurement.resampled) for m in metric_index
        }
        required_areas = frozenset[str]().union(*(formula.areas for formula in formulas.values()))
        sorted_scores = [presorted[i] for i in score_index]
        areas = resampled_areas(sorted_scores, draws, required_areas, n_threads=threads)
        for m, formula in formulas.items():
            formula_values = formula.compute(areas)
            values[m, has_formula[m]] = formula_values[has_formula[m, score_index]]
    for i, s in enumerate(scored_sets):
        remaining = np.flatnonzero(~has_formula[:, i]).tolist()
        if remaining:
            remaining_metrics = [metrics[m] for m in remaining]
            values[remaining, i] = _replicates_by_counts(s, presorted[i], remaining_metrics, draws)
    return values


def _has_exact_formula(metrics: Sequence[Metric], scored_sets: Sequence[Scored]) -> BoolArray:
    """Return whether resampled areas suffice for each metric of each score, (metrics, scores)."""
    has_formula = np.zeros((len(metrics), len(scored_sets)), np.bool_)
    for m, metric in enumerate(metrics):
        formula = metric.measurement.resampled
        if formula is not None:
            has_formula[m] = [formula.is_exact(s) for s in scored_sets]
    return has_formula


def _replicates_by_counts(
    s: Scored, presorted: SortedSamples, metrics: Sequence[Metric], draws: Draws
) -> FloatArray:
    """Compute metrics for each resample separately, shape (metrics, resamples)."""
    has_integer_weights = s.weight is None or not np.any(s.weight % 1)

    def compute_block(counts: Array) -> FloatArray:
        values = np.full((len(metrics), counts.shape[1]), np.nan)
        for j, count in enumerate(counts.T):
            if has_integer_weights:
                resample = weighted_resample(s, presorted, count)
            else:
                resample = _repeated_rows(s, count)
            if resample is not None:
                values[:, j] = [metric.compute(resample).value for metric in metrics]
        return values

    return bootstrap(compute_block, draws)


def weighted_resample(s: Scored, presorted: SortedSamples, count: Array) -> Scored | None:
    """Return the resample as weighted samples, or None if all drawn samples have weight 0.

    `count` is the number of times that each sample is drawn.
    """
    weight = count.astype(np.float64)
    if s.weight is not None:
        weight *= s.weight
    if not weight.any():
        return None
    starts = presorted.group_starts
    order = presorted.order
    sorted_weight = weight[order]
    group_weight = np.add.reduceat(sorted_weight, starts)
    group_loss = np.add.reduceat(sorted_weight * presorted.loss, starts)
    group_count = np.add.reduceat(count[order], starts, dtype=np.int64)
    # A group without drawn samples is not a threshold.
    is_drawn = group_weight > 0
    groups = TieGroups(
        s.confidence[order[starts]][is_drawn],
        group_weight[is_drawn],
        group_loss[is_drawn],
        group_count[is_drawn],
    )
    return replace(s, weight=weight, precomputed_groups=groups)


def _repeated_rows(s: Scored, count: Array) -> Scored | None:
    """Return the resample as repeated rows, or None if all drawn samples have weight 0.

    Non-integer weights require repeated rows.
    """
    index = np.repeat(np.arange(s.n_rows), count)
    weight = None if s.weight is None else s.weight[index]
    if weight is not None and not weight.any():
        return None
    confidence = s.confidence[index]
    probability = confidence
    if s.probability is not None and s.probability is not s.confidence:
        probability = s.probability[index]
    class_view = None if s.class_view is None else select_rows(s.class_view, index)
    return Scored(confidence, s.loss[index], weight, probability=probability, class_view=class_view)


IntervalKind: TypeAlias = Literal["percentile", "bca", "studentized"]

INTERVAL_KINDS = ("percentile", "bca", "studentized")


@dataclass(frozen=True, eq=False)
class BootstrapResult:
    """Result of the bootstrap of one metric.

    Attributes
    ----------
    value : float
        The metric of the original samples.
    replicates : ndarray of shape (resamples,)
        The metric in every resample, or NaN if the metric is undefined in the resample.
    interval : Interval
        The confidence interval, with its method and warnings.
    standard_error : float
        Standard deviation of the replicates.
    bias : float
        Mean of the replicates minus the value.
    seed : int
        Seed of the resamples. To reproduce the resamples, pass the seed as `rng`.
    """

    value: float
    replicates: FloatArray = field(repr=False)
    interval: Interval
    standard_error: float
    bias: float
    seed: int


def metric_bootstrap(
    confidence: AnyArray,
    loss: AnyArray,
    *,
    metric: str = "augrc",
    resamples: int | Draws = 1000,
    level: float = 0.95,
    interval: IntervalKind = "percentile",
    weight: AnyArray | None = None,
    group: AnyArray | None = None,
    rng: Rng = None,
) -> BootstrapResult:
    """Bootstrap a metric of one confidence score.

    Answers: how much does this metric vary between samples of the same population?

    Parameters
    ----------
    confidence : array of shape (n,)
        Confidence scores; higher means more trusted.
    loss : array of shape (n,)
        Finite and non-negative; 1 for an error under 0/1 loss.
    metric : str, default="augrc"
        Name of a metric, possibly with a number, such as ``selective_risk@85cov``.
    resamples : int or Draws, default=1000
        Number of resamples. Each resample contains n samples, or as many clusters as the data,
        drawn with replacement. A `Draws` object can instead preserve the numbers of failures and
        successes or draw a different number of samples.
    level : float, default=0.95
        Confidence level, between 0 and 1.
    interval : {"percentile", "bca", "studentized"}, default="percentile"
        "percentile" is the central range of the replicates, shifted by minus twice the bias for
        calibration errors. "bca" corrects for bias and skewness. "studentized" is the bootstrap-t
        interval, which divides the error of each replicate by its standard error. If the range of
        the metric is bounded, "studentized" uses the log or logit scale.
    weight : array of shape (n,), optional
        Sample weights.
    group : array of shape (n,), optional
        Cluster of each sample, such as a patient or a site, of any type. Each draw selects an
        entire cluster. If `resamples` is a `Draws` object, it contains the clusters.
    rng : int, numpy.random.Generator or None, default=None
        Seed or generator of the resamples. None uses fresh entropy. If `resamples` is a `Draws`
        object, it contains the seed.

    Returns
    -------
    BootstrapResult
        Value, replicates, interval, standard error and bias.

    Raises
    ------
    ShapeError, DomainError, UnknownNameError
        See `augrc`. A DomainError is also raised if `level` is not between 0 and 1, and an
        UnknownNameError if no metric has this name.
    InputError
        If `resamples` is below 2, or the metric requires inputs other than confidence and loss. The
        error is also raised if `interval` is "bca" or "studentized" and the metric has no influence
        function.

    Notes
    -----
    A sample that is drawn twice is tied with its copy, which causes a bias. The mean of the AUGRC
    over resamples is (1 - 1/n) AUGRC + R/(2n), where R is the risk at full coverage. With few
    failures, the coverage of percentile intervals is below the nominal level. The function
    `metric_interval` requires no resampling, and its intervals are more reliable. The function
    sorts the samples once and makes one pass over the samples for every 64 resamples.

    References
    ----------
    .. [1] Efron and Tibshirani (1993), An introduction to the bootstrap, chapters 12 to 14

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.metrics.resampling import metric_bootstrap
    >>> loss = np.arange(200) % 10 == 9
    >>> found = metric_bootstrap(np.linspace(1, 0, 200) - 0.3 * loss, loss, rng=0)
    >>> round(found.value, 4), round(found.standard_error, 3)
    (0.0255, 0.007)
    >>> found.interval.method
    'bootstrap, percentile, 1000 resamples'
    """
    checks.one_of(interval, "interval", INTERVAL_KINDS)
    entry, s = metric_named(metric), validate_samples_on_host(confidence, loss, weight)
    check_needs(entry, s)
    if interval != "percentile" and entry.reason_without_interval:
        raise InputError(
            f"`interval` {interval!r} needs an influence function, which {entry.title} does not "
            "have; use 'percentile'"
        )
    draws = _make_draws(s, resamples, group, rng)
    level, value = check_level(level), float(entry.compute(s).value)
    replicate_values = replicates([s], [entry], draws)[0, 0]
    if interval == "percentile":
        bootstrap_interval = percentile_interval(entry, replicate_values, value, level=level)
    elif interval == "bca":
        shares = _influence_shares(entry, s, draws.cluster)
        bootstrap_interval = bca(replicate_values, value, shares, level=level)
    else:
        bootstrap_interval = _studentized_interval(entry, s, draws, replicate_values, level)
    n_clusters = None if draws.cluster is None else draws.n_units
    bootstrap_interval = with_notes(
        bootstrap_interval, few_clusters_warning(n_clusters), bounds=value_bounds(entry, s)
    )
    finite_values = replicate_values[np.isfinite(replicate_values)]
    standard_error = float(finite_values.std(ddof=1)) if finite_values.size > 1 else float("nan")
    bias = float(finite_values.mean()) - value if finite_values.size else float("nan")
    return BootstrapResult(
        value=value,
        replicates=read_only(replicate_values),
        interval=bootstrap_interval,
        standard_error=standard_error,
        bias=bias,
        seed=draws.seed,
    )


def percentile_interval(
    metric: Metric, replicate_values: FloatArray, value: float, *, level: float
) -> Interval:
    """Return the percentile interval of a metric.

    Intervals of calibration errors are corrected for bias.
    """
    if not metric.reason_without_interval:
        return percentile(replicate_values, level=level)
    if metric.identity.family == "calibration":
        interval = debiased_percentile(replicate_values, value, level=level)
    else:
        interval = percentile(replicate_values, level=level)
    return with_notes(interval, bias_note(replicate_values, value))


def _make_draws(s: Scored, resamples: int | Draws, group: AnyArray | None, rng: Rng) -> Draws:
    """Return the plan of the resamples, or raise an error if it does not fit the samples."""
    n_resamples = resamples.resamples if isinstance(resamples, Draws) else resamples
    if checks.positive_int(n_resamples, "resamples") < 2:
        raise InputError(
            f"`resamples` must be at least 2 for an interval; got {n_resamples}. Draw 1000 or more"
        )
    if not isinstance(resamples, Draws):
        return Draws(s.n_rows, resamples, rng=rng, cluster=s.cluster_codes(group))
    if resamples.n != s.n_rows:
        raise ShapeError(
            f"`resamples` draws from {resamples.n} samples, but there are "
            f"{s.n_rows}{' of weight above 0' if s.n_rows < s.n_input_rows else ''}"
        )
    if group is not None:
        raise InputError(
            "`group` and a plan were given; pass the clusters to the plan: Draws(cluster=...)"
        )
    return resamples


def _influence_shares(metric: Metric, s: Scored, cluster: IntArray | None) -> FloatArray:
    """Return the contribution of each sample or cluster to the error of the metric."""
    influence = influence_of(metric, s)
    if influence is None:
        return np.zeros(0)
    share = influence * sample_weights(s) / s.total_weight
    if cluster is None:
        return share
    return np.bincount(cluster, weights=share).astype(np.float64)


def _studentized_interval(
    metric: Metric, s: Scored, draws: Draws, replicate_values: FloatArray, level: float
) -> Interval:
    """Return the bootstrap-t interval of a metric."""
    presorted = sort_samples(s.confidence, s.loss, s.weight)
    standard_errors = []
    for counts in draws:
        for count in counts.T:
            resample = weighted_resample(s, presorted, count)
            error = _standard_error_of_resample(metric, s, draws.cluster, resample, count)
            standard_errors.append(error)
    drawn_once = np.ones(s.n_rows)
    standard_error = _standard_error_of_resample(metric, s, draws.cluster, s, drawn_once)
    value = float(metric.compute(s).value)
    scale = _interval_scale(metric)
    return studentized(
        replicate_values, standard_errors, value, standard_error, level=level, scale=scale
    )


def _standard_error_of_resample(
    metric: Metric, s: Scored, cluster: IntArray | None, resample: Scored | None, count: Array
) -> float:
    """Return the standard error of the metric in a resample of `s`, or NaN if undefined.

    `count` is the number of times that each sample is drawn.
    """
    if resample is None or metric.compute(resample).reason:
        return float("nan")
    influence = influence_of(metric, resample)
    if influence is None:
        return float("nan")
    share = influence * sample_weights(s) / resample.total_weight
    n_times_drawn = count.astype(np.float64)
    if cluster is not None:
        # All samples of a cluster are drawn equally often.
        n_times_drawn = np.bincount(cluster, weights=n_times_drawn) / np.bincount(cluster)
        share = np.bincount(cluster, weights=share).astype(np.float64)
    n_draws = float(n_times_drawn.sum())
    if n_draws <= 1:
        return float("nan")
    return float(np.sqrt(np.sum(n_times_drawn * share**2) * n_draws / (n_draws - 1.0)))


def _interval_scale(metric: Metric) -> Scale:
    """Return the scale on which the errors of the bootstrap-t interval are studentized."""
    if metric.measurement.low != 0.0:
        return "identity"
    if metric.lower_is_better:
        return "log"
    return "logit" if metric.measurement.high == 1.0 else "identity"
