"""Calibrated fitted scores as files: they come back bit for bit, also in another process."""

import json
import subprocess
import sys

import numpy as np
import pytest
from tests.confidence.fitted_cases import IDS, TRAIN, data, states

import abstain as ab
from abstain.confidence import fit
from abstain.errors import FileFormatError, InputError

NEW = data(40, 5)


@pytest.mark.parametrize("i", range(len(IDS)), ids=IDS)
def test_the_calibration_of_every_fitted_score_comes_back(i, tmp_path):
    calibrated = ab.calibrate(states()[i], TRAIN, method="isotonic", name="mine")
    back = ab.load(ab.save(calibrated, tmp_path / "mine.npz"))
    assert isinstance(back, ab.CalibratedScore)
    assert (back.name, back.input_kind, back.limits, back.note) == (
        ("mine", calibrated.input_kind, calibrated.limits, calibrated.note)
    )
    assert back.calibration == calibrated.calibration
    own, again = calibrated.score(NEW), back.score(NEW)
    assert own.values.tobytes() == again.values.tobytes()
    assert own.probability.tobytes() == again.probability.tobytes()


def test_what_was_selected_is_kept_without_its_rivals(tmp_path):
    found = ab.select_score("knn", TRAIN, NEW, grid={"k": np.array([1, 2])})
    assert found.frame()["k"].to_list() == [1, 2]
    calibrated = ab.calibrate(found, NEW)
    assert calibrated.base is found.state
    back = ab.load(ab.save(calibrated, tmp_path / "knn.npz"))
    assert back.name == f"{found.name}+platt"
    with pytest.raises(InputError, match=r"ends in '\.npz'"):
        calibrated.to_json()
    with pytest.raises(InputError, match=r"must end in '\.npz'"):
        ab.save(calibrated, tmp_path / "knn.json")


def test_another_process_scores_the_same(tmp_path):
    calibrated = ab.calibrate(fit("vim", TRAIN), TRAIN)
    ab.save(calibrated, tmp_path / "vim.npz")
    np.savez(tmp_path / "new.npz", features=NEW.features, logits=NEW.logits, labels=NEW.labels)
    code = (
        "import sys, numpy as np, abstain as ab\n"
        "p = ab.Predictions(**np.load(sys.argv[2]))\n"
        "own = ab.load(sys.argv[1]).score(p)\n"
        "print((own.values.tobytes() + own.probability.tobytes()).hex())"
    )
    files = [str(tmp_path / name) for name in ("vim.npz", "new.npz")]
    there = subprocess.run(
        [sys.executable, "-c", code, *files], capture_output=True, text=True, check=True
    )
    own = calibrated.score(NEW)
    assert there.stdout.strip() == (own.values.tobytes() + own.probability.tobytes()).hex()


def edited(tmp_path, change, arrays=None):
    plain, own = ab.calibrate(fit("knn", TRAIN, k=2), TRAIN).to_arrays()
    text = json.dumps({"version": 1, **change({**plain})}).encode()
    path = tmp_path / "edited.npz"
    np.savez(path, **{"plain.json": np.frombuffer(text, np.uint8)}, **{**own, **(arrays or {})})
    return path


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: {**p, "kind": "calibrated"}, "`kind` must be one of"),
        (lambda p: {**p, "format": 2}, "`format` must be 1"),
        (lambda p: {**p, "base": "knn"}, "`base` must be an object"),
        (lambda p: {**p, "base": {**p["base"], "k": 0}}, "`k` must be an integer of at least 1"),
        (lambda p: {**p, "base": {**p["base"], "kind": "forest"}}, "`kind` must be one of 'mah"),
        (lambda p: {**p, "calibration": {**p["calibration"], "slope": "x"}}, "`slope`"),
        (lambda p: {**p, "on": "logits"}, "`on` must fit"),
        (lambda p: {**p, "name": ""}, "`name` must be a text"),
        (lambda p: {**p, "color": 1}, "`color` is not a field"),
        (lambda p: {k: v for k, v in p.items() if k != "limits"}, "`limits` is missing"),
    ],
)
def test_edited_to_nonsense_raises_an_error(change, message, tmp_path):
    with pytest.raises(FileFormatError, match=rf"edited\.npz cannot be loaded: .*{message}"):
        ab.load(edited(tmp_path, change))


@pytest.mark.parametrize("name", ["points", "base.more", "../../points", "/etc/points"])
def test_arrays_of_other_names_raise_an_error_and_nothing_is_written(name, tmp_path):
    path = edited(tmp_path, dict, {name: np.ones(2)})
    with pytest.raises(FileFormatError, match=name.removeprefix("base.")):
        ab.load(path)
    assert [p.name for p in tmp_path.iterdir()] == ["edited.npz"]


def test_a_part_within_a_part_without_end_raises_an_error(tmp_path):
    plain, arrays = fit("rank", TRAIN, score="msr").to_arrays()
    for _ in range(300):
        arrays = {f"parts.0.{k}": v for k, v in arrays.items() if k.count(".") < 2}
        plain = {**plain, "parts": [plain]}
    text = np.frombuffer(json.dumps({"version": 1, **plain}).encode(), np.uint8)
    np.savez(tmp_path / "deep.npz", **{"plain.json": text})
    with pytest.raises(FileFormatError, match=r"nested too deeply|missing"):
        ab.load(tmp_path / "deep.npz")


@pytest.mark.parametrize("path", [5, None, b"a.npz"])
def test_paths_are_paths(path):
    for call in (ab.load, lambda to: ab.save(fit("knn", TRAIN, k=1), to)):
        with pytest.raises(InputError, match="`path` must be a text or a Path"):
            call(path)
