"""Resampled areas: NumPy, numba, any number of threads and repeated rows give the same values."""

from itertools import starmap

import numpy as np
import pytest

from abstain.errors import ShapeError
from abstain.inference import resampled_areas as areas_module
from abstain.inference.draws import Draws, bootstrap
from abstain.inference.resampled_areas import (
    ResampledAreas,
    SortedSamples,
    resampled_areas,
    sort_samples,
)
from abstain.metrics import augrc, aurc

ALL = frozenset({"augrc", "aurc", "aurc_plugin"})
BOTH_KERNELS = pytest.mark.parametrize(
    "kernels", [areas_module.NUMPY_KERNELS, areas_module.select_kernels()], ids=["numpy", "fast"]
)


def simulate(
    n: int, failure_rate: float, *, decimals: int | None = None, skill: float = 1.0
) -> tuple:
    rng = np.random.default_rng(n)
    loss = rng.random(n) < failure_rate
    confidence = rng.normal(size=n) - skill * loss
    return (confidence if decimals is None else confidence.round(decimals)), loss


def areas_by_repeating_rows(
    confidence: np.ndarray, loss: np.ndarray, counts: np.ndarray
) -> dict[str, np.ndarray]:
    resampled_indices = [np.repeat(np.arange(loss.size), count) for count in counts.T]
    rows = [(confidence[index], loss[index]) for index in resampled_indices]
    return {
        "augrc": np.array(list(starmap(augrc, rows))),
        "aurc": np.array(list(starmap(aurc, rows))),
        "aurc_plugin": np.array([aurc(c, x, estimator="plugin") for c, x in rows]),
    }


def assert_areas_equal(
    areas: ResampledAreas, expected: dict[str, np.ndarray], row: int = 0
) -> None:
    for name, values in areas.by_name.items():
        np.testing.assert_allclose(values[row], expected[name], rtol=0, atol=1e-12)


@BOTH_KERNELS
@pytest.mark.parametrize(
    ("n", "failure_rate", "options"),
    [
        (400, 0.3, {}),
        (1200, 0.3, {"skill": 0.0}),
        (3000, 0.05, {}),
        (3000, 0.5, {"skill": -2.0}),
        (3000, 0.3, {"decimals": 2}),
        (3000, 0.1, {"decimals": 0}),
        (9000, 0.001, {}),
        (9000, 0.0, {}),
        (500, 1.0, {}),
        (20_000, 0.05, {}),
    ],
)
def test_areas_equal_those_of_repeated_rows(
    kernels, n: int, failure_rate: float, options: dict
) -> None:
    confidence, loss = simulate(n, failure_rate, **options)
    draws = Draws(n, 9, rng=7)
    areas = resampled_areas([sort_samples(confidence, loss)], draws, ALL, kernels=kernels)
    assert_areas_equal(areas, areas_by_repeating_rows(confidence, loss, draws.counts(0)))
    assert (areas.total == n).all()


@BOTH_KERNELS
@pytest.mark.parametrize("kind", ["strata", "cluster", "few", "more"])
def test_other_plans(kernels, kind: str) -> None:
    n = 3000
    confidence, loss = simulate(n, 0.1)
    rng = np.random.default_rng(0)
    draws = {
        "strata": lambda: Draws(n, 7, rng=1, strata=loss),
        "cluster": lambda: Draws(n, 7, rng=1, cluster=rng.integers(0, 60, n)),
        "few": lambda: Draws(n, 7, rng=1, size=200),
        "more": lambda: Draws(n, 7, rng=1, size=40_000),
    }[kind]()
    areas = resampled_areas([sort_samples(confidence, loss)], draws, ALL, kernels=kernels)
    assert_areas_equal(areas, areas_by_repeating_rows(confidence, loss, draws.counts(0)))


@BOTH_KERNELS
@pytest.mark.parametrize("decimals", [None, 1])
def test_any_loss_and_weight(kernels, decimals: int | None) -> None:
    n = 800
    confidence, wrong = simulate(n, 0.3, decimals=decimals)
    rng = np.random.default_rng(0)
    loss, weight = wrong * rng.random(n), rng.random(n) * (rng.random(n) < 0.9)
    draws = Draws(n, 9, rng=7)
    counts = draws.counts(0)
    unweighted = resampled_areas([sort_samples(confidence, loss)], draws, ALL, kernels=kernels)
    assert_areas_equal(unweighted, areas_by_repeating_rows(confidence, loss, counts))
    areas = resampled_areas([sort_samples(confidence, loss, weight)], draws, kernels=kernels)
    for j, count in enumerate(counts.T):
        index = np.repeat(np.arange(n), count)
        c, x, w = confidence[index], loss[index], weight[index]
        assert areas.by_name["aurc"][0, j] == pytest.approx(aurc(c, x, weight=w), abs=1e-12)
        assert areas.by_name["augrc"][0, j] == pytest.approx(augrc(c, x, weight=w), abs=1e-12)
        assert areas.total[0, j] == pytest.approx(w.sum())


