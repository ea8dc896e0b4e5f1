"""Simulate the coverage of the analytic intervals, and print Markdown tables.

    python benchmarks/interval_coverage.py [--quick] [--draws N] [--seed S] [--rare-draws N]
        [--only-rare] [--names NAME ...]

A sample fails with a given probability. Its score is normal with standard deviation 1, and the mean
of the successes lies `SEPARATION` above that of the failures. With ties, the scores are cut to 20
levels; the highest level contains 46% of the successes, as with a saturated softmax. The true
values are those of the population, from `abstain.simulate`.

The last tables contain the class-balanced areas and balanced accuracy with one rare class of two.
The common class fails in 10% of its samples; the rare class fails more or less often, and its
confidence is shifted. The tables of balanced accuracy compare classifiers: half of the samples
share their outcome, and the worse classifier fails in 15% of the common class.
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

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
SEPARATION, WORSE_SEPARATION = 1.6, 1.3  # failure AUROC 0.87 and 0.82
CORRELATION = 0.6  # of two scores of the same sample
SHARED = 0.5  # share of the samples on which two classifiers have the same outcome

_CUTS = np.append(np.linspace(-1.5, 1.5, 19), 1.7)


def population(rate: float, separation: float, *, ties: bool) -> simulate.Population:
    base = simulate.two_gaussians(rate, separation)
    return simulate.cut(base, _CUTS) if ties else base


def true_value(name: str, population: simulate.Population) -> float:
    return population.augrc if name == "augrc" else population.aurc(ties="trapezoid")


def scores(noise: np.ndarray, loss: np.ndarray, separation: float, *, ties: bool) -> np.ndarray:
    """Add the separation to the noise of the successes, and round the scores if they have ties."""
    score = noise + np.where(loss, 0.0, separation)
    return np.searchsorted(_CUTS, score, side="right").astype(float) if ties else score


@dataclass(frozen=True)
class DataSet:
    """Two equally good scores, a worse score, and a worse score of another classifier."""

    good: Scored
    equally_good: Scored
    worse: Scored
    other_classifier: Scored


def draw(rate: float, n: int, rng: np.random.Generator, *, ties: bool) -> DataSet:
    loss = rng.random(n) < rate
    other_loss = np.where(rng.random(n) < SHARED, loss, rng.random(n) < rate)
    common = np.sqrt(CORRELATION) * rng.standard_normal(n)
    noise = common + np.sqrt(1 - CORRELATION) * rng.standard_normal((4, n))
    return DataSet(
        Scored(scores(noise[0], loss, SEPARATION, ties=ties), loss),
        Scored(scores(noise[1], loss, SEPARATION, ties=ties), loss),
        Scored(scores(noise[2], loss, WORSE_SEPARATION, ties=ties), loss),
        Scored(scores(noise[3], other_loss, WORSE_SEPARATION, ties=ties), other_loss),
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


def outcomes(name: str, data: DataSet, true_values: tuple[float, float]) -> list[float]:
    """Return one value for each of `COLUMNS`.

    A value is 1 if an interval contains the true value or if the test of equal scores rejects, 0
    otherwise, and NaN without an interval.
    """
    good, worse = true_values
    interval = interval_of_metric(METRICS[name], data.good)
    to_worse = difference(name, data.good, data.worse)
    to_other_classifier = difference(name, data.good, data.other_classifier)
    to_equally_good = difference(name, data.good, data.equally_good)
    return [
        is_covered(interval.low, interval.high, good),
        is_covered(to_worse.low, to_worse.high, good - worse),
        is_covered(to_other_classifier.low, to_other_classifier.high, good - worse),
        float(to_equally_good.p_value < 0.05),
    ]


def is_covered(low: float, high: float, true_value: float) -> float:
    """Return whether an interval contains the true value, or NaN without an interval."""
    return float(low <= true_value <= high) if np.isfinite(low) else np.nan


def shares_of_draws(
    n: int, rate: float, *, ties: bool, draws: int, seed: int
) -> dict[str, np.ndarray]:
    """Return the share of draws for each of `COLUMNS`, by metric."""
    rng = as_generator(seed)
    good = population(rate, SEPARATION, ties=ties)
    worse = population(rate, WORSE_SEPARATION, ties=ties)
    true_values = {name: (true_value(name, good), true_value(name, worse)) for name in NAMES}
    rows: dict[str, list[list[float]]] = {name: [] for name in NAMES}
    for _ in range(draws):
        data = draw(rate, n, rng, ties=ties)
        for name in NAMES:
            rows[name].append(outcomes(name, data, true_values[name]))
    return {name: np.nanmean(np.array(rows[name]), axis=0) for name in NAMES}


def table(*, ties: bool, sizes: tuple[int, ...], draws: int, seed: int) -> Iterator[str]:
    heads = [f"{name.upper()}, {column}" for column in COLUMNS for name in NAMES]
    yield "| n | failures expected | " + " | ".join(heads) + " |"
    yield "|---:|---:|" + "---:|" * len(heads)
    for n in sizes:
        for rate in RATES:
            by_metric = shares_of_draws(n, rate, ties=ties, draws=draws, seed=seed)
            shares = [by_metric[name][i] for i in range(len(COLUMNS)) for name in NAMES]
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
    """The rare class of a population of two classes: its failure rate and its confidence."""

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

    def separations(self, separation: float) -> np.ndarray:
        """Return the separation in both classes for a given separation in the common class."""
        return np.array([separation, self.separation * separation / SEPARATION])

    def true_value(self, name: str, share: float, separation: float) -> float:
        """Integrate the class-balanced area of the population over all thresholds."""
        thresholds = np.linspace(14.0, -9.0, 200_001)
        shifted_thresholds = thresholds[:, None] - self.shifts
        failing = self.rates * norm.sf(shifted_thresholds)
        succeeding = (1 - self.rates) * norm.sf(shifted_thresholds - self.separations(separation))
        accepted = failing + succeeding
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


#: Failure rates of the rare class for balanced accuracy, which does not depend on confidence.
BALANCED_CLASSES = tuple(
    RareClass(f"{100 * rate:.0f}% fail", rate, 0.0) for rate in (0.03, 0.1, 0.4, 0.9, 0.97)
)


def rare_labels(share: float, n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw labels of two classes, with at least one sample of the rare class 1."""
    label = (rng.random(n) < share).astype(np.int64)
    label[0] = 1
    return label


