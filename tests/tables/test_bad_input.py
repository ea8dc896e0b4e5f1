"""Bad files and columns are refused in plain words that name the file, the column and a way out."""

import pickle
import warnings

import numpy as np
import polars as pl
import pytest

from abstain.errors import (
    AbstainError,
    DomainError,
    FileFormatError,
    InputError,
    MissingInputError,
    ShapeError,
    UnknownNameError,
)
from abstain.tables import read_predictions

GOOD = {"label": [0, 1, 1], "prediction": [0, 1, 0], "confidence": [0.9, 0.8, 0.7]}


def frame(**changed):
    return pl.DataFrame(GOOD | changed)


def test_wrong_name_suggests_and_lists(tmp_path):
    path = tmp_path / "preds.csv"
    frame().write_csv(path)
    with pytest.raises(UnknownNameError) as caught:
        read_predictions(path, label="lable")
    assert str(caught.value) == (
        "preds.csv has no column 'lable' (requested by `label`). Did you mean 'label'? "
        "Its columns: label, prediction, confidence"
    )
    for option in ("by", "group", "weight", "id", "confidence", "logits", "correct", "loss"):
        with pytest.raises(UnknownNameError, match=f"requested by `{option}`"):
            read_predictions(path, **{option: "nothing"})
    with pytest.raises(UnknownNameError, match=r"no column 'p_\*'"):
        read_predictions(path, probabilities="p_*")


@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".npz", ".jsonl"])
@pytest.mark.parametrize("damage", ["short", "garbage", "empty"])
def test_damaged_files(tmp_path, suffix, damage):
    path = tmp_path / f"preds{suffix}"
    writers = {
        ".parquet": frame().write_parquet,
        ".feather": frame().write_ipc,
        ".npz": lambda p: np.savez(p, **GOOD),
        ".jsonl": frame().write_ndjson,
    }
    writers[suffix](path)
    whole = path.read_bytes()
    path.write_bytes({"short": whole[: len(whole) // 2], "garbage": b"\x00garbage" * 50,
                      "empty": b""}[damage])  # fmt: skip
    with pytest.raises(FileFormatError, match=path.name) as caught:
        read_predictions(path)
    assert "\n" not in str(caught.value)
    if damage == "empty":
        assert str(caught.value) == f"preds{suffix} is empty (0 bytes)"


def test_a_page_in_the_middle_is_damaged(tmp_path):
    path = tmp_path / "preds.parquet"
    rng = np.random.default_rng(0)
    pl.DataFrame(
        {"label": rng.integers(0, 9, 5000), "prediction": rng.integers(0, 9, 5000),
         "confidence": rng.random(5000)}
    ).write_parquet(path)  # fmt: skip
    content = bytearray(path.read_bytes())
    content[5000:15000] = b"\xff" * 10000
    path.write_bytes(content)
    with pytest.raises(AbstainError, match=r"preds\.parquet"):
        read_predictions(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"label,prediction,confidence\n", "has a header but no rows"),
        (b"\x00\x01\x02\x03", "is not a text file"),
        ("label,größe\nx,1\n".encode("latin-1"), "not text in UTF-8"),
        (b"label,prediction,confidence\na,b,0.5,7\n", "cannot be read as csv"),
        (b"label,label,confidence\n1,1,1\n", "has two columns named 'label'"),
        (b"label,prediction,confidence\n1,1,0.5\n2,1,high\n", "the text 'high' in row 1"),
        (
            b"label;prediction;confidence\n1;1;0,5\n",
            "If the comma is the decimal mark, pass decimal",
        ),
    ],
)
def test_bad_csv(tmp_path, content, message):
    path = tmp_path / "preds.csv"
    path.write_bytes(content)
    with pytest.raises(AbstainError, match=message) as caught:
        read_predictions(path)
    assert "preds.csv" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"label": 1}\n{"label"', "line 2 is not a JSON object such as .*: it is not valid JSON"),
        ("[1, 2]\n", "line 1 is not a JSON object"),
        ("\n\n", "no columns|has a header but no rows"),
        ("{}\n", "no columns|does not define which predictions are correct"),
    ],
)
def test_bad_jsonl(tmp_path, content, message):
    path = tmp_path / "preds.jsonl"
    path.write_text(content)
    with pytest.raises(AbstainError, match=message):
        read_predictions(path)


