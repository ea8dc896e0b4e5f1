"""Measure the false alarms of a monitor and the delay until it detects that the risk doubled.

    python benchmarks/monitor_alarms.py [--streams 10000] [--length 3000] [--seed 0]

Each stream has its own calibration data and a threshold chosen on them. All streams are
simulated in parallel with the bets of `abstain.inference`. The first streams also run through
`abstain.monitoring`, which must compute the same capital. Prints the Markdown tables of
docs/validation.md.
"""

import argparse
from dataclasses import dataclass

import numpy as np

import abstain as ab
from abstain.inference.exchangeability import rank_blocks, rank_p_value
from abstain.inference.prediction_powered_mean import prediction_powered_mean
from abstain.inference.wager import unallocated_share, update_money, wager
from abstain.monitoring.plan import UNIFORM_SHARE, spread_of
from abstain.monitoring.starting import coverage_limits

DELTA, TARGET_RISK, N_CALIBRATION = 0.05, 0.1, 1000
#: Number of streams that also run through `abstain.monitoring`.
N_CHECKED = 3
#: Capital at which a watch raises an alarm. Three watches have equal shares of DELTA.
ALARM_CAPITAL = 3 / DELTA
MAX_MONEY = 1e280


class ParallelWagers:
    """Wagers on the claims of many streams. A step may skip some of the streams."""

    def __init__(self, wagers):
        self.claims = np.stack([item.claims for item in wagers])
        self.stakes = np.stack([item.stakes for item in wagers])
        self.money = np.zeros_like(self.claims)
        self.n_values = np.zeros(len(wagers), int)
        self.max_capital = np.ones(len(wagers))

    def add(self, values, is_observed=True):  # noqa: FBT002
        """Add one value to each stream that is observed."""
        n_values = self.n_values + 1
        newly_allocated = unallocated_shares(n_values - 1) - unallocated_shares(n_values)
        newly_allocated = newly_allocated / self.claims.shape[-1]
        factor = 1 + self.stakes * (np.asarray(values)[:, None] - self.claims)
        money = np.minimum((self.money + newly_allocated[:, None]) * factor, MAX_MONEY)
        self.money = np.where(np.reshape(is_observed, (-1, 1)), money, self.money)
        self.n_values = np.where(is_observed, n_values, self.n_values)
        self.max_capital = np.maximum(self.max_capital, self.capital)

    @property
    def capital(self):
        return self.money.sum(axis=-1) + unallocated_shares(self.n_values)


def unallocated_shares(n_values):
    """Compute `unallocated_share` for streams of different lengths."""
    return 1 / np.log2(n_values + 2)


class ParallelRankTests:
    """Rank tests of the confidences of many streams, as the watch of the confidences runs them."""

    def __init__(self, blocks):
        self.counts = np.stack([item.n_gaps for item in blocks])
        self.edges = np.stack([item.edges for item in blocks])
        start = wager(0.5, 0.5, streams=(len(blocks), 2))
        self.claims, self.stakes, self.money = start.claims, start.stakes, start.money
        self.max_capital = np.ones(len(blocks))
        self.n_values = 0

    def add(self, confidence, fraction):
        """Add one confidence to each stream.

        `fraction` contains uniform random numbers for the positions within the blocks.
        """
        self.n_values += 1
        block = (self.edges <= confidence[:, None]).sum(axis=1)
        p = rank_p_value(self.counts, block, fraction)
        self.counts[np.arange(block.size), block] += 1
        # p detects a shift of the confidences. |2 p - 1| detects a change of their spread.
        values = np.stack([p, np.abs(2 * p - 1)], axis=1)
        self.money = update_money(self.money, values, self.n_values, self.claims, self.stakes)
        capital = self.money.sum(axis=-1).mean(axis=-1) + unallocated_share(self.n_values)
        self.max_capital = np.maximum(self.max_capital, capital)


def draw(rng, shape):
    """Draw calibrated confidences and their losses."""
    confidence = rng.beta(4, 1, shape)
    return confidence, rng.random(shape) < 1 - confidence


