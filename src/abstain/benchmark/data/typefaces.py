"""Characters in many typefaces, drawn once from free fonts and shipped with the package."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Final, Literal, NamedTuple

import numpy as np

from abstain._foundation import checks
from abstain.benchmark.data.images import Images
from abstain.errors import InputError
from abstain.typing import Array, IntArray

#: What a classifier of glyphs tells apart.
LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

#: Digits that nobody can tell from a letter in every typeface, and the letter of each.
LOOK_ALIKES: Final = {"0": "O", "1": "I", "2": "Z", "5": "S", "6": "G", "8": "B", "$": "S"}

_FILE: Final = "glyph_masters.npz"


@dataclass(frozen=True)
class Family:
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
    families: tuple[Family, ...]


@lru_cache(maxsize=1)
def _masters() -> _Masters:
    place = resources.files("abstain.benchmark.data") / _FILE
    with place.open("rb") as stream, np.load(stream, allow_pickle=False) as found:
        packed = found["packed"]
        fields = ("family", "style", "role", "license", "package")
        families = tuple(
            Family(*map(str, own)) for own in zip(*(found[f] for f in fields), strict=True)
        )
        characters = "".join(found["characters"].tolist())
    levels = np.empty((*packed.shape[:-1], 2 * packed.shape[-1]), np.uint8)
    # Two pixels a byte, of 16 levels each.
    levels[..., 0::2], levels[..., 1::2] = packed >> 4, packed & 15
    levels *= 17
    levels.flags.writeable = False
    return _Masters(levels, characters, families)


def glyph_families() -> tuple[Family, ...]:
    """Return the typefaces of `glyphs`, with their licenses.

    Returns
    -------
    tuple of Family
        Those to learn from first.

    Examples
    --------
    >>> from abstain.benchmark.data import glyph_families
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
    `abstain.benchmark.training.Distortion` with ``side=32``).

    Parameters
    ----------
    role : {"train", "unseen", "style"}, default="train"
        Which typefaces, see `Family`.
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
    >>> from abstain.benchmark.data import glyphs
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
        msg = f"`characters` must be some of {known}; got {''.join(lacking) if wanted else 'none'}"
        raise InputError(msg)
    columns = [known.index(c) for c in wanted]
    labels = [LETTERS.find(c) for c in wanted]
    return _taken(levels[np.ix_(rows, columns)], labels, _numbers(rows, columns, known), copies)


def _numbers(rows: list[int], columns: list[int], known: str) -> IntArray:
    """Return the number of each master in the file."""
    numbers: IntArray = np.add.outer(np.array(rows) * len(known), np.array(columns))
    return numbers.astype(np.int64)


def _taken(levels: Array, labels: list[int], numbers: IntArray, copies: int) -> Images:
    side = levels.shape[-1]
    pixels = levels.reshape(-1, 1, side, side)
    label = np.tile(labels, len(levels))
    # Not every typeface has every symbol.
    there = np.flatnonzero(pixels.any(axis=(1, 2, 3)))
    chosen = np.tile(there, copies)
    return Images(pixels[chosen], label[chosen], tuple(LETTERS), numbers.ravel()[chosen])
