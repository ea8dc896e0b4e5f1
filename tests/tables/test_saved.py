"""Rules, calibrations and fitted scores to files and back; nonsense is refused by its field."""

import io
import json
import zipfile

import numpy as np
import polars as pl
import pytest
from tests.confidence.fitted_cases import IDS, TRAIN, data, states, variants

import abstain as ab
from abstain import calibration, thresholds
from abstain.confidence import fit, score
from abstain.errors import FileFormatError, InputError
from abstain.predictions import Predictions
from abstain.tables import load, save

NEW = data(40, 5)
CONFIDENCE, LOSS = np.linspace(0, 1, 40), np.tile([1, 0, 0, 0], 10)


def texts():
    logits = np.stack([CONFIDENCE, 0.3 - CONFIDENCE], axis=1)
    return {
        "temperature": calibration.fit_temperature(logits, LOSS),
        "platt": calibration.fit_platt(CONFIDENCE, LOSS),
        "isotonic": calibration.fit_isotonic(CONFIDENCE, LOSS),
        "binning": calibration.fit_binning(CONFIDENCE, LOSS, bins=3),
        "decision rule": thresholds.sgr(CONFIDENCE, LOSS, max_risk=0.4, delta=0.1),
    }


@pytest.mark.parametrize("i", range(len(IDS)), ids=IDS)
def test_fitted_scores_come_back_bit_for_bit(i, tmp_path):
    state = states()[i]
    path = save(state, tmp_path / "state.npz")
    again = load(str(path))
    assert type(again) is type(state)
    assert again.name == state.name
    first, second = score(state, NEW), score(again, NEW)
    assert first.values.tobytes() == second.values.tobytes()
    assert (first.probability is None) == (second.probability is None)
    assert again.to_arrays()[0] == state.to_arrays()[0]
    # The same state gives the same file, byte for byte.
    assert save(state, tmp_path / "again.npz").read_bytes() == path.read_bytes()
    assert [p.name for p in sorted(tmp_path.iterdir())] == ["again.npz", "state.npz"]


@pytest.mark.parametrize("kind", texts())
def test_texts_come_back_equal(kind, tmp_path):
    obj = texts()[kind]
    path = save(obj, tmp_path / "obj.json")
    assert load(path) == obj
    assert json.loads(path.read_text())["kind"] == kind
    # What the objects write themselves can be loaded too.
    (tmp_path / "own").write_text(obj.to_json())
    assert load(tmp_path / "own") == obj


@pytest.mark.parametrize("kind", texts())
def test_every_field_of_a_text_is_checked(kind, tmp_path):
    fields, path = json.loads(texts()[kind].to_json()), tmp_path / "edited.json"
    for field in fields:
        path.write_text(json.dumps({k: v for k, v in fields.items() if k != field}))
        with pytest.raises(FileFormatError, match=rf"edited\.json cannot be loaded: .*{field}"):
            load(path)
        path.write_text(json.dumps({**fields, field: {"no": "thing"}}))
        with pytest.raises(FileFormatError, match=rf"edited\.json cannot be loaded: .*{field}"):
            load(path)
    path.write_text(json.dumps({**fields, "extra": 1}))
    with pytest.raises(FileFormatError, match="extra"):
        load(path)
    path.write_text(json.dumps(fields)[:-1] + ', "kind": "platt"}')
    with pytest.raises(FileFormatError, match="`kind` occurs twice"):
        load(path)


def archive(plain, arrays, path):
    text = json.dumps(plain) if not isinstance(plain, str) else plain
    np.savez(path, **{"plain.json": np.frombuffer(text.encode(), np.uint8)}, **arrays)
    return path


KNN = fit("knn", TRAIN, k=2)
PLAIN, ARRAYS = {"version": 1, **KNN.to_arrays()[0]}, KNN.to_arrays()[1]


