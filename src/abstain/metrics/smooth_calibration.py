"""The smooth ECE, a calibration error without bins."""

from dataclasses import dataclass

import numpy as np

from abstain._foundation import checks
from abstain._foundation.array_functions import sum_by_index
from abstain._foundation.arrays import to_numpy, without_gradient
from abstain._foundation.scored import MetricValue, Scored, validate_samples
from abstain.curves.reliability import CONFIDENCE_HINT, LOSS_HINT
from abstain.metrics.entry import Identity, Measurement, Metric, Need, value_with_warning
from abstain.typing import AnyArray, FloatArray

_SOURCE = "Błasiok and Nakkiran (2024), https://arxiv.org/abs/2309.12236"

#: Number of intervals of equal width into which [0, 1] is divided.
_CELLS = 1 << 14
#: Minimum width of the kernel, as in the authors' code.
_MIN_WIDTH = 1e-3

#: Maximum number of Newton steps. Bisection replaces a step outside the bracket.
_MAX_NEWTON_STEPS = 60


def smooth_ece(confidence: AnyArray, loss: AnyArray, *, weight: AnyArray | None = None) -> float:
    """Compute the smooth calibration error (smECE).

    Answers: how far is the confidence from the accuracy, without a choice of bins?

    Parameters
    ----------
    confidence : array of shape (n,)
        Confidence in [0, 1], interpreted as the probability of a correct prediction.
    loss : array of shape (n,)
        In [0, 1]; 1 for an error under 0/1 loss.
    weight : array of shape (n,), optional
        Frequency weights. An integer weight m is equivalent to m copies of the sample.

    Returns
    -------
    float
        Value in [0, 1]; **lower is better**.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a value is NaN or infinite, a confidence or loss is outside [0, 1], or a weight is
        negative.

    Notes
    -----
    A Gaussian kernel that is reflected at 0 and 1 smooths the residuals (correctness - confidence).
    The error is the mean absolute value of the smoothed residuals, which decreases with the width
    of the kernel. The smooth ECE is the error at the width for which the error equals the width.
    The minimum width is 0.001. In contrast to the binned ECE, the smooth ECE is a continuous
    function of the confidences. The value is never NaN, and almost never 0, even for a calibrated
    confidence. The function makes one pass over the samples and computes several cosine transforms,
    which take about 10 ms. Arrays on a device such as a GPU are copied to host memory.

    References
    ----------
    .. [1] Błasiok and Nakkiran (2024), Smooth ECE: principled reliability diagrams via kernel
       smoothing, section 3, https://arxiv.org/abs/2309.12236

    Examples
    --------
    >>> from abstain.metrics import smooth_ece
    >>> round(smooth_ece([1.0, 0.9, 0.4, 0.3], [0, 0, 1, 0]), 4)
    0.1249
    """
    s = validate_samples(confidence, loss, weight, uses_values=True)
    checks.unit_interval(s.confidence, "confidence", hint=CONFIDENCE_HINT)
    checks.unit_interval(s.loss, "loss", hint=LOSS_HINT)
    return value_with_warning(_compute_smooth_ece(s), "smooth_ece")


@dataclass(frozen=True, eq=False)
class _SmoothedResiduals:
    """Cosine series of the residuals (correctness - confidence) as a function of confidence."""

    #: Shape (_CELLS + 1,). Mean of residual x cos(pi k confidence) for each k.
    amplitude: FloatArray

    @classmethod
    def from_samples(cls, s: Scored) -> "_SmoothedResiduals":
        """Compute the cosine series of the residuals of samples.

        Each residual is divided between the two nearest grid points.
        """
        p = to_numpy(without_gradient(s.probability_or_confidence), "confidence").astype(np.float64)
        loss = to_numpy(without_gradient(s.loss), "loss").astype(np.float64)
        w = np.ones(p.size) if s.weight is None else to_numpy(s.weight, "weight")
        residual = w * (1.0 - loss - p)
        left_point = np.minimum((p * _CELLS).astype(np.int64), _CELLS - 1)
        distance_from_left = p * _CELLS - left_point
        n_points = _CELLS + 1
        on_left = sum_by_index(left_point, residual * (1.0 - distance_from_left), n_points)
        on_right = sum_by_index(left_point + 1, residual * distance_from_left, n_points)
        residual_sums = on_left + on_right
        # `_cosine_series` counts the inner points twice.
        residual_sums[1:-1] /= 2
        return cls(_cosine_series(residual_sums) / w.sum())

    def smoothed(self, width: float) -> FloatArray:
        """Return the residuals at the grid points, smoothed by a kernel of this width."""
        return _cosine_series(self.amplitude * _kernel_factors(width))

    def error(self, width: float) -> float:
        """Return the mean absolute value of the residuals, smoothed by a kernel of this width."""
        smoothed_residual = self.smoothed(width)
        left = smoothed_residual[:-1]
        right = smoothed_residual[1:]
        # The smoothed residual is linear between two grid points. If the sign changes, the area
        # consists of two triangles.
        changes_sign = left * right < 0
        absolute_sum = np.abs(left) + np.abs(right)
        safe_sum = np.where(changes_sign, absolute_sum, 1.0)
        area_of_triangles = (left * left + right * right) / safe_sum
        areas = np.where(changes_sign, area_of_triangles, absolute_sum)
        return float(areas.sum()) / (2 * _CELLS)

    def error_derivative(self, width: float) -> float:
        """Return the derivative of the error with respect to the width."""
        frequency = np.pi * np.arange(_CELLS + 1)
        factor_derivative = -width * np.square(frequency) * _kernel_factors(width)
        smoothed_derivative = _cosine_series(self.amplitude * factor_derivative)
        gradient = _mean_absolute_value_gradient(self.smoothed(width))
        return float(gradient @ smoothed_derivative)


