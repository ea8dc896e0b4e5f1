"""Property tests of calibration: what a map from confidence to probability cannot change.

The tests state the following for each kind of map:

- strictly rising (Platt with slope > 0, a temperature with two classes): every metric that only
  looks at ranks is the same;
- never falling (isotonic, bins that do not fall): only ties are made, so every ordered metric of
  the confidence lies within the tie bounds of the calibrated one;
- on the fitting data, isotonic gives the ranking of the convex hull: AUGRC is the area under the
  lower hull of the generalized risk-coverage curve, so never above that of the confidence; and
  isotonic and histogram have an ECE of 0.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.properties.cases import scored_cases
from tests.properties.test_catalogue import same

import abstain as ab
from abstain._foundation.scored import Scored
from abstain.calibration import Platt, fit_binning, fit_isotonic, fit_platt, fit_temperature
from abstain.confidence import score
from abstain.metrics import METRICS, Metric
from abstain.metrics.ties import BrokenTies, has_exact_tie_bounds

FEW = settings(max_examples=40)
RANKS = [m for m in METRICS.values() if m.measurement.rank_based]
BOUNDED = [m for m in METRICS.values() if has_exact_tie_bounds(m)]


def value(metric: Metric, s: Scored) -> float:
    return metric.compute(s).value


def rank_alike(one: Scored, other: Scored) -> None:
    for metric in RANKS:
        assert same(value(metric, one), value(metric, other)), metric.name


@st.composite
def cases(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Confidences with ties in [0, 1], losses in [0, 1] (0/1 or graded), weights."""
    n = draw(st.integers(2, 40))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    x = np.round(rng.random(n), draw(st.integers(1, 4)))
    loss = rng.random(n) if draw(st.booleans()) else (rng.random(n) > x).astype(float)
    weight = rng.integers(1, 4, n).astype(float) if draw(st.booleans()) else np.ones(n)
    return x, loss, weight


# ------------------------------------------------------------------------------ strictly rising


@given(s=scored_cases(), slope=st.floats(0.5, 20), intercept=st.floats(-5, 5))
@FEW
def test_platt_with_a_positive_slope_changes_no_ranking_metric(
    s: Scored, slope: float, intercept: float
) -> None:
    # On a grid, so that rounding to a probability makes no ties.
    s = replace(s, confidence=np.round(s.confidence * 1024) / 1024)
    p = Platt(slope, intercept, smooth=True, n=1).apply(s.confidence)
    rank_alike(s, replace(s, confidence=p))


@given(s=scored_cases(), T=st.sampled_from([0.3, 0.5, 2.0, 7.0]))
@FEW
def test_a_temperature_changes_no_ranking_metric_of_two_classes(s: Scored, T: float) -> None:
    view = s.class_view
    p = ab.Predictions(logits=np.round(8 * view.log_probabilities) / 8, labels=view.labels)
    before, after = (score("msr", p, temperature=t) for t in (1.0, T))
    rank_alike(replace(s, confidence=before.values), replace(s, confidence=after.values))


def test_with_three_classes_a_temperature_can_change_the_ranking() -> None:
    """The property above needs two classes: here the other classes are one strong or two weak ones."""
    p = ab.Predictions(logits=[[2.0, 1.0, -9.0], [2.0, 0.6, 0.6]], labels=[0, 1])
    cold, hot = (score("msr", p, temperature=t).values for t in (0.3, 3.0))
    assert (cold[0] < cold[1]) != (hot[0] < hot[1])


# -------------------------------------------------------------------------------- never falling


@pytest.mark.parametrize("how", ["isotonic", "histogram"])
@given(
    s=scored_cases(least=2, ties=False),
    points=st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=8),
)
@FEW
def test_a_map_that_never_falls_only_makes_ties(
    how: str, s: Scored, points: list[tuple[float, bool]]
) -> None:
    """Fitted on one sample, used on another: the old value lies within the new tie bounds."""
    x, loss = np.array([p for p, _ in points]), np.array([wrong for _, wrong in points])
    if how == "isotonic":
        p = fit_isotonic(x, loss).apply(s.confidence)
    else:
        state = fit_binning(x, loss, bins=3)
        assume((np.diff(state.values) >= 0).all())
        p = state.apply(s.confidence)
    order = np.argsort(s.confidence)
    assert (np.diff(p[order]) >= 0).all()
    tied = replace(s, confidence=p)
    for metric in BOUNDED:
        low, high = BrokenTies(tied).bounds(metric)
        v = value(metric, s)
        assert np.isnan(v) or low - 1e-12 <= v <= high + 1e-12, metric.name


# ------------------------------------------------------------------------- on the fitting data


def hull_area(x: np.ndarray, loss: np.ndarray, weight: np.ndarray) -> float:
    """Area under the lower convex hull of the generalized risk-coverage curve."""
    points = [(0.0, 0.0)]
    for threshold in np.unique(x)[::-1]:
        mask = x >= threshold
        points.append((weight[mask].sum(), (weight * loss)[mask].sum()))
    hull: list[tuple[float, float]] = []
    for c, r in points:
        while len(hull) > 1 and (hull[-1][1] - hull[-2][1]) * (c - hull[-2][0]) >= (
            r - hull[-2][1]
        ) * (hull[-1][0] - hull[-2][0]):
            hull.pop()
        hull.append((c, r))
    at, height = np.array(hull).T / weight.sum()
    return float(np.trapezoid(height, at))


