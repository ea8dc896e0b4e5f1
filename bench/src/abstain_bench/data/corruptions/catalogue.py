"""The catalogue of corruptions, in the order of the paper, and `corrupt`, which applies one."""

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Literal

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import to_numpy
from abstain._foundation.catalogue import Catalogue
from abstain._foundation.random import as_generator
from abstain.errors import DomainError, InputError, ShapeError
from abstain.typing import AnyArray, Rng
from abstain_bench.data.corruptions.filters import (
    Pictures,
    blocks,
    blurred,
    convolved,
    disk,
    interpolation,
    line,
    moved,
    separable,
    stretched,
    unit,
)

#: Number of severities of each corruption.
SEVERITIES = 5

Group = Literal["noise", "blur", "weather", "digital"]


@dataclass(frozen=True)
class Corruption:
    """A corruption of images with five severities.

    Attributes
    ----------
    name : str
        The name scripts use.
    title : str
        The name people read.
    group : {"noise", "blur", "weather", "digital"}
        What the table of results puts it under.
    meaning : str
        One plain sentence.
    constants : mapping of str to tuple of float
        For each constant its values at severities 1 to 5.
    apply : callable
        From float32 images (n, channels, height, width) in [0, 1], a generator and one value of
        each constant by its name, to spoiled images, which `corrupt` clips to [0, 1]. It leaves
        what it is given untouched. It calls one method of the generator once, with the images
        on the first axis, so that what an image gets does not depend on those behind it.

    Examples
    --------
    >>> from abstain_bench.data.corruptions import CORRUPTIONS
    >>> fog = CORRUPTIONS["fog"]
    >>> fog.group, list(fog.constants)
    ('weather', ['opacity'])
    """

    name: str
    title: str
    group: Group
    meaning: str
    constants: Mapping[str, tuple[float, ...]]
    apply: Callable[..., Pictures]

    def at(self, severity: int) -> dict[str, float]:
        """Return the constants of a severity, from 1 to 5, by their names."""
        return {name: values[severity - 1] for name, values in self.constants.items()}


#: Every corruption by name, in the order of the paper.
CORRUPTIONS: Catalogue[Corruption] = Catalogue("corruption")


def _add_corruption(
    group: Group, name: str, meaning: str, *, title: str = "", **constants: tuple[float, ...]
) -> Callable[[Callable[..., Pictures]], Callable[..., Pictures]]:
    """Return a decorator that adds a function to `CORRUPTIONS`; the default title is the name."""

    def add(apply: Callable[..., Pictures]) -> Callable[..., Pictures]:
        full_title = title or name.replace("-", " ")
        CORRUPTIONS.add(Corruption(name, full_title, group, meaning, constants, apply))
        return apply

    return add


# ------------------------------------------------------------------------ noise: what a sensor adds
_noise = partial(_add_corruption, "noise")


#: Light that a sensor counts where the image is black; without it black would have no noise.
_DARK = 0.1


@_noise(
    "gaussian-noise",
    "Normal noise on every value, as of a sensor in little light.",
    deviation=(0.04, 0.07, 0.11, 0.16, 0.23),
    title="Gaussian noise",
)
def _gaussian(pictures: Pictures, rng: np.random.Generator, *, deviation: float) -> Pictures:
    random_values = rng.standard_normal(pictures.shape, dtype=np.float32)
    return pictures + np.float32(deviation) * random_values


@_noise(
    "shot-noise",
    "Counts of photons instead of intensities: bright places are noisier than dark ones.",
    photons=(120, 60, 30, 15, 7.5),
)
def _shot(pictures: Pictures, rng: np.random.Generator, *, photons: float) -> Pictures:
    counted = rng.poisson((pictures.astype(np.float64) + _DARK) * photons)
    return (counted / photons - _DARK).astype(np.float32)


