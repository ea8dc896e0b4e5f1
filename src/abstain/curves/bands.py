"""Risk-coverage curves with pointwise and simultaneous confidence bands."""

from dataclasses import dataclass, replace

import numpy as np

from abstain._foundation import checks
from abstain._foundation.frames import AnyFrame, Backend, frame_from_rows
from abstain._foundation.lazy_imports import special
from abstain._foundation.random import as_generator
from abstain._foundation.scored import Scored, validate_samples_on_host
from abstain.curves._working_points import WorkingPoints, working_points_on_grid
from abstain.curves.risk_coverage import Kind
from abstain.inference.intervals import check_level, clopper_pearson, wilson
from abstain.typing import AnyArray, FloatArray, IntArray, Rng

#: Number of coverages of the default grid.
_N_GRID_STEPS = 200
#: Minimum coverage of the simultaneous band, which also requires ten accepted samples.
_MIN_SIMULTANEOUS_COVERAGE = 0.05


@dataclass(frozen=True, eq=False)
class RiskCoverageBand:
    """A risk-coverage curve with a pointwise and a simultaneous confidence band.

    Attributes
    ----------
    kind : {"selective", "generalized"}
        Kind of risk.
    coverage : ndarray of shape (m,)
        Ascending coverages in (0, 1].
    risk : ndarray of shape (m,)
        Risk at each coverage. From the tie group at the threshold, a random part is accepted to
        reach the coverage exactly.
    standard_error : ndarray of shape (m,)
        Standard error of each risk.
    low, high : ndarray of shape (m,)
        Bounds of the pointwise band. At each coverage, the band contains the true risk with
        probability `level`.
    low_all, high_all : ndarray of shape (m,)
        Bounds of the simultaneous band. With probability `level`, the band contains the true curve
        at all coverages from `simultaneous_from` to 1.
    level : float
        Confidence level of both bands.
    simultaneous_from : float
        Lowest coverage of the simultaneous band.
    note : str
        Reason why the bands are NaN, or an empty string.
    """

    kind: str
    coverage: FloatArray
    risk: FloatArray
    standard_error: FloatArray
    low: FloatArray
    high: FloatArray
    low_all: FloatArray
    high_all: FloatArray
    level: float
    simultaneous_from: float = 0.0
    note: str = ""

    def frame(self, *, backend: Backend = "polars") -> AnyFrame:
        """Return a dataframe with one row per coverage."""
        names = ("coverage", "risk", "standard_error", "low", "high", "low_all", "high_all")
        return frame_from_rows({name: getattr(self, name) for name in names}, backend)


