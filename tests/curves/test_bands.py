"""Bands of risk-coverage curves: their standard error, their coverage, and few failures."""

import numpy as np
import pytest

from abstain import simulate
from abstain._foundation.scored import Scored, validate_samples
from abstain.curves._working_points import working_points_on_grid
from abstain.curves.bands import as_generalized, risk_coverage_band
from abstain.curves.risk_coverage import generalized_risk_coverage_curve, risk_coverage_curve
from abstain.errors import DomainError, InputError, ShapeError

GRID = np.arange(1, 101) / 100


def population(risk=0.1, power=1, tied=0.0):
    """The confidence is uniform, the selective risk at coverage c is risk x c^power.

    The share `tied` of the highest confidences is one value.
    """
    base = simulate.rank_scores(lambda u: risk * (power + 1) * (1 - u) ** power)
    return simulate.saturate(base, tied) if tied else base


def small(seed=0, n=300, round_to=1):
    rng = np.random.default_rng(seed)
    confidence, loss = population(risk=0.3).sample(n, rng=rng)
    return np.round(confidence, round_to), loss, rng.random(n) + 0.1, rng.integers(0, 40, n)


def test_the_risk_equals_that_of_the_curve():
    confidence, loss, weight, _ = small(round_to=3)
    for w in (None, weight):
        for kind, make in (
            ("selective", risk_coverage_curve),
            ("generalized", generalized_risk_coverage_curve),
        ):
            curve = make(confidence, loss, weight=w)
            band = risk_coverage_band(confidence, loss, kind=kind, weight=w, grid=curve.coverage)
            np.testing.assert_allclose(band.risk, curve.risk, atol=1e-12)


def test_a_tie_group_is_accepted_in_part():
    band = risk_coverage_band(
        [0.9, 0.5, 0.5, 0.1], [0, 1, 0, 1], grid=[0.25, 0.5, 1], kind="generalized"
    )
    np.testing.assert_allclose(band.risk, [0, 0.125, 0.5])


def influences(confidence, loss, at, weight):
    """The influence of every sample at every coverage, sample by sample."""
    total = weight.sum()
    out = np.empty((loss.size, at.coverage.size))
    for j, c in enumerate(at.coverage):
        for i in range(loss.size):
            above = weight[confidence > confidence[i]].sum()
            own = weight[confidence == confidence[i]].sum()
            a = np.clip((c * total - above) / own, 0, 1)
            center = at.generalized_risk[j] - at.threshold_loss[j] * c
            out[i, j] = a * (loss[i] - at.threshold_loss[j]) - center
    return out


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("graded", [False, True])
@pytest.mark.parametrize("round_to", [1, 6])
def test_the_covariance_equals_that_of_the_influences(weighted, graded, round_to):
    confidence, loss, weight, _ = small(n=60, round_to=round_to)
    loss = loss * np.random.default_rng(1).random(60) if graded else loss.astype(float)
    weight = weight if weighted else None
    s = validate_samples(confidence, loss, weight)
    at = working_points_on_grid(s, np.array([0.05, 0.31, 0.32, 0.6, 1.0]), None)
    w = np.ones(60) if weight is None else weight
    table = influences(confidence, loss, at, w) * w[:, None] / w.sum()
    assert np.abs(table.sum(axis=0)).max() < 1e-12
    np.testing.assert_allclose(at.covariance, table.T @ table * 60 / 59, atol=1e-14)
    # Each sample is its own cluster.
    alone = working_points_on_grid(s, at.coverage, np.arange(60))
    np.testing.assert_allclose(alone.covariance, at.covariance, atol=1e-14)
    np.testing.assert_allclose(alone.effective_size, at.effective_size, rtol=1e-12)


