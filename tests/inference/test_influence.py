"""Standard errors and covariances from influences."""

import numpy as np

from abstain.inference.influence import (
    covariance,
    standard_error,
    unit_contributions,
    unit_has_weight,
)


def test_the_standard_error_equals_that_of_a_mean() -> None:
    x = np.random.default_rng(0).normal(size=50)
    assert np.isclose(standard_error(x - x.mean()), x.std(ddof=1) / np.sqrt(50))


def test_the_covariance_has_the_standard_errors_on_its_diagonal() -> None:
    x = np.random.default_rng(1).normal(size=(80, 4))
    x -= x.mean(axis=0)
    result = covariance(x)
    assert np.allclose(result, np.cov(x.T) / 80)
    assert np.allclose(np.sqrt(np.diag(result)), [standard_error(x[:, k]) for k in range(4)])


def test_weights_are_on_any_scale_and_a_weight_of_zero_is_no_observation() -> None:
    rng = np.random.default_rng(2)
    x, w = rng.normal(size=30), rng.uniform(1, 2, 30)
    w[:5] = 0
    x -= np.average(x, weights=w)
    assert np.isclose(standard_error(x, weight=w), standard_error(x, weight=7 * w))
    assert np.isclose(standard_error(x, weight=w), standard_error(x[5:], weight=w[5:]))
    expected = np.sqrt(np.sum((w * x) ** 2) / w.sum() ** 2 * 25 / 24)
    assert np.isclose(standard_error(x, weight=w), expected)


def test_clusters_of_one_are_no_clusters_and_copies_add_nothing() -> None:
    x = np.random.default_rng(3).normal(size=40)
    x -= x.mean()
    plain = standard_error(x)
    assert np.isclose(standard_error(x, cluster=np.arange(40)), plain)
    copies, home = np.repeat(x, 5), np.repeat(np.arange(40), 5)
    assert np.isclose(standard_error(copies, cluster=home), plain)
    assert standard_error(copies) < plain / 2
    shuffled = np.random.default_rng(4).permutation(200)
    assert np.isclose(standard_error(copies[shuffled], cluster=home[shuffled]), plain)


def test_one_unit_has_no_spread() -> None:
    assert np.isnan(standard_error(np.zeros(1)))
    assert np.isnan(standard_error(np.zeros(4), cluster=np.zeros(4, dtype=int)))


def test_each_number_may_have_its_own_weights() -> None:
    """Equal columns are one weight; 0/1 weights are the rows alone, but for the n of n/(n - 1)."""
    rng = np.random.default_rng(5)
    x, w = rng.normal(size=(60, 2)), rng.integers(0, 2, (60, 2)) * 1.0
    cluster = rng.integers(12, size=60)
    for home in (None, cluster):
        same = np.repeat(w[:, :1], 2, axis=1)
        assert np.allclose(covariance(x, weight=same, cluster=home),
                           covariance(x, weight=w[:, 0], cluster=home), rtol=1e-12)  # fmt: skip
        result, counted = unit_contributions(x, w, home), unit_has_weight(w, home)
        assert counted.shape == result.shape
        assert counted.any(axis=1).all()
        for k in range(2):
            rows = w[:, k] > 0
            alone = unit_contributions(x[rows, k], None, None if home is None else home[rows])
            assert np.allclose(result[counted[:, k], k], alone[:, 0], rtol=1e-12)
            assert not result[~counted[:, k], k].any()
