"""On folders that FD-Shifts wrote, its confidences and metrics are ours, score by score."""

import numpy as np
import pytest
from bench.tests.runs.fd_shifts_folders import CLASSES, EXPOSURES, HELD_OUT, told, written
from scipy.special import expit, log_softmax, logsumexp, softmax
from sklearn.calibration import _sigmoid_calibration

import abstain as ab
from abstain.confidence import fit, penalized_softmax_response, score
from abstain.predictions import Predictions
from abstain_bench.results import results_of
from abstain_bench.runs.importing import import_fd_shifts
from abstain_bench.runs.importing.fd_shifts import read_results
from abstain_bench.runs.methods.catalogue import fd_shifts_scores
from abstain_bench.runs.store import Store

#: From our values to those of FD-Shifts, by its names of scores.
AS_ITS = {
    "det_mcp": expit,
    "det_pe": np.negative,
    "det_mls": np.array,
    "energy_mls": np.array,
    "mcd_mcp": expit,
    "mcd_pe": np.negative,
    "mcd_ee": np.negative,
    "mcd_mi": np.negative,
    "mcd_sv": np.negative,
    "mcd_mls": np.array,
    "maha": lambda x: x * 149 / 150,
    "dknn": lambda x: -(x**2),
    "react_det_mcp": expit,
    "react_det_mls": np.array,
    "react_energy_mls": np.array,
    "ext": np.array,
    "ext_mcd": np.array,
    "ext_waic": np.array,
}
#: What it computes in single precision.
SINGLE = {"maha": 3e-6} | dict.fromkeys(
    ("dknn", "react_det_mcp", "react_det_mls", "react_energy_mls"), 1e-5
)
#: Scores that its Platt scaling reverses: on these validation images they rank failures above.
REVERSED = {"confidnet": set(), "dg": {"det_mls", "energy_mls", "mcd_mls"}, "devries": set()}
OBJECTIVES = {"confidnet": "confidnet", "dg": "deep-gamblers", "devries": "devries"}


def scores_of(name):
    """Our methods by its names of scores, where the values agree."""
    all_scores = fd_shifts_scores(OBJECTIVES[name.partition("_")[0]])
    left_out = set()
    if name == "dg":
        # It counts the output for abstention as a class.
        left_out = {own for own in all_scores if own.startswith("react")}
    elif name == "confidnet_openset":
        left_out = {*SINGLE}
    return {
        own: method for own, method in all_scores.items() if own in AS_ITS and own not in left_out
    }


#: Its metrics, ours, and how many times ours its are.
METRICS = {
    "failauc": ("failure_auroc", 1),
    "failap_suc": ("failure_ap_success", 1),
    "failap_err": ("failure_ap_error", 1),
    "aurc": ("aurc", 1000),
    "augrc": ("augrc", 1000),
    "risk@100cov": ("selective_risk@100cov", 100),
    "risk@80cov": ("selective_risk@80cov", 100),
}
STUDIES = {
    "iid_study": "iid",
    "new_class_study_new_proposed_mode": "new",
    "new_class_study_new_original_mode": "new-outlier",
    **{f"noise_study_{i}": f"corruption-{i}" for i in range(1, 6)},
}


def imported(name, path, **more):
    folder = written(name, path)
    arm = {"confidnet_openset": "confidnet"}.get(name, name)
    asked = {"arm": arm, "seed": 0, "exposures": EXPOSURES[name], **more}
    imported_run = import_fd_shifts(folder, path / "runs", **asked)
    return imported_run, Store.read(path / "runs")


@pytest.fixture(scope="module", params=["confidnet", "dg", "devries"])
def both(request, tmp_path_factory):
    found, store = imported(request.param, tmp_path_factory.mktemp("fd"))
    return request.param, found, store


def rows_of(store, name):
    """Confidences of all rows of a folder, in its order."""
    keys = ["validation", *(exposure.key for exposure in store.exposures)]
    parts = [store.scores(store.runs[0], key) for key in keys]
    return {m: np.concatenate([part.confidence[m] for part in parts]) for m in parts[0].confidence}


