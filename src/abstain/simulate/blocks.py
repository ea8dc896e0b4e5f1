"""Populations whose confidence is uniform on intervals."""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Final

import numpy as np

from abstain._foundation import checks
from abstain.errors import DomainError
from abstain.simulate.by_rank import StepScores
from abstain.simulate.population import (
    Population,
    PopulationEntry,
    Sample,
    check_masses_and_risks,
    draw_failures,
)
from abstain.simulate.risk_curve import RiskCurve
from abstain.typing import AnyArray, FloatArray


@dataclass(frozen=True, eq=False)
class BlockScores(Population):
    """A confidence that is uniform on intervals, each with a mass and a failure probability."""

    low: FloatArray
    high: FloatArray
    mass: FloatArray
    risks: FloatArray
    name: str = "block-scores"

    @property
    def probability(self) -> bool:
        """Whether all intervals are in [0, 1]."""
        return bool(self.low[0] >= 0 and self.high[-1] <= 1)

    @cached_property
    def _edges(self) -> FloatArray:
        """Coverages at the bounds of the intervals, in ascending order, shape (k + 1,)."""
        inner_edges = np.cumsum(self.mass[:0:-1])
        return np.concatenate(([0.0], np.minimum(inner_edges, 1.0), [1.0]))

    def _curve(self) -> RiskCurve:
        # The mean loss is a step function of the coverage, because the confidences in an interval
        # have the same failure probability.
        upper_coverages = tuple(self._edges[1:].tolist())
        steps = StepScores(upper_coverages, tuple(self.risks[::-1].tolist()))
        return steps.curve

    def _share_above(self, confidence: FloatArray) -> FloatArray:
        bounds = np.stack((self.low, self.high), axis=1).ravel()
        shares = np.stack((self._edges[:0:-1], self._edges[-2::-1]), axis=1).ravel()
        return np.asarray(np.interp(confidence, bounds, shares))

    def _confidence_at(self, coverage: FloatArray) -> FloatArray:
        # The intervals are in descending order of confidence here.
        high = self.high[::-1]
        width = (self.high - self.low)[::-1]
        mass = self.mass[::-1]
        index = np.clip(np.searchsorted(self._edges, coverage) - 1, 0, mass.size - 1)
        coverage_in_interval = coverage - self._edges[index]
        return np.asarray(high[index] - width[index] * coverage_in_interval / mass[index])

    def _sample(self, n: int, rng: np.random.Generator) -> Sample:
        interval = rng.choice(self.mass.size, n, p=self.mass)
        confidence = self.low[interval] + (self.high - self.low)[interval] * rng.random(n)
        return Sample(confidence, draw_failures(self.risks[interval], rng))


def block_scores(low: AnyArray, high: AnyArray, mass: AnyArray, risk: AnyArray) -> Population:
    """Create a population of confidences that are uniform on intervals.

    The failure probability is constant in each interval.

    Parameters
    ----------
    low, high : array of shape (k,)
        Lower and upper bounds of the intervals, in any order. The intervals must not overlap.
    mass : array of shape (k,)
        Share of the samples in each interval. Shares are positive and sum to 1.
    risk : array of shape (k,)
        Failure probability in each interval, in [0, 1].

    Returns
    -------
    Population
        A population with 0/1 loss. The curves and `expected_cwsa` have closed forms.

    Raises
    ------
    ShapeError
        If lengths differ.
    DomainError
        If an interval has no width or overlaps another interval, if a mass is not positive, if the
        masses do not sum to 1, or if a risk is outside [0, 1].

    Examples
    --------
    >>> from abstain import simulate
    >>> model = simulate.block_scores([0.5, 0.8], [0.7, 1.0], [0.1, 0.9], [0.5, 0.0])
    >>> round(model.risk, 12), round(model.coverage(0.9), 12), model.mean_loss(0.6)
    (0.05, 0.45, 0.5)
    """
    return _validated_blocks(low, high, mass, risk)


def _validated_blocks(
    low: AnyArray, high: AnyArray, mass: AnyArray, risk: AnyArray, *, name: str = "block-scores"
) -> BlockScores:
    """Validate intervals, masses and risks, and create the population."""
    starts = checks.finite(checks.vector(low, "low"), "low").astype(np.float64)
    ends = checks.vector(high, "high", length=starts.size, reference="low")
    ends = checks.finite(ends, "high").astype(np.float64)
    checks.reject_entries("high", "must lie above `low`", ends, ends <= starts)
    masses, risks = check_masses_and_risks(mass, risk, length=starts.size, reference="low")
    order = np.argsort(starts)
    starts = starts[order]
    ends = ends[order]
    is_overlapping = np.append(False, starts[1:] < ends[:-1])
    checks.reject_entries("low", "must not lie within another interval", starts, is_overlapping)
    return BlockScores(
        low=starts,
        high=ends,
        mass=masses[order] / masses.sum(),
        risks=risks[order],
        name=name,
    )


