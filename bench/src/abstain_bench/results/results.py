"""Compute all tables of a folder of runs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any

from abstain._foundation import checks
from abstain.errors import InputError
from abstain.evaluation.comparison import Plan
from abstain.evaluation.records import warnings_first
from abstain.metrics.catalogue import DEFAULT_METRIC
from abstain.typing import Rng
from abstain_bench.results.findings import (
    about_choices,
    about_runs,
    about_studies,
    about_untested,
)
from abstain_bench.results.published import PublishedColumns
from abstain_bench.results.records import BenchmarkResults, MethodFacts
from abstain_bench.results.samples import StoredScores, averages_of
from abstain_bench.results.scope import (
    ComparableRuns,
    methods_without_scores,
    select_comparable_runs,
    select_methods,
    select_metrics,
    select_settings,
    select_studies,
    sorted_by_catalogue,
)
from abstain_bench.results.studies import comparison_of
from abstain_bench.results.tables import OnStudy, RuleOptions, StudyTables
from abstain_bench.runs.costs import REPORT, Stopwatch, read_costs
from abstain_bench.runs.methods import METHODS
from abstain_bench.runs.selection import SelectedSetting
from abstain_bench.runs.store import Store
from abstain_bench.runs.studies import Study


def results_of(
    store: Store,
    *,
    metrics: Sequence[str] | None = None,
    studies: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    level: float = 0.95,
    bootstrap: int = 0,
    risk: float = 0.05,
    delta: float = 0.05,
    outlier_cost: float = 2.0,
    chosen_by: str | None = None,
    rng: Rng = 0,
    on_study: OnStudy | None = None,
    watch: Stopwatch | None = None,
) -> BenchmarkResults:
    """Compute all results of a folder of runs.

    Which method is better in which study, by how much, and is the difference significant? Do
    thresholds that were chosen on validation data meet their guarantees under shift?

    Parameters
    ----------
    store : Store
        Runs with their scores. Images and networks are not required.
    metrics : sequence of str, optional
        Names in `abstain.metrics.METRICS`. Default: the metrics of the configuration. For each
        metric, every method has the settings with the best value on the validation data.
    studies : sequence of str, optional
        Names of studies. Default: all studies that the exposures allow.
    methods : sequence of str, optional
        Names of methods. Default: all methods with a score in some run.
    level : float, default=0.95
        Confidence level of the intervals.
    bootstrap : int, default=0
        Number of bootstrap resamples; 0 for no bootstrap.
    risk, delta : float, default=0.05
        Largest risk of the decision rules, and the probability that their guarantee fails.
    outlier_cost : float, default=2
        Cost of an accepted sample of a new class in the studies "-scod".
    chosen_by : str, optional
        The metric that selects the settings for all metrics, so that all values are of the same
        networks. Default: each metric selects its own settings.
    rng : int, Generator or None, default=0
        Seed of all random numbers.
    on_study : callable, optional
        Called after each study with the number of finished studies and of all studies.
    watch : Stopwatch, optional
        Measures the time of reading, comparing, details and ranking.

    Returns
    -------
    BenchmarkResults
        All values are fractions.

    Raises
    ------
    UnknownNameError
        A metric, study or method does not exist.
    InputError
        No run was tested, or a metric requires more than confidences and predictions.
    DomainError
        An option is out of its range.
    FileFormatError
        A file of the store is damaged, or runs were tested on different images.

    Notes
    -----
    Pairs and intervals are those of `abstain.compare`: runs are averaged sample by sample, and
    copies of one image form a cluster. In the studies of new classes, the errors of a method on
    known classes are excluded for this method. Tests over all studies use the headline studies.
    A metric without an influence function, such as "ece", has intervals only with `bootstrap`.
    One study is in memory at a time. Cost: one sort per method, run and study, and a few
    milliseconds per pair of methods.

    Examples
    --------
    >>> from abstain_bench.results import results_of
    >>> from abstain_bench.runs.store import Store
    >>> results = results_of(Store.read("runs"), metrics=["augrc"])  # doctest: +SKIP
    >>> results.comparisons["augrc"].frame("pairs")  # doctest: +SKIP
    """
    plan = Plan.from_options(
        level=level, bootstrap=bootstrap, rng=rng, published_test=True, skip_slow=True
    )
    options = RuleOptions(
        risk=checks.fraction(risk, "risk"),
        delta=checks.fraction(delta, "delta"),
        outlier_cost=checks.fraction(outlier_cost, "outlier_cost", high=inf),
    )
    _check_tested(store)
    selected_metrics = select_metrics(store, metrics)
    selected_studies = select_studies(store, studies)
    all_settings = select_settings(store, [metric.name for metric in selected_metrics], chosen_by)
    settings = select_methods(all_settings, methods)
    scores = StoredScores(store, selected_studies)
    runs_by_metric = {
        metric.name: select_comparable_runs(
            [choice for choice in settings if choice.metric == metric.name],
            scores,
            selected_studies[0],
        )
        for metric in selected_metrics
    }
    # Thresholds, curves and example images use the settings of this metric.
    primary = DEFAULT_METRIC if DEFAULT_METRIC in runs_by_metric else selected_metrics[0].name
    tables = StudyTables(
        scores, selected_metrics, runs_by_metric, primary, plan, options, watch or Stopwatch()
    )
    tables.add_all(selected_studies, on_study)
    reasons_without_scores = (
        {} if methods is not None else dict(methods_without_scores(store, all_settings))
    )
    return _assemble(tables, selected_studies, settings, reasons_without_scores)


def _check_tested(store: Store) -> None:
    if not store.tested_runs:
        raise InputError(
            f"no run of {str(store.folder)!r} was tested; continue it with `abstain benchmark run`"
        )


def _assemble(
    tables: StudyTables,
    studies: tuple[Study, ...],
    settings: tuple[SelectedSetting, ...],
    reasons_without_scores: dict[str, str],
) -> BenchmarkResults:
    """Combine the results of all studies into one record."""
    runs_by_metric, store = tables.runs_by_metric, tables.reading.store
    names = sorted_by_catalogue(
        [name for selected in runs_by_metric.values() for name in selected.runs]
    )
    with tables.watch.measure("ranking"):
        comparisons = {
            metric.name: comparison_of(
                tables.studied[metric.name],
                metric,
                [name for name in names if name in runs_by_metric[metric.name].runs],
                tables.plan,
            )
            for metric in tables.metrics
        }
    notes = [
        *about_untested(settings, store.stored_runs),
        *about_choices(settings),
        *about_runs(runs_by_metric, store.facts),
        *about_studies(studies),
        *tables.findings,
    ]
    titles = {added_method.name: added_method.title for added_method in store.additions.methods}
    return BenchmarkResults(
        facts=_facts(tables),
        studies=studies,
        methods=tuple(method_facts(name, settings, tables.primary, titles) for name in names),
        metrics=tuple(runs_by_metric),
        chosen=settings,
        comparisons=comparisons,
        thresholds=tuple(tables.thresholds),
        curves=tables.curves,
        extremes=tuple(tables.extremes),
        left_out={**reasons_without_scores, **_left_out(runs_by_metric, names)},
        findings=warnings_first(notes),
        calibration=tuple(tables.calibration),
        undefined=tables.undefined,
        level=tables.plan.level,
        # The times of reports vary; these are the times of the run.
        costs=tuple(cost for cost in read_costs(store.folder) if cost.stage != REPORT),
    )


def with_published(results: BenchmarkResults) -> BenchmarkResults:
    """Add the published numbers for the same task to the results of a benchmark.

    Do the values and the ranking of the methods agree with the literature?

    Parameters
    ----------
    results : BenchmarkResults
        Results of `results_of`.

    Returns
    -------
    BenchmarkResults
        The results with `published`, `published_orders`, and notes on their interpretation or
        absence.

    Notes
    -----
    The numbers are from Traub et al. (2024), table 3, and Jaeger et al. (2023), tables 1, 8, 9 and
    10: those of a vision transformer if the network is one, otherwise those of a convolutional
    network. Networks, splits and corruptions differ. Ranks are among the methods in both sources;
    equal numbers share the best rank.

    Examples
    --------
    >>> from abstain_bench.results import results_of, with_published
    >>> from abstain_bench.runs.store import Store
    >>> results = with_published(results_of(Store.read("runs")))  # doctest: +SKIP
    >>> results.frame("published")  # doctest: +SKIP
    """
    columns = PublishedColumns.of(results.task, results.model)
    orders_and_numbers = list(columns.beside(results.comparisons))
    numbers = tuple(
        number for _, published_numbers in orders_and_numbers for number in published_numbers
    )
    return replace(
        results,
        published=numbers,
        published_orders=tuple(order for order, _ in orders_and_numbers if order is not None),
        findings=warnings_first((*results.findings, *columns.findings(numbers))),
    )


def method_facts(
    name: str, choices: Sequence[SelectedSetting], primary: str, titles: Mapping[str, str]
) -> MethodFacts:
    """Return title, source and meaning of a method; `titles` has those of added methods."""
    settings = [choice for choice in choices if choice.method == name]
    arm = next((choice.arm for choice in settings if choice.metric == primary), settings[0].arm)
    if name not in METHODS:
        return MethodFacts(name, titles.get(name) or name, arm, added=True)
    method = METHODS[name]
    return MethodFacts(
        name, method.title, arm, method.source, method.meaning, averages=averages_of(name)
    )


def _left_out(runs_by_metric: Mapping[str, ComparableRuns], names: Sequence[str]) -> dict[str, str]:
    """Return the methods without any comparison, with the reason."""
    reasons = {
        method: reason
        for selected in runs_by_metric.values()
        for method, reason in selected.reasons_of_exclusion.items()
    }
    return {method: reason for method, reason in reasons.items() if method not in names}


def _facts(tables: StudyTables) -> dict[str, Any]:
    store = tables.reading.store
    return {
        **store.facts,
        "config": dict(store.config),
        "folder": str(store.folder),
        "classes": list(store.classes),
        "seeds": list(store.seeds),
        "runs": len(store.runs),
        "tested": len(store.tested_runs),
        "risk": tables.options.risk,
        "delta": tables.options.delta,
        "outlier_cost": tables.options.outlier_cost,
        "level": tables.plan.level,
        "bootstrap": tables.plan.resamples,
        "primary": tables.primary,
    }
