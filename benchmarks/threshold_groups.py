"""What a threshold for each group, and one threshold within several limits, promise: known truth.

    python benchmarks/threshold_groups.py [--sets 10000] [--seed 0]

Calibration sets of four groups, each with its own share of the samples and its own chance of an
error at every confidence, so that the true risk of each group above any threshold is known. For
each law and n: in how many sets is the true risk of a group above the target, with one threshold
for all, one for each group, promises that hold together, and one threshold within two limits?
The sets are drawn and decided in arrays; the first of each setting are also given to the library,
which must accept the same samples. Prints a Markdown table.
"""

import argparse

import numpy as np
from threshold_laws import DELTA, Law, critical_for, draw, falling, uneven, walks

from abstain import thresholds
from abstain._foundation.random import as_generator
from abstain.thresholds import Limit
from abstain.thresholds._walks import halved_coverages
from abstain.thresholds.limits import DEFAULT_STARTS
from abstain.thresholds.mondrian import n_delta_shares

SHARES = np.array([0.5, 0.3, 0.15, 0.05])
HARDNESS = np.array([0.3, 0.6, 1.0, 0.6])
NAMES = np.array(["a", "b", "c", "d"])
HARDEST = 2
TARGET, SIZES = 0.05, (1000, 4000)
#: Of one threshold: overall, and in the hardest group.
LIMITS = (0.05, 0.08)
CHECKED, MEMORY = 3, 1_000_000
WRONGS = {
    "continuous": (falling, None),
    "uneven risk": (uneven, None),
    "20 values": (falling, np.arange(20) / 20),
}


def law_of(name, hardness):
    """The law of a group: all have one law of confidences, and errors in proportion."""
    wrong, edges = WRONGS[name]
    return Law(name, lambda u: hardness * wrong(u), edges)


def true_risk(law, edges):
    """The true selective risk above each edge; 0 where nothing is above."""
    general = np.interp(edges, *law.grid())
    return np.where(edges < 1, general / np.maximum(1 - edges, 1e-300), 0.0)


def above(risk, target):
    return risk > target * (1 + 1e-9)


def by_group(name, n, sets, rng, *, joint):
    """Return which groups are broken in each set, and the coverage."""
    sizes = np.rint(SHARES * n).astype(int)
    options = {"max_risk": TARGET, "delta": DELTA}
    share = n_delta_shares("sgr", sizes, options) if joint else 1
    broken, coverage, first = [], 0.0, []
    for hardness, size in zip(HARDNESS, sizes, strict=True):
        law = law_of(name, hardness)
        s = draw(law, rng, sets, size)
        coverages = halved_coverages(size, TARGET, DELTA / share)
        edges = walks(s, law, TARGET, coverages, delta=DELTA / share)
        broken.append(above(true_risk(law, edges), TARGET))
        coverage = coverage + size / n * (1 - edges)
        first.append((s.lower[:CHECKED], s.loss[:CHECKED], edges[:CHECKED]))
    groups = np.repeat(NAMES, sizes)
    for i in range(CHECKED):
        lower, loss = (np.concatenate([own[k][i] for own in first]) for k in (0, 1))
        rule = thresholds.fit_groups("sgr", lower, loss, groups, joint=joint, **options)
        expected = np.concatenate([own[0][i] >= own[2][i] for own in first])
        assert (rule.apply(lower, group=groups) == expected).all(), (name, n, joint, i)
    return np.stack(broken, axis=1), coverage


def one_for_all(name, n, sets, rng, *, limited):
    """The same with one threshold, perhaps within a limit for the hardest group too."""
    whole = law_of(name, float(SHARES @ HARDNESS))
    s = draw(whole, rng, sets, n)
    if not limited:
        edges = walks(s, whole, TARGET, halved_coverages(n, TARGET, DELTA))
        risks = [true_risk(law_of(name, h), edges) for h in HARDNESS]
        return np.stack([above(r, TARGET) for r in risks], axis=1), 1 - edges
    inside = rng.random(s.loss.shape) < hardest_chance(s, mean_wrong(whole, s.lower))
    count, total = np.cumsum(inside, 1), np.cumsum(inside * s.loss, 1)

    def also(alpha):
        limit = critical_for(n, LIMITS[1], alpha, graded=False, generalized=False)
        return (count > 0) & (total <= limit[np.maximum(count, 1) - 1])

    edges = walks(s, whole, LIMITS[0], DEFAULT_STARTS, also=also)
    for i in range(CHECKED):
        limits = [Limit("overall", LIMITS[0]), Limit("group:c", LIMITS[1], inside[i])]
        rule = thresholds.several_risks(s.lower[i], s.loss[i], limits, delta=DELTA)
        assert (rule.apply(s.lower[i]) == (s.lower[i] >= edges[i])).all(), (name, n, i)
    hardest = law_of(name, HARDNESS[HARDEST])
    broken = [
        above(true_risk(whole, edges), LIMITS[0]),
        above(true_risk(hardest, edges), LIMITS[1]),
    ]
    return np.stack(broken, axis=1), 1 - edges


def mean_wrong(law, lower):
    """The chance of an error at a confidence, which may stand for a cell."""
    if law.edges is None:
        return law.wrong(lower)
    inside = (np.arange(1000) + 0.5) / 1000 / law.edges.size
    cells = np.array([law.wrong(edge + inside).mean() for edge in law.edges])
    return cells[np.searchsorted(law.edges, lower)]


def hardest_chance(s, wrong):
    """The chance that a sample is of the hardest group, given its confidence and its loss."""
    share, hardness = SHARES[HARDEST], HARDNESS[HARDEST]
    mean = float(SHARES @ HARDNESS)
    right = share * (1 - hardness * wrong / mean) / np.maximum(1 - wrong, 1e-12)
    return np.where(s.loss > 0, share * hardness / mean, right)


WAYS = {
    "one for all": lambda *given: one_for_all(*given, limited=False),
    "each group, each by itself": lambda *given: by_group(*given, joint=False),
    "each group, together": lambda *given: by_group(*given, joint=True),
    "one for all, two limits": lambda *given: one_for_all(*given, limited=True),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sets", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = as_generator(options.seed)
    print(f"{options.sets} calibration sets a setting, target {TARGET}, delta {DELTA}.\n")
    print("| law | n | threshold | worst group broken | any broken (MC error) | mean coverage |")
    print("| --- " * 6 + "|")
    for name in WRONGS:
        for n in SIZES:
            for way, decide in WAYS.items():
                rows = [
                    min(MEMORY // n, options.sets - at)
                    for at in range(0, options.sets, MEMORY // n)
                ]
                found = [decide(name, n, own, rng) for own in rows]
                broken = np.concatenate([b for b, _ in found])
                coverage = np.concatenate([c for _, c in found]).mean()
                share = broken.any(axis=1).mean()
                error = np.sqrt(share * (1 - share) / options.sets)
                print(
                    f"| {name} | {n:,} | {way} | {broken.mean(axis=0).max():.4f} | "
                    f"{share:.4f} ({error:.4f}) | {coverage:.3f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