def draw_rare(rare: RareClass, share: float, n: int, rng: np.random.Generator) -> DataSet:
    """Draw labels, losses and scores."""
    label = rare_labels(share, n, rng)
    loss = rng.random(n) < rare.rates[label]
    common = np.sqrt(CORRELATION) * rng.standard_normal(n)
    noise = common + np.sqrt(1 - CORRELATION) * rng.standard_normal((3, n)) + rare.shifts[label]
    view = ClassView(label, label, (0, 1))
    good, equally_good, worse = (
        Scored(x + np.where(loss, 0.0, rare.separations(distance)[label]), loss, class_view=view)
        for x, distance in zip(noise, (SEPARATION, SEPARATION, WORSE_SEPARATION), strict=True)
    )
    return DataSet(good, equally_good, worse, worse)


def draw_classifiers(rare: RareClass, share: float, n: int, rng: np.random.Generator) -> DataSet:
    """Draw labels and the predictions of two equally good classifiers and of a worse classifier."""
    label = rare_labels(share, n, rng)
    common, is_shared = rng.random(n), rng.random(n) < SHARED
    worse_rates = np.array([WORSE_RATE, rare.rate])
    classifiers = []
    for rates in (rare.rates, rare.rates, worse_rates):
        loss = np.where(is_shared, common, rng.random(n)) < rates[label]
        view = ClassView(label, np.where(loss, 1 - label, label), (0, 1))
        classifiers.append(Scored(np.zeros(n), loss, class_view=view))
    good, equally_good, worse = classifiers
    return DataSet(good, equally_good, worse, worse)


