"""Bins in one pass against each sample by itself, with values on edges, ties and no weight."""

import numpy as np
import pytest

from abstain._foundation.scored import Scored
from abstain._foundation.tie_groups import equal_mass_bins
from abstain.curves import bin_sums as module
from abstain.curves.bin_sums import bin_sums, equal_mass_edges
from abstain.metrics import METRICS
from abstain.metrics.calibration import compute_ece_right_open


def samples(seed, dtype, *, weighted, n=700):
    rng = np.random.default_rng(seed)
    p = rng.choice([rng.random(n), np.round(rng.random(n), 1), np.arange(n) % 16 / 15], axis=0)
    p[rng.random(n) < 0.2] = 1.0
    loss = rng.random(n) if seed % 2 else rng.random(n) < 0.3
    weight = rng.integers(0, 4, n) * rng.random(n) if weighted else None
    p = p.astype(dtype)
    return Scored(p, loss, weight, p)


@pytest.mark.parametrize("bins", [1, 2, 15, 90])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("side", ["left", "right"])
def test_sums_equal_those_of_the_samples_of_each_bin(monkeypatch, bins, dtype, weighted, side):
    monkeypatch.setattr(module, "BLOCK", 64)
    s = samples(bins, dtype, weighted=weighted)
    inner = (np.arange(1, bins) / bins).astype(dtype)
    sums = bin_sums(s, inner, side=side)
    ends = np.concatenate(([-np.inf], inner, [np.inf]))
    weight = np.ones(s.n_rows) if s.weight is None else s.weight
    for k in range(bins):
        low, high = ends[k], ends[k + 1]
        left = (s.probability > low) & (s.probability <= high)
        here = left if side == "left" else (s.probability >= low) & (s.probability < high)
        own = weight * here
        assert sums.count[k] == np.count_nonzero(own)
        assert sums.weight[k] == pytest.approx(own.sum(), rel=1e-12, abs=1e-300)
        assert sums.loss[k] == pytest.approx((own * s.loss).sum(), rel=1e-12, abs=1e-300)
        expected = (own * s.probability.astype(float)).sum()
        assert sums.confidence[k] == pytest.approx(expected, rel=1e-12, abs=1e-300)


@pytest.mark.parametrize("bins", [1, 2, 7, 15, 100, 2000])
@pytest.mark.parametrize("seed", range(6))
def test_edges_of_equal_mass_equal_those_of_the_groups(bins, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.choice([1, 2, 14, 15, 30, 700]))
    s = samples(seed, "float32", weighted=False, n=n)
    if seed % 3 == 0:
        s = Scored(np.ones(n, np.float32), s.loss, None, np.ones(n, np.float32))
    expected = equal_mass_bins(s.probability_groups, bins)[1]
    np.testing.assert_array_equal(equal_mass_edges(s, bins), expected)


@pytest.mark.parametrize("name", ["ece", "ece_equal_mass", "mce"])
def test_no_calibration_error_sorts_rows_or_groups_samples(monkeypatch, name):
    s = samples(1, "float32", weighted=False)
    METRICS[name].compute(s), compute_ece_right_open(s, 10)
    assert not {"groups", "sorted_confidence", "_keys", "probability_groups"} & set(vars(s))


def test_errors_of_the_same_bins_share_one_pass(monkeypatch):
    from abstain.curves import reliability

    passes = []
    monkeypatch.setattr(reliability, "bin_sums", lambda *a: passes.append(a) or bin_sums(*a))
    s = samples(2, "float64", weighted=True)
    METRICS["ece"].compute(s), METRICS["mce"].compute(s)
    assert len(passes) == 1
