"""Notes and warnings on the results of a benchmark."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from abstain.evaluation import Note
from abstain.evaluation.comparison import ScoredRun
from abstain_bench.results.scope import ComparableRuns
from abstain_bench.runs.selection import SelectedSetting
from abstain_bench.runs.specification.arms import ENSEMBLE
from abstain_bench.runs.store import StoredRun
from abstain_bench.runs.studies import Study

#: A study with fewer failures gets a warning.
FEW_FAILURES: Final = 10


def about_choices(choices: Sequence[SelectedSetting]) -> Iterator[Note]:
    """Yield notes on settings that were selected with incomplete data."""
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
    """Yield warnings on missing runs, and on methods that are excluded for that reason."""
    for seeds, metrics in _grouped(
        (selected.excluded_seeds, metric) for metric, selected in runs_by_metric.items()
    ):
        if seeds:
            message = (
                f"Seed {', '.join(map(str, seeds))} is excluded for {', '.join(metrics)}, "
                "because some method has no values for it."
            )
            yield Note.warning("seeds", message)
    exclusions = [
        ((method, reason), metric)
        for metric, selected in runs_by_metric.items()
        for method, reason in selected.reasons_of_exclusion.items()
    ]
    for (method, reason), metrics in _grouped(exclusions):
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
    """Yield a warning if a run was stopped before all selected networks were tested."""
    settings = {(item.arm, item.setting) for item in chosen}
    selected_runs = [item for item in stored_runs if (item.run.arm, item.run.setting) in settings]
    untested = [item.run.name for item in selected_runs if not item.test_file]
    if untested:
        listed = ", ".join(untested[:3]) + (" and others" if len(untested) > 3 else "")
        message = (
            f"This run is not complete: {len(untested)} of {len(selected_runs)} selected networks "
            f"are not tested ({listed}). `abstain benchmark status` prints its progress."
        )
        yield Note.warning("unfinished", message)


def about_studies(studies: Sequence[Study]) -> Iterator[Note]:
    """Yield a note on the assumption of the tests over all studies."""
    if len([study for study in studies if study.headline]) > 1:
        yield Note(
            "dependent_studies",
            "The studies share networks and images. Tests over all studies assume that the studies "
            "are independent, so their p-values are too small.",
        )


def about_failures(units: Sequence[ScoredRun]) -> Iterator[Note]:
    """Yield a warning if a study has too few failures for reliable values."""
    fewest = min(
        unit.count_samples_and_failures(method)[1] for unit in units for method in unit.scored
    )
    if fewest < FEW_FAILURES:
        data = units[0].data
        failures = "1 failure" if fewest == 1 else f"{fewest} failures"
        message = (
            f"The study {data[0][1]} has {failures} for some method, fewer than {FEW_FAILURES}. "
            "Its values are uncertain."
        )
        yield Note.warning("few_failures", message, data)


def _grouped(pairs: Iterable[tuple[Any, str]]) -> Iterator[tuple[Any, list[str]]]:
    """Yield each key with the metrics that have it."""
    metrics_by_key: dict[Any, list[str]] = defaultdict(list)
    for key, metric in pairs:
        metrics_by_key[key].append(metric)
    yield from metrics_by_key.items()