@given(cases())
def test_isotonic_has_the_ranking_of_the_convex_hull(case: tuple[np.ndarray, ...]) -> None:
    x, loss, weight = case
    p = fit_isotonic(x, loss, weight=weight).apply(x)
    result = ab.augrc(p, loss, weight=weight)
    assert result == pytest.approx(hull_area(x, loss, weight), abs=1e-12)
    assert result <= ab.augrc(x, loss, weight=weight) + 1e-12


@given(cases())
def test_isotonic_never_lowers_the_failure_auroc(case: tuple[np.ndarray, ...]) -> None:
    x, loss, weight = case
    loss = (loss > 0.5).astype(float)
    assume(0 < loss.mean() < 1)
    p = fit_isotonic(x, loss, weight=weight).apply(x)
    auroc = METRICS["failure_auroc"]
    assert value(auroc, Scored(p, loss, weight)) >= value(auroc, Scored(x, loss, weight)) - 1e-12


@given(cases(), st.sampled_from(["equal_width", "equal_mass"]), st.integers(1, 20))
def test_isotonic_and_histogram_have_no_ece(
    case: tuple[np.ndarray, ...], binning: str, bins: int
) -> None:
    x, loss, weight = case
    states = (
        fit_isotonic(x, loss, weight=weight),
        fit_binning(x, loss, weight=weight, bins=bins, binning=binning),
    )
    for state in states:
        p = state.apply(x)
        for kind in ("equal_width", "equal_mass"):
            assert ab.ece(p, loss, weight=weight, binning=kind) == pytest.approx(0, abs=1e-12)


def nll_of(p: np.ndarray, loss: np.ndarray, weight: np.ndarray) -> float:
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(loss < 1, (1 - loss) * np.log(p), 0) + np.where(
            loss > 0, loss * np.log1p(-p), 0
        )
    return float(-np.average(terms, weights=weight))


def brier_of(p: np.ndarray, loss: np.ndarray, weight: np.ndarray) -> float:
    return float(np.average((p - 1 + loss) ** 2, weights=weight))


@given(cases())
def test_the_nll_never_rises(case: tuple[np.ndarray, ...]) -> None:
    """Isotonic is the best of all curves that never fall, a logistic one better than none."""
    x, loss, weight = case
    assume(0.02 < np.average(loss, weights=weight) < 0.98)
    base = np.full(x.size, 1 - np.average(loss, weights=weight))
    isotonic = fit_isotonic(x, loss, weight=weight).apply(x)
    try:
        platt = fit_platt(x, loss, smooth=False, weight=weight)
    except ab.errors.DomainError:
        assume(False)  # separable
    logistic = platt.apply(x)
    for loss_of in (nll_of, brier_of):
        assert loss_of(isotonic, loss, weight) <= loss_of(base, loss, weight) + 1e-12
        if platt.slope >= 0:
            assert loss_of(isotonic, loss, weight) <= loss_of(logistic, loss, weight) + 1e-12
    assert nll_of(logistic, loss, weight) <= nll_of(base, loss, weight) + 1e-12


@given(cases())
def test_smoothed_platt_has_the_best_slope_for_its_targets(case: tuple[np.ndarray, ...]) -> None:
    x, loss, weight = case
    right, wrong = weight @ (1 - loss), weight @ loss
    target = (1 - loss) * (right + 1) / (right + 2) + loss / (wrong + 2)
    state = fit_platt(x, loss, weight=weight)
    best = nll_of(state.apply(x), 1 - target, weight)
    for change in ((0.01, 0), (-0.01, 0), (0, 0.01), (0, -0.01)):
        near = Platt(state.slope + change[0], state.intercept + change[1], smooth=True, n=1)
        assert nll_of(near.apply(x), 1 - target, weight) >= best - 1e-14


@given(cases(), st.data())
def test_row_order_does_not_matter(case: tuple[np.ndarray, ...], data: st.DataObject) -> None:
    x, loss, weight = case
    order = np.array(data.draw(st.permutations(range(x.size))))
    z = np.column_stack([x, 1 - x])
    labels = (loss > 0.5).astype(int)
    fits = (
        lambda o: fit_platt(x[o], loss[o], weight=weight[o]).apply(x),
        lambda o: fit_isotonic(x[o], loss[o], weight=weight[o]).apply(x),
        lambda o: fit_binning(x[o], loss[o], weight=weight[o], bins=5).apply(x),
        lambda o: fit_temperature(z[o], labels[o], weight=weight[o]).apply(z),
    )
    for fit in fits:
        np.testing.assert_allclose(fit(order), fit(np.arange(x.size)), rtol=1e-7, atol=1e-9)


@given(cases())
def test_inputs_stay_untouched(case: tuple[np.ndarray, ...]) -> None:
    for array in case:
        array.setflags(write=False)
    x, loss, weight = case
    z, labels = np.column_stack([x, 1 - x]), (loss > 0.5).astype(int)
    z.setflags(write=False)
    for fit in (fit_platt, fit_isotonic, fit_binning):
        fit(x, loss, weight=weight).apply(x)
    fit_temperature(z, labels, weight=weight).apply(z)
