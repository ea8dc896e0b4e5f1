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

#: Number of steps of the default grid of coverages.
_N_GRID_STEPS = 200
#: Minimum coverage of the simultaneous band, which also requires ten accepted samples.
_MIN_SIMULTANEOUS_COVERAGE = 0.05


@dataclass(frozen=True, eq=False)
class RiskCoverageBand:
    """A risk-coverage curve on a grid of coverages with a pointwise and a simultaneous band.

    Attributes
    ----------
    kind : str
        "selective" or "generalized".
    coverage : ndarray of shape (m,)
        The grid, ascending, in (0, 1].
    risk : ndarray of shape (m,)
        The risk at each coverage, if a random part of the tie group at the threshold is accepted.
    standard_error : ndarray of shape (m,)
        Standard error of each risk.
    low, high : ndarray of shape (m,)
        Bounds of the pointwise band, which contains the true risk at a single coverage with
        probability `level`.
    low_all, high_all : ndarray of shape (m,)
        Bounds of the simultaneous band. With probability `level`, this band contains the entire
        true curve from coverage `simultaneous_from` on.
    level : float
        Confidence level of both bands.
    simultaneous_from : float
        Lowest coverage of the simultaneous band.
    note : str
        A warning, or empty.
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
        Higher means more trusted; any real scale.
    loss : array of shape (n,)
        Finite and non-negative; 1 for an error under 0/1 loss.
    kind : {"selective", "generalized"}, default="selective"
        The risk.
    level : float, default=0.95
        Confidence level of both bands.
    grid : array of shape (m,), optional
        Coverages in (0, 1]. The default is steps of 0.005 from the coverage of one sample on.
    weight : array of shape (n,), optional
        Sample weights. Each row counts as one observation, regardless of its weight.
    group : array of shape (n,), optional
        Independent clusters, such as patients or sites.
    draws : int, default=2000
        Number of draws from the normal distribution of the curve, which the simultaneous band uses.
    rng : int, Generator or None, default=0
        Random number generator of the draws.

    Returns
    -------
    RiskCoverageBand
        The curve with its bands. With only one sample or cluster, the bands are NaN and the note
        states the reason.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a value is NaN or infinite, a loss or weight is negative, a coverage is not in (0, 1],
        or `level` is not between 0 and 1.

    Notes
    -----
    The standard error is computed from the influence function at a fixed coverage. This influence
    requires the mean loss at the threshold, which is estimated from about n^(4/5) samples near the
    threshold. The standard error determines an effective number of independent samples. The
    pointwise band is Wilson's interval for this number. The simultaneous band is the interval of
    Clopper and Pearson at a higher level. This level corresponds to the quantile of the largest
    standardized deviation over all coverages. Both bands have a positive width even without
    accepted failures. Losses above 1 are divided by the largest loss.

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
    cluster = s.cluster_codes(group)
    coverage = None
    if grid is not None:
        coverage = checks.finite(checks.vector(grid, "grid"), "grid").astype(np.float64)
        is_outside = (coverage <= 0) | (coverage > 1)
        checks.reject_entries("grid", "must lie in (0, 1]", coverage, is_outside)
        coverage = np.unique(coverage)
    return compute_band(
        s, kind, level=level, coverage=coverage, cluster=cluster, draws=draws, rng=rng
    )


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
    """Compute the band of validated samples, where `cluster` contains codes from 0."""
    n_draws = checks.positive_int(draws, "draws")
    level = check_level(level)
    if coverage is None:
        coverage = np.arange(1, _N_GRID_STEPS + 1) / _N_GRID_STEPS
        coverage = coverage[coverage >= min(1.0, 1 / s.merged_groups.n_samples)]
    points = working_points_on_grid(s, coverage, cluster)
    risk = points.generalized_risk / coverage
    variance = np.diag(points.covariance)
    error = np.sqrt(np.maximum(variance, 0.0)) / coverage
    scale = max(1.0, float(s.loss.max()))
    simultaneous_from = max(
        _MIN_SIMULTANEOUS_COVERAGE, min(1.0, 10.0 * coverage[-1] / points.effective_size[-1])
    )
    note = ""
    if np.isnan(variance).any():
        bounds = np.full((4, coverage.size), np.nan)
        note = "only one independent sample, so the variance of the loss is not known"
    else:
        effective_sizes = _effective_sizes(
            points, risk / scale, error / scale, is_binary=s.is_binary
        )
        deviation = _largest_deviation(
            points, simultaneous_from, level, scale=scale, draws=n_draws, rng=rng
        )
        bounds = scale * _interval_bounds(risk / scale, effective_sizes, level, deviation)
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


def as_generalized(band: RiskCoverageBand) -> RiskCoverageBand:
    """Convert a band of the selective risk to the generalized risk by multiplying by coverage."""
    if band.kind == "generalized":
        return band
    names = ("risk", "standard_error", "low", "high", "low_all", "high_all")
    rows = {name: getattr(band, name) * band.coverage for name in names}
    return replace(band, kind="generalized", **rows)


def _effective_sizes(
    points: WorkingPoints, risk: FloatArray, error: FloatArray, *, is_binary: bool
) -> FloatArray:
    """Return the numbers of independent samples with 0/1 loss that have these standard errors.

    If no accepted sample fails or all accepted samples fail, the standard error is not informative.
    The function then uses the risk of half a failure and the variance of 0/1 losses.
    """
    half_failure = 0.5 / (points.effective_size + 1)
    bounded_risk = np.clip(risk, half_failure, 1 - half_failure)
    variance = bounded_risk * (1 - bounded_risk)
    threshold_variance = (1 - points.coverage) * (
        bounded_risk - np.clip(points.threshold_loss, 0.0, 1.0)
    ) ** 2
    expected_size = points.effective_size * variance / (variance + threshold_variance)
    is_informative = (risk > 0) & (risk < 1) & (error > 0)
    sizes = np.divide(risk * (1 - risk), error**2, out=expected_size, where=is_informative)
    # For 0/1 losses, a size above the number of samples is random, so it is limited. Other losses
    # can have a smaller variance.
    return np.minimum(sizes, points.effective_size) if is_binary else sizes


def _largest_deviation(
    points: WorkingPoints, start: float, level: float, *, scale: float, draws: int, rng: Rng
) -> float:
    """Return the quantile of the largest standardized deviation over coverages from `start` on.

    The function draws from the normal distribution with the covariance of the influences. The draws
    are equivalent to a multiplier bootstrap with normal multipliers.
    """
    mask = points.coverage >= min(start, float(points.coverage[-1]))
    c = points.coverage[mask]
    # The variance of half a failure, distributed over all samples, makes the variance positive at
    # coverages without failures.
    half_failure_variance = 0.5 * (scale * points.coverage[-1] / points.effective_size[-1]) ** 2
    covariance = points.covariance[np.ix_(mask, mask)] + half_failure_variance * np.minimum.outer(
        c, c
    )
    error = np.sqrt(np.diag(covariance))
    eigenvalues, vectors = np.linalg.eigh(covariance / np.multiply.outer(error, error))
    # Directions with negligible variance are dropped. The symmetric square root does not depend on
    # the choice of the eigenvectors.
    has_variance = eigenvalues > 1e-6 * eigenvalues[-1]
    noise = vectors[:, has_variance].T @ as_generator(rng).standard_normal((error.size, draws))
    deviations = (vectors[:, has_variance] * np.sqrt(eigenvalues[has_variance])) @ noise
    return float(np.quantile(np.abs(deviations).max(axis=0), level))


def _interval_bounds(
    risk: FloatArray, sizes: FloatArray, level: float, deviation: float
) -> FloatArray:
    """Return the rows low, high, low_all and high_all for risks in [0, 1]."""
    simultaneous_level = float(2 * special.ndtr(deviation) - 1)
    bounds = np.empty((4, risk.size))
    for j, (p, n) in enumerate(zip(risk.tolist(), sizes.tolist(), strict=True)):
        pointwise = wilson(min(p * n, n), n, level=level)
        simultaneous = clopper_pearson(min(p * n, n), n, level=simultaneous_level)
        bounds[:, j] = (
            pointwise.low,
            pointwise.high,
            min(pointwise.low, simultaneous.low),
            max(pointwise.high, simultaneous.high),
        )
    return bounds
