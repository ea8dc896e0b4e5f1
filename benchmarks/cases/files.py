"""Write files of predictions for the commands."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

FAILURES = 0.05


def predictions(path: Path, rows: int, *, scores: int = 3, splits: int = 1) -> Path:
    """Write text labels and continuous, rounded and saturated confidences, with 5% failures."""
    rng = np.random.default_rng(0)
    names = np.array([f"class_{i}" for i in range(20)])
    label = rng.integers(0, names.size, rows)
    is_failure = rng.random(rows) < FAILURES
    prediction = np.where(is_failure, (label + 1) % names.size, label)
    plain = rng.beta(5, 1, rows).astype(np.float32)
    plain[is_failure] *= rng.random(int(is_failure.sum()), dtype=np.float32)
    confidences = {
        "confidence_plain": plain,
        "confidence_rounded": plain.round(3),
        "confidence_saturated": np.where(rng.random(rows) < 0.3, np.float32(1), plain),
    }
    columns = {"label": names[label], "prediction": names[prediction]}
    columns |= dict(list(confidences.items())[:scores])
    if splits > 1:
        columns["shift"] = np.array([f"shift {i}" for i in range(splits)])[np.arange(rows) % splits]
    return write_table(columns, path)


def write_table(columns: Mapping[str, np.ndarray], path: Path, **options: Any) -> Path:
    """Write a table in the format of its suffix."""
    import polars as pl

    path.parent.mkdir(parents=True, exist_ok=True)
    frame = pl.DataFrame(columns)
    if path.suffix == ".csv":
        frame.write_csv(path)
    else:
        frame.write_parquet(path, **options)
    return path


def correctness(path: Path, rows: int) -> Path:
    """Write a confidence and a correctness per row, with 5% failures."""
    rng = np.random.default_rng(0)
    is_failure = rng.random(rows, dtype=np.float32) < FAILURES
    confidence = 1 - rng.random(rows, dtype=np.float32) ** 5
    confidence[is_failure] *= rng.random(int(is_failure.sum()), dtype=np.float32)
    return write_table({"confidence": confidence, "correct": (~is_failure).view(np.int8)}, path)


def class_scores(path: Path, rows: int, classes: int) -> Path:
    """Write the probabilities of a classifier, one column per class."""
    rng = np.random.default_rng(0)
    label = rng.integers(0, classes, rows)
    logits = rng.standard_normal((rows, classes), dtype=np.float32)
    logits[np.arange(rows), label] += rng.normal(6, 2, rows).astype(np.float32)
    np.exp(logits, out=logits)
    logits /= logits.sum(axis=1, keepdims=True)
    columns = {f"p_{i}": logits[:, i] for i in range(classes)}
    return write_table({"label": label, **columns}, path, compression="uncompressed")


def many_columns(path: Path, rows: int, columns: int) -> Path:
    """Write a label, a prediction and many confidence columns."""
    rng = np.random.default_rng(0)
    label, is_failure = rng.integers(0, 3, rows), rng.random(rows) < 0.3
    is_failure[0] = True
    confidences = {f"confidence_{i}": rng.random(rows) for i in range(columns)}
    frame = {
        "label": label,
        "prediction": np.where(is_failure, (label + 1) % 3, label),
        **confidences,
    }
    return write_table(frame, path)


def scores(rows: int, count: int, seed: int = 0) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return correlated scores of one classifier, and a mask of its failures."""
    rng = np.random.default_rng(seed)
    is_failure = rng.random(rows) < FAILURES
    hard = rng.normal(size=rows) + 1.5 * is_failure
    noise = np.linspace(0.2, 1.5, count)
    scores_by_name = {
        f"confidence_{i:03}": 1 / (1 + np.exp(hard + spread * rng.normal(size=rows)))
        for i, spread in enumerate(noise)
    }
    return scores_by_name, is_failure


def compared(path: Path, rows: int, count: int) -> Path:
    """Write many scores of one classifier."""
    scores_by_name, is_failure = scores(rows, count)
    return write_table({"correct": (~is_failure).astype(int), **scores_by_name}, path)
