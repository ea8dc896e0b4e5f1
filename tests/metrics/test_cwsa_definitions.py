"""CWSA at many thresholds in one pass, and at one, against sums over the samples."""

from fractions import Fraction

import numpy as np
import pytest

from abstain._foundation import blockwise, scored
from abstain._foundation.scored import Scored
from abstain.metrics import METRICS
from abstain.metrics.confidence_weighted import cwsa as cwsa_module
from abstain.metrics.confidence_weighted.cwsa import (
    RAMPS,
    accepted_sums,
    accepted_sums_at_thresholds,
)


def samples(seed, dtype, *, weighted, n=300):
    rng = np.random.default_rng(seed)
    p = np.where(rng.random(n) < 0.5, np.round(rng.random(n), 1), rng.random(n)).astype(dtype)
    p[rng.random(n) < 0.2] = 1.0
    loss = rng.random(n) if seed % 2 else rng.random(n) < 0.3
    weight = rng.integers(0, 4, n) * rng.random(n) if weighted else None
    return Scored(p, loss, weight, p)


def defined(s, threshold, ramp):
    """All sums, sample by sample."""
    weight = np.ones(s.n_rows) if s.weight is None else s.weight
    out = np.zeros(4)
    for p, loss, w in zip(s.probability, s.loss.astype(float), weight, strict=True):
        if p < np.asarray(threshold).astype(s.probability.dtype) or w == 0:
            continue
        u = float(max(Fraction(float(p)) - Fraction(threshold), 0) / (1 - Fraction(threshold)))
        worth = w * float({"linear": u, "quadratic": u * u, "sqrt": u**0.5, "step": 1.0}[ramp])
        out += (worth * (1 - 2 * loss), worth * (1 - loss), w * (1 - loss), w)
    return out


def _sums(sums):
    difference = sums.weighted_successes - sums.weighted_failures
    return difference, sums.weighted_successes, sums.successes, sums.weight


@pytest.mark.parametrize("ramp", list(RAMPS))
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", [0, 1])
def test_one_pass_is_the_definition_at_each_threshold(monkeypatch, ramp, dtype, weighted, seed):
    monkeypatch.setattr(cwsa_module, "BLOCK", 32)
    monkeypatch.setattr(cwsa_module, "_BLOCK", 32)
    s = samples(seed, dtype, weighted=weighted)
    # Values that confidences have, values beside them, twice the same, out of order, one of which
    # nothing reaches.
    s.probability[s.probability > 0.985] = 0.5
    own = s.probability[:9].astype(float)
    swept = np.concatenate((own[own < 1], [0.0, 0.9, 0.3, 0.9, 0.1, 0.99], np.nextafter(own, 0)))
    swept = np.clip(swept, 0.0, 1 - 1e-9)
    for threshold, found in zip(
        swept, accepted_sums_at_thresholds(s, swept, RAMPS[ramp]), strict=True
    ):
        expected = defined(s, float(threshold), ramp)
        given = _sums(found)
        np.testing.assert_allclose(given, expected, rtol=1e-12, atol=1e-12 * expected[3])
        alone = accepted_sums(s, float(threshold), RAMPS[ramp])
        given = _sums(alone)
        np.testing.assert_allclose(given, expected, rtol=1e-12, atol=1e-12 * expected[3])
        assert found.count == alone.count


def test_a_sweep_passes_over_the_samples_once_and_sorts_nothing(monkeypatch):
    passes, between = [], cwsa_module._moments_in_bins
    monkeypatch.setattr(cwsa_module, "_moments_in_bins", lambda *a: passes.append(a) or between(*a))
    s = samples(0, "float32", weighted=False)
    accepted_sums_at_thresholds(s, np.linspace(0.0, 0.99, 500), RAMPS["linear"])
    assert len(passes) == 1
    assert not {"groups", "sorted_confidence", "_keys"} & set(vars(s))


def test_a_ramp_of_the_users_sees_all_that_is_accepted():
    s, calls = samples(0, "float64", weighted=False), []
    accepted_sums(s, 0.5, lambda u: calls.append(u.size) or u)
    assert calls == [int((s.probability >= 0.5).sum())]


def area_defined(s, plus):
    """Each distinct confidence as the threshold, of all who reach it, and straight lines between."""
    weight = np.ones(s.n_rows) if s.weight is None else s.weight
    p, right, total = s.probability.astype(float), 1.0 - s.loss, weight.sum()
    sign = right if plus else right - s.loss
    coverage, value = [0.0], []
    for c in np.unique(p[weight > 0])[::-1]:
        here = weight * (p >= c)
        ramp = (p - c) / (1 - c) if c < 1 else p == c
        value.append((here * ramp * sign).sum() / (here.sum() if plus else total))
        coverage.append(here.sum() / total)
    return np.trapezoid([value[0] if plus else 0.0, *value], coverage)


@pytest.mark.parametrize("plus", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_areas_block_by_block_are_the_definition(monkeypatch, plus, dtype, weighted, seed):
    monkeypatch.setattr(blockwise, "_BLOCK", 16)
    monkeypatch.setattr(scored, "_BLOCK", 16)
    s = samples(seed, dtype, weighted=weighted)
    value = METRICS["cwsa_plus_area" if plus else "cwsa_area"].compute(s).value
    assert value == pytest.approx(area_defined(s, plus), rel=1e-12)


def test_an_area_of_failures_makes_no_groups():
    s = samples(0, "float32", weighted=False)
    METRICS["cwsa_area"].compute(s)
    assert not {"groups", "sorted_confidence", "events"} & set(vars(s))
