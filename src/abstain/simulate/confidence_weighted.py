"""Compute the true CWSA and CWSA+ of a population at a threshold."""

from itertools import pairwise
from typing import Any

import numpy as np

from abstain._foundation import checks
from abstain.errors import DomainError, InputError
from abstain.simulate.blocks import BlockScores
from abstain.simulate.population import Population
from abstain.simulate.risk_curve import integrate_coverage
from abstain.typing import AnyArray, FloatArray


def expected_cwsa(population: Population, threshold: AnyArray) -> Any:
    r"""Compute the true CWSA of a population at a threshold, normalized by all samples.

    Parameters
    ----------
    population : Population
        A population of probabilities (`Population.probability`) with 0/1 loss.
    threshold : float or array of float
        Threshold in [0, 1).

    Returns
    -------
    float or ndarray
        CWSA, in [-1, 1]. The result has the shape of `threshold`.

    Raises
    ------
    InputError
        If the confidence is not a probability, or if the loss is not a 0/1 loss.
    DomainError
        If a threshold is outside [0, 1).

    Notes
    -----
    Let g be the confidence and tau the threshold. CWSA is ``E[(1 - 2 loss) (g - tau)_+]/(1 -
    tau)``. For populations from `block_scores`, a closed form is used. For other populations, the
    expectation is integrated numerically.

    Examples
    --------
    >>> from abstain import simulate
    >>> guesses = simulate.make("cwsa-random")
    >>> round(simulate.expected_cwsa(guesses, 0.9), 6)
    -0.02381
    """
    return _at_thresholds(population, threshold, plus=False)


def expected_cwsa_plus(population: Population, threshold: AnyArray) -> Any:
    """Compute the true CWSA+ of a population at a threshold, normalized by the accepted samples.

    Parameters
    ----------
    population : Population
        As in `expected_cwsa`.
    threshold : float or array of float
        Threshold in [0, 1).

    Returns
    -------
    float or ndarray
        CWSA+, in [0, 1], or NaN if no sample is accepted.

    Raises
    ------
    InputError, DomainError
        As in `expected_cwsa`.

    Notes
    -----
    With g and tau as in `expected_cwsa`, CWSA+ is ``E[(1 - loss) (g - tau)_+; g >= tau]/((1 - tau)
    P(g >= tau))``. It is computed as in `expected_cwsa`.

    Examples
    --------
    >>> from abstain import simulate
    >>> round(simulate.expected_cwsa_plus(simulate.make("cwsa-overconfident"), 0.9), 12)
    0.4
    """
    return _at_thresholds(population, threshold, plus=True)


def _at_thresholds(population: Population, threshold: AnyArray, *, plus: bool) -> Any:
    """Validate the population and the thresholds, and compute the metric at each threshold."""
    if not population.probability or not population.binary:
        raise InputError(
            f"`population` must have probabilities and 0/1 loss; {population.name!r} has not"
        )
    thresholds = np.asarray(threshold, dtype=np.float64)
    flat = checks.finite(checks.vector(thresholds.ravel(), "threshold"), "threshold")
    is_invalid = (flat < 0) | (flat >= 1)
    if is_invalid.any():
        raise DomainError(f"`threshold` must lie in [0, 1); got {flat[is_invalid][0]!r}")
    values = np.array([_at_threshold(population, float(t), plus=plus) for t in flat])
    return float(values[0]) if thresholds.ndim == 0 else values.reshape(thresholds.shape)


def _at_threshold(population: Population, threshold: float, *, plus: bool) -> float:
    """Compute CWSA at one threshold, or CWSA+ if `plus` is True."""
    coverage = float(population.coverage(threshold))
    if coverage <= 0:
        return float("nan") if plus else 0.0
    if isinstance(population, BlockScores):
        correct, wrong = _mean_excess_of_blocks(population, threshold)
    else:
        correct, wrong = _mean_excess_by_quadrature(population, threshold)
    if plus:
        return correct / (coverage * (1 - threshold))
    return (correct - wrong) / (1 - threshold)


def _mean_excess_of_blocks(blocks: BlockScores, threshold: float) -> tuple[float, float]:
    """Return E[(g - tau)_+] over correct and over wrong predictions, from the closed form."""
    squared_low = np.maximum(blocks.low - threshold, 0.0) ** 2
    squared_high = np.maximum(blocks.high - threshold, 0.0) ** 2
    width = blocks.high - blocks.low
    mean_excess = blocks.mass * (squared_high - squared_low) / (2 * width)
    return float(mean_excess @ (1 - blocks.risks)), float(mean_excess @ blocks.risks)


def _mean_excess_by_quadrature(population: Population, threshold: float) -> tuple[float, float]:
    """Return E[(g - tau)_+] over correct and over wrong predictions, by numerical integration."""
    curve = population.curve

    def excess(coverage: FloatArray, left: FloatArray) -> FloatArray:  # noqa: ARG001
        return np.maximum(np.asarray(population.threshold(coverage)) - threshold, 0.0)

    def accuracy_at(coverage: FloatArray) -> FloatArray:
        return np.asarray(1.0 - curve.margin(coverage))

    correct = 0.0
    wrong = 0.0
    for low, high in pairwise(curve.edges_between(0.0, float(population.coverage(threshold)))):
        correct += integrate_coverage(accuracy_at, excess, low, high)
        wrong += integrate_coverage(curve.margin, excess, low, high)
    return correct, wrong
