"""Every format gives the same predictions back; splits, files and default names."""

import json
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

from abstain.errors import InputError, UnknownNameError
from abstain.tables import Reading, read_predictions, split_name

LABEL = ["cat", "dog", "dog", "eel", "cat", "dog"]
PREDICTION = ["cat", "dog", "cat", "eel", "dog", "dog"]
CONFIDENCE = [0.9, 0.8, 0.55, 0.7, 0.6000000000000001, 1.0]
STUDY = ["iid", "iid", "noise", "noise", "iid", "noise"]
CORRECT = [True, True, False, True, False, True]


@pytest.fixture
def frame():
    return pl.DataFrame(
        {"study": STUDY, "label": LABEL, "prediction": PREDICTION, "confidence": CONFIDENCE}
    )


def write(frame, path):
    writers = {
        ".csv": frame.write_csv,
        ".tsv": lambda p: frame.write_csv(p, separator="\t"),
        ".parquet": frame.write_parquet,
        ".feather": frame.write_ipc,
        ".ipc": frame.write_ipc,
        ".arrow": frame.write_ipc_stream,
        ".jsonl": frame.write_ndjson,
        ".ndjson": frame.write_ndjson,
        ".npz": lambda p: np.savez(p, **{n: np.array(frame[n].to_list()) for n in frame.columns}),
    }
    writers[path.suffix](path)
    return path


def check(predictions):
    assert predictions.correct.tolist() == CORRECT
    assert predictions.confidence["confidence"].tolist() == CONFIDENCE
    assert predictions.confidence["confidence"].dtype == np.float64
    assert predictions.class_names == ("cat", "dog", "eel")


@pytest.mark.parametrize(
    "suffix",
    [".csv", ".tsv", ".parquet", ".feather", ".ipc", ".arrow", ".jsonl", ".ndjson", ".npz"],
)
def test_file_round_trip(frame, tmp_path, suffix):
    path = write(frame, tmp_path / f"preds{suffix}")
    reading = read_predictions(path)
    check(reading.only())
    assert reading.source == path.name
    assert "read label from 'label', prediction from 'prediction'" in str(reading.notes[0])
    split = read_predictions(str(path), by="study")
    assert list(split) == [(("study", "iid"),), (("study", "noise"),)]
    assert split[("study", "noise"),].correct.tolist() == [False, True, True]


def frames_of(frame):
    yield "polars", frame
    yield "lazy", frame.lazy()
    yield "pyarrow", pytest.importorskip("pyarrow").table(frame.to_dict(as_series=False))
    pandas = pytest.importorskip("pandas")
    yield "pandas", pandas.DataFrame(frame.to_dict(as_series=False))
    yield "mapping", frame.to_dict(as_series=False)
    yield "arrays", {n: np.array(frame[n].to_list()) for n in frame.columns}


@pytest.mark.parametrize("kind", ["polars", "lazy", "pyarrow", "pandas", "mapping", "arrays"])
def test_frames_of_every_library(frame, kind):
    source = dict(frames_of(frame))[kind]
    check(read_predictions(source).only())
    assert [p.n for p in read_predictions(source, by=["study"]).values()] == [3, 3]


def test_pandas_dtypes_with_missing_entries():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {
            "label": pd.array(["a", None, "b"], dtype="string"),
            "prediction": pd.Categorical(["a", "b", "b"]),
            "confidence": pd.array([0.5, 0.25, None], dtype="Float64"),
        }
    )
    reading = read_predictions(frame, missing="drop")
    assert reading.only().n == 1
    assert reading.only().labels.tolist() == ["a"]
    objects = pd.DataFrame(
        {
            "label": pd.Series(["a", np.nan, "b"], dtype=object),
            "prediction": ["a", "b", "b"],
            "confidence": [1, 2, 3],
        }
    )
    assert read_predictions(objects, missing="drop").only().n == 2


