"""Selection of the thresholds of a cascade by Pareto testing.

In this module, a choice is a combination of one threshold for each stage. On the first part of the
calibration samples, the choices on the Pareto front of p-value and cost are computed and ordered
from the safest to the cheapest. On the second part, these choices are tested in this order at
level delta, until the first failure. With probability 1 - delta, no choice that passes the tests
exceeds a limit. The search selects the cheapest choice that passes the tests.

The thresholds divide the confidences of each stage into bins, and the samples are counted in a
joint histogram of all stages. Cumulative sums along the axes of this histogram yield the results
of all choices. The cost is one pass over the samples and one pass over the choices.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from abstain.errors import InputError
from abstain.thresholds.binomial import (
    binomial_p_value,
    fixed_sequence,
    hoeffding_bentkus_p_value,
    min_count,
    upper_bound,
)
from abstain.thresholds.cascade.data import CascadeData
from abstain.thresholds.cascade.record import PERSON, Cascade, CascadePlan, CascadeStage
from abstain.typing import BoolArray, FloatArray, IntArray

#: Maximum number of choices of thresholds for any number of stages.
_MAX_CHOICES: Final = 2**14
#: Maximum number of thresholds of one stage.
_MAX_THRESHOLDS: Final = 500
#: Maximum number of stages, for which each stage has two thresholds.
_MAX_STAGES: Final = 7


@dataclass(frozen=True, eq=False)
class ChoiceTotals:
    """Sums over n samples for each choice.

    The arrays are one-dimensional, and the threshold of the last stage varies fastest.
    """

    n: int
    #: Total loss of the answers of all stages and the person.
    loss: FloatArray
    #: Number of samples that the person reviews.
    reviews: FloatArray
    #: Shape (stages, choices). Number of samples on which each stage is run.
    runs: FloatArray
    #: Whether a choice has no reviews by construction, because a stage answers all samples.
    no_reviews: BoolArray

    def cost(self, stages: tuple[CascadeStage, ...], plan: CascadePlan) -> FloatArray:
        """Return the mean cost of a sample for each combination of thresholds."""
        spent = plan.person_cost * self.reviews + plan.error_cost * self.loss
        for stage, runs in zip(stages, self.runs, strict=True):
            spent = spent + stage.cost * runs
        out: FloatArray = spent / self.n
        return out

    def select(self, choices: IntArray) -> "ChoiceTotals":
        """Select the sums of the choices with these indices."""
        return ChoiceTotals(
            self.n,
            self.loss[choices],
            self.reviews[choices],
            self.runs[:, choices],
            self.no_reviews[choices],
        )

    def add(self, other: "ChoiceTotals") -> "ChoiceTotals":
        """Add the sums of two disjoint sets of samples."""
        return ChoiceTotals(
            self.n + other.n,
            self.loss + other.loss,
            self.reviews + other.reviews,
            self.runs + other.runs,
            self.no_reviews,
        )


def threshold_codes(data: CascadeData, grids: tuple[FloatArray, ...]) -> tuple[IntArray, ...]:
    """Return, for each stage, how many thresholds each confidence reaches, shape (n,)."""
    return tuple(
        np.searchsorted(grid, x.astype(np.float64), side="right")
        for x, grid in zip(data.confidences, grids, strict=True)
    )


def compute_totals(
    data: CascadeData, codes: tuple[IntArray, ...], grids: tuple[FloatArray, ...]
) -> ChoiceTotals:
    """Compute the sums over the samples for every choice.

    With choice a, a stage answers the samples whose confidence reaches at least a of its
    thresholds. The stage answers all samples for a = 0, and no sample if a is above the number of
    thresholds.
    """
    n_bins = tuple(grid.size + 1 for grid in grids)
    shape = tuple(n + 1 for n in n_bins)
    n_stages = len(shape)
    ones = np.ones(data.n)
    loss: FloatArray = np.zeros(shape)
    runs: list[FloatArray] = []
    for s in range(n_stages):
        # The samples that reach a stage depend only on the choices of earlier stages.
        stage_codes, stage_bins = codes[: s + 1], n_bins[: s + 1]
        histogram_of_losses = _histogram(stage_codes, stage_bins, data.required_losses[s])
        loss_of_answers = _sum_answered(_sum_not_answered(histogram_of_losses, s), s)
        loss += _append_axes(loss_of_answers, n_stages)
        histogram = _histogram(stage_codes, stage_bins, ones)
        n_reaching = _sum_not_answered(histogram, s).sum(axis=-1, keepdims=True)
        # The last choice does not run the stage.
        is_run = np.ones(shape[s])
        is_run[-1] = 0.0
        n_runs = _append_axes(n_reaching * is_run, n_stages)
        runs.append(np.broadcast_to(n_runs, shape).ravel())
    reviews = _sum_not_answered(_histogram(codes, n_bins, ones), n_stages)
    losses_of_person = _histogram(codes, n_bins, data.required_losses[-1])
    loss += _sum_not_answered(losses_of_person, n_stages)
    return ChoiceTotals(
        n=data.n,
        loss=loss.ravel(),
        reviews=reviews.ravel(),
        runs=np.stack(runs),
        no_reviews=_any_stage_answers_all(shape).ravel(),
    )


def _any_stage_answers_all(shape: tuple[int, ...]) -> BoolArray:
    """Return a mask of the choices in which some stage answers every sample that reaches it."""
    choice_by_stage = np.indices(shape, sparse=True)
    is_answered: BoolArray = np.zeros(shape, np.bool_)
    for choice in choice_by_stage:
        is_answered |= choice == 0
    return is_answered


def _histogram(
    codes: tuple[IntArray, ...], n_bins: tuple[int, ...], weight: FloatArray
) -> FloatArray:
    """Sum the weights of the samples in each bin of the joint histogram, shape `n_bins`."""
    flat_codes = np.ravel_multi_index(codes, n_bins)
    sums = np.bincount(flat_codes, weights=weight, minlength=int(np.prod(n_bins)))
    return np.asarray(sums.reshape(n_bins), dtype=np.float64)


def _sum_not_answered(histogram: FloatArray, n_axes: int) -> FloatArray:
    """Sum the samples that no stage of the first axes answers, for each choice of these stages."""
    sums = histogram
    for axis in range(n_axes):
        sums = _cumulative_sum_from_zero(sums, axis)
    return sums


def _sum_answered(histogram: FloatArray, axis: int) -> FloatArray:
    """Sum the samples that the stage of one axis answers, for each of its choices."""
    not_answered = _cumulative_sum_from_zero(histogram, axis)
    total = np.take(not_answered, [-1], axis=axis)
    # Sums of graded losses may be slightly negative because of rounding.
    return np.asarray(np.maximum(total - not_answered, 0.0))


def _cumulative_sum_from_zero(histogram: FloatArray, axis: int) -> FloatArray:
    """Return the cumulative sums along an axis, with a leading 0."""
    cumulative = np.cumsum(histogram, axis=axis)
    zero = np.zeros_like(np.take(cumulative, [0], axis=axis))
    return np.concatenate([zero, cumulative], axis=axis)


def _append_axes(array: FloatArray, n_axes: int) -> FloatArray:
    """Append axes of size 1 for the later stages, up to `n_axes` axes."""
    return array.reshape(array.shape + (1,) * (n_axes - array.ndim))


@dataclass(frozen=True, eq=False)
class CascadeFrontier:
    """All combinations of thresholds with their results and tests.

    Attributes
    ----------
    plan : CascadePlan
        Limits and costs.
    stages : tuple of CascadeStage
        The stages, without thresholds.
    grids : tuple of ndarray
        The thresholds of each stage in ascending order. Choice 0 of a stage answers all samples.
        The following choices are its thresholds in ascending order. With the last choice, the
        stage is not run.
    risk, reviews, cost : ndarray of shape (choices,)
        Mean loss, share of reviewed samples and mean cost on all calibration samples. The choice
        of the last stage varies fastest.
    order : ndarray of int
        The tested choices, in the order of the tests.
    p_value : ndarray
        P-values of the tested choices on the test part.
    n, n_tested : int
        Number of calibration samples, and number of samples in the test part.
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
    #: Loss and number of reviews of the first tested choice on the test part.
    closest: tuple[float, float]

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of choices of each stage."""
        return tuple(grid.size + 2 for grid in self.grids)

    @cached_property
    def certified(self) -> IntArray:
        """Indices of the combinations that satisfy the limits with confidence 1 - delta."""
        return self.order[: fixed_sequence(self.p_value, delta=self.plan.delta)]

    @property
    def selected(self) -> int | None:
        """The cheapest certified choice, or None.

        If several combinations have the same cost, the one with the lowest risk is selected.
        """
        certified = self.certified
        if certified.size == 0:
            return None
        by_cost_and_risk = np.lexsort((self.risk[certified], self.cost[certified]))
        return int(certified[by_cost_and_risk[0]])

    def efficient(self, mask: BoolArray | None = None) -> IntArray:
        """Return the Pareto front of risk and cost, beginning with the safest choice.

        Parameters
        ----------
        mask : ndarray of shape (choices,), optional
            The choices to compare; by default all.

        Returns
        -------
        ndarray of int
            Indices of choices.
        """
        choices = np.arange(self.risk.size) if mask is None else np.flatnonzero(mask)
        return choices[_pareto_front(self.risk[choices], self.cost[choices])]

    def only_stage(self, stage: int) -> BoolArray:
        """Return a mask of the combinations in which only one stage is run.

        Parameters
        ----------
        stage : int
            Index of the stage.

        Returns
        -------
        ndarray of shape (choices,)
            Booleans.
        """
        # The last choice of a stage does not run the stage.
        choices_by_stage = np.unravel_index(np.arange(self.risk.size), self.shape)
        is_only_stage = np.ones(self.risk.size, np.bool_)
        for i, n_choices in enumerate(self.shape):
            if i != stage:
                is_only_stage &= choices_by_stage[i] == n_choices - 1
        return is_only_stage

    def answer_all_choice(self, stage: int) -> int:
        """Return the index of the choice in which one stage, or the person, answers all samples.

        Parameters
        ----------
        stage : int
            Index of a stage, or -1 for the person.

        Returns
        -------
        int
            Index of the choice.
        """
        # The last choice of a stage does not run the stage, and choice 0 answers all samples.
        choice_by_stage = [size - 1 for size in self.shape]
        if stage >= 0:
            choice_by_stage[stage] = 0
        return int(np.ravel_multi_index(choice_by_stage, self.shape))

    def stages_for_choice(self, choice: int) -> tuple[CascadeStage, ...]:
        """Return the stages with the thresholds of a choice.

        Parameters
        ----------
        choice : int
            Index of the choice.

        Returns
        -------
        tuple of CascadeStage
            The stages with their thresholds. If a stage answers all samples, later stages are
            omitted.
        """
        choice_by_stage = [int(index) for index in np.unravel_index(choice, self.shape)]
        is_all_answered = False
        stages = []
        for stage, grid, index in zip(self.stages, self.grids, choice_by_stage, strict=True):
            if is_all_answered or index == grid.size + 1:
                stages.append(replace(stage, answers="none", threshold=None))
            elif index == 0:
                stages.append(replace(stage, answers="all", threshold=None))
                is_all_answered = True
            else:
                threshold = float(grid[index - 1])
                stages.append(replace(stage, answers="some", threshold=threshold))
        return tuple(stages)


def compute_frontier(
    data: CascadeData, stages: tuple[CascadeStage, ...], plan: CascadePlan
) -> CascadeFrontier:
    """Compute the results of all choices of thresholds and test the Pareto front in order.

    Parameters
    ----------
    data : CascadeData
        The calibration samples.
    stages : tuple of CascadeStage
        Names, costs and scores of the stages, in order.
    plan : CascadePlan
        Limits and costs.

    Returns
    -------
    CascadeFrontier
        All choices with their results. The result depends only on the data and the plan.

    Raises
    ------
    InputError
        If `data` has fewer than two samples, or `stages` has more than seven stages.
    """
    if data.n < 2:
        raise InputError("a cascade needs at least 2 calibration samples, one for each part; got 1")
    if len(stages) > _MAX_STAGES:
        raise InputError(
            f"a cascade has at most {_MAX_STAGES} stages in addition to the {PERSON}; "
            f"got {len(stages)}"
        )
    is_ordering = _select_ordering_part(data.n, plan)
    ordering, testing = data.subset(is_ordering), data.subset(~is_ordering)
    max_choices_of_stage = int(_MAX_CHOICES ** (1 / len(stages)))
    # A stage has two more choices than thresholds: it answers all samples, or it is not run.
    max_thresholds = min(_MAX_THRESHOLDS, max(2, max_choices_of_stage - 2))
    grids = tuple(_grid(confidence, max_thresholds) for confidence in ordering.confidences)
    ordering_totals = compute_totals(ordering, threshold_codes(ordering, grids), grids)
    testing_totals = compute_totals(testing, threshold_codes(testing, grids), grids)
    evidence = _p_values(ordering_totals, plan, binary=data.is_binary)
    order = _pareto_front(evidence, ordering_totals.cost(stages, plan))
    tested_totals = testing_totals.select(order)
    totals = ordering_totals.add(testing_totals)
    return CascadeFrontier(
        plan=plan,
        stages=tuple(replace(stage, answers="none", threshold=None) for stage in stages),
        grids=grids,
        risk=totals.loss / data.n,
        reviews=totals.reviews / data.n,
        cost=totals.cost(stages, plan),
        order=order,
        p_value=_p_values(tested_totals, plan, binary=data.is_binary),
        n=data.n,
        n_tested=testing.n,
        closest=(float(tested_totals.loss[0]), float(tested_totals.reviews[0])),
    )


def select_cascade(frontier: CascadeFrontier, data: CascadeData) -> Cascade:
    """Return the cascade of the cheapest certified choice.

    Parameters
    ----------
    frontier : CascadeFrontier
        Result of `compute_frontier`.
    data : CascadeData
        The same calibration samples.

    Returns
    -------
    Cascade
        The cascade with its results on these samples. If no choice is certified, the person answers
        all samples and the cascade states the reason.
    """
    choice, reason = frontier.selected, ""
    if choice is None:
        choice = frontier.answer_all_choice(-1)
        reason = _reason(frontier, binary=data.is_binary)
    stages = frontier.stages_for_choice(choice)
    no_answers = (0.0,) * (len(stages) + 1)
    cascade = Cascade(stages, frontier.plan, frontier.n, frontier.n_tested, no_answers, 0.0)
    answered_by = cascade.decide(*data.confidences)
    counts = np.bincount(answered_by, minlength=len(stages) + 1)
    return replace(
        cascade,
        answered=tuple(float(count) / frontier.n for count in counts),
        risk=float(frontier.risk[choice]),
        cost=float(frontier.cost[choice]),
        reason=reason,
    )


def _select_ordering_part(n: int, plan: CascadePlan) -> BoolArray:
    """Return a random mask of the samples that determine the order of the tests."""
    shuffled = np.random.default_rng(plan.seed).permutation(n)
    n_ordering = min(max(round(plan.ordered_by * n), 1), n - 1)
    is_ordering = np.zeros(n, np.bool_)
    is_ordering[shuffled[:n_ordering]] = True
    return is_ordering


def _grid(confidence: FloatArray, max_thresholds: int) -> FloatArray:
    """Return the distinct confidences as thresholds, or confidences at evenly spaced ranks."""
    ordered = np.sort(confidence.astype(np.float64))
    distinct = np.unique(ordered)
    if distinct.size <= max_thresholds:
        return distinct
    ranks = np.linspace(0, ordered.size - 1, max_thresholds).round().astype(np.int64)
    return np.unique(ordered[ranks])


def _p_values(totals: ChoiceTotals, plan: CascadePlan, *, binary: bool) -> FloatArray:
    """Return the p-value of each choice for a risk or a load above its limit.

    This p-value is the larger of the p-values of the two hypotheses.
    """
    test = binomial_p_value if binary else hoeffding_bentkus_p_value
    n = np.full(totals.loss.shape, totals.n)
    p_value_of_risk = test(n, totals.loss, plan.max_risk)
    if plan.capacity >= 1:
        return p_value_of_risk
    if plan.capacity <= 0:
        # Only choices without reviews by construction reach a capacity of 0.
        return np.where(totals.no_reviews, p_value_of_risk, 1.0)
    p_value_of_load = binomial_p_value(n, totals.reviews, plan.capacity)
    p_value_of_load = np.where(totals.no_reviews, 0.0, p_value_of_load)
    return np.maximum(p_value_of_risk, p_value_of_load)


def _pareto_front(first: FloatArray, second: FloatArray) -> IntArray:
    """Return the indices of the Pareto front of two arrays, sorted by the first array."""
    order = np.lexsort((second, first))
    sorted_second = second[order]
    lowest_before = np.append(np.inf, np.minimum.accumulate(sorted_second)[:-1])
    return np.asarray(order[sorted_second < lowest_before])


def _reason(frontier: CascadeFrontier, *, binary: bool) -> str:
    """Return the reason why no choice is certified, with the results of the safest choice."""
    plan, n = frontier.plan, frontier.n_tested
    required = min_count(plan.max_risk, plan.delta)
    limits = f"a risk of at most {plan.max_risk:g}"
    if plan.has_capacity_limit:
        limits += f" with at most {plan.capacity:.4g} of the samples sent to the {PERSON}"
    if n < required:
        return (
            f"the {n:,} samples for the test cannot certify {limits} with delta {plan.delta:g}; "
            f"this requires {required:,} samples without a failure"
        )
    safest = ", ".join(str(stage) for stage in frontier.stages_for_choice(int(frontier.order[0])))
    results = _describe_closest(frontier, binary=binary)
    return (
        f"no thresholds are certified for {limits} with delta {plan.delta:g}; the safest choice of "
        f"the other {frontier.n - n:,} samples: {safest}; {results}"
    )


def _describe_closest(frontier: CascadeFrontier, *, binary: bool) -> str:
    """Return a text with the risk and the load of the safest choice on the test part."""
    plan, n = frontier.plan, frontier.n_tested
    loss, reviews = frontier.closest
    counts = np.asarray([np.ceil(loss) if binary else loss, reviews])
    bounds = upper_bound(np.asarray([n, n]), counts, plan.delta)
    text = f"on the {n:,} samples for the test, it has a risk of {loss / n:.4g}"
    if binary:
        text += f", certified below {bounds[0]:.4g}"
    if plan.has_capacity_limit:
        text += f", and sends {reviews / n:.4g} to the {PERSON}, certified below {bounds[1]:.4g}"
    return text
