"""The likelihood of labels as a function of the inverse temperature, in float64 and log space."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from abstain.predictions.outputs import ClassScores
from abstain.predictions.softmax import log_softmax, row_blocks
from abstain.typing import Array, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Likelihood:
    """Class scores, the class of each sample and its weight.

    Attributes
    ----------
    scores : ClassScores
        Shape (n, K). A class of probability 0 must be nobody's true class.
    codes : ndarray of shape (n,)
        True classes.
    weight : ndarray of shape (n,)
        Frequency weights above 0.
    scale : float
        Class scores are divided by it before anything else, so that none overflows.
    """

    scores: ClassScores
    codes: IntArray
    weight: FloatArray
    scale: float

    @property
    def total(self) -> float:
        """Weight of all samples."""
        return float(self.weight.sum())

    def leads(self) -> Iterator[tuple[slice, FloatArray]]:
        """Yield, block by block, each class's scaled score minus that of the true class."""
        for rows in row_blocks(*self.scores.values.shape):
            z = self.scores.log_scores(rows)
            z /= self.scale
            z -= np.take_along_axis(z, self.codes[rows, None], axis=1)
            yield rows, z

    def nll(self, inverse: float) -> float:
        """Mean negative log-likelihood at an inverse temperature (of the scaled scores)."""
        return self.nll_and_slope(inverse)[0]

    def nll_and_slope(self, inverse: float) -> tuple[float, float]:
        """Return it with its derivative by the inverse temperature, which rises with it."""
        value = slope = 0.0
        for rows, lead in self.leads():
            log_p = log_softmax(inverse * lead)
            of_label = np.take_along_axis(log_p, self.codes[rows, None], axis=1)[:, 0]
            p = np.exp(log_p)
            # A class of probability 0 leads by -inf and does not count.
            mean_lead = (p * np.where(np.isneginf(lead), 0.0, lead)).sum(axis=1)
            value -= float(self.weight[rows] @ of_label)
            slope += float(self.weight[rows] @ mean_lead)
        return value / self.total, slope / self.total

    def label_probability(self, inverse: float) -> float:
        """Return the mean probability of the true class."""
        out = 0.0
        for rows, lead in self.leads():
            log_p = log_softmax(inverse * lead)
            of_label = np.take_along_axis(log_p, self.codes[rows, None], axis=1)[:, 0]
            out += float(self.weight[rows] @ np.exp(of_label))
        return out / self.total

    def shape(self) -> "Shape":
        """Return what decides whether the likelihood has a maximum at all."""
        certainty = spread = 0.0
        separable = True
        for rows, lead in self.leads():
            w, possible = self.weight[rows], ~np.isneginf(lead)
            count = possible.sum(axis=1)
            known = np.where(possible, lead, 0.0)
            mean = known.sum(axis=1) / count
            apart = np.where(possible, lead - mean[:, None], 0.0)
            spread += float(w @ ((apart**2).sum(axis=1) / count))
            separable = separable and bool((lead <= 0).all())
            certainty += float(w @ (1.0 / (lead == 0).sum(axis=1)))
        return Shape(separable, certainty / self.total, float(np.sqrt(spread / self.total)))


@dataclass(frozen=True)
class Shape:
    """What decides whether the likelihood has a maximum.

    Attributes
    ----------
    separable : bool
        Whether no class has a higher score than the true one, in any row.
    certainty : float
        Of separable rows, the mean probability of the true class as the temperature goes to 0.
    spread : float
        Root mean square of the scaled scores around the mean of their row.
    """

    separable: bool
    certainty: float
    spread: float


def likelihood(scores: ClassScores, codes: IntArray, weight: FloatArray | None) -> Likelihood:
    """Prepare the likelihood of validated class scores; samples of weight 0 are left out."""
    values: Array = scores.values
    if weight is None:
        weight = np.ones(codes.size)
    elif not weight.all():
        kept = weight > 0
        values, codes, weight = values[kept], codes[kept], weight[kept]
    kept_scores = ClassScores(values, are_logits=scores.are_logits)
    largest = 0.0
    for rows in row_blocks(*values.shape):
        z = kept_scores.log_scores(rows)
        largest = max(largest, float(np.abs(z[np.isfinite(z)]).max(initial=0.0)))
    return Likelihood(kept_scores, codes, weight, largest or 1.0)
