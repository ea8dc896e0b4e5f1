"""Several scores of many classes share one pass over them, and are what each is by itself."""

import numpy as np
import pytest

from abstain.confidence import applicable, kernels, registry, score
from abstain.predictions import Predictions
from abstain.predictions.outputs import ClassScores


def many(kind, classes=60, rows=5000):
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(rows, classes)).astype(np.float32) * 3
    values = {"logits": logits}
    if kind == "probabilities":
        odds = np.exp(logits)
        values = {"probabilities": odds / odds.sum(axis=1, keepdims=True)}
    own = {"gen": rng.random(rows), "mine": rng.random(rows)}
    return Predictions(**values, labels=rng.integers(0, classes, rows), confidence=own)


@pytest.fixture
def blocks(monkeypatch):
    calls, real = [], ClassScores.log_scores

    def log_scores(self, rows=slice(None)):
        calls.append(rows)
        return real(self, rows)

    monkeypatch.setattr(ClassScores, "log_scores", log_scores)
    return calls


@pytest.mark.parametrize("kind", ["logits", "probabilities"])
def test_each_is_what_it_is_by_itself(kind):
    p = many(kind)
    metric_names = [*applicable(p), "msr@T=2", "pe"]
    for name, found in zip(metric_names, registry.score_many(metric_names, p), strict=True):
        alone = score(name, p)
        assert found.name == alone.name
        assert np.array_equal(found.values, alone.values)
        assert (found.probability is None) == (alone.probability is None)
        if alone.probability is not None:
            assert np.array_equal(found.probability, alone.probability)


def test_many_classes_are_passed_over_once(blocks):
    p = many("probabilities")
    asked = [name for name in applicable(p) if name not in p.confidence]
    assert len(asked) == 5
    list(registry.score_many(asked, p))
    assert sum(rows.stop - rows.start for rows in blocks) == p.n


def test_what_the_top_class_tells_is_found_once(monkeypatch):
    p, split, whole = many("probabilities"), kernels.split_top_class, []

    def counted(xp, z, *, needs_logs=False):
        whole.append(len(z))
        return split(xp, z, needs_logs=needs_logs)

    monkeypatch.setattr(kernels, "split_top_class", counted)
    list(registry.score_many(["msr", "pe", "margin", "logit_margin", "gini"], p))
    assert sum(whole) == p.n


def test_few_classes_are_not_held_by_all_scores_at_once(blocks):
    p = many("probabilities", classes=3)
    result = registry.score_many(["msr", "pe", "margin"], p)
    next(result)
    assert sum(rows.stop - rows.start for rows in blocks) == p.n


def test_a_score_that_lacks_something_raises_an_error_in_its_turn():
    p = many("probabilities")
    result = registry.score_many(["msr", "energy"], p)
    assert next(result).name == "msr"
    with pytest.raises(Exception, match="energy"):
        next(result)
