"""Time the bootstrap of many scores against re-sorting each resample and the published loop.

`python benchmarks/resampling.py RESAMPLES` prints the peak extra memory of one bootstrap in bytes.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from memory import CLEAR, _resident
from table import markdown, number

RUNS, SCORES, RESAMPLES, FAILURES = 5, 13, 500, 0.05
METRICS = ("aurc", "augrc")


def problem(n: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return (confidence, loss) of 13 related scores of each of 5 classifiers."""
    rng = np.random.default_rng(0)
    sets = []
    for _ in range(RUNS):
        loss = rng.random(n) < FAILURES
        hard = rng.normal(size=n) + 1.5 * loss
        sets += [(1 / (1 + np.exp(hard + 0.5 * rng.normal(size=n))), loss) for _ in range(SCORES)]
    return sets


def resorted(sets: list, resamples: int) -> np.ndarray:
    """Draw rows, and sort them again for every score: the fastest way in NumPy alone."""
    n = sets[0][0].size
    rng = np.random.default_rng(1)
    negated = [(-confidence, loss) for confidence, loss in sets]
    out = np.empty((2, len(sets), resamples))
    for j in range(resamples):
        rows = rng.integers(0, n, n)
        for i, (negative, loss) in enumerate(negated):
            drawn = negative[rows]
            order = np.argsort(drawn)
            out[:, i, j] = _areas(drawn[order], loss[rows[order]])
    return out


def _areas(negative: np.ndarray, loss: np.ndarray) -> tuple[float, float]:
    end = np.flatnonzero(np.append(negative[1:] != negative[:-1], True))
    failed, accepted = np.cumsum(loss)[end], end + 1
    risk = failed / accepted
    width = np.diff(accepted, prepend=0)
    total = accepted[-1]
    selective = width @ risk + width[1:] @ risk[:-1] + width[0] * risk[0]
    generalized = width @ failed + width[1:] @ failed[:-1]
    return selective / (2 * total), generalized / (2 * total**2)


def published(sets: list, resamples: int) -> np.ndarray:
    """Step through the sorted samples of every resample one by one, as published code does."""
    n = sets[0][0].size
    rng = np.random.default_rng(1)
    out = np.empty((2, len(sets), resamples))
    for j in range(resamples):
        rows = rng.integers(0, n, n)
        for i, (confidence, loss) in enumerate(sets):
            drawn = confidence[rows]
            order = np.argsort(drawn)
            out[:, i, j] = _stepped(drawn[order], loss[rows[order]])
    return out


def _stepped(confidence: np.ndarray, loss: np.ndarray) -> tuple[float, float]:
    n, wrong = len(loss), loss.sum()
    accepted, width, last = n, 0, (wrong / n, wrong / n)
    aurc = augrc = 0.0
    for i in range(n - 1):
        accepted -= 1
        wrong -= loss[i]
        width += 1
        if confidence[i] != confidence[i + 1]:
            now = (wrong / accepted, wrong / n)
            aurc += width / n * (now[0] + last[0]) / 2
            augrc += width / n * (now[1] + last[1]) / 2
            last, width = now, 0
    return aurc + (n * last[0] / n - last[0] * (n - accepted) / n), augrc + last[
        1
    ] * accepted / n / 2


def ours(*, threads: int, compiled: bool) -> Callable[[list, int], np.ndarray]:
    from abstain._foundation.scored import Scored
    from abstain.inference.draws import Draws
    from abstain.metrics import METRICS as CATALOGUE
    from abstain.metrics.replicates import replicates

    def bootstrap(sets: list, resamples: int) -> np.ndarray:
        os.environ["ABSTAIN_NO_NUMBA"] = "0" if compiled else "1"
        scored = [Scored(confidence, loss) for confidence, loss in sets]
        draws = Draws(sets[0][0].size, resamples, rng=1)
        chosen = [CATALOGUE[name] for name in METRICS]
        return replicates(scored, chosen, draws, threads=threads)

    return bootstrap


