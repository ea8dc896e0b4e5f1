"""Simulate the coverage of the intervals and the false positives of the tests of every metric.

    python benchmarks/reliability.py [--draws N] [--quick] [--processes P] [--seed S]

Writes the tables into docs/validation.md between two markers. The default 2,000 draws take about 20
minutes on two cores without other load. With `--quick` the script prints tables of a few draws
instead. The rows come from the catalogue, so a registered metric is included automatically.

The population has two classes. A sample fails with a given probability. Its score is normal with
standard deviation 1, and the mean of the successes is above that of the failures. The true value
of a metric is computed on a fine weighted grid of this population (`true_values`).
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

SIZES, FAILURE_RATES = (200, 2000), (0.05, 0.30)
#: Distance between the means of successes and failures, and edges between tied levels, by kind of
#: scores. The failure AUROC is 0.87 for a distance of 1.6, and 0.99 for 3.2.
SCORE_KINDS = {
    "smooth": (1.6, None),
    "tied": (1.6, np.linspace(-1.5, 2.1, 9)),  # ten levels, a third of the successes at the top
    "sharp": (3.2, None),
}
CORRELATION = 0.6  # of two scores of the same sample
WORSE_BY = 0.3  # difference of the distances of the good and the worse score
N_RESAMPLES, N_PERMUTATIONS = 200, 199
#: Shares of the draws that are used for resampling, and for resampling of slow metrics.
RESAMPLING_SHARE, SLOW_RESAMPLING_SHARE = 0.04, 0.01
#: Metrics that take milliseconds.
SLOW_METRICS = ("smooth_ece", "auroc_retention", "auprc_retention")
#: Metrics of samples of unknown classes. For these, half of the failures are such samples.
OPEN_SET_METRICS = [m.name for m in METRICS.values() if Need.UNKNOWN_CLASSES in m.measurement.needs]
#: Metrics with which the tests that do not depend on the metric are simulated.
TESTED_METRICS = ("augrc", "aurc", "failure_auroc", "selective_risk@80cov")
BLOCK_COUNTS = (4, 6, 10, 20)


class Design(NamedTuple):
    n: int
    failure_rate: float
    score_kind: str


DESIGNS = tuple(
    Design(n, rate, kind) for n in SIZES for rate in FAILURE_RATES for kind in SCORE_KINDS
)


# --------------------------------------------------------------------------------- populations
def scored_samples(
    score: np.ndarray, failed: np.ndarray, labels: np.ndarray, weight: np.ndarray | None = None
) -> Scored:
    """Return two-class predictions whose top probability increases with the score."""
    top = 0.5 + 0.5 * expit(score)
    prediction = np.where(failed, np.minimum(1 - labels, 1), labels)
    p = np.where(prediction[:, None] == np.arange(2), top[:, None], 1 - top[:, None])
    view = ClassView(labels, prediction, (0, 1), p, np.log(p))
    return Scored(top, failed.astype(np.float64), weight, probability=top, class_view=view)


def round_to_levels(score: np.ndarray, score_kind: str) -> np.ndarray:
    """Replace the scores by their tied levels, if the kind has levels."""
    edges = SCORE_KINDS[score_kind][1]
    if edges is None:
        return score
    levels = np.append(edges[0] - 0.4, edges)
    return levels[np.searchsorted(edges, score, side="right")]


def mark_unknown_classes(labels: np.ndarray, failed: np.ndarray) -> np.ndarray:
    """Replace the labels of the failures of class 0 by -1, the label of unknown classes."""
    return np.where(failed & (labels == 0), -1, labels)


@dataclass(frozen=True)
class DataSet:
    """A simulated data set: two equally good scores of one classifier and a worse one."""

    good: Scored
    equally_good: Scored
    worse: Scored
    #: The two equally good scores, where half of the failures are samples of unknown classes.
    open_set: tuple[Scored, Scored]

    def equal_pair(self, metric: Metric) -> tuple[Scored, Scored]:
        """Return the two equally good scores, with unknown classes if the metric requires them."""
        if metric.name in OPEN_SET_METRICS:
            return self.open_set
        return self.good, self.equally_good


def draw(design: Design, rng: np.random.Generator) -> DataSet:
    n, rate, kind = design
    failed, labels = rng.random(n) < rate, rng.integers(2, size=n)
    common = np.sqrt(CORRELATION) * rng.standard_normal(n)
    noise = common + np.sqrt(1 - CORRELATION) * rng.standard_normal((3, n))
    distances = SCORE_KINDS[kind][0] - np.array([0.0, 0.0, WORSE_BY])
    scores = [
        round_to_levels(x + np.where(failed, 0.0, distance), kind)
        for x, distance in zip(noise, distances, strict=True)
    ]
    good, equally_good, worse = (scored_samples(score, failed, labels) for score in scores)
    open_set_labels = mark_unknown_classes(labels, failed)
    first, second = (scored_samples(score, failed, open_set_labels) for score in scores[:2])
    return DataSet(good, equally_good, worse, (first, second))


@cache
def true_values(
    rate: float, kind: str, worse_by: float = 0.0, points: int = 200_000
) -> dict[str, float]:
    """Compute every metric of the population from the quantiles of its normal distributions."""
    z = np.tile(ndtri((np.arange(points) + 0.5) / points), 4)
    failed = np.repeat([True, True, False, False], points)
    labels = np.repeat([0, 1, 0, 1], points)
    score = round_to_levels(z + np.where(failed, 0.0, SCORE_KINDS[kind][0] - worse_by), kind)
    # The weights sum to so many samples that terms of order 1/n vanish.
    weight = np.where(failed, rate, 1 - rate) * 1e4
    closed_set = scored_samples(score, failed, labels, weight)
    open_set = scored_samples(score, failed, mark_unknown_classes(labels, failed), weight)
    values = {}
    for metric in METRICS.values():
        samples = open_set if metric.name in OPEN_SET_METRICS else closed_set
        values[metric.name] = float(metric.compute(samples).value)
    return values


# ---------------------------------------------------------------------------------- simulations
#: Outcomes of all draws, by row of a table. An outcome is 1 if the interval contains the true value
#: or if the test rejects, 0 otherwise, and NaN without an interval.
Outcomes = dict[str, list[float]]


def add_outcome(outcomes: Outcomes, row: str, value: float) -> None:
    outcomes.setdefault(row, []).append(value)


def is_covered(low: float, high: float, true_value: float) -> float:
    return np.nan if np.isnan(low) else float(low - 1e-9 <= true_value <= high + 1e-9)


def is_rejected(p_value: float) -> float:
    """Return 1.0 if a test is significant, and 0.0 otherwise or without a p-value (NaN)."""
    return float(p_value < 0.05)


def simulate_influences(design: Design, n_draws: int, seed: int) -> Outcomes:
    """Simulate intervals and tests based on influence functions, for each metric that has one."""
    rng = np.random.default_rng(seed)
    expected = true_values(design.failure_rate, design.score_kind)
    metrics = [m for m in METRICS.values() if m.measurement.influence is not None]
    outcomes: Outcomes = {}
    for _ in range(n_draws):
        data = draw(design, rng)
        for metric in metrics:
            pair = data.equal_pair(metric)
            interval = interval_of_metric(metric, pair[0])
            covered = is_covered(interval.low, interval.high, expected[metric.name])
            add_outcome(outcomes, f"interval {metric.name}", covered)
            p = difference_of_metric(metric, pair).p_value
            add_outcome(outcomes, f"difference {metric.name}", is_rejected(p))
    return outcomes


def simulate_bootstrap(design: Design, n_draws: int, seed: int) -> Outcomes:
    """Simulate the bootstrap of the tested metrics and of those without an influence function."""
    bootstrap_only = [
        m
        for m in METRICS.values()
        if m.measurement.influence is None and m.name not in SLOW_METRICS
    ]
    optional = [METRICS[name] for name in TESTED_METRICS]
    return _simulate_bootstrap(design, n_draws, seed, bootstrap_only, optional)


def simulate_slow_bootstrap(design: Design, n_draws: int, seed: int) -> Outcomes:
    """Simulate the bootstrap of slow metrics."""
    return _simulate_bootstrap(design, n_draws, seed, [METRICS[name] for name in SLOW_METRICS], [])


def _simulate_bootstrap(
    design: Design,
    n_draws: int,
    seed: int,
    bootstrap_only: list[Metric],
    optional: list[Metric],
) -> Outcomes:
    """Simulate metrics that use the bootstrap by default, and metrics that use it on request."""
    rng = np.random.default_rng(seed)
    expected = true_values(design.failure_rate, design.score_kind)
    metrics = [*bootstrap_only, *optional]
    outcomes: Outcomes = {}
    for _ in range(n_draws):
        data = draw(design, rng)
        plan = Draws(design.n, N_RESAMPLES, rng=int(rng.integers(2**31)))
        table = replicates([data.good, data.equally_good], metrics, plan)
        for metric, (first, second) in zip(metrics, table, strict=True):
            is_default = metric in bootstrap_only
            interval = interval_of_replicates(metric, first, data.good, cluster=None, level=0.95)
            covered = is_covered(interval.low, interval.high, expected[metric.name])
            interval_row = "interval" if is_default else "bootstrap"
            add_outcome(outcomes, f"{interval_row} {metric.name}", covered)
            values = (
                float(metric.compute(data.good).value),
                float(metric.compute(data.equally_good).value),
            )
            p = bootstrap_difference(
                first, second, values, lower_is_better=metric.lower_is_better
            ).p_value
            test_row = "difference" if is_default else "bootstrap test"
            add_outcome(outcomes, f"{test_row} {metric.name}", is_rejected(p))
    return outcomes


def simulate_permutations(design: Design, n_draws: int, seed: int) -> Outcomes:
    """Simulate the permutation test."""
    rng = np.random.default_rng(seed)
    outcomes: Outcomes = {}
    for _ in range(n_draws):
        data = draw(design, rng)
        first = (data.good.confidence, data.good.loss)
        second = (data.equally_good.confidence, data.equally_good.loss)
        for name in TESTED_METRICS:
            p = permutation_test(
                _as_function(METRICS[name]),
                first,
                second,
                n_permutations=N_PERMUTATIONS,
                rng=rng,
            ).p_value
            # A permutation test of exact level rejects at p = 0.05.
            add_outcome(outcomes, f"permutation {name}", float(p <= 0.05))
    return outcomes


def _as_function(metric: Metric) -> Callable[[np.ndarray, np.ndarray], float]:
    return lambda confidence, loss: float(metric.compute(Scored(confidence, loss)).value)


def simulate_non_inferiority(design: Design, n_draws: int, seed: int) -> Outcomes:
    """Simulate the non-inferiority test of a score that is worse by exactly the margin."""
    rng = np.random.default_rng(seed)
    good_values = true_values(design.failure_rate, design.score_kind)
    worse_values = true_values(design.failure_rate, design.score_kind, WORSE_BY)
    outcomes: Outcomes = {}
    for _ in range(n_draws):
        data = draw(design, rng)
        pair = (data.worse, data.good)
        for name in TESTED_METRICS:
            metric = METRICS[name]
            values = [float(metric.compute(samples).value) for samples in pair]
            if not np.isfinite(values).all():
                add_outcome(outcomes, f"margin {name}", 0.0)
                continue
            model_variances = (
                expected_variance(metric, pair[0], values[0]),
                expected_variance(metric, pair[1], values[1]),
            )
            test = non_inferiority_from_influences(
                (values[0], values[1]),
                influence_matrix(metric, pair),
                margin=abs(worse_values[name] - good_values[name]),
                lower_is_better=metric.lower_is_better,
                failures=min_failures(metric, pair),
                heavy_tailed=metric.measurement.heavy_tailed,
                model_variances=model_variances,
                bounds=difference_range(metric, pair),
            )
            add_outcome(outcomes, f"margin {name}", float(test.non_inferior))
    return outcomes


def simulate_rank_tests(n_blocks: int, n_draws: int, seed: int) -> Outcomes:
    """Simulate rank tests over independent data sets, with and without ties.

    All methods are equally good. Row names end with whether the values are tied.
    """
    rng = np.random.default_rng(seed)
    outcomes: Outcomes = {}
    for has_ties in (False, True):
        for n_methods in (2, 3, 5):
            critical = critical_difference(n_methods, n_blocks)
            for x in rng.normal(size=(n_draws, n_blocks, n_methods)):
                values = np.round(x) if has_ties else x
                test = friedman(values, lower_is_better=True)
                rejected = is_rejected(test.p_value)
                add_outcome(outcomes, f"Friedman, {n_methods} methods {has_ties}", rejected)
                any_differs = float(np.ptp(test.mean_ranks) >= critical)
                add_outcome(
                    outcomes, f"Nemenyi, any of {n_methods} methods {has_ties}", any_differs
                )
                if n_methods == 2:
                    for side in ("two-sided", "less"):
                        p = wilcoxon(values[:, 0], values[:, 1], alternative=side).p_value
                        add_outcome(outcomes, f"Wilcoxon, {side} {has_ties}", float(p <= 0.05))
    return outcomes


#: Function that simulates one design, and share of the draws, by name.
SIMULATIONS: dict[str, tuple[Callable[..., Outcomes], float]] = {
    "influence": (simulate_influences, 1.0),
    "bootstrap": (simulate_bootstrap, RESAMPLING_SHARE),
    "slow bootstrap": (simulate_slow_bootstrap, SLOW_RESAMPLING_SHARE),
    "permutation": (simulate_permutations, RESAMPLING_SHARE),
    "non-inferiority": (simulate_non_inferiority, 0.5),
}
RANK_TESTS = "rank tests"

#: Name of a simulation, design or number of blocks, number of draws, and seed.
Job = tuple[str, Design | int, int, int]


def run_job(job: Job) -> tuple[Design | int, Outcomes]:
    name, design, n_draws, seed = job
    simulate = simulate_rank_tests if name == RANK_TESTS else SIMULATIONS[name][0]
    return design, simulate(design, n_draws, seed)


def run_simulations(
    n_draws: int, *, seed: int = 1, processes: int = 2, designs: tuple[Design, ...] = DESIGNS
) -> dict[Design | int, Outcomes]:
    """Return the outcomes of each design, and of the rank tests for each number of blocks."""
    jobs: list[Job] = [
        (name, design, max(2, round(n_draws * share)), seed + i)
        for name, (_, share) in SIMULATIONS.items()
        for i, design in enumerate(sorted(designs, reverse=True))
    ]
    jobs += [(RANK_TESTS, n_blocks, max(2, n_draws // 2), seed) for n_blocks in BLOCK_COUNTS]
    if processes == 1:
        results: Iterator[tuple[Design | int, Outcomes]] = map(run_job, jobs)
    else:
        results = ProcessPoolExecutor(processes).map(run_job, jobs)
    outcomes_by_design: dict[Design | int, Outcomes] = {}
    for design, outcomes in results:
        outcomes_by_design.setdefault(design, {}).update(outcomes)
    return outcomes_by_design


# --------------------------------------------------------------------------------------- tables
def format_percentage(outcomes: list[float] | None) -> str:
    """Format the percentage of ones among the draws with an outcome.

    If fewer than 99% of the draws have an outcome, that percentage follows in brackets.
    """
    x = np.array(outcomes if outcomes is not None else [np.nan])
    is_available = ~np.isnan(x)
    if not is_available.any():
        return "-"
    percentage = f"{100 * x[is_available].mean():.1f}"
    if is_available.mean() > 0.99:
        return percentage
    return f"{percentage} ({100 * is_available.mean():.0f})"


def table_lines(
    title: str, rows: dict[str, str], outcomes_by_design: dict, columns: tuple
) -> Iterator[str]:
    """Yield the lines of a table; `rows` maps the names of outcomes to their labels."""
    heads = [
        f"{c.n:,}, {100 * c.failure_rate:.0f}%, {c.score_kind}" if isinstance(c, Design) else str(c)
        for c in columns
    ]
    yield f"| {title} | " + " | ".join(heads) + " |"
    yield "| --- |" + " ---: |" * len(heads)
    for name, label in rows.items():
        cells = [format_percentage(outcomes_by_design[c].get(name)) for c in columns]
        yield f"| {label} | " + " | ".join(cells) + " |"


def metric_label(metric: Metric) -> str:
    return f"`{metric.name}`" + ("" if metric.measurement.influence else " (bootstrap)")


def report(outcomes_by_design: dict, n_draws: int) -> Iterator[str]:
    designs = tuple(design for design in DESIGNS if design in outcomes_by_design)
    n_resampling = max(2, round(n_draws * RESAMPLING_SHARE))
    n_slow = max(2, round(n_draws * SLOW_RESAMPLING_SHARE))
    # Two standard errors of a share of 5%, in percentage points.
    error, resampling_error, slow_error = (
        196 * np.sqrt(0.05 * 0.95 / n) for n in (n_draws, n_resampling, n_slow)
    )
    slow = ", ".join(f"`{name}`" for name in SLOW_METRICS)
    yield f"""\
