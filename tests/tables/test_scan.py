"""Predictions in batches: they are the predictions that the reader of whole files finds."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from abstain.errors import DomainError, FileFormatError, InputError
from abstain.tables import read_predictions, scan_predictions
from abstain.tables.parquet import row_groups
from abstain.tables.scan import bad_rows, chunks

_FORMATS = ("parquet", "csv", "tsv", "jsonl", "feather", "npz")


def _frame(n: int = 1500) -> pl.DataFrame:
    rng = np.random.default_rng(5)
    return pl.DataFrame(
        {
            "label": rng.choice(["cat", 'a "dog"', "line\nbreak"], n),
            "prediction": rng.choice(["cat", 'a "dog"', "line\nbreak"], n),
            "confidence": rng.random(n).astype(np.float32).round(3),
            "site": rng.choice(["north", "south"], n),
        }
    )


def _written(frame: pl.DataFrame, path: Path) -> Path:
    kind = path.suffix[1:]
    if kind == "npz":
        np.savez(path, **{c: frame[c].to_numpy().astype(_plain(frame[c])) for c in frame.columns})
    elif kind == "tsv":
        frame.write_csv(path, separator="\t")
    else:
        write = {"parquet": "write_parquet", "csv": "write_csv", "jsonl": "write_ndjson"}
        options = {"row_group_size": 170} if kind == "parquet" else {}
        getattr(frame, write.get(kind, "write_ipc"))(path, **options)
    return path


def _plain(column: pl.Series) -> str:
    return "U16" if column.dtype == pl.String else "f4"


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(chunks, "_TEXT_CHUNK_BYTES", 4000)
    monkeypatch.setattr(chunks, "_MIN_ROWS", 10)
    monkeypatch.setattr(chunks, "_MAX_ROWS", 400)


@pytest.mark.parametrize("kind", _FORMATS)
def test_batches_are_what_the_whole_file_is(tmp_path, kind):
    path = _written(_frame(), tmp_path / f"all.{kind}")
    predictions = read_predictions(path, by="site")
    batches = list(scan_predictions(path, by="site").batches())
    assert len(batches) > 3
    assert {split for batch in batches for split in batch.splits} == set(predictions)
    for split, part in predictions.items():
        own = [batch.splits[split] for batch in batches]
        for name in ("correct", "ids"):
            joined = np.concatenate([getattr(p, name) for p in own])
            assert np.array_equal(joined, getattr(part, name)), name
        confidence = np.concatenate([p.confidence["confidence"] for p in own])
        assert np.array_equal(confidence, part.confidence["confidence"])
        assert confidence.dtype == part.confidence["confidence"].dtype
    # How far a batch is in its file, for those who wait.
    shares = [batch.chunk.share for batch in batches]
    read = np.cumsum([sum(p.n for p in batch.splits.values()) for batch in batches])
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert np.allclose(shares, read / read[-1], atol=0.06)


def test_arrays_that_are_not_compressed_stay_on_the_disk(tmp_path):
    _written(_frame(), tmp_path / "all.npz")
    assert isinstance(
        chunks._memory_mapped_array(tmp_path / "all.npz", "confidence", (0, 0, 0)), np.memmap
    )


def test_row_groups_are_those_that_were_written(tmp_path):
    path = _written(_frame(1000), tmp_path / "all.parquet")
    assert row_groups(path) == (170,) * 5 + (150,)
    places = [chunk.location for chunk in chunks.iter_chunks(path)]
    assert places == ["row groups 0 to 1", "row groups 2 to 3", "row groups 4 to 5"]


def test_a_wide_row_group_is_cut(tmp_path):
    path = tmp_path / "all.parquet"
    _frame(1000).write_parquet(path)
    result = list(chunks.iter_chunks(path))
    assert [(piece.start, piece.stop) for piece in result] == [(0, 400), (400, 800), (800, 1000)]
    assert result[1].location == "row group 0, rows 400 to 799"


def test_patterns_and_folders_stand_for_their_files_in_order_of_the_numbers(tmp_path):
    for number in (10, 9, 1):
        _written(_frame(20), tmp_path / f"part-{number}.csv")
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".part-1.csv.crc").touch()
    for source in (str(tmp_path / "part-*.csv"), tmp_path):
        names = [path.name for path in scan_predictions(source).paths]
        assert names == ["part-1.csv", "part-9.csv", "part-10.csv"]
    with pytest.raises(InputError, match="no file matches the pattern"):
        scan_predictions(str(tmp_path / "*.parquet"))
    with pytest.raises(InputError, match="occurs twice"):
        scan_predictions([tmp_path, tmp_path / "part-1.csv"])


def test_folders_that_are_named_like_files_are_opened_by_a_pattern(tmp_path):
    for name in ("a.parquet", "b.parquet"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "_SUCCESS").write_text("")
        _written(_frame(20), tmp_path / name / "part-0.parquet")
    (tmp_path / "notes").mkdir()
    for pattern in ("*", "*.parquet", "**/*"):
        scan = scan_predictions(f"{tmp_path}/{pattern}")
        assert [path.parent.name for path in scan.paths] == ["a.parquet", "b.parquet"]


def test_files_are_taken_apart_by_their_names(tmp_path):
    for name in "ab":
        _written(_frame(20), tmp_path / f"{name}.csv")
    results = [list(b.splits) for b in scan_predictions(tmp_path, by="filename").batches()]
    assert results == [[(("file", "a.csv"),)], [(("file", "b.csv"),)]]


# ------------------------------------------------------------------------------------ faults
def _with_nan(path: Path, row: int) -> Path:
    values = _frame()["confidence"].to_numpy().copy()
    values[row] = np.nan
    return _written(_frame().with_columns(confidence=values), path)


@pytest.mark.parametrize(
    ("kind", "place"), [("parquet", "row groups 2 to 3"), ("feather", "rows 400 to 799")]
)
def test_one_bad_row_of_many_is_named_with_its_place(tmp_path, kind, place):
    path = _with_nan(tmp_path / f"part-3.{kind}", 500)
    scan = scan_predictions(path)
    with pytest.raises(DomainError) as caught:
        list(scan.batches())
    text = str(caught.value)
    assert text.startswith(f"part-3.{kind}, {place}: 1 of ")
    first = chunks.iter_chunks(path)
    start = next(piece.start for piece in first if piece.start <= 500 < piece.stop)
    assert f"in row {500 - start}, counted from 0" in text
    # No batch knows the lowest confidence of all rows.
    assert "reject" not in text


def test_a_bad_row_is_omitted_and_counted(tmp_path):
    path = _with_nan(tmp_path / "all.parquet", 500)
    batches = list(scan_predictions(path, skip_bad=True).batches())
    assert sum(batch.splits[()].n for batch in batches) == 1499
    assert sum(skipped.n_rows for batch in batches for skipped in batch.skipped) == 1


def test_a_row_that_breaks_a_rule_of_predictions_is_omitted_too(tmp_path):
    loss = np.random.default_rng(0).integers(0, 2, 1500).astype(float)
    loss[[3, 700, 701]] = -1
    frame = pl.DataFrame({"loss": loss, "confidence": np.linspace(0, 1, 1500)})
    path = _written(frame, tmp_path / "all.parquet")
    with pytest.raises(DomainError, match=r"^all.parquet, row groups 0 to 1: .*loss"):
        list(scan_predictions(path).batches())
    batches = list(scan_predictions(path, skip_bad=True).batches())
    left_out = [skipped for batch in batches for skipped in batch.skipped]
    assert [skipped.n_rows for skipped in left_out] == [1, 2]
    assert sum(batch.splits[()].n for batch in batches) == 1497


@pytest.mark.parametrize(("tries", "given_up"), [(1000, False), (30, True)])
def test_many_bad_rows_cost_no_sound_ones_unless_it_is_said(tmp_path, monkeypatch, tries, given_up):
    monkeypatch.setattr(bad_rows, "_MIN_TRIALS", tries)
    monkeypatch.setattr(chunks, "_MIN_ROWS", 3000)
    monkeypatch.setattr(chunks, "_MAX_ROWS", 3000)
    confidence = np.linspace(0, 1, 3000)
    confidence[::50] = np.inf
    frame = pl.DataFrame({"loss": [0.0, 1.0] * 1500, "confidence": confidence})
    frame.write_parquet(tmp_path / "all.parquet")
    (batch,) = scan_predictions(tmp_path, skip_bad=True).batches()
    (left_out,) = batch.skipped
    assert batch.splits[()].n + left_out.n_rows == batch.n_rows == 3000
    assert (left_out.n_rows > 60) is given_up
    assert left_out.n_rows < 2000
    assert ("rows in ranges with a bad row" in left_out.reason) is given_up


def test_a_word_among_the_numbers_of_a_text_is_omitted_alone(tmp_path):
    lines = [f"{i % 2},1,{i / 100}" for i in range(100)]
    lines[40] = "0,1,oops"
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["label,prediction,confidence", *lines]))
    (batch,) = scan_predictions(path, confidence="confidence", skip_bad=True).batches()
    assert [left.n_rows for left in batch.skipped] == [1]
    (own,) = batch.splits.values()
    assert own.n == 99
    np.testing.assert_array_equal(own.confidence["confidence"], np.delete(np.arange(100) / 100, 40))


def test_the_rows_of_a_text_that_cannot_be_read_are_not_counted(tmp_path):
    line = '{"label": 1, "prediction": 1, "confidence": 0.5}\n'
    (tmp_path / "a.jsonl").write_text(line * 9)
    (tmp_path / "b.jsonl").write_text(line * 4 + '{"label": 1, "pred\n')
    batches = list(scan_predictions(tmp_path, skip_bad=True).batches())
    assert [(batch.n_rows, len(batch.splits)) for batch in batches] == [(9, 1), (0, 0)]
    assert [left.n_rows for left in batches[1].skipped] == [-1]


def test_a_part_that_is_cut_short_is_named_and_can_be_omitted(tmp_path):
    for name in "abc":
        _written(_frame(200), tmp_path / f"{name}.parquet")
    whole = (tmp_path / "b.parquet").read_bytes()
    (tmp_path / "b.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FileFormatError, match=r"^b.parquet cannot be read"):
        scan_predictions(tmp_path)
    scan = scan_predictions(tmp_path, skip_bad=True)
    assert [path.name for path in scan.paths] == ["a.parquet", "c.parquet"]
    assert [skipped.source for skipped in scan.skipped] == ["b.parquet"]


def test_a_damaged_row_group_is_named(tmp_path):
    path = _written(_frame(1000), tmp_path / "all.parquet")
    whole = bytearray(path.read_bytes())
    middle = len(whole) // 2
    whole[middle - 200 : middle + 200] = bytes(400)
    path.write_bytes(bytes(whole))
    with pytest.raises(FileFormatError, match=r"^all.parquet, row groups \d to \d cannot be read"):
        list(scan_predictions(path).batches())
    batches = list(scan_predictions(path, skip_bad=True).batches())
    assert 0 < sum(batch.splits[()].n for batch in batches if batch.splits) < 1000
    assert any(skipped.n_rows >= 150 for batch in batches for skipped in batch.skipped)


def test_a_file_with_other_columns_is_named(tmp_path):
    _written(_frame(20), tmp_path / "a.csv")
    _written(_frame(20).rename({"confidence": "confidance"}), tmp_path / "b.csv")
    with pytest.raises(FileFormatError, match=r"^b.csv has no column 'confidence'.*a.csv"):
        scan_predictions(tmp_path)


def test_a_file_with_text_for_numbers_is_named(tmp_path):
    _written(_frame(20), tmp_path / "a.parquet")
    other = _frame(20).with_columns(confidence=pl.lit("high"))
    _written(other, tmp_path / "b.parquet")
    with pytest.raises(FileFormatError, match=r"^b.parquet has text in the column 'confidence'"):
        scan_predictions(tmp_path)


def test_abstentions_cannot_be_ranked_last_before_all_rows_are_read(tmp_path):
    with pytest.raises(InputError, match="lowest confidence of all rows"):
        scan_predictions(_written(_frame(20), tmp_path / "a.csv"), missing="reject")


def test_a_column_that_sets_rows_apart_is_named(tmp_path):
    path = _written(_frame(20).with_columns(study=pl.lit("iid")), tmp_path / "a.csv")
    said = "all values of column 'study' are evaluated together; pass by='study'"
    assert any(str(note).startswith(said) for note in scan_predictions(path).notes)
    assert not any(str(note).startswith(said) for note in scan_predictions(path, by="study").notes)


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".feather", ".npz"])
def test_parts_without_rows_are_parts(tmp_path, suffix):
    """Spark leaves them wherever a partition was filtered to nothing, and often the first."""
    frame = _frame(40)
    for part, rows in enumerate((0, 0, 40, 0)):
        _written(frame.head(rows), tmp_path / f"{part}{suffix}")
    scan = scan_predictions(tmp_path)
    assert sum(batch.n_rows for batch in scan.batches()) == 40
    with pytest.raises(FileFormatError, match="has a header but no rows"):
        scan_predictions([tmp_path / f"0{suffix}", tmp_path / f"1{suffix}"])


def test_arrays_that_are_written_anew_are_read_anew(tmp_path):
    """What was kept of the labels stood beside the new confidences."""
    path = tmp_path / "all.npz"
    for seed in range(2):
        rng = np.random.default_rng(seed)
        confidence, correct = rng.random(50), rng.random(50) < 0.5
        np.savez(path, confidence=confidence, correct=correct)
        (batch,) = scan_predictions(path).batches()
        assert np.array_equal(batch.splits[()].loss, 1.0 - correct)
        assert np.array_equal(batch.splits[()].confidence["confidence"], confidence)


def test_files_of_one_name_are_named_by_their_folders(tmp_path):
    for day in ("mon", "tue"):
        (tmp_path / day).mkdir()
        _written(_frame(60), tmp_path / day / "part-0.parquet")
    scan = scan_predictions(f"{tmp_path}/*/*.parquet", by="filename")
    splits = [split for batch in scan.batches() for split in batch.splits]
    assert list(dict.fromkeys(splits)) == [
        (("file", "mon/part-0.parquet"),),
        (("file", "tue/part-0.parquet"),),
    ]
    _with_nan(tmp_path / "tue" / "part-0.parquet", 5)
    with pytest.raises(DomainError, match=r"^tue/part-0.parquet, row group"):
        list(scan_predictions(f"{tmp_path}/*/*.parquet").batches())


@pytest.mark.parametrize("kind", ["parquet", "feather"])
def test_signs_of_patterns_in_names_are_names(tmp_path, kind):
    folder = tmp_path / "run[1]"
    folder.mkdir()
    for name in ("a*", "[b]"):
        _written(_frame(60), folder / f"{name}.{kind}")
    assert sum(batch.n_rows for batch in scan_predictions(folder).batches()) == 120


def test_a_text_beside_typed_files_is_read_by_its_rows(tmp_path):
    _frame(60).write_parquet(tmp_path / "a.parquet")
    _frame(60).write_csv(tmp_path / "b.csv")
    assert sum(batch.n_rows for batch in scan_predictions(tmp_path).batches()) == 120


@pytest.mark.parametrize("column", ["label", "confidence"])
def test_a_part_that_lacks_every_value_is_omitted_and_counted(tmp_path, column):
    frame = _frame(60).with_columns(label=pl.lit("a"), prediction=pl.lit("b"))
    frame.write_parquet(tmp_path / "a.parquet")
    frame.with_columns(pl.lit(None).alias(column)).write_parquet(tmp_path / "b.parquet")
    with pytest.raises(DomainError, match=f"^b.parquet.* have no {column}"):
        list(scan_predictions(tmp_path).batches())
    last = list(scan_predictions(tmp_path, missing="drop").batches())[-1]
    assert not last.splits
    assert f"dropped: no {column}" in str(last.notes[0])
    skipped = [b.skipped for b in scan_predictions(tmp_path, skip_bad=True).batches()]
    assert sum(left.n_rows for batch in skipped for left in batch) == 60
