"""Batches that are counted give the numbers of the same predictions in memory."""

import math
from dataclasses import fields

import numpy as np
import polars as pl
import pytest

import abstain as ab
from abstain.evaluation.stream import evaluation as engine
from abstain.metrics import Need
from abstain.tables.scan import chunks

#: What takes the classes or class scores of every sample, and so is not computed of counts.
_BEYOND = {Need.CLASSES, Need.PROBABILITIES, Need.TWO_CLASSES, Need.UNKNOWN_CLASSES}


def _frame(n: int, digits: int | None, seed: int = 3) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    confidence = rng.random(n).astype(np.float32)
    confidence = confidence if digits is None else confidence.round(digits)
    label = rng.integers(0, 3, n)
    wrong = rng.random(n) > 0.6 * confidence + 0.35
    return pl.DataFrame(
        {
            "label": label,
            "prediction": (label + wrong) % 3,
            "confidence": confidence,
            "confidence_raw": np.log(confidence.astype(np.float64) + 0.01),
            "site": rng.choice(["north", "south"], n),
            "ward": rng.choice(["x", "y", "z"], n),
        }
    )


def _scores(n: int) -> pl.DataFrame:
    logits = np.random.default_rng(7).normal(size=(n, 3)).round(2)
    label = (logits + np.random.default_rng(8).normal(size=(n, 3))).argmax(axis=1)
    columns = {f"logit_{i}": logits[:, i] for i in range(3)}
    return pl.DataFrame({"label": label, **columns})


def _same(one: object, two: object) -> bool:
    if isinstance(one, float) and isinstance(two, float):
        both = math.isnan(one) and math.isnan(two)
        return both or math.isclose(one, two, rel_tol=1e-9, abs_tol=1e-14)
    return one == two


def _hold(whole: ab.Evaluation, counted: ab.Evaluation, *, named: bool = True) -> None:
    """Compare every column of every result, and what stands beside them."""
    mine = {(r.split, r.score, r.metric.name): r for r in counted}
    assert len(mine) > (30 if named else 12)
    for result in whole:
        key = (result.split, result.score, result.metric.name)
        if key in mine:
            own = mine[key]
            row, own_row = result.row(), own.row()
            off = [name for name in row if not _same(row[name], own_row[name])]
            assert row.keys() == own_row.keys()
            assert not off, (key, off)
        else:
            assert result.metric.measurement.needs & _BEYOND, key
            assert "which a stream does not keep" in counted.skipped[result.metric.name]
    assert [r.metric.name for r in counted] == [
        r.metric.name for r in whole if (r.split, r.score, r.metric.name) in mine
    ]
    assert (counted.loss, counted.is_binary, counted.column_scores) == (
        whole.loss,
        whole.is_binary,
        whole.column_scores,
    )
    told = {(f.kind, f.split, f.score, f.message) for f in whole.notes}
    own = [f for f in counted.notes if not f.message.startswith("The contributions of classes")]
    assert (len(own) == len(counted.notes)) == named
    assert {(f.kind, f.split, f.score, f.message) for f in own} == told
    for curve, two in zip(whole.curves, counted.curves, strict=True):
        assert (curve.split, curve.score) == (two.split, two.score)
        assert (curve.overconfident, curve.underconfident) == (
            two.overconfident,
            two.underconfident,
        )
        for parts in ("by_class", "by_group") if named else ():
            pairs = list(zip(getattr(curve, parts), getattr(two, parts), strict=True))
            assert all(
                _same(getattr(a, f.name), getattr(b, f.name)) for a, b in pairs for f in fields(a)
            )
        assert np.allclose(curve.selective.risk, two.selective.risk, rtol=1e-12)
        assert np.allclose(curve.selective.coverage, two.selective.coverage, rtol=1e-12)
        assert (curve.reliability is None) == (two.reliability is None)
        assert np.allclose(curve.band.low, two.band.low, equal_nan=True)


@pytest.mark.parametrize("digits", [2, None])
@pytest.mark.parametrize("n", [700, 12_000])
def test_the_whole_catalogue_is_the_same(tmp_path, monkeypatch, n, digits):
    monkeypatch.setattr(chunks, "_MAX_ROWS", 1000)
    monkeypatch.setattr(chunks, "_MIN_ROWS", 10)
    _frame(n, digits).write_parquet(tmp_path / "all.parquet", row_group_size=300)
    read = ab.read_predictions(tmp_path / "all.parquet", by="site", group="ward")
    scan = ab.scan_predictions(tmp_path / "all.parquet", by="site", group="ward")
    _hold(ab.evaluate(read, notes=read.notes), ab.evaluate(scan))


def test_scores_of_class_scores_are_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(chunks, "_TEXT_CHUNK_BYTES", 4000)
    _scores(900).write_csv(tmp_path / "all.csv")
    read = ab.read_predictions(tmp_path / "all.csv", logits="logit_*")
    scan = ab.scan_predictions(tmp_path / "all.csv", logits="logit_*")
    _hold(ab.evaluate(read, notes=read.notes), ab.evaluate(scan))


def test_parts_are_what_they_are_together(tmp_path):
    whole = _frame(900, 2)
    whole.write_ndjson(tmp_path / "whole.jsonl")
    for i in range(3):
        whole[300 * i : 300 * (i + 1)].write_ndjson(tmp_path / f"part-{i}.jsonl")
    evaluation = ab.evaluate(ab.read_predictions(tmp_path / "whole.jsonl"), curves=False)
    two = ab.evaluate(ab.scan_predictions(str(tmp_path / "part-*.jsonl")), curves=False)
    values = {(r.score, r.metric.name): r.value for r in evaluation}
    assert all(_same(r.value, values[r.score, r.metric.name]) for r in two)


@pytest.mark.parametrize("n", [700, 9_000])
@pytest.mark.parametrize("given", ["loss", "weight", "both"])
def test_graded_losses_and_weights_are_the_same(tmp_path, monkeypatch, n, given):
    monkeypatch.setattr(chunks, "_MAX_ROWS", 1000)
    monkeypatch.setattr(chunks, "_MIN_ROWS", 10)
    monkeypatch.setattr(engine, "_MAX_PENDING_ROWS", 500)
    rng = np.random.default_rng(5)
    frame = _frame(n, 3).with_columns(pl.col("confidence").clip(0.002))
    frame = frame.with_columns(w=rng.integers(1, 5, n) / 2)
    loss = (frame["label"] != frame["prediction"]).cast(pl.Float64).to_numpy()
    graded = loss if given == "weight" else loss * rng.random(n)
    frame = frame.drop("label", "prediction").with_columns(loss=graded)
    frame.write_parquet(tmp_path / "all.parquet", row_group_size=300)
    asked = {"by": "site", **({} if given == "loss" else {"weight": "w"})}
    read = ab.read_predictions(tmp_path / "all.parquet", **asked)
    scan = ab.scan_predictions(tmp_path / "all.parquet", **asked)
    _hold(ab.evaluate(read, notes=read.notes), ab.evaluate(scan))


def test_a_loss_of_class_scores_is_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(chunks, "_TEXT_CHUNK_BYTES", 4000)
    _scores(900).write_csv(tmp_path / "all.csv")
    read = ab.read_predictions(tmp_path / "all.csv", logits="logit_*")
    scan = ab.scan_predictions(tmp_path / "all.csv", logits="logit_*")
    evaluation = ab.evaluate(scan, loss="brier")
    _hold(ab.evaluate(read, notes=read.notes, loss="brier"), evaluation, named=False)
