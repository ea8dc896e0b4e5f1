"""All numbers of one study after the other."""

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
from abstain_bench.results.scope import Compared
from abstain_bench.results.studies import Studied, averaged, compared
from abstain_bench.runs.costs import Stopwatch
from abstain_bench.runs.protocol import Study, studies_of
from abstain_bench.runs.selection import on_probabilities
from abstain_bench.runs.store import Run

__all__ = ["OnStudy", "PromiseOptions", "StudyTables"]

#: Told how many studies are over, and how many there are.
OnStudy = Callable[[int, int], None]


@dataclass(frozen=True)
class PromiseOptions:
    """What thresholds promise, and what accepting a new class costs."""

    risk: float
    delta: float
    outlier_cost: float


@dataclass(eq=False)
class StudyTables:
    """What was found so far, on one study after the other.

    `who` has the methods and seeds, by metric. Thresholds, curves and pictures are shown with the
    settings of the metric `primary`.
    """

    reading: StoredScores
    metrics: Sequence[Metric]
    who: Mapping[str, Compared]
    primary: str
    plan: Plan
    options: PromiseOptions
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
        """Find all there is to say of studies, in their order."""
        for over, study in enumerate(studies, 1):
            self.add(study)
            if on_study is not None:
                on_study(over, len(studies))

    def add(self, study: Study) -> None:
        """Find all there is to say of one more study."""
        runs = {
            run.name: run
            for own in self.who.values()
            for by_seed in own.runs.values()
            for run in by_seed.values()
        }
        if runs:
            with self.watch.of("reading"):
                samples = self._samples(study, runs.values())
            parts = self._parts(samples, next(iter(runs.values())))
            with self.watch.of("comparison"):
                self._compare_all(samples, parts)
            with self.watch.of("looks"):
                self._look(samples, parts)
        self.reading.over(study)

    def _samples(self, study: Study, runs: Iterable[Run]) -> StudySamples:
        """Read what all runs say of a study."""
        return StudySamples(
            study,
            self.reading.study(study, runs),
            self.calibrators,
            len(self.reading.store.classes),
            self.options.outlier_cost,
        )

    def _parts(self, samples: StudySamples, run: Run) -> list[StudySamples]:
        """Return the samples of each study whose numbers are averaged; none for most."""
        found, first = [], 0
        for study in (self.known[name] for name in samples.study.parts):
            last = first + sum(part.n for part in self.reading.parts(study, run))
            found.append(samples.part(study, slice(first, last)))
            first = last
        return found

    def _compare_all(self, samples: StudySamples, parts: Sequence[StudySamples]) -> None:
        for metric in self.metrics:
            self._compare(metric, samples, parts)
            for own in (samples, *parts):
                own.forget()

    def _compare(
        self, metric: Metric, samples: StudySamples, parts: Sequence[StudySamples]
    ) -> None:
        study, place = samples.study, (metric.name, samples.study.name)
        if why := meaningless(metric, study):
            self.undefined[place] = why
            return
        calibrated = on_probabilities(metric)
        runs = dict(self._here(metric.name, samples, calibrated=calibrated))
        if not runs:
            self.undefined[place] = "no method has numbers here"
            return
        places = {
            seed: {m: own[seed] for m, own in runs.items()} for seed in self.who[metric.name].seeds
        }
        units = [samples.unit(seed, own, calibrated=calibrated) for seed, own in places.items()]
        if parts:
            each = [
                [part.unit(seed, own, calibrated=calibrated, named=study) for part in parts]
                for seed, own in places.items()
            ]
            found = averaged(each, metric, self.plan, headline=study.headline)
        else:
            found = compared(units, metric, self.plan, headline=study.headline)
        self.studied[metric.name].append(found)
        if found.sampled.reasons:
            self.undefined[place] = "; ".join(found.sampled.reasons)
        if metric.name == self.primary:
            self.findings += about_failures(units)

    def _here(
        self, metric: str, samples: StudySamples, *, calibrated: bool = False
    ) -> Iterator[tuple[str, Mapping[int, Run]]]:
        """Return the methods that have numbers in this study for all seeds; tell of the others."""
        for method, own in self.who[metric].runs.items():
            missing = [why for run in own.values() if (why := samples.missing(run, method))]
            if calibrated and not all(self.calibrators.there(run, method) for run in own.values()):
                missing.append("no validation data to calibrate it by")
            if not missing:
                yield method, own
                continue
            split = (("study", samples.study.name),)
            message = f"{method} is left out of {samples.study.name} by {metric}: {missing[0]}."
            self.findings.append(Note.warning("left_out", message, split, method))

    def _look(self, samples: StudySamples, parts: Sequence[StudySamples]) -> None:
        """Add curves, thresholds, calibration and pictures, with the settings of one metric."""
        study = samples.study
        runs = {
            method: list(own.values())
            for method, own in self.who[self.primary].runs.items()
            if not any(samples.missing(run, method) for run in own.values())
        }
        for method, own in runs.items():
            scored = [part.scored(own[0], method) for part in parts or [samples]]
            draw = mean_curve(scored, own[0]) if parts else curve_points(scored[0], own[0])
            self.curves[study.name, method] = draw
        if study.headline or study.severity:
            self.thresholds += self.rules.rows(samples, runs)
        if study.headline:
            self.calibration += calibration_rows(parts or [samples], study.name, runs)
            for method, own in runs.items():
                said = self.reading.parts(study, own[0])
                self.extremes += extremes_of(samples, said, own[0], method)


def meaningless(metric: Metric, study: Study) -> str:
    """Return why a metric says nothing in a study, or an empty string."""
    # A loss of costs is no 0/1 loss, and what counts right answers has no use for it.
    if study.errors == "scod" and metric.measurement.needs:
        return "it counts right and wrong, and here failures have costs"
    if study.errors in {"removed", "outlier"} and metric.identity.family == "classifier":
        done = "left out" if study.errors == "removed" else "no failures"
        return f"wrong answers are {done}, so that it is the share of known classes and no more"
    return ""