def risk_coverage_band(
    confidence: AnyArray,
    loss: AnyArray,
    *,
    kind: Kind = "selective",
    level: float = 0.95,
    grid: AnyArray | None = None,
    weight: AnyArray | None = None,
    group: AnyArray | None = None,
    draws: int = 2000,
    rng: Rng = 0,
) -> RiskCoverageBand:
    """Compute a risk-coverage curve with a pointwise and a simultaneous confidence band.

    Answers: how much can the true curve differ from the estimate, at one coverage and at all
    coverages?

    Parameters
    ----------
    confidence : array of shape (n,)
        Confidence scores on any scale. Higher is more confident.
    loss : array of shape (n,)
        Finite and non-negative; 1 for an error under 0/1 loss.
    kind : {"selective", "generalized"}, default="selective"
        Kind of risk.
    level : float, default=0.95
        Confidence level of both bands.
    grid : array of shape (m,), optional
        Coverages in (0, 1]. The default is the multiples of 0.005 at which at least one sample is
        accepted.
    weight : array of shape (n,), optional
        Sample weights. Each row is one observation for the standard error, regardless of its
        weight.
    group : array of shape (n,), optional
        Independent clusters, such as patients or sites.
    draws : int, default=2000
        Number of draws from a normal distribution of the curve for the simultaneous band.
    rng : int, Generator or None, default=0
        Seed or random number generator of the draws.

    Returns
    -------
    RiskCoverageBand
        The curve with its bands. With only one sample or cluster, the bands are NaN, and `note`
        contains the reason.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a value is NaN or infinite, a loss or weight is negative, a coverage is not in (0, 1],
        or `level` is not between 0 and 1.

    Notes
    -----
    The standard error is computed from the influence function of the risk at a fixed coverage. The
    mean loss at the threshold is estimated from about n^(4/5) samples near the threshold.

    The pointwise band consists of Wilson intervals. The sample size of each interval is the
    effective sample size that corresponds to the standard error. The simultaneous band consists of
    Clopper-Pearson intervals at a higher level [1]_. The higher level is computed from the quantile
    of the largest standardized deviation over all coverages. If losses exceed 1, all losses are
    first divided by the largest loss.

    References
    ----------
    .. [1] Montiel Olea and Plagborg-Møller (2019), Simultaneous confidence bands: theory,
       implementation, and an application to SVARs, https://doi.org/10.1002/jae.2656

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.curves.bands import risk_coverage_band
    >>> confidence = np.linspace(0, 1, 500)
    >>> loss = np.random.default_rng(0).random(500) > confidence
    >>> band = risk_coverage_band(confidence, loss, grid=[0.25, 1.0])
    >>> band.risk.round(3).tolist(), band.low.round(3).tolist(), band.high.round(3).tolist()
    ([0.136, 0.518], [0.085, 0.474], [0.211, 0.562])
    """
    s = validate_samples_on_host(confidence, loss, weight)
    checks.one_of(kind, "kind", ("selective", "generalized"))
    return compute_band(
        s,
        kind,
        level=level,
        coverage=None if grid is None else _check_grid(grid),
        cluster=s.cluster_codes(group),
        draws=draws,
        rng=rng,
    )


def _check_grid(grid: AnyArray) -> FloatArray:
    """Return the coverages in ascending order, after checking that they are in (0, 1]."""
    coverage = checks.finite(checks.vector(grid, "grid"), "grid").astype(np.float64)
    is_outside = (coverage <= 0) | (coverage > 1)
    checks.reject_entries("grid", "must lie in (0, 1]", coverage, is_outside)
    return np.unique(coverage)


def compute_band(
    s: Scored,
    kind: Kind,
    *,
    level: float = 0.95,
    coverage: FloatArray | None = None,
    cluster: IntArray | None = None,
    draws: int = 2000,
    rng: Rng = 0,
) -> RiskCoverageBand:
    """Compute the band of validated samples.

    The parameters are those of `risk_coverage_band`. `coverage` is the grid, and `cluster` contains
    the integer code of the cluster of each sample.
    """
    n_draws = checks.positive_int(draws, "draws")
    level = check_level(level)
    if coverage is None:
        coverage = _default_grid(s.merged_groups.n_samples)
    points = working_points_on_grid(s, coverage, cluster)
    risk = points.generalized_risk / coverage
    variance = np.diag(points.covariance)
    error = np.sqrt(np.maximum(variance, 0.0)) / coverage
    coverage_of_ten_samples = 10.0 * coverage[-1] / points.effective_size[-1]
    simultaneous_from = max(_MIN_SIMULTANEOUS_COVERAGE, min(1.0, coverage_of_ten_samples))
    note = ""
    if np.isnan(variance).any():
        bounds = np.full((4, coverage.size), np.nan)
        note = "only one independent sample, so the variance of the loss is not known"
    else:
        scale = max(1.0, float(s.loss.max()))
        sizes = _effective_sizes(points, risk / scale, error / scale, is_binary=s.is_binary)
        deviation = _largest_deviation(
            points, simultaneous_from, level, scale=scale, draws=n_draws, rng=rng
        )
        bounds = scale * _interval_bounds(risk / scale, sizes, level, deviation)
    low, high, low_all, high_all = bounds
    band = RiskCoverageBand(
        kind="selective",
        coverage=coverage,
        risk=risk,
        standard_error=error,
        low=low,
        high=high,
        low_all=low_all,
        high_all=high_all,
        level=level,
        simultaneous_from=simultaneous_from,
        note=note,
    )
    return band if kind == "selective" else as_generalized(band)