def test_json_lines_end_at_line_feeds_only(tmp_path):
    path = tmp_path / "preds.jsonl"
    # NaN is no strict JSON: these files take the slow way.
    rows = [
        '{"label": "a\u2028b", "prediction": "a\u2028b", "confidence": 0.5}',
        '{"label": "c\x85", "prediction": "x", "confidence": NaN}',
    ]
    path.write_text("\r\n".join(rows), encoding="utf-8", newline="")
    assert read_predictions(path, missing="drop").only().labels.tolist() == ["a\u2028b"]
    path.write_bytes('{"label": "ä"'.encode("latin-1"))
    with pytest.raises(FileFormatError, match="not text in UTF-8"):
        read_predictions(path)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (PermissionError(13, "Permission denied"), "cannot be opened: you may not read it"),
        (IsADirectoryError(21, "Is a directory"), "cannot be opened: it is a folder, not a file"),
        (OSError(5, "Input/output error"), "cannot be read: Input/output error"),
    ],
)
@pytest.mark.parametrize("call", ["os.open", "polars.read_csv"])
def test_what_the_system_refuses_is_not_damage(tmp_path, monkeypatch, error, message, call):
    path = tmp_path / "preds.csv"
    frame().write_csv(path)

    def refuse(*_args, **_options):
        raise error

    monkeypatch.setattr(call, refuse)
    with pytest.raises(InputError, match=rf"^preds\.csv {message}$") as caught:
        read_predictions(path)
    assert caught.value.__cause__ is error


def test_a_mistake_of_ours_is_not_damage(tmp_path, monkeypatch):
    path = tmp_path / "preds.csv"
    frame().write_csv(path)

    def mistake(*_args, **_options):
        msg = "ours"
        raise KeyError(msg)

    monkeypatch.setattr("abstain.tables.files.from_polars", mistake)
    with pytest.raises(KeyError, match="ours"):
        read_predictions(path)


def test_damage_keeps_its_cause(tmp_path):
    path = tmp_path / "preds.feather"
    path.write_bytes(b"ARROW1 and no more")
    with pytest.raises(FileFormatError) as caught:
        read_predictions(path)
    assert isinstance(caught.value.__cause__, pl.exceptions.PolarsError)


