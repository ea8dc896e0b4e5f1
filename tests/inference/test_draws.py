"""Counts have the distribution of the plan and depend only on the seed and the index of the resample."""

import numpy as np
import pytest

from abstain.errors import InputError, ShapeError
from abstain.inference import resampled_areas as areas_module
from abstain.inference.draws import BLOCK_SIZE, Draws

STRATA = np.repeat([0, 1, 2], [3, 5, 12])
CLUSTER = np.repeat(np.arange(8), [1, 1, 1, 2, 3, 4, 4, 4])
MANY = 20_000


def table(draws: Draws) -> np.ndarray:
    return np.concatenate(list(draws), axis=1)


def close(sample: np.ndarray, expected: np.ndarray | float, *, spread: float) -> None:
    """Compare means over MANY resamples to five standard errors."""
    np.testing.assert_allclose(sample, expected, rtol=0, atol=5 * spread / np.sqrt(MANY))


def test_blocks_are_small_integers_of_at_most_64_resamples() -> None:
    blocks = list(Draws(20, 130, rng=0))
    assert [block.shape for block in blocks] == [(20, 64), (20, 64), (20, 2)]
    assert {block.dtype for block in blocks} == {np.dtype(np.uint8)}
    assert BLOCK_SIZE == 64


def test_iid_counts_are_multinomial() -> None:
    n = 20
    counts = table(Draws(n, MANY, rng=1)).astype(float)
    assert (counts.sum(axis=0) == n).all()
    close(counts.mean(axis=1), 1.0, spread=1.0)
    covariance = np.cov(counts)
    close(np.diag(covariance), 1 - 1 / n, spread=1.7)
    off = covariance[~np.eye(n, dtype=bool)]
    close(off, -1 / n, spread=1.2)
    share = [np.mean(counts == k) for k in range(4)]
    binomial = [0.3585, 0.3774, 0.1887, 0.0596]
    np.testing.assert_allclose(share, binomial, atol=0.002)


def test_strata_keep_their_sizes() -> None:
    counts = table(Draws(20, MANY, rng=2, strata=STRATA)).astype(float)
    for code, size in enumerate((3, 5, 12)):
        of_stratum = counts[code == STRATA]
        assert (of_stratum.sum(axis=0) == size).all()
        close(of_stratum.mean(axis=1), 1.0, spread=1.0)
        close(np.diag(np.cov(of_stratum)), 1 - 1 / size, spread=2.0)
    between = np.cov(counts)[0, 3:]
    close(between, 0.0, spread=1.2)


def test_clusters_come_whole() -> None:
    counts = table(Draws(20, MANY, rng=3, cluster=CLUSTER)).astype(float)
    first = np.unique(CLUSTER, return_index=True)[1]
    assert (counts == counts[first][CLUSTER]).all()
    cluster_counts = counts[first]
    assert (cluster_counts.sum(axis=0) == 8).all()
    close(cluster_counts.mean(axis=1), 1.0, spread=1.0)
    close(np.diag(np.cov(cluster_counts)), 1 - 1 / 8, spread=1.7)


def test_clusters_within_strata() -> None:
    strata = CLUSTER >= 4
    counts = table(Draws(20, 100, rng=3, cluster=CLUSTER, strata=strata))
    first = np.unique(CLUSTER, return_index=True)[1]
    assert (counts[first][:4].sum(axis=0) == 4).all()
    with pytest.raises(InputError, match="another stratum"):
        Draws(20, 10, rng=0, cluster=CLUSTER, strata=np.arange(20) % 2)


def test_another_size() -> None:
    assert (table(Draws(20, 50, rng=0, size=7)).sum(axis=0) == 7).all()
    assert (table(Draws(20, 50, rng=0, size=45)).sum(axis=0) == 45).all()
    counts = table(Draws(20, 50, rng=0, size=10, strata=STRATA))
    shares = [counts[code == STRATA].sum(axis=0) for code in range(3)]
    np.testing.assert_array_equal(shares, np.repeat([[2], [2], [6]], 50, axis=1))


def test_counts_beyond_a_byte_are_widened() -> None:
    for kernels in (areas_module.NUMPY_KERNELS, areas_module.select_kernels()):
        counts = Draws(2, 3, rng=0, size=1000).counts(0, kernels)
        assert counts.dtype == np.uint16
        assert (counts.sum(axis=0) == 1000).all()


@pytest.mark.parametrize("plan", [{}, {"strata": STRATA}, {"cluster": CLUSTER}, {"size": 6}])
def test_counts_depend_on_seed_and_number_only(plan: dict) -> None:
    all_counts = table(Draws(20, 200, rng=5, **plan))
    np.testing.assert_array_equal(all_counts[:, :70], table(Draws(20, 70, rng=5, **plan)))
    np.testing.assert_array_equal(all_counts[:, 128:192], Draws(20, 200, rng=5, **plan).counts(2))
    compiled = Draws(20, 200, rng=5, **plan).counts(1, areas_module.select_kernels())
    np.testing.assert_array_equal(all_counts[:, 64:128], compiled)
    assert (all_counts != table(Draws(20, 200, rng=6, **plan))).any()


def test_drawing_a_few_resamples_at_a_time_changes_nothing(monkeypatch) -> None:
    for plan in ({}, {"strata": STRATA}):
        all_counts = table(Draws(20, 70, rng=5, **plan))
        monkeypatch.setattr("abstain.inference.draws._MAX_RANDOM_NUMBERS", 50)
        np.testing.assert_array_equal(all_counts, table(Draws(20, 70, rng=5, **plan)))
        monkeypatch.undo()


def test_a_generator_is_asked_once_and_the_seed_repeats_the_plan() -> None:
    rng = np.random.default_rng(0)
    first, second = Draws(20, 10, rng=rng), Draws(20, 10, rng=rng)
    assert first.seed != second.seed
    np.testing.assert_array_equal(table(first), table(Draws(20, 10, rng=first.seed)))
    np.testing.assert_array_equal(table(first), table(first))
    assert Draws(20, 10, rng=None).seed != Draws(20, 10, rng=None).seed


def test_description() -> None:
    assert Draws(20, 1, rng=0).description == "i.i.d."
    description = Draws(20, 1, rng=0, cluster=CLUSTER, strata=CLUSTER > 3, size=5).description
    assert description == "stratified, by cluster, 5 of 8"


def test_bad_plans() -> None:
    with pytest.raises(InputError, match="`resamples`"):
        Draws(20, 0, rng=0)
    with pytest.raises(InputError, match="`size`"):
        Draws(20, 5, rng=0, size=0)
    with pytest.raises(InputError, match="`rng`"):
        Draws(20, 5, rng=-1)
    with pytest.raises(ShapeError, match="`strata`"):
        Draws(20, 5, rng=0, strata=[0, 1])
