"""Intervals from replicates, against SciPy's on the same replicates."""

import numpy as np
import pytest
from scipy import stats

from abstain.inference.bootstrap_intervals import (
    acceleration,
    bca,
    bias_note,
    debiased_percentile,
    percentile,
    quantiles,
    studentized,
)
from abstain.inference.draws import Draws, bootstrap


def auroc(success: np.ndarray, failure: np.ndarray, axis: int = -1) -> np.ndarray:
    above = (success[..., :, None] > failure[..., None, :]).mean(axis=(-2, -1))
    assert axis == -1
    return above


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_mean_as_scipy(level: float) -> None:
    x = np.random.default_rng(0).exponential(size=60)
    for method, ours in (
        ("percentile", lambda r: percentile(r, level=level)),
        ("BCa", lambda r: bca(r, x.mean(), x - x.mean(), level=level)),
    ):
        theirs = stats.bootstrap(
            (x,), np.mean, method=method, confidence_level=level, n_resamples=999, rng=1
        )
        result = ours(theirs.bootstrap_distribution)
        expected = theirs.confidence_interval
        assert (result.low, result.high) == pytest.approx((expected.low, expected.high), abs=1e-12)
        assert result.standard_error == pytest.approx(theirs.standard_error, abs=1e-12)
        assert result.method == f"bootstrap, {method}, 999 resamples"
        assert result.level == level


def test_auroc_as_scipy() -> None:
    rng = np.random.default_rng(3)
    success, failure = rng.normal(size=40) + 1, rng.normal(size=15)
    theirs = stats.bootstrap(
        (success, failure), auroc, method="BCa", n_resamples=499, rng=1, vectorized=True
    )
    drawn = theirs.bootstrap_distribution
    # SciPy's jackknife of two samples: each leaves one out, scaled by its own size.
    jack = [
        np.array([auroc(np.delete(success, i), failure) for i in range(40)]),
        np.array([auroc(success, np.delete(failure, i)) for i in range(15)]),
    ]
    influence = np.concatenate([(j.mean() - j) * (j.size - 1) / j.size for j in jack])
    result = bca(drawn, float(auroc(success, failure)), influence)
    expected = theirs.confidence_interval
    assert (result.low, result.high) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_the_acceleration_does_not_depend_on_the_scale() -> None:
    x = np.random.default_rng(0).exponential(size=60)
    assert acceleration(x - x.mean()) == pytest.approx(acceleration(7 * (x - x.mean())))
    assert acceleration(np.zeros(3)) == 0


@pytest.mark.parametrize("scale", ["identity", "log"])
def test_studentized_is_the_formula(scale: str) -> None:
    x = np.random.default_rng(0).exponential(size=60)
    draws = Draws(60, 999, rng=2)
    means = bootstrap(lambda k: x @ k / 60, draws)
    errors = np.sqrt(bootstrap(lambda k: (x**2 @ k / 60 - (x @ k / 60) ** 2) / 59, draws))
    own = x.std(ddof=1) / np.sqrt(60)
    result = studentized(means, errors, x.mean(), own, scale=scale)
    if scale == "identity":
        t = (means - x.mean()) / errors
        ends = x.mean() - own * np.quantile(t, [0.975, 0.025])
    else:
        t = np.log(means / x.mean()) / (errors / means)
        ends = x.mean() * np.exp(-own / x.mean() * np.quantile(t, [0.975, 0.025]))
    assert (result.low, result.high) == pytest.approx(tuple(ends), abs=1e-12)
    assert result.low < x.mean() < result.high


def test_coverage_of_the_mean_of_a_normal_sample() -> None:
    rng = np.random.default_rng(0)
    held = np.zeros(3)
    for seed in range(300):
        x = rng.normal(size=40)
        draws = Draws(40, 400, rng=seed)
        means = bootstrap(lambda k, x=x: x @ k / 40, draws)
        errors = np.sqrt(bootstrap(lambda k, x=x: (x**2 @ k / 40 - (x @ k / 40) ** 2) / 39, draws))
        for i, found in enumerate(
            (
                percentile(means),
                bca(means, x.mean(), x - x.mean()),
                studentized(means, errors, x.mean(), x.std(ddof=1) / np.sqrt(40)),
            )
        ):
            held[i] += found.low <= 0 <= found.high
    assert (held / 300 > 0.90).all()
    assert (held / 300 < 0.985).all()


