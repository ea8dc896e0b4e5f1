"""Create random number generators from the argument `rng`, without global state."""

from zlib import crc32

import numpy as np

from abstain.errors import InputError
from abstain.typing import Rng


def as_generator(rng: Rng) -> np.random.Generator:
    """Return a random number generator for a seed, a generator or None (random seed)."""
    if isinstance(rng, np.random.Generator):
        return rng
    if rng is None:
        return np.random.default_rng()
    seed: object = rng
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(
            f"`rng` must be a seed (an integer of at least 0), a Generator or None; got {seed!r}"
        )
    return np.random.default_rng(int(seed))


def as_seed(rng: Rng) -> int:
    """Return an integer `rng` unchanged. For a generator or None, return a random seed."""
    if rng is None or isinstance(rng, np.random.Generator):
        return int(as_generator(rng).integers(2**63))
    as_generator(rng)  # This call raises an error for an invalid seed.
    return int(rng)


def named_generator(seed: int, name: str) -> np.random.Generator:
    """Return a generator for component `name`, independent of those of other components."""
    return np.random.default_rng((seed, crc32(name.encode())))