def test_every_method_has_the_confidences_of_fd_shifts(both):
    name, found, store = both
    ours, theirs = rows_of(store, name), told(name).confidence
    every = fd_shifts_scores(OBJECTIVES[name])
    assert set(every) == {*theirs, "temp_mls", "react_temp_mls"}
    assert len(every) == 22
    assert set(every.values()) <= set(found.methods)
    assert not found.reasons
    for own, method in scores_of(name).items():
        close = {"rtol": SINGLE[own]} if own in SINGLE else {"rtol": 1e-9}
        np.testing.assert_allclose(
            AS_ITS[own](ours[method]), theirs[own], **close, atol=1e-14, err_msg=own
        )


def is_reversed(own, validation, method):
    """Whether its Platt scaling of validation images has the slope that reverses the ranks."""
    if not any(part in own for part in ("_pe", "_ee", "_mi", "_sv", "maha", "_mls")):
        return False
    averaged = "mcd" in own and "ext" not in own
    prediction = validation.mean_prediction if averaged else validation.prediction
    right = (prediction == validation.labels).astype(float)
    slope, _ = _sigmoid_calibration(validation.confidence[method], right)
    return slope > 0


def test_every_metric_in_every_study_equals_that_of_fd_shifts(both):
    name, _, store = both
    studies = [study for study in STUDIES if (study, "ext", "aurc") in told(name).values]
    results = results_of(
        store,
        metrics=[ours for ours, _ in METRICS.values()],
        studies=[STUDIES[study] for study in studies],
        methods=list(scores_of(name).values()),
    )
    values = {
        (dict(e.data)["study"], e.method, e.metric): e.value
        for own in results.comparisons.values()
        for e in own.estimates
    }
    validation, reversed_scores = store.scores(store.runs[0], "validation"), set()
    for study in studies:
        for own, method in scores_of(name).items():
            if told(name).values[study, own, "accuracy"] == 1:
                # Nothing failed: its average precision of failures is 0, ours has no value.
                continue
            if is_reversed(own, validation, method):
                reversed_scores.add(own)
                continue
            for metric, (ours, times) in METRICS.items():
                expected = told(name).values[study, own, metric]
                result = times * values[STUDIES[study], method, ours]
                assert result == pytest.approx(expected, rel=1e-9, abs=1e-12, nan_ok=True), (
                    study,
                    own,
                    metric,
                )
    assert reversed_scores == REVERSED[name]


def test_scores_with_other_defaults_agree_when_asked_alike(tmp_path):
    """Neighbors, ViM and ReAct follow their papers; with its options they are those of its code."""
    seen = read_results(written("confidnet", tmp_path), EXPOSURES["confidnet"])
    logits, features, samples = (
        np.concatenate([getattr(part.outputs, field) for part in seen.exposures])
        for field in ("logits", "features", "logit_samples")
    )
    p = Predictions(logits=logits, features=features, logit_samples=samples, loss=logits[:, 0] * 0)
    theirs, train = told("confidnet").confidence, seen.train
    close = {"rtol": 1e-5, "atol": 1e-5}

    def values(kind, **options):
        return score(fit(kind, train, **options), p).values

    # The squared distance to the 50th of the first 1,000 training images.
    np.testing.assert_allclose(-(values("knn", normalize=False) ** 2), theirs["dknn"], **close)
    layer = {"last_layer": seen.last_layer}
    for base, own, said in (
        ("energy", "react_energy_mls", np.array),
        ("mls", "react_det_mls", np.array),
        ("msr", "react_det_mcp", expit),
    ):
        result = values("react", base=base, percentile=99, **layer)
        np.testing.assert_allclose(said(result), theirs[own], **close)
    np.testing.assert_allclose(-score("mcd_sv", p).values, theirs["mcd_sv"], rtol=1e-9)
    # Its energy is of the stored logits, ours of those of the features: float16 is between them.
    result = values("vim", centered=True, **layer)
    stored = score("energy", p).values
    made = score(
        "energy",
        Predictions(logits=features @ seen.last_layer[0].T + seen.last_layer[1], loss=p.loss),
    )
    np.testing.assert_allclose(result - made.values + stored, theirs["vim"], **close)
    # About the origin, as the paper has it, is another score.
    assert np.abs(values("vim", **layer) - theirs["vim"]).max() > 1


