"""Methods: the laws that every entry of the catalogue obeys, by being registered."""

from dataclasses import replace

import numpy as np
import pytest
from bench.tests.runs.known_outputs import (
    BIAS,
    ENSEMBLE,
    FAR,
    FAR_ENSEMBLE,
    KNOWN,
    NETWORK,
    WEIGHT,
    known,
    right,
    without,
)

from abstain.errors import InputError, MissingInputError
from abstain.metrics import failure_auroc
from abstain_bench.runs.methods import METHODS, NEEDS, FitData, fit_all, score_all

#: Methods that order failures among the toy's known classes no better than chance, and why.
NO_BETTER = {
    "mahalanobis": "how far an image is from every class says nothing of which of two near ones",
    "mahalanobis_predicted": "nor does how far it is from the predicted one",
    "knn_1000": "nor does the distance to its neighbors, unless the features have one length",
}
NO_BETTER |= {
    f"{prefix}_{name}": NO_BETTER[name]
    for name in ("mahalanobis_predicted", "knn_1000")
    for prefix in ("dg", "devries")
}

ALL = pytest.mark.parametrize("name", METHODS)


@pytest.fixture(scope="module")
def fitted():
    return fit_all(METHODS, KNOWN)


def given(name, network=NETWORK, ensemble=ENSEMBLE):
    return ensemble if "ensemble" in METHODS[name].needs else network


def values(fitted, name, outputs):
    return one(fitted, name).score(outputs)[name]


def one(fitted, name):
    return replace(fitted, methods=(METHODS[name],))


def test_all_can_be_fitted(fitted):
    assert fitted.reasons == {}
    assert list(fitted.scores) == list(METHODS)


