"""Where the samples of a study come from: files of predictions, or populations with known truth.

A source hands out samples of one size in blocks, in the order of each score, so that every
estimator is a product of matrices.
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

#: The names of table S2: softmax response, largest logit, softmax margin, negative entropy,
#: negative Gini index, l2 norm. The table prints the norm of the logits; the code takes it of the
#: softmax, and so is it here.
SCORES_OF_TABLE: Final = ("msr", "mls", "margin", "pe", "gini", "l2_norm")

_NORM: Final = "l2_norm"


@dataclass(frozen=True)
class SoftmaxNorm:
    """The l2 norm of the softmax as a score that `evaluate` and `compare` take.

    The logarithm of the norm, sqrt(sum of p²), is computed from the log-odds of the Gini score, so
    that norms next to 1 stay apart; it ranks samples exactly as "gini" does.

    Attributes
    ----------
    name : str
        The name that results carry.

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
        """Return ln of the norm for each sample, at most 0."""
        gini = score_of("gini", predictions)
        return ConfidenceScore(self.name, 0.5 * special.log_expit(gini.values))


def confidence_of(name: str, predictions: Predictions) -> ConfidenceScore:
    """Return a score of the catalogue, of the data, or the norm of table S2."""
    own = name in (predictions.confidence or {})
    if name == _NORM and not own:
        return SoftmaxNorm().score(predictions)
    return score_of(name, predictions)


def usual_scores(predictions: Predictions) -> tuple[str, ...]:
    """Return the scores of table S2 that predictions allow, else their own confidences."""
    allowed = applicable(predictions)
    of_table = [s for s in SCORES_OF_TABLE if s in allowed or (s == _NORM and "gini" in allowed)]
    return tuple(of_table) or tuple(predictions.confidence or {})


#: The most samples that are drawn at once.
_BLOCK: Final = 2**20

#: Samples of a population of logits from which its truth is estimated.
_TRUTH: Final = 400_000

#: What a population calls its only score, and its loss where that is not 0/1.
OWN: Final = "own"


class TrueAreas(NamedTuple):
    """The true values that estimates are measured against."""

    aurc: float
    augrc: float


class ScoredCase(NamedTuple):
    """One data set under one score and one loss."""

    data: str
    loss: str
    score: str
    confidence: Array
    losses: FloatArray


class ScoredData(NamedTuple):
    """Confidences and losses of a data set, and why a usual loss is not among them."""

    name: str
    confidence: dict[str, ConfidenceScore]
    loss: dict[str, FloatArray]
    without: str = ""

    def cases(self) -> Iterator[ScoredCase]:
        """Yield every loss under every score."""
        for loss, values in self.loss.items():
            for score, own in self.confidence.items():
                yield ScoredCase(self.name, loss, score, own.values, values)


class OrderedBlock(NamedTuple):
    """A block of b samples of size n in the order of one score, the least confident first.

    All arrays have the shape (b, n).
    """

    #: Any numbers of the same order.
    confidence: Array
    #: By the name of the loss.
    loss: dict[str, FloatArray]
    #: Whether an entry shares its confidence with the one before; None when none does.
    tied: BoolArray | None


