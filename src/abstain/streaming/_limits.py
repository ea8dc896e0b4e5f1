"""Limits of the metrics that have a vertex at each distinct confidence, or read the confidence.

How many vertices a bin hides, and where, is not known. In the comments, a bin occupies the
positions a to b (weights counted from the most confident), F is the loss mass accepted, r = F/x
the selective risk at position x, and L the largest loss of any sample.
"""

import numpy as np

from abstain.curves.risk_coverage import ROUNDING
from abstain.streaming._blocks import Blocks
from abstain.typing import FloatArray

Limits = tuple[float, float]


def trapezoid_limits(blocks: Blocks) -> Limits:
    """Return limits of the trapezoid AURC.

    Within a bin the risk lies between that of all loss last and that of all loss first. Lines
    between vertices stay below the concave envelope of the one and above the convex envelope
    of the other, whichever vertices there are.
    """
    a, b = blocks.above, blocks.through
    risk_a = _risk(blocks.loss_above, a, blocks.peak)
    risk_b = blocks.loss_through / b
    # The curve is flat from its first vertex to coverage 0.
    start = np.where(a > 0, risk_a, risk_b)
    exact = (start + risk_b) / 2 * blocks.weight
    low = np.where(blocks.spread, _lowest_area(blocks, risk_b), exact)
    high = np.where(blocks.spread, _highest_area(blocks, risk_b), exact)
    return float(low.sum()) / blocks.total, float(high.sum()) / blocks.total


def _highest_area(blocks: Blocks, risk_b: FloatArray) -> FloatArray:
    """All loss first: L - K/x with K = L a - F_a, concave, to its end; then a line."""
    a, wrong = blocks.above, blocks.wrong
    end = a + wrong
    spare = np.maximum(blocks.peak * a - blocks.loss_above, 0.0)
    rising = blocks.peak * wrong - spare * _log_ratio(a, wrong)
    peak = _risk(blocks.loss_through, end, blocks.peak)
    return np.maximum(rising, 0.0) + (peak + risk_b) / 2 * (blocks.weight - wrong)


def _lowest_area(blocks: Blocks, risk_b: FloatArray) -> FloatArray:
    """All loss last: F_a/x, convex, to where it begins; then a line."""
    right = blocks.weight - blocks.wrong
    turn = _risk(blocks.loss_above, blocks.above + right, blocks.peak)
    falling = blocks.loss_above * _log_ratio(blocks.above, right)
    return falling + (turn + risk_b) / 2 * blocks.wrong


def _log_ratio(a: FloatArray, step: FloatArray) -> FloatArray:
    """Log of (a + step)/a; 0 at a = 0, where what it multiplies is 0."""
    return np.log1p(np.divide(step, a, out=np.zeros_like(a), where=a > 0))


def _risk(mass: FloatArray, position: FloatArray, peak: float) -> FloatArray:
    """F/x; at position 0, which only failures leave, the largest loss."""
    return np.divide(mass, position, out=np.full_like(mass, peak), where=position > 0)


def selective_risk_limits(blocks: Blocks, coverage: float) -> Limits:
    """Return limits of the lowest risk among the vertices that keep the coverage."""
    needed = coverage * blocks.total * (1 - ROUNDING)
    kept = blocks.through >= needed
    # The last block keeps any coverage, whatever rounding says.
    kept[-1] = True
    known = float((blocks.loss_through / blocks.through)[kept].min())
    hidden = kept & blocks.spread
    # All loss last, the risk falls until the loss begins and rises from there.
    turn = blocks.through - blocks.wrong
    at = np.clip(needed, turn, blocks.through)[hidden]
    mass = blocks.loss_through[hidden] - blocks.peak * (blocks.through[hidden] - at)
    risks = _risk(np.maximum(mass, 0.0), at, blocks.peak)
    return float(np.min(risks, initial=known)), known


def coverage_limits(blocks: Blocks, max_risk: float) -> Limits:
    """Return limits of the largest coverage of a vertex with at most this risk."""
    target = max_risk * (1 + ROUNDING)
    fine = np.flatnonzero(blocks.loss_through / blocks.through <= target)
    known = float(blocks.through[fine[-1]]) if fine.size else 0.0
    high = known
    if blocks.peak > target:
        turn = blocks.through - blocks.wrong
        lowest = _risk(blocks.loss_above, turn, blocks.peak)
        hidden = blocks.spread & (lowest <= target) & (blocks.through > known)
        room = (blocks.peak * blocks.through - blocks.loss_through) / (blocks.peak - target)
        reach = np.clip(room, turn, blocks.through)[hidden]
        high = float(np.max(reach, initial=known))
    return known / blocks.total, high / blocks.total


def cwsa_limits(blocks: Blocks, threshold: float) -> Limits:
    """Return limits of CWSA: successes at one end of their bin, failures at the other."""
    low, high = _worth(blocks.least, threshold), _worth(blocks.most, threshold)
    right = np.maximum(blocks.weight - blocks.loss, 0.0)
    return (
        float(np.sum(right * low - blocks.loss * high)) / blocks.total,
        float(np.sum(right * high - blocks.loss * low)) / blocks.total,
    )


def cwsa_plus_limits(blocks: Blocks, threshold: float) -> Limits:
    """Return limits of CWSA+, whose denominator a bin around the threshold leaves open too."""
    at = float(np.dtype(f"f{blocks.precision // 8}").type(threshold))
    right = np.maximum(blocks.weight - blocks.loss, 0.0)
    fewest = float(blocks.weight[blocks.least >= at].sum())
    most = float(blocks.weight[blocks.most >= at].sum())
    low = float(np.sum(right * _worth(blocks.least, threshold)))
    high = float(np.sum(right * _worth(blocks.most, threshold)))
    return (low / most if most else 0.0), (min(1.0, high / fewest) if fewest else 1.0)


def _worth(confidence: FloatArray, threshold: float) -> FloatArray:
    return np.maximum(confidence - threshold, 0.0) / (1.0 - threshold)
