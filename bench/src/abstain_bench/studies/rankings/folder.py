"""A folder of benchmark runs: its methods on one study after the other, and its samples."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from abstain._foundation.input_files import input_sha256
from abstain.errors import AbstainError, InputError
from abstain.evaluation import Comparison
from abstain.evaluation.comparison import (
    ComparisonTables,
    DataSetComparison,
    Plan,
    ScoredRun,
    compare_data,
    join_tables,
)
from abstain.metrics import Metric
from abstain.plots.pictures import Picture
from abstain_bench.data.images import to_gray_levels
from abstain_bench.results import SelectedSetting
from abstain_bench.results.samples import Calibrators, StoredScores, StudySamples
from abstain_bench.results.scope import (
    select_comparable_runs,
    select_methods,
    select_settings,
    select_studies,
)
from abstain_bench.results.studies import averaged
from abstain_bench.runs.store import Run, Store
from abstain_bench.runs.studies import Study, studies_of
from abstain_bench.studies.rankings.changes import AFTER, BEFORE, OWN, SHARED, TWO, RankedStudies

#: The runs of each method by seed.
_Runs = Mapping[str, Mapping[int, Run]]


@dataclass(frozen=True, eq=False)
class RankedFolder:
    """What a folder of runs says of two metrics."""

    store: Store
    plan: Plan
    methods: Sequence[str] | None = None
    names: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if not self.store.tested_runs:
            where = str(self.store.folder)
            raise InputError(
                f"no run of {where!r} was tested; continue it with `abstain benchmark run`"
            )

    @cached_property
    def studies(self) -> dict[str, Study]:
        """The studies that were asked for, or those of the main table."""
        asked = self.names
        if asked is None:
            asked = [s.name for s in studies_of(self.store.exposures) if s.headline]
        return {study.name: study for study in select_studies(self.store, asked)}

    @cached_property
    def best(self) -> dict[str, tuple[SelectedSetting, ...]]:
        """The settings of the methods that are best on validation data, by metric."""
        every = select_methods(select_settings(self.store, TWO), self.methods)
        return {metric: tuple(one for one in every if one.metric == metric) for metric in TWO}

    @cached_property
    def chosen(self) -> list[dict[str, Any]]:
        """The methods whose settings differ by the two metrics, with both."""
        found = {one.method: {BEFORE.name: one} for one in self.best[BEFORE.name]}
        for one in self.best[AFTER.name]:
            found.setdefault(one.method, {})[AFTER.name] = one
        rows = (_row(method, own) for method, own in found.items())
        return [row for row in rows if len(set(row.values())) == 1 + len(TWO)]

    def digest(self) -> str:
        """Return a hash of all that the runs say, whenever and wherever they were made."""
        files = dict.fromkeys(
            [
                name
                for kept in self.store.stored_runs
                for name in (kept.validation_file, kept.test_file)
                if name
            ]
            + [path for one in self.store.added_methods for path in one.stored.values()]
        )
        said = {
            "runs": [asdict(kept) for kept in self.store.stored_runs],
            "exposures": [asdict(exposure) for exposure in self.store.exposures],
            "classes": list(self.store.classes),
            "files": {name: input_sha256(self.store.folder / name) for name in files},
        }
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()

    # -------------------------------------------------------------------------- one study
    def ranked(self, name: str) -> list[RankedStudies]:
        """Return the rankings in a study by either choice of settings; one where both are alike.

        With shared settings both metrics are of the same networks and of the same resamples.
        """
        study = self.studies[name]
        samples = _Samples(self.store, study)
        units = samples.units(self.best[AFTER.name])
        if not units:
            return []
        both = self._by(samples, units, self.best[AFTER.name], (BEFORE, AFTER))
        shared = RankedStudies(SHARED, both, {} if study.parts else {name: partial(list, units)})
        if not self.chosen:
            return [shared]
        own = samples.units(self.best[BEFORE.name])
        first = self._by(samples, own, self.best[BEFORE.name], (BEFORE,))
        return [RankedStudies(OWN, {**both, **first}), shared]

    def _by(
        self,
        samples: "_Samples",
        units: Sequence[ScoredRun],
        chosen: Sequence[SelectedSetting],
        metrics: Sequence[Metric],
    ) -> dict[str, Comparison]:
        """Return the comparison by each metric."""
        if samples.study.parts:
            each, headline = samples.parts(chosen), samples.study.headline
            parts = [averaged(each, m, self.plan, headline=headline).part for m in metrics]
            found = zip(metrics, parts, strict=True)
            return {metric.name: self._joined(part, [metric]) for metric, part in found}
        whole = self._joined(compare_data(units, metrics, self.plan), metrics)
        return {metric.name: whole for metric in metrics}

    def _joined(self, part: DataSetComparison, metrics: Sequence[Metric]) -> Comparison:
        methods = part.sampled[0].methods
        together = ComparisonTables()
        return join_tables([part], together, self.plan, metrics=metrics, methods=methods, notes=())

    # ------------------------------------------------------------------------- its samples
    def place(self, study: str, row: int) -> tuple[str, int]:
        """Return the exposure that a sample of a study is from, and its place there."""
        known = self.studies[study]
        sizes = [self._size(key) for key in known.exposures]
        ends = np.cumsum(sizes)
        part = int(np.searchsorted(ends, row, side="right"))
        return known.exposures[part], row - int(ends[part] - sizes[part])

    def _size(self, exposure: str) -> int:
        return int(self.store.scores(self.store.tested_runs[0], exposure).n)

    def named(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Name the sample of a row by its exposure and place, and its class."""
        exposure, place = self.place(row["study"], int(row["sample"]))
        return {**row, "sample": f"{exposure} {place}", "label": self.label(int(row["label"]))}

    def label(self, index: int) -> str:
        """Return the name of a class."""
        if index < 0:
            return "a new class"
        known = index < len(self.store.classes)
        return f"“{self.store.classes[index]}”" if known else f"class {index}"

    def pictures(self, wanted: Sequence[tuple[str, int, str, str]]) -> tuple[list[Picture], str]:
        """Return pictures by exposure and place, with their words and rows; or why there are none.

        Each exposure is made once more from the data of the task, which takes seconds.
        """
        config = self.store.config
        task, folder = (str(_asked(config, name)) for name in ("task", "folder"))
        # The rows are of what was taken of the files, changed as it was.
        data, variation = (_asked(config, name) or None for name in ("data", "variation"))
        try:
            from abstain_bench.runs.loaded_task import load_task
            from abstain_bench.runs.tasks import Sizes

            own = load_task(task, folder, None if data is None else Sizes(**data), variation)
        except (AbstainError, ImportError, KeyError) as error:
            return [], f"the pictures of the runs cannot be made again: {error}"
        known = {exposure.key: exposure for exposure in own.task_images.exposures}
        found = []
        for key, place, about, row in wanted:
            if key in known:
                seen, how = own.exposure_images(known[key]).images[place], own.preprocessing
                levels = to_gray_levels(seen, how.mean, how.std)
                found.append(Picture(f"{key} {place}", about, levels, row))
        return found, "" if found else f"the task {task!r} has none of these exposures"


