"""Confidences with ties in every precision, and what every rule must agree with."""

import numpy as np
import pytest
from hypothesis import strategies as st

DTYPES = [np.float16, np.float32, np.float64]


@st.composite
def cases(draw, *, graded=False, least=1, most=60):
    """Confidences with ties in any precision, and losses that get rarer upwards."""
    n = draw(st.integers(least, most))
    values = draw(st.integers(1, 12))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    confidence = (rng.integers(1, values + 1, n) / values).astype(draw(st.sampled_from(DTYPES)))
    wrong = rng.random(n) < draw(st.floats(0, 1)) * (1.05 - confidence.astype(float))
    return confidence, np.where(wrong, rng.random(n), 0.0) if graded else wrong.astype(int)


def agrees(rule, confidence, loss=None):
    """The rule's own numbers are those of applying it to its calibration data."""
    inside = rule.apply(confidence)
    assert rule.n == confidence.size
    assert rule.accepted == inside.sum()
    assert rule.coverage == pytest.approx(inside.mean())
    assert rule.attainable == (rule.accepted > 0)
    if loss is not None:
        assert rule.failures == (loss[inside] > 0).sum()
        if inside.any():
            assert rule.risk == pytest.approx(loss[inside].mean())
    return True
