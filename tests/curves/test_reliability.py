"""The reliability curve."""

import numpy as np
import pytest

from abstain.curves.reliability import reliability_curve
from abstain.errors import DomainError, InputError


def draw(seed, n=120):
    rng = np.random.default_rng(seed)
    c = np.round(rng.random(n), 1)
    return c, (rng.random(n) > c).astype(float), rng.integers(0, 4, n)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("bins", [1, 4, 10, 15])
@pytest.mark.parametrize("binning", ["equal_width", "equal_mass"])
def test_edges_say_who_is_in_each_bin(seed, bins, binning):
    c, loss, w = draw(seed)
    curve = reliability_curve(c, loss, bins=bins, binning=binning, weight=w)
    assert (curve.edges[0], curve.edges[-1], curve.edges.size) == (0.0, 1.0, len(curve) + 1)
    assert (curve.count.sum(), curve.weight.sum(), curve.total) == ((w > 0).sum(), w.sum(), w.sum())
    for j in range(len(curve)):
        inside = (c > curve.edges[j]) & (c <= curve.edges[j + 1]) | ((j == 0) & (c == 0))
        assert curve.count[j] == (inside & (w > 0)).sum()
        assert curve.weight[j] == w[inside].sum()
        if curve.weight[j]:
            assert curve.confidence[j] == pytest.approx(np.average(c[inside], weights=w[inside]))
            accuracy = 1 - np.average(loss[inside], weights=w[inside])
            assert curve.accuracy[j] == pytest.approx(accuracy, abs=1e-14)
        else:
            assert np.isnan(curve.confidence[j])
            assert np.isnan(curve.accuracy[j])


def test_the_ends_are_inside():
    curve = reliability_curve([0.0, 1.0], [1, 0], bins=15)
    assert (curve.count[0], curve.count[-1], len(curve)) == (1, 1, 15)
    assert (curve.accuracy[0], curve.accuracy[-1]) == (0.0, 1.0)


def test_float32_confidences_of_one_stay_in_the_last_bin():
    curve = reliability_curve(np.ones(3, dtype=np.float32), [0, 0, 1], bins=10)
    assert curve.count.tolist() == [0] * 9 + [3]


@pytest.mark.parametrize("bins", range(1, 40))
def test_every_edge_is_in_the_bin_below(bins):
    edges = np.array([k / bins for k in range(1, bins + 1)])
    curve = reliability_curve(edges, np.zeros(bins), bins=bins)
    assert curve.count.tolist() == [1] * bins


def test_equal_mass_without_ties():
    rng = np.random.default_rng(0)
    c = rng.random(100)
    curve = reliability_curve(c, np.zeros(100), bins=10, binning="equal_mass")
    assert curve.count.tolist() == [10] * 10
    np.testing.assert_array_equal(curve.edges[1:-1], np.sort(c)[9:-1:10])


def test_equal_mass_keeps_ties_together():
    c = np.array([0.1, 0.2, *[0.7] * 8])
    curve = reliability_curve(c, np.zeros(10), bins=5, binning="equal_mass")
    assert curve.count.tolist() == [2, 8]
    assert curve.edges.tolist() == [0.0, 0.2, 1.0]
    one = reliability_curve([0.3] * 5, np.zeros(5), bins=4, binning="equal_mass")
    assert (one.edges.tolist(), one.count.tolist()) == ([0.0, 1.0], [5])


@pytest.mark.parametrize("binning", ["equal_width", "equal_mass"])
def test_order_and_repetition_do_not_matter(binning):
    c, loss, w = draw(7)
    curve = reliability_curve(c, loss, binning=binning, weight=w)
    other = reliability_curve(np.repeat(c, w)[::-1], np.repeat(loss, w)[::-1], binning=binning)
    for name in ("edges", "weight", "confidence", "accuracy"):
        np.testing.assert_allclose(getattr(curve, name), getattr(other, name), atol=1e-14)


def test_frame():
    frame = reliability_curve([0.9, 0.95], [0, 1], bins=2).frame()
    assert frame.columns == ["low", "high", "count", "weight", "confidence", "accuracy"]
    assert frame.row(0) == (0.0, 0.5, 0, 0.0, None, None)
    assert frame.row(1) == (0.5, 1.0, 2, 2.0, pytest.approx(0.925), 0.5)


def test_tensors_in_tensors_out():
    torch = pytest.importorskip("torch")
    curve = reliability_curve(torch.tensor([0.5, 0.25]), torch.tensor([0, 1]))
    assert isinstance(curve.accuracy, torch.Tensor)
    assert curve.frame().height == 15


def test_messages():
    with pytest.raises(
        DomainError, match=r"`confidence` must lie in \[0, 1\]; got -0.1 at index 0"
    ):
        reliability_curve([-0.1], [0])
    with pytest.raises(DomainError, match=r"`loss` must lie in \[0, 1\]; got 1.5 at index 0"):
        reliability_curve([0.1], [1.5])
    with pytest.raises(InputError, match=r"`bins` must be an integer of at least 1; got 2.5"):
        reliability_curve([0.1], [0], bins=2.5)
    with pytest.raises(InputError, match=r"`binning` must be one of .* got 'quantile'"):
        reliability_curve([0.1], [0], binning="quantile")