def test_undefined_replicates_are_omitted_and_told() -> None:
    x = np.append(np.linspace(0, 1, 999), np.nan)
    result = percentile(x)
    assert result.low == pytest.approx(0.025)
    assert result.note == "undefined in 1 of 1000 resamples, which are left out"
    assert "undefined in 5 of 5 resamples" in percentile(np.full(5, np.nan)).note
    assert np.isnan(percentile(np.full(5, np.nan)).low)


def test_few_replicates_are_told() -> None:
    assert percentile(np.arange(200.0)).note == ""
    assert "draw at least 200" in percentile(np.arange(199.0)).note
    assert "draw at least 1000" in percentile(np.arange(199.0), level=0.99).note


def test_degenerate_replicates() -> None:
    result = bca(np.linspace(1, 2, 500), 0.5, np.array([-1.0, 0.0, 1.0]))
    assert "one side" in result.note
    assert result.low <= result.high
    same = bca(np.zeros(500), 0.0, np.zeros(3))
    assert (same.low, same.high, same.standard_error) == (0, 0, 0)
    wild = bca(np.linspace(0, 1, 500), 0.5, np.array([1.0, 0, 0, 0]))
    assert np.isfinite([wild.low, wild.high]).all()
    assert np.isnan(bca(np.arange(500.0), np.nan, np.ones(3)).low)
    none = studentized(np.arange(500.0), np.zeros(500), 3.0, 1.0)
    assert np.isnan(none.low)
    assert "undefined in 500" in none.note
    none = studentized(np.ones(500) / 2, np.ones(500), 0.0, 1.0, scale="logit")
    assert none.note == "the value has no standard error on this scale"


@pytest.mark.parametrize(("n", "gap"), [(1000, 0.0), (1000, 0.02), (1000, 0.05), (4000, 0.0)])
def test_a_sum_of_absolute_gaps_is_held_without_its_bias(n: int, gap: float) -> None:
    # Ten bins whose observed share lies `gap` below the confidence: an ECE of exactly that.
    rng = np.random.default_rng(n)
    sure, held, plain, draws = np.linspace(0.5, 0.95, 10), 0, 0, 200

    def ece(right: np.ndarray, size: np.ndarray) -> np.ndarray:
        return np.abs(right - size * sure).sum(axis=-1) / n

    for _ in range(draws):
        size = rng.multinomial(n, np.full(10, 0.1))
        right = rng.binomial(size, sure - gap)
        cells = rng.multinomial(n, np.append(right, size - right) / n, size=400)
        drawn, value = ece(cells[:, :10], cells[:, :10] + cells[:, 10:]), float(ece(right, size))
        result, naive = debiased_percentile(drawn, value), percentile(drawn)
        held += result.low - 1e-12 <= gap <= result.high
        plain += naive.low <= gap <= naive.high
        assert 0 <= result.low < result.high
    assert held / draws > 0.91
    if gap < 0.05:
        assert plain / draws < 0.5


def test_a_bias_that_is_not_small_is_said() -> None:
    draws = np.random.default_rng(2).normal(size=1000)
    assert "biased by 0.5" in bias_note(draws - draws.mean() + 1.5, 1.0)
    assert not bias_note(draws - draws.mean() + 1.1, 1.0)
    assert not bias_note([np.nan, np.nan], 1.0)
    assert np.isnan(debiased_percentile([np.nan, 1.0], 1.0).low)
    # Less than chance alone makes: the squares are all spent, but the interval is no point.
    spent = debiased_percentile(0.02 + np.abs(draws) / 1000, 0.001)
    assert spent.low == 0
    assert spent.high > 0


@pytest.mark.parametrize("shape", [(7,), (500,), (3, 40), (1,), (4, 1)])
@pytest.mark.parametrize("bad", [None, np.nan, np.inf])
def test_quantiles_equal_those_of_numpy(shape, bad):
    x = np.random.default_rng(3).normal(size=shape).round(1)
    if bad is not None:
        x[..., -1] = bad
    at = [0.0, 0.025, 0.3, 0.5, 0.975, 1.0]
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(quantiles(x, at), np.quantile(x, at, axis=-1))
