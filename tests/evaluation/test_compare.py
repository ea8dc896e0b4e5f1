"""`compare`: what is paired with what, which test decides, and what is refused."""

import sys

import numpy as np
import pytest

import abstain as ab
from abstain.curves.bands import compute_band, risk_coverage_band
from abstain.errors import DomainError, InputError, UnknownNameError
from abstain.plots import RiskCoverageBandDisplay

METRICS = ("augrc", "aurc")


def predictions(seed: int, n: int = 400, **more) -> ab.Predictions:
    """Three scores of one classifier: sharp, blunt, and a copy of the sharp one."""
    rng = np.random.default_rng(seed)
    right = rng.random(n) < 0.85
    sharp = right + 0.8 * rng.normal(size=n)
    confidence = {"sharp": sharp, "blunt": right + 2.5 * rng.normal(size=n), "copy": 2 * sharp}
    return ab.Predictions(confidence=confidence, loss=1.0 - right, **more)


def pair(found: ab.Comparison, first: str, second: str, **wanted):
    rows = [
        p
        for p in found.pairs
        if (p.first, p.second) == (first, second)
        and all(getattr(p, name) == value for name, value in wanted.items())
    ]
    assert len(rows) == 1
    return rows[0]


@pytest.fixture(scope="module")
def found():
    return ab.compare(predictions(0), metrics=METRICS)


def test_the_numbers_are_those_of_the_functions(found):
    data = predictions(0)
    sharp, blunt = data.confidence["sharp"], data.confidence["blunt"]
    own = ab.metric_difference(sharp, blunt, data.loss, metric="aurc")
    told = pair(found, "sharp", "blunt", metric="aurc")
    for name in ("low", "high", "standard_error", "p_value", "ratio", "ratio_low", "superiority"):
        assert getattr(told, name) == pytest.approx(getattr(own, name), abs=1e-12)
    assert told.difference == pytest.approx(own.value, abs=1e-15)
    estimate = next(e for e in found.estimates if (e.metric, e.method) == ("augrc", "blunt"))
    interval = ab.metric_interval(blunt, data.loss)
    assert (estimate.low, estimate.high) == (interval.low, interval.high)
    assert estimate.value == ab.augrc(blunt, data.loss)


def test_methods_that_are_the_same_are_not_distinguished(found):
    same = pair(found, "sharp", "copy", metric="augrc")
    assert (same.difference, same.p_value, same.superiority, same.better) == (0, 1, 0.5, "")
    standings = {s.method: s for s in found.standings if s.metric == "augrc"}
    assert standings["sharp"].rank == standings["copy"].rank == 1.5
    assert standings["sharp"].mean_rank == pytest.approx(standings["copy"].mean_rank)


def test_p_values_are_adjusted_over_the_pairs_of_one_metric_and_data_set(found):
    for metric in METRICS:
        family = [p for p in found.pairs if p.metric == metric]
        raw = [p.p_value for p in family]
        expected = ab.inference.adjust(raw, method="holm")
        assert [p.adjusted for p in family] == pytest.approx(expected)
    plain = ab.compare(predictions(0), adjustment="none")
    assert all(p.adjusted == p.p_value for p in plain.pairs)


def test_the_better_method_is_named_only_where_the_adjusted_p_says_so(found):
    for p in found.pairs:
        assert bool(p.better) == (p.adjusted < 0.05)
    assert pair(found, "sharp", "blunt", metric="augrc").better == "sharp"


def test_probabilities_of_ranks_sum_to_one_and_agree_with_the_bootstrap():
    both = ab.compare(predictions(0), bootstrap=2000)
    for source in {s.source for s in both.standings}:
        rows = [s for s in both.standings if s.source == source]
        table = np.array([s.rank_probabilities for s in rows])
        assert table.sum(axis=0) == pytest.approx(1)
        assert table.sum(axis=1) == pytest.approx(1)
    by_source = [
        [s.mean_rank for s in both.standings if s.source == source]
        for source in ("influence functions", "bootstrap, rank then aggregate")
    ]
    assert by_source[0] == pytest.approx(by_source[1], abs=0.05)


