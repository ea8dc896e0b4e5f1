"""On folders that FD-Shifts wrote, its confidences and metrics are ours, score by score."""

import numpy as np
import pytest
from scipy.special import expit, log_softmax, softmax
from tests.benchmark.fd_shifts_folders import CLASSES, EXPOSURES, HELD_OUT, told, written

import abstain as ab
from abstain.benchmark.others import import_fd_shifts
from abstain.benchmark.others.fd_shifts import told_by
from abstain.benchmark.results import results_of
from abstain.benchmark.store import Store
from abstain.confidence import fit, penalized_softmax_response, score
from abstain.predictions import Predictions

#: Its names of scores of one network, ours, and from ours to its values.
PLAIN = {
    "det_mcp": ("msr", expit),
    "det_pe": ("pe", np.negative),
    "det_mls": ("mls", np.array),
    "energy_mls": ("energy", np.array),
    "mcd_mcp": ("mcd-msr", expit),
    "mcd_pe": ("mcd-pe", np.negative),
    "mcd_ee": ("mcd-ee", np.negative),
    "mcd_mi": ("mcd-mi", np.negative),
    "mcd_mls": ("mcd-mls", np.array),
    "maha": ("mahalanobis-predicted", lambda x: x * 149 / 150),
    "ext": ("confidnet", np.array),
    "ext_mcd": ("mcd-confidnet", np.array),
}
GAMBLERS = {
    "det_mcp": ("dg-msr", expit),
    "det_pe": ("dg-pe", np.negative),
    "mcd_mcp": ("dg-mcd-msr", expit),
    "mcd_pe": ("dg-mcd-pe", np.negative),
    "mcd_ee": ("dg-mcd-ee", np.negative),
    "ext": ("dg-res", np.array),
    "ext_mcd": ("dg-res-mcd", np.array),
}
METHODS = {
    "confidnet": PLAIN,
    "dg": GAMBLERS,
    "devries": {"ext": ("devries", np.array)},
    "confidnet_openset": {own: ours for own, ours in PLAIN.items() if own != "maha"},
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
    found = import_fd_shifts(folder, path / "runs", **asked)
    return found, Store.read(path / "runs")


@pytest.fixture(scope="module", params=["confidnet", "dg", "devries"])
def both(request, tmp_path_factory):
    found, store = imported(request.param, tmp_path_factory.mktemp("fd"))
    return request.param, found, store


def rows_of(store, name):
    """Confidences of all rows of a folder, in its order."""
    keys = ["validation", *(one.key for one in store.exposures)]
    parts = [store.scores(store.runs[0], key) for key in keys]
    return {m: np.concatenate([part.confidence[m] for part in parts]) for m in parts[0].confidence}


def test_every_method_has_the_confidences_of_fd_shifts(both):
    name, found, store = both
    ours, theirs = rows_of(store, name), told(name).confidence
    assert {method for method, _ in METHODS[name].values()} <= set(found.methods)
    for own, (method, said) in METHODS[name].items():
        # It inverts a covariance in single precision.
        close = {"rtol": 3e-6} if own == "maha" else {"rtol": 1e-9, "atol": 1e-14}
        np.testing.assert_allclose(said(ours[method]), theirs[own], **close, err_msg=own)


def test_every_metric_in_every_study_is_that_of_fd_shifts(both):
    name, _, store = both
    studies = [study for study in STUDIES if (study, "ext", "aurc") in told(name).values]
    results = results_of(
        store,
        metrics=[ours for ours, _ in METRICS.values()],
        studies=[STUDIES[study] for study in studies],
        methods=[method for method, _ in METHODS[name].values()],
    )
    values = {
        (dict(e.data)["study"], e.method, e.metric): e.value
        for own in results.comparisons.values()
        for e in own.estimates
    }
    for study in studies:
        for own, (method, _) in METHODS[name].items():
            if told(name).values[study, own, "accuracy"] == 1:
                # Nothing failed: its average precision of failures is 0, ours has no value.
                continue
            for metric, (ours, times) in METRICS.items():
                expected = told(name).values[study, own, metric]
                found = times * values[STUDIES[study], method, ours]
                assert found == pytest.approx(expected, rel=1e-9, abs=1e-12, nan_ok=True), (
                    study,
                    own,
                    metric,
                )


def test_scores_with_other_defaults_agree_when_asked_alike(tmp_path):
    """Neighbors, ViM and ReAct follow their papers; with its options they are those of its code."""
    seen = told_by(written("confidnet", tmp_path), EXPOSURES["confidnet"])
    logits, features, samples = (
        np.concatenate([getattr(part.outputs, field) for part in seen.parts])
        for field in ("logits", "features", "samples")
    )
    p = Predictions(logits=logits, features=features, logit_samples=samples, loss=logits[:, 0] * 0)
    theirs, train = told("confidnet").confidence, seen.train.predictions()
    close = {"rtol": 1e-5, "atol": 1e-5}

    def values(kind, **options):
        return score(fit(kind, train, **options), p).values

    # The squared distance to the 50th of the first 1,000 training pictures.
    np.testing.assert_allclose(-(values("knn", normalize=False) ** 2), theirs["dknn"], **close)
    layer = {"last_layer": seen.layer}
    for base, own, said in (
        ("energy", "react_energy_mls", np.array),
        ("mls", "react_det_mls", np.array),
        ("msr", "react_det_mcp", expit),
    ):
        found = values("react", base=base, percentile=99, **layer)
        np.testing.assert_allclose(said(found), theirs[own], **close)
    np.testing.assert_allclose(-score("mcd_sv", p).values, theirs["mcd_sv"], rtol=1e-9)
    # Its energy is of the stored logits, ours of those of the features: float16 is between them.
    found = values("vim", centered=True, **layer)
    stored = score("energy", p).values
    made = score(
        "energy", Predictions(logits=features @ seen.layer[0].T + seen.layer[1], loss=p.loss)
    )
    np.testing.assert_allclose(found - made.values + stored, theirs["vim"], **close)
    # About the origin, as the paper has it, is another score.
    assert np.abs(values("vim", **layer) - theirs["vim"]).max() > 1


def test_a_temperature_of_fd_shifts_gives_its_numbers(tmp_path):
    """It stops before the optimum; at its temperature the values are the same."""
    _, store = imported("confidnet", tmp_path)
    facts, iid = told("confidnet"), store.scores(store.runs[0], "iid", logits=True)
    held = store.scores(store.runs[0], "validation", logits=True)
    best = ab.fit_score(
        "temperature", Predictions(logits=held.logits, labels=held.labels), by="nll"
    )
    p = Predictions(logits=iid.logits, labels=iid.labels)
    found = 1000 * ab.aurc(score("msr", p, temperature=facts.temperature).values, ~p.correct)
    assert found == pytest.approx(facts.values["iid_study", "temp_mls", "aurc"], rel=1e-9)

    # Another temperature, of the logits of clipped features on validation data.
    train = told_by(written("confidnet", tmp_path / "x"), EXPOSURES["confidnet"])
    hot = {"base": "msr", "percentile": 99, "temperature": facts.clipped_temperature}
    clipped = fit("react", train.train.predictions(), last_layer=train.layer, **hot)
    features = next(part for part in train.parts if part.facts.key == "iid").outputs.predictions()
    found = 1000 * ab.aurc(score(clipped, features).values, ~p.correct)
    assert found == pytest.approx(facts.values["iid_study", "react_temp_mls", "aurc"], rel=1e-6)

    def likelihood(temperature):
        p = log_softmax(held.logits.astype(np.float64) / temperature, axis=1)
        return -p[np.arange(held.n), held.labels].mean()

    assert likelihood(best.temperature) <= likelihood(facts.temperature)


@pytest.mark.parametrize("name", ["confidnet", "dg", "devries"])
def test_mcd_waic_of_fd_shifts_takes_the_deviations_of_its_first_row(name, tmp_path):
    seen = told_by(written(name, tmp_path), EXPOSURES[name], abstains=name == "dg")
    samples = np.concatenate([part.outputs.samples for part in seen.parts])
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
def test_ext_waic_of_fd_shifts_is_no_score_here_and_is_the_mean_less_the_deviation(name, tmp_path):
    folder = written(name, tmp_path)
    with np.load(folder / "external_confids_dist.npz") as file:
        passes = file["arr_0"].astype(np.float64)
    found = passes.mean(axis=1) - passes.std(axis=1)
    np.testing.assert_allclose(found, told(name).confidence["ext_waic"], rtol=1e-6)


def test_an_open_set_folder_of_fd_shifts(tmp_path):
    """Its study has the validation pictures too: with these, the confidences and numbers agree."""
    name = "confidnet_openset"
    _, store = imported(name, tmp_path, held_out=[HELD_OUT])
    assert store.classes == tuple(map(str, range(CLASSES - 1)))
    run, facts = store.runs[0], told(name)
    parts = [store.scores(run, key) for key in ("validation", "iid", "held-out-classes")]
    labels = np.load(written(name, tmp_path / "again") / "raw_logits.npz")["arr_0"][:, -2]
    new = labels == HELD_OUT
    for own, (method, said) in METHODS[name].items():
        ours = said(np.concatenate([part.confidence[method] for part in parts]))
        theirs = facts.confidence[own]
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
            found = 1000 * ours(confidence[counts], loss[counts])
            expected = facts.values[f"openset_{mode}_mode", "det_mcp", metric]
            assert found == pytest.approx(expected, rel=1e-9)
