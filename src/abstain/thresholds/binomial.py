"""Exact bounds of a risk for 0/1 losses, conservative p-values, and fixed sequence testing."""

import math

import numpy as np

from abstain._foundation import checks
from abstain._foundation.arrays import to_numpy
from abstain._foundation.lazy_imports import special
from abstain.errors import DomainError, InputError, ShapeError
from abstain.thresholds._choice import MAX_COUNT, check_delta
from abstain.typing import AnyArray, Array, FloatArray


def binomial_risk_bound(m: int | Array, k: int | Array, delta: float | Array) -> float | FloatArray:
    """Compute the exact upper confidence bound of a risk from m samples with k failures.

    Answers: how large may the true risk be if k of m samples fail?

    Parameters
    ----------
    m : int or array of int
        Number of samples, at least 1.
    k : int or array of int
        Number of failures, from 0 to m.
    delta : float
        Probability that the bound is below the true risk, between 0 and 1.

    Returns
    -------
    float or ndarray
        B*(k, m, delta), the risk b with P(Bin(m, b) <= k) = delta, or 1 for k = m. In (0, 1]; lower
        is better. If m or k is an array, the result is an array of the common shape.

    Raises
    ------
    InputError, DomainError, ShapeError
        If a count is not an integer or out of range, `delta` is outside (0, 1), or the shapes do
        not match.

    Notes
    -----
    The bound is the one-sided Clopper-Pearson bound, a quantile of the beta distribution. The
    quantile is computed directly, without a search. Pass integer counts. Do not compute the number
    of failures as the truncated product of risk and m, because 0.29 x 100 is 28.999... in floating
    point.

    References
    ----------
    .. [1] Geifman and El-Yaniv (2017), Selective classification for deep neural networks,
       lemma 3.1, https://arxiv.org/abs/1705.08500

    Examples
    --------
    >>> import abstain as ab
    >>> round(ab.thresholds.binomial_risk_bound(300, 0, 0.05), 5)
    0.00994
    """
    samples, failures = _check_integers(m, "m"), _check_integers(k, "k")
    try:
        samples, failures = np.broadcast_arrays(samples, failures)
    except ValueError:
        raise ShapeError(
            f"`m` and `k` must go together; got shapes {samples.shape} and {failures.shape}"
        ) from None
    checks.reject_entries("m", "must be at least 1", samples, samples < 1)
    checks.reject_entries(
        "k", "must lie in [0, m]", failures, (failures < 0) | (failures > samples)
    )
    out = upper_bound(samples, failures, check_delta(float(delta)))
    return float(out) if out.ndim == 0 else out


def _check_integers(counts: int | Array, name: str) -> Array:
    """Convert counts to an array of integers; raise an error for other values or an empty array."""
    array = np.asarray(counts)
    if array.dtype.kind not in "iu":
        raise InputError(f"`{name}` must be whole numbers; got {counts!r}")
    if array.size == 0:
        raise DomainError(f"`{name}` is empty")
    return array.astype(np.int64)


def upper_bound(m: Array, k: Array, delta: float) -> FloatArray:
    """Compute `binomial_risk_bound` for validated counts."""
    # The complementary function is accurate for a tiny delta, whereas 1 - delta would lose digits.
    n_successes = np.maximum(m - k, 1)
    quantile = special.betainccinv(k + 1.0, n_successes, delta)
    out: FloatArray = np.where(k < m, quantile, 1.0)
    return out


def lower_bound(m: int, k: int, delta: float) -> float:
    """Return the lower confidence bound of a proportion with k successes in m trials."""
    return float(1.0 - upper_bound(np.asarray(m), np.asarray(m - k), delta)) if k > 0 else 0.0


def min_count(risk: float, delta: float) -> int:
    """Return the smallest number of samples that certifies `risk` if no sample fails."""
    ratio = math.log(delta) / math.log1p(-risk)
    if ratio >= MAX_COUNT:
        return MAX_COUNT
    count = max(1, math.ceil(ratio))

    def is_enough(n: int) -> bool:
        return math.exp(n * math.log1p(-risk)) <= delta

    # Because of rounding, the quotient may be too large or too small by one.
    if count > 1 and is_enough(count - 1):
        return count - 1
    return count if is_enough(count) else count + 1


