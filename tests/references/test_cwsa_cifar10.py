"""Every number that the authors of CWSA computed of their CIFAR-10 network."""

from pathlib import Path

import numpy as np
import pytest

import abstain as ab

COLUMNS = ("threshold", "selective_accuracy", "cwsa", "cwsa_plus", "coverage", "ece", "aurc")


@pytest.fixture(scope="module")
def known() -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    facts = np.load(Path(__file__).parent / "cwsa_facts" / "cifar10.npz", allow_pickle=False)
    # Their numbers are of the decimals in their file, the shortest of each float32.
    confidence = np.array([float(str(value)) for value in facts["confidence"]])
    wrong = np.unpackbits(facts["wrong"])[: confidence.size]
    return confidence, wrong, dict(zip(COLUMNS, facts["cells"].T, strict=True))


def test_the_network_is_theirs(known):
    confidence, wrong, _ = known
    assert confidence.size == 10_000
    assert wrong.mean() == pytest.approx(0.2689)
    assert confidence[0] == 0.9552201


def test_all_140_cells(known):
    confidence, wrong, cells = known
    sweep = ab.cwsa_sweep(confidence, wrong)
    ours = {
        "threshold": sweep.threshold,
        "selective_accuracy": sweep.selective_accuracy,
        "cwsa": sweep.cwsa,
        "cwsa_plus": sweep.cwsa_plus,
        "coverage": sweep.coverage,
        "ece": np.full(20, ab.ece(confidence, wrong, bins=10, convention="right_open")),
        "aurc": np.full(20, ab.published_aurc(confidence, wrong, convention="cwsa")),
    }
    assert tuple(ours) == COLUMNS
    for name, values in ours.items():
        assert np.abs(values - cells[name]).max() < 1e-12, name


def test_each_threshold_by_its_name(known):
    confidence, wrong, cells = known
    p = ab.Predictions(confidence=confidence, loss=wrong.astype(float))
    names = ["cwsa@0.5:0.99:20", "cwsa_plus@0.5:0.99:20"]
    evaluation = ab.evaluate(p, metrics=names, interval="none", curves=False)
    values = np.array([result.value for result in evaluation.results]).reshape(2, 20)
    assert np.abs(values - [cells["cwsa"], cells["cwsa_plus"]]).max() < 1e-11
