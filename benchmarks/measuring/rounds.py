"""Rounds in which the contenders of a race take turns, so that other load slows all of them."""

import gc
import os
import statistics
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.cases.entry import AbsentError, Call, Contender, Race
from benchmarks.cases.kernels import NUMPY
from benchmarks.measuring.memory import peak_extra
from benchmarks.measuring.processes import Command, Spent

#: A call that is shorter is repeated until so many seconds have passed.
SHORTEST = 0.002
#: The reference takes another turn within a round after so many seconds.
BETWEEN = 0.25


@dataclass(frozen=True)
class Found:
    """What was found of a contender: the best round, which load distorts least."""

    seconds: float = float("nan")
    processor: float = float("nan")
    #: The wall time of the median round.
    median: float = float("nan")
    #: To the reference of its race, in the clock that counts.
    ratio: float = float("nan")
    rounds: int = 0
    #: Peak memory in MiB: of the process of a command, extra of a call in a process of its own.
    peak: float | None = None
    facts: Mapping[str, float] = field(default_factory=dict)
    #: Why there is nothing; empty where there is something.
    reason: str = ""


def measured(
    race: Race,
    *,
    contenders: Collection[str] = (),
    seconds: float | None = None,
    memory: tuple[str, ...] | None = None,
) -> dict[str, Found]:
    """Measure a race, or some of its contenders; return what was found by key, the reference first.

    `memory` is what the process that measures memory is told of the catalogue; None for none.
    """
    chosen = [
        contender for contender in race.contenders if not contenders or contender.key in contenders
    ]
    with tempfile.TemporaryDirectory(prefix="abstain-bench-") as folder:
        data = race.setup(Path(folder), 1.0)
        turns = _turns(race, chosen, data, seconds)
    found = {key: Found(reason=reason) for key, reason in turns.reasons.items()}
    for key, done in turns.spent.items():
        if key not in found:
            found[key] = _best(race.contender(key), done)
    base = found.pop(race.reference.key)
    found = {key: _compared(one, base, race, key) for key, one in found.items()}
    found = {race.reference.key: base} | {
        contender.key: found[contender.key] for contender in chosen
    }
    if memory is None:
        return found
    return {
        key: _with_memory(one, race, key, memory) if race.contender(key).memory else one
        for key, one in found.items()
    }


@dataclass
class Turns:
    """What the turns of the contenders took so far, on the data of one race."""

    data: Any
    calls: dict[str, Call] = field(default_factory=dict)
    spent: dict[str, list[Spent]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    def take(self, contender: Contender) -> None:
        """Run a contender once more; if it fails, record the reason and do not run it again."""
        done = self.spent.setdefault(contender.key, [])
        if contender.key in self.reasons or 0 < contender.rounds <= len(done):
            return
        choose(contender)
        try:
            if contender.key not in self.calls:
                self.calls[contender.key] = contender.start(self.data)
            done.append(spent(self.calls[contender.key]))
        except AbsentError as reason:
            self.reasons[contender.key] = f"absent: {reason}"
        except Exception as error:  # noqa: BLE001  the others go on
            self.reasons[contender.key] = f"failed: {type(error).__name__}: {error}"

    def over(self, contenders: Sequence[Contender]) -> bool:
        """Tell whether no contender may take another turn."""
        return all(
            0 < contender.rounds <= len(self.spent[contender.key]) for contender in contenders
        )


def _turns(race: Race, contenders: Sequence[Contender], data: Any, seconds: float | None) -> Turns:
    turns = Turns(data)
    deadline = time.perf_counter() + (race.seconds if seconds is None else seconds)
    turn = 0
    while turn < race.rounds or time.perf_counter() < deadline:
        gc.collect()
        turns.take(race.reference)
        last = time.perf_counter()
        for contender in contenders:
            # Often in a long round, so that a turn of luck is no advantage of a contender.
            if time.perf_counter() - last > BETWEEN:
                turns.take(race.reference)
                last = time.perf_counter()
            turns.take(contender)
        turn += 1
        if turns.over(contenders):
            break
    return turns


def choose(contender: Contender) -> None:
    """Set the environment that the contender runs in."""
    os.environ["ABSTAIN_NO_NUMBA"] = "1" if contender.kernels == NUMPY else "0"


def spent(call: Call) -> Spent:
    """Return what one turn of a call takes."""
    if isinstance(call, Command):
        return call()
    gc.disable()
    try:
        start, used, repeats = time.perf_counter(), time.process_time(), 0
        while (seconds := time.perf_counter() - start) < SHORTEST or not repeats:
            call()
            repeats += 1
        processor = time.process_time() - used
    finally:
        gc.enable()
    return Spent(seconds / repeats, processor / repeats)


def _best(contender: Contender, turns: list[Spent]) -> Found:
    peaks = [one.peak for one in turns if one.peak is not None]
    return Found(
        seconds=min(one.seconds for one in turns) / contender.part,
        processor=min(one.processor for one in turns) / contender.part,
        median=statistics.median(one.seconds for one in turns) / contender.part,
        rounds=len(turns),
        peak=min(peaks) if peaks else None,
        facts=turns[-1].facts,
    )


def _compared(found: Found, base: Found, race: Race, key: str) -> Found:
    wall = max(race.contender(key).threads, race.reference.threads) > 1
    ratio = found.seconds / base.seconds if wall else found.processor / base.processor
    return Found(**{**vars(found), "ratio": ratio})


def _with_memory(found: Found, race: Race, key: str, memory: tuple[str, ...]) -> Found:
    if found.reason:
        return found
    return Found(**{**vars(found), "peak": peak_extra(race.name, key, memory)})
