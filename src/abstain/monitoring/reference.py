"""Summary of the calibration data: ranks of the confidences, and the risk in each block."""

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
    """Summary of the calibration data in at most 64 blocks.

    Attributes
    ----------
    blocks : RankBlocks
        Blocks of the confidences.
    risk : ndarray of shape (blocks,) or None
        Mean loss of each block, decreasing with the confidence; None without losses.
    spread : float
        Mean standard deviation of the loss over the accepted calibration samples; NaN if unknown.

    Examples
    --------
    >>> from abstain.monitoring import build_reference
    >>> reference = build_reference([0.2, 0.5, 0.7, 0.9], [1, 1, 0, 0], threshold=0.6)
    >>> reference.blocks.n_gaps.tolist(), reference.risk.round(2).tolist()
    ([1, 1, 1, 1, 1], [0.75, 0.67, 0.67, 0.25, 0.25])
    """

    blocks: RankBlocks
    risk: FloatArray | None
    spread: float

    @property
    def n(self) -> int:
        """Number of calibration samples."""
        return int(self.blocks.n_gaps.sum()) - 1


def build_reference(
    confidence: AnyArray,
    loss: AnyArray | None = None,
    *,
    threshold: float,
    predicted: AnyArray | None = None,
    seed: int = 0,
) -> Reference:
    """Summarize calibration data for a monitor.

    Parameters
    ----------
    confidence : array of shape (n,)
        Finite confidences on the scale of the stream.
    loss : array of shape (n,), optional
        Losses in [0, 1]. With losses, labels are requested where failures are likely, for
        confidences on any scale.
    threshold : float
        Threshold on the scale of the stream.
    predicted : array of shape (n,), optional
        If `loss` is None: the probabilities of a failure according to the confidences.
    seed : int
        Seed of the random tie-breaking.

    Returns
    -------
    Reference
        A summary whose size does not depend on n.

    Raises
    ------
    ShapeError, DomainError
        If lengths differ or values are not finite.
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
    """Return the standard deviation of 0/1 losses with these risks."""
    return np.sqrt(np.maximum(risk * (1 - risk), 0.0))


def _falling(home: AnyArray, loss: FloatArray, count: int) -> FloatArray:
    """Return the decreasing risk of each block, smoothed by one sample of the mean risk."""
    weight: FloatArray = np.bincount(home, minlength=count).astype(np.float64) + 1
    mass: FloatArray = np.bincount(home, weights=loss, minlength=count) + loss.mean()
    ends = isotonic_block_ends(mass[::-1].copy(), weight[::-1].copy())
    starts = np.concatenate([[0], ends[:-1] + 1])
    mean = np.add.reduceat(mass[::-1], starts) / np.add.reduceat(weight[::-1], starts)
    return np.repeat(mean, np.diff(np.concatenate([starts, [count]])))[::-1].copy()
