"""Select the setting of each method on the validation data, for each metric separately."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum, isfinite
from typing import Any, Final

from abstain.errors import InputError
from abstain.evaluation import calibrate, evaluate
from abstain.metrics import Metric, Need, metric_named
from abstain.predictions import Predictions
from abstain_bench.runs.specification.config import Config
from abstain_bench.runs.store import RunScores, Store, StoredRun

#: Needs of metrics that are satisfied by labels, predictions and calibrated confidences.
_MET: Final = frozenset(
    {Need.BINARY_LOSS, Need.UNIT_LOSS, Need.CLASSES, Need.CORRECTNESS, Need.UNIT_CONFIDENCE}
)

#: Arm and label of a setting.
_Setting = tuple[str, str]


@dataclass(frozen=True)
class SelectedSetting:
    """The selected setting of a method for one metric.

    Attributes
    ----------
    metric, method : str
        Names of the metric and the method.
    arm, setting : str
        Arm and label of the setting. If the arm has only one setting, the label is empty.
    value : float
        Mean of the metric over the seeds on validation data, or NaN if the metric is undefined.
    tried : mapping from str to float
        Mean of the metric for every setting with a value, by the label of the setting.
    seeds : int
        Number of seeds for which the metric is defined in the selected setting.
    note : str
        Remark on the selection, or empty.
    """

    metric: str
    method: str
    arm: str
    setting: str
    value: float
    tried: Mapping[str, float] = field(default_factory=dict)
    seeds: int = 0
    note: str = ""


def validation_values(
    scores: RunScores, methods: Mapping[str, bool], metrics: Sequence[str]
) -> dict[str, dict[str, float | None]]:
    """Compute metrics of every method of a run on the validation data.

    `methods` maps each name of a method to whether the method uses the mean prediction.

    Examples
    --------
    >>> import numpy as np
    >>> from abstain_bench.runs.store import RunScores
    >>> from abstain_bench.runs.selection import validation_values
    >>> labels = np.array([0, 1, 1, 0])
    >>> confidence = {"msr": np.array([3.0, 2.0, 1.0, 4.0])}
    >>> scores = RunScores("validation", labels, labels, np.array([0, 1, 0, 0]), None, confidence)
    >>> validation_values(scores, {"msr": False}, ["accuracy", "failure_auroc"])
    {'msr': {'accuracy': 0.75, 'failure_auroc': 1.0}}
    """
    metric_entries = [metric_named(name) for name in metrics]
    values: dict[str, dict[str, float | None]] = {}
    for uses_mean in (False, True):
        names = [
            name
            for name, method_uses_mean in methods.items()
            if method_uses_mean is uses_mean and name in scores.confidence
        ]
        if names:
            predictions = to_predictions(scores, names, uses_mean_prediction=uses_mean)
            values |= _evaluate(predictions, names, metric_entries)
    return {name: values[name] for name in methods if name in values}


def reported_metrics(store: Store | None) -> tuple[str, ...]:
    """Return the metrics in the configuration of a store, or the default metrics of `Config`."""
    if store is None:
        return tuple(Config.metrics)
    return tuple(store.config.get("metrics") or Config.metrics)


def to_predictions(
    scores: RunScores, names: Sequence[str], *, uses_mean_prediction: bool
) -> Predictions:
    """Return the predictions of a run with the scores of methods that use a single prediction."""
    prediction = scores.prediction_for(uses_mean_prediction)
    return Predictions(
        prediction=prediction,
        labels=scores.labels,
        confidence={name: scores.confidence[name] for name in names},
        unknown_label=-1 if (scores.labels == -1).any() else None,
    )


def is_computable(metric: Metric) -> bool:
    """Return whether a metric requires only confidences, labels and predictions."""
    return metric.measurement.needs <= _MET


def needs_probabilities(metric: Metric) -> bool:
    """Return whether a metric requires confidences that are calibrated probabilities."""
    return Need.UNIT_CONFIDENCE in metric.measurement.needs


def _evaluate(
    predictions: Predictions, names: Sequence[str], metrics: Sequence[Metric]
) -> dict[str, dict[str, float | None]]:
    """Return the metrics of each method; a metric that cannot be computed is None."""
    values: dict[str, dict[str, float | None]] = {
        name: {metric.name: None for metric in metrics} for name in names
    }
    computable = [metric for metric in metrics if is_computable(metric)]
    for needs_calibration in (False, True):
        metric_names = [
            metric.name for metric in computable if needs_probabilities(metric) is needs_calibration
        ]
        if not metric_names:
            continue
        # A name selects the column of the predictions even if a registered score has that name.
        scores: list[Any] = list(names)
        if needs_calibration:
            scores = [calibrate(name, predictions, name=name + _CALIBRATED) for name in names]
        evaluation = evaluate(predictions, scores=scores, metrics=metric_names, interval="none")
        for result in evaluation.results:
            value = float(result.value)
            name = result.score.removesuffix(_CALIBRATED)
            values[name][result.metric.name] = value if isfinite(value) else None
    return values


#: Suffix of the names of calibrated scores.
_CALIBRATED: Final = "+platt"


def select_best_settings(
    runs: Sequence[StoredRun], metrics: Sequence[str]
) -> tuple[SelectedSetting, ...]:
    """Select the setting with the best mean validation metric for each method and metric.

    Examples
    --------
    >>> from abstain_bench.runs.store import Run
    >>> from abstain_bench.runs.selection import select_best_settings
    >>> from abstain_bench.runs.store import StoredRun
    >>> values = {("a", 0): 0.3, ("a", 1): 0.1, ("b", 0): 0.1, ("b", 1): 0.15}
    >>> runs = [
    ...     StoredRun(Run(f"{s}{i}", "arm", s, i), validation_values={"msr": {"augrc": v}})
    ...     for (s, i), v in values.items()
    ... ]
    >>> select_best_settings(runs, ["augrc"])[0].setting
    'b'
    """
    n_seeds = len({stored.run.seed for stored in runs})
    values_by_method = _values_by_method(runs)
    if not values_by_method:
        raise InputError(
            "no run has values on validation data, which select the settings; run the validation "
            "jobs first"
        )
    return tuple(
        _select_setting(metric, method, values, n_seeds)
        for metric in metrics
        for method, values in values_by_method.items()
    )


#: Values of a method by setting, seed and metric. An undefined value is None.
_Values = dict[_Setting, dict[int, Mapping[str, float | None]]]


def _values_by_method(runs: Sequence[StoredRun]) -> dict[str, _Values]:
    """Group the validation metrics of runs by method, setting and seed."""
    values_by_method: dict[str, _Values] = {}
    for stored in runs:
        run = stored.run
        for method, values in stored.validation_values.items():
            settings = values_by_method.setdefault(method, {})
            by_seed = settings.setdefault((run.arm, run.setting), {})
            if run.seed in by_seed:
                raise InputError(
                    f"two runs have the arm {run.arm!r}, the setting {run.setting!r} and the seed "
                    f"{run.seed}"
                )
            by_seed[run.seed] = values
    return values_by_method


def _select_setting(metric: str, method: str, values: _Values, n_seeds: int) -> SelectedSetting:
    """Select the setting with the best mean of a metric over the seeds, or the first if tied."""
    defined_values = {}
    for setting, by_seed in values.items():
        metric_values = [by_seed[seed].get(metric) for seed in sorted(by_seed)]
        defined_values[setting] = [value for value in metric_values if value is not None]
    means = {}
    for setting, metric_values_of_setting in defined_values.items():
        if metric_values_of_setting:
            total = fsum(metric_values_of_setting)
            means[setting] = total / len(metric_values_of_setting)
    labels = _setting_labels(values)
    mean_by_label = {labels[setting]: mean for setting, mean in means.items()}
    if not means:
        arm, label = max(values, key=lambda setting: len(values[setting]))
        note = f"{metric} is undefined on the validation data; the first setting is used"
        return SelectedSetting(metric, method, arm, label, float("nan"), mean_by_label, 0, note)
    # Only the settings with the largest number of values are compared.
    max_n_values = max(map(len, defined_values.values()))
    candidates = [setting for setting in means if len(defined_values[setting]) == max_n_values]
    sign = 1.0 if metric_named(metric).lower_is_better else -1.0
    best = min(candidates, key=lambda setting: sign * means[setting])
    arm, label = best
    excluded = [labels[setting] for setting in values if setting not in candidates]
    note = _selection_note(max_n_values, n_seeds, excluded)
    return SelectedSetting(
        metric, method, arm, label, means[best], mean_by_label, max_n_values, note
    )


def _setting_labels(values: _Values) -> dict[_Setting, str]:
    """Return a label for each setting, which includes the arm if there are several arms."""
    has_several_arms = len({arm for arm, _ in values}) > 1
    labels = {}
    for arm, label in values:
        labels[arm, label] = f"{arm} {label}".strip() if has_several_arms else label
    return labels


def _selection_note(n_values: int, n_seeds: int, excluded: Sequence[str]) -> str:
    """Return a note about missing seeds or excluded settings, or an empty string."""
    if n_values < n_seeds:
        return f"no setting has a value for each of the {n_seeds} seeds; selected by {n_values}"
    if not excluded:
        return ""
    return f"not considered, because seeds are missing: {', '.join(map(repr, excluded))}"
