"""Methods of which the true AURC and AUGRC are known, on the same simulated samples.

A success has the score N(separation, 1), a failure N(0, 1), or with a small chance, such as that
its label is wrong, a score as high as the best successes. Methods share the failures and a part of
the noise.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import sqrt
from typing import Final

import numpy as np

from abstain._foundation.lazy_imports import special
from abstain._foundation.random import as_generator
from abstain.evaluation import compare
from abstain.evaluation.comparison import ScoredRun
from abstain.evaluation.comparison.runs import SplitRoles, score_runs
from abstain.predictions import Predictions
from abstain.typing import FloatArray, Split
from abstain_bench.studies.rankings.changes import TWO, RankedStudies

#: What two methods have in common of the noise of a sample: the correlation of their scores.
_COMMON: Final = 0.7

#: By how much a failure that is taken for a success lies above the mean success.
_LIFT: Final = 1.5

#: Thresholds at which the true selective risk is summed up, and how far out they go.
_STEPS, _FAR = 40_001, 9.0


@dataclass(frozen=True)
class SimulatedMethod:
    """The law of a score.

    Attributes
    ----------
    separation : float
        How far successes lie above failures, in standard deviations.
    trusted : float
        The share of the failures whose score is as high as that of the best successes.

    Examples
    --------
    >>> SimulatedMethod(1.6).areas(0.1)["augrc"].round(6)
    np.float64(0.016605)
    """

    separation: float
    trusted: float = 0.0

    def areas(self, risk: float) -> dict[str, np.float64]:
        """Return the true areas at a share of failures, by the names of the metrics.

        AUGRC in closed form, (1 - AUROC) R (1 - R) + R²/2; AURC by Simpson's rule.
        """
        d, q = self.separation, self.trusted
        auroc = (1 - q) * special.ndtr(d / sqrt(2)) + q * special.ndtr(-_LIFT / sqrt(2))
        at = np.linspace(-_FAR, d + _LIFT + _FAR, _STEPS)
        failed = risk * ((1 - q) * special.ndtr(-at) + q * special.ndtr(d + _LIFT - at))
        accepted = failed + (1 - risk) * special.ndtr(d - at)
        density = risk * ((1 - q) * _density(at) + q * _density(at - d - _LIFT))
        density += (1 - risk) * _density(at - d)
        weight = np.where(np.arange(_STEPS) % 2, 4.0, 2.0)
        weight[[0, -1]] = 1.0
        step = at[1] - at[0]
        selective = np.sum(weight * density * failed / accepted) * step / 3
        generalized = (1 - auroc) * risk * (1 - risk) + risk**2 / 2
        return dict(zip(TWO, (selective, np.float64(generalized)), strict=True))

    def scores(
        self, failed: FloatArray, common: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """Draw the scores of samples of which some fail, and whose noise is known in part."""
        own = rng.standard_normal(failed.size)
        noise = sqrt(_COMMON) * common + sqrt(1 - _COMMON) * own
        trusted = (failed > 0) & (rng.random(failed.size) < self.trusted)
        high = self.separation + _LIFT * trusted
        return np.asarray(noise + np.where((failed > 0) & ~trusted, 0.0, high))


#: Three methods of one law, whose differences are chance; others that are better and worse; and
#: some that order better but for a few failures, which AURC and AUGRC weigh differently.
METHODS: Final = {
    "same law 1": SimulatedMethod(1.6),
    "same law 2": SimulatedMethod(1.6),
    "same law 3": SimulatedMethod(1.6),
    "blunter": SimulatedMethod(1.5),
    "sharper": SimulatedMethod(1.8),
    "sharper, trusts 1 %": SimulatedMethod(1.8, 0.01),
    "sharper, trusts 3 %": SimulatedMethod(1.9, 0.03),
    "sharpest, trusts 6 %": SimulatedMethod(2.1, 0.06),
}

#: The data sets and their shares of failures.
RISKS: Final = {"easy": 0.05, "usual": 0.12, "hard": 0.3, "shifted": 0.5}


def _density(x: FloatArray) -> FloatArray:
    return np.asarray(np.exp(-x * x / 2) / sqrt(2 * np.pi))


def simulated(*, n: int, resamples: int, level: float, seed: int) -> list[RankedStudies]:
    """Rank the methods on one sample of each data set."""
    streams = as_generator(seed).spawn(len(RISKS))
    parts: dict[Split, Predictions] = {
        (("study", name),): _drawn(risk, n, rng)
        for (name, risk), rng in zip(RISKS.items(), streams, strict=True)
    }
    comparison = compare(
        parts,
        metrics=TWO,
        level=level,
        bootstrap=resamples,
        rng=seed,
        published_test=True,
        bands=False,
    )
    truth = {
        (name, metric): {m: float(method.areas(risk)[metric]) for m, method in METHODS.items()}
        for name, risk in RISKS.items()
        for metric in TWO
    }
    units = {dict(split)["study"]: partial(_units, split, part) for split, part in parts.items()}
    return [RankedStudies("", dict.fromkeys(TWO, comparison), units, truth)]


def _drawn(risk: float, n: int, rng: np.random.Generator) -> Predictions:
    failed = (rng.random(n) < risk).astype(np.float64)
    common = rng.standard_normal(n)
    scores = {name: method.scores(failed, common, rng) for name, method in METHODS.items()}
    return Predictions(confidence=scores, loss=failed)


def _units(split: Split, part: Predictions) -> Sequence[ScoredRun]:
    return score_runs({split: part}, SplitRoles(None, None))
