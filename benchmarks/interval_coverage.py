"""How often the analytic intervals hold the truth: simulation, printed as Markdown tables.

    python benchmarks/interval_coverage.py [--quick] [--draws N] [--seed S] [--rare-draws N]
        [--only-rare] [--names NAME ...]

A population: a sample fails with a given probability; its score is normal with standard deviation
1, and the mean of the successes lies `SEPARATION` above that of the failures. With ties the scores
are cut to 20 levels, the highest of which holds 46 % of the successes, as a saturated softmax does.
The truth is that of the population, by `abstain.simulate`.

The last tables are of the class-balanced areas and of balanced accuracy with one rare class of two.
The common class fails in 10% of its samples; the rare class fails more or less often, and its
confidence is shifted. Balanced accuracy compares classifiers: half of the samples fail or not
together, and the worse classifier fails in 15% of the common class.
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.stats import norm

from abstain import simulate
from abstain._foundation.random import as_generator
from abstain._foundation.scored import ClassView, Scored
from abstain.inference.intervals import Difference, difference_from_influences
from abstain.metrics.entry import METRICS
from abstain.metrics.intervals import difference_of_metric, influence_matrix, interval_of_metric

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
    return difference_from_influences(
        (metric.compute(first).value, metric.compute(second).value),
        influence_matrix(metric, (first, second)),
        lower_is_better=metric.lower_is_better,
        failures=min(first.n_failures, second.n_failures),
        heavy_tailed=metric.measurement.heavy_tailed,
    )


COLUMNS = ("interval", "same classifier", "other classifier", "false positives")


def outcomes(name: str, d: Draw, truths: tuple[float, float]) -> list[float]:
    """1 where the truth is held (or a true null rejected), 0 where not, NaN without interval."""
    good, worse = truths
    interval = interval_of_metric(METRICS[name], d.good)
    gaps = [difference(name, d.good, second) for second in (d.worse, d.other)]
    null = difference(name, d.good, d.rival)
    held = [(interval.low, interval.high, good), *((g.low, g.high, good - worse) for g in gaps)]
    return [
        *(float(low <= true <= high) if low == low else np.nan for low, high, true in held),
        float(null.p_value < 0.05),
    ]


def cell(n: int, rate: float, *, ties: bool, draws: int, seed: int) -> dict[str, np.ndarray]:
    """Share of draws for each column, by metric."""
    rng = as_generator(seed)
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


# ------------------------------------------------------------------------------ rare classes
RARE_SHARES = (0.01, 0.03, 0.10)
RARE_SIZES = (400, 2000, 10_000)
BALANCED_SIZES = (400, 1000, 4000)
BALANCED = "balanced_accuracy"
RARE_NAMES = ("aurc_ba", "augrc_ba", BALANCED)
COMMON_RATE, WORSE_RATE = 0.1, 0.15


@dataclass(frozen=True)
class RareClass:
    """The rare class of a population of two classes: how often it fails, and how it scores."""

    description: str
    rate: float
    shift: float
    separation: float = SEPARATION

    @property
    def rates(self) -> np.ndarray:
        return np.array([COMMON_RATE, self.rate])

    @property
    def shifts(self) -> np.ndarray:
        return np.array([0.0, self.shift])

    def separations(self, apart: float) -> np.ndarray:
        """Return by how much successes of each class score higher, for a score of this quality."""
        return np.array([apart, self.separation * apart / SEPARATION])

    def truth(self, name: str, share: float, apart: float) -> float:
        """Integrate the class-balanced area of the population over all thresholds."""
        thresholds = np.linspace(14.0, -9.0, 200_001)
        above = thresholds[:, None] - self.shifts
        failing = self.rates * norm.sf(above)
        accepted = failing + (1 - self.rates) * norm.sf(above - self.separations(apart))
        coverage = accepted @ np.array([1 - share, share])
        risks = failing / np.maximum(accepted, 1e-300) if name == "aurc_ba" else failing
        return float(np.trapezoid(risks.mean(axis=1), coverage))


RARE_CLASSES = (
    RareClass("fails more often (40%)", 0.4, 0.0),
    RareClass("the same, confidence lower", 0.4, -1.0),
    RareClass("the same, confidence higher", 0.4, 1.0),
    RareClass("fails less often (3%)", 0.03, 0.0),
    RareClass("the same, confidence higher", 0.03, 1.0),
    RareClass("80% fail at random, confidence lower", 0.8, -1.0, 0.0),
)


#: Rates of failure in the rare class, for balanced accuracy. Confidence does not matter there.
BALANCED_CLASSES = tuple(
    RareClass(f"{100 * rate:.0f}% fail", rate, 0.0) for rate in (0.03, 0.1, 0.4, 0.9, 0.97)
)


def rare_labels(share: float, n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw labels of two classes; at least one sample is of the rare class, 1."""
    label = (rng.random(n) < share).astype(np.int64)
    label[0] = 1
    return label


def draw_rare(rare: RareClass, share: float, n: int, rng: np.random.Generator) -> Draw:
    """Draw labels, losses and scores."""
    label = rare_labels(share, n, rng)
    loss = rng.random(n) < rare.rates[label]
    common = np.sqrt(ALIKE) * rng.standard_normal(n)
    noise = common + np.sqrt(1 - ALIKE) * rng.standard_normal((3, n)) + rare.shifts[label]
    view = ClassView(label, label, (0, 1))
    good, rival, worse = (
        Scored(own + np.where(loss, 0.0, rare.separations(apart)[label]), loss, class_view=view)
        for own, apart in zip(noise, (SEPARATION, SEPARATION, WORSE), strict=True)
    )
    return Draw(good, rival, worse, worse)