class Source(ABC):
    """Where samples come from."""

    #: What the tables call it.
    name: str
    #: The names that samples are ordered and judged by.
    scores: tuple[str, ...]
    losses: tuple[str, ...]
    #: How samples are drawn, in words.
    kind: str
    #: The largest sample that can be drawn; None when there is no limit.
    largest: int | None = None
    #: Whether distinct samples may share a confidence.
    tied: bool = False
    #: Samples that are drawn at once.
    block: int = _BLOCK

    @abstractmethod
    def truth(self, score: str, loss: str) -> TrueAreas:
        """Return what the estimates are measured against."""

    @abstractmethod
    def draw(self, count: int, n: int, rng: np.random.Generator) -> Mapping[str, OrderedBlock]:
        """Draw so many samples of one size; return them in the order of every score."""

    def blocks(
        self, repeats: int, n: int, rng: np.random.Generator
    ) -> Iterator[Mapping[str, OrderedBlock]]:
        """Draw samples of one size, block by block so that memory stays bounded."""
        step = max(self.block // n, 1)
        for start in range(0, repeats, step):
            yield self.draw(min(step, repeats - start), n, rng)


class FileSource(Source):
    """Samples drawn from the rows of predictions; with `replace` one may come twice in a sample."""

    def __init__(self, known: ScoredData, *, replace: bool = False) -> None:
        self.name, self.scores, self.losses = known.name, tuple(known.confidence), tuple(known.loss)
        self.kind = "file, with replacement" if replace else "file, without replacement"
        # The dense rank of every row under each score, equal for tied rows.
        self._codes: dict[str, IntArray] = {
            score: np.unique(own.values, return_inverse=True)[1].astype(np.int64)
            for score, own in known.confidence.items()
        }
        self.size = next(iter(self._codes.values())).size
        self.largest = None if replace else self.size
        self.tied = any(ranks.max() + 1 < self.size for ranks in self._codes.values())
        self._values, self._replace = known.loss, replace
        self._truths = {
            (score, loss): self._areas(codes, values)
            for score, codes in self._codes.items()
            for loss, values in known.loss.items()
        }

    def _areas(self, codes: IntArray, loss: FloatArray) -> TrueAreas:
        """Return the areas of all rows: the plug-in, or its limit for independent draws."""
        if self._replace:
            return TrueAreas(population_aurc(codes, loss), augrc(codes, loss))
        return TrueAreas(aurc(codes, loss, estimator="plugin"), augrc(codes, loss))

    def truth(self, score: str, loss: str) -> TrueAreas:
        """Return the values of all rows."""
        return self._truths[score, loss]

    def draw(self, count: int, n: int, rng: np.random.Generator) -> Mapping[str, OrderedBlock]:
        """Draw rows, each sample by itself."""
        if self._replace:
            rows = rng.integers(self.size, size=(count, n))
        else:
            drawn = [rng.choice(self.size, n, replace=False, shuffle=False) for _ in range(count)]
            rows = np.stack(drawn)
        return {score: self._ordered(codes, rows) for score, codes in self._codes.items()}

    def _ordered(self, codes: IntArray, rows: IntArray) -> OrderedBlock:
        # Rank and row in one number: sorting numbers is many times faster than an argsort.
        keys = np.sort(codes[rows] * self.size + rows, axis=1)
        rank, row = np.divmod(keys, self.size)
        return OrderedBlock(rank, {k: loss[row] for k, loss in self._values.items()}, tied_in(rank))


class PopulationSource(Source):
    """Independent samples of a population whose areas are known exactly."""

    def __init__(self, name: str, population: Population) -> None:
        self.name, self.scores = name, (OWN,)
        self.losses = ("zero_one" if population.binary else OWN,)
        self.kind = "population"
        self.tied = bool(population.curve.ties)
        self._population = population

    def truth(self, score: str, loss: str) -> TrueAreas:
        """Return the exact values."""
        del score, loss
        return TrueAreas(self._population.aurc(), self._population.augrc)

    def draw(self, count: int, n: int, rng: np.random.Generator) -> Mapping[str, OrderedBlock]:
        """Draw all samples at once and cut them apart."""
        confidence, loss = self._population.sample(count * n, rng=rng)
        return {OWN: ordered(confidence, {self.losses[0]: loss}, n)}


class LogitSource(Source):
    """Independent samples of a population of labeled class scores, ordered by several scores.

    The losses "zero_one" and "cross_entropy" have a known truth.
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
        self.block = _BLOCK // population.classes
        self._population = population
        self._truths: dict[tuple[str, str], Truth] = {}

    def truth(self, score: str, loss: str) -> TrueAreas:
        """Return values of a large sample, in which no label is drawn."""
        found = self._of(score, loss)
        return TrueAreas(found.aurc, found.augrc)

    @property
    def error(self) -> float:
        """The largest standard error of the AURC of a large sample, as a share of it."""
        found = (self._of(score, loss) for score in self.scores for loss in self.losses)
        return max(t.aurc_error / t.aurc for t in found)

    def _of(self, score: str, loss: str) -> Truth:
        if (score, loss) not in self._truths:
            self._truths[score, loss] = self._population.truth(
                lambda z: confidence_of(score, _unlabeled(z)).values,
                loss=loss.replace("_", "-"),
                n=_TRUTH,
            )
        return self._truths[score, loss]

    def draw(self, count: int, n: int, rng: np.random.Generator) -> Mapping[str, OrderedBlock]:
        """Draw all samples at once and cut them apart."""
        z, labels = self._population.sample_logits(count * n, rng=rng)
        p = Predictions(logits=z, labels=labels)
        loss = {name: per_sample_loss(p, name).astype(np.float64) for name in self.losses}
        return {s: ordered(confidence_of(s, p).values, loss, n) for s in self.scores}


def _unlabeled(z: FloatArray) -> Predictions:
    return Predictions(logits=z, labels=np.zeros(z.shape[0], dtype=np.int64))


def ordered(confidence: Array, loss: Mapping[str, FloatArray], n: int) -> OrderedBlock:
    """Cut b x n samples into b samples and put each in ascending order of confidence."""
    table = confidence.reshape(-1, n)
    order = np.argsort(table, axis=1, kind="stable")
    sorted_by = np.take_along_axis(table, order, axis=1)
    losses = {k: np.take_along_axis(v.reshape(-1, n), order, axis=1) for k, v in loss.items()}
    return OrderedBlock(sorted_by, losses, tied_in(sorted_by))


def tied_in(ascending: Array) -> BoolArray | None:
    """Tell which entries of sorted rows equal the one before; None when none does."""
    same = ascending[:, 1:] == ascending[:, :-1]
    if not same.any():
        return None
    first = np.zeros((ascending.shape[0], 1), dtype=bool)
    return np.concatenate((first, same), axis=1)
