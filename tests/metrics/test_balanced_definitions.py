"""The balanced areas against the curve of each class, vertex by vertex."""

import numpy as np
import pytest

import abstain as ab
from abstain.metrics.areas import balanced


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("classes", [1, 3, 40])
def test_balanced_aurc_is_the_area_under_the_mean_risk_of_the_classes(seed, classes):
    rng = np.random.default_rng(seed)
    n = 120
    confidence = np.round(rng.normal(size=n), seed % 3)
    loss = rng.random(n) if seed % 2 else (rng.random(n) < 0.3).astype(float)
    weight = rng.integers(0, 3, n) * rng.random(n) if seed > 4 else None
    labels = rng.integers(0, classes, n) - (1 if classes == 3 else 0)
    w = np.ones(n) if weight is None else weight
    mask = w > 0
    vertices = np.unique(confidence[mask])[::-1]
    present = np.unique(labels[mask])
    risk, coverage = [], []
    for vertex in vertices:
        inside = (confidence >= vertex) * w
        own = [inside * (labels == k) for k in present]
        risk.append(np.mean([(x @ loss) / x.sum() if x.sum() else 0.0 for x in own]))
        coverage.append(inside.sum() / w.sum())
    before = [risk[0], *risk[:-1]]
    expected = np.diff(coverage, prepend=0.0) @ (np.add(risk, before) / 2)
    result = ab.metrics.balanced_aurc(confidence, loss, labels, weight=weight)
    assert result == pytest.approx(expected, rel=1e-12)


def test_no_class_is_sorted_by_itself(monkeypatch):
    monkeypatch.delattr(balanced, "group_ties")
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 9, 400)
    ab.metrics.balanced_aurc(rng.random(400), rng.random(400) < 0.2, labels)