class _Samples:
    """The samples of one study, a unit a seed."""

    def __init__(self, store: Store, study: Study) -> None:
        self.store, self.study = store, study
        self._reading = StoredScores(store, [study])

    def units(self, chosen: Sequence[SelectedSetting]) -> list[ScoredRun]:
        """Return the methods, each with its settings, on all samples."""
        whole, runs = self._read(chosen)
        if whole is None:
            return []
        return [whole.unit(seed, own) for seed, own in _by_seed(runs).items()]

    def parts(self, chosen: Sequence[SelectedSetting]) -> list[list[ScoredRun]]:
        """Return the units of each seed on the parts whose numbers are averaged."""
        whole, runs = self._read(chosen)
        known = {one.name: one for one in studies_of(self.store.exposures)}
        parts, first = [], 0
        if whole is None:
            return []
        run = next(iter(next(iter(runs.values())).values()))
        for part in (known[name] for name in self.study.parts):
            last = first + sum(own.n for own in self._reading.parts(part, run))
            parts.append(whole.part(part, slice(first, last)))
            first = last
        return [
            [part.unit(seed, own, named=self.study) for part in parts]
            for seed, own in _by_seed(runs).items()
        ]

    def _read(self, chosen: Sequence[SelectedSetting]) -> tuple[StudySamples | None, _Runs]:
        """Return the samples, and the runs of the methods that have numbers for all seeds."""
        runs = select_comparable_runs(chosen, self._reading, self.study).runs
        every = {run.name: run for own in runs.values() for run in own.values()}
        if not every:
            return None, {}
        read = self._reading.study(self.study, every.values())
        calibrators = Calibrators(self._reading)
        samples = StudySamples(self.study, read, calibrators, len(self.store.classes))
        there = {
            method: own
            for method, own in runs.items()
            if not any(samples.missing(run, method) for run in own.values())
        }
        return (samples, there) if there else (None, {})


def _by_seed(runs: _Runs) -> dict[int, dict[str, Run]]:
    seeds = next(iter(runs.values()))
    return {seed: {method: own[seed] for method, own in runs.items()} for seed in seeds}


def _row(method: str, own: Mapping[str, SelectedSetting]) -> dict[str, Any]:
    """Return the settings that a method has by each metric."""
    said = {m: " ".join(filter(None, (own[m].arm, own[m].setting))) for m in TWO}
    return {"method": method, **{f"chosen_by_{metric}": words for metric, words in said.items()}}


def _asked(config: Mapping[str, Any], name: str) -> Any:
    """Return an entry of the configuration, in its table or not; empty where there is none."""
    inner = config.get("benchmark")
    found = inner.get(name) if isinstance(inner, Mapping) else None
    return found or config.get(name, "")
