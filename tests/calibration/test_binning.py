"""Histogram calibration: the bins of the reliability curve, ties, empty bins, other scales."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abstain.calibration import Binning, fit_binning
from abstain.curves import reliability_curve
from abstain.errors import DomainError, InputError

FEW = settings(max_examples=30)


def draw(seed, n=100):
    rng = np.random.default_rng(seed)
    x = np.round(rng.random(n), 2)
    return x, rng.integers(0, 5, n) / 4, rng.integers(0, 4, n).astype(float)


@FEW
@given(
    st.integers(0, 10_000),
    st.integers(1, 30),
    st.sampled_from(["equal_width", "equal_mass"]),
    st.sampled_from([np.float32, np.float64]),
)
def test_the_bins_equal_those_of_the_reliability_curve(seed, bins, binning, dtype):
    x, loss, weight = draw(seed)
    x, weight = x.astype(dtype), weight + 1
    curve = reliability_curve(x, loss, bins=bins, binning=binning, weight=weight)
    state = fit_binning(x, loss, bins=bins, binning=binning, weight=weight)
    np.testing.assert_array_equal(state.edges, curve.edges[1:-1])
    np.testing.assert_allclose(state.weight, curve.weight)
    filled = curve.count > 0
    np.testing.assert_allclose(np.array(state.values)[filled], curve.accuracy[filled])


@pytest.mark.parametrize("binning", ["equal_width", "equal_mass"])
def test_every_sample_has_the_share_right_of_its_bin(binning):
    x, loss, weight = draw(1)
    state = fit_binning(x, loss, bins=7, binning=binning, weight=weight)
    inner = np.array([-np.inf, *state.edges, np.inf])
    p = state.apply(x)
    for low, high in pairwise(inner):
        inside = (x > low) & (x <= high) & (weight > 0)
        if inside.any():
            expected = 1 - np.average(loss[inside], weights=weight[inside])
            np.testing.assert_allclose(p[inside], expected, atol=1e-12)


def test_empty_bins_take_their_neighbors_pooled():
    # Bins of width 0.2: filled are the second (3 samples, 1 right) and the fourth (1, right).
    state = fit_binning([0.3, 0.35, 0.4, 0.7], [1, 0, 1, 0], bins=5)
    assert state.weight == (0, 3, 0, 1, 0)
    assert state.values == pytest.approx((1 / 3, 1 / 3, 2 / 4, 1, 1))
    assert state.note == "3 of 5 bins hold no sample; neighbors fill them"


def test_ties_are_never_split():
    x = np.repeat([0.2, 0.5, 0.9], [1, 98, 1])
    state = fit_binning(x, np.zeros(100), bins=10, binning="equal_mass")
    assert len(state.values) <= 3
    assert sum(state.weight) == 100
    assert 98 in state.weight or 99 in state.weight


def test_equal_mass_takes_any_scale_and_equal_width_its_limits():
    x, loss, _ = draw(2)
    far = 200 * x - 150
    mass = fit_binning(far, loss, bins=6, binning="equal_mass")
    np.testing.assert_array_equal(
        mass.apply(far), fit_binning(x, loss, bins=6, binning="equal_mass").apply(x)
    )
    with pytest.raises(DomainError, match=r"`confidence` must lie in \[0, 1\].*limits="):
        fit_binning(far, loss)
    width = fit_binning(far, loss, bins=4, limits=(-150, 50))
    assert width.edges == (-100.0, -50.0, 0.0)


def test_new_samples_beyond_the_limits_are_in_the_outer_bins():
    state = fit_binning([0.1, 0.9], [1, 0], bins=2)
    assert state.apply([-7.0, 0.5, 0.51, 7.0]).tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_an_edge_is_compared_in_the_precision_of_the_confidences(dtype):
    x = np.array([0.2, 0.4, 0.6, 0.8], dtype=dtype)
    state = fit_binning(x, [1, 0, 1, 0], bins=5)
    np.testing.assert_array_equal(state.apply(x), [0, 1, 0, 1])
    np.testing.assert_array_equal(state.apply(np.array([0.2, 0.4, 0.6, 0.8])), [0, 1, 0, 1])


@FEW
@given(st.integers(0, 10_000), st.data(), st.sampled_from(["equal_width", "equal_mass"]))
def test_weights_are_repetitions(seed, data, binning):
    x, loss, _ = draw(seed, 15)
    times = np.array(data.draw(st.lists(st.integers(0, 3), min_size=15, max_size=15)))
    times[0] = max(times[0], 1)
    weighted = fit_binning(x, loss, bins=4, binning=binning, weight=times)
    repeated = fit_binning(np.repeat(x, times), np.repeat(loss, times), bins=4, binning=binning)
    assert weighted.edges == repeated.edges
    assert weighted.weight == repeated.weight
    np.testing.assert_allclose(weighted.values, repeated.values, atol=1e-14)


def test_torch_in_torch_out():
    torch = pytest.importorskip("torch")
    x, loss, _ = draw(3)
    state = fit_binning(torch.tensor(x), torch.tensor(loss))
    p = state.apply(torch.tensor(x))
    assert isinstance(p, torch.Tensor)
    np.testing.assert_array_equal(p.numpy(), fit_binning(x, loss).apply(x))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"bins": 0}, "`bins`"),
        ({"bins": 2.5}, "`bins`"),
        ({"binning": "equal"}, "`binning` must be one of"),
        ({"limits": (1, 0)}, "`limits`"),
        ({"limits": 3}, "`limits`"),
        ({"limits": (0, np.inf)}, "`limits` must be finite"),
        ({"limits": (0, 5e-324), "bins": 9}, "`bins` is too many"),
    ],
)
def test_bad_options_are_named(options, words):
    with pytest.raises(InputError, match=words):
        fit_binning([0.0, 0.0], [0, 1], **options)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"binning": "other"}, "`binning`"),
        ({"edges": (0.5, 0.6)}, "`edges` must be 1 numbers between 2 bins; got 2"),
        ({"edges": (np.nan,)}, "`edges` must be finite"),
        ({"values": (0.5, 1.5)}, "`values`"),
        ({"values": ()}, "`values` is empty"),
        ({"weight": (1.0, -1.0)}, "`weight`"),
        ({"weight": (1.0,)}, "`weight` must have one entry"),
        ({"n": 0}, "`n`"),
    ],
)
def test_an_impossible_state_is_refused(change, words):
    good = {"binning": "equal_width", "edges": (0.5,), "values": (0.4, 0.8), "weight": (1.0, 2.0)}
    with pytest.raises(InputError, match=words):
        Binning(**{**good, "n": 3, **change})


def test_edges_must_increase():
    with pytest.raises(DomainError, match="`edges` must increase"):
        Binning("equal_width", (0.5, 0.5), (0.1, 0.2, 0.3), (1.0, 1.0, 1.0), 3)


def test_limits_further_apart_than_numbers_reach_raise_an_error():
    with pytest.raises(InputError, match="`limits` must have a finite difference"):
        fit_binning([0.0, 1.0], [0, 1], limits=(-1.7e308, 1.7e308))
