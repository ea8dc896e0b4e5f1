"""Layers that are torch's own in everything but time."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from abstain_bench.networks.backbone import Dropout, MaxPool2x2  # noqa: E402  after the skip

SHAPES = [(40, 16, 9, 7), (1001, 33), (5, 3), (200, 4, 6)]


def dropped(maps, rate=0.3, seed=0):
    layer = Dropout(rate)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return layer(maps)


@pytest.mark.parametrize("rate", [0.05, 0.3, 0.5, 0.9])
def test_units_are_kept_with_their_probability_and_the_mean_stays(rate):
    maps = torch.ones(300, 16, 8, 8).contiguous(memory_format=torch.channels_last)
    out = dropped(maps, rate)
    n, kept = out.numel(), float((out > 0).float().mean())
    assert abs(kept - (1 - rate)) < 4 * np.sqrt(rate * (1 - rate) / n) + 1 / 65536
    scale = out[out > 0].unique()
    assert len(scale) == 1
    assert float(scale) == pytest.approx(1 / (1 - rate), rel=1e-3)
    # Neighbors are drawn apart: on a lag of one to eight units there is no correlation.
    flat = (out.permute(0, 2, 3, 1).reshape(-1) > 0).numpy().astype(float)
    for lag in range(1, 9):
        pair = np.corrcoef(flat[:-lag], flat[lag:])[0, 1]
        assert abs(pair) < 4.5 / np.sqrt(n)


@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_kept_is_scaled_and_the_gradient_is_the_mask(shape):
    maps = torch.randn(shape, generator=torch.Generator().manual_seed(1)).requires_grad_()
    out = dropped(maps)
    out.sum().backward()
    np.testing.assert_allclose((maps * maps.grad).detach(), out.detach(), rtol=1e-6)
    assert set(np.unique((maps.grad > 0).numpy())) <= {False, True}
    assert torch.equal(dropped(maps.detach(), seed=2), dropped(maps.detach(), seed=2))
    if out.numel() > 100:
        assert not torch.equal(dropped(maps.detach(), seed=2), dropped(maps.detach(), seed=3))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("shape", SHAPES)
def test_units_are_omitted_whose_draw_is_too_high(shape, dtype):
    """Sixteen random bits each, in the order of memory; zeros have no sign."""
    maps = torch.randn(shape, generator=torch.Generator().manual_seed(1)).to(dtype)
    if maps.ndim == 4:
        maps = maps.contiguous(memory_format=torch.channels_last)
    maps.requires_grad_()
    out = dropped(maps, 0.3, seed=5)
    out.backward(maps.detach())
    kept, torch_bits = round(0.7 * 65536), torch.Generator().manual_seed(5)
    bits = torch.empty((maps.numel() + 3) // 4, dtype=torch.int64)
    draws = bits.random_(-(2**63), None, generator=torch_bits).view(torch.int16)[: maps.numel()]

    def flat(x):
        return x.permute(0, 2, 3, 1) if x.ndim == 4 else x

    scaled = flat(maps.detach() * (65536 / kept)).reshape(-1)
    expected = torch.where(draws < kept - 32768, scaled, 0)
    for found in (out, maps.grad):
        own = flat(found.detach()).reshape(-1)
        assert torch.equal(own, expected)
        assert torch.equal(torch.signbit(own), torch.signbit(expected))


def test_the_layout_of_maps_is_kept():
    maps = torch.randn(6, 4, 5, 5)
    last = maps.contiguous(memory_format=torch.channels_last)
    assert dropped(last).is_contiguous(memory_format=torch.channels_last)
    assert dropped(maps).is_contiguous()
    # Neither one nor the other: a part of larger maps.
    part = torch.randn(6, 8, 5, 5)[:, ::2]
    mask = dropped(part) != 0
    np.testing.assert_allclose(dropped(part)[mask], part[mask] / 0.7, rtol=1e-3)


def test_nothing_is_drawn_where_nothing_is_to_be_omitted():
    maps = torch.randn(50, 10)
    assert torch.equal(Dropout(0.3).eval()(maps), maps)
    before = torch.get_rng_state()
    Dropout(0.3).eval()(maps)
    assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(Dropout(0.0)(maps), maps)
    assert isinstance(Dropout(0.3), torch.nn.Dropout)


@pytest.mark.parametrize("shape", [(3, 4, 8, 8), (2, 3, 9, 7), (1, 2, 2, 3), (0, 4, 6, 6)])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_halving_is_the_maximum_of_two_by_two(shape, layout):
    maps = torch.randn(shape, generator=torch.Generator().manual_seed(2)).contiguous(
        memory_format=layout
    )
    if maps.numel() > 40:
        maps[0, 1, 1, 0] = torch.nan
    expected = torch.nn.functional.max_pool2d(maps, 2)
    torch.testing.assert_close(MaxPool2x2()(maps), expected, rtol=0, atol=0, equal_nan=True)


def test_halving_has_the_gradient_of_torch():
    maps = torch.randint(0, 3, (2, 3, 6, 6), generator=torch.Generator().manual_seed(3)).float()
    slopes = []
    for layer in (MaxPool2x2(), torch.nn.MaxPool2d(2)):
        leaf = maps.clone().requires_grad_()
        (layer(leaf) ** 2).sum().backward()
        slopes.append(leaf.grad)
    assert torch.equal(*slopes)
