"""Populations of labeled logits, for comparing confidence scores."""

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
    """Logits and labels of simulated samples.

    Attributes
    ----------
    logits : ndarray of shape (n, K)
        Logits of the classifier.
    labels : ndarray of shape (n,)
        True classes, from 0 to K - 1.
    """

    logits: FloatArray
    labels: IntArray


@dataclass(frozen=True)
class Truth:
    """Estimates of the true metrics of a confidence score, with standard errors.

    Attributes
    ----------
    risk, aurc, augrc : float
        Mean loss of all samples, AURC (with randomly broken ties) and AUGRC.
    risk_error, aurc_error, augrc_error : float
        Standard errors, computed from the standard deviation over blocks of samples.
    n : int
        Number of simulated samples.
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
    """A classifier of K Gaussian classes. The function `logits` creates this object.

    Attributes
    ----------
    classes : int
        Number of classes K.
    separation : float
        Distance of the class means, in standard deviations.
    temperature : float
        Divisor of the logits.
    mismatch : float
        Weight of the neighboring feature in each logit, or 0 for the Bayes classifier.
    name : str
        The text "logits".

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
        """Simulate logits, shape (n, K), and labels, shape (n,)."""
        features, labels = self._sample(checks.positive_int(n, "n"), as_generator(rng))
        return LabeledLogits(self._logits(features), labels)

    def two_class(self) -> Population:
        """Return the population of maximum softmax probabilities, for two classes without mismatch.

        Raises
        ------
        InputError
            If there are more than two classes, or if `mismatch` is not 0.
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
        """Estimate the true metrics of a confidence score and their standard errors.

        Parameters
        ----------
        score : callable
            Function from logits, shape (m, K), to confidences, shape (m,), such as ``lambda z:
            z.max(axis=1)``. Higher is more confident.
        loss : {"zero-one", "cross-entropy"}, default="zero-one"
            Loss of a sample.
        n : int, default=400_000
            Number of simulated samples.
        blocks : int, default=20
            Number of blocks from which standard errors are computed, at least 2.
        rng : int, numpy.random.Generator or None, default=0
            Seed or generator. With the same seed, all scores are evaluated on the same samples.

        Returns
        -------
        Truth
            AURC, AUGRC and risk, with standard errors.

        Notes
        -----
        To reduce standard errors, each loss is replaced by its expectation given the features.
        """
        checks.one_of(loss, "loss", _LOSSES)
        n_samples = checks.positive_int(n, "n")
        n_blocks = checks.positive_int(blocks, "blocks")
        if n_blocks < 2 or n_samples < 2 * n_blocks:
            raise InputError(
                f"`blocks` must be at least 2 and `n` twice that; got {blocks!r} and {n!r}"
            )
        features, _ = self._sample(n_samples, as_generator(rng))
        confidence = np.empty(n_samples)
        mean_loss = np.empty(n_samples)
        block_metrics = []
        for block in np.array_split(np.arange(n_samples), n_blocks):
            z = self._logits(features[block])
            block_scores = to_numpy(score(z), "score")
            confidence[block] = checks.confidence(block_scores, "score", length=block.size)
            mean_loss[block] = self._mean_loss(features[block], z, loss)
            block_metrics.append(_risk_and_areas(confidence[block], mean_loss[block]))
        deviations = np.std(block_metrics, axis=0, ddof=1)
        risk_error, aurc_error, augrc_error = (deviations / np.sqrt(n_blocks)).tolist()
        risk, aurc, augrc = _risk_and_areas(confidence, mean_loss)
        return Truth(risk, aurc, augrc, risk_error, aurc_error, augrc_error, n_samples)

    @property
    def _scale(self) -> float:
        """Distance of each class mean from the origin."""
        return self.separation / float(np.sqrt(2))

    def _sample(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
        labels = rng.integers(0, self.classes, n)
        features = rng.standard_normal((n, self.classes))
        features[np.arange(n), labels] += self._scale
        return features, labels

    def _logits(self, features: FloatArray) -> FloatArray:
        observed = features + self.mismatch * np.roll(features, 1, axis=1)
        return observed * (self._scale / self.temperature)

    def _mean_loss(self, features: FloatArray, z: FloatArray, loss: str) -> FloatArray:
        """Return the expected loss of each sample, given its features, shape (n,)."""
        posterior = np.exp(_log_softmax(features * self._scale))
        if loss == "cross-entropy":
            return np.asarray(-(posterior * _log_softmax(z)).sum(axis=1))
        return np.asarray(1.0 - posterior[np.arange(z.shape[0]), z.argmax(axis=1)])


def _log_softmax(z: FloatArray) -> FloatArray:
    shifted = z - z.max(axis=1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))


def _risk_and_areas(confidence: FloatArray, loss: FloatArray) -> tuple[float, float, float]:
    """Return the risk, AURC and AUGRC of a large sample, in which ties are broken at random."""
    n = confidence.size
    _, group_index, count = np.unique(-confidence, return_inverse=True, return_counts=True)
    mean_loss = np.bincount(group_index, loss) / count
    accepted_loss = np.cumsum(np.repeat(mean_loss, count))
    risk = float(accepted_loss[-1] / n)
    aurc = float((accepted_loss / np.arange(1, n + 1)).mean())
    augrc = float(accepted_loss.mean() / n - risk / (2 * n))
    return risk, aurc, augrc


def logits(
    classes: int = 5, *, separation: float = 3.0, temperature: float = 1.0, mismatch: float = 0.0
) -> LogitPopulation:
    """Create a population of labeled logits of a classifier for Gaussian classes.

    Confidence scores computed from these logits have different rankings.

    Parameters
    ----------
    classes : int, default=5
        Number of classes K, at least 2. All classes are equally frequent.
    separation : float, default=3.0
        Distance between any two class means, in standard deviations, above 0.
    temperature : float, default=1.0
        Divisor of the logits, above 0. If `mismatch` is 0, the softmax is calibrated at temperature
        1 and overconfident at lower temperatures.
    mismatch : float, default=0.0
        Weight of the feature of class k - 1 in the logit of class k. If the weight is not 0, the
        classifier differs from the Bayes classifier.

    Returns
    -------
    LogitPopulation
        The population. ``sample_logits(n, rng=)`` simulates samples. ``two_class()`` returns the
        exact population for two classes. ``truth(score)`` estimates the true metrics of a score
        with their standard errors.

    Raises
    ------
    InputError
        If `classes` is not an integer of at least 2.
    DomainError
        If `separation` or `temperature` is not positive, or if `mismatch` is not finite.

    Notes
    -----
    The features of class y are x ~ N(m_y, I) in K dimensions. The class means m_k are on the axes.
    The logits of the Bayes classifier are m_k . x. With two classes, all softmax-based scores
    produce the same ranking.

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
        classes=int(classes),
        separation=checks.positive(separation, "separation"),
        temperature=checks.positive(temperature, "temperature"),
        mismatch=checks.number(mismatch, "mismatch"),
    )
