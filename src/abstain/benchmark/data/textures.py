"""Textures: pictures of nothing, to see what a classifier does far from all it knows."""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from abstain._foundation import checks
from abstain._foundation.random import generator
from abstain.benchmark.data.images import Images
from abstain.typing import FloatArray, Rng

#: Coordinates of the pixels, and draws: to values of any range.
_Make = Callable[[FloatArray, FloatArray, np.random.Generator], FloatArray]


def _along(x: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return the distance along a random direction."""
    angle = rng.uniform(0, np.pi)
    out: FloatArray = np.cos(angle) * x + np.sin(angle) * y
    return out


def _stripes(x: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    return np.sin(2 * np.pi * (_along(x, y, rng) * rng.uniform(2, 9) + rng.random()))


def _checks(x: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    angle, step = rng.uniform(0, np.pi / 2), rng.uniform(2, 6)
    a = np.floor((np.cos(angle) * x + np.sin(angle) * y) * step + rng.random())
    b = np.floor((np.cos(angle) * y - np.sin(angle) * x) * step + rng.random())
    out: FloatArray = (a + b) % 2
    return out


def _rings(x: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    far = np.hypot(x - rng.uniform(-0.5, 0.5), y - rng.uniform(-0.5, 0.5))
    out: FloatArray = np.sin(2 * np.pi * far * rng.uniform(3, 8))
    return out


def _dots(x: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    middle = rng.uniform(-1, 1, size=(rng.integers(5, 30), 2, 1, 1))
    near = np.hypot(x - middle[:, 0], y - middle[:, 1]).min(axis=0)
    out: FloatArray = (near < rng.uniform(0.05, 0.15)).astype(np.float64)
    return out


def _cells(x: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    middle = rng.uniform(-1, 1, size=(rng.integers(4, 20), 2, 1, 1))
    near = np.hypot(x - middle[:, 0], y - middle[:, 1])
    out: FloatArray = rng.random(len(middle))[near.argmin(axis=0)]
    return out


def _clouds(x: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return noise whose power falls with the frequency, as in photographs."""
    side = len(x)
    frequency = np.hypot(np.fft.fftfreq(side)[:, None], np.fft.rfftfreq(side))
    frequency[0, 0] = np.inf
    shape = frequency.shape
    spectrum = rng.normal(size=shape) + 1j * rng.normal(size=shape)
    out: FloatArray = np.fft.irfft2(spectrum / frequency ** rng.uniform(0.8, 2), s=y.shape)
    return out


def _grain(x: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    del y
    return rng.normal(size=x.shape)


_MAKERS: Final[tuple[_Make, ...]] = (
    _stripes, _checks, _rings, _dots, _cells, _clouds, _grain,
)  # fmt: skip


def textures(
    n: int, *, side: int = 48, channels: int = 1, classes: Sequence[str] = ("none",), rng: Rng = 0
) -> Images:
    """Draw pictures of no class: stripes, checks, rings, dots, cells, clouds and grain.

    Parameters
    ----------
    n : int
        How many.
    side : int, default=48
        Height and width.
    channels : int, default=1
        1 for gray; with more the pictures are tinted.
    classes : sequence of str
        The classes that the pictures belong to none of.
    rng : int, numpy.random.Generator or None, default=0
        A seed, a generator, or None for fresh entropy.

    Returns
    -------
    Images
        All with the label -1; kinds take turns.

    Examples
    --------
    >>> from abstain.benchmark.data import textures
    >>> data = textures(10)
    >>> data.shape, set(data.labels.tolist())
    ((1, 48, 48), {-1})
    """
    count, width = checks.positive_int(n, "n"), checks.positive_int(side, "side")
    planes, draw = checks.positive_int(channels, "channels"), generator(rng)
    line = (np.arange(width) + 0.5) / width * 2 - 1
    y, x = np.meshgrid(line, line, indexing="ij")
    pixels = np.empty((count, planes, width, width), np.uint8)
    for i in range(count):
        gray = _spread(_MAKERS[i % len(_MAKERS)](x, y, draw))
        tint = draw.uniform(0.4, 1, size=(planes, 1, 1)) if planes > 1 else 1.0
        pixels[i] = np.round(255 * gray * tint)
    return Images(pixels, np.full(count, -1), tuple(classes))


def _spread(values: FloatArray) -> FloatArray:
    """Stretch values over [0, 1]."""
    low, high = float(values.min()), float(values.max())
    return (values - low) / (high - low) if high > low else np.full_like(values, 0.5)
