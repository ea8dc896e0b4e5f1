"""Which thresholds: every choice is measured at once, the promising ones are tested in order.

Pareto testing. One part of the calibration samples orders the choices: among those that no other
beats in both evidence and cost, from the one that is surest to keep the promise to the cheapest.
The other part, which knows nothing of that order, tests them one after the other at level delta and
stops at the first that fails. Except with chance delta no choice that it passed breaks the promise,
so that the cheapest of them may be taken.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from abstain.errors import InputError
from abstain.thresholds.binomial import (
    binomial_p_value,
    hoeffding_bentkus_p_value,
    min_count,
    upper_bound,
)
from abstain.thresholds.cascade.data import CascadeData
from abstain.thresholds.cascade.plan import CascadePlan
from abstain.thresholds.cascade.record import Cascade
from abstain.thresholds.cascade.stage import PERSON, CascadeStage
from abstain.thresholds.cascade.totals import ChoiceTotals, compute_totals, threshold_codes
from abstain.thresholds.fixed_sequence import fixed_sequence
from abstain.typing import BoolArray, FloatArray, IntArray

#: So many choices of thresholds are measured, for any number of stages.
_CHOICES: Final = 2**14
#: And so many thresholds of one stage, at most.
_MOST: Final = 500
#: So many stages have two thresholds each then.
_STAGES: Final = 7


@dataclass(frozen=True, eq=False)
class CascadeFrontier:
    """Every choice of thresholds that was measured, and which of them keep the promise.

    Attributes
    ----------
    plan : CascadePlan
        What was asked for.
    stages : tuple of CascadeStage
        The stages, without thresholds.
    grids : tuple of ndarray
        The thresholds of each stage, ascending. The choices of a stage are to answer all (place 0),
        to answer from each of them on, and not to be run (the last place).
    risk, reviews, cost : ndarray of shape (choices,)
        Mean loss, share sent to the person and mean cost on all calibration samples. The last
        stage's choices vary fastest.
    order : ndarray of int
        The choices that were put to the test, in that order.
    p_value : ndarray
        Theirs, on the samples that test.
    n, tested : int
        Calibration samples, and those that test.
    """

    plan: CascadePlan
    stages: tuple[CascadeStage, ...]
    grids: tuple[FloatArray, ...]
    risk: FloatArray
    reviews: FloatArray
    cost: FloatArray
    order: IntArray
    p_value: FloatArray
    n: int
    n_tested: int
    #: What was counted for the first of them in that order, on the samples that test.
    closest: tuple[float, float]

    @property
    def shape(self) -> tuple[int, ...]:
        """How many choices each stage has."""
        return tuple(grid.size + 2 for grid in self.grids)

    @cached_property
    def certified(self) -> IntArray:
        """The choices that keep the promise, up to delta."""
        return self.order[: fixed_sequence(self.p_value, delta=self.plan.delta)]

    @property
    def selected(self) -> int | None:
        """The cheapest of these, of equal ones that of the least risk; None where there is none."""
        found = self.certified
        if found.size == 0:
            return None
        return int(found[np.lexsort((self.risk[found], self.cost[found]))[0]])

    def efficient(self, mask: BoolArray | None = None) -> IntArray:
        """Return the choices that no other beats in risk and cost, from the safest on.

        Parameters
        ----------
        among : ndarray of shape (choices,), optional
            Whether each counts at all.

        Returns
        -------
        ndarray of int
            Places.
        """
        known = np.arange(self.risk.size) if mask is None else np.flatnonzero(mask)
        return known[_unbeaten(self.risk[known], self.cost[known])]

    def only_stage(self, stage: int) -> BoolArray:
        """Tell in which choices no other model than this stage is run.

        Parameters
        ----------
        stage : int
            Its place.

        Returns
        -------
        ndarray of shape (choices,)
            Booleans.
        """
        places = np.unravel_index(np.arange(self.risk.size), self.shape)
        others = [p == s - 1 for p, s in zip(places, self.shape, strict=True)]
        others.pop(stage)
        return np.all(others, axis=0) if others else np.ones(self.risk.size, np.bool_)

    def answer_all_choice(self, stage: int) -> int:
        """Return the choice in which one stage answers everything, or with -1 the person.

        Parameters
        ----------
        stage : int
            The place of a stage.

        Returns
        -------
        int
            A place.
        """
        last = [size - 1 for size in self.shape]
        if stage >= 0:
            last[stage] = 0
        return int(np.ravel_multi_index(last, self.shape))

    def stages_for_choice(self, choice: int) -> tuple[CascadeStage, ...]:
        """Return the stages with the thresholds of a choice.

        Parameters
        ----------
        choice : int
            Its place.

        Returns
        -------
        tuple of CascadeStage
            What comes after a stage that answers all is not run.
        """
        places = [int(p) for p in np.unravel_index(choice, self.shape)]
        over = False
        out = []
        for stage, grid, place in zip(self.stages, self.grids, places, strict=True):
            if over or place == grid.size + 1:
                out.append(replace(stage, answers="none", threshold=None))
            elif place == 0:
                out.append(replace(stage, answers="all", threshold=None))
            else:
                out.append(replace(stage, answers="some", threshold=float(grid[place - 1])))
            over = over or place == 0
        return tuple(out)


def compute_frontier(
    data: CascadeData, stages: tuple[CascadeStage, ...], plan: CascadePlan
) -> CascadeFrontier:
    """Measure every choice of thresholds, and test the promising ones in order.

    Parameters
    ----------
    data : CascadeData
        The calibration samples.
    stages : tuple of CascadeStage
        Names, costs and scores, in the order in which they are asked.
    plan : CascadePlan
        What is asked for.

    Returns
    -------
    CascadeFrontier
        The same for the same data and plan.

    Raises
    ------
    InputError
        Fewer than two samples, or more than seven stages.
    """
    _refuse_size(len(stages), data.n)
    first = np.zeros(data.n, np.bool_)
    rows = np.random.default_rng(plan.seed).permutation(data.n)
    # One sample at least for either purpose.
    first[rows[: min(max(round(plan.ordered_by * data.n), 1), data.n - 1)]] = True
    ordering, testing = data.subset(first), data.subset(~first)
    grids = tuple(_grid(x, _most(len(stages))) for x in ordering.confidences)
    measured = [
        compute_totals(part, threshold_codes(part, grids), grids) for part in (ordering, testing)
    ]
    evidence = _p_values(measured[0], plan, binary=data.is_binary)
    order = _unbeaten(evidence, measured[0].cost(stages, plan))
    tests = measured[1].select(order)
    p_value = _p_values(tests, plan, binary=data.is_binary)
    whole = measured[0].add(measured[1])
    return CascadeFrontier(
        plan,
        tuple(replace(s, answers="none", threshold=None) for s in stages),
        grids,
        whole.loss / data.n,
        whole.reviews / data.n,
        whole.cost(stages, plan),
        order,
        p_value,
        data.n,
        testing.n,
        (float(tests.loss[0]), float(tests.reviews[0])),
    )


def select_cascade(found: CascadeFrontier, data: CascadeData) -> Cascade:
    """Return the cascade of the cheapest choice that keeps the promise, or the reason for none.

    Parameters
    ----------
    found : CascadeFrontier
        What `frontier_of` returned.
    data : CascadeData
        The same samples.

    Returns
    -------
    Cascade
        With what it does on these samples.
    """
    at = found.selected
    reason = _reason(found, binary=data.is_binary) if at is None else ""
    choice = found.answer_all_choice(-1) if at is None else at
    stages = found.stages_for_choice(choice)
    made = Cascade(stages, found.plan, found.n, found.n_tested, (0.0,) * (len(stages) + 1), 0.0)
    counts = np.bincount(made.decide(*data.confidences), minlength=len(stages) + 1)
    return replace(
        made,
        answered=tuple(float(k) / found.n for k in counts),
        risk=float(found.risk[choice]),
        cost=float(found.cost[choice]),
        reason=reason,
    )


def _refuse_size(stages: int, n: int) -> None:
    if n < 2:
        raise InputError(
            "a cascade takes at least 2 calibration samples, to order and to test; got 1"
        )
    if stages > _STAGES:
        raise InputError(
            f"a cascade has at most {_STAGES} stages beside the {PERSON}; got {stages}"
        )


def _most(stages: int) -> int:
    """Return how many thresholds a stage may have, so that there are not too many choices."""
    return min(_MOST, max(2, int(_CHOICES ** (1 / stages)) - 2))


def _grid(confidence: FloatArray, most: int) -> FloatArray:
    """Return the thresholds to try: the distinct confidences, evenly spread where they are many."""
    ordered = np.sort(confidence.astype(np.float64))
    places = np.unique(np.linspace(0, ordered.size - 1, most).round().astype(np.int64))
    out: FloatArray = np.unique(ordered) if np.unique(ordered).size <= most else ordered[places]
    return np.unique(out)


def _p_values(found: ChoiceTotals, plan: CascadePlan, *, binary: bool) -> FloatArray:
    """Return the p-values of "the risk or the load is above its target": the larger of both."""
    test = binomial_p_value if binary else hoeffding_bentkus_p_value
    n = np.full(found.loss.shape, found.n)
    out = test(n, found.loss, plan.max_risk)
    if plan.capacity >= 1:
        return out
    if plan.capacity <= 0:
        # What sends nobody to the person by construction, and not by chance.
        return np.where(found.no_reviews, out, 1.0)
    load = np.where(found.no_reviews, 0.0, binomial_p_value(n, found.reviews, plan.capacity))
    return np.maximum(out, load)


def _unbeaten(first: FloatArray, second: FloatArray) -> IntArray:
    """Return the places that none beats in both numbers, ascending in the first."""
    order = np.lexsort((second, first))
    ahead = np.concatenate(([np.inf], np.minimum.accumulate(second[order])[:-1]))
    return np.asarray(order[second[order] < ahead])


def _reason(found: CascadeFrontier, *, binary: bool) -> str:
    """Say why nothing is certified, and what came closest."""
    plan, n = found.plan, found.n_tested
    least = min_count(plan.max_risk, plan.delta)
    asked = f"a risk of at most {plan.max_risk:g}"
    if plan.has_capacity_limit:
        asked += f" with at most {plan.capacity:.4g} of the samples sent to the {PERSON}"
    if n < least:
        return (
            f"the {n} samples that test cannot certify {asked} with delta {plan.delta:g}, which "
            f"takes {least} without a failure"
        )
    loss, reviews = found.closest
    k = np.asarray([np.ceil(loss) if binary else loss, reviews])
    bounds = upper_bound(np.asarray([n, n]), k, plan.delta)
    said = f"on the {n} samples that test it has a risk of {loss / n:.4g}"
    if binary:
        said += f", certified below {bounds[0]:.4g}"
    if plan.has_capacity_limit:
        said += f", and sends {reviews / n:.4g} to the {PERSON}, certified below {bounds[1]:.4g}"
    stages = ", ".join(str(stage) for stage in found.stages_for_choice(int(found.order[0])))
    return (
        f"no thresholds are certified to keep {asked} with delta {plan.delta:g}; what the other "
        f"{found.n - n} samples found surest: {stages}; {said}"
    )