@_noise(
    "impulse-noise",
    "A share of the values becomes black or white, as by errors of bits.",
    share=(0.008, 0.02, 0.04, 0.075, 0.13),
)
def _impulse(pictures: Pictures, rng: np.random.Generator, *, share: float) -> Pictures:
    random_values = rng.random(pictures.shape, dtype=np.float32)
    # The lowest become black and the highest white: more of them with each severity.
    black, white = random_values < share / 2, random_values >= 1 - share / 2
    return np.where(black, np.float32(0), np.where(white, np.float32(1), pictures))


# ----------------------------------------------- blur: what a lens, a pane or a movement takes away
_blur = partial(_add_corruption, "blur")


#: Images of different sizes that zoom blur averages.
_ZOOMS = 9


@_blur(
    "defocus-blur",
    "Every point becomes a disk, as of a lens that is out of focus.",
    radius=(0.6, 1.1, 1.6, 2.1, 2.7),
)
def _defocus(pictures: Pictures, _rng: np.random.Generator, *, radius: float) -> Pictures:
    return convolved(pictures, disk(radius * unit(pictures)))


@_blur(
    "glass-blur",
    "Every pixel is taken from a random place near it, as behind frosted glass.",
    distance=(0.4, 0.7, 1.1, 1.6, 2.2),
    deviation=(0.3, 0.4, 0.5, 0.6, 0.7),
)
def _glass(
    pictures: Pictures, rng: np.random.Generator, *, distance: float, deviation: float
) -> Pictures:
    n, _, height, width = pictures.shape
    random_values = rng.random((n, 2, height, width), dtype=np.float32)
    away = (2 * random_values - 1) * np.float32(distance * unit(pictures))
    soft = deviation * unit(pictures)
    return blurred(moved(blurred(pictures, soft), away[:, 0], away[:, 1]), soft)


@_blur(
    "motion-blur",
    "Every point becomes a line of one direction an image, as of a camera that moves.",
    length=(1.5, 2.5, 4.0, 5.5, 8.0),
)
def _motion(pictures: Pictures, rng: np.random.Generator, *, length: float) -> Pictures:
    angle = np.pi * rng.random(len(pictures))
    return convolved(pictures, line(length * unit(pictures), angle))


@_blur(
    "zoom-blur",
    "The mean of the image and enlargements of it, as of a camera that moves towards it.",
    largest=(1.12, 1.2, 1.3, 1.45, 1.65),
)
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


# ---------------------------------------------- weather: what stands between the lens and the thing
_weather = partial(_add_corruption, "weather")


#: Side of the periodic texture of frost, in pixels.
SIDE = 256

#: Seed of the texture. The crop of each image is drawn by the generator of `corrupt`.
_SEED = 1903

#: Length of a grain, and distance of the needles in it, in pixels.
_GRAIN, _PERIOD = 11.0, 3.2


@cache
def frost_texture() -> Pictures:
    """Return the texture of frost (SIDE, SIDE), from 0 for clear glass to 1 for ice.

    Each grain is a fern with a stem in a random direction and needles at 60 degrees to it. Grains
    fill the cells of a Voronoi diagram, whose borders are clear.
    """
    from scipy.spatial import cKDTree

    draws = np.random.default_rng(_SEED)
    centers = SIDE * draws.random((round((SIDE / _GRAIN) ** 2), 2))
    angle = 2 * np.pi * draws.random(len(centers))
    strength = 0.45 + 0.55 * draws.random(len(centers))
    pixels = np.moveaxis(np.indices((SIDE, SIDE)), 0, -1).astype(np.float64)
    distances, nearest_grains = cKDTree(centers, boxsize=SIDE).query(pixels, k=2)
    grain = nearest_grains[..., 0]
    # Periodic offset from the center of the grain, then its coordinates along and across the stem.
    offset = (pixels - centers[grain] + SIDE / 2) % SIDE - SIDE / 2
    sin, cos = np.sin(angle)[grain], np.cos(angle)[grain]
    along = offset[..., 0] * sin + offset[..., 1] * cos
    across = offset[..., 0] * cos - offset[..., 1] * sin
    needle = 0.5 + 0.5 * np.cos(2 * np.pi * (along - np.abs(across) / np.sqrt(3)) / _PERIOD)
    stem = np.exp(-(across**2))
    distance_to_border = np.clip((distances[..., 1] - distances[..., 0]) / 1.5, 0, 1)
    ice = np.maximum(0.15 + 0.85 * needle**1.5, stem)
    ice *= strength[grain] * (0.4 + 0.6 * distance_to_border)
    texture: Pictures = ice.astype(np.float32)
    texture.flags.writeable = False
    return texture