def test_pickles_are_never_loaded(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (pytest.fail, ("a pickle was loaded",))

    path = tmp_path / "preds.npz"
    np.savez(path, labels=np.arange(3), logits=np.array([Bomb()], dtype=object))
    with pytest.raises(FileFormatError, match=r"holds under 'logits' Python objects \(pickles\)"):
        read_predictions(path)
    path.write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(FileFormatError, match=r"is a pickle, though it ends in '\.npz'"):
        read_predictions(path)
    other = tmp_path / "preds.pkl"
    other.write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(FileFormatError, match=r"suffix '\.pkl', which abstain does not read"):
        read_predictions(other)


def test_paths(tmp_path):
    frame().write_csv(tmp_path / "predictions.csv")
    with pytest.raises(InputError, match=r"Did you mean 'predictions\.csv'\?"):
        read_predictions(tmp_path / "prediction.csv")
    with pytest.raises(InputError, match=r"the folder '.*nowhere' does not exist"):
        read_predictions(tmp_path / "nowhere" / "p.csv")
    with pytest.raises(FileFormatError, match=r"has no FD-Shifts results.*predictions\.csv"):
        read_predictions(tmp_path)
    (tmp_path / "table.xlsx").write_bytes(b"PK")
    with pytest.raises(FileFormatError, match="Export the sheet as CSV"):
        read_predictions(tmp_path / "table.xlsx")
    with pytest.raises(InputError, match="got int"):
        read_predictions(3)


def test_text_confidence():
    with pytest.raises(
        DomainError, match=r"\(confidence\) must contain numbers; got the text 'high' in row 0"
    ):
        read_predictions(frame(confidence=["high", "0.5", "low"]))
    with pytest.raises(DomainError, match="numbers saved as text: convert the column"):
        read_predictions(frame(confidence=["0.9", "0.5", "0.1"]))


def test_infinite_confidence():
    with pytest.raises(DomainError, match=r"the dataframe: .*must be finite; got inf at index 1"):
        read_predictions(frame(confidence=[0.1, np.inf, 0.2]))


def test_missing_confidence():
    holes = frame(confidence=[0.9, None, float("nan")])
    with pytest.raises(DomainError) as caught:
        read_predictions(holes)
    message = str(caught.value)
    assert "2 of 3 rows (66.67%) have no confidence in 'confidence', the first in row 1" in message
    assert "missing='drop'" in message
    assert "missing='reject'" in message
    dropped = read_predictions(holes, missing="drop")
    assert dropped.only().n == 1
    assert any("2 of 3 rows (66.67%) dropped" in str(note) for note in dropped.notes)
    rejected = read_predictions(frame(confidence=[0.9, None, 0.2]), missing="reject")
    assert rejected.only().confidence["confidence"].tolist() == [0.9, 0.2, 0.2]
    assert any("lowest confidence of the column, 0.2" in str(note) for note in rejected.notes)
    with pytest.raises(DomainError, match="has no value in any row"):
        read_predictions(frame(confidence=[None, None, None]), missing="reject")
    with pytest.raises(DomainError, match="no row remains"):
        read_predictions(frame(confidence=[None, None, None]), missing="drop")
    with pytest.raises(InputError, match="`missing` must be one of"):
        read_predictions(holes, missing="ignore")


def test_missing_labels_and_predictions():
    with pytest.raises(DomainError, match=r"1 of 3 rows .* have no label in 'label'") as caught:
        read_predictions(frame(label=[0, None, 1]))
    assert "reject" not in str(caught.value)
    assert read_predictions(frame(label=[0, None, 1]), missing="drop").only().n == 2
    lacking = frame(prediction=[0, None, 1])
    with pytest.raises(DomainError, match="have no prediction in 'prediction'"):
        read_predictions(lacking)
    assert read_predictions(lacking, missing="drop").only().prediction.tolist() == [0, 1]
    rejected = read_predictions(lacking, missing="reject").only()
    assert rejected.correct.tolist() == [True, False, True]


def test_nothing_says_what_is_right():
    with pytest.raises(MissingInputError, match="it has no column for the predicted class"):
        read_predictions(frame().drop("prediction"))
    scores = frame(p_0=[0.1, 0.2, 0.3], p_1=[0.9, 0.8, 0.7]).drop("prediction", "confidence")
    with pytest.raises(MissingInputError, match=r"pass probabilities='p_\*' or logits='p_\*'"):
        read_predictions(scores)
    with pytest.raises(MissingInputError, match="no column with a default name for the confidence"):
        read_predictions(frame().drop("confidence"))


def test_options_that_exclude_each_other():
    with pytest.raises(InputError, match="`logits` and `probabilities` exclude"):
        read_predictions(frame(), logits="a", probabilities="b")
    with pytest.raises(InputError, match="`correct` and `loss` exclude"):
        read_predictions(frame(), correct="a", loss="b")
    with pytest.raises(InputError, match="`label` must be the name of a column"):
        read_predictions(frame(), label=3)
    with pytest.raises(InputError, match="`by` must be names of columns"):
        read_predictions(frame(), by=[1])


def test_one_row():
    predictions = read_predictions({"label": [1], "prediction": [1], "confidence": [0.5]}).only()
    assert predictions.n == 1
    assert read_predictions(frame().head(1)).only().n == 1


def test_no_rows_in_a_frame():
    with pytest.raises(InputError, match="the dataframe has a header but no rows"):
        read_predictions(frame().head(0))
    pd = pytest.importorskip("pandas")
    with pytest.raises(InputError, match="the dataframe has a header but no rows"):
        read_predictions(pd.DataFrame(columns=["label"]))


def test_repeated_and_nameless_columns():
    pd = pytest.importorskip("pandas")
    with pytest.raises(InputError, match="two columns named 'a'"):
        read_predictions(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(InputError, match="a column named 0; names must be text"):
        read_predictions(pd.DataFrame([[1, 2]]))


def test_lengths_that_differ():
    with pytest.raises(ShapeError, match=r"'confidence' must have 3 rows; got shape \(2,\)"):
        read_predictions(GOOD | {"confidence": [0.5, 0.7]})
    many = {**dict.fromkeys(GOOD, [1] * 1000), "i": np.arange(1000)}
    with pytest.raises(InputError, match="splits of 1,000 rows"):
        read_predictions(many, by="i")
    columns = {f"c{i}": np.arange(1000) for i in range(12)}
    with pytest.raises(InputError, match="splits of 1,000 rows"):
        read_predictions({**many, **columns}, by=list(columns))


def test_no_warnings_on_the_way(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_predictions(frame(), by="label")


def test_samples_whose_first_axes_are_swapped(tmp_path):
    path = tmp_path / "ensemble.npz"
    np.savez(path, logit_samples=np.zeros((5, 20, 3)), labels=np.zeros(20, int))
    with pytest.raises(
        ShapeError, match=r"\(5, 20, 3\), but samples must have shape \(n, S, K\).*swap"
    ):
        read_predictions(path)
