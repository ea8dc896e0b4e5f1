"""Define the state of a monitor: recent predictions, watches, requested labels and alarms."""

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from abstain._foundation.arrays import read_only
from abstain.errors import DomainError
from abstain.inference.wager import Wager
from abstain.typing import Array, FloatArray, IntArray

#: Bits of the flags of a prediction: it is answered, and its label has arrived.
ANSWERED: Final = 1
LABELED: Final = 2

#: Types that are rejected as names, although they can be converted to text.
_NO_NAMES: Final = (bool, np.bool_, float, np.floating)

#: Minimum number of new predictions before the index is rebuilt, and minimum size of the reserve.
_MAX_RECENT: Final = 4096
_MIN_ROOM: Final = 1024


@dataclass(frozen=True, eq=False)
class Ledger:
    """The most recent predictions, with their ids, flags and classes.

    Attributes
    ----------
    keys : ndarray of shape (n,)
        Hash of each id, with 64 bits, in order of arrival.
    flags : ndarray of shape (n,)
        Sums of the bits `ANSWERED` and `LABELED`.
    answers : ndarray of shape (n,)
        Hash of each predicted class, or 0 if the prediction has no class.
    first : int
        Number of predictions that arrived before the first remembered prediction.
    index : SortedKeys or None
        Sorted keys of the older predictions. The index is computed from `keys` and is not saved.

    Examples
    --------
    >>> from abstain.monitoring.state import Ledger, LedgerWriter, hash_names
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
        """Return a ledger with the last `count` predictions."""
        if self.keys.size <= count:
            return self
        n_dropped = self.keys.size - count
        return Ledger(
            read_only(self.keys[n_dropped:].copy()),
            read_only(self.flags[n_dropped:].copy()),
            read_only(self.answers[n_dropped:].copy()),
            self.first + n_dropped,
        )


@dataclass(frozen=True, eq=False)
class SortedKeys:
    """Keys in ascending order, and the row of each key in the ledger."""

    keys: Array
    rows: IntArray

    @classmethod
    def from_keys(cls, keys: Array) -> "SortedKeys":
        """Sort the keys. Rows with equal keys are in the order of arrival."""
        rows = np.argsort(keys, kind="stable")
        return cls(read_only(keys[rows]), read_only(rows))

    def find_rows(self, keys: Array) -> IntArray:
        """Return the last row with each key, or -1 if no row has the key."""
        if not self.keys.size:
            return np.full(keys.size, -1, np.int64)
        position = np.searchsorted(self.keys, keys, "right") - 1
        is_present = (position >= 0) & (self.keys[np.maximum(position, 0)] == keys)
        return np.where(is_present, self.rows[np.maximum(position, 0)], -1)


class LedgerWriter:
    """A mutable ledger, to which predictions are added at a constant cost.

    A sorted index contains older predictions, and a dictionary contains newer predictions.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._load(ledger)

    def _load(self, ledger: Ledger) -> None:
        """Load a ledger without copying its arrays, and index its predictions."""
        self._columns: tuple[Array, ...] = (ledger.keys, ledger.flags, ledger.answers)
        #: Whether the arrays belong to a frozen ledger and must be copied before a change.
        self._is_shared = True
        self._first = ledger.first
        self._n_rows = int(ledger.keys.size)
        self._index = ledger.index or SortedKeys.from_keys(ledger.keys)
        n_indexed = self._index.keys.size
        newer = ledger.keys[n_indexed:].tolist()
        self._recent = {key: n_indexed + i for i, key in enumerate(newer)}

    @property
    def end(self) -> int:
        """Number of predictions that have arrived."""
        return self._first + self._n_rows

    def find_indexed(self, keys: Array) -> list[int]:
        """Return the number of each prediction, counted from 0, or -1 if it is not indexed."""
        rows = self._index.find_rows(keys)
        numbers: list[int] = np.where(rows >= 0, rows + self._first, -1).tolist()
        return numbers

    def find(self, key: int, indexed: int) -> int:
        """Return the number of a prediction, counted from 0, or -1 if it is unknown.

        `indexed` is the result of `find_indexed` for this prediction.
        """
        row = self._recent.get(key)
        if row is None:
            return indexed
        return row + self._first

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
        """Remove old predictions or rebuild the index, if enough predictions were added."""
        if self._n_rows > remember + remember // 4:
            self._load(self.freeze().last(remember))
        elif len(self._recent) > _MAX_RECENT + self._n_rows // 16:
            self._index = SortedKeys.from_keys(self._columns[0][: self._n_rows])
            self._recent = {}

    def freeze(self) -> Ledger:
        """Return an immutable ledger."""
        columns = [column[: self._n_rows] for column in self._columns]
        if not self._is_shared:
            columns = [read_only(column.copy()) for column in columns]
        keys, flags, answers = columns
        return Ledger(keys, flags, answers, self._first, self._index)

    def _reserve(self) -> None:
        """Copy the predictions into larger arrays."""
        size = self._n_rows + max(self._n_rows // 8, _MIN_ROOM)
        larger_columns = []
        for column in self._columns:
            larger = np.zeros(size, column.dtype)
            larger[: self._n_rows] = column[: self._n_rows]
            larger_columns.append(larger)
        self._columns = tuple(larger_columns)
        self._is_shared = False


def hash_names(names: Sequence[object], seed: int) -> Array:
    """Return four 64-bit hashes of each name, which depend only on the name and the seed.

    The first hash identifies the name, and the others serve as random numbers.
    """
    # Floats are rejected, because 1.0 and 1 would be different names.
    for i, name in enumerate(names):
        if isinstance(name, _NO_NAMES) or name is None or name == "":
            raise DomainError(
                "ids and classes must be texts that are not empty, or whole numbers, so that each "
                f"is written in one way; got {name!r} at index {i}"
            )
    salt = seed.to_bytes(8, "little", signed=False)
    digests = []
    for name in names:
        encoded_name = str(name).encode("utf-8", "surrogatepass")
        digests.append(hashlib.blake2b(encoded_name, digest_size=32, key=salt).digest())
    numbers = np.frombuffer(b"".join(digests), dtype="<u8")
    return numbers.astype(np.uint64).reshape(-1, 4)


def to_uniform(numbers: Array) -> FloatArray:
    """Convert 64-bit numbers to numbers in [0, 1)."""
    return (numbers >> np.uint64(11)).astype(np.float64) * 2.0**-53


#: Names of the watches, in the order of all tables.
WATCHES: Final = ("coverage", "confidence", "risk")
WatchName = Literal["coverage", "confidence", "risk"]

#: Number of values over which `recent_mean` averages.
RECENT: Final = 200


@dataclass(frozen=True)
class Alarm:
    """An alarm that a watch raised.

    Attributes
    ----------
    watch : {"coverage", "confidence", "risk"}
        The watch that raised the alarm.
    n_predictions : int
        Number of predictions at the time of the alarm.
    reason : str
        Sentence that explains the alarm with its numbers.
    acknowledged : bool
        Whether the watch was reset after the alarm.

    Examples
    --------
    >>> from abstain.monitoring import Alarm
    >>> Alarm("risk", 40, "too high").line
    'ALARM risk: too high'
    """

    watch: WatchName
    n_predictions: int
    reason: str
    acknowledged: bool = False

    @property
    def line(self) -> str:
        """One-line description of the alarm for logs, which begins with "ALARM"."""
        return f"ALARM {self.watch}: {self.reason}"


@dataclass(frozen=True)
class WatchTally:
    """Counts of a watch since its start or last reset.

    Attributes
    ----------
    n : int
        Number of values.
    total : float
        Sum of the values.
    recent_mean : float
        Mean of about the last 200 values, with exponentially decreasing weights.
    """

    n: int = 0
    total: float = 0.0
    recent_mean: float = 0.0

    @property
    def mean(self) -> float:
        """Mean of the values, or NaN without values."""
        return self.total / self.n if self.n else float("nan")

    def after(self, value: float) -> "WatchTally":
        """Return the counts after one more value."""
        n = self.n + 1
        return WatchTally(
            n, self.total + value, self.recent_mean + (value - self.recent_mean) / min(n, RECENT)
        )


@dataclass(frozen=True, eq=False)
class Watch:
    """A sequential test of one quantity, since its start or last reset.

    Attributes
    ----------
    name : {"coverage", "confidence", "risk"}
        Quantity that is tested.
    wager : Wager or None
        State of the bets, or None if the watch is inactive.
    alarm_capital : float
        Capital at which an alarm is raised, the inverse of the probability of a false alarm.
    tally : WatchTally
        Counts of the values that the watch tests: acceptances, p-values of confidences, or losses.
    has_alarm : bool
        Whether the watch has raised an alarm that was not acknowledged.
    since : int
        Number of predictions before the start or last reset.
    """

    name: WatchName
    wager: Wager | None
    alarm_capital: float
    tally: WatchTally = WatchTally()
    has_alarm: bool = False
    since: int = 0

    @property
    def capital(self) -> float:
        """Capital of the bets, which is 1 at the start and NaN if the watch is inactive."""
        return float("nan") if self.wager is None else float(self.wager.capital.mean())

    @property
    def state(self) -> Literal["off", "quiet", "alarm"]:
        """Whether the watch is inactive ("off"), has no alarm ("quiet") or has an alarm."""
        if self.wager is None:
            return "off"
        return "alarm" if self.has_alarm else "quiet"


#: Number of columns of an item in an archive.
COLUMNS = 5
#: Number of sums from which the estimates are computed.
TERMS = 7


@dataclass(slots=True)
class RequestItem:
    """An answer, and whether its label was requested."""

    #: Number of the prediction, counted from 0.
    number: int
    #: Predicted probability of a failure.
    predicted: float
    #: Probability with which the label is requested.
    probability: float
    is_requested: bool
    #: Loss, or NaN until the label arrives.
    loss: float
    #: Id of the prediction if its label is requested, otherwise an empty text.
    name: str = ""

    @property
    def is_waiting(self) -> bool:
        """Whether the label is requested and has not arrived."""
        return self.is_requested and math.isnan(self.loss)


@dataclass(frozen=True, eq=False)
class Requests:
    """The answers that are not counted yet, and sums over all counted answers.

    Answers are counted in the order of their predictions, up to the first answer whose label is
    still missing. The order in which labels arrive has therefore no effect. An answer is complete
    if its label has arrived or was not requested.

    Attributes
    ----------
    items : ndarray of shape (k, 5)
        Number, predicted failure probability, request probability, whether the label is requested,
        and loss of each answer.
    names : tuple of str
        Id of each answer, or an empty text if its label is not requested.
    sums : ndarray of shape (7,)
        Sums of `sum_terms` over all earlier answers.
    n, labeled, missing : int
        Number of settled answers, number of settled answers with a label, and number of answers
        with a missing label.
    """

    items: FloatArray
    names: tuple[str, ...]
    sums: FloatArray
    n: int = 0
    labeled: int = 0
    missing: int = 0

    @classmethod
    def empty(cls) -> "Requests":
        """Return the requests of a new monitor."""
        return cls(np.zeros((0, COLUMNS)), (), np.zeros(TERMS))

    def iter_items(self) -> Iterator[RequestItem]:
        """Yield the answers as mutable records."""
        for row, name in zip(self.items.tolist(), self.names, strict=True):
            yield RequestItem(int(row[0]), row[1], row[2], bool(row[3]), row[4], name)

    @property
    def n_waiting(self) -> int:
        """Number of requested labels that have not arrived."""
        return int((self.items[:, 3].astype(bool) & np.isnan(self.items[:, 4])).sum())

    def mean_sums(self) -> FloatArray:
        """Return the sums for `estimates_from_sums` in `prediction_powered_mean`, shape (2, 2)."""
        # If labels are missing, the weights of the other labels are divided by the share of labels
        # that arrived. The estimates are unbiased if the arrival of a label is independent of its
        # value.
        share = 1.0
        if self.missing:
            share = self.labeled / (self.labeled + self.missing)
        # The names are those in `sum_terms`.
        p, pp, d, dd, pd, m, mm = self.sums.tolist()
        powered_sum = p + d / share
        powered_squares = pp + 2 * pd / share + dd / share**2
        return np.array([[powered_sum, powered_squares], [m / share, mm / share**2]])


def sum_terms(predicted: float, correction: float, weighted_loss: float) -> tuple[float, ...]:
    """Return the terms of one answer in `Requests.sums`.

    The terms are products of the predicted failure probability p, the correction d of p by the
    label, and the loss m weighted by the inverse request probability.
    """
    p = predicted
    d = correction
    m = weighted_loss
    return p, p * p, d, d * d, p * d, m, m * m


def items_to_array(items: "list[RequestItem]") -> tuple[FloatArray, tuple[str, ...]]:
    """Return the answers as an array, and their ids as a tuple."""
    rows = [
        [item.number, item.predicted, item.probability, item.is_requested, item.loss]
        for item in items
    ]
    names = tuple(item.name for item in items)
    return np.array(rows, np.float64).reshape(-1, COLUMNS), names


@dataclass(frozen=True)
class Counts:
    """Counts of predictions and labels that were ignored.

    Attributes
    ----------
    replayed : int
        Number of predictions whose id was already known.
    repeated : int
        Number of labels of predictions that already had a label.
    abstained : int
        Number of labels of rejected predictions, which a selective risk ignores.
    unasked : int
        Number of labels that arrived but were not requested, if labels are requested.
    """

    replayed: int = 0
    repeated: int = 0
    abstained: int = 0
    unasked: int = 0


@dataclass(frozen=True, eq=False)
class MonitorState:
    """The observations of a monitor.

    Attributes
    ----------
    ledger : Ledger
        Predictions that were counted.
    requests : Requests
        Labels that were requested.
    watches : tuple of Watch
        Watches of the coverage, the confidences and the risk.
    counts : Counts
        Counts of predictions and labels that do not affect the results.
    urn : ndarray or None
        Number of confidences in each block of the calibration data, including those of predictions.
    early : tuple
        Labels whose predictions have not arrived yet.
    history : tuple of tuple of float
        Points of the history. See `abstain.monitoring.running.RunningMonitor.point`.
    events : int
        Number of accepted predictions and labels.
    stride : int
        Number of events between two points of the history.
    alarms : tuple of Alarm
        All alarms, including acknowledged alarms.
    """

    ledger: Ledger
    requests: Requests
    watches: tuple[Watch, ...]
    counts: Counts = Counts()
    urn: IntArray | None = None
    early: tuple[tuple[int, tuple[float, int]], ...] = ()
    history: tuple[tuple[float, ...], ...] = ()
    events: int = 0
    stride: int = 16
    alarms: tuple[Alarm, ...] = ()
