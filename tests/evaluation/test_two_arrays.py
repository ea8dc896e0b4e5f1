"""What `evaluate` takes: tables, two arrays by their shapes, and nothing that it would guess."""

import numpy as np
import polars as pl
import pytest
from tests.peers import import_peer

import abstain as ab
from abstain.errors import AbstainError, InputError, ShapeError, UnknownNameError

LABELS = np.array([0, 1, 1, 0, 1])
SECOND = np.array([0.1, 0.9, 0.4, 0.3, 0.8])
BOTH = np.column_stack([1 - SECOND, SECOND])
WRONG = np.array([0, 0, 1, 0, 0])
COLUMNS = {"label": LABELS, "prediction": [0, 1, 0, 0, 1], "confidence": BOTH.max(1)}


def numbers(evaluation):
    return {(r.score, r.metric.name): r.value for r in evaluation}


def same(first, second):
    assert numbers(first).keys() == numbers(second).keys()
    np.testing.assert_equal(list(numbers(first).values()), list(numbers(second).values()))


def test_labels_and_probabilities():
    named = ab.evaluate(ab.Predictions(labels=LABELS, probabilities=BOTH), interval="none")
    same(ab.evaluate(LABELS, BOTH, interval="none"), named)
    same(ab.evaluate((LABELS, BOTH), interval="none"), named)
    same(ab.evaluate(LABELS.tolist(), BOTH.tolist(), interval="none"), named)


def test_names_as_labels_are_no_paths():
    evaluation = ab.evaluate(
        ab.Predictions(labels=["0", "1"], probabilities=BOTH[:2], classes="01")
    )
    assert evaluation.value("accuracy", score="msr") == 1
    with pytest.raises(InputError, match=r"classes=model\.classes_"):
        ab.evaluate(["a", "b"], BOTH[:2])


def test_confidence_and_loss():
    named = ab.evaluate(ab.Predictions(confidence=SECOND, loss=WRONG), interval="none")
    same(ab.evaluate(SECOND, WRONG, interval="none"), named)
    same(ab.evaluate((SECOND, WRONG == 1), interval="none"), named)
    assert named.value("augrc") == ab.augrc(SECOND, WRONG)


def test_tables(tmp_path):
    pd = pytest.importorskip("pandas")
    named = ab.evaluate(ab.read_predictions(COLUMNS), interval="none")
    pl.DataFrame(COLUMNS).write_csv(tmp_path / "p.csv")
    path = tmp_path / "p.csv"
    for source in (COLUMNS, pl.DataFrame(COLUMNS), pd.DataFrame(COLUMNS), path, str(path)):
        evaluation = ab.evaluate(source, interval="none", notes=["mine"])
        same(evaluation, named)
        said = [finding.message for finding in evaluation.notes]
        assert "mine" in said
        assert any("read label from 'label'" in message for message in said)


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        (BOTH, LABELS, "labels come first"),
        (LABELS, SECOND, r"score of one class.*column_stack"),
        (LABELS, LABELS, "also fits labels"),
        (["a", "b"], ["a", "b"], "also fits labels"),
        (BOTH, BOTH, "no predictions"),
        (LABELS, [[1], [1, 2]], "rows of different lengths"),
        (COLUMNS, LABELS, "only allowed if the first one is an array"),
        (pl.DataFrame(COLUMNS), LABELS, "only allowed if the first one is an array"),
        (LABELS[:2], BOTH, "one entry for each"),
    ],
)
def test_what_is_not_sure_raises_an_error(first, second, said):
    with pytest.raises((InputError, ShapeError), match=said):
        ab.evaluate(first, second)


def test_several_numbers_say_what_to_add():
    evaluation = ab.evaluate(LABELS, BOTH, interval="none")
    with pytest.raises(UnknownNameError, match=r"\.value\('augrc', score='msr'\)") as refused:
        evaluation.value("augrc")
    assert "split=" not in str(refused.value)
    rows = {**COLUMNS, "part": ["a", "a", "a", "b", "b"]}
    apart = ab.evaluate(ab.read_predictions(rows, by="part"), interval="none")
    with pytest.raises(UnknownNameError, match=r"split=\(\('part', 'a'\),\)"):
        apart.value("augrc")


