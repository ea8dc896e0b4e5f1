"""A row for each class of a sample, to a row for each sample."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import abstain as ab
from abstain.errors import DomainError, InputError, MissingInputError, ShapeError, UnknownNameError

RNG = np.random.default_rng(0)
N, CLASSES = 40, ["cat", "dog", "the_eel"]
LABELS = RNG.integers(0, 3, N)
LOGITS = RNG.normal(size=(N, 3)) + 2 * np.eye(3)[LABELS]
PROBABILITIES = np.exp(LOGITS) / np.exp(LOGITS).sum(1, keepdims=True)
LONG = pl.DataFrame(
    {
        "image": np.repeat([f"{i}.png" for i in range(N)], 3),
        "class": CLASSES * N,
        "p": PROBABILITIES.ravel(),
        "truth": np.repeat(np.array(CLASSES)[LABELS], 3),
    }
)
ASKED = {"long": "class", "id": "image", "label": "truth"}
WIDE = ab.Predictions(
    probabilities=PROBABILITIES, labels=np.array(CLASSES)[LABELS], classes=CLASSES
)


def numbers(predictions):
    return {(r.score, r.metric.name): r.value for r in ab.evaluate(predictions, interval="none")}


def test_it_equals_wide(tmp_path):
    LONG.write_csv(tmp_path / "long.csv")
    for source in (LONG, tmp_path / "long.csv"):
        predictions = ab.read_predictions(source, **ASKED, probabilities="p")
        assert predictions.only().class_names == tuple(CLASSES)
        np.testing.assert_equal(list(numbers(predictions).values()), list(numbers(WIDE).values()))
        assert "40 samples from 120 rows with one class each" in list(map(str, predictions.notes))


@given(st.randoms(use_true_random=False))
@settings(max_examples=20)
def test_the_order_of_rows_does_not_matter(random):
    rows = list(range(LONG.height))
    random.shuffle(rows)
    result = ab.read_predictions(LONG[rows], **ASKED, probabilities="p").only()
    first = [name.removesuffix(".png") for name in LONG[rows]["image"].unique(maintain_order=True)]
    order = [int(i) for i in first]
    columns = [result.class_names.index(name) for name in CLASSES]
    np.testing.assert_array_equal(result.probabilities[:, columns], PROBABILITIES[order])
    assert result.labels.tolist() == [CLASSES[i] for i in LABELS[order]]


def test_logits_and_parts_in_which_names_come_again():
    both = pl.concat([LONG.with_columns(model=pl.lit(m), z=pl.col("p").log()) for m in "ab"])
    predictions = ab.read_predictions(both, **ASKED, logits="z", by="model")
    assert [dict(split)["model"] for split in predictions] == ["a", "b"]
    assert all(part.n == N for part in predictions.values())
    with pytest.raises(DomainError, match=r"'0\.png' has two rows for the class 'cat'"):
        ab.read_predictions(both, **ASKED, logits="z")


@pytest.mark.parametrize(
    ("frame", "error", "rule"),
    [
        (LONG[:-1], DomainError, r"'39\.png' has no row for the class 'the_eel'"),
        (
            LONG.with_columns(truth=pl.col("class")),
            DomainError,
            r"'truth' must have the same value in all rows of a sample; '0\.png' has 'cat' and 'dog'",
        ),
        (
            LONG.with_columns(image=pl.Series([None, *LONG["image"][1:]])),
            DomainError,
            "'image' must name the sample of each row; row 0 has no name",
        ),
    ],
)
def test_what_is_no_long_form_raises_an_error(frame, error, rule):
    with pytest.raises(error, match=rule):
        ab.read_predictions(frame, **ASKED, probabilities="p")


def test_a_name_is_one_number_or_text_a_row():
    blocks = LONG.with_columns(image=pl.Series([[1, 2]] * LONG.height))
    with pytest.raises(ShapeError, match=r"'image' must have one number or text per row"):
        ab.read_predictions(blocks, **ASKED, probabilities="p")


def test_options_that_are_compatible():
    with pytest.raises(MissingInputError, match="with `id`"):
        ab.read_predictions(LONG, long="class", probabilities="p", label="truth")
    with pytest.raises(InputError, match="`probabilities` or `logits`"):
        ab.read_predictions(LONG, **ASKED)
    with pytest.raises(
        UnknownNameError, match=r"no column 'clas' .*`long`\)\. Did you mean 'class'"
    ):
        ab.read_predictions(LONG, **{**ASKED, "long": "clas"}, probabilities="p")