@pytest.mark.parametrize(
    ("plain", "arrays", "message"),
    [
        ({**PLAIN, "version": 2}, ARRAYS, "`version` must be 1"),
        ({**PLAIN, "kind": "forest"}, ARRAYS, "`kind` must be one of 'mahalanobis'"),
        ({**PLAIN, "k": 0}, ARRAYS, "`k` must be an integer of at least 1"),
        ({**PLAIN, "k": 999}, ARRAYS, "`k` must be at most the 240 training samples"),
        ({**PLAIN, "k": True}, ARRAYS, "`k` must be"),
        ({**PLAIN, "normalize": "yes"}, ARRAYS, "`normalize` must be true or false"),
        ({**PLAIN, "color": 1}, ARRAYS, "`color` is not a field"),
        (PLAIN, {}, "`points` is missing"),
        (PLAIN, {"points": ARRAYS["points"][0]}, r"`points` must have shape \(m, d\)"),
        (PLAIN, {"points": np.full((3, 2), np.inf)}, "`points` must be finite"),
        (PLAIN, {"points": np.ones((3, 2), int)}, "`points` must be an array of floats"),
        (PLAIN, {**ARRAYS, "more": np.ones(2)}, "`more` is not a field"),
        ("{", ARRAYS, "it is not valid JSON"),
        ("[]", ARRAYS, "not a JSON object"),
        ('{"version": 1, "version": 1}', ARRAYS, "`version` occurs twice"),
        ("[" * 100_000, ARRAYS, "nested too deeply"),
        ('{"k": ' + "1" * 5000 + "}", ARRAYS, "thousands of digits"),
        ({**PLAIN, "version": True}, ARRAYS, "`version` must be 1"),
        ({**PLAIN, "points": 1}, ARRAYS, "`points` occurs twice"),
    ],
)
def test_archives_edited_to_nonsense_raise_an_error(plain, arrays, message, tmp_path):
    path = archive(plain, arrays, tmp_path / "edited.npz")
    with pytest.raises(FileFormatError, match=rf"edited\.npz cannot be loaded: .*{message}"):
        load(path)


def test_relations_between_fields_are_checked(tmp_path):
    state = fit("mahalanobis", TRAIN)
    plain, arrays = state.to_arrays()
    plain = {"version": 1, **plain}
    path = archive(plain, {**arrays, "center": arrays["center"][:2]}, tmp_path / "a.npz")
    with pytest.raises(FileFormatError, match=r"`center` must have shape \(d,\) with d = 6"):
        load(path)
    path = archive({**plain, "classes": ["a", "a", "b"]}, arrays, tmp_path / "b.npz")
    with pytest.raises(FileFormatError, match="`classes` must be a list of distinct class names"):
        load(path)
    learned = fit("combine", TRAIN, scores=("msr", "pe"), how="learned")
    plain, arrays = learned.to_arrays()
    path = archive({"version": 1, **plain, "how": "mean"}, arrays, tmp_path / "c.npz")
    with pytest.raises(FileFormatError, match="`scale` is not valid for how='mean'"):
        load(path)
    path = archive(
        {"version": 1, **plain}, {**arrays, "spread": 0 * arrays["spread"]}, tmp_path / "d.npz"
    )
    with pytest.raises(FileFormatError, match="`spread` must be above 0"):
        load(path)


def test_pickles_are_never_read(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (pytest.fail, ("a pickle was run",))

    path = tmp_path / "bomb.npz"
    held = np.empty(1, dtype=object)
    held[0] = Bomb()
    np.savez(
        path, **{"plain.json": np.frombuffer(json.dumps(PLAIN).encode(), np.uint8)}, points=held
    )
    with pytest.raises(FileFormatError, match="pickles"):
        load(path)


@pytest.mark.parametrize("name", ["state.npz", "rule.json"])
def test_damaged_files_are_refused_in_words(name, tmp_path):
    path = tmp_path / name
    save(KNN if name.endswith("npz") else texts()["decision rule"], path)
    whole = path.read_bytes()
    for cut in (0, 3, 10, len(whole) // 2, len(whole) - 4):
        path.write_bytes(whole[:cut])
        with pytest.raises(FileFormatError, match=name):
            load(path)
    path.write_bytes(b"\xff\xfe\x00" + whole)
    with pytest.raises(FileFormatError, match=name):
        load(path)


def test_an_archive_of_something_else_is_no_fitted_score(tmp_path):
    np.savez(tmp_path / "p.npz", labels=np.ones(3))
    with pytest.raises(FileFormatError, match=r"no entry 'plain\.json', so it was not written"):
        load(tmp_path / "p.npz")


def test_an_archive_that_claims_more_than_the_memory_raises_an_error(tmp_path):
    path = archive(PLAIN, ARRAYS, tmp_path / "state.npz")
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (1 << 50, 2)}
    )
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("points.npy", header.getvalue())
    with pytest.raises(FileFormatError, match=r"state\.npz holds .* claims .* and 0 bytes"):
        load(path)


