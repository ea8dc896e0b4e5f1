"""Simulate the guarantees of `abstain.thresholds` on populations with known risks.

    python benchmarks/threshold_guarantees.py [--sets 10000] [--seed 0] [--full]

For each population, target and n, the script computes the share of calibration sets whose true risk
exceeds the target, the mean coverage divided by that of an oracle, and the share of sets without a
certified threshold. All sets of a setting are drawn and decided in arrays. The first sets of each
setting are also passed to the library, which must accept the same samples. Prints Markdown tables:
the worst and the mean over the settings, and with --full every setting. The last line is about a
population that is constructed against the binary search of SGR.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri
from threshold_populations import (
    DELTA,
    POPULATIONS,
    binary_search,
    conformal_risk_control,
    draw,
    empirical,
    fixed_sequence,
    learn_then_test_generalized,
)

from abstain import thresholds
from abstain._foundation.random import as_generator
from abstain.thresholds._walks import halved_coverages

TARGETS = (0.01, 0.05, 0.1, 0.25)
SIZES = (100, 500, 1000, 5000)
START_COVERAGES = (0.5, 0.25, 0.125)
#: Number of calibration sets of each setting that are also passed to the library.
N_CHECKED = 3
#: Largest number of samples in memory at the same time.
MAX_SAMPLES = 1_000_000


@dataclass(frozen=True)
class SimulatedRule:
    """A decision rule as a function of many calibration sets, and as a function of the library."""

    name: str
    edges: Callable
    fit: Callable
    is_selective: bool = True
    #: Whether the guarantee refers to the mean risk over calibration sets.
    is_mean: bool = False
    needs_binary_loss: bool = False


RULES = (
    SimulatedRule("empirical", empirical, lambda c, x, r: thresholds.for_risk(c, x, max_risk=r)),
    SimulatedRule(
        "sgr",
        lambda sets, population, target: fixed_sequence(
            sets, population, target, halved_coverages(sets.n, target, DELTA)
        ),
        lambda c, x, r: thresholds.sgr(c, x, max_risk=r, delta=DELTA),
        needs_binary_loss=True,
    ),
    SimulatedRule(
        "sgr, binary search",
        binary_search,
        lambda c, x, r: thresholds.sgr(c, x, max_risk=r, delta=DELTA, search="binary"),
        needs_binary_loss=True,
    ),
    SimulatedRule(
        "learn_then_test",
        lambda sets, population, target: fixed_sequence(sets, population, target, START_COVERAGES),
        lambda c, x, r: thresholds.learn_then_test(c, x, max_risk=r, delta=DELTA),
    ),
    SimulatedRule(
        "learn_then_test, generalized",
        learn_then_test_generalized,
        lambda c, x, r: thresholds.learn_then_test(
            c, x, max_risk=r, delta=DELTA, risk="generalized"
        ),
        is_selective=False,
    ),
    SimulatedRule(
        "conformal_risk_control",
        conformal_risk_control,
        lambda c, x, r: thresholds.conformal_risk_control(c, x, max_risk=r),
        is_selective=False,
        is_mean=True,
    ),
)


def check_library(rule, sets, target, edges):
    """Check that the library accepts the same samples of the first sets."""
    for i in range(min(N_CHECKED, edges.size)):
        fitted = rule.fit(sets.lower[i], sets.loss[i], target)
        accepted = sets.lower[i] >= edges[i]
        assert fitted.accepted == accepted.sum(), (rule.name, target, i)
        assert (fitted.apply(sets.lower[i]) == accepted).all()


@dataclass(frozen=True)
class Outcome:
    """Result of a rule in one setting over all calibration sets."""

    population: str
    rule: SimulatedRule
    target: float
    n: int
    exceeded_share: float
    #: Standard error of the quantity with the guarantee: the mean risk or the exceeded share.
    error: float
    #: Mean coverage divided by the coverage of the oracle.
    relative_coverage: float
    unattainable_share: float
    #: Mean true risk divided by the target.
    relative_risk: float


def outcome(population, rule, target, n, edges, risks_by_edge):
    """Compute the outcome of a rule from its thresholds and the true risks."""
    coverage = 1 - edges
    generalized_risk = np.interp(edges, *risks_by_edge)
    risk = generalized_risk
    if rule.is_selective:
        risk = generalized_risk / np.maximum(coverage, 1e-300)
    is_exceeded = risk > target * (1 + 1e-9)
    oracle = population.oracle_coverage(target, selective=rule.is_selective)
    guaranteed = risk / target if rule.is_mean else is_exceeded
    return Outcome(
        population=population.name,
        rule=rule,
        target=target,
        n=n,
        exceeded_share=float(is_exceeded.mean()),
        error=float(guaranteed.std() / np.sqrt(edges.size)),
        relative_coverage=float(coverage.mean() / oracle) if oracle else float("nan"),
        unattainable_share=float((edges >= 1).mean()),
        relative_risk=float(risk.mean() / target),
    )


def simulate(population, n, n_sets, rng):
    """Return the outcomes of one population and size, for every rule and target."""
    rules = [rule for rule in RULES if not (population.is_graded and rule.needs_binary_loss)]
    settings = [(rule, target) for rule in rules for target in TARGETS]
    edges = {setting: [] for setting in settings}
    chunk_size = max(1, MAX_SAMPLES // n)
    for start in range(0, n_sets, chunk_size):
        sets = draw(population, rng, min(chunk_size, n_sets - start), n)
        for rule, target in settings:
            chunk_edges = rule.edges(sets, population, target)
            if start == 0:
                check_library(rule, sets, target, chunk_edges)
            edges[rule, target].append(chunk_edges)
    risks_by_edge = population.generalized_risks()
    return [
        outcome(population, rule, target, n, np.concatenate(edges[rule, target]), risks_by_edge)
        for rule, target in settings
    ]


def binary_search_violations(rng, n_draws):
    """Return delta, the share of draws in which SGR's binary search certifies an unsafe threshold.

    The population is constructed against the search. In the limit of many samples, the failures at
    15 nested thresholds are a Brownian motion. The risk at 13 of the thresholds is slightly above
    the target. The fourth and the eighth threshold are safe and are certified with probability 0.1.
    """
    delta, n_thresholds = 0.1, 15
    is_unsafe = np.ones(n_thresholds, bool)
    is_unsafe[[3, 7]] = False
    limit = np.where(is_unsafe, ndtri(delta / 4), -1.265)
    increments = np.array([
        1e-6, 2.6e-4, 1, 0.0141, 1.65e-5, 0.414, 270, 10.9, 8.1e-4, 55.2, 4e-6, 166, 1810, 191, 0.09
    ])  # fmt: skip
    motion = np.cumsum(rng.standard_normal((n_draws, n_thresholds)) * np.sqrt(increments), 1)
    is_certified = motion / np.sqrt(np.cumsum(increments)) <= limit
    rows = np.arange(n_draws)
    position, best = np.full(n_draws, 7), np.full(n_draws, -1)
    for step in (4, 2, 1, 0):
        passes = is_certified[rows, position]
        best = np.where(passes, position, best)
        position = np.where(passes, position + step, position - step)
    share = float(((best >= 0) & is_unsafe[np.maximum(best, 0)]).mean())
    return delta, share, float(np.sqrt(share * (1 - share) / n_draws))


def print_table(header, rows):
    """Print a Markdown table."""
    print("| " + " | ".join(header) + " |")
    print("|" + " --- |" * len(header))
    for row in rows:
        print("| " + " | ".join(str(x) for x in row) + " |")
    print()


def print_settings(outcomes):
    """Print one row for each setting."""
    header = (
        "population", "rule", "target", "n", "exceeded", "MC error", "coverage / oracle",
        "unattainable", "mean risk / target",
    )  # fmt: skip
    rows = [
        (
            item.population,
            item.rule.name,
            item.target,
            item.n,
            f"{item.exceeded_share:.4f}",
            f"{item.error:.4f}",
            f"{item.relative_coverage:.3f}",
            f"{item.unattainable_share:.3f}",
            f"{item.relative_risk:.3f}",
        )
        for item in outcomes
    ]
    print_table(header, rows)


def print_worst_settings(outcomes):
    """Print the largest exceeded share and the mean coverage of each rule on each population."""
    rows = []
    for population in POPULATIONS:
        for rule in RULES:
            settings = [
                item
                for item in outcomes
                if item.population == population.name and item.rule is rule
            ]
            if not settings:
                continue
            if rule.is_mean:
                worst = max(settings, key=lambda item: item.relative_risk)
                cell = f"mean risk {worst.relative_risk:.3f} ({worst.error:.3f}) of target"
            else:
                worst = max(settings, key=lambda item: item.exceeded_share)
                cell = f"{worst.exceeded_share:.4f} ({worst.error:.4f})"
            relative_coverage = np.nanmean([item.relative_coverage for item in settings])
            unattainable_share = np.mean([item.unattainable_share for item in settings])
            rows.append((
                population.name, rule.name, cell, f"{worst.target:g}, {worst.n:,}",
                f"{relative_coverage:.3f}", f"{unattainable_share:.3f}",
            ))  # fmt: skip
    header = (
        "population", "rule", "worst share exceeded (MC error)", "at target, n",
        "mean coverage / oracle", "mean share unattainable",
    )  # fmt: skip
    print_table(header, rows)


def print_coverages(outcomes, populations):
    """Print the coverage of the rules for a selective risk, by target and n."""
    rules = [rule for rule in RULES if rule.is_selective]
    by_setting = {(item.population, item.rule.name, item.target, item.n): item for item in outcomes}
    for population in populations:
        print(f"**{population}**\n")
        rows = []
        for target in TARGETS:
            for n in SIZES:
                cells = []
                for rule in rules:
                    item = by_setting[population, rule.name, target, n]
                    shares = f"({item.exceeded_share:.3f}, {item.unattainable_share:.2f})"
                    cells.append(f"{item.relative_coverage:.3f} {shares}")
                rows.append((target, f"{n:,}", *cells))
        print_table(("target", "n", *(rule.name for rule in rules)), rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sets", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--full", action="store_true")
    options = parser.parse_args()
    rng = as_generator(options.seed)
    outcomes = [
        item
        for population in POPULATIONS
        for n in SIZES
        for item in simulate(population, n, options.sets, rng)
    ]
    print(f"{options.sets} calibration sets a setting, delta {DELTA}.\n")
    print_worst_settings(outcomes)
    print_coverages(outcomes, ["continuous", "half at 1.0"])
    if options.full:
        print_settings(outcomes)
    delta, share, error = binary_search_violations(rng, 100 * options.sets)
    print(
        f"Binary search on the population constructed against it: delta {delta}, target exceeded "
        f"in a share of {share:.4f} ({error:.4f})"
    )


if __name__ == "__main__":
    main()