#: Cells along the shorter side of the layers of fog; each counts half of the one before.
_LAYERS = (2, 4, 8, 16)

#: How bright fog and the air full of snow are.
_FOG, _AIR = 0.85, 0.7

#: Pixels that a flake is random_values out over as it falls.
_FALL = 3.0

#: Ice is a little blue.
_ICE = (0.9, 0.96, 1.0)


@_weather(
    "snow",
    "White flakes fall in one direction an image, and the air between is gray.",
    share=(0.003, 0.007, 0.014, 0.028, 0.055),
    veil=(0.02, 0.035, 0.055, 0.08, 0.12),
)
def _snow(pictures: Pictures, rng: np.random.Generator, *, share: float, veil: float) -> Pictures:
    n, _, height, width = pictures.shape
    rows, columns = _cells(pictures, 32)
    random_values = rng.random((n, rows * columns + 1), dtype=np.float32)
    # From 45 degrees left to 45 degrees right of straight down.
    angle = np.pi * (0.25 + 0.5 * random_values[:, -1].astype(np.float64))
    uniform = random_values[:, :-1].reshape(n, 1, rows, columns)
    flakes = np.sqrt(np.clip((uniform - (1 - share)) / share, 0, 1)).astype(np.float32)
    falling = np.minimum(np.float32(_FALL) * convolved(flakes, line(_FALL, angle)), 1)
    snow = stretched(falling, (height, width))
    veiled = pictures + np.float32(veil) * (np.float32(_AIR) - pictures)
    out: Pictures = veiled + snow * (1 - veiled)
    return out


@_weather(
    "frost",
    "Ice crystals on the lens, a part of a sheet of them, before a darker image.",
    keep=(0.98, 0.96, 0.92, 0.86, 0.78),
    ice=(0.06, 0.1, 0.17, 0.28, 0.45),
)
def _frost(pictures: Pictures, rng: np.random.Generator, *, keep: float, ice: float) -> Pictures:
    n, channels, height, width = pictures.shape
    random_values = rng.random((n, 4))
    first = (random_values[:, :2] * SIDE).astype(np.int64)
    step = np.where(random_values[:, 2:] < 0.5, -1, 1)
    rows, columns = (
        (first[:, k, None] + step[:, k, None] * np.arange(size)) % SIDE
        for k, size in enumerate(_cells(pictures, 32))
    )
    crystals = stretched(
        frost_texture()[rows[:, None, :, None], columns[:, None, None]], (height, width)
    )
    tint = np.array(_ICE if channels == 3 else [1.0], np.float32)[:, None, None]
    return np.float32(keep) * pictures + np.float32(ice) * tint * crystals


@_weather(
    "fog",
    "Gray clouds of many sizes, through which the image shines.",
    opacity=(0.06, 0.12, 0.22, 0.38, 0.65),
)
def _fog(pictures: Pictures, rng: np.random.Generator, *, opacity: float) -> Pictures:
    cells = [_cells(pictures, count) for count in _LAYERS]
    sizes = [(rows + 1) * (columns + 1) for rows, columns in cells]
    random_values = rng.random((len(pictures), sum(sizes)), dtype=np.float32)
    density = np.zeros((len(pictures), 1, *pictures.shape[-2:]), np.float32)
    parts = np.split(random_values, np.cumsum(sizes)[:-1], axis=1)
    for layer, ((rows, columns), part) in enumerate(zip(cells, parts, strict=True)):
        values = part.reshape(-1, 1, rows + 1, columns + 1)
        density += np.float32(0.5**layer) * stretched(values, pictures.shape[-2:])
    low, high = (f(density, axis=(1, 2, 3), keepdims=True) for f in (np.min, np.max))
    # The thinnest place of an image has a third of the fog of its thickest.
    share = np.float32(opacity) * (1 + 2 * (density - low) / (high - low)) / 3
    out: Pictures = pictures + share * (np.float32(_FOG) - pictures)
    return out


