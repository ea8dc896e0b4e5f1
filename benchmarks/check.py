"""Is a contender slower than the table says? What `python benchmarks/run.py --against` does."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.cases.entry import Contender, Race
from benchmarks.measuring.rounds import Found
from benchmarks.results import Results

#: By how much a number may exceed the one in the table.
TOLERANCE = 0.20
#: How often a contender that seems slow is measured before it is called so.
TRIES = 3
#: Differences that nobody notices: MiB, and seconds of what is a process by itself.
LEAST, MOMENT = {"MiB": 8.0}, 0.02

#: From a race and the keys of contenders to what is found of them.
Measure = Callable[[Race, list[str]], Mapping[str, Found]]


@dataclass(frozen=True)
class Worse:
    """A contender that takes more than the table says."""

    race: str
    contender: str
    of: str
    before: float
    now: float

    def __str__(self) -> str:
        """Say it in a line."""
        share = self.now / self.before - 1
        return (
            f"{self.race}: {self.contender}: {self.of} {self.now:.3g}, in the table "
            f"{self.before:.3g} (+{share:.0%})"
        )


@dataclass(frozen=True)
class Broken:
    """A contender that does not open any more."""

    race: str
    contender: str
    reason: str

    def __str__(self) -> str:
        """Say it in a line."""
        return f"{self.race}: {self.contender}: {self.reason}"


def held(race: Race) -> list[Contender]:
    """Return the contenders of a race that are held to the table."""
    return [contender for contender in race.contenders if not contender.peer]


def checked(race: Race, table: Results, measure: Measure) -> Iterator[Worse | Broken]:
    """Measure a race again, and yield what became worse than in the table.

    A contender that seems worse is measured again, and the best of the tries counts, so that a busy
    moment is not called a slow contender.
    """
    stored = table.races[race.name].contenders if race.name in table.races else {}
    known = [
        contender.key
        for contender in held(race)
        if contender.key in stored and not stored[contender.key].reason
    ]
    best: dict[str, Found] = {}
    left = known
    for _ in range(TRIES):
        if not left:
            break
        now = measure(race, left)
        best |= {key: _better(best.get(key), now[key]) for key in left}
        left = [key for key in left if _told(race, key, stored[key], best[key])]
    for key in left:
        yield from _told(race, key, stored[key], best[key])


def _told(race: Race, key: str, before: Found, now: Found) -> Sequence[Worse | Broken]:
    if now.reason:
        return [Broken(race.name, key, now.reason)]
    return _worse(race, key, before, now)


def _better(before: Found | None, now: Found) -> Found:
    """Return the better of two tries, in each of what is held by itself."""
    if before is None or before.reason or now.reason:
        return now if before is None or before.reason else before
    first, other = (before, now) if before.ratio <= now.ratio else (now, before)
    peaks = [one.peak for one in (first, other) if one.peak is not None]
    return dataclasses.replace(first, peak=min(peaks, default=None))


def _worse(race: Race, key: str, before: Found, now: Found) -> list[Worse]:
    pairs = {"ratio": (before.ratio, now.ratio), "MiB": (before.peak, now.peak)}
    pairs |= {name: (before.facts[name], now.facts.get(name)) for name in before.facts}
    least = LEAST | ({"ratio": MOMENT * now.ratio / now.processor} if race.processes else {})
    return [
        Worse(race.name, key, of, old, new)
        for of, (old, new) in pairs.items()
        if old is not None and new is not None and _more(old, new, least.get(of, 0.0))
    ]


def _more(before: float, now: float, least: float) -> bool:
    return now > before * (1 + TOLERANCE) and now - before > least
