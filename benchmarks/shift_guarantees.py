"""What guarantees for data of another law are worth: simulated calibration sets, known truth.

    python benchmarks/shift_guarantees.py [--sets 2000] [--fitted 200] [--seed 0]

Calibration samples have uniform ranks u and are wrong with chance 0.5 (1 - u)^2. Where the rule is
used u has the density w(u), and samples of one u are wrong as often. With the true ratios the share
of sets whose rule breaks its target must be at most delta; with ratios that a classifier fitted
nothing is promised, and the share is reported as it is. Prints Markdown tables.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from abstain import shift, thresholds
from abstain._foundation.random import as_generator

DELTA = 0.05
TARGETS = (0.1, 0.2)
SIZE = 1000
GRID = np.linspace(0, 1, 200_001)


def wrong(u):
    return 0.5 * (1 - u) ** 2


@dataclass(frozen=True)
class Law:
    """How much more often each rank comes up where the rule is used; the largest is known."""

    name: str
    ratio: Callable
    largest: float

    def truth(self):
        """Coverage and generalized risk when accepting u >= e, on the grid of e."""
        middle = (GRID[:-1] + GRID[1:]) / 2
        mass = self.ratio(middle) / (GRID.size - 1)
        above = [np.append(np.cumsum(x[::-1])[::-1], 0.0) for x in (mass, mass * wrong(middle))]
        return above[0] / above[0][0], above[1] / above[0][0]

    def sample(self, rng, n):
        """Ranks where the rule is used, by rejection."""
        out = np.empty(0)
        while out.size < n:
            u = rng.random(int(2 * self.largest * n))
            out = np.append(out, u[rng.random(u.size) * self.largest < self.ratio(u)])
        return out[:n]


SCALE = 4 / (1 - np.exp(-4))
LAWS = (
    Law("no shift", np.ones_like, 1.0),
    Law("linear, 2 (1 - u)", lambda u: 2 * (1 - u), 2.0),
    Law("steep, exp(-4 u)", lambda u: SCALE * np.exp(-4 * u), SCALE),
    Law("a rare tenth 5.5 times", lambda u: 0.5 + 5.0 * (u < 0.1), 5.5),
)


@dataclass(frozen=True)
class Way:
    """A rule with ratios; whether it promises the selective risk, and on average."""

    name: str
    choose: Callable
    selective: bool = True
    average: bool = False


WAYS = (
    Way("sgr", lambda c, x, r, q, i: thresholds.sgr(c, x, max_risk=r, delta=DELTA, ratio=q, rng=i)),
    Way(
        "learn_then_test",
        lambda c, x, r, q, _: thresholds.learn_then_test(c, x, max_risk=r, delta=DELTA, ratio=q),
    ),
    Way(
        "learn_then_test, generalized",
        lambda c, x, r, q, _: thresholds.learn_then_test(
            c, x, max_risk=r, delta=DELTA, ratio=q, risk="generalized"
        ),
        selective=False,
    ),
    Way(
        "conformal_risk_control",
        lambda c, x, r, q, _: thresholds.conformal_risk_control(c, x, max_risk=r, ratio=q),
        selective=False,
        average=True,
    ),
)


def oracle(law, target, *, selective):
    coverage, general = law.truth()
    fine = general <= target * (np.maximum(coverage, 1e-12) if selective else 1.0)
    return float(coverage[fine].max()) if fine.any() else 0.0


def achieved(law, way, rules):
    """True coverage and risk of each rule."""
    edges = np.array([1.0 if r.threshold is None else r.threshold for r in rules])
    coverage, general = (np.interp(edges, GRID, x) for x in law.truth())
    return coverage, general / np.maximum(coverage, 1e-300) if way.selective else general


def row(law, way, target, n, rules):
    coverage, risk = achieved(law, way, rules)
    exceeded = risk > target * (1 + 1e-9)
    spread = risk / target if way.average else exceeded
    error = float(spread.std() / np.sqrt(len(rules)))
    said = (
        f"mean risk {risk.mean() / target:.3f} ({error:.3f}) of target" if way.average
        else f"{exceeded.mean():.4f} ({error:.4f})"
    )  # fmt: skip
    best = oracle(law, target, selective=way.selective)
    kept = f"{coverage.mean() / best:.3f}" if best else "none safe"
    lacking = np.mean([not rule.attainable for rule in rules])
    return (law.name, way.name, f"{target:g}", n, said, kept, f"{lacking:.2f}")


def known(law, n, sets, rng):
    """Choose by the true ratios."""
    rules = {(way, target): [] for way in WAYS for target in TARGETS}
    for i in range(sets):
        u = rng.random(n)
        loss = rng.random(n) < wrong(u)
        ratios = shift.density_ratios(law.ratio(u), largest=law.largest)
        for (way, target), own in rules.items():
            own.append(way.choose(u, loss, target, ratios, i))
    return [row(law, way, target, n, own) for (way, target), own in rules.items()]


def fitted(law, n, sets, rng, *, clip):
    """Choose by ratios that a classifier estimated from as many samples without labels."""
    rules = {way: [] for way in WAYS}
    for i in range(sets):
        u = rng.random(n)
        loss = rng.random(n) < wrong(u)
        ratios = shift.fit_ratios(u, law.sample(rng, n), rng=i, clip=clip).ratios
        for way, own in rules.items():
            own.append(way.choose(u, loss, 0.1, ratios, i))
    return [row(law, way, 0.1, n, own) for way, own in rules.items()]


def table(rows):
    header = ("shift", "rule", "target", "n", "exceeded (MC error)", "coverage / oracle",
              "unattainable")  # fmt: skip
    for cells in (header, ["---"] * len(header), *rows):
        print("| " + " | ".join(map(str, cells)) + " |")
    print(flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sets", type=int, default=2000)
    parser.add_argument("--fitted", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = as_generator(options.seed)
    print(f"True ratios, {options.sets} calibration sets a setting, delta {DELTA}.\n")
    if options.sets:
        table([r for law in LAWS for r in known(law, SIZE, options.sets, rng)])
    for clip in (None, 3.0) if options.fitted else ():
        cut = "" if clip is None else f", clipped at {clip:g} times the mean"
        print(f"Fitted ratios{cut}, {options.fitted} calibration sets a setting.\n")
        table([r for law in LAWS for r in fitted(law, SIZE, options.fitted, rng, clip=clip)])


if __name__ == "__main__":
    main()
