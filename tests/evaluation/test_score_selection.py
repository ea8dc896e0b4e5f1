"""Fitting by any metric, choosing options on validation samples, fitted scores beside names."""

import numpy as np
import pytest

import abstain as ab
from abstain.calibration import fit_temperature
from abstain.confidence import FITTED, fit, score
from abstain.errors import InputError, MissingInputError, UnknownNameError
from abstain.evaluation.score_selection import MetricCriterion, fit_score, select_score
from abstain.metrics import METRICS, metric_named
from abstain.predictions import per_sample_loss


def blobs(n, seed, **more):
    """Three classes in the plane, a linear classifier that overlooks one coordinate."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % 3
    centers = np.array([[3.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 3.0]])
    x = centers[truth] + rng.normal(size=(n, 3)) * rng.lognormal(sigma=0.5, size=(n, 1))
    return ab.Predictions(features=x, logits=x * rng.lognormal(size=(n, 1)), labels=truth, **more)


TRAIN, VALIDATION, TEST = blobs(300, 0), blobs(240, 1), blobs(240, 2)


# --------------------------------------------------------------------------------- fit_score
def test_a_search_by_name_is_the_search_by_function():
    for name, options in (("pnorm", {}), ("temperature", {"score": "gini"})):
        named = fit_score(name, VALIDATION, metric="augrc", **options)
        given = fit(name, VALIDATION, criterion=ab.augrc, **options)
        assert named.to_arrays()[0] == given.to_arrays()[0]
        assert fit_score(name, VALIDATION, **options).to_arrays()[0] == given.to_arrays()[0]


@pytest.mark.parametrize("metric", ["failure_auroc", "coverage@5risk", "aurc", "ece", "cwsa@0.8"])
def test_the_best_temperature_by_any_metric(metric):
    grid = [0.5, 1.0, 2.0, 3.0]
    state = fit_score("temperature", VALIDATION, metric=metric, temperatures=grid)
    evaluation = ab.evaluate(
        VALIDATION, scores=[f"msr@T={t!r}" for t in grid], metrics=[metric], interval="none"
    )
    values = [r.value for r in evaluation]
    best = min(values) if metric_named(metric).lower_is_better else max(values)
    assert values[grid.index(state.temperature)] == best


def test_a_criterion_has_the_direction_and_the_weights():
    weight = np.random.default_rng(0).integers(1, 5, 240)
    heavy = blobs(240, 1, weight=weight)
    losses = (~heavy.correct).astype(float)
    own = score("energy", heavy)
    for name in ("augrc", "failure_auroc"):
        criterion = MetricCriterion(METRICS[name], heavy, losses)
        sign = 1 if METRICS[name].lower_is_better else -1
        value = ab.evaluate(heavy, scores=["energy"], metrics=[name], interval="none").value(name)
        assert criterion.of_score(own) == criterion(own.values, losses) == sign * value
    bare = MetricCriterion(METRICS["ece"], heavy, losses)
    assert bare(score("msr", heavy).probability, losses) == bare.of_score(score("msr", heavy))


def test_another_loss_is_searched_by():
    cost = ab.CostMatrix([[0, 1, 5], [1, 0, 1], [1, 1, 0]])
    state = fit_score("temperature", VALIDATION, score="pe", loss=cost)
    loss = cost.compute(VALIDATION)
    at = {t: ab.augrc(score(f"pe@T={t}", VALIDATION).values, loss) for t in (1, state.temperature)}
    assert at[state.temperature] <= at[1]


def test_maximum_likelihood_equals_that_of_the_calibration():
    expected = fit_temperature(VALIDATION.logits, VALIDATION.labels).temperature
    state = fit_score("temperature", VALIDATION, objective="nll")
    assert state.temperature == expected
    assert state.temperature > 1
    assert fit_score("temperature", VALIDATION, objective="nll", score="energy").base == "energy"
    bold = ab.Predictions(logits=4 * np.asarray(VALIDATION.logits), labels=VALIDATION.labels)
    state = fit_score("temperature", bold, objective="nll")
    assert state.temperature == pytest.approx(4 * expected, rel=1e-6)
    cooled = [
        ab.Predictions(logits=np.asarray(bold.logits) / t, labels=bold.labels)
        for t in (state.temperature, state.temperature * 1.05, state.temperature / 1.05)
    ]
    results = [per_sample_loss(p, "cross_entropy").mean() for p in cooled]
    assert results[0] < min(results[1:])
    np.testing.assert_allclose(
        score(state, bold).probability, score("msr", cooled[0]).probability, rtol=1e-12
    )


def test_metrics_that_do_not_look_at_the_confidence_raise_an_error_as_criteria():
    losses, rng = (~VALIDATION.correct).astype(float), np.random.default_rng(0)
    kinds = [ab.confidence.ConfidenceScore("", c, c) for c in rng.random((4, 240))]
    for name, metric in METRICS.items():
        criterion = MetricCriterion(metric, VALIDATION, losses)
        try:
            blind = len({criterion.value(kind) for kind in kinds}) == 1
        except InputError:
            continue
        if blind and not name.startswith("coverage@"):
            with pytest.raises(InputError, match="is the same for every confidence score"):
                fit_score("temperature", VALIDATION, metric=name)
            with pytest.raises(InputError, match="is the same for every confidence score"):
                select_score("knn", TRAIN, VALIDATION, metric=name)
        else:
            assert fit_score("temperature", VALIDATION, metric=name, temperatures=[1]).temperature


def test_what_has_no_use_raises_an_error():
    with pytest.raises(InputError, match="'knn' has no parameters to search; drop `metric`"):
        fit_score("knn", TRAIN, metric="augrc")
    with pytest.raises(InputError, match="has no parameters to search"):
        fit_score("temperature", TRAIN, temperature=2.0, metric="aurc")
    with pytest.raises(
        InputError, match=r"`objective='nll'` fits the score 'temperature'; got 'pnorm'"
    ):
        fit_score("pnorm", TRAIN, objective="nll")
    with pytest.raises(InputError, match="uses only the labels; drop `temperatures`"):
        fit_score("temperature", TRAIN, objective="nll", temperatures=[1, 2])
    with pytest.raises(InputError, match="`by` must be one of"):
        fit_score("temperature", TRAIN, objective="ml")
    with pytest.raises(UnknownNameError, match="no metric named 'aurgc'"):
        fit_score("temperature", TRAIN, metric="aurgc")
    with pytest.raises(InputError, match="'ece' does not apply to 'pnorm@p=0': it needs a conf"):
        fit_score("pnorm", TRAIN, metric="ece")
    own = ab.Predictions(prediction=[0, 1], labels=[0, 0])
    with pytest.raises(MissingInputError, match="needs class scores"):
        fit_score("temperature", own, objective="nll")
    odd = ab.Predictions(logits=np.eye(2), labels=[0, 9], unknown_label=9)
    with pytest.raises(InputError, match="1 samples have an unknown class"):
        fit_score("temperature", odd, objective="nll")
    assert fit_score("knn", TRAIN, k=3).k == 3


# --------------------------------------------------------------------------------- select_score
@pytest.mark.parametrize("metric", ["augrc", "failure_auroc", "selective_risk@80cov"])
def test_the_selection_is_the_best_on_the_validation_samples(metric):
    grid = {"k": [1, 10, 50], "normalize": [True, False]}
    selection = select_score("knn", TRAIN, VALIDATION, grid=grid, metric=metric)
    rows = []
    for k in grid["k"]:
        for normalize in grid["normalize"]:
            state = fit("knn", TRAIN, k=k, normalize=normalize)
            value = ab.evaluate(
                VALIDATION, scores=[state], metrics=[metric], interval="none"
            ).value(metric)
            rows.append(({"k": k, "normalize": normalize}, value))
    assert [(t.options, t.value) for t in selection.candidates] == rows
    best = min if metric_named(metric).lower_is_better else max
    assert selection.value == best(value for _, value in rows)
    assert selection.options == next(options for options, value in rows if value == selection.value)
    assert [t.is_selected for t in selection.candidates].index(True) == rows.index(
        (selection.options, selection.value)
    )
    assert (selection.state.k, selection.state.normalize) == tuple(selection.options.values())
    assert np.array_equal(score(selection, TEST).values, score(selection.state, TEST).values)


def test_of_equal_candidates_the_first_is_chosen():
    sure = ab.Predictions(
        features=np.eye(4), logits=np.eye(4)[:, :2] + [0, 0.5], labels=[0, 1, 1, 1]
    )
    other = sure.subset([0, 1, 2, 3])
    assert other.correct.all()
    selection = select_score("knn", sure, other, grid={"k": [3, 1, 2]})
    assert selection.options == {"k": 3}
    assert [t.value for t in selection.candidates] == [0.0, 0.0, 0.0]


def test_what_cannot_be_fitted_or_measured_is_listed_with_its_reason():
    grid = {"shrinkage": ["none", "ledoit_wolf", 0.5, 7]}
    wide = np.random.default_rng(3).normal(size=(24, 30))
    p = ab.Predictions(features=wide, logits=wide[:, :3], labels=np.arange(24) % 3)
    selection = select_score(
        "mahalanobis", p.subset(slice(0, 12)), p.subset(slice(12, 24)), grid=grid
    )
    reasons = [t.reason for t in selection.candidates]
    assert "singular" in reasons[0]
    assert reasons[1:3] == ["", ""]
    assert "`shrinkage` must lie in [0, 1]" in reasons[3]
    frame = selection.frame()
    assert frame.columns == ["shrinkage", "value", "selected", "reason"]
    assert frame["shrinkage"].to_list() == ["none", "ledoit_wolf", "0.5", "7"]
    assert frame["selected"].sum() == 1
    assert np.isnan(frame["value"][0])
    with pytest.raises(InputError, match=r"no candidate .* evaluated: `k` must be at most the 12"):
        select_score("knn", p.subset(slice(0, 12)), p.subset(slice(12, 24)), grid={"k": [99]})
    sure = p.subset(np.flatnonzero(p.correct)[:5])
    with pytest.raises(InputError, match="'failure_auroc' is undefined"):
        select_score("knn", p, sure, grid={"k": [1]}, metric="failure_auroc")
    with pytest.raises(InputError, match="'ece' does not apply to 'knn@k=1'"):
        select_score("knn", p, sure, grid={"k": [1]}, metric="ece")


def test_a_selection_over_a_search_and_over_a_temperature():
    grid = {"score": ["msr", "gini", "energy"]}
    selection = select_score("temperature", TRAIN, VALIDATION, grid=grid, metric="aurc")
    assert selection.state.base in grid["score"]
    again = fit_score("temperature", TRAIN, metric="aurc", score=selection.state.base)
    assert again.temperature == selection.state.temperature
    given = select_score("temperature", TRAIN, VALIDATION, grid={"temperature": [1, 2]}, score="pe")
    assert given.name in {"pe@T=1", "pe@T=2"}
    with pytest.raises(InputError, match="also searches on `train`"):
        select_score("pnorm", TRAIN, VALIDATION, loss=np.zeros(240))
    own = np.random.default_rng(0).random(240)
    selection = select_score("knn", TRAIN, VALIDATION, grid={"k": [1, 9]}, loss=own)
    expected = ab.augrc(score(fit("knn", TRAIN, k=9), VALIDATION).values, own)
    assert selection.candidates[1].value == expected


def test_selections_refuse_nonsense():
    with pytest.raises(InputError, match="`validation` must contain other samples than `train`"):
        select_score("knn", TRAIN, TRAIN)
    with pytest.raises(InputError, match=r"`grid\['k'\]` must be a list of values"):
        select_score("knn", TRAIN, VALIDATION, grid={"k": 3})
    with pytest.raises(InputError, match=r"`grid\['k'\]` must be a list of values"):
        select_score("knn", TRAIN, VALIDATION, grid={"k": []})
    with pytest.raises(InputError, match="`grid` must map options to lists"):
        select_score("knn", TRAIN, VALIDATION, grid=[1, 2])
    with pytest.raises(InputError, match="passed twice: in `grid` and separately"):
        select_score("knn", TRAIN, VALIDATION, grid={"k": [1]}, k=2)
    with pytest.raises(UnknownNameError, match="no fitted score named 'kn'"):
        select_score("kn", TRAIN, VALIDATION)
    with pytest.raises(UnknownNameError, match="no metric named"):
        select_score("knn", TRAIN, VALIDATION, metric="no")
    with pytest.raises(InputError, match="has no option 'kk'"):
        select_score("knn", TRAIN, VALIDATION, grid={"kk": [1]})


# --------------------------------------------------------------------------------- beside names
def test_evaluate_and_compare_take_fitted_scores_beside_names():
    knn = fit("knn", TRAIN, k=5, normalize=False)
    selected = select_score("mahalanobis", TRAIN, VALIDATION, grid={"shrinkage": ["none", 0.1]})
    evaluation = ab.evaluate(TEST, scores=["msr", knn, selected], metrics=["augrc"])
    assert [r.score for r in evaluation] == ["msr", "knn@k=5,normalize=False", selected.name]
    loss = (~TEST.correct).astype(float)
    assert evaluation.value("augrc", score=knn.name) == ab.augrc(score(knn, TEST).values, loss)
    assert not any(case.is_column for case in evaluation.curves)
    alone = ab.evaluate(TEST, scores=knn, metrics=["augrc"])
    assert [r.score for r in alone] == [knn.name]
    compared = ab.compare(TEST, scores=["msr", knn])
    assert compared.methods == ("msr", knn.name)
    own = np.array([score(s, TEST).values for s in ("msr", knn)])
    apart = ab.augrc(own[0], loss) - ab.augrc(own[1], loss)
    assert abs(compared.pairs[0].difference) == pytest.approx(abs(apart), rel=1e-12)
    splits = {
        (("part", "a"),): TEST.subset(slice(120)),
        (("part", "b"),): TEST.subset(slice(120, 240)),
    }
    both = ab.evaluate(splits, scores=[knn, "msr"], metrics=["augrc"], interval="none")
    assert len(both) == 4
    assert len(ab.compare(splits, scores=[knn, "msr"]).data) == 2


def test_two_scores_of_one_name_raise_an_error():
    first, second = fit("knn", TRAIN), fit("knn", VALIDATION)
    with pytest.raises(InputError, match=r"two scores are named 'knn'; rename .*renamed"):
        ab.evaluate(TEST, scores=[first, second])
    evaluation = ab.evaluate(
        TEST, scores=[first, first, second.renamed("other")], metrics=["augrc"], interval="none"
    )
    assert [r.score for r in evaluation] == ["knn", "other"]
    own = ab.Predictions(
        features=TEST.features,
        logits=TEST.logits,
        labels=TEST.labels,
        confidence={"knn": np.ones(240)},
    )
    with pytest.raises(InputError, match="'knn' has the name of a confidence column"):
        ab.evaluate(own, scores=[first])
    assert ab.evaluate(own, scores=["knn"], metrics=["augrc"]).curves[0].is_column
    with pytest.raises(InputError, match="a name or a fitted score; got 3"):
        ab.evaluate(TEST, scores=[3])
    with pytest.raises(InputError, match="must be fitted first"):
        ab.evaluate(TEST, scores=["knn"])


def test_any_object_that_scores_is_taken_and_its_values_checked():
    class Own:
        name = "own"

        def score(self, predictions):
            return ab.confidence.ConfidenceScore("own", np.full(predictions.n, self.value))

    own = Own()
    own.value = 1.0
    assert ab.evaluate(TEST, scores=[own], metrics=["augrc"], interval="none").value("augrc") > 0
    own.value = np.nan
    with pytest.raises(InputError, match="`the score 'own'` must be finite"):
        ab.evaluate(TEST, scores=[own])


# --------------------------------------------------------------------------------- real data
def test_digits_of_scikit_learn_with_their_last_layer():
    """Real images, the layer of a trained model: every entry, on data it was not fitted on."""
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression

    x, y = load_digits(return_X_y=True)
    x = x / 16.0
    rows = np.random.default_rng(0).permutation(len(y))
    model = LogisticRegression(C=0.05, max_iter=500).fit(x[rows[:400]], y[rows[:400]])

    def part(where):
        return ab.Predictions(
            features=x[where], logits=model.decision_function(x[where]), labels=y[where]
        )

    train, held, test = part(rows[:400]), part(rows[400:900]), part(rows[900:])
    layer = {"last_layer": (model.coef_, model.intercept_)}
    states = [
        fit("mahalanobis", train, shrinkage="ledoit_wolf"),
        fit("relative_mahalanobis", train, shrinkage="ledoit_wolf"),
        fit("vim", train, **layer),
        fit("react", train, **layer),
        select_score("knn", train, held, grid={"k": [1, 10, 50]}),
        fit_score("pnorm", held),
        fit_score("temperature", held, objective="nll"),
        fit("combine", held, scores=("msr", "energy"), how="learned"),
        fit("rank", held, score="energy"),
        # Of pixels, unlike activations, a few say little.
        fit("ash", train, **layer, percentile=50),
        fit("scale", train, **layer),
        fit("she", train),
    ]
    assert {getattr(s, "state", s).kind for s in states} == set(FITTED)
    evaluation = ab.evaluate(test, scores=["msr", *states], metrics=["failure_auroc"])
    auroc = {r.score: r.value for r in evaluation}
    assert min(auroc.values()) > 0.6, auroc
    # On samples like those it was trained on, the plain softmax is hard to beat.
    assert auroc["msr"] > 0.85
    # What is no digit at all is trusted less than what is one.
    noise = np.random.default_rng(1).random((300, 64))
    odd = ab.Predictions(
        features=noise,
        logits=model.decision_function(noise),
        labels=np.zeros(300, int),
    )
    for state in (states[0], states[2], states[4]):
        inside, outside = score(state, test).values, score(state, odd).values
        assert np.median(outside) < np.quantile(inside, 0.05), state.name


@pytest.fixture
def real(shared):
    path = shared / "data" / "real"
    if not path.is_dir():
        pytest.skip(f"no real data at {path}")
    return path


def test_real_probabilities_of_mnist(real):
    held = np.load(real / "mnist_crossval_probabilities.npz")
    p = ab.Predictions(probabilities=held["probabilities"], labels=held["labels"])
    first, second = p.subset(slice(0, 5000)), p.subset(slice(5000, 10_000))
    state = fit_score("temperature", first, score="pe", metric="augrc", temperatures=[0.5, 1, 2])
    learned = fit("combine", first, scores=("msr", "pe", state), how="learned")
    mean = fit("combine", first, scores=("msr", "gini"))
    evaluation = ab.evaluate(
        second, scores=["msr", state.renamed("tuned"), learned, mean], metrics=["failure_auroc"]
    )
    assert all(r.value > 0.9 for r in evaluation)


def test_real_logits_of_rotated_and_blurred_digits(real):
    import polars as pl

    table = pl.read_parquet(real / "digits_ccexam.parquet").filter(
        pl.col("model") == "mnist", pl.col("study").is_in(["rotate_3", "blur_3"])
    )
    logits = table.select(pl.col("^logit_.*$")).to_numpy()
    p = ab.Predictions(logits=logits, labels=table["label"].to_numpy())
    rows = np.random.default_rng(0).permutation(p.n)
    held, test = p.subset(rows[::2]), p.subset(rows[1::2])
    states = [fit_score("pnorm", held, base=base) for base in ("mls", "msr")]
    states += [fit_score("temperature", held), fit_score("temperature", held, objective="nll")]
    loss = (~held.correct).astype(float)
    plain = ab.augrc(score("msr", held).values, loss)
    for state in states[:3]:
        assert ab.augrc(score(state, held).values, loss) <= plain
    # On samples that were not looked at, the norm is better than the softmax beyond chance.
    pair = ab.compare(test, scores=["msr", states[0]]).pairs[0]
    assert (states[0].fallback, pair.better) == (False, states[0].name)
    # The likelihood was not asked to rank, and pays for its few sure errors.
    likely = ab.compare(test, scores=["msr", states[3]]).pairs[0]
    assert (states[3].temperature > 2, likely.better) == (True, "msr")
    # The numbers that the pages on scores and on calibration tell.
    messages = [round(x, 3) for x in (pair.difference, pair.low, pair.high)]
    evaluation = ab.evaluate(test, scores=["msr", states[0], states[3]], metrics=["augrc"])
    assert ([round(r.value, 3) for r in evaluation], messages) == (
        [0.052, 0.038, 0.060],
        [0.014, 0.008, 0.020],
    )
    errors = [
        ab.calibration_check(ab.calibrate("msr", held, method=method), test).change("ece")
        for method in ("temperature", "platt")
    ]
    assert [round(x, 3) for e in errors for x in (e.before, e.after)] == [
        *(0.098, 0.259),
        *(0.098, 0.025),
    ]
