"""The mean over severities: intervals, pairs and resamples know that the pictures are the same."""

import numpy as np
import pytest

import abstain as ab
from abstain._foundation.scored import Scored
from abstain.evaluation.comparison import Plan, ScoredRun
from abstain.metrics import METRICS
from abstain_bench.results.studies import compare_study_average

DATA = (("study", "corruption"),)
SHIFTS = (-1.4, -0.5, 0.4)
TYPES = 2


def plan_of(resamples=0):
    return Plan(0.95, resamples=resamples, bands=False, skip_slow=True)


def drawn(rng, n, *, apart=(1.0, 1.0), seeds=2):
    """Pictures under corruption: by seed and severity, with two methods on the same networks.

    How hard a picture is stays the same whatever is done to it.
    """
    hard = np.tile(rng.normal(size=n), TYPES)
    places = np.tile(np.arange(n), TYPES)
    out = []
    for _ in range(seeds):
        own = []
        for shift in SHIFTS:
            logit = shift + 1.2 * hard + rng.normal(scale=0.5, size=hard.size)
            wrong = rng.random(hard.size) < 1 / (1 + np.exp(-logit))
            scored = {
                name: Scored(rng.normal(size=hard.size) - strength * logit, wrong)
                for name, strength in zip("ab", apart, strict=True)
            }
            own.append(ScoredRun(DATA, str(len(out)), scored, None, None, places, places, "name"))
        out.append(own)
    return out


def found_in(seeds, metric="augrc", resamples=0):
    return compare_study_average(
        seeds, METRICS[metric], plan_of(resamples), headline=True
    ).comparison


def truth(metric, apart=(1.0, 1.0)):
    large = drawn(np.random.default_rng(99), 200_000, apart=apart, seeds=1)
    compute = METRICS[metric].compute
    return [np.mean([compute(unit.scored[m]).value for unit in large[0]]) for m in "ab"]


def test_values_are_the_means_of_the_parts_and_then_of_the_seeds():
    seeds = drawn(np.random.default_rng(0), 60)
    part = found_in(seeds)
    each = {
        (str(r), m): np.mean([ab.augrc(u.scored[m].confidence, u.scored[m].loss) for u in own])
        for r, own in enumerate(seeds)
        for m in "ab"
    }
    for estimate in part.estimates:
        own = [
            v
            for (run, m), v in each.items()
            if m == estimate.method and estimate.run in {run, "mean"}
        ]
        assert estimate.value == pytest.approx(np.mean(own), abs=1e-12)
        assert estimate.n == 60 * TYPES * len(SHIFTS)
    assert part.sampled[0].values.shape == (2, 2)
    assert part.sampled[0].mean.tolist() == pytest.approx(
        [estimate.value for estimate in part.estimates if estimate.run == "mean"]
    )


def test_the_error_equals_that_of_leaving_pictures_out_one_by_one():
    """The jackknife over pictures, which knows nothing of influence functions."""
    n, seeds = 80, drawn(np.random.default_rng(1), 80)

    def mean_without(place):
        return np.mean(
            [
                ab.augrc(unit.scored["a"].confidence[kept], unit.scored["a"].loss[kept])
                for own in seeds
                for unit in own
                for kept in [unit.group != place]
            ]
        )

    left = np.array([mean_without(i) for i in range(n)])
    jackknife = np.sqrt((n - 1) / n * np.sum((left - left.mean()) ** 2))
    one = next(e for e in found_in(seeds).estimates if (e.run, e.method) == ("mean", "a"))
    assert one.standard_error == pytest.approx(jackknife, rel=0.03)
    # As if severities and seeds were of other pictures each, it would be far too small.
    apart = [
        ab.metrics.intervals.metric_interval(s.confidence, s.loss).standard_error
        for own in seeds
        for s in (unit.scored["a"] for unit in own)
    ]
    assert one.standard_error > 1.4 * np.sqrt(np.sum(np.square(apart))) / len(apart)


def test_a_resample_draws_the_same_pictures_for_all_parts():
    seeds = drawn(np.random.default_rng(2), 80)
    plain, part = found_in(seeds), found_in(seeds, resamples=600)
    whole, both = part.sampled[0], plain.sampled[0]
    assert whole.replicates.shape == (2, 2, 600)
    drawn_error = whole.replicates.mean(axis=0).std(axis=1)
    assert drawn_error == pytest.approx(np.sqrt(np.diag(both.covariance)), rel=0.12)
    tests = {pair.test for pair in part.pairs}
    assert {"influence function", "paired bootstrap"} <= tests
    assert all(s.rank_low <= s.rank <= s.rank_high for s in part.standings)


def test_other_pictures_in_a_part_are_counted_once_and_not_resampled():
    seeds = drawn(np.random.default_rng(3), 60)
    for own in seeds:
        unit = own[0]
        moved = np.where(unit.group < 10, unit.group + 1000, unit.group)
        codes = np.unique(moved, return_inverse=True)[1]
        own[0] = ScoredRun(DATA, unit.run, unit.scored, None, None, codes, moved, "name")
    part = found_in(seeds, resamples=50)
    assert part.resamples == 0
    assert part.sampled[0].shares.shape == (70, 2)


def test_failures_of_the_parts_add_up():
    seeds = drawn(np.random.default_rng(4), 60)
    one = next(e for e in found_in(seeds).estimates if (e.run, e.method) == ("0", "b"))
    assert one.failures == sum(unit.scored["b"].n_failures for unit in seeds[0])


def test_a_metric_without_influence_has_values_alone():
    part = found_in(drawn(np.random.default_rng(5), 60), "failure_ap_error")
    assert all(np.isfinite(estimate.value) for estimate in part.estimates)


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["augrc", "aurc", "failure_auroc"])
def test_intervals_cover_and_equal_methods_are_seldom_distinguished(metric):
    """Over new pictures; 400 draws leave 95 % uncertain by 1.1 points, so 3.5 errors are 4."""
    rng, expected, draws = np.random.default_rng(6), truth(metric), 400
    held = told = 0
    for _ in range(draws):
        part = found_in(drawn(rng, 150), metric)
        one = next(e for e in part.estimates if (e.run, e.method) == ("mean", "a"))
        held += one.low <= expected[0] <= one.high
        told += bool(part.pairs[0].better)
    assert 0.91 <= held / draws <= 0.985
    assert told / draws <= 0.09
