"""Two methods on the same samples: their difference over resamples, and the literature's test."""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from abstain._foundation import checks
from abstain.errors import ShapeError
from abstain.inference.bootstrap_intervals import bias_notes
from abstain.inference.intervals import level_of
from abstain.inference.multiplicity import Adjustment, adjust
from abstain.inference.quantiles import quantiles
from abstain.inference.rank_tests import pairwise_wilcoxon
from abstain.inference.ranking import alike, stack
from abstain.typing import AnyArray, FloatArray

NAN = float("nan")

Ends: TypeAlias = Literal["percentile", "basic"]

#: Goes with every number of `wilcoxon_on_replicates`.
WARNING = (
    "Replicates of a bootstrap are not independent samples: these p-values shrink with the number "
    "of replicates, whatever the data say. They are here because the literature reports them."
)


@dataclass(frozen=True)
class BootstrapDifference:
    """The difference of two methods over paired resamples.

    Attributes
    ----------
    difference : float
        First minus second, on the data themselves.
    low, high : float
        Ends of the interval.
    standard_error : float
        Standard deviation of the difference over resamples.
    p_value : float
        Two-sided; at least 2/(B + 1).
    superiority : float
        Share of the resamples in which the first is better, ties half.
    level : float
        Of the interval.
    resamples : int
        Resamples on which both methods have a value.
    method : str
        "percentile" or "basic".
    note : str
        What was left out or is missing, or empty.
    ratio, ratio_low, ratio_high : float
        First over second, with the quantiles of the ratios; NaN unless all values are above zero.
    """

    difference: float
    low: float
    high: float
    standard_error: float
    p_value: float
    superiority: float
    level: float
    resamples: int
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
    method: Ends = "percentile",
) -> BootstrapDifference:
    """Compare two methods by the difference of their metrics over paired resamples.

    Answers: how much better is the first, and could that be chance?

    Parameters
    ----------
    first, second : array of shape (B,)
        The metric of each method, both on the same resamples; a resample with a NaN is left out.
    values : tuple of float
        The metric of each method on the data themselves.
    lower_is_better : bool
        The direction of the metric.
    level : float, default=0.95
        Of the interval.
    method : {"percentile", "basic"}, default="percentile"
        The quantiles of the differences, or these mirrored at the difference found.

    Returns
    -------
    BootstrapDifference
        NaN with a note when fewer than two resamples are left.

    Raises
    ------
    ShapeError
        If the lengths differ.
    DomainError
        If `level` is not between 0 and 1.

    Notes
    -----
    The p-value is the level at which the interval just reaches 0, with one added to the count so
    that it is never 0; p < 1 - level if and only if the interval excludes 0, up to that one.

    References
    ----------
    .. [1] Davison and Hinkley (1997), Bootstrap methods and their application, chapters 4 and 5,
       https://doi.org/10.1017/CBO9780511802843

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.inference.paired import bootstrap_difference
    >>> drawn = np.random.default_rng(0).normal(size=(2, 999))
    >>> found = bootstrap_difference(drawn[0], drawn[1] + 6, (0.0, 6.0), lower_is_better=True)
    >>> found.difference, found.p_value, found.superiority
    (-6.0, 0.002, 1.0)
    """
    a, b = stack(first, "first", "B"), stack(second, "second", "B")
    if a.size != b.size:
        raise ShapeError(
            f"`first` and `second` must be of the same resamples; got {a.size} and {b.size}"
        )
    return bootstrap_differences(
        np.stack([a, b]),
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
    method: Ends = "percentile",
) -> list[BootstrapDifference]:
    """Compare every two methods as `bootstrap_difference` does, given their replicates (k, B).

    In the order of `itertools.combinations`; one method is compared with all others at once.
    """
    checks.one_of(method, "method", ("percentile", "basic"))
    asked = _Asked(method, lower_is_better, level_of(level))
    out: list[BootstrapDifference] = []
    for i in range(len(values) - 1):
        others, both = (
            replicates[i + 1 :],
            np.stack(np.broadcast_arrays(values[i], values[i + 1 :])),
        )
        with np.errstate(invalid="ignore"):
            d = np.where(alike(replicates[i], others), 0.0, replicates[i] - others)
            ratios = np.where((replicates[i] > 0) & (others > 0), replicates[i] / others, NAN)
        if not np.isnan(d).any():
            out += _compared(d, ratios, both, asked)
            continue
        for row, (own, ratio) in enumerate(zip(d, ratios, strict=True)):
            kept = ~np.isnan(own)
            pair = both[:, row : row + 1]
            out += _compared(own[None, kept], ratio[None, kept], pair, asked, int((~kept).sum()))
    return out