def _cells(pictures: Pictures, count: int) -> tuple[int, int]:
    """Return rows and columns of squares of which `count` fit along the shorter side."""
    height, width = pictures.shape[-2:]
    pixels = 32 * unit(pictures) / count
    return round(height / pixels), round(width / pixels)


# -------------------------------------------- digital: what is done to an image after it was taken
_digital = partial(_add_corruption, "digital")


#: How far a field of displacements is smoothed, in units of 1/32 of the shorter side.
_SMOOTH = 2.5


@_digital(
    "brightness",
    "The same amount of light on every pixel; hue and saturation stay.",
    added=(0.03, 0.06, 0.11, 0.19, 0.34),
)
def _brightness(pictures: Pictures, _rng: np.random.Generator, *, added: float) -> Pictures:
    # The value of a color (in HSV) is its largest channel; hue and saturation stay.
    value = pictures.max(axis=1, keepdims=True)
    brighter = np.minimum(value + np.float32(added), 1)
    black = value == 0
    out: Pictures = np.where(black, brighter, pictures * (brighter / np.where(black, 1, value)))
    return out


@_digital(
    "contrast",
    "Every pixel moves towards the mean of its image.",
    factor=(0.8, 0.67, 0.53, 0.4, 0.28),
)
def _contrast(pictures: Pictures, _rng: np.random.Generator, *, factor: float) -> Pictures:
    mean = pictures.mean(axis=(2, 3), keepdims=True)
    out: Pictures = mean + np.float32(factor) * (pictures - mean)
    return out


@_digital(
    "elastic-transform",
    "The image is bent as rubber: neighbors move nearly alike, distant places do not.",
    distance=(0.8, 1.2, 1.7, 2.3, 3.0),
)
def _elastic(pictures: Pictures, rng: np.random.Generator, *, distance: float) -> Pictures:
    n, _, height, width = pictures.shape
    pixels = min(height, width) / 32
    grid = round(height / pixels), round(width / pixels)
    random_values = rng.standard_normal((n, 2, *grid), dtype=np.float32)
    field = stretched(blurred(random_values, _SMOOTH), (height, width))
    size = np.sqrt(np.mean(field**2, axis=(1, 2, 3), keepdims=True) * 2)
    away = field / size * np.float32(distance * pixels)
    return moved(pictures, away[:, 0], away[:, 1])


@_digital(
    "pixelate",
    "Blocks of pixels become their mean, as in a small image that was enlarged.",
    share=(0.84, 0.69, 0.56, 0.44, 0.31),
)
def _pixelate(pictures: Pictures, _rng: np.random.Generator, *, share: float) -> Pictures:
    sides = pictures.shape[-2:]
    return separable(pictures, *(blocks(side, max(1, round(side * share))) for side in sides))


@_digital(
    "jpeg",
    "The image is compressed to a JPEG file of a low quality and read back.",
    quality=(50, 25, 10, 7, 3),
    title="JPEG",
)
def _jpeg(pictures: Pictures, _rng: np.random.Generator, *, quality: float) -> Pictures:
    try:
        from PIL import Image
    except ModuleNotFoundError as error:
        if error.name != "PIL":
            raise
        raise InputError("the corruption 'jpeg' needs Pillow: pip install Pillow") from None
    pixels = np.round(255 * pictures).astype(np.uint8)
    out = np.empty_like(pixels)
    for picture, compressed in zip(pixels, out, strict=True):
        file = io.BytesIO()
        levels = picture[0] if len(picture) == 1 else picture.transpose(1, 2, 0)
        options = {} if len(picture) == 1 else {"subsampling": "4:2:0"}
        Image.fromarray(levels).save(file, "JPEG", quality=int(quality), **options)
        with Image.open(file) as image:
            decoded = np.asarray(image)
        compressed[:] = decoded if len(picture) == 1 else decoded.transpose(2, 0, 1)
    return (out / np.float32(255)).astype(np.float32)


