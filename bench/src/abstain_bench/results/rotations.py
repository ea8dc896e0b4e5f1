"""Rotations of an open set as one benchmark: the mean over folders that hold out other classes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from abstain.errors import InputError
from abstain.evaluation import Note
from abstain.evaluation.comparison import Plan, ScoredRun
from abstain.evaluation.records import warnings_first
from abstain.metrics import Metric
from abstain.metrics.catalogue import DEFAULT_METRIC
from abstain.typing import IntArray, Rng
from abstain_bench.results.details import mean_curve
from abstain_bench.results.findings import about_choices, about_studies
from abstain_bench.results.records import BenchmarkResults, CurvePoints
from abstain_bench.results.results import method_facts
from abstain_bench.results.samples import Calibrators, StoredScores, StudySamples
from abstain_bench.results.scope import (
    ComparableRuns,
    select_comparable_runs,
    select_methods,
    select_metrics,
    select_settings,
    select_studies,
    sorted_by_catalogue,
)
from abstain_bench.results.studies import Studied, compared, comparison_of
from abstain_bench.results.tables import meaningless
from abstain_bench.runs.selection import SelectedSetting, needs_probabilities
from abstain_bench.runs.store import Run, Store
from abstain_bench.runs.studies import Study

__all__ = ["rotated_results"]

#: What a picture of one exposure is never confused with one of another beyond.
_APART = 1 << 40


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
    """Compare methods by the mean over folders of runs that hold out other classes.

    Answers: which method is best with new classes, whichever classes these are?

    Parameters
    ----------
    stores : sequence of Store
        At least two, of the same exposures: one for each choice of classes, such as the runs of
        "svhn-open-1" to "svhn-open-5".
    metrics, studies, methods : sequence of str, optional
        As in `results_of`, of the first folder; what is not in all folders is left out.
    level : float, default=0.95
        Of the intervals.
    bootstrap : int, default=0
        Resamples; 0 for none.
    outlier_cost : float, default=2
        Of an accepted new class in the studies "-scod".
    rng : int, Generator or None, default=0
        The seed of everything drawn.

    Returns
    -------
    BenchmarkResults
        Of each study the value in each folder and seed, and the mean over all; no thresholds and
        no pictures, which belong to single networks.

    Raises
    ------
    InputError
        If there are fewer than two folders, or they have no study, method or seed in common.

    Notes
    -----
    A metric is computed in each folder, with the settings that its own validation data chose, and
    averaged: FD-Shifts averages runs that each hold out other classes. The folders share pictures,
    known in one and new in another; what a picture adds to the error of the mean is the mean of
    what it adds in each, by its place in the source. Cost: that of `results_of` for each folder.

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
    asked = select_metrics(stores[0], metrics)
    columns = _common_studies(stores, studies)
    found = _Together(
        [_Rotation(store, asked, columns, methods, outlier_cost) for store in stores], asked, plan
    )
    for study in columns:
        found.add(study)
    return found.results(columns, stores[0])


