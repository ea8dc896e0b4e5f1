"""Evaluate fine-tuned models, and compare them with the reference objective."""

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from abstain._foundation.files import write_atomically
from abstain._foundation.lazy_imports import special
from abstain.confidence.registry import BASELINE
from abstain.evaluation import compare, evaluate
from abstain.evaluation.comparison import PairedDifference
from abstain.inference.multiplicity import adjust
from abstain.metrics import METRICS
from abstain.metrics.areas.augrc import AUGRC, CLASSIFIER_TERM, RANKING_TERM
from abstain.metrics.areas.aurc import PLUG_IN
from abstain.metrics.classifier import ACCURACY, NLL
from abstain.predictions import Predictions
from abstain.tables import read_predictions
from abstain.typing import Array, Split
from abstain_bench.runs.jobs import Job
from abstain_bench.studies._display import Row


@dataclass(frozen=True)
class Measure:
    """A metric and a loss function by which models are compared."""

    loss: str
    metric: str
    title: str
    #: Names of the figure and of the table column. If empty, only the table "differences" contains
    #: the measure.
    figure: str = ""
    column: str = ""


MEASURES = (
    Measure("zero_one", PLUG_IN.name, "AURC", "aurc", "AURC_x1000"),
    Measure("zero_one", AUGRC.name, "AUGRC", "augrc", "AUGRC_x1000"),
    Measure("zero_one", RANKING_TERM.name, "AUGRC, ranking term", "augrc-ranking"),
    Measure("zero_one", CLASSIFIER_TERM.name, "AUGRC, classifier term", "augrc-classifier"),
    Measure(
        "cross_entropy",
        PLUG_IN.name,
        "AURC of the cross-entropy",
        "aurc-cross-entropy",
        "AURC_of_CE_x1000",
    ),
    Measure("cross_entropy", AUGRC.name, "AUGRC of the cross-entropy"),
)
#: Compared metrics by loss.
_METRICS = {
    loss: [measure.metric for measure in MEASURES if measure.loss == loss]
    for loss in ("zero_one", "cross_entropy")
}
#: Metrics that are reported but not compared.
_REPORTED_ONLY = (ACCURACY.name, NLL.name)

#: Name of the file with all test predictions.
PREDICTIONS_FILE = "predictions.npz"

#: Mapping from pairs of objective and seed to test predictions.
FinalPredictions = Mapping[tuple[str, int], Predictions]


def read_final_predictions(
    jobs: Mapping[tuple[str, int], Job], folder: Path
) -> dict[Any, Predictions]:
    """Read the predictions of finished jobs for the test data."""
    return {key: read_predictions(job.path(folder, ".npz")).only() for key, job in jobs.items()}


def to_archive(predictions: Sequence[Predictions], **labels: Sequence[Any]) -> bytes:
    """Write the predictions of several models to an archive in memory and return it as bytes.

    `labels` contains additional columns, with a value for each model.
    """
    logits = [model.logits for model in predictions]
    columns: dict[str, Any] = {"logits": np.concatenate(logits)}
    for name in ("labels", "ids", "group"):
        arrays = [_without_objects(getattr(model, name)) for model in predictions]
        columns[name] = np.concatenate(arrays)
    for name, values in labels.items():
        repeated = [
            np.repeat(value, model.n) for value, model in zip(values, predictions, strict=True)
        ]
        columns[name] = np.concatenate(repeated)
    content = io.BytesIO()
    np.savez_compressed(content, **columns)
    return content.getvalue()


def write_predictions(predictions: FinalPredictions, path: Path) -> Path:
    """Write all predictions to one archive with columns for objective and seed."""
    names, seeds = zip(*predictions, strict=True)
    content = to_archive(
        list(predictions.values()), objective=names, seed=[str(seed) for seed in seeds]
    )
    write_atomically(path, content)
    return path


def _without_objects(values: Any) -> Array:
    """Convert an object array to text, because NumPy would pickle the objects."""
    array = np.asarray(values)
    return array.astype(str) if array.dtype.kind == "O" else array


