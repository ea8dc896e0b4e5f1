"""Methods: what single ones compute, what happens to those that fail, and the page about them."""

import contextlib
import importlib.util
import io
import pickle
import re
from dataclasses import replace

import numpy as np
import pytest
from bench.tests.runs.known_outputs import (
    BIAS,
    ENSEMBLE,
    KNOWN,
    NETWORK,
    PASS_CONFIDENCE,
    WEIGHT,
    right,
    without,
)
from sklearn.covariance import ledoit_wolf
from tests.docs.blocks import ROOT, blocks

import abstain as ab
from abstain.confidence import ConfidenceScore, fit, score
from abstain.errors import InputError, UnknownNameError
from abstain.metrics import failure_auroc
from abstain_bench import published
from abstain_bench.runs.methods import (
    METHODS,
    NEEDS,
    FitData,
    Method,
    fit_all,
    score_all,
)
from abstain_bench.runs.methods.entry import fitted_on_train
from abstain_bench.runs.outputs import network_outputs


@pytest.fixture(scope="module")
def fitted():
    return fit_all(METHODS, KNOWN)


def test_what_was_fitted_can_be_sent_to_another_process(fitted):
    again = pickle.loads(pickle.dumps(fitted.scores))
    for name in ("temp_msr", "vim", "pnorm", "mcd_pe", "dg_res"):
        assert np.array_equal(score(again[name], NETWORK).values, fitted.score(NETWORK)[name])


def test_numbers_equal_those_of_the_scores(fitted):
    p = NETWORK
    found = fitted.score(NETWORK)
    for name in ("msr", "mls", "pe", "energy", "margin", "gini", "gen"):
        assert np.array_equal(found[name], score(name, p).values)
    for name in ("mcd_msr", "mcd_mls", "mcd_pe", "mcd_ee", "mcd_mi"):
        assert np.array_equal(found[name], score(name, p).values)
    for name in ("mcd_msr", "mcd_pe", "mcd_ee"):
        assert np.array_equal(found[f"dg_{name}"], found[name])
    held = KNOWN.validation
    tempered = ab.fit_score("temperature", held, objective="nll")
    assert np.array_equal(found["temp_msr"], score(tempered, p).values)
    for name in ("temp_mls", "dg_temp_mls", "dg_temp_msr"):
        assert np.array_equal(found[name], found["temp_msr"]), name
    chosen = ab.fit_score("pnorm", held, metric="augrc")
    assert np.array_equal(found["pnorm"], score(chosen, p).values)
    for name, options in (
        ("knn", {}),
        ("relative_mahalanobis", {"shrinkage": "ledoit_wolf"}),
        ("react", {"last_layer": (WEIGHT, BIAS)}),
    ):
        state = fit(name, KNOWN.train, **options)
        assert np.array_equal(found[name], score(state, p).values)


def test_temp_mls_is_the_largest_tempered_probability_and_no_logit(fitted):
    score = fitted.score(NETWORK)
    tempered = NETWORK.logits / fitted.scores["temp_mls"].temperature
    p = np.exp(tempered) / np.exp(tempered).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(1 / (1 + np.exp(-score["temp_mls"])), p.max(axis=1), rtol=1e-5)
    ranks = {name: np.argsort(np.argsort(score[name])) for name in ("mls", "temp_mls")}
    assert not np.array_equal(ranks["mls"], ranks["temp_mls"])


def test_another_name_gives_the_same_numbers_and_is_no_row_of_its_own(fitted):
    score = fitted.score(NETWORK)
    others = {m.name: METHODS[m.same_as] for m in METHODS.values() if m.same_as}
    assert set(others) == {"temp_mls", "dg_temp_mls"}
    for name, method in others.items():
        assert np.array_equal(score[name], score[method.name])
        assert not method.same_as
        # Whether it is a probability is read from its meaning.
        assert method.meaning in METHODS[name].meaning


def published_augrc(method):
    rows = [row for row in published.table("augrc_table_3") if row["method"] == method]
    return {(row["dataset"], row["study"]): float(row["value"]) for row in rows}