def test_the_bootstrap_agrees_with_the_influence_functions():
    comparison = ab.compare(predictions(1), bootstrap=2000, metrics=METRICS)
    for metric in METRICS:
        first = pair(comparison, "sharp", "blunt", metric=metric, test="influence function")
        second = pair(comparison, "sharp", "blunt", metric=metric, test="paired bootstrap")
        assert second.standard_error == pytest.approx(first.standard_error, rel=0.1)
        assert second.low == pytest.approx(first.low, abs=0.25 * (first.high - first.low))


def test_the_seed_decides_and_the_global_state_stays():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first, second = (ab.compare(predictions(0), bootstrap=64, rng=3) for _ in range(2))
    assert first.rows("pairs") == second.rows("pairs") or str(first.rows("pairs")) == str(
        second.rows("pairs")
    )
    other = ab.compare(predictions(0), bootstrap=64, rng=4)
    assert str(other.rows("pairs")) != str(first.rows("pairs"))
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_the_test_of_the_literature_is_there_but_decides_nothing():
    comparison = ab.compare(predictions(0), bootstrap=300, published_test=True)
    theirs = [p for p in comparison.pairs if p.test == "Wilcoxon on bootstrap replicates"]
    assert len(theirs) == 6, "one-sided for both directions of each pair"
    assert not any(p.valid for p in theirs)
    assert all("not independent" in p.note or "replicates" in p.note for p in theirs)
    assert comparison.test == "influence function"
    assert any("decides nothing" in f.message for f in comparison.notes)
    assert not ab.compare(predictions(0)).bootstrap
    assert ab.compare(predictions(0), published_test=True).bootstrap == 1000


def test_the_test_of_the_literature_is_made_only_where_it_is_requested(monkeypatch):
    comparison = ab.compare(predictions(0), bootstrap=64, published_test=True)
    module = sys.modules["abstain.evaluation.comparison.pairs"]
    monkeypatch.setattr(module, "wilcoxon_on_replicates", None)
    plain = ab.compare(predictions(0), bootstrap=64)
    assert list(map(str, plain.pairs)) == [str(p) for p in comparison.pairs if p.valid]
    assert not any("decides nothing" in f.message for f in plain.notes)


def test_a_metric_without_influence_is_decided_by_the_bootstrap():
    comparison = ab.compare(predictions(0), metrics=["fpr_at_95tpr", "augrc"])
    assert comparison.bootstrap == 1000
    assert [p.test for p in comparison.pairs if p.metric == "fpr_at_95tpr"][:3] == [
        "paired bootstrap"
    ] * 3
    assert next(p.test for p in comparison.pairs if p.metric == "augrc") == "influence function"
    assert any("bootstrap" in f.message and "FPR" in f.message for f in comparison.notes)


def test_equal_methods_have_the_rank_that_is_requested(found):
    lowest = ab.compare(predictions(0), metrics=METRICS, ties="min")
    before, after = ([(s.method, s.rank) for s in own.standings] for own in (found, lowest))
    assert before[:3] == [("sharp", 1.5), ("blunt", 3.0), ("copy", 1.5)]
    assert after[:3] == [("sharp", 1.0), ("blunt", 3.0), ("copy", 1.0)]
    assert list(map(str, lowest.pairs)) == list(map(str, found.pairs))
    with pytest.raises(InputError, match="`ties` must be one of"):
        ab.compare(predictions(0), ties="first")


def test_permutation():
    comparison = ab.compare(
        predictions(0, n=150), test="permutation", metrics=("augrc", "aurc_plugin")
    )
    first = [p for p in comparison.pairs if p.test == "permutation"]
    assert comparison.pairs[0].test == "permutation"
    for p in first:
        other = pair(comparison, p.first, p.second, metric=p.metric, test="influence function")
        assert abs(p.p_value - other.p_value) < 0.2


# ------------------------------------------------------------------------------------ several
def splits(runs: int, data: tuple[str, ...] = ("one",), *, shared: bool = True):
    out = {}
    for d, name in enumerate(data):
        for r in range(runs):
            rng = np.random.default_rng([d, 0 if shared else r])
            labels = rng.integers(2, size=300)
            noise = np.random.default_rng([7, d, r])
            prediction = np.where(noise.random(300) < 0.85, labels, 1 - labels)
            right = prediction == labels
            sharp = right + noise.normal(size=300)
            blunt = right + 3 * noise.normal(size=300)
            out[("data", name), ("seed", str(r))] = ab.Predictions(
                prediction=prediction, labels=labels, confidence={"sharp": sharp, "blunt": blunt}
            )
    return out


