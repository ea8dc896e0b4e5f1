"""Metrics for training libraries and experiment trackers.

A library is imported only when a function requires it.
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

#: Names of the metrics that are computed by default.
DEFAULT_METRICS = ("augrc", "aurc", "failure_auroc", "selective_risk@80cov", "coverage@5risk")

#: Label of samples that losses of Transformers and PyTorch ignore, such as padding.
_IGNORED_LABEL = -100

_INPUTS = ("logits", "probabilities")


def tracker_name(name: str) -> str:
    """Replace characters in a name that MLflow, W&B or Inspect do not accept."""
    return name.replace("@", "_at_").replace(".", "_").replace("-", "_")


def metric_values(
    predictions: Predictions,
    metrics: Sequence[str] = DEFAULT_METRICS,
    *,
    score: str | None = None,
    prefix: str = "",
) -> dict[str, float]:
    """Compute metrics, and return their values under names that all trackers accept.

    Parameters
    ----------
    predictions : Predictions
        Predictions, such as ``ab.Predictions(logits=..., labels=...)``.
    metrics : sequence of str, optional
        Names of metrics in `abstain.evaluate`. The default is AUGRC, AURC, failure AUROC, the
        selective risk at 80% coverage and the coverage at 5% risk.
    score : str, optional
        Confidence score: the name of a score or of a confidence column. The default is "msr" if
        there are class scores, and the first confidence column otherwise.
    prefix : str, default=""
        Prefix of each name, such as "val/".

    Returns
    -------
    dict from str to float
        Value of each metric by name. If a metric is undefined, its value is NaN. Names contain no
        "@" and no points, as in "selective_risk_at_80cov" and "cwsa_at_0_5".

    Raises
    ------
    UnknownNameError, InputError
        If a metric or the score does not exist or cannot be computed, as in `abstain.evaluate`.

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
        score = _default_score(predictions)
    evaluation = evaluate(
        predictions,
        scores=[score] if score else None,
        metrics=names,
        interval="none",
        curves=False,
    )
    return {f"{prefix}{tracker_name(r.metric.name)}": float(r.value) for r in evaluation.results}


def _default_score(predictions: Predictions) -> str:
    """Return "msr" if there are class scores, otherwise the name of the first confidence column."""
    if predictions.has_class_scores:
        return BASELINE
    column_names = list(predictions.confidence or ())
    return column_names[0] if column_names else ""