def test_the_covariance_of_clusters_sums_within_them(monkeypatch):
    confidence, loss, weight, cluster = small(n=80)
    weight[:5] = 0.0
    s = Scored(confidence, loss, weight)
    grid = np.array([0.1, 0.5, 1.0])
    at = working_points_on_grid(s, grid, cluster)
    w = weight[5:]
    table = influences(confidence[5:], loss[5:], at, w) * w[:, None] / w.sum()
    names = np.unique(cluster[5:])
    sums = np.array([table[cluster[5:] == name].sum(axis=0) for name in names])
    expected = sums.T @ sums * names.size / (names.size - 1)
    np.testing.assert_allclose(at.covariance, expected, atol=1e-14)
    monkeypatch.setattr(
        "abstain.curves._working_points._MAX_TABLE_SIZE", 30
    )  # some clusters at a time
    np.testing.assert_allclose(
        working_points_on_grid(s, grid, cluster).covariance, expected, atol=1e-14
    )


def test_the_standard_error_at_full_coverage_equals_that_of_a_mean():
    confidence, loss, _, _ = small()
    band = risk_coverage_band(confidence, loss, grid=[1.0])
    assert band.standard_error[0] == pytest.approx(loss.std(ddof=1) / np.sqrt(loss.size))


def test_generalized_is_coverage_times_selective():
    confidence, loss, _, _ = small()
    selective = risk_coverage_band(confidence, loss)
    direct = risk_coverage_band(confidence, loss, kind="generalized")
    for name in ("risk", "standard_error", "low", "high", "low_all", "high_all"):
        expected = getattr(selective, name) * selective.coverage
        np.testing.assert_array_equal(getattr(direct, name), expected)
        np.testing.assert_array_equal(getattr(as_generalized(selective), name), expected)
    assert as_generalized(direct) is direct


@pytest.mark.parametrize("case", ["plain", "weights", "clusters", "graded", "large", "few"])
def test_the_bands_are_in_order(case):
    confidence, loss, weight, cluster = small(n=8 if case == "few" else 300)
    options = {"weights": {"weight": weight}, "clusters": {"group": cluster}}.get(case, {})
    if case in {"graded", "large"}:
        loss = loss * np.random.default_rng(0).random(300) * (30 if case == "large" else 1)
    band = risk_coverage_band(confidence, loss, **options)
    for low, high in ((band.low, band.high), (band.low_all, band.high_all)):
        assert np.all((low >= 0) & (low <= band.risk + 1e-12) & (band.risk <= high + 1e-12))
        assert np.all(low < high)
    assert np.all((band.low_all <= band.low) & (band.high <= band.high_all))


def test_no_failures_is_no_certainty():
    n = 1000
    band = risk_coverage_band(np.arange(n), np.zeros(n), grid=[0.01, 0.1, 1.0])
    assert band.risk.tolist() == band.low.tolist() == band.low_all.tolist() == [0, 0, 0]
    # Rule of three: about 3.7 to 3.8 over the number accepted.
    np.testing.assert_allclose(band.high * [10 + 3.84, 100 + 3.84, 1000 + 3.84], 3.84, rtol=0.05)
    assert np.all(band.high_all > band.high)
    failed = risk_coverage_band(np.arange(n), np.ones(n), grid=[0.01, 1.0])
    assert failed.high.tolist() == [1, 1]
    assert np.all(failed.low < 1)


def test_a_cluster_without_failures_counts_once():
    cluster = np.repeat(np.arange(20), 50)
    band = risk_coverage_band(np.arange(1000), np.zeros(1000), group=cluster, grid=[1.0])
    assert band.high[0] == pytest.approx(3.84 / (20 + 3.84), rel=0.01)


def test_one_sample_has_no_band():
    band = risk_coverage_band([0.5], [1])
    assert np.isnan(band.low_all).all()
    assert "one independent sample" in band.note
    assert np.isnan(risk_coverage_band([0.5, 0.6], [1, 0], group=["a", "a"]).high).all()


def test_rows_of_no_weight_are_no_rows():
    confidence, loss, weight, cluster = small()
    weight[::3] = 0
    mask = weight > 0
    for group in (None, cluster):
        sub = None if group is None else group[mask]
        a = risk_coverage_band(confidence, loss, weight=weight, group=group)
        b = risk_coverage_band(confidence[mask], loss[mask], weight=weight[mask], group=sub)
        np.testing.assert_allclose(a.high_all, b.high_all, rtol=1e-9)
        np.testing.assert_allclose(a.low, b.low, rtol=1e-9)