def test_runs_on_the_same_samples_are_averaged_sample_by_sample():
    parts = splits(4)
    comparison = ab.compare(parts, runs="seed")
    assert comparison.runs == ("0", "1", "2", "3")
    assert comparison.data == ((("data", "one"),),)
    means = {e.method: e for e in comparison.estimates if e.run == "mean"}
    each = [e for e in comparison.estimates if e.run != "mean" and e.method == "sharp"]
    assert means["sharp"].value == pytest.approx(np.mean([e.value for e in each]))
    # Four runs with their own mistakes on the same images: surer than one, by less than half.
    assert 0.4 < means["sharp"].standard_error / each[0].standard_error < 1
    assert any("sample by sample" in f.message for f in comparison.notes)


def test_runs_on_other_samples_count_as_samples_of_their_own():
    comparison = ab.compare(splits(4, shared=False), runs="seed")
    means = next(e for e in comparison.estimates if e.run == "mean" and e.method == "sharp")
    each = [
        e.standard_error for e in comparison.estimates if e.run != "mean" and e.method == "sharp"
    ]
    assert means.standard_error == pytest.approx(np.sqrt(np.sum(np.square(each))) / 4, rel=3e-3)


def test_several_data_sets_are_ranked_together():
    comparison = ab.compare(splits(1, tuple("abcdefg")), metrics=METRICS, runs="seed")
    overall = [s for s in comparison.standings if s.data is None and s.metric == "augrc"]
    assert {s.source for s in overall} == {
        "influence functions, rank then aggregate",
        "influence functions, aggregate then rank",
    }
    assert {a.blocks for a in comparison.mean_ranks} == {7}
    wilcoxon = pair(comparison, "sharp", "blunt", metric="augrc", data=None)
    assert wilcoxon.test == "Wilcoxon across data sets"
    assert comparison.rows("pairs")[-1]["data"] == "(all)"
    assert any(a.data is None for a in comparison.agreements)
    assert {p.method for p in comparison.profiles} == {"sharp", "blunt"}


def test_methods_may_be_classifiers_matched_by_the_names_of_their_samples():
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=200)
    ids = np.array([f"x{i}" for i in range(200)])
    parts = {}
    for model, share in (("good", 0.9), ("bad", 0.6)):
        order = rng.permutation(200)
        prediction = np.where(rng.random(200) < share, labels, (labels + 1) % 3)
        parts[("model", model),] = ab.Predictions(
            prediction=prediction[order],
            labels=labels[order],
            confidence={"c": rng.random(200)[order]},
            ids=ids[order],
        )
    comparison = ab.compare(parts, methods="model", metrics=["accuracy", "augrc"])
    assert comparison.methods == ("good", "bad")
    told = pair(comparison, "good", "bad", metric="accuracy")
    joined = np.array([parts[("model", m),].correct.mean() for m in ("good", "bad")])
    assert told.difference == pytest.approx(joined[0] - joined[1])
    # The paired standard error of the accuracies, from the samples matched by name.
    by_name = [
        dict(zip(parts[("model", m),].ids, parts[("model", m),].correct, strict=True))
        for m in ("good", "bad")
    ]
    gaps = np.array([float(by_name[0][i]) - float(by_name[1][i]) for i in ids])
    assert told.standard_error == pytest.approx(gaps.std(ddof=1) / np.sqrt(200))


def test_clusters_widen_the_intervals():
    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(40), 10)
    right = np.repeat(rng.random(40) < 0.7, 10)
    sharp = right + np.repeat(rng.normal(size=40), 10)
    data = ab.Predictions(
        confidence={"sharp": sharp, "blunt": rng.normal(size=400)}, loss=1.0 - right, group=patient
    )
    plain, clustered = (ab.compare(data, clustered=c) for c in (False, True))
    assert clustered.estimates[0].standard_error > 2 * plain.estimates[0].standard_error


