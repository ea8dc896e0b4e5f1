"""Outputs of models in JSON and in files of torch, as Zhou et al. (2025) release theirs."""

import json
import pickle
import zipfile

import numpy as np
import pytest

from abstain._foundation.lazy_imports import is_installed
from abstain.errors import FileFormatError, InputError, MissingInputError
from abstain.tables import read_predictions

RNG = np.random.default_rng(0)
LOGITS, LABELS = RNG.normal(size=(20, 3)).astype(np.float32), RNG.integers(3, size=20)

with_torch = pytest.mark.skipif(not is_installed("torch"), reason="needs torch")


def write_json(path, **found):
    path.write_text(json.dumps(found))
    return path


def test_their_json(tmp_path):
    path = write_json(
        tmp_path / "target_agg.json", y_logits=LOGITS.tolist(), y_true=LABELS.tolist(), epoch=3
    )
    predictions = read_predictions(path)
    np.testing.assert_array_equal(predictions.only().logits, LOGITS.astype(float))
    np.testing.assert_array_equal(predictions.only().labels, LABELS)
    assert "read label from 'y_true', logits from 'y_logits'" in " ".join(
        map(str, predictions.notes)
    )
    assert "keys not read: epoch" in list(map(str, predictions.notes))


def test_json_with_keys_that_say_what_they_hold(tmp_path):
    p = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)
    path = write_json(tmp_path / "a.json", probabilities=p.tolist(), labels=LABELS.tolist())
    np.testing.assert_allclose(read_predictions(path).only().probabilities, p)
    names = write_json(
        tmp_path / "b.json", label=["a", "b"], prediction=["a", "a"], confidence=[0.9, 0.2]
    )
    assert read_predictions(names).only().correct.tolist() == [True, False]


@pytest.mark.parametrize("orient", ["records", "columns"])
def test_tables_of_pandas_in_json(tmp_path, orient):
    pandas = pytest.importorskip("pandas")
    columns = {"label": ["a", "b"], "prediction": ["a", "a"], "confidence": [0.9, None]}
    path = tmp_path / "table.json"
    pandas.DataFrame(columns).to_json(path, orient=orient)
    result = read_predictions(path, missing="drop").only()
    assert result.labels.tolist() == ["a"]
    assert result.confidence["confidence"].tolist() == [0.9]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("3", "contains neither an object nor a list of objects"),
        ("[]", "a list whose entries are not objects"),
        ("[1, 2]", "a list whose entries are not objects"),
        ("[{}]", "objects without fields"),
        ('[{"a": 1, "a": 2}]', "the field `a` occurs twice"),
        ('{"a": 1}', "contains no dictionary of arrays"),
        ('{"a": [1], "a": [2]}', "the field `a` occurs twice"),
        ('{"a": [[1, 2], [3]]}', "rows of different lengths under 'a'"),
        ('{"a": [1, 2}', "it is not valid JSON"),
        ("[" * 100_000, "nested too deeply|no JSON"),
    ],
)
def test_other_json_raises_an_error(tmp_path, text, rule):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(FileFormatError, match=rf"x\.json .*({rule})"):
        read_predictions(path)


@with_torch
@pytest.mark.parametrize("kind", ["tensor", "array", "list"])
def test_their_files_of_torch(tmp_path, kind):
    import torch

    made = {"tensor": torch.as_tensor, "array": np.asarray, "list": lambda x: x.tolist()}[kind]
    path = tmp_path / "preds_250.pth"
    train = {"preds_train": made(np.zeros((30, 3))), "gt_train": made(np.zeros(30, np.int64))}
    torch.save({**train, "preds_test": made(LOGITS), "gt_test": made(LABELS), "acc": 0.5}, path)
    predictions = read_predictions(path)
    np.testing.assert_array_equal(predictions.only().logits, LOGITS)
    np.testing.assert_array_equal(predictions.only().labels, LABELS)
    text = " ".join(map(str, predictions.notes))
    assert "read label from 'gt_test', logits from 'preds_test'" in text
    assert "keys not read: preds_train, gt_train, acc" in text


@with_torch
def test_tensors_of_any_precision_and_gradient(tmp_path):
    import torch

    for dtype in (torch.bfloat16, torch.float16, torch.float64):
        path = tmp_path / "a.pt"
        logits = torch.tensor(LOGITS, dtype=dtype, requires_grad=True)
        torch.save({"logits": logits.t().contiguous().t(), "labels": torch.tensor(LABELS)}, path)
        result = read_predictions(path).only()
        np.testing.assert_array_equal(result.logits, logits.detach().double().numpy())
    torch.save({"logits": torch.eye(3).to_sparse(), "labels": torch.arange(3)}, path)
    with pytest.raises(FileFormatError, match="has a sparse or quantized tensor 'logits'"):
        read_predictions(path)


@with_torch
def test_what_a_file_of_torch_must_not_hold(tmp_path):
    import torch

    class Bomb:
        def __reduce__(self):
            return (pytest.fail, ("a pickle was loaded",))

    path = tmp_path / "a.pth"
    for content in (Bomb(), {"logits": Bomb()}, {"logits": np.array([Bomb(), 1], dtype=object)}):
        torch.save(content, path)
        with pytest.raises(
            FileFormatError, match="must contain only tensors and arrays of numbers"
        ):
            read_predictions(path)
    torch.save(torch.nn.Linear(2, 2), path)
    with pytest.raises(FileFormatError, match="must contain only tensors and arrays of numbers"):
        read_predictions(path)
    torch.save(torch.zeros(3), path)
    with pytest.raises(FileFormatError, match="contains no dictionary of arrays"):
        read_predictions(path)
    path.write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(FileFormatError, match="is not an archive of tensors"):
        read_predictions(path)


@with_torch
def test_damaged_and_swollen_files_of_torch(tmp_path):
    import torch

    path = tmp_path / "a.pth"
    torch.save({"logits": torch.zeros(4, 3), "labels": torch.zeros(4)}, path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FileFormatError, match=r"a\.pth"):
        read_predictions(path)
    path.write_bytes(whole)
    packed = tmp_path / "packed.pth"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new:
        for member in old.infolist():
            new.writestr(member.filename, old.read(member))
    with pytest.raises(FileFormatError, match="is compressed"):
        read_predictions(packed)
    # A tensor of one number may claim to be of any size.
    torch.save({"logits": torch.zeros(1).expand(10**15), "labels": torch.zeros(4)}, path)
    with pytest.raises(FileFormatError, match="memory are free"):
        read_predictions(path)


def test_without_torch_it_is_said_what_to_install(tmp_path, monkeypatch):
    path = tmp_path / "a.pth"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/data.pkl", b"")
    monkeypatch.setattr("abstain.tables.model_outputs.is_installed", lambda _name: False)
    with pytest.raises(MissingInputError, match=r"pip install 'abstain\[torch\]'"):
        read_predictions(path)


def test_a_known_layout_gives_way_to_what_is_asked(tmp_path):
    other = (2 * LABELS % 3).tolist()
    path = write_json(
        tmp_path / "a.json", y_logits=LOGITS.tolist(), y_true=LABELS.tolist(), corrected=other
    )
    assert read_predictions(path, label="corrected").only().labels.tolist() == other
    with pytest.raises(InputError, match="no key 'nothing'"):
        read_predictions(path, logits="nothing")
