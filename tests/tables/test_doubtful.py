"""What is most likely not what was meant is told, and names are found where only case differs."""

import numpy as np
import pytest

import abstain as ab
from abstain import read_predictions
from abstain.errors import InputError, UnknownNameError

COLUMNS = {"label": [0, 1, 1, 0], "prediction": [0, 1, 0, 0], "confidence": [0.9, 0.8, 0.6, 0.7]}


@pytest.mark.parametrize("name", ["split", "study", "Fold", "model "])
def test_a_column_that_sets_rows_apart_is_named(name):
    reading = read_predictions(COLUMNS | {name: ["a", "b", "b", "c"]})
    (warning,) = reading.warnings
    assert repr(name) in str(warning)
    assert "3 values (a, b, c)" in str(warning)
    assert warning in reading.notes
    assert not read_predictions(COLUMNS | {name: ["a"] * 4}).warnings
    assert not read_predictions(COLUMNS | {name: ["a", "b", "b", "c"]}, by=name).warnings
    assert not read_predictions(COLUMNS | {name: ["a", "b", "b", "c"]}, group=name).warnings


def test_repeated_names_are_counted_within_a_split():
    ids = {"id": ["x", "y", "x", "z"], "part": [1, 1, 2, 2]}
    (warning,) = read_predictions(COLUMNS | ids, id="id").warnings
    assert str(warning).startswith("2 of 4 rows have the same 'id'")
    assert not read_predictions(COLUMNS | ids, id="id", by="part").warnings
    numbers = read_predictions(COLUMNS | {"id": [1, 2, 2, 2]}, id="id").warnings
    assert str(numbers[0]).startswith("3 of 4 rows")


def test_labels_of_one_class_are_told():
    (warning,) = read_predictions(COLUMNS | {"label": [1, 1, 1, 1]}).warnings
    assert str(warning).startswith("every label is 1")
    unknown = COLUMNS | {"label": [-1, 0, 1, -1]}
    assert not read_predictions(unknown, unknown_label=-1).warnings


def test_warnings_of_several_files_name_theirs(tmp_path):
    import polars as pl

    for name in ("a.csv", "b.csv"):
        pl.DataFrame(COLUMNS | {"fold": [1, 2, 3, 4]}).write_csv(tmp_path / name)
    reading = read_predictions([tmp_path / "a.csv", tmp_path / "b.csv"])
    assert [str(warning)[:6] for warning in reading.warnings] == ["a.csv:", "b.csv:"]


def test_names_are_found_whatever_their_case_and_blanks():
    columns = {
        "Label ": COLUMNS["label"],
        "Pred": COLUMNS["prediction"],
        "My Conf": COLUMNS["confidence"],
    }
    p = read_predictions(columns, confidence="my conf").only()
    assert p.correct.tolist() == [True, True, False, True]
    assert list(p.confidence) == ["My Conf"]
    with pytest.raises(UnknownNameError, match="Did you mean 'My Conf'"):
        read_predictions(columns, confidence="my_conf")


def test_a_name_for_two_columns_raises_an_error_unless_one_is_it_exactly():
    columns = COLUMNS | {"Conf": [1, 2, 3, 4], "CONF": [4, 3, 2, 1]}
    with pytest.raises(
        InputError, match="'Conf' and 'CONF', which differ from 'conf' only in case"
    ):
        read_predictions(columns, confidence="conf")
    assert list(read_predictions(columns, confidence="CONF").only().confidence) == ["CONF"]


# ------------------------------------------------------------------------------------ direction
@pytest.mark.parametrize(
    "how", [{"lower_is_safer": True}, {"lower_is_safer": "entropy"}, {"confidence": "-entropy"}]
)
def test_uncertainties_are_turned_around(how):
    columns = {k: v for k, v in COLUMNS.items() if k != "confidence"}
    columns |= {"entropy": np.array([1, 2, 4, 3], np.uint8)}
    reading = read_predictions(columns, **({"confidence": "entropy"} | how))
    assert reading.only().confidence["-entropy"].tolist() == [-1, -2, -4, -3]
    assert "negated (lower is safer)" in str(reading.notes[0])


