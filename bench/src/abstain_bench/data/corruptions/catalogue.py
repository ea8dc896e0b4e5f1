"""Define the 15 corruptions in the order of the paper, and the function `corrupt`."""

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
    """An image corruption with five levels of severity.

    Attributes
    ----------
    name : str
        Unique name of the corruption.
    title : str
        Title in tables.
    group : {"noise", "blur", "weather", "digital"}
        Group of the corruption in tables of results.
    meaning : str
        Description in one sentence.
    constants : mapping of str to tuple of float
        Values of each constant at severities 1 to 5.
    apply : callable
        Function that returns the corrupted images, which `corrupt` clips to [0, 1]. The function
        receives float32 images of shape (n, channels, height, width) with values in [0, 1], a
        random generator, and the constants as keyword arguments. The function draws random numbers
        at most once, with one row per image, so the result for an image does not depend on later
        images.

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
        """Return the constants for a severity from 1 to 5 as a dictionary."""
        return {name: values[severity - 1] for name, values in self.constants.items()}


#: All corruptions by name in the order of the paper.
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


# ------------------------------------------------------------------------------------ noise
_noise = partial(_add_corruption, "noise")


#: Intensity of a sensor for black pixels. With an intensity of 0, black pixels would have no noise.
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
    # With the same random values, a higher severity changes additional values.
    black = random_values < share / 2
    white = random_values >= 1 - share / 2
    return np.where(black, np.float32(0), np.where(white, np.float32(1), pictures))


# ------------------------------------------------------------------------------------ blur
_blur = partial(_add_corruption, "blur")


#: Number of enlargements that zoom blur averages.
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
    """Blur each image, move each pixel randomly by at most `distance`, and blur again."""
    n, _, height, width = pictures.shape
    random_values = rng.random((n, 2, height, width), dtype=np.float32)
    offset = (2 * random_values - 1) * np.float32(distance * unit(pictures))
    deviation_in_pixels = deviation * unit(pictures)
    blurred_pictures = blurred(pictures, deviation_in_pixels)
    displaced = moved(blurred_pictures, offset[:, 0], offset[:, 1])
    return blurred(displaced, deviation_in_pixels)


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
    height, width = pictures.shape[-2:]
    out = np.zeros_like(pictures)
    for factor in np.linspace(1, largest, _ZOOMS):
        out += separable(pictures, _enlargement(height, factor), _enlargement(width, factor))
    return out / np.float32(_ZOOMS)


def _enlargement(size: int, factor: float) -> Pictures:
    """Return the interpolation matrix that enlarges one side of an image around its center."""
    center = (size - 1) / 2
    positions = center + (np.arange(size) - center) / factor
    return interpolation(positions, size).astype(np.float32)


# ------------------------------------------------------------------------------------ weather
_weather = partial(_add_corruption, "weather")


#: Side of the periodic texture of frost, in pixels.
SIDE = 256

#: Seed of the texture of frost. The generator of `corrupt` samples the crop for each image.
_SEED = 1903

#: Mean length of a grain of frost in pixels.
_GRAIN = 11.0
#: Distance between the needles of a grain in pixels.
_PERIOD = 3.2


@cache
def frost_texture() -> Pictures:
    """Return the frost texture as an array of shape (SIDE, SIDE).

    The values range from 0 (clear glass) to 1 (ice). Each grain contains a fern, which is a stem in
    a random direction with needles at 60 degrees. The texture is divided into grains, which are the
    cells of a Voronoi diagram.
    """
    from scipy.spatial import cKDTree

    draws = np.random.default_rng(_SEED)
    centers = SIDE * draws.random((round((SIDE / _GRAIN) ** 2), 2))
    angle = 2 * np.pi * draws.random(len(centers))
    strength = 0.45 + 0.55 * draws.random(len(centers))
    pixels = np.moveaxis(np.indices((SIDE, SIDE)), 0, -1).astype(np.float64)
    distances, nearest_grains = cKDTree(centers, boxsize=SIDE).query(pixels, k=2)
    grain = nearest_grains[..., 0]
    # The texture is periodic, so the offset from the center of a grain is at most half a side.
    offset = (pixels - centers[grain] + SIDE / 2) % SIDE - SIDE / 2
    sin = np.sin(angle)[grain]
    cos = np.cos(angle)[grain]
    # Coordinates along and across the stem.
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


#: Number of cells along the shorter side in each layer of fog. The weight of a layer is half of the
#: weight of the layer before.
_LAYERS = (2, 4, 8, 16)

#: Gray level of fog.
_FOG = 0.85
#: Gray level of the air between snow flakes.
_AIR = 0.7

#: Length in pixels of the motion blur of a falling flake.
_FALL = 3.0

#: Slightly blue tint of ice in red, green and blue.
_ICE = (0.9, 0.96, 1.0)


@_weather(
    "snow",
    "White flakes fall in one direction an image, and the air between is gray.",
    share=(0.003, 0.007, 0.014, 0.028, 0.055),
    veil=(0.02, 0.035, 0.055, 0.08, 0.12),
)
def _snow(pictures: Pictures, rng: np.random.Generator, *, share: float, veil: float) -> Pictures:
    """Cover images with white flakes that fall in one direction, and make them slightly gray."""
    n, _, height, width = pictures.shape
    rows, columns = _cells(pictures, 32)
    random_values = rng.random((n, rows * columns + 1), dtype=np.float32)
    # Flakes fall in a direction of at most 45 degrees to the vertical.
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
    """Darken images and add a random crop of the frost texture, which is mirrored at random."""
    n, channels, height, width = pictures.shape
    n_rows, n_columns = _cells(pictures, 32)
    random_values = rng.random((n, 4))
    start = (random_values[:, :2] * SIDE).astype(np.int64)
    step = np.where(random_values[:, 2:] < 0.5, -1, 1)
    rows = (start[:, :1] + step[:, :1] * np.arange(n_rows)) % SIDE
    columns = (start[:, 1:] + step[:, 1:] * np.arange(n_columns)) % SIDE
    crops = frost_texture()[rows[:, None, :, None], columns[:, None, None]]
    crystals = stretched(crops, (height, width))
    tint = np.array(_ICE if channels == 3 else [1.0], np.float32)[:, None, None]
    return np.float32(keep) * pictures + np.float32(ice) * tint * crystals


@_weather(
    "fog",
    "Gray clouds of many sizes, through which the image shines.",
    opacity=(0.06, 0.12, 0.22, 0.38, 0.65),
)
def _fog(pictures: Pictures, rng: np.random.Generator, *, opacity: float) -> Pictures:
    """Blend images with gray clouds, which are sums of random noise at several resolutions."""
    n, _, height, width = pictures.shape
    cells = [_cells(pictures, count) for count in _LAYERS]
    layer_sizes = [(rows + 1) * (columns + 1) for rows, columns in cells]
    random_values = rng.random((n, sum(layer_sizes)), dtype=np.float32)
    layers = np.split(random_values, np.cumsum(layer_sizes)[:-1], axis=1)
    density = np.zeros((n, 1, height, width), np.float32)
    for i, (rows, columns) in enumerate(cells):
        corners = layers[i].reshape(-1, 1, rows + 1, columns + 1)
        density += np.float32(0.5**i) * stretched(corners, (height, width))
    low = density.min(axis=(1, 2, 3), keepdims=True)
    high = density.max(axis=(1, 2, 3), keepdims=True)
    # The lowest opacity in an image is a third of the highest opacity.
    share = np.float32(opacity) * (1 + 2 * (density - low) / (high - low)) / 3
    out: Pictures = pictures + share * (np.float32(_FOG) - pictures)
    return out


def _cells(pictures: Pictures, count: int) -> tuple[int, int]:
    """Return the size of a grid that has `count` cells along the shorter side of the image."""
    height, width = pictures.shape[-2:]
    pixels = 32 * unit(pictures) / count
    return round(height / pixels), round(width / pixels)


# ------------------------------------------------------------------------------------ digital
_digital = partial(_add_corruption, "digital")


#: Standard deviation of the blur of displacements, in units of 1/32 of the shorter side.
_SMOOTH = 2.5


@_digital(
    "brightness",
    "The same amount of light on every pixel; hue and saturation stay.",
    added=(0.03, 0.06, 0.11, 0.19, 0.34),
)
def _brightness(pictures: Pictures, _rng: np.random.Generator, *, added: float) -> Pictures:
    # In HSV, the value of a color is its largest channel. Hue and saturation do not change.
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
    """Move each pixel by a smooth random offset with the given root-mean-square length."""
    n, _, height, width = pictures.shape
    pixels = min(height, width) / 32
    grid = round(height / pixels), round(width / pixels)
    random_values = rng.standard_normal((n, 2, *grid), dtype=np.float32)
    smooth = stretched(blurred(random_values, _SMOOTH), (height, width))
    rms_distance = np.sqrt(np.mean(smooth**2, axis=(1, 2, 3), keepdims=True) * 2)
    offset = smooth / rms_distance * np.float32(distance * pixels)
    return moved(pictures, offset[:, 0], offset[:, 1])


@_digital(
    "pixelate",
    "Blocks of pixels become their mean, as in a small image that was enlarged.",
    share=(0.84, 0.69, 0.56, 0.44, 0.31),
)
def _pixelate(pictures: Pictures, _rng: np.random.Generator, *, share: float) -> Pictures:
    height, width = pictures.shape[-2:]
    down = blocks(height, max(1, round(height * share)))
    across = blocks(width, max(1, round(width * share)))
    return separable(pictures, down, across)


@_digital(
    "jpeg",
    "The image is compressed to a JPEG file of a low quality and read back.",
    quality=(50, 25, 10, 7, 3),
    title="JPEG",
)
def _jpeg(pictures: Pictures, _rng: np.random.Generator, *, quality: float) -> Pictures:
    """Compress each image to a JPEG file and read it back."""
    try:
        from PIL import Image
    except ModuleNotFoundError as error:
        if error.name != "PIL":
            raise
        raise InputError("the corruption 'jpeg' needs Pillow: pip install Pillow") from None
    pixels = np.round(255 * pictures).astype(np.uint8)
    is_gray = pixels.shape[1] == 1
    options = {} if is_gray else {"subsampling": "4:2:0"}
    out = np.empty_like(pixels)
    for picture, compressed in zip(pixels, out, strict=True):
        levels = picture[0] if is_gray else picture.transpose(1, 2, 0)
        file = io.BytesIO()
        Image.fromarray(levels).save(file, "JPEG", quality=int(quality), **options)
        with Image.open(file) as image:
            decoded = np.asarray(image)
        compressed[:] = decoded if is_gray else decoded.transpose(2, 0, 1)
    return (out / np.float32(255)).astype(np.float32)


# ------------------------------------------------------------------------------------ corrupt
#: Number of images per block. The arrays of a block fit in the cache of a core.
_BLOCK_SIZE = 64

#: Minimum side of images.
_MIN_SIDE = 8


def corrupt(images: AnyArray, name: str, severity: int, *, rng: Rng = 0) -> Pictures:
    """Apply one of the 15 corruptions of Hendrycks & Dietterich (2019) to images.

    Parameters
    ----------
    images : array of shape (n, channels, height, width)
        Floats from 0 (black) to 1 (white). The images have one channel (gray) or three channels
        (red, green, blue) and sides of at least 8 pixels.
    name : str
        Name in `CORRUPTIONS`.
    severity : int
        Severity from 1 (lowest) to 5 (highest).
    rng : int, Generator or None, default=0
        Seed of the random values. If `rng` is a seed, the random values are equal for all
        severities.

    Returns
    -------
    float32 ndarray of shape (n, channels, height, width)
        The corrupted images with values from 0 to 1.

    Raises
    ------
    UnknownNameError
        If the corruption does not exist.
    ShapeError
        If the images have other axes or channels or are too small, or if the batch is empty.
    DomainError
        If a value is not a float, not finite or outside [0, 1].
    InputError
        If the severity is not an integer from 1 to 5. If the corruption is ``"jpeg"`` and Pillow is
        not installed.

    Notes
    -----
    The result for an image depends on the seed and on the index of the image in the batch, but not
    on the other images. If `rng` is a generator, its state advances, so several batches have the
    same result as one large batch. If `rng` is a seed, every call uses the same random values.

    The default constants are designed for images of 32 x 32 pixels. All lengths scale with the
    shorter side of the image.

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
    generator = as_generator(rng)
    out = np.empty(clean.shape, np.float32)
    for start in range(0, len(clean), _BLOCK_SIZE):
        block = slice(start, start + _BLOCK_SIZE)
        np.clip(entry.apply(clean[block], generator, **constants), 0, 1, out=out[block])
    return out


def _checked(pictures: AnyArray) -> Pictures:
    """Validate the shape and the values of images, and convert them to float32."""
    array = to_numpy(pictures, "pictures")
    if array.ndim != 4 or not array.size:
        raise ShapeError(
            f"`pictures` must have axes (n, channels, height, width); got shape {array.shape}"
        )
    if array.shape[1] not in {1, 3}:
        raise ShapeError(
            f"`pictures` must have 1 or 3 channels, on the second axis; got shape {array.shape}"
        )
    if min(array.shape[2:]) < _MIN_SIDE:
        raise ShapeError(
            f"`pictures` must have sides of at least {_MIN_SIDE} pixels; got {array.shape[2:]}"
        )
    if array.dtype.kind != "f":
        raise DomainError(
            f"`pictures` must be floats from 0 to 1; got {array.dtype}. Divide bytes by 255."
        )
    checks.unit_interval(checks.finite(array, "pictures"), "pictures", hint="Divide bytes by 255.")
    return np.ascontiguousarray(array, dtype=np.float32)
