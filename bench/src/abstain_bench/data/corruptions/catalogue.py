"""`Corruption`, the catalogue of them, and `corrupt`, which applies one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from abstain._foundation import checks
from abstain._foundation.arrays import to_numpy
from abstain._foundation.catalogue import Catalogue
from abstain._foundation.random import as_generator
from abstain.errors import DomainError, InputError, ShapeError
from abstain.typing import AnyArray, Rng

#: float32 of shape (n, channels, height, width), or a part of that.
Pictures: TypeAlias = NDArray[np.float32]

#: How many strengths each corruption has.
SEVERITIES = 5

Group = Literal["noise", "blur", "weather", "digital"]


@dataclass(frozen=True)
class Corruption:
    """A way to spoil images, in five strengths.

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

#: Images at a time: what they need stays in the cache of a core.
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
    found = to_numpy(pictures, "pictures")
    if found.ndim != 4 or not found.size:
        raise ShapeError(
            f"`pictures` must have axes (n, channels, height, width); got shape {found.shape}"
        )
    if found.shape[1] not in {1, 3}:
        raise ShapeError(
            f"`pictures` must have 1 or 3 channels, on the second axis; got shape {found.shape}"
        )
    if min(found.shape[2:]) < _SHORTEST:
        raise ShapeError(
            f"`pictures` must have sides of at least {_SHORTEST} pixels; got {found.shape[2:]}"
        )
    if found.dtype.kind != "f":
        raise DomainError(
            f"`pictures` must be floats from 0 to 1; got {found.dtype}. Divide bytes by 255."
        )
    checks.unit_interval(checks.finite(found, "pictures"), "pictures", hint="Divide bytes by 255.")
    return np.ascontiguousarray(found, dtype=np.float32)
