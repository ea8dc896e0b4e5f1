"""Results on disk: exact, whole or not at all, harmless in a spreadsheet."""

import csv

import numpy as np
import polars as pl
import pytest

from abstain.errors import InputError
from abstain.tables import write_results

ROWS = [
    {"metric": "aurc", "value": 0.1 + 0.2, "n": 5},
    {"metric": "augrc", "value": float("nan"), "n": None},
    {"metric": "sele", "value": np.float64(1) / 3, "reason": 'x, y\n"z"'},
]


def test_both_files_hold_the_rows(tmp_path):
    files = write_results(ROWS, tmp_path / "a" / "b")
    assert (files.parquet.name, files.csv.name) == ("results.parquet", "results.csv")
    exact = pl.read_parquet(files.parquet)
    assert exact.columns == ["metric", "value", "n", "reason"]
    assert exact["value"][0] == 0.1 + 0.2
    assert exact["value"].is_nan().to_list() == [False, True, False]
    assert exact["n"].to_list() == [5, None, None]
    text = pl.read_csv(files.csv)
    assert text["value"][0] == 0.1 + 0.2
    assert text["value"][2] == 1 / 3
    assert "augrc,NaN,," in files.csv.read_text()
    assert text["reason"].to_list() == [None, None, 'x, y\n"z"']


def test_formulas_are_text_in_csv_and_untouched_in_parquet(tmp_path):
    texts = ["=cmd|'/c calc'!A1", "+1", "-1", "@x", "\tx", "plain", "-x", "--1"]
    files = write_results([{"=name": t, "v": -1.5} for t in texts], tmp_path)
    assert pl.read_parquet(files.parquet)["=name"].to_list() == texts
    cells = pl.read_csv(files.csv, infer_schema=False)
    assert cells.columns == ["'=name", "v"]
    escaped = ["'=cmd|'/c calc'!A1", "+1", "-1", "'@x", "'\tx", "plain", "'-x", "'--1"]
    assert cells["'=name"].to_list() == escaped
    assert set(cells["v"]) == {"-1.5"}


SIGNS = ["=", "+", "-", "@", "＝", "＋", "－", "＠", "﹦", "﹢", "﹣", "﹫"]
BEFORE = ["", " ", "  ", "\t", "\r", "\n", "\u00a0", "\u3000", "\u200b", "\ufeff", " \t "]


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("sign", SIGNS)
def test_a_sign_of_a_formula_is_seen_in_any_width_and_after_blanks(tmp_path, sign, before):
    cell = f"{before}{sign}cmd|'/c calc'!A1"
    files = write_results([{"text": cell, cell: "x"}], tmp_path)
    with files.csv.open(encoding="utf-8", newline="") as file:
        names, cells = csv.reader(file)
    assert names == ["text", f"'{cell}"]
    assert cells == [f"'{cell}", "x"]
    assert pl.read_parquet(files.parquet)["text"].to_list() == [cell]


@pytest.mark.parametrize("cell", ["a=b", " a", "a @ b", "-1.5", "+2", "–", "(=1)", "", "−1"])
def test_other_cells_stay_as_they_are(tmp_path, cell):
    files = write_results([{"text": cell, "n": 1}], tmp_path)
    with files.csv.open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file))[1] == [cell, "1"]


def test_escaped_names_stay_apart(tmp_path):
    files = write_results([{"=a": 1, "'=a": 2, "''=a": 3}], tmp_path)
    assert pl.read_parquet(files.parquet).columns == ["=a", "'=a", "''=a"]
    cells = pl.read_csv(files.csv)
    assert cells.columns == ["'''=a", "'=a", "''=a"]
    assert cells.row(0) == (1, 2, 3)


@pytest.mark.parametrize(
    "make", [pl.DataFrame, lambda rows: pytest.importorskip("pandas").DataFrame(rows)]
)
def test_frames(tmp_path, make):
    files = write_results(make([{"a": "x", "b": 1.5}, {"a": "y", "b": 2.5}]), tmp_path, name="t")
    assert files.csv.read_text() == "a,b\nx,1.5\ny,2.5\n"
    assert pl.read_parquet(files.parquet)["b"].to_list() == [1.5, 2.5]


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    write_results([{"a": 1}], tmp_path)
    before = sorted(p.name for p in tmp_path.iterdir())
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left")))
    with pytest.raises(InputError, match=r"parquet' cannot be written: No space left"):
        write_results([{"a": 2}], tmp_path)
    assert (
        sorted(p.name for p in tmp_path.iterdir()) == before == ["results.csv", "results.parquet"]
    )
    assert pl.read_parquet(tmp_path / "results.parquet")["a"].to_list() == [1]


def test_the_folder_is_a_file(tmp_path):
    (tmp_path / "x").write_text("")
    for place in (tmp_path / "x", tmp_path / "x" / "y"):
        with pytest.raises(InputError, match=r"cannot be written: '.*x' is a file, not a folder"):
            write_results([{"a": 1}], place)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "no results to write"),
        (pl.DataFrame({"a": []}), "no results to write"),
        ([{"a": [1, 2]}], "column 'a' has list in row 0"),
        ([{"a": 1}, {"a": "x"}], "column 'a' of the results mixes int, str"),
        ([3], "each row must be a dict"),
        ([{1: 2}], "names of columns must be text"),
        ({"a": 1}, "a dataframe or a list of dicts"),
    ],
)
def test_bad_rows(tmp_path, rows, message):
    with pytest.raises(InputError, match=message):
        write_results(rows, tmp_path)
    assert not list(tmp_path.iterdir())
