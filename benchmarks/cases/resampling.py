"""Cases for the bootstrap of many scores: the public call, the kernel, and other algorithms."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from benchmarks.cases import files
from benchmarks.cases.entry import BenchmarkCase, Call, Section, Sizes, Target, Variant, format_size
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
    "The variants compute the AURC (trapezoid) and the AUGRC of 13 scores of each of five "
    "classifiers, including sorting and drawing. The reference draws rows and sorts them for each "
    "score in NumPy. Its time is scaled up from 12 resamples. The time of the published loop over "
    "the samples is scaled up from 2 scores and 1 resample. Influence functions replace the "
    "resamples. They give standard errors, the covariances of the 13 scores of each run, and the "
    "probabilities of ranks.",
)
RUNS, SCORES, REFERENCE_RESAMPLES = 5, 13, 12
NAMES = ("aurc", "augrc")


@dataclass(frozen=True)
class Problem:
    """Scores of several classifiers on the same number of samples."""

    n: int
    resamples: int

    @cached_property
    def runs(self) -> dict[str, tuple[dict[str, np.ndarray], np.ndarray]]:
        """Scores by name, and a mask of the failures of the classifier, by run."""
        return {str(k): files.scores(self.n, SCORES, seed=k) for k in range(RUNS)}

    @cached_property
    def sets(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Confidence and loss of each score of each run."""
        return [
            (confidence, loss)
            for scores, loss in self.runs.values()
            for confidence in scores.values()
        ]

    @cached_property
    def predictions(self) -> dict[tuple[tuple[str, str], ...], ab.Predictions]:
        """The predictions of each run."""
        return {
            (("run", run),): ab.Predictions(confidence=scores, loss=loss.astype(float))
            for run, (scores, loss) in self.runs.items()
        }


def resort(problem: Problem) -> Call:
    """Draw rows and sort them for each score, which is the fastest algorithm with NumPy alone."""
    negated = [(-confidence, loss) for confidence, loss in problem.sets]

    def call() -> None:
        rng = np.random.default_rng(1)
        for _ in range(REFERENCE_RESAMPLES):
            rows = rng.integers(0, problem.n, problem.n)
            for negative, loss in negated:
                drawn = negative[rows]
                order = np.argsort(drawn)
                areas(drawn[order], loss[rows[order]])

    return call


def areas(negative: np.ndarray, loss: np.ndarray) -> tuple[float, float]:
    """Compute AURC and AUGRC from sorted negated confidences."""
    end = np.flatnonzero(np.append(negative[1:] != negative[:-1], True))
    failed, accepted = np.cumsum(loss)[end], end + 1
    risk = failed / accepted
    width = np.diff(accepted, prepend=0)
    total = accepted[-1]
    selective = width @ risk + width[1:] @ risk[:-1] + width[0] * risk[0]
    generalized = width @ failed + width[1:] @ failed[:-1]
    return selective / (2 * total), generalized / (2 * total**2)


def published(problem: Problem) -> Call:
    """Loop over the sorted samples of each resample, like the published code."""

    def call() -> None:
        rows = np.random.default_rng(1).integers(0, problem.n, problem.n)
        for confidence, loss in problem.sets[:2]:
            drawn = confidence[rows]
            order = np.argsort(drawn)
            loop_areas(drawn[order], loss[rows[order]])

    return call


def loop_areas(confidence: np.ndarray, loss: np.ndarray) -> tuple[float, float]:
    """Compute AURC and AUGRC in a loop over the sorted samples."""
    n, wrong = len(loss), loss.sum()
    accepted, width, last = n, 0, (wrong / n, wrong / n)
    aurc = augrc = 0.0
    for i in range(n - 1):
        accepted -= 1
        wrong -= loss[i]
        width += 1
        if confidence[i] != confidence[i + 1]:
            risks = (wrong / accepted, wrong / n)
            aurc += width / n * (risks[0] + last[0]) / 2
            augrc += width / n * (risks[1] + last[1]) / 2
            last, width = risks, 0
    remaining = (accepted + width) / n
    return aurc + last[0] * remaining, augrc + last[1] * remaining / 2


def kernel(threads: int, kernels: str) -> Callable[[Problem], Call]:
    """Return a function that computes the metrics of all resamples with the kernel."""

    def start(problem: Problem) -> Call:
        if kernels == NUMBA:
            require_numba()

        def call() -> None:
            scored = [Scored(confidence, loss) for confidence, loss in problem.sets]
            draws = Draws(problem.n, problem.resamples, rng=1)
            replicates(scored, [METRICS[name] for name in NAMES], draws, threads=threads)

        return call

    return start


def public_call(problem: Problem) -> Call:
    """Compare the scores with `ab.compare`, which draws resamples, tests differences and ranks."""
    predictions, resamples = problem.predictions, problem.resamples
    return lambda: ab.compare(
        predictions, metrics=NAMES, runs="run", test="bootstrap", bootstrap=resamples, bands=False
    )


def analytic(problem: Problem) -> Call:
    """Compute the covariances, expected ranks and rank probabilities of each run."""

    def call() -> None:
        for first in range(0, len(problem.sets), SCORES):
            scored = [Scored(*arrays) for arrays in problem.sets[first : first + SCORES]]
            for name in NAMES:
                metric = METRICS[name]
                values = np.array([metric.compute(s).value for s in scored])
                sigma = covariance(influence_matrix(metric, scored))
                expected_ranks(values, sigma, lower_is_better=True)
                rank_probabilities(values, sigma, lower_is_better=True)

    return call


def cases(sizes: Sizes) -> Iterator[BenchmarkCase]:
    """Yield the cases of this section."""
    n, _, resamples = sizes.compared
    reference = Variant("sorting each resample", resort, work_share=REFERENCE_RESAMPLES / resamples)
    loop = Variant(
        "published loop",
        published,
        work_share=2 / (RUNS * SCORES * resamples),
        rounds=1,
        is_peer=True,
    )
    two_threads = Variant(
        "kernel, 2 threads", kernel(2, NUMBA), NUMBA, (Target(1 / 110),), threads=2
    )
    target = Target(1.5, "seconds", compared_to=two_threads.key)
    yield BenchmarkCase(
        f"bootstrap, {format_size(n)} samples x {resamples} resamples",
        SECTION.name,
        lambda _, share: Problem(max(200, round(n * share)), resamples),
        reference,
        (
            loop,
            Variant("influence functions", analytic, targets=(Target(0.02),)),
            Variant("kernel", kernel(1, NUMPY), NUMPY, targets=(Target(1 / 12),)),
            Variant("kernel", kernel(1, NUMBA), NUMBA, targets=(Target(1 / 60),), memory=True),
            two_threads,
            Variant("kernel, 2 threads", kernel(2, NUMPY), NUMPY, threads=2),
            Variant("ab.compare", public_call, NUMBA, (target,), threads=2, memory=True),
            Variant("ab.compare", public_call, NUMPY, threads=2),
        ),
        seconds=10.0,
        rounds=2,
        is_quick=True,
    )
