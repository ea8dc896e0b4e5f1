"""Simulate thresholds by group, and one threshold with several limits, with known risks.

    python benchmarks/threshold_groups.py [--sets 10000] [--seed 0]

The calibration sets consist of four groups. Each group has a share of the samples and an error rate
for every confidence, so its true risk above any threshold is known. For each population and n, the
table shows the share of sets in which the true risk of a group is above the target: with one
threshold for all groups, with separate and with joint guarantees for each group, and with one
threshold for two limits. All sets are drawn and decided in arrays. The first sets of each setting
are also passed to the library, which must accept the same samples. Prints a Markdown table.
"""

import argparse
from functools import partial
from itertools import product

import numpy as np
from threshold_populations import (
    DELTA,
    Population,
    decreasing_rate,
    draw,
    fixed_sequence,
    oscillating_rate,
    refuting_totals,
)

from abstain import thresholds
from abstain._foundation.random import as_generator
from abstain.thresholds import Limit
from abstain.thresholds._walks import halved_coverages
from abstain.thresholds.limits import DEFAULT_STARTS
from abstain.thresholds.mondrian import n_delta_shares

GROUPS = np.array(["a", "b", "c", "d"])
#: Share of each group, and its error rate divided by that of the hardest group.
SHARES = np.array([0.5, 0.3, 0.15, 0.05])
HARDNESS = np.array([0.3, 0.6, 1.0, 0.6])
HARDEST = 2
TARGET, SIZES = 0.05, (1000, 4000)
#: Limits of one threshold: overall, and in the hardest group.
OVERALL_LIMIT, GROUP_LIMIT = 0.05, 0.08
#: Number of calibration sets of each setting that are also passed to the library.
N_CHECKED = 3
#: Largest number of samples in memory at the same time.
MAX_SAMPLES = 1_000_000
#: Error rate of the hardest group, and lower edges of cells with equal confidence, by name.
POPULATIONS = {
    "continuous": (decreasing_rate, None),
    "uneven risk": (oscillating_rate, None),
    "20 values": (decreasing_rate, np.arange(20) / 20),
}


def population_with_hardness(name, hardness):
    """Return the population `name` with error rates that are multiplied by `hardness`."""
    error_rate, edges = POPULATIONS[name]
    return Population(name, lambda u: hardness * error_rate(u), edges)


def true_risk(population, edges):
    """Return the true selective risk above each edge, or 0 if no sample is accepted."""
    generalized_risk = np.interp(edges, *population.generalized_risks())
    return np.where(edges < 1, generalized_risk / np.maximum(1 - edges, 1e-300), 0.0)


def is_above(risk, target):
    return risk > target * (1 + 1e-9)


def simulate_group_thresholds(name, n, n_sets, rng, *, joint):
    """Simulate thresholds by group.

    Returns whether the risk of each group exceeds the target, shape (sets, groups), and coverages.
    """
    sizes = np.rint(SHARES * n).astype(int)
    options = {"max_risk": TARGET, "delta": DELTA}
    delta = DELTA / (n_delta_shares("sgr", sizes, options) if joint else 1)
    is_exceeded, coverage, checked = [], 0.0, []
    for hardness, size in zip(HARDNESS, sizes, strict=True):
        population = population_with_hardness(name, hardness)
        sets = draw(population, rng, n_sets, size)
        start_coverages = halved_coverages(size, TARGET, delta)
        edges = fixed_sequence(sets, population, TARGET, start_coverages, delta=delta)
        is_exceeded.append(is_above(true_risk(population, edges), TARGET))
        coverage = coverage + size / n * (1 - edges)
        accepted = sets.lower >= edges[:, None]
        checked.append([x[:N_CHECKED] for x in (sets.lower, sets.loss, accepted)])
    groups = np.repeat(GROUPS, sizes)
    # Concatenate the groups: arrays of shape (checked sets, n).
    confidences, losses, accepted = (np.concatenate(x, axis=1) for x in zip(*checked, strict=True))
    for i in range(len(confidences)):
        rule = thresholds.fit_groups(
            "sgr", confidences[i], losses[i], groups, joint=joint, **options
        )
        assert (rule.apply(confidences[i], group=groups) == accepted[i]).all(), (name, n, joint, i)
    return np.stack(is_exceeded, axis=1), coverage


