"""Labeled logits of a classifier of Gaussian classes, for studies over confidence scores."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import to_numpy
from abstain._foundation.random import as_generator
from abstain.errors import InputError
from abstain.simulate.gaussians import two_class_logits
from abstain.simulate.population import Population
from abstain.typing import AnyArray, FloatArray, IntArray, Rng

_LOSSES = ("zero-one", "cross-entropy")


class LabeledLogits(NamedTuple):
    """What a classifier said about samples, and what they are.

    Attributes
    ----------
    logits : ndarray of shape (n, K)
        Raw class scores.
    labels : ndarray of shape (n,)
        True classes from 0.
    """

    logits: FloatArray
    labels: IntArray


@dataclass(frozen=True)
class Truth:
    """The metrics of a confidence score on a population, with the standard error of each.

    Attributes
    ----------
    risk, aurc, augrc : float
        Full-coverage risk, AURC (ties averaged) and AUGRC.
    risk_error, aurc_error, augrc_error : float
        Their standard errors, from the spread over the blocks.
    n : int
        Number of samples they were estimated from.
    """

    risk: float
    aurc: float
    augrc: float
    risk_error: float
    aurc_error: float
    augrc_error: float
    n: int


@dataclass(frozen=True)
class LogitPopulation:
    """A classifier of K Gaussian classes, made by `logits`.

    Attributes
    ----------
    classes : int
        K.
    separation : float
        Distance of the class means, in standard deviations.
    temperature : float
        Divides the logits.
    mismatch : float
        How much each class looks at its neighbor's feature; 0 for the Bayes classifier.
    name : str
        "logits".

    Examples
    --------
    >>> from abstain import simulate
    >>> population = simulate.logits(3)
    >>> logits, labels = population.sample_logits(4, rng=0)
    >>> logits.shape, labels.tolist()
    ((4, 3), [2, 1, 1, 0])
    """

    classes: int
    separation: float
    temperature: float
    mismatch: float
    name: str = "logits"

    def sample_logits(self, n: int, *, rng: Rng = None) -> LabeledLogits:
        """Draw n samples: their logits (n, K) and labels (n,)."""
        features, labels = self._draw(checks.positive_int(n, "n"), as_generator(rng))
        return LabeledLogits(self._logits(features), labels)

    def two_class(self) -> Population:
        """Return the exact population of the top probability, for two classes and the Bayes rule.

        Raises
        ------
        InputError
            If there are more than two classes or a mismatch.
        """
        if self.classes != 2 or self.mismatch:
            raise InputError(
                "the exact population needs `classes=2` and `mismatch=0`; got "
                f"{self.classes} and {self.mismatch!r}. Use `truth` for an estimate with its error."
            )
        return two_class_logits(self.separation, temperature=self.temperature)

    def truth(
        self,
        score: Callable[[FloatArray], AnyArray],
        *,
        loss: str = "zero-one",
        n: int = 400_000,
        blocks: int = 20,
        rng: Rng = 0,
    ) -> Truth:
        """Estimate the metrics of a confidence score from a large sample, with their errors.

        Parameters
        ----------
        score : callable
            From logits (m, K) to confidences (m,), higher is more trusted; for instance
            ``lambda z: z.max(axis=1)``.
        loss : {"zero-one", "cross-entropy"}, default="zero-one"
            What is lost on a sample.
        n : int, default=400_000
            Size of the sample.
        blocks : int, default=20
            Parts whose spread gives the standard errors, at least 2.
        rng : int, numpy.random.Generator or None, default=0
            A seed: the same sample, whatever the score.

        Returns
        -------
        Truth
            AURC, AUGRC and risk with standard errors.

        Notes
        -----
        No loss is drawn: each sample counts with its mean loss given its features, which is known,
        so that the error is a fraction of that of drawn labels.
        """
        checks.one_of(loss, "loss", _LOSSES)
        size, block_areas = checks.positive_int(n, "n"), checks.positive_int(blocks, "blocks")
        if block_areas < 2 or size < 2 * block_areas:
            raise InputError(
                f"`blocks` must be at least 2 and `n` twice that; got {blocks!r} and {n!r}"
            )
        features, _ = self._draw(size, as_generator(rng))
        confidence = np.empty(size)
        mean_loss = np.empty(size)
        for rows in np.array_split(np.arange(size), block_areas):
            z = self._logits(features[rows])
            confidence[rows] = checks.confidence(
                to_numpy(score(z), "score"), "score", length=rows.size
            )
            mean_loss[rows] = self._mean_loss(features[rows], z, loss)
        standard_errors = np.array([
            _areas(confidence[rows], mean_loss[rows])
            for rows in np.array_split(np.arange(size), block_areas)
        ])  # fmt: skip
        risk, aurc, augrc = _areas(confidence, mean_loss)
        errors = (standard_errors.std(axis=0, ddof=1) / np.sqrt(block_areas)).tolist()
        return Truth(risk, aurc, augrc, errors[0], errors[1], errors[2], size)

    @property
    def _scale(self) -> float:
        """Distance of each class mean from the origin."""
        return self.separation / float(np.sqrt(2))

    def _draw(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
        labels = rng.integers(0, self.classes, n)
        features = rng.standard_normal((n, self.classes))
        features[np.arange(n), labels] += self._scale
        return features, labels

    def _logits(self, features: FloatArray) -> FloatArray:
        observed = features + self.mismatch * np.roll(features, 1, axis=1)
        return observed * (self._scale / self.temperature)

    def _mean_loss(self, features: FloatArray, z: FloatArray, loss: str) -> FloatArray:
        posterior = np.exp(_log_softmax(features * self._scale))
        if loss == "cross-entropy":
            return np.asarray(-(posterior * _log_softmax(z)).sum(axis=1))
        return np.asarray(1.0 - posterior[np.arange(z.shape[0]), z.argmax(axis=1)])


def _log_softmax(z: FloatArray) -> FloatArray:
    shifted = z - z.max(axis=1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))


def _areas(confidence: FloatArray, loss: FloatArray) -> tuple[float, float, float]:
    """Risk, AURC and AUGRC of a large sample: mean selective and generalized risk of all counts.

    Equal confidences share their mean loss, which is the mean over the orders of a tie.
    """
    _, group_ends, count = np.unique(-confidence, return_inverse=True, return_counts=True)
    tie_sizes = np.bincount(group_ends, loss) / count
    accepted = np.cumsum(np.repeat(tie_sizes, count))
    n = confidence.size
    selective = accepted / np.arange(1, n + 1)
    risk = float(accepted[-1] / n)
    return risk, float(selective.mean()), float(accepted.mean() / n - risk / (2 * n))


def logits(
    classes: int = 5, *, separation: float = 3.0, temperature: float = 1.0, mismatch: float = 0.0
) -> LogitPopulation:
    """Make a population of labeled logits, for which the scores of the field differ.

    Answers: which confidence score ranks best when the classifier is right, overconfident or
    wrong in a known way?

    Parameters
    ----------
    classes : int, default=5
        Number of classes K, at least 2, equally frequent.
    separation : float, default=3.0
        Distance of any two class means, in standard deviations, above 0.
    temperature : float, default=1.0
        Divides the logits, above 0: calibrated at 1 (without mismatch), overconfident below.
    mismatch : float, default=0.0
        Weight with which class k also looks at the feature of class k - 1: the classifier is no
        longer the Bayes classifier.

    Returns
    -------
    LogitPopulation
        ``.sample_logits(n, rng=)``; for two classes ``.two_class()`` is exact, for more
        ``.truth(score)`` estimates the metrics of a score with their standard errors.

    Raises
    ------
    InputError
        If `classes` is not an integer of at least 2.
    DomainError
        If `separation` or `temperature` is not above 0 or `mismatch` is not finite.

    Notes
    -----
    Features x ~ N(m_y, I) in K dimensions with means on the axes; the Bayes logits are m_k . x.
    With two classes every score of the softmax ranks alike, the largest logit does not.

    Examples
    --------
    >>> from abstain import simulate
    >>> population = simulate.logits(5, temperature=0.5)
    >>> truth = population.truth(lambda z: z.max(axis=1), n=20_000)
    >>> round(truth.risk, 3), round(truth.augrc, 3), truth.augrc_error < 0.001
    (0.185, 0.054, True)
    """
    if checks.positive_int(classes, "classes") < 2:
        raise InputError(f"`classes` must be an integer of at least 2; got {classes!r}")
    return LogitPopulation(
        int(classes),
        checks.positive(separation, "separation"),
        checks.positive(temperature, "temperature"),
        checks.number(mismatch, "mismatch"),
    )
