"""Smooth ECE from its kernel, written out, and from the program of its authors."""

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.optimize import brentq
from scipy.stats import norm

from abstain.metrics import smooth_ece


def reflected(width, t, p):
    """Gaussian kernel on [0, 1] with images at -p, 2 - p, 2 + p and so on."""
    images = np.concatenate([2 * k + sign * p for k in range(-2, 3) for sign in (1, -1)])
    count = images.size // p.size
    density = norm.pdf(t[:, None], images[None, :], width)
    return density.reshape(t.size, count, p.size).sum(axis=1)


def by_hand(p, loss, weight=None):
    t = np.linspace(0, 1, 2001)
    w = np.ones(p.size) if weight is None else weight

    def error(width):
        return trapezoid(np.abs(reflected(width, t, p) @ (w * (1 - loss - p))) / w.sum(), t)

    return brentq(lambda width: error(width) - width, 1e-3, 1)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_the_fixed_point_of_the_definition(seed, weighted):
    rng = np.random.default_rng(seed)
    p = rng.beta(4, 1 + seed, 60)
    loss = (rng.random(60) > p**2).astype(float)
    w = rng.integers(0, 4, 60) * 1.0 if weighted else None
    assert smooth_ece(p, loss, weight=w) == pytest.approx(by_hand(p, loss, w), abs=3e-6)


#: What `smECE` of the authors' package relplot 1.0.3 prints, which stops within 0.001 of it.
THEIRS = {0: 0.035062681446504075, 1: 0.1373227022980004, 2: 0.2999251903688829}


@pytest.mark.parametrize("seed", THEIRS)
def test_the_authors_program_prints_the_same_within_its_steps(seed):
    rng = np.random.default_rng(seed)
    p = rng.beta(5, 2, 500)
    right = rng.random(500) < p ** (1 + seed)
    assert smooth_ece(p, ~right) == pytest.approx(THEIRS[seed], abs=1e-3)


def test_one_gap_everywhere_is_that_gap():
    right = np.arange(100) < 60
    assert smooth_ece(np.full(100, 0.9), ~right) == pytest.approx(0.3, abs=1e-6)


def test_where_nothing_is_wrong_the_narrowest_kernel_decides():
    assert smooth_ece(np.ones(10), np.zeros(10)) == 0.0
    # A gap of 0.0004 is below the narrowest width, and still found.
    assert smooth_ece(np.full(10, 0.9996), np.zeros(10)) == pytest.approx(4e-4, rel=1e-6)


def test_it_moves_no_faster_than_the_confidences():
    """What bins do not do: from one side of an edge to the other the ECE may jump."""
    from abstain.metrics import ece

    loss = (np.arange(200) % 2).astype(float)
    p = np.where(loss > 0, 0.5 - 1e-6, 0.5 + 1e-6)
    assert ece(p, loss, bins=2) == pytest.approx(0.5, abs=1e-5)
    assert smooth_ece(p, loss) < 0.01


def test_calibrated_confidences_approach_zero():
    rng = np.random.default_rng(4)
    results = []
    for n in (100, 10_000, 1_000_000):
        p = rng.random(n)
        results.append(smooth_ece(p, rng.random(n) > p))
    assert results[0] > 2 * results[1] > 4 * results[2]
    assert results[2] < 0.01
