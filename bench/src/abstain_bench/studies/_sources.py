"""Sources of samples: the rows of predictions, or populations with known true values.

A source returns samples of one size in blocks, sorted by each score, so that every estimator is a
matrix product.
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

#: Scores of table S2: softmax response, largest logit, softmax margin, negative entropy, negative
#: Gini index, l2 norm. The table defines the norm of the logits; the published code computes the
#: norm of the softmax, and so does this module.
TABLE_S2_SCORES: Final = ("msr", "mls", "margin", "pe", "gini", "l2_norm")

_NORM: Final = "l2_norm"


@dataclass(frozen=True)
class SoftmaxNorm:
    """The l2 norm of the softmax as a confidence score for `evaluate` and `compare`.

    The logarithm of the norm, sqrt(sum of p²), is computed from the log-odds of the Gini score, so
    that norms near 1 remain distinct. It ranks samples exactly as "gini" does.

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
        """Return the logarithm of the norm for each sample, at most 0."""
        gini = score_of("gini", predictions)
        return ConfidenceScore(self.name, 0.5 * special.log_expit(gini.values))


def compute_confidence(name: str, predictions: Predictions) -> ConfidenceScore:
    """Return the confidence score with this name.

    It is a score stored in the predictions, the softmax norm of table S2, or a registered score.
    """
    is_stored = name in (predictions.confidence or {})
    if name == _NORM and not is_stored:
        return SoftmaxNorm().score(predictions)
    return score_of(name, predictions)


def default_scores(predictions: Predictions) -> tuple[str, ...]:
    """Return the applicable scores of table S2, or else the stored confidence scores."""
    available = applicable(predictions)
    scores = tuple(
        name
        for name in TABLE_S2_SCORES
        if name in available or (name == _NORM and "gini" in available)
    )
    return scores or tuple(predictions.confidence or {})


#: Largest number of samples that are drawn at once.
_BLOCK_SIZE: Final = 2**20

#: Number of samples from which the true values of a population of logits are estimated.
_N_TRUE_VALUE: Final = 400_000

#: Name of the only score of a population, and of its loss if this is not the 0/1 loss.
UNNAMED: Final = "own"


class TrueAreas(NamedTuple):
    """The true values that estimates are compared with."""

    aurc: float
    augrc: float


class ScoredCase(NamedTuple):
    """One data set with one score and one loss."""

    data: str
    loss: str
    score: str
    confidence: Array
    losses: FloatArray


class ScoredData(NamedTuple):
    """Confidence scores and losses of a data set.

    `omission` is the reason why a default loss is not among them.
    """

    name: str
    confidence: dict[str, ConfidenceScore]
    loss: dict[str, FloatArray]
    omission: str = ""

    def cases(self) -> Iterator[ScoredCase]:
        """Yield every combination of loss and score."""
        for loss, losses in self.loss.items():
            for score, confidence in self.confidence.items():
                yield ScoredCase(self.name, loss, score, confidence.values, losses)


class OrderedBlock(NamedTuple):
    """A block of b samples of size n, sorted by one score, least confident first.

    All arrays have the shape (b, n).
    """

    #: Numbers with the same order and ties as the score.
    confidence: Array
    #: Losses by the name of the loss.
    loss: dict[str, FloatArray]
    #: Whether an entry has the same confidence as the previous one; None without ties.
    is_tied_with_previous: BoolArray | None


