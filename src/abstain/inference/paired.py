"""Bootstrap test of the difference of two methods, and the Wilcoxon test on replicates."""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from abstain._foundation import checks
from abstain.errors import ShapeError
from abstain.inference.bootstrap_intervals import bias_notes, quantiles
from abstain.inference.intervals import check_level
from abstain.inference.multiplicity import Adjustment, adjust
from abstain.inference.rank_tests import pairwise_wilcoxon
from abstain.inference.ranking import check_array, equal_up_to_rounding
from abstain.typing import AnyArray, FloatArray

NAN = float("nan")

BootstrapMethod: TypeAlias = Literal["percentile", "basic"]

#: Warning that must accompany every p-value of `wilcoxon_on_replicates`.
REPLICATES_WARNING = (
    "Bootstrap replicates are not independent samples: these p-values decrease with the number of "
    "replicates, whatever the data. They are listed because the literature reports them."
)


@dataclass(frozen=True)
class BootstrapDifference:
    """Difference between two methods over paired bootstrap resamples.

    Attributes
    ----------
    difference : float
        The metric of the first method minus that of the second on the original data.
    low, high : float
        Bounds of the confidence interval.
    standard_error : float
        Standard deviation of the difference over the resamples.
    p_value : float
        Two-sided p-value, which is at least 2/(B + 1).
    superiority : float
        Share of the resamples in which the first method is better. A tie counts half.
    level : float
        Confidence level of the interval.
    n_resamples : int
        Number of resamples on which both methods have a value.
    method : str
        "percentile" or "basic".
    note : str
        Number of dropped resamples or the reason of missing values; empty if there are none.
    ratio, ratio_low, ratio_high : float
        First divided by second, and quantiles of the ratios over the resamples. NaN unless all
        values are positive.
    """

    difference: float
    low: float
    high: float
    standard_error: float
    p_value: float
    superiority: float
    level: float
    n_resamples: int
    method: str
    note: str = ""
    ratio: float = NAN
    ratio_low: float = NAN
    ratio_high: float = NAN


def bootstrap_difference(
    first: AnyArray,
    second: AnyArray,
    values: tuple[float, float],
    *,
    lower_is_better: bool,
    level: float = 0.95,
    method: BootstrapMethod = "percentile",
) -> BootstrapDifference:
    """Compare two methods by the differences of their metrics over paired resamples.

    Answers: by how much is the first method better, and is the difference significant?

    Parameters
    ----------
    first, second : array of shape (B,)
        The metric of each method on the same resamples. Resamples with a NaN are dropped.
    values : tuple of float
        The metric of each method on the original data.
    lower_is_better : bool
        The direction of the metric.
    level : float, default=0.95
        Confidence level.
    method : {"percentile", "basic"}, default="percentile"
        "percentile" uses quantiles of the differences. "basic" mirrors these quantiles at the
        observed difference.

    Returns
    -------
    BootstrapDifference
        The difference with its interval and p-value. If fewer than two resamples have values, all
        numbers except the difference are NaN and the note states the reason.

    Raises
    ------
    ShapeError
        If the lengths differ.
    DomainError
        If `level` is not between 0 and 1.

    Notes
    -----
    The p-value is 1 minus the confidence level at which a bound of the interval is 0. One is added
    to the counts of resamples, so that the p-value is never 0. Apart from this correction, p < 1 -
    level if and only if the interval excludes 0.

    References
    ----------
    .. [1] Davison and Hinkley (1997), Bootstrap methods and their application, chapters 4 and 5,
       https://doi.org/10.1017/CBO9780511802843

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.inference.paired import bootstrap_difference
    >>> replicates = np.random.default_rng(0).normal(size=(2, 999)) + [[0], [6]]
    >>> result = bootstrap_difference(*replicates, (0.0, 6.0), lower_is_better=True)
    >>> result.difference, result.p_value, result.superiority
    (-6.0, 0.002, 1.0)
    """
    first_replicates = check_array(first, "first", "B")
    second_replicates = check_array(second, "second", "B")
    if first_replicates.size != second_replicates.size:
        raise ShapeError(
            "`first` and `second` must have the same resamples; got "
            f"{first_replicates.size} and {second_replicates.size}"
        )
    return bootstrap_differences(
        np.stack([first_replicates, second_replicates]),
        np.array(values, np.float64),
        lower_is_better=lower_is_better,
        level=level,
        method=method,
    )[0]


