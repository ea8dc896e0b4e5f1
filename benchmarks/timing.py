"""Interleaved timing: the contenders take turns, so that a busy neighbor slows all of them."""

import gc
import statistics
import time
from dataclasses import dataclass

from cases import Case
from contenders import CONTENDERS, AbsentError, Call, choose, prepare


@dataclass(frozen=True)
class Timing:
    """Nanoseconds a sample: the best round, which load distorts least, and the median."""

    best: float
    median: float


def measure(case: Case, *, seconds: float) -> tuple[dict[str, Timing], dict[str, str]]:
    """Time every contender on a case; return timings and the reasons of the absent."""
    calls: dict[str, list[Call]] = {}
    absent: dict[str, str] = {}
    for name in CONTENDERS:
        try:
            calls[name] = prepare(name, case)
        except AbsentError as reason:
            absent[name] = str(reason)
    rounds: dict[str, list[float]] = {name: [] for name in calls}
    deadline = time.perf_counter() + seconds
    while time.perf_counter() < deadline or len(next(iter(rounds.values()))) < 3:
        for name, forms in calls.items():
            choose(name)
            rounds[name].append(min(_timed(call, case.n) for call in forms))
    return {name: _summary(times, case.n) for name, times in rounds.items()}, absent


def _timed(call: Call, n: int) -> float:
    # Where a call is short, what the contender before left in the caches is not what is measured.
    repeats = max(1, 200_000 // n)
    gc.disable()
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    elapsed = time.perf_counter() - start
    gc.enable()
    return elapsed / repeats


def _summary(times: list[float], n: int) -> Timing:
    return Timing(1e9 * min(times) / n, 1e9 * statistics.median(times) / n)