def test_several_files_put_the_file_first(frame, tmp_path):
    a = write(frame, tmp_path / "a.csv")
    b = write(frame, tmp_path / "b.parquet")
    reading = read_predictions([a, b], by="study")
    assert next(iter(reading)) == (("file", "a.csv"), ("study", "iid"))
    assert len(reading) == 4
    (tmp_path / "other").mkdir()
    same = write(frame, tmp_path / "other" / "a.csv")
    assert list(read_predictions([a, same])) == [(("file", str(a)),), (("file", str(same)),)]
    with pytest.raises(InputError, match="occurs twice"):
        read_predictions([a, a])
    with pytest.raises(InputError, match="must contain paths"):
        read_predictions([])


def test_by_of_any_type_in_order_of_appearance():
    columns = {
        "label": [1, 1, 1, 1], "prediction": [1, 1, 0, 1], "confidence": [1.0, 2.0, 3.0, 4.0],
        "level": [3, 1, 3, 2], "dark": [True, False, True, True],
    }  # fmt: skip
    reading = read_predictions(columns, by=["level", "dark"])
    assert list(reading) == [
        (("level", "3"), ("dark", "True")),
        (("level", "1"), ("dark", "False")),
        (("level", "2"), ("dark", "True")),
    ]
    missing = pl.DataFrame(columns).with_columns(level=pl.Series([None, 1, None, 2]))
    assert next(iter(read_predictions(missing, by="level"))) == (("level", "(missing)"),)


def test_splits_share_their_classes():
    columns = {"label": ["a", "b"], "prediction": ["a", "b"], "confidence": [1, 2], "s": [0, 1]}
    assert {p.class_names for p in read_predictions(columns, by="s").values()} == {("a", "b")}


def test_a_reading_is_a_mapping(frame):
    reading = read_predictions(frame, by="study")
    assert isinstance(reading, Reading)
    assert (("study", "iid"),) in reading
    assert () not in reading
    with pytest.raises(UnknownNameError, match="study = iid; study = noise"):
        reading[()]
    with pytest.raises(InputError, match="2 splits"):
        reading.only()
    assert split_name((("a", "1"), ("b", "2"))) == "a = 1, b = 2"


@pytest.mark.parametrize("names", [("y_true", "y_pred", "conf"), ("target", "predicted", "score")])
def test_usual_names(names):
    columns = dict(zip(names, ([0, 1], [0, 0], [0.5, 0.7]), strict=True))
    predictions = read_predictions(columns).only()
    assert predictions.correct.tolist() == [True, False]
    assert list(predictions.confidence) == [names[2]]


def test_every_column_that_starts_with_confidence():
    columns = {"label": [0], "prediction": [0], "confidence": [1.0], "confidence_b": [2.0]}
    assert list(read_predictions(columns).only().confidence) == ["confidence", "confidence_b"]
    named = read_predictions(columns, confidence="confidence_*").only()
    assert list(named.confidence) == ["confidence_b"]


def test_other_columns():
    columns = {
        "label": [0, 1], "prediction": [0, 1], "confidence": [1, 2], "sex": ["f", "m"],
        "w": [1, 3], "name": ["x", "y"],
    }  # fmt: skip
    predictions = read_predictions(pl.DataFrame(columns), group="sex", weight="w", id="name").only()
    assert predictions.group.tolist() == ["f", "m"]
    assert predictions.weight.tolist() == [1, 3]
    assert predictions.ids.tolist() == ["x", "y"]
    with pytest.raises(TypeError, match="'wieght'"):
        read_predictions(columns, wieght="w")


def test_correct_and_loss_stand_in_for_label_and_prediction():
    frame = pl.DataFrame({"correct": [1, 0, 1], "confidence": [0.5, 0.2, 0.1]})
    assert read_predictions(frame).only().loss.tolist() == [0, 1, 0]
    graded = frame.with_columns(correct=pl.Series([0.25, 1.0, 0.0]))
    assert read_predictions(graded).only().loss.tolist() == [0.75, 0, 1]
    own = frame.rename({"correct": "loss"}).with_columns(loss=pl.Series([2.0, 0.5, 0.0]))
    assert read_predictions(own).only().loss.tolist() == [2, 0.5, 0]
    with pytest.raises(InputError, match=r"grades from 0 to 1; got 3.0 in row 0"):
        read_predictions(graded.with_columns(correct=pl.Series([3.0, 1.0, 0.0])))