@ALL
def test_confidences_are_finite_doubles(fitted, name):
    score = one(fitted, name).score(given(name))
    assert score.reasons == {}
    assert score[name].dtype == np.float64
    assert score[name].shape == (NETWORK.n,)
    assert np.isfinite(score[name]).all()
    # ASH is for features behind a ReLU: of these, of both signs, it leaves little.
    assert len(np.unique(score[name])) > (20 if name == "ash" else NETWORK.n // 2)


@ALL
def test_a_confidence_belongs_to_its_picture_alone(fitted, name):
    outputs = given(name)
    whole = values(fitted, name, outputs)
    order = np.random.default_rng(0).permutation(outputs.n)
    moved = values(fitted, name, outputs.subset(order))
    np.testing.assert_allclose(moved, whole[order], rtol=1e-9, atol=1e-9)
    alone = values(fitted, name, outputs.subset([17]))
    np.testing.assert_allclose(alone, whole[[17]], rtol=1e-9, atol=1e-9)


@ALL
def test_labels_are_not_looked_at(fitted, name):
    outputs = given(name)
    whole = values(fitted, name, outputs)
    shuffled = np.random.default_rng(0).permutation(outputs.labels)
    for labels in (shuffled, np.full(outputs.n, -1), np.full(outputs.n, 1)):
        assert np.array_equal(values(fitted, name, replace(outputs, labels=labels)), whole)


@ALL
def test_higher_is_more_trusted(fitted, name):
    outputs = given(name)
    loss = (~right(name, outputs)).astype(float)
    assert 0.1 < loss.mean() < 0.4
    result = failure_auroc(values(fitted, name, outputs), loss)
    # An exception that is none any more must leave the table.
    assert (result > 0.5) == (name not in NO_BETTER), result


@pytest.mark.parametrize("name", [*NO_BETTER, "knn", "vim", "ens_mi"])
def test_far_pictures_are_trusted_less(fitted, name):
    near = values(fitted, name, given(name))
    far = values(fitted, name, given(name, FAR, FAR_ENSEMBLE))
    loss = np.repeat([0.0, 1.0], [len(near), len(far)])
    assert failure_auroc(np.concatenate([near, far]), loss) > 0.75


def test_the_exceptions_are_methods():
    assert set(NO_BETTER) <= set(METHODS)


OTHER = known(train=5, validation=6)


@ALL
def test_only_what_the_entry_names_is_fitted_on(fitted, name):
    entry = METHODS[name]
    whole = values(fitted, name, given(name))
    changed = {}
    for part in ("train", "validation"):
        others = replace(KNOWN, **{part: getattr(OTHER, part)})
        result = score_all([entry], others, given(name))[name]
        changed[part] = not np.array_equal(result, whole)
        assert not changed[part] or part in entry.fitted_splits
    for part in entry.fitted_splits:
        # SelectedSetting from a grid, a parameter may well be the same on other images. The features
        # above the 99th percentile have a weight of 0 in this toy.
        is_same = name == "pnorm" or ("react_99" in name and part == "train")
        assert changed[part] or is_same


def test_what_a_method_is_fitted_on_must_be_known():
    scores = score_all(["knn", "temp_msr", "msr"], replace(KNOWN, train=None), given("msr"))
    assert "outputs for the train images" in scores.reasons["knn"]
    assert list(scores.reasons) == ["knn"]
    with pytest.raises(MissingInputError, match="no outputs for the validation images"):
        FitData().split("validation")


#: Inputs of outputs that can be left out.
OPTIONAL = {"features", "samples", "learned"}


@ALL
def test_needs_are_all_that_is_needed(fitted, name):
    entry = METHODS[name]
    needs = entry.needs | {"samples"} if "ensemble" in entry.needs else entry.needs
    spare = OPTIONAL - needs
    bare = FitData(without(KNOWN.train, *spare), without(KNOWN.validation, *spare))
    if "last_layer" in entry.needs:
        bare = replace(bare, weight=WEIGHT, bias=BIAS)
    scores = score_all([entry], bare, without(given(name), *spare))
    assert scores.reasons == {}
    assert np.array_equal(scores[name], values(fitted, name, given(name)))


@pytest.mark.parametrize(
    ("name", "need"), [(name, need) for name in METHODS for need in sorted(METHODS[name].needs)]
)
def test_a_missing_need_is_said_by_name(name, need):
    outputs, what = given(name), KNOWN
    if need == "last_layer":
        what = replace(KNOWN, weight=None)
    elif need == "ensemble":
        outputs = NETWORK  # passes are no networks
    else:
        outputs = without(outputs, need)
    scores = score_all([name, "msr"], what, outputs)
    assert np.isnan(scores[name]).all()
    assert scores[name].shape == (NETWORK.n,)
    assert list(scores.reasons) == [name]
    assert NEEDS[need] in scores.reasons[name]
    assert name in scores.reasons[name]
    assert np.isfinite(scores["msr"]).all()


@pytest.mark.parametrize("part", ["train", "validation"])
def test_an_ensemble_is_not_fitted_since_it_would_be_on_what_it_is_judged_by(part):
    with pytest.raises(InputError, match="ensembles must not be fitted; 'ens_msr' is"):
        replace(METHODS["ens_msr"], fitted_on=part)


@pytest.mark.parametrize("part", ["train", "validation"])
def test_what_it_is_fitted_on_must_hold_features(part):
    entry = replace(METHODS["knn"], fitted_on=part)
    held = replace(KNOWN, **{part: without(getattr(KNOWN, part), "features")})
    assert f"of the {part} images" in score_all([entry], held, NETWORK).reasons["knn"]


@pytest.mark.parametrize("name", [name for name in METHODS if METHODS[name].fitted_on])
def test_pictures_of_no_known_class_are_not_fitted_on(name):
    strange = {
        part: joined(getattr(KNOWN, part), FAR.subset([0, 1, 2]))
        for part in ("train", "validation")
    }
    result = score_all([name], replace(KNOWN, **strange), NETWORK)[name]
    assert np.array_equal(result, score_all([name], KNOWN, NETWORK)[name])


def joined(one, other):
    names = ("logits", "labels", "ids", "features", "logit_samples")
    arrays = {n: np.concatenate([getattr(one, n), getattr(other, n)]) for n in names}
    confidence = {
        name: np.concatenate([column, other.confidence[name]])
        for name, column in one.confidence.items()
    }
    return replace(one, **arrays, confidence=confidence)
