"""Label noise: what the given labels count as failures, by hand, and on predictions of others."""

from pathlib import Path

import numpy as np
import pytest

import abstain as ab
from abstain.errors import DomainError, InputError
from abstain_bench.studies import study_label_noise

REAL = Path("../shared/data/real")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng = np.random.default_rng(0)
    n = 400
    labels = rng.integers(0, 3, n)
    scores = rng.normal(size=(n, 3)) + 2.5 * np.eye(3)[labels]
    probabilities = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    given = np.where(rng.random(n) < 0.05, (labels + 1) % 3, labels)
    path = tmp_path_factory.mktemp("noise") / "noisy.npz"
    np.savez(path, probabilities=probabilities, labels=given, corrected_labels=labels)
    return path, probabilities, given, labels


def test_metrics_by_either_labels_are_those_of_the_functions(table):
    path, probabilities, given, labels = table
    result = study_label_noise(path, scores=["msr"])
    confidence, answer = probabilities.max(axis=1), probabilities.argmax(axis=1)
    wrong = {"original": (answer != given) * 1.0, "corrected": (answer != labels) * 1.0}
    rows = {row["metric"]: row for row in result.rows()}
    assert {row["data"] for row in result.rows()} == {"noisy"}
    for name, loss in wrong.items():
        assert rows["AURC"][name] == pytest.approx(ab.aurc(confidence, loss), rel=1e-9)
        assert rows["AUGRC"][name] == pytest.approx(ab.augrc(confidence, loss), rel=1e-9)
    errors = (wrong["original"] > 0) & (wrong["corrected"] == 0)
    added = ab.sample_contributions(confidence, wrong["original"], metric="augrc")
    share = added[errors].sum() / added.sum()
    assert rows["AUGRC"]["label_error_share"] == pytest.approx(share, rel=1e-9)
    last = result.rows("silent")[-1]
    hidden = int(((wrong["original"] == 0) & (wrong["corrected"] > 0)).sum())
    assert (last["failures"], last["label_errors"], last["hidden"]) == (
        wrong["original"].sum(), errors.sum(), hidden,
    )  # fmt: skip
    tenth = np.argsort(-confidence)[:40]
    row = next(row for row in result.rows("silent") if row["coverage"] == 0.1)
    assert (row["failures"], row["label_errors"]) == (
        wrong["original"][tenth].sum(), errors[tenth].sum(),
    )  # fmt: skip


def test_simulated_noise_is_the_share_asked_for_and_seeded():
    one, two = (study_label_noise(noise=0.05, n=20_000, rng=1) for _ in range(2))
    assert one.tables == two.tables
    failures = one.rows("silent")[-1]
    before = one.rows()[0]
    # Of right answers a share of the noise becomes a failure, of wrong ones a third is hidden.
    assert failures["label_errors"] / 20_000 == pytest.approx(0.05 * 0.8, abs=0.01)
    assert before["original"] > before["corrected"]
    assert str(failures["label_errors"]) in one.verdict[0]


def test_what_says_nothing_is_refused(table):
    path, *_ = table
    with pytest.raises(InputError, match="`label` and `corrected` must differ in some rows"):
        study_label_noise(path, label="corrected_labels")
    with pytest.raises(InputError, match="`n` must be at least 100"):
        study_label_noise(n=10)
    with pytest.raises(DomainError, match="`noise`"):
        study_label_noise(noise=2.0)


@pytest.mark.skipif(not REAL.exists(), reason="the predictions of others are not here")
@pytest.mark.parametrize(("name", "labels", "failures"), [("mnist", 10, 87), ("imdb", 173, 2606)])
def test_labels_that_people_corrected(name, labels, failures):
    result = study_label_noise(REAL / f"{name}_crossval_probabilities.npz", scores=["msr"])
    last = result.rows("silent")[-1]
    assert (last["failures"], last["label_errors"], last["hidden"]) == (failures, labels, 0)
    aurc, augrc, _ = result.rows()
    assert aurc["change"] < augrc["change"] < -labels / failures


@pytest.mark.parametrize(
    ("seed", "said"), [(0, "1 failure is hidden by"), (1, "0 failures are hidden by")]
)
def test_hidden_failures_are_counted_in_words(seed, said):
    result = study_label_noise(n=2_000, rng=seed, scores=["msr"])
    assert said in result.verdict[0]
