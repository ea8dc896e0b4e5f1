"""What the guarantees of `abstain.thresholds` are worth: simulated calibration sets, known truth.

    python benchmarks/threshold_guarantees.py [--sets 10000] [--seed 0] [--full]

For each law, target and n: how often does the true risk exceed the target, how much of the coverage
of an oracle is kept, how often is nothing certified? The sets are drawn and decided in arrays; the
first of each setting are also given to the library, which must accept the same samples. Prints
Markdown tables: the worst and mean over settings, and with --full every setting. The last line is
the law on which the binary search of SGR breaks its promise.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri
from threshold_laws import (
    DELTA,
    LAWS,
    binary,
    conformal,
    draw,
    empirical,
    generalized,
    walks,
)

from abstain import thresholds
from abstain._foundation.random import as_generator
from abstain.thresholds._walks import halved_coverages

TARGETS = (0.01, 0.05, 0.1, 0.25)
SIZES = (100, 500, 1000, 5000)
STARTS = (0.5, 0.25, 0.125)
CHECKED = 3
MEMORY = 1_000_000


@dataclass(frozen=True)
class Way:
    """A method: in arrays, and in the library."""

    name: str
    arrays: Callable
    library: Callable
    selective: bool = True
    average: bool = False
    binary_only: bool = False


def _halved(s, law, risk):
    return walks(s, law, risk, halved_coverages(s.total.shape[1], risk, DELTA))


WAYS = (
    Way("empirical", empirical, lambda c, x, r: thresholds.for_risk(c, x, max_risk=r)),
    Way(
        "sgr",
        _halved,
        lambda c, x, r: thresholds.sgr(c, x, max_risk=r, delta=DELTA),
        binary_only=True,
    ),
    Way(
        "sgr, binary search",
        binary,
        lambda c, x, r: thresholds.sgr(c, x, max_risk=r, delta=DELTA, search="binary"),
        binary_only=True,
    ),
    Way(
        "learn_then_test",
        lambda s, law, risk: walks(s, law, risk, STARTS),
        lambda c, x, r: thresholds.learn_then_test(c, x, max_risk=r, delta=DELTA),
    ),
    Way(
        "learn_then_test, generalized",
        generalized,
        lambda c, x, r: thresholds.learn_then_test(
            c, x, max_risk=r, delta=DELTA, risk="generalized"
        ),
        selective=False,
    ),
    Way(
        "conformal_risk_control",
        conformal,
        lambda c, x, r: thresholds.conformal_risk_control(c, x, max_risk=r),
        selective=False,
        average=True,
    ),
)


def agree(way, s, law, risk, edges, sets):
    """Give the first sets to the library; it must accept the same samples."""
    for i in range(sets):
        rule = way.library(s.lower[i], s.loss[i], risk)
        inside = s.lower[i] >= edges[i]
        assert rule.accepted == inside.sum(), (way.name, law.name, risk, i)
        assert (rule.apply(s.lower[i]) == inside).all()


@dataclass(frozen=True)
class Outcome:
    """A setting: shares over the sets; the Monte-Carlo error is that of what is promised."""

    law: str
    way: Way
    target: float
    n: int
    exceeded: float
    error: float
    kept: float
    unattainable: float
    mean: float


def outcome(law, way, target, n, edges, truth):
    """Compare the decisions with the truth."""
    coverage = 1 - edges
    general = np.interp(edges, *truth)
    risk = general / np.maximum(coverage, 1e-300) if way.selective else general
    exceeded = float((risk > target * (1 + 1e-9)).mean())
    best = law.oracle(target, selective=way.selective)
    kept = float(coverage.mean() / best) if best else float("nan")
    spread = risk / target if way.average else risk > target * (1 + 1e-9)
    error = float(spread.std() / np.sqrt(edges.size))
    return Outcome(
        law.name, way, target, n, exceeded, error, kept, float((edges >= 1).mean()),
        float(risk.mean() / target),
    )  # fmt: skip


def study(law, n, sets, rng):
    """Decide all sets of one law and size, by every method and for every target."""
    pairs = [(w, t) for w in WAYS if not (law.graded and w.binary_only) for t in TARGETS]
    edges = {pair: [] for pair in pairs}
    rows = max(1, MEMORY // n)
    for start in range(0, sets, rows):
        s = draw(law, rng, min(rows, sets - start), n)
        for way, target in pairs:
            found = way.arrays(s, law, target)
            if start == 0:
                agree(way, s, law, target, found, min(CHECKED, found.size))
            edges[way, target].append(found)
    truth = law.grid()
    return [outcome(law, w, t, n, np.concatenate(edges[w, t]), truth) for w, t in pairs]


def broken_search(rng, draws):
    """How often SGR's binary search certifies an unsafe threshold, on a law made against it.

    In the limit of many samples the failures at 15 nested thresholds are a Brownian motion; 13 of
    them are unsafe by a hair, the fourth and the eighth are safe and are certified one time in ten.
    """
    delta, size = 0.1, 15
    unsafe = np.ones(size, bool)
    unsafe[[3, 7]] = False
    cut = np.where(unsafe, ndtri(delta / 4), -1.265)
    steps = np.array([
        1e-6, 2.6e-4, 1, 0.0141, 1.65e-5, 0.414, 270, 10.9, 8.1e-4, 55.2, 4e-6, 166, 1810, 191, 0.09
    ])  # fmt: skip
    walk = np.cumsum(rng.standard_normal((draws, size)) * np.sqrt(steps), 1)
    certified = walk / np.sqrt(np.cumsum(steps)) <= cut
    rows, at, best = np.arange(draws), np.full(draws, 7), np.full(draws, -1)
    for step in (4, 2, 1, 0):
        fine = certified[rows, at]
        best = np.where(fine, at, best)
        at = np.where(fine, at + step, at - step)
    share = float(((best >= 0) & unsafe[np.maximum(best, 0)]).mean())
    return delta, share, float(np.sqrt(share * (1 - share) / draws))


def table(header, rows):
    """Print a Markdown table."""
    print("| " + " | ".join(header) + " |")
    print("|" + " --- |" * len(header))
    for row in rows:
        print("| " + " | ".join(str(x) for x in row) + " |")
    print()


def every_setting(found):
    """Print one row a setting."""
    table(
        ("law", "method", "target", "n", "exceeded", "MC error", "coverage / oracle",
         "unattainable", "mean risk / target"),
        [(o.law, o.way.name, o.target, o.n, f"{o.exceeded:.4f}", f"{o.error:.4f}", f"{o.kept:.3f}",
          f"{o.unattainable:.3f}", f"{o.mean:.3f}") for o in found],
    )  # fmt: skip


def promises(found):
    """Print the worst share, and mean coverage, of each rule on each law."""
    rows = []
    for law in LAWS:
        for way in WAYS:
            mine = [o for o in found if o.law == law.name and o.way is way]
            if not mine:
                continue
            # What is promised on average is judged by the average.
            worst = max(mine, key=lambda o: o.mean if o.way.average else o.exceeded)
            shown = (
                f"mean risk {worst.mean:.3f} ({worst.error:.3f}) of target" if way.average
                else f"{worst.exceeded:.4f} ({worst.error:.4f})"
            )  # fmt: skip
            rows.append((law.name, way.name, shown, f"{worst.target:g}, {worst.n}",
                         f"{np.nanmean([o.kept for o in mine]):.3f}",
                         f"{np.mean([o.unattainable for o in mine]):.3f}"))  # fmt: skip
    table(("law", "rule", "worst share exceeded (MC error)", "at target, n",
           "mean coverage / oracle", "mean share unattainable"), rows)  # fmt: skip


def coverages(found, laws):
    """Print how much coverage the ways to keep a selective risk give, by target and n."""
    ways = [w for w in WAYS if w.selective]
    known = {(o.law, o.way.name, o.target, o.n): o for o in found}
    for law in laws:
        print(f"**{law}**\n")
        rows = []
        for target in TARGETS:
            for n in SIZES:
                mine = [known[law, w.name, target, n] for w in ways]
                cells = [f"{o.kept:.3f} ({o.exceeded:.3f}, {o.unattainable:.2f})" for o in mine]
                rows.append((target, n, *cells))
        table(("target", "n", *(w.name for w in ways)), rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sets", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--full", action="store_true")
    options = parser.parse_args()
    rng = as_generator(options.seed)
    found = [o for law in LAWS for n in SIZES for o in study(law, n, options.sets, rng)]
    print(f"{options.sets} calibration sets a setting, delta {DELTA}.\n")
    promises(found)
    coverages(found, ["continuous", "half at 1.0"])
    if options.full:
        every_setting(found)
    delta, share, error = broken_search(rng, 100 * options.sets)
    print(
        f"Binary search on the law made against it: delta {delta}, broken {share:.4f} ({error:.4f})"
    )


if __name__ == "__main__":
    main()
