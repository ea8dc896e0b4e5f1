"""Linear image filters, such as convolutions, blurs and interpolation.

Lengths are relative to 1/32 of the shorter side of the image, which is one pixel for 32 x 32
pixels. Images are extended beyond their borders by reflection.
"""

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from abstain.typing import Array

#: Array of float32, usually of shape (n, channels, height, width).
Pictures: TypeAlias = NDArray[np.float32]


def unit(pictures: Pictures) -> float:
    """Return the length of 1/32 of the shorter side in pixels."""
    return float(min(pictures.shape[-2:])) / 32


def spread(rows: Array, columns: Array) -> Pictures:
    """Return kernels of shape (n, k, k), each of which averages the pixels at several offsets.

    Each offset is interpolated linearly between the neighboring pixels, so the kernels are
    continuous functions of the offsets.
    """
    reach = math.ceil(max(np.abs(rows).max(), np.abs(columns).max()))
    grid = np.arange(-reach, reach + 1)[:, None]
    down = _tent(rows[:, None, :] - grid)
    across = _tent(columns[:, None, :] - grid)
    kernels: Pictures = (down @ across.swapaxes(1, 2) / rows.shape[1]).astype(np.float32)
    return kernels


def _tent(distance: Array) -> Array:
    weight: Array = np.maximum(0, 1 - np.abs(distance))
    return weight


def disk(radius: float) -> Pictures:
    """Return a disk-shaped kernel of shape (1, k, k)."""
    # The disk consists of eight rings of equal area. Each ring has 32 evenly spaced points.
    ring = radius * np.sqrt((np.arange(8) + 0.5) / 8)[:, None]
    angle = 2 * np.pi * (np.arange(32) + 0.5) / 32
    rows = ring * np.sin(angle)
    columns = ring * np.cos(angle)
    return spread(rows.reshape(1, -1), columns.reshape(1, -1))


def line(length: float, angle: Array) -> Pictures:
    """Return line-shaped kernels of shape (n, k, k).

    The angles have shape (n,) and are measured in radians from the horizontal axis.
    """
    along = length * (np.linspace(0, 1, 4 * math.ceil(length) + 1) - 0.5)
    return spread(np.sin(angle)[:, None] * along, np.cos(angle)[:, None] * along)


def convolved(pictures: Pictures, kernels: Pictures) -> Pictures:
    """Convolve each image with its own kernel of shape (k, k), or all images with one kernel."""
    _, _, height, width = pictures.shape
    padding = (kernels.shape[-1] // 2,) * 2
    padded = np.pad(pictures, ((0, 0), (0, 0), padding, padding), mode="symmetric")
    out = np.zeros_like(pictures)
    for index, kernel in enumerate(kernels):
        rows = slice(None) if len(kernels) == 1 else slice(index, index + 1)
        for i, j in np.argwhere(kernel):
            out[rows] += kernel[i, j] * padded[rows, :, i : i + height, j : j + width]
    return out


def separable(pictures: Pictures, down: Array, across: Array) -> Pictures:
    """Multiply the columns of each image by the matrix `down` and the rows by `across`."""
    out: Pictures = np.matmul(
        np.matmul(down.astype(np.float32), pictures), across.T.astype(np.float32)
    )
    return out


def blurred(pictures: Pictures, deviation: float) -> Pictures:
    """Blur images with a Gaussian kernel whose standard deviation is in pixels."""
    return separable(pictures, *(_normal(side, deviation) for side in pictures.shape[-2:]))


def _normal(size: int, deviation: float) -> Array:
    """Return the matrix of shape (size, size) that applies a Gaussian blur along one axis."""
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


def interpolation(positions: Array, size: int) -> Array:
    """Return the matrix that linearly interpolates one axis at the given positions in pixels."""
    clipped = np.clip(positions, 0, size - 1)
    return _tent(clipped[:, None] - np.arange(size))


def stretched(pictures: Pictures, shape: tuple[int, ...]) -> Pictures:
    """Resize images to the given height and width with linear interpolation."""
    matrices = [
        interpolation((np.arange(new) + 0.5) * old / new - 0.5, old)
        for old, new in zip(pictures.shape[-2:], shape, strict=True)
    ]
    return separable(pictures, *matrices)


def blocks(size: int, count: int) -> Array:
    """Return the matrix that replaces each pixel along one axis by the mean of its block.

    The axis has `size` pixels, which are divided into `count` blocks of equal length.
    """
    edges = np.linspace(0, size, count + 1)
    pixel = np.arange(size)
    overlap = np.minimum(edges[1:, None], pixel + 1) - np.maximum(edges[:-1, None], pixel)
    block_means = np.maximum(overlap, 0) / (size / count)
    block = ((pixel + 0.5) * count / size).astype(np.int64)
    matrix: Array = block_means[block]
    return matrix


def moved(pictures: Pictures, down: Array, across: Array) -> Pictures:
    """Replace each pixel by the interpolated value at the position moved by its offset.

    The vertical offsets `down` and the horizontal offsets `across` are in pixels and have shape (n,
    height, width). Positions outside the image are moved to the nearest position inside the image.
    """
    _, _, height, width = pictures.shape
    rows = np.clip(np.arange(height, dtype=np.float32)[:, None] + down, 0, height - 1)
    columns = np.clip(np.arange(width, dtype=np.float32) + across, 0, width - 1)
    top = np.minimum(rows.astype(np.int64), height - 2)
    left = np.minimum(columns.astype(np.int64), width - 2)
    low = (rows - top).astype(np.float32)[:, None]
    right = (columns - left).astype(np.float32)[:, None]
    flat = pictures.reshape(*pictures.shape[:2], -1)
    corner = (top * width + left).reshape(len(pictures), 1, -1)

    def at(offset: int) -> Pictures:
        """Return the pixel values at the given corners, each moved by a flat offset."""
        corner_values: Pictures = np.take_along_axis(flat, corner + offset, axis=2)
        return corner_values.reshape(pictures.shape)

    upper = at(0) * (1 - right) + at(1) * right
    lower = at(width) * (1 - right) + at(width + 1) * right
    out: Pictures = upper * (1 - low) + lower * low
    return out