Coverage of 95% intervals and false positives at 5%, in percent. Each cell has {n_draws:,} studies
(Monte Carlo error {error:.1f}), and half as many for non-inferiority and for tests over data sets.
Cells of the bootstrap and of the permutation test have {n_resampling} studies (Monte Carlo error
{resampling_error:.1f}). Cells of the slow metrics {slow} have {n_slow} studies (Monte Carlo error
{slow_error:.1f}). Each column names the number of samples, the error rate and the kind of scores.
*Smooth* scores have a failure AUROC of 0.87. *Tied* scores are smooth scores that are rounded to
ten levels. *Sharp* scores have a failure AUROC of 0.99. The number in brackets is the percentage of
studies with an interval, if it is below 99. For `oscr` and `scod_...`, half of the failures are
samples of unknown classes."""
    yield "\n### Coverage of intervals\n"
    rows = {f"interval {m.name}": metric_label(m) for m in METRICS.values()}
    rows |= {f"bootstrap {name}": f"`{name}`, BCa" for name in TESTED_METRICS}
    yield from table_lines("metric", rows, outcomes_by_design, designs)
    yield "\n### False positives of the default test\n"
    rows = {f"difference {m.name}": metric_label(m) for m in METRICS.values()}
    yield from table_lines("metric", rows, outcomes_by_design, designs)
    yield "\n### False positives of the other tests\n"
    rows = {f"bootstrap test {name}": f"bootstrap, `{name}`" for name in TESTED_METRICS}
    rows |= {f"permutation {name}": f"permutation, `{name}`" for name in TESTED_METRICS}
    rows |= {f"margin {name}": f"non-inferior at the margin, `{name}`" for name in TESTED_METRICS}
    yield from table_lines("test", rows, outcomes_by_design, designs)
    yield "\n### Tests over data sets or runs\n"
    yield "False positives if no method is better in any block. *Ties*: rounded values.\n"
    tests = [
        name.removesuffix(" False")
        for name in outcomes_by_design[BLOCK_COUNTS[0]]
        if name.endswith(" False")
    ]
    rows = {}
    for test in tests:
        rows |= {f"{test} False": test, f"{test} True": f"{test}, ties"}
    yield from table_lines("blocks", rows, outcomes_by_design, BLOCK_COUNTS)


def replace_tables(page: str, lines: list[str]) -> str:
    """Return the page with the given lines between its markers."""
    before, _, remaining = page.partition(START)
    after = remaining.split(END, 1)[1]
    return before + START + "\n\n" + "\n".join(lines) + "\n\n" + END + after


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--quick", action="store_true", help="100 draws, n = 200, only printed")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    n_draws = 100 if args.quick else args.draws
    designs = tuple(d for d in DESIGNS if d.n == SIZES[0]) if args.quick else DESIGNS
    start = perf_counter()
    outcomes = run_simulations(n_draws, seed=args.seed, processes=args.processes, designs=designs)
    lines = list(report(outcomes, n_draws))
    if args.quick:
        print("\n".join(lines))
    else:
        PAGE.write_text(replace_tables(PAGE.read_text("utf-8"), lines), "utf-8")
    print(f"{perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
