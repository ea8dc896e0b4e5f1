"""Counting batches: interrupted and resumed, bad rows counted, and what is refused."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import abstain as ab
from abstain.errors import FileFormatError, InputError
from abstain.evaluation.intervals import IntervalOptions
from abstain.evaluation.stream import StreamOptions, StreamPlan, evaluate_stream
from abstain.evaluation.stream import evaluation as engine
from abstain.evaluation.stream.counts import CountingOptions
from abstain.tables.scan import chunks

_HOW = IntervalOptions.from_arguments(
    "analytic", level=0.95, bootstrap=1000, clustered=False, rng=0
)


class _StoppedError(Exception):
    pass


@pytest.fixture
def files(tmp_path, monkeypatch) -> str:
    monkeypatch.setattr(chunks, "_MAX_ROWS", 100)
    monkeypatch.setattr(chunks, "_MIN_ROWS", 10)
    rng = np.random.default_rng(1)
    for part in range(3):
        confidence = rng.random(400).round(2)
        frame = pl.DataFrame(
            {
                "label": rng.choice(["cat", "dog"], 400),
                "prediction": rng.choice(["cat", "dog"], 400),
                "confidence": confidence,
                "site": rng.choice(["a", "b"], 400),
                "ward": rng.choice(["x", "y"], 400),
            }
        )
        frame.write_parquet(tmp_path / f"part-{part}.parquet", row_group_size=100)
    return str(tmp_path / "part-*.parquet")


def _scan(files: str, **options: object):
    return ab.scan_predictions(files, **{"by": "site", "group": "ward", **options})


def _plan(folder: Path | None, told=lambda _: None) -> StreamPlan:
    options = StreamOptions(resume=folder, on_progress=told, progress_interval=0.0)
    return StreamPlan(None, None, None, _HOW, options=options)


def _said(found: ab.Evaluation) -> tuple:
    cases = [(c.overconfident, c.underconfident, c.by_class, c.by_group) for c in found.curves]
    return found.rows().__repr__(), cases, found.notes


def test_one_folder_counts_the_same_files_once_at_a_time(files, tmp_path):
    folder = tmp_path / "state"

    def again(_):
        # As another process would, while the first one counts.
        with pytest.raises(InputError, match=r"another run counts the same files.*`resume`"):
            evaluate_stream(_scan(files), _plan(folder))

    first = evaluate_stream(_scan(files), _plan(folder, again))
    assert _said(evaluate_stream(_scan(files), _plan(folder))) == _said(first)
    # Other options count apart.
    evaluate_stream(_scan(files, group=None), _plan(folder))


@pytest.mark.parametrize("after", [1, 4, 11])
def test_an_interrupted_run_goes_on_to_the_same_result(files, tmp_path, after):
    calls = []

    def stop(progress):
        calls.append(progress)
        if len(calls) == after:
            raise _StoppedError

    whole = evaluate_stream(_scan(files), _plan(None))
    with pytest.raises(_StoppedError):
        evaluate_stream(_scan(files), _plan(tmp_path / "state", stop))
    resumed = []
    evaluation = evaluate_stream(_scan(files), _plan(tmp_path / "state", resumed.append))
    assert _said(evaluation) == _said(whole)
    # What was kept before it stopped is not read again.
    assert len(resumed) == 12 - after
    assert resumed[-1].share == 1.0
    assert resumed[-1].n_rows == 1200


def test_what_is_kept_is_of_these_files_and_options_alone(files, tmp_path):
    folder = tmp_path / "state"
    first = evaluate_stream(_scan(files), _plan(folder))
    again: list = []
    evaluate_stream(_scan(files), _plan(folder, again.append))
    assert not again
    evaluate_stream(_scan(files, by=()), _plan(folder, again.append))
    assert len(again) == 12
    last = Path(files).parent / "part-2.parquet"
    last.write_bytes(last.read_bytes())
    changed = evaluate_stream(_scan(files), _plan(folder, again.append))
    assert len(again) == 24
    # Whoever waits for the rest is told why it was all.
    anew = [finding for finding in changed.notes if "counted again" in finding.message]
    assert [finding.level for finding in anew] == ["note"]
    assert not [finding for finding in first.notes if "counted again" in finding.message]


def test_notes_of_a_state_are_records_or_the_texts_of_an_earlier_version(tmp_path):
    rows = "label,prediction,confidence\n1,1,0.9\n,1,0.4\n0,1,0.7\n"
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text(rows)
    scan = ab.scan_predictions(str(tmp_path / "*.csv"), missing="drop")
    folder = tmp_path / "state"

    def dropped_notes():
        findings = evaluate_stream(scan, _plan(folder)).notes
        return [note.message for note in findings if "dropped" in note.message]

    first = dropped_notes()
    assert first == ["2 of 6 rows (33.33%) dropped: no label in 'label'"] == dropped_notes()
    (path,) = folder.glob("*.npz")
    arrays = dict(np.load(path))
    plain = json.loads(str(arrays["plain"]))
    text = "1 of 3 rows (33.33%) dropped: no label in 'label'"
    plain["notes"] = [[n, [text]] for n, _ in plain["notes"]]
    np.savez(path, **arrays | {"plain": np.array(json.dumps(plain))})
    assert dropped_notes() == [text]


def test_a_damaged_state_raises_an_error(files, tmp_path):
    folder = tmp_path / "state"
    evaluate_stream(_scan(files), _plan(folder))
    (kept,) = folder.glob("*.npz")
    content = kept.read_bytes()
    kept.write_bytes(content[: len(content) // 2])
    with pytest.raises(FileFormatError, match="delete it to count anew"):
        evaluate_stream(_scan(files), _plan(folder))


def test_samples_that_wait_are_counted_before_they_are_too_many(files, monkeypatch):
    evaluation = ab.evaluate(_scan(files))
    monkeypatch.setattr(engine, "_MAX_PENDING_COUNTS", 150)
    assert _said(ab.evaluate(_scan(files))) == _said(evaluation)


def test_bad_rows_and_files_are_counted_in_the_findings(files):
    folder = Path(files).parent
    frame = pl.read_parquet(folder / "part-1.parquet")
    confidence = frame["confidence"].to_numpy().copy()
    confidence[[7, 250]] = np.nan
    frame.with_columns(confidence=confidence).write_parquet(
        folder / "part-1.parquet", row_group_size=100
    )
    (folder / "part-2.parquet").write_bytes(b"PAR1")
    evaluation = ab.evaluate(_scan(files, skip_bad=True))
    (told,) = [f.message for f in evaluation.notes if f.kind == "skipped"]
    assert told.startswith("Left out as bad: 2 of 800 rows and 1 file or block that")
    assert sum(case.n for case in evaluation.curves) == 798
    with pytest.raises(FileFormatError, match=r"part-2\.parquet"):
        ab.evaluate(_scan(files))


def test_notes_on_rows_are_added_up(files):
    folder = Path(files).parent
    for part in range(3):
        frame = pl.read_parquet(folder / f"part-{part}.parquet")
        confidence = frame["confidence"].to_numpy().copy()
        confidence[: part + 1] = np.nan
        frame.with_columns(confidence=confidence).write_parquet(folder / f"part-{part}.parquet")
    evaluation = ab.evaluate(_scan(files, missing="drop"))
    said = [f.message for f in evaluation.notes if "dropped" in f.message]
    assert said == ["6 of 1,200 rows (0.50%) dropped: no confidence in 'confidence'"]


def test_what_takes_every_sample_raises_an_error(files):
    with pytest.raises(InputError, match="draws from all samples"):
        ab.evaluate(_scan(files), interval="bootstrap")
    with pytest.raises(InputError, match="samples of each cluster"):
        ab.evaluate(_scan(files), clustered=True)
    with pytest.raises(InputError, match="does not apply: it needs labels and predictions"):
        ab.evaluate(_scan(files), metrics=["augrc_ba"])


@pytest.fixture
def graded(tmp_path, monkeypatch) -> str:
    """Files of which the first has losses of 0 and 1 alone."""
    monkeypatch.setattr(chunks, "_MAX_ROWS", 100)
    monkeypatch.setattr(chunks, "_MIN_ROWS", 10)
    monkeypatch.setattr(engine, "_MAX_PENDING_ROWS", 1)
    rng = np.random.default_rng(4)
    for part in range(3):
        loss = rng.random(300)
        frame = pl.DataFrame(
            {
                "loss": loss.round(0 if part == 0 else 3),
                "confidence": (1 - loss + rng.normal(0, 0.3, 300)).round(2),
                "w": rng.integers(1, 4, 300),
            }
        )
        frame.write_parquet(tmp_path / f"part-{part}.parquet", row_group_size=100)
    return str(tmp_path / "part-*.parquet")


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("after", [2, 5, 8])
def test_rows_on_disk_are_resumed_to_the_same_result(graded, tmp_path, weight, after):
    calls = []

    def stop(progress):
        calls.append(progress)
        if len(calls) == after:
            raise _StoppedError

    folder, scan = tmp_path / "state", ab.scan_predictions(graded, weight=weight)
    whole = evaluate_stream(scan, _plan(None))
    with pytest.raises(_StoppedError):
        evaluate_stream(scan, _plan(folder, stop))
    # As a run leaves it that is killed while it writes rows.
    (rows,) = folder.glob("counted-*-rows") if after > 3 or weight else [folder]
    left = [rows / "run-0123456789abcdef.npy", rows / ".run-0123456789abcdef.npy.12ab34cd.tmp"]
    for path in left:
        path.write_bytes(b"half")
    resumed = []
    evaluation = evaluate_stream(scan, _plan(folder, resumed.append))
    assert _said(evaluation) == _said(whole)
    assert len(resumed) == 9 - after
    if rows != folder:
        assert not any(path.exists() for path in left)


def test_a_short_file_of_confidences_0_and_1_is_one_of_all(graded):
    last = Path(graded).parent / "part-3.parquet"
    frame = pl.DataFrame({"loss": [0.5, 0.25, 0.0], "confidence": [0.0, 1.0, 1.0], "w": [1, 2, 3]})
    frame.write_parquet(last)
    assert ab.evaluate(ab.scan_predictions(graded)).curves[0].n == 903


def test_rows_without_a_folder_leave_nothing(graded, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    assert ab.evaluate(ab.scan_predictions(graded)).curves[0].n == 900
    assert not list((tmp_path / "temporary").iterdir())


def test_of_more_rows_than_fit_the_areas_are_computed(graded):
    whole = ab.evaluate(ab.scan_predictions(graded))
    options = StreamOptions(memory=1 << 16)
    evaluation = ab.evaluate(ab.scan_predictions(graded), stream=options)
    assert {"augrc", "aurc", "aurc_plugin"} <= {r.metric.name for r in evaluation}
    for result in evaluation:
        assert result.value == pytest.approx(whole.value(result.metric.name), rel=1e-9)
        (same,) = [r for r in whole if r.metric == result.metric]
        assert (result.n, result.failures) == (same.n, same.failures)
        assert result.tied_share == same.tied_share
        assert result.interval.note == "an interval needs all rows in memory"
    assert evaluation.skipped["e_aurc"].startswith("needs all 900 rows in memory")
    assert not evaluation.curves


def test_a_cluster_refuses_what_is_sorted_on_one_disk(graded):
    for weight, what in ((None, "losses beyond 0 and 1"), ("w", "weighted samples")):
        scan = ab.scan_predictions(graded, weight=weight)
        batches = list(scan.batches())
        with pytest.raises(InputError, match=f"{what} are sorted on the disk of one machine"):
            CountingOptions(None, None).losses(batches[-1].splits[()])


def test_lost_rows_raise_an_error(graded, tmp_path):
    folder, scan = tmp_path / "state", ab.scan_predictions(graded)
    evaluate_stream(scan, _plan(folder))
    next(folder.glob("*-rows/run-*.npy")).unlink()
    with pytest.raises(FileFormatError, match="delete it to count anew"):
        evaluate_stream(scan, _plan(folder))


def test_a_confidence_outside_of_0_and_1_in_one_batch_is_no_probability(tmp_path, monkeypatch):
    monkeypatch.setattr(chunks, "_MAX_ROWS", 100)
    monkeypatch.setattr(chunks, "_MIN_ROWS", 10)
    confidence = np.linspace(0, 1, 300)
    confidence[250] = 1.5
    frame = pl.DataFrame({"correct": np.arange(300) % 3 > 0, "confidence": confidence})
    frame.write_parquet(tmp_path / "all.parquet", row_group_size=100)
    evaluation = ab.evaluate(ab.scan_predictions(tmp_path / "all.parquet"))
    assert evaluation.skipped["ece"] == "needs a confidence in [0, 1]"
    assert any(f.kind == "scale" for f in evaluation.notes)
