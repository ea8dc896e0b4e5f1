"""The ROC curve of failure detection."""

import numpy as np
import pytest
from sklearn.metrics import roc_curve

from abstain.curves.failure_roc import failure_roc_curve
from abstain.errors import DomainError, UndefinedMetricWarning
from abstain.metrics.failure_ranking import failure_auroc


def draw(seed, n=100):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 12, n) / 4, rng.integers(0, 2, n), rng.integers(0, 4, n)


@pytest.mark.parametrize("seed", range(4))
def test_agrees_with_scikit_learn(seed):
    c, loss, weight = draw(seed)
    for w in (None, weight):
        curve = failure_roc_curve(c, loss, weight=w)
        fpr, tpr, thresholds = roc_curve(1 - loss, c, sample_weight=w, drop_intermediate=False)
        np.testing.assert_allclose(curve.false_positive_rate, fpr, atol=1e-14)
        np.testing.assert_allclose(curve.true_positive_rate, tpr, atol=1e-14)
        np.testing.assert_array_equal(curve.thresholds, thresholds)
        area = np.trapezoid(curve.true_positive_rate, curve.false_positive_rate)
        assert area == pytest.approx(failure_auroc(c, loss, weight=w), abs=1e-12)


def test_counts_of_each_threshold():
    c, loss, w = draw(5)
    curve = failure_roc_curve(c, loss, weight=w)
    assert (curve.thresholds[0], curve.accepted[0], curve.successes[0]) == (np.inf, 0, 0.0)
    for i in range(1, len(curve)):
        mask = c >= curve.thresholds[i]
        assert curve.accepted[i] == (mask & (w > 0)).sum()
        assert curve.successes[i] == (w * (1 - loss))[mask].sum()
        assert curve.failures[i] == (w * loss)[mask].sum()


def test_order_and_repetition_do_not_matter():
    c, loss, w = draw(6)
    curve = failure_roc_curve(c, loss, weight=w)
    other = failure_roc_curve(np.repeat(c, w)[::-1], np.repeat(loss, w)[::-1])
    np.testing.assert_allclose(curve.true_positive_rate, other.true_positive_rate)
    np.testing.assert_allclose(curve.false_positive_rate, other.false_positive_rate)
    np.testing.assert_array_equal(curve.thresholds, other.thresholds)


def test_all_right_and_all_wrong():
    with pytest.warns(UndefinedMetricWarning, match=r"false positive rate .* no failures"):
        curve = failure_roc_curve([0.1, 0.2], [0, 0])
    assert np.isnan(curve.false_positive_rate).all()
    assert curve.true_positive_rate.tolist() == [0.0, 0.5, 1.0]
    with pytest.warns(UndefinedMetricWarning, match=r"true positive rate .* no successes"):
        curve = failure_roc_curve([0.1], [1])
    assert curve.false_positive_rate.tolist() == [0.0, 1.0]


def test_all_tied_is_the_diagonal():
    curve = failure_roc_curve([0.5] * 4, [0, 1, 0, 1])
    assert curve.true_positive_rate.tolist() == curve.false_positive_rate.tolist() == [0.0, 1.0]


def test_frame_and_kind():
    curve = failure_roc_curve(np.array([0.5, 0.25], dtype=np.float16), [0, 1])
    assert curve.thresholds.dtype == np.float16
    frame = curve.frame()
    assert frame.columns == [
        "thresholds", "true_positive_rate", "false_positive_rate", "accepted", "successes", "failures",
    ]  # fmt: skip
    assert frame.height == len(curve) == 3


def test_tensors_in_tensors_out():
    torch = pytest.importorskip("torch")
    curve = failure_roc_curve(torch.tensor([0.5, 0.25]), torch.tensor([0, 1]))
    assert all(isinstance(v, torch.Tensor) for v in vars(curve).values())
    assert curve.frame().height == 3


def test_messages():
    with pytest.raises(DomainError, match=r"`loss` must be 0 or 1 for failure_roc_curve; got 0.5"):
        failure_roc_curve([0.1], [0.5])
