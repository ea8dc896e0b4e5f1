"""What is kept of the calibration data: ranks of the confidences, and the risk at each."""

from dataclasses import dataclass

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import read_only
from abstain._foundation.isotonic_blocks import isotonic_block_ends
from abstain.errors import ShapeError
from abstain.inference.exchangeability import RankBlocks, rank_blocks
from abstain.typing import AnyArray, FloatArray


@dataclass(frozen=True, eq=False)
class Reference:
    """The calibration data in at most 64 blocks, however many there were.

    Attributes
    ----------
    blocks : RankBlocks
        Where the confidences lay.
    risk : ndarray of shape (blocks,) or None
        The mean loss expected in each block, falling with the confidence; None where the losses
        are not known.
    spread : float
        The mean standard deviation of the loss over the calibration samples that are answered;
        NaN where it is not known.

    Examples
    --------
    >>> from abstain.monitoring import reference_of
    >>> known = reference_of([0.2, 0.5, 0.7, 0.9], [1, 1, 0, 0], threshold=0.6)
    >>> known.blocks.n_gaps.tolist(), known.risk.round(2).tolist()
    ([1, 1, 1, 1, 1], [0.75, 0.67, 0.67, 0.25, 0.25])
    """

    blocks: RankBlocks
    risk: FloatArray | None
    spread: float

    @property
    def n(self) -> int:
        """How many calibration samples there were."""
        return int(self.blocks.n_gaps.sum()) - 1


def reference_of(
    confidence: AnyArray,
    loss: AnyArray | None = None,
    *,
    threshold: float,
    predicted: AnyArray | None = None,
    seed: int = 0,
) -> Reference:
    """Keep of calibration data what a monitor needs.

    Parameters
    ----------
    confidence : array of shape (n,)
        Finite, on the scale of the stream.
    loss : array of shape (n,), optional
        In [0, 1]; where to look for failures is then known for confidences of any scale.
    threshold : float
        On that scale: the samples that reach it are answered.
    predicted : array of shape (n,), optional
        Without losses: the chances of a failure that the confidences themselves say.
    seed : int
        Breaks ties.

    Returns
    -------
    Reference
        Of a size that does not depend on n.

    Raises
    ------
    ShapeError, DomainError
        Lengths that differ, or values that are not finite.
    """
    values = checks.confidence(confidence, "calibration").astype(np.float64)
    blocks = rank_blocks(values, rng=seed)
    answered = values >= threshold
    if not answered.any():
        raise ShapeError(
            f"`calibration` must have a sample that reaches the threshold {threshold:g}"
        )
    if loss is None:
        if predicted is None:
            return Reference(blocks, None, float("nan"))
        chances = np.asarray(predicted, np.float64)
        return Reference(blocks, None, float(spread_of(chances[answered]).mean()))
    losses = checks.unit_interval(checks.loss(loss, length=values.size), "calibration loss")
    home = blocks.find_blocks(values, np.full(values.size, 0.5))
    risk = _falling(home, losses.astype(np.float64), blocks.n_gaps.size)
    return Reference(blocks, read_only(risk), float(spread_of(risk[home[answered]]).mean()))


def spread_of(risk: FloatArray) -> FloatArray:
    """Return the standard deviation of 0/1 losses of these risks."""
    return np.sqrt(np.maximum(risk * (1 - risk), 0.0))


def _falling(home: AnyArray, loss: FloatArray, count: int) -> FloatArray:
    """Return the risk of each block, with one sample of the mean risk added to it."""
    weight: FloatArray = np.bincount(home, minlength=count).astype(np.float64) + 1
    mass: FloatArray = np.bincount(home, weights=loss, minlength=count) + loss.mean()
    ends = isotonic_block_ends(mass[::-1].copy(), weight[::-1].copy())
    starts = np.concatenate([[0], ends[:-1] + 1])
    mean = np.add.reduceat(mass[::-1], starts) / np.add.reduceat(weight[::-1], starts)
    return np.repeat(mean, np.diff(np.concatenate([starts, [count]])))[::-1].copy()