def test_many_confidences_are_counted_and_not_named_one_by_one():
    many = {f"c{i}": COLUMNS["confidence"] for i in range(65)}
    note = read_predictions(COLUMNS | many, confidence=["c*", "-confidence"]).notes[0]
    assert "confidence from 65 columns ('c0' to 'c64'), confidence from 'confidence'" in str(note)
    assert str(note).endswith("negated (lower is safer)")


def test_a_missing_uncertainty_is_the_least_trusted():
    columns = COLUMNS | {"confidence": [0.1, np.nan, 0.8, 0.2]}
    p = read_predictions(columns, lower_is_safer=True, missing="reject").only()
    assert p.confidence["-confidence"].tolist() == [-0.1, -0.8, -0.8, -0.2]


def test_only_confidences_can_be_turned_around():
    with pytest.raises(InputError, match="'label', which is not read as a confidence"):
        read_predictions(COLUMNS, lower_is_safer="label")
    scores = {"label": [0, 1], "logits": np.eye(2)}
    with pytest.raises(InputError, match="requires a column of confidence, and none is selected"):
        read_predictions(scores, lower_is_safer=True)


def pointing(seed: int, *, graded: bool = False, n: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Return a score that points the wrong way, and the loss."""
    rng = np.random.default_rng(seed)
    loss = rng.random(n) if graded else (rng.random(n) < 0.3).astype(float)
    return loss + rng.normal(size=n), loss


@pytest.mark.parametrize("graded", [False, True])
@pytest.mark.parametrize("metric", ["augrc", "aurc", "selective_risk@80cov"])
def test_the_wrong_direction_is_told_whatever_is_requested(graded, metric):
    confidence, loss = pointing(0, graded=graded)
    own = ab.Predictions(confidence={"u": confidence, "v": -confidence}, loss=loss)
    notes = ab.evaluate(own, metrics=[metric], interval="none").notes
    assert [(f.score, f.level) for f in notes if f.kind == "direction"] == [("u", "warning")]
    notes = ab.compare(own, metrics=[metric], bands=False).notes
    assert [(f.score, f.level) for f in notes if f.kind == "direction"] == [("u", "warning")]


def test_a_score_that_knows_nothing_is_rarely_called_wrong():
    # Above two standard deviations on one side: 2.3 %; 4 sigma would be 0.003 %.
    from abstain._foundation.scored import validate_samples
    from abstain.evaluation.notes import direction_warning

    rng = np.random.default_rng(1)
    told = 0
    for _ in range(2000):
        loss = (rng.random(120) < 0.2).astype(float)
        tied = rng.integers(6, size=120)
        told += (
            direction_warning(
                validate_samples(tied, loss, rng.integers(1, 3, size=120)), is_column=True
            )
            is not None
        )
    assert 20 <= told <= 80


def test_a_score_is_called_wrong_just_above_two_standard_deviations_and_not_just_below():
    """By the test of Mann and Whitney, worked out here from the pairs that failures win."""
    from abstain._foundation.scored import validate_samples
    from abstain.evaluation.notes import direction_warning

    n, failures = 100, 20
    pairs = failures * (n - failures)
    spread = np.sqrt(pairs * (n + 1) / 12)
    told = {}
    for lead in range(int(1.9 * spread), int(2.1 * spread)):
        # So many successes are below each failure, from the lowest to the highest.
        each, rest = divmod(pairs // 2 + lead, failures)
        below = each + (np.arange(failures) >= failures - rest)
        loss = np.zeros(n)
        loss[below + np.arange(failures)] = 1.0
        told[lead / spread] = (
            direction_warning(validate_samples(np.arange(n), loss), is_column=True) is not None
        )
    assert told == {lead: lead > 2.0 for lead in told}
    assert 1.99 < max(lead for lead, said in told.items() if not said) <= 2.0


def test_the_failure_auroc_told_is_the_metric():
    from abstain._foundation.scored import validate_samples
    from abstain.evaluation.notes import direction_warning

    confidence, loss = pointing(2)
    weight = np.random.default_rng(0).random(loss.size)
    said = direction_warning(validate_samples(confidence.round(1), loss, weight), is_column=False)
    auroc = ab.failure_auroc(confidence.round(1), loss, weight=weight)
    assert f"(failure AUROC {auroc:.3f})" in said
