"""Every estimator on many samples at once, and how its values spread around the truth.

The weights come from `abstain.metrics`; a product of matrices applies them to all samples.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from abstain._foundation.tie_groups import TieGroups
from abstain.metrics import rank_weights
from abstain.metrics.rank_weights import trapezoid_weight
from abstain.typing import BoolArray, FloatArray, IntArray
from abstain_bench.studies._sources import OrderedBlock, Source
from abstain_bench.studies._words import AREA_ESTIMATORS

#: Draws behind each set of Monte-Carlo weights.
DRAWS: Final = 25

#: Weights that are drawn anew for each sample.
_DRAWN: Final = "monte-carlo"
#: Has a vertex only at distinct confidences, so that its weights depend on the ties.
_VERTICES: Final = "trapezoid"


def estimated(
    source: Source,
    estimators: tuple[str, ...],
    n: int,
    repeats: int,
    rng: np.random.Generator,
) -> dict[tuple[str, str], FloatArray]:
    """Return the estimates by (score, loss), shape (repeats, number of estimators).

    All scores, losses and estimators see the same samples.
    """
    parts: dict[tuple[str, str], list[FloatArray]] = {}
    for block in source.blocks(repeats, n, rng):
        count = next(iter(block.values())).confidence.shape[0]
        shared = {_DRAWN: _drawn(count, n, rng)} if _DRAWN in estimators else {}
        for score, found in block.items():
            weights = shared
            if _VERTICES in estimators:
                weights = {**shared, _VERTICES: _vertex_weights(found)}
            for loss in source.losses:
                values = estimates(found, loss, estimators, weights)
                parts.setdefault((score, loss), []).append(values)
    return {key: np.concatenate(values) for key, values in parts.items()}


def rows_of(
    source: Source, estimators: tuple[str, ...], n: int, repeats: int, rng: np.random.Generator
) -> Iterator[dict[str, Any]]:
    """Yield how each estimator does on samples of one size, a row for each score and loss."""
    for (score, loss), values in estimated(source, estimators, n, repeats, rng).items():
        truth = source.truth(score, loss)._asdict()
        about = {"data": source.name, "samples": source.kind, "loss": loss, "score": score}
        for i, name in enumerate(estimators):
            target = AREA_ESTIMATORS[name].target
            head = {"estimator": name, "target": target, "n": n, "repeats": repeats}
            numbers = spread(values[:, i], truth[target])
            yield {**about, **head, "truth": truth[target], **numbers}


def _drawn(count: int, n: int, rng: np.random.Generator) -> FloatArray:
    """Draw the Monte-Carlo weights of so many samples, each by itself."""
    return np.stack([rank_weights(n, _DRAWN, draws=DRAWS, rng=rng) for _ in range(count)])


def estimates(
    block: OrderedBlock,
    loss: str,
    estimators: tuple[str, ...],
    weights: Mapping[str, FloatArray],
) -> FloatArray:
    """Return the estimates of a block of samples, shape (b, number of estimators).

    `weights` has those that depend on more than the rank: the Monte-Carlo weights of each sample,
    and those of the trapezoid, shape (b, n).
    """
    values = block.loss[loss]
    count, n = values.shape
    averaged = values if block.tied is None else _tie_means(values, block.tied)
    out = np.empty((count, len(estimators)))
    for i, name in enumerate(estimators):
        closed: Any = name
        if name in weights:
            out[:, i] = (averaged * weights[name]).sum(axis=1)
        else:
            out[:, i] = averaged @ rank_weights(n, closed)
    found: FloatArray = out / n
    return found


def _vertex_weights(block: OrderedBlock) -> FloatArray:
    """Return the weights of the trapezoid, which has a vertex at distinct confidences only."""
    count, n = block.confidence.shape
    distinct = np.ones(n, dtype=np.int64)
    out = np.tile(_on_vertices(distinct), (count, 1))
    if block.tied is not None:
        for row in np.flatnonzero(block.tied.any(axis=1)):
            out[row] = _on_vertices(np.diff(np.flatnonzero(~block.tied[row]), append=n))
    return out


def _on_vertices(counts: IntArray) -> FloatArray:
    """Return the weight of each sample, least confident first, from the sizes of the ties."""
    down = counts[::-1]
    places = np.arange(down.size, 0.0, -1.0)
    groups = TieGroups(places, down.astype(np.float64), np.zeros(down.size))
    return np.repeat(trapezoid_weight(groups)[::-1], counts)


def _tie_means(values: FloatArray, tied: BoolArray) -> FloatArray:
    """Put the mean loss of a tie in the place of each of its losses.

    A product with rank weights then averages the weights over the tie, as the metrics do.
    """
    starts = np.flatnonzero(~tied.ravel())
    counts = np.diff(starts, append=tied.size)
    means = np.add.reduceat(values.ravel(), starts) / counts
    out: FloatArray = np.repeat(means, counts).reshape(values.shape)
    return out


def spread(values: FloatArray, truth: float) -> dict[str, float]:
    """Summarize estimates around the true value, each number with its Monte-Carlo standard error.

    Examples
    --------
    >>> import numpy as np
    >>> found = spread(np.array([1.0, 3.0]), 1.0)
    >>> found["bias"], found["mse"], found["mae"]
    (1.0, 2.0, 1.0)
    """
    repeats = values.size
    mean, sd = float(values.mean()), float(values.std(ddof=1))
    errors = values - truth
    root = np.sqrt(repeats)
    fourth = float((((values - mean) / sd) ** 4).mean()) if sd > 0 else 1.0
    of_sd = sd * np.sqrt(max(fourth - 1.0, 0.0)) / (2 * root)
    return {
        "mean": mean,
        "mean_se": sd / root,
        "sd": sd,
        "sd_se": float(of_sd),
        "bias": mean - truth,
        "bias_se": sd / root,
        "mse": float((errors**2).mean()),
        "mse_se": float((errors**2).std(ddof=1) / root),
        "mae": float(np.abs(errors).mean()),
        "mae_se": float(np.abs(errors).std(ddof=1) / root),
    }
