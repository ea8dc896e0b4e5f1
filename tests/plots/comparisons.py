"""Comparisons made up for the tests of displays and reports: plausible numbers, awkward names."""

import itertools
import math
from dataclasses import replace
from functools import partial

import numpy as np
from scipy import stats

from abstain._foundation.notes import Note
from abstain.curves.bands import RiskCoverageBand
from abstain.evaluation.comparison import (
    Agreement,
    Comparison,
    Estimate,
    MeanRanks,
    MethodBand,
    PairedDifference,
    Stability,
    Standing,
    best_methods,
    sort_best_first,
)
from abstain.evaluation.comparison.plan import Plan
from abstain.evaluation.comparison.summary import ReferenceTest, summary_rows

NAN = math.nan
METHODS = ("msr", "mls", "pe", "energy", "knn", "maha")
AWKWARD = ("<b>x</b>", "$a_b$", "_hidden", "\x1b[31mred\u202e", "a|b&c\\d", "a very long name " * 4)
DATA = tuple((("study", name),) for name in ("iid", "corruption", "subclass"))
LOWER = {"augrc": True, "aurc": True, "failure_auroc": False}
LITERATURE = "Wilcoxon on bootstrap replicates"
VALID = "influence function"


def made_up(
    methods=METHODS, metrics=("augrc", "aurc"), data=DATA, *, seed=0, draws=400, **options
) -> Comparison:
    """Draw a comparison; `undefined` names a method without values, `spread` sets the noise."""
    rng = np.random.default_rng(seed)
    undefined, spread = options.get("undefined", ""), options.get("spread", 0.08)
    drawn = {(m, d): _draw(rng, len(methods), m, draws, spread) for m in metrics for d in data}
    for values in drawn.values():
        if undefined:
            values[:, methods.index(undefined)] = NAN
    keys = list(drawn)
    literature = options.get("literature", True)
    standings = [s for key in keys for s in _standings(key, methods, drawn[key])]
    across, overall = [], []
    if len(data) > 1:
        across = [_across(m, methods, [drawn[m, d] for d in data]) for m in metrics]
        overall = [s for m in metrics for s in _overall(m, methods, [drawn[m, d] for d in data])]
    comparison = Comparison(
        metrics=tuple(metrics),
        methods=tuple(methods),
        data=tuple(data),
        runs=("",),
        level=0.95,
        estimates=tuple(e for key in keys for e in _estimates(key, methods, drawn[key])),
        pairs=tuple(p for key in keys for p in _pairs(key, methods, drawn[key], literature)),
        standings=(*standings, *overall),
        mean_ranks=tuple(across),
        agreements=tuple(_agreements(metrics, methods, data, drawn)),
        stability=tuple(Stability(m, d, 0.83, 0.6, 1.0) for m, d in keys),
        bands=tuple(_bands(rng, methods, data)),
        notes=_findings(methods, data),
        test="influence",
        bootstrap=draws,
        seed=seed,
    )
    return with_summary(comparison)


def with_summary(comparison: Comparison, reference: str | None = None) -> Comparison:
    """Add the summary that `compare` would compute from the estimates and pairs."""
    plan = Plan(comparison.level, reference=reference)
    rows = []
    for metric, data in itertools.product(comparison.metrics, comparison.data):
        ranked = sort_best_first(comparison.estimates_of(metric, data))
        if not ranked:
            continue
        first = reference or (best_methods(ranked) or [ranked[0].method])[0]
        lower = ranked[0].lower_is_better
        pairs = comparison.pairs_of(metric, data)
        rows += summary_rows(ranked, first, pairs, partial(_test_of_pair, lower), plan)
    return replace(comparison, summary=tuple(rows), reference=reference or "")


def _test_of_pair(lower_is_better, pair, method):
    sign = 1 if method == pair.first else -1
    z = stats.norm.isf(pair.p_value / 2)
    sd = abs(pair.difference) / z if z else 1.0

    def interval(alpha, is_rejected):
        half = sd * stats.norm.isf(alpha / 2)
        return sign * pair.difference - half, sign * pair.difference + half

    is_better = (sign * pair.difference < 0) == lower_is_better
    return ReferenceTest(pair.p_value, is_better, interval)


