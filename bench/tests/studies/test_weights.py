"""The study of the weights: what the rank among n says, and where the weights come from and go."""

import numpy as np
import pytest
from scipy.special import digamma, polygamma

from abstain_bench.studies import study_weights


@pytest.fixture(scope="module")
def result():
    return study_weights(sizes=[8, 64], points=9)


def test_errors_at_a_rank_are_those_of_the_paper(result):
    for n in (8, 64):
        r = np.arange(1, n + 1)
        spread = polygamma(1, n + 1 - r) - polygamma(1, n + 1)
        mean = digamma(n + 1) - digamma(n - r + 1)
        expected = {
            "plugin": spread,
            "log": spread + (np.log(1 - r / (n + 1)) + mean) ** 2,
            "sele": spread + (r / n - mean) ** 2,
        }
        for name, errors in expected.items():
            mine = result.frame("given-rank").filter(n=n, estimator=name)
            np.testing.assert_array_equal(mine["sample_rank"], r)
            np.testing.assert_allclose(mine["mse"], errors, rtol=1e-9)
            np.testing.assert_allclose(mine["mean_target"], mean, rtol=1e-12)


def test_their_mean_stands_beside_equation_31(result):
    for n in (8, 64):
        row = result.frame("mean-error").filter(n=n, estimator="plugin").row(0, named=True)
        assert row["mean_MSE"] == pytest.approx(np.sum(1 / np.arange(1, n + 1)) / n)
        assert row["eq_31"] == pytest.approx((n + 1) * np.log(n + 1) / n**2 - 1 / n)
    (said,) = [s for s in result.verdict if "is H_n/n" in s]
    assert "0.34 at n = 8 (1.85 times eq. 31)" in said


def test_consistent_weights_go_to_those_of_the_population(result):
    limits = result.frame("consistency")
    for row in limits.filter(estimator="plugin").iter_rows(named=True):
        assert row["limit"] == pytest.approx(-np.log1p(-row["rank"]))
        assert abs(row["error"]) <= 1 / (row["n"] * (1 - row["rank"]))
    stays = limits.filter(estimator="2sele", rank=0.9)["error"]
    assert stays.to_numpy() == pytest.approx(1.8 + np.log(0.1))
    (said,) = [s for s in result.verdict if "consistent if this distance" in s]
    assert "plug-in 4.9e-05" in said
    assert "2 x SELE 2.6" in said


def test_drawn_weights_go_to_the_plugin_at_the_rate_of_their_error(result):
    rows = result.rows("derivation")
    assert {row["n"] for row in rows} == {8, 64}
    for row in rows:
        harmonic_number = np.sum(1 / np.arange(1, row["n"] + 1))
        assert row["expected_RMS"] == pytest.approx(
            (harmonic_number / row["n"] / row["draws"]) ** 0.5
        )
        assert 0.8 < row["RMS_to_plugin"] / row["expected_RMS"] < 1.25
    again = study_weights(sizes=[8, 64], points=9)
    assert again.rows("derivation") == rows
    assert study_weights(sizes=[8, 64], points=9, rng=1).rows("derivation") != rows
    # Large samples are not drawn.
    large = study_weights(sizes=[256], points=3)
    assert large.rows("derivation") == []
    assert "derivation" not in large.figures
