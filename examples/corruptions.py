"""Corruptions of gray images: what a camera, a scanner or a shaky hand does to a digit."""

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

Images = NDArray[np.float64]  # shape (n, side, side), values in [0, 1]

#: Every corruption has these severities.
LEVELS = (1, 2, 3)


def noise(image: Images, level: int, rng: np.random.Generator) -> Images:
    """Add Gaussian noise."""
    return image + rng.normal(scale=0.15 * level, size=image.shape)


def blur(image: Images, level: int, rng: np.random.Generator) -> Images:
    """Blur with a Gaussian whose width grows with the image."""
    del rng
    return ndimage.gaussian_filter(image, sigma=0.025 * level * image.shape[0])


def rotation(image: Images, level: int, rng: np.random.Generator) -> Images:
    """Rotate by 10 degrees a level, to the left or to the right."""
    angle = 10.0 * level * rng.choice([-1, 1])
    return ndimage.rotate(image, angle, reshape=False, order=1)


def contrast(image: Images, level: int, rng: np.random.Generator) -> Images:
    """Pull the gray values towards the middle."""
    del rng
    return 0.5 + (image - 0.5) * (1.0 - 0.25 * level)


CORRUPTIONS = {f.__name__: f for f in (noise, blur, rotation, contrast)}


def corrupt(
    images: Images, rng: np.random.Generator
) -> tuple[Images, NDArray[np.str_], NDArray[np.int64]]:
    """Give every image one corruption of one severity, both drawn at random.

    Parameters
    ----------
    images : array of shape (n, side, side)
        Gray values in [0, 1].
    rng : numpy.random.Generator
        Draws the corruptions, their severities and the noise.

    Returns
    -------
    images : array of shape (n, side, side)
        Corrupted copies, in [0, 1].
    names : array of shape (n,)
        The corruption of each image.
    levels : array of shape (n,)
        Its severity.
    """
    names = rng.choice(list(CORRUPTIONS), size=len(images))
    levels = rng.choice(LEVELS, size=len(images))
    chosen = zip(images, names, levels, strict=True)
    out = np.stack([CORRUPTIONS[name](image, level, rng) for image, name, level in chosen])
    return out.clip(0.0, 1.0), names, levels
