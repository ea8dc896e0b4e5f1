"""How often a monitor is fooled, and how long it takes to find a risk that doubled.

    python benchmarks/monitor_alarms.py [--streams 10000] [--length 3000] [--seed 0]

Every stream has calibration data of its own, on which a threshold is chosen by their losses. All
streams go through the bets of `abstain.inference` side by side; the first of them also go through
`abstain.monitoring`, which must own the same. Prints Markdown tables for docs/monitoring.md.
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

DELTA, RISK, CALIBRATION, CHECKED = 0.05, 0.1, 1000, 3
BAR = 3 / DELTA


class Side:
    """One bet for many streams, each against a claim of its own."""

    def __init__(self, begun):
        self.claims, self.edges = (
            np.stack([getattr(b, n) for b in begun]) for n in ("claims", "edges")
        )
        self.held = np.zeros_like(self.claims)
        self.most, self.step = np.ones(len(begun)), np.zeros(len(begun), int)

    def add(self, x, seen=True):  # noqa: FBT002
        """Play where there is something to see; the streams are at different steps."""
        step = self.step + 1
        begun = (1 / np.log2(step + 1) - 1 / np.log2(step + 2)) / self.claims.shape[-1]
        won = 1 + self.edges * (np.asarray(x)[:, None] - self.claims)
        won = np.minimum((self.held + begun[:, None]) * won, 1e280)
        self.held = np.where(np.reshape(seen, (-1, 1)), won, self.held)
        self.step = np.where(seen, step, self.step)
        self.most = np.maximum(self.most, self.capital)

    @property
    def capital(self):
        return self.held.sum(axis=-1) + 1 / np.log2(self.step + 2)


class Ranks:
    """The watch of the confidences, for many streams."""

    def __init__(self, blocks):
        self.blocks, self.counts = blocks, np.stack([b.n_gaps for b in blocks])
        one = wager(0.5, 0.5, streams=(len(blocks), 2))
        self.claims, self.edges, self.held = one.claims, one.stakes, one.money
        self.most, self.step = np.ones(len(blocks)), 0
        self.cuts = np.stack([b.edges for b in blocks])

    def add(self, confidence, at):
        self.step += 1
        home = (self.cuts <= confidence[:, None]).sum(axis=1)
        p = rank_p_value(self.counts, home, at)
        self.counts[np.arange(home.size), home] += 1
        seen = np.stack([p, np.abs(2 * p - 1)], axis=1)
        self.held = update_money(self.held, seen, self.step, self.claims, self.edges)
        own = self.held.sum(axis=-1).mean(axis=-1) + unallocated_share(self.step)
        self.most = np.maximum(self.most, own)


def drawn(rng, shape):
    confidence = rng.beta(4, 1, shape)
    return confidence, rng.random(shape) < 1 - confidence


def rule_on(rng):
    """A rule whose promise holds exactly: the true risk of its answers is the target."""
    confidence, loss = drawn(rng, CALIBRATION)
    rule = ab.thresholds.for_risk(confidence, loss, max_risk=RISK)
    # The mean of 1 - c above a threshold t, of the density 4 c^3.
    t = rule.threshold
    return confidence, rule, 1 - 0.8 * (1 - t**5) / (1 - t**4)


def false_alarms(streams, length, seed):
    """The share of streams on which each watch ever gives alarm, while nothing changes."""
    rng = np.random.default_rng(seed)
    known = [rule_on(rng) for _ in range(streams)]
    limits = [coverage_limits(rule, None, DELTA / 6) for _, rule, _ in known]
    coverage = Side([wager(low, min(high, 1 - 1e-9)) for low, high in limits])
    # The promise is the true risk, the hardest case that it allows.
    risk = Side([wager(high=true) for *_, true in known])
    ranks = Ranks([rank_blocks(c, rng=seed) for c, *_ in known])
    taus = np.array([rule.threshold for _, rule, _ in known])
    seen = []
    for _ in range(length):
        confidence, loss = drawn(rng, streams)
        answered = confidence >= taus
        coverage.add(answered)
        ranks.add(confidence, rng.random(streams))
        # A label of what is not answered says nothing: its bet is not played.
        risk.add(loss, answered)
        seen.append((confidence[:CHECKED], loss[:CHECKED], answered[:CHECKED]))
    check(known, limits, seen, coverage)
    rung = {
        "coverage": coverage.most >= 2 * BAR,
        "confidence": ranks.most >= BAR,
        "risk": risk.most >= BAR,
    }
    any_ = np.any([*rung.values()], axis=0)
    print(f"\n{streams:,} streams of {length:,} predictions, delta {DELTA}:\n")
    print("| watch | share of streams with a false alarm | allowed |")
    print("| --- | ---: | ---: |")
    for name, found in rung.items():
        print(f"| {name} | {found.mean():.4f} | {DELTA / 3:.4f} |")
    print(f"| any | {any_.mean():.4f} | {DELTA:.4f} |")


def check(known, limits, seen, coverage):
    """The library owns what the arrays own."""
    for i in range(CHECKED):
        confidence, rule, _ = known[i]
        found = ab.monitoring.start(rule, calibration=confidence)
        assert found.plan.coverage == limits[i]
        ids = [f"{i} {j}" for j in range(len(seen))]
        found = found.update(ids, [c[i] for c, *_ in seen])
        np.testing.assert_allclose(found.watches[0].capital, coverage.capital[i], rtol=1e-6)


@dataclass(frozen=True)
class Labels:
    """How labels come."""

    name: str
    share: float
    asked: bool = False
    leans: bool = False


WAYS = (
    Labels("all", 1.0),
    Labels("half, at random", 0.5),
    Labels("5 %, at random", 0.05),
    Labels("5 %, asked for evenly", 0.05, asked=True),
    Labels("5 %, asked for where failures are likely", 0.05, asked=True, leans=True),
)


def chances(way, spread, mean):
    """The chance that each label is asked for, and the least there is."""
    if not way.leans:
        return np.full(spread.shape, way.share), way.share
    return np.minimum(
        way.share * (UNIFORM_SHARE + (1 - UNIFORM_SHARE) * spread / mean), 1.0
    ), way.share * UNIFORM_SHARE


def delays(way, promise, quiet, streams=400, most=60_000, seed=0):
    """Answers from the doubling of the risk to the alarm; NaN where it is not found."""
    rng = np.random.default_rng(seed)
    shape = (0.3, 0.3 * (1 - promise) / promise)
    mean = spread_of(rng.beta(*shape, 200_000)).mean()
    least = chances(way, np.zeros(1), mean)[1] if way.asked else 1.0
    bet = Side([wager(high=promise * least)] * streams)
    when, early = np.full(streams, np.nan), 0
    for t in range(quiet + most):
        p = rng.beta(*shape, streams)
        lost = rng.random(streams) < np.minimum(p * (1 + (t >= quiet)), 1)
        if way.asked:
            pi, _ = chances(way, spread_of(p), mean)
            bet.add(lost * (rng.random(streams) < pi) * least / pi)
        else:
            bet.add(lost, rng.random(streams) < way.share)
        rung = np.isnan(when) & (bet.most >= BAR)
        early += (rung & (t < quiet)).sum()
        when[rung] = t + 1 - quiet
        if not np.isnan(when).any():
            break
    return when[~(when <= 0)], early / streams


def delay_table(streams, seed):
    print(
        "\nThe risk doubles from the promise to twice of it: answers until the alarm, median "
        "(nine of ten):\n"
    )
    columns = [(p, q) for p in (0.05, 0.01) for q in (0, 5000)]
    print("| labels | " + " | ".join(f"promise {p:g}, after {q:,}" for p, q in columns) + " |")
    print("| --- |" + " ---: |" * len(columns))
    for way in WAYS:
        cells = []
        for promise, quiet in columns:
            found, _ = delays(way, promise, quiet, streams, seed=seed)
            found = np.where(np.isnan(found), np.inf, found)
            half, most = np.quantile(found, [0.5, 0.9], method="higher")
            cells.append(f"{half:,.0f} ({most:,.0f})")
        print(f"| {way.name} | {' | '.join(cells)} |", flush=True)


def estimate_table(seed, n=20_000, sets=300, promise=0.05):
    print(
        f"\nThe risk by 5 % of the labels of {n:,} answers; the standard error over {sets} sets:\n"
    )
    print("| labels asked for | labels alone | labels and predictions | held of 95 % |")
    print("| --- | ---: | ---: | ---: |")
    rng = np.random.default_rng(seed)
    for way in WAYS[-2:]:
        values, held = [], 0
        for _ in range(sets):
            p = rng.beta(0.3, 0.3 * (1 - promise) / promise, n)
            pi, _ = chances(way, spread_of(p), spread_of(p).mean())
            loss = np.where(rng.random(n) < pi, rng.random(n) < p, np.nan)
            found = prediction_powered_mean(p, loss, pi)
            values.append((found.labels_only, found.value))
            held += found.interval.low <= promise <= found.interval.high
        errors = np.std(values, axis=0)
        print(f"| {way.name[5:]} | {errors[0]:.4f} | {errors[1]:.4f} | {held / sets:.2f} |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--streams", type=int, default=10_000)
    parser.add_argument("--length", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    estimate_table(given.seed)
    delay_table(min(given.streams, 400), given.seed)
    false_alarms(given.streams, given.length, given.seed)


if __name__ == "__main__":
    main()
