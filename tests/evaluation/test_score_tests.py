"""Paired tests between the scores of an evaluation, and scores with identical rankings."""

import math
from dataclasses import replace

import numpy as np
import pytest

import abstain as ab

N = 300
RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 3, N)
SIGNAL = np.eye(3)[LABELS] + RNG.normal(size=(N, 3))
IDS = np.array([f"image {i}" for i in range(N)])


def model(noise, rows=None, **fields):
    rng = np.random.default_rng(int(10 * noise))
    logits = 2 * (SIGNAL + noise * rng.normal(size=SIGNAL.shape))
    p = ab.Predictions(**{"logits": logits, "labels": LABELS, "ids": IDS, **fields})
    return p if rows is None else p.subset(rows)


def models(*predictions):
    return {(("model", str(i)),): p for i, p in enumerate(predictions)}


def test_differences_are_those_of_compare():
    splits = models(model(0.1), model(1.0), model(3.0))
    tests = ab.evaluate(splits, scores=["msr", "pe"]).tests
    assert tests.has_same_samples
    compared = ab.compare(splits, scores=["msr", "pe"], methods="model", bands=False)
    by_pair = {(p.first, p.second): p for p in compared.pairs}
    assert len(tests.differences) == len(by_pair) == 15
    for difference in tests.differences:
        names = [
            f"{dict(split)['model']} / {score}"
            for split, score in (difference.first, difference.second)
        ]
        pair = by_pair[tuple(names)]
        for name in ("difference", "low", "high", "adjusted"):
            assert getattr(difference, name) == pytest.approx(getattr(pair, name)), name
        assert difference.is_significant == bool(pair.better)


def test_a_reversed_difference_has_the_other_sign():
    tests = ab.evaluate(models(model(0.1), model(2.0)), scores=["msr"]).tests
    (pair,) = tests.differences
    (from_second,) = tests.differences_from(pair.second).values()
    (from_first,) = tests.differences_from(pair.first).values()
    assert from_second == pair
    assert (from_first.difference, from_first.low) == (-pair.difference, -pair.high)
    assert from_first.adjusted == pair.adjusted


def test_samples_in_another_order_are_matched_by_name():
    order = RNG.permutation(N)
    same = ab.evaluate(models(model(0.1), model(2.0)), scores=["msr"]).tests
    shuffled = ab.evaluate(models(model(0.1), model(2.0, order)), scores=["msr"]).tests
    assert shuffled.has_same_samples
    assert shuffled.differences[0].adjusted == pytest.approx(same.differences[0].adjusted)


@pytest.mark.parametrize(
    "other",
    [
        model(2.0, np.arange(N - 1)),
        model(2.0, labels=LABELS[::-1].copy(), ids=None),
        model(2.0, ids=np.array([f"other {i}" for i in range(N)])),
        model(2.0, weight=RNG.random(N) + 0.5),
    ],
    ids=["fewer", "labels", "names", "weights"],
)
def test_other_samples_are_not_compared(other):
    tests = ab.evaluate(models(model(0.1), other), scores=["msr", "pe"]).tests
    assert not tests.has_same_samples
    assert all(pair.first[0] == pair.second[0] for pair in tests.differences)
    assert len(tests.differences) == 2


def test_without_names_and_labels_samples_are_not_the_same():
    p = ab.Predictions(confidence=RNG.random(N), loss=RNG.random(N) < 0.3)
    q = ab.Predictions(confidence=RNG.random(N), loss=RNG.random(N) < 0.3)
    assert (
        ab.evaluate(models(p, q)).tests is None
        or not ab.evaluate(models(p, q)).tests.has_same_samples
    )


def test_nothing_is_tested_without_intervals_or_with_one_score():
    assert ab.evaluate(model(0.1), scores=["msr"]).tests is None
    assert ab.evaluate(model(0.1), interval="none").tests is None
    assert ab.evaluate(model(0.1), metrics=["accuracy"]).tests is None


def test_equal_rankings_are_those_of_all_splits():
    binary = ab.Predictions(logits=RNG.normal(size=(N, 2)), labels=RNG.integers(0, 2, N))
    scores = ["msr", "margin", "gini", "mls"]
    assert ab.evaluate(binary, scores=scores).equal_rankings == (("msr", "margin", "gini"),)
    assert ab.evaluate(model(0.1), scores=scores).equal_rankings == ()


def test_a_coarser_score_is_not_an_equal_ranking():
    confidence = RNG.random(N)
    p = ab.Predictions(
        confidence={"fine": confidence, "coarse": confidence.round(1)}, loss=RNG.random(N) < 0.3
    )
    assert ab.evaluate(p).equal_rankings == ()


def test_logarithms_have_the_ranking_of_their_probabilities():
    probabilities = RNG.dirichlet(np.ones(3), N)
    p = ab.Predictions(logits=np.log(probabilities), labels=LABELS)
    assert ab.evaluate(p, scores=["msr", "mls"]).equal_rankings == (("msr", "mls"),)


def test_probabilities_that_are_too_high_give_a_warning():
    def kinds(p):
        return {note.kind for note in ab.evaluate(p, scores=["msr"]).notes}

    assert "miscalibrated" not in kinds(model(0.1, logits=SIGNAL))
    assert "miscalibrated" in kinds(model(0.1, logits=10 * RNG.normal(size=(N, 3))))


def test_counts_of_shares():
    result = next(r for r in ab.evaluate(model(0.1), scores=["msr"]) if r.metric.name == "accuracy")
    assert result.count_of(N) == N - result.failures
    assert replace(result, value=0.12345).count_of(N) is None
    assert replace(result, value=math.nan).count_of(N) is None