def test_a_temperature_of_fd_shifts_gives_its_numbers(tmp_path):
    """It stops before the optimum; at its temperature the values are the same."""
    _, store = imported("confidnet", tmp_path)
    facts, iid = told("confidnet"), store.scores(store.runs[0], "iid", logits=True)
    held = store.scores(store.runs[0], "validation", logits=True)
    best = ab.fit_score(
        "temperature", Predictions(logits=held.logits, labels=held.labels), objective="nll"
    )
    p = Predictions(logits=iid.logits, labels=iid.labels)
    result = 1000 * ab.aurc(score("msr", p, temperature=facts.temperature).values, ~p.correct)
    assert result == pytest.approx(facts.values["iid_study", "temp_mls", "aurc"], rel=1e-9)

    # Another temperature, of the logits of clipped features on validation data.
    train = read_results(written("confidnet", tmp_path / "x"), EXPOSURES["confidnet"])
    hot = {"base": "msr", "percentile": 99, "temperature": facts.clipped_temperature}
    clipped = fit("react", train.train, last_layer=train.last_layer, **hot)
    features = next(part for part in train.exposures if part.facts.key == "iid").outputs
    result = 1000 * ab.aurc(score(clipped, features).values, ~p.correct)
    assert result == pytest.approx(facts.values["iid_study", "react_temp_mls", "aurc"], rel=1e-6)

    def likelihood(temperature):
        p = log_softmax(held.logits.astype(np.float64) / temperature, axis=1)
        return -p[np.arange(held.n), held.labels].mean()

    assert likelihood(best.temperature) <= likelihood(facts.temperature)


@pytest.mark.parametrize("name", ["confidnet", "dg", "devries"])
def test_mcd_waic_of_fd_shifts_takes_the_deviations_of_its_first_row(name, tmp_path):
    seen = read_results(written(name, tmp_path), EXPOSURES[name], abstains=name == "dg")
    samples = np.concatenate([part.outputs.logit_samples for part in seen.exposures])
    p = softmax(samples.astype(np.float64), axis=2)
    mean, deviation = p.mean(axis=1), p.std(axis=1)
    ours, theirs = 1 + penalized_softmax_response(samples), told(name).confidence["mcd_waic"]
    first = mean.max(axis=1) - deviation[0, mean.argmax(axis=1)]
    np.testing.assert_allclose(theirs, first, rtol=1e-9)
    assert ours[0] == pytest.approx(theirs[0], rel=1e-9)
    # Meant, by its own formula: those of each row.
    meant = mean.max(axis=1) - deviation[np.arange(len(mean)), mean.argmax(axis=1)]
    np.testing.assert_allclose(ours, meant, rtol=1e-9)
    assert np.abs(ours[1:] - theirs[1:]).max() > 0.01


@pytest.mark.parametrize("name", ["confidnet", "dg", "devries"])
def test_ext_waic_is_the_mean_less_the_deviation_of_the_passes(name, tmp_path):
    _, store = imported(name, tmp_path)
    with np.load(tmp_path / name / "test_results" / "external_confids_dist.npz") as file:
        passes = file["arr_0"].astype(np.float64)
    result = rows_of(store, name)[fd_shifts_scores(OBJECTIVES[name])["ext_waic"]]
    np.testing.assert_allclose(result, passes.mean(axis=1) - passes.std(axis=1), rtol=1e-12)
    np.testing.assert_allclose(result, told(name).confidence["ext_waic"], rtol=1e-6)