def test_the_published_temp_mls_tracks_the_softmax_response():
    msr, mls, tempered = (published_augrc(name) for name in ("msr", "mls", "temp_mls"))
    assert len(msr) == len(tempered) == 21
    apart = {
        name: [abs(own[c] / msr[c] - 1) for c in msr]
        for name, own in (("mls", mls), ("t", tempered))
    }
    assert np.median(apart["t"]) < 0.002
    assert max(apart["t"]) < 0.009
    assert max(apart["mls"]) > 0.26


def test_ours_tracks_it_too():
    pytest.importorskip("torch")
    from abstain import training
    from abstain_bench.networks import MODELS
    from abstain_bench.runs.loaded_task import load_task
    from abstain_bench.runs.passes import compute_outputs
    from abstain_bench.runs.training import Recipe, train

    task, objective = load_task("digits8", ""), training.make("cross-entropy", rng=2)
    backbone = MODELS["small-conv"].make(task.shape, seed=2)
    network = training.Network(backbone, objective.head(backbone.width, 10))
    recipe = Recipe(epochs=6, learning_rate=0.1, batch_size=64, schedule="cosine", nesterov=True)
    train(
        network, task.task_images.train, objective, recipe, preprocessing=task.preprocessing, seed=2
    )

    def said(seen):
        return compute_outputs(network, objective, seen.images, seen.labels, seen.source_indices)

    held = said(task.validation)
    fitted = fit_all(["msr", "mls", "temp_mls"], FitData(held, held))
    assert abs(fitted.scores["temp_mls"].temperature - 1) > 0.05
    apart = {"mls": [], "temp_mls": []}
    for exposure in task.task_images.exposures:
        if exposure.severity in {0, 1, 3, 5}:
            outputs = said(task.exposure_images(exposure))
            wrong, scores = ~right("msr", outputs), fitted.score(outputs)
            base = ab.augrc(scores["msr"], wrong)
            for name, own in apart.items():
                own.append(abs(ab.augrc(scores[name], wrong) / base - 1))
    assert len(apart["mls"]) == 48
    assert np.median(apart["temp_mls"]) < 0.01
    assert np.median(apart["mls"]) > 0.1


def test_own_confidences_and_their_mean(fitted):
    score = fitted.score(NETWORK)
    for name in ("confidnet", "dg_res", "devries"):
        assert np.array_equal(score[name], NETWORK.confidence["learned"])
    assert np.array_equal(score["dg_res_mcd"], score["mcd_confidnet"])
    p = (1 / (1 + np.exp(-PASS_CONFIDENCE))).mean(axis=1)
    fair = p < 1 - 1e-6
    assert fair.sum() > 50
    expected = np.log(p / (1 - p))[fair]
    np.testing.assert_allclose(score["mcd_confidnet"][fair], expected, rtol=1e-6)


def test_the_variants_of_the_mahalanobis_distance(fitted):
    """By hand: the classes' means, one matrix, and what is done with the distances."""
    score, train = fitted.score(NETWORK), KNOWN.train
    x, labels = train.features.astype(float), train.labels
    seen, predicted = NETWORK.features.astype(float), NETWORK.logits.argmax(axis=1)

    def distances(x, seen, inverse):
        means = np.stack([x[labels == c].mean(axis=0) for c in range(3)])
        away = seen[:, None] - means
        return np.einsum("nkd,de,nke->nk", away, inverse, away)

    def shared(x):
        means = np.stack([x[labels == c].mean(axis=0) for c in range(3)])
        return np.linalg.inv(ledoit_wolf(x - means[labels], assume_centered=True)[0])

    plain = np.sort(distances(x, seen, shared(x)), axis=1)
    np.testing.assert_allclose(score["mahalanobis"], -plain[:, 0], rtol=1e-9)
    np.testing.assert_allclose(score["mahalanobis_margin"], plain[:, 1] - plain[:, 0], rtol=1e-7)
    unit, near = (y / np.linalg.norm(y, axis=1, keepdims=True) for y in (x, seen))
    lengthless = distances(unit, near, shared(unit)).min(axis=1)
    np.testing.assert_allclose(score["mahalanobis_normalized"], -lengthless, rtol=1e-8)
    # FD-Shifts divides by n - 1, and inverts in single precision.
    total = distances(x, seen, np.linalg.pinv(np.cov(x.T)))
    expected = -total[np.arange(len(seen)), predicted] * len(x) / (len(x) - 1)
    np.testing.assert_allclose(score["mahalanobis_predicted"], expected, rtol=1e-9)


