"""`metric_bootstrap`: the replicates of one score, and the intervals made of them."""

import numpy as np
import pytest

import abstain as ab
from abstain.errors import DomainError, InputError, ShapeError
from abstain.inference import Draws


def data(n: int = 300, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    loss = (rng.random(n) < 0.15).astype(float)
    return np.round(rng.normal(size=n) - loss, 1), loss


def test_replicates_are_the_metric_of_rows_drawn_again() -> None:
    c, loss = data()
    distribution = ab.metric_bootstrap(c, loss, metric="e_aurc", resamples=8, rng=3)
    (counts,) = Draws(c.size, 8, rng=3)
    rows = [np.repeat(np.arange(c.size), k) for k in counts.T]
    naive = [ab.e_aurc(c[r], loss[r]) for r in rows]
    assert distribution.replicates == pytest.approx(naive, abs=1e-12)
    assert distribution.value == ab.e_aurc(c, loss)
    assert distribution.bias == pytest.approx(np.mean(naive) - distribution.value)
    assert distribution.standard_error == pytest.approx(np.std(naive, ddof=1))


@pytest.mark.parametrize("interval", ["percentile", "bca", "studentized"])
@pytest.mark.parametrize("metric", ["augrc", "aurc", "failure_auroc", "selective_risk@80cov"])
def test_intervals_are_close_to_the_analytic_one(metric: str, interval: str) -> None:
    c, loss = data(2000)
    distribution = ab.metric_bootstrap(
        c, loss, metric=metric, interval=interval, resamples=1000, rng=0
    )
    analytic = ab.metric_interval(c, loss, metric=metric)
    width = analytic.high - analytic.low
    assert distribution.interval.low == pytest.approx(analytic.low, abs=0.25 * width)
    assert distribution.interval.high == pytest.approx(analytic.high, abs=0.25 * width)
    assert str(1000) in distribution.interval.method


def test_the_mean_of_the_augrc_over_resamples_is_known() -> None:
    c, loss = data(100)
    distribution = ab.metric_bootstrap(c, loss, resamples=20_000, rng=0)
    expected = (1 - 1 / 100) * ab.augrc(c, loss) + loss.mean() / 200
    error = distribution.standard_error / np.sqrt(20_000)
    assert abs(distribution.replicates.mean() - expected) < 4 * error


def test_strata_keep_the_number_of_failures() -> None:
    c, loss = data()
    plan = Draws(c.size, 50, rng=0, strata=loss)
    distribution = ab.metric_bootstrap(c, loss, metric="augrc_classifier", resamples=plan)
    assert np.ptp(distribution.replicates) < 1e-15


def test_clusters_widen_the_spread() -> None:
    rng = np.random.default_rng(0)
    loss = np.repeat((rng.random(50) < 0.3).astype(float), 10)
    c = np.repeat(rng.normal(size=50), 10) - loss
    plain = ab.metric_bootstrap(c, loss, resamples=500, rng=0)
    clustered = ab.metric_bootstrap(c, loss, resamples=500, rng=0, group=np.repeat(range(50), 10))
    assert clustered.standard_error > 2 * plain.standard_error


def test_the_seed_decides_and_is_told() -> None:
    c, loss = data()
    first = ab.metric_bootstrap(c, loss, resamples=64, rng=5)
    again = ab.metric_bootstrap(c, loss, resamples=64, rng=first.seed)
    assert np.array_equal(first.replicates, again.replicates)
    other = ab.metric_bootstrap(c, loss, resamples=64, rng=6)
    assert not np.array_equal(first.replicates, other.replicates)


def test_what_is_undefined_in_some_resamples_is_said() -> None:
    c, loss = np.linspace(1, 0, 20), np.zeros(20)
    loss[-1] = 1
    distribution = ab.metric_bootstrap(c, loss, metric="failure_auroc", resamples=500, rng=0)
    lost = int(np.isnan(distribution.replicates).sum())
    assert 100 < lost < 260, "about 36 % of the resamples lack the only failure"
    assert f"undefined in {lost} of 500" in distribution.interval.note


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"metric": "brier"}, InputError, "needs"),
        ({"metric": "fpr_at_95tpr", "interval": "bca"}, InputError, "percentile"),
        ({"interval": "t"}, InputError, "interval"),
        ({"resamples": 0}, InputError, "resamples"),
        ({"level": 95}, DomainError, "level"),
        ({"group": [1, 2]}, ShapeError, "group"),
        ({"resamples": Draws(7, 10, rng=0)}, ShapeError, "7"),
    ],
)
def test_what_is_refused(options, error, words) -> None:
    with pytest.raises(error, match=words):
        ab.metric_bootstrap(*data(), **options)


def test_calibration_errors_lose_their_bias_and_say_so() -> None:
    rng = np.random.default_rng(0)
    sure = rng.uniform(0.4, 1, 1500)
    loss = (rng.random(1500) > sure).astype(float)
    distribution = ab.metric_bootstrap(sure, loss, metric="ece", resamples=200, rng=0)
    assert distribution.interval.low == 0
    assert "twice the bias" in distribution.interval.method
    assert "biased by" in distribution.interval.note
    assert distribution.bias > 0


def test_one_resample_makes_no_interval() -> None:
    c, loss = data()
    for resamples in (1, Draws(c.size, 1, rng=0)):
        with pytest.raises(InputError, match="at least 2 for an interval; got 1"):
            ab.metric_bootstrap(c, loss, resamples=resamples)


def test_few_clusters_are_said() -> None:
    c, loss = data()
    distribution = ab.metric_bootstrap(c, loss, resamples=200, group=np.arange(c.size) % 3, rng=0)
    assert "only 3 clusters" in distribution.interval.note
