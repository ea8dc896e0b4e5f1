"""Many tests at once: p-values adjusted so that one false finding among them stays unlikely."""

from typing import Literal, TypeAlias

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import to_numpy
from abstain.typing import AnyArray, FloatArray

Adjustment: TypeAlias = Literal["holm", "bonferroni", "none"]

ADJUSTMENTS = ("holm", "bonferroni", "none")


def adjust(p_values: AnyArray, *, method: Adjustment = "holm") -> FloatArray:
    """Adjust p-values for the number of tests.

    Answers: which of these differences remain when I allow for having looked at all of them?

    Parameters
    ----------
    p_values : array of any shape
        In [0, 1]; NaN for a test that could not be made.
    method : {"holm", "bonferroni", "none"}, default="holm"
        Holm's step-down method is never less powerful than Bonferroni's and needs no more.

    Returns
    -------
    ndarray of the same shape
        In [0, 1], never below the p-value. Below alpha for any true null hypothesis with a chance
        of at most alpha in all (not so for "none"). NaN stays NaN and does not count as a test.

    Raises
    ------
    DomainError
        If a p-value is outside [0, 1].
    InputError
        If `method` is unknown.

    Notes
    -----
    Valid whatever the dependence between the tests.

    References
    ----------
    .. [1] Holm (1979), A simple sequentially rejective multiple test procedure,
       https://www.jstor.org/stable/4615733

    Examples
    --------
    >>> from abstain.inference.multiplicity import adjust
    >>> adjust([0.01, 0.04, 0.03, float("nan")]).tolist()
    [0.03, 0.06, 0.06, nan]
    """
    checks.one_of(method, "method", ADJUSTMENTS)
    p = np.array(to_numpy(p_values, "p_values"), dtype=np.float64)
    tested = ~np.isnan(p)
    bad = tested & ~((p >= 0) & (p <= 1))
    checks.refuse("p_values", "must lie in [0, 1]", p, bad)
    if method != "none":
        p[tested] = _steps(p[tested], holm=method == "holm")
    return p


def _steps(p: FloatArray, *, holm: bool) -> FloatArray:
    """Multiply by the number of tests, or of those that are left at each step."""
    if not holm:
        return np.minimum(1.0, p * p.size)
    order = np.argsort(p, kind="stable")
    factors = np.arange(p.size, 0, -1)
    out = np.empty_like(p)
    out[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * factors))
    return out