# ------------------------------------------------------------------------------------ corrupt
#: Number of images in a block, whose arrays fit in the cache of a core.
_AT_A_TIME = 64

#: The shortest side that is allowed.
_SHORTEST = 8


def corrupt(images: AnyArray, name: str, severity: int, *, rng: Rng = 0) -> Pictures:
    """Spoil images: one of the 15 corruptions of Hendrycks & Dietterich (2019), one severity.

    Parameters
    ----------
    images : array of shape (n, channels, height, width)
        Floats from 0 (black) to 1 (white), of one channel (gray) or three (red, green, blue), with
        sides of at least 8 pixels.
    name : str
        One of `CORRUPTIONS`.
    severity : int
        From 1 (a little) to 5 (a lot).
    rng : int, Generator or None, default=0
        The seed of what is drawn. The same seed draws the same at every severity.

    Returns
    -------
    float32 ndarray of shape (n, channels, height, width)
        The spoiled images, from 0 to 1.

    Raises
    ------
    UnknownNameError
        There is no such corruption.
    ShapeError
        The images have other axes or channels, or are too small, or there are none.
    DomainError
        A value is no float, not finite or outside [0, 1].
    InputError
        The severity is not 1 to 5, or Pillow, which ``"jpeg"`` needs, is not installed.

    Notes
    -----
    What an image gets depends on the seed and on its position in the batch, not on the images
    around it: the first ten of a thousand are spoiled as those ten alone. A generator moves on by
    what was drawn, so that batches spoiled one after the other with one generator get what they
    would get as one batch; a seed starts anew with each call.

    The constants suit images with a side of 32; lengths scale with the shorter side. Thousands
    of images a second on one core.

    References
    ----------
    .. [1] Hendrycks & Dietterich (2019), Benchmarking Neural Network Robustness to Common
       Corruptions and Perturbations, arXiv 1903.12261

    Examples
    --------
    >>> import numpy as np
    >>> from abstain_bench.data.corruptions import corrupt
    >>> square = np.zeros((1, 1, 32, 32))
    >>> square[:, :, 8:24, 8:24] = 1
    >>> [round(float(abs(corrupt(square, "fog", s) - square).mean()), 2) for s in range(1, 6)]
    [0.03, 0.05, 0.1, 0.17, 0.29]
    """
    entry = CORRUPTIONS[name]
    clean = _checked(images)
    if checks.positive_int(severity, "severity") > SEVERITIES:
        raise InputError(f"`severity` must be an integer from 1 to {SEVERITIES}; got {severity!r}")
    constants = entry.at(severity)
    draws = as_generator(rng)
    out = np.empty(clean.shape, np.float32)
    for start in range(0, len(clean), _AT_A_TIME):
        part = slice(start, start + _AT_A_TIME)
        np.clip(entry.apply(clean[part], draws, **constants), 0, 1, out=out[part])
    return out


def _checked(pictures: AnyArray) -> Pictures:
    """Return valid images as float32."""
    array = to_numpy(pictures, "pictures")
    if array.ndim != 4 or not array.size:
        raise ShapeError(
            f"`pictures` must have axes (n, channels, height, width); got shape {array.shape}"
        )
    if array.shape[1] not in {1, 3}:
        raise ShapeError(
            f"`pictures` must have 1 or 3 channels, on the second axis; got shape {array.shape}"
        )
    if min(array.shape[2:]) < _SHORTEST:
        raise ShapeError(
            f"`pictures` must have sides of at least {_SHORTEST} pixels; got {array.shape[2:]}"
        )
    if array.dtype.kind != "f":
        raise DomainError(
            f"`pictures` must be floats from 0 to 1; got {array.dtype}. Divide bytes by 255."
        )
    checks.unit_interval(checks.finite(array, "pictures"), "pictures", hint="Divide bytes by 255.")
    return np.ascontiguousarray(array, dtype=np.float32)