def test_non_inferiority():
    data = predictions(0, n=2000)
    comparison = ab.compare(data, margin=0.01, reference="sharp")
    by_method = {n.method: n for n in comparison.non_inferiority}
    assert set(by_method) == {"blunt", "copy"}
    assert by_method["copy"].non_inferior
    assert not by_method["blunt"].non_inferior
    blunt = by_method["blunt"]
    assert blunt.worse_by < blunt.bound
    assert blunt.worse_by == pytest.approx(-pair(comparison, "sharp", "blunt").difference)


# ------------------------------------------------------------------------------------ refusals
@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"scores": ["sharp"]}, InputError, "at least two methods"),
        ({"metrics": ["augrcc"]}, UnknownNameError, "augrc"),
        ({"metrics": ["brier"]}, InputError, "does not apply"),
        ({"level": 1.5}, DomainError, "level"),
        ({"test": "t"}, InputError, "test"),
        ({"bootstrap": -1}, InputError, "bootstrap"),
        ({"adjustment": "fdr"}, InputError, "adjustment"),
        ({"margin": 0.1}, InputError, "requires `reference`"),
        ({"margin": 0.1, "reference": "best"}, InputError, "reference"),
        ({"runs": "seed"}, InputError, "column that splits"),
        ({"clustered": True}, InputError, "group"),
        ({"rng": -1}, InputError, "rng"),
    ],
)
def test_what_is_refused(options, error, words):
    with pytest.raises(error, match=words):
        ab.compare(predictions(0), **options)


def test_samples_that_do_not_match_raise_an_error():
    first, second = predictions(0), predictions(0, n=300)
    with pytest.raises(InputError, match="same samples"):
        ab.compare({(("model", "a"),): first, (("model", "b"),): second}, methods="model")


def test_an_undefined_metric_is_said_and_the_others_go_on():
    right = ab.Predictions(
        confidence={"a": [0.9, 0.8, 0.7, 0.6], "b": [0.1, 0.2, 0.3, 0.4]}, loss=[0, 0, 0, 0]
    )
    comparison = ab.compare(right, metrics=["failure_auroc", "augrc"])
    assert any(f.kind == "undefined" for f in comparison.notes)
    assert not [p for p in comparison.pairs if p.metric == "failure_auroc"]
    augrc = pair(comparison, "a", "b", metric="augrc")
    assert (augrc.difference, augrc.better) == (0, "")


def test_frames():
    comparison = ab.compare(splits(3, ("x", "y")), runs="seed", metrics=METRICS, bootstrap=50)
    for table in comparison.TABLES:
        rows = comparison.rows(table)
        if rows:
            assert comparison.frame(table).height == len(rows)
    with pytest.raises(InputError, match="estimates"):
        comparison.frame("estimate")


# ------------------------------------------------------------------------------------ review
def shared_runs(seed: int = 0, n: int = 300, **told) -> dict:
    """Two runs that share what makes a sample hard, in two orders."""
    rng = np.random.default_rng(seed)
    hard, order = rng.normal(size=(2, n)), rng.permutation(n)
    parts = {}
    for run in ("0", "1"):
        rows = order if run == "1" else np.arange(n)
        wrong = hard[0] + 0.3 * rng.normal(size=n) > 1
        confidence = {f"s{i}": (-1.0 * wrong + hard[i])[rows] for i in range(2)}
        names = {k: v[rows] for k, v in told.items()}
        parts[("run", run),] = ab.Predictions(
            confidence=confidence, loss=1.0 * wrong[rows], **names
        )
    return parts


def test_runs_in_another_order_are_matched_by_the_names_of_their_samples():
    ids = np.array([f"x{i}" for i in range(300)])
    parts = shared_runs(ids=ids)
    comparison = ab.compare(parts, runs="run")
    second = parts[("run", "1"),]
    parts[("run", "1"),] = second.subset(np.argsort([int(name[1:]) for name in second.ids]))
    by_hand = ab.compare(parts, runs="run")
    assert comparison.pairs[0].standard_error == pytest.approx(by_hand.pairs[0].standard_error)
    assert any("sample by sample" in f.message for f in comparison.notes)