def evaluate_models(predictions: FinalPredictions) -> list[dict[str, Any]]:
    """Return a row for each combination of model, loss and metric."""
    rows: list[dict[str, Any]] = []
    for (name, seed), model_predictions in predictions.items():
        for loss, compared in _METRICS.items():
            reported_only = _REPORTED_ONLY if loss == "zero_one" else ()
            metrics = [*compared, *reported_only]
            evaluation = evaluate(
                model_predictions, scores=[BASELINE], metrics=metrics, loss=loss, interval="none"
            )
            model = {"objective": name, "seed": seed, "loss": loss}
            rows += [
                {**model, "metric": result.metric.name, "value": result.value}
                for result in evaluation.results
            ]
    return rows


def values_by_objective(rows: Sequence[Row], loss: str, metric: str) -> dict[str, list[float]]:
    """Return the values of a metric for all seeds by objective."""
    values: dict[str, list[float]] = {}
    for row in rows:
        if row["loss"] == loss and row["metric"] == metric:
            values.setdefault(row["objective"], []).append(row["value"])
    return values


@dataclass(frozen=True)
class ReferenceDifference:
    """Paired difference of an objective from the reference, averaged over seeds."""

    objective: str
    loss: str
    metric: str
    #: Means over the seeds of the metric of the objective and of the reference.
    value: float
    reference: float
    #: Objective minus reference on the same test samples.
    difference: float
    #: Bounds of the interval for new samples and the trained models of this run.
    difference_low: float
    difference_high: float
    #: Bounds of the interval for new samples and new seeds. NaN for a single seed.
    new_seeds_low: float
    new_seeds_high: float
    #: p-value for new samples.
    p_value: float
    #: The same p-value with Holm's adjustment for the number of objectives.
    adjusted_p_value: float
    #: Number of seeds for which the objective is better than the reference.
    better_seeds: int
    seeds: int
    lower_is_better: bool

    @property
    def measure(self) -> Measure:
        """Entry of `MEASURES` with the metric and the loss of the difference."""
        return next(
            measure
            for measure in MEASURES
            if measure.loss == self.loss and measure.metric == self.metric
        )

    @property
    def verdict(self) -> str:
        """Verdict for new samples, which is "better", "worse" or "inconclusive"."""
        sign = 1 if self.lower_is_better else -1
        low, high = sorted((sign * self.difference_low, sign * self.difference_high))
        if high < 0:
            return "better"
        return "worse" if low > 0 else "inconclusive"

    @property
    def is_zero_in_new_seeds_interval(self) -> bool:
        """Whether the interval for new samples and new seeds contains 0."""
        return self.new_seeds_low <= 0 <= self.new_seeds_high

    @property
    def relative(self) -> float:
        """Difference divided by the metric of the reference, or NaN if this metric is 0."""
        return self.difference / self.reference if self.reference else math.nan


def compare_with_reference(
    predictions: FinalPredictions, rows: Sequence[Row], reference: str, *, clustered: bool
) -> list[ReferenceDifference]:
    """Compute the paired difference of each objective from the reference for every metric."""
    data: dict[Split, Predictions] = {
        (("objective", name), ("seed", str(seed))): model_predictions
        for (name, seed), model_predictions in predictions.items()
    }
    has_several_seeds = len({seed for _, seed in predictions}) > 1
    if not has_several_seeds:
        data = {(split[0],): model_predictions for split, model_predictions in data.items()}
    differences: list[ReferenceDifference] = []
    for loss, metrics in _METRICS.items():
        comparison = compare(
            data,
            scores=[BASELINE],
            metrics=metrics,
            loss=loss,
            methods="objective",
            runs="seed" if has_several_seeds else None,
            clustered=clustered,
            adjustment="none",
        )
        for metric in metrics:
            pairs = [
                _orient_pair(pair, reference)
                for pair in comparison.pairs
                if pair.metric == metric
                and pair.data is not None
                and reference in {pair.first, pair.second}
            ]
            differences += _adjust_together(pairs, loss, values_by_objective(rows, loss, metric))
    return differences


