"""What a threshold for each group, and one threshold within several limits, promise: known truth.

    python benchmarks/threshold_groups.py [--sets 10000] [--seed 0]

Calibration sets of four groups, each with its own share and its own chance of an error at every
confidence, so that the true risk of each group above any threshold is known. For each law and n: in
how many sets is the true risk of a group above the target, with one threshold for all, with one for
each group, with promises that hold together, and with one threshold that keeps several limits?
Prints a Markdown table.
"""

import argparse
from dataclasses import dataclass

import numpy as np
from threshold_laws import falling, uneven

from abstain import thresholds
from abstain._foundation.random import generator
from abstain.thresholds import Limit

SHARES = np.array([0.5, 0.3, 0.15, 0.05])
HARDNESS = np.array([0.3, 0.6, 1.0, 0.6])
NAMES = np.array(["a", "b", "c", "d"])
TARGET, DELTA, SIZES, CELLS = 0.05, 0.05, (1000, 4000), 100_000
#: Of one threshold: overall, and of each group.
LIMITS = (0.05, 0.12)


@dataclass(frozen=True)
class Law:
    """Chances of an error by confidence, which may be cut into so many values."""

    name: str
    wrong: object
    values: int = 0

    def draw(self, rng, n):
        """Return confidence, loss and group of a calibration set."""
        group = rng.choice(4, n, p=SHARES)
        u = rng.random(n)
        loss = rng.random(n) < HARDNESS[group] * self.wrong(u)
        return (np.floor(u * self.values) / self.values if self.values else u), loss, group

    def risks(self):
        """Return, on a grid of thresholds, the mean chance of an error above each; hardness 1."""
        middle = (np.arange(CELLS) + 0.5) / CELLS
        mean = np.cumsum(self.wrong(middle)[::-1])[::-1] / np.arange(CELLS, 0, -1)
        return np.append(mean, 0.0)


LAWS = (Law("continuous", falling), Law("uneven risk", uneven), Law("20 values", falling, 20))


def true_risk(law, grid, threshold):
    """Return the true selective risk of each group above a threshold; 0 where nothing is."""
    if threshold is None:
        return np.zeros(4)
    # A threshold just above a value of a cut score accepts from the next value on.
    at = threshold
    if law.values:
        known = np.arange(law.values + 1) / law.values
        at = known[np.searchsorted(known, threshold)]
    return HARDNESS * np.interp(min(at, 1.0), np.linspace(0, 1, CELLS + 1), grid)


def by_group(law, grid, data, *, joint):
    """Return which groups are broken, and how much of all samples is answered."""
    confidence, loss, group = data
    rule = thresholds.fit_groups(
        "sgr", confidence, loss, NAMES[group], joint=joint, max_risk=TARGET, delta=DELTA
    )
    own = np.array([
        true_risk(law, grid, rule.part(name).threshold)[g] for g, name in enumerate(NAMES)
    ])  # fmt: skip
    return own > TARGET, rule.coverage


def pooled(law, grid, data):
    """The same for one threshold for all."""
    rule = thresholds.sgr(*data[:2], max_risk=TARGET, delta=DELTA)
    return true_risk(law, grid, rule.threshold) > TARGET, rule.coverage


def limited(law, grid, data):
    """The same for one threshold within a limit for the whole and for each group."""
    confidence, loss, group = data
    limits = [Limit("overall", LIMITS[0])]
    limits += [Limit(f"group:{NAMES[g]}", LIMITS[1], group == g) for g in range(3)]
    rule = thresholds.several_risks(confidence, loss, limits, delta=DELTA)
    risks = true_risk(law, grid, rule.threshold)
    # All groups have one law of confidences, so that the overall risk is their mean by share.
    broken = np.append(risks[:3] > LIMITS[1], risks @ SHARES > LIMITS[0])
    return broken, rule.coverage


WAYS = {
    "one for all": pooled,
    "each group, each by itself": lambda *given: by_group(*given, joint=False),
    "each group, together": lambda *given: by_group(*given, joint=True),
    "one for all, four limits": limited,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sets", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--law", choices=[law.name for law in LAWS], help="only this one")
    options = parser.parse_args()
    print(f"{options.sets} calibration sets a setting, target {TARGET}, delta {DELTA}.\n")
    print("| law | n | threshold | worst group broken | any broken (MC error) | mean coverage |")
    print("| --- " * 6 + "|")
    for law in [law for law in LAWS if options.law in {None, law.name}]:
        grid = law.risks()
        for n in SIZES:
            rng = generator(options.seed)
            found = {way: [] for way in WAYS}
            for _ in range(options.sets):
                data = law.draw(rng, n)
                for way, decide in WAYS.items():
                    found[way].append(decide(law, grid, data))
            for way, outcomes in found.items():
                broken = np.array([b for b, _ in outcomes])
                anyone = broken.any(axis=1).mean()
                error = np.sqrt(anyone * (1 - anyone) / options.sets)
                print(
                    f"| {law.name} | {n} | {way} | {broken.mean(axis=0).max():.4f} | "
                    f"{anyone:.4f} ({error:.4f}) | {np.mean([c for _, c in outcomes]):.3f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
