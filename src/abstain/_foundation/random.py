"""Randomness by argument only: a seed or a generator in, a generator out, no global state."""

from zlib import crc32

import numpy as np

from abstain.errors import InputError
from abstain.typing import Rng


def as_generator(rng: Rng) -> np.random.Generator:
    """Return the generator that `rng` asks for; None draws fresh entropy."""
    if isinstance(rng, np.random.Generator):
        return rng
    if rng is None:
        return np.random.default_rng()
    given: object = rng
    if isinstance(given, bool) or not isinstance(given, int | np.integer) or given < 0:
        raise InputError(
            f"`rng` must be a seed (an integer of at least 0), a Generator or None; got {given!r}"
        )
    return np.random.default_rng(int(given))


def as_seed(rng: Rng) -> int:
    """Return a seed that can be stored and told: the one given, or one that `rng` draws."""
    if rng is None or isinstance(rng, np.random.Generator):
        return int(as_generator(rng).integers(2**63))
    as_generator(rng)  # refuses what is no seed
    return int(rng)


def named_generator(seed: int, name: str) -> np.random.Generator:
    """Return the generator of one of several parts, whatever the others are and their order."""
    return np.random.default_rng((seed, crc32(name.encode())))
