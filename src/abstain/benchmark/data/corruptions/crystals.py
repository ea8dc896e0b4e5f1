"""A sheet of ice crystals, drawn instead of photographed: what frost takes its parts from."""

from functools import cache

import numpy as np

from abstain.benchmark.data.corruptions.entry import Pictures

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
