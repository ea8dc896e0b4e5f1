"""`results_of`: from a folder of runs to all of its tables."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any

from abstain._foundation import checks
from abstain.errors import InputError
from abstain.evaluation.comparison import Plan
from abstain.evaluation.records import ordered
from abstain.metrics.catalogue import PRIMARY
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
    Compared,
    asked_methods,
    asked_metrics,
    asked_studies,
    choices,
    comparable,
    in_order,
    never_scored,
)
from abstain_bench.results.studies import comparison_of
from abstain_bench.results.tables import OnStudy, PromiseOptions, StudyTables
from abstain_bench.runs.costs import REPORT, Stopwatch, costs_of
from abstain_bench.runs.methods import METHODS
from abstain_bench.runs.protocol import Study
from abstain_bench.runs.selection import Chosen
from abstain_bench.runs.store import Store

__all__ = ["results_of", "with_published"]


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
    """Compute all that a folder of runs says.

    Answers: which method is better in which study, by how much, is that more than chance, and
    what do thresholds that were set beforehand keep of their promise?

    Parameters
    ----------
    store : Store
        Runs with their scores; pictures and networks are not needed.
    metrics : sequence of str, optional
        In `abstain.metrics.METRICS`, by default those of the configuration. The settings of each
        method are those that are best by this metric on validation data.
    studies : sequence of str, optional
        By default all that `abstain_bench.runs.protocol.studies_of` makes of the exposures.
    methods : sequence of str, optional
        By default all that scored some run.
    level : float, default=0.95
        Of the intervals.
    bootstrap : int, default=0
        Resamples; 0 for none.
    risk, delta : float, default=0.05
        Of the thresholds.
    outlier_cost : float, default=2
        Of an accepted new class in the studies "-scod".
    chosen_by : str, optional
        The metric whose best settings are reported for every metric, so that all are of the same
        networks.
    rng : int, Generator or None, default=0
        The seed of everything drawn.
    on_study : callable, optional
        Called after each study with how many are over and there are.
    watch : Stopwatch, optional
        Adds up what reading, comparing, looking and ranking take.

    Returns
    -------
    BenchmarkResults
        Values are fractions.

    Raises
    ------
    UnknownNameError
        A metric, study or method does not exist.
    InputError
        No run was tested, or a metric needs more than confidences and predictions.
    DomainError
        An option is out of its range.
    FileFormatError
        A file of the store is damaged, or runs were tested on different pictures.

    Notes
    -----
    Pairs and intervals are those of `abstain.compare`: runs are averaged sample by sample, and
    copies of one picture count as one. In the studies of new classes each method leaves out the
    errors of its own prediction. Tests over all studies are over the headline studies only. A
    metric without influence function, such as "ece", has values without intervals unless
    `bootstrap` is asked for. One study is in memory at a time. Cost: one sort for each method,
    run and study, and some milliseconds for each pair of methods.

    Examples
    --------
    >>> from abstain_bench.results import results_of
    >>> from abstain_bench.runs.store import Store
    >>> results = results_of(Store.read("runs"), metrics=["augrc"])  # doctest: +SKIP
    >>> results.comparisons["augrc"].frame("pairs")  # doctest: +SKIP
    """
    plan = Plan.checked(level=level, bootstrap=bootstrap, rng=rng, literature=True, lean=True)
    options = PromiseOptions(
        risk=checks.fraction(risk, "risk"),
        delta=checks.fraction(delta, "delta"),
        outlier_cost=checks.fraction(outlier_cost, "outlier_cost", high=inf),
    )
    _refuse_untested(store)
    asked = asked_metrics(store, metrics)
    columns = asked_studies(store, studies)
    every = choices(store, [metric.name for metric in asked], chosen_by)
    chosen = asked_methods(every, methods)
    reading = StoredScores(store, columns)
    who = {
        metric.name: comparable(
            [one for one in chosen if one.metric == metric.name], reading, columns[0]
        )
        for metric in asked
    }
    # What thresholds, curves and pictures are about.
    primary = PRIMARY if PRIMARY in who else asked[0].name
    found = StudyTables(reading, asked, who, primary, plan, options, watch or Stopwatch())
    found.add_all(columns, on_study)
    without = {} if methods is not None else dict(never_scored(store, every))
    return _together(found, columns, chosen, without)


def _refuse_untested(store: Store) -> None:
    if not store.tested:
        raise InputError(
            f"no run of {str(store.folder)!r} was tested; let `abstain benchmark run` go on"
        )


def _together(
    found: StudyTables, studies: tuple[Study, ...], chosen: tuple[Chosen, ...], left: dict[str, str]
) -> BenchmarkResults:
    """Put what was found on each study into one record."""
    who, store = found.who, found.reading.store
    names = in_order([name for own in who.values() for name in own.runs])
    with found.watch.of("ranking"):
        comparisons = {
            metric.name: comparison_of(
                found.studied[metric.name],
                metric,
                [name for name in names if name in who[metric.name].runs],
                found.plan,
            )
            for metric in found.metrics
        }
    said = [
        *about_untested(chosen, store.kept),
        *about_choices(chosen),
        *about_runs(who, store.facts),
        *about_studies(studies),
        *found.findings,
    ]
    titles = {one.name: one.title for one in store.additions.facts}
    return BenchmarkResults(
        facts=_facts(found),
        studies=studies,
        methods=tuple(method_facts(name, chosen, found.primary, titles) for name in names),
        metrics=tuple(who),
        chosen=chosen,
        comparisons=comparisons,
        thresholds=tuple(found.thresholds),
        curves=found.curves,
        extremes=tuple(found.extremes),
        left_out={**left, **_left_out(who, names)},
        findings=ordered(said),
        calibration=tuple(found.calibration),
        undefined=found.undefined,
        level=found.plan.level,
        # What a report took differs each time, and these are of the run.
        costs=tuple(own for own in costs_of(store.folder) if own.stage != REPORT),
    )


def with_published(results: BenchmarkResults) -> BenchmarkResults:
    """Put the numbers that papers print for the same task beside those of a benchmark.

    Answers: are these numbers, and the order of the methods, those of the literature?

    Parameters
    ----------
    results : BenchmarkResults
        What `results_of` returned.

    Returns
    -------
    BenchmarkResults
        The same with `published`, `published_orders` and findings that say what to think of them,
        or why there are none.

    Notes
    -----
    Numbers are of Traub et al. (2024), table 3, and Jaeger et al. (2023), tables 1, 8, 9 and 10:
    of a vision transformer where the network is one, of a convolutional one elsewhere. Networks,
    splits and corruptions differ. Ranks are among the methods of both; equal numbers share the
    best.

    Examples
    --------
    >>> from abstain_bench.results import results_of, with_published
    >>> from abstain_bench.runs.store import Store
    >>> results = with_published(results_of(Store.read("runs")))  # doctest: +SKIP
    >>> results.frame("published")  # doctest: +SKIP
    """
    columns = PublishedColumns.of(results.task, results.model)
    found = list(columns.beside(results.comparisons))
    numbers = tuple(number for _, own in found for number in own)
    return replace(
        results,
        published=numbers,
        published_orders=tuple(order for order, _ in found if order is not None),
        findings=ordered((*results.findings, *columns.findings(numbers))),
    )


def method_facts(
    name: str, chosen: Sequence[Chosen], primary: str, titles: Mapping[str, str]
) -> MethodFacts:
    """Return what is known of a method by its name; `titles` are of those that were added."""
    own = [one for one in chosen if one.method == name]
    arm = next((one.arm for one in own if one.metric == primary), own[0].arm)
    if name not in METHODS:
        return MethodFacts(name, titles.get(name) or name, arm, added=True)
    known = METHODS[name]
    return MethodFacts(
        name, known.title, arm, known.source, known.meaning, averages=averages_of(name)
    )


def _left_out(who: Mapping[str, Compared], names: Sequence[str]) -> dict[str, str]:
    """Return the methods that are in no comparison."""
    reasons = {method: why for own in who.values() for method, why in own.left_out.items()}
    return {method: why for method, why in reasons.items() if method not in names}


def _facts(found: StudyTables) -> dict[str, Any]:
    store = found.reading.store
    return {
        **store.facts,
        "config": dict(store.config),
        "folder": str(store.folder),
        "classes": list(store.classes),
        "seeds": list(store.seeds),
        "runs": len(store.runs),
        "tested": len(store.tested),
        "risk": found.options.risk,
        "delta": found.options.delta,
        "outlier_cost": found.options.outlier_cost,
        "level": found.plan.level,
        "bootstrap": found.plan.resamples,
        "primary": found.primary,
    }
