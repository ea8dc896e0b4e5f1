"""The engine of resampled areas: both backends, any threads, and the naive way agree."""

from itertools import starmap

import numpy as np
import pytest

from abstain.errors import ShapeError
from abstain.inference import replicates as backends
from abstain.inference.draws import Draws, bootstrap
from abstain.inference.replicates import Areas, Ordered, ordered, resampled_areas
from abstain.metrics import augrc, aurc

ALL = frozenset({"augrc", "aurc", "aurc_plugin"})
BOTH = pytest.mark.parametrize("run", [backends.NUMPY, backends.kernels()], ids=["numpy", "fast"])


def case(n: int, share: float, *, decimals: int | None = None, skill: float = 1.0) -> tuple:
    rng = np.random.default_rng(n)
    loss = rng.random(n) < share
    confidence = rng.normal(size=n) - skill * loss
    return (confidence if decimals is None else confidence.round(decimals)), loss


def naive(confidence: np.ndarray, loss: np.ndarray, counts: np.ndarray) -> dict[str, np.ndarray]:
    again = [np.repeat(np.arange(loss.size), count) for count in counts.T]
    rows = [(confidence[index], loss[index]) for index in again]
    return {
        "augrc": np.array(list(starmap(augrc, rows))),
        "aurc": np.array(list(starmap(aurc, rows))),
        "aurc_plugin": np.array([aurc(c, x, estimator="plugin") for c, x in rows]),
    }


def agree(areas: Areas, expected: dict[str, np.ndarray], row: int = 0) -> None:
    for name, values in areas.of.items():
        np.testing.assert_allclose(values[row], expected[name], rtol=0, atol=1e-12)


@BOTH
@pytest.mark.parametrize(
    ("n", "share", "options"),
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
def test_areas_are_the_naive_ones(run, n: int, share: float, options: dict) -> None:
    confidence, loss = case(n, share, **options)
    draws = Draws(n, 9, rng=7)
    areas = resampled_areas([ordered(confidence, loss)], draws, ALL, run=run)
    agree(areas, naive(confidence, loss, draws.counts(0)))
    assert (areas.total == n).all()


@BOTH
@pytest.mark.parametrize("kind", ["strata", "cluster", "few", "more"])
def test_other_plans(run, kind: str) -> None:
    n = 3000
    confidence, loss = case(n, 0.1)
    rng = np.random.default_rng(0)
    draws = {
        "strata": lambda: Draws(n, 7, rng=1, strata=loss),
        "cluster": lambda: Draws(n, 7, rng=1, cluster=rng.integers(0, 60, n)),
        "few": lambda: Draws(n, 7, rng=1, size=200),
        "more": lambda: Draws(n, 7, rng=1, size=40_000),
    }[kind]()
    areas = resampled_areas([ordered(confidence, loss)], draws, ALL, run=run)
    agree(areas, naive(confidence, loss, draws.counts(0)))


@BOTH
@pytest.mark.parametrize("decimals", [None, 1])
def test_any_loss_and_weight(run, decimals: int | None) -> None:
    n = 800
    confidence, wrong = case(n, 0.3, decimals=decimals)
    rng = np.random.default_rng(0)
    loss, weight = wrong * rng.random(n), rng.random(n) * (rng.random(n) < 0.9)
    draws = Draws(n, 9, rng=7)
    counts = draws.counts(0)
    plain = resampled_areas([ordered(confidence, loss)], draws, ALL, run=run)
    agree(plain, naive(confidence, loss, counts))
    both = resampled_areas([ordered(confidence, loss, weight)], draws, run=run)
    for j, count in enumerate(counts.T):
        index = np.repeat(np.arange(n), count)
        c, x, w = confidence[index], loss[index], weight[index]
        assert both.of["aurc"][0, j] == pytest.approx(aurc(c, x, weight=w), abs=1e-12)
        assert both.of["augrc"][0, j] == pytest.approx(augrc(c, x, weight=w), abs=1e-12)
        assert both.total[0, j] == pytest.approx(w.sum())


@BOTH
def test_a_resample_without_weight_is_nan(run) -> None:
    weight = np.array([1.0, 0.0, 0.0])
    one = ordered(np.array([0.1, 0.2, 0.3]), np.array([1.0, 0, 0]), weight)
    areas = resampled_areas([one], Draws(3, 64, rng=0), run=run)
    empty = areas.total[0] == 0
    assert empty.any()
    for values in (areas.risk, *areas.of.values()):
        np.testing.assert_array_equal(np.isnan(values[0]), empty)


def sets(n: int) -> list[Ordered]:
    rng = np.random.default_rng(0)
    confidence, loss = case(n, 0.05)
    scores = [confidence + rng.normal(size=n) * 0.3 for _ in range(3)]
    return [*(ordered(score, loss) for score in scores), ordered(scores[0], loss * 0.5)]


@BOTH
def test_threads_and_blocks_change_nothing(run) -> None:
    draws = Draws(2000, 200, rng=3)
    one = resampled_areas(sets(2000), draws, ALL, threads=1, run=run)
    two = resampled_areas(sets(2000), draws, ALL, threads=2, run=run)
    fewer = resampled_areas(sets(2000), Draws(2000, 70, rng=3), ALL, run=run)
    alone = resampled_areas(sets(2000)[1:2], draws, frozenset({"aurc"}), run=run)
    for name in ALL:
        np.testing.assert_array_equal(one.of[name], two.of[name])
        np.testing.assert_array_equal(one.of[name][:, :64], fewer.of[name][:, :64])
        # Where the series begins is decided for a block, of which less is here.
        np.testing.assert_allclose(one.of[name][:, :70], fewer.of[name], rtol=0, atol=1e-12)
    np.testing.assert_array_equal(one.of["aurc"][1:2], alone.of["aurc"])


def test_both_backends_agree() -> None:
    draws = Draws(9000, 100, rng=3)
    first = resampled_areas(sets(9000), draws, ALL, run=backends.NUMPY)
    second = resampled_areas(sets(9000), draws, ALL, run=backends.kernels())
    for name in ALL:
        np.testing.assert_allclose(first.of[name], second.of[name], rtol=0, atol=1e-12)


def test_little_work_is_left_to_numpy(monkeypatch) -> None:
    assert backends.kernels(1000.0) is backends.NUMPY
    monkeypatch.setenv("ABSTAIN_NO_NUMBA", "1")
    assert backends.kernels() is backends.NUMPY


@BOTH
def test_the_mean_of_the_augrc_over_resamples(run) -> None:
    n = 300
    confidence, loss = case(n, 0.2)
    areas = resampled_areas([ordered(confidence, loss)], Draws(n, 20_000, rng=1), run=run)
    expected = (1 - 1 / n) * augrc(confidence, loss) + loss.mean() / (2 * n)
    drawn = areas.of["augrc"][0]
    assert drawn.mean() == pytest.approx(expected, abs=4 * drawn.std() / np.sqrt(20_000))
    assert abs(drawn.mean() - augrc(confidence, loss)) < 0.1 * drawn.std()


def test_any_statistic() -> None:
    x = np.random.default_rng(0).normal(size=(2, 50))
    draws = Draws(50, 130, rng=0)
    means = bootstrap(lambda counts: x @ counts / 50, draws)
    assert means.shape == (2, 130)
    counts = np.concatenate(list(draws), axis=1)
    np.testing.assert_allclose(means, x @ counts / 50)
    assert bootstrap(lambda counts: counts.sum(axis=0), draws).tolist() == [50] * 130
    with pytest.raises(ShapeError, match="one value for each resample"):
        bootstrap(lambda counts: 1.0, draws)