def binomial_p_value(samples: Array, failures: Array, risk: float) -> FloatArray:
    """Return P(Bin(samples, risk) <= failures), the p-value of a true risk above `risk`."""
    out: FloatArray = special.bdtr(
        np.rint(failures).astype(np.float64), np.asarray(samples, dtype=np.int64), risk
    )
    return out


def hoeffding_bentkus_p_value(samples: Array, total: Array, risk: float) -> FloatArray:
    """Return the Hoeffding-Bentkus p-value of a mean loss above `risk`, for losses in [0, 1].

    The p-value is the smaller of exp(-m h(min(mean, risk), risk)) and e P(Bin(m, risk) <=
    ceil(total)).
    """
    m = np.asarray(samples, dtype=np.float64)
    mean = np.minimum(total / m, risk)
    entropy = special.xlogy(mean, mean / risk) + special.xlogy(1 - mean, (1 - mean) / (1 - risk))
    hoeffding = np.exp(-m * np.maximum(entropy, 0.0))
    bentkus = math.e * binomial_p_value(samples, np.ceil(total), risk)
    out: FloatArray = np.minimum(np.minimum(hoeffding, bentkus), 1.0)
    return out


def fixed_sequence(p_values: AnyArray, *, delta: float) -> int:
    """Test hypotheses in a fixed order at level delta until one is not rejected.

    Answers: up to which setting along a path are all guarantees certified?

    Parameters
    ----------
    p_values : array of shape (k,) or (k, risks)
        P-value of each setting (row) and risk for the null hypothesis that the risk is above its
        target. Fix the order before you see the losses, and begin with the safest setting. With
        several risks, a setting passes only if the test of each risk rejects the null hypothesis.
    delta : float
        Probability that a setting with a risk above its target is certified.

    Returns
    -------
    int
        Number of settings that pass before the first setting that fails. The last setting that
        passes is ``order[count - 1]``.

    Raises
    ------
    ShapeError, DomainError
        If `p_values` is empty, has more than two axes or values outside [0, 1], or if `delta` is
        not between 0 and 1.

    See Also
    --------
    learn_then_test : The same test for the thresholds of one confidence score.
    several_risks : The same test over the thresholds of one confidence, for several risks.

    Notes
    -----
    The first setting in the order that exceeds a target passes with probability at most delta. If
    this setting fails, no later setting is tested. With several risks, the hypothesis of a setting
    is "some risk is above its target". The largest p-value of the risks is a valid p-value of this
    hypothesis for any dependence between the risks. Therefore, delta is not divided among the
    risks. A setting may also be a combination of several thresholds.

    References
    ----------
    .. [1] Angelopoulos, Bates, Candes, Jordan and Lei (2021), Learn then test (fixed sequence
       testing; several risks), https://arxiv.org/abs/2110.01052

    Examples
    --------
    >>> import abstain as ab
    >>> ab.thresholds.fixed_sequence([0.001, 0.02, 0.2, 0.01], delta=0.05)
    2
    >>> ab.thresholds.fixed_sequence([[0.001, 0.03], [0.02, 0.3]], delta=0.05)
    1
    """
    values = to_numpy(p_values, "p_values")
    if values.ndim not in {1, 2} or values.size == 0:
        raise ShapeError(
            f"`p_values` must have shape (k,) or (k, risks), k at least 1; got {values.shape}"
        )
    is_invalid = ~((values >= 0) & (values <= 1))
    if is_invalid.any():
        raise DomainError(f"`p_values` must lie in [0, 1]; got {values[is_invalid][0]!r}")
    largest = values if values.ndim == 1 else values.max(axis=1)
    not_rejected = np.flatnonzero(largest > check_delta(delta))
    return int(not_rejected[0]) if not_rejected.size else int(largest.size)


def max_passing_failures(n: int, target: float, alpha: float) -> int:
    """Return the largest number of failures among n samples that certifies a risk at level alpha.

    The result is -1 if no number of failures does.
    """
    n_failures = np.arange(n + 1)
    p_values = binomial_p_value(np.full(n_failures.size, n), n_failures, target)
    return int(np.count_nonzero(p_values <= alpha)) - 1