def trainer_metrics(
    metrics: Sequence[str] = DEFAULT_METRICS, *, inputs: str = "logits", score: str | None = None
) -> Callable[[Any], dict[str, float]]:
    """Return a `compute_metrics` function for `transformers.Trainer`.

    Parameters
    ----------
    metrics : sequence of str, optional
        As in `metric_values`.
    inputs : {"logits", "probabilities"}, default="logits"
        Whether the outputs of the model are logits or probabilities.
    score : str, optional
        As in `metric_values`.

    Returns
    -------
    callable
        A function that returns the result of `metric_values` for the predictions of the trainer.
        Outputs have shape (n, K) and labels have shape (n,). For T tokens per sample, outputs have
        shape (n, T, K) and labels have shape (n, T). If a model has several outputs, the first
        output is used. Samples with the label -100 are ignored. The trainer adds the prefix
        ``eval_`` to the names of metrics.

    Raises
    ------
    UnknownNameError, InputError
        If a metric or the kind of outputs does not exist.

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
    names = _validate_options(metrics, inputs)

    def compute(passed: Any) -> dict[str, float]:
        outputs = passed.predictions
        if isinstance(outputs, tuple):
            outputs = outputs[0]
        predictions = _make_predictions(outputs, passed.label_ids, inputs)
        return metric_values(predictions, names, score=score)

    return compute


def keras_callback(
    X: Any,
    y: Any,
    metrics: Sequence[str] = DEFAULT_METRICS,
    *,
    inputs: str = "probabilities",
    score: str | None = None,
    batch_size: int | None = None,
) -> Any:
    """Return a Keras callback that adds metrics to the logs at the end of each epoch.

    Other callbacks can monitor these metrics or use them for early stopping.

    Parameters
    ----------
    X : array-like or another input of `model.predict`
        Validation samples.
    y : array-like of shape (n,)
        True classes of the samples, as integers.
    metrics : sequence of str, optional
        As in `metric_values`.
    inputs : {"logits", "probabilities"}, default="probabilities"
        Whether the outputs of the model are logits or probabilities. Outputs have shape (n, K), or
        (n, 1) if there are two classes and only the second has an output.
    score : str, optional
        As in `metric_values`.
    batch_size : int, optional
        Batch size of the predictions.

    Returns
    -------
    keras.callbacks.Callback
        A callback that adds metrics with names such as "val_augrc". In the list of callbacks, it
        must precede callbacks that use these metrics.

    Raises
    ------
    UnknownNameError, InputError
        If a metric or the kind of outputs does not exist.

    Examples
    --------
    >>> import abstain.integrations.trackers as at
    >>> callback = at.keras_callback(X, y, ["augrc"])  # doctest: +SKIP
    >>> model.fit(X_train, y_train, epochs=3, callbacks=[callback])  # doctest: +SKIP
    """
    import keras

    names = _validate_options(metrics, inputs)

    class SelectiveMetrics(keras.callbacks.Callback):
        """A callback that adds metrics of validation samples to the logs of an epoch."""

        def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:  # noqa: ARG002
            """Compute the metrics of the validation samples, and add them to the logs."""
            outputs = self.model.predict(X, batch_size=batch_size, verbose=0)
            predictions = _make_predictions(outputs, y, inputs)
            if logs is not None:
                logs.update(metric_values(predictions, names, score=score, prefix="val_"))

    return SelectiveMetrics()


def evaluate_module(
    metrics: Sequence[str] = DEFAULT_METRICS,
    *,
    inputs: str = "probabilities",
    score: str | None = None,
) -> Any:
    """Return an evaluation module for the Hugging Face library `evaluate`.

    Parameters
    ----------
    metrics : sequence of str, optional
        As in `metric_values`.
    inputs : {"logits", "probabilities"}, default="probabilities"
        Whether the predictions are logits or probabilities, as a list of K numbers per sample.
    score : str, optional
        As in `metric_values`.

    Returns
    -------
    evaluate.Metric
        A module with the methods `add_batch` and `compute(predictions=..., references=...)`.
        `compute` returns the result of `metric_values`.

    Raises
    ------
    UnknownNameError, InputError
        If a metric or the kind of outputs does not exist.

    Examples
    --------
    >>> from abstain.integrations.trackers import evaluate_module
    >>> module = evaluate_module(["augrc"])  # doctest: +SKIP
    >>> module.compute(predictions=[[0.9, 0.1], [0.4, 0.6]], references=[0, 0])  # doctest: +SKIP
    {'augrc': 0.125}
    """
    import datasets
    import evaluate as library

    names = _validate_options(metrics, inputs)

    class SelectiveMetrics(library.Metric):
        """Metrics of classifiers that may abstain."""

        def _info(self) -> Any:
            """Return the description and the features of the module."""
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
            samples = _make_predictions(predictions, references, inputs)
            return metric_values(samples, names, score=score)

    return SelectiveMetrics()


def _validate_options(metrics: Sequence[str], inputs: str) -> list[str]:
    checks.one_of(inputs, "inputs", _INPUTS)
    return [metric_named(name).name for name in metrics]


def _make_predictions(outputs: Any, labels: Any, inputs: str) -> Predictions:
    """Convert outputs and labels to `Predictions`, without samples whose label is ignored."""
    class_scores: Array = np.asarray(outputs)
    flat_labels: Array = np.asarray(labels)
    if class_scores.ndim < 2:
        raise ShapeError(
            f"the outputs must have shape (n, K), one number per class; got {class_scores.shape}"
        )
    class_scores = class_scores.reshape(-1, class_scores.shape[-1])
    flat_labels = flat_labels.reshape(-1)
    if len(class_scores) != len(flat_labels):
        raise ShapeError(
            "outputs and labels must have the same number of samples; got "
            f"{len(class_scores):,} and {len(flat_labels):,}"
        )
    is_labeled = flat_labels != _IGNORED_LABEL
    class_scores = class_scores[is_labeled]
    if class_scores.shape[1] == 1:
        class_scores = _add_first_class(class_scores, inputs)
    fields: Mapping[str, Any] = {inputs: class_scores, "labels": flat_labels[is_labeled]}
    return Predictions(**fields)


def _add_first_class(second_class: Array, inputs: str) -> Array:
    """Return the scores of both classes, shape (n, 2), given the scores of the second class."""
    first_class = np.zeros_like(second_class) if inputs == "logits" else 1 - second_class
    return np.column_stack([first_class, second_class])
