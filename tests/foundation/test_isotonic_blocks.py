"""Pooled neighbors are the blocks of isotonic regression, as SciPy computes it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

from abstain._foundation import isotonic_blocks
from abstain._foundation.isotonic_blocks import isotonic_block_ends


def by_scipy(mass, weight):
    slopes = isotonic_regression(mass / weight, weights=weight).x
    return np.flatnonzero(np.append(slopes[1:] > slopes[:-1], True))


@settings(max_examples=60)
@given(st.integers(0, 10_000), st.integers(1, 300), st.sampled_from([0, 1, 300]))
def test_blocks_equal_those_of_isotonic_regression(seed, n, few):
    rng = np.random.default_rng(seed)
    # Whole numbers over powers of two: equal means are equal to the last digit, for SciPy too.
    weight = 2.0 ** rng.integers(0, 3, n)
    mass = rng.integers(0, 8, n) + rng.integers(0, 2) * np.arange(n) // 4
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(isotonic_blocks, "_LOOP_BELOW", few)
        ends = isotonic_block_ends(mass * weight, weight)
    slopes = isotonic_regression(mass.astype(float), weights=weight).x
    sizes = np.diff(ends, prepend=-1)
    means = [np.average(m, weights=w) for m, w in zip(
        np.split(mass, ends[:-1] + 1), np.split(weight, ends[:-1] + 1), strict=True
    )]  # fmt: skip
    np.testing.assert_allclose(np.repeat(means, sizes), slopes, rtol=1e-13)
    assert (np.diff(means) > 0).all()


@pytest.mark.parametrize("shape", ["random", "graded", "sorted", "sorted but for the last"])
def test_large_inputs(shape):
    rng = np.random.default_rng(0)
    n = 20_000
    weight = rng.random(n) + 0.5
    mass = weight * {
        "random": rng.random(n) < 0.1, "graded": rng.random(n) + np.arange(n) / n,
        "sorted": np.arange(n), "sorted but for the last": np.append(np.arange(1, n), 0),
    }[shape]  # fmt: skip
    np.testing.assert_array_equal(isotonic_block_ends(mass, weight), by_scipy(mass, weight))


def test_equal_means_are_one_block():
    mass, weight = np.array([1.0, 2.0, 0.1, 0.3]), np.array([3.0, 6.0, 0.1, 0.3])
    assert isotonic_block_ends(mass, weight).tolist() == [1, 3]
    assert isotonic_block_ends(np.ones(1), np.ones(1)).tolist() == [0]
