"""Counts in Parquet files, on which polars aborts the process or waits forever."""

import contextlib
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import abstain as ab
from abstain.errors import AbstainError, FileFormatError
from abstain.tables import read_predictions
from abstain.tables.parquet import check_pages, read_footer


def frame(n=960):
    rng = np.random.default_rng(0)
    confidence = rng.random(n)
    return pl.DataFrame({"correct": rng.random(n) < confidence, "confidence": confidence})


@pytest.fixture
def negative_count(tmp_path):
    """A file in which the header of a page claims -128 values."""
    path = tmp_path / "preds.parquet"
    frame().write_parquet(path, row_group_size=120, compression="uncompressed")
    content = bytearray(path.read_bytes())
    chunk = read_footer(path)[1].chunks[1]
    # The first field of the header of the data page: 120, in the coding of Thrift.
    at = content.index(b"\x2c\x15\xf0\x01", chunk.start)
    assert at < chunk.start + 30
    content[at + 2] = 0xFF
    path.write_bytes(content)
    return path


READ = "import sys, abstain as ab; ab.evaluate({}, metrics=['augrc'], curves=False)"


@pytest.mark.parametrize("source", ["sys.argv[1]", "ab.scan_predictions(sys.argv[1])"])
def test_a_negative_count_does_not_abort_the_process(negative_count, source):
    program = [sys.executable, "-c", READ.format(source), str(negative_count)]
    run = subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 1, run.stderr
    assert "the column 'confidence' is damaged" in run.stderr.splitlines()[-1]


def test_other_columns_and_rows_are_still_read(negative_count):
    check_pages(negative_count, ["correct"], "preds.parquet")
    check_pages(negative_count, ["confidence"], "preds.parquet", 0, 120)
    with pytest.raises(FileFormatError, match=r"^rows: .*'confidence' is damaged|^rows cannot"):
        check_pages(negative_count, ["confidence"], "rows", 100, 121)


@pytest.mark.parametrize("seed", range(30))
def test_a_damaged_footer_raises_an_error_or_is_read_at_once(tmp_path, seed):
    path, rng = tmp_path / "preds.parquet", np.random.default_rng(seed)
    frame().write_parquet(path, row_group_size=120)
    content = bytearray(path.read_bytes())
    length = int.from_bytes(content[-8:-4], "little")
    for at in len(content) - 8 - rng.integers(1, length, 3):
        content[at] = rng.integers(256)
    path.write_bytes(content)
    with contextlib.suppress(AbstainError):
        read_predictions(path)
    with contextlib.suppress(AbstainError):
        ab.evaluate(ab.scan_predictions(path), metrics=["augrc"], curves=False)


@pytest.mark.parametrize(
    "options",
    [
        {"compression": "uncompressed"},
        {"compression": "zstd", "row_group_size": 77},
        {"data_page_size": 64},
        {"statistics": "full"},
    ],
)
def test_files_of_polars_pass(tmp_path, options):
    whole = frame().with_columns(
        text=pl.lit("a long text " * 100),
        scores=pl.concat_list("confidence", "confidence"),
        none=pl.lit(None, pl.Float64),
    )
    path = tmp_path / "preds.parquet"
    whole.write_parquet(path, **options)
    check_pages(path, whole.columns, path.name)
    assert sum(group.n_rows for group in read_footer(path)) == whole.height
    assert {chunk.path[0] for chunk in read_footer(path)[0].chunks} == set(whole.columns)


@pytest.mark.parametrize(
    "options",
    [
        {"data_page_version": "2.0"},
        {"use_dictionary": False, "column_encoding": {"confidence": "BYTE_STREAM_SPLIT"}},
        {"write_page_checksum": True, "write_page_index": True},
        {"compression": "gzip", "data_page_size": 500},
    ],
)
def test_files_of_pyarrow_pass(tmp_path, options):
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "preds.parquet"
    parquet.write_table(frame().to_arrow(), path, **options)
    check_pages(path, ["correct", "confidence"], path.name)
    assert read_predictions(path).only().n == 960
