"""A risk-coverage curve with the band that chance draws around it."""

from dataclasses import dataclass, replace

import numpy as np

from abstain._foundation import checks
from abstain._foundation.frames import AnyFrame, Backend, frame_from_rows
from abstain._foundation.input_rows import cluster_codes
from abstain._foundation.lazy_imports import special
from abstain._foundation.random import as_generator
from abstain._foundation.scored import Scored, validate_samples_on_host
from abstain.curves._accepted_parts import AcceptedParts, accepted
from abstain.curves.risk_coverage import Kind
from abstain.inference.intervals import check_level, clopper_pearson, wilson
from abstain.typing import AnyArray, FloatArray, IntArray, Rng

#: Steps of the default grid of coverages.
_STEPS = 200
#: The simultaneous band holds from this coverage up, or from the one that accepts ten samples.
_FROM = 0.05


@dataclass(frozen=True, eq=False)
class RiskCoverageBand:
    """A risk-coverage curve on a grid of coverages, with a pointwise and a simultaneous band.

    Attributes
    ----------
    kind : str
        "selective" or "generalized".
    coverage : ndarray of shape (m,)
        The grid, ascending, in (0, 1].
    risk : ndarray of shape (m,)
        The risk when that share is accepted (a tie group in part, at random).
    standard_error : ndarray of shape (m,)
        Of each risk.
    low, high : ndarray of shape (m,)
        Pointwise: at each coverage by itself the band holds the true risk at the level.
    low_all, high_all : ndarray of shape (m,)
        Simultaneous: the whole true curve from coverage `simultaneous_from` up lies inside at the
        level; wider.
    level : float
        The level of both bands.
    simultaneous_from : float
        The lowest coverage for which the simultaneous band speaks.
    note : str
        What to be careful about, or empty.
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
        """Return the band as a dataframe, one row for each coverage."""
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

    Answers: how far may the true curve lie from the one I see, at one coverage and everywhere?

    Parameters
    ----------
    confidence : array of shape (n,)
        Higher means more trusted; any real scale.
    loss : array of shape (n,)
        Finite and non-negative; 1 for an error under 0/1 loss.
    kind : {"selective", "generalized"}, default="selective"
        Which risk.
    level : float, default=0.95
        Of both bands.
    grid : array of shape (m,), optional
        Coverages in (0, 1]; steps of 0.005 from the first whole sample on if not given.
    weight : array of shape (n,), optional
        Sample weights; a row is one observation whatever its weight.
    group : array of shape (n,), optional
        Clusters (patients, sites) that are independent of each other.
    draws : int, default=2000
        Of the curve from its normal law, for the simultaneous band.
    rng : int, Generator or None, default=0
        Seed of the draws.

    Returns
    -------
    RiskCoverageBand
        NaN bands with a note when there is one sample (or group) only.

    Raises
    ------
    ShapeError
        If the lengths differ or an array is empty.
    DomainError
        If a value is NaN or infinite, a loss or weight is negative, a coverage is not in (0, 1],
        or `level` is not between 0 and 1.

    Notes
    -----
    The standard error is that of the influence function at a fixed coverage; the mean loss at
    the threshold, which it needs, is that of the samples around it (about n^(4/5) of them). With
    it the accepted samples are worth an effective number of independent ones. The pointwise ends
    are Wilson's for that number, the simultaneous ones Clopper and Pearson's at the level that the
    largest standardized deviation over all coverages asks for; neither has zero width where no
    failure was accepted. Losses above 1 are taken over the largest one found.

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
    cluster = cluster_codes(s, group)
    coverage = None if grid is None else _coverages(grid)
    return band_of(s, kind, level=level, coverage=coverage, cluster=cluster, draws=draws, rng=rng)


def band_of(
    s: Scored,
    kind: Kind,
    *,
    level: float = 0.95,
    coverage: FloatArray | None = None,
    cluster: IntArray | None = None,
    draws: int = 2000,
    rng: Rng = 0,
) -> RiskCoverageBand:
    """Build the band of validated samples; `cluster` holds codes from 0."""
    size = checks.positive_int(draws, "draws")
    level = check_level(level)
    if coverage is None:
        coverage = np.arange(1, _STEPS + 1) / _STEPS
        coverage = coverage[coverage >= min(1.0, 1 / s.merged_groups.n_samples)]
    at = accepted(s, coverage, cluster)
    risk = at.generalized / coverage
    variance = np.diag(at.covariance)
    error = np.sqrt(np.maximum(variance, 0.0)) / coverage
    scale = max(1.0, float(s.loss.max()))
    start = max(_FROM, min(1.0, 10.0 * coverage[-1] / at.effective[-1]))
    note = ""
    if np.isnan(variance).any():
        ends = np.full((4, coverage.size), np.nan)
        note = "one independent sample only: its loss says nothing about how much others differ"
    else:
        worth = _worth(at, risk / scale, error / scale, binary=s.is_binary)
        reach = _largest_deviation(at, start, level, scale=scale, draws=size, rng=rng)
        ends = scale * _ends(risk / scale, worth, level, reach)
    low, high, low_all, high_all = ends
    band = RiskCoverageBand(
        "selective", coverage, risk, error, low, high, low_all, high_all, level, start, note
    )
    return band if kind == "selective" else as_generalized(band)


def as_generalized(band: RiskCoverageBand) -> RiskCoverageBand:
    """Return the band of the generalized risk from that of the selective risk: times coverage."""
    if band.kind == "generalized":
        return band
    names = ("risk", "standard_error", "low", "high", "low_all", "high_all")
    rows = {name: getattr(band, name) * band.coverage for name in names}
    return replace(band, kind="generalized", **rows)


def _worth(at: AcceptedParts, risk: FloatArray, error: FloatArray, *, binary: bool) -> FloatArray:
    """Return how many independent samples with a 0/1 loss would have these standard errors.

    Where nothing or everything accepted failed the standard error knows nothing. There the risk
    is taken to be that of half a failure, and its variance from the theory of 0/1 losses.
    """
    half = 0.5 / (at.effective + 1)
    shown = np.clip(risk, half, 1 - half)
    spread = shown * (1 - shown)
    moving = (1 - at.coverage) * (shown - np.clip(at.slope, 0.0, 1.0)) ** 2
    theory = at.effective * spread / (spread + moving)
    told = (risk > 0) & (risk < 1) & (error > 0)
    worth = np.divide(risk * (1 - risk), error**2, out=theory, where=told)
    # For 0/1 losses more than there are can only be luck; graded losses may vary less.
    return np.minimum(worth, at.effective) if binary else worth


def _largest_deviation(
    at: AcceptedParts, start: float, level: float, *, scale: float, draws: int, rng: Rng
) -> float:
    """Return the quantile of the largest standardized deviation over the coverages from `start`.

    Draws from the normal law with the covariance of the influences: what a bootstrap with
    normal multipliers would draw.
    """
    kept = at.coverage >= min(start, float(at.coverage[-1]))
    c = at.coverage[kept]
    # Half a failure spread evenly over all samples keeps coverages without failures in the count.
    half = 0.5 * (scale * at.coverage[-1] / at.effective[-1]) ** 2
    covariance = at.covariance[np.ix_(kept, kept)] + half * np.minimum.outer(c, c)
    error = np.sqrt(np.diag(covariance))
    eigenvalues, vectors = np.linalg.eigh(covariance / np.multiply.outer(error, error))
    # Directions that carry no variance to speak of are left out. The root is the symmetric one,
    # which does not depend on how the eigenvectors were chosen.
    carry = eigenvalues > 1e-6 * eigenvalues[-1]
    noise = vectors[:, carry].T @ as_generator(rng).standard_normal((error.size, draws))
    drawn = (vectors[:, carry] * np.sqrt(eigenvalues[carry])) @ noise
    return float(np.quantile(np.abs(drawn).max(axis=0), level))


def _ends(risk: FloatArray, worth: FloatArray, level: float, reach: float) -> FloatArray:
    """Return low, high, low_all and high_all, each a row, for risks in [0, 1]."""
    everywhere = float(2 * special.ndtr(reach) - 1)
    ends = np.empty((4, risk.size))
    for j, (p, n) in enumerate(zip(risk.tolist(), worth.tolist(), strict=True)):
        one = wilson(min(p * n, n), n, level=level)
        all_ = clopper_pearson(min(p * n, n), n, level=everywhere)
        ends[:, j] = one.low, one.high, min(one.low, all_.low), max(one.high, all_.high)
    return ends


def _coverages(grid: AnyArray) -> FloatArray:
    values = checks.finite(checks.vector(grid, "grid"), "grid").astype(np.float64)
    checks.reject_entries("grid", "must lie in (0, 1]", values, (values <= 0) | (values > 1))
    return np.unique(values)
