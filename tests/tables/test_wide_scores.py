"""Many columns of class scores: stacked by rows, let go, and searched only where it can matter."""

import tracemalloc

import numpy as np
import polars as pl
import pytest

from abstain.errors import DomainError
from abstain.predictions.outputs import ClassScores
from abstain.tables import _conversion, read_predictions
from abstain.tables.column import from_array


def table(rng, rows=700, classes=40):
    scores = rng.random((rows, classes), dtype=np.float32)
    scores /= scores.sum(axis=1, keepdims=True)
    return {"label": rng.integers(0, classes, rows)}, scores


def test_columns_of_several_types_become_rows_of_the_widest():
    rng = np.random.default_rng(0)
    columns = [rng.random(600), rng.random(600, dtype=np.float32), rng.integers(0, 9, 600)]
    block = _conversion.stack_class_scores(
        [from_array(x, str(i)) for i, x in enumerate(columns)], "logits", ""
    )
    assert block.dtype == np.float64
    assert block.flags.c_contiguous
    assert np.array_equal(block, np.column_stack(columns))


@pytest.mark.parametrize("nothing", [np.nan, 0.0])
def test_rows_without_an_answer_are_found_wherever_others_begin(nothing):
    rng = np.random.default_rng(1)
    block = np.full((60, 30), nothing)
    for row in range(60):
        if row % 7:
            block[row, rng.integers(0, 30)] = 0.5
    result = (
        _conversion.rows_all_nan(block) if np.isnan(nothing) else _conversion.rows_all_zero(block)
    )
    assert np.flatnonzero(result).tolist() == list(range(0, 60, 7))


def test_a_file_of_scores_reads_as_the_block_does(tmp_path):
    label, scores = table(np.random.default_rng(2))
    path = tmp_path / "wide.parquet"
    pl.DataFrame(label | {f"p_{k}": scores[:, k] for k in range(40)}).write_parquet(path)
    read = read_predictions(path, probabilities="p_*").only()
    block = read_predictions(label | {"p": scores}, probabilities="p").only()
    assert np.array_equal(read.probabilities, block.probabilities)
    assert np.array_equal(read.correct, block.correct)


def test_a_column_of_scores_may_also_split_the_rows():
    columns = {"label": [0, 1, 1], "p_0": [1.0, 0.0, 1.0], "p_1": [0.0, 1.0, 0.0]}
    reading = read_predictions(pl.DataFrame(columns), probabilities="p_*", by="p_1")
    assert [split[0][1] for split in reading] == ["0.0", "1.0"]
    gone = columns | {"p_0": [1.0, 0.0, 0.0]}
    with pytest.raises(DomainError, match="all missing or 0"):
        read_predictions(pl.DataFrame(gone), probabilities="p_*")


def test_the_largest_of_read_only_scores_is_found_without_a_copy():
    scores = np.random.default_rng(3).random((60_000, 40), dtype=np.float32)
    scores.flags.writeable = False
    tracemalloc.start()
    result = ClassScores(scores, are_logits=True).top_classes()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < scores.nbytes / 4
    assert np.array_equal(result, scores.argmax(axis=1))
