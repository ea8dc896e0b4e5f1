"""The study of the estimators: its numbers are those of the metrics, its errors those of theory."""

import numpy as np
import pytest
from scipy.integrate import quad

import abstain as ab
from abstain.confidence import score
from abstain.errors import InputError, MissingInputError, UnknownNameError
from abstain.metrics import population_aurc, weight_bias
from abstain.simulate import beta_scores, make
from abstain_bench.studies import SoftmaxNorm, study_estimators
from abstain_bench.studies._area_estimators import AREA_ESTIMATORS, error_summary, estimate_areas
from abstain_bench.studies._inputs import StudyRequest

CLOSED = ("plugin", "log", "trapezoid", "sele", "2sele", "augrc")


def classes(seed: int = 0, n: int = 300, *, digits: int | None = None) -> ab.Predictions:
    rng = np.random.default_rng(seed)
    labels = rng.integers(4, size=n)
    logits = 1.5 * np.eye(4)[labels] + rng.normal(size=(n, 4))
    logits = logits if digits is None else np.round(logits, digits)
    return ab.Predictions(logits=logits, labels=labels)


def direct(confidence, loss, estimator):
    if estimator == "augrc":
        return ab.augrc(confidence, loss)
    return ab.aurc(confidence, loss, estimator=estimator)