def test_runs_that_nothing_distinguishes_are_not_taken_for_more_samples():
    rng = np.random.default_rng(0)
    wrong, noise = rng.random(300) < 0.2, rng.normal(size=(2, 300))
    one = ab.Predictions(
        confidence={"a": noise[0] - wrong, "b": noise[1] - wrong}, loss=1.0 * wrong
    )
    twice = ab.compare({(("run", r),): one for r in "01"}, runs="run")
    assert twice.pairs[0].standard_error == pytest.approx(ab.compare(one).pairs[0].standard_error)


def test_samples_that_only_some_runs_share_are_counted_once():
    rng = np.random.default_rng(0)
    wrong, noise = rng.random(300) < 0.2, rng.normal(size=(2, 300))
    whole = ab.Predictions(
        confidence={"a": noise[0] - wrong, "b": noise[1] - wrong},
        loss=1.0 * wrong,
        ids=[f"x{i}" for i in range(300)],
    )
    parts = {
        (("run", "0"),): whole.subset(slice(0, 200)),
        (("run", "1"),): whole.subset(slice(100, 300)),
    }
    comparison = ab.compare(parts, runs="run", bootstrap=20)
    own = ab.metrics.intervals.influence_matrix
    metric = ab.metrics.metric_named("augrc")
    by_name = np.zeros((300, 2))
    for rows, part in zip((slice(0, 200), slice(100, 300)), parts.values(), strict=True):
        scores = [
            ab._foundation.scored.validate_samples(c, part.loss) for c in part.confidence.values()
        ]
        by_name[rows] += own(metric, scores) / 400
    apart = by_name[:, 0] - by_name[:, 1]
    expected = np.sqrt(apart @ apart * 300 / 299)
    assert comparison.pairs[0].standard_error == pytest.approx(expected)
    assert any(f.kind == "overlap" for f in comparison.notes)


def test_samples_of_other_names_raise_an_error_although_their_labels_match():
    parts = {
        (("model", m),): ab.Predictions(
            prediction=[0, 1, 1, 0],
            labels=[0, 0, 1, 1],
            confidence={"c": [0.1, 0.2, 0.3, 0.4]},
            ids=[f"{m}{i}" for i in range(4)],
        )
        for m in "ab"
    }
    with pytest.raises(InputError, match="same samples"):
        ab.compare(parts, methods="model")


def test_methods_in_another_order_in_another_data_set_are_no_trouble():
    first, second = predictions(0), predictions(1)
    swapped = ab.Predictions(confidence=dict(reversed(second.confidence.items())), loss=second.loss)
    comparison = ab.compare({(("data", "x"),): first, (("data", "y"),): swapped})
    told = {e.method: e.value for e in comparison.estimates if e.data == (("data", "y"),)}
    assert told["blunt"] == ab.augrc(second.confidence["blunt"], second.loss)


def test_wilcoxon_names_the_side_of_the_ranks_not_of_one_large_gap():
    parts = {}
    for i in range(15):
        data = predictions(i, n=200 + i)
        conf = dict(data.confidence)
        if i == 0:
            conf = {"sharp": -conf["sharp"], "blunt": conf["sharp"], "copy": -conf["sharp"]}
        parts[("data", str(i)),] = ab.Predictions(confidence=conf, loss=data.loss)
    comparison = ab.compare(parts)
    told = pair(comparison, "sharp", "blunt", data=None)
    assert told.better == "sharp"


def test_the_same_method_twice_has_the_same_ranks_over_all_data_sets():
    parts = {(("data", str(i)),): predictions(i) for i in range(3)}
    overall = [s for s in ab.compare(parts).standings if s.data is None]
    by = {(s.source, s.method): s for s in overall}
    for source in {s.source for s in overall}:
        first, second = by[source, "sharp"], by[source, "copy"]
        assert (first.rank, first.mean_rank, first.rank_probabilities) == (
            second.rank,
            second.mean_rank,
            second.rank_probabilities,
        )