def simulate_single_threshold(name, n, n_sets, rng):
    """Simulate one threshold with a guarantee for all groups together.

    Returns whether the risk of each group exceeds the target, shape (sets, groups), and coverages.
    """
    population = population_with_hardness(name, float(SHARES @ HARDNESS))
    sets = draw(population, rng, n_sets, n)
    edges = fixed_sequence(sets, population, TARGET, halved_coverages(n, TARGET, DELTA))
    is_exceeded = [
        is_above(true_risk(population_with_hardness(name, hardness), edges), TARGET)
        for hardness in HARDNESS
    ]
    return np.stack(is_exceeded, axis=1), 1 - edges


def simulate_two_limits(name, n, n_sets, rng):
    """Simulate one threshold with a limit overall and a limit in the hardest group.

    Returns whether each limit is exceeded, shape (sets, limits), and coverages.
    """
    population = population_with_hardness(name, float(SHARES @ HARDNESS))
    sets = draw(population, rng, n_sets, n)
    error_rate = mean_error_rate(population, sets.lower)
    is_hardest = rng.random(sets.loss.shape) < probability_of_hardest(sets, error_rate)
    count, total = np.cumsum(is_hardest, 1), np.cumsum(is_hardest * sets.loss, 1)

    def group_limit_holds(level):
        limit = refuting_totals(n, GROUP_LIMIT, level, graded=False, generalized=False)
        return (count > 0) & (total <= limit[np.maximum(count, 1) - 1])

    edges = fixed_sequence(
        sets, population, OVERALL_LIMIT, DEFAULT_STARTS, additional_condition=group_limit_holds
    )
    for i in range(min(N_CHECKED, n_sets)):
        confidence = sets.lower[i]
        limits = [
            Limit("overall", OVERALL_LIMIT),
            Limit("group:c", GROUP_LIMIT, is_hardest[i]),
        ]
        rule = thresholds.several_risks(confidence, sets.loss[i], limits, delta=DELTA)
        assert (rule.apply(confidence) == (confidence >= edges[i])).all(), (name, n, i)
    hardest = population_with_hardness(name, HARDNESS[HARDEST])
    is_exceeded = [
        is_above(true_risk(population, edges), OVERALL_LIMIT),
        is_above(true_risk(hardest, edges), GROUP_LIMIT),
    ]
    return np.stack(is_exceeded, axis=1), 1 - edges


def mean_error_rate(population, lower):
    """Return the mean error rate at each confidence."""
    if population.edges is None:
        return population.error_rate(lower)
    points_in_cell = (np.arange(1000) + 0.5) / 1000 / population.edges.size
    rates = np.array([population.error_rate(e + points_in_cell).mean() for e in population.edges])
    return rates[np.searchsorted(population.edges, lower)]


def probability_of_hardest(sets, error_rate):
    """Return the probability of the hardest group, given the confidence and the loss."""
    share, hardness = SHARES[HARDEST], HARDNESS[HARDEST]
    mean_hardness = float(SHARES @ HARDNESS)
    if_correct = share * (1 - hardness * error_rate / mean_hardness)
    if_correct /= np.maximum(1 - error_rate, 1e-12)
    if_wrong = share * hardness / mean_hardness
    return np.where(sets.loss > 0, if_wrong, if_correct)


SIMULATIONS = {
    "one for all groups": simulate_single_threshold,
    "each group, separate guarantees": partial(simulate_group_thresholds, joint=False),
    "each group, joint guarantee": partial(simulate_group_thresholds, joint=True),
    "one for all groups, two limits": simulate_two_limits,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sets", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = as_generator(options.seed)
    print(f"{options.sets} calibration sets a setting, target {TARGET}, delta {DELTA}.\n")
    print(
        "| population | n | threshold | above target, worst group | "
        "above target, any group (MC error) | mean coverage |"
    )
    print("| --- " * 6 + "|")
    for name, n in product(POPULATIONS, SIZES):
        chunk_size = MAX_SAMPLES // n
        chunks = [
            min(chunk_size, options.sets - start) for start in range(0, options.sets, chunk_size)
        ]
        for title, simulate in SIMULATIONS.items():
            results = [simulate(name, n, n_sets, rng) for n_sets in chunks]
            is_exceeded = np.concatenate([exceeded for exceeded, _ in results])
            coverage = np.concatenate([coverages for _, coverages in results]).mean()
            any_share = is_exceeded.any(axis=1).mean()
            error = np.sqrt(any_share * (1 - any_share) / options.sets)
            print(
                f"| {name} | {n:,} | {title} | {is_exceeded.mean(axis=0).max():.4f} | "
                f"{any_share:.4f} ({error:.4f}) | {coverage:.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
