"""Which setting of an arm a method uses: the best on validation data, for each metric by itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum, isfinite
from typing import Final

from abstain.errors import InputError
from abstain.evaluation import calibrate, evaluate
from abstain.metrics import Metric, Need, metric_named
from abstain.predictions import Predictions
from abstain_bench.runs.specification.config import Config
from abstain_bench.runs.store import RunScores, Store, StoredRun

__all__ = ["Chosen", "choose", "validated"]

#: Needs that confidences, labels and predictions meet; a calibration meets that of a probability.
_MET: Final = frozenset(
    {Need.BINARY_LOSS, Need.UNIT_LOSS, Need.CLASSES, Need.CORRECTNESS, Need.UNIT_CONFIDENCE}
)

#: What a setting is by: its arm and its label.
_Place = tuple[str, str]


@dataclass(frozen=True)
class Chosen:
    """The setting that a method uses where one metric is reported.

    Attributes
    ----------
    metric, method : str
        Names in the catalogues, or of a method that was added.
    arm, setting : str
        Of the runs; the setting is empty where the arm has one only.
    value : float
        The mean of the metric over the seeds on validation data; NaN where it is undefined there.
    tried : mapping from str to float
        That of every setting there was to choose among, by label.
    seeds : int
        How many seeds the mean is over.
    note : str
        What to be careful about, or empty.
    """

    metric: str
    method: str
    arm: str
    setting: str
    value: float
    tried: Mapping[str, float] = field(default_factory=dict)
    seeds: int = 0
    note: str = ""


def validated(
    scores: RunScores, methods: Mapping[str, bool], metrics: Sequence[str]
) -> dict[str, dict[str, float | None]]:
    """Compute the metrics of the methods of one run on its validation data.

    Answers: how good is each method with this setting, as far as it may be known before a test?

    Examples
    --------
    >>> import numpy as np
    >>> from abstain_bench.runs.store import RunScores
    >>> from abstain_bench.runs.selection import validated
    >>> labels = np.array([0, 1, 1, 0])
    >>> own = {"msr": np.array([3.0, 2.0, 1.0, 4.0])}
    >>> scores = RunScores("validation", labels, labels, np.array([0, 1, 0, 0]), None, own)
    >>> validated(scores, {"msr": False}, ["accuracy", "failure_auroc"])
    {'msr': {'accuracy': 0.75, 'failure_auroc': 1.0}}
    """
    found = [metric_named(name) for name in metrics]
    out: dict[str, dict[str, float | None]] = {}
    for averages in (False, True):
        names = [m for m, own in methods.items() if own is averages and m in scores.confidence]
        if names:
            out |= _values(predictions_of(scores, names, averages=averages), names, found)
    return {name: out[name] for name in methods if name in out}


def metrics_of(store: Store | None) -> tuple[str, ...]:
    """Return the metrics of a folder of runs; those of the papers where it says none."""
    return tuple((store.config.get("metrics") if store else None) or Config.metrics)


def predictions_of(scores: RunScores, names: Sequence[str], *, averages: bool) -> Predictions:
    """Return what evaluation needs of some methods that judge one prediction."""
    prediction = scores.prediction_for(averages)
    return Predictions(
        prediction=prediction,
        labels=scores.labels,
        confidence={name: scores.confidence[name] for name in names},
        unknown_label=-1 if (scores.labels == -1).any() else None,
    )


def usable(metric: Metric) -> bool:
    """Tell whether a metric needs no more than confidences, labels and predictions."""
    return metric.measurement.needs <= _MET


def on_probabilities(metric: Metric) -> bool:
    """Tell whether a metric is of calibrated confidences."""
    return Need.UNIT_CONFIDENCE in metric.measurement.needs


def _values(
    predictions: Predictions, names: Sequence[str], metrics: Sequence[Metric]
) -> dict[str, dict[str, float | None]]:
    out: dict[str, dict[str, float | None]] = {
        name: {metric.name: None for metric in metrics} for name in names
    }
    asked = [metric for metric in metrics if usable(metric)]
    plain = [metric.name for metric in asked if not on_probabilities(metric)]
    if plain:
        # A score by its column alone: one of the catalogue may have the same name.
        found = evaluate(predictions, scores=list(names), metrics=plain, interval="none")
        for result in found.results:
            out[result.score][result.metric.name] = _plain(result.value)
    calibrated = [metric.name for metric in asked if on_probabilities(metric)]
    if calibrated:
        fitted = [calibrate(name, predictions, name=name + _CALIBRATED) for name in names]
        found = evaluate(predictions, scores=fitted, metrics=calibrated, interval="none")
        for result in found.results:
            out[result.score.removesuffix(_CALIBRATED)][result.metric.name] = _plain(result.value)
    return out


#: Behind the name of a method whose confidences were calibrated.
_CALIBRATED: Final = "+platt"


def _plain(value: float) -> float | None:
    return float(value) if isfinite(value) else None


def choose(kept: Sequence[StoredRun], metrics: Sequence[str]) -> tuple[Chosen, ...]:
    """Choose, for every method and metric, the setting that is best on validation data.

    Answers: which networks does each method use where this metric is reported?

    Examples
    --------
    >>> from abstain_bench.runs.store import Run
    >>> from abstain_bench.runs.selection import choose
    >>> from abstain_bench.runs.store import StoredRun
    >>> values = {("a", 0): 0.3, ("a", 1): 0.1, ("b", 0): 0.1, ("b", 1): 0.15}
    >>> kept = [
    ...     StoredRun(Run(f"{s}{i}", "arm", s, i), validation_values={"msr": {"augrc": v}})
    ...     for (s, i), v in values.items()
    ... ]
    >>> choose(kept, ["augrc"])[0].setting
    'b'
    """
    seeds = {one.run.seed for one in kept}
    table = _table(kept)
    methods = list(dict.fromkeys(name for one in kept for name in one.validation_values))
    if not methods:
        raise InputError(
            "no run has values on validation data to choose by; run the validation jobs first"
        )
    return tuple(
        _best(metric, method, table[method], len(seeds)) for metric in metrics for method in methods
    )


#: The values of a method by setting and seed, by metric; None where one is undefined.
_Values = dict[_Place, dict[int, Mapping[str, float | None]]]


def _table(kept: Sequence[StoredRun]) -> dict[str, _Values]:
    out: dict[str, _Values] = {}
    for one in kept:
        place = (one.run.arm, one.run.setting)
        for method, values in one.validation_values.items():
            by_seed = out.setdefault(method, {}).setdefault(place, {})
            if one.run.seed in by_seed:
                raise InputError(
                    f"two runs are of arm {place[0]!r}, setting {place[1]!r}, seed {one.run.seed}"
                )
            by_seed[one.run.seed] = values
    return out


def _best(metric: str, method: str, values: _Values, seeds: int) -> Chosen:
    """Return the choice for one method and metric."""
    known = {
        place: [
            value for _, own in sorted(by_seed.items()) if (value := own.get(metric)) is not None
        ]
        for place, by_seed in values.items()
    }
    means = {place: fsum(own) / len(own) for place, own in known.items() if own}
    labels = _labels(values)
    tried = {labels[place]: mean for place, mean in means.items()}
    if not means:
        arm, setting = max(values, key=lambda place: len(values[place]))
        note = f"{metric} is undefined on the validation data; the first setting is used"
        return Chosen(metric, method, arm, setting, float("nan"), tried, 0, note)
    most = max(map(len, known.values()))
    full = [place for place in means if len(known[place]) == most]
    sign = 1.0 if metric_named(metric).lower_is_better else -1.0
    # The first of those that are equal: `min` keeps it.
    arm, setting = best = min(full, key=lambda place: sign * means[place])
    note = _told(most, seeds, [labels[place] for place in values if place not in full])
    return Chosen(metric, method, arm, setting, means[best], tried, most, note)


def _labels(values: _Values) -> dict[_Place, str]:
    """Name the settings: by their arm too where there are several."""
    several = len({arm for arm, _ in values}) > 1
    return {
        (arm, setting): " ".join(filter(None, (arm, setting))) if several else setting
        for arm, setting in values
    }


def _told(most: int, seeds: int, left: Sequence[str]) -> str:
    if most < seeds:
        return f"no setting has a value for each of the {seeds} seeds; chosen by {most}"
    if not left:
        return ""
    return f"not chosen among, since seeds are missing: {', '.join(map(repr, left))}"