def bootstrap_differences(
    replicates: FloatArray,
    values: FloatArray,
    *,
    lower_is_better: bool,
    level: float = 0.95,
    method: BootstrapMethod = "percentile",
) -> list[BootstrapDifference]:
    """Compute `bootstrap_difference` of every pair of methods from replicates (k, B).

    The pairs are ordered as in `itertools.combinations`.
    """
    checks.one_of(method, "method", ("percentile", "basic"))
    options = _Options(method, lower_is_better, check_level(level))
    results: list[BootstrapDifference] = []
    for i in range(len(values) - 1):
        # Compare method i with all later methods.
        later_values = values[i + 1 :]
        pair_values = np.stack([np.full(later_values.shape, values[i]), later_values])
        differences, ratios = _differences_and_ratios(replicates[i], replicates[i + 1 :])
        if not np.isnan(differences).any():
            results += _compare(differences, ratios, pair_values, options)
            continue
        # The pairs are compared separately, because each one may have other undefined resamples.
        for pair, is_defined in enumerate(~np.isnan(differences)):
            results += _compare(
                differences[[pair]][:, is_defined],
                ratios[[pair]][:, is_defined],
                pair_values[:, [pair]],
                options,
                n_dropped=int((~is_defined).sum()),
            )
    return results


def _differences_and_ratios(first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return first - second and first / second, or NaN for undefined values."""
    with np.errstate(invalid="ignore"):
        is_equal = equal_up_to_rounding(first, second)
        differences = np.where(is_equal, 0.0, first - second)
        has_ratio = (first > 0) & (second > 0)
        ratios = np.where(has_ratio, first / second, NAN)
    return differences, ratios


def interval_of_test(
    differences: FloatArray, alpha: float, *, is_rejected: bool
) -> tuple[float, float]:
    """Return the interval of a difference that excludes 0 if and only if the test rejects 0.

    The interval contains the values that `bootstrap_difference` does not reject at level `alpha`.
    `differences` contains the differences of B resamples. `is_rejected` is the result of the test,
    which decides if the p-value equals `alpha` up to rounding. The bounds are NaN if B resamples
    are too few to reject any value.
    """
    ordered = np.sort(differences[np.isfinite(differences)])
    # The p-value is 2 (n + 1) / (B + 1), where n is the number of resamples beyond the value.
    n_beyond = int(np.ceil(alpha * (ordered.size + 1) / 2 - 1))
    n_beyond_zero = int(min((ordered <= 0).sum(), (ordered >= 0).sum()))
    n_beyond = max(n_beyond, n_beyond_zero + 1) if is_rejected else min(n_beyond, n_beyond_zero)
    if not 1 <= n_beyond <= ordered.size:
        return NAN, NAN
    low = ordered[n_beyond - 1]
    high = ordered[-n_beyond]
    return float(low), float(high)


def wilcoxon_on_replicates(
    replicates: AnyArray, *, lower_is_better: bool, adjustment: Adjustment = "holm"
) -> FloatArray:
    """Apply the Wilcoxon test to bootstrap replicates, a common but invalid procedure.

    Answers: which p-values do papers report that apply this test to bootstrap replicates?

    Parameters
    ----------
    replicates : array of shape (k, B)
        The metric of each method on each resample.
    lower_is_better : bool
        The direction of the metric.
    adjustment : {"holm", "bonferroni", "none"}, default="holm"
        Adjustment for the number of ordered pairs of methods.

    Returns
    -------
    ndarray of shape (k, k)
        Entry [i, j] is the adjusted one-sided p-value of "i is better than j". The diagonal is NaN.

    Raises
    ------
    ShapeError
        If `replicates` does not have two axes.
    InputError
        If `adjustment` is unknown.

    Notes
    -----
    The test treats the B replicates as B independent samples, so its p-values decrease with B even
    if the methods are equally good. Always show `REPLICATES_WARNING` with these p-values. The
    function `bootstrap_difference` is a valid test on the same replicates.

    References
    ----------
    .. [1] Wiesenfarth et al. (2021), Methods and open-source toolkit for analyzing and
       visualizing challenge results, https://doi.org/10.1038/s41598-021-82017-6

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.inference.paired import wilcoxon_on_replicates
    >>> replicates = np.random.default_rng(0).normal([[0.0], [0.2]], 1.0, size=(2, 1000))
    >>> p = wilcoxon_on_replicates(replicates, lower_is_better=True)
    >>> bool(p[0, 1] < 1e-3), bool(p[1, 0] > 0.999)
    (True, True)
    """
    table = check_array(replicates, "replicates", "k", "B")
    return adjust(pairwise_wilcoxon(table.T, lower_is_better=lower_is_better), method=adjustment)


@dataclass(frozen=True)
class _Options:
    """Options of a bootstrap comparison."""

    method: BootstrapMethod
    lower_is_better: bool
    level: float


def _compare(
    differences: FloatArray,
    ratios: FloatArray,
    values: FloatArray,
    options: _Options,
    n_dropped: int = 0,
) -> list[BootstrapDifference]:
    """Compare each pair of methods by its differences over resamples, shape (pairs, B)."""
    first, second = values
    observed = np.where(equal_up_to_rounding(first, second), 0.0, first - second)
    n_resamples = differences.shape[1]
    level = options.level
    note = ""
    if n_dropped:
        note = f"{n_dropped} of {n_resamples + n_dropped} resamples left out: no value"
    if n_resamples < 2 or np.isnan(observed).any():
        note = note or "no difference: a value is undefined or there are no resamples"
        missing = (NAN,) * 5
        return [
            BootstrapDifference(value, *missing, level, n_resamples, options.method, note)
            for value in observed.tolist()
        ]
    probabilities = [(1 - level) / 2, 1 - (1 - level) / 2]
    is_first_better = differences < 0 if options.lower_is_better else differences > 0
    draws = differences
    if options.method == "basic":
        draws = 2 * observed[:, None] - differences
    low, high = quantiles(draws, probabilities)
    n_in_smaller_tail = np.minimum((draws <= 0).sum(axis=1), (draws >= 0).sum(axis=1))
    ratio, ratio_low, ratio_high = _ratios_with_quantiles(values, ratios, probabilities)
    columns: dict[str, FloatArray] = {
        "difference": observed,
        "low": low,
        "high": high,
        "standard_error": differences.std(axis=1, ddof=1),
        "p_value": np.minimum(1.0, 2 * (1 + n_in_smaller_tail) / (1 + n_resamples)),
        "superiority": is_first_better.mean(axis=1) + (differences == 0).mean(axis=1) / 2,
        "ratio": ratio,
        "ratio_low": ratio_low,
        "ratio_high": ratio_high,
    }
    results = []
    for i, bias in enumerate(bias_notes(differences, observed)):
        numbers: dict[str, Any] = {name: float(column[i]) for name, column in columns.items()}
        results.append(
            BootstrapDifference(
                **numbers,
                level=level,
                n_resamples=n_resamples,
                method=options.method,
                note="; ".join(filter(None, (note, bias))),
            )
        )
    return results


def _ratios_with_quantiles(
    values: FloatArray, ratios: FloatArray, probabilities: list[float]
) -> FloatArray:
    """Return the ratio of each pair and two quantiles of its replicates, shape (3, pairs).

    The numbers are NaN unless all values of both methods are positive.
    """
    first, second = values
    has_ratio = (values > 0).all(axis=0) & ~np.isnan(ratios).any(axis=1)
    out = np.full((3, first.size), NAN)
    out[0, has_ratio] = first[has_ratio] / second[has_ratio]
    out[1:, has_ratio] = quantiles(ratios[has_ratio], probabilities)
    return out