def draw_classifiers(rare: RareClass, share: float, n: int, rng: np.random.Generator) -> Draw:
    """Draw labels and the predictions of two equally good classifiers and of a worse one."""
    label = rare_labels(share, n, rng)
    same, shared = rng.random(n), rng.random(n) < SHARED
    worse_rates = np.array([WORSE_RATE, rare.rate])
    classifiers = []
    for rates in (rare.rates, rare.rates, worse_rates):
        loss = np.where(shared, same, rng.random(n)) < rates[label]
        view = ClassView(label, np.where(loss, 1 - label, label), (0, 1))
        classifiers.append(Scored(np.zeros(n), loss, class_view=view))
    good, rival, worse = classifiers
    return Draw(good, rival, worse, worse)


def rare_truths(name: str, rare: RareClass, share: float) -> tuple[float, float]:
    """Return the values of the population for the good and the worse of a draw."""
    if name == BALANCED:
        return 1 - float(rare.rates.mean()), 1 - (WORSE_RATE + rare.rate) / 2
    good, worse = (rare.truth(name, share, apart) for apart in (SEPARATION, WORSE))
    return good, worse


def rare_cell(
    name: str, draw_one: Callable[[], Draw], truths: tuple[float, float], *, draws: int
) -> dict[str, float]:
    """Return what the intervals and tests of one metric do in one population."""
    metric = METRICS[name]
    measurement = replace(metric.measurement, unreliable_reason=lambda _: "")
    always = replace(metric, measurement=measurement)
    good, worse = truths
    rows = []
    for _ in range(draws):
        d = draw_one()
        any_interval = interval_of_metric(always, d.good)
        interval = interval_of_metric(metric, d.good)
        null = difference_of_metric(metric, (d.good, d.rival))
        gap = difference_of_metric(metric, (d.good, d.worse))
        rows.append(
            (
                metric.compute(d.good).value / good - 1,
                np.isfinite(interval.low),
                any_interval.low <= good <= any_interval.high,
                held(interval.low, interval.high, good),
                held(gap.low, gap.high, good - worse),
                null.p_value < 0.05 if np.isfinite(null.p_value) else np.nan,
            )
        )
    table = np.array(rows, dtype=float)
    counts = np.isfinite(table).sum(axis=0)
    means = [
        float(np.nanmean(x)) if k >= 25 else np.nan for x, k in zip(table.T, counts, strict=True)
    ]
    return dict(zip(RARE_COLUMNS, means, strict=True))


def held(low: float, high: float, truth: float) -> float:
    """Tell whether an interval holds the truth; NaN without interval."""
    return float(low <= truth <= high) if np.isfinite(low) else np.nan


RARE_COLUMNS = (
    "bias of the value",
    "with an interval",
    "all intervals",
    "interval",
    "difference",
    "false positives",
)


def rare_table(name: str, *, draws: int, seed: int) -> Iterator[str]:
    yield "| rare class | share | n | " + " | ".join(RARE_COLUMNS) + " |"
    yield "|:---|---:|---:|" + "---:|" * len(RARE_COLUMNS)
    is_accuracy = name == BALANCED
    draw_one = draw_classifiers if is_accuracy else draw_rare
    for rare in BALANCED_CLASSES if is_accuracy else RARE_CLASSES:
        for share in RARE_SHARES:
            for n in BALANCED_SIZES if is_accuracy else RARE_SIZES:
                start = partial(draw_one, rare, share, n, as_generator(seed))
                truths = rare_truths(name, rare, share)
                found = rare_cell(name, start, truths, draws=draws)
                numbers = " | ".join(
                    "-" if np.isnan(value) else f"{100 * value:.0f}" for value in found.values()
                )
                yield f"| {rare.description} | {100 * share:.0f}% | {n} | {numbers} |"


def print_two_classifiers(sizes: tuple[int, ...], draws: int, seed: int) -> None:
    noise = 196 * np.sqrt(0.05 * 0.95 / draws)
    for ties in (False, True):
        kind = "With ties: 20 levels, the highest with 46 % of the successes" if ties else "No ties"
        print(f"\n### {kind}\n", flush=True)
        for line in table(ties=ties, sizes=sizes, draws=draws, seed=seed):
            print(line, flush=True)
    print(f"\nIn percent, nominal 95 and 5; {draws} draws a row, Monte-Carlo error {noise:.1f}.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the draws, n up to 1000")
    parser.add_argument("--draws", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rare-draws", type=int, default=300)
    parser.add_argument("--only-rare", action="store_true", help="only the tables of rare classes")
    parser.add_argument("--names", nargs="+", choices=RARE_NAMES, default=RARE_NAMES)
    args = parser.parse_args()
    draws = max(args.draws // 10, 50) if args.quick else args.draws
    sizes = SIZES[:3] if args.quick else SIZES
    if not args.only_rare:
        print_two_classifiers(sizes, draws, args.seed)
    for name in args.names:
        print(f"\n### Rare classes: `{name}`\n", flush=True)
        for line in rare_table(name, draws=args.rare_draws, seed=args.seed):
            print(line, flush=True)


if __name__ == "__main__":
    main()
