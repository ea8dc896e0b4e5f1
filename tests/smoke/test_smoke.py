"""Does everything work at all with these versions of Python and of the libraries?

`make test-lowest` runs this alone, with the lowest versions that pyproject.toml declares; and
`make test-smoke PYTHON=...` with another Python. Numbers are checked elsewhere.
"""

import importlib
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

import abstain as ab
from abstain.cli.catalogues import all_catalogues
from abstain.cli.main import run
from abstain.integrations.sklearn import SelectiveClassifier

PACKAGE = Path(ab.__file__).parent
COLUMNS = ["--label", "label", "--confidence", "a", "--confidence", "b"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame().write_csv("p.csv")
    return tmp_path


def frame():
    rng = np.random.default_rng(0)
    a, label = rng.random(300), rng.integers(2, size=300)
    prediction = np.where(rng.random(300) < a, label, 1 - label)
    columns = {"label": label, "prediction": prediction, "a": a, "b": rng.random(300)}
    return pl.DataFrame({**columns, "part": np.where(np.arange(300) < 150, "x", "y")})


def test_every_module_that_needs_no_extra_is_imported():
    extras = ("training", "__main__", "integrations.torchmetrics")
    # By their names alone: walking would import the packages of the extras.
    files = (path.relative_to(PACKAGE).with_suffix("") for path in PACKAGE.rglob("*.py"))
    names = [".".join(file.parts).removesuffix(".__init__") for file in files]
    for name in names:
        if not name.startswith(extras):
            importlib.import_module(f"abstain.{name}")
    assert len(names) > 350


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet", "feather", "jsonl", "npz", "frame"])
def test_every_format_is_read(folder, kind):
    table, path = frame().drop("part"), folder / f"q.{kind}"
    writers = {
        "csv": lambda: table.write_csv(path),
        "tsv": lambda: table.write_csv(path, separator="\t"),
        "parquet": lambda: table.write_parquet(path),
        "feather": lambda: table.write_ipc(path),
        "jsonl": lambda: table.write_ndjson(path),
        "npz": lambda: np.savez(path, **{name: table[name].to_numpy() for name in table.columns}),
        "frame": lambda: None,
    }
    writers[kind]()
    result = ab.read_predictions(table if kind == "frame" else path, confidence=["a", "b"]).only()
    assert result.correct.tolist() == (table["label"] == table["prediction"]).to_list()


@pytest.mark.parametrize(
    "arguments",
    [
        ["evaluate", "p.csv", *COLUMNS, "--by", "part", "--full"],
        ["evaluate", "p.csv", *COLUMNS, "--interval", "bootstrap", "--bootstrap", "50"],
        ["compare", "p.csv", *COLUMNS, "--figures", "pdf", "--figures", "png"],
        ["threshold", "p.csv", *COLUMNS[:4], "--coverage", "0.5", "--apply", "p.csv"],
        ["study", "weights", "--sizes", "8", "--points", "9"],
        ["study", "estimators", "--sizes", "8", "--repeats", "9", "--population", "uniform-scores"],
    ],
    ids=lambda arguments: f"{arguments[0]} {arguments[1]}",
)
def test_every_command_runs_and_leaves_its_page(folder, capsys, arguments):
    assert run([*arguments, "--out", "out"]) == 0, capsys.readouterr().err
    assert capsys.readouterr().err == ""
    left = {path.name for path in (folder / "out").iterdir()}
    assert {"results.csv", "results.parquet", "report.html", "receipt.json"} <= left


@pytest.mark.parametrize("what", list(all_catalogues()))
def test_every_list_is_printed(capsys, what):
    status = run(["list", what])
    output = capsys.readouterr()
    assert status == 0 or "pip install" in output.err
    assert output.out or output.err


@pytest.mark.parametrize("command", ["", "evaluate", "compare", "threshold", "study"])
def test_every_help_is_printed(capsys, command):
    assert run([*command.split(), "--help"]) == 0
    assert "Usage: abstain" in capsys.readouterr().out


def test_calibration_fitted_scores_and_sklearn():
    rng = np.random.default_rng(1)
    labels = rng.integers(2, size=200)
    features = rng.normal(size=(200, 3)) + labels[:, None]
    logits = features[:, :2] * [-1, 1]
    p = ab.Predictions(logits=logits, labels=labels, features=features)
    scores = [ab.confidence.fit(name, p) for name in ("mahalanobis", "vim", "knn")]
    assert len(ab.evaluate(p, scores=["msr", *scores], metrics=["augrc"]).rows()) == 4
    assert ab.calibration.fit_temperature(logits, labels).temperature > 0
    classifier = SelectiveClassifier(LogisticRegression(), cv=2).fit(features, labels)
    assert classifier.predict(features).shape == (200,)


def test_compiled_kernels():
    rng = np.random.default_rng(2)
    confidence, wrong = rng.random(20_000), rng.random(20_000) < 0.1
    accuracy = 1 - wrong.mean()
    auroc = ab.failure_auroc(confidence, wrong)
    identity = (1 - auroc) * accuracy * (1 - accuracy) + (1 - accuracy) ** 2 / 2
    assert ab.augrc(confidence, wrong) == pytest.approx(identity, rel=1e-12)