@dataclass(frozen=True)
class CalibratedRule:
    """A decision rule, the confidences of its calibration data and its true selective risk."""

    confidence: np.ndarray
    rule: ab.thresholds.DecisionRule
    true_risk: float


def fit_rule(rng):
    confidence, loss = draw(rng, N_CALIBRATION)
    rule = ab.thresholds.for_risk(confidence, loss, max_risk=TARGET_RISK)
    t = rule.threshold
    # Mean of 1 - c above the threshold t, where c has the density 4 c^3.
    return CalibratedRule(confidence, rule, 1 - 0.8 * (1 - t**5) / (1 - t**4))


def print_false_alarms(n_streams, length, seed):
    """Print the share of streams in which each watch ever raises an alarm without a change."""
    rng = np.random.default_rng(seed)
    rules = [fit_rule(rng) for _ in range(n_streams)]
    limits = [coverage_limits(item.rule, None, DELTA / 6) for item in rules]
    coverage = ParallelWagers([wager(low, min(high, 1 - 1e-9)) for low, high in limits])
    # The claim is the true risk itself, which is the hardest case under the null hypothesis.
    risk = ParallelWagers([wager(high=item.true_risk) for item in rules])
    ranks = ParallelRankTests([rank_blocks(item.confidence, rng=seed) for item in rules])
    thresholds = np.array([item.rule.threshold for item in rules])
    checked_confidences = []
    for _ in range(length):
        confidence, loss = draw(rng, n_streams)
        is_accepted = confidence >= thresholds
        coverage.add(is_accepted)
        ranks.add(confidence, rng.random(n_streams))
        # The risk refers to accepted samples only.
        risk.add(loss, is_accepted)
        checked_confidences.append(confidence[:N_CHECKED])
    check_coverage(rules, limits, np.array(checked_confidences), coverage)
    has_alarm = {
        "coverage": coverage.max_capital >= 2 * ALARM_CAPITAL,
        "confidence": ranks.max_capital >= ALARM_CAPITAL,
        "risk": risk.max_capital >= ALARM_CAPITAL,
    }
    has_any_alarm = np.any(list(has_alarm.values()), axis=0)
    print(f"\n{n_streams:,} streams of {length:,} predictions, delta {DELTA}:\n")
    print("| watch | share of streams with a false alarm | allowed |")
    print("| --- | ---: | ---: |")
    for watch, mask in has_alarm.items():
        print(f"| {watch} | {mask.mean():.4f} | {DELTA / 3:.4f} |")
    print(f"| any | {has_any_alarm.mean():.4f} | {DELTA:.4f} |")


def check_coverage(rules, limits, confidences, coverage):
    """Check that `abstain.monitoring` computes the same capital for the first streams."""
    for i in range(min(N_CHECKED, len(rules))):
        monitor = ab.monitoring.start(rules[i].rule, calibration=rules[i].confidence)
        assert monitor.plan.coverage == limits[i]
        ids = [f"{i} {j}" for j in range(len(confidences))]
        monitor = monitor.update(ids, confidences[:, i])
        np.testing.assert_allclose(monitor.watches[0].capital, coverage.capital[i], rtol=1e-6)


@dataclass(frozen=True)
class Labeling:
    """Share of the predictions with a label, and the way in which the labels are selected."""

    name: str
    share: float
    is_requested: bool = False
    #: Whether labels of likely failures are requested with a higher probability.
    is_uneven: bool = False

    def probabilities(self, spread, mean_spread):
        """Return the probability that each label is requested, as `MonitorPlan` computes it."""
        if not self.is_uneven:
            return np.full(spread.shape, self.share)
        factor = UNIFORM_SHARE + (1 - UNIFORM_SHARE) * spread / mean_spread
        return np.minimum(self.share * factor, 1.0)

    @property
    def min_probability(self):
        return self.share * UNIFORM_SHARE if self.is_uneven else self.share


LABELINGS = (
    Labeling("all", 1.0),
    Labeling("half, at random", 0.5),
    Labeling("5%, at random", 0.05),
    Labeling("5%, requested, equal probabilities", 0.05, is_requested=True),
    Labeling("5%, requested where failures are likely", 0.05, is_requested=True, is_uneven=True),
)


