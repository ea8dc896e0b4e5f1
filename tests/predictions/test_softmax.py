"""Log-space softmax against exact decimals, and block by block."""

from decimal import Decimal, getcontext

import numpy as np
import pytest

from abstain.predictions import Predictions, softmax

getcontext().prec = 200


@pytest.mark.parametrize("gap", [0.0, 1e-9, 1.0, 30.0, 300.0])
def test_log_softmax_is_exact(gap):
    z = np.array([[gap, 0.0, -0.5]])
    total = sum(Decimal(float(v)).exp() for v in z[0])
    exact = [float(Decimal(float(v)) - total.ln()) for v in z[0]]
    np.testing.assert_allclose(softmax.log_softmax(z)[0], exact, rtol=1e-14)


def test_log_mean_of_zeros_is_minus_infinity():
    with np.errstate(divide="ignore"):
        log_p = np.log(np.array([[[1.0, 0.0], [1.0, 0.0]], [[0.2, 0.8], [0.4, 0.6]]]))
    mean = np.exp(softmax.log_mean_probabilities(log_p))
    np.testing.assert_allclose(mean, [[1.0, 0.0], [0.3, 0.7]], rtol=1e-14)


def test_blocks_cover_all_rows_once():
    rows = [
        i for block in softmax.row_blocks(10, softmax.BLOCK_ENTRIES // 3) for i in range(10)[block]
    ]
    assert rows == list(range(10))
    assert len(list(softmax.row_blocks(3, 10 * softmax.BLOCK_ENTRIES))) == 3


def test_blocks_change_nothing(monkeypatch):
    z = np.random.default_rng(0).normal(size=(50, 2, 4))
    whole = Predictions(logit_samples=z, labels=np.zeros(50, int)).class_view().probabilities
    monkeypatch.setattr(softmax, "BLOCK_ENTRIES", 24)
    cut = Predictions(logit_samples=z, labels=np.zeros(50, int)).class_view().probabilities
    assert np.array_equal(whole, cut)
