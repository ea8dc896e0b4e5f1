"""The excess of graded losses and of weights against all orders and against every sample alone."""

from itertools import permutations

import numpy as np
import pytest

import abstain as ab
from abstain._foundation.scored import validate_samples
from abstain.metrics import METRICS


def trapezoid(weight, loss):
    """Area under the selective risk of samples that come in this order, each a vertex."""
    through, failed = np.cumsum(weight), np.cumsum(weight * loss)
    risk = failed / through
    before = np.concatenate((risk[:1], risk[:-1]))
    return float(np.sum(weight * (risk + before)) / 2 / through[-1])


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("weighted", [False, True])
def test_the_optimum_is_the_best_of_all_orders(seed, weighted):
    rng = np.random.default_rng(seed)
    n = 6
    loss = rng.choice([0.0, 0.0, 0.25, 0.25, 1.0, 0.7], n)
    weight = rng.random(n) + 0.5 if weighted else None
    w = np.ones(n) if weight is None else weight
    confidence = rng.permutation(n) / n
    orders = map(list, permutations(range(n)))
    if weighted:
        # The least losses first; of equal ones the heaviest.
        by_loss = np.lexsort((-w, loss))
        best = trapezoid(w[by_loss], loss[by_loss])
    else:
        best = min(trapezoid(w[order], loss[order]) for order in orders)
    own = np.argsort(-confidence)
    expected = max(trapezoid(w[own], loss[own]) - best, 0.0)
    assert ab.e_aurc(confidence, loss, weight=weight) == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("seed", range(6))
def test_graded_losses_over_ties(seed):
    rng = np.random.default_rng(seed)
    n = 200
    confidence = np.round(rng.random(n), 1 if seed % 2 else 2)
    loss = np.round(rng.random(n), 2) * (rng.random(n) < 0.8)
    repeated = ab.e_aurc(confidence, loss, weight=np.ones(n))
    assert ab.e_aurc(confidence, loss) == pytest.approx(repeated, rel=1e-12)
    least = np.cumsum(np.sort(loss))
    ends = np.cumsum(np.unique(-confidence, return_counts=True)[1])
    risk, width = least[ends - 1] / ends, np.diff(ends, prepend=0)
    tied = np.sum(width * (risk + np.concatenate((risk[:1], risk[:-1])))) / 2 / n
    best = min(tied, trapezoid(np.ones(n), np.sort(loss)))
    assert ab.e_aurc(confidence, loss) == pytest.approx(ab.aurc(confidence, loss) - best, rel=1e-12)


def test_the_optimum_is_found_once_for_all_that_is_made_of_it(monkeypatch):
    from abstain.metrics.areas import excess

    results = []
    optimum = excess._trapezoid_optimum
    monkeypatch.setattr(excess, "_trapezoid_optimum", lambda s: results.append(s) or optimum(s))
    rng = np.random.default_rng(0)
    s = validate_samples(rng.random(100), rng.random(100), rng.random(100))
    METRICS["e_aurc"].compute(s), METRICS["normalized_aurc"].compute(s)
    METRICS["e_aurc"].measurement.influence(s), METRICS["normalized_aurc"].measurement.influence(s)
    assert len(results) == 1