@pytest.mark.parametrize("name", ["two-gaussians", "discrete-scores", "continuous-loss"])
def test_estimates_of_a_population_are_those_of_the_metrics(name):
    (source,) = StudyRequest(populations=[name]).sources(())
    result = estimate_areas(source, CLOSED, 20, 15, np.random.default_rng(3))[
        ("own", source.losses[0])
    ]
    confidence, loss = make(name).sample(15 * 20, rng=np.random.default_rng(3))
    for i in range(15):
        rows = slice(20 * i, 20 * i + 20)
        expected = [direct(confidence[rows], loss[rows], e) for e in CLOSED]
        np.testing.assert_allclose(result[i], expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("replace", [False, True])
def test_estimates_of_a_file_are_those_of_the_metrics(replace):
    p = classes(digits=0)
    (source,) = StudyRequest(p, scores=("msr", "pe"), replace=replace).sources(())
    result = estimate_areas(source, CLOSED, 30, 6, np.random.default_rng(5))
    rng = np.random.default_rng(5)
    if replace:
        rows = rng.integers(p.n, size=(6, 30))
    else:
        rows = [rng.choice(p.n, 30, replace=False, shuffle=False) for _ in range(6)]
    assert set(result) == {(s, x) for s in ("msr", "pe") for x in ("zero_one", "cross_entropy")}
    for (name, loss), values in result.items():
        confidence, losses = score(name, p).values, ab.per_sample_loss(p, loss)
        for i, chosen in enumerate(rows):
            expected = [direct(confidence[chosen], losses[chosen], e) for e in CLOSED]
            np.testing.assert_allclose(values[i], expected, rtol=1e-10, atol=1e-15)


def test_the_bias_is_that_of_the_weights():
    # The bias of an estimate is the mean over the population of loss x bias of its weight.
    population = beta_scores(2.0, 1.0)
    result = study_estimators(populations=[population], sizes=[8, 32], repeats=6000, rng=1).frame()
    for row in result.iter_rows(named=True):
        if row["estimator"] in {"trapezoid", "monte-carlo"}:
            continue
        expected, _ = quad(
            lambda u, r=row: float(
                weight_bias(u, r["n"], r["estimator"]) * population.mean_loss_at(u)
            ),
            0,
            1,
            limit=200,
        )
        assert abs(row["bias"] - expected) < 4 * row["bias_se"], row


def test_statistics_and_their_standard_errors():
    values = np.random.default_rng(0).normal(1.2, 0.5, (400, 800))
    result = [error_summary(row, 1.0) for row in values]
    for name, truth in (("bias", 0.2), ("sd", 0.5), ("mse", 0.29), ("mae", 0.42974)):
        got = np.array([f[name] for f in result])
        error = got.std() / 20
        assert abs(got.mean() - truth) < 4 * error + 1e-3, name
        assert np.mean([f[f"{name}_se"] for f in result]) == pytest.approx(got.std(), rel=0.12), (
            name
        )
    assert error_summary(np.ones(5), 1.0)["sd_se"] == 0.0


def test_all_rows_without_replacement_are_the_truth():
    p = classes(n=64)
    rows = study_estimators(p, sizes=[64], repeats=3, estimators=["plugin", "augrc"]).frame()
    np.testing.assert_allclose(rows["mean"], rows["truth"], rtol=1e-12)
    assert rows["sd"].max() < 1e-12
    truth = rows.filter(estimator="plugin", score="margin", loss="zero_one")["truth"][0]
    margin = score("margin", p).values
    assert truth == ab.aurc(margin, ab.per_sample_loss(p), estimator="plugin")


def test_the_truth_of_independent_rows_is_the_limit_of_the_plug_in():
    p = classes(digits=1)
    confidence, loss = score("msr", p).values, ab.per_sample_loss(p)
    result = study_estimators(
        p, scores=["msr"], losses=["zero_one"], sizes=[3000], repeats=200, replace=True
    )
    row = result.frame().filter(estimator="plugin").row(0, named=True)
    assert row["truth"] == population_aurc(confidence, loss)
    assert row["truth"] != ab.aurc(confidence, loss, estimator="plugin")
    assert abs(row["bias"]) < 4 * row["bias_se"] + 1e-4


def test_six_scores_and_the_norm_orders_like_gini():
    p = classes()
    result = study_estimators(p, sizes=[16], repeats=20)
    names = ["msr", "mls", "margin", "pe", "gini", "l2_norm"]
    assert list(dict.fromkeys(result.frame()["score"])) == names
    by_score = result.frame().partition_by("score", as_dict=True)
    assert by_score["gini",]["mean"].to_list() == by_score["l2_norm",]["mean"].to_list()
    probabilities = np.exp(p.class_scores.log_probabilities())
    norm = np.sqrt((probabilities**2).sum(axis=1))
    np.testing.assert_allclose(np.exp(SoftmaxNorm().score(p).values), norm, rtol=1e-12)
    assert len(result.figures) == 8
    assert [key.split("-")[0] for key in result.figures] == ["mean", "bias", "mse", "mae"] * 2


def test_the_counterexample_is_told():
    result = study_estimators(populations=["two-sele-counterexample"], sizes=[512], repeats=50)
    assert any("2 x SELE is not an upper bound" in sentence for sentence in result.verdict)
    rows = {row["estimator"]: row for row in result.rows()}
    assert rows["2sele"]["mean"] + 4 * rows["2sele"]["mean_se"] < rows["2sele"]["truth"]
    assert "never below the AURC here (1 case)" in " ".join(
        study_estimators(populations=["beta-scores"], sizes=[8], repeats=5).verdict
    )


def test_a_seed_repeats_the_study():
    options = {"populations": ["beta-scores"], "sizes": [8], "repeats": 10}
    first, again, other = (study_estimators(**options, rng=seed) for seed in (1, 1, 2))
    assert first.rows() == again.rows()
    assert first.rows() != other.rows()
    assert set(first.frame()["estimator"]) == set(AREA_ESTIMATORS)


def test_logits_have_a_truth_with_an_error():
    result = study_estimators(
        populations=["logits"], scores=["mls"], losses=["zero_one"], sizes=[256], repeats=300
    )
    row = next(row for row in result.rows() if row["estimator"] == "plugin")
    assert abs(row["bias"]) < 4 * row["bias_se"] + row["truth"] / 50
    assert any("standard error of up to" in note for note in result.notes)


def test_confidences_alone_are_enough():
    rng = np.random.default_rng(0)
    p = ab.Predictions(confidence={"own": rng.random(50)}, loss=rng.exponential(size=50))
    result = study_estimators(p, sizes=[10], repeats=5)
    assert set(result.frame()["loss"]) == {"own"}
    assert result.parameters["data"] == ("data",)


def test_what_cannot_be_done_is_said():
    p = classes(n=40)
    with pytest.raises(InputError, match="40 samples, fewer than the smallest of `sizes`, 64"):
        study_estimators(p, sizes=[64, 128], repeats=2)
    assert any(
        "larger sizes are omitted" in note
        for note in study_estimators(p, sizes=[8, 64], repeats=2).notes
    )
    with pytest.raises(InputError, match="`repeats` must be at least 2"):
        study_estimators(p, repeats=1)
    with pytest.raises(InputError, match="`sizes` must be sample sizes of at least 2"):
        study_estimators(p, sizes=[1])
    with pytest.raises(UnknownNameError, match="Did you mean 'beta-scores'"):
        study_estimators(populations=["beta-score"])
    with pytest.raises(
        InputError, match="two populations have the name 'beta-scores'; pass other names"
    ):
        study_estimators(populations=["beta-scores", "beta-scores"])
    with pytest.raises(InputError, match="must be a name or a Population; got int"):
        study_estimators(populations=[3])
    with pytest.raises(InputError, match="estimators"):
        study_estimators(p, estimators=["plug in"])
    with pytest.raises(MissingInputError, match="has no confidence"):
        study_estimators(ab.Predictions(prediction=[0, 1], labels=[0, 0]), sizes=[2])
    weighted = ab.Predictions(confidence=[0.1, 0.2], loss=[0, 1], weight=[1, 2])
    with pytest.raises(InputError, match="has weights"):
        study_estimators(weighted, sizes=[2])


def test_a_file_without_cross_entropy_is_studied_without_it():
    p = ab.Predictions(probabilities=[[1.0, 0.0], [0.5, 0.5], [0.2, 0.8]], labels=[1, 0, 1])
    result = study_estimators({"sure": p}, sizes=[2], repeats=3)
    assert set(result.frame()["loss"]) == {"zero_one"}
    assert any(note.startswith("Without cross-entropy: sure: ") for note in result.notes)


def test_populations_with_names_of_their_own():
    two = {"sharp": beta_scores(8, 1), "flat": beta_scores(2, 1)}
    result = study_estimators(populations=two, sizes=[8, 16], repeats=20, estimators=["plugin"])
    truth = dict(result.frame().select("data", "truth").rows())
    assert truth == {name: pytest.approx(p.aurc()) for name, p in two.items()}


def test_a_data_set_is_drawn_the_same_whatever_the_others_are():
    names = ["beta-scores", "two-gaussians", "continuous-loss"]
    options = {"sizes": [8, 32], "repeats": 30, "rng": 3}
    together = study_estimators(populations=names, **options).frame()
    for name in names:
        alone = study_estimators(populations=[name], **options).frame()
        assert alone.equals(together.filter(data=name))


def test_estimators_by_their_titles_too():
    options = {"populations": ["beta-scores"], "sizes": [8], "repeats": 10}
    one = study_estimators(estimators=["plug-in", "2 x SELE", "2sele"], **options)
    assert one.frame()["estimator"].to_list() == ["plugin", "2sele"]
    assert one.frame("summary")["estimator"].to_list() == ["plugin", "2sele"]
    assert one.labels["2sele"] == "2 x SELE"
    # One case: the table by data set would say the same again.
    assert one.displayed_tables == ("summary",)


def test_the_first_sentence_says_from_which_size_the_estimator_does_not_matter():
    result = study_estimators(populations=["beta-scores"], sizes=[8, 64, 1024], repeats=100)
    assert result.verdict[0].startswith("From n = 64 on, plug-in and log have the same error")
    few = study_estimators(populations=["beta-scores"], sizes=[4, 8], repeats=100)
    assert few.verdict[0].startswith("At none of the sizes plug-in and log have the same error")
