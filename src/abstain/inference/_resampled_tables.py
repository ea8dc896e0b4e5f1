"""Small records that both backends of resampling share."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import digamma

from abstain._foundation.arrays import sealed
from abstain.typing import FloatArray


class Tables(NamedTuple):
    """What depends on a number of samples c only, for c from 0 on.

    Attributes
    ----------
    trapezoid : ndarray
        H_c - 1/(2c), the harmonic numbers as trapezoids: its differences are the area of the
        trapezoids under 1/x with vertices at whole numbers.
    harmonic : ndarray
        H_0 + ... + H_{c-1}.
    """

    trapezoid: FloatArray
    harmonic: FloatArray


class Wanted(NamedTuple):
    """Which areas to compute besides the AUGRC.

    Attributes
    ----------
    aurc : bool
        The trapezoid AURC.
    plugin : bool
        The plug-in AURC.
    """

    aurc: bool
    plugin: bool


@lru_cache(maxsize=2)
def tables(most: int) -> Tables:
    """Tabulate up to `most` samples."""
    c = np.arange(most + 1.0)
    harmonic = digamma(c + 1.0) + np.euler_gamma
    harmonic[0] = 0.0
    trapezoid = harmonic - 0.5 / np.maximum(c, 1.0)
    trapezoid[0] = 0.0
    return Tables(sealed(trapezoid), sealed(c * harmonic - c))
