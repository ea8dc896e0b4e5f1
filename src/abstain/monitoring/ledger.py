"""Which predictions were counted, by their ids, so that none is counted twice."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from abstain._foundation.arrays import sealed
from abstain.errors import DomainError
from abstain.typing import Array, FloatArray, IntArray

#: Bits of a flag: the prediction is answered; its label was seen.
ANSWERED: Final = 1
LABELED: Final = 2

#: What is no name, though it can be written as a text.
_NO_NAMES: Final = (bool, np.bool_, float, np.floating)

#: So many rows may be added before all are sorted again.
_LOOSE: Final = 4096


@dataclass(frozen=True, eq=False)
class Ledger:
    """The last predictions: who they are, and what is known of them.

    Attributes
    ----------
    keys : ndarray of shape (n,)
        A hash of 64 bits of each id, in the order of arrival.
    flags : ndarray of shape (n,)
        Sums of `ANSWERED` and `LABELED`.
    answers : ndarray of shape (n,)
        A hash of each predicted class; 0 where it was not said.
    first : int
        How many predictions came before the first that is kept.

    Examples
    --------
    >>> from abstain.monitoring.ledger import Ledger, keys_of
    >>> ledger = Ledger.empty().with_rows(keys_of(["a", "b"], 0)[:, 0], [1, 0], [0, 0])
    >>> ledger.places(keys_of(["b", "c"], 0)[:, 0]).tolist()
    [1, -1]
    """

    keys: Array
    flags: Array
    answers: Array
    first: int = 0
    #: Places of the first rows, by their keys.
    order: IntArray | None = None

    @classmethod
    def empty(cls) -> "Ledger":
        """Return one without predictions."""
        return cls(np.zeros(0, np.uint64), np.zeros(0, np.uint8), np.zeros(0, np.uint64))

    @property
    def end(self) -> int:
        """How many predictions came in all."""
        return self.first + int(self.keys.size)

    def with_rows(self, keys: Any, flags: Any, answers: Any) -> "Ledger":
        """Return the ledger with more predictions."""
        added = replace(
            self,
            keys=sealed(np.concatenate([self.keys, np.asarray(keys, np.uint64)])),
            flags=sealed(np.concatenate([self.flags, np.asarray(flags, np.uint8)])),
            answers=sealed(np.concatenate([self.answers, np.asarray(answers, np.uint64)])),
        )
        loose = added.keys.size - (0 if self.order is None else self.order.size)
        if loose <= _LOOSE + added.keys.size // 8:
            return added
        return replace(added, order=sealed(np.argsort(added.keys, kind="stable")))

    def places(self, keys: Array) -> IntArray:
        """Return the number of each prediction, counted from the first of all; -1 if unknown."""
        settled = 0 if self.order is None else self.order.size
        loose = self.keys[settled:]
        found = _found(self._loose_order, loose, keys)
        found = np.where(found >= 0, found + settled, -1)
        if self.order is not None:
            found = np.where(found >= 0, found, _found(self.order, self.keys, keys))
        return np.where(found >= 0, found + self.first, -1)

    @cached_property
    def _loose_order(self) -> IntArray:
        settled = 0 if self.order is None else self.order.size
        return np.argsort(self.keys[settled:], kind="stable")

    def labeled(self, places: Sequence[int]) -> "Ledger":
        """Return the ledger with the labels of these predictions noted."""
        flags = self.flags.copy()
        flags[np.asarray(places, np.int64) - self.first] |= LABELED
        return replace(self, flags=sealed(flags))

    def last(self, count: int) -> "Ledger":
        """Return the ledger of the last so many predictions."""
        if self.keys.size <= count:
            return self
        cut = self.keys.size - count
        keys, flags, answers = (x[cut:].copy() for x in (self.keys, self.flags, self.answers))
        return Ledger(sealed(keys), sealed(flags), sealed(answers), self.first + cut)


def _found(order: IntArray, keys: Array, wanted: Array) -> IntArray:
    """Return the place of each wanted key, the last of equal ones; -1 where there is none."""
    if not order.size:
        return np.full(wanted.size, -1, np.int64)
    held = keys[order]
    at = np.searchsorted(held, wanted, "right") - 1
    there = (at >= 0) & (held[np.maximum(at, 0)] == wanted)
    return np.where(there, order[np.maximum(at, 0)], -1)


def keys_of(names: Sequence[object], seed: int) -> Array:
    """Return four numbers of 64 bits for each name: a key, and three to draw uniform numbers of.

    They depend on the name and the seed alone, so that a restart draws the same. A number with a
    point is refused: 1.0 and 1 would be two names, and NaN the class of all that is not known.
    """
    for i, name in enumerate(names):
        if isinstance(name, _NO_NAMES) or name is None or name == "":
            msg = (
                "ids and classes must be texts that are not empty, or whole numbers, so that each "
                f"is written in one way; got {name!r} at index {i}"
            )
            raise DomainError(msg)
    salt = seed.to_bytes(8, "little", signed=False)
    said = (str(name).encode("utf-8", "surrogatepass") for name in names)
    made = b"".join(hashlib.blake2b(x, digest_size=32, key=salt).digest() for x in said)
    return np.frombuffer(made, dtype="<u8").astype(np.uint64).reshape(-1, 4)


def uniform(numbers: Array) -> FloatArray:
    """Return numbers of 64 bits as numbers in [0, 1)."""
    return (numbers >> np.uint64(11)).astype(np.float64) * 2.0**-53
