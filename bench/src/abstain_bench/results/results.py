"""Evaluate a folder of runs."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import inf

from abstain._foundation import checks
from abstain.evaluation import Note
from abstain.evaluation.comparison import Plan
from abstain.evaluation.records import warnings_first
from abstain.metrics import Metric
from abstain.metrics.catalogue import DEFAULT_METRIC
from abstain.typing import Rng
from abstain_bench.results.details import (
    Thresholds,
    calibration_rows,
    curve_points,
    extremes_of,
    mean_curve,
)
from abstain_bench.results.published import (
    compare_with_published,
    published_notes,
    read_published_cells,
)
from abstain_bench.results.records import (
    BenchmarkResults,
    CalibrationRow,
    CurvePoints,
    Extreme,
    MethodFacts,
    ThresholdRow,
)
from abstain_bench.results.samples import (
    Calibrators,
    StoredScores,
    StudySamples,
    uses_mean_prediction,
)
from abstain_bench.results.scope import (
    ComparableRuns,
    about_choices,
    about_failures,
    about_runs,
    about_studies,
    about_untested,
    all_runs,
    check_tested,
    methods_without_scores,
    select_methods,
    select_metrics,
    select_runs,
    select_settings,
    select_studies,
    sorted_by_catalogue,
)
from abstain_bench.results.studies import (
    StudyComparison,
    combine_studies,
    compare_study,
    compare_study_average,
)
from abstain_bench.runs.costs import REPORT, Stopwatch, read_costs
from abstain_bench.runs.methods import METHODS
from abstain_bench.runs.selection import SelectedSetting, needs_probabilities
from abstain_bench.runs.store import Run, Store
from abstain_bench.runs.studies import Study

#: Callback that receives the number of finished studies and the number of all studies.
OnStudy = Callable[[int, int], None]


@dataclass(frozen=True)
class RuleOptions:
    """Targets of the decision rules, and the cost of accepting samples of new classes."""

    risk: float
    delta: float
    outlier_cost: float


@dataclass(eq=False)
class StudyTables:
    """Collects the results of a benchmark, one study at a time.

    Thresholds, curves and example images use the settings that were selected by the metric
    `primary`.
    """

    reading: StoredScores
    metrics: Sequence[Metric]
    runs_by_metric: Mapping[str, ComparableRuns]
    primary: str
    plan: Plan
    options: RuleOptions
    watch: Stopwatch
    comparisons: dict[str, list[StudyComparison]] = field(default_factory=dict)
    thresholds: list[ThresholdRow] = field(default_factory=list)
    calibration: list[CalibrationRow] = field(default_factory=list)
    curves: dict[tuple[str, str], CurvePoints] = field(default_factory=dict)
    extremes: list[Extreme] = field(default_factory=list)
    findings: list[Note] = field(default_factory=list)
    undefined: dict[tuple[str, str], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.calibrators = Calibrators(self.reading)
        self.rules = Thresholds(self.options.risk, self.options.delta, self.plan.level)
        self.comparisons = {metric.name: [] for metric in self.metrics}

    def add(self, study: Study) -> None:
        """Add the results of a study."""
        runs = all_runs(self.runs_by_metric)
        if not runs:
            self.reading.release(study)
            return
        with self.watch.measure("reading"):
            samples = StudySamples(
                study,
                self.reading.scores_by_run(study, runs.values()),
                self.calibrators,
                len(self.reading.store.classes),
                self.options.outlier_cost,
            )
        parts = samples.averaged_parts(self.reading, next(iter(runs.values())))
        with self.watch.measure("comparison"):
            for metric in self.metrics:
                self._compare(metric, samples, parts)
                for cached in (samples, *parts):
                    cached.clear_large_cache()
        with self.watch.measure("looks"):
            self._add_details(samples, parts)
        self.reading.release(study)

    def _compare(
        self, metric: Metric, samples: StudySamples, parts: Sequence[StudySamples]
    ) -> None:
        """Add the comparison by one metric, or the reason why the metric is undefined.

        If the study consists of several parts, the metric is averaged over them.
        """
        study = samples.study
        key = (metric.name, study.name)
        reason = reason_if_meaningless(metric, study)
        if reason:
            self.undefined[key] = reason
            return
        calibrated = needs_probabilities(metric)
        runs_by_method = self._complete_methods(metric.name, samples, calibrated=calibrated)
        if not runs_by_method:
            self.undefined[key] = "no method has values in this study"
            return
        scored_runs = []
        scored_parts = []
        for seed in self.runs_by_metric[metric.name].seeds:
            runs = {method: by_seed[seed] for method, by_seed in runs_by_method.items()}
            scored_runs.append(samples.scored_run(seed, runs, calibrated=calibrated))
            scored_parts.append(
                [part.scored_run(seed, runs, calibrated=calibrated, study=study) for part in parts]
            )
        if parts:
            comparison = compare_study_average(
                scored_parts, metric, self.plan, headline=study.headline
            )
        else:
            comparison = compare_study(scored_runs, metric, self.plan, headline=study.headline)
        self.comparisons[metric.name].append(comparison)
        if comparison.method_values.reasons:
            self.undefined[key] = "; ".join(comparison.method_values.reasons)
        if metric.name == self.primary:
            self.findings += about_failures(scored_runs)

    def _complete_methods(
        self, metric: str, samples: StudySamples, *, calibrated: bool
    ) -> dict[str, Mapping[int, Run]]:
        """Return the methods with values for all seeds, and add a warning for each other method."""
        complete = {}
        for method, runs in self.runs_by_metric[metric].runs.items():
            reason = self._reason_if_incomplete(method, runs.values(), samples, calibrated)
            if not reason:
                complete[method] = runs
                continue
            split = (("study", samples.study.name),)
            message = f"{method} is excluded from {samples.study.name} for {metric}: {reason}."
            self.findings.append(Note.warning("left_out", message, split, method))
        return complete

    def _reason_if_incomplete(
        self, method: str, runs: Collection[Run], samples: StudySamples, calibrated: bool
    ) -> str:
        """Return the reason why a method has no values in a run, or an empty string."""
        for run in runs:
            reason = samples.missing(run, method)
            if reason:
                return reason
        if calibrated and not all(self.calibrators.can_calibrate(run, method) for run in runs):
            return "no validation data to calibrate it by"
        return ""

    def _add_details(self, samples: StudySamples, parts: Sequence[StudySamples]) -> None:
        """Add curves, thresholds, calibration errors and example images of the primary metric."""
        study = samples.study
        runs_by_method = {
            method: list(runs.values())
            for method, runs in self.runs_by_metric[self.primary].runs.items()
            if not any(samples.missing(run, method) for run in runs.values())
        }
        for method, runs in runs_by_method.items():
            first_run = runs[0]
            if parts:
                scored_parts = [part.scored(first_run, method) for part in parts]
                curve = mean_curve(scored_parts, first_run)
            else:
                curve = curve_points(samples.scored(first_run, method), first_run)
            self.curves[study.name, method] = curve
        if study.headline or study.severity:
            self.thresholds += self.rules.rows(samples, runs_by_method)
        if study.headline:
            self.calibration += calibration_rows(parts or [samples], study.name, runs_by_method)
            for method, runs in runs_by_method.items():
                exposure_scores = self.reading.exposure_scores(study, runs[0])
                self.extremes += extremes_of(samples, exposure_scores, runs[0], method)


def reason_if_meaningless(metric: Metric, study: Study) -> str:
    """Return the reason why a metric does not apply to a study, or an empty string."""
    # The losses of these studies are costs, but the metric needs 0/1 losses.
    if study.errors == "scod" and metric.measurement.needs:
        return "it requires a 0/1 loss, and the losses of this study are costs"
    if study.errors in {"removed", "outlier"} and metric.identity.family == "classifier":
        treatment = "left out" if study.errors == "removed" else "no failures"
        return (
            f"wrong answers are {treatment}, so that it is the share of known classes and no more"
        )
    return ""


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
    """Evaluate and compare the methods in a folder of runs.

    The results show which methods are significantly better in each study, and whether thresholds
    from validation data keep their guarantees under distribution shift.

    Parameters
    ----------
    store : Store
        Runs with scores. Images and networks are not required.
    metrics : sequence of str, optional
        Names in `abstain.metrics.METRICS`. The default is the metrics of the configuration.
    studies : sequence of str, optional
        Names of studies. The default is all studies for which the required exposures exist.
    methods : sequence of str, optional
        Names of methods. The default is all methods that have scores in at least one run.
    level : float, default=0.95
        Confidence level of the intervals.
    bootstrap : int, default=0
        Number of bootstrap resamples. If 0, no bootstrap is computed.
    risk, delta : float, default=0.05
        Maximum selective risk of the decision rules, and probability that the risk is larger.
    outlier_cost : float, default=2
        Cost of an accepted sample of a new class in studies with the suffix "-scod".
    chosen_by : str, optional
        Name of the metric that selects the settings of the methods for all metrics. The default is
        that each metric selects the settings with its best value on the validation data.
    rng : int, Generator or None, default=0
        Seed of all random numbers.
    on_study : callable, optional
        Function that is called after each study. The function receives the number of finished
        studies and the total number of studies.
    watch : Stopwatch, optional
        Stopwatch that measures the durations of reading, comparison, details and ranking.

    Returns
    -------
    BenchmarkResults
        Results as fractions, not as percentages.

    Raises
    ------
    UnknownNameError
        If a metric, study or method does not exist.
    InputError
        If no run was tested, or if a metric requires inputs other than confidences and predictions.
    DomainError
        If an option is out of range.
    FileFormatError
        If a stored file is damaged, or if the runs were tested on different images.

    Notes
    -----
    Pairwise differences and intervals are computed as in `abstain.compare`. The loss of each sample
    is averaged over the seeds, and all copies of an image form a cluster. In studies of new
    classes, wrong predictions for known classes are excluded. Tests over all studies include only
    the headline studies. If a metric has no influence function, as "ece", its intervals require
    that `bootstrap` is positive. The samples are sorted once for each combination of method, run
    and study. Only one study is held in memory at a time.

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
    check_tested(store)
    selected_metrics = select_metrics(store, metrics)
    selected_studies = select_studies(store, studies)
    all_settings = select_settings(store, [metric.name for metric in selected_metrics], chosen_by)
    settings = select_methods(all_settings, methods)
    scores = StoredScores(store, selected_studies)
    runs_by_metric = select_runs(settings, scores, selected_metrics, selected_studies[0])
    # Thresholds, curves and example images use the settings of this metric.
    primary = DEFAULT_METRIC if DEFAULT_METRIC in runs_by_metric else selected_metrics[0].name
    tables = StudyTables(
        scores, selected_metrics, runs_by_metric, primary, plan, options, watch or Stopwatch()
    )
    for n_finished, study in enumerate(selected_studies, 1):
        tables.add(study)
        if on_study is not None:
            on_study(n_finished, len(selected_studies))
    reasons = {} if methods is not None else dict(methods_without_scores(store, all_settings))
    return _assemble(tables, selected_studies, settings, reasons)