def test_too_few_draws_for_the_number_of_pairs_are_said():
    data = predictions(0)
    rng = np.random.default_rng(0)
    many = {f"m{i}": 3 * i * (1 - data.loss) + rng.normal(size=400) for i in range(13)}
    comparison = ab.compare(
        ab.Predictions(confidence=many, loss=data.loss), test="bootstrap", bootstrap=100
    )
    messages = {f.message for f in comparison.notes if f.kind == "few_draws"}
    # 78 pairs at 5 %: four times as many draws as the least adjusted p-value needs, in hundreds.
    assert len(messages) == 1
    assert messages.pop().endswith("is below 1. Draw at least 6,300 resamples.")
    assert not any(p.better for p in comparison.pairs if p.test == "paired bootstrap")
    again = {f"m{i}": many[f"m{i}"] for i in (0, 1)}
    enough = ab.compare(
        ab.Predictions(confidence=again, loss=data.loss), test="bootstrap", bootstrap=100
    )
    assert not any(f.kind == "few_draws" for f in enough.notes)
    fine = ab.compare(data, test="bootstrap", bootstrap=200)
    assert not any(f.kind == "few_draws" for f in fine.notes)


def test_one_cluster_prints_nothing_by_any_test():
    data = predictions(0, group=np.zeros(400, dtype=int))
    comparison = ab.compare(data, clustered=True, test="bootstrap", bootstrap=200)
    for told in (p for p in comparison.pairs if p.valid and p.difference):
        assert np.isnan(told.p_value)
        assert told.note
        assert not told.better
    assert not [s for s in comparison.standings if max(s.rank_probabilities) > 0.99]


# ------------------------------------------------------------------------------------ what is said
@pytest.mark.parametrize("name", ["cluster", "margins", "foo"])
def test_an_unknown_option_is_refused(name):
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
        ab.compare(predictions(0), **{name: True})
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
        ab.evaluate(predictions(0), **{name: True})


def test_values_that_are_no_predictions_raise_an_error():
    splits = {(("model", "a"),): ab.read_predictions({"confidence": [0.9, 0.8], "correct": [1, 0]})}
    for function in (ab.evaluate, ab.compare):
        with pytest.raises(InputError, match=r"got Reading.*`only`"):
            function(splits)


def test_keys_that_are_no_splits_raise_an_error():
    for key in (1, ("model", "a")):
        with pytest.raises(InputError, match="tuples of"):
            ab.compare({key: predictions(0)})


def two_models(**changes) -> dict:
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=60)
    parts = {}
    for model in "ab":
        fields = {
            "prediction": np.where(rng.random(60) < 0.7, labels, 0),
            "labels": labels,
            "confidence": rng.random(60),
        } | changes.get(model, {})
        parts[("model", model),] = ab.Predictions(**fields)
    return parts


def test_how_the_samples_were_matched_is_said():
    names = {"ids": [f"x{i}" for i in range(60)]}
    by_name = ab.compare(two_models(a=names, b=names), methods="model")
    assert any("matched by name" in f.message for f in by_name.notes)
    by_order = ab.compare(two_models(), methods="model")
    assert any("matched by their order" in f.message for f in by_order.notes)


