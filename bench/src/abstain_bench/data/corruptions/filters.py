"""Linear filters of many images at once: kernels, blurs, and matrices on rows and columns.

Lengths of the corruptions are in units of 1/32 of a image's shorter side: pixels where that is
32. Beyond its border an image goes on as its mirror image.
"""

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from abstain.typing import Array

#: float32 of shape (n, channels, height, width), or a part of that.
Pictures: TypeAlias = NDArray[np.float32]


def unit(pictures: Pictures) -> float:
    """Return the pixels of a length of 1."""
    return float(min(pictures.shape[-2:])) / 32


def spread(rows: Array, columns: Array) -> Pictures:
    """Return kernels (n, k, k) that average the pixels at these offsets (n, points).

    An offset between pixels counts for its neighbors in proportion, so that kernels grow smoothly.
    """
    reach = math.ceil(max(np.abs(rows).max(), np.abs(columns).max()))
    grid = np.arange(-reach, reach + 1)[:, None]
    down, across = (_tent(x[:, None, :] - grid) for x in (rows, columns))
    kernels: Pictures = (down @ across.swapaxes(1, 2) / rows.shape[1]).astype(np.float32)
    return kernels


def _tent(distance: Array) -> Array:
    weight: Array = np.maximum(0, 1 - np.abs(distance))
    return weight


def disk(radius: float) -> Pictures:
    """Return the kernel (1, k, k) of a disk."""
    # Rings of equal area, each by points that lie in all quarters alike.
    ring = radius * np.sqrt((np.arange(8) + 0.5) / 8)[:, None]
    angle = 2 * np.pi * (np.arange(32) + 0.5) / 32
    return spread((ring * np.sin(angle)).reshape(1, -1), (ring * np.cos(angle)).reshape(1, -1))


def line(length: float, angle: Array) -> Pictures:
    """Return the kernels (n, k, k) of lines with these angles (n,), in radians from the columns."""
    along = length * (np.linspace(0, 1, 4 * math.ceil(length) + 1) - 0.5)
    return spread(np.sin(angle)[:, None] * along, np.cos(angle)[:, None] * along)


def convolved(pictures: Pictures, kernels: Pictures) -> Pictures:
    """Convolve images (n, c, h, w) with kernels (n, k, k), or all with one (1, k, k)."""
    _, _, height, width = pictures.shape
    around = (kernels.shape[-1] // 2,) * 2
    wide = np.pad(pictures, ((0, 0), (0, 0), around, around), mode="symmetric")
    out = np.zeros_like(pictures)
    for number, kernel in enumerate(kernels):
        part = slice(None) if len(kernels) == 1 else slice(number, number + 1)
        for i, j in np.argwhere(kernel):
            out[part] += kernel[i, j] * wide[part, :, i : i + height, j : j + width]
    return out


def separable(pictures: Pictures, down: Array, across: Array) -> Pictures:
    """Apply a matrix to the rows and one to the columns of each image."""
    out: Pictures = np.matmul(
        np.matmul(down.astype(np.float32), pictures), across.T.astype(np.float32)
    )
    return out


def blurred(pictures: Pictures, deviation: float) -> Pictures:
    """Blur with a normal kernel of this deviation in pixels."""
    return separable(pictures, *(_normal(side, deviation) for side in pictures.shape[-2:]))


def _normal(size: int, deviation: float) -> Array:
    """Return the matrix (size, size) of a normal blur of a side."""
    reach = math.ceil(4 * deviation)
    offset = np.arange(-reach, reach + 1)
    weight = np.exp(-0.5 * (offset / deviation) ** 2)
    matrix = np.zeros((size, size))
    row = np.repeat(np.arange(size), offset.size)
    # Beyond the border, an image continues as its mirror image.
    position = (row + np.tile(offset, size)) % (2 * size)
    column = np.minimum(position, 2 * size - 1 - position)
    np.add.at(matrix, (row, column), np.tile(weight / weight.sum(), size))
    return matrix


def interpolation(places: Array, size: int) -> Array:
    """Return the matrix that reads a side at these places (in pixels), linear between pixels."""
    within = np.clip(places, 0, size - 1)
    return _tent(within[:, None] - np.arange(size))


def stretched(pictures: Pictures, shape: tuple[int, ...]) -> Pictures:
    """Stretch or shrink images to a height and width, linear between pixels."""
    matrices = [
        interpolation((np.arange(new) + 0.5) * old / new - 0.5, old)
        for old, new in zip(pictures.shape[-2:], shape, strict=True)
    ]
    return separable(pictures, *matrices)


def blocks(size: int, count: int) -> Array:
    """Return the matrix that gives each pixel of a side the mean of its block, of `count`."""
    ends = np.linspace(0, size, count + 1)
    pixel = np.arange(size)
    overlap = np.minimum(ends[1:, None], pixel + 1) - np.maximum(ends[:-1, None], pixel)
    mean = np.maximum(overlap, 0) / (size / count)
    block = ((pixel + 0.5) * count / size).astype(np.int64)
    means: Array = mean[block]
    return means


def moved(pictures: Pictures, down: Array, across: Array) -> Pictures:
    """Read each pixel `down` and `across` (n, h, w) pixels away, at the border where that ends."""
    _, _, height, width = pictures.shape
    rows = np.clip(np.arange(height, dtype=np.float32)[:, None] + down, 0, height - 1)
    columns = np.clip(np.arange(width, dtype=np.float32) + across, 0, width - 1)
    top = np.minimum(rows.astype(np.int64), height - 2)
    left = np.minimum(columns.astype(np.int64), width - 2)
    low, right = ((x - y).astype(np.float32)[:, None] for x, y in ((rows, top), (columns, left)))
    flat = pictures.reshape(*pictures.shape[:2], -1)
    corner = (top * width + left).reshape(len(pictures), 1, -1)

    def at(offset: int) -> Pictures:
        values: Pictures = np.take_along_axis(flat, corner + offset, axis=2)
        return values.reshape(pictures.shape)

    upper = at(0) * (1 - right) + at(1) * right
    lower = at(width) * (1 - right) + at(width + 1) * right
    out: Pictures = upper * (1 - low) + lower * low
    return out