def _draw(rng, k, metric, draws, spread):
    """Return draws x methods around true values; the first row is what was observed."""
    center = {"augrc": 0.04, "aurc": 0.06}.get(metric, 0.85)
    true = center * (1 + 0.35 * np.linspace(-1, 1, k) ** 3 * rng.choice([0.6, 1.0]))
    if not LOWER[metric]:
        true = np.minimum(true[::-1], 0.99)
    shared, own = rng.normal(size=(draws, 1)), rng.normal(size=(draws, k))
    values = true * (1 + spread * (0.9 * shared + 0.45 * own))
    return np.minimum(values, 0.999) if metric == "failure_auroc" else values


def _ranks(metric, values):
    signed = values if LOWER[metric] else -values
    return stats.rankdata(signed, axis=-1, nan_policy="omit")


def _estimates(key, methods, values):
    metric, data = key
    for i, method in enumerate(methods):
        value, sd = values[0, i], np.std(values[:, i])
        note = "" if value == value else "no failures: nothing to rank"
        low, high = value - 1.96 * sd, value + 1.96 * sd
        yield Estimate(
            metric, data, "", method, value, low, high, sd, 0.95,
            "influence function, log scale", 3000, 153, LOWER[metric], note,
        )  # fmt: skip


def _holm(p):
    order = np.argsort(p)
    adjusted = np.empty(len(p))
    running = 0.0
    for index, i in enumerate(order):
        running = max(running, min(1.0, (len(p) - index) * p[i]))
        adjusted[i] = running
    return adjusted


def _pairs(key, methods, values, literature):
    metric = key[0]
    sign = 1 if LOWER[metric] else -1
    both = list(itertools.combinations(range(len(methods)), 2))
    z = [(values[0, i] - values[0, j]) / np.std(values[:, i] - values[:, j]) for i, j in both]
    p = 2 * stats.norm.sf(np.abs(z))
    for (i, j), own, adjusted in zip(both, p, _holm(p), strict=True):
        wins = (methods[i] if sign * (values[0, i] - values[0, j]) < 0 else methods[j],)
        better = wins[0] if adjusted < 0.05 else ""
        yield _pair(key, methods, values, (i, j), (own, adjusted, VALID, better, True))
    if not literature:
        return
    for i, j in itertools.permutations(range(len(methods)), 2):
        ahead = sign * (values[0, j] - values[0, i])
        own = 1e-12 if ahead > 0 else 1.0
        better = methods[i] if own < 0.05 else ""
        yield _pair(
            key, methods, values, (i, j), (own, min(own * 30, 1.0), LITERATURE, better, False)
        )


def _pair(key, methods, values, places, tested):
    i, j = places
    p, adjusted, test, better, valid = tested
    difference = values[:, i] - values[:, j]
    sd = np.std(difference)
    ahead = difference < 0 if LOWER[key[0]] else difference > 0
    note = "" if valid else "replicates are no independent samples: p shrinks with their number"
    ratio = values[0, i] / values[0, j]
    return PairedDifference(
        *key, methods[i], methods[j], difference[0], difference[0] - 1.96 * sd,
        difference[0] + 1.96 * sd, sd, ratio, ratio * 0.9, ratio * 1.1, p, adjusted, "holm", test,
        float(np.mean(ahead)), better, valid, note,
    )  # fmt: skip


def _standings(key, methods, values):
    ranks = _ranks(key[0], values)
    yield from _of_ranks(key[0], key[1], methods, values[0], ranks, ranks[0])


def _overall(metric, methods, tables):
    ranks = np.mean([_ranks(metric, t) for t in tables], axis=0)
    again = stats.rankdata(ranks, axis=-1, nan_policy="omit")
    yield from _of_ranks(metric, None, methods, np.full(len(methods), NAN), again, again[0])


