"""How often the analytic intervals hold the truth: simulation, printed as Markdown tables.

    python benchmarks/interval_coverage.py [--quick] [--draws N] [--seed S]

A population: a sample fails with a given probability; its score is normal with standard deviation
1, and the mean of the successes lies `SEPARATION` above that of the failures. With ties the scores
are cut to 20 levels, the highest of which holds 46 % of the successes, as a saturated softmax does.
The truth is that of the population, by `abstain.simulate`.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from abstain import simulate
from abstain._foundation.random import generator
from abstain._foundation.scored import Scored
from abstain.inference.intervals import Difference, difference_from
from abstain.metrics.entry import METRICS
from abstain.metrics.intervals import influences, interval_of

SIZES = (100, 300, 1000, 3000, 9000)
RATES = (0.05, 0.10, 0.20)
NAMES = ("augrc", "aurc")
SEPARATION, WORSE = 1.6, 1.3  # failure AUROC 0.87 and 0.82
ALIKE = 0.6  # correlation of two scores of the same sample
SHARED = 0.5  # share of the samples on which two classifiers fail or not together

_CUTS = np.append(np.linspace(-1.5, 1.5, 19), 1.7)


def population(rate: float, separation: float, *, ties: bool) -> simulate.Population:
    base = simulate.two_gaussians(rate, separation)
    return simulate.cut(base, _CUTS) if ties else base


def truth(name: str, known: simulate.Population) -> float:
    return known.augrc if name == "augrc" else known.aurc(ties="trapezoid")


def scores(noise: np.ndarray, loss: np.ndarray, separation: float, *, ties: bool) -> np.ndarray:
    """Scores of one population for losses that several share."""
    score = noise + np.where(loss, 0.0, separation)
    return np.searchsorted(_CUTS, score, side="right").astype(float) if ties else score


@dataclass(frozen=True)
class Draw:
    """One data set: two equally good scores, a worse one, and a worse one of another classifier."""

    good: Scored
    rival: Scored
    worse: Scored
    other: Scored


def draw(rate: float, n: int, rng: np.random.Generator, *, ties: bool) -> Draw:
    loss = rng.random(n) < rate
    again = np.where(rng.random(n) < SHARED, loss, rng.random(n) < rate)
    common = np.sqrt(ALIKE) * rng.standard_normal(n)
    noise = common + np.sqrt(1 - ALIKE) * rng.standard_normal((4, n))
    return Draw(
        Scored(scores(noise[0], loss, SEPARATION, ties=ties), loss),
        Scored(scores(noise[1], loss, SEPARATION, ties=ties), loss),
        Scored(scores(noise[2], loss, WORSE, ties=ties), loss),
        Scored(scores(noise[3], again, WORSE, ties=ties), again),
    )


def difference(name: str, first: Scored, second: Scored) -> Difference:
    metric = METRICS[name]
    return difference_from(
        (metric.compute(first).value, metric.compute(second).value),
        influences(metric, (first, second)),
        lower_is_better=metric.lower_is_better,
        failures=min(first.failures, second.failures),
        heavy=metric.heavy,
    )


COLUMNS = ("interval", "same classifier", "other classifier", "false positives")


def outcomes(name: str, d: Draw, truths: tuple[float, float]) -> list[float]:
    """1 where the truth is held (or a true null rejected), 0 where not, NaN without interval."""
    good, worse = truths
    interval = interval_of(METRICS[name], d.good)
    gaps = [difference(name, d.good, second) for second in (d.worse, d.other)]
    null = difference(name, d.good, d.rival)
    held = [(interval.low, interval.high, good), *((g.low, g.high, good - worse) for g in gaps)]
    return [
        *(float(low <= true <= high) if low == low else np.nan for low, high, true in held),
        float(null.p_value < 0.05),
    ]


def cell(n: int, rate: float, *, ties: bool, draws: int, seed: int) -> dict[str, np.ndarray]:
    """Share of draws for each column, by metric."""
    rng = generator(seed)
    known = [population(rate, apart, ties=ties) for apart in (SEPARATION, WORSE)]
    truths = {name: (truth(name, known[0]), truth(name, known[1])) for name in NAMES}
    rows: dict[str, list[list[float]]] = {name: [] for name in NAMES}
    for _ in range(draws):
        d = draw(rate, n, rng, ties=ties)
        for name in NAMES:
            rows[name].append(outcomes(name, d, truths[name]))
    return {name: np.nanmean(np.array(rows[name]), axis=0) for name in NAMES}


def table(*, ties: bool, sizes: tuple[int, ...], draws: int, seed: int) -> Iterator[str]:
    heads = [f"{name.upper()}, {column}" for column in COLUMNS for name in NAMES]
    yield "| n | failures expected | " + " | ".join(heads) + " |"
    yield "|---:|---:|" + "---:|" * len(heads)
    for n in sizes:
        for rate in RATES:
            found = cell(n, rate, ties=ties, draws=draws, seed=seed)
            shares = [found[name][column] for column in range(len(COLUMNS)) for name in NAMES]
            numbers = " | ".join(f"{100 * share:.1f}" for share in shares)
            yield f"| {n} | {n * rate:.0f} | {numbers} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the draws, n up to 1000")
    parser.add_argument("--draws", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    draws = max(args.draws // 10, 50) if args.quick else args.draws
    sizes = SIZES[:3] if args.quick else SIZES
    noise = 196 * np.sqrt(0.05 * 0.95 / draws)
    for ties in (False, True):
        kind = "With ties: 20 levels, the highest with 46 % of the successes" if ties else "No ties"
        print(f"\n### {kind}\n", flush=True)
        for line in table(ties=ties, sizes=sizes, draws=draws, seed=args.seed):
            print(line, flush=True)
    print(f"\nIn percent, nominal 95 and 5; {draws} draws a row, Monte-Carlo error {noise:.1f}.")


if __name__ == "__main__":
    main()
