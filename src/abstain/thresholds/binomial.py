"""How large a risk may be, given the failures counted: exact for 0/1 losses, bounded for others."""

import math

import numpy as np

from abstain._foundation import checks
from abstain._foundation.lazy_imports import special
from abstain.errors import DomainError, InputError, ShapeError
from abstain.thresholds._choice import COUNTABLE, delta_of
from abstain.typing import Array, FloatArray


def binomial_risk_bound(m: int | Array, k: int | Array, delta: float | Array) -> float | FloatArray:
    """Compute the exact upper bound on a risk from m samples with k failures.

    Answers: how large may the true risk be, if k of m are wrong, except with chance delta?

    Parameters
    ----------
    m : int or array of int
        Samples, at least 1.
    k : int or array of int
        Failures among them, from 0 to m.
    delta : float
        The chance that the bound is below the true risk, between 0 and 1.

    Returns
    -------
    float or ndarray
        B*(k, m, delta), the risk b with P(Bin(m, b) <= k) = delta; 1 for k = m. In (0, 1]; lower
        is better. An array where m or k is one, of their common shape.

    Raises
    ------
    InputError, DomainError, ShapeError
        Counts that are not whole or outside their range; `delta` outside (0, 1); shapes that do not
        go together.

    Notes
    -----
    The one-sided Clopper-Pearson bound, a quantile of the beta distribution: exact for every m, k
    and delta, without search. Whole counts are needed: an empirical risk times m, cut to a whole
    number as some implementations do, loses a failure to rounding (0.29 x 100 is 28.999...).

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
    samples, failures = _whole(m, "m"), _whole(k, "k")
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
    out = upper(samples, failures, delta_of(float(delta)))
    return float(out) if out.ndim == 0 else out


def _whole(x: int | Array, name: str) -> Array:
    out = np.asarray(x)
    if out.dtype.kind not in "iu":
        raise InputError(f"`{name}` must be whole numbers; got {x!r}")
    if out.size == 0:
        raise DomainError(f"`{name}` is empty")
    return out.astype(np.int64)


def upper(m: Array, k: Array, delta: float) -> FloatArray:
    """Return the bound for validated counts."""
    # The complement keeps its digits for a tiny delta, which 1 - delta would not.
    free = np.maximum(m - k, 1)
    out: FloatArray = np.where(k < m, special.betainccinv(k + 1.0, free, delta), 1.0)
    return out


def lower(m: int, k: int, delta: float) -> float:
    """Return the lower bound on a share that held for k of m, k at least 1."""
    return float(1.0 - upper(np.asarray(m), np.asarray(m - k), delta)) if k > 0 else 0.0


def least_count(risk: float, delta: float) -> int:
    """Return the least number of samples whose bound can be `risk`: that many without a failure.

    At most 10**15: for a risk so small that it takes more, the answer is the same.
    """
    ratio = math.log(delta) / math.log1p(-risk)
    if ratio >= COUNTABLE:
        return COUNTABLE
    count = max(1, math.ceil(ratio))
    # The quotient rounds to one side or the other; the power decides.
    if count > 1 and math.exp((count - 1) * math.log1p(-risk)) <= delta:
        return count - 1
    return count if math.exp(count * math.log1p(-risk)) <= delta else count + 1


def binomial_p(samples: Array, failures: Array, risk: float) -> FloatArray:
    """Return P(Bin(samples, risk) <= failures): the p-value of a true risk above `risk`."""
    out: FloatArray = special.bdtr(
        np.rint(failures).astype(np.float64), np.asarray(samples, dtype=np.int64), risk
    )
    return out


def hoeffding_bentkus_p(samples: Array, total: Array, risk: float) -> FloatArray:
    """Return the Hoeffding-Bentkus p-value of a mean above `risk`, for losses in [0, 1].

    The smaller of exp(-m h(min(mean, risk), risk)) and e P(Bin(m, risk) <= ceil(total)).
    """
    m = np.asarray(samples, dtype=np.float64)
    mean = np.minimum(total / m, risk)
    entropy = special.xlogy(mean, mean / risk) + special.xlogy(1 - mean, (1 - mean) / (1 - risk))
    hoeffding = np.exp(-m * np.maximum(entropy, 0.0))
    bentkus = math.e * binomial_p(samples, np.ceil(total), risk)
    out: FloatArray = np.minimum(np.minimum(hoeffding, bentkus), 1.0)
    return out
