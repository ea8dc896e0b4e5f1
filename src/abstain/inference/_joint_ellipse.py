"""How far apart two numbers may be: the largest difference in their joint confidence ellipse.

The standard error of a difference comes from the same few failures as the difference itself: a
study that missed the failure that sets two scores apart shows both too small. On the logit (or log)
scale of their range the errors of the numbers are steadier, and there an ellipse holds both with
their correlation; what pushes both the same way costs nothing.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from abstain.inference.influence import covariance_of_shares
from abstain.inference.small_samples import Expected, degrees_of_freedom, events, moderated
from abstain.inference.small_samples import t_quantile as central
from abstain.typing import FloatArray

#: Directions tried; the largest difference is found to 1e-4 of the reach.
_ANGLES = np.linspace(0.0, 2.0 * np.pi, 361)
_CIRCLE = np.stack([np.cos(_ANGLES), np.sin(_ANGLES)])

#: Halvings of the interval that holds a p-value.
_HALVINGS = 40


@dataclass(frozen=True, eq=False)
class JointEllipse:
    """Two numbers on the scale of their range.

    Attributes
    ----------
    values : tuple of float
        The two numbers.
    spread : tuple of float
        Their standard errors on the scale; 0 for a number that nothing varies.
    degrees : tuple of float
        The degrees of freedom of these.
    correlation : float
        Of the two errors.
    bounds : tuple of float
        The range, which picks the scale.
    """

    values: tuple[float, float]
    spread: tuple[float, float]
    degrees: tuple[float, float]
    correlation: float
    bounds: tuple[float, float]

    @classmethod
    def of(
        cls,
        values: tuple[float, float],
        parts: FloatArray,
        bounds: tuple[float, float],
        most_degrees: float,
        *,
        heavy: bool,
        expected: tuple[Expected | None, Expected | None],
    ) -> "JointEllipse":
        """Make it from what each unit adds to the error of both, shape (units, 2)."""
        both = covariance_of_shares(parts)
        size = float(np.sqrt(both[0, 0] * both[1, 1]))
        spread, degrees = [], []
        for k in (0, 1):
            variance, own = float(both[k, k]), degrees_of_freedom(parts[:, k])
            if heavy and variance > 0:
                own = min(own, events(values[k] - bounds[0], float(np.sqrt(variance))))
            model = expected[k]
            if model is not None and variance > 0:
                variance, own = moderated(variance, own, model)
            spread.append(float(np.sqrt(variance)) * _slope(values[k], bounds))
            degrees.append(max(1.0, min(own, most_degrees)))
        correlation = float(np.clip(both[0, 1] / size, -1.0, 1.0)) if size > 0 else 0.0
        return cls(values, (spread[0], spread[1]), (degrees[0], degrees[1]), correlation, bounds)

    def farthest(self, chance: float, *, first_above: bool) -> float:
        """Return the largest difference in the ellipse beyond which a tail of `chance` lies.

        Of the first minus the second, or the second minus the first.
        """
        across, up = _CIRCLE
        rest = float(np.sqrt(1.0 - self.correlation**2))
        moves = (across, self.correlation * across + rest * up)
        reached = [
            _moved(
                self.values[k],
                self.spread[k] * central(1.0 - 2.0 * chance, self.degrees[k]) * moves[k],
                self.bounds,
            )
            for k in (0, 1)
        ]
        apart = reached[0] - reached[1]
        return float(apart.max() if first_above else -apart.min())

    def p_value(self, margin: float, *, first_above: bool) -> float:
        """Return the tail whose farthest difference just reaches the margin, at most one half."""
        low, high = 0.0, 0.5
        if self.farthest(high, first_above=first_above) >= margin:
            return high
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            within = self.farthest(middle, first_above=first_above) < margin
            low, high = (low, middle) if within else (middle, high)
        return high


def _slope(value: float, bounds: tuple[float, float]) -> float:
    """Return the slope of the scale, 0 at an end of the range, where no scale helps."""
    below, above = value - bounds[0], bounds[1] - value
    if min(below, above) <= 0:
        return 0.0
    return 1.0 if not np.isfinite(below) else 1.0 / below + 1.0 / above


def _moved(value: float, by: FloatArray, bounds: tuple[float, float]) -> FloatArray:
    """Return the number moved by steps on its scale."""
    low, high = bounds
    if not by.any():
        return np.full(by.shape, value)
    if np.isfinite(low) and np.isfinite(high):
        share = (value - low) / (high - low)
        return np.asarray(low + (high - low) * expit(logit(share) + by))
    if np.isfinite(low):
        return np.asarray(low + (value - low) * np.exp(np.minimum(by, 700.0)))
    return value + by
