"""Simulate the guarantees of decision rules under shift, on populations with known risks.

    python benchmarks/shift_guarantees.py [--sets 2000] [--fitted 200] [--seed 0]

Calibration samples have uniform ranks u and are wrong with probability 0.5 (1 - u)^2. In the target
data, u has the density w(u), and the error rate for each u is the same. With the true density
ratios, the share of sets whose true risk exceeds the target must be at most delta. Ratios that a
classifier estimates have no guarantee, and the tables report the share. Prints Markdown tables.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from abstain import shift, thresholds
from abstain._foundation.random import as_generator

DELTA = 0.05
TARGETS = (0.1, 0.2)
FITTED_TARGET = 0.1
SIZE = 1000
#: Thresholds at which the true risk is computed.
GRID = np.linspace(0, 1, 200_001)


def error_rate(u):
    return 0.5 * (1 - u) ** 2


@dataclass(frozen=True)
class Shift:
    """Density of the ranks in the target data."""

    name: str
    density: Callable
    max_density: float

    def coverages_and_risks(self):
        """Return coverage and generalized risk in the target data for each threshold of GRID."""
        middle = (GRID[:-1] + GRID[1:]) / 2
        mass = self.density(middle) / (GRID.size - 1)
        accepted_mass = mass_above(mass)
        accepted_loss = mass_above(mass * error_rate(middle))
        return accepted_mass / accepted_mass[0], accepted_loss / accepted_mass[0]

    def sample(self, rng, n):
        """Draw ranks of target data by rejection sampling."""
        ranks = np.empty(0)
        while ranks.size < n:
            u = rng.random(int(2 * self.max_density * n))
            is_accepted = rng.random(u.size) * self.max_density < self.density(u)
            ranks = np.append(ranks, u[is_accepted])
        return ranks[:n]

    def oracle_coverage(self, target, *, selective):
        """Return the largest coverage whose true risk is at most the target."""
        coverage, generalized_risk = self.coverages_and_risks()
        limit = target * (np.maximum(coverage, 1e-12) if selective else 1.0)
        is_safe = generalized_risk <= limit
        return float(coverage[is_safe].max()) if is_safe.any() else 0.0


def mass_above(mass):
    """Return the sum of the cells above each point of the grid."""
    return np.append(np.cumsum(mass[::-1])[::-1], 0.0)


STEEP_SCALE = 4 / (1 - np.exp(-4))
SHIFTS = (
    Shift("no shift", np.ones_like, 1.0),
    Shift("linear, 2 (1 - u)", lambda u: 2 * (1 - u), 2.0),
    Shift("steep, exp(-4 u)", lambda u: STEEP_SCALE * np.exp(-4 * u), STEEP_SCALE),
    Shift("a rare tenth 5.5 times", lambda u: 0.5 + 5.0 * (u < 0.1), 5.5),
)


@dataclass(frozen=True)
class SimulatedRule:
    """A decision rule that uses density ratios."""

    name: str
    fit: Callable
    is_selective: bool = True
    #: Whether the guarantee refers to the mean risk over calibration sets.
    is_mean: bool = False


RULES = (
    SimulatedRule(
        "sgr", lambda c, x, r, q, i: thresholds.sgr(c, x, max_risk=r, delta=DELTA, ratio=q, rng=i)
    ),
    SimulatedRule(
        "learn_then_test",
        lambda c, x, r, q, _: thresholds.learn_then_test(c, x, max_risk=r, delta=DELTA, ratio=q),
    ),
    SimulatedRule(
        "learn_then_test, generalized",
        lambda c, x, r, q, _: thresholds.learn_then_test(
            c, x, max_risk=r, delta=DELTA, ratio=q, risk="generalized"
        ),
        is_selective=False,
    ),
    SimulatedRule(
        "conformal_risk_control",
        lambda c, x, r, q, _: thresholds.conformal_risk_control(c, x, max_risk=r, ratio=q),
        is_selective=False,
        is_mean=True,
    ),
)


def true_coverages_and_risks(target_shift, rule, fitted_rules):
    """Return the true coverage and risk of each fitted rule in the target data."""
    edges = np.array([1.0 if r.threshold is None else r.threshold for r in fitted_rules])
    coverages, generalized_risks = target_shift.coverages_and_risks()
    coverage = np.interp(edges, GRID, coverages)
    generalized_risk = np.interp(edges, GRID, generalized_risks)
    if rule.is_selective:
        return coverage, generalized_risk / np.maximum(coverage, 1e-300)
    return coverage, generalized_risk


def table_row(target_shift, rule, target, fitted_rules):
    coverage, risk = true_coverages_and_risks(target_shift, rule, fitted_rules)
    is_exceeded = risk > target * (1 + 1e-9)
    guaranteed = risk / target if rule.is_mean else is_exceeded
    error = float(guaranteed.std() / np.sqrt(len(fitted_rules)))
    if rule.is_mean:
        risk_cell = f"mean risk {risk.mean() / target:.3f} ({error:.3f}) of target"
    else:
        risk_cell = f"{is_exceeded.mean():.4f} ({error:.4f})"
    oracle = target_shift.oracle_coverage(target, selective=rule.is_selective)
    relative_coverage = f"{coverage.mean() / oracle:.3f}" if oracle else "none safe"
    unattainable_share = np.mean([not fitted.attainable for fitted in fitted_rules])
    return (
        target_shift.name,
        rule.name,
        f"{target:g}",
        f"{SIZE:,}",
        risk_cell,
        relative_coverage,
        f"{unattainable_share:.2f}",
    )


def draw_calibration_set(rng):
    u = rng.random(SIZE)
    return u, rng.random(SIZE) < error_rate(u)


def simulate_true_ratios(target_shift, n_sets, rng):
    """Return the rows of a shift for rules that use the true density ratios."""
    fitted_rules = {(rule, target): [] for rule in RULES for target in TARGETS}
    for i in range(n_sets):
        u, loss = draw_calibration_set(rng)
        ratios = shift.density_ratios(target_shift.density(u), largest=target_shift.max_density)
        for (rule, target), fitted in fitted_rules.items():
            fitted.append(rule.fit(u, loss, target, ratios, i))
    return [
        table_row(target_shift, rule, target, fitted)
        for (rule, target), fitted in fitted_rules.items()
    ]


def simulate_fitted_ratios(target_shift, n_sets, rng, *, clip):
    """Return the rows of a shift for ratios that are estimated from SIZE unlabeled samples."""
    fitted_rules = {rule: [] for rule in RULES}
    for i in range(n_sets):
        u, loss = draw_calibration_set(rng)
        ratios = shift.fit_ratios(u, target_shift.sample(rng, SIZE), rng=i, clip=clip).ratios
        for rule, fitted in fitted_rules.items():
            fitted.append(rule.fit(u, loss, FITTED_TARGET, ratios, i))
    return [
        table_row(target_shift, rule, FITTED_TARGET, fitted)
        for rule, fitted in fitted_rules.items()
    ]


def print_table(rows):
    header = (
        "density in the target data", "rule", "target", "n", "exceeded (MC error)",
        "coverage / oracle", "unattainable",
    )  # fmt: skip
    for cells in (header, ["---"] * len(header), *rows):
        print("| " + " | ".join(cells) + " |")
    print(flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sets", type=int, default=2000)
    parser.add_argument("--fitted", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = as_generator(options.seed)
    if options.sets:
        print(f"True ratios, {options.sets} calibration sets a setting, delta {DELTA}.\n")
        print_table(
            [row for item in SHIFTS for row in simulate_true_ratios(item, options.sets, rng)]
        )
    if not options.fitted:
        return
    for clip in (None, 3.0):
        clipping = "" if clip is None else f", clipped at {clip:g} times the mean"
        print(f"Fitted ratios{clipping}, {options.fitted} calibration sets a setting.\n")
        rows = [
            row
            for item in SHIFTS
            for row in simulate_fitted_ratios(item, options.fitted, rng, clip=clip)
        ]
        print_table(rows)


if __name__ == "__main__":
    main()
