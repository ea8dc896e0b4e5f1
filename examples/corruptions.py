"""Corruptions of grayscale images, similar to those of a camera, a scanner or an unsteady hand."""

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

Images = NDArray[np.float64]  # shape (n, side, side), values in [0, 1]

#: Severities of every corruption.
LEVELS = (1, 2, 3)


def noise(image: Images, level: int, rng: np.random.Generator) -> Images:
    """Add Gaussian noise."""
    return image + rng.normal(scale=0.15 * level, size=image.shape)


def blur(image: Images, level: int, rng: np.random.Generator) -> Images:
    """Blur with a Gaussian kernel whose width is proportional to the size of the image."""
    del rng
    return ndimage.gaussian_filter(image, sigma=0.025 * level * image.shape[0])


def rotation(image: Images, level: int, rng: np.random.Generator) -> Images:
    """Rotate by 10 degrees per level, in a random direction."""
    angle = 10.0 * level * rng.choice([-1, 1])
    return ndimage.rotate(image, angle, reshape=False, order=1)


def contrast(image: Images, level: int, rng: np.random.Generator) -> Images:
    """Reduce the contrast by moving the gray values towards 0.5."""
    del rng
    return 0.5 + (image - 0.5) * (1.0 - 0.25 * level)


CORRUPTIONS = {f.__name__: f for f in (noise, blur, rotation, contrast)}


def corrupt(
    images: Images, rng: np.random.Generator
) -> tuple[Images, NDArray[np.str_], NDArray[np.int64]]:
    """Apply a random corruption of a random severity to each image.

    Parameters
    ----------
    images : array of shape (n, side, side)
        Gray values in [0, 1].
    rng : numpy.random.Generator
        Generator of the corruptions, the severities and the noise.

    Returns
    -------
    images : array of shape (n, side, side)
        Corrupted copies, in [0, 1].
    names : array of shape (n,)
        Name of the corruption of each image.
    levels : array of shape (n,)
        Severity of the corruption of each image.
    """
    names = rng.choice(list(CORRUPTIONS), size=len(images))
    levels = rng.choice(LEVELS, size=len(images))
    corrupted = np.stack(
        [
            CORRUPTIONS[name](image, level, rng)
            for image, name, level in zip(images, names, levels, strict=True)
        ]
    )
    return corrupted.clip(0.0, 1.0), names, levels
