"""Confidences spread evenly over intervals, each with its own risk: simulated models."""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Final

import numpy as np

from abstain._foundation import checks
from abstain.errors import DomainError
from abstain.simulate.by_rank import StepScores
from abstain.simulate.population import Population, PopulationEntry, Sample, sample_failures
from abstain.simulate.risk_curve import RiskCurve
from abstain.typing import AnyArray, FloatArray


@dataclass(frozen=True, eq=False)
class BlockScores(Population):
    """Intervals in ascending order; a sample fails with the risk of its interval."""

    low: FloatArray
    high: FloatArray
    mass: FloatArray
    risks: FloatArray
    name: str = "block-scores"

    @property
    def probability(self) -> bool:
        """Whether all intervals lie in [0, 1]."""
        return bool(self.low[0] >= 0 and self.high[-1] <= 1)

    @cached_property
    def _edges(self) -> FloatArray:
        """Share above each interval, then 1, from the highest interval down."""
        inner = np.cumsum(self.mass[:0:-1])
        return np.concatenate(([0.0], np.minimum(inner, 1.0), [1.0]))

    def _curve(self) -> RiskCurve:
        # Where only the order matters, intervals are steps.
        order = StepScores(tuple(self._edges[1:].tolist()), tuple(self.risks[::-1].tolist()))
        return order.curve

    def _coverage_above(self, confidence: FloatArray) -> FloatArray:
        ends = np.stack((self.low, self.high), axis=1).ravel()
        shares = np.stack((self._edges[:0:-1], self._edges[-2::-1]), axis=1).ravel()
        return np.asarray(np.interp(confidence, ends, shares))

    def _confidence_at(self, coverage: FloatArray) -> FloatArray:
        index = np.clip(np.searchsorted(self._edges, coverage) - 1, 0, self.mass.size - 1)
        width, mass = (self.high - self.low)[::-1], self.mass[::-1]
        return np.asarray(
            self.high[::-1][index] - width[index] * (coverage - self._edges[index]) / mass[index]
        )

    def _draw(self, n: int, rng: np.random.Generator) -> Sample:
        block_index = rng.choice(self.mass.size, n, p=self.mass)
        confidence = self.low[block_index] + (self.high - self.low)[block_index] * rng.random(n)
        return Sample(confidence, sample_failures(self.risks[block_index], rng))


def block_scores(low: AnyArray, high: AnyArray, mass: AnyArray, risk: AnyArray) -> Population:
    """Make a population whose confidences are spread evenly over intervals.

    Answers: what do metrics give for a model that is sure of these samples and unsure of those?

    Parameters
    ----------
    low, high : array of shape (k,)
        Ends of the intervals, in any order; they may touch and not overlap.
    mass : array of shape (k,)
        Share of the samples in each; positive, with sum 1.
    risk : array of shape (k,)
        Failure probability in each, in [0, 1].

    Returns
    -------
    Population
        0/1 loss; curves exact, `expected_cwsa` too. `probability` is true if all intervals lie in
        [0, 1].

    Raises
    ------
    ShapeError
        If the lengths differ.
    DomainError
        If an interval has no width or overlaps another, a mass is not positive, the masses do not
        sum to 1 or a risk lies outside [0, 1].

    Examples
    --------
    >>> from abstain import simulate
    >>> model = simulate.block_scores([0.5, 0.8], [0.7, 1.0], [0.1, 0.9], [0.5, 0.0])
    >>> round(model.risk, 12), round(model.coverage(0.9), 12), model.mean_loss(0.6)
    (0.05, 0.45, 0.5)
    """
    return _make_blocks(low, high, mass, risk)


def _make_blocks(
    low: AnyArray, high: AnyArray, mass: AnyArray, risk: AnyArray, *, name: str = "block-scores"
) -> BlockScores:
    starts = checks.finite(checks.vector(low, "low"), "low").astype(np.float64)
    ends, shares, risks = (
        checks.finite(checks.vector(x, name_, length=starts.size, reference="low"), name_).astype(
            float
        )
        for x, name_ in ((high, "high"), (mass, "mass"), (risk, "risk"))
    )
    checks.reject_entries("high", "must lie above `low`", ends, ends <= starts)
    checks.reject_entries("mass", "must be above 0", shares, shares <= 0)
    checks.unit_interval(risks, "risk")
    if abs(shares.sum() - 1) > 1e-9:
        raise DomainError(f"`mass` must sum to 1; got {shares.sum()!r}")
    order = np.argsort(starts)
    starts, ends = starts[order], ends[order]
    is_inside = np.append(False, starts[1:] < ends[:-1])
    checks.reject_entries("low", "must not lie within another interval", starts, is_inside)
    return BlockScores(starts, ends, shares[order] / shares.sum(), risks[order], name)