def test_saving_refuses_what_it_cannot_keep(tmp_path):
    with pytest.raises(InputError, match=r"must end in '\.npz' for a fitted score; got 'a\.json'"):
        save(KNN, tmp_path / "a.json")
    with pytest.raises(InputError, match=r"must end in '\.json' for a rule or a calibration"):
        save(texts()["platt"], tmp_path / "a.npz")
    with pytest.raises(InputError, match="fitted scores can be saved; got dict"):
        save({}, tmp_path / "a.json")
    with pytest.raises(InputError, match="there is no file"):
        load(tmp_path / "absent.json")
    with pytest.raises(InputError, match="does not exist"):
        save(KNN, tmp_path / "no" / "a.npz")
    with pytest.raises(InputError, match="is a folder"):
        load(tmp_path)
    tuples = Predictions(
        features=TRAIN.features, logits=TRAIN.logits, labels=TRAIN.labels, classes=[0, 1, 2]
    )
    named = fit("mahalanobis", tuples)
    from dataclasses import replace

    odd = replace(named, classes=((0, 1), "b", "c"))
    with pytest.raises(InputError, match=r"the class name \(0, 1\) is neither text nor a number"):
        save(odd, tmp_path / "odd.npz")
    assert not list(tmp_path.iterdir())


def test_selected_and_calibrated_scores_point_to_what_can_be_saved(tmp_path):
    from abstain.evaluation.score_selection import select_score

    selection = select_score("knn", TRAIN, NEW, grid={"k": [1, 2]})
    with pytest.raises(InputError, match=r"got SelectedScore; save its `\.state`"):
        save(selection, tmp_path / "a.npz")
    save(selection.state, tmp_path / "a.npz")


@pytest.mark.parametrize("names", [["a", "b", "c"], [2, 5, 9], [True, False, 3.5]])
def test_class_names_come_back_with_their_types(names, tmp_path):
    classes = np.array(names, dtype=object)
    p = Predictions(
        features=TRAIN.features, logits=TRAIN.logits, labels=classes[TRAIN.labels], classes=names
    )
    state = load(save(fit("mahalanobis", p), tmp_path / "m.npz"))
    assert state.classes == tuple(names)
    assert [type(name) for name in state.classes] == [type(name) for name in names]


def test_every_variant_is_among_them():
    assert len(states()) == len(variants()) == len(IDS)


def test_a_calibrated_score_comes_back_and_scores_the_same(tmp_path):
    p = ab.Predictions(logits=[[2.0, 0.0], [0.0, 1.0], [3.0, 1.0], [0.5, 0.0]], labels=[0, 0, 0, 1])
    calibrated = ab.calibrate("msr", p, method="platt")
    back = ab.load(ab.save(calibrated, tmp_path / "platt.json"))
    assert back == calibrated
    assert back.score(p).probability.tolist() == calibrated.score(p).probability.tolist()


def test_what_writes_another_json_raises_an_error(tmp_path):
    class Foreign:
        def to_json(self):
            return '{"kind": "model"}'

    with pytest.raises(InputError, match="can be saved; got Foreign"):
        ab.save(Foreign(), tmp_path / "x.json")
    assert not (tmp_path / "x.json").exists()


# ------------------------------------------------------------------------------------ results
def results():
    predictions = Predictions(confidence={"a": CONFIDENCE, "b": CONFIDENCE[::-1]}, loss=LOSS)
    rule = thresholds.DecisionRule("risk", 0.5, target=0.4, score="a")
    return {
        "evaluation": ab.evaluate(predictions),
        "comparison": ab.compare(predictions),
        "checks": ab.check_rule(rule, predictions),
    }


@pytest.mark.parametrize("kind", results())
def test_results_are_saved_as_pages_and_tables(kind, tmp_path):
    result = results()[kind]
    page = save(result, tmp_path / "page.html").read_text()
    assert page.startswith("<!doctype html>")
    assert save(result, str(tmp_path / "page.md")).read_text().startswith("# ")
    table = pl.read_parquet(save(result, tmp_path / "table.parquet"))
    assert table.columns == result.frame().columns
    assert table.height == result.frame().height
    assert save(result, tmp_path / "table.csv").read_text().count("\n") == table.height + 1
    with pytest.raises(
        InputError, match=r"a result is saved to a file with the suffix \.html, \.md"
    ):
        save(result, tmp_path / "page.json")


def test_a_rule_is_also_saved_for_people(tmp_path):
    rule = thresholds.sgr(CONFIDENCE, LOSS, max_risk=0.6, delta=0.1)
    assert f"{rule.threshold:.6g}" in save(rule, tmp_path / "rule.md").read_text()
    table = pl.read_csv(save(rule, tmp_path / "rule.csv"))
    assert table["n"].to_list() == [40]
    assert table["threshold"].to_list() == [rule.threshold]