@dataclass(eq=False)
class _Together:
    """What was found so far, on one study after the other."""

    rotations: Sequence["_Rotation"]
    metrics: Sequence[Metric]
    plan: Plan
    curves: dict[tuple[str, str], CurvePoints] = field(default_factory=dict)
    undefined: dict[tuple[str, str], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = [metric.name for metric in self.metrics]
        self.methods = {name: _methods(self.rotations, name) for name in names}
        self.seeds = {name: _seeds(self.rotations, name) for name in names}
        self.studied: dict[str, list[Studied]] = {name: [] for name in names}
        self.primary = DEFAULT_METRIC if DEFAULT_METRIC in names else names[0]

    def add(self, study: Study) -> None:
        """Average every metric on one study over the rotations, and the curves."""
        for rotation in self.rotations:
            rotation.open(study)
        for metric in self.metrics:
            name = metric.name
            if why := meaningless(metric, study):
                self.undefined[name, study.name] = why
                continue
            units = [
                own.unit(metric, self.methods[name], seed)
                for seed in self.seeds[name]
                for own in self.rotations
            ]
            found = compared(units, metric, self.plan, headline=study.headline)
            self.studied[name].append(found)
        methods, seed = self.methods[self.primary], self.seeds[self.primary][0]
        self.curves |= dict(_curves(self.rotations, study, methods, seed, self.primary))

    def results(self, columns: tuple[Study, ...], first: Store) -> BenchmarkResults:
        """Put what was found into one record, with the facts of the first folder."""
        stores = [own.reading.store for own in self.rotations]
        own = self.rotations[0]
        chosen = tuple(one for one in own.chosen if one.method in self.methods[one.metric])
        every = sorted_by_catalogue([name for methods in self.methods.values() for name in methods])
        titles = {one.name: one.title for one in first.additions.methods}
        said = [*about_choices(chosen), *about_studies(columns), _about(stores)]
        return BenchmarkResults(
            facts={
                **_facts(stores),
                "config": {**first.config, "task": ", ".join(_tasks(stores))},
                "folder": ", ".join(str(store.folder) for store in stores),
                "rotations": len(stores),
                "seeds": list(self.seeds[self.primary]),
                "outlier_cost": own.cost,
                "primary": self.primary,
            },
            studies=columns,
            methods=tuple(method_facts(name, chosen, self.primary, titles) for name in every),
            metrics=tuple(self.studied),
            chosen=chosen,
            comparisons={
                m.name: comparison_of(self.studied[m.name], m, self.methods[m.name], self.plan)
                for m in self.metrics
            },
            thresholds=(),
            curves=self.curves,
            extremes=(),
            left_out=_left_out(self.rotations, every),
            findings=warnings_first(said),
            undefined=self.undefined,
            level=self.plan.level,
        )


class _Rotation:
    """One folder: its settings, and the samples of the study that is open."""

    def __init__(
        self,
        store: Store,
        metrics: Sequence[Metric],
        columns: Sequence[Study],
        methods: Sequence[str] | None,
        outlier_cost: float,
    ) -> None:
        if not store.tested_runs:
            raise InputError(
                f"no run of {str(store.folder)!r} was tested; continue it with "
                "`abstain benchmark run`"
            )
        self.chosen: tuple[SelectedSetting, ...] = select_settings(
            store, [metric.name for metric in metrics]
        )
        if methods is not None:
            self.chosen = select_methods(self.chosen, methods)
        self.reading = StoredScores(store, columns)
        self.calibrators = Calibrators(self.reading)
        self.cost, self.classes = outlier_cost, len(store.classes)
        self.runs_by_metric: Mapping[str, ComparableRuns] = {
            m.name: select_comparable_runs(
                [one for one in self.chosen if one.metric == m.name], self.reading, columns[0]
            )
            for m in metrics
        }

    def open(self, study: Study) -> None:
        """Read what the runs say of a study."""
        runs = {
            run.name: run
            for own in self.runs_by_metric.values()
            for by_seed in own.runs.values()
            for run in by_seed.values()
        }
        scores = self.reading.study(study, runs.values())
        self.samples = StudySamples(study, scores, self.calibrators, self.classes, self.cost)
        self.places = self._places(study, next(iter(runs.values())))
        self.reading.over(study)

    def _places(self, study: Study, run: Run) -> IntArray:
        """Return which picture of the source each sample is, the same in all folders."""
        parts = [part.source_indices for part in self.reading.parts(study, run)]
        joined = np.concatenate(parts)
        # Known and new classes of one source have places of their own already.
        if len(parts) == 1 or not np.intersect1d(parts[0], np.concatenate(parts[1:])).size:
            return joined
        return np.concatenate([part + i * _APART for i, part in enumerate(parts)])

    def unit(self, metric: Metric, methods: Sequence[str], seed: int) -> ScoredRun:
        """Return the methods in one seed, with the pictures named as in every folder."""
        runs = {name: self.runs_by_metric[metric.name].runs[name][seed] for name in methods}
        unit = self.samples.unit(seed, runs, calibrated=needs_probabilities(metric))
        codes = np.unique(self.places, return_inverse=True)[1].astype(np.int64)
        named = f"{self.reading.store.folder.name}, seed {seed}"
        return replace(unit, run=named, cluster=codes, group=self.places)


def _common_studies(stores: Sequence[Store], asked: Sequence[str] | None) -> tuple[Study, ...]:
    """Return the studies of the first folder that all have, but for those that are means."""
    others = [{study.name for study in select_studies(store, None)} for store in stores[1:]]
    found = tuple(
        study
        for study in select_studies(stores[0], asked)
        if not study.parts and all(study.name in own for own in others)
    )
    if not found:
        raise InputError("the folders of rotations must have a study in common; got none")
    return found


def _tasks(stores: Sequence[Store]) -> list[str]:
    return list(dict.fromkeys(str(store.config.get("task", "")) for store in stores))


def _methods(rotations: Sequence[_Rotation], metric: str) -> list[str]:
    each = [own.runs_by_metric[metric].runs for own in rotations]
    found = [name for name in each[0] if all(name in own for own in each)]
    if not found:
        raise InputError(
            f"the folders of rotations must have a method in common by {metric}; got none"
        )
    return sorted_by_catalogue(found)


def _seeds(rotations: Sequence[_Rotation], metric: str) -> tuple[int, ...]:
    each = [own.runs_by_metric[metric].seeds for own in rotations]
    found = tuple(seed for seed in each[0] if all(seed in own for own in each))
    if not found:
        raise InputError(f"the folders of rotations must have a seed in common; got {each}")
    return found


def _curves(
    rotations: Sequence[_Rotation], study: Study, methods: Sequence[str], seed: int, metric: str
) -> Iterator[tuple[tuple[str, str], CurvePoints]]:
    """Yield the mean of the curves of the rotations, of the first seed."""
    for name in methods:
        runs = [own.runs_by_metric[metric].runs[name][seed] for own in rotations]
        cases = [own.samples.scored(run, name) for own, run in zip(rotations, runs, strict=True)]
        yield (study.name, name), mean_curve(cases, runs[0])


def _facts(stores: Sequence[Store]) -> dict[str, Any]:
    """Return the facts that all folders share, and the time of all."""
    first = stores[0].facts
    shared = {k: x for k, x in first.items() if all(one.facts.get(k) == x for one in stores)}
    seconds = [one.facts["seconds"] for one in stores if one.facts.get("seconds")]
    return {**shared, "seconds": sum(seconds)} if seconds else shared


def _left_out(rotations: Sequence[_Rotation], names: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for own in rotations:
        folder = own.reading.store.folder.name
        for one in own.chosen:
            if one.method not in names:
                found.setdefault(one.method, f"it is not in all rotations; it is in {folder}")
    return found


def _about(stores: Sequence[Store]) -> Note:
    folders = ", ".join(store.folder.name for store in stores)
    return Note(
        "rotations",
        f"Every number is the mean over {len(stores)} folders that hold out other classes "
        f"({folders}), each with the settings that its own validation data chose.",
    )