def _assemble(
    tables: StudyTables,
    studies: tuple[Study, ...],
    settings: tuple[SelectedSetting, ...],
    reasons_without_scores: dict[str, str],
) -> BenchmarkResults:
    """Combine the results of all studies."""
    runs_by_metric = tables.runs_by_metric
    store = tables.reading.store
    names = sorted_by_catalogue([name for runs in runs_by_metric.values() for name in runs.runs])
    with tables.watch.measure("ranking"):
        comparisons = {}
        for metric in tables.metrics:
            compared_names = [name for name in names if name in runs_by_metric[metric.name].runs]
            comparisons[metric.name] = combine_studies(
                tables.comparisons[metric.name], metric, compared_names, tables.plan
            )
    notes = [
        *about_untested(settings, store.stored_runs),
        *about_choices(settings),
        *about_runs(runs_by_metric, store.facts),
        *about_studies(studies),
        *tables.findings,
    ]
    titles = {method.name: method.title for method in store.added_methods}
    reasons_of_exclusion = {
        name: reason
        for runs in runs_by_metric.values()
        for name, reason in runs.reasons_of_exclusion.items()
        if name not in names
    }
    facts = {
        **store.facts,
        "config": dict(store.config),
        "folder": str(store.folder),
        "classes": list(store.classes),
        "seeds": list(store.seeds),
        "runs": len(store.runs),
        "tested": len(store.tested_runs),
        **asdict(tables.options),
        "level": tables.plan.level,
        "bootstrap": tables.plan.resamples,
        "primary": tables.primary,
    }
    return BenchmarkResults(
        facts=facts,
        studies=studies,
        methods=tuple(method_facts(name, settings, tables.primary, titles) for name in names),
        metrics=tuple(runs_by_metric),
        chosen=settings,
        comparisons=comparisons,
        thresholds=tuple(tables.thresholds),
        curves=tables.curves,
        extremes=tuple(tables.extremes),
        left_out={**reasons_without_scores, **reasons_of_exclusion},
        findings=warnings_first(notes),
        calibration=tuple(tables.calibration),
        undefined=tables.undefined,
        level=tables.plan.level,
        # The durations of reports are excluded, because they do not belong to the run.
        costs=tuple(cost for cost in read_costs(store.folder) if cost.stage != REPORT),
    )


