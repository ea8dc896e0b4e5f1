"""Metrics for trainers and trackers; the libraries themselves are stood in for by their interface.

The stand-ins mimic what was run for real: keras 3.15.1, transformers 5.23.0, evaluate 0.4.6,
mlflow 3.17.2, wandb 0.31.0.
"""

import re
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import abstain as ab
from abstain.errors import InputError, ShapeError, UnknownNameError
from abstain.integrations import trackers
from abstain.integrations.trackers import (
    evaluate_module,
    keras_callback,
    metric_values,
    tracker_name,
    trainer_metrics,
)
from abstain.metrics import METRICS

RNG = np.random.default_rng(0)
LOGITS, LABELS = RNG.normal(size=(60, 3)), RNG.integers(3, size=60)
GIVEN = ab.Predictions(logits=LOGITS, labels=LABELS)


def module(monkeypatch, name, **content):
    made = ModuleType(name)
    vars(made).update(content)
    monkeypatch.setitem(sys.modules, name, made)


def test_values_equal_those_of_the_functions():
    result = metric_values(GIVEN, ["augrc", "selective_risk@80cov"], prefix="val/")
    confidence = np.exp(LOGITS).max(axis=1) / np.exp(LOGITS).sum(axis=1)
    wrong = LOGITS.argmax(axis=1) != LABELS
    assert result["val/augrc"] == pytest.approx(ab.augrc(confidence, wrong))
    assert result["val/selective_risk_at_80cov"] == ab.selective_risk(
        confidence, wrong, coverage=0.8
    )
    assert tuple(metric_values(GIVEN)) == tuple(
        n.replace("@", "_at_") for n in trackers.DEFAULT_METRICS
    )
    with pytest.raises(UnknownNameError, match="augcr"):
        metric_values(GIVEN, ["augcr"])


def test_the_score_that_is_requested():
    wrong = LOGITS.argmax(axis=1) != LABELS
    result = metric_values(GIVEN, ["augrc"], score="mls")
    assert result["augrc"] == ab.augrc(LOGITS.max(axis=1), wrong)
    p = ab.Predictions(confidence={"a": [0.9, 0.8], "b": [0.1, 0.2]}, loss=[0, 1])
    assert metric_values(p, ["augrc"])["augrc"] == ab.augrc([0.9, 0.8], [0, 1])
    assert metric_values(p, ["augrc"], score="b")["augrc"] == ab.augrc([0.1, 0.2], [0, 1])


def test_undefined_is_nan():
    p = ab.Predictions(confidence={"a": [0.9, 0.8]}, loss=[0, 0])
    assert np.isnan(metric_values(p, ["failure_auroc"])["failure_auroc"])


def test_names_of_all_metrics_please_the_trackers_and_differ():
    names = [tracker_name(name) for name in METRICS]
    # W&B's own rule, which is stricter than MLflow's.
    assert all(re.fullmatch("[_a-zA-Z][_a-zA-Z0-9]*", name) for name in names)
    assert len(set(names)) == len(names)


def test_a_trainer_passes_tuples_tokens_and_padding():
    compute = trainer_metrics(["augrc"])
    expected = metric_values(GIVEN, ["augrc"])
    assert compute(SimpleNamespace(predictions=LOGITS, label_ids=LABELS)) == expected
    labels = np.full((20, 4), -100)
    labels[:, :3] = LABELS.reshape(20, 3)
    tokens = np.concatenate([LOGITS.reshape(20, 3, 3), np.full((20, 1, 3), 9.0)], axis=1)
    passed = SimpleNamespace(predictions=(tokens, "hidden"), label_ids=labels)
    assert compute(passed) == expected


def test_what_is_no_classifier_raises_an_error():
    with pytest.raises(InputError, match="`inputs` must be"):
        trainer_metrics(inputs="scores")
    with pytest.raises(ShapeError, match=r"shape \(n, K\).*got \(3,\)"):
        trainer_metrics()(SimpleNamespace(predictions=np.zeros(3), label_ids=np.zeros(3, int)))
    with pytest.raises(ShapeError, match="got 2 and 3"):
        trainer_metrics()(SimpleNamespace(predictions=np.zeros((2, 2)), label_ids=[0, 1, 1]))


@pytest.mark.parametrize("inputs", ["probabilities", "logits"])
def test_a_callback_adds_to_the_logs_of_an_epoch(monkeypatch, inputs):
    module(monkeypatch, "keras", callbacks=SimpleNamespace(Callback=object))
    outputs = LOGITS[:, :1] if inputs == "logits" else 1 / (1 + np.exp(-LOGITS[:, :1]))
    callback = keras_callback("X", LABELS > 0, ["augrc"], inputs=inputs, batch_size=7)
    callback.model = SimpleNamespace(
        predict=lambda x, batch_size, verbose: outputs if (x, batch_size) == ("X", 7) else None
    )
    logs = {"loss": 1.0}
    callback.on_epoch_end(0, logs)
    callback.on_epoch_end(1)
    z = LOGITS[:, 0]
    wrong = (z > 0) != (LABELS > 0)
    assert logs == {"loss": 1.0, "val_augrc": pytest.approx(ab.augrc(np.abs(z), wrong))}


def test_a_module_of_evaluate(monkeypatch):
    module(monkeypatch, "evaluate", Metric=object, MetricInfo=SimpleNamespace)
    plain = {"Sequence": lambda x: [x], "Value": str, "Features": dict}
    module(monkeypatch, "datasets", **plain)
    made = evaluate_module(["augrc"], inputs="logits")
    assert made._info().features == {"predictions": ["float64"], "references": "int64"}
    result = made._compute(LOGITS.tolist(), LABELS.tolist())
    assert result == metric_values(GIVEN, ["augrc"])
