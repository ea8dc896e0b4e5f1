"""The steps of resampling that exist twice, in NumPy and compiled, and which of them serve."""

import os
from functools import cache
from importlib import import_module
from typing import Any, Protocol, cast

from abstain._foundation.extras import has
from abstain.inference.resampling import plain
from abstain.inference.resampling.order import Ordered
from abstain.inference.resampling.series import CountSeries, Rest, WantedAreas
from abstain.typing import Array, FloatArray

#: Below this many (score, resample, sample) triples NumPy is done before numba has started.
COMPILED_FROM = 1 << 27


class Kernels(Protocol):
    """What both modules offer.

    Areas are returned as total weight, risk, AUGRC, AURC and plug-in AURC, shape (5, b).
    """

    def tally(self, drawn: Array, counts: Array, first: int) -> Array:
        """Count the units drawn, (r, k), into the columns from `first` on; widen if needed."""
        ...

    def prepare(self, counts: Array) -> Any:
        """Bring counts of shape (n, b) into the form that the areas are computed from."""
        ...

    def failures_only(
        self, block: Any, one: Ordered, tables: CountSeries, wanted: WantedAreas, rest: Rest
    ) -> FloatArray:
        """Return the areas of 0/1 losses without weights."""
        ...

    def every_sample(
        self, block: Any, one: Ordered, tables: CountSeries, wanted: WantedAreas
    ) -> FloatArray:
        """Return the areas of any losses and weights."""
        ...


NUMPY = cast("Kernels", plain)


def kernels(work: float = float("inf")) -> Kernels:
    """Return the compiled kernels, or those of NumPy.

    NumPy serves without numba, if ABSTAIN_NO_NUMBA is 1, and for little work.
    """
    if work < COMPILED_FROM or os.environ.get("ABSTAIN_NO_NUMBA") == "1":
        return NUMPY
    return _compiled()


@cache
def _compiled() -> Kernels:
    if not has("numba"):
        return NUMPY
    try:
        # Not an import statement: numba takes 0.3 s, which only the first use should pay.
        return cast("Kernels", import_module("abstain.inference.resampling.compiled"))
    except ImportError:
        # Installed but unusable, say beside a NumPy it does not know: NumPy does the work.
        return NUMPY
