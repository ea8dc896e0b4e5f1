"""Average the results of benchmarks that hold out different classes."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from abstain.errors import InputError
from abstain.evaluation import Note
from abstain.evaluation.comparison import Plan, ScoredRun
from abstain.evaluation.records import warnings_first
from abstain.metrics import Metric
from abstain.metrics.catalogue import DEFAULT_METRIC
from abstain.typing import IntArray, Rng
from abstain_bench.results.details import mean_curve
from abstain_bench.results.records import BenchmarkResults, CurvePoints
from abstain_bench.results.results import method_facts, reason_if_meaningless
from abstain_bench.results.samples import Calibrators, StoredScores, StudySamples
from abstain_bench.results.scope import (
    about_choices,
    about_studies,
    all_runs,
    check_tested,
    select_methods,
    select_metrics,
    select_runs,
    select_settings,
    select_studies,
    sorted_by_catalogue,
)
from abstain_bench.results.studies import StudyComparison, combine_studies, compare_study
from abstain_bench.runs.selection import SelectedSetting, needs_probabilities
from abstain_bench.runs.store import Run, Store
from abstain_bench.runs.studies import Study

ItemT = TypeVar("ItemT")

#: Offset between the source indices of different exposures.
_INDEX_OFFSET = 1 << 40


def rotated_results(
    stores: Sequence[Store],
    *,
    metrics: Sequence[str] | None = None,
    studies: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    level: float = 0.95,
    bootstrap: int = 0,
    outlier_cost: float = 2.0,
    rng: Rng = 0,
) -> BenchmarkResults:
    """Compare methods by their means over folders of runs that hold out different classes.

    The comparison shows which method performs best on new classes, averaged over different sets of
    held-out classes.

    Parameters
    ----------
    stores : sequence of Store
        At least two folders with the same exposures, such as the runs of the tasks "svhn-open-1" to
        "svhn-open-5". Each folder holds out one set of classes.
    metrics, studies, methods : sequence of str, optional
        As in `results_of`, with the defaults of the first folder. Studies and methods that are
        missing in a folder are omitted.
    level : float, default=0.95
        Confidence level of the intervals.
    bootstrap : int, default=0
        Number of bootstrap resamples. If 0, no bootstrap is computed.
    outlier_cost : float, default=2
        Cost of an accepted sample of a new class in studies with the suffix "-scod".
    rng : int, Generator or None, default=0
        Seed of all random numbers.

    Returns
    -------
    BenchmarkResults
        Values for each folder and seed, and means over all folders and seeds. The results contain
        no thresholds and example images, because these refer to individual networks.

    Raises
    ------
    InputError
        If there are fewer than two folders, or if the folders share no study, method or seed.

    Notes
    -----
    As in FD-Shifts, a metric is computed in each folder and then averaged, with the settings that
    are selected on the validation data of the folder. Images are matched across folders by source
    index, because the same image may belong to a known class in one folder and to a new class in
    another. The influence of an image on the mean is its average influence over the folders.

    Examples
    --------
    >>> from abstain_bench.results import rotated_results
    >>> from abstain_bench.runs.store import Store
    >>> folders = [f"svhn-open-{i}" for i in range(1, 6)]
    >>> results = rotated_results(list(map(Store.read, folders)))  # doctest: +SKIP
    """
    if len(stores) < 2:
        raise InputError(f"rotations must be at least two folders of runs; got {len(stores)}")
    plan = Plan.from_options(
        level=level, bootstrap=bootstrap, rng=rng, published_test=True, skip_slow=True
    )
    selected_metrics = select_metrics(stores[0], metrics)
    columns = _common_studies(stores, studies)
    results = _RotationResults(
        [_Rotation(store, selected_metrics, columns, methods, outlier_cost) for store in stores],
        selected_metrics,
        plan,
    )
    for study in columns:
        results.add(study)
    return results.results(columns, stores[0])


@dataclass(eq=False)
class _RotationResults:
    """Collects the results over all folders, one study at a time."""

    rotations: Sequence["_Rotation"]
    metrics: Sequence[Metric]
    plan: Plan
    curves: dict[tuple[str, str], CurvePoints] = field(default_factory=dict)
    undefined: dict[tuple[str, str], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = [metric.name for metric in self.metrics]
        self.methods: dict[str, list[str]] = {}
        self.seeds: dict[str, list[int]] = {}
        for name in names:
            runs = [rotation.runs_by_metric[name] for rotation in self.rotations]
            methods_by_folder = [list(comparable.runs) for comparable in runs]
            seeds_by_folder = [comparable.seeds for comparable in runs]
            methods = _common(methods_by_folder, f"a method in common by {name}")
            self.methods[name] = sorted_by_catalogue(methods)
            self.seeds[name] = _common(seeds_by_folder, "a seed in common")
        self.comparisons: dict[str, list[StudyComparison]] = {name: [] for name in names}
        self.primary = DEFAULT_METRIC if DEFAULT_METRIC in names else names[0]

    def add(self, study: Study) -> None:
        """Add the comparison by each metric and the mean risk-coverage curves of a study."""
        for rotation in self.rotations:
            rotation.open(study)
        for metric in self.metrics:
            name = metric.name
            reason = reason_if_meaningless(metric, study)
            if reason:
                self.undefined[name, study.name] = reason
                continue
            scored_runs = [
                rotation.scored_run(metric, self.methods[name], seed)
                for seed in self.seeds[name]
                for rotation in self.rotations
            ]
            comparison = compare_study(scored_runs, metric, self.plan, headline=study.headline)
            self.comparisons[name].append(comparison)
        first_seed = self.seeds[self.primary][0]
        for method in self.methods[self.primary]:
            self.curves[study.name, method] = self._mean_curve(method, first_seed)

    def _mean_curve(self, method: str, seed: int) -> CurvePoints:
        """Average the risk-coverage curve of a method for one seed over the folders."""
        runs = [
            rotation.runs_by_metric[self.primary].runs[method][seed] for rotation in self.rotations
        ]
        scored = [
            rotation.samples.scored(run, method)
            for rotation, run in zip(self.rotations, runs, strict=True)
        ]
        return mean_curve(scored, runs[0])

    def results(self, columns: tuple[Study, ...], first: Store) -> BenchmarkResults:
        """Combine the results of all studies, and keep the facts that all folders share."""
        stores = [rotation.reading.store for rotation in self.rotations]
        first_rotation = self.rotations[0]
        chosen = tuple(
            setting
            for setting in first_rotation.chosen
            if setting.method in self.methods[setting.metric]
        )
        all_methods = sorted_by_catalogue(
            [name for methods in self.methods.values() for name in methods]
        )
        titles = {method.name: method.title for method in first.additions.methods}
        folders = ", ".join(store.folder.name for store in stores)
        note = Note(
            "rotations",
            f"Every number is the mean over {len(stores)} folders that hold out other classes "
            f"({folders}), each with the settings that its own validation data chose.",
        )
        findings = [*about_choices(chosen), *about_studies(columns), note]
        shared_facts = {
            name: fact
            for name, fact in first.facts.items()
            if all(store.facts.get(name) == fact for store in stores)
        }
        seconds = [store.facts["seconds"] for store in stores if store.facts.get("seconds")]
        if seconds:
            shared_facts["seconds"] = sum(seconds)
        tasks = dict.fromkeys(str(store.config.get("task", "")) for store in stores)
        return BenchmarkResults(
            facts={
                **shared_facts,
                "config": {**first.config, "task": ", ".join(tasks)},
                "folder": ", ".join(str(store.folder) for store in stores),
                "rotations": len(stores),
                "seeds": list(self.seeds[self.primary]),
                "outlier_cost": first_rotation.cost,
                "primary": self.primary,
            },
            studies=columns,
            methods=tuple(method_facts(name, chosen, self.primary, titles) for name in all_methods),
            metrics=tuple(self.comparisons),
            chosen=chosen,
            comparisons={
                metric.name: combine_studies(
                    self.comparisons[metric.name], metric, self.methods[metric.name], self.plan
                )
                for metric in self.metrics
            },
            thresholds=(),
            curves=self.curves,
            extremes=(),
            left_out=_left_out(self.rotations, all_methods),
            findings=warnings_first(findings),
            undefined=self.undefined,
            level=self.plan.level,
        )


class _Rotation:
    """A folder of runs, with its selected settings and the samples of the current study."""

    def __init__(
        self,
        store: Store,
        metrics: Sequence[Metric],
        columns: Sequence[Study],
        methods: Sequence[str] | None,
        outlier_cost: float,
    ) -> None:
        check_tested(store)
        self.chosen: tuple[SelectedSetting, ...] = select_settings(
            store, [metric.name for metric in metrics]
        )
        if methods is not None:
            self.chosen = select_methods(self.chosen, methods)
        self.reading = StoredScores(store, columns)
        self.calibrators = Calibrators(self.reading)
        self.cost = outlier_cost
        self.classes = len(store.classes)
        self.runs_by_metric = select_runs(self.chosen, self.reading, metrics, columns[0])

    def open(self, study: Study) -> None:
        """Read the scores of all runs for a study."""
        runs = all_runs(self.runs_by_metric)
        scores = self.reading.scores_by_run(study, runs.values())
        self.samples = StudySamples(study, scores, self.calibrators, self.classes, self.cost)
        self.source_indices = self._source_indices(study, next(iter(runs.values())))
        self.reading.release(study)

    def _source_indices(self, study: Study, run: Run) -> IntArray:
        """Return the source index of each sample, which identifies an image across folders."""
        exposure_scores = self.reading.exposure_scores(study, run)
        indices_by_exposure = [scores.source_indices for scores in exposure_scores]
        iid_indices, *other_indices = indices_by_exposure
        if not other_indices:
            return iid_indices
        # Known and new classes of the same source already have different indices.
        shared_indices = np.intersect1d(iid_indices, np.concatenate(other_indices))
        if not shared_indices.size:
            return np.concatenate(indices_by_exposure)
        return np.concatenate(
            [indices + i * _INDEX_OFFSET for i, indices in enumerate(indices_by_exposure)]
        )

    def scored_run(self, metric: Metric, methods: Sequence[str], seed: int) -> ScoredRun:
        """Return the scored methods for one seed, with cluster indices shared by all folders."""
        runs = {name: self.runs_by_metric[metric.name].runs[name][seed] for name in methods}
        scored_run = self.samples.scored_run(seed, runs, calibrated=needs_probabilities(metric))
        codes = np.unique(self.source_indices, return_inverse=True)[1].astype(np.int64)
        run_name = f"{self.reading.store.folder.name}, seed {seed}"
        return replace(scored_run, run=run_name, cluster=codes, group=self.source_indices)


def _common_studies(stores: Sequence[Store], requested: Sequence[str] | None) -> tuple[Study, ...]:
    """Return the studies that all folders share, without those that average other studies."""
    studies = {study.name: study for study in select_studies(stores[0], requested)}
    first_names = [name for name, study in studies.items() if not study.parts]
    other_names = [[study.name for study in select_studies(store, None)] for store in stores[1:]]
    common_names = _common([first_names, *other_names], "a study in common")
    return tuple(studies[name] for name in common_names)


def _common(items_by_folder: Sequence[Sequence[ItemT]], requirement: str) -> list[ItemT]:
    """Return the items that all folders share, or raise an error if there are none."""
    first, *others = items_by_folder
    common = [item for item in first if all(item in items for items in others)]
    if not common:
        raise InputError(f"the folders of rotations must have {requirement}; got none")
    return common


def _left_out(rotations: Sequence[_Rotation], names: Sequence[str]) -> dict[str, str]:
    """Return the reason why each omitted method is missing in a folder."""
    reasons: dict[str, str] = {}
    for rotation in rotations:
        folder = rotation.reading.store.folder.name
        for setting in rotation.chosen:
            if setting.method not in names:
                reasons.setdefault(setting.method, f"it is not in all rotations; it is in {folder}")
    return reasons
