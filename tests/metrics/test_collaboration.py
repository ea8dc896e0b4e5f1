"""People who answer what the model is least sure of, against samples put right one by one."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

import abstain as ab
from abstain._foundation.scored import ClassView, Scored
from abstain.errors import DomainError, UndefinedMetricWarning
from abstain.metrics import metric_named, multiclass_oc_auc, oc_accuracy, oc_auc


def drawn(n, classes=4, *, seed=0):
    """Samples of which the order of confidences is that of a permutation."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, n)
    p = rng.dirichlet(np.ones(classes), n) + 0.7 * np.eye(classes)[labels] * rng.random((n, 1))
    p /= p.sum(axis=1, keepdims=True)
    return rng.permutation(n).astype(float), labels, p


@pytest.mark.parametrize("review", [0.0, 0.05, 0.25, 0.9, 1.0])
def test_accuracy_counts_the_reviewed_as_right(review):
    c, y, p = drawn(80)
    loss = (p.argmax(axis=1) != y).astype(float)
    put_right = np.where(c < review * 80, 0.0, loss)
    assert oc_accuracy(c, loss, review=review) == pytest.approx(1 - put_right.mean(), abs=1e-12)
    named = metric_named(f"oc_accuracy@{100 * review:g}review")
    assert named.compute(Scored(c, loss)).value == pytest.approx(1 - put_right.mean(), abs=1e-12)


def test_accuracy_is_the_mean_over_all_ways_to_choose_among_ties():
    c, loss = np.array([3.0, 2, 2, 2, 1]), np.array([0.0, 1, 0, 1, 1])
    # Two are reviewed: the last, and one of the three that are tied, of whom two are wrong.
    expected = np.mean([1 - (3 - 1 - wrong) / 5 for wrong in (1, 0, 1)])
    assert oc_accuracy(c, loss, review=0.4) == pytest.approx(expected, abs=1e-12)


def test_accuracy_is_one_minus_the_generalized_risk_at_that_coverage():
    rng = np.random.default_rng(3)
    c, loss, w = np.round(rng.random(50), 1), rng.random(50), rng.integers(0, 4, 50) * 1.0
    risk = ab.generalized_risk(c, loss, coverage=0.63, rule="expected", weight=w)
    assert oc_accuracy(c, loss, review=0.37, weight=w) == pytest.approx(1 - risk, abs=1e-12)


@pytest.mark.parametrize("review", [0.0, 0.1, 0.35])
def test_many_classes_are_one_against_the_rest(review):
    c, y, p = drawn(60)
    answered = np.where((c < review * 60)[:, None], np.eye(4)[y], p)
    expected = roc_auc_score(y, answered, multi_class="ovr", average="macro")
    assert multiclass_oc_auc(c, y, p, review=review) == pytest.approx(expected, abs=1e-12)
    view = ClassView(y, p.argmax(axis=1), tuple(range(4)), p, np.log(p))
    s = Scored(c, p.argmax(axis=1) != y, class_view=view)
    named = metric_named(f"oc_auc@{100 * review:g}review")
    assert named.compute(s).value == pytest.approx(expected, abs=1e-12)
    value = metric_named(f"oc_ap@{100 * review:g}review").compute(s).value
    each = [average_precision_score(y == k, answered[:, k]) for k in range(4)]
    assert value == pytest.approx(np.mean(each), abs=1e-12)


def test_two_classes_are_the_binary_task():
    c, y, p = drawn(70, 2, seed=4)
    binary = oc_auc(c, y, np.log(p[:, 1]) - np.log(p[:, 0]), review=0.2)
    assert multiclass_oc_auc(c, y, p, review=0.2) == pytest.approx(binary, abs=1e-12)


def test_classes_that_never_occur_are_omitted():
    c, y, p = drawn(40)
    y = np.where(y == 3, 0, y)
    each = [roc_auc_score(y == k, p[:, k]) for k in range(3)]
    assert multiclass_oc_auc(c, y, p, review=0.0) == pytest.approx(np.mean(each), abs=1e-12)


def test_what_cannot_be_said_is_said():
    c, _, p = drawn(5)
    with pytest.warns(UndefinedMetricWarning, match="all samples have the same class"):
        assert np.isnan(multiclass_oc_auc(c, np.zeros(5), p))
    with pytest.warns(UndefinedMetricWarning, match="1 samples have an unknown class"):
        assert np.isnan(multiclass_oc_auc(c, [-1, 0, 1, 2, 3], p))
    with pytest.raises(DomainError, match=r"Did you mean 0\.1"):
        oc_accuracy(c, np.zeros(5), review=10)


def test_the_interval_of_the_accuracy_holds_what_it_says():
    rng, results = np.random.default_rng(11), []
    metric = metric_named("oc_accuracy@20review")
    # Wrong with probability 1 - c, c uniform: of the answered, c from 0.2 on, the mean is 0.32.
    for _ in range(300):
        c = rng.random(400)
        interval = ab.metrics.metric_interval(
            c, (rng.random(400) > c).astype(float), metric=metric.name
        )
        results.append(interval.low <= 1 - 0.32 <= interval.high)
    assert 0.92 <= np.mean(results) <= 0.98
