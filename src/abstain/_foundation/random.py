"""Random generators: made here from `rng`, so that the global state is never touched."""

import numpy as np

from abstain.errors import InputError


def generator(rng: int | np.random.Generator | None) -> np.random.Generator:
    """Return a Generator from a seed, a Generator (used as it is) or None (fresh entropy)."""
    if isinstance(rng, np.random.Generator):
        return rng
    if rng is not None and (isinstance(rng, bool) or not isinstance(rng, int | np.integer)):
        msg = f"`rng` must be an integer seed, a numpy.random.Generator or None; got {rng!r}"
        raise InputError(msg)
    return np.random.default_rng(rng)