def _kernel_factors(width: float) -> FloatArray:
    """Return the factor by which a reflected Gaussian kernel multiplies each cosine."""
    return np.asarray(np.exp(-np.square(np.pi * width * np.arange(_CELLS + 1)) / 2))


def _cosine_series(amplitude: FloatArray) -> FloatArray:
    """Return a_0 + 2 sum_k a_k cos(pi k t) at the grid points t, without factor 2 at the last k."""
    even = np.concatenate((amplitude, amplitude[-2:0:-1]))
    return np.asarray(np.fft.rfft(even).real)


def _mean_absolute_value_gradient(y: FloatArray) -> FloatArray:
    """Return the derivatives of the area under |y| with respect to y at each grid point."""
    left, right = y[:-1], y[1:]
    changes_sign = left * right < 0
    squared_difference = np.where(changes_sign, np.square(left - right), 1.0)
    sign = np.sign(left - right)
    left_numerator = left * left - 2 * left * right - right * right
    right_numerator = left * left + 2 * left * right - right * right
    # Derivatives of the area of two triangles if the sign changes, and of a trapezoid otherwise.
    on_left = np.where(changes_sign, sign * left_numerator / squared_difference, np.sign(left))
    on_right = np.where(changes_sign, sign * right_numerator / squared_difference, np.sign(right))
    gradient = np.append(on_left, 0.0)
    gradient[1:] += on_right
    return gradient / (2 * _CELLS)


def _solve_width(smoothed: _SmoothedResiduals) -> float:
    """Return the width at which the error equals the width, by Newton's method.

    If this width is below the minimum width, the function returns the minimum width.
    """
    low, high = _MIN_WIDTH, 1.0
    width = smoothed.error(low)
    if width <= low:
        return low
    for _ in range(_MAX_NEWTON_STEPS):
        difference = smoothed.error(width) - width
        if difference > 0:
            low = width
        else:
            high = width
        # The error decreases with the width, so the slope of the difference is at most -1.
        new_width = width + difference / (1.0 - smoothed.error_derivative(width))
        if abs(new_width - width) <= np.finfo(np.float64).eps * width:
            break
        width = new_width if low < new_width < high else (low + high) / 2
    return width


def _compute_smooth_ece(s: Scored) -> MetricValue:
    smoothed = _SmoothedResiduals.from_samples(s)
    return MetricValue(smoothed.error(_solve_width(smoothed)))


ENTRIES = (
    Metric(
        Identity(
            name="smooth_ece",
            title="smooth ECE",
            family="calibration",
            lower_is_better=True,
            meaning="Smoothed over a range of the same width, the confidence differs from the "
            "accuracy by {value}.",
            source=_SOURCE,
            convention="reflected Gaussian kernel with a width equal to the error",
            function="smooth_ece(confidence, loss)",
        ),
        Measurement(
            compute=_compute_smooth_ece,
            needs=frozenset({Need.UNIT_CONFIDENCE, Need.UNIT_LOSS}),
            rank_based=False,
            monotone=False,
            gradients=frozenset(),
            no_influence_reason="it is positive on every sample even for a calibrated confidence, "
            "so an interval around it would not cover the true value",
            n_failures=None,
        ),
    ),
)
