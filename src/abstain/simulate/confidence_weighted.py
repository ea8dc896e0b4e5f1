"""Expected CWSA and CWSA+ of a population at a threshold."""

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
        CWSA, in [-1, 1]. The result is a float for a number, and an array for an array.

    Raises
    ------
    InputError
        If the confidence is not a probability, or if the loss is not a 0/1 loss.
    DomainError
        If a threshold is outside [0, 1).

    Notes
    -----
    CWSA is ``E[(1 - 2 loss) (g - tau)_+]/(1 - tau)``. For `block_scores`, it has a closed form. An
    interval from a to b contributes its mass times (1 - 2 risk) times the mean ramp. Above the
    threshold, the mean ramp is ``((b - tau)² - (a - tau)²)/(2 (b - a))``. For other populations,
    the expectation is integrated numerically over coverages. Integration by parts shows that CWSA
    is a mean over thresholds t from tau to 1. It is the mean share of samples that are accepted at
    t and correct, minus the share of samples that are accepted and wrong.

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
    CWSA+ is ``E[(1 - loss) (g - tau)_+; g >= tau]/((1 - tau) P(g >= tau))``. It is computed as in
    `expected_cwsa`.

    Examples
    --------
    >>> from abstain import simulate
    >>> round(simulate.expected_cwsa_plus(simulate.make("cwsa-overconfident"), 0.9), 12)
    0.4
    """
    return _at_thresholds(population, threshold, plus=True)


def _at_thresholds(population: Population, threshold: AnyArray, *, plus: bool) -> Any:
    """Validate the population and the thresholds, and compute the metric at each threshold."""
    if not (population.probability and population.binary):
        raise InputError(
            f"`population` must have probabilities and 0/1 loss; {population.name!r} has not"
        )
    thresholds = np.asarray(threshold, dtype=np.float64)
    flat = checks.finite(checks.vector(thresholds.ravel(), "threshold"), "threshold")
    if not ((flat >= 0) & (flat < 1)).all():
        raise DomainError(
            f"`threshold` must lie in [0, 1); got {flat[(flat < 0) | (flat >= 1)][0]!r}"
        )
    values = np.array([_at_threshold(population, float(t), plus=plus) for t in flat])
    return float(values[0]) if thresholds.ndim == 0 else values.reshape(thresholds.shape)


def _at_threshold(population: Population, threshold: float, *, plus: bool) -> float:
    accepted = float(population.coverage(threshold))
    if accepted <= 0:
        return float("nan") if plus else 0.0
    blocks = isinstance(population, BlockScores)
    ramp = _ramp_means_of_blocks if blocks else _ramp_means_by_quadrature
    correct, wrong = ramp(population, threshold)
    return correct / (accepted * (1 - threshold)) if plus else (correct - wrong) / (1 - threshold)


def _ramp_means_of_blocks(blocks: Any, threshold: float) -> tuple[float, float]:
    """Return E[(g - tau)_+] of correct and of wrong predictions from its closed form."""
    squared_excess = [np.maximum(end - threshold, 0.0) ** 2 for end in (blocks.low, blocks.high)]
    ramp_means = (
        blocks.mass * (squared_excess[1] - squared_excess[0]) / (2 * (blocks.high - blocks.low))
    )
    return float(ramp_means @ (1 - blocks.risks)), float(ramp_means @ blocks.risks)


def _ramp_means_by_quadrature(population: Any, threshold: float) -> tuple[float, float]:
    """Return E[(g - tau)_+] of correct and of wrong predictions from numerical integration."""
    curve, max_coverage = population.curve, float(population.coverage(threshold))
    edges = {0.0, max_coverage, *curve.breaks, *(edge for tie in curve.ties for edge in tie)}

    def excess(coverage: FloatArray, left: FloatArray) -> FloatArray:  # noqa: ARG001
        return np.maximum(np.asarray(population.threshold(coverage)) - threshold, 0.0)

    def accuracy_at(coverage: FloatArray) -> FloatArray:
        return np.asarray(1.0 - curve.margin(coverage))

    pieces = list(pairwise(sorted(edge for edge in edges if edge <= max_coverage)))
    correct, wrong = (
        sum(integrate_coverage(share, excess, low, high) for low, high in pieces)
        for share in (accuracy_at, curve.margin)
    )
    return float(correct), float(wrong)
