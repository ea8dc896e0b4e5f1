"""`compare` where each method leaves out its own samples: what is exact, what holds in studies."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

import abstain as ab
from abstain._foundation.scored import Scored
from abstain.curves.bands import risk_coverage_band
from abstain.errors import InputError
from abstain.evaluation.comparison import RowWeights, compute_values
from abstain.evaluation.comparison.pairs import differences_of
from abstain.evaluation.comparison.runs import score_runs
from abstain.inference.aggregates import pairwise_improvements, probability_of_improvement
from abstain.inference.draws import Draws
from abstain.metrics import metric_named
from abstain.metrics.calibration import ece_replicates
from abstain.metrics.resampling import replicates

METRICS = ("augrc", "aurc", "failure_auroc", "selective_risk@80cov")

SAME = ("value", "low", "high", "standard_error", "interval", "n", "failures", "note")


def study(rng, n: int = 400, methods=("a", "b"), noise=(1.0, 1.0), runs=("",)):
    """Inliers of which each classifier gets others wrong, and outliers: those wrong are taken out.

    What is hard is hard for all, so errors and confidences of two classifiers go together.
    """
    hard = rng.normal(size=n)
    outlier = rng.random(n) < 0.3
    place = rng.integers(60, size=n)
    names = np.array([f"sample-{i}" for i in range(n)])
    parts = {}
    for run in runs:
        for method, spread in zip(methods, noise, strict=True):
            felt = hard + rng.normal(size=n)
            wrong = (felt > 1.3) & ~outlier
            confidence = -felt - 1.5 * outlier + spread * rng.normal(size=n)
            split = (("method", method), *((("seed", run),) if run else ()))
            parts[split] = ab.Predictions(
                confidence={"c": confidence},
                loss=1.0 * (wrong | outlier),
                weight=1.0 - wrong,
                group=place,
                ids=names,
            )
    return parts


def kept_of(part: ab.Predictions) -> ab.Predictions:
    """The rows with weight, by themselves."""
    return replace(part.subset(np.flatnonzero(part.weight > 0)), weight=None)


def compare(parts, **options):
    options = {"metrics": METRICS, "methods": "method", "per_method_weights": True} | options
    return ab.compare(parts, **options)


def only(rows, **wanted):
    results = [r for r in rows if all(getattr(r, name) == value for name, value in wanted.items())]
    assert len(results) == 1
    return results[0]


def shares_by_hand(part: ab.Predictions, metric: str) -> np.ndarray:
    """w / sum(w) times the influence among the kept rows, which are computed by themselves."""
    s = score_runs({(("method", "a"),): kept_of(part), (("method", "b"),): kept_of(part)},
                 methods="method")[0].scored["a"]  # fmt: skip
    out = np.zeros(part.n)
    share = metric_named(metric).measurement.influence(s) / s.n_rows
    if metric == "failure_auroc":
        # DeLong divides by n - 1 of the failures and of the successes.
        for kind in (s.loss > 0, s.loss == 0):
            share[kind] *= np.sqrt(kind.sum() / (kind.sum() - 1) * (s.n_rows - 1) / s.n_rows)
    out[part.weight > 0] = share
    return out


# ------------------------------------------------------------------------------------ refused
def test_other_weights_raise_an_error_unless_they_are_requested():
    parts = study(np.random.default_rng(0))
    weights = [part.weight for part in parts.values()]
    row = int(np.argmax(weights[0] != weights[1]))
    with pytest.raises(InputError, match=rf"first in row {row}\..*per_method_weights=True"):
        ab.compare(parts, methods="method")
    with pytest.raises(InputError, match="no weights"):
        compare(parts, test="permutation", metrics=("augrc",))
    first, second = parts
    some = {first: replace(parts[first], weight=None), second: parts[second]}
    with pytest.raises(InputError, match="no weights"):
        compare(some, test="permutation", metrics=("augrc",))


@pytest.mark.parametrize("clustered", [False, True])
def test_the_same_weights_give_the_same_record(clustered):
    rng = np.random.default_rng(1)
    parts, weight = study(rng, n=120, runs=("0", "1")), rng.random(120) + 0.1
    for given in (None, weight):
        same = {split: replace(part, weight=given) for split, part in parts.items()}
        first, second = (
            compare(same, runs="seed", clustered=clustered, bootstrap=60, per_method_weights=own)
            for own in (False, True)
        )
        for table in ("estimates", "pairs", "standings", "agreements"):
            assert str(first.rows(table)) == str(second.rows(table))
        assert first.notes == second.notes


# ------------------------------------------------------------------------------------ estimates
@pytest.mark.parametrize("clustered", [False, True])
def test_estimates_equal_those_of_the_kept_rows_alone(clustered):
    parts = study(np.random.default_rng(2))
    comparison = compare(parts, clustered=clustered)
    for split, part in parts.items():
        alone = ab.evaluate(kept_of(part), metrics=METRICS, clustered=clustered)
        for result in alone.results:
            estimate = only(comparison.estimates, metric=result.metric.name, method=split[0][1])
            assert (estimate.n, estimate.failures) == (result.n, result.failures)
            for name in ("value", "low", "high", "standard_error"):
                expected = result.row()[name]
                assert getattr(estimate, name) == pytest.approx(expected, abs=1e-12)


def test_bands_equal_those_of_the_kept_rows_alone():
    parts = study(np.random.default_rng(3))
    for band in compare(parts).bands:
        own = kept_of(parts[(("method", band.method),)])
        alone = risk_coverage_band(own.confidence["c"], own.loss)
        for name in ("risk", "standard_error", "low", "high", "low_all", "high_all"):
            assert getattr(band.selective, name) == pytest.approx(getattr(alone, name), abs=1e-12)


@pytest.mark.parametrize("clustered", [False, True])
def test_the_mean_over_equal_runs_is_one_of_them(clustered):
    """Each row counts once, and no row that the method leaves out."""
    parts = study(np.random.default_rng(4))
    twice = {(*split, ("seed", run)): part for split, part in parts.items() for run in "01"}
    comparison = compare(twice, runs="seed", clustered=clustered)
    for metric in METRICS:
        for method in "ab":
            runs = [
                only(comparison.estimates, metric=metric, method=method, run=run)
                for run in ("0", "mean")
            ]
            for name in SAME[:4]:
                told, expected = (getattr(estimate, name) for estimate in runs[::-1])
                assert told == pytest.approx(expected, rel=1e-9)
            assert runs[0].n == runs[1].n


def test_a_few_failures_are_counted_among_the_own_samples():
    parts = study(np.random.default_rng(5))
    first = next(iter(parts))
    failed = np.flatnonzero((parts[first].loss > 0) & (parts[first].weight > 0))
    weight = parts[first].weight.copy()
    weight[failed[4:]] = 0.0
    comparison = compare(parts | {first: replace(parts[first], weight=weight)}, metrics=("augrc",))
    one, two = comparison.estimates
    assert (one.failures, two.failures > 10) == (4, True)
    assert "only 4 failures" in one.note
    assert "only 4 failures" in comparison.pairs[0].note
    assert not two.note
    assert any(f.kind == "few_failures" and "4 failures" in f.message for f in comparison.notes)


def test_few_clusters_are_counted_among_the_own_samples():
    rng = np.random.default_rng(6)
    parts = study(rng, methods="abc", noise=(1.0, 1.0, 1.0))
    first = next(iter(parts))
    weight = parts[first].weight * (parts[first].group < 7)
    comparison = compare(
        parts | {first: replace(parts[first], weight=weight)}, metrics=("augrc",), clustered=True
    )
    assert "only 7 clusters" in comparison.estimates[0].note
    assert [e.note for e in comparison.estimates[1:]] == ["", ""]
    assert only(comparison.notes, kind="clusters").level == "warning"
    # A pair of the others does not hear of it.
    assert not only(comparison.pairs, first="b", second="c").note


# ------------------------------------------------------------------------------------ pairs
@pytest.mark.parametrize("metric", METRICS)
def test_differences_equal_those_of_the_shares(metric):
    parts = study(np.random.default_rng(7), methods="abc", noise=(1.0, 2.0, 1.0))
    comparison = compare(parts, metrics=(metric,))
    own = {split[0][1]: shares_by_hand(part, metric) for split, part in parts.items()}
    weight = {split[0][1]: part.weight for split, part in parts.items()}
    for pair in comparison.pairs:
        apart = own[pair.first] - own[pair.second]
        rows = int(np.count_nonzero(weight[pair.first] + weight[pair.second]))
        assert rows < 400
        expected = np.sqrt(np.sum(apart**2) * rows / (rows - 1))
        assert pair.standard_error == pytest.approx(expected, rel=1e-10)


def test_methods_that_share_no_sample_are_independent():
    parts = study(np.random.default_rng(8))
    half = np.arange(400) < 150
    for (split, part), mine in zip(list(parts.items()), (half, ~half), strict=True):
        parts[split] = replace(part, weight=part.weight * mine)
    comparison = compare(parts, metrics=("augrc",))
    square = [e.standard_error**2 * (e.n - 1) / e.n for e in comparison.estimates]
    n = sum(e.n for e in comparison.estimates)
    expected = np.sqrt(sum(square) * n / (n - 1))
    assert comparison.pairs[0].standard_error == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("clustered", [False, True])
def test_rows_that_both_leave_out_are_no_samples_of_their_difference(clustered):
    """A third method keeps them; those two are compared as if they were not there."""
    rng = np.random.default_rng(9)
    parts = study(rng, methods="abc", noise=(1.0, 1.5, 1.0))
    left_out = (rng.random(400) < 0.2) | (parts[(("method", "a"),)].group < 8)
    keys = list(parts)
    for key in keys[:2]:
        parts[key] = replace(parts[key], weight=np.where(left_out, 0.0, 1.0))
    comparison = compare(parts, clustered=clustered)
    alone = compare({key: kept_of(parts[key]) for key in keys[:2]}, clustered=clustered)
    for expected in alone.pairs:
        told = only(comparison.pairs, metric=expected.metric, first="a", second="b")
        for name in ("difference", "low", "high", "standard_error", "p_value", "ratio_low"):
            assert getattr(told, name) == pytest.approx(getattr(expected, name), abs=1e-11)


def test_weights_follow_the_names_of_the_samples():
    parts = study(np.random.default_rng(10))
    second = list(parts)[1]
    order = np.random.default_rng(0).permutation(400)
    shuffled = compare(parts | {second: parts[second].subset(order)})
    for pair, two in zip(compare(parts).pairs, shuffled.pairs, strict=True):
        assert two.standard_error == pytest.approx(pair.standard_error, abs=1e-12)


@pytest.mark.parametrize("clustered", [False, True])
def test_the_bootstrap_and_the_influence_functions_agree(clustered):
    parts = study(np.random.default_rng(11), n=500, noise=(1.0, 1.8), runs=("0", "1"))
    comparison = compare(parts, runs="seed", clustered=clustered, bootstrap=1000)
    for metric in METRICS[:3]:
        first = only(comparison.pairs, metric=metric, test="influence function", data=())
        second = only(comparison.pairs, metric=metric, test="paired bootstrap", data=())
        assert second.standard_error == pytest.approx(first.standard_error, rel=0.1)
        assert second.low == pytest.approx(first.low, abs=0.25 * (first.high - first.low))
        ranks = [
            only(comparison.standings, metric=metric, method="a", source=source).mean_rank
            for source in ("influence functions", "bootstrap, rank then aggregate")
        ]
        assert ranks[0] == pytest.approx(ranks[1], abs=0.05)


def test_a_metric_without_influence_is_resampled_with_the_own_weights():
    parts = study(np.random.default_rng(12), n=150)
    comparison = compare(parts, metrics=("fpr_at_95tpr",), bootstrap=100)
    for split, part in parts.items():
        alone = ab.evaluate(kept_of(part), metrics=("fpr_at_95tpr",), interval="none").results[0]
        assert only(comparison.estimates, method=split[0][1]).value == alone.value


@pytest.mark.parametrize("cluster", [None, np.arange(300) % 23])
def test_the_ece_of_all_resamples_at_once_equals_that_of_each(cluster):
    rng = np.random.default_rng(17)
    sets = []
    for weight in (None, rng.integers(0, 2, 300) * 1.0, rng.random(300)):
        p = rng.random(300).round(2)
        loss = 1.0 * (rng.random(300) > p)
        sets.append(Scored(p, loss, weight, probability=p))
    draws = Draws(300, 70, rng=0, cluster=cluster)
    one_by_one = replicates(sets, [metric_named("ece")], draws)[0]
    assert ece_replicates(sets, draws) == pytest.approx(one_by_one, abs=1e-14)
    sets[0] = Scored(p, loss, np.r_[1.0, np.zeros(299)], probability=p)
    result = ece_replicates(sets[:1], draws)
    assert np.array_equal(
        np.isnan(result), np.isnan(replicates(sets[:1], [metric_named("ece")], draws)[0])
    )
    assert np.isnan(result).any()


def test_improvements_equal_those_of_each_pair():
    runs = np.random.default_rng(18).random((3, 2, 4))
    result = list(pairwise_improvements(runs, lower_is_better=True, level=0.9, rng=3))
    alone = [
        probability_of_improvement(first, second, lower_is_better=True, level=0.9, rng=3)
        for first, second in combinations(runs, 2)
    ]
    assert result == alone


def test_several_data_sets_of_which_one_is_weighted():
    rng = np.random.default_rng(13)
    parts = {(*s, ("data", "new")): p for s, p in study(rng).items()}
    parts |= {(*s, ("data", "iid")): replace(p, weight=None) for s, p in study(rng).items()}
    comparison = compare(parts, metrics=("augrc",))
    note = only(comparison.notes, kind="per_method_weights")
    n = [e.n for e in comparison.estimates if e.data == (("data", "new"),)]
    assert note.split == (("data", "new"),)
    # Samples that no method keeps are ignored.
    weights = [p.weight for split, p in parts.items() if ("data", "new") in split]
    n_kept = np.count_nonzero(np.max(weights, axis=0))
    assert f"{min(n)} to {max(n)} of {n_kept}" in note.message
    assert len([s for s in comparison.standings if s.data is None]) == 4


def test_methods_that_nothing_distinguishes_are_equal_whatever_they_leave_out():
    """No failures: the AUGRC is 0 for both, up to rounding."""
    parts = study(np.random.default_rng(14))
    right = {s: replace(p, loss=np.zeros(400)) for s, p in parts.items()}
    pair = compare(right, metrics=("augrc",)).pairs[0]
    assert (pair.difference, pair.better) == (0.0, "")


def test_the_interval_of_a_difference_uses_the_weights_of_its_two_methods():
    three = study(np.random.default_rng(17), methods=("a", "b", "c"), noise=(1.0, 1.2, 0.3))
    rows = compare(three, metrics=("augrc",), adjustment="none", reference="b").summary
    two = {split: part for split, part in three.items() if ("method", "a") not in split}
    [row] = [
        row
        for row in compare(two, metrics=("augrc",), adjustment="none", reference="b").summary
        if row.method == "c"
    ]
    same = only(rows, method="c")
    assert same.difference_low == pytest.approx(row.difference_low, rel=1e-12)
    assert same.difference_high == pytest.approx(row.difference_high, rel=1e-12)


# ------------------------------------------------------------------------------------ studies
def found_in_one_study(rng, noise, metric="augrc"):
    units = score_runs(study(rng, noise=noise), methods="method", per_method_weights=True)
    sampled = compute_values(metric_named(metric), units, RowWeights.from_runs(units))
    return differences_of(sampled, 0.95).record(0)


@pytest.mark.slow
@pytest.mark.parametrize("noise", [(1.0, 1.0), (0.6, 1.6)])
def test_intervals_cover_and_the_test_holds_its_size(noise):
    """Two classifiers whose errors differ; of equal ones the difference is 0."""
    large = study(np.random.default_rng(15), n=400_000, noise=noise)
    values = [ab.augrc(k.confidence["c"], k.loss) for k in map(kept_of, large.values())]
    truth = 0.0 if noise[0] == noise[1] else values[0] - values[1]
    results = [found_in_one_study(np.random.default_rng([16, i]), noise) for i in range(1000)]
    covered = np.mean([f.low <= truth <= f.high for f in results])
    assert 0.93 <= covered <= 0.97
    spread = np.std([f.value for f in results], ddof=1)
    assert np.mean([f.standard_error for f in results]) == pytest.approx(spread, rel=0.08)
    if truth == 0:
        assert 0.03 <= np.mean([f.p_value < 0.05 for f in results]) <= 0.07


def test_a_perfect_order_is_as_sure_as_the_samples_that_count():
    rng = np.random.default_rng(5)
    right = np.arange(400) % 8 != 0
    values = right + 0.1 * rng.random(400)
    mask = rng.random(400) < 0.2
    weighted = ab.Predictions(confidence={"own": values}, loss=~right, weight=mask.astype(float))
    alone = ab.Predictions(confidence={"own": values[mask]}, loss=~right[mask])
    first, second = (
        ab.evaluate(p, metrics=["failure_auroc"]).results[0] for p in (weighted, alone)
    )
    assert (first.interval.low, first.interval.high) == (second.interval.low, second.interval.high)
    assert first.interval.low < 1.0


def test_without_bands_nothing_else_changes():
    rng = np.random.default_rng(6)
    right = rng.random(300) < 0.8
    confidence = {"a": right + rng.normal(size=300), "b": right + 2 * rng.normal(size=300)}
    given = ab.Predictions(confidence=confidence, loss=~right)
    comparison, slim = (ab.compare(given, bands=bands) for bands in (True, False))
    assert len(comparison.bands) == 2
    assert slim.bands == ()
    assert replace(comparison, bands=()).rows("pairs") == slim.rows("pairs")
    assert comparison.rows("estimates") == slim.rows("estimates")
    assert comparison.notes == slim.notes