def test_the_verdict_of_the_file_is_compared():
    columns = {"label": [0, 1], "prediction": [0, 1], "confidence": [1, 2], "correct": [1, 0]}
    reading = read_predictions(columns)
    assert any(
        "1 of 2 rows (50.00%) have a 'correct' that disagrees with 'label' == 'prediction'"
        in str(n)
        for n in reading.notes
    )
    assert read_predictions(columns, correct="correct").only().loss.tolist() == [0, 1]
    agreeing = read_predictions(columns | {"correct": [1, 1]})
    assert not any("disagrees" in str(n) for n in agreeing.notes)


def test_labels_and_predictions_of_two_types(tmp_path):
    reading = read_predictions(
        {"label": [7, 1], "prediction": ["7", "2"], "confidence": [0.1, 0.2]}
    )
    assert reading.only().correct.tolist() == [True, False]
    assert any("compared as text" in str(note) for note in reading.notes)
    floats = read_predictions({"label": [7.0, 1.0], "prediction": [7, 2], "confidence": [1, 2]})
    assert floats.only().correct.tolist() == [True, False]
    with pytest.raises(InputError, match=r"whole numbers\); got 0.5 in row 1"):
        read_predictions({"label": [1, 0.5], "prediction": [1, 1], "confidence": [1, 2]})


def test_csv_as_it_comes(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("label;prediction;confidence\n1;1;0.5\n2;1;0.25\n", encoding="utf-8-sig")
    reading = read_predictions(path)
    assert reading.only().confidence["confidence"].tolist() == [0.5, 0.25]
    assert any("semicolons" in str(note) for note in reading.notes)
    path.write_text('label,prediction,confidence\n"1","1","0.5"\n"2","1","nan"\n\n')
    assert read_predictions(path, missing="drop").only().n == 1
    path.write_text("label,prediction,confidence,correct\n1,1,0.5,True\n2,1,NA,False\n")
    rejected = read_predictions(path, missing="reject").only()
    assert rejected.confidence["confidence"].tolist() == [0.5, 0.5]
    assert read_predictions(path, correct="correct", missing="drop").only().loss.tolist() == [0]


def test_csv_numbers_that_are_text(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("label,prediction,confidence\n007,007,0.5\n7,x,0.25\n\n")
    reading = read_predictions(path)
    assert reading.only().labels.tolist() == ["007", "7"]
    assert reading.only().correct.tolist() == [True, False]


def test_jsonl_of_python_with_nan(tmp_path):
    path = tmp_path / "p.jsonl"
    rows = [{"label": 1, "prediction": 1, "confidence": c} for c in (0.5, float("nan"))]
    path.write_text("\n".join(json.dumps(row) for row in rows))
    assert read_predictions(path, missing="drop").only().n == 1


def test_names_of_files_are_not_patterns(frame, tmp_path):
    folder = tmp_path / "study=x" / "[a]"
    folder.mkdir(parents=True)
    for suffix in (".parquet", ".csv"):
        check(read_predictions(write(frame, folder / f"p*{suffix}")).only())


def test_importing_the_readers_loads_no_dataframe_library():
    code = "import abstain.tables, sys; print(*{'polars', 'narwhals', 'pandas'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


@pytest.mark.slow
def test_a_million_rows(tmp_path):
    n, rng = 10**6, np.random.default_rng(0)
    labels = rng.integers(0, 100, n)
    path = tmp_path / "big.parquet"
    pl.DataFrame(
        {
            "label": pl.Series(labels).cast(pl.String),
            "prediction": pl.Series(rng.integers(0, 100, n)).cast(pl.String),
            **{f"confidence_{i}": rng.random(n) for i in range(3)},
            "study": pl.Series(rng.integers(0, 12, n)).cast(pl.String),
        }
    ).write_parquet(path)
    import time

    read_predictions(path)
    start = time.perf_counter()
    reading = read_predictions(path, by="study")
    # About 0.3 s alone on a slow machine; a loop over rows would take ten times the limit.
    assert time.perf_counter() - start < 3
    assert sum(p.n for p in reading.values()) == n