def test_sure_passes_stay_in_order():
    log_odds = np.linspace(30, 90, NETWORK.n)[:, None] + np.zeros(8)
    sure = network_outputs(
        NETWORK.logits,
        NETWORK.labels,
        NETWORK.ids,
        samples=NETWORK.logit_samples,
        confidence=log_odds[:, 0],
        sample_confidence=log_odds,
    )
    values = score_all(["mcd_confidnet"], KNOWN, sure)["mcd_confidnet"]
    assert (np.diff(values) > 0).all()


def test_ensembles_score_the_mean(fitted):
    score = fitted.score(ENSEMBLE)
    e = np.exp(ENSEMBLE.logit_samples.astype(float))
    p = (e / e.sum(axis=2, keepdims=True)).mean(axis=1)
    np.testing.assert_allclose(score["ens_pe"], (p * np.log(p)).sum(axis=1), atol=1e-9)
    each = -(e / e.sum(2, keepdims=True) * np.log(e / e.sum(2, keepdims=True))).sum(2).mean(1)
    np.testing.assert_allclose(score["ens_mi"], (p * np.log(p)).sum(1) + each, atol=1e-9)


def test_features_that_are_never_active_do_no_harm(fitted):
    def dead(outputs):
        features = outputs.features.copy()
        features[:, 5] = 0.0
        return replace(outputs, features=features, logits=features @ WEIGHT.T + BIAS)

    held = replace(KNOWN, train=dead(KNOWN.train))
    selected = [name for name in METHODS if "features" in METHODS[name].needs]
    scores = score_all(selected, held, dead(NETWORK))
    assert scores.reasons == {}
    plain = Method("plain", "", "", "cross-entropy", frozenset(), fitted_on_train("mahalanobis"))
    scores = score_all([plain, "knn"], held, dead(NETWORK))
    assert "singular" in scores.reasons["plain"]
    assert np.isfinite(scores["knn"]).all()


class Constant:
    """A score that returns the same values whatever the outputs."""

    name = "constant"

    def __init__(self, values):
        self.values = values

    def score(self, _):
        return ConfidenceScore(self.name, self.values)


class Broken(Constant):
    def score(self, outputs):
        return broken(outputs)


def broken(_):
    msg = "no such luck\nand more"
    raise ZeroDivisionError(msg)


@pytest.mark.parametrize(
    ("fit", "reason"),
    [
        (broken, "ZeroDivisionError: no such luck"),
        (lambda _: Broken(None), "ZeroDivisionError: no such luck"),
        (lambda _: Constant(np.zeros(499)), "must have one entry for each of the 500"),
        (lambda _: Constant(np.full(500, np.nan)), "finite"),
        (lambda _: None, "must be a name or a fitted score"),
    ],
)
def test_a_method_that_fails_stops_no_other(fit, reason):
    mine = Method("mine", "Mine", "me", "cross-entropy", frozenset(), fit)
    scores = score_all([mine, "msr"], KNOWN, NETWORK)
    assert list(scores) == ["mine", "msr"]
    assert reason in scores.reasons["mine"]
    assert np.isnan(scores["mine"]).all()
    assert np.array_equal(scores["msr"], score("msr", NETWORK).values)


