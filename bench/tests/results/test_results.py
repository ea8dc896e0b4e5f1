"""Results of a benchmark: the same numbers by another way, and nothing that stops the rest."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from bench.tests.runs.made_store import METHODS, brute, made_store

import abstain as ab
from abstain.errors import FileFormatError, InputError, UnknownNameError
from abstain_bench.results import results_of
from abstain_bench.runs.selection import select_best_settings
from abstain_bench.runs.store import VALIDATION, RunScores, Store, pack_scores, write_manifest
from abstain_bench.runs.studies import studies_of

AVERAGES = {"mcd_msr", "ens_msr"}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return made_store(tmp_path_factory.mktemp("runs"), n=60, severities=(1, 3), rng=6)


@pytest.fixture(scope="module")
def results(store):
    return results_of(store, metrics=["augrc", "failure_auroc", "accuracy", "ece"], risk=0.15)


def run_of(store, chosen, seed):
    place = (chosen.arm, chosen.setting, seed)
    return next(run for run in store.tested_runs if (run.arm, run.setting, run.seed) == place)


def by_hand(store, run, study, method):
    """Return confidence, loss and what counts, from the arrays of the files."""
    labels, prediction, averaged, confidence = brute(store, run, study)
    answers = averaged if method in AVERAGES else prediction
    wrong = answers != labels
    counts = np.ones(labels.size, bool)
    if study.errors == "removed":
        counts = ~(wrong & (labels >= 0))
    loss = wrong.astype(float)
    if study.errors == "scod":
        loss[labels < 0] = 2.0
    if study.errors == "outlier":
        loss = (labels < 0).astype(float)
    return confidence[method], loss, counts


def cases(store, results, run, study, method):
    """Return what a number of a study is the mean of: of each part confidence, loss, what counts."""
    named = {own.name: own for own in results.studies}
    parts = [named[name] for name in study.parts] or [study]
    return [by_hand(store, run, part, method) for part in parts]


def values(results, metric):
    return {
        (dict(e.data)["study"], e.run, e.method): e.value
        for e in results.comparisons[metric].estimates
    }


def test_every_study_method_and_seed_has_the_value_of_the_concatenated_arrays(store, results):
    result = values(results, "augrc")
    selected = {setting.method: setting for setting in results.chosen if setting.metric == "augrc"}
    assert len(selected) == 8
    checked = 0
    for study in results.studies:
        for method, setting in selected.items():
            each = []
            for seed in store.seeds:
                run = run_of(store, setting, seed)
                own = cases(store, results, run, study, method)
                each.append(np.mean([ab.augrc(c[kept], loss[kept]) for c, loss, kept in own]))
                assert result[study.name, str(seed), method] == pytest.approx(each[-1], abs=1e-12)
            assert result[study.name, "mean", method] == pytest.approx(np.mean(each), abs=1e-12)
            checked += 1
    assert checked == 14 * 8


def test_the_auroc_of_outliers_equals_that_of_the_outlier_label(store):
    """FD-Shifts, eq. 26: new classes against all i.i.d. pictures, whatever was said of them."""
    results = results_of(store, metrics=["failure_auroc"], studies=["digits-outlier"])
    one = next(setting for setting in results.chosen if setting.method == "mcd_msr")
    run = run_of(store, one, 1)
    said = [store.scores(run, key).confidence["mcd_msr"] for key in ("iid", "digits")]
    above = said[0][:, None] - said[1]
    expected = (above > 0).mean() + (above == 0).mean() / 2
    value = values(results, "failure_auroc")["digits-outlier", "1", "mcd_msr"]
    assert value == pytest.approx(expected, abs=1e-12)


def test_each_metric_uses_the_settings_chosen_by_it(store, results):
    assert results.chosen == select_best_settings(store.stored_runs, results.metrics)
    places = {(one.method, one.metric): (one.arm, one.setting) for one in results.chosen}
    # Otherwise the test below could not tell.
    assert any(places[m, "augrc"] != places[m, "accuracy"] for m, _ in places)
    result = values(results, "accuracy")
    for study in results.studies:
        # Of costs there is no accuracy, and without the wrong answers it says nothing.
        if study.errors in {"scod", "removed", "outlier"}:
            assert (study.name, "mean", "msr") not in result
            assert results.undefined["accuracy", study.name]
            continue
        for one in (own for own in results.chosen if own.metric == "accuracy"):
            own = cases(store, results, run_of(store, one, 1), study, one.method)
            expected = np.mean([1 - loss[counts].mean() for _, loss, counts in own])
            assert result[study.name, "1", one.method] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", ["corruption-pooled", "digits"])
def test_intervals_and_pairs_equal_those_of_compare(store, results, name):
    study = next(study for study in results.studies if study.name == name)
    splits = {}
    for one in results.chosen:
        if one.metric == "augrc":
            for seed in store.seeds:
                run = run_of(store, one, seed)
                confidence, loss, counts = by_hand(store, run, study, one.method)
                key = (("study", name), ("seed", str(seed)), ("method", one.method))
                places = np.concatenate(
                    [store.scores(run, key).source_indices for key in study.exposures]
                )
                if len(study.exposures) == 2 and study.exposures[0] == "iid":
                    places[60:] += 1000
                splits[key] = ab.Predictions(
                    confidence={"c": confidence},
                    loss=loss,
                    weight=counts.astype(float) if study.errors == "removed" else None,
                    group=places,
                )
    direct = ab.compare(
        splits,
        metrics=["augrc"],
        methods="method",
        runs="seed",
        clustered=True,
        per_method_weights=True,
    )
    mine = results.comparisons["augrc"]
    data = (("study", name),)
    ours = {(e.run, e.method): e for e in mine.estimates if e.data == data}
    theirs = {(e.run, e.method): e for e in direct.estimates}
    assert set(ours) == set(theirs)
    for place, one in theirs.items():
        for field in ("value", "low", "high", "standard_error", "n", "failures"):
            assert getattr(ours[place], field) == pytest.approx(getattr(one, field), abs=1e-12)
    ours = {(p.first, p.second): p for p in mine.pairs if p.data == data}
    theirs = {(p.first, p.second): p for p in direct.pairs if p.data == data}
    assert set(ours) == set(theirs)
    for place, one in theirs.items():
        assert ours[place].better == one.better
        for field in ("difference", "low", "high", "p_value", "adjusted", "superiority"):
            assert getattr(ours[place], field) == pytest.approx(getattr(one, field), abs=1e-9)
    ranks = {s.method: s.rank for s in mine.standings if s.data == data}
    assert ranks == {s.method: s.rank for s in direct.standings if s.data == data}


def test_the_mean_over_the_severities_equals_that_of_their_runs_in_parallel(store, results):
    """What `compare` says of seeds x severities as runs, in which a picture counts once."""
    named = {study.name: study for study in results.studies}
    splits = {}
    for one in results.chosen:
        if one.metric == "augrc":
            for seed in store.seeds:
                run = run_of(store, one, seed)
                for part in named["corruption"].parts:
                    confidence, loss, _ = by_hand(store, run, named[part], one.method)
                    places = [
                        store.scores(run, key).source_indices for key in named[part].exposures
                    ]
                    split = (("run", f"{seed} {part}"), ("method", one.method))
                    splits[split] = ab.Predictions(
                        confidence={"c": confidence}, loss=loss, group=np.concatenate(places)
                    )
    direct = ab.compare(splits, metrics=["augrc"], methods="method", runs="run", clustered=True)
    mine, data = results.comparisons["augrc"], (("study", "corruption"),)
    ours = {e.method: e for e in mine.estimates if e.data == data and e.run == "mean"}
    theirs = {e.method: e for e in direct.estimates if e.run == "mean"}
    assert set(ours) == set(theirs)
    for method, one in theirs.items():
        for field in ("value", "low", "high", "standard_error"):
            assert getattr(ours[method], field) == pytest.approx(getattr(one, field), abs=1e-12)
        assert ours[method].n == 120
    ours = {(p.first, p.second): p for p in mine.pairs if p.data == data}
    theirs = {(p.first, p.second): p for p in direct.pairs if p.data == ()}
    assert set(ours) == set(theirs)
    for place, one in theirs.items():
        assert ours[place].difference == pytest.approx(one.difference, abs=1e-12)
        assert ours[place].standard_error == pytest.approx(one.standard_error, abs=1e-12)
    ranks = {s.method: s.rank for s in mine.standings if s.data == data}
    assert ranks == {s.method: s.rank for s in direct.standings if s.data == ()}
    # Pooled is another number: severities differ in difficulty, so their areas do not add up.
    pooled = values(results, "augrc")["corruption-pooled", "mean", "msr"]
    assert abs(pooled - values(results, "augrc")["corruption", "mean", "msr"]) > 1e-3


def test_the_area_under_the_mean_curve_is_the_mean_of_the_areas(store, results):
    for method in ("msr", "knn"):
        curve = results.curves["corruption", method]
        area = np.trapezoid(curve.generalized_risk, curve.coverage)
        first = values(results, "augrc")["corruption", curve.run, method]
        assert area == pytest.approx(first, abs=2e-3)


def test_only_headline_studies_count_together(results):
    (across,) = results.comparisons["augrc"].mean_ranks
    assert across.blocks == 5 == len(results.headline)
    assert set(across.methods) == {method.name for method in results.methods}


def test_calibrated_confidences_are_what_ece_is_of(store, results):
    result = values(results, "ece")
    study = next(study for study in results.studies if study.name == "unseen")
    for one in (setting for setting in results.chosen if setting.metric == "ece"):
        run = run_of(store, one, 2)
        known = store.scores(run, VALIDATION)
        answers = known.prediction_for(one.method in AVERAGES)
        held_out = ab.Predictions(
            confidence={"c": known.confidence[one.method]}, loss=answers != known.labels
        )
        confidence, loss, _ = by_hand(store, run, study, one.method)
        test = ab.Predictions(confidence={"c": confidence}, loss=loss)
        chance = ab.calibrate("c", held_out).score(test).probability
        expected = ab.metrics.ece(chance, loss)
        assert result["unseen", "2", one.method] == pytest.approx(expected, abs=1e-12)
    assert all(np.isnan(e.low) for e in results.comparisons["ece"].estimates)
    assert {s.rank for s in results.comparisons["ece"].standings} >= {1.0, 8.0}
    rows = {(r.study, r.method, r.run): r for r in results.calibration}
    # The confidence of "knn" is no probability; that of "msr" is the log-odds of one.
    assert rows["iid", "knn", "1"].raw is None
    msr = next(
        setting
        for setting in results.chosen
        if (setting.metric, setting.method) == ("augrc", "msr")
    )
    iid = next(study for study in results.studies if study.name == "iid")
    confidence, loss, _ = by_hand(store, run_of(store, msr, 1), iid, "msr")
    raw = ab.metrics.ece(1 / (1 + np.exp(-confidence)), loss)
    assert rows["iid", "msr", "1"].raw == pytest.approx(raw, abs=1e-12)
    platt = [rows["iid", "msr", run].platt for run in ("1", "2", "mean")]
    assert platt[2] == pytest.approx((platt[0] + platt[1]) / 2)


def test_thresholds_are_set_on_validation_data_and_meet_all_pictures(store, results):
    rows = {(r.study, r.method, r.run): r for r in results.thresholds}
    kept = {study.name: replace(study, errors="kept") for study in results.studies}
    seen = set()
    for one in (setting for setting in results.chosen if setting.metric == "augrc"):
        for seed in store.seeds:
            run = run_of(store, one, seed)
            known = store.scores(run, VALIDATION)
            wrong = known.prediction_for(one.method in AVERAGES) != known.labels
            rule = ab.thresholds.sgr(known.confidence[one.method], wrong, max_risk=0.15, delta=0.05)
            for name in ("iid", "corruption-3", "digits"):
                row = rows[name, one.method, str(seed)]
                confidence, loss, _ = by_hand(store, run, kept[name], one.method)
                seen.add(row.verdict)
                assert row.row()["threshold"] == rule.threshold
                if rule.threshold is None:
                    assert (row.verdict, row.row()["note"]) == ("unattainable", rule.reason)
                    continue
                accepted = confidence >= rule.threshold
                assert row.row()["accepted"] == accepted.sum()
                assert row.coverage == pytest.approx(accepted.mean())
                assert row.selective_risk == pytest.approx(loss[accepted].mean())
                assert row.excess == pytest.approx(loss[accepted].mean() - 0.15)
                assert (
                    row.row()["selective_risk_low"]
                    <= row.selective_risk
                    <= row.row()["selective_risk_high"]
                )
    assert {"unattainable", "broken"} < seen
    mean, each = rows["iid", "confidnet", "mean"], [rows["iid", "confidnet", s] for s in "12"]
    assert mean.coverage == pytest.approx(np.mean([row.coverage for row in each]))
    assert (len(mean.checks), mean.count("holds")) == (
        2,
        sum(row.verdict == "holds" for row in each),
    )
    assert not any(row.study.endswith(("-kept", "-scod", "-outlier")) for row in results.thresholds)


def test_the_most_extreme_pictures_are_found_where_they_lie(store, results):
    one = next(o for o in results.chosen if (o.metric, o.method) == ("augrc", "mcd_msr"))
    run = run_of(store, one, 1)
    for name in ("digits", "corruption"):
        study = next(study for study in results.studies if study.name == name)
        confidence, loss, counts = by_hand(store, run, study, "mcd_msr")
        for kind, failed, sign in (("overconfident", True, -1), ("underconfident", False, 1)):
            own = [
                e
                for e in results.extremes
                if (e.study, e.method, e.kind) == (name, "mcd_msr", kind)
            ]
            among = confidence[counts & ((loss > 0) == failed)]
            expected = sign * np.sort(sign * among)[:8]
            assert [e.confidence for e in own] == expected.tolist()
            assert [e.rank for e in own] == list(range(1, 9))
            for e in own:
                part = store.scores(run, e.exposure)
                assert part.confidence["mcd_msr"][e.row] == e.confidence
                assert (part.labels[e.row], part.mean_prediction[e.row]) == (e.label, e.prediction)
                assert (e.label != e.prediction) == failed
                below = (confidence[counts] < e.confidence).mean()
                assert e.quantile == pytest.approx(
                    below + (confidence[counts] == e.confidence).mean() / 2
                )


def test_curves_end_in_the_risk_of_everything(store, results):
    assert set(results.curves) == {
        (s.name, m.name) for s in results.studies for m in results.methods
    }
    one = next(o for o in results.chosen if (o.metric, o.method) == ("augrc", "pe"))
    for study in results.studies:
        own = cases(store, results, run_of(store, one, 1), study, "pe")
        curve = results.curves[study.name, "pe"]
        assert curve.coverage[-1] == pytest.approx(1)
        expected = np.mean([loss[counts].mean() for _, loss, counts in own])
        assert curve.selective_risk[-1] == pytest.approx(expected)
        assert curve.generalized_risk == pytest.approx(curve.coverage * curve.selective_risk)
        assert curve.coverage.size <= 200


def test_every_table_is_plain_and_complete(results):
    for table in results.TABLES:
        for row in results.rows(table):
            for name, value in row.items():
                assert isinstance(name, str)
                assert value is None or type(value) in (str, int, float, bool), (table, name)
    assert results.frame("estimates").height == 3 * 8 * (14 + 12 + 8 + 12)
    with pytest.raises(InputError, match="estimates"):
        results.rows("estimate")


def test_a_frame_is_its_rows_and_no_more_than_those_of_one_metric_at_a_time(results, monkeypatch):
    # One metric has no pairs here, and the columns of some are empty.
    expected = {
        table: pl.DataFrame(results.rows(table), infer_schema_length=None)
        for table in results.TABLES
    }
    for table, frame in expected.items():
        result = results.frame(table)
        assert result.schema == frame.schema
        assert result.equals(frame, null_equal=True)
    with pytest.raises(InputError, match="estimates"):
        results.frame("estimate")
    monkeypatch.setattr(type(results), "rows", lambda *_: pytest.fail("all metrics at once"))
    assert results.frame("pairs").equals(expected["pairs"], null_equal=True)


def test_what_the_reader_should_know_is_told(results):
    kinds = {finding.kind for finding in results.findings}
    assert {"ensemble", "dependent_studies"} <= kinds
    assert [f.level for f in results.findings] == sorted(
        (f.level for f in results.findings), reverse=True
    )


def test_no_other_run_changes_a_number(store, results):
    alone = results_of(store, metrics=["augrc"], studies=["digits", "iid"], methods=["msr", "knn"])
    assert [study.name for study in alone.studies] == ["iid", "digits"]
    assert [method.name for method in alone.methods] == ["msr", "knn"]
    every = values(results, "augrc")
    for place, value in values(alone, "augrc").items():
        assert value == every[place]


def test_what_does_not_exist_raises_an_error(store):
    with pytest.raises(UnknownNameError, match="unseen"):
        results_of(store, studies=["unsen"])
    with pytest.raises(UnknownNameError, match="confidnet"):
        results_of(store, methods=["confidnett"])
    with pytest.raises(InputError, match="nll"):
        results_of(store, metrics=["nll"])
    with pytest.raises(TypeError, match="bootstrap"):
        results_of(store, bootstraps=3)
    with pytest.raises(InputError, match="tested"):
        results_of(
            replace(store, stored_runs=tuple(replace(k, test_file="") for k in store.stored_runs))
        )


@pytest.fixture(scope="module")
def small():
    return {"cross-entropy": METHODS["cross-entropy"], "devries": METHODS["devries"]}


def test_a_missing_run_leaves_out_its_seed_or_its_methods_and_that_is_told(tmp_path, small):
    options = {"methods": small, "severities": (), "n": 40, "metrics": ("augrc",)}
    # One method of seven in one seed of three: without it 6 x 3 numbers, without its seed 7 x 2.
    store = made_store(tmp_path / "a", seeds=3, missing=[("devries", 2)], **options)
    results = results_of(store, studies=["iid"])
    assert results.comparisons["augrc"].runs == ("1", "2", "3")
    assert "seed 2" in results.left_out["devries"]
    assert any(f.kind == "left_out" and f.score == "devries" for f in results.findings)
    assert any(f.kind == "settings" and "2" in f.message for f in results.findings)
    # Five of seven: the seed goes.
    store = made_store(tmp_path / "b", seeds=3, missing=[("cross-entropy", 2)], **options)
    results = results_of(store, studies=["iid"])
    assert results.comparisons["augrc"].runs == ("1", "3")
    assert results.left_out == {}
    assert any(f.kind == "seeds" and "Seed 2" in f.message for f in results.findings)


def test_ties_and_values_that_are_undefined_break_nothing(tmp_path, small):
    store = made_store(tmp_path, seeds=2, n=40, methods=small, severities=(), ties=True)
    run = store.tested_runs[0]
    path = store.folder / next(k.test_file for k in store.stored_runs if k.run == run)
    parts = [store.scores(run, e.key, logits=True) for e in store.exposures]
    iid = parts[0]
    # This network makes no error at all on i.i.d. pictures.
    parts[0] = replace(iid, prediction=iid.labels, mean_prediction=None)
    path.write_bytes(pack_scores(parts))
    results = results_of(Store.read(tmp_path), metrics=["failure_auroc", "augrc"])
    assert ("failure_auroc", "iid") in results.undefined
    estimates = {
        (dict(e.data)["study"], e.run, e.method): e
        for e in results.comparisons["failure_auroc"].estimates
    }
    selected = {o.method: o for o in results.chosen if o.metric == "failure_auroc"}
    undefined = [m for m, o in selected.items() if (o.arm, o.setting) == (run.arm, run.setting)]
    assert undefined
    for method in undefined:
        assert np.isnan(estimates["iid", "1", method].value)
        assert ("iid", "mean", method) not in estimates
        assert np.isfinite(estimates["unseen", "mean", method].value)
    assert np.isfinite(estimates["iid", "mean", "devries"].value)
    assert any(f.kind == "few_failures" for f in results.findings)
    augrc = values(results, "augrc")
    study = next(study for study in results.studies if study.name == "digits")
    for one in (setting for setting in results.chosen if setting.metric == "augrc"):
        run = run_of(store, one, 2)
        confidence, loss, counts = by_hand(Store.read(tmp_path), run, study, one.method)
        expected = ab.augrc(confidence[counts], loss[counts])
        assert augrc["digits", "2", one.method] == pytest.approx(expected, abs=1e-12)


def test_a_study_without_failures_and_confidences_that_say_nothing(tmp_path, small):
    metrics = ("augrc", "failure_auroc", "accuracy")
    store = made_store(
        tmp_path, seeds=1, n=40, methods=small, severities=(), settings=("only",), metrics=metrics
    )
    for stored_run in store.stored_runs:
        parts = [store.scores(stored_run.run, e.key, logits=True) for e in store.exposures]
        parts[0] = replace(parts[0], prediction=parts[0].labels, mean_prediction=None)
        parts[1] = replace(
            parts[1], confidence={m: np.full(parts[1].n, 0.5) for m in parts[1].confidence}
        )
        (tmp_path / stored_run.test_file).write_bytes(pack_scores(parts))
    results = results_of(Store.read(tmp_path), studies=["iid", "unseen"])
    assert results.undefined == {("failure_auroc", "iid"): "there are no failures"}
    assert {e.value for e in results.comparisons["augrc"].estimates if e.data[0][1] == "iid"} == {0}
    unseen = {
        e.value for e in results.comparisons["failure_auroc"].estimates if e.data[0][1] == "unseen"
    }
    assert unseen == {0.5}
    assert not any(e.kind == "overconfident" for e in results.extremes if e.study == "iid")


def test_a_method_nobody_chose_a_setting_for_is_compared_with_the_others(tmp_path, small):
    store = made_store(tmp_path, seeds=2, n=40, methods=small, severities=(), metrics=("augrc",))
    kept = []
    for one in store.stored_runs:
        if one.run.arm == "devries" and one.test_file:
            parts = [store.scores(one.run, e.key, logits=True) for e in store.exposures]
            added = [with_column(part) for part in parts]
            (tmp_path / one.test_file).write_bytes(pack_scores(added))
        kept.append(one)
    rewrite(store, kept)
    results = results_of(Store.read(tmp_path), studies=["iid", "digits"])
    facts = {own.name: own for own in results.methods}
    assert facts["theirs"].added
    assert list(facts)[-1] == "theirs"
    assert values(results, "augrc")["iid", "mean", "theirs"] >= 0
    (one,) = (own for own in results.chosen if own.method == "theirs")
    assert one.arm == "devries"
    assert "undefined on the validation data" in one.note


def with_column(part: RunScores) -> RunScores:
    own = np.random.default_rng(part.n).random(part.n)
    return replace(part, confidence={**part.confidence, "theirs": own})


def rewrite(store, kept):
    write_manifest(
        store.folder,
        config=store.config,
        facts=store.facts,
        classes=store.classes,
        exposures=store.exposures,
        stored_runs=kept,
    )


def test_runs_on_different_pictures_raise_an_error(tmp_path, small):
    store = made_store(tmp_path, seeds=1, n=40, methods=small, severities=(), metrics=("augrc",))
    one = next(k for k in store.stored_runs if k.run.arm == "devries" and k.test_file)
    parts = [store.scores(one.run, e.key, logits=True) for e in store.exposures]
    parts[0] = replace(parts[0], labels=parts[0].labels[::-1].copy())
    (tmp_path / one.test_file).write_bytes(pack_scores(parts))
    with pytest.raises(FileFormatError, match=one.run.name):
        results_of(Store.read(tmp_path), studies=["iid"])


def test_resamples_give_ece_its_intervals(tmp_path, small):
    store = made_store(tmp_path, seeds=2, n=60, methods=small, severities=(), metrics=("ece",))
    results = results_of(store, studies=["iid"], methods=["msr", "devries"], bootstrap=100)
    ece = results.comparisons["ece"]
    assert ece.bootstrap == 100
    assert all(e.low <= e.value <= e.high for e in ece.estimates)


def test_a_store_is_read_without_torch():
    code = (
        "import sys, abstain_bench.results, abstain_bench.runs.store; "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_same_store_gives_the_same_results(store, results):
    again = results_of(store, metrics=["augrc"], studies=["iid", "digits", "unseen"])
    first = [e for e in results.comparisons["augrc"].standings if e.data]
    second = [e for e in again.comparisons["augrc"].standings if e.data]
    assert [e for e in first if dict(e.data)["study"] in ("iid", "digits", "unseen")] == second
    assert studies_of(store.exposures) == results.studies
