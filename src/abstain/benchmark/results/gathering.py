"""All numbers of one study after the other."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from abstain._foundation.scored import Scored
from abstain.benchmark.protocol import Study, studies_of
from abstain.benchmark.results.available import Compared
from abstain.benchmark.results.averaging import averaged
from abstain.benchmark.results.calibrating import Calibrators, as_probability, ece_of
from abstain.benchmark.results.comparing import Studied, compared
from abstain.benchmark.results.deciding import Deciding
from abstain.benchmark.results.looking import curve_points, extremes_of, mean_curve
from abstain.benchmark.results.reading import Reading
from abstain.benchmark.results.records import (
    MEAN,
    CalibrationRow,
    CurvePoints,
    Extreme,
    ThresholdRow,
)
from abstain.benchmark.results.samples import Samples
from abstain.benchmark.results.telling import told_of_failures
from abstain.benchmark.runs import Run
from abstain.benchmark.selection import on_probabilities
from abstain.evaluation import Finding
from abstain.evaluation._plan import Plan
from abstain.metrics import Metric

__all__ = ["Gathering", "Options"]

#: Metrics of the predictions alone, whatever the confidence.
_OF_THE_CLASSIFIER = ("accuracy", "balanced_accuracy")


@dataclass(frozen=True)
class Options:
    """What thresholds promise, and what accepting a new class costs."""

    risk: float
    delta: float
    outlier_cost: float


@dataclass(eq=False)
class Gathering:
    """What was found so far.

    Attributes
    ----------
    reading : Reading
        The scores.
    metrics : sequence of Metric
        By what.
    who : mapping from str to Compared
        The methods and seeds, by metric.
    primary : str
        The metric by whose settings thresholds, curves and pictures are shown.
    plan : Plan
        Of the comparisons.
    options : Options
        Of the thresholds and costs.
    """

    reading: Reading
    metrics: Sequence[Metric]
    who: Mapping[str, Compared]
    primary: str
    plan: Plan
    options: Options
    studied: dict[str, list[Studied]] = field(default_factory=dict)
    thresholds: list[ThresholdRow] = field(default_factory=list)
    calibration: list[CalibrationRow] = field(default_factory=list)
    curves: dict[tuple[str, str], CurvePoints] = field(default_factory=dict)
    extremes: list[Extreme] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    undefined: dict[tuple[str, str], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.calibrators = Calibrators(self.reading)
        self.deciding = Deciding(self.options.risk, self.options.delta, self.plan.level)
        self.studied = {metric.name: [] for metric in self.metrics}
        self.known = {study.name: study for study in studies_of(self.reading.store.exposures)}

    def add(self, study: Study) -> None:
        """Find all there is to say of one more study."""
        runs = {
            run.name: run
            for own in self.who.values()
            for by_seed in own.runs.values()
            for run in by_seed.values()
        }
        if runs:
            samples = Samples(
                study,
                self.reading.study(study, runs.values()),
                self.calibrators,
                len(self.reading.store.classes),
                self.options.outlier_cost,
            )
            parts = self._parts(samples, next(iter(runs.values())))
            for metric in self.metrics:
                self._compare(metric, samples, parts)
                for own in (samples, *parts):
                    own.forget()
            self._look(samples, parts)
        self.reading.over(study)

    def _parts(self, samples: Samples, run: Run) -> list[Samples]:
        """Return the samples of each study whose numbers are averaged; none for most."""
        found, first = [], 0
        for study in (self.known[name] for name in samples.study.parts):
            last = first + sum(part.n for part in self.reading.parts(study, run))
            found.append(samples.part(study, slice(first, last)))
            first = last
        return found

    def _compare(self, metric: Metric, samples: Samples, parts: Sequence[Samples]) -> None:
        study, place = samples.study, (metric.name, samples.study.name)
        if why := _meaningless(metric, study):
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
            self.findings += told_of_failures(units)

    def _here(
        self, metric: str, samples: Samples, *, calibrated: bool = False
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
            self.findings.append(Finding("left_out", "warning", split, method, message))

    def _look(self, samples: Samples, parts: Sequence[Samples]) -> None:
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
            self.thresholds += self.deciding.rows(samples, runs)
        if study.headline:
            self.calibration += self._calibrated(study, parts or [samples], runs)
            for method, own in runs.items():
                said = self.reading.parts(study, own[0])
                self.extremes += extremes_of(samples, said, own[0], method)

    def _calibrated(
        self, study: Study, parts: Sequence[Samples], runs: Mapping[str, Sequence[Run]]
    ) -> Iterator[CalibrationRow]:
        for method, own in runs.items():
            found = [
                CalibrationRow(study.name, method, str(run.seed), *self._errors(parts, run, method))
                for run in own
                if self.calibrators.there(run, method)
            ]
            yield from found
            if len(found) > 1:
                raw = _mean_if_all([row.raw for row in found])
                platt = sum(row.platt for row in found) / len(found)
                yield CalibrationRow(study.name, method, MEAN, raw, platt)

    def _errors(
        self, parts: Sequence[Samples], run: Run, method: str
    ) -> tuple[float | None, float]:
        """Return the calibration error as it is and after scaling, means over the parts."""
        raw: list[float | None] = []
        for part in parts:
            plain = part.scored(run, method)
            chance = as_probability(method, plain.confidence)
            raw.append(
                None
                if chance is None
                else ece_of(Scored(chance, plain.loss, plain.weight, probability=chance))
            )
        platt = [ece_of(part.calibrated(run, method)) for part in parts]
        return _mean_if_all(raw), sum(platt) / len(platt)


def _mean_if_all(values: Sequence[float | None]) -> float | None:
    """Return the mean, or None where one of them is none."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if len(known) == len(values) else None


def _meaningless(metric: Metric, study: Study) -> str:
    """Return why a metric says nothing in a study, or an empty string."""
    # A loss of costs is no 0/1 loss, and what counts right answers has no use for it.
    if study.errors == "scod" and metric.needs:
        return "it counts right and wrong, and here failures have costs"
    if study.errors == "removed" and metric.name in _OF_THE_CLASSIFIER:
        return "wrong answers are left out, so that it is the share of known classes and no more"
    return ""