def with_published(results: BenchmarkResults) -> BenchmarkResults:
    """Compare benchmark results with published numbers for the same task.

    The comparison shows whether the values and the ranking agree with the literature.

    Parameters
    ----------
    results : BenchmarkResults
        Results of `results_of`.

    Returns
    -------
    BenchmarkResults
        Copy of the results with the attributes `published` and `published_orders` and additional
        notes.

    Notes
    -----
    The published numbers are from Traub et al. (2024), table 3, and Jaeger et al. (2023), tables 1,
    8, 9 and 10. Results of vision transformers are compared with published results of vision
    transformers, and all other results with those of convolutional networks. The networks, splits
    and corruptions are not identical to those of the papers. Ranks are computed among the methods
    that have both a measured and a published value. Tied methods share the lowest of their ranks.

    Examples
    --------
    >>> from abstain_bench.results import results_of, with_published
    >>> from abstain_bench.runs.store import Store
    >>> results = with_published(results_of(Store.read("runs")))  # doctest: +SKIP
    >>> results.frame("published")  # doctest: +SKIP
    """
    cells = read_published_cells(results.task, results.model)
    numbers, orders = compare_with_published(results.comparisons, cells)
    notes = published_notes(results.task, results.model, cells, numbers)
    return replace(
        results,
        published=tuple(numbers),
        published_orders=tuple(orders),
        findings=warnings_first((*results.findings, *notes)),
    )


def method_facts(
    name: str, choices: Sequence[SelectedSetting], primary: str, titles: Mapping[str, str]
) -> MethodFacts:
    """Return the title, the source and the meaning of a method.

    `titles` has the titles of added methods.
    """
    settings = [choice for choice in choices if choice.method == name]
    arms = [choice.arm for choice in settings if choice.metric == primary]
    arm = arms[0] if arms else settings[0].arm
    if name not in METHODS:
        return MethodFacts(name, titles.get(name) or name, arm, added=True)
    method = METHODS[name]
    return MethodFacts(
        name, method.title, arm, method.source, method.meaning, averages=uses_mean_prediction(name)
    )
