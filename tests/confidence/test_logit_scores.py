"""Scores of the logits against their formulas."""

import numpy as np
import pytest
from scipy.special import logsumexp

from abstain import confidence
from abstain.errors import DomainError, ShapeError

Z = np.random.default_rng(0).normal(size=(100, 6)) * 5


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_formulas(dtype):
    z = Z.astype(dtype)
    wide = z.astype(np.float64)
    np.testing.assert_array_equal(confidence.max_logit(z), wide.max(1))
    np.testing.assert_allclose(confidence.negative_energy(z), logsumexp(wide, axis=1), rtol=1e-14)
    tempered = 3 * logsumexp(wide / 3, axis=1)
    np.testing.assert_allclose(confidence.negative_energy(z, temperature=3), tempered, rtol=1e-13)
    centered = wide - wide.mean(1, keepdims=True)
    for p in (1, 2, 4, 5.5):
        expected = centered.max(1) / (np.abs(centered) ** p).sum(1) ** (1 / p)
        np.testing.assert_allclose(confidence.normalized_max_logit(z, p=p), expected, rtol=1e-13)
    assert confidence.max_logit(z).dtype == np.float64


def test_pnorm_ignores_shift_and_scale():
    base = confidence.normalized_max_logit(Z)
    np.testing.assert_allclose(confidence.normalized_max_logit(7 * Z - 3), base, rtol=1e-12)
    assert confidence.normalized_max_logit(Z * 1e80, p=9) == pytest.approx(
        confidence.normalized_max_logit(Z, p=9)
    )
    assert base.min() > 0
    assert base.max() <= 1


def test_pnorm_of_equal_logits_is_zero():
    assert confidence.normalized_max_logit([[2.0, 2.0], [0.0, 1.0]]).tolist()[0] == 0


def test_refusals():
    with pytest.raises(DomainError, match=r"`p` must be at least 1; got 0.5"):
        confidence.normalized_max_logit(Z, p=0.5)
    with pytest.raises(DomainError, match=r"`temperature` must be above 0; got 0.0"):
        confidence.negative_energy(Z, temperature=0)
    with pytest.raises(DomainError, match=r"`logits` must be finite; got nan at index \(0, 1\)"):
        confidence.max_logit([[0.0, np.nan]])
    with pytest.raises(ShapeError, match=r"`logits` must have shape \(n, K\)"):
        confidence.max_logit([0.0, 1.0])


def test_torch_tensors():
    torch = pytest.importorskip("torch")
    values = confidence.negative_energy(torch.tensor(Z))
    assert isinstance(values, torch.Tensor)
    np.testing.assert_allclose(values, logsumexp(Z, axis=1), rtol=1e-14)


def test_equal_logits_have_no_confidence():
    assert confidence.normalized_max_logit([[0.1, 0.1, 0.1], [0.7, 0.7, 0.7]]).tolist() == [
        0.0,
        0.0,
    ]