def test_every_curve_draws_itself():
    from abstain import curves

    made = [
        curves.risk_coverage_curve(SECOND, WRONG),
        curves.generalized_risk_coverage_curve(SECOND, WRONG),
        curves.failure_roc_curve(SECOND, WRONG),
        curves.error_retention_curve(SECOND, WRONG),
        curves.accuracy_rejection_curve(SECOND, WRONG),
        curves.reliability_curve(SECOND, WRONG),
    ]
    for curve in made:
        display = curve.plot(color="red")
        assert display.frame().height
        assert display.ax_ is not None


# -------------------------------------------------------------------------------- other ways to pass data
MANY = np.random.default_rng(0).random(400)
DATA = pl.DataFrame({"confidence": MANY, "correct": MANY > 0.3})
NAMED = ab.Predictions(confidence=MANY, loss=1 - (MANY > 0.3))


def sources(folder):
    DATA.write_csv(folder / "data.csv")
    return {
        "path": folder / "data.csv",
        "paths": [str(folder / "data.csv")],
        "frame": DATA,
        "arrays": DATA.to_dict(),
        "pair": (MANY, 1.0 - (MANY > 0.3)),
    }


@pytest.mark.parametrize("kind", ["path", "paths", "frame", "arrays", "pair"])
def test_rules_and_comparisons_open_what_evaluate_opens(kind, tmp_path):
    source = sources(tmp_path)[kind]
    rule = ab.set_threshold(source, max_risk=0.1)
    expected = ab.set_threshold(NAMED, max_risk=0.1)
    assert (rule.threshold, rule.accepted) == (expected.threshold, expected.accepted)
    # A mapping of arrays holds confidences by the name of the data set there.
    checked = ab.check_rule(rule, {"new": source}, calibration=source)
    same_checks = ab.check_rule(rule, {"new": NAMED}, calibration=NAMED)
    assert checked.checks == same_checks.checks
    assert checked.curve is not None


def test_comparisons_open_what_evaluate_opens(tmp_path):
    frame = DATA.with_columns(confidence_b=pl.Series(MANY[::-1]))
    frame.write_parquet(tmp_path / "data.parquet")
    for source in (frame, tmp_path / "data.parquet", frame.to_dict()):
        comparison = ab.compare(source)
        assert comparison.methods == ("confidence", "confidence_b")
        assert any(": read " in finding.message for finding in comparison.notes)


# ------------------------------------------------------------------------ tables of other libraries
class ArrowStream:
    """A table of a library that nobody knows, by the Arrow PyCapsule interface."""

    def __init__(self, native):
        self.native = native

    def __arrow_c_stream__(self, requested_schema=None):
        return self.native.__arrow_c_stream__(requested_schema)


def _duckdb_relation(frame):
    duckdb = import_peer("duckdb")
    pytest.importorskip("pyarrow")
    return duckdb.connect().from_arrow(frame.to_arrow())


def _ibis_table(frame):
    ibis = import_peer("ibis")
    import_peer("duckdb")
    return ibis.memtable(frame)


def _record_batch(frame):
    pytest.importorskip("pyarrow")
    return frame.to_arrow().to_batches()[0]


@pytest.mark.parametrize(
    "convert",
    [
        pl.DataFrame.lazy,
        pl.DataFrame.to_dicts,
        ArrowStream,
        _record_batch,
        lambda frame: _record_batch(frame).schema and frame.to_arrow().to_reader(),
        pytest.param(_duckdb_relation, marks=pytest.mark.peers),
        pytest.param(_ibis_table, marks=pytest.mark.peers),
    ],
)
@pytest.mark.filterwarnings("error")
def test_tables_of_other_libraries(convert):
    frame = pl.DataFrame(COLUMNS)
    evaluation = ab.evaluate(frame, interval="none")
    assert ab.read_predictions(convert(frame)).only().n == 5
    same(ab.evaluate(convert(frame), interval="none"), evaluation)


def test_series_are_two_arrays():
    confidence = pl.Series([0.9, 0.4, 0.3])
    assert ab.evaluate(confidence, pl.Series([0.0, 1.0, 0.0])).value("augrc") > 0


@pytest.mark.parametrize("source", [ArrowStream(pl.Series([1, 2])), [{"a": 1}, {}], [{}]])
def test_tables_that_are_none_raise_a_readable_error(source):
    for read in (ab.read_predictions, ab.evaluate):
        with pytest.raises(AbstainError) as caught:
            read(source)
        assert "\n" not in str(caught.value)