def test_names_that_are_not_there():
    with pytest.raises(UnknownNameError, match="Did you mean 'knn'"):
        score_all(["kn"], KNOWN, NETWORK)
    with pytest.raises(InputError, match=r"`needs` of the method 'mine'.*'sample'"):
        Method("mine", "", "", "cross-entropy", frozenset({"sample"}), broken)
    with pytest.raises(InputError, match="`fitted_on`"):
        Method("mine", "", "", "cross-entropy", frozenset(), broken, "test")
    bare = without(NETWORK, "samples", "learned")
    for name, missing in (("mcd_pe", "`samples`"), ("confidnet", "`confidence`")):
        assert missing in score_all([name], KNOWN, bare).reasons[name]


def test_all_methods_of_the_papers_are_there():
    logit = {"msr", "mls", "pe", "temp_msr", "temp_mls", "energy", "margin", "gini", "pnorm", "gen"}
    passes = {f"mcd_{name}" for name in ("msr", "mls", "pe", "ee", "mi")}
    learned = {"confidnet", "devries", "dg_res", "dg_msr", "dg_pe", "dg_mcd_msr", "dg_temp_msr"}
    learned |= {"dg_temp_mls", "dg_mcd_pe", "dg_mcd_ee", "dg_res_mcd"}
    seen = {f"mahalanobis{also}" for also in ("", "_normalized", "_margin", "_predicted")}
    seen |= {"relative_mahalanobis", "knn", "vim", "react"}
    assert logit | passes | learned | seen | {"ens_msr", "ens_pe", "ens_mi"} <= set(METHODS)


def test_networks_are_objectives():
    pytest.importorskip("torch")
    from abstain.training import OBJECTIVES

    assert {entry.objective for entry in METHODS.values()} <= set(OBJECTIVES)


def test_they_take_what_a_network_says():
    torch = pytest.importorskip("torch")
    from abstain import training
    from abstain_bench.networks import SmallConv
    from abstain_bench.runs.passes import compute_outputs

    for kind in ("cross-entropy", "confidnet", "deep-gamblers", "devries"):
        objective = training.make(kind, rng=0)
        with torch.random.fork_rng():
            torch.manual_seed(0)
            network = training.Network(SmallConv(dropout=0.3), objective.head(64, 3))
            pictures = torch.rand(90, 1, 16, 16)
        torch.nn.init.ones_(network.head.classifier.bias)  # as if trained: logits above 0
        labels = np.arange(90) % 3
        result = compute_outputs(network, objective, pictures, labels, np.arange(90), samples=3)
        last = (p.detach().numpy() for p in network.head.classifier.parameters())
        selected = [
            m for m in METHODS.values() if m.objective == kind and "ensemble" not in m.needs
        ]
        scores = score_all(selected, FitData(result, result, *last), result)
        assert scores.reasons == {}
        assert all(np.isfinite(values).all() for values in scores.values())


PAGE = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")


def table():
    """The table of the page, from the catalogue."""
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs" / "generate.py")
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    rows = [
        (
            f"`{m.name}`",
            m.title,
            f"`{m.objective}`",
            ", ".join(f"`{need}`" for need in NEEDS if need in m.needs),
            m.fitted_on,
            m.meaning,
            generate.linked(m.source),
        )
        for m in METHODS.values()
    ]
    head = ("method", "name", "network", "needs", "fitted on", "confidence", "source")
    return generate._table(head, rows)


def test_the_page_lists_them_all():
    assert table() == re.search(r"<!-- methods -->\n\n(.*?)\n\n<!-- end", PAGE, re.DOTALL)[1]
    assert all(f"`{need}`" in PAGE for need in NEEDS)


def test_the_method_of_the_page_is_a_method():
    file, use = [b for b in blocks(PAGE) if b.language == "python"]
    assert len(file.code.splitlines()) <= 40
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(file.code + use.code, {})
        scores = score_all(["class_cosine"], KNOWN, NETWORK)
    finally:
        METHODS._entries.pop("class_cosine", None)
    assert printed.getvalue() == use.output
    loss = (~right("msr", NETWORK)).astype(float)
    assert failure_auroc(scores["class_cosine"], loss) > 0.5


if __name__ == "__main__":
    print(table())