@pytest.mark.parametrize("name", ["dg", "devries"])
def test_scores_of_features_equal_those_of_their_formulas(name, tmp_path):
    """By brute force, with one row of the last layer for each class."""
    _, store = imported(name, tmp_path)
    ours, scores = rows_of(store, name), fd_shifts_scores(OBJECTIVES[name])
    folder = tmp_path / name / "test_results"
    arrays = {
        file: np.load(folder / f"{file}.npz")["arr_0"].astype(np.float64)
        for file in ("encoded_output", "train_features", "raw_logits")
    }
    layer = np.load(folder / "last_layer.npz")
    features, train = arrays["encoded_output"][:, :-1], arrays["train_features"][:, :-1]
    dataset = arrays["encoded_output"][:, -1]
    order = np.argsort(dataset, kind="stable")
    assert (np.diff(order) == 1).all()

    distances = np.sqrt(((features[:, None] - train[None, :1000]) ** 2).sum(axis=2))
    np.testing.assert_allclose(ours[scores["dknn"]], -np.sort(distances, axis=1)[:, 49], rtol=1e-5)
    clipped = np.minimum(features, np.quantile(train, 0.99))
    rows = {"ours": CLASSES, "theirs": len(layer["b"])}
    logits = {
        whose: clipped @ layer["w"][:n].astype(np.float64).T + layer["b"][:n]
        for whose, n in rows.items()
    }
    for own, expected in (
        ("react_det_mls", lambda z: z.max(axis=1)),
        ("react_energy_mls", lambda z: logsumexp(z, axis=1)),
        ("react_det_mcp", lambda z: softmax(z, axis=1).max(axis=1)),
    ):
        value = ours[scores[own]]
        value = expit(value) if own == "react_det_mcp" else value
        np.testing.assert_allclose(value, expected(logits["ours"]), rtol=1e-6, err_msg=own)
        # FD-Shifts has the same formulas, and a class more where the network abstains.
        theirs = told(name).confidence[own]
        np.testing.assert_allclose(theirs, expected(logits["theirs"]), rtol=1e-4, err_msg=own)
    # Its most likely temperature, on validation images.
    valid = dataset == 0
    labels = arrays["raw_logits"][valid, -2].astype(int)
    grid = np.exp(np.linspace(-3, 3, 6001))
    likelihoods = [
        log_softmax(logits["ours"][valid] / t, axis=1)[np.arange(labels.size), labels].mean()
        for t in grid
    ]
    t = grid[int(np.argmax(likelihoods))]
    np.testing.assert_allclose(
        expit(ours[scores["react_temp_mls"]]),
        softmax(logits["ours"] / t, axis=1).max(axis=1),
        atol=2e-3,
    )
    # ViM: the energy less the length of the residual, on the scale of the training logits.
    w, b = layer["w"][:CLASSES].astype(np.float64), layer["b"][:CLASSES].astype(np.float64)
    origin = -np.linalg.pinv(w) @ b
    n_kept = features.shape[1] // 2
    values, vectors = np.linalg.eigh(np.cov(train.T))
    residual = vectors[:, np.argsort(-values)[n_kept:]]
    lengths = [np.linalg.norm((x - origin) @ residual, axis=1) for x in (train, features)]
    scale = (train @ w.T + b).max(axis=1).mean() / lengths[0].mean()
    expected = logsumexp(features @ w.T + b, axis=1) - scale * lengths[1]
    np.testing.assert_allclose(ours[scores["vim"]], expected, rtol=1e-4, atol=1e-4)


def test_an_open_set_folder_of_fd_shifts(tmp_path):
    """Its study has the validation images too: with these, the confidences and numbers agree."""
    name = "confidnet_openset"
    _, store = imported(name, tmp_path, held_out=[HELD_OUT])
    assert store.classes == tuple(map(str, range(CLASSES - 1)))
    run, facts = store.runs[0], told(name)
    parts = [store.scores(run, key) for key in ("validation", "iid", "held-out-classes")]
    labels = np.load(written(name, tmp_path / "again") / "raw_logits.npz")["arr_0"][:, -2]
    new = labels == HELD_OUT
    for own, method in scores_of(name).items():
        ours = AS_ITS[own](np.concatenate([part.confidence[method] for part in parts]))
        # Its mean over classes includes those held out, whose probability is 0 in every pass.
        scale = CLASSES / (CLASSES - 1) if own == "mcd_sv" else 1
        theirs = scale * facts.confidence[own]
        np.testing.assert_allclose(
            ours, [*theirs[~new], *theirs[new]], rtol=1e-9, atol=1e-14, err_msg=own
        )
    right = np.concatenate([part.prediction == part.labels for part in parts])
    held = np.concatenate([part.labels < 0 for part in parts])
    confidence = np.concatenate([part.confidence["msr"] for part in parts])
    for mode, loss, counts in (
        ("proposed", held, held | right),
        ("original", held, np.ones(held.size, bool)),
    ):
        for metric, ours in (("augrc", ab.augrc), ("aurc", ab.aurc)):
            result = 1000 * ours(confidence[counts], loss[counts])
            expected = facts.values[f"openset_{mode}_mode", "det_mcp", metric]
            assert result == pytest.approx(expected, rel=1e-9)