def _orient_pair(pair: PairedDifference, reference: str) -> dict[str, Any]:
    """Convert a paired difference to the difference of the objective minus the reference."""
    is_reference_second = pair.second == reference
    return {
        "objective": pair.first if is_reference_second else pair.second,
        "reference": reference,
        "metric": pair.metric,
        "difference": pair.difference if is_reference_second else -pair.difference,
        "low": pair.low if is_reference_second else -pair.high,
        "high": pair.high if is_reference_second else -pair.low,
        "error": pair.standard_error,
        "p_value": pair.p_value,
    }


def _adjust_together(
    pairs: Sequence[Row], loss: str, values: Mapping[str, Sequence[float]]
) -> list[ReferenceDifference]:
    """Adjust the p-values of a metric for the number of compared objectives."""
    adjusted = adjust([pair["p_value"] for pair in pairs])
    return [
        _reference_difference(pair, float(p_value), loss, values)
        for pair, p_value in zip(pairs, adjusted, strict=True)
    ]


def _reference_difference(
    pair: Row, adjusted_p_value: float, loss: str, values: Mapping[str, Sequence[float]]
) -> ReferenceDifference:
    """Add the confidence interval for new samples and new seeds to a paired difference."""
    reference_values = np.array(values[pair["reference"]])
    objective_values = np.array(values[pair["objective"]])
    by_seed = objective_values - reference_values
    low, high = new_seeds_interval(pair["difference"], pair["error"], by_seed.tolist())
    lower_is_better = METRICS[pair["metric"]].lower_is_better
    is_better = by_seed < 0 if lower_is_better else by_seed > 0
    return ReferenceDifference(
        objective=pair["objective"],
        loss=loss,
        metric=pair["metric"],
        value=float(objective_values.mean()),
        reference=float(reference_values.mean()),
        difference=pair["difference"],
        difference_low=pair["low"],
        difference_high=pair["high"],
        # The sum of variances ignores heavy tails and small numbers of failures. The interval for
        # new samples and seeds therefore includes the interval for new samples.
        new_seeds_low=float(np.minimum(low, pair["low"])),
        new_seeds_high=float(np.maximum(high, pair["high"])),
        p_value=pair["p_value"],
        adjusted_p_value=adjusted_p_value,
        better_seeds=int(np.sum(is_better)),
        seeds=by_seed.size,
        lower_is_better=lower_is_better,
    )


#: Degrees of freedom for which the t distribution equals the normal distribution numerically.
_MAX_DEGREES_OF_FREEDOM = 1e9


def new_seeds_interval(
    difference: float, error: float, by_seed: Sequence[float]
) -> tuple[float, float]:
    """Compute a 95% confidence interval of the mean difference for new samples and new seeds.

    The variance is the sum of the variance over samples with fixed seeds and the variance over
    seeds with fixed samples. The interaction is counted in both terms, so the interval is slightly
    too wide. The degrees of freedom are computed by the method of Satterthwaite (1946).

    Parameters
    ----------
    difference, error : float
        Mean difference over seeds, and its standard error over samples.
    by_seed : sequence of float
        Difference for each seed.

    Returns
    -------
    low, high : float
        Bounds of the interval. NaN for a single seed.

    Examples
    --------
    >>> low, high = new_seeds_interval(-0.2, 0.1, [-0.1, -0.2, -0.3])
    >>> round(low, 3), round(high, 3)
    (-0.435, 0.035)
    """
    n_seeds = len(by_seed)
    if n_seeds < 2:
        return math.nan, math.nan
    seed_variance = float(np.var(by_seed, ddof=1)) / n_seeds
    variance = error**2 + seed_variance
    if variance == 0:
        return difference, difference
    # Without a variance between seeds, the quantile is that of the normal distribution.
    degrees_of_freedom = _MAX_DEGREES_OF_FREEDOM
    if seed_variance > 0:
        satterthwaite = variance**2 / seed_variance**2 * (n_seeds - 1)
        degrees_of_freedom = min(satterthwaite, _MAX_DEGREES_OF_FREEDOM)
    t_quantile = float(special.stdtrit(degrees_of_freedom, 0.975))
    half_width = t_quantile * math.sqrt(variance)
    return difference - half_width, difference + half_width
