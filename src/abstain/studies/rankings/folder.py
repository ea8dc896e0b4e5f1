"""A folder of benchmark runs, ranked with settings chosen by either metric, and its samples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from abstain.benchmark.data.images import levels_of
from abstain.benchmark.protocol import Study, studies_of
from abstain.benchmark.results import BenchmarkResults, Chosen, results_of
from abstain.benchmark.results.samples import Calibrators, StoredScores, StudySamples
from abstain.benchmark.results.scope import choices, comparable
from abstain.benchmark.store import Store
from abstain.errors import AbstainError
from abstain.evaluation import Comparison
from abstain.evaluation.comparison import Unit
from abstain.plots.pictures import Picture
from abstain.studies.rankings.changes import AFTER, BEFORE, OWN, SHARED, TWO, RankedStudies


@dataclass(frozen=True, eq=False)
class RankedFolder:
    """What a folder of runs says of two metrics."""

    store: Store
    resamples: int
    level: float
    seed: int
    methods: Sequence[str] | None = None
    studies: Sequence[str] | None = None

    @cached_property
    def shared(self) -> BenchmarkResults:
        """The results with the settings that are best by the second metric."""
        return self._results(TWO, AFTER.name)

    @cached_property
    def own(self) -> dict[str, Comparison]:
        """The comparisons with the settings of each metric: the second is in `shared` already."""
        return {**self.shared.comparisons, **self._results([BEFORE.name], None).comparisons}

    def _results(self, metrics: Sequence[str], chosen_by: str | None) -> BenchmarkResults:
        asked = self.studies
        if asked is None:
            asked = [s.name for s in studies_of(self.store.exposures) if s.headline]
        return results_of(
            self.store,
            metrics=metrics,
            methods=self.methods,
            studies=asked,
            level=self.level,
            bootstrap=self.resamples,
            chosen_by=chosen_by,
            rng=self.seed,
        )

    def ranked(self) -> list[RankedStudies]:
        """Return the rankings by either choice of settings; one where both choose alike."""
        units = {s.name: partial(self.units, s) for s in self.shared.studies if not s.parts}
        shared = RankedStudies(SHARED, self.shared.comparisons, units)
        if not self.chosen:
            return [shared]
        return [RankedStudies(OWN, self.own), shared]

    @cached_property
    def chosen(self) -> list[dict[str, Any]]:
        """The methods whose settings differ by the two metrics, with both."""
        found: dict[str, dict[str, Chosen]] = {}
        for one in choices(self.store, TWO):
            found.setdefault(one.method, {})[one.metric] = one
        return [
            row
            for method, own in found.items()
            if (self.methods is None or method in self.methods)
            and len(set((row := _row(method, own)).values())) == 1 + len(TWO)
        ]

    # ---------------------------------------------------------------------------- its samples
    def units(self, study: Study) -> list[Unit]:
        """Return the methods on the samples of a study, a unit a seed, of the shared settings."""
        reading = StoredScores(self.store, [study])
        chosen = [one for one in self.shared.chosen if one.metric == AFTER.name]
        runs = comparable(chosen, reading, study).runs
        every = {run.name: run for own in runs.values() for run in own.values()}
        if not every:
            return []
        read = reading.study(study, every.values())
        samples = StudySamples(study, read, Calibrators(reading), len(self.store.classes))
        there = {
            method: own
            for method, own in runs.items()
            if not any(samples.missing(run, method) for run in own.values())
        }
        seeds = list(next(iter(there.values()), {}))
        return [samples.unit(seed, {m: own[seed] for m, own in there.items()}) for seed in seeds]

    def place(self, study: str, row: int) -> tuple[str, int]:
        """Return the exposure that a sample of a study is from, and its place there."""
        known = next(own for own in self.shared.studies if own.name == study)
        sizes = [self._size(key) for key in known.exposures]
        ends = np.cumsum(sizes)
        part = int(np.searchsorted(ends, row, side="right"))
        return known.exposures[part], row - int(ends[part] - sizes[part])

    def _size(self, exposure: str) -> int:
        return int(self.store.scores(self.store.tested[0], exposure).n)

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
        facts = self.shared.facts
        task, folder = (str(_asked(facts, name)) for name in ("task", "folder"))
        # The rows are of what was taken of the files, changed as it was.
        data, variation = (_asked(facts, name) or None for name in ("data", "variation"))
        try:
            from abstain.benchmark.pictures import loaded
            from abstain.benchmark.tasks import Sizes

            own = loaded(task, folder, None if data is None else Sizes(**data), variation)
        except (AbstainError, ImportError, KeyError) as error:
            return [], f"the pictures of the runs cannot be made again: {error}"
        known = {exposure.key: exposure for exposure in own.parts.exposures}
        found = []
        for key, place, about, row in wanted:
            if key in known:
                seen, how = own.exposed(known[key]).pictures[place], own.inputs
                levels = levels_of(seen, how.mean, how.deviation)
                found.append(Picture(f"{key} {place}", about, levels, row))
        return found, "" if found else f"the task {task!r} has none of these exposures"


def _row(method: str, own: Mapping[str, Chosen]) -> dict[str, Any]:
    """Return the settings that a method has by each metric."""
    said = {m: " ".join(filter(None, (own[m].arm, own[m].setting))) for m in TWO}
    return {"method": method, **{f"chosen_by_{metric}": words for metric, words in said.items()}}


def _asked(facts: Mapping[str, Any], name: str) -> Any:
    """Return an entry of the configuration, in its table or not; empty where there is none."""
    config = facts.get("config")
    known = config if isinstance(config, Mapping) else {}
    inner = known.get("benchmark")
    found = inner.get(name) if isinstance(inner, Mapping) else None
    return found or known.get(name, "")
