"""CWSA and CWSA+ of a population: what a sample's confidence is worth above a threshold."""

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
    r"""Compute the CWSA of a population, divided by the number of all samples.

    Answers: what would CWSA be at this threshold with endless data?

    Parameters
    ----------
    population : Population
        Of probabilities (`Population.probability`) and a 0/1 loss.
    threshold : float or array of float
        In [0, 1).

    Returns
    -------
    float or ndarray
        In [-1, 1]; a float for a number, an array for an array.

    Raises
    ------
    InputError
        If the confidence is no probability, or the loss not 0 or 1.
    DomainError
        If a threshold lies outside [0, 1).

    Notes
    -----
    ``E[(1 - 2 loss) (g - tau)_+]/(1 - tau)``. For `block_scores` in closed form: an interval from
    a to b adds its mass times one minus twice its risk times the mean ramp, which is
    ``((b - tau)² - (a - tau)²)/(2 (b - a))`` where it lies above the threshold. Elsewhere by
    quadrature over coverages. By parts it is the mean over all t from tau to 1 of the share that
    is accepted at t and right, less the share that is accepted and wrong.

    Examples
    --------
    >>> from abstain import simulate
    >>> guesses = simulate.make("cwsa-random")
    >>> round(simulate.expected_cwsa(guesses, 0.9), 6)
    -0.02381
    """
    return _expected_by_threshold(population, threshold, plus=False)


def expected_cwsa_plus(population: Population, threshold: AnyArray) -> Any:
    """Compute the CWSA+ of a population, divided by the number accepted.

    Answers: what would CWSA+ be at this threshold with endless data?

    Parameters
    ----------
    population : Population
        As in `expected_cwsa`.
    threshold : float or array of float
        In [0, 1).

    Returns
    -------
    float or ndarray
        In [0, 1]; NaN where nothing is accepted.

    Raises
    ------
    InputError, DomainError
        As in `expected_cwsa`.

    Notes
    -----
    ``E[(1 - loss) (g - tau)_+; g >= tau]/((1 - tau) P(g >= tau))``, computed as `expected_cwsa`.

    Examples
    --------
    >>> from abstain import simulate
    >>> round(simulate.expected_cwsa_plus(simulate.make("cwsa-overconfident"), 0.9), 12)
    0.4
    """
    return _expected_by_threshold(population, threshold, plus=True)


def _expected_by_threshold(population: Population, threshold: AnyArray, *, plus: bool) -> Any:
    if not (population.probability and population.is_binary):
        raise InputError(
            f"`population` must be of probabilities and failures; {population.name!r} is not"
        )
    source = np.asarray(threshold, dtype=np.float64)
    thresholds = checks.finite(checks.vector(source.ravel(), "threshold"), "threshold")
    if not ((thresholds >= 0) & (thresholds < 1)).all():
        raise DomainError(
            "`threshold` must lie in [0, 1); got "
            f"{thresholds[(thresholds < 0) | (thresholds >= 1)][0]!r}"
        )
    values = np.array([_expected_at(population, float(t), plus=plus) for t in thresholds])
    return float(values[0]) if source.ndim == 0 else values.reshape(source.shape)


def _expected_at(population: Population, threshold: float, *, plus: bool) -> float:
    accepted = float(population.coverage(threshold))
    if accepted <= 0:
        return float("nan") if plus else 0.0
    blocks = isinstance(population, BlockScores)
    ramp = _ramp_of_blocks if blocks else _ramp_by_coverage
    success_ramp, failure_ramp = ramp(population, threshold)
    return (
        success_ramp / (accepted * (1 - threshold))
        if plus
        else (success_ramp - failure_ramp) / (1 - threshold)
    )


def _ramp_of_blocks(blocks: Any, threshold: float) -> tuple[float, float]:
    """E[(g - tau)_+] of what is right, and of what is wrong, in closed form."""
    above = [np.maximum(end - threshold, 0.0) ** 2 for end in (blocks.low, blocks.high)]
    mean_ramp = blocks.mass * (above[1] - above[0]) / (2 * (blocks.high - blocks.low))
    return float(mean_ramp @ (1 - blocks.risks)), float(mean_ramp @ blocks.risks)


def _ramp_by_coverage(population: Any, threshold: float) -> tuple[float, float]:
    """Sum the same over coverages, between which nothing jumps or bends."""
    curve, end = population.curve, float(population.coverage(threshold))
    edges = {0.0, end, *curve.breaks, *(edge for tie in curve.ties for edge in tie)}

    def excess(coverage: FloatArray, left: FloatArray) -> FloatArray:  # noqa: ARG001
        return np.maximum(np.asarray(population.threshold(coverage)) - threshold, 0.0)

    def accuracy_at(coverage: FloatArray) -> FloatArray:
        return np.asarray(1.0 - curve.margin_loss(coverage))

    pieces = list(pairwise(sorted(edge for edge in edges if edge <= end)))
    success_ramp, failure_ramp = (
        sum(integrate_coverage(share, excess, low, high) for low, high in pieces)
        for share in (accuracy_at, curve.margin_loss)
    )
    return float(success_ramp), float(failure_ramp)
