"""Simulate methods on common samples such that their true AURC and AUGRC are known.

The scores of successes have the distribution N(separation, 1), and the scores of ordinary failures
N(0, 1). Some failures are confident, for example because of wrong labels; their scores are as high
as those of the best successes. All methods fail on the same samples, and their noise is correlated.
"""

from dataclasses import dataclass
from functools import partial
from math import sqrt
from typing import Final

import numpy as np

from abstain._foundation.lazy_imports import special
from abstain._foundation.random import as_generator
from abstain.evaluation import compare
from abstain.evaluation.comparison.runs import score_runs
from abstain.predictions import Predictions
from abstain.typing import FloatArray, Split
from abstain_bench.studies.rankings.ranked_studies import METRIC_NAMES, RankedStudies

#: Correlation of the noise of two methods.
_NOISE_CORRELATION: Final = 0.7

#: Mean score of confident failures minus mean score of successes.
_CONFIDENT_FAILURE_SHIFT: Final = 1.5

#: Number of thresholds for the integral of the selective risk.
_N_STEPS: Final = 40_001
#: Number of standard deviations by which the thresholds extend beyond the mean scores.
_RANGE: Final = 9.0


@dataclass(frozen=True)
class SimulatedMethod:
    """Distribution of a confidence score.

    Attributes
    ----------
    separation : float
        Difference between the mean scores of successes and ordinary failures, in standard
        deviations.
    confident_share : float
        Share of confident failures among the failures.

    Examples
    --------
    >>> SimulatedMethod(1.6).areas(0.1)["augrc"].round(6)
    np.float64(0.016605)
    """

    separation: float
    confident_share: float = 0.0

    def areas(self, risk: float) -> dict[str, np.float64]:
        """Compute the true AURC and AUGRC for a failure rate.

        For failure rate R, the AUGRC is (1 - AUROC) R (1 - R) + R²/2. The AURC is integrated
        numerically by Simpson's rule.
        """
        success_mean = self.separation
        confident_mean = self.separation + _CONFIDENT_FAILURE_SHIFT
        confident = self.confident_share
        usual = 1 - confident
        auroc = usual * special.ndtr(success_mean / sqrt(2))
        auroc += confident * special.ndtr(-_CONFIDENT_FAILURE_SHIFT / sqrt(2))
        threshold = np.linspace(-_RANGE, confident_mean + _RANGE, _N_STEPS)
        # Shares of the samples above each threshold, and densities at each threshold.
        accepted_failures = usual * special.ndtr(-threshold)
        accepted_failures += confident * special.ndtr(confident_mean - threshold)
        generalized_risk = risk * accepted_failures
        coverage = generalized_risk + (1 - risk) * special.ndtr(success_mean - threshold)
        failure_density = usual * _density(threshold)
        failure_density += confident * _density(threshold - success_mean - _CONFIDENT_FAILURE_SHIFT)
        density = risk * failure_density + (1 - risk) * _density(threshold - success_mean)
        simpson_weight = np.where(np.arange(_N_STEPS) % 2, 4.0, 2.0)
        simpson_weight[[0, -1]] = 1.0
        step = threshold[1] - threshold[0]
        aurc = np.sum(simpson_weight * density * generalized_risk / coverage) * step / 3
        augrc = (1 - auroc) * risk * (1 - risk) + risk**2 / 2
        return dict(zip(METRIC_NAMES, (aurc, np.float64(augrc)), strict=True))

    def scores(
        self, is_failure: FloatArray, common_noise: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """Draw scores for samples with given failures and given shared noise."""
        method_noise = rng.standard_normal(is_failure.size)
        noise = (
            sqrt(_NOISE_CORRELATION) * common_noise + sqrt(1 - _NOISE_CORRELATION) * method_noise
        )
        is_random_confident = rng.random(is_failure.size) < self.confident_share
        is_confident_failure = (is_failure > 0) & is_random_confident
        is_usual_failure = (is_failure > 0) & ~is_confident_failure
        mean = self.separation + _CONFIDENT_FAILURE_SHIFT * is_confident_failure
        mean[is_usual_failure] = 0.0
        return np.asarray(noise + mean)


#: Simulated methods. Three methods have the same distribution, so their differences are random. Two
#: methods are better or worse. The remaining methods have a better ranking except for a few
#: confident failures, to which AURC and AUGRC assign different weights.
METHODS: Final = {
    "same distribution 1": SimulatedMethod(1.6),
    "same distribution 2": SimulatedMethod(1.6),
    "same distribution 3": SimulatedMethod(1.6),
    "worse": SimulatedMethod(1.5),
    "better": SimulatedMethod(1.8),
    "better, 1% confident": SimulatedMethod(1.8, 0.01),
    "better, 3% confident": SimulatedMethod(1.9, 0.03),
    "best, 6% confident": SimulatedMethod(2.1, 0.06),
}

#: Failure rates of the data sets.
RISKS: Final = {"easy": 0.05, "usual": 0.12, "hard": 0.3, "shifted": 0.5}


def _density(x: FloatArray) -> FloatArray:
    return np.asarray(np.exp(-x * x / 2) / sqrt(2 * np.pi))


def simulate_rankings(*, n: int, resamples: int, level: float, seed: int) -> list[RankedStudies]:
    """Rank the simulated methods on a sample of each data set."""
    generators = as_generator(seed).spawn(len(RISKS))
    datasets: dict[Split, Predictions] = {
        (("study", name),): _simulate_predictions(risk, n, rng)
        for (name, risk), rng in zip(RISKS.items(), generators, strict=True)
    }
    comparison = compare(
        datasets,
        metrics=METRIC_NAMES,
        level=level,
        bootstrap=resamples,
        rng=seed,
        published_test=True,
        bands=False,
    )
    true_values: dict[tuple[str, str], dict[str, float]] = {}
    for study, risk in RISKS.items():
        areas_by_method = {name: method.areas(risk) for name, method in METHODS.items()}
        for metric in METRIC_NAMES:
            true_values[study, metric] = {
                name: float(areas[metric]) for name, areas in areas_by_method.items()
            }
    load_runs = {
        dict(split)["study"]: partial(score_runs, {split: predictions})
        for split, predictions in datasets.items()
    }
    comparisons = dict.fromkeys(METRIC_NAMES, comparison)
    return [RankedStudies("", comparisons, load_runs, true_values)]


def _simulate_predictions(risk: float, n: int, rng: np.random.Generator) -> Predictions:
    """Simulate the confidence scores of all methods on `n` samples."""
    is_failure = (rng.random(n) < risk).astype(np.float64)
    common_noise = rng.standard_normal(n)
    scores = {
        name: method.scores(is_failure, common_noise, rng) for name, method in METHODS.items()
    }
    return Predictions(confidence=scores, loss=is_failure)
