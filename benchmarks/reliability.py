"""Do the intervals hold and the tests keep their level? Every metric and test, by simulation.

    python benchmarks/reliability.py [--draws N] [--quick] [--processes P] [--seed S]

Writes its tables into docs/validation.md between two markers, with the default 2000 draws in some
20 minutes on two free cores; with `--quick` it prints a few draws of them instead. Rows come from
the catalogue, so that a new metric is measured by being registered.

A population: a task of two classes; a sample fails with a given probability, and its score is
normal with standard deviation 1, the mean of the successes above that of the failures. The truth
is the metric of a fine weighted grid of that population (`truths`).
"""

import argparse
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np
from scipy.special import expit, ndtri

from abstain._foundation.scored import ClassView, Scored
from abstain.evaluation.intervals import interval_of_replicates
from abstain.inference.draws import Draws
from abstain.inference.multiplicity import critical_difference
from abstain.inference.non_inferiority import non_inferiority_from_influences
from abstain.inference.paired import bootstrap_difference
from abstain.inference.permutation import permutation_test
from abstain.inference.rank_tests import friedman, wilcoxon
from abstain.metrics import METRICS, Metric, Need
from abstain.metrics.intervals import (
    difference_of_metric,
    difference_range,
    influence_matrix,
    interval_of_metric,
    min_failures,
)
from abstain.metrics.resampling import replicates
from abstain.metrics.small_samples import expected_variance

PAGE = Path(__file__).parents[1] / "docs" / "validation.md"
START, END = "<!-- reliability -->", "<!-- /reliability -->"

SIZES, RATES = (200, 2000), (0.05, 0.30)
#: How far successes lie above failures (failure AUROC 0.87; 0.99), and where scores are cut.
KINDS = {
    "smooth": (1.6, None),
    "tied": (1.6, np.linspace(-1.5, 2.1, 9)),  # ten levels, a third of the successes at the top
    "sharp": (3.2, None),
}
ALIKE = 0.6  # correlation of two scores of the same sample
WORSE = 0.3  # how much nearer the failures of the worse score lie
RESAMPLES, SWAPS = 200, 199
#: What resamples in each draw gets this share of the draws; metrics that take milliseconds less.
RESAMPLED, RESAMPLED_SLOWLY = 0.04, 0.01
SLOW = ("smooth_ece", "auroc_retention", "auprc_retention")
#: Metrics of samples of no known class: half of the failures are such samples for these metrics.
OPEN_SET = [m.name for m in METRICS.values() if Need.UNKNOWN_CLASSES in m.measurement.needs]
#: Metrics by which the tests that are alike for all metrics are measured.
TESTED = ("augrc", "aurc", "failure_auroc", "selective_risk@80cov")
BLOCKS = (4, 6, 10, 20)


class Design(NamedTuple):
    n: int
    rate: float
    kind: str


DESIGNS = tuple(Design(n, rate, kind) for n in SIZES for rate in RATES for kind in KINDS)


# --------------------------------------------------------------------------------- populations
def case(
    score: np.ndarray, failed: np.ndarray, labels: np.ndarray, weight: np.ndarray | None = None
) -> Scored:
    """Make what metrics take of two-class predictions whose top probability follows the score."""
    top = 0.5 + 0.5 * expit(score)
    prediction = np.where(failed, np.minimum(1 - labels, 1), labels)
    p = np.where(prediction[:, None] == np.arange(2), top[:, None], 1 - top[:, None])
    view = ClassView(labels, prediction, (0, 1), p, np.log(p))
    return Scored(top, failed.astype(np.float64), weight, probability=top, class_view=view)


def leveled(score: np.ndarray, kind: str) -> np.ndarray:
    cuts = KINDS[kind][1]
    if cuts is None:
        return score
    levels = np.append(cuts[0] - 0.4, cuts)
    return levels[np.searchsorted(cuts, score, side="right")]


@dataclass(frozen=True)
class Draw:
    """One data set: two equally good scores of one classifier and a worse one."""

    good: Scored
    rival: Scored
    worse: Scored
    #: The first two, with half of the failures of no known class.
    open_set: tuple[Scored, Scored]

    def pair(self, metric: Metric) -> tuple[Scored, Scored]:
        """Return the two equally good scores as the metric requires them."""
        return self.open_set if metric.name in OPEN_SET else (self.good, self.rival)


