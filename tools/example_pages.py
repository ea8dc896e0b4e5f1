"""Write three reports as pages: `python tools/example_pages.py FOLDER`.

`make pages` opens them in Chromium (`tools/pages.mjs`).
"""

import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

import abstain as ab
from abstain.report import write

N_TRAIN = 300
MODELS = {
    "logistic": LogisticRegression(max_iter=2000),
    "neighbors": KNeighborsClassifier(9),
    "bayes": GaussianNB(var_smoothing=1e-2),
}


def write_pages(folder: Path) -> None:
    """Train three classifiers on handwritten digits and write the three pages."""
    images, labels = load_digits(return_X_y=True)
    folder.mkdir(parents=True, exist_ok=True)
    predictions = {}
    for name, model in MODELS.items():
        model.fit(images[:N_TRAIN], labels[:N_TRAIN])
        probabilities = model.predict_proba(images[N_TRAIN:])
        predictions[("model", name),] = ab.Predictions(
            labels=labels[N_TRAIN:], probabilities=probabilities
        )
    options = {"source": "digits of scikit-learn", "command": "python tools/example_pages.py"}
    write(ab.evaluate(predictions), folder / "evaluation.html", **options)
    write(ab.compare(predictions), folder / "comparison.html", **options)
    logistic = predictions[("model", "logistic"),]
    rows = np.arange(logistic.n)
    calibration, test = (logistic.subset(rows[start::2]) for start in (0, 1))
    rule = ab.set_threshold(calibration, max_risk=0.05)
    write(ab.check_rule(rule, {"test": test}), folder / "rule.html", **options)


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))
