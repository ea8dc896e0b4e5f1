"""Select the metrics, studies, methods and seeds of a report."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from abstain._foundation.catalogue import match_spelling
from abstain.errors import InputError, UnknownNameError, suggest
from abstain.evaluation import Note
from abstain.evaluation.comparison import ScoredRun
from abstain.metrics import Metric, metric_named
from abstain_bench.results.samples import StoredScores, uses_mean_prediction
from abstain_bench.runs.methods import METHODS
from abstain_bench.runs.selection import (
    SelectedSetting,
    is_computable,
    reported_metrics,
    select_best_settings,
    validation_values,
)
from abstain_bench.runs.specification.arms import ENSEMBLE
from abstain_bench.runs.store import VALIDATION, Run, Store, StoredRun
from abstain_bench.runs.studies import Study, studies_of

_ValuesByMethod = Mapping[str, Mapping[str, float | None]]


def select_metrics(store: Store, names: Sequence[str] | None) -> tuple[Metric, ...]:
    """Return the named metrics, by default the metrics of the configuration."""
    requested = reported_metrics(store) if names is None else names
    metrics = [metric_named(name) for name in _as_list(requested)]
    for metric in metrics:
        if not is_computable(metric):
            raise InputError(
                f"the metric {metric.name!r} cannot be computed from confidences: it needs class "
                "probabilities, which runs do not keep for every method"
            )
    if not metrics:
        raise InputError("`metrics` must name at least one; got none")
    return tuple({metric.name: metric for metric in metrics}.values())


def select_studies(store: Store, names: Sequence[str] | None) -> tuple[Study, ...]:
    """Return the named studies, by default all studies, in table order."""
    studies = studies_of(store.exposures)
    if names is None:
        return studies
    requested = _as_list(names)
    _check_names(requested, [study.name for study in studies], "study", "studies")
    return tuple(study for study in studies if study.name in requested)


def select_methods(
    choices: Sequence[SelectedSetting], names: Sequence[str] | None
) -> tuple[SelectedSetting, ...]:
    """Return the selected settings of the named methods, by default of all methods."""
    if names is None:
        return tuple(choices)
    available = [choice.method for choice in choices]
    requested = [match_spelling(name, available) for name in _as_list(names)]
    _check_names(requested, available, "method", "methods")
    return tuple(choice for choice in choices if choice.method in requested)


def sorted_by_catalogue(names: Sequence[str]) -> list[str]:
    """Sort methods in catalogue order, followed by methods that are not in the catalogue."""
    in_catalogue = [name for name in METHODS if name in names]
    return [*in_catalogue, *(name for name in dict.fromkeys(names) if name not in METHODS)]


def methods_without_scores(
    store: Store, choices: Sequence[SelectedSetting]
) -> Iterator[tuple[str, str]]:
    """Yield each method that has no score in any run, with the reason."""
    scored = {choice.method for choice in choices}
    configured = (match_spelling(name, METHODS) for name in store.config.get("methods", ()))
    missing = [name for name in configured if name not in scored]
    reasons: dict[str, str] = {}
    if missing:
        for stored_run in store.stored_runs:
            if stored_run.validation_file:
                reasons = {**store.scores(stored_run.run, VALIDATION).reasons, **reasons}
    for name in missing:
        yield name, reasons.get(name, "no run has a score of it")


def _as_list(names: Sequence[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _check_names(
    requested: Sequence[str], available: Sequence[str], singular: str, plural: str
) -> None:
    for name in requested:
        if name not in available:
            raise UnknownNameError(
                f"there is no {singular} named {name!r}.{suggest(name, available)} The {plural} "
                f"are {', '.join(dict.fromkeys(available))}."
            )
    if not requested:
        raise InputError(
            f"`{plural}` must name at least one, or be None for all; got an empty list"
        )


# ---------------------------------------------------------------------- the setting of each method
def select_settings(
    store: Store, metrics: Sequence[str], chosen_by: str | None = None
) -> tuple[SelectedSetting, ...]:
    """Select the best setting of each method on the validation data for each metric.

    If `chosen_by` is set, the settings for all metrics are selected by this metric. If a run did
    not store the validation value of a metric, the value is computed. If a method has no
    confidences on the validation data, its first setting is selected.
    """
    if chosen_by is not None:
        choices = select_settings(store, [metric_named(chosen_by).name])
        return tuple(replace(choice, metric=metric) for metric in metrics for choice in choices)
    cache: dict[tuple[str, frozenset[str]], _ValuesByMethod] = {}
    stored_runs = [
        _with_all_values(store, stored_run, metrics, cache) for stored_run in store.stored_runs
    ]
    return select_best_settings(stored_runs, metrics)


def _with_all_values(
    store: Store,
    stored_run: StoredRun,
    metrics: Sequence[str],
    cache: dict[tuple[str, frozenset[str]], _ValuesByMethod],
) -> StoredRun:
    """Add the missing validation values of all metrics to a tested run."""
    if not stored_run.test_file:
        return stored_run
    methods = store.scores(stored_run.run, store.exposures[0].key).confidence
    incomplete = {
        name: uses_mean_prediction(name)
        for name in methods
        if any(metric not in stored_run.validation_values.get(name, {}) for metric in metrics)
    }
    if not incomplete:
        return stored_run
    # The seeds of an ensemble have the same files.
    key = (stored_run.validation_file or stored_run.run.name, frozenset(incomplete))
    if key not in cache:
        cache[key] = _validation_values(store, stored_run, incomplete, metrics)
    computed = cache[key]
    values = {
        name: {**computed[name], **stored_run.validation_values.get(name, {})}
        for name in incomplete
    }
    return replace(stored_run, validation_values={**stored_run.validation_values, **values})


def _validation_values(
    store: Store, stored_run: StoredRun, methods: Mapping[str, bool], metrics: Sequence[str]
) -> _ValuesByMethod:
    """Compute the metrics of each method on the validation data; missing values are None."""
    computed: _ValuesByMethod = {}
    if stored_run.validation_file:
        computed = validation_values(store.scores(stored_run.run, VALIDATION), methods, metrics)
    missing: dict[str, float | None] = dict.fromkeys(metrics)
    return {name: computed.get(name, missing) for name in methods}


# ------------------------------------------------------------ the seeds that all methods have
@dataclass(frozen=True)
class ComparableRuns:
    """Runs that a metric compares, with the same seeds for every method.

    Attributes
    ----------
    runs : mapping
        Runs by method and seed.
    excluded_seeds : tuple of int
        Seeds that are excluded because a method has no run for them.
    reasons_of_exclusion : mapping
        Reasons by name for the excluded methods.
    """

    runs: Mapping[str, Mapping[int, Run]]
    excluded_seeds: tuple[int, ...] = ()
    reasons_of_exclusion: Mapping[str, str] = field(default_factory=dict)

    @property
    def seeds(self) -> tuple[int, ...]:
        """Common seeds of all methods."""
        return tuple(next(iter(self.runs.values()), {}))


def select_comparable_runs(
    choices: Sequence[SelectedSetting], scores: StoredScores, first_study: Study
) -> ComparableRuns:
    """Select the methods and seeds that yield the largest number of values to compare.

    A comparison requires that every method has a value for every seed. If a network is missing, its
    seed or its methods are excluded, whichever retains more values.
    """
    runs_by_method: dict[str, dict[int, Run]] = {}
    reasons: dict[str, str] = {}
    for choice in choices:
        runs = _runs_by_seed(choice, scores, first_study)
        if runs:
            runs_by_method[choice.method] = runs
        else:
            reasons[choice.method] = _reason_without_runs(choice, scores, first_study)
    seeds = _best_seeds(runs_by_method)
    all_seeds = {seed for runs in runs_by_method.values() for seed in runs}
    excluded_seeds = tuple(sorted(all_seeds - set(seeds)))
    selected = {}
    for method, runs in runs_by_method.items():
        missing = [seed for seed in seeds if seed not in runs]
        if missing:
            reasons[method] = f"no numbers for seed {', '.join(map(str, missing))}"
        else:
            selected[method] = {seed: runs[seed] for seed in seeds}
    return ComparableRuns(selected, excluded_seeds, reasons)


def select_runs(
    choices: Sequence[SelectedSetting],
    scores: StoredScores,
    metrics: Sequence[Metric],
    first_study: Study,
) -> dict[str, ComparableRuns]:
    """Select the runs to compare for each metric."""
    return {
        metric.name: select_comparable_runs(
            [choice for choice in choices if choice.metric == metric.name], scores, first_study
        )
        for metric in metrics
    }


def all_runs(runs_by_metric: Mapping[str, ComparableRuns]) -> dict[str, Run]:
    """Return all compared runs by name, pooled over the metrics."""
    runs = {}
    for comparable in runs_by_metric.values():
        for runs_by_seed in comparable.runs.values():
            for run in runs_by_seed.values():
                runs[run.name] = run
    return runs


def check_tested(store: Store) -> None:
    """Raise an error if no run was tested."""
    if not store.tested_runs:
        raise InputError(
            f"no run of {str(store.folder)!r} was tested; continue it with `abstain benchmark run`"
        )


def _best_seeds(runs_by_method: Mapping[str, Mapping[int, Run]]) -> tuple[int, ...]:
    """Return the set of seeds that maximizes the number of methods times the number of seeds.

    If several sets have the same product, the set with the most methods is returned.
    """
    seed_sets: set[frozenset[int]] = {frozenset(runs) for runs in runs_by_method.values()}
    seed_sets |= {first & second for first in seed_sets for second in seed_sets}
    nonempty_sets: list[frozenset[int]] = [seeds for seeds in seed_sets if seeds]
    if not nonempty_sets:
        return ()

    def sort_key(seeds: frozenset[int]) -> tuple[int, int, int, list[int]]:
        n_methods = sum(seeds <= set(runs) for runs in runs_by_method.values())
        return -n_methods * len(seeds), -n_methods, -len(seeds), sorted(seeds)

    best_seeds = min(nonempty_sets, key=sort_key)
    return tuple(sorted(best_seeds))


def _runs_by_seed(
    choice: SelectedSetting, scores: StoredScores, first_study: Study
) -> dict[int, Run]:
    """Return the runs of a selected setting that contain scores of its method, by seed."""
    runs = {}
    for seed in scores.store.seeds:
        run = scores.run((choice.arm, choice.setting), seed)
        if run is None:
            continue
        if choice.method in scores.exposure_scores(first_study, run)[0].confidence:
            runs[seed] = run
    return runs


def _reason_without_runs(choice: SelectedSetting, scores: StoredScores, first_study: Study) -> str:
    """Explain why no run contains scores of a method."""
    is_tested = False
    for seed in scores.store.seeds:
        run = scores.run((choice.arm, choice.setting), seed)
        if run is None:
            continue
        is_tested = True
        reason = scores.exposure_scores(first_study, run)[0].reasons.get(choice.method, "")
        if reason:
            return reason
    if not is_tested:
        return f"no run of {f'{choice.arm} {choice.setting}'.strip()} was tested"
    return f"no confidences for {first_study.name}"


#: Number of failures below which a study has a warning.
FEW_FAILURES: Final = 10


def about_choices(choices: Sequence[SelectedSetting]) -> Iterator[Note]:
    """Yield notes about settings that were selected on incomplete data, and about ensembles."""
    methods_by_note: dict[tuple[str, str], list[str]] = defaultdict(list)
    for choice in choices:
        if choice.note:
            methods_by_note[choice.metric, choice.note].append(choice.method)
    for (metric, note), methods in methods_by_note.items():
        message = f"Settings by {metric}: {note} ({', '.join(methods)})."
        yield Note.warning("settings", message)
    if any(choice.arm == ENSEMBLE for choice in choices):
        yield Note(
            "ensemble",
            "There is one ensemble of the networks of all seeds. Its values are the same for every "
            "seed.",
        )


def about_runs(
    runs_by_metric: Mapping[str, ComparableRuns], facts: Mapping[str, Any]
) -> Iterator[Note]:
    """Yield a warning for each excluded seed, excluded method and failed job."""
    metrics_by_seeds: dict[tuple[int, ...], list[str]] = defaultdict(list)
    metrics_by_exclusion: dict[tuple[str, str], list[str]] = defaultdict(list)
    for metric, selected in runs_by_metric.items():
        if selected.excluded_seeds:
            metrics_by_seeds[selected.excluded_seeds].append(metric)
        for method, reason in selected.reasons_of_exclusion.items():
            metrics_by_exclusion[method, reason].append(metric)
    for seeds, metrics in metrics_by_seeds.items():
        message = (
            f"Seed {', '.join(map(str, seeds))} is excluded for {', '.join(metrics)}, "
            "because some method has no values for it."
        )
        yield Note.warning("seeds", message)
    for (method, reason), metrics in metrics_by_exclusion.items():
        message = f"{method} is excluded for {', '.join(metrics)}: {reason}."
        yield Note.warning("left_out", message, score=method)
    failed = list(facts.get("failed", ()))
    if failed:
        listed = ", ".join(map(str, failed[:5])) + (" and others" if len(failed) > 5 else "")
        message = f"{len(failed)} jobs failed: {listed}. Their logs are in the same folder."
        yield Note.warning("failed", message)
    counts = {len(selected.seeds) for selected in runs_by_metric.values() if selected.runs}
    if counts and min(counts) == 1:
        yield Note("one_seed", "There is one seed, so the variation between trainings is unknown.")


def about_untested(
    chosen: Sequence[SelectedSetting], stored_runs: Sequence[StoredRun]
) -> Iterator[Note]:
    """Yield a warning if some of the selected networks were not tested."""
    settings = {(choice.arm, choice.setting) for choice in chosen}
    selected_runs = [
        stored for stored in stored_runs if (stored.run.arm, stored.run.setting) in settings
    ]
    untested = [stored.run.name for stored in selected_runs if not stored.test_file]
    if untested:
        listed = ", ".join(untested[:3]) + (" and others" if len(untested) > 3 else "")
        message = (
            f"This run is not complete: {len(untested)} of {len(selected_runs)} selected networks "
            f"are not tested ({listed}). `abstain benchmark status` prints its progress."
        )
        yield Note.warning("unfinished", message)


def about_studies(studies: Sequence[Study]) -> Iterator[Note]:
    """Yield a note that tests over several studies assume independent studies."""
    if len([study for study in studies if study.headline]) > 1:
        yield Note(
            "dependent_studies",
            "The studies share networks and images. Tests over all studies assume that the studies "
            "are independent, so their p-values are too small.",
        )


def about_failures(scored_runs: Sequence[ScoredRun]) -> Iterator[Note]:
    """Yield a warning for each study with fewer than `FEW_FAILURES` failures."""
    failure_counts = []
    for scored_run in scored_runs:
        for method in scored_run.scored:
            _, n_failures = scored_run.count_samples_and_failures(method)
            failure_counts.append(n_failures)
    fewest = min(failure_counts)
    if fewest < FEW_FAILURES:
        data = scored_runs[0].data
        failures = "1 failure" if fewest == 1 else f"{fewest} failures"
        message = (
            f"The study {data[0][1]} has {failures} for some method, fewer than {FEW_FAILURES}. "
            "Its values are uncertain."
        )
        yield Note.warning("few_failures", message, data)
