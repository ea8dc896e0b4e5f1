"""Compute the results of all studies, one study at a time."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from abstain.evaluation import Note
from abstain.evaluation.comparison import Plan
from abstain.metrics import Metric
from abstain_bench.results.details import (
    Thresholds,
    calibration_rows,
    curve_points,
    extremes_of,
    mean_curve,
)
from abstain_bench.results.findings import about_failures
from abstain_bench.results.records import CalibrationRow, CurvePoints, Extreme, ThresholdRow
from abstain_bench.results.samples import Calibrators, StoredScores, StudySamples
from abstain_bench.results.scope import ComparableRuns
from abstain_bench.results.studies import Studied, averaged, compared
from abstain_bench.runs.costs import Stopwatch
from abstain_bench.runs.selection import needs_probabilities
from abstain_bench.runs.store import Run
from abstain_bench.runs.studies import Study, studies_of

#: A callback with the number of finished studies and of all studies.
OnStudy = Callable[[int, int], None]


@dataclass(frozen=True)
class RuleOptions:
    """Targets of the decision rules, and the cost of an accepted sample of a new class."""

    risk: float
    delta: float
    outlier_cost: float


@dataclass(eq=False)
class StudyTables:
    """The results of the studies so far.

    `runs_by_metric` has the methods and seeds that each metric compares. Thresholds, curves and
    example images use the settings of the metric `primary`.
    """

    reading: StoredScores
    metrics: Sequence[Metric]
    runs_by_metric: Mapping[str, ComparableRuns]
    primary: str
    plan: Plan
    options: RuleOptions
    watch: Stopwatch
    studied: dict[str, list[Studied]] = field(default_factory=dict)
    thresholds: list[ThresholdRow] = field(default_factory=list)
    calibration: list[CalibrationRow] = field(default_factory=list)
    curves: dict[tuple[str, str], CurvePoints] = field(default_factory=dict)
    extremes: list[Extreme] = field(default_factory=list)
    findings: list[Note] = field(default_factory=list)
    undefined: dict[tuple[str, str], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.calibrators = Calibrators(self.reading)
        self.rules = Thresholds(self.options.risk, self.options.delta, self.plan.level)
        self.studied = {metric.name: [] for metric in self.metrics}
        self.known = {study.name: study for study in studies_of(self.reading.store.exposures)}

    def add_all(self, studies: Sequence[Study], on_study: OnStudy | None = None) -> None:
        """Add the results of several studies, in their order."""
        for n_finished, study in enumerate(studies, 1):
            self.add(study)
            if on_study is not None:
                on_study(n_finished, len(studies))

    def add(self, study: Study) -> None:
        """Add the results of one study."""
        runs = {
            run.name: run
            for comparable_runs in self.runs_by_metric.values()
            for by_seed in comparable_runs.runs.values()
            for run in by_seed.values()
        }
        if runs:
            with self.watch.measure("reading"):
                samples = self._samples(study, runs.values())
            parts = self._parts(samples, next(iter(runs.values())))
            with self.watch.measure("comparison"):
                self._compare_all(samples, parts)
            with self.watch.measure("looks"):
                self._add_details(samples, parts)
        self.reading.over(study)

    def _samples(self, study: Study, runs: Iterable[Run]) -> StudySamples:
        """Read the scores of all runs on a study."""
        return StudySamples(
            study,
            self.reading.study(study, runs),
            self.calibrators,
            len(self.reading.store.classes),
            self.options.outlier_cost,
        )

    def _parts(self, samples: StudySamples, run: Run) -> list[StudySamples]:
        """Return the samples of the studies that this study averages; empty for most studies."""
        parts, first = [], 0
        for study in (self.known[name] for name in samples.study.parts):
            last = first + sum(scores.n for scores in self.reading.parts(study, run))
            parts.append(samples.part(study, slice(first, last)))
            first = last
        return parts

    def _compare_all(self, samples: StudySamples, parts: Sequence[StudySamples]) -> None:
        for metric in self.metrics:
            self._compare(metric, samples, parts)
            for own in (samples, *parts):
                own.forget()

    def _compare(
        self, metric: Metric, samples: StudySamples, parts: Sequence[StudySamples]
    ) -> None:
        study, key = samples.study, (metric.name, samples.study.name)
        if reason := meaningless(metric, study):
            self.undefined[key] = reason
            return
        calibrated = needs_probabilities(metric)
        runs = dict(self._complete_methods(metric.name, samples, calibrated=calibrated))
        if not runs:
            self.undefined[key] = "no method has values in this study"
            return
        runs_by_seed = {
            seed: {m: seed_runs[seed] for m, seed_runs in runs.items()}
            for seed in self.runs_by_metric[metric.name].seeds
        }
        units = [
            samples.unit(seed, seed_runs, calibrated=calibrated)
            for seed, seed_runs in runs_by_seed.items()
        ]
        if parts:
            units_by_seed = [
                [part.unit(seed, seed_runs, calibrated=calibrated, named=study) for part in parts]
                for seed, seed_runs in runs_by_seed.items()
            ]
            result = averaged(units_by_seed, metric, self.plan, headline=study.headline)
        else:
            result = compared(units, metric, self.plan, headline=study.headline)
        self.studied[metric.name].append(result)
        if result.sampled.reasons:
            self.undefined[key] = "; ".join(result.sampled.reasons)
        if metric.name == self.primary:
            self.findings += about_failures(units)

    def _complete_methods(
        self, metric: str, samples: StudySamples, *, calibrated: bool = False
    ) -> Iterator[tuple[str, Mapping[int, Run]]]:
        """Yield the methods with values for all seeds, and add warnings on all others."""
        for method, runs in self.runs_by_metric[metric].runs.items():
            missing = [reason for run in runs.values() if (reason := samples.missing(run, method))]
            if calibrated and not all(self.calibrators.there(run, method) for run in runs.values()):
                missing.append("no validation data to calibrate it by")
            if not missing:
                yield method, runs
                continue
            split = (("study", samples.study.name),)
            message = f"{method} is excluded from {samples.study.name} for {metric}: {missing[0]}."
            self.findings.append(Note.warning("left_out", message, split, method))

    def _add_details(self, samples: StudySamples, parts: Sequence[StudySamples]) -> None:
        """Add curves, thresholds, calibration and example images for the primary metric."""
        study = samples.study
        runs = {
            method: list(method_runs.values())
            for method, method_runs in self.runs_by_metric[self.primary].runs.items()
            if not any(samples.missing(run, method) for run in method_runs.values())
        }
        for method, method_runs in runs.items():
            scored = [part.scored(method_runs[0], method) for part in parts or [samples]]
            curve = (
                mean_curve(scored, method_runs[0])
                if parts
                else curve_points(scored[0], method_runs[0])
            )
            self.curves[study.name, method] = curve
        if study.headline or study.severity:
            self.thresholds += self.rules.rows(samples, runs)
        if study.headline:
            self.calibration += calibration_rows(parts or [samples], study.name, runs)
            for method, method_runs in runs.items():
                scores = self.reading.parts(study, method_runs[0])
                self.extremes += extremes_of(samples, scores, method_runs[0], method)


def meaningless(metric: Metric, study: Study) -> str:
    """Return why a metric is not meaningful in a study, or an empty string."""
    # The losses are costs, which a metric of 0/1 losses cannot use.
    if study.errors == "scod" and metric.measurement.needs:
        return "it requires a 0/1 loss, and the losses of this study are costs"
    if study.errors in {"removed", "outlier"} and metric.identity.family == "classifier":
        done = "left out" if study.errors == "removed" else "no failures"
        return f"wrong answers are {done}, so that it is the share of known classes and no more"
    return ""