def test_the_scale_of_the_weights_and_the_order_of_the_rows_do_not_matter():
    confidence, loss, weight, cluster = small()
    first = risk_coverage_band(confidence, loss, weight=weight, group=cluster)
    mix = np.random.default_rng(3).permutation(loss.size)
    again = risk_coverage_band(
        confidence[mix], loss[mix], weight=7 * weight[mix], group=cluster[mix]
    )
    np.testing.assert_allclose(first.high_all, again.high_all, rtol=1e-9)
    np.testing.assert_allclose(first.low_all, again.low_all, rtol=1e-9, atol=1e-12)


def test_seeds_and_frame():
    confidence, loss, _, _ = small()
    first, same, other = (risk_coverage_band(confidence, loss, rng=r, draws=200) for r in (1, 1, 2))
    np.testing.assert_array_equal(first.high_all, same.high_all)
    assert (first.high_all != other.high_all).any()
    np.testing.assert_array_equal(first.high, other.high)
    assert first.frame().columns[:3] == ["coverage", "risk", "standard_error"]
    assert first.simultaneous_from == 0.05
    assert risk_coverage_band(confidence[:40], loss[:40]).simultaneous_from == 0.25


def coverage(n, repetitions, **options):
    """Return how often each band holds the truth: at each coverage, and everywhere."""
    inside, everywhere = [], []
    law = population(**options)
    true = law.selective_risk(GRID)
    for seed in range(repetitions):
        rng = np.random.default_rng([n, seed])
        band = risk_coverage_band(*law.sample(n, rng=rng), grid=GRID, draws=500, rng=seed)
        inside.append((band.low <= true) & (true <= band.high))
        all_ = (band.low_all <= true) & (true <= band.high_all)
        everywhere.append(all_[band.simultaneous_from <= GRID].all())
    return np.mean(inside, axis=0), np.mean(everywhere)


@pytest.mark.slow
@pytest.mark.parametrize("n", [300, 1000, 3000])
@pytest.mark.parametrize(
    "options",
    [{}, {"risk": 0.05, "power": 2}, {"risk": 0.3}, {"tied": 0.45}, {"power": 0}],
    ids=str,
)
def test_the_bands_cover(n, options):
    pointwise, everywhere = coverage(n, 400, **options)
    # Monte-Carlo error of one share: 1.1 points. With few failures the counts are coarse: more
    # than 95 % at one coverage and less at the next, but not on average.
    assert pointwise.mean() > 0.93
    assert pointwise[-50:].min() > 0.90
    assert everywhere > 0.92


def test_the_bands_cover_in_one_case():
    pointwise, everywhere = coverage(1000, 100)
    assert pointwise.mean() > 0.91
    assert everywhere > 0.88


def test_ignoring_clusters_covers_too_rarely():
    hits, naive = [], []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        cluster = np.repeat(np.arange(50), 20)
        chance = rng.beta(0.5, 4.5, size=50)[cluster]  # mean 0.1
        loss, confidence = rng.random(1000) < chance, rng.random(1000)
        for found, group in ((hits, cluster), (naive, None)):
            band = risk_coverage_band(confidence, loss, group=group, grid=[0.5, 1], draws=10)
            found.append((band.low <= 0.1) & (band.high >= 0.1))
    assert np.mean(hits) > 0.9
    assert np.mean(naive) < 0.75


def test_refusals():
    with pytest.raises(DomainError, match=r"`grid` must lie in \(0, 1\]; got 0.0 at index 0"):
        risk_coverage_band([0.1, 0.2], [0, 1], grid=[0, 0.5])
    with pytest.raises(ShapeError, match="`group` must have one entry for each of the 2"):
        risk_coverage_band([0.1, 0.2], [0, 1], group=[1])
    with pytest.raises(DomainError, match="NaN"):
        risk_coverage_band([0.1, 0.2], [0, 1], group=[1, np.nan])
    with pytest.raises(InputError, match="`kind`"):
        risk_coverage_band([0.1, 0.2], [0, 1], kind="general")
    with pytest.raises(DomainError, match="`level`"):
        risk_coverage_band([0.1, 0.2], [0, 1], level=1)
    with pytest.raises(InputError, match="`draws`"):
        risk_coverage_band([0.1, 0.2], [0, 1], draws=0)