def test_groups_that_differ_between_methods_raise_an_error():
    parts = two_models(a={"group": np.arange(60) // 6}, b={"group": np.arange(60)})
    with pytest.raises(InputError, match="same groups"):
        ab.compare(parts, methods="model", clustered=True)


def test_few_clusters_are_a_warning():
    data = predictions(0, n=300, group=np.arange(300) // 100)
    comparison = ab.compare(data, clustered=True)
    (said,) = [f for f in comparison.notes if f.kind == "clusters"]
    assert said.level == "warning"
    assert "3 groups" in said.message


def test_the_first_sample_that_does_not_match_is_named():
    first = {"ids": [f"x{i}" for i in range(60)]}
    second = {"ids": [f"x{i}" for i in range(59)] + ["y"]}
    with pytest.raises(InputError, match="'x59' is not among them"):
        ab.compare(two_models(a=first, b=second), methods="model")


@pytest.mark.parametrize("bootstrap", [0, 64])
def test_where_every_sample_fails_no_method_is_better(bootstrap):
    rng = np.random.default_rng(1)
    for n in (31, 250):
        confidence = {name: rng.random(n) for name in "abc"} | {"d": np.round(rng.random(n), 1)}
        data = ab.Predictions(confidence=confidence, loss=np.ones(n))
        names = ("augrc", "auarc", "sele", "aurc_plugin", "e_aurc", "aurc")
        comparison = ab.compare(data, metrics=names, bootstrap=bootstrap)
        for p in (p for p in comparison.pairs if p.valid):
            assert (p.difference, p.p_value, p.superiority, p.better) == (0, 1, 0.5, "")
        for s in comparison.standings:
            assert s.rank == s.mean_rank == 2.5
            assert s.rank_probabilities == pytest.approx([0.25] * 4)
        for e in comparison.estimates:
            assert np.isnan(e.high) or 0 <= e.low <= e.high <= (0.5 if e.metric == "augrc" else 1)


def test_non_inferiority_needs_failures():
    data = predictions(0)
    silent = ab.Predictions(confidence=data.confidence, loss=np.zeros(400))
    options = {"margin": 0.01, "reference": "sharp"}
    for told in ab.compare(silent, **options).non_inferiority:
        assert np.isnan(told.p_value)
        assert not told.non_inferior
    results = {n.method: n for n in ab.compare(data, **options).non_inferiority}
    assert results["copy"].non_inferior, "the same method is not worse"
    assert (results["copy"].p_value, results["copy"].bound) == (0, 0)


def test_the_default_draws_enough_for_all_pairs():
    rng = np.random.default_rng(2)
    sure = {f"m{i}": rng.uniform(0.5, 1, 60) for i in range(9)}
    loss = (rng.random(60) < 0.3).astype(float)
    comparison = ab.compare(ab.Predictions(confidence=sure, loss=loss), metrics=["fpr_at_95tpr"])
    assert comparison.bootstrap == 36 * 4 * 20
    assert not any(f.kind == "few_draws" for f in comparison.notes)
    with pytest.raises(InputError, match="at least 2"):
        ab.compare(ab.Predictions(confidence=sure, loss=loss), bootstrap=1)


def test_few_clusters_are_said_of_resamples_too():
    data = predictions(0, group=np.arange(400) % 3)
    comparison = ab.compare(data, clustered=True, test="bootstrap", bootstrap=200)
    paired = [p for p in comparison.pairs if p.test == "paired bootstrap" and p.difference]
    assert paired
    assert all("only 3 clusters" in p.note for p in paired)
    assert all("only 3 clusters" in e.note for e in comparison.estimates)


def test_three_rows_without_failures_and_a_bootstrap():
    data = ab.Predictions(
        prediction=[1, 0, 1],
        labels=[1, 0, 1],
        confidence={"a": [0.9, 0.8, 0.7], "b": [0.8, 0.9, 0.6]},
    )
    comparison = ab.compare(data, metrics=["augrc", "failure_auroc", "accuracy"], bootstrap=50)
    assert not any(p.better for p in comparison.pairs if p.valid)


def test_two_thousand_methods_are_too_many():
    rng = np.random.default_rng(0)
    confidence = {f"c{i}": rng.random(20) for i in range(2000)}
    predictions = ab.Predictions(confidence=confidence, loss=rng.random(20) < 0.5)
    with pytest.raises(InputError, match="got 2,000, which make 1,999,000 pairs"):
        ab.compare(predictions)


def test_a_band_is_computed_when_it_is_looked_at(monkeypatch):
    """Of many methods a page draws eight, by either risk; a band costs more than all else."""
    made = []

    def counted(s, kind, **options):
        made.append(s)
        return compute_band(s, kind, **options)

    monkeypatch.setattr("abstain.evaluation.comparison.estimates.compute_band", counted)
    rng = np.random.default_rng(0)
    right = rng.random(200) < 0.8
    confidence = {f"m{i:02}": right + (1 + 0.1 * i) * rng.normal(size=200) for i in range(20)}
    comparison = ab.compare(ab.Predictions(confidence=confidence, loss=~right))
    assert len(comparison.bands) == 20
    assert not made
    for kind in ("selective", "generalized"):
        display = RiskCoverageBandDisplay.from_comparison(
            comparison, kind=kind, methods=comparison.methods_with_curves
        )
        assert len(display.bands) == len(made) == 8
    first = risk_coverage_band(confidence["m00"], ~right)
    assert comparison.bands[0].selective.high.tolist() == first.high.tolist()
    assert comparison.bands[0].generalized.kind == "generalized"
