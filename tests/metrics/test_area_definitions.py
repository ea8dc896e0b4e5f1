"""The area metrics against their definitions, written as plain loops over thresholds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.properties.cases import scored_cases

import abstain as ab
from abstain._foundation.scored import Scored

LOSSES = st.floats(0, 3, allow_subnormal=False)


def vertices(c: np.ndarray, loss: np.ndarray) -> tuple[list[float], list[float]]:
    """Coverage and selective risk at every threshold, most confident first."""
    thresholds = sorted(set(c), reverse=True)
    return [np.mean(c >= t) for t in thresholds], [loss[c >= t].mean() for t in thresholds]


@given(s=scored_cases(most=30), data=st.data())
def test_trapezoid_aurc_and_augrc(s: Scored, data: st.DataObject) -> None:
    c = s.confidence
    loss = np.array(data.draw(st.lists(LOSSES, min_size=s.n_rows, max_size=s.n_rows)))
    coverage, risk = vertices(c, loss)
    flat = np.trapezoid([risk[0], *risk], [0.0, *coverage])
    assert ab.aurc(c, loss) == pytest.approx(flat, abs=1e-12)
    joint = [a * b for a, b in zip(coverage, risk, strict=True)]
    assert ab.augrc(c, loss) == pytest.approx(
        np.trapezoid([0.0, *joint], [0.0, *coverage]), abs=1e-12
    )


@given(s=scored_cases(most=30, ties=False), data=st.data())
def test_rank_reweighted_estimators(s: Scored, data: st.DataObject) -> None:
    c, n = s.confidence, s.n_rows
    loss = np.array(data.draw(st.lists(LOSSES, min_size=n, max_size=n)))
    rank = np.argsort(np.argsort(c)) + 1
    harmonic = np.concatenate(([0.0], np.cumsum(1 / np.arange(1, n + 1))))
    plugin = np.mean((harmonic[n] - harmonic[n - rank]) * loss)
    assert ab.aurc(c, loss, estimator="plugin") == pytest.approx(plugin, abs=1e-12)
    log = np.mean(-np.log(1 - rank / (n + 1)) * loss)
    assert ab.aurc(c, loss, estimator="log") == pytest.approx(log, abs=1e-12)
    _, risks = vertices(c, loss)
    assert plugin == pytest.approx(np.mean(risks), abs=1e-12), "the mean selective risk over k"


@given(s=scored_cases(most=25), data=st.data())
def test_balanced_areas(s: Scored, data: st.DataObject) -> None:
    c, loss = s.confidence, s.loss
    labels = np.array(
        data.draw(st.lists(st.sampled_from("abc"), min_size=s.n_rows, max_size=s.n_rows))
    )
    classes = sorted(set(labels))
    coverage, risk = [], []
    for t in sorted(set(c), reverse=True):
        kept = [(c >= t) & (labels == k) for k in classes]
        coverage.append(np.mean(c >= t))
        risk.append(np.mean([loss[k].mean() if k.any() else 0.0 for k in kept]))
    flat = np.trapezoid([risk[0], *risk], [0.0, *coverage])
    assert ab.balanced_aurc(c, loss, labels) == pytest.approx(flat, abs=1e-12)
    share = {k: s.n_rows / (len(classes) * np.sum(labels == k)) for k in classes}
    balanced = loss * np.array([share[k] for k in labels])
    assert ab.balanced_augrc(c, loss, labels) == pytest.approx(ab.augrc(c, balanced), abs=1e-12)


@pytest.mark.parametrize(
    ("low", "high", "interpolation"),
    [
        (0, 0.1, "linear"),
        (0.3, 0.4, "linear"),
        (0.55, 0.7, "hyperbolic"),
        (0.5, 0.505, "hyperbolic"),
    ],
)
def test_partial_area_of_a_constant_risk_is_that_risk(
    low: float, high: float, interpolation: str
) -> None:
    # FD-Shifts returns 0.05, 0.075 and 0.092 of 50 where the interval lies inside one segment.
    c, loss = np.repeat([3.0, 2.0, 1.0], 2), np.tile([0, 1], 3)
    got = ab.partial_aurc(c, loss, low=low, high=high, interpolation=interpolation, mean=True)
    assert got == pytest.approx(0.5, abs=1e-12)


@given(s=scored_cases(least=2, most=20), low=st.floats(0, 0.9), width=st.floats(0.02, 1))
def test_partial_areas_by_dense_quadrature(s: Scored, low: float, width: float) -> None:
    high = min(1.0, low + width)
    coverage, risk = vertices(s.confidence, s.loss)
    grid = np.linspace(low, high, 20_001)
    linear = np.interp(grid, coverage, risk)
    joint = np.interp(grid, [0, *coverage], [0, *np.multiply(coverage, risk)])
    hyperbola = np.where(grid > 0, joint / np.maximum(grid, 1e-300), risk[0])
    c, loss = s.confidence, s.loss
    span = {"low": low, "high": high}
    assert ab.partial_aurc(c, loss, **span) == pytest.approx(np.trapezoid(linear, grid), abs=1e-4)
    assert ab.partial_augrc(c, loss, **span) == pytest.approx(np.trapezoid(joint, grid), abs=1e-4)
    got = ab.partial_aurc(c, loss, **span, interpolation="hyperbolic")
    assert got == pytest.approx(np.trapezoid(hyperbola, grid), abs=1e-3)


@given(s=scored_cases(least=2, most=12), data=st.data())
def test_the_hull_is_below_every_vertex_and_made_of_vertices(
    s: Scored, data: st.DataObject
) -> None:
    loss = np.array(data.draw(st.lists(LOSSES, min_size=s.n_rows, max_size=s.n_rows)))
    whole = ab.generalized_risk_coverage_curve(s.confidence, loss)
    hull = ab.achievable_curve(s.confidence, loss, kind="generalized")
    below = np.interp(whole.coverage, [0, *hull.coverage], [0, *hull.risk])
    assert np.all(below <= whole.risk + 1e-12)
    assert set(hull.thresholds) <= set(whole.thresholds)
    slope = np.diff([0, *hull.risk]) / np.diff([0, *hull.coverage])
    assert np.all(np.diff(slope) > -1e-9), "convex"


def test_precision_at_a_million_samples() -> None:
    rng = np.random.default_rng(0)
    n = 1_000_000
    loss = rng.random(n) < 0.05
    tied = np.round(rng.random(n), 5)
    harmonic = np.concatenate(([0.0], np.cumsum(1 / np.arange(1, n + 1))))
    ranks = np.arange(1, n + 1)
    ends = np.cumsum(np.unique(tied, return_counts=True)[1])
    starts = np.concatenate(([0], ends[:-1]))
    place = np.unique(tied, return_inverse=True)[1]
    for estimator, phi in (
        ("plugin", harmonic[n] - harmonic[n - ranks]),
        ("log", -np.log1p(-ranks / (n + 1))),
        ("sele", ranks / n),
    ):
        averaged = (np.add.reduceat(phi, starts) / (ends - starts))[place]
        expected = np.mean(averaged * loss)
        assert ab.aurc(tied, loss, estimator=estimator) == pytest.approx(expected, abs=1e-13)


def test_the_epsilon_of_the_published_optimum_shows_when_hardly_any_is_right() -> None:
    # FD-Shifts subtracts R + (1 - R) ln(1 - R + eps); with one right of many the epsilon is the
    # difference that a table compared digit by digit would show.
    n = 1_000_000
    confidence = np.arange(n, 0, -1) / n
    wrong = np.arange(n) > 0
    right = 1 / n
    optimum = (1 - right) + right * np.log(right + np.finfo(float).eps)
    published = ab.published_aurc(confidence, wrong, convention="fd-shifts")
    result = ab.published_e_aurc(confidence, wrong)
    assert result == pytest.approx(published - 1000 * optimum, abs=1e-9)


@pytest.mark.parametrize("wrong", [0, 1])
def test_all_right_and_all_wrong(wrong: int) -> None:
    c, loss = np.array([0.9, 0.5, 0.5, 0.1]), np.full(4, wrong)
    assert ab.aurc(c, loss) == wrong
    assert ab.augrc(c, loss) == wrong / 2
    assert ab.e_aurc(c, loss) == 0
    assert ab.excess_augrc(c, loss) == 0
    assert ab.achievable_aurc(c, loss) == pytest.approx(wrong)
    with pytest.warns(ab.errors.UndefinedMetricWarning, match="all losses are equal"):
        assert np.isnan(ab.normalized_aurc(c, loss))


def test_normalized_aurc_of_the_smallest_losses_is_undefined() -> None:
    with pytest.warns(ab.errors.UndefinedMetricWarning, match="too small"):
        assert np.isnan(ab.normalized_aurc([0.0, 0.0], [0.0, 5e-324]))


def test_one_sample() -> None:
    assert ab.aurc([0.3], [1]) == 1
    assert ab.augrc([0.3], [1]) == 0.5
    assert ab.aurc([0.3], [1], estimator="plugin") == 1


@pytest.mark.parametrize("scale", [1e-8, 0.1, 0.37, 3.5, 1e6])
def test_areas_do_not_depend_on_the_scale_of_the_weights(scale: float) -> None:
    rng = np.random.default_rng(0)
    c, loss, weight = rng.random(60), rng.random(60) < 0.3, rng.random(60)
    for metric in (ab.augrc, ab.aurc, ab.excess_augrc, ab.e_aurc, ab.normalized_aurc):
        scaled = metric(c, loss, weight=scale * weight)
        assert scaled == pytest.approx(metric(c, loss, weight=weight), rel=1e-9)
    oracle = np.argsort(np.argsort(-loss.astype(float), kind="stable"))
    assert ab.e_aurc(oracle, loss, weight=np.full(60, scale)) == pytest.approx(0, abs=0.002)


def test_a_weight_too_light_to_count_breaks_nothing() -> None:
    c, loss, weight = [0.9, 0.8, 0.1], [0, 1, 1], [1, 1, 1e-17]
    assert ab.aurc(c, loss, weight=weight) == pytest.approx(ab.aurc(c[:2], loss[:2]))
    assert ab.e_aurc(c, [1, 0, 0], weight=weight) > 0.1
    assert np.isfinite(ab.achievable_aurc(c, loss, weight=weight))
    assert np.isfinite(ab.partial_aurc(c, loss, low=0.3, weight=weight, interpolation="hyperbolic"))


def test_sums_that_overflow_are_refused() -> None:
    with pytest.raises(ab.errors.DomainError, match="`loss` must have a finite sum"):
        ab.e_aurc([0.9, 0.8, 0.7], [1e308, 1e308, 0])
    with pytest.raises(ab.errors.DomainError, match="`weight` must have a finite sum"):
        ab.excess_augrc([0.9, 0.8], [1, 0], weight=[1e308] * 2)


def test_weights_are_rescaled_before_they_are_multiplied_by_losses() -> None:
    # The second sample has no weight beside the first, whose AUGRC alone is half its loss.
    assert ab.augrc([0.9, 0.8], [1e200, 0], weight=[1e200, 1]) == pytest.approx(5e199)


def test_extended_precision_is_narrowed() -> None:
    loss = np.array([0, 1, 0], dtype=np.longdouble)
    assert ab.balanced_augrc([0.9, 0.8, 0.7], loss, [0, 0, 1]) >= 0
    assert ab.ece([0.9, 0.8, 0.7], loss) >= 0


def test_tie_bounds_refuse_unequal_weights_where_they_would_be_no_bounds() -> None:
    data = ([0.9, 0.5, 0.5], [1, 0, 0])
    with pytest.raises(ab.errors.InputError, match="`weight` must be equal for all samples"):
        ab.tie_bounds(*data, metric="aurc", weight=[2, 3, 1])
    assert ab.tie_bounds(*data, metric="augrc", weight=[2, 3, 1]).low > 0
    assert ab.tie_bounds(*data, metric="aurc", weight=[2, 2, 2]).low > 0


def test_shares_of_groups_are_weighted() -> None:
    parts = ab.group_contributions([0.9, 0.9], [0.5, 0.5], ["a", "b"], weight=[9, 1])
    assert parts.share == pytest.approx(parts.sample_share)
