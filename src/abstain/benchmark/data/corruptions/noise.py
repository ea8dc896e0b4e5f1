"""Noise: what a sensor adds."""

import numpy as np

from abstain.benchmark.data.corruptions.entry import Corruption, Pictures

#: Light that a sensor counts where the picture is black; without it black would have no noise.
_DARK = 0.1


def _gaussian(pictures: Pictures, rng: np.random.Generator, *, deviation: float) -> Pictures:
    drawn = rng.standard_normal(pictures.shape, dtype=np.float32)
    return pictures + np.float32(deviation) * drawn


def _shot(pictures: Pictures, rng: np.random.Generator, *, photons: float) -> Pictures:
    counted = rng.poisson((pictures.astype(np.float64) + _DARK) * photons)
    return (counted / photons - _DARK).astype(np.float32)


def _impulse(pictures: Pictures, rng: np.random.Generator, *, share: float) -> Pictures:
    drawn = rng.random(pictures.shape, dtype=np.float32)
    # The lowest become black and the highest white: more of them with each severity.
    black, white = drawn < share / 2, drawn >= 1 - share / 2
    return np.where(black, np.float32(0), np.where(white, np.float32(1), pictures))


NOISE = (
    Corruption(
        "gaussian-noise",
        "Gaussian noise",
        "noise",
        "Normal noise on every value, as of a sensor in little light.",
        {"deviation": (0.04, 0.07, 0.11, 0.16, 0.23)},
        _gaussian,
    ),
    Corruption(
        "shot-noise",
        "shot noise",
        "noise",
        "Counts of photons instead of intensities: bright places are noisier than dark ones.",
        {"photons": (120, 60, 30, 15, 7.5)},
        _shot,
    ),
    Corruption(
        "impulse-noise",
        "impulse noise",
        "noise",
        "A share of the values becomes black or white, as by errors of bits.",
        {"share": (0.008, 0.02, 0.04, 0.075, 0.13)},
        _impulse,
    ),
)
