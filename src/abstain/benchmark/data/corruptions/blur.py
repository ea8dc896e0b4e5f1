"""Blur: what a lens, a pane or a movement takes away."""

import numpy as np

from abstain.benchmark.data.corruptions.entry import Corruption, Pictures
from abstain.benchmark.data.corruptions.filters import (
    blurred,
    convolved,
    disk,
    interpolation,
    line,
    moved,
    separable,
    unit,
)

#: Pictures of different sizes that zoom blur averages.
_ZOOMS = 9


def _defocus(pictures: Pictures, _rng: np.random.Generator, *, radius: float) -> Pictures:
    return convolved(pictures, disk(radius * unit(pictures)))


def _glass(
    pictures: Pictures, rng: np.random.Generator, *, distance: float, deviation: float
) -> Pictures:
    n, _, height, width = pictures.shape
    drawn = rng.random((n, 2, height, width), dtype=np.float32)
    away = (2 * drawn - 1) * np.float32(distance * unit(pictures))
    soft = deviation * unit(pictures)
    return blurred(moved(blurred(pictures, soft), away[:, 0], away[:, 1]), soft)


def _motion(pictures: Pictures, rng: np.random.Generator, *, length: float) -> Pictures:
    angle = np.pi * rng.random(len(pictures))
    return convolved(pictures, line(length * unit(pictures), angle))


def _zoom(pictures: Pictures, _rng: np.random.Generator, *, largest: float) -> Pictures:
    out = np.zeros_like(pictures)
    for factor in np.linspace(1, largest, _ZOOMS):
        larger = (_enlargement(side, factor) for side in pictures.shape[-2:])
        out += separable(pictures, *larger)
    return out / np.float32(_ZOOMS)


def _enlargement(size: int, factor: float) -> Pictures:
    """Return the matrix that enlarges a side about its middle."""
    middle = (size - 1) / 2
    places = middle + (np.arange(size) - middle) / factor
    return interpolation(places, size).astype(np.float32)


BLUR = (
    Corruption(
        "defocus-blur",
        "defocus blur",
        "blur",
        "Every point becomes a disk, as of a lens that is out of focus.",
        {"radius": (0.6, 1.1, 1.6, 2.1, 2.7)},
        _defocus,
    ),
    Corruption(
        "glass-blur",
        "glass blur",
        "blur",
        "Every pixel is taken from a random place near it, as behind frosted glass.",
        {"distance": (0.4, 0.7, 1.1, 1.6, 2.2), "deviation": (0.3, 0.4, 0.5, 0.6, 0.7)},
        _glass,
    ),
    Corruption(
        "motion-blur",
        "motion blur",
        "blur",
        "Every point becomes a line of one direction a picture, as of a camera that moves.",
        {"length": (1.5, 2.5, 4.0, 5.5, 8.0)},
        _motion,
    ),
    Corruption(
        "zoom-blur",
        "zoom blur",
        "blur",
        "The mean of the picture and enlargements of it, as of a camera that moves towards it.",
        {"largest": (1.12, 1.2, 1.3, 1.45, 1.65)},
        _zoom,
    ),
)
