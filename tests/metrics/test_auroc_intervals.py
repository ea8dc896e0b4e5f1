"""Intervals of the failure AUROC where few samples fail."""

import numpy as np
import pytest
from scipy.special import logit

import abstain as ab
from abstain import simulate
from abstain._foundation.scored import Scored
from abstain.metrics import METRICS, metric_interval
from abstain.metrics.intervals import interval_of_metric
from abstain.metrics.roc import hanley_mcneil_variance
from abstain.metrics.small_samples import expected_variance


def ends(draws: int, n: int, rate: float, apart: float, name: str = "failure_auroc") -> np.ndarray:
    rng, metric = np.random.default_rng(7), METRICS[name]
    population = simulate.two_gaussians(rate, apart)
    drawn = (
        interval_of_metric(metric, Scored(*population.sample(n, rng=rng))) for _ in range(draws)
    )
    result = np.array([(each.low, each.high) for each in drawn])
    return result[np.isfinite(result[:, 0])]


@pytest.mark.parametrize(("n", "rate"), [(200, 0.05), (2000, 0.005), (200, 0.1)])
@pytest.mark.parametrize("apart", [1.6, 2.5])
def test_ten_failures_are_held_on_both_sides(n: int, rate: float, apart: float) -> None:
    """Ten failures that all rank low show no spread: 87 % held the truth, 12 % lay above it."""
    population = simulate.two_gaussians(rate, apart)
    truth = 1 - (population.augrc - rate**2 / 2) / (rate * (1 - rate))
    low, high = ends(800, n, rate, apart).T
    error = 3 * np.sqrt(0.05 * 0.95 / 800)
    assert np.mean((low <= truth) & (truth <= high)) > 0.95 - error
    assert np.mean(low > truth) < 0.035 + error
    assert np.mean(high < truth) < 0.03 + error


def test_prr_has_the_interval_of_the_auroc() -> None:
    auroc, prr = (ends(20, 200, 0.05, 1.6, name) for name in ("failure_auroc", "prr"))
    np.testing.assert_allclose(prr, 2 * auroc - 1, rtol=1e-9)


def test_many_failures_have_delongs_interval_on_the_logit_scale() -> None:
    c, loss = simulate.two_gaussians(0.3, 1.6).sample(100_000, rng=0)
    interval, value = metric_interval(c, loss, metric="failure_auroc"), ab.failure_auroc(c, loss)
    half = 1.959964 * interval.standard_error / (value * (1 - value))
    expected = logit(value) + half * np.array([-1.0, 1.0])
    np.testing.assert_allclose(logit([interval.low, interval.high]), expected, 1e-3)


def test_the_model_variance_equals_that_of_exponential_scores() -> None:
    rng, sizes, draws = np.random.default_rng(3), 12, 20_000
    positive = np.sort(rng.exponential(4.0, (draws, sizes)))
    negative = rng.exponential(1.0, (draws, sizes))
    above = (positive[:, :, None] > negative[:, None, :]).mean(axis=(1, 2))
    assert above.mean() == pytest.approx(0.8, abs=0.003)
    assert hanley_mcneil_variance(0.8, sizes, sizes) == pytest.approx(above.var(), rel=0.05)
    assert hanley_mcneil_variance(0.8, 7, 90) == hanley_mcneil_variance(0.8, 90, 7)
    assert hanley_mcneil_variance(0.8, 7, 90) == pytest.approx(hanley_mcneil_variance(0.2, 7, 90))


def test_weights_and_clusters_count_as_what_they_are_worth() -> None:
    c, loss = simulate.two_gaussians(0.2, 1.6).sample(60, rng=1)
    metric, value = METRICS["failure_auroc"], ab.failure_auroc(c, loss)
    plain = expected_variance(metric, Scored(c, loss), value)
    assert plain == expected_variance(metric, Scored(c, loss, np.full(60, 7.0)), value)
    more = Scored(np.append(c, 0.0), np.append(loss, 1.0), np.append(np.ones(60), 0.0))
    assert expected_variance(metric, more, value) == plain
    assert expected_variance(metric, Scored(c, loss), value, np.arange(60)) == plain
    copies = Scored(np.repeat(c, 3), np.repeat(loss, 3))
    once = expected_variance(metric, copies, value, np.repeat(np.arange(60), 3))
    assert once is not None
    assert plain is not None
    assert once.variance == pytest.approx(plain.variance)
    assert expected_variance(METRICS["augrc"], Scored(c, loss), 0.1) is None
    assert expected_variance(METRICS["prr"], Scored(c, loss / 2), 0.1) is None


@pytest.mark.slow
def test_the_standard_error_with_ten_failures_is_the_spread_of_repeated_studies() -> None:
    """With n in place of n - 1 of the failures the ratio is 0.958 (standard error 0.011)."""
    rng, metric, n = np.random.default_rng(5), METRICS["failure_auroc"], 200
    loss = (np.arange(n) < 10).astype(float)
    results = []
    for _ in range(4000):
        s = Scored(rng.normal(size=n) - 1.6 * loss, loss)
        results.append((metric.compute(s).value, interval_of_metric(metric, s).standard_error))
    values, errors = np.array(results).T
    assert np.sqrt(np.mean(errors**2)) / values.std() == pytest.approx(1, abs=0.03)
