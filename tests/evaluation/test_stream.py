"""Counting batches: interrupted and resumed, bad rows counted, and what is refused."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import abstain as ab
from abstain.errors import DomainError, FileFormatError, InputError
from abstain.evaluation.stream import StreamOptions, StreamPlan, counted_evaluation
from abstain.evaluation.stream import evaluation as engine
from abstain.evaluation.uncertainty import Uncertainty
from abstain.tables.scan import pieces

_HOW = Uncertainty.checked("analytic", level=0.95, bootstrap=1000, clustered=False, rng=0)


class _StoppedError(Exception):
    pass


@pytest.fixture
def files(tmp_path, monkeypatch) -> str:
    monkeypatch.setattr(pieces, "_MOST", 100)
    monkeypatch.setattr(pieces, "_LEAST", 10)
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
    options = StreamOptions(resume=folder, told=told, every=0.0)
    return StreamPlan(None, None, None, _HOW, options=options)


def _said(found: ab.Evaluation) -> tuple:
    cases = [(c.overconfident, c.underconfident, c.by_class, c.by_group) for c in found.cases]
    return found.rows().__repr__(), cases, found.findings


@pytest.mark.parametrize("after", [1, 4, 11])
def test_an_interrupted_run_goes_on_to_the_same_result(files, tmp_path, after):
    seen = []

    def stop(progress):
        seen.append(progress)
        if len(seen) == after:
            raise _StoppedError

    whole = counted_evaluation(_scan(files), _plan(None))
    with pytest.raises(_StoppedError):
        counted_evaluation(_scan(files), _plan(tmp_path / "state", stop))
    resumed = []
    found = counted_evaluation(_scan(files), _plan(tmp_path / "state", resumed.append))
    assert _said(found) == _said(whole)
    # What was kept before it stopped is not read again.
    assert len(resumed) == 12 - after
    assert resumed[-1].share == 1.0
    assert resumed[-1].rows == 1200


def test_what_is_kept_is_of_these_files_and_options_alone(files, tmp_path):
    folder = tmp_path / "state"
    counted_evaluation(_scan(files), _plan(folder))
    again: list = []
    counted_evaluation(_scan(files), _plan(folder, again.append))
    assert not again
    counted_evaluation(_scan(files, by=()), _plan(folder, again.append))
    assert len(again) == 12
    last = Path(files).parent / "part-2.parquet"
    last.write_bytes(last.read_bytes())
    counted_evaluation(_scan(files), _plan(folder, again.append))
    assert len(again) == 24


def test_a_damaged_state_is_refused(files, tmp_path):
    folder = tmp_path / "state"
    counted_evaluation(_scan(files), _plan(folder))
    (kept,) = folder.glob("*.npz")
    content = kept.read_bytes()
    kept.write_bytes(content[: len(content) // 2])
    with pytest.raises(FileFormatError, match="delete it to count anew"):
        counted_evaluation(_scan(files), _plan(folder))


def test_samples_that_wait_are_counted_before_they_are_too_many(files, monkeypatch):
    whole = ab.evaluate(_scan(files))
    monkeypatch.setattr(engine, "_WAITING", 150)
    assert _said(ab.evaluate(_scan(files))) == _said(whole)


def test_bad_rows_and_files_are_counted_in_the_findings(files):
    folder = Path(files).parent
    frame = pl.read_parquet(folder / "part-1.parquet")
    confidence = frame["confidence"].to_numpy().copy()
    confidence[[7, 250]] = np.nan
    frame.with_columns(confidence=confidence).write_parquet(
        folder / "part-1.parquet", row_group_size=100
    )
    (folder / "part-2.parquet").write_bytes(b"PAR1")
    found = ab.evaluate(_scan(files, skip_bad=True))
    (told,) = [f.message for f in found.findings if f.kind == "skipped"]
    assert told.startswith("Left out as bad: 2 of 800 rows and 1 files or blocks")
    assert sum(case.n for case in found.cases) == 798
    with pytest.raises(FileFormatError, match=r"part-2\.parquet"):
        ab.evaluate(_scan(files))


def test_notes_on_rows_are_added_up(files):
    folder = Path(files).parent
    for part in range(3):
        frame = pl.read_parquet(folder / f"part-{part}.parquet")
        confidence = frame["confidence"].to_numpy().copy()
        confidence[: part + 1] = np.nan
        frame.with_columns(confidence=confidence).write_parquet(folder / f"part-{part}.parquet")
    found = ab.evaluate(_scan(files, missing="drop"))
    said = [f.message for f in found.findings if "dropped" in f.message]
    assert said == ["6 of 1,200 rows (0.50%) dropped: no confidence in 'confidence'"]


def test_what_takes_every_sample_is_refused(files):
    with pytest.raises(InputError, match="draws from all samples"):
        ab.evaluate(_scan(files), interval="bootstrap")
    with pytest.raises(InputError, match="samples of each cluster"):
        ab.evaluate(_scan(files), clustered=True)
    with pytest.raises(InputError, match="does not apply: it needs labels and predictions"):
        ab.evaluate(_scan(files), metrics=["augrc_ba"])


def test_weights_and_graded_losses_are_refused(tmp_path):
    frame = pl.DataFrame({"loss": [0.5, 0.0, 1.0], "confidence": [0.3, 0.9, 0.1]})
    frame.write_csv(tmp_path / "graded.csv")
    with pytest.raises(DomainError, match="not all 0 or 1"):
        ab.evaluate(ab.scan_predictions(tmp_path / "graded.csv"))
    frame = frame.with_columns(loss=frame["loss"].round(), w=frame["loss"] + 1)
    frame.write_csv(tmp_path / "weighted.csv")
    with pytest.raises(InputError, match="weighted samples are not streamed"):
        ab.evaluate(ab.scan_predictions(tmp_path / "weighted.csv", weight="w"))


def test_a_confidence_outside_of_0_and_1_in_one_batch_is_no_probability(tmp_path, monkeypatch):
    monkeypatch.setattr(pieces, "_MOST", 100)
    monkeypatch.setattr(pieces, "_LEAST", 10)
    confidence = np.linspace(0, 1, 300)
    confidence[250] = 1.5
    frame = pl.DataFrame({"correct": np.arange(300) % 3 > 0, "confidence": confidence})
    frame.write_parquet(tmp_path / "all.parquet", row_group_size=100)
    found = ab.evaluate(ab.scan_predictions(tmp_path / "all.parquet"))
    assert found.skipped["ece"] == "needs a confidence in [0, 1]"
    assert any(f.kind == "scale" for f in found.findings)