def draw(design: Design, rng: np.random.Generator) -> Draw:
    n, rate, kind = design
    failed, labels = rng.random(n) < rate, rng.integers(2, size=n)
    common = np.sqrt(ALIKE) * rng.standard_normal(n)
    noise = common + np.sqrt(1 - ALIKE) * rng.standard_normal((3, n))
    aparts = KINDS[kind][0] - np.array([0.0, 0.0, WORSE])
    scores = [
        leveled(x + np.where(failed, 0.0, a), kind) for x, a in zip(noise, aparts, strict=True)
    ]
    good, rival, worse = (case(score, failed, labels) for score in scores)
    is_unknown = failed & (labels == 0)
    partly_known = np.where(is_unknown, -1, labels)
    first, second = (case(score, failed, partly_known) for score in scores[:2])
    return Draw(good, rival, worse, (first, second))


@cache
def truths(rate: float, kind: str, worse: float = 0.0, points: int = 200_000) -> dict[str, float]:
    """Return every metric of the population, from the quantiles of its two normal laws."""
    z = np.tile(ndtri((np.arange(points) + 0.5) / points), 4)
    failed = np.repeat([True, True, False, False], points)
    labels = np.repeat([0, 1, 0, 1], points)
    score = leveled(z + np.where(failed, 0.0, KINDS[kind][0] - worse), kind)
    # As many samples as make what is of the order 1/n vanish.
    weight = np.where(failed, rate, 1 - rate) * 1e4
    whole = case(score, failed, labels, weight)
    open_set = case(score, failed, np.where(failed & (labels == 0), -1, labels), weight)
    return {
        metric.name: float(metric.compute(open_set if metric.name in OPEN_SET else whole).value)
        for metric in METRICS.values()
    }


# ----------------------------------------------------------------------------- what is measured
Found = dict[str, list[float]]  # 1 held or rejected, 0 not, NaN where there is none


def add(found: Found, name: str, value: float) -> None:
    found.setdefault(name, []).append(value)


def held(low: float, high: float, true: float) -> float:
    return np.nan if np.isnan(low) else float(low - 1e-9 <= true <= high + 1e-9)


def rejected(p: float) -> float:
    """A test without a p-value finds nothing."""
    return float(p < 0.05)


def analytic() -> list[Metric]:
    return [metric for metric in METRICS.values() if metric.measurement.influence is not None]


def by_influence(design: Design, draws: int, seed: int) -> Found:
    """Intervals and differences by influence functions, of every metric that has one."""
    rng, true = np.random.default_rng(seed), truths(design.rate, design.kind)
    found: Found = {}
    for _ in range(draws):
        d = draw(design, rng)
        for metric in analytic():
            good, rival = d.pair(metric)
            interval = interval_of_metric(metric, good)
            add(
                found,
                f"interval {metric.name}",
                held(interval.low, interval.high, true[metric.name]),
            )
            p = difference_of_metric(metric, (good, rival)).p_value
            add(found, f"difference {metric.name}", rejected(p))
    return found


def by_resampling(design: Design, draws: int, seed: int) -> Found:
    """Intervals and differences by the bootstrap, of the metrics that have nothing else."""
    only = [m for m in METRICS.values() if m.measurement.influence is None and m.name not in SLOW]
    return resampled(design, draws, seed, only, [METRICS[name] for name in TESTED])


def by_slow_resampling(design: Design, draws: int, seed: int) -> Found:
    """The same of the metrics that take milliseconds."""
    return resampled(design, draws, seed, [METRICS[name] for name in SLOW], [])


def resampled(
    design: Design, draws: int, seed: int, only: list[Metric], tested: list[Metric]
) -> Found:
    rng, true = np.random.default_rng(seed), truths(design.rate, design.kind)
    metrics = [*only, *tested]
    found: Found = {}
    for _ in range(draws):
        d = draw(design, rng)
        plan = Draws(design.n, RESAMPLES, rng=int(rng.integers(2**31)))
        table = replicates([d.good, d.rival], metrics, plan)
        for metric, (own, other) in zip(metrics, table, strict=True):
            interval = interval_of_replicates(metric, own, d.good, cluster=None, level=0.95)
            name = f"interval {metric.name}" if metric in only else f"bootstrap {metric.name}"
            add(found, name, held(interval.low, interval.high, true[metric.name]))
            values = tuple(float(metric.compute(s).value) for s in (d.good, d.rival))
            lower = metric.lower_is_better
            p = bootstrap_difference(own, other, values, lower_is_better=lower).p_value
            start = "difference" if metric in only else "bootstrap test"
            add(found, f"{start} {metric.name}", rejected(p))
    return found


