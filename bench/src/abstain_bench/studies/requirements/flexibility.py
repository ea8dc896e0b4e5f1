"""Whether a metric keeps R4 and R5: what confidence and what loss it takes, and what it sees."""

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from abstain.metrics import Metric
from abstain.typing import FloatArray
from abstain_bench.studies.requirements.systems import (
    ROUNDING,
    ShownClasses,
    Systems,
    all_systems,
    few_failures,
)
from abstain_bench.studies.requirements.verdicts import Decided, Example

#: Scores from elsewhere: increasing functions of the usual confidences g, in [0, 1] and beyond.
_SCORES: Final[dict[str, Callable[[FloatArray], FloatArray]]] = {
    "10 g - 7": lambda g: 10 * g - 7,
    "g^3": lambda g: g**3,
}

#: Two sizes of one loss, beside those of 0 and 1.
_SIZES: Final = (0.01, 0.9)

#: Systems of four samples that are looked at, of all labels evenly.
_MOST: Final = 32

#: Of the systems of twenty samples each so many is looked at.
_STEP: Final = 30

_UNDEFINED: Final = Decided(0)


def any_score(metric: Metric, shown: ShownClasses) -> Decided:
    """Decide R4: it takes any score, sees nothing of it but its order, and does see that."""
    blind = None
    for systems, row, usual in _looked_at(metric, shown):
        if bound := _bound_to_a_scale(metric, systems, row, usual):
            return bound
        own = systems.confidence(row)
        turned = metric.compute(systems.scored(row, confidence=own[::-1].copy())).value
        if _apart(float(turned), usual):
            blind = Decided(systems.n)
        elif blind is None:
            why = "the score turned around does not move it"
            words = systems.written(row), f"{systems.written(row)}, turned"
            blind = Decided(systems.n, Example.of(words, (usual, usual), why))
    return blind or _UNDEFINED


def _bound_to_a_scale(metric: Metric, systems: Systems, row: int, usual: float) -> Decided | None:
    """Return a score of the same order that it refuses, or of which it says another number."""
    word = systems.written(row)
    for said, score in _SCORES.items():
        other = systems.scored(row, confidence=score(systems.confidence(row)))
        if reason := metric.reason_not_applicable(other):
            return Decided(systems.n, Example(word, f"{word} by {said}", usual, why=reason))
        value = float(metric.compute(other).value)
        if _apart(value, usual):
            why = "the same order by another score moves it"
            return Decided(systems.n, Example(word, f"{word} by {said}", usual, value, why))
    return None


def any_loss(metric: Metric, shown: ShownClasses) -> tuple[Decided, Decided]:
    """Decide R5 in both readings: a loss between 0 and 1 is taken, and its size counts."""
    found = _UNDEFINED
    for systems, row, _ in _looked_at(metric, shown):
        place = int(np.flatnonzero(systems.wrong[row])[0])
        losses = [
            np.where(np.arange(systems.n) == place, size, systems.wrong[row]) for size in _SIZES
        ]
        graded = [systems.scored(row, loss=loss) for loss in losses]
        words = [f"{systems.written(row)}, x = {size:g}" for size in _SIZES]
        if reason := metric.reason_not_applicable(graded[0]):
            refused = Decided(systems.n, Example.of(words, (float("nan"),) * 2, reason))
            return refused, refused
        values = [float(metric.compute(s).value) for s in graded]
        if _apart(*values):
            return Decided(systems.n), Decided(systems.n)
        if found is _UNDEFINED:
            why = "the size of the loss of the first failure does not move it"
            found = Decided(systems.n, Example.of(words, values, why))
    return Decided(found.n), found


def _looked_at(metric: Metric, shown: ShownClasses) -> Iterator[tuple[Systems, int, float]]:
    """Yield systems and what it says of them: of four samples, then some of twenty."""
    small, more = all_systems(4, shown), few_failures(shown)
    both = np.flatnonzero(small.both)
    rows = [(small, int(row)) for row in both[:: -(-both.size // _MOST)]]
    rows += [(more, row) for row in range(0, len(more.wrong), _STEP)]
    for systems, row in rows:
        value = float(metric.compute(systems.scored(row)).value)
        if np.isfinite(value):
            yield systems, row, value


def _apart(a: float, b: float) -> bool:
    """Tell two values apart; to be undefined is another value."""
    return not np.isclose(a, b, rtol=0.0, atol=ROUNDING, equal_nan=True)
