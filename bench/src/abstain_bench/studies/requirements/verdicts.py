"""Whether a metric keeps R1, R2 and R3, decided over all small systems, with counterexamples."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from abstain.metrics import Metric
from abstain.typing import FloatArray, IntArray
from abstain_bench.studies.requirements.systems import ROUNDING, Systems


class SystemPair(NamedTuple):
    """Two systems, and by how much the metric of the second is worse."""

    worsening: float
    before: int
    after: int


#: Nothing to compare.
NO_PAIR: Final = SystemPair(-np.inf, 0, 0)


@dataclass(frozen=True)
class Example:
    """A counterexample: two systems, the second no worse, and what the metric says of them.

    Of two pairs put right, `before` and `after` are these, and the values what each gains.
    """

    before: str = ""
    after: str = ""
    value_before: float = float("nan")
    value_after: float = float("nan")
    why: str = ""

    @classmethod
    def of(cls, words: Iterable[str], values: Iterable[float], why: str) -> "Example":
        """Return one of two words and two values."""
        (before, after), (first, second) = words, values
        return cls(before, after, first, second, why)


@dataclass(frozen=True)
class Decided:
    """What was found of one reading of a requirement."""

    #: Samples of the example; of what holds, the most of which all was tried; 0 if undefined.
    n: int
    #: What breaks it; None where it holds.
    example: Example | None = None

    @property
    def verdict(self) -> str:
        """What is written of it."""
        if self.example is not None:
            return "broken"
        return "holds" if self.n else "cannot tell"

    @property
    def holds(self) -> bool | None:
        """Whether nothing breaks it; None where the metric was undefined for all."""
        return None if self.verdict == "cannot tell" else self.example is None


def shown(
    metric: Metric, systems: Systems, value: FloatArray, pair: SystemPair, why: str
) -> Decided:
    """Return a counterexample as people read it: the metric as it is printed."""
    sign = 1.0 if metric.lower_is_better else -1.0
    i, j = pair.before, pair.after
    words, values = (systems.written(i), systems.written(j)), sign * value[[i, j]]
    return Decided(systems.n, Example.of(words, values.tolist(), why))


# --------------------------------------------------------------------------- R2, by the two factors
def worst_improvement(systems: Systems, value: FloatArray) -> SystemPair:
    """Return the pair in which one factor improves, the other stays, and the metric suffers most.

    Of equal accuracy the better ranking, of equal ranking the better accuracy. A ranking improves
    for one classifier, so the same number of samples of each class is wrong before and after.
    """
    return max(
        _worst(systems, value, systems.classifier, systems.ranking),
        _worst(systems, value, systems.ranked, -systems.failures),
    )


def _worst(systems: Systems, value: FloatArray, fixed: IntArray, better: IntArray) -> SystemPair:
    """Compare every two systems of one `fixed`, level by level of what becomes better."""
    found = NO_PAIR
    for group in _groups(fixed, np.flatnonzero(systems.both & np.isfinite(value))):
        best = -1
        for level in _groups(better, group):
            worst = int(level[np.argmax(value[level])])
            if best >= 0:
                found = max(found, SystemPair(float(value[worst] - value[best]), best, worst))
            own = int(level[np.argmin(value[level])])
            best = own if best < 0 or value[own] < value[best] else best
    return found


def _groups(key: IntArray, rows: IntArray) -> Iterator[IntArray]:
    """Yield the rows of each key, the lowest key first."""
    order = rows[np.argsort(key[rows], kind="stable")]
    ends = np.flatnonzero(np.diff(key[order])) + 1
    return (part for part in np.split(order, ends) if part.size)


# ------------------------------------------------------------------------------ R2, by single steps
def worst_step(systems: Systems, value: FloatArray) -> SystemPair:
    """Return the one step for the better that the metric takes worst.

    A success overtakes the failure right above it, or a wrong prediction becomes right.
    """
    return max(_worst_of(systems.swaps, value), _worst_of(systems.mends, value))


def _worst_of(pairs: IntArray, value: FloatArray) -> SystemPair:
    worse = _after_less_before(pairs, value)
    if not np.isfinite(worse).any():
        return NO_PAIR
    at = int(np.nanargmax(worse))
    return SystemPair(float(worse[at]), *(int(i) for i in pairs[at]))


def _after_less_before(pairs: IntArray, value: FloatArray) -> FloatArray:
    """Return by how much each pair gets worse; NaN where the metric is undefined or infinite."""
    known = np.where(np.isfinite(value), value, np.nan)
    return np.asarray(known[pairs[:, 1]] - known[pairs[:, 0]])


# -------------------------------------------------------------------------------------------- R1
def is_moved(systems: Systems, value: FloatArray, fixed: IntArray, moved: IntArray) -> bool:
    """Tell whether any two systems of one `fixed` and another `moved` have other values."""
    group = _on_scale(systems, fixed)
    for rows in _groups(group, np.flatnonzero(systems.both & np.isfinite(value))):
        if np.ptp(moved[rows]) and np.ptp(value[rows]) > ROUNDING:
            return True
    return False


def unmoved(systems: Systems, value: FloatArray, fixed: IntArray, moved: IntArray) -> SystemPair:
    """Return two systems of one `fixed`, as far apart in `moved` as there are."""
    group, rows = _on_scale(systems, fixed), np.flatnonzero(systems.both & np.isfinite(value))
    found = [
        part[[np.argmin(moved[part]), np.argmax(moved[part])]] for part in _groups(group, rows)
    ]
    apart = [int(moved[j] - moved[i]) for i, j in found]
    if not any(apart):
        return NO_PAIR
    i, j = found[int(np.argmax(apart))]
    return SystemPair(0.0, i, j)


def _on_scale(systems: Systems, fixed: IntArray) -> IntArray:
    return np.asarray(2 * fixed + systems.scale)


# -------------------------------------------------------------------------------------------- R3
def uneven_gain(metric: Metric, systems: Systems, value: FloatArray) -> Decided | None:
    """Return two pairs of which putting one right gains another amount, or nothing."""
    swaps = systems.swaps
    gain = -_after_less_before(swaps, value)
    group = _on_scale(systems, systems.classifier)[swaps[:, 0]]
    parts = list(_groups(group, np.flatnonzero(np.isfinite(gain))))
    ends = [(int(p[np.argmin(gain[p])]), int(p[np.argmax(gain[p])])) for p in parts]
    if not ends:
        return None
    least = min((low for low, _ in ends), key=lambda at: gain[at])
    if gain[least] <= ROUNDING:
        pair = SystemPair(0.0, *(int(i) for i in swaps[least]))
        return shown(metric, systems, value, pair, "putting this pair right gains nothing")
    low, high = max(ends, key=lambda pair: gain[pair[1]] - gain[pair[0]])
    if gain[high] - gain[low] <= ROUNDING:
        return None
    words = [" to ".join(systems.written(int(i)) for i in swaps[at]) for at in (high, low)]
    why = "of the same classifier, the first pair put right gains more than the second"
    return Decided(systems.n, Example.of(words, gain[[high, low]].tolist(), why))


# -------------------------------------------------------------------------------------- all three
#: What a system improves in, and what stays.
Factor = Callable[[Systems], IntArray]

_FACTORS: Final[dict[str, tuple[Factor, Factor]]] = {
    "the accuracy": (lambda s: s.ranked, lambda s: -s.failures),
    "the ranking": (lambda s: s.classifier, lambda s: s.ranking),
}


class Readings:
    """What is known of a metric so far, as it is shown more and more systems.

    Each reading is open until a system decides it.
    """

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self.found: dict[str, Decided] = {}
        #: The factors that did not move it yet, with two systems that are the same to it.
        self.still: dict[str, Decided | None] = dict.fromkeys(_FACTORS)
        self.tried = 0

    @property
    def decided(self) -> bool:
        """Whether nothing is left to try."""
        return not self.still and len(self.found) == len(FOR_ALL)

    def see(self, systems: Systems) -> None:
        """Try all systems of one size."""
        value = systems.badness(self.metric)
        if not np.isfinite(value).any():
            return
        for reading, broken in FOR_ALL.items():
            if reading not in self.found and (found := broken(self.metric, systems, value)):
                self.found[reading] = found
        for factor in tuple(self.still):
            self._look_at(factor, systems, value)
        self.tried = systems.n if systems.all_orders else self.tried or systems.n

    def _look_at(self, factor: str, systems: Systems, value: FloatArray) -> None:
        fixed, moved = (of(systems) for of in _FACTORS[factor])
        if is_moved(systems, value, fixed, moved):
            del self.still[factor]
            return
        pair = unmoved(systems, value, fixed, moved)
        if self.still[factor] is None and pair is not NO_PAIR:
            why = f"{factor} does not move it while the other factor stays"
            self.still[factor] = shown(self.metric, systems, value, pair, why)

    def closed(self) -> dict[str, Decided]:
        """Return the readings, those that nothing broke as kept."""
        kept = Decided(self.tried)
        same = [finding for finding in self.still.values() if finding is not None]
        both = {COMPLETE: same[0] if same else kept}
        return both | {reading: self.found.get(reading, kept) for reading in FOR_ALL}


def _by_factor(*, strictly: bool) -> Callable[[Metric, Systems, FloatArray], Decided | None]:
    return _breaks(worst_improvement, "a factor improves, the other stays", strictly=strictly)


def _by_step(*, strictly: bool) -> Callable[[Metric, Systems, FloatArray], Decided | None]:
    return _breaks(worst_step, "one step for the better", strictly=strictly)


def _breaks(
    search: Callable[[Systems, FloatArray], SystemPair], said: str, *, strictly: bool
) -> Callable[[Metric, Systems, FloatArray], Decided | None]:
    def broken(metric: Metric, systems: Systems, value: FloatArray) -> Decided | None:
        pair = search(systems, value)
        if pair.worsening <= (-ROUNDING if strictly else ROUNDING):
            return None
        how = "it gets worse" if pair.worsening > ROUNDING else "it does not move"
        return shown(metric, systems, value, pair, f"{said}: {how}")

    return broken


#: Readings that every system must meet, and what looks for one that does not.
COMPLETE, PAIRS = "both factors move it", "all pairs count alike"
NEVER_WORSE, BETTER = "never worse", "always better"
STEP_NEVER_WORSE, STEP_BETTER = "one step: never worse", "one step: always better"
FOR_ALL: Final = {
    NEVER_WORSE: _by_factor(strictly=False),
    BETTER: _by_factor(strictly=True),
    STEP_NEVER_WORSE: _by_step(strictly=False),
    STEP_BETTER: _by_step(strictly=True),
    PAIRS: uneven_gain,
}
