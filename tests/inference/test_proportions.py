"""Clopper-Pearson and Wilson against SciPy and statsmodels."""

import numpy as np
import pytest
from scipy.stats import binomtest

from abstain.errors import DomainError
from abstain.inference.intervals import clopper_pearson, effective_sample_size, wilson

CASES = [(0, 1), (1, 1), (0, 50), (3, 50), (25, 50), (50, 50), (7, 1000)]


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
@pytest.mark.parametrize(("k", "n"), CASES)
@pytest.mark.parametrize(
    ("ours", "method"), [(clopper_pearson, "exact"), (wilson, "wilson")], ids=["exact", "wilson"]
)
def test_equal_to_scipy(ours, method: str, k: int, n: int, level: float) -> None:
    expected = binomtest(k, n).proportion_ci(level, method)
    result = ours(k, n, level=level)
    assert np.isclose(result.low, expected.low, atol=1e-12)
    assert np.isclose(result.high, expected.high, atol=1e-12)
    assert result.low <= k / n <= result.high


def test_equal_to_statsmodels_for_effective_counts() -> None:
    stats = pytest.importorskip("statsmodels.stats.proportion")
    for k, n in ((2.5, 31.7), (0.3, 12.0)):
        exact = stats.proportion_confint(k, n, 0.05, "beta")
        score = stats.proportion_confint(k, n, 0.05, "wilson")
        result = clopper_pearson(k, n), wilson(k, n)
        assert np.allclose([(f.low, f.high) for f in result], [exact, score])


def test_clopper_pearson_holds_its_level_everywhere() -> None:
    n = 20
    ends = [clopper_pearson(k, n) for k in range(n + 1)]
    for p in np.linspace(0.01, 0.99, 50):
        held = [binomtest_pmf(k, n, p) for k in range(n + 1) if ends[k].low <= p <= ends[k].high]
        assert sum(held) >= 0.95


def binomtest_pmf(k: int, n: int, p: float) -> float:
    from scipy.stats import binom

    return float(binom.pmf(k, n, p))


def test_the_effective_count_is_the_count_without_weights() -> None:
    p, n = 0.2, 150
    assert np.isclose(effective_sample_size(p, np.sqrt(p * (1 - p) / n)), n)


def test_bad_input_is_named() -> None:
    with pytest.raises(DomainError, match="`successes` must lie in"):
        wilson(5, 4)
    with pytest.raises(DomainError, match="`n` must be above 0"):
        clopper_pearson(0, 0)
    with pytest.raises(DomainError, match=r"For 95% pass 0\.95"):
        wilson(1, 4, level=95)