def _default_grid(n_samples: int) -> FloatArray:
    """Return evenly spaced coverages at which at least one sample is accepted."""
    coverage = np.arange(1, _N_GRID_STEPS + 1) / _N_GRID_STEPS
    return coverage[coverage >= min(1.0, 1 / n_samples)]


def as_generalized(band: RiskCoverageBand) -> RiskCoverageBand:
    """Convert a band of the selective risk to a band of the generalized risk."""
    if band.kind == "generalized":
        return band
    names = ("risk", "standard_error", "low", "high", "low_all", "high_all")
    generalized = {name: getattr(band, name) * band.coverage for name in names}
    return replace(band, kind="generalized", **generalized)


def _effective_sizes(
    points: WorkingPoints, risk: FloatArray, error: FloatArray, *, is_binary: bool
) -> FloatArray:
    """Return the effective sample sizes that correspond to the standard errors.

    If no accepted sample or every accepted sample is a failure, the standard error is not used. At
    such coverages, the size is computed for half a failure or half a success.
    """
    half_failure = 0.5 / (points.effective_size + 1)
    bounded_risk = np.clip(risk, half_failure, 1 - half_failure)
    variance = bounded_risk * (1 - bounded_risk)
    loss_difference = bounded_risk - np.clip(points.threshold_loss, 0.0, 1.0)
    threshold_variance = (1 - points.coverage) * loss_difference**2
    expected_size = points.effective_size * variance / (variance + threshold_variance)
    is_informative = (risk > 0) & (risk < 1) & (error > 0)
    sizes = np.divide(risk * (1 - risk), error**2, out=expected_size, where=is_informative)
    if is_binary:
        # For 0/1 losses, a size above the number of samples is only due to random error.
        sizes = np.minimum(sizes, points.effective_size)
    return sizes


def _largest_deviation(
    points: WorkingPoints, start: float, level: float, *, scale: float, draws: int, rng: Rng
) -> float:
    """Return the quantile of the largest standardized deviation over coverages >= `start`.

    Deviations are simulated from a normal distribution with the covariance of the risks.
    """
    is_included = points.coverage >= min(start, float(points.coverage[-1]))
    coverage = points.coverage[is_included]
    covariance = points.covariance[np.ix_(is_included, is_included)]
    # The variance of half a failure makes the variance positive at coverages without failures.
    half_failure_variance = 0.5 * (scale * points.coverage[-1] / points.effective_size[-1]) ** 2
    covariance = covariance + half_failure_variance * np.minimum.outer(coverage, coverage)
    error = np.sqrt(np.diag(covariance))
    correlation = covariance / np.multiply.outer(error, error)
    eigenvalues, eigenvectors = np.linalg.eigh(correlation)
    # Directions with negligible variance are dropped.
    has_variance = eigenvalues > 1e-6 * eigenvalues[-1]
    eigenvalues = eigenvalues[has_variance]
    eigenvectors = eigenvectors[:, has_variance]
    # The symmetric square root does not depend on the choice of the eigenvectors.
    noise = eigenvectors.T @ as_generator(rng).standard_normal((error.size, draws))
    deviations = (eigenvectors * np.sqrt(eigenvalues)) @ noise
    return float(np.quantile(np.abs(deviations).max(axis=0), level))


def _interval_bounds(
    risk: FloatArray, sizes: FloatArray, level: float, deviation: float
) -> FloatArray:
    """Return the bounds of the bands (low, high, low_all, high_all) for risks in [0, 1]."""
    simultaneous_level = float(2 * special.ndtr(deviation) - 1)
    bounds = np.empty((4, risk.size))
    for j in range(risk.size):
        n = float(sizes[j])
        n_failures = min(float(risk[j]) * n, n)
        pointwise = wilson(n_failures, n, level=level)
        simultaneous = clopper_pearson(n_failures, n, level=simultaneous_level)
        low_all = min(pointwise.low, simultaneous.low)
        high_all = max(pointwise.high, simultaneous.high)
        bounds[:, j] = (pointwise.low, pointwise.high, low_all, high_all)
    return bounds
