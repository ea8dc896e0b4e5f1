"""Draw random samples from predictions or from simulated populations.

A source returns samples of equal size in blocks, sorted by a score, so that many estimates are
computed by one matrix product.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from abstain._foundation.lazy_imports import special
from abstain.confidence import ConfidenceScore, applicable
from abstain.confidence import score as score_of
from abstain.metrics import augrc, aurc, population_aurc
from abstain.predictions import Predictions, per_sample_loss
from abstain.simulate import LogitPopulation, Population, Truth
from abstain.typing import Array, BoolArray, FloatArray, IntArray

#: Scores of table S2. They are the softmax response, the largest logit, the softmax margin, the
#: negative entropy, the negative Gini index and the l2 norm. Table S2 defines the l2 norm of the
#: logits. The published code and this module compute the l2 norm of the softmax.
TABLE_S2_SCORES: Final = ("msr", "mls", "margin", "pe", "gini", "l2_norm")

_NORM: Final = "l2_norm"


@dataclass(frozen=True)
class SoftmaxNorm:
    """Confidence score that is the l2 norm of the softmax probabilities.

    The score is stored as log sqrt(sum of p²), because norms close to 1 would be rounded to 1. The
    norm ranks samples in the same order as "gini".

    Attributes
    ----------
    name : str
        Name of the score in results.

    Examples
    --------
    >>> import numpy as np
    >>> import abstain as ab
    >>> from abstain_bench.studies import SoftmaxNorm
    >>> p = ab.Predictions(probabilities=[[0.6, 0.4], [0.8, 0.2]], labels=[0, 0])
    >>> np.exp(SoftmaxNorm().score(p).values).round(4).tolist()
    [0.7211, 0.8246]
    """

    name: str = _NORM

    def score(self, predictions: Predictions) -> ConfidenceScore:
        """Compute the logarithm of the norm of each sample."""
        gini = score_of("gini", predictions)
        return ConfidenceScore(self.name, 0.5 * special.log_expit(gini.values))


def compute_confidence(name: str, predictions: Predictions) -> ConfidenceScore:
    """Return the confidence score with this name, which may be stored in the predictions."""
    is_stored = name in (predictions.confidence or {})
    if name == _NORM and not is_stored:
        return SoftmaxNorm().score(predictions)
    return score_of(name, predictions)


def default_scores(predictions: Predictions) -> tuple[str, ...]:
    """Return the scores of table S2 that apply, or the stored scores if none applies."""
    available = applicable(predictions)
    scores = tuple(
        name
        for name in TABLE_S2_SCORES
        if name in available or (name == _NORM and "gini" in available)
    )
    return scores or tuple(predictions.confidence or {})


#: Largest number of values that are drawn at once.
_BLOCK_SIZE: Final = 2**20

#: Sample size for the estimated true values of a population of logits.
_N_TRUE_VALUE: Final = 400_000

#: Name for the score of a population and for losses other than the 0/1 loss.
UNNAMED: Final = "own"


class TrueAreas(NamedTuple):
    """True values of the areas."""

    aurc: float
    augrc: float


class ScoredCase(NamedTuple):
    """Confidences and losses of a data set for one pair of score and loss."""

    data: str
    loss: str
    score: str
    confidence: Array
    losses: FloatArray


class ScoredData(NamedTuple):
    """Confidences and losses of a data set, and the reason if a default loss is missing."""

    name: str
    confidence: dict[str, ConfidenceScore]
    loss: dict[str, FloatArray]
    omission: str = ""

    def cases(self) -> Iterator[ScoredCase]:
        """Yield a case for each pair of loss and score."""
        for loss, losses in self.loss.items():
            for score, confidence in self.confidence.items():
                yield ScoredCase(self.name, loss, score, confidence.values, losses)


class OrderedBlock(NamedTuple):
    """A block of b samples of size n as arrays of shape (b, n), sorted by ascending confidence."""

    #: Values with the same order and ties as the score.
    confidence: Array
    #: Mapping from names of losses to losses.
    loss: dict[str, FloatArray]
    #: Whether an entry has the same confidence as the previous entry. None if there are no ties.
    is_tied_with_previous: BoolArray | None


class SampleSource(ABC):
    """A source of random samples with known true values."""

    #: Name in tables.
    name: str
    scores: tuple[str, ...]
    losses: tuple[str, ...]
    #: Display name of the sampling scheme.
    kind: str
    #: Largest sample size. None if there is no limit.
    max_size: int | None = None
    #: Whether a sample may contain tied confidences.
    has_ties: bool = False
    #: Largest number of values that are drawn at once.
    block_size: int = _BLOCK_SIZE

    @abstractmethod
    def true_areas(self, score: str, loss: str) -> TrueAreas:
        """Return the true areas for a pair of score and loss."""

    @abstractmethod
    def draw(self, count: int, n: int, rng: np.random.Generator) -> Mapping[str, OrderedBlock]:
        """Draw `count` samples of size `n`, and return them sorted by each score."""

    def blocks(
        self, repeats: int, n: int, rng: np.random.Generator
    ) -> Iterator[Mapping[str, OrderedBlock]]:
        """Draw `repeats` samples of size `n`, in blocks that limit the memory."""
        step = max(self.block_size // n, 1)
        for start in range(0, repeats, step):
            yield self.draw(min(step, repeats - start), n, rng)


class FileSource(SampleSource):
    """Random samples of the rows of a data set, with or without replacement."""

    def __init__(self, data: ScoredData, *, replace: bool = False) -> None:
        self.name = data.name
        self.scores = tuple(data.confidence)
        self.losses = tuple(data.loss)
        self.kind = "file, with replacement" if replace else "file, without replacement"
        # Tied rows have the same rank.
        self._ranks: dict[str, IntArray] = {
            score: np.unique(confidence.values, return_inverse=True)[1].astype(np.int64)
            for score, confidence in data.confidence.items()
        }
        self.size = next(iter(self._ranks.values())).size
        self.max_size = None if replace else self.size
        self.has_ties = any(ranks.max() + 1 < self.size for ranks in self._ranks.values())
        self._losses = data.loss
        self._replace = replace
        self._true_areas = {
            (score, loss): self._areas_of_all_rows(ranks, losses)
            for score, ranks in self._ranks.items()
            for loss, losses in data.loss.items()
        }

    def _areas_of_all_rows(self, ranks: IntArray, loss: FloatArray) -> TrueAreas:
        """Compute the true areas, which are those of all rows.

        For sampling without replacement, the true AURC is the plug-in estimate on all rows. For
        sampling with replacement, it is the limit of the plug-in estimate as the sample size
        increases.
        """
        if self._replace:
            return TrueAreas(population_aurc(ranks, loss), augrc(ranks, loss))
        return TrueAreas(aurc(ranks, loss, estimator="plugin"), augrc(ranks, loss))

    def true_areas(self, score: str, loss: str) -> TrueAreas:
        """Return the areas of the complete data set for a pair of score and loss."""
        return self._true_areas[score, loss]

    def draw(self, count: int, n: int, rng: np.random.Generator) -> Mapping[str, OrderedBlock]:
        """Draw `count` independent samples of `n` rows."""
        if self._replace:
            rows = rng.integers(self.size, size=(count, n))
        else:
            samples = [rng.choice(self.size, n, replace=False, shuffle=False) for _ in range(count)]
            rows = np.stack(samples)
        return {score: self._order(ranks, rows) for score, ranks in self._ranks.items()}

    def _order(self, ranks: IntArray, rows: IntArray) -> OrderedBlock:
        """Sort the rows of each sample by rank."""
        # Sorting integer keys of rank and row is many times faster than an argsort.
        keys = np.sort(ranks[rows] * self.size + rows, axis=1)
        sorted_ranks, sorted_rows = np.divmod(keys, self.size)
        losses = {name: loss[sorted_rows] for name, loss in self._losses.items()}
        return OrderedBlock(sorted_ranks, losses, ties_with_previous(sorted_ranks))


class PopulationSource(SampleSource):
    """Independent samples of a population whose true areas are known exactly."""

    def __init__(self, name: str, population: Population) -> None:
        self.name = name
        self.scores = (UNNAMED,)
        self.losses = ("zero_one" if population.binary else UNNAMED,)
        self.kind = "population"
        self.has_ties = bool(population.curve.ties)
        self._population = population

    def true_areas(self, score: str, loss: str) -> TrueAreas:
        """Return the true areas of the population."""
        del score, loss
        return TrueAreas(self._population.aurc(), self._population.augrc)

    def draw(self, count: int, n: int, rng: np.random.Generator) -> Mapping[str, OrderedBlock]:
        """Draw `count` independent samples of size `n`."""
        confidence, loss = self._population.sample(count * n, rng=rng)
        return {UNNAMED: order_samples(confidence, {self.losses[0]: loss}, n)}


class LogitSource(SampleSource):
    """Independent samples of class scores and labels, sorted by several confidence scores.

    The losses are "zero_one" and "cross_entropy".
    """

    def __init__(
        self,
        name: str,
        population: LogitPopulation,
        scores: tuple[str, ...],
        losses: tuple[str, ...],
    ) -> None:
        self.name = name
        self.scores = scores
        self.losses = losses
        self.kind = "population of logits"
        self.block_size = _BLOCK_SIZE // population.classes
        self._population = population
        self._true_values: dict[tuple[str, str], Truth] = {}

    def true_areas(self, score: str, loss: str) -> TrueAreas:
        """Estimate the true areas from a large sample, with expected losses over the labels."""
        true_values = self._estimate_true_values(score, loss)
        return TrueAreas(true_values.aurc, true_values.augrc)

    @property
    def max_relative_error(self) -> float:
        """Largest relative standard error among the estimated true AURCs."""
        true_values = [
            self._estimate_true_values(score, loss) for score in self.scores for loss in self.losses
        ]
        return max(estimate.aurc_error / estimate.aurc for estimate in true_values)

    def _estimate_true_values(self, score: str, loss: str) -> Truth:
        """Estimate the true areas for a pair of score and loss when they are first requested."""

        def confidence(z: FloatArray) -> Array:
            # Confidence scores do not depend on the labels.
            labels = np.zeros(z.shape[0], dtype=np.int64)
            return compute_confidence(score, Predictions(logits=z, labels=labels)).values

        if (score, loss) not in self._true_values:
            self._true_values[score, loss] = self._population.truth(
                confidence, loss=loss.replace("_", "-"), n=_N_TRUE_VALUE
            )
        return self._true_values[score, loss]

    def draw(self, count: int, n: int, rng: np.random.Generator) -> Mapping[str, OrderedBlock]:
        """Draw `count` independent samples of size `n`."""
        z, labels = self._population.sample_logits(count * n, rng=rng)
        predictions = Predictions(logits=z, labels=labels)
        losses = {
            name: per_sample_loss(predictions, name).astype(np.float64) for name in self.losses
        }
        blocks = {}
        for score in self.scores:
            confidence = compute_confidence(score, predictions).values
            blocks[score] = order_samples(confidence, losses, n)
        return blocks


def order_samples(confidence: Array, loss: Mapping[str, FloatArray], n: int) -> OrderedBlock:
    """Divide values into samples of size `n`, and sort each sample by ascending confidence."""
    table = confidence.reshape(-1, n)
    order = np.argsort(table, axis=1, kind="stable")
    ascending = np.take_along_axis(table, order, axis=1)
    sorted_losses = {
        name: np.take_along_axis(values.reshape(-1, n), order, axis=1)
        for name, values in loss.items()
    }
    return OrderedBlock(ascending, sorted_losses, ties_with_previous(ascending))


def ties_with_previous(ascending: Array) -> BoolArray | None:
    """Return a mask of entries that equal the previous entry of a row, or None without ties."""
    is_equal = ascending[:, 1:] == ascending[:, :-1]
    if not is_equal.any():
        return None
    first_column = np.zeros((ascending.shape[0], 1), dtype=bool)
    return np.concatenate((first_column, is_equal), axis=1)