#: Number of classes among which a simulated model guesses.
_CLASSES: Final = 3


def confident_when_correct(informed_share: float = 0.9) -> Population:
    """Create the model that Shahnazari et al. call calibrated.

    The model knows the class of some samples, for which its confidence is high. For all other
    samples, the model guesses the class with a lower confidence.

    Parameters
    ----------
    informed_share : float, default=0.9
        Share of samples with a known class, strictly between 0 and 1. For these samples, the
        confidence is uniform in [0.8, 1]. For guesses among three classes, the confidence is
        uniform in [0.5, 0.7].

    Returns
    -------
    Population
        A population of probabilities. With the default share and threshold 0.9, CWSA is 0.225 and
        CWSA+ is 0.5.

    Raises
    ------
    DomainError
        If the share is not strictly between 0 and 1.

    Examples
    --------
    >>> from abstain import simulate
    >>> model = simulate.confident_when_correct()
    >>> round(simulate.expected_cwsa(model, 0.9), 12)
    0.225
    """
    share = checks.fraction(informed_share, "informed_share")
    if share in {0.0, 1.0}:
        raise DomainError(
            f"`informed_share` must lie between 0 and 1, both excluded; got {share!r}"
        )
    return _validated_blocks(
        low=(0.5, 0.8),
        high=(0.7, 1.0),
        mass=(1 - share, share),
        risk=(_guess_risk(), 0.0),
        name="cwsa-calibrated",
    )


def uniform_confidence(
    low: float = 0.9, high: float = 1.0, *, informed_share: float = 0.7, classes: int = _CLASSES
) -> Population:
    """Create a population whose confidence is uniform on an interval and independent of the loss.

    Parameters
    ----------
    low, high : float, default=0.9, 1.0
        Bounds of the confidence, in [0, 1].
    informed_share : float, default=0.7
        Share of samples whose class the model knows. For all other samples, the model guesses a
        class.
    classes : int, default=3
        Number of classes for a guess, at least 2.

    Returns
    -------
    Population
        A population of probabilities. At every confidence, the failure probability is (1 -
        informed_share)(1 - 1/classes).

    Raises
    ------
    DomainError
        If a number is outside [0, 1], or if `high` is not above `low`.
    InputError
        If `classes` is not a positive integer.

    Examples
    --------
    >>> from abstain import simulate
    >>> model = simulate.uniform_confidence(0.3, 1.0, informed_share=0.0)
    >>> round(model.risk, 6), round(simulate.expected_cwsa_plus(model, 0.9), 6)
    (0.666667, 0.166667)
    """
    guess_risk = _guess_risk(checks.positive_int(classes, "classes"))
    risk = (1 - checks.fraction(informed_share, "informed_share")) * guess_risk
    low = checks.fraction(low, "low", high=checks.fraction(high, "high"))
    name = _model_name(informed_share, risk, mean_confidence=(low + high) / 2)
    return _validated_blocks((low,), (high,), (1.0,), (risk,), name=name)


def _model_name(informed_share: float, risk: float, mean_confidence: float) -> str:
    """Return the catalogue name of a model with this risk and mean confidence."""
    if risk == 0:
        return "cwsa-perfect"
    if informed_share == 0:
        return "cwsa-random"
    return "cwsa-overconfident" if mean_confidence > 1 - risk else "cwsa-underconfident"


def _guess_risk(classes: int = _CLASSES) -> float:
    """Return the probability that a random guess among the classes is wrong."""
    return 1.0 - 1.0 / classes


BLOCKS: Final = (
    PopulationEntry(
        "cwsa-calibrated",
        "confident when correct",
        "The calibrated model of Shahnazari et al.: high confidence if known, lower if guessed.",
        confident_when_correct,
    ),
    PopulationEntry(
        "cwsa-overconfident",
        "overconfident",
        "Their overconfident model: confidence uniform on [0.9, 1], also for wrong predictions.",
        uniform_confidence,
    ),
    PopulationEntry(
        "cwsa-underconfident",
        "underconfident",
        "Their underconfident model: confidence uniform on [0.4, 0.6], nearly always correct.",
        partial(uniform_confidence, low=0.4, high=0.6, informed_share=0.9),
    ),
    PopulationEntry(
        "cwsa-perfect",
        "always correct",
        "Their perfect model: never wrong, confidence uniform on [0.95, 1].",
        partial(uniform_confidence, low=0.95, high=1.0, informed_share=1.0),
    ),
    PopulationEntry(
        "cwsa-random",
        "random guesses",
        "Their random model: guesses among three classes, confidence uniform on [0.3, 1].",
        partial(uniform_confidence, low=0.3, high=1.0, informed_share=0.0),
    ),
)