def failure_probability_parameters(risk):
    """Return the parameters of a beta distribution of failure probabilities with this mean."""
    return 0.3, 0.3 * (1 - risk) / risk


def detection_delays(labeling, risk, n_before, n_streams=400, max_after=60_000, seed=0):
    """Return the number of accepted predictions from the doubling of the risk to the alarm.

    NaN if there is no alarm. Streams with an alarm before the change are excluded.
    """
    rng = np.random.default_rng(seed)
    parameters = failure_probability_parameters(risk)
    mean_spread = spread_of(rng.beta(*parameters, 200_000)).mean()
    # Losses are weighted by inverse probabilities. `scale` scales losses and claim to [0, 1].
    scale = labeling.min_probability if labeling.is_requested else 1.0
    wagers = ParallelWagers([wager(high=risk * scale)] * n_streams)
    delay = np.full(n_streams, np.nan)
    for t in range(n_before + max_after):
        predicted = rng.beta(*parameters, n_streams)
        factor = 1 if t < n_before else 2
        is_failure = rng.random(n_streams) < np.minimum(factor * predicted, 1)
        if labeling.is_requested:
            probability = labeling.probabilities(spread_of(predicted), mean_spread)
            is_labeled = rng.random(n_streams) < probability
            wagers.add(is_failure * is_labeled * scale / probability)
        else:
            wagers.add(is_failure, rng.random(n_streams) < labeling.share)
        is_first_alarm = np.isnan(delay) & (wagers.max_capital >= ALARM_CAPITAL)
        delay[is_first_alarm] = t + 1 - n_before
        if not np.isnan(delay).any():
            break
    is_false_alarm = delay <= 0
    return delay[~is_false_alarm]


def print_delays(n_streams, seed):
    print(
        "\nThe risk equals the target and then doubles. Accepted predictions until the alarm, "
        "median (90% quantile):\n"
    )
    columns = [(risk, n_before) for risk in (0.05, 0.01) for n_before in (0, 5000)]
    titles = [f"target {risk:g}, after {n_before:,}" for risk, n_before in columns]
    print("| labels | " + " | ".join(titles) + " |")
    print("| --- |" + " ---: |" * len(columns))
    for labeling in LABELINGS:
        cells = []
        for risk, n_before in columns:
            delays = detection_delays(labeling, risk, n_before, n_streams, seed=seed)
            delays = np.where(np.isnan(delays), np.inf, delays)
            median, upper = np.quantile(delays, [0.5, 0.9], method="higher")
            cells.append(f"{median:,.0f} ({upper:,.0f})")
        print(f"| {labeling.name} | {' | '.join(cells)} |", flush=True)


def print_estimates(seed, n=20_000, n_sets=300, risk=0.05):
    print(
        f"\nThe risk estimated from 5% of the labels of {n:,} accepted predictions: standard "
        f"error over {n_sets} sets, and coverage of the 95% interval:\n"
    )
    print("| labels | labels alone | labels and predictions | coverage of the interval |")
    print("| --- | ---: | ---: | ---: |")
    rng = np.random.default_rng(seed)
    for labeling in LABELINGS[-2:]:
        estimates, n_covered = [], 0
        for _ in range(n_sets):
            predicted = rng.beta(*failure_probability_parameters(risk), n)
            spread = spread_of(predicted)
            probability = labeling.probabilities(spread, spread.mean())
            is_labeled = rng.random(n) < probability
            loss = np.where(is_labeled, rng.random(n) < predicted, np.nan)
            estimate = prediction_powered_mean(predicted, loss, probability)
            estimates.append((estimate.labels_only, estimate.value))
            n_covered += estimate.interval.low <= risk <= estimate.interval.high
        labels_only, combined = np.std(estimates, axis=0)
        name = labeling.name.removeprefix("5%, ")
        print(f"| {name} | {labels_only:.4f} | {combined:.4f} | {n_covered / n_sets:.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streams", type=int, default=10_000)
    parser.add_argument("--length", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print_estimates(options.seed)
    print_delays(min(options.streams, 400), options.seed)
    print_false_alarms(options.streams, options.length, options.seed)


if __name__ == "__main__":
    main()
