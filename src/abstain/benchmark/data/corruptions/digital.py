"""Digital: what is done to a picture after it was taken."""

import io

import numpy as np

from abstain.benchmark.data.corruptions.entry import Corruption, Pictures
from abstain.benchmark.data.corruptions.filters import blocks, blurred, moved, separable, stretched
from abstain.errors import InputError

#: How far a field of displacements is smoothed, in units of 1/32 of the shorter side.
_SMOOTH = 2.5


def _brightness(pictures: Pictures, _rng: np.random.Generator, *, added: float) -> Pictures:
    # The value of a color (in HSV) is its largest channel; hue and saturation stay.
    value = pictures.max(axis=1, keepdims=True)
    brighter = np.minimum(value + np.float32(added), 1)
    black = value == 0
    out: Pictures = np.where(black, brighter, pictures * (brighter / np.where(black, 1, value)))
    return out


def _contrast(pictures: Pictures, _rng: np.random.Generator, *, factor: float) -> Pictures:
    mean = pictures.mean(axis=(2, 3), keepdims=True)
    out: Pictures = mean + np.float32(factor) * (pictures - mean)
    return out


def _elastic(pictures: Pictures, rng: np.random.Generator, *, distance: float) -> Pictures:
    n, _, height, width = pictures.shape
    pixels = min(height, width) / 32
    grid = round(height / pixels), round(width / pixels)
    drawn = rng.standard_normal((n, 2, *grid), dtype=np.float32)
    field = stretched(blurred(drawn, _SMOOTH), (height, width))
    size = np.sqrt(np.mean(field**2, axis=(1, 2, 3), keepdims=True) * 2)
    away = field / size * np.float32(distance * pixels)
    return moved(pictures, away[:, 0], away[:, 1])


def _pixelate(pictures: Pictures, _rng: np.random.Generator, *, share: float) -> Pictures:
    sides = pictures.shape[-2:]
    return separable(pictures, *(blocks(side, max(1, round(side * share))) for side in sides))


def _jpeg(pictures: Pictures, _rng: np.random.Generator, *, quality: float) -> Pictures:
    try:
        from PIL import Image
    except ModuleNotFoundError as error:
        if error.name != "PIL":
            raise
        msg = "the corruption 'jpeg' needs Pillow: pip install 'abstain[benchmark]'"
        raise InputError(msg) from None
    pixels = np.round(255 * pictures).astype(np.uint8)
    out = np.empty_like(pixels)
    for picture, found in zip(pixels, out, strict=True):
        file = io.BytesIO()
        levels = picture[0] if len(picture) == 1 else picture.transpose(1, 2, 0)
        options = {} if len(picture) == 1 else {"subsampling": "4:2:0"}
        Image.fromarray(levels).save(file, "JPEG", quality=int(quality), **options)
        with Image.open(file) as back:
            read = np.asarray(back)
        found[:] = read if len(picture) == 1 else read.transpose(2, 0, 1)
    return (out / np.float32(255)).astype(np.float32)


DIGITAL = (
    Corruption(
        "brightness",
        "brightness",
        "digital",
        "The same amount of light on every pixel; hue and saturation stay.",
        {"added": (0.03, 0.06, 0.11, 0.19, 0.34)},
        _brightness,
    ),
    Corruption(
        "contrast",
        "contrast",
        "digital",
        "Every pixel moves towards the mean of its picture.",
        {"factor": (0.8, 0.67, 0.53, 0.4, 0.28)},
        _contrast,
    ),
    Corruption(
        "elastic-transform",
        "elastic transform",
        "digital",
        "The picture is bent as rubber: neighbors move nearly alike, distant places do not.",
        {"distance": (0.8, 1.2, 1.7, 2.3, 3.0)},
        _elastic,
    ),
    Corruption(
        "pixelate",
        "pixelate",
        "digital",
        "Blocks of pixels become their mean, as in a small picture that was enlarged.",
        {"share": (0.84, 0.69, 0.56, 0.44, 0.31)},
        _pixelate,
    ),
    Corruption(
        "jpeg",
        "JPEG",
        "digital",
        "The picture is compressed to a JPEG file of a low quality and read back.",
        {"quality": (50, 25, 10, 7, 3)},
        _jpeg,
    ),
)
