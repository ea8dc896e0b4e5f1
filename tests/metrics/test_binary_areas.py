"""AUROC-AURC and AUPRC retention: coverage by coverage, by scikit-learn."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score
from tests.properties.cases import make

from abstain.errors import UndefinedMetricWarning
from abstain.metrics import METRICS, accepted_auroc, auprc_retention, auroc_retention

PEERS = {auroc_retention: roc_auc_score, auprc_retention: average_precision_score}


def drawn(n, *, seed=0, ties=True):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    c, score = rng.random(n), rng.random(n) + 0.4 * y
    return (np.round(c, 1), y, np.round(score, 1)) if ties else (c, y, score)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("function", PEERS)
def test_it_is_the_mean_over_a_hundred_coverages(function, ties, weighted):
    c, y, score = drawn(70, ties=ties)
    w = np.random.default_rng(1).integers(0, 3, 70) * 1.0 if weighted else np.ones(70)
    values = []
    for percent in range(1, 101):
        target = percent / 100 * w.sum()
        above = np.array([w[c > x].sum() for x in c])
        own = np.array([w[c == x].sum() for x in c])
        share = np.divide(target - above, own, out=np.zeros(70), where=own > 0)
        kept = w * share.round(12).clip(0, 1)
        there = kept > 0
        if set(y[there]) == {0, 1} or (function is auprc_retention and y[there].any()):
            values.append(PEERS[function](y[there], score[there], sample_weight=kept[there]))
    result = function(c, y, score, weight=w if weighted else None)
    assert result == pytest.approx(np.mean(values), abs=1e-12)


def test_it_is_the_mean_of_the_accepted_auroc():
    c, y, score = drawn(300, seed=2, ties=False)
    each = [accepted_auroc(c, y, score, coverage=k / 100) for k in range(4, 101)]
    assert len(set(y[np.argsort(-c)[:12]])) == 2
    first = [
        accepted_auroc(c, y, score, coverage=k / 100)
        for k in range(1, 4)
        if len(set(y[np.argsort(-c)[: 3 * k]])) == 2
    ]
    assert auroc_retention(c, y, score) == pytest.approx(np.mean(first + each), abs=1e-12)


@pytest.mark.parametrize("name", ["auroc_retention", "auprc_retention"])
def test_the_catalogue_ranks_by_the_second_class(name):
    rng = np.random.default_rng(3)
    c, labels, guess = rng.random(40), rng.integers(0, 2, 40), rng.integers(0, 2, 40)
    s = make(c, (guess != labels) * 1.0, labels, guess, rng.uniform(0.5, 1, 40))
    function = {f.__name__: f for f in PEERS}[name]
    expected = function(c, labels, s.class_view.probabilities[:, 1])
    assert METRICS[name].compute(s).value == pytest.approx(expected, abs=1e-12)


def test_one_class_has_no_value():
    with pytest.warns(UndefinedMetricWarning, match="both classes at no coverage"):
        assert np.isnan(auroc_retention([0.1, 0.2], [1, 1], [0.3, 0.4]))
    with pytest.warns(UndefinedMetricWarning, match="a positive at no coverage"):
        assert np.isnan(auprc_retention([0.1, 0.2], [0, 0], [0.3, 0.4]))
    assert auprc_retention([0.1, 0.2], [1, 1], [0.3, 0.4]) == 1.0


def test_each_metric_describes_the_coverages_that_it_averages_over():
    """Coverages that accept only positives count for the precision, not for the AUROC."""
    c, y, score = [0.9, 0.8, 0.7, 0.6], [1, 1, 0, 1], [0.9, 0.8, 0.7, 0.6]
    precision = [average_precision_score(y[:k], score[:k]) for k in (1, 2, 3, 4)]
    assert precision == [1, 1, 1, pytest.approx(11 / 12)]
    # At coverages above 75 % a growing share of the last positive is accepted.
    result = auprc_retention(c, y, score)
    shares = np.arange(1, 26) / 25
    last = (2 + shares * (2 + shares) / (3 + shares)) / (2 + shares)
    assert result == pytest.approx((75 + last.sum()) / 100, abs=1e-12)
    assert METRICS["auprc_retention"].identity.convention.endswith("that accept a positive")
    assert METRICS["auroc_retention"].identity.convention.endswith("that accept both classes")
