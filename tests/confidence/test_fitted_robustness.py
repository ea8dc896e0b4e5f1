"""Extreme numbers, odd arguments and edited files: one plain error each, and no wrong number."""

import numpy as np
import pytest
from tests.confidence.fitted_cases import BIAS, TRAIN, WEIGHT, D, fitted

import abstain as ab
from abstain.confidence import FITTED, FittedScore, fit, from_arrays, score
from abstain.errors import InputError
from abstain.predictions import Predictions

FEATURED = ["mahalanobis", "relative_mahalanobis", "knn", "vim", "react"]


def scaled(by):
    x = TRAIN.features * by
    return Predictions(features=x, logits=x @ WEIGHT.T + BIAS, labels=TRAIN.labels)


@pytest.mark.parametrize("by", [1e-20, 1e20])
@pytest.mark.parametrize("shrinkage", ["none", "ledoit_wolf", 0.1])
@pytest.mark.parametrize("name", ["mahalanobis", "relative_mahalanobis"])
def test_the_scale_of_the_features_is_nothing_to_a_gaussian(name, shrinkage, by):
    plain, far = (fit(name, scaled(b), shrinkage=shrinkage).score(scaled(b)) for b in (1.0, by))
    np.testing.assert_allclose(far.values, plain.values, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("by", [1e-160, 1e-80, 1e80, 1e160, 1e300])
@pytest.mark.parametrize("name", FEATURED)
def test_features_whose_squares_are_no_numbers_raise_an_error(name, by):
    options = {"knn": {"normalize": False}, "react": {"last_layer": (WEIGHT, BIAS)}}
    with pytest.raises(InputError, match=r"largest entry within 1e-70 and 1e\+70.*Rescale"):
        fit(name, scaled(by), **options.get(name, {}))
    for shrinkage in ("ledoit_wolf", 0.1) if "mahal" in name else ():
        with pytest.raises(InputError, match="Rescale"):
            fit(name, scaled(by), shrinkage=shrinkage)


def test_neighbors_by_direction_take_any_scale():
    near, far = (fit("knn", scaled(b), k=3).score(scaled(b)).values for b in (1.0, 1e160))
    np.testing.assert_allclose(far, near, rtol=1e-9, atol=1e-12)


def test_a_last_layer_is_compared_with_huge_logits():
    for by in (1e65, 1.0):
        x = np.ones((4, D)) * by
        logits = 1e100 * (x @ WEIGHT.T)
        p = Predictions(features=x, logits=logits, labels=[0, 1, 2, 0])
        fit("react", p, last_layer=(1e100 * WEIGHT, 0 * BIAS))
        with pytest.raises(InputError, match="does not compute the logits"):
            fit("react", p, last_layer=(2e100 * WEIGHT, 0 * BIAS))


def test_a_layer_of_tiny_weights_puts_the_origin_out_of_reach():
    tiny = Predictions(features=TRAIN.features, prediction=TRAIN.labels, labels=TRAIN.labels)
    with pytest.raises(InputError, match="Rescale"):
        fit("vim", tiny, last_layer=(1e-200 * WEIGHT, BIAS))


def test_features_that_do_not_vary_are_not_sent_to_a_shrinkage():
    still = Predictions(features=np.ones((6, 2)), prediction=[0, 1] * 3, labels=[0, 1] * 3)
    for shrinkage in ("none", 0.1, "ledoit_wolf"):
        with pytest.raises(InputError, match=r"Fit it on|Fit on samples whose features vary"):
            fit("mahalanobis", still, shrinkage=shrinkage)


def test_weights_that_vanish_beside_others_move_no_place():
    p = Predictions(confidence=[1.0, 2, 3, 4], loss=[0, 1, 0, 1], weight=[1, 1e-20, 1e-20, 1])
    state = fit("rank", p, score="confidence")
    assert (np.diff(state.score(p).values) > 0).all()
    np.testing.assert_allclose(state.score(p).values[[0, 3]], [1 / 3, 2 / 3], rtol=1e-12)


def test_a_learned_sum_refuses_what_it_cannot_square_or_reach():
    p = Predictions(confidence={"a": [1.0, 2, 3], "b": [3.0, 1, 2]}, loss=[0, 1, 0])
    huge = Predictions(confidence={"a": [1e200, 2, 3], "b": [3.0, 1, 2]}, loss=[0, 1, 0])
    with pytest.raises(InputError, match=r"`scores` must be below 1e\+150 in size; got 1e\+200"):
        fit("combine", huge, scores=["a", "b"], how="learned")
    close = Predictions(confidence={"a": [1.0, 1 + 1e-6, 1], "b": [3.0, 1, 2]}, loss=[0, 1, 0])
    far = Predictions(confidence={"a": [1e308, 2], "b": [-1e308, 2]}, loss=[0, 1])
    state = fit("combine", close, scores=["a", "b"], how="learned")
    with pytest.raises(InputError, match="too far from those of the fit"):
        state.score(far)
    assert np.isfinite(fit("combine", p, scores=["a", "b"], how="learned").score(p).values).all()


@pytest.mark.parametrize("name", [5, None, ["knn"], ("knn",)])
def test_other_things_than_names_raise_an_error(name):
    for call in (fit, ab.fit_score):
        with pytest.raises(InputError, match="`name` must be the name of a fitted score"):
            call(name, TRAIN)


@pytest.mark.parametrize("name", FITTED)
def test_other_things_than_predictions_raise_an_error(name):
    options = dict.fromkeys(FITTED[name].required, "msr")
    with pytest.raises(InputError, match="`predictions` must be a Predictions; got ndarray"):
        fit(name, np.ones((3, 2)), **options)


def test_half_a_last_layer_raises_an_error():
    plain, arrays = fitted("vim", {"last_layer": (WEIGHT, BIAS)}).to_arrays()
    del arrays["bias"]
    with pytest.raises(InputError, match="`bias` is missing; a last layer has a weight and a bias"):
        from_arrays({**plain, "bias": None}, arrays)


def test_numbers_beyond_floats_and_fields_given_twice_raise_an_error():
    plain, arrays = fitted("react", {}).to_arrays()
    with pytest.raises(InputError, match="`threshold` must be finite"):
        from_arrays({**plain, "threshold": 10**400}, arrays)
    with pytest.raises(InputError, match="`weight` occurs twice"):
        from_arrays({**plain, "weight": [[1.0]]}, arrays)


def test_a_score_too_far_away_names_itself():
    state: FittedScore = fit("knn", TRAIN, k=1, normalize=False)
    far = Predictions(features=np.full((2, D), 1e200), confidence=[0, 1], loss=[0, 1])
    with pytest.raises(InputError, match=r"`knn@k=1,normalize=False` must be finite.*rescale"):
        score(state, far)
