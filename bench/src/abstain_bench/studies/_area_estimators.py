"""Measure the errors of estimators of the area under the risk-coverage curve.

`abstain.metrics` computes the weights of each estimator. For many samples at once, the estimates
are a matrix product of losses and weights.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from abstain._foundation.tie_groups import TieGroups
from abstain.metrics import rank_weights
from abstain.metrics.rank_weights import trapezoid_weight
from abstain.plots.series import Series
from abstain.typing import BoolArray, FloatArray, IntArray
from abstain_bench.studies._display import Row, column_series
from abstain_bench.studies._sources import OrderedBlock, SampleSource

PAPER_URL: Final = "https://arxiv.org/abs/2410.15361"


@dataclass(frozen=True)
class AreaEstimator:
    """An estimator of an area under the risk-coverage curve."""

    title: str
    #: Definition for the glossary.
    meaning: str = ""
    #: Name of the area whose true value is the reference.
    target: str = "aurc"
    #: Whether the estimate converges to the target as the sample grows.
    consistent: bool = True


#: Estimators by name. All figures assign colors in the order of this mapping.
AREA_ESTIMATORS: Final = {
    "plugin": AreaEstimator(
        "plug-in",
        "Weights H_n - H_{n-r} with the harmonic numbers H, for the sample of rank r among n: the "
        "mean selective risk over all n coverages.",
    ),
    "log": AreaEstimator("log", "Weights -ln(1 - r/(n + 1))."),
    "monte-carlo": AreaEstimator(
        "Monte-Carlo",
        "Weights -ln(1 - u), averaged over sampled population ranks u of the n samples. They "
        "converge to the plug-in weights as the number of draws grows.",
    ),
    "trapezoid": AreaEstimator(
        "trapezoid",
        "Linear interpolation between the distinct thresholds, with constant risk down to "
        "coverage 0, as in FD-Shifts.",
    ),
    "sele": AreaEstimator(
        "SELE", "Weights r/n. They converge to the AUGRC, not to the AURC.", consistent=False
    ),
    "2sele": AreaEstimator(
        "2 x SELE", "Twice SELE, proposed as an upper bound of the AURC.", consistent=False
    ),
    "augrc": AreaEstimator("AUGRC (vs AUGRC)", target="augrc"),
}

#: Names of the estimators that do not converge to the AURC.
INCONSISTENT: Final = frozenset(
    name for name, estimator in AREA_ESTIMATORS.items() if not estimator.consistent
)

ESTIMATOR_TITLES: Final = {name: estimator.title for name, estimator in AREA_ESTIMATORS.items()}
COLOR_ORDER: Final = tuple(ESTIMATOR_TITLES.values())

GLOSSARY: Final = {
    "AURC": (
        "Area under the selective risk-coverage curve: the mean loss of the accepted samples, "
        "averaged over all coverages. Population value: E[loss x -ln(1 - u)]."
    ),
    "AUGRC": (
        "Area under the generalized risk-coverage curve: E[loss x u]. It differs from the AURC, so "
        "its estimator is compared with the true AUGRC."
    ),
    "Rank u": "Share of the population with a confidence of at most that of the sample, 0 to 1.",
    **{
        estimator.title: estimator.meaning
        for estimator in AREA_ESTIMATORS.values()
        if estimator.meaning
    },
    "Bias": "Mean of the estimates minus the true value.",
    "SD": "Standard deviation of the estimates over repeated samples.",
    "MSE": "Mean squared error: squared bias plus variance.",
    "RMSE": "Square root of the mean squared error, in the unit of the estimate.",
    "MAE": "Mean absolute error.",
    "Scale": "u/(n(1 - u) + 1): the order of the squared error of a weight if u is not near 1.",
    "±": "Monte-Carlo standard error: the standard deviation over runs with different seeds.",
    "CSF": "Confidence scoring function: computes the confidence from the class scores.",
}

_LOSS_TITLES: Final = {
    "zero_one": "0/1 error",
    "cross_entropy": "cross-entropy",
    "own": "own loss",
}


def loss_title(loss: str) -> str:
    """Return the display title of a loss."""
    return _LOSS_TITLES.get(loss, loss)


def augrc_from_factors(
    accuracy: FloatArray | float, failure_auroc: FloatArray | float
) -> FloatArray:
    """Compute the AUGRC from accuracy and failure AUROC (equation 7 of the AUGRC paper).

    Examples
    --------
    >>> augrc_from_factors(0.9, [0.5, 0.8, 1.0]).round(4).tolist()
    [0.05, 0.023, 0.005]
    """
    accuracy = np.asarray(accuracy, dtype=np.float64)
    auroc = np.asarray(failure_auroc, dtype=np.float64)
    area_of_misranked_pairs = (1 - auroc) * accuracy * (1 - accuracy)
    return np.asarray(area_of_misranked_pairs + (1 - accuracy) ** 2 / 2)


def estimator_series(
    rows: Sequence[Row],
    y: str,
    panel: Callable[[Row], str],
    *,
    x: str = "n",
    half_width: str = "",
) -> tuple[Series, ...]:
    """Plot column `y` against column `x`, with a line per combination of panel and estimator.

    `panel` returns the panel title of a row. If `half_width` is set, it names the column that
    contains the half-widths of the bands.
    """
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((panel(row), row["estimator"]), []).append(row)
    return tuple(
        column_series(ESTIMATOR_TITLES[name], group, x, y, half_width=half_width, panel=title)
        for (title, name), group in groups.items()
    )


# ------------------------------------------------------------------------ errors on samples
#: Number of draws over which the Monte-Carlo weights of a sample are averaged.
DRAWS: Final = 25

#: Estimator whose weights are random. Each sample has independently drawn weights.
_MONTE_CARLO: Final = "monte-carlo"
#: Estimator whose weights depend on the tied confidences of a sample.
_TRAPEZOID: Final = "trapezoid"


def estimate_areas(
    source: SampleSource,
    estimators: tuple[str, ...],
    n: int,
    repeats: int,
    rng: np.random.Generator,
) -> dict[tuple[str, str], FloatArray]:
    """Estimate the areas on `repeats` random samples of size `n`.

    The same samples are used for all scores, losses and estimators.

    Returns
    -------
    dict
        Estimates for each pair of score and loss, as an array of shape (repeats, number of
        estimators).
    """
    estimates: dict[tuple[str, str], list[FloatArray]] = {}
    for block_by_score in source.blocks(repeats, n, rng):
        n_samples = next(iter(block_by_score.values())).confidence.shape[0]
        weights = {}
        if _MONTE_CARLO in estimators:
            weights[_MONTE_CARLO] = np.stack(
                [rank_weights(n, _MONTE_CARLO, draws=DRAWS, rng=rng) for _ in range(n_samples)]
            )
        for score, block in block_by_score.items():
            if _TRAPEZOID in estimators:
                weights[_TRAPEZOID] = _trapezoid_weights(block)
            for loss in source.losses:
                block_estimates = apply_estimators(block, loss, estimators, weights)
                estimates.setdefault((score, loss), []).append(block_estimates)
    return {key: np.concatenate(blocks) for key, blocks in estimates.items()}


def error_rows(
    source: SampleSource,
    estimators: tuple[str, ...],
    n: int,
    repeats: int,
    rng: np.random.Generator,
) -> Iterator[dict[str, Any]]:
    """Yield a table row with errors for each combination of score, loss and estimator."""
    for (score, loss), estimates in estimate_areas(source, estimators, n, repeats, rng).items():
        true_values = source.true_areas(score, loss)._asdict()
        for i, estimator in enumerate(estimators):
            target = AREA_ESTIMATORS[estimator].target
            yield {
                "data": source.name,
                "samples": source.kind,
                "loss": loss,
                "score": score,
                "estimator": estimator,
                "target": target,
                "n": n,
                "repeats": repeats,
                "truth": true_values[target],
                **error_summary(estimates[:, i], true_values[target]),
            }


def apply_estimators(
    block: OrderedBlock,
    loss: str,
    estimators: tuple[str, ...],
    weights: Mapping[str, FloatArray],
) -> FloatArray:
    """Compute the estimates of a block of b samples, each of size n.

    `weights` contains weights of shape (b, n) for the estimators whose weights depend on more than
    the rank.

    Returns
    -------
    array of shape (b, number of estimators)
    """
    losses = block.loss[loss]
    n_samples, n = losses.shape
    # The metrics average the weights within a tie group. Averaged losses give the same sums.
    if block.is_tied_with_previous is not None:
        losses = _average_over_ties(losses, block.is_tied_with_previous)
    sums = np.empty((n_samples, len(estimators)))
    for i, name in enumerate(estimators):
        estimator: Any = name
        if name in weights:
            sums[:, i] = (losses * weights[name]).sum(axis=1)
        else:
            sums[:, i] = losses @ rank_weights(n, estimator)
    estimates: FloatArray = sums / n
    return estimates


def _trapezoid_weights(block: OrderedBlock) -> FloatArray:
    """Compute the weights of the trapezoidal rule for b samples, as an array of shape (b, n)."""
    n_samples, n = block.confidence.shape
    weights_without_ties = _trapezoid_weights_of_groups(np.ones(n, dtype=np.int64))
    weights = np.tile(weights_without_ties, (n_samples, 1))
    if block.is_tied_with_previous is not None:
        is_tied = block.is_tied_with_previous
        for row in np.flatnonzero(is_tied.any(axis=1)):
            group_sizes = np.diff(np.flatnonzero(~is_tied[row]), append=n)
            weights[row] = _trapezoid_weights_of_groups(group_sizes)
    return weights


def _trapezoid_weights_of_groups(group_sizes: IntArray) -> FloatArray:
    """Compute trapezoidal weights from tie-group sizes, sorted by ascending confidence."""
    sizes_descending = group_sizes[::-1]
    confidence = np.arange(group_sizes.size, 0.0, -1.0)
    groups = TieGroups(confidence, sizes_descending.astype(np.float64), np.zeros(group_sizes.size))
    return np.repeat(trapezoid_weight(groups)[::-1], group_sizes)


def _average_over_ties(losses: FloatArray, is_tied_with_previous: BoolArray) -> FloatArray:
    """Replace each loss by the mean loss of its tie group."""
    starts = np.flatnonzero(~is_tied_with_previous.ravel())
    group_sizes = np.diff(starts, append=is_tied_with_previous.size)
    means = np.add.reduceat(losses.ravel(), starts) / group_sizes
    averaged: FloatArray = np.repeat(means, group_sizes).reshape(losses.shape)
    return averaged


def error_summary(estimates: FloatArray, true_value: float) -> dict[str, float]:
    """Compute bias, SD, MSE and MAE of estimates, each with its Monte-Carlo standard error.

    Examples
    --------
    >>> import numpy as np
    >>> summary = error_summary(np.array([1.0, 3.0]), 1.0)
    >>> summary["bias"], summary["mse"], summary["mae"]
    (1.0, 2.0, 1.0)
    """
    mean = float(estimates.mean())
    sd = float(estimates.std(ddof=1))
    errors = estimates - true_value
    root_n = np.sqrt(estimates.size)
    kurtosis = float((((estimates - mean) / sd) ** 4).mean()) if sd > 0 else 1.0
    sd_error = sd * np.sqrt(max(kurtosis - 1.0, 0.0)) / (2 * root_n)
    squared_errors = errors**2
    absolute_errors = np.abs(errors)
    return {
        "mean": mean,
        "mean_se": sd / root_n,
        "sd": sd,
        "sd_se": float(sd_error),
        "bias": mean - true_value,
        "bias_se": sd / root_n,
        "mse": float(squared_errors.mean()),
        "mse_se": float(squared_errors.std(ddof=1) / root_n),
        "mae": float(absolute_errors.mean()),
        "mae_se": float(absolute_errors.std(ddof=1) / root_n),
    }