def rare_true_values(name: str, rare: RareClass, share: float) -> tuple[float, float]:
    """Return the values of the population for the good and the worse score."""
    if name == BALANCED:
        return 1 - float(rare.rates.mean()), 1 - (WORSE_RATE + rare.rate) / 2
    good = rare.true_value(name, share, SEPARATION)
    worse = rare.true_value(name, share, WORSE_SEPARATION)
    return good, worse


RARE_COLUMNS = (
    "bias of the value",
    "with an interval",
    "all intervals",
    "interval",
    "difference",
    "false positives",
)


def rare_shares(
    name: str, draw_one: Callable[[], DataSet], true_values: tuple[float, float], *, draws: int
) -> dict[str, float]:
    """Return the bias and the shares of draws for `RARE_COLUMNS`; NaN from fewer than 25 draws."""
    metric = METRICS[name]
    # The same metric without the condition on when its interval is unreliable.
    always_reliable = replace(metric.measurement, unreliable_reason=lambda _: "")
    metric_with_all_intervals = replace(metric, measurement=always_reliable)
    good, worse = true_values
    rows = []
    for _ in range(draws):
        data = draw_one()
        any_interval = interval_of_metric(metric_with_all_intervals, data.good)
        interval = interval_of_metric(metric, data.good)
        to_equally_good = difference_of_metric(metric, (data.good, data.equally_good))
        to_worse = difference_of_metric(metric, (data.good, data.worse))
        p_value = to_equally_good.p_value
        rows.append(
            (
                metric.compute(data.good).value / good - 1,
                np.isfinite(interval.low),
                any_interval.low <= good <= any_interval.high,
                is_covered(interval.low, interval.high, good),
                is_covered(to_worse.low, to_worse.high, good - worse),
                p_value < 0.05 if np.isfinite(p_value) else np.nan,
            )
        )
    columns = np.array(rows, dtype=float).T
    return {
        title: float(np.nanmean(column)) if np.isfinite(column).sum() >= 25 else np.nan
        for title, column in zip(RARE_COLUMNS, columns, strict=True)
    }


def rare_table(name: str, *, draws: int, seed: int) -> Iterator[str]:
    yield "| rare class | share | n | " + " | ".join(RARE_COLUMNS) + " |"
    yield "|:---|---:|---:|" + "---:|" * len(RARE_COLUMNS)
    is_accuracy = name == BALANCED
    draw_one = draw_classifiers if is_accuracy else draw_rare
    classes = BALANCED_CLASSES if is_accuracy else RARE_CLASSES
    sizes = BALANCED_SIZES if is_accuracy else RARE_SIZES
    for rare, share, n in product(classes, RARE_SHARES, sizes):
        draw_next = partial(draw_one, rare, share, n, as_generator(seed))
        true_values = rare_true_values(name, rare, share)
        shares = rare_shares(name, draw_next, true_values, draws=draws)
        numbers = " | ".join(
            "-" if np.isnan(value) else f"{100 * value:.0f}" for value in shares.values()
        )
        yield f"| {rare.description} | {100 * share:.0f}% | {n} | {numbers} |"


def print_two_classifiers(sizes: tuple[int, ...], draws: int, seed: int) -> None:
    noise = 196 * np.sqrt(0.05 * 0.95 / draws)
    for ties in (False, True):
        title = "With ties: 20 levels, the highest with 46% of the successes" if ties else "No ties"
        print(f"\n### {title}\n", flush=True)
        for line in table(ties=ties, sizes=sizes, draws=draws, seed=seed):
            print(line, flush=True)
    print(f"\nIn percent, nominal 95 and 5; {draws} draws a row, Monte Carlo error {noise:.1f}.")


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