def wilcoxon_on_replicates(
    replicates: AnyArray, *, lower_is_better: bool, adjustment: Adjustment = "holm"
) -> FloatArray:
    """Run the literature's Wilcoxon test on bootstrap replicates: not a valid test.

    Answers: what would the papers that rank by this test report?

    Parameters
    ----------
    replicates : array of shape (k, B)
        The metric of each method on each resample.
    lower_is_better : bool
        The direction of the metric.
    adjustment : {"holm", "bonferroni", "none"}, default="holm"
        Over all ordered pairs of methods.

    Returns
    -------
    ndarray of shape (k, k)
        Entry [i, j] is the adjusted one-sided p-value of "i is better than j"; NaN on the diagonal.

    Raises
    ------
    ShapeError
        If `replicates` is no table.
    InputError
        If `adjustment` is unknown.

    Notes
    -----
    The test takes the B replicates for B independent samples. Its p-values shrink with B for any
    difference between the two samples, also where the methods are equally good; show `WARNING`
    with them. `bootstrap_difference` is the valid test of the same replicates.

    References
    ----------
    .. [1] Wiesenfarth et al. (2021), Methods and open-source toolkit for analyzing and
       visualizing challenge results, https://doi.org/10.1038/s41598-021-82017-6

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.inference.paired import wilcoxon_on_replicates
    >>> drawn = np.random.default_rng(0).normal([[0.0], [0.2]], 1.0, size=(2, 1000))
    >>> p = wilcoxon_on_replicates(drawn, lower_is_better=True)
    >>> bool(p[0, 1] < 1e-3), bool(p[1, 0] > 0.999)
    (True, True)
    """
    table = stack(replicates, "replicates", "k", "B")
    return adjust(pairwise_wilcoxon(table.T, lower_is_better=lower_is_better), method=adjustment)


@dataclass(frozen=True)
class _Asked:
    """How resamples are compared."""

    method: Ends
    lower_is_better: bool
    level: float


def _compared(
    d: FloatArray, ratios: FloatArray, values: FloatArray, asked: _Asked, left_out: int = 0
) -> list[BootstrapDifference]:
    """Compare pairs by their differences over resamples, (pairs, B), all of which have a value."""
    apart = np.where(alike(*values), 0.0, values[0] - values[1])
    drawn, level = d.shape[1], asked.level
    note = f"{left_out} of {drawn + left_out} resamples left out: no value" if left_out else ""
    if drawn < 2 or np.isnan(apart).any():
        note = note or "no difference: a value is undefined or there are no resamples"
        none = (NAN,) * 5
        return [
            BootstrapDifference(own, *none, level, drawn, asked.method, note)
            for own in apart.tolist()
        ]
    tails = [(1 - level) / 2, 1 - (1 - level) / 2]
    ahead = d < 0 if asked.lower_is_better else d > 0
    shown = d if asked.method == "percentile" else 2 * apart[:, None] - d
    low, high = quantiles(shown, tails)
    fewer = np.minimum((shown <= 0).sum(axis=1), (shown >= 0).sum(axis=1))
    above = (values > 0).all(axis=0) & ~np.isnan(ratios).any(axis=1)
    ratio = np.full((3, apart.size), NAN)
    ratio[0, above] = values[0, above] / values[1, above]
    ratio[1:, above] = quantiles(ratios[above], tails)
    columns: dict[str, FloatArray] = {
        "difference": apart,
        "low": low,
        "high": high,
        "standard_error": d.std(axis=1, ddof=1),
        "p_value": np.minimum(1.0, 2 * (1 + fewer) / (1 + drawn)),
        "superiority": ahead.mean(axis=1) + (d == 0).mean(axis=1) / 2,
        **dict(zip(("ratio", "ratio_low", "ratio_high"), ratio, strict=True)),
    }
    rows: list[dict[str, Any]] = [
        dict(zip(columns, told, strict=True))
        for told in np.stack(list(columns.values()), axis=1).tolist()
    ]
    about: dict[str, Any] = {"level": level, "resamples": drawn, "method": asked.method}
    return [
        BootstrapDifference(**told, **about, note="; ".join(filter(None, (note, biased))))
        for told, biased in zip(rows, bias_notes(d, apart), strict=True)
    ]
