"""Isotonic calibration against scikit-learn, and where scikit-learn's answer would not do."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from abstain.calibration import Isotonic, fit_isotonic
from abstain.errors import DomainError, InputError

FEW = settings(max_examples=30)


def draw(seed, n=60, decimals=1):
    rng = np.random.default_rng(seed)
    x = np.round(rng.normal(size=n), decimals)
    return x, (rng.random(n) > 1 / (1 + np.exp(-x))).astype(float), rng.integers(0, 4, n) + 0.5


@FEW
@given(st.integers(0, 10_000), st.integers(1, 80), st.booleans())
def test_equals_sklearn(seed, n, graded):
    x, loss, weight = draw(seed, n)
    if graded:
        loss = np.random.default_rng(seed).random(n)
    model = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
    model.fit(x, 1 - loss, sample_weight=weight)
    state = fit_isotonic(x, loss, weight=weight)
    new = np.concatenate([x, np.linspace(-4, 4, 101)])
    np.testing.assert_allclose(state.apply(new), model.predict(new), atol=1e-12)


@FEW
@given(st.integers(0, 10_000), st.data())
def test_weights_are_repetitions(seed, data):
    x, loss, _ = draw(seed, 15)
    times = np.array(data.draw(st.lists(st.integers(0, 3), min_size=15, max_size=15)))
    times[0] = max(times[0], 1)
    weighted = fit_isotonic(x, loss, weight=times)
    repeated = fit_isotonic(np.repeat(x, times), np.repeat(loss, times))
    np.testing.assert_allclose(weighted.apply(x), repeated.apply(x), atol=1e-14)
    assert weighted.n == np.count_nonzero(times)


def test_confidences_that_sklearn_would_merge_stay_apart():
    x = np.array([1e-20, 2e-20, 3e-20, 4e-20])
    np.testing.assert_array_equal(fit_isotonic(x, [1, 1, 0, 0]).apply(x), [0, 0, 1, 1])
    merged = IsotonicRegression(out_of_bounds="clip").fit(x, [0, 0, 1, 1]).predict(x)
    np.testing.assert_array_equal(merged, 0.5)


@FEW
@given(
    st.lists(st.floats(-1e308, 1e308), min_size=2, max_size=8, unique=True),
    st.integers(0, 10_000),
)
def test_the_curve_never_falls_whatever_the_rounding(points, seed):
    rng = np.random.default_rng(seed)
    thresholds = np.sort(points)
    values = np.sort(rng.random(thresholds.size))
    state = Isotonic(tuple(thresholds.tolist()), tuple(values.tolist()), n=9)
    near = np.concatenate(
        [thresholds, np.nextafter(thresholds, -np.inf), np.nextafter(thresholds, np.inf)]
    )
    between = thresholds[0] / 2 + thresholds[-1] / 2 + rng.normal(size=20) * np.ptp(thresholds / 4)
    x = np.sort(np.clip(np.concatenate([near, between]), -1.7e308, 1.7e308))
    y = state.apply(x)
    assert (np.diff(y) >= 0).all()
    assert y.min() >= values[0]
    assert y.max() <= values[-1]
    np.testing.assert_array_equal(state.apply(thresholds), values)


def test_only_the_bends_are_kept():
    x = np.arange(1000.0)
    state = fit_isotonic(x, x < 500)
    assert state.thresholds == (0.0, 499.0, 500.0, 999.0)
    assert state.values == (0.0, 0.0, 1.0, 1.0)


def test_a_score_that_ranks_the_wrong_way_is_flat_and_said():
    state = fit_isotonic([1.0, 2.0, 3.0, 4.0], [0, 0, 1, 1])
    assert set(state.values) == {0.5}
    assert "constant" in state.note


def test_beyond_the_data_it_is_constant():
    state = fit_isotonic([1.0, 2.0], [1, 0])
    assert state.apply([-9.0, 1.0, 1.5, 2.0, 9.0]).tolist() == [0, 0, 0.5, 1, 1]


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_narrow_floats_are_their_own_values(dtype):
    x, loss, _ = draw(3, 200, 3)
    narrow = x.astype(dtype)
    state = fit_isotonic(narrow, loss)
    assert state == fit_isotonic(narrow.astype(float), loss)
    np.testing.assert_array_equal(state.apply(narrow), state.apply(narrow.astype(float)))


def test_torch_in_torch_out():
    torch = pytest.importorskip("torch")
    x, loss, _ = draw(3)
    state = fit_isotonic(torch.tensor(x), torch.tensor(loss))
    p = state.apply(torch.tensor(x))
    assert isinstance(p, torch.Tensor)
    np.testing.assert_array_equal(p.numpy(), fit_isotonic(x, loss).apply(x))


@pytest.mark.parametrize(
    ("thresholds", "values", "n", "words"),
    [
        ((1.0, 1.0), (0.1, 0.2), 2, "`thresholds` must increase"),
        ((1.0, np.nan), (0.1, 0.2), 2, "`thresholds` must be finite"),
        ((), (), 2, "`thresholds` is empty"),
        ((1.0, 2.0), (0.3, 0.2), 2, "`values` must not decrease"),
        ((1.0, 2.0), (0.3, 1.2), 2, r"`values` must lie in \[0, 1\]"),
        ((1.0, 2.0), (0.3,), 2, "`values` must have one entry"),
        ((1.0,), (0.3,), 0, "`n`"),
    ],
)
def test_an_impossible_state_is_refused(thresholds, values, n, words):
    with pytest.raises(InputError, match=words):
        Isotonic(thresholds, values, n)


def test_losses_above_one_raise_an_error():
    with pytest.raises(DomainError, match=r"`loss` must lie in \[0, 1\]"):
        fit_isotonic([0.1, 0.2], [0, 3])
