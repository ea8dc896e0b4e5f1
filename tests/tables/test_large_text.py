"""Large CSV files are read by columns, and mean what they do when all columns are read."""

import polars as pl
import pytest

from abstain.tables import files, read_predictions
from abstain.tables._lines import count_simple_rows

HEAD = "label,prediction,confidence,x1,x2,note"


def lines(rows=20, **changed):
    """Rows of plain values; `changed` maps "row_N" to what stands there instead."""
    plain = [f"{i % 3},{i % 2},0.{i + 10},{i},{i / 4},w{i}" for i in range(rows)]
    for name, row in changed.items():
        plain[int(name.removeprefix("row_"))] = row
    return [HEAD, *plain]


@pytest.fixture
def parsed(monkeypatch):
    """Treat every file as large, with types from three rows; return the columns of each parse."""
    monkeypatch.setattr(files, "_LARGE_CSV_BYTES", 0)
    monkeypatch.setattr(files, "_INFERENCE_ROWS", 3)
    calls, real = [], pl.read_csv

    def read_csv(*args, **options):
        if not isinstance(args[0], bytes):  # the first rows
            calls.append(options.get("columns", "all"))
        return real(*args, **options)

    monkeypatch.setattr(pl, "read_csv", read_csv)
    return calls


def test_only_the_columns_that_are_used_are_parsed(tmp_path, parsed):
    path = tmp_path / "wide.csv"
    names = [f"x{i}" for i in range(100)]
    rows = [",".join(["a", "b", "0.5", *map(str, range(100))])] * 8
    path.write_text("\n".join([",".join(["label", "prediction", "confidence", *names]), *rows]))
    reading = read_predictions(path)
    assert reading.only().n == 8
    assert sorted(i for columns in parsed for i in columns) == [0, 1, 2]
    assert any("look like class scores" in str(note) for note in reading.notes)


CASES = {
    "plain": lines(),
    "whole numbers and then decimals": lines(row_9="1,1,0.5,1,1.5,w"),
    "a class that is text in a late row": lines(row_9="cat,1,0.5,1,1,w"),
    "numbers written in several ways": lines(row_9="01,1,0.5,1,1,w"),
    "a number too large for 64 bits": lines(row_9="1,1,0.5,99999999999999999999,1,w"),
    "a confidence that is no number": lines(row_9="1,1,high,1,1,w"),
    "missing cells": lines(row_9="1,1,,1,1,w"),
    "short rows": lines(row_9="1,1,0.5"),
    "long rows": lines(row_9="1,1,0.5,1,1,w,7,8"),
    "a blank line": lines(row_9=""),
    "a line of nothing but commas": lines(row_9=",,,,,"),
    "quotes": lines(row_9='"1",1,0.5,1,1,"a, b"'),
    "a quote that is not closed": lines(row_9='1,1,0.5,1,1,"w'),
    "a column empty at first": [HEAD, "1,1,0.5,,,", "1,1,0.6,,,", "1,1,0.4,,,", "1,0,0.4,,7,"],
    "fewer rows than the first": lines(2),
    "a large decimal": lines(row_9="1,1,123456789012345678901.5,1,1,w"),
}


def told(path):
    try:
        reading = read_predictions(path, by=())
    except Exception as error:  # noqa: BLE001  whatever is raised is to be the same
        return f"{type(error).__name__}: {error}"
    p = reading.only()
    columns = {k: (v.dtype, v.tolist()) for k, v in p.confidence.items()}
    return reading.notes, p.labels.tolist(), p.prediction.tolist(), columns


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("case", CASES)
def test_by_columns_reads_what_the_whole_does(tmp_path, monkeypatch, case, end):
    path = tmp_path / "some.csv"
    path.write_bytes(end.join(CASES[case]).encode() + end.encode() * (len(case) % 2))
    whole = told(path)
    monkeypatch.setattr(files, "_LARGE_CSV_BYTES", 0)
    monkeypatch.setattr(files, "_INFERENCE_ROWS", 3)
    assert told(path) == whole


@pytest.mark.parametrize("size", [1, 7, 64, 1 << 20])
def test_rows_are_counted_across_the_ends_of_chunks(tmp_path, monkeypatch, size):
    monkeypatch.setattr("abstain.tables._lines._SEARCH_BYTES", size)
    path = tmp_path / "some.csv"
    for case, rows in (
        ("plain", 20),
        ("quotes", None),
        ("a blank line", None),
        ("long rows", None),
    ):
        for last in ("", "\n"):
            path.write_text("\n".join(CASES[case]) + last)
            assert count_simple_rows(path, 6, ",") == rows, case