@BOTH_KERNELS
def test_a_resample_without_weight_is_nan(kernels) -> None:
    weight = np.array([1.0, 0.0, 0.0])
    samples = sort_samples(np.array([0.1, 0.2, 0.3]), np.array([1.0, 0, 0]), weight)
    areas = resampled_areas([samples], Draws(3, 64, rng=0), kernels=kernels)
    empty = areas.total[0] == 0
    assert empty.any()
    for values in (areas.risk, *areas.by_name.values()):
        np.testing.assert_array_equal(np.isnan(values[0]), empty)


def score_sets(n: int) -> list[SortedSamples]:
    rng = np.random.default_rng(0)
    confidence, loss = simulate(n, 0.05)
    scores = [confidence + rng.normal(size=n) * 0.3 for _ in range(3)]
    return [*(sort_samples(score, loss) for score in scores), sort_samples(scores[0], loss * 0.5)]


@BOTH_KERNELS
def test_threads_and_blocks_change_nothing(kernels) -> None:
    draws = Draws(2000, 200, rng=3)
    one_thread = resampled_areas(score_sets(2000), draws, ALL, n_threads=1, kernels=kernels)
    two_threads = resampled_areas(score_sets(2000), draws, ALL, n_threads=2, kernels=kernels)
    fewer = resampled_areas(score_sets(2000), Draws(2000, 70, rng=3), ALL, kernels=kernels)
    single_score = resampled_areas(
        score_sets(2000)[1:2], draws, frozenset({"aurc"}), kernels=kernels
    )
    for name in ALL:
        np.testing.assert_array_equal(one_thread.by_name[name], two_threads.by_name[name])
        np.testing.assert_array_equal(one_thread.by_name[name][:, :64], fewer.by_name[name][:, :64])
        # The counts of a block decide where the series begins, and the last block has fewer resamples.
        np.testing.assert_allclose(
            one_thread.by_name[name][:, :70], fewer.by_name[name], rtol=0, atol=1e-12
        )
    np.testing.assert_array_equal(one_thread.by_name["aurc"][1:2], single_score.by_name["aurc"])


def test_both_kernels_agree() -> None:
    draws = Draws(9000, 100, rng=3)
    first = resampled_areas(score_sets(9000), draws, ALL, kernels=areas_module.NUMPY_KERNELS)
    second = resampled_areas(score_sets(9000), draws, ALL, kernels=areas_module.select_kernels())
    for name in ALL:
        np.testing.assert_allclose(first.by_name[name], second.by_name[name], rtol=0, atol=1e-12)


def test_numpy_kernels_serve_small_problems(monkeypatch) -> None:
    assert areas_module.select_kernels(1000.0) is areas_module.NUMPY_KERNELS
    monkeypatch.setenv("ABSTAIN_NO_NUMBA", "1")
    assert areas_module.select_kernels() is areas_module.NUMPY_KERNELS


@BOTH_KERNELS
def test_the_mean_of_the_augrc_over_resamples(kernels) -> None:
    n = 300
    confidence, loss = simulate(n, 0.2)
    areas = resampled_areas(
        [sort_samples(confidence, loss)], Draws(n, 20_000, rng=1), kernels=kernels
    )
    expected = (1 - 1 / n) * augrc(confidence, loss) + loss.mean() / (2 * n)
    replicates = areas.by_name["augrc"][0]
    assert replicates.mean() == pytest.approx(expected, abs=4 * replicates.std() / np.sqrt(20_000))
    assert abs(replicates.mean() - augrc(confidence, loss)) < 0.1 * replicates.std()


def test_any_statistic() -> None:
    x = np.random.default_rng(0).normal(size=(2, 50))
    draws = Draws(50, 130, rng=0)
    means = bootstrap(lambda counts: x @ counts / 50, draws)
    assert means.shape == (2, 130)
    counts = np.concatenate(list(draws), axis=1)
    np.testing.assert_allclose(means, x @ counts / 50)
    assert bootstrap(lambda counts: counts.sum(axis=0), draws).tolist() == [50] * 130
    with pytest.raises(ShapeError, match="one value for each of the 64 resamples"):
        bootstrap(lambda counts: 1.0, draws)
