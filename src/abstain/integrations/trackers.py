"""Metrics as plain numbers by name: what trainers call for and trackers of experiments take.

No library is loaded here until a function that serves it is called.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from abstain._foundation import checks
from abstain.confidence.registry import BASELINE
from abstain.errors import ShapeError
from abstain.evaluation import evaluate
from abstain.metrics import metric_named
from abstain.predictions import Predictions
from abstain.typing import Array

#: What is watched unless something else is asked for.
DEFAULTS = ("augrc", "aurc", "failure_auroc", "selective_risk@80cov", "coverage@5risk")

#: Marks what a loss leaves out (padding), in Transformers and in PyTorch.
_LEFT_OUT = -100

_INPUTS = ("logits", "probabilities")


def spelled(name: str) -> str:
    """Spell out what MLflow, W&B and Inspect refuse in names or read as something else."""
    return name.replace("@", "_at_").replace(".", "_").replace("-", "_")


def metric_values(
    predictions: Predictions,
    metrics: Sequence[str] = DEFAULTS,
    *,
    score: str | None = None,
    prefix: str = "",
) -> dict[str, float]:
    """Return metrics by names that every tracker takes.

    Answers: how do I log what `abstain` measures beside loss and accuracy?

    Parameters
    ----------
    predictions : Predictions
        Of the n samples, such as ``ab.Predictions(logits=..., labels=...)``.
    metrics : sequence of str, optional
        As in `abstain.evaluate`; by default AUGRC, AURC, failure AUROC, the selective risk at
        80% coverage and the coverage at 5% risk.
    score : str, optional
        The confidence: a score or a column of confidences. By default "msr" where there are
        class scores, else the first column.
    prefix : str, default=""
        Put before each name, "val/" for one.

    Returns
    -------
    dict from str to float
        Names of metrics with "@" and points spelled out ("selective_risk_at_80cov",
        "cwsa_at_0_5"). NaN where a metric is undefined.

    Raises
    ------
    UnknownNameError, InputError
        As `abstain.evaluate`: there is no such metric or score, or it does not apply.

    Examples
    --------
    >>> import abstain as ab
    >>> from abstain.integrations.trackers import metric_values
    >>> p = ab.Predictions(confidence={"msp": [0.9, 0.8, 0.7, 0.6]}, loss=[0, 0, 1, 0])
    >>> metric_values(p, ["augrc", "selective_risk@80cov"], prefix="val/")
    {'val/augrc': 0.09375, 'val/selective_risk_at_80cov': 0.25}
    """
    names = [metric_named(name).name for name in metrics]
    if score is None:
        score = (
            BASELINE
            if predictions.has_class_scores
            else next(iter(predictions.confidence or ()), "")
        )
    found = evaluate(
        predictions,
        scores=[score] if score else None,
        metrics=names,
        interval="none",
        curves=False,
    )
    return {f"{prefix}{spelled(r.metric.name)}": float(r.value) for r in found.results}


def trainer_metrics(
    metrics: Sequence[str] = DEFAULTS, *, inputs: str = "logits", score: str | None = None
) -> Callable[[Any], dict[str, float]]:
    """Make the `compute_metrics` of a `transformers.Trainer`.

    Answers: how do I watch selective metrics while I fine-tune a classifier?

    Parameters
    ----------
    metrics : sequence of str, optional
        As in `metric_values`.
    inputs : {"logits", "probabilities"}, default="logits"
        What the model puts out.
    score : str, optional
        As in `metric_values`.

    Returns
    -------
    callable
        Takes what the trainer passes: outputs of shape (n, K) or, of tokens, (n, T, K), the first
        where a model puts out several; and labels of shape (n,) or (n, T), of which -100 is left
        out. Returns what `metric_values` does; the trainer puts ``eval_`` before the names.

    Raises
    ------
    UnknownNameError, InputError
        There is no such metric or kind of output.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from abstain.integrations.trackers import trainer_metrics
    >>> compute_metrics = trainer_metrics(["augrc"])
    >>> outputs = [[3.0, 0.0], [0.0, 2.0], [0.1, 0.0]]
    >>> passed = SimpleNamespace(predictions=outputs, label_ids=[0, 1, 1])
    >>> {name: round(value, 4) for name, value in compute_metrics(passed).items()}
    {'augrc': 0.0556}
    """
    names = _checked(metrics, inputs)

    def compute(passed: Any) -> dict[str, float]:
        outputs = passed.predictions
        outputs = outputs[0] if isinstance(outputs, tuple) else outputs
        return metric_values(_predictions(outputs, passed.label_ids, inputs), names, score=score)

    return compute


def keras_callback(
    X: Any,
    y: Any,
    metrics: Sequence[str] = DEFAULTS,
    *,
    inputs: str = "probabilities",
    score: str | None = None,
    batch_size: int | None = None,
) -> Any:
    """Make a callback of Keras that adds metrics to the logs at the end of each epoch.

    Answers: how do I watch selective metrics in `model.fit`, and stop early by one?

    Parameters
    ----------
    X : array-like or what else `model.predict` takes
        Samples that are not trained on.
    y : array-like of shape (n,)
        Their classes, as whole numbers.
    metrics : sequence of str, optional
        As in `metric_values`.
    inputs : {"logits", "probabilities"}, default="probabilities"
        What the model puts out, of shape (n, K); or (n, 1), of the second of two classes.
    score : str, optional
        As in `metric_values`.
    batch_size : int, optional
        Of the predictions.

    Returns
    -------
    keras.callbacks.Callback
        Give it before callbacks that look at its numbers, which are called "val_augrc" and so on.

    Raises
    ------
    UnknownNameError, InputError
        There is no such metric or kind of output.

    Examples
    --------
    >>> import abstain.integrations.trackers as at
    >>> callback = at.keras_callback(X, y, ["augrc"])  # doctest: +SKIP
    >>> model.fit(X_train, y_train, epochs=3, callbacks=[callback])  # doctest: +SKIP
    """
    import keras

    names = _checked(metrics, inputs)

    class SelectiveMetrics(keras.callbacks.Callback):
        """Adds metrics of held-out samples to the logs of an epoch."""

        def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:  # noqa: ARG002
            """Predict and measure."""
            outputs = self.model.predict(X, batch_size=batch_size, verbose=0)
            found = _predictions(outputs, y, inputs)
            if logs is not None:
                logs.update(metric_values(found, names, score=score, prefix="val_"))

    return SelectiveMetrics()


def evaluate_module(
    metrics: Sequence[str] = DEFAULTS, *, inputs: str = "probabilities", score: str | None = None
) -> Any:
    """Make a module of Hugging Face `evaluate`.

    Answers: how do I get these numbers where a metric of `evaluate` is taken?

    Parameters
    ----------
    metrics : sequence of str, optional
        As in `metric_values`.
    inputs : {"logits", "probabilities"}, default="probabilities"
        What the predictions are: a list of K numbers for each sample.
    score : str, optional
        As in `metric_values`.

    Returns
    -------
    evaluate.Metric
        With `add_batch` and `compute(predictions=..., references=...)`, which returns what
        `metric_values` does.

    Raises
    ------
    UnknownNameError, InputError
        There is no such metric or kind of output.

    Examples
    --------
    >>> from abstain.integrations.trackers import evaluate_module
    >>> module = evaluate_module(["augrc"])  # doctest: +SKIP
    >>> module.compute(predictions=[[0.9, 0.1], [0.4, 0.6]], references=[0, 0])  # doctest: +SKIP
    {'augrc': 0.125}
    """
    import datasets
    import evaluate as library

    names = _checked(metrics, inputs)

    class SelectiveMetrics(library.Metric):
        """Metrics of classifiers that may abstain."""

        def _info(self) -> Any:
            features = {
                "predictions": datasets.Sequence(datasets.Value("float64")),
                "references": datasets.Value("int64"),
            }
            return library.MetricInfo(
                description="Metrics of classifiers that may abstain.",
                citation="",
                features=datasets.Features(features),
            )

        def _compute(self, predictions: Any, references: Any) -> dict[str, float]:
            return metric_values(_predictions(predictions, references, inputs), names, score=score)

    return SelectiveMetrics()


def _checked(metrics: Sequence[str], inputs: str) -> list[str]:
    checks.one_of(inputs, "inputs", _INPUTS)
    return [metric_named(name).name for name in metrics]


def _predictions(outputs: Any, labels: Any, inputs: str) -> Predictions:
    scores: Array = np.asarray(outputs)
    truth: Array = np.asarray(labels)
    if scores.ndim < 2:
        raise ShapeError(
            f"the outputs must have shape (n, K), a number for each class; got {scores.shape}"
        )
    scores, truth = scores.reshape(-1, scores.shape[-1]), truth.reshape(-1)
    if len(scores) != len(truth):
        raise ShapeError(
            f"the outputs are of {len(scores):,} samples, and the labels of {len(truth):,}"
        )
    kept = truth != _LEFT_OUT
    scores, truth = scores[kept], truth[kept]
    if scores.shape[1] == 1:
        other = np.zeros_like(scores) if inputs == "logits" else 1 - scores
        scores = np.column_stack([other, scores])
    fields: Mapping[str, Any] = {inputs: scores, "labels": truth}
    return Predictions(**fields)
