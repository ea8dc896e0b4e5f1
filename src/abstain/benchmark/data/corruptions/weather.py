"""Weather: what stands between the lens and the thing."""

from functools import cache

import numpy as np

from abstain.benchmark.data.corruptions.entry import Corruption, Pictures
from abstain.benchmark.data.corruptions.filters import convolved, line, stretched, unit

#: Side of the sheet; its left border continues at the right, its upper one at the lower.
SIDE = 256

#: Seed of the one sheet; the parts that pictures get are drawn by their own generator.
_SEED = 1903

#: Length of a grain, and distance of the needles in it, in pixels.
_GRAIN, _PERIOD = 11.0, 3.2


@cache
def sheet() -> Pictures:
    """Return the sheet (SIDE, SIDE), from 0 for clear glass to 1 for ice.

    Each grain is a fern: a stem in a direction of its own and needles at 60 degrees to it. Grains
    fill the cells of a Voronoi diagram, whose borders are clear.
    """
    from scipy.spatial import cKDTree

    draws = np.random.default_rng(_SEED)
    centers = SIDE * draws.random((round((SIDE / _GRAIN) ** 2), 2))
    angle = 2 * np.pi * draws.random(len(centers))
    strength = 0.45 + 0.55 * draws.random(len(centers))
    places = np.moveaxis(np.indices((SIDE, SIDE)), 0, -1).astype(np.float64)
    distance, grain = cKDTree(centers, boxsize=SIDE).query(places, k=2)
    own = grain[..., 0]
    away = (places - centers[own] + SIDE / 2) % SIDE - SIDE / 2
    sin, cos = np.sin(angle)[own], np.cos(angle)[own]
    along, aside = away[..., 0] * sin + away[..., 1] * cos, away[..., 0] * cos - away[..., 1] * sin
    needle = 0.5 + 0.5 * np.cos(2 * np.pi * (along - np.abs(aside) / np.sqrt(3)) / _PERIOD)
    stem = np.exp(-(aside**2))
    border = np.clip((distance[..., 1] - distance[..., 0]) / 1.5, 0, 1)
    ice = np.maximum(0.15 + 0.85 * needle**1.5, stem) * strength[own] * (0.4 + 0.6 * border)
    drawn: Pictures = ice.astype(np.float32)
    drawn.flags.writeable = False
    return drawn


#: Cells along the shorter side of the layers of fog; each counts half of the one before.
_LAYERS = (2, 4, 8, 16)

#: How bright fog and the air full of snow are.
_FOG, _AIR = 0.85, 0.7

#: Pixels that a flake is drawn out over as it falls.
_FALL = 3.0

#: Ice is a little blue.
_ICE = (0.9, 0.96, 1.0)


def _snow(pictures: Pictures, rng: np.random.Generator, *, share: float, veil: float) -> Pictures:
    n, _, height, width = pictures.shape
    rows, columns = _cells(pictures, 32)
    drawn = rng.random((n, rows * columns + 1), dtype=np.float32)
    # From 45 degrees left to 45 degrees right of straight down.
    angle = np.pi * (0.25 + 0.5 * drawn[:, -1].astype(np.float64))
    places = drawn[:, :-1].reshape(n, 1, rows, columns)
    flakes = np.sqrt(np.clip((places - (1 - share)) / share, 0, 1)).astype(np.float32)
    falling = np.minimum(np.float32(_FALL) * convolved(flakes, line(_FALL, angle)), 1)
    there = stretched(falling, (height, width))
    seen = pictures + np.float32(veil) * (np.float32(_AIR) - pictures)
    out: Pictures = seen + there * (1 - seen)
    return out


def _frost(pictures: Pictures, rng: np.random.Generator, *, keep: float, ice: float) -> Pictures:
    n, channels, height, width = pictures.shape
    drawn = rng.random((n, 4))
    first = (drawn[:, :2] * SIDE).astype(np.int64)
    step = np.where(drawn[:, 2:] < 0.5, -1, 1)
    rows, columns = (
        (first[:, k, None] + step[:, k, None] * np.arange(size)) % SIDE
        for k, size in enumerate(_cells(pictures, 32))
    )
    crystals = stretched(sheet()[rows[:, None, :, None], columns[:, None, None]], (height, width))
    tint = np.array(_ICE if channels == 3 else [1.0], np.float32)[:, None, None]
    return np.float32(keep) * pictures + np.float32(ice) * tint * crystals


def _fog(pictures: Pictures, rng: np.random.Generator, *, opacity: float) -> Pictures:
    cells = [_cells(pictures, count) for count in _LAYERS]
    sizes = [(rows + 1) * (columns + 1) for rows, columns in cells]
    drawn = rng.random((len(pictures), sum(sizes)), dtype=np.float32)
    density = np.zeros((len(pictures), 1, *pictures.shape[-2:]), np.float32)
    parts = np.split(drawn, np.cumsum(sizes)[:-1], axis=1)
    for layer, ((rows, columns), part) in enumerate(zip(cells, parts, strict=True)):
        values = part.reshape(-1, 1, rows + 1, columns + 1)
        density += np.float32(0.5**layer) * stretched(values, pictures.shape[-2:])
    low, high = (f(density, axis=(1, 2, 3), keepdims=True) for f in (np.min, np.max))
    # The thinnest place of a picture has a third of the fog of its thickest.
    share = np.float32(opacity) * (1 + 2 * (density - low) / (high - low)) / 3
    out: Pictures = pictures + share * (np.float32(_FOG) - pictures)
    return out


def _cells(pictures: Pictures, count: int) -> tuple[int, int]:
    """Return rows and columns of squares of which `count` fit along the shorter side."""
    height, width = pictures.shape[-2:]
    pixels = 32 * unit(pictures) / count
    return round(height / pixels), round(width / pixels)


WEATHER = (
    Corruption(
        "snow",
        "snow",
        "weather",
        "White flakes fall in one direction a picture, and the air between is gray.",
        {"share": (0.003, 0.007, 0.014, 0.028, 0.055), "veil": (0.02, 0.035, 0.055, 0.08, 0.12)},
        _snow,
    ),
    Corruption(
        "frost",
        "frost",
        "weather",
        "Ice crystals on the lens, a part of a sheet of them, before a darker picture.",
        {"keep": (0.98, 0.96, 0.92, 0.86, 0.78), "ice": (0.06, 0.1, 0.17, 0.28, 0.45)},
        _frost,
    ),
    Corruption(
        "fog",
        "fog",
        "weather",
        "Gray clouds of many sizes, through which the picture shines.",
        {"opacity": (0.06, 0.12, 0.22, 0.38, 0.65)},
        _fog,
    ),
)
