"""Which predictions were counted, by their ids, so that none is counted twice."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from abstain._foundation.arrays import read_only
from abstain.errors import DomainError
from abstain.typing import Array, FloatArray, IntArray

#: Bits of a flag: the prediction is answered; its label was seen.
ANSWERED: Final = 1
LABELED: Final = 2

#: What is no name, though it can be written as a text.
_NO_NAMES: Final = (bool, np.bool_, float, np.floating)

#: At least so many rows are added before all are sorted again, and reserved at a time.
_MAX_RECENT: Final = 4096
_MIN_ROOM: Final = 1024


@dataclass(frozen=True, eq=False)
class Ledger:
    """The most recent predictions: their ids and what is known of each.

    Attributes
    ----------
    keys : ndarray of shape (n,)
        A 64-bit hash of each id, in order of arrival.
    flags : ndarray of shape (n,)
        Sums of `ANSWERED` and `LABELED`.
    answers : ndarray of shape (n,)
        A hash of each predicted class; 0 if the prediction has no class.
    first : int
        Number of predictions that arrived before the first remembered one.
    index : SortedKeys or None
        The sorted keys of the first rows. It is derived from `keys`, and not saved.

    Examples
    --------
    >>> from abstain.monitoring.ledger import Ledger, LedgerWriter, hash_names
    >>> writer = LedgerWriter(Ledger.empty())
    >>> for key, flags in zip(hash_names(["a", "b"], 0)[:, 0].tolist(), [1, 0]):
    ...     writer.append(key, flags, 0)
    >>> [writer.find(key, -1) for key in hash_names(["b", "c"], 0)[:, 0].tolist()]
    [1, -1]
    """

    keys: Array
    flags: Array
    answers: Array
    first: int = 0
    index: "SortedKeys | None" = None

    @classmethod
    def empty(cls) -> "Ledger":
        """Return a ledger without predictions."""
        return cls(np.zeros(0, np.uint64), np.zeros(0, np.uint8), np.zeros(0, np.uint64))

    @property
    def end(self) -> int:
        """Number of predictions that have arrived."""
        return self.first + int(self.keys.size)

    def last(self, count: int) -> "Ledger":
        """Return the ledger of the last `count` predictions."""
        if self.keys.size <= count:
            return self
        cut = self.keys.size - count
        keys, flags, answers = (x[cut:].copy() for x in (self.keys, self.flags, self.answers))
        return Ledger(read_only(keys), read_only(flags), read_only(answers), self.first + cut)


@dataclass(frozen=True, eq=False)
class SortedKeys:
    """Keys in ascending order, with the row of each."""

    keys: Array
    rows: IntArray

    @classmethod
    def from_keys(cls, keys: Array) -> "SortedKeys":
        """Sort the keys; equal keys stay in order of arrival."""
        rows = np.argsort(keys, kind="stable")
        return cls(read_only(keys[rows]), read_only(rows))

    def find_rows(self, keys: Array) -> IntArray:
        """Return the row of each key, the last of equal ones; -1 if there is none."""
        if not self.keys.size:
            return np.full(keys.size, -1, np.int64)
        position = np.searchsorted(self.keys, keys, "right") - 1
        is_present = (position >= 0) & (self.keys[np.maximum(position, 0)] == keys)
        return np.where(is_present, self.rows[np.maximum(position, 0)], -1)


class LedgerWriter:
    """A ledger that grows in place, so that a row costs the same however many there are.

    Rows in the sorted index are found by binary search, rows added later by a dictionary. The index
    is rebuilt if a sixteenth of the rows are newer, so that its cost per row is constant.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._load(ledger)

    def _load(self, ledger: Ledger) -> None:
        self._columns: tuple[Array, ...] = (ledger.keys, ledger.flags, ledger.answers)
        #: Whether the arrays belong to a frozen ledger and must be copied before a change.
        self._is_shared = True
        self._first, self._n_rows = ledger.first, int(ledger.keys.size)
        self._index = ledger.index or SortedKeys.from_keys(ledger.keys)
        n_indexed = self._index.keys.size
        newer = ledger.keys[n_indexed:].tolist()
        self._recent = {key: n_indexed + i for i, key in enumerate(newer)}

    @property
    def end(self) -> int:
        """Number of predictions that have arrived."""
        return self._first + self._n_rows

    def find_indexed(self, keys: Array) -> list[int]:
        """Return the number of each prediction in the sorted index, from 0 on; -1 if not there."""
        rows = self._index.find_rows(keys)
        found: list[int] = np.where(rows >= 0, rows + self._first, -1).tolist()
        return found

    def find(self, key: int, indexed: int) -> int:
        """Return the number of a prediction, from 0 on; -1 if unknown.

        `indexed` is its number in the sorted index, see `find_indexed`.
        """
        row = self._recent.get(key)
        return indexed if row is None else row + self._first

    def append(self, key: int, flags: int, answer: int) -> None:
        """Add a prediction."""
        if self._is_shared or self._n_rows == self._columns[0].size:
            self._reserve()
        row = self._n_rows
        for column, value in zip(self._columns, (key, flags, answer), strict=True):
            column[row] = value
        self._recent[key] = row
        self._n_rows = row + 1

    def flags_and_answer(self, number: int) -> tuple[int, int]:
        """Return the flags of a remembered prediction and the hash of its class."""
        row = number - self._first
        return int(self._columns[1][row]), int(self._columns[2][row])

    def mark_labeled(self, number: int) -> None:
        """Record that the label of a remembered prediction has arrived."""
        if self._is_shared:
            self._reserve()
        self._columns[1][number - self._first] |= LABELED

    def maintain(self, remember: int) -> None:
        """Forget all but the last `remember` predictions and rebuild the index, if it is due."""
        if self._n_rows > remember + remember // 4:
            self._load(self.freeze().last(remember))
        elif len(self._recent) > _MAX_RECENT + self._n_rows // 16:
            self._index = SortedKeys.from_keys(self._columns[0][: self._n_rows])
            self._recent = {}

    def freeze(self) -> Ledger:
        """Return a ledger that does not change."""
        keys, flags, answers = (column[: self._n_rows] for column in self._columns)
        if not self._is_shared:
            keys, flags, answers = (read_only(x.copy()) for x in (keys, flags, answers))
        return Ledger(keys, flags, answers, self._first, self._index)

    def _reserve(self) -> None:
        """Copy the rows into arrays with room for more."""
        size = self._n_rows + max(self._n_rows // 8, _MIN_ROOM)
        larger = tuple(np.zeros(size, column.dtype) for column in self._columns)
        for column, copy in zip(self._columns, larger, strict=True):
            copy[: self._n_rows] = column[: self._n_rows]
        self._columns, self._is_shared = larger, False


def hash_names(names: Sequence[object], seed: int) -> Array:
    """Return four numbers of 64 bits for each name: a key, and three to draw uniform numbers of.

    They depend on the name and the seed alone, so that a restart draws the same. A number with a
    point is refused: 1.0 and 1 would be two names, and NaN the class of all that is not known.
    """
    for i, name in enumerate(names):
        if isinstance(name, _NO_NAMES) or name is None or name == "":
            raise DomainError(
                "ids and classes must be texts that are not empty, or whole numbers, so that each "
                f"is written in one way; got {name!r} at index {i}"
            )
    salt = seed.to_bytes(8, "little", signed=False)
    said = (str(name).encode("utf-8", "surrogatepass") for name in names)
    made = b"".join(hashlib.blake2b(x, digest_size=32, key=salt).digest() for x in said)
    return np.frombuffer(made, dtype="<u8").astype(np.uint64).reshape(-1, 4)


def to_uniform(numbers: Array) -> FloatArray:
    """Return numbers of 64 bits as numbers in [0, 1)."""
    return (numbers >> np.uint64(11)).astype(np.float64) * 2.0**-53
