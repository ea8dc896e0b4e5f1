"""Evaluations to report on: plain, hostile, large, with nothing wrong, with a loss of its own."""

import numpy as np
import pytest
from tests.report.pages import HOSTILE, Page

import abstain as ab
from abstain.evaluation import Evaluation, evaluate


def predictions(rng, n, names, *, digits=6, error=0.2):
    labels = rng.integers(0, 3, n)
    prediction = np.where(rng.random(n) < error, (labels + 1) % 3, labels)
    right = labels == prediction
    confidence = {
        name: np.round(np.clip(rng.beta(2, 2, n) + 0.3 * right / (i + 1), 0, 1), digits)
        for i, name in enumerate(names)
    }
    return ab.Predictions(prediction=prediction, labels=labels, confidence=confidence)


@pytest.fixture(scope="session")
def plain() -> Evaluation:
    return evaluate(predictions(np.random.default_rng(0), 300, ["first", "second"]))


@pytest.fixture(scope="session")
def hostile() -> Evaluation:
    """Every name that a user can choose is an attack on some output format."""
    chosen = (*HOSTILE[:2], HOSTILE[-1])
    rng = np.random.default_rng(1)
    parts = {}
    for value in chosen:
        p = predictions(rng, 80, list(HOSTILE))
        labels = np.array(chosen)[p.label_codes]
        guess = np.array(chosen)[p.prediction_codes]
        parts[((HOSTILE[0], value),)] = ab.Predictions(
            prediction=guess,
            labels=labels,
            confidence=dict(p.confidence),
            ids=np.array([f"{HOSTILE[-1]}{i}" for i in range(80)]),
        )
    return evaluate(parts, notes=HOSTILE)


@pytest.fixture(scope="session")
def large() -> Evaluation:
    rng = np.random.default_rng(2)
    names = [f"score {i}" for i in range(10)]
    parts = {(("shift", f"s{i}"),): predictions(rng, 400, names, error=0.05 * i) for i in range(20)}
    return evaluate(parts, metrics=["accuracy", "augrc", "aurc", "failure_auroc", "ece"])


@pytest.fixture(scope="session")
def faultless() -> Evaluation:
    p = ab.Predictions(
        prediction=[1, 0, 1, 1], labels=[1, 0, 1, 1], confidence=[0.9, 0.8, 0.7, 0.7]
    )
    return evaluate(p)


@pytest.fixture(scope="session")
def graded() -> Evaluation:
    rng = np.random.default_rng(3)
    confidence = rng.random(200)
    return evaluate(ab.Predictions(confidence=confidence, loss=rng.exponential(1.2 - confidence)))


@pytest.fixture(scope="session")
def parse():
    return Page
