"""Kendall's tau between rankings against SciPy, and between resamples against all pairs."""

import importlib

import numpy as np
import pytest
from scipy.stats import kendalltau

from abstain.errors import DomainError, ShapeError
from abstain.inference.resampled_ranks import agreement, kendall, stability


@pytest.mark.parametrize("seed", range(6))
def test_kendall_equals_scipy(seed):
    a, b = np.random.default_rng(seed).integers(0, 6, size=(2, 9)).astype(float)
    assert kendall(a, b) == pytest.approx(kendalltau(a, b).statistic, abs=1e-14)


def test_kendall_at_its_edges():
    assert kendall([1, 2, 3], [1, 2, 3]) == pytest.approx(1)
    assert kendall([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    assert np.isnan(kendall([1, 1, 1], [1, 2, 3]))
    assert np.isnan(kendall([1], [1]))
    assert kendall([1, 2, np.nan, 0], [1, 2, 0, np.nan]) == pytest.approx(1)


def replicates(seed, k=5, size=40):
    return np.round(np.random.default_rng(seed).normal(size=(k, size)) + np.arange(k)[:, None], 1)


def test_agreement_equals_a_loop():
    a, b = replicates(0), replicates(1)
    taus = [kendalltau(a[:, i], b[:, i]).statistic for i in range(40)]
    result = agreement(a, b, level=0.9)
    assert result.mean == pytest.approx(np.mean(taus))
    assert [result.low, result.high] == pytest.approx(np.quantile(taus, [0.05, 0.95]))
    assert agreement(a, -b, same_direction=False).mean == pytest.approx(np.mean(taus))


def test_agreement_leaves_out_what_ranks_nothing():
    a, b = replicates(0), replicates(1)
    b[:, 3] = 1.0
    a[0, 5] = np.nan
    result = agreement(a, b)
    kept = np.delete(np.arange(40), [3, 5])
    assert result.mean == pytest.approx(agreement(a[:, kept], b[:, kept]).mean)
    assert result.note.startswith("2 of 40 resamples left out")
    none = agreement(np.ones((2, 3)), np.ones((2, 3)))
    assert np.isnan([none.mean, none.low]).all()
    assert none.note
    assert np.isnan(agreement([[1.0, 2.0]], [[1.0, 2.0]]).mean)


@pytest.mark.parametrize("memory", [4_000_000, 70])
def test_stability_equals_all_pairs(memory, monkeypatch):
    # The package offers the function of the same name.
    module = importlib.import_module("abstain.inference.resampled_ranks")
    monkeypatch.setattr(module, "_MAX_NUMBERS", memory)  # 70: several blocks of resamples
    table = replicates(2)
    table[:, 4] = 0.0
    kept = np.delete(np.arange(40), 4)
    taus = [kendalltau(table[:, i], table[:, j]).statistic for i in kept for j in kept if i < j]
    result = stability(table)
    assert result.mean == pytest.approx(np.mean(taus))
    assert result.note.startswith("1 of 40")
    if memory > 70:
        assert [result.low, result.high] == pytest.approx(np.quantile(taus, [0.025, 0.975]))


def test_stability_at_its_edges():
    same = stability(np.tile(np.arange(4.0)[:, None], 7))
    assert [same.mean, same.low, same.high] == pytest.approx([1, 1, 1])
    for table in (np.ones((1, 5)), np.arange(3.0)[:, None], np.ones((3, 4))):
        result = stability(table)
        assert np.isnan(result.mean)
        assert result.note


def test_refusals():
    with pytest.raises(ShapeError, match=r"same shape; got \(2, 3\) and \(2, 2\)"):
        agreement(np.ones((2, 3)), np.ones((2, 2)))
    with pytest.raises(DomainError, match="`level`"):
        stability(np.ones((2, 3)), level=0)