class SampleSource(ABC):
    """A source of random samples with known true values."""

    #: Name in tables.
    name: str
    scores: tuple[str, ...]
    losses: tuple[str, ...]
    #: Sampling scheme, for tables and notes.
    kind: str
    #: Largest sample size; None without a limit.
    max_size: int | None = None
    #: Whether different samples may have the same confidence.
    has_ties: bool = False
    #: Number of samples that are drawn at once.
    block_size: int = _BLOCK_SIZE

    @abstractmethod
    def true_areas(self, score: str, loss: str) -> TrueAreas:
        """Return the true values for a score and a loss."""

    @abstractmethod
    def draw(self, count: int, n: int, rng: np.random.Generator) -> Mapping[str, OrderedBlock]:
        """Draw `count` samples of size `n` and return them sorted by every score."""

    def blocks(
        self, repeats: int, n: int, rng: np.random.Generator
    ) -> Iterator[Mapping[str, OrderedBlock]]:
        """Draw samples of one size in blocks, so that memory is bounded."""
        step = max(self.block_size // n, 1)
        for start in range(0, repeats, step):
            yield self.draw(min(step, repeats - start), n, rng)


class FileSource(SampleSource):
    """Samples drawn from the rows of predictions, with or without replacement."""

    def __init__(self, data: ScoredData, *, replace: bool = False) -> None:
        self.name, self.scores, self.losses = data.name, tuple(data.confidence), tuple(data.loss)
        self.kind = "file, with replacement" if replace else "file, without replacement"
        # Dense rank of every row by each score: tied rows have the same rank.
        self._ranks: dict[str, IntArray] = {
            score: np.unique(confidence.values, return_inverse=True)[1].astype(np.int64)
            for score, confidence in data.confidence.items()
        }
        self.size = next(iter(self._ranks.values())).size
        self.max_size = None if replace else self.size
        self.has_ties = any(ranks.max() + 1 < self.size for ranks in self._ranks.values())
        self._losses, self._replace = data.loss, replace
        self._true_areas = {
            (score, loss): self._areas_of_all_rows(ranks, losses)
            for score, ranks in self._ranks.items()
            for loss, losses in data.loss.items()
        }

    def _areas_of_all_rows(self, ranks: IntArray, loss: FloatArray) -> TrueAreas:
        """Return the plug-in of all rows, or its limit if rows are drawn with replacement."""
        if self._replace:
            return TrueAreas(population_aurc(ranks, loss), augrc(ranks, loss))
        return TrueAreas(aurc(ranks, loss, estimator="plugin"), augrc(ranks, loss))

    def true_areas(self, score: str, loss: str) -> TrueAreas:
        """Return the areas of all rows."""
        return self._true_areas[score, loss]

    def draw(self, count: int, n: int, rng: np.random.Generator) -> Mapping[str, OrderedBlock]:
        """Draw the rows of each sample independently of the other samples."""
        if self._replace:
            rows = rng.integers(self.size, size=(count, n))
        else:
            samples = [rng.choice(self.size, n, replace=False, shuffle=False) for _ in range(count)]
            rows = np.stack(samples)
        return {score: self._order(ranks, rows) for score, ranks in self._ranks.items()}

    def _order(self, ranks: IntArray, rows: IntArray) -> OrderedBlock:
        # A sort key is rank * size + row: sorting keys is many times faster than an argsort.
        keys = np.sort(ranks[rows] * self.size + rows, axis=1)
        sorted_ranks, sorted_rows = np.divmod(keys, self.size)
        loss = {name: losses[sorted_rows] for name, losses in self._losses.items()}
        return OrderedBlock(sorted_ranks, loss, ties_with_previous(sorted_ranks))


class PopulationSource(SampleSource):
    """Independent samples of a population with exact true values."""

    def __init__(self, name: str, population: Population) -> None:
        self.name, self.scores = name, (UNNAMED,)
        self.losses = ("zero_one" if population.binary else UNNAMED,)
        self.kind = "population"
        self.has_ties = bool(population.curve.ties)
        self._population = population

    def true_areas(self, score: str, loss: str) -> TrueAreas:
        """Return the exact values."""
        del score, loss
        return TrueAreas(self._population.aurc(), self._population.augrc)

    def draw(self, count: int, n: int, rng: np.random.Generator) -> Mapping[str, OrderedBlock]:
        """Draw `count` times `n` values and divide them into samples."""
        confidence, loss = self._population.sample(count * n, rng=rng)
        return {UNNAMED: order_samples(confidence, {self.losses[0]: loss}, n)}


class LogitSource(SampleSource):
    """Independent samples of a population of labeled class scores, sorted by several scores.

    The true values are available for the losses "zero_one" and "cross_entropy".
    """

    def __init__(
        self,
        name: str,
        population: LogitPopulation,
        scores: tuple[str, ...],
        losses: tuple[str, ...],
    ) -> None:
        self.name, self.scores, self.losses = name, scores, losses
        self.kind = "population of logits"
        self.block_size = _BLOCK_SIZE // population.classes
        self._population = population
        self._true_values: dict[tuple[str, str], Truth] = {}

    def true_areas(self, score: str, loss: str) -> TrueAreas:
        """Return the values of a large sample, averaged over the labels of each sample."""
        true_values = self._estimate_true_values(score, loss)
        return TrueAreas(true_values.aurc, true_values.augrc)

    @property
    def max_relative_error(self) -> float:
        """Largest standard error of the true AURC, relative to the AURC."""
        true_values = [
            self._estimate_true_values(score, loss) for score in self.scores for loss in self.losses
        ]
        return max(estimate.aurc_error / estimate.aurc for estimate in true_values)

    def _estimate_true_values(self, score: str, loss: str) -> Truth:
        if (score, loss) not in self._true_values:
            self._true_values[score, loss] = self._population.truth(
                lambda z: compute_confidence(score, _with_any_labels(z)).values,
                loss=loss.replace("_", "-"),
                n=_N_TRUE_VALUE,
            )
        return self._true_values[score, loss]

    def draw(self, count: int, n: int, rng: np.random.Generator) -> Mapping[str, OrderedBlock]:
        """Draw `count` times `n` class scores and divide them into samples."""
        z, labels = self._population.sample_logits(count * n, rng=rng)
        predictions = Predictions(logits=z, labels=labels)
        losses = {
            name: per_sample_loss(predictions, name).astype(np.float64) for name in self.losses
        }
        return {
            score: order_samples(compute_confidence(score, predictions).values, losses, n)
            for score in self.scores
        }


def _with_any_labels(z: FloatArray) -> Predictions:
    """Return predictions for a confidence score, which does not depend on the labels."""
    return Predictions(logits=z, labels=np.zeros(z.shape[0], dtype=np.int64))


def order_samples(confidence: Array, loss: Mapping[str, FloatArray], n: int) -> OrderedBlock:
    """Divide b x n values into b samples and sort each by ascending confidence."""
    table = confidence.reshape(-1, n)
    order = np.argsort(table, axis=1, kind="stable")
    ascending = np.take_along_axis(table, order, axis=1)
    sorted_losses = {
        name: np.take_along_axis(values.reshape(-1, n), order, axis=1)
        for name, values in loss.items()
    }
    return OrderedBlock(ascending, sorted_losses, ties_with_previous(ascending))


def ties_with_previous(ascending: Array) -> BoolArray | None:
    """Return which entries of sorted rows equal the previous entry, or None if there are none."""
    is_equal = ascending[:, 1:] == ascending[:, :-1]
    if not is_equal.any():
        return None
    first_column = np.zeros((ascending.shape[0], 1), dtype=bool)
    return np.concatenate((first_column, is_equal), axis=1)
