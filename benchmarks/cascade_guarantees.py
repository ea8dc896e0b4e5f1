"""Simulate the guarantee of a cascade on populations with known risks and shares.

    python benchmarks/cascade_guarantees.py [--sets 2000] [--seed 0]

Each population is a list of equally likely kinds of samples, with the confidence and the error rate
of a small and a large model. The true risk, the share for the person and the cost of any thresholds
are therefore sums. The script prints a Markdown table with the following values for each population
and target: the share of calibration sets in which the true values of the cascade exceed a limit,
the mean cost divided by that of an oracle, and the share of sets without a certified pair. The
table also contains the share of sets with an exceeded limit for a choice without a guarantee, which
is the cheapest pair of thresholds that meets both limits on the calibration data.
"""

import argparse
from dataclasses import dataclass

import numpy as np

from abstain.thresholds import Cascade, CascadePlan, CascadeStage
from abstain.thresholds.cascade import CascadeData, compute_frontier, select_cascade

DELTA = 0.1
STAGES = (CascadeStage("small", cost=1), CascadeStage("large", cost=10))
STAGE_NAMES = tuple(stage.name for stage in STAGES)
N_KINDS = 2000


@dataclass(frozen=True)
class Population:
    """Confidences and error rates of both models for each kind of sample."""

    name: str
    confidences: tuple
    error_rates: tuple

    def sample(self, n, rng):
        kind = rng.integers(N_KINDS, size=n)
        losses = [rng.random(n) < rates[kind] for rates in self.error_rates]
        return CascadeData.from_arrays(STAGE_NAMES, [c[kind] for c in self.confidences], losses)

    @property
    def kinds(self):
        """One sample of each kind, with the error rate as its loss."""
        return CascadeData.from_arrays(STAGE_NAMES, self.confidences, self.error_rates)


def populations():
    rng = np.random.default_rng(7)
    difficulty = (np.arange(N_KINDS) + 0.5) / N_KINDS
    noise = [rng.normal(0, 0.12, N_KINDS) for _ in STAGES]
    confidences = tuple(np.clip(1 - difficulty + x, 0, 1) for x in noise)
    rounded = tuple(np.round(6 * c) / 6 for c in confidences)
    rates = (0.5 * difficulty**1.5, 0.2 * difficulty**2)
    oscillating = tuple(rate * (1 + 0.9 * np.sin(25 * difficulty)) for rate in rates)
    nearly_equal = (rates[0], 0.9 * rates[0])
    return (
        Population("a larger model that helps", confidences, rates),
        Population("error rates that go up and down", confidences, oscillating),
        Population("seven confidences, many ties", rounded, rates),
        Population("a larger model that hardly helps", confidences, nearly_equal),
    )


@dataclass(frozen=True)
class TrueValues:
    """Risk, share for the person and mean cost of a cascade in a population."""

    risk: float
    reviews: float
    cost: float

    def exceeds(self, plan):
        return self.risk > plan.max_risk or self.reviews > plan.capacity


def true_values(population, cascade):
    kinds = population.kinds
    answered_by = cascade.decide(*kinds.confidences)
    risk = kinds.losses_of_answers(answered_by).mean()
    reviews = float((answered_by == len(STAGES)).mean())
    cost = cascade.costs(answered_by).mean() + cascade.plan.error_cost * risk
    return TrueValues(risk, reviews, cost)


def meets_limits(frontier, plan):
    """Return which choices of thresholds meet both limits on the data of the frontier."""
    return (frontier.risk <= plan.max_risk) & (frontier.reviews <= plan.capacity)


def oracle_cost(population, plan):
    """Return the least cost among all thresholds that meet both limits in the population."""
    frontier = compute_frontier(population.kinds, STAGES, plan)
    is_safe = meets_limits(frontier, plan)
    return frontier.cost[is_safe].min() if is_safe.any() else np.nan


def cheapest_without_guarantee(frontier, plan):
    """Return the cheapest cascade that meets both limits on the calibration data, or None."""
    choices = np.flatnonzero(meets_limits(frontier, plan))
    if choices.size == 0:
        return None
    cheapest = int(choices[np.argmin(frontier.cost[choices])])
    answered = (0.0,) * (len(STAGES) + 1)
    return Cascade(
        frontier.stages_for_choice(cheapest), plan, frontier.n, frontier.n, answered, 0.0
    )


@dataclass(frozen=True)
class Shares:
    """Results of one setting: shares of the calibration sets, and the relative cost."""

    exceeded: float
    exceeded_without_guarantee: float
    relative_cost: float
    unattainable: float


def simulate(population, plan, n, n_sets, rng):
    n_exceeded = n_exceeded_without_guarantee = n_unattainable = 0
    costs = []
    for _ in range(n_sets):
        data = population.sample(n, rng)
        frontier = compute_frontier(data, STAGES, plan)
        cascade = select_cascade(frontier, data)
        if cascade.attainable:
            values = true_values(population, cascade)
            n_exceeded += values.exceeds(plan)
            costs.append(values.cost)
        else:
            n_unattainable += 1
        cheapest = cheapest_without_guarantee(frontier, plan)
        if cheapest is not None:
            n_exceeded_without_guarantee += true_values(population, cheapest).exceeds(plan)
    relative_cost = np.mean(costs) / oracle_cost(population, plan) if costs else np.nan
    return Shares(
        n_exceeded / n_sets,
        n_exceeded_without_guarantee / n_sets,
        relative_cost,
        n_unattainable / n_sets,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    header = (
        "population", "largest risk, share for people", "n", "a target exceeded (MC error)",
        "without guarantee: exceeded", "cost / oracle", "no certified pair",
    )  # fmt: skip
    print(f"| {' | '.join(header)} |")
    print("| --- " * len(header) + "|")
    for population in populations():
        for risk, capacity, n in ((0.05, 1.0, 500), (0.05, 1.0, 4000), (0.05, 0.25, 4000)):
            plan = CascadePlan(risk, DELTA, capacity=capacity, person_cost=100)
            rng = np.random.default_rng(options.seed)
            shares = simulate(population, plan, n, options.sets, rng)
            # At least one set, so that the error of a share of 0 is not 0.
            error = (max(shares.exceeded, 1 / options.sets) / options.sets) ** 0.5
            limit = "no limit" if capacity == 1 else f"{capacity:g}"
            print(
                f"| {population.name} | {risk:g}, {limit} | {n:,} "
                f"| {shares.exceeded:.4f} ({error:.4f}) "
                f"| {shares.exceeded_without_guarantee:.3f} | {shares.relative_cost:.2f} "
                f"| {shares.unattainable:.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