def analytic(sets: list, _: int) -> np.ndarray:
    """No resamples: standard errors, covariances and chances of ranks, run by run."""
    from abstain._foundation.scored import Scored
    from abstain.inference.influence import covariance
    from abstain.inference.ranking import expected_ranks, rank_chances
    from abstain.metrics import METRICS as CATALOGUE
    from abstain.metrics.intervals import influences

    out = []
    for first in range(0, len(sets), SCORES):
        scored = [Scored(confidence, loss) for confidence, loss in sets[first : first + SCORES]]
        for name in METRICS:
            metric = CATALOGUE[name]
            values = np.array([metric.compute(s).value for s in scored])
            sigma = covariance(influences(metric, scored))
            expected_ranks(values, sigma, lower_is_better=True)
            out.append(rank_chances(values, sigma, lower_is_better=True))
    return np.array(out)


def contenders() -> dict[str, tuple[Callable[[list, int], np.ndarray], int, int]]:
    """Return what runs, and what part of it: so many scores and resamples, then scaled up."""
    return {
        "published loop": (published, 2, 1),
        "re-sorting": (resorted, 65, 12),
        "influence functions": (analytic, 65, RESAMPLES),
        "NumPy": (ours(threads=1, compiled=False), 65, RESAMPLES),
        "NumPy, 2 threads": (ours(threads=2, compiled=False), 65, RESAMPLES),
        "numba": (ours(threads=1, compiled=True), 65, RESAMPLES),
        "numba, 2 threads": (ours(threads=2, compiled=True), 65, RESAMPLES),
    }


def timed(n: int, rounds: int) -> dict[str, float]:
    """Return seconds for 65 scores x 500 resamples: the best of interleaved rounds."""
    sets = problem(n)
    best: dict[str, float] = {}
    for turn in range(rounds):
        for name, (run, scores, resamples) in contenders().items():
            if turn == 0:
                run(sets[:scores], min(resamples, 128))  # compile, import, warm up
            start = time.perf_counter()
            run(sets[:scores], resamples)
            took = (time.perf_counter() - start) * (65 / scores) * (RESAMPLES / resamples)
            best[name] = min(best.get(name, np.inf), took)
    return best


def section(*, quick: bool) -> Iterator[str]:
    """Yield the lines of the report."""
    yield "### Bootstrap: 13 scores x 5 runs x 500 resamples, AURC (trapezoid) and AUGRC\n"
    rows, sizes = [], (2000,) if quick else (9000, 75_000)
    for n in sizes:
        best = timed(n, 3 if quick or n > 10_000 else 12)
        rows += [
            [str(n), name, number(1000 * took, 0), number(best["re-sorting"] / took, 1)]
            for name, took in best.items()
        ]
    yield markdown(["n", "way", "ms", "times faster than re-sorting"], rows)
    yield (
        "\nThe published loop is scaled up from 2 scores and 1 resample, re-sorting from 12 "
        "resamples. Presorting and drawing are included. Influence functions give no resamples but "
        "standard errors, the covariances of the 13 scores of each run, and the chances of ranks."
    )
    yield "\nPeak extra memory of 13 scores besides the replicates themselves, n = 9000:\n"
    few, many = (500, 2000) if quick else (500, 50_000)
    rows = [[str(count), number(_peak(count) / 2**20, 1)] for count in (few, many)]
    yield markdown(["resamples", "MiB"], rows)


def _peak(resamples: int) -> float:
    if not CLEAR.exists():
        return float("nan")
    command = [sys.executable, __file__, str(resamples)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def _child(resamples: int) -> int:
    sets = problem(9000)[:SCORES]
    run = ours(threads=2, compiled=True)
    run(sets, 1200)
    CLEAR.write_text("5")
    before = _resident("VmRSS")
    out = run(sets, resamples)
    # The replicates are held once as they are filled, and once as they are handed out.
    return _resident("VmHWM") - before - 2 * out.nbytes


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).resolve().parents[1] / "src"))
    print(_child(int(sys.argv[1])))
