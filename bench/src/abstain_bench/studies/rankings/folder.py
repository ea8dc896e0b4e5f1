"""Compare the methods in a folder of benchmark runs by two metrics."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from typing import Any

from abstain._foundation.input_files import input_sha256
from abstain.errors import AbstainError
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
from abstain.plots.image_grid import ImageGridDisplay, LabeledImage
from abstain_bench.data.images import quoted_class, to_gray_levels
from abstain_bench.results import SelectedSetting
from abstain_bench.results.samples import Calibrators, StoredScores, StudySamples
from abstain_bench.results.scope import (
    check_tested,
    select_comparable_runs,
    select_methods,
    select_settings,
    select_studies,
)
from abstain_bench.results.studies import compare_study_average
from abstain_bench.runs.store import Run, Store, configured
from abstain_bench.runs.studies import Study, studies_of
from abstain_bench.studies._display import Row
from abstain_bench.studies.rankings.ranked_studies import (
    COMMON_SELECTION,
    FIRST_METRIC,
    METRIC_NAMES,
    SECOND_METRIC,
    SEPARATE_SELECTION,
    RankedStudies,
)

#: Mapping from methods to mappings from seeds to runs.
_RunsByMethod = Mapping[str, Mapping[int, Run]]

#: Tuple of exposure, index, label and panel of an image.
ImageRequest = tuple[str, int, str, str]


@dataclass(frozen=True, eq=False)
class RankedFolder:
    """Ranks the methods in a folder of runs by two metrics."""

    store: Store
    plan: Plan
    methods: Sequence[str] | None = None
    study_names: Sequence[str] | None = None

    def __post_init__(self) -> None:
        check_tested(self.store)

    @cached_property
    def studies(self) -> dict[str, Study]:
        """Requested studies by name; the default is the studies of the main table."""
        names = self.study_names
        if names is None:
            names = [study.name for study in studies_of(self.store.exposures) if study.headline]
        return {study.name: study for study in select_studies(self.store, names)}

    @cached_property
    def settings_by_metric(self) -> dict[str, tuple[SelectedSetting, ...]]:
        """Settings of all methods, as selected by each metric on the validation data."""
        settings = select_methods(select_settings(self.store, METRIC_NAMES), self.methods)
        return {
            metric: tuple(setting for setting in settings if setting.metric == metric)
            for metric in METRIC_NAMES
        }

    @cached_property
    def different_settings(self) -> list[dict[str, Any]]:
        """Rows about methods for which the two metrics select different settings."""
        labels: dict[str, dict[str, str]] = {}
        for metric, settings in self.settings_by_metric.items():
            for setting in settings:
                label = f"{setting.arm} {setting.setting}".strip()
                labels.setdefault(setting.method, {})[metric] = label
        rows = []
        for method, label_by_metric in labels.items():
            if len(set(label_by_metric.values())) > 1:
                selected = {f"selected_by_{name}": label_by_metric[name] for name in METRIC_NAMES}
                rows.append({"method": method, **selected})
        return rows

    def digest(self) -> str:
        """Compute a hash of the results of the runs, without durations and paths."""
        result_files = []
        for run in self.store.stored_runs:
            result_files += [file for file in (run.validation_file, run.test_file) if file]
        for method in self.store.added_methods:
            result_files += method.stored.values()
        content = {
            "runs": [asdict(run) for run in self.store.stored_runs],
            "exposures": [asdict(exposure) for exposure in self.store.exposures],
            "classes": list(self.store.classes),
            "files": {
                name: input_sha256(self.store.folder / name) for name in dict.fromkeys(result_files)
            },
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    # -------------------------------------------------------------------------- one study
    def rank_study(self, name: str) -> list[RankedStudies]:
        """Rank the methods in one study for each selection of settings.

        For the common selection, both metrics use the settings that the second metric selects, and
        thus the same networks. If both metrics select the same settings, only the common selection
        is evaluated. If no run has scores, the result is empty.
        """
        study = self.studies[name]
        samples = _StudyRuns(self.store, study)
        common_settings = self.settings_by_metric[SECOND_METRIC.name]
        runs = samples.load_runs(common_settings)
        if not runs:
            return []
        common = self._compare(samples, runs, common_settings, (FIRST_METRIC, SECOND_METRIC))
        loaders: dict[str, Callable[[], list[ScoredRun]]] = {}
        if not study.parts:
            loaders[name] = partial(list, runs)
        ranked = RankedStudies(COMMON_SELECTION, common, loaders)
        if not self.different_settings:
            return [ranked]
        first_settings = self.settings_by_metric[FIRST_METRIC.name]
        first_runs = samples.load_runs(first_settings)
        first = self._compare(samples, first_runs, first_settings, (FIRST_METRIC,))
        return [RankedStudies(SEPARATE_SELECTION, {**common, **first}), ranked]

    def _compare(
        self,
        samples: "_StudyRuns",
        runs: Sequence[ScoredRun],
        settings: Sequence[SelectedSetting],
        metrics: Sequence[Metric],
    ) -> dict[str, Comparison]:
        """Compare the runs by each metric, averaged over the parts of the study if it has any."""
        if samples.study.parts:
            runs_by_part = samples.load_parts(settings)
            is_headline = samples.study.headline
            comparisons = {}
            for metric in metrics:
                average = compare_study_average(
                    runs_by_part, metric, self.plan, headline=is_headline
                )
                comparisons[metric.name] = self._to_comparison(average.comparison, [metric])
            return comparisons
        comparison = self._to_comparison(compare_data(runs, metrics, self.plan), metrics)
        return {metric.name: comparison for metric in metrics}

    def _to_comparison(self, data: DataSetComparison, metrics: Sequence[Metric]) -> Comparison:
        """Convert the comparison on a single data set to a `Comparison`."""
        methods = data.sampled[0].methods
        tables = ComparisonTables()
        return join_tables([data], tables, self.plan, metrics=metrics, methods=methods, notes=())

    # -------------------------------------------------------------------------- samples
    def locate(self, study_name: str, row: int) -> tuple[str, int]:
        """Return the exposure of a sample in a study, and its index within the exposure."""
        # The samples of a study are the samples of its exposures in their order.
        run = self.store.tested_runs[0]
        index = row
        for exposure in self.studies[study_name].exposures:
            n_samples = self.store.scores(run, exposure).n
            if index < n_samples:
                return exposure, index
            index -= n_samples
        raise IndexError(f"the study {study_name!r} has no sample {row}")

    def with_sample_name(self, row: Row) -> dict[str, Any]:
        """Replace the index and the label of a sample by display names."""
        exposure, index = self.locate(row["study"], int(row["sample"]))
        class_name = quoted_class(int(row["label"]), self.store.classes)
        return {**row, "sample": f"{exposure} {index}", "label": class_name}

    def images(self, requests: Sequence[ImageRequest]) -> tuple[list[LabeledImage], str]:
        """Create the requested images from the data of the task, or return a reason why not."""
        config = self.store.config
        task = str(configured(config, "task"))
        folder = str(configured(config, "folder"))
        data = configured(config, "data")
        variation = configured(config, "variation") or None
        try:
            from abstain_bench.runs.loaded_task import load_task
            from abstain_bench.runs.tasks import Sizes

            sizes = Sizes(**data) if data else None
            task_data = load_task(task, folder, sizes, variation)
        except (AbstainError, ImportError, KeyError) as error:
            return [], f"the images of the runs cannot be generated again: {error}"
        exposures = {exposure.key: exposure for exposure in task_data.task_images.exposures}
        preprocessing = task_data.preprocessing
        images = []
        for key, index, label, panel in requests:
            if key in exposures:
                pixels = task_data.exposure_images(exposures[key]).images[index]
                levels = to_gray_levels(pixels, preprocessing.mean, preprocessing.std)
                images.append(LabeledImage(f"{key} {index}", label, levels, panel))
        return images, "" if images else f"the task {task!r} has none of these exposures"


class _StudyRuns:
    """Load the scored runs for one study."""

    def __init__(self, store: Store, study: Study) -> None:
        self.store = store
        self.study = study
        self._scores = StoredScores(store, [study])

    def load_runs(self, settings: Sequence[SelectedSetting]) -> list[ScoredRun]:
        """Return one scored run per seed with scores, on all samples of the study."""
        samples, runs = self._load(settings)
        if samples is None:
            return []
        return [samples.scored_run(seed, methods) for seed, methods in _group_by_seed(runs).items()]

    def load_parts(self, settings: Sequence[SelectedSetting]) -> list[list[ScoredRun]]:
        """Return one scored run per seed with scores, on each part of the study."""
        samples, runs = self._load(settings)
        if samples is None:
            return []
        any_method = next(iter(runs.values()))
        parts = samples.averaged_parts(self._scores, next(iter(any_method.values())))
        return [
            [part.scored_run(seed, methods, study=self.study) for part in parts]
            for seed, methods in _group_by_seed(runs).items()
        ]

    def _load(
        self, settings: Sequence[SelectedSetting]
    ) -> tuple[StudySamples | None, _RunsByMethod]:
        """Return the samples of a study, and the runs of methods that have scores for all seeds.

        If there are no such methods, the samples are None.
        """
        runs = select_comparable_runs(settings, self._scores, self.study).runs
        distinct_runs = {run.name: run for by_seed in runs.values() for run in by_seed.values()}
        if not distinct_runs:
            return None, {}
        scores = self._scores.scores_by_run(self.study, distinct_runs.values())
        calibrators = Calibrators(self._scores)
        samples = StudySamples(self.study, scores, calibrators, len(self.store.classes))
        complete = {
            method: by_seed
            for method, by_seed in runs.items()
            if not any(samples.missing(run, method) for run in by_seed.values())
        }
        if not complete:
            return None, {}
        return samples, complete


def _group_by_seed(runs: _RunsByMethod) -> dict[int, dict[str, Run]]:
    """Return the runs of each method by seed, if all methods have the same seeds."""
    seeds = next(iter(runs.values()))
    return {seed: {method: by_seed[seed] for method, by_seed in runs.items()} for seed in seeds}


def failure_images_figure(
    folder: RankedFolder, image_rows: Sequence[Row]
) -> tuple[ImageGridDisplay | None, str]:
    """Plot the images of failures.

    Return the figure and an empty reason, or None and the reason.
    """
    requests = [(row["exposure"], row["index"], row["label"], row["panel"]) for row in image_rows]
    images, reason = folder.images(requests)
    if not images:
        return None, reason
    title = (
        f"Failures for which {FIRST_METRIC.title} prefers another method than "
        f"{SECOND_METRIC.title}, with the share of samples of lower confidence"
    )
    return ImageGridDisplay(tuple(images), title), reason
