"""Populations defined by the failure probability at each population rank."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from abstain._foundation import checks
from abstain.errors import InputError, ShapeError
from abstain.simulate.population import (
    Population,
    PopulationEntry,
    Sample,
    UniformScores,
    check_open_fraction,
    draw_failures,
)
from abstain.simulate.risk_curve import RiskCurve
from abstain.typing import FloatArray

_RANK_GRID = np.linspace(0.0, 1.0, 1001)


@dataclass(frozen=True, eq=False)
class RankScores(UniformScores):
    """Confidence u uniform on [0, 1], wrong with probability `mean_loss_of(u)`."""

    mean_loss_of: Callable[[FloatArray], FloatArray]
    breaks: tuple[float, ...]

    name = "rank-scores"

    def _curve(self) -> RiskCurve:
        coverages = tuple(sorted(1.0 - u for u in self.breaks))
        return RiskCurve(lambda c: np.asarray(self.mean_loss_of(1.0 - c)), breaks=coverages)

    def _sample(self, n: int, rng: np.random.Generator) -> Sample:
        u = rng.random(n)
        return Sample(u, draw_failures(np.asarray(self.mean_loss_of(u)), rng))


def rank_scores(
    failure_probability: Callable[[FloatArray], FloatArray], *, breaks: Iterable[float] = ()
) -> Population:
    """Create a population from the failure probability at each rank.

    Answers: which values do metrics have if the risk depends on the rank in this way?

    Parameters
    ----------
    failure_probability : callable
        Function from population ranks u, an array in [0, 1], to failure probabilities of the same
        shape.
    breaks : iterable of float, optional
        Ranks at which the function or its derivative jumps; it must be smooth elsewhere.

    Returns
    -------
    Population
        A population with 0/1 loss and confidence u uniform on [0, 1]. Curves and areas are
        computed by numerical integration.

    Raises
    ------
    InputError
        If `failure_probability` is not callable.
    ShapeError
        If it does not return one number for each rank.
    DomainError
        If it returns a number outside [0, 1], or a break lies outside [0, 1].

    Examples
    --------
    >>> from abstain import simulate
    >>> population = simulate.rank_scores(lambda u: 1 - u)
    >>> round(population.aurc(), 12), round(population.augrc, 12)
    (0.25, 0.166666666667)
    """
    argument: object = failure_probability
    if not callable(argument):
        raise InputError(f"`failure_probability` must be a function of ranks; got {argument!r}")
    probabilities = np.asarray(failure_probability(_RANK_GRID))
    if probabilities.shape != _RANK_GRID.shape:
        rule = "must return one number for each rank"
        raise ShapeError(
            f"`failure_probability` {rule}; got shape {probabilities.shape} for {_RANK_GRID.shape}"
        )
    checks.unit_interval(checks.finite(probabilities, "failure_probability"), "failure_probability")
    rank_breaks = tuple(checks.fraction(u, "breaks") for u in breaks)
    return RankScores(failure_probability, rank_breaks)


@dataclass(frozen=True, eq=False)
class StepScores(UniformScores):
    """Confidence u uniform on [0, 1]; failure probability `risks[i]` through coverage i."""

    upper_coverages: tuple[float, ...]
    risks: tuple[float, ...]
    name: str = "step-scores"

    def _curve(self) -> RiskCurve:
        upper_coverages, risks = np.array(self.upper_coverages), np.array(self.risks)
        widths = np.diff(np.append(0.0, upper_coverages))
        edges, loss = np.append(0.0, upper_coverages), np.append(0.0, np.cumsum(widths * risks))

        def loss_at(coverage: FloatArray) -> FloatArray:
            return risks[np.minimum(np.searchsorted(upper_coverages, coverage), risks.size - 1)]

        return RiskCurve(
            loss_at, lambda c: np.interp(c, edges, loss), breaks=self.upper_coverages[:-1]
        )

    def _sample(self, n: int, rng: np.random.Generator) -> Sample:
        u = rng.random(n)
        return Sample(u, draw_failures(self.curve.margin(1.0 - u), rng))


def random_order(risk: float = 0.1) -> Population:
    """Create a population whose confidence is independent of the loss.

    Answers: which value does a metric have for a random confidence?

    Parameters
    ----------
    risk : float, default=0.1
        Share of failures, in [0, 1].

    Returns
    -------
    Population
        A population with 0/1 loss and confidence uniform on [0, 1]: AURC = R, AUGRC = R/2, and
        therefore AURC = 2 SELE.

    Raises
    ------
    DomainError
        If the risk does not lie in [0, 1].

    Examples
    --------
    >>> from abstain import simulate
    >>> population = simulate.random_order(0.2)
    >>> round(population.aurc(), 12), round(population.augrc, 12)
    (0.2, 0.1)
    """
    return StepScores((1.0,), (checks.fraction(risk, "risk"),), "random-order")


def oracle_order(risk: float = 0.1) -> Population:
    """Create a population in which every failure has a lower confidence than every success.

    Answers: which value does a metric have for a perfect confidence?

    Parameters
    ----------
    risk : float, default=0.1
        Share of failures, in [0, 1].

    Returns
    -------
    Population
        A population with 0/1 loss and confidence uniform on [0, 1]:
        AURC = R + (1 - R) ln(1 - R), AUGRC = R²/2.

    Raises
    ------
    DomainError
        If the risk does not lie in [0, 1].

    Examples
    --------
    >>> from abstain import simulate
    >>> population = simulate.oracle_order(0.2)
    >>> round(population.aurc(), 6), round(population.optimal_aurc, 6), round(population.augrc, 6)
    (0.021485, 0.021485, 0.02)
    """
    r = checks.fraction(risk, "risk")
    if r in {0.0, 1.0}:
        return StepScores((1.0,), (r,), "oracle-order")
    return StepScores((1.0 - r, 1.0), (0.0, 1.0), "oracle-order")


def two_sele_counterexample(
    top: float = 0.1, *, inside: float = 0.5, outside: float = 0.0
) -> Population:
    r"""Create a population whose AURC exceeds 2 x SELE.

    Answers: is 2 x SELE an upper bound of the AURC for every score? No.

    Parameters
    ----------
    top : float, default=0.1
        Share q of the most confident samples, strictly between 0 and 1.
    inside, outside : float, default=0.5, 0.0
        Failure probabilities inside and outside of this share, in [0, 1]. If `inside` is less
        than `outside`, AURC is less than 2 x SELE.

    Returns
    -------
    Population
        0/1 loss, confidence uniform on [0, 1].
        AURC - 2 SELE = (inside - outside) q (q - 1 - ln q), which is above 0 for inside > outside.

    Raises
    ------
    DomainError
        If `top` is not between 0 and 1 or a probability is not in [0, 1].

    Notes
    -----
    Proof. In the population AURC = E[loss x -ln(1-u)] and SELE = E[loss x u], so that with
    c = 1 - u the gap is the integral of w(c) m(c), w(c) = -ln c - 2 (1 - c), m the mean loss.
    W(q), the integral of w from 0 to q, is q (q - 1 - ln q): above 0 on (0, 1), since
    ln q < q - 1, and 0 at 1. The constant `outside` thus adds nothing, and the gap is
    (inside - outside) W(q). Pointwise, w > 0 exactly for u above 0.7968 (= 1 + W_0(-2/e²)/2, W_0
    Lambert's function): a failure trusted more than 79.68 % of all samples adds more to AURC than
    to 2 SELE. By parts, the gap is minus the integral of W dm: at most 0 if the risk never rises
    with confidence, at least 0 if it never falls, 0 for a random order. So 2 x SELE bounds
    the AURC of every score whose risk falls with confidence, and of no other in general.

    This is a construction of our own, proven above, for populations. For a finite sample [1]_ has
    one: of five samples only the most confident has a loss, and its plug-in weight is H_5 = 2.28,
    above the 2 of 2 x SELE. Four samples do already.

    References
    ----------
    .. [1] Zhou et al. (2025), A novel characterization of the population area under the risk
       coverage curve, eq. 34-36, https://arxiv.org/abs/2410.15361
    .. [2] Franc et al. (2023), Optimal strategies for reject option classifiers (SELE),
       https://jmlr.org/papers/v24/21-0048.html

    Examples
    --------
    >>> from abstain import simulate
    >>> population = simulate.two_sele_counterexample(top=0.1, inside=0.5)
    >>> round(population.aurc(), 6), round(population.two_sele, 6)
    (0.165129, 0.095)
    """
    q = check_open_fraction(top, "top")
    risks = (checks.fraction(inside, "inside"), checks.fraction(outside, "outside"))
    return StepScores((q, 1.0), risks, "two-sele-counterexample")


RANDOM_ORDER: Final = PopulationEntry(
    "random-order",
    "random order",
    "The confidence is independent of the loss.",
    random_order,
)
ORACLE_ORDER: Final = PopulationEntry(
    "oracle-order",
    "perfect order",
    "Every failure has a lower confidence than every success.",
    oracle_order,
)
TWO_SELE_COUNTEREXAMPLE: Final = PopulationEntry(
    "two-sele-counterexample",
    "failures among the most confident",
    "The AURC exceeds 2 x SELE, which is an upper bound only if the risk decreases.",
    two_sele_counterexample,
)
