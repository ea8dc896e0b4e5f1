"""Data sets of Hugging Face: folders as `save_to_disk` writes them, and objects where there are."""

import json

import numpy as np
import polars as pl
import pytest
from tests.peers import import_peer

import abstain as ab
from abstain.errors import AbstainError, FileFormatError, InputError

COLUMNS = {"label": [0, 1, 1, 0], "prediction": [0, 1, 0, 0], "confidence": [0.9, 0.8, 0.6, 0.7]}


def folder_of(folder, frame, parts=2):
    """Write what `save_to_disk` of datasets 5.2 writes: Arrow streams and the list of them."""
    folder.mkdir(parents=True)
    names = [f"data-{i:05}-of-{parts:05}.arrow" for i in range(parts)]
    step = -(-frame.height // parts)
    for i, name in enumerate(names):
        frame[i * step : (i + 1) * step].write_ipc_stream(folder / name)
    state = {"_data_files": [{"filename": name} for name in names], "_split": None}
    (folder / "state.json").write_text(json.dumps(state))
    (folder / "dataset_info.json").write_text("{}")
    return folder


def test_a_folder_is_read(tmp_path):
    folder = folder_of(tmp_path / "set", pl.DataFrame(COLUMNS))
    result = ab.read_predictions(folder).only()
    assert result.correct.tolist() == [True, True, False, True]
    assert ab.evaluate(folder).value("accuracy") == 0.75


def test_splits_are_parts(tmp_path):
    for name, rows in (("train", 4), ("test", 3)):
        folder_of(tmp_path / "set" / name, pl.DataFrame(COLUMNS)[:rows])
    (tmp_path / "set" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    predictions = ab.read_predictions(tmp_path / "set")
    assert {split: part.n for split, part in predictions.items()} == {
        (("split", "train"),): 4,
        (("split", "test"),): 3,
    }


@pytest.mark.parametrize(
    ("state", "rule"),
    [
        ('{"_data_files": []}', "must list its files"),
        ('{"_data_files": [{"filename": "../other.arrow"}]}', "must list its files"),
        ('{"_data_files": 3}', "must list its files"),
        ("{", "state.json cannot be read"),
        ('{"_data_files": [{"filename": "none.arrow"}]}', "there is no file"),
    ],
)
def test_a_list_that_leads_nowhere_or_elsewhere_raises_an_error(tmp_path, state, rule):
    folder = folder_of(tmp_path / "set", pl.DataFrame(COLUMNS))
    (folder / "state.json").write_text(state)
    with pytest.raises(AbstainError, match=rule):
        ab.read_predictions(folder)


def test_a_damaged_part_is_named(tmp_path):
    folder = folder_of(tmp_path / "set", pl.DataFrame(COLUMNS))
    (folder / "data-00001-of-00002.arrow").write_bytes(b"nothing of Arrow")
    with pytest.raises(FileFormatError, match=r"set/data-00001-of-00002\.arrow"):
        ab.read_predictions(folder)


@pytest.mark.peers
def test_objects_are_read_as_their_rows_are_requested(tmp_path):
    datasets = import_peer("datasets")
    dataset = datasets.Dataset.from_dict(COLUMNS)
    assert ab.evaluate(dataset).value("accuracy") == 0.75
    chosen = ab.read_predictions(dataset.select([2, 0])).only()
    np.testing.assert_array_equal(chosen.confidence["confidence"], [0.6, 0.9])
    several = datasets.DatasetDict(train=dataset, test=dataset.select([0, 1]))
    assert [part.n for part in ab.read_predictions(several).values()] == [4, 2]
    several.save_to_disk(tmp_path / "set")
    assert [part.n for part in ab.read_predictions(tmp_path / "set").values()] == [4, 2]
    with pytest.raises(InputError, match=r"unknown length .IterableDataset.; convert it"):
        ab.read_predictions(dataset.to_iterable_dataset())
