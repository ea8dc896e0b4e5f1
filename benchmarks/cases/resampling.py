"""The bootstrap of many scores: by the public call, by the kernel, and by sorting again."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from benchmarks.cases import files
from benchmarks.cases.entry import Call, Contender, Race, Section, Sizes, Target, told
from benchmarks.cases.kernels import NUMBA, NUMPY, require_numba

import abstain as ab
from abstain._foundation.scored import Scored
from abstain.inference.draws import Draws
from abstain.inference.influence import covariance
from abstain.inference.ranking import expected_ranks, rank_probabilities
from abstain.metrics import METRICS
from abstain.metrics.intervals import influence_matrix
from abstain.metrics.resampling import replicates

SECTION = Section(
    "resampling",
    "The bootstrap",
    "Thirteen scores of each of five classifiers, AURC (trapezoid) and AUGRC together, "
    "presorting and drawing included; the reference is drawing rows and sorting them anew for "
    "every score, in NumPy. That is scaled up from 12 resamples, and the published loop, which "
    "steps through the samples one by one, from 2 scores and 1 resample. Influence functions "
    "give no resamples but standard errors, the covariances of the 13 scores of each run, and "
    "the chances of ranks.",
)
RUNS, SCORES, FEW = 5, 13, 12
NAMES = ("aurc", "augrc")


@dataclass(frozen=True)
class Problem:
    """Scores of several classifiers on the same number of samples."""

    n: int
    resamples: int

    @cached_property
    def runs(self) -> dict[str, tuple[dict[str, np.ndarray], np.ndarray]]:
        """By run: its scores by name, and where the classifier fails."""
        return {str(k): files.scores(self.n, SCORES, seed=k) for k in range(RUNS)}

    @cached_property
    def sets(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """The scores of all runs with their losses."""
        return [(one, loss) for named, loss in self.runs.values() for one in named.values()]

    @cached_property
    def predictions(self) -> dict[tuple[tuple[str, str], ...], ab.Predictions]:
        """The same as a person has them."""
        return {
            (("run", run),): ab.Predictions(confidence=named, loss=loss.astype(float))
            for run, (named, loss) in self.runs.items()
        }


def resorted(problem: Problem) -> Call:
    """Draw rows, and sort them again for every score: the fastest way in NumPy alone."""
    negated = [(-confidence, loss) for confidence, loss in problem.sets]

    def call() -> None:
        rng = np.random.default_rng(1)
        for _ in range(FEW):
            rows = rng.integers(0, problem.n, problem.n)
            for negative, loss in negated:
                drawn = negative[rows]
                order = np.argsort(drawn)
                areas(drawn[order], loss[rows[order]])

    return call


def areas(negative: np.ndarray, loss: np.ndarray) -> tuple[float, float]:
    end = np.flatnonzero(np.append(negative[1:] != negative[:-1], True))
    failed, accepted = np.cumsum(loss)[end], end + 1
    risk = failed / accepted
    width = np.diff(accepted, prepend=0)
    total = accepted[-1]
    selective = width @ risk + width[1:] @ risk[:-1] + width[0] * risk[0]
    generalized = width @ failed + width[1:] @ failed[:-1]
    return selective / (2 * total), generalized / (2 * total**2)


def published(problem: Problem) -> Call:
    """Step through the sorted samples of every resample one by one, as published code does."""

    def call() -> None:
        rows = np.random.default_rng(1).integers(0, problem.n, problem.n)
        for confidence, loss in problem.sets[:2]:
            drawn = confidence[rows]
            order = np.argsort(drawn)
            stepped(drawn[order], loss[rows[order]])

    return call


def stepped(confidence: np.ndarray, loss: np.ndarray) -> tuple[float, float]:
    """Compute AURC and AUGRC in a loop over the sorted samples."""
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
    rest = (accepted + width) / n
    return aurc + last[0] * rest, augrc + last[1] * rest / 2


def kernel(threads: int, kernels: str) -> Callable[[Problem], Call]:
    """Compute the metrics of every resample."""

    def start(problem: Problem) -> Call:
        if kernels == NUMBA:
            require_numba()

        def call() -> None:
            scored = [Scored(confidence, loss) for confidence, loss in problem.sets]
            draws = Draws(problem.n, problem.resamples, rng=1)
            replicates(scored, [METRICS[name] for name in NAMES], draws, threads=threads)

        return call

    return start


def front(problem: Problem) -> Call:
    """Compare the scores by the public call, which draws, tests and ranks."""
    predictions, resamples = problem.predictions, problem.resamples
    return lambda: ab.compare(
        predictions, metrics=NAMES, runs="run", test="bootstrap", bootstrap=resamples, bands=False
    )


def analytic(problem: Problem) -> Call:
    """Find standard errors, covariances and chances of ranks, run by run."""

    def call() -> None:
        for first in range(0, len(problem.sets), SCORES):
            scored = [Scored(*one) for one in problem.sets[first : first + SCORES]]
            for name in NAMES:
                metric = METRICS[name]
                values = np.array([metric.compute(s).value for s in scored])
                sigma = covariance(influence_matrix(metric, scored))
                expected_ranks(values, sigma, lower_is_better=True)
                rank_probabilities(values, sigma, lower_is_better=True)

    return call


def races(sizes: Sizes) -> Iterator[Race]:
    """Yield the races of this section."""
    n, _, resamples = sizes.compared
    again = Contender("sorting again", resorted, part=FEW / resamples)
    loop = Contender(
        "published loop", published, part=2 / (RUNS * SCORES * resamples), rounds=1, peer=True
    )
    twice = Contender("kernel, 2 threads", kernel(2, NUMBA), NUMBA, (Target(1 / 110),), threads=2)
    near = Target(1.5, "seconds", than=twice.key)
    yield Race(
        f"bootstrap, {told(n)} samples x {resamples} resamples",
        SECTION.name,
        lambda _, share: Problem(max(200, round(n * share)), resamples),
        again,
        (
            loop,
            Contender("influence functions", analytic, targets=(Target(0.02),)),
            Contender("kernel", kernel(1, NUMPY), NUMPY, targets=(Target(1 / 12),)),
            Contender("kernel", kernel(1, NUMBA), NUMBA, targets=(Target(1 / 60),), memory=True),
            twice,
            Contender("kernel, 2 threads", kernel(2, NUMPY), NUMPY, threads=2),
            Contender("ab.compare", front, NUMBA, (near,), threads=2, memory=True),
            Contender("ab.compare", front, NUMPY, threads=2),
        ),
        seconds=10.0,
        rounds=2,
        quick=True,
    )
