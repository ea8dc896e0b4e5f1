"""CWSA and CWSA+ of a population: what a sample's confidence is worth above a threshold."""

from itertools import pairwise
from typing import Any

import numpy as np

from abstain._foundation import checks
from abstain.errors import DomainError, InputError
from abstain.simulate.blocks import BlockScores
from abstain.simulate.population import Population
from abstain.simulate.risk_curve import over_coverage
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
    return _of_each(population, threshold, plus=False)


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
    return _of_each(population, threshold, plus=True)


def _of_each(population: Population, threshold: AnyArray, *, plus: bool) -> Any:
    if not (population.probability and population.binary):
        raise InputError(
            f"`population` must be of probabilities and failures; {population.name!r} is not"
        )
    given = np.asarray(threshold, dtype=np.float64)
    at = checks.finite(checks.vector(given.ravel(), "threshold"), "threshold")
    if not ((at >= 0) & (at < 1)).all():
        raise DomainError(f"`threshold` must lie in [0, 1); got {at[(at < 0) | (at >= 1)][0]!r}")
    found = np.array([_at(population, float(t), plus=plus) for t in at])
    return float(found[0]) if given.ndim == 0 else found.reshape(given.shape)


def _at(population: Population, threshold: float, *, plus: bool) -> float:
    accepted = float(population.coverage(threshold))
    if accepted <= 0:
        return float("nan") if plus else 0.0
    blocks = isinstance(population, BlockScores)
    ramp = _ramp_of_blocks if blocks else _ramp_by_coverage
    right, wrong = ramp(population, threshold)
    return right / (accepted * (1 - threshold)) if plus else (right - wrong) / (1 - threshold)


def _ramp_of_blocks(blocks: Any, threshold: float) -> tuple[float, float]:
    """E[(g - tau)_+] of what is right, and of what is wrong, in closed form."""
    above = [np.maximum(end - threshold, 0.0) ** 2 for end in (blocks.low, blocks.high)]
    each = blocks.mass * (above[1] - above[0]) / (2 * (blocks.high - blocks.low))
    return float(each @ (1 - blocks.risks)), float(each @ blocks.risks)


def _ramp_by_coverage(population: Any, threshold: float) -> tuple[float, float]:
    """Sum the same over coverages, between which nothing jumps or bends."""
    curve, end = population.curve, float(population.coverage(threshold))
    edges = {0.0, end, *curve.breaks, *(edge for tie in curve.ties for edge in tie)}

    def excess(coverage: FloatArray, left: FloatArray) -> FloatArray:  # noqa: ARG001
        return np.maximum(np.asarray(population.threshold(coverage)) - threshold, 0.0)

    def right_at(coverage: FloatArray) -> FloatArray:
        return np.asarray(1.0 - curve.margin(coverage))

    pieces = list(pairwise(sorted(edge for edge in edges if edge <= end)))
    right, wrong = (
        sum(over_coverage(share, excess, low, high) for low, high in pieces)
        for share in (right_at, curve.margin)
    )
    return float(right), float(wrong)
