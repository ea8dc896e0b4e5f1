"""All numbers of one study after the other."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from abstain._foundation.scored import Scored
from abstain.benchmark.protocol import Study
from abstain.benchmark.results.available import Compared
from abstain.benchmark.results.calibrating import Calibrators, as_probability, ece_of
from abstain.benchmark.results.comparing import Studied, compared
from abstain.benchmark.results.deciding import Deciding
from abstain.benchmark.results.looking import curve_points, extremes_of
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
            for metric in self.metrics:
                self._compare(metric, samples)
                samples.forget()
            self._look(samples)
        self.reading.over(study)

    def _compare(self, metric: Metric, samples: Samples) -> None:
        study, place = samples.study, (metric.name, samples.study.name)
        if why := _meaningless(metric, study):
            self.undefined[place] = why
            return
        calibrated = on_probabilities(metric)
        runs = dict(self._here(metric.name, samples, calibrated=calibrated))
        if not runs:
            self.undefined[place] = "no method has numbers here"
            return
        units = [
            samples.unit(seed, {m: own[seed] for m, own in runs.items()}, calibrated=calibrated)
            for seed in self.who[metric.name].seeds
        ]
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

    def _look(self, samples: Samples) -> None:
        """Add curves, thresholds, calibration and pictures, with the settings of one metric."""
        study = samples.study
        runs = {
            method: list(own.values())
            for method, own in self.who[self.primary].runs.items()
            if not any(samples.missing(run, method) for run in own.values())
        }
        for method, own in runs.items():
            self.curves[study.name, method] = curve_points(samples.scored(own[0], method), own[0])
        if study.headline or study.severity:
            self.thresholds += self.deciding.rows(samples, runs)
        if study.headline:
            self.calibration += self._calibrated(samples, runs)
            for method, own in runs.items():
                parts = self.reading.parts(study, own[0])
                self.extremes += extremes_of(samples, parts, own[0], method)

    def _calibrated(
        self, samples: Samples, runs: Mapping[str, Sequence[Run]]
    ) -> Iterator[CalibrationRow]:
        name = samples.study.name
        for method, own in runs.items():
            raw: list[float | None] = []
            platt: list[float] = []
            for run in own:
                if not self.calibrators.there(run, method):
                    continue
                plain = samples.scored(run, method)
                chance = as_probability(method, plain.confidence)
                raw.append(
                    None
                    if chance is None
                    else ece_of(Scored(chance, plain.loss, plain.weight, probability=chance))
                )
                platt.append(ece_of(samples.calibrated(run, method)))
                yield CalibrationRow(name, method, str(run.seed), raw[-1], platt[-1])
            if len(platt) > 1:
                known = [value for value in raw if value is not None]
                mean = sum(known) / len(known) if len(known) == len(raw) else None
                yield CalibrationRow(name, method, MEAN, mean, sum(platt) / len(platt))


def _meaningless(metric: Metric, study: Study) -> str:
    """Return why a metric says nothing in a study, or an empty string."""
    # A loss of costs is no 0/1 loss, and what counts right answers has no use for it.
    if study.errors == "scod" and metric.needs:
        return "it counts right and wrong, and here failures have costs"
    if study.errors == "removed" and metric.name in _OF_THE_CLASSIFIER:
        return "wrong answers are left out, so that it is the share of known classes and no more"
    return ""
