"""Metrics of the fine-tuned models, and paired differences from the reference."""

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
    """A metric with a loss by which models are compared."""

    loss: str
    metric: str
    title: str
    #: Names of the figure and of the column. A measure without them is in files only.
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
    loss: [m.metric for m in MEASURES if m.loss == loss] for loss in ("zero_one", "cross_entropy")
}
#: Metrics that are reported for each model but not compared.
_REPORTED_ONLY = (ACCURACY.name, NLL.name)

#: File of all test predictions.
PREDICTIONS_FILE = "predictions.npz"

#: Test predictions by objective and seed.
FinalPredictions = Mapping[tuple[str, int], Predictions]


def read_final_predictions(
    jobs: Mapping[tuple[str, int], Job], folder: Path
) -> dict[Any, Predictions]:
    """Read the test predictions of finished jobs."""
    return {key: read_predictions(job.path(folder, ".npz")).only() for key, job in jobs.items()}


def to_archive(predictions: Sequence[Predictions], **labels: Sequence[Any]) -> bytes:
    """Return predictions of several models as one archive.

    `labels` are additional columns, with one value for each element of `predictions`.
    """
    columns: dict[str, Any] = {"logits": np.concatenate([p.logits for p in predictions])}
    for name in ("labels", "ids", "group"):
        columns[name] = np.concatenate([_without_objects(getattr(p, name)) for p in predictions])
    for name, values in labels.items():
        repeated = [np.repeat(v, p.n) for v, p in zip(values, predictions, strict=True)]
        columns[name] = np.concatenate(repeated)
    content = io.BytesIO()
    np.savez_compressed(content, **columns)
    return content.getvalue()


def write_predictions(predictions: FinalPredictions, path: Path) -> Path:
    """Write all predictions as one archive that `abstain compare` splits by objective and seed."""
    names, seeds = zip(*predictions, strict=True)
    content = to_archive(
        list(predictions.values()), objective=names, seed=[str(seed) for seed in seeds]
    )
    write_atomically(path, content)
    return path


def _without_objects(values: Any) -> Array:
    """Convert an array of objects to text, because NumPy would store objects as pickles."""
    array = np.asarray(values)
    return array.astype(str) if array.dtype.kind == "O" else array


def evaluate_models(predictions: FinalPredictions) -> list[dict[str, Any]]:
    """Return each metric of each model as a row."""
    rows: list[dict[str, Any]] = []
    for (name, seed), model_predictions in predictions.items():
        for loss, compared in _METRICS.items():
            metrics = [*compared, *(_REPORTED_ONLY if loss == "zero_one" else ())]
            evaluation = evaluate(
                model_predictions, scores=[BASELINE], metrics=metrics, loss=loss, interval="none"
            )
            rows += [
                {
                    "objective": name,
                    "seed": seed,
                    "loss": loss,
                    "metric": result.metric.name,
                    "value": result.value,
                }
                for result in evaluation.results
            ]
    return rows


def values_by_objective(rows: Sequence[Row], loss: str, metric: str) -> dict[str, list[float]]:
    """Return the values of one metric for the seeds of each objective."""
    values: dict[str, list[float]] = {}
    for row in rows:
        if row["loss"] == loss and row["metric"] == metric:
            values.setdefault(row["objective"], []).append(row["value"])
    return values


@dataclass(frozen=True)
class ReferenceDifference:
    """One objective minus the reference on the same test samples, averaged over the seeds."""

    objective: str
    loss: str
    metric: str
    #: Means over the seeds.
    value: float
    reference: float
    #: Paired difference with the interval for new samples, given these models.
    difference: float
    difference_low: float
    difference_high: float
    #: Interval for new samples and new seeds, never narrower; NaN with one seed.
    new_seeds_low: float
    new_seeds_high: float
    #: p-value for new samples, and adjusted by Holm for the number of objectives.
    p_value: float
    adjusted_p_value: float
    better_seeds: int
    seeds: int
    lower_is_better: bool

    @property
    def measure(self) -> Measure:
        """The measure of the metric and the loss."""
        return next(m for m in MEASURES if (m.loss, m.metric) == (self.loss, self.metric))

    @property
    def verdict(self) -> str:
        """The result for new samples: "better", "worse" or "inconclusive"."""
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
        """The difference divided by the value of the reference."""
        return self.difference / self.reference if self.reference else math.nan


def compare_with_reference(
    predictions: FinalPredictions, rows: Sequence[Row], reference: str, *, clustered: bool
) -> list[ReferenceDifference]:
    """Compare every objective with the reference by every measure."""
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
    """Return a pair as the other method minus the reference."""
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
    """Return the differences of one metric, with p-values adjusted for all objectives."""
    adjusted = adjust([pair["p_value"] for pair in pairs])
    return [
        _reference_difference(pair, float(p_value), loss, values)
        for pair, p_value in zip(pairs, adjusted, strict=True)
    ]


def _reference_difference(
    pair: Row, adjusted_p_value: float, loss: str, values: Mapping[str, Sequence[float]]
) -> ReferenceDifference:
    reference_values = np.array(values[pair["reference"]])
    objective_values = np.array(values[pair["objective"]])
    by_seed = objective_values - reference_values
    low, high = new_seeds_interval(pair["difference"], pair["error"], by_seed.tolist())
    lower_is_better = METRICS[pair["metric"]].lower_is_better
    return ReferenceDifference(
        objective=pair["objective"],
        loss=loss,
        metric=pair["metric"],
        value=float(objective_values.mean()),
        reference=float(reference_values.mean()),
        difference=pair["difference"],
        difference_low=pair["low"],
        difference_high=pair["high"],
        # The interval for new samples takes few failures and heavy tails into account, which the
        # sum of variances does not. An interval that includes new seeds must not be narrower.
        new_seeds_low=float(np.minimum(low, pair["low"])),
        new_seeds_high=float(np.maximum(high, pair["high"])),
        p_value=pair["p_value"],
        adjusted_p_value=adjusted_p_value,
        better_seeds=int(np.sum((by_seed < 0) if lower_is_better else (by_seed > 0))),
        seeds=by_seed.size,
        lower_is_better=lower_is_better,
    )


def new_seeds_interval(
    difference: float, error: float, by_seed: Sequence[float]
) -> tuple[float, float]:
    """Compute a 95% interval for the mean difference on new samples *and* new seeds.

    Samples and seeds are crossed, so their variances add up: the variance of the mean over samples,
    given these seeds, and the variance of the mean over seeds, given these samples. Both include
    the interaction, so the interval is slightly too wide. The degrees of freedom follow
    Satterthwaite (1946).

    Parameters
    ----------
    difference, error : float
        Mean difference, and its standard error for new samples.
    by_seed : sequence of float
        Difference for each seed.

    Returns
    -------
    tuple of float
        Lower and upper bound; NaN with one seed.

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
    max_degrees = 1e9
    n_degrees = max_degrees
    if seed_variance > 0:
        n_degrees = min(variance**2 / seed_variance**2 * (n_seeds - 1), max_degrees)
    quantile = float(special.stdtrit(n_degrees, 0.975))
    half_width = quantile * math.sqrt(variance)
    return difference - half_width, difference + half_width
