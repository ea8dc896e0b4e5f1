"""What the promise of a cascade is worth: simulated calibration sets, true risk and load known.

    python benchmarks/cascade_guarantees.py [--sets 2000] [--seed 0]

Each law is a list of kinds of samples, all equally likely, with the confidence and the error rate
of a small and a large model on each: so the true risk, load and cost of any thresholds are sums.
For each law and target: how often does the cascade break its promise, what does it cost beside the
cheapest thresholds that keep it in truth (the oracle), how often is nothing certified; and how
often breaks the cheapest pair that keeps both targets on the calibration data itself (plain).
Prints a Markdown table.
"""

import argparse
from dataclasses import dataclass

import numpy as np

from abstain.thresholds import Cascade, CascadePlan, CascadeStage
from abstain.thresholds.cascade import CascadeData, compute_frontier, select_cascade

DELTA = 0.1
NAMES = ("small", "large")
STAGES = (CascadeStage("small", cost=1), CascadeStage("large", cost=10))
KINDS = 2000


@dataclass(frozen=True)
class Law:
    """Kinds of samples: confidences and error rates of both models."""

    name: str
    confidence: tuple
    wrong: tuple

    def sample(self, n, rng):
        kind = rng.integers(self.confidence[0].size, size=n)
        losses = [rng.random(n) < wrong[kind] for wrong in self.wrong]
        return CascadeData.from_arrays(NAMES, [c[kind] for c in self.confidence], losses)

    @property
    def exact(self):
        """The kinds as samples, whose mean losses are the error rates."""
        return CascadeData.from_arrays(NAMES, self.confidence, self.wrong)


def laws():
    rng = np.random.default_rng(7)
    hard = (np.arange(KINDS) + 0.5) / KINDS
    noise = [rng.normal(0, 0.12, KINDS) for _ in NAMES]
    skill = (0.5 * hard**1.5, 0.2 * hard**2)
    sure = tuple(np.clip(1 - hard + e, 0, 1) for e in noise)
    uneven = tuple(w * (1 + 0.9 * np.sin(25 * hard)) for w in skill)
    coarse = tuple(np.round(6 * c) / 6 for c in sure)
    same = (skill[0], 0.9 * skill[0])
    return (
        Law("a larger model that helps", sure, skill),
        Law("error rates that go up and down", sure, uneven),
        Law("seven confidences, many ties", coarse, skill),
        Law("a larger model that hardly helps", sure, same),
    )


def truth(law, made, plan):
    """Return risk, load and cost of a cascade under a law."""
    data = law.exact
    who = made.decide(*data.confidences)
    loss = data.loss_of(who).mean()
    return loss, float((who == len(NAMES)).mean()), made.costs(who).mean() + plan.error_cost * loss


def oracle(law, plan):
    """Return the least cost among all thresholds that keep the promise in truth."""
    found = compute_frontier(law.exact, STAGES, plan)
    fine = (found.risk <= plan.max_risk) & (found.reviews <= plan.capacity)
    return found.cost[fine].min() if fine.any() else np.nan


def run(law, plan, n, sets, rng):
    broken = plain_broken = none = 0
    costs = []
    for _ in range(sets):
        data = law.sample(n, rng)
        found = compute_frontier(data, STAGES, plan)
        made = select_cascade(found, data)
        none += not made.attainable
        if made.attainable:
            risk, load, cost = truth(law, made, plan)
            broken += risk > plan.max_risk or load > plan.capacity
            costs.append(cost)
        fine = np.flatnonzero((found.risk <= plan.max_risk) & (found.reviews <= plan.capacity))
        if fine.size:
            stages = found.stages_for_choice(int(fine[np.argmin(found.cost[fine])]))
            plain = Cascade(stages, plan, n, n, (0.0, 0.0, 0.0), 0.0)
            risk, load, _ = truth(law, plain, plan)
            plain_broken += risk > plan.max_risk or load > plan.capacity
    mean = np.mean(costs) / oracle(law, plan) if costs else np.nan
    return broken / sets, plain_broken / sets, mean, none / sets


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    head = ("law", "largest risk, share for people", "n", "broken (MC error)", "plain: broken")
    print(f"| {' | '.join((*head, 'cost / oracle', 'nothing'))} |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for law in laws():
        for risk, capacity, n in ((0.05, 1.0, 500), (0.05, 1.0, 4000), (0.05, 0.25, 4000)):
            plan = CascadePlan(risk, DELTA, capacity=capacity, person_cost=100)
            rng = np.random.default_rng(given.seed)
            broken, plain, cost, none = run(law, plan, n, given.sets, rng)
            error = (max(broken, 1 / given.sets) / given.sets) ** 0.5
            share = "no limit" if capacity == 1 else f"{capacity:g}"
            print(
                f"| {law.name} | {risk:g}, {share} | {n} | {broken:.4f} ({error:.4f}) "
                f"| {plain:.3f} | {cost:.2f} | {none:.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