#: A model that is right by itself in that share of the samples, and else guesses one of so many.
_CLASSES: Final = 3


def certain_when_right(right: float = 0.9) -> Population:
    """Make the model that Shahnazari et al. call calibrated.

    Answers: what do metrics give for a model that is sure where it knows and less sure where it
    guesses?

    Parameters
    ----------
    right : float, default=0.9
        Share of the samples that it knows, above 0 and below 1: confidence even on [0.8, 1]. Of the
        others it guesses one of three classes, confidence even on [0.5, 0.7].

    Returns
    -------
    Population
        Of probabilities. Its CWSA at 0.9 is 0.225 and its CWSA+ 0.5.

    Raises
    ------
    DomainError
        If the share is not above 0 and below 1.

    Examples
    --------
    >>> from abstain import simulate
    >>> model = simulate.certain_when_right()
    >>> round(simulate.expected_cwsa(model, 0.9), 12)
    0.225
    """
    share = checks.fraction(right, "right")
    if share in {0.0, 1.0}:
        raise DomainError(f"`right` must lie between 0 and 1, both excluded; got {share!r}")
    parts = ((0.5, 0.8), (0.7, 1.0), (1 - share, share), (_guess_accuracy(), 0.0))
    return _make_blocks(*parts, name="cwsa-calibrated")


def evenly_sure(
    low: float = 0.9, high: float = 1.0, *, right: float = 0.7, classes: int = _CLASSES
) -> Population:
    """Make a model whose confidence says nothing about the loss, spread evenly over an interval.

    Answers: what do metrics give for a model that is equally sure, right or wrong?

    Parameters
    ----------
    low, high : float, default=0.9, 1.0
        The confidences, in [0, 1].
    right : float, default=0.7
        Share of the samples that it knows; of the others it guesses a class.
    classes : int, default=3
        Classes to guess from, at least 2.

    Returns
    -------
    Population
        Of probabilities; its risk is (1 - right)(1 - 1/classes) at every confidence.

    Raises
    ------
    DomainError
        If a number lies outside [0, 1] or `high` is not above `low`.
    InputError
        If `classes` is no number of classes.

    Examples
    --------
    >>> from abstain import simulate
    >>> model = simulate.evenly_sure(0.3, 1.0, right=0.0)
    >>> round(model.risk, 6), round(simulate.expected_cwsa_plus(model, 0.9), 6)
    (0.666667, 0.166667)
    """
    guess_accuracy = _guess_accuracy(checks.positive_int(classes, "classes"))
    risk = (1 - checks.fraction(right, "right")) * guess_accuracy
    low = checks.fraction(low, "low", high=checks.fraction(high, "high"))
    return _make_blocks(
        (low,), (high,), (1.0,), (risk,), name=_entry(right, risk, (low + high) / 2)
    )


def _entry(right: float, risk: float, sure: float) -> str:
    """Tell models that are equally sure of all samples apart, by their honesty."""
    if risk == 0:
        return "cwsa-perfect"
    if right == 0:
        return "cwsa-random"
    return "cwsa-overconfident" if sure > 1 - risk else "cwsa-underconfident"


def _guess_accuracy(classes: int = _CLASSES) -> float:
    """Chance that a guess is wrong."""
    return 1.0 - 1.0 / classes


BLOCKS: Final = (
    PopulationEntry(
        "cwsa-calibrated",
        "sure where it knows",
        "What Shahnazari et al. call calibrated: sure where right, less where it guesses.",
        certain_when_right,
    ),
    PopulationEntry(
        "cwsa-overconfident",
        "always sure",
        "Their overconfident model: confidence even on [0.9, 1], right or wrong.",
        evenly_sure,
    ),
    PopulationEntry(
        "cwsa-underconfident",
        "never sure",
        "Their underconfident model: confidence even on [0.4, 0.6], nearly always right.",
        partial(evenly_sure, low=0.4, high=0.6, right=0.9),
    ),
    PopulationEntry(
        "cwsa-perfect",
        "always right",
        "Their perfect model: never wrong, confidence even on [0.95, 1].",
        partial(evenly_sure, low=0.95, high=1.0, right=1.0),
    ),
    PopulationEntry(
        "cwsa-random",
        "guesses",
        "Their random model: a guess among three classes, confidence even on [0.3, 1].",
        partial(evenly_sure, low=0.3, high=1.0, right=0.0),
    ),
)