def _of_ranks(metric, data, methods, values, ranks, own):
    k = len(methods)
    for i, method in enumerate(methods):
        column = ranks[:, i]
        if np.isnan(column[0]):
            yield Standing(
                metric, data, method, NAN, NAN, NAN, NAN, NAN, (NAN,) * k, "influence functions"
            )
            continue
        chances = tuple(float(np.mean(np.round(column) == r)) for r in range(1, k + 1))
        low, high = np.quantile(column, [0.025, 0.975], method="nearest")
        yield Standing(
            metric, data, method, float(values[i]), float(own[i]), float(np.mean(column)),
            float(low), float(high), chances, "influence functions",
        )  # fmt: skip


def _across(metric, methods, tables):
    ranks = np.array([_ranks(metric, t[0]) for t in tables])
    means = np.mean(ranks, axis=0)
    order = [int(i) for i in np.argsort(means) if not np.isnan(means[i])]
    k, n = len(order), len(tables)
    statistic, p = stats.friedmanchisquare(*ranks[:, order].T) if k > 2 else (NAN, NAN)
    cd = (
        stats.studentized_range.ppf(0.95, k, np.inf) / math.sqrt(2) * math.sqrt(k * (k + 1) / 6 / n)
    )
    sorted_means = tuple(float(means[i]) for i in order)
    names = tuple(methods[i] for i in order)
    return MeanRanks(
        metric, n, names, sorted_means, float(statistic), float(p), float(cd),
        cliques_of(names, sorted_means, cd), 0.95,
    )  # fmt: skip


def cliques_of(names, means, cd):
    """Return the maximal runs of methods whose mean ranks lie within `cd`."""
    runs = []
    for i in range(len(names)):
        j = max(j for j in range(len(names)) if means[j] - means[i] <= cd)
        if j > i and (not runs or j > runs[-1][1]):
            runs.append((i, j))
    return tuple(names[i : j + 1] for i, j in runs)


def _agreements(metrics, methods, data, drawn):
    for first, second in itertools.combinations(metrics, 2):
        for d in (*data, None) if len(data) > 1 else data:
            own = [
                np.mean(
                    [_ranks(m, drawn[m, e][0]) for e in ([d] if d is not None else data)], axis=0
                )
                for m in (first, second)
            ]
            ranked = ~np.isnan(own[0])
            tau = stats.kendalltau(*(o[ranked] for o in own)).statistic if ranked.sum() > 1 else NAN
            yield Agreement(
                d,
                first,
                second,
                float(tau),
                float(np.maximum(tau - 0.3, -1)),
                float(np.minimum(tau + 0.25, 1)),
            )


def _bands(rng, methods, data):
    coverage = np.linspace(0.02, 1, 50)
    for d in data:
        full = rng.uniform(0.05, 0.3)
        for i, method in enumerate(methods):
            risk = full * coverage ** (3 - 0.3 * i)
            yield MethodBand(d, method, partial(band, "selective", coverage, risk))


def band(kind, coverage, risk, n=2000):
    se = np.sqrt(np.maximum(risk, 1e-4) * 0.9 / (n * coverage))
    lower = [np.maximum(risk - z * se, 0) for z in (1.96, 2.9)]
    return RiskCoverageBand(
        kind, coverage, risk, se, lower[0], risk + 1.96 * se, lower[1], risk + 2.9 * se, 0.95
    )


def _findings(methods, data):
    few = "12 failures only: the intervals of AURC may be too narrow"
    return (
        Note("few", few, data[0], methods[0], "warning"),
        Note("few", few, data[0], methods[-1], "warning"),
        Note("ties", "41 % of the samples share their confidence", (), methods[1]),
    )


def critical(k, blocks=12, metric="augrc", names=None):
    """Return an MeanRanks of k methods."""
    rng = np.random.default_rng(k)
    means = tuple(sorted(float(v) for v in rng.uniform(1, k, k)))
    names = tuple(names or (f"method {i}" for i in range(k)))
    cd = (
        stats.studentized_range.ppf(0.95, k, np.inf)
        / math.sqrt(2)
        * math.sqrt(k * (k + 1) / 6 / blocks)
    )
    return MeanRanks(
        metric, blocks, names, means, 30.0, 0.0004, float(cd), cliques_of(names, means, cd), 0.95
    )