def by_swaps(design: Design, draws: int, seed: int) -> Found:
    rng = np.random.default_rng(seed)
    found: Found = {}
    for _ in range(draws):
        d = draw(design, rng)
        pair = ((d.good.confidence, d.good.loss), (d.rival.confidence, d.rival.loss))
        for name in TESTED:
            statistic = _statistic(METRICS[name])
            p = permutation_test(statistic, *pair, n_permutations=SWAPS, rng=rng).p_value
            add(found, f"swaps {name}", float(p <= 0.05))
    return found


def _statistic(metric: Metric) -> Callable[[np.ndarray, np.ndarray], float]:
    return lambda confidence, loss: float(metric.compute(Scored(confidence, loss)).value)


def at_margin(design: Design, draws: int, seed: int) -> Found:
    """Non-inferiority of a score that is worse by the margin exactly."""
    rng = np.random.default_rng(seed)
    best, worst = (truths(design.rate, design.kind, worse) for worse in (0.0, WORSE))
    found: Found = {}
    for _ in range(draws):
        d = draw(design, rng)
        for name in TESTED:
            metric, pair = METRICS[name], (d.worse, d.good)
            values = [float(metric.compute(s).value) for s in pair]
            if not np.isfinite(values).all():
                add(found, f"margin {name}", 0.0)
                continue
            models = [expected_variance(metric, s, v) for s, v in zip(pair, values, strict=True)]
            passed = non_inferiority_from_influences(
                (values[0], values[1]),
                influence_matrix(metric, pair),
                margin=abs(worst[name] - best[name]),
                lower_is_better=metric.lower_is_better,
                failures=min_failures(metric, pair),
                heavy_tailed=metric.measurement.heavy_tailed,
                model_variances=(models[0], models[1]),
                bounds=difference_range(metric, pair),
            ).non_inferior
            add(found, f"margin {name}", float(passed))
    return found


def on_blocks(blocks: int, draws: int, seed: int) -> Found:
    """Rank tests over independent data sets of which no method is better; smooth and tied."""
    rng = np.random.default_rng(seed)
    found: Found = {}
    for tied in (False, True):
        for k in (2, 3, 5):
            reach = critical_difference(k, blocks)
            for x in rng.normal(size=(draws, blocks, k)):
                values = np.round(x) if tied else x
                test = friedman(values, lower_is_better=True)
                add(found, f"Friedman, {k} methods {tied}", rejected(test.p_value))
                apart = float(np.ptp(test.mean_ranks) >= reach)
                add(found, f"Nemenyi, any of {k} methods {tied}", apart)
                if k == 2:
                    for side in ("two-sided", "less"):
                        p = wilcoxon(values[:, 0], values[:, 1], alternative=side).p_value
                        add(found, f"Wilcoxon, {side} {tied}", float(p <= 0.05))
    return found


# --------------------------------------------------------------------------------------- tables
PARTS: dict[str, tuple[Callable[..., Found], float]] = {
    "influence": (by_influence, 1.0),
    "resampling": (by_resampling, RESAMPLED),
    "slow resampling": (by_slow_resampling, RESAMPLED_SLOWLY),
    "swaps": (by_swaps, RESAMPLED),
    "margin": (at_margin, 0.5),
}


def measured(job: tuple[str, Design | int, int, int]) -> tuple[Design | int, Found]:
    part, where, draws, seed = job
    function = on_blocks if part == "blocks" else PARTS[part][0]
    return where, function(where, draws, seed)


