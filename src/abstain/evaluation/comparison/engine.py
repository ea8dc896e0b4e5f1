"""Compare methods on the same samples by estimates, paired differences and ranks (`compare`)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from itertools import chain
from typing import Any

from abstain._foundation import checks
from abstain._foundation.notes import Note
from abstain.confidence import ScoreState
from abstain.errors import InputError
from abstain.evaluation.comparison.estimates import estimates, method_bands, non_inferiorities
from abstain.evaluation.comparison.notes import comparison_notes
from abstain.evaluation.comparison.pairs import pairs
from abstain.evaluation.comparison.plan import TEST_NAMES, Plan
from abstain.evaluation.comparison.rankings import (
    Blocks,
    agreements,
    compare_across_data_sets,
    stabilities,
    standings,
)
from abstain.evaluation.comparison.record import Comparison, ComparisonTables, DataSetComparison
from abstain.evaluation.comparison.runs import ScoredRun, score_runs
from abstain.evaluation.comparison.summary import summarize
from abstain.evaluation.comparison.tables import Estimate, PairedDifference, SummaryRow
from abstain.evaluation.comparison.values import (
    MethodValues,
    RowWeights,
    compute_values,
    resample_values,
)
from abstain.evaluation.inputs import check_splits, parse_metrics, read_source
from abstain.evaluation.notes import reading_notes
from abstain.evaluation.records import warnings_first
from abstain.metrics import Metric
from abstain.metrics.catalogue import DEFAULT_METRIC
from abstain.predictions import CostMatrix, Predictions
from abstain.typing import AnyArray, Rng, Split

#: Maximum number of methods. With more methods, a comparison takes minutes.
_MAX_METHODS = 300


def compare(
    predictions: Predictions | Mapping[Split, Predictions] | Any,
    *,
    scores: Sequence[str | ScoreState] | None = None,
    metrics: Sequence[str] = (DEFAULT_METRIC,),
    level: float = 0.95,
    test: str = "influence",
    bootstrap: int = 0,
    rng: Rng = 0,
    loss: "str | CostMatrix | AnyArray | None" = None,
    runs: str | None = None,
    methods: str | None = None,
    clustered: bool = False,
    per_method_weights: bool = False,
    adjustment: str = "holm",
    margin: float | None = None,
    reference: str | None = None,
    notes: Sequence[str | Note] = (),
    bands: bool = True,
    published_test: bool = False,
    ties: str = "mean",
) -> Comparison:
    """Compare methods on the same samples.

    Answers: which method is better, by how much, and is the difference significant? How certain
    is the rank of each method?

    Parameters
    ----------
    predictions : Predictions, or mapping from split to Predictions
        One data set, or a mapping of several data sets, such as the result of `read_predictions`.
        All inputs of `evaluate` are also accepted, such as a path, a dataframe, named arrays, or a
        tuple of labels and probabilities.
    scores : sequence of str or fitted scores, optional
        The methods to compare. Each is the name of a confidence column or of a registered score,
        or a fitted score from `abstain.confidence.fit`. The default is all scores that can be
        computed from the predictions.
    metrics : sequence of str, default=("augrc",)
        Names of metrics. The number in a name can be changed, as in ``coverage@2risk``.
    level : float, default=0.95
        Confidence level of the intervals. A difference is significant if its adjusted p-value is
        below 1 - level.
    test : {"influence", "bootstrap", "permutation"}, default="influence"
        Test that decides which differences are significant. Influence functions need no
        resampling. For metrics without an influence function, the paired bootstrap is used.
    bootstrap : int, default=0
        Number of resamples, which all methods and runs share. The default of 0 means that
        resamples are only drawn if `test` or a metric requires them, and then at least 1000. If
        resamples are drawn, the result also contains bootstrap rankings and the paired bootstrap
        test of each pair.
    rng : int, Generator or None, default=0
        Seed of all random numbers.
    loss : str, CostMatrix or array of shape (n,), optional
        Loss of a prediction, as in `evaluate`.
    runs : str, optional
        The split column whose values are runs, such as seeds. The function averages over the runs.
    methods : str, optional
        The split column whose values are methods (classifiers) instead of data sets.
    clustered : bool, default=False
        Whether the samples of one group are dependent.
    per_method_weights : bool, default=False
        Whether the weight of a sample may differ between methods. For example, a method may have
        weight 0 for the samples that its classifier misclassifies.
    adjustment : {"holm", "bonferroni", "none"}, default="holm"
        Adjustment of the p-values for the number of pairs.
    margin : float, optional
        Non-inferiority margin. For each method, the function tests whether it is worse than the
        `reference` by at most this margin. Requires `reference`.
    reference : str, optional
        Method against which all other methods are tested. The p-values in `Comparison.summary` are
        then adjusted for k - 1 comparisons instead of all k(k - 1)/2 pairs. This adjustment is
        only valid if the reference was selected before any results were known. By default, the
        reference is the best method, and the p-values are adjusted for all pairs.
    notes : sequence of str or Note, optional
        Notes to add to those of the comparison.
    bands : bool, default=True
        Whether to compute risk-coverage curves with confidence bands.
    published_test : bool, default=False
        Whether to also run Wilcoxon's test on the resamples, which published comparisons use. The
        p-values of this test decrease with the number of resamples, so the test is not valid. Its
        results have ``valid=False`` and do not affect the conclusions. Use the test only to
        reproduce published p-values.
    ties : {"mean", "min"}, default="mean"
        Rank of tied methods in `standings`. "mean" is the mean of the ranks of the tied methods.
        "min" is the lowest rank, as in published tables. Tests across data sets always use mean
        ranks.

    Returns
    -------
    Comparison
        Tables of estimates, differences of pairs, ranks and further results. `Comparison.frame`
        returns each table as a dataframe.

    Raises
    ------
    UnknownNameError
        If a score or metric does not exist.
    InputError
        If there are fewer than two methods, if the samples of two methods do not match, if their
        weights differ without `per_method_weights`, if the column of runs or methods does not
        split the data, or if a metric does not apply.
    DomainError
        If `level` or `margin` is out of range.

    Notes
    -----
    All methods are evaluated on the same samples, so variation that is common to all methods
    cancels in the differences. If several runs use the same samples, the influence of a sample is
    averaged over the runs. The intervals describe the variation over new samples, not over new
    training runs. With `per_method_weights`, the influence of a sample on a method is proportional
    to the weight of the sample divided by the total weight of the method. The cost is one sort for
    each method and run, and one product of the (n, methods) matrix of influences with its
    transpose.

    References
    ----------
    .. [1] Traub et al. (2024), section 4.1, https://arxiv.org/abs/2407.01032
    .. [2] DeLong et al. (1988), Comparing the areas under two or more correlated receiver
       operating characteristic curves, https://doi.org/10.2307/2531595

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> rng = np.random.default_rng(1)
    >>> correct = rng.random(500) < 0.8
    >>> good, poor = correct + rng.normal(size=500), correct + 3 * rng.normal(size=500)
    >>> predictions = ab.Predictions(confidence={"good": good, "poor": poor}, loss=1.0 - correct)
    >>> pair = ab.compare(predictions).pairs[0]
    >>> pair.better, round(pair.difference, 3), round(pair.p_value, 3)
    ('good', -0.014, 0.038)
    """
    predictions, notes_of_reader = read_source(predictions)
    plan = Plan.from_options(
        level=level,
        test=test,
        bootstrap=bootstrap,
        rng=rng,
        adjustment=adjustment,
        margin=margin,
        reference=reference,
        bands=bands,
        published_test=published_test,
        ties=ties,
    )
    scored_runs = score_runs(
        predictions,
        runs=runs,
        methods=methods,
        clustered=clustered,
        per_method_weights=per_method_weights,
        scores=scores,
        loss=loss,
    )
    comparison = _compare_runs(scored_runs, parse_metrics(metrics) or [], plan)
    notes_of_data = reading_notes(notes, check_splits(predictions).values(), reader=notes_of_reader)
    return replace(comparison, notes=warnings_first((*comparison.notes, *notes_of_data)))


def _compare_runs(runs: Sequence[ScoredRun], metrics: Sequence[Metric], plan: Plan) -> Comparison:
    """Compare the methods on each data set and over all data sets."""
    _check_comparable(runs, metrics, plan)
    comparisons = []
    for data in dict.fromkeys(run.data for run in runs):
        runs_of_data = [run for run in runs if run.data == data]
        comparisons.append(compare_data(runs_of_data, metrics, plan))
    values_by_metric = zip(*(comparison.sampled for comparison in comparisons), strict=True)
    blocks_by_metric = [Blocks(values) for values in values_by_metric]
    across = compare_across_data_sets(blocks_by_metric, plan)
    notes = comparison_notes(runs, comparisons, across, plan)
    return join_tables(
        comparisons, across, plan, metrics=metrics, methods=runs[0].scored, notes=notes
    )


def compare_data(
    runs: Sequence[ScoredRun], metrics: Sequence[Metric], plan: Plan
) -> DataSetComparison:
    """Compare the methods on one data set, which may have several runs."""
    rows = RowWeights.from_runs(runs)
    values = [compute_values(metric, runs, rows) for metric in metrics]
    has_metric_without_influence = any(m.measurement.influence is None for m in metrics)
    n_resamples = plan.n_resamples(
        len(runs[0].scored), has_metric_without_influence=has_metric_without_influence
    )
    if n_resamples:
        replicates_by_metric = resample_values(metrics, runs, n_resamples, plan.seed)
        values = [
            replace(v, replicates=replicates)
            for v, replicates in zip(values, replicates_by_metric, strict=True)
        ]
    has_bands = plan.bands and not plan.skip_slow
    return DataSetComparison(
        data=runs[0].data,
        sampled=tuple(values),
        **_tables_of_metrics(values, plan),
        agreements=tuple(agreements(values, plan)),
        stability=tuple(stabilities(values, plan)),
        bands=tuple(method_bands(runs[0], plan)) if has_bands else (),
        resamples=n_resamples,
    )


def _tables_of_metrics(values: Sequence[MethodValues], plan: Plan) -> dict[str, Any]:
    """Compute the rows of the tables that depend on a single metric."""
    all_estimates: list[Estimate] = []
    all_pairs: list[PairedDifference] = []
    summary: list[SummaryRow] = []
    for values_of_metric in values:
        estimates_of_metric = list(estimates(values_of_metric, plan))
        pairs_of_metric = list(pairs(values_of_metric, plan))
        all_estimates += estimates_of_metric
        all_pairs += pairs_of_metric
        summary += summarize(values_of_metric, estimates_of_metric, pairs_of_metric, plan)
    all_standings = chain.from_iterable(standings(v, plan) for v in values)
    all_non_inferiorities = chain.from_iterable(non_inferiorities(v, plan) for v in values)
    return {
        "estimates": tuple(all_estimates),
        "pairs": tuple(all_pairs),
        "summary": tuple(summary),
        "standings": tuple(all_standings),
        "non_inferiority": tuple(all_non_inferiorities),
    }


def join_tables(
    comparisons: Sequence[DataSetComparison],
    across: ComparisonTables,
    plan: Plan,
    *,
    metrics: Sequence[Metric],
    methods: Iterable[str],
    notes: Iterable[Note],
) -> Comparison:
    """Combine the tables of each data set and the tables over all data sets."""
    run_names = (run.run for comparison in comparisons for run in comparison.sampled[0].runs)
    sources = (*comparisons, across)
    tables: dict[str, Any] = {}
    for field in fields(ComparisonTables):
        tables_of_sources = [getattr(source, field.name) for source in sources]
        tables[field.name] = tuple(chain.from_iterable(tables_of_sources))
    return Comparison(
        metrics=tuple(metric.name for metric in metrics),
        methods=tuple(methods),
        data=tuple(comparison.data for comparison in comparisons),
        runs=tuple(dict.fromkeys(run_names)),
        level=plan.level,
        notes=warnings_first(notes),
        test=TEST_NAMES[plan.test],
        bootstrap=max((comparison.resamples for comparison in comparisons), default=0),
        seed=plan.seed,
        reference=plan.reference or "",
        **tables,
    )


def _check_comparable(runs: Sequence[ScoredRun], metrics: Sequence[Metric], plan: Plan) -> None:
    """Raise InputError for too many methods, an unsuitable metric, or an unknown reference."""
    methods = tuple(runs[0].scored)
    if len(methods) > _MAX_METHODS:
        n_pairs = len(methods) * (len(methods) - 1) // 2
        raise InputError(
            f"at most {_MAX_METHODS} methods can be compared; got {len(methods):,}, which make "
            f"{n_pairs:,} pairs to test. Select methods with `scores`"
        )
    for metric in metrics:
        for run in runs:
            _check_metric_applies(metric, run)
    if plan.reference is not None:
        checks.one_of(plan.reference, "reference", methods)


def _check_metric_applies(metric: Metric, run: ScoredRun) -> None:
    """Raise InputError if the metric does not apply to a method of the run."""
    for method, s in run.scored.items():
        reason = metric.reason_not_applicable(s)
        if reason:
            raise InputError(
                f"the metric {metric.name!r} does not apply to {method!r}: it {reason}"
            )