def measure(
    draws: int, *, seed: int = 1, processes: int = 2, designs: tuple[Design, ...] = DESIGNS
) -> dict[Design | int, Found]:
    """Return what was found in each design, and for each number of blocks."""
    jobs: list[tuple[str, Design | int, int, int]] = [
        (part, design, max(2, round(draws * share)), seed + i)
        for part, (_, share) in PARTS.items()
        for i, design in enumerate(sorted(designs, reverse=True))
    ]
    jobs += [("blocks", count, max(2, draws // 2), seed) for count in BLOCKS]
    out: dict[Design | int, Found] = {}
    if processes == 1:
        done: Iterator[tuple[Design | int, Found]] = map(measured, jobs)
    else:
        pool = ProcessPoolExecutor(processes)
        done = pool.map(measured, jobs)
    for where, found in done:
        out.setdefault(where, {}).update(found)
    return out


def shown(values: list[float] | None) -> str:
    """Percent of the draws that have an answer; in brackets how many have, where not nearly all."""
    x = np.array(values if values is not None else [np.nan])
    known = ~np.isnan(x)
    if not known.any():
        return "-"
    share = f"{100 * x[known].mean():.1f}"
    return share if known.mean() > 0.99 else f"{share} ({100 * known.mean():.0f})"


def table(title: str, rows: dict[str, str], found: dict, columns: tuple) -> Iterator[str]:
    heads = [
        f"{c.n:,}, {100 * c.rate:.0f}%, {c.kind}" if isinstance(c, Design) else c for c in columns
    ]
    yield f"| {title} | " + " | ".join(str(head) for head in heads) + " |"
    yield "| --- |" + " ---: |" * len(heads)
    for key, words in rows.items():
        yield f"| {words} | " + " | ".join(shown(found[c].get(key)) for c in columns) + " |"


def form(metric: Metric) -> str:
    return f"`{metric.name}`" + ("" if metric.measurement.influence else " (bootstrap)")


def report(found: dict, draws: int) -> Iterator[str]:
    designs = tuple(c for c in DESIGNS if c in found)
    few, fewest = (max(2, round(draws * share)) for share in (RESAMPLED, RESAMPLED_SLOWLY))
    noise, more, most = (196 * np.sqrt(0.05 * 0.95 / count) for count in (draws, few, fewest))
    slow = ", ".join(f"`{name}`" for name in SLOW)
    yield f"""\
Percentages for nominal 95% and 5%; {draws:,} studies a cell (Monte Carlo error {noise:.1f}),
half as many for non-inferiority and for tests over data sets,
{few} for the bootstrap and the permutation test (error {more:.1f}), {fewest} for metrics
that take milliseconds: {slow} (error {most:.1f}).
Each column: number of samples, error rate, scores. *Smooth*: failure AUROC 0.87. *Tied*: the
same on ten levels. *Sharp*: failure AUROC 0.99. In brackets: the percentage of studies with an
interval, if it is below 99. For `oscr` and `scod_...`, half of the failures are samples of
unknown classes."""
    yield "\n### Coverage of intervals\n"
    rows = {f"interval {m.name}": form(m) for m in METRICS.values()}
    rows |= {f"bootstrap {name}": f"`{name}`, BCa" for name in TESTED}
    yield from table("metric", rows, found, designs)
    yield "\n### False positives of the default test\n"
    rows = {f"difference {m.name}": form(m) for m in METRICS.values()}
    yield from table("metric", rows, found, designs)
    yield "\n### False positives of the other tests\n"
    rows = {f"bootstrap test {name}": f"bootstrap, `{name}`" for name in TESTED}
    rows |= {f"swaps {name}": f"permutation, `{name}`" for name in TESTED}
    rows |= {f"margin {name}": f"non-inferior at the margin, `{name}`" for name in TESTED}
    yield from table("test", rows, found, designs)
    yield "\n### Tests over data sets or runs\n"
    yield "False positives if no method is better in any block. *Ties*: rounded values.\n"
    names = [key.rsplit(" ", 1)[0] for key in found[BLOCKS[0]] if key.endswith("False")]
    rows = {
        f"{name} {tied}": name + (", ties" if tied else "")
        for name in names
        for tied in (False, True)
    }
    yield from table("blocks", rows, found, BLOCKS)


def written(page: str, lines: list[str]) -> str:
    """Return the page with these lines between its markers."""
    before, rest = page.split(START, 1)
    return before + START + "\n\n" + "\n".join(lines) + "\n\n" + END + rest.split(END, 1)[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--quick", action="store_true", help="100 draws, n = 200, only printed")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    draws = 100 if args.quick else args.draws
    designs = tuple(d for d in DESIGNS if d.n == SIZES[0]) if args.quick else DESIGNS
    start = perf_counter()
    found = measure(draws, seed=args.seed, processes=args.processes, designs=designs)
    lines = list(report(found, draws))
    if args.quick:
        print("\n".join(lines))
    else:
        PAGE.write_text(written(PAGE.read_text("utf-8"), lines), "utf-8")
    print(f"{perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
